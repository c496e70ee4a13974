/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines, regions, peers and single transfers for tests.
 */
#include "support.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void log_line(void *ctx, enum pdx_log_level level, const char *line)
{
    (void)level;
    (void)fprintf(stderr, "[%s] %s\n", (const char *)ctx, line);
}

void ts_engine_opts(struct pdx_engine_opts *opts, const char *name)
{
    const char *io = getenv("PDX_TEST_IO");

    pdx_engine_opts_init(opts);
    opts->name = name;
    opts->connect_timeout_ns = 10 * TS_LONG;
    opts->deadline_ns = 2 * TS_LONG;
    if (io && strcmp(io, "uring") == 0)
        opts->io = PDX_IO_URING;
    else if (io && strcmp(io, "epoll") == 0)
        opts->io = PDX_IO_EPOLL;
    if (getenv("PDX_TEST_LOG")) {
        opts->log = log_line;
        opts->log_ctx = (void *)(uintptr_t)name;
        opts->log_level = PDX_LOG_DEBUG;
    }
}

struct pdx_engine *ts_engine(const struct pdx_engine_opts *opts)
{
    struct pdx_engine *engine = NULL;
    struct pdx_error why;

    ts_ok(pdx_engine_create(opts, &engine, &why), &why);
    assert_non_null(engine);
    return engine;
}

struct pdx_region *ts_region(struct pdx_engine *engine, struct ts_mem *m, uint32_t rights)
{
    struct pdx_region_opts opts = PDX_REGION_OPTS_INIT;
    struct pdx_region *region = NULL;
    struct pdx_error why;

    opts.rights = rights;
    ts_ok(pdx_region_register(engine, m->p, m->len, &opts, &region, &why), &why);
    assert_non_null(region);
    return region;
}

struct pdx_remote ts_remote(const struct pdx_region *region)
{
    uint8_t buf[TS_DESC_MAX];
    struct pdx_remote remote;
    struct pdx_error why;
    size_t len = pdx_region_export(region, buf, sizeof buf);

    assert_in_range(len, 1, sizeof buf);
    ts_ok(pdx_remote_decode(buf, len, &remote, &why), &why);
    return remote;
}

struct pdx_peer *ts_peer(struct pdx_engine *engine, const struct pdx_engine *of)
{
    uint8_t buf[TS_DESC_MAX];
    struct pdx_peer *peer = NULL;
    struct pdx_error why;
    size_t len = pdx_engine_desc(of, buf, sizeof buf);

    assert_in_range(len, 1, sizeof buf);
    ts_ok(pdx_peer_add(engine, buf, len, &peer, &why), &why);
    return peer;
}

struct pdx_engine_counters ts_counters(const struct pdx_engine *engine)
{
    struct pdx_engine_counters c;

    pdx_engine_counters(engine, &c);
    return c;
}

void ts_sync(struct pdx_engine *engine)
{
    struct pdx_region *region;
    struct pdx_error why;
    char byte;

    ts_ok(pdx_region_register(engine, &byte, 1, NULL, &region, &why), &why);
    ts_ok(pdx_region_deregister(region, 0, &why), &why);
}

void ts_pair_open(struct ts_pair *p, const struct pdx_engine_opts *a,
                  const struct pdx_engine_opts *b, size_t len)
{
    struct pdx_error why;

    memset(p, 0, sizeof *p);
    ts_mem_open(&p->ma, len);
    ts_mem_open(&p->mb, len);
    p->a = ts_engine(a);
    p->b = ts_engine(b);
    p->ra = ts_region(p->a, &p->ma, PDX_RIGHT_ALL);
    p->rb = ts_region(p->b, &p->mb, PDX_RIGHT_ALL);
    p->remote = ts_remote(p->rb);
    p->peer = ts_peer(p->a, p->b);
    ts_ok(pdx_peer_wait_up(p->peer, TS_LONG, &why), &why);
}

