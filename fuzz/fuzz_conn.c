/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: what a peer says to a live listener of this process. The first byte
 * chooses how far it is let in: a stranger's first bytes, the control
 * connection after its HELLO, or a data connection. On the latter a region
 * number 1 or 2 together with a key of zeroes stands for the open region and
 * for the one that grants nothing, so that inputs get behind the key.
 *
 * Whatever is said: the engine lets go of the connection when it ends, the
 * bytes around the open region and all of the closed one stay as they were,
 * and none of the closed one is ever sent.
 */
#include "engine/proto/frame.h"
#include "fuzz.h"

#include <pdx/pdx.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPEN_LEN   ((size_t)8192)
#define CLOSED_LEN ((size_t)4096)
#define GUARD_LEN  ((size_t)4096)
#define SECRET_LEN ((size_t)16)
#define PATIENCE   20000 /* ms; only a hang waits that long */

static struct {
    uint8_t guard1[GUARD_LEN];
    uint8_t open[OPEN_LEN];
    uint8_t guard2[GUARD_LEN];
    uint8_t closed[CLOSED_LEN];
} memory;

static uint8_t secret[SECRET_LEN]; /* fills the closed region and the guards; not to be guessed */
static struct pdx_engine *engine;
static struct pdx_engine_info engine_info;
static struct pdx_remote remotes[2]; /* open, closed */

static void remote_of(struct pdx_region *region, struct pdx_remote *ret)
{
    uint8_t buf[1024];
    size_t len = pdx_region_export(region, buf, sizeof buf);

    FUZZ_CHECK(pdx_remote_decode(buf, len, ret, NULL) == 0);
}

static void engine_start(void)
{
    struct pdx_region_opts none = PDX_REGION_OPTS_INIT;
    struct pdx_engine_opts opts;
    struct pdx_region *region;

    FUZZ_CHECK(getentropy(secret, SECRET_LEN) == 0);
    for (size_t i = 0; i < sizeof memory; i += SECRET_LEN)
        memcpy((uint8_t *)&memory + i, secret, SECRET_LEN);
    pdx_engine_opts_init(&opts);
    opts.name = "fuzzed";
    opts.max_inbound = 16;
    opts.io = PDX_IO_EPOLL;
    FUZZ_CHECK(pdx_engine_create(&opts, &engine, NULL) == 0);
    pdx_engine_info(engine, &engine_info);
    FUZZ_CHECK(pdx_region_register(engine, memory.open, OPEN_LEN, NULL, &region, NULL) == 0);
    remote_of(region, &remotes[0]);
    none.rights = PDX_RIGHT_NONE;
    FUZZ_CHECK(pdx_region_register(engine, memory.closed, CLOSED_LEN, &none, &region, NULL) == 0);
    remote_of(region, &remotes[1]);
}

static bool all_secret(const uint8_t *p, size_t len)
{
    return memcmp(p, secret, SECRET_LEN) == 0 && memcmp(p, p + SECRET_LEN, len - SECRET_LEN) == 0;
}

/* Not by memmem: libFuzzer watches it, and puts what it looks for into inputs. */
static bool has_secret(const uint8_t *p, size_t len)
{
    for (size_t at = 0; at + SECRET_LEN <= len; at++) {
        unsigned differs = 0;

        for (size_t i = 0; i < SECRET_LEN; i++)
            differs |= p[at + i] ^ secret[i];
        if (!differs)
            return true;
    }
    return false;
}

/* From another loopback address each time, because a port rests for a minute after its use. */
static int conn_open(void)
{
    static uint32_t count;
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + count++ % 65536)};
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons(engine_info.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    FUZZ_CHECK(fd >= 0);
    FUZZ_CHECK(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    FUZZ_CHECK(connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0);
    return fd;
}

static void conn_read(int fd, uint8_t *buf, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, buf, len, 0);

        FUZZ_CHECK(n > 0 || (n < 0 && errno == EINTR));
        if (n > 0) {
            buf += n;
            len -= (size_t)n;
        }
    }
}

/* Returns what the connection is ready for; 0 when libFuzzer's clock rang. */
static short conn_await(int fd, short events)
{
    struct pollfd pfd = {.fd = fd, .events = events};
    int n = poll(&pfd, 1, PATIENCE);

    FUZZ_CHECK(n == 1 || (n < 0 && errno == EINTR));
    return n == 1 ? pfd.revents : 0;
}

