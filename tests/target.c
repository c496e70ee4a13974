/* SPDX-License-Identifier: Apache-2.0
 *
 * The other process of the two-process tests; child.c starts it:
 *
 *     conformance_target <name> <host:port> <len> <seed> <keepalive ms>
 *
 * One engine with one region of <len> bytes, filled with the pattern of <seed>.
 * It says "ready <port> <engine> <region>", descriptors in hexadecimal, and
 * then answers each command line with one line:
 *
 *     fill <off> <len> <seed>          "ok": the pattern put there
 *     check <off> <len> <seed>         "ok" or "bad <position>"
 *     blend <off> <len> <seed> <seed>  "ok", or "bad <position>" of the first
 *                                      byte that neither pattern has
 *     sum <off> <len>                  "sum <number>"
 *     inbound <incarnation> <id>       "<code> <err> <bytes> <payload>", "none"
 *     counters                         "<bytes in> <bytes out> <sessions>"
 *     deregister                       "ok" or a sentence
 *     sockets                          how many it was born with
 *     connect <engine> <region>        "ok": has that peer, up
 *     drive <w|r> <n> <nsegs> <seg len> <id>
 *                                      "ok": has submitted n tracked transfers
 *                                      with ids from <id> on, all between the
 *                                      beginnings of the two regions
 *     exit
 */
#include "child.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define DRIVE_SEGS_MAX 65536

struct target {
    struct pdx_engine *engine;
    struct pdx_region *region;
    uint8_t *mem; /* owned */
    size_t len;
    int sockets; /* inherited */
    struct pdx_peer *peer;
    struct pdx_remote remote;
    char *rest; /* of the command line */
};

static uint64_t next_number(struct target *t)
{
    const char *word = strtok_r(NULL, " \n", &t->rest);

    return word ? strtoull(word, NULL, 0) : 0;
}

static size_t next_hex(struct target *t, void *buf, size_t cap)
{
    const char *word = strtok_r(NULL, " \n", &t->rest);

    return word ? ts_unhex(word, buf, cap) : 0;
}

static int count_sockets(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat st;
    int n = 0;

    if (!dir)
        return -1;
    while ((entry = readdir(dir)))
        if (atoi(entry->d_name) > 2 && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
            S_ISSOCK(st.st_mode))
            n++;
    (void)closedir(dir);
    return n;
}

static void say_position(size_t at, size_t len)
{
    if (at == len)
        (void)puts("ok");
    else
        (void)printf("bad %zu\n", at);
}

static void do_fill(struct target *t)
{
    uint64_t off = next_number(t);
    uint64_t len = next_number(t);

    ts_fill(t->mem + off, off, len, next_number(t));
    (void)puts("ok");
}

static void do_check(struct target *t)
{
    uint64_t off = next_number(t);
    uint64_t len = next_number(t);

    say_position(ts_mismatch(t->mem + off, off, len, next_number(t)), len);
}

static void do_blend(struct target *t)
{
    uint64_t off = next_number(t);
    uint64_t len = next_number(t);
    uint64_t one = next_number(t);
    uint64_t two = next_number(t);
    size_t at = 0;

    while (at < len) {
        const uint8_t *p = t->mem + off + at;
        size_t n = ts_mismatch(p, off + at, len - at, one);

        if (n == 0)
            n = ts_mismatch(p, off + at, len - at, two);
        if (n == 0)
            break;
        at += n;
    }
    say_position(at, len);
}

static void do_sum(struct target *t)
{
    uint64_t off = next_number(t);

    (void)printf("sum %llu\n", (unsigned long long)ts_sum(t->mem + off, next_number(t)));
}

static void do_inbound(struct target *t)
{
    uint8_t incarnation[PDX_INCARNATION_LEN] = {0};
    struct pdx_inbound rec;

    (void)next_hex(t, incarnation, sizeof incarnation);
    if (pdx_inbound_get(t->engine, incarnation, next_number(t), false, &rec) < 0)
        (void)puts("none");
    else
        (void)printf("%d %d %llu %.*s\n", rec.code, rec.err, (unsigned long long)rec.bytes,
                     (int)rec.payload_len, (const char *)rec.payload);
}

static void do_counters(struct target *t)
{
    struct pdx_engine_counters c;

    pdx_engine_counters(t->engine, &c);
    (void)printf("%llu %llu %llu\n", (unsigned long long)c.bytes_in_written,
                 (unsigned long long)c.bytes_in_read, (unsigned long long)c.sessions);
}