void ts_pair_close(struct ts_pair *p)
{
    pdx_peer_put(p->peer);
    (void)pdx_engine_destroy(p->a);
    (void)pdx_engine_destroy(p->b);
    (void)pdx_region_deregister(p->ra, 0, NULL);
    (void)pdx_region_deregister(p->rb, 0, NULL);
    p->peer = NULL;
    p->a = p->b = NULL;
    p->ra = p->rb = NULL;
    ts_mem_close(&p->ma);
    ts_mem_close(&p->mb);
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int ts_listen(uint16_t port)
{
    struct sockaddr_in addr = loopback(port);
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, 64) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

bool ts_connect_fd(int fd, uint16_t port)
{
    struct sockaddr_in addr = loopback(port);

    return connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
}

int ts_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (!ts_connect_fd(fd, port)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

uint16_t ts_quiet_port(void)
{
    uint64_t rng = ts_now();

    for (int i = 0; i < 1000; i++) {
        uint16_t port =
            (uint16_t)(12000 + ts_rand(&rng) % 18000); /* ephemeral ones begin at 32768 */
        int fd = ts_listen(port);

        if (fd < 0)
            continue;
        (void)close(fd);
        return port;
    }
    ts_fail(__FILE__, __LINE__, "no free port between 12000 and 30000");
    return 0;
}

/* An engine lends its descriptors and its port, and goes. */
void ts_mute_open(struct ts_mute *m, struct pdx_engine *a)
{
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *lender;
    struct pdx_region *region;
    struct pdx_error why;
    struct ts_mem mem;
    uint8_t desc[TS_DESC_MAX];
    uint16_t port;
    size_t len;

    memset(m, 0, sizeof *m);
    ts_engine_opts(&opts, "mute");
    lender = ts_engine(&opts);
    ts_mem_open(&mem, 1 << 20);
    region = ts_region(lender, &mem, PDX_RIGHT_ALL);
    m->remote = ts_remote(region);
    len = pdx_engine_desc(lender, desc, sizeof desc);
    pdx_engine_info(lender, &info);
    port = info.port;
    ts_ok(pdx_region_deregister(region, 0, &why), &why);
    (void)pdx_engine_destroy(lender);
    ts_mem_close(&mem);
    m->fd = ts_listen(port);
    if (m->fd < 0)
        ts_fail(__FILE__, __LINE__, "cannot listen on port %d any more", port);
    ts_ok(pdx_peer_add(a, desc, len, &m->peer, &why), &why);
}

void ts_mute_close(struct ts_mute *m)
{
    pdx_peer_put(m->peer);
    m->peer = NULL;
    if (m->fd > 0)
        (void)close(m->fd);
    m->fd = 0;
}

typedef int (*submit_fn)(struct pdx_peer *, struct pdx_region *, const struct pdx_remote *,
                         const struct pdx_seg *, size_t, const struct pdx_submit_opts *,
                         struct pdx_transfer_status **, struct pdx_error *);

static struct pdx_transfer_status *submit_one(submit_fn fn, struct pdx_peer *peer,
                                              struct pdx_region *local,
                                              const struct pdx_remote *remote, struct pdx_seg seg,
                                              const struct pdx_submit_opts *opts)
{
    struct pdx_transfer_status *status = NULL;
    struct pdx_error why;

    ts_ok(fn(peer, local, remote, &seg, 1, opts, &status, &why), &why);
    assert_non_null(status);
    return status;
}

struct pdx_transfer_status *ts_write(struct ts_pair *p, uint64_t local_off, uint64_t remote_off,
                                     uint64_t len, const struct pdx_submit_opts *opts)
{
    return submit_one(pdx_write, p->peer, p->ra, &p->remote,
                      (struct pdx_seg){local_off, remote_off, len}, opts);
}

struct pdx_transfer_status *ts_read(struct ts_pair *p, uint64_t local_off, uint64_t remote_off,
                                    uint64_t len, const struct pdx_submit_opts *opts)
{
    return submit_one(pdx_read, p->peer, p->ra, &p->remote,
                      (struct pdx_seg){local_off, remote_off, len}, opts);
}

struct pdx_transfer_status *ts_mute_write(struct ts_mute *m, struct pdx_region *local,
                                          const struct pdx_submit_opts *opts)
{
    return submit_one(pdx_write, m->peer, local, &m->remote, (struct pdx_seg){0, 0, 4096}, opts);
}