/* Greets, and returns the ticket for the next connection. */
static void conn_greet(int fd, enum pdxi_hello_kind kind, uint8_t ticket[PDXI_TICKET_LEN])
{
    struct pdxi_frame_hello hello = {.major = PDXI_PROTO_MAJOR,
                                     .minor = PDXI_PROTO_MINOR,
                                     .kind = kind,
                                     .incarnation = {1, 2, 3},
                                     .keepalive_ns = 10 * PDX_SEC,
                                     .name = "fuzzer"};
    struct pdxi_frame_hello_ack ack;
    struct pdxi_frame_prefix prefix;
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    size_t len;

    memcpy(hello.target, engine_info.incarnation, PDX_INCARNATION_LEN);
    if (kind == PDXI_HELLO_DATA)
        memcpy(hello.ticket, ticket, PDXI_TICKET_LEN);
    len = pdxi_frame_hello_encode(buf, &hello);
    FUZZ_CHECK(send(fd, buf, len, MSG_NOSIGNAL) == (ssize_t)len);
    conn_read(fd, buf, PDXI_FRAME_PREFIX_LEN);
    FUZZ_CHECK(pdxi_frame_prefix_decode(buf, &prefix, NULL) == 0);
    FUZZ_CHECK(prefix.type == PDXI_FRAME_HELLO_ACK);
    conn_read(fd, buf, prefix.body_len);
    FUZZ_CHECK(pdxi_frame_hello_ack_decode(buf, prefix.body_len, &ack, NULL) == 0);
    FUZZ_CHECK(ack.code == 0);
    memcpy(ticket, ack.ticket, PDXI_TICKET_LEN);
}

/* Puts a real region where a frame has a placeholder. Returns the frame's length with its payload.
 */
static size_t place_remote(uint8_t *frame, size_t len)
{
    static const uint8_t no_key[PDX_KEY_LEN];
    struct pdxi_frame_prefix prefix;
    struct pdxi_frame_data f;
    size_t whole;

    if (len < PDXI_FRAME_PREFIX_LEN || pdxi_frame_prefix_decode(frame, &prefix, NULL) < 0)
        return len;
    whole = PDXI_FRAME_PREFIX_LEN + (size_t)prefix.body_len;
    if (whole > len || (prefix.type != PDXI_FRAME_WRITE && prefix.type != PDXI_FRAME_READ))
        return whole;
    if (pdxi_frame_data_decode(frame + PDXI_FRAME_PREFIX_LEN, prefix.body_len, &f, NULL) < 0)
        return whole;
    if ((f.region_id == 1 || f.region_id == 2) && memcmp(f.key, no_key, sizeof no_key) == 0) {
        const struct pdx_remote *r = &remotes[f.region_id - 1];

        f.region_id = r->id;
        f.region_generation = r->generation;
        memcpy(f.key, r->key, sizeof f.key);
        (void)pdxi_frame_data_encode(frame, prefix.type, &f);
    }
    return prefix.type == PDXI_FRAME_WRITE ? whole + f.payload : whole;
}

static void place_remotes(uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t len = place_remote(data + at, size - at);

        at = len < size - at ? at + len : size;
    }
}

/* Says it all, listening meanwhile, and then listens until the engine hangs up. */
static void conn_talk(int fd, const uint8_t *data, size_t size)
{
    static uint8_t heard[65536];
    size_t sent = 0;

    for (;;) {
        short ready = conn_await(fd, sent < size ? POLLIN | POLLOUT : POLLIN);
        ssize_t n;

        if (ready & POLLOUT) {
            n = send(fd, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            sent = n > 0 ? sent + (size_t)n : size;
            if (sent == size)
                (void)shutdown(fd, SHUT_WR);
        }
        if (!(ready & (POLLIN | POLLHUP | POLLERR)))
            continue;
        n = recv(fd, heard, sizeof heard, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && !(ready & POLLOUT)))
            return;
        FUZZ_CHECK(n < 0 || !has_secret(heard, (size_t)n));
    }
}

static void check_engine(void)
{
    struct pdx_engine_counters c;

    for (int ms = 0; ms < PATIENCE; ms++) {
        pdx_engine_counters(engine, &c);
        if (c.sessions == 0)
            break;
        (void)poll(NULL, 0, 1);
    }
    FUZZ_CHECK(c.sessions == 0);
    FUZZ_CHECK(c.inbound_records <= 16);
    FUZZ_CHECK(all_secret(memory.guard1, GUARD_LEN));
    FUZZ_CHECK(all_secret(memory.guard2, GUARD_LEN));
    FUZZ_CHECK(all_secret(memory.closed, CLOSED_LEN));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    uint8_t *said;
    int control = -1;
    int fd;

    if (!engine)
        engine_start();
    if (size == 0)
        return 0;
    memset(memory.open, 0, sizeof memory.open);
    said = fuzz_copy(data + 1, size - 1);
    fd = conn_open();
    if (data[0] % 3 != 0)
        conn_greet(fd, PDXI_HELLO_CONTROL, ticket);
    if (data[0] % 3 == 2) {
        control = fd;
        fd = conn_open();
        conn_greet(fd, PDXI_HELLO_DATA, ticket);
        place_remotes(said, size - 1);
    }
    if (size == 1)
        (void)shutdown(fd, SHUT_WR);
    conn_talk(fd, said, size - 1);
    (void)close(fd);
    if (control >= 0)
        (void)close(control);
    free(said);
    check_engine();
    return 0;
}