static void do_deregister(struct target *t)
{
    struct pdx_error why;

    if (pdx_region_deregister(t->region, PDX_SEC, &why) < 0) {
        (void)puts(why.text);
        return;
    }
    t->region = NULL;
    (void)puts("ok");
}

static void do_sockets(struct target *t)
{
    (void)printf("%d\n", t->sockets);
}

static void do_connect(struct target *t)
{
    uint8_t desc[TS_DESC_MAX];
    struct pdx_error why;
    size_t len = next_hex(t, desc, sizeof desc);

    if (pdx_peer_add(t->engine, desc, len, &t->peer, &why) < 0 ||
        pdx_peer_wait_up(t->peer, TS_LONG, &why) < 0)
        goto out_say;
    len = next_hex(t, desc, sizeof desc);
    if (pdx_remote_decode(desc, len, &t->remote, &why) < 0)
        goto out_say;
    (void)puts("ok");
    return;
out_say:
    (void)puts(why.text);
}

static void do_drive(struct target *t)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    static struct pdx_seg segs[DRIVE_SEGS_MAX];
    const char *op = strtok_r(NULL, " \n", &t->rest);
    bool read = op && op[0] == 'r';
    uint64_t n = next_number(t);
    uint64_t nsegs = next_number(t);
    uint64_t seg_len = next_number(t);
    struct pdx_error why;

    opts.id = next_number(t);
    opts.flags = PDX_SUBMIT_TRACK;
    for (uint64_t i = 0; i < nsegs && i < DRIVE_SEGS_MAX; i++)
        segs[i].len = seg_len;
    for (uint64_t i = 0; i < n; i++, opts.id++)
        if ((read ? pdx_read : pdx_write)(t->peer, t->region, &t->remote, segs, nsegs, &opts, NULL,
                                          &why) < 0) {
            (void)puts(why.text);
            return;
        }
    (void)puts("ok");
}

static const struct {
    const char *name;
    void (*fn)(struct target *t);
} commands[] = {
    {"fill", do_fill},
    {"check", do_check},
    {"blend", do_blend},
    {"sum", do_sum},
    {"inbound", do_inbound},
    {"counters", do_counters},
    {"deregister", do_deregister},
    {"sockets", do_sockets},
    {"connect", do_connect},
    {"drive", do_drive},
};

/* Returns false at the end. */
static bool obey(struct target *t, char *line)
{
    const char *word = strtok_r(line, " \n", &t->rest);

    if (!word || strcmp(word, "exit") == 0)
        return false;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(word, commands[i].name) == 0) {
            ts_sync(t->engine);
            commands[i].fn(t);
            return true;
        }
    (void)printf("unknown command %s\n", word);
    return true;
}

static int target_open(struct target *t, char **argv)
{
    struct pdx_engine_opts opts;
    struct pdx_error why;
    uint64_t keepalive_ms = strtoull(argv[5], NULL, 10);

    t->len = strtoull(argv[3], NULL, 10);
    t->mem = mmap(NULL, t->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    if (t->mem == MAP_FAILED)
        return -1;
    ts_fill(t->mem, 0, t->len, strtoull(argv[4], NULL, 10));
    ts_engine_opts(&opts, argv[1]);
    opts.bind = argv[2];
    if (keepalive_ms)
        opts.keepalive_ns = keepalive_ms * PDX_MSEC;
    if (pdx_engine_create(&opts, &t->engine, &why) == 0 &&
        pdx_region_register(t->engine, t->mem, t->len, NULL, &t->region, &why) == 0)
        return 0;
    (void)puts(why.text);
    return -1;
}

static void target_greet(const struct target *t)
{
    static char text[2 * TS_DESC_MAX + 1];
    static uint8_t desc[TS_DESC_MAX];
    struct pdx_engine_info info;
    size_t len;

    pdx_engine_info(t->engine, &info);
    len = pdx_engine_desc(t->engine, desc, sizeof desc);
    ts_hex(desc, len, text);
    (void)printf("ready %u %s ", info.port, text);
    len = pdx_region_export(t->region, desc, sizeof desc);
    ts_hex(desc, len, text);
    (void)printf("%s\n", text);
}

int main(int argc, char **argv)
{
    static char line[3 * TS_DESC_MAX];
    struct target t = {.sockets = count_sockets()};

    if (argc != 6)
        return 2;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (target_open(&t, argv) < 0)
        return 1;
    target_greet(&t);
    while (fgets(line, sizeof line, stdin) && obey(&t, line))
        ;
    pdx_peer_put(t.peer);
    (void)pdx_engine_destroy(t.engine);
    (void)pdx_region_deregister(t.region, 0, NULL);
    (void)munmap(t.mem, t.len);
    return 0;
}
