/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: strangers at the listener. Whatever they send, their connection
 * ends and is counted, and nobody else notices.
 */
#include "conformance.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Honest traffic in the background of every case; also after a failure it is stopped before what it
 * uses is closed. */
static struct {
    struct conf *c;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    atomic_int done;
    atomic_int bad;
} traffic;

static void *traffic_main(void *ctx)
{
    struct ts_pair *p = ctx;
    struct pdx_seg seg = {0, 0, 20000};

    while (!atomic_load(&traffic.stop)) {
        struct pdx_transfer_status *st = NULL;

        if (pdx_write(p->peer, p->ra, &p->remote, &seg, 1, NULL, &st, NULL) < 0 ||
            pdx_transfer_wait(st, TS_LONG) < 0 || pdx_transfer_code(st) != PDX_DONE)
            atomic_fetch_add(&traffic.bad, 1);
        else
            atomic_fetch_add(&traffic.done, 1);
        pdx_transfer_put(st);
    }
    return NULL;
}

static void traffic_start(struct conf *c)
{
    traffic.c = c;
    atomic_store(&traffic.stop, false);
    atomic_store(&traffic.done, 0);
    atomic_store(&traffic.bad, 0);
    assert_int_equal(pthread_create(&traffic.thread, NULL, traffic_main, &c->pair), 0);
    traffic.running = true;
}

static void traffic_stop(void)
{
    if (!traffic.running)
        return;
    atomic_store(&traffic.stop, true);
    (void)pthread_join(traffic.thread, NULL);
    traffic.running = false;
}

/* What was to be survived lies behind us, and transfers are still being done. */
static void traffic_check(void)
{
    int before = atomic_load(&traffic.done);

    ts_until(atomic_load(&traffic.done) > before || atomic_load(&traffic.bad) > 0);
    traffic_stop();
    assert_int_equal(atomic_load(&traffic.bad), 0);
    conf_assert_peer_well(traffic.c);
    assert_int_equal(ts_counters(traffic.c->pair.b).sessions, 1);
    assert_int_equal(ts_counters(traffic.c->pair.b).sessions_lost, 0);
}

static int teardown(void **state)
{
    traffic_stop();
    return conf_teardown(state);
}

static uint16_t port_of(const struct pdx_engine *engine)
{
    struct pdx_engine_info info;

    pdx_engine_info(engine, &info);
    return info.port;
}

/* A stranger that has said `len` bytes. */
static int stranger(struct conf *c, const void *data, size_t len)
{
    int fd = ts_connect(port_of(c->pair.b));

    assert_true(fd >= 0);
    /* It may be thrown out in the middle of a sentence. */
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, (const uint8_t *)data + sent, len - sent, MSG_NOSIGNAL);

        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    return fd;
}

/* Waits until the other side has closed. */
static bool thrown_out(int fd)
{
    uint64_t end = ts_now() + TS_LONG;
    char buf[4096];

    while (ts_now() < end) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};

        if (poll(&pfd, 1, 100) > 0 && recv(fd, buf, sizeof buf, MSG_DONTWAIT) <= 0)
            return true;
    }
    return false;
}

static void expect_garbage(struct conf *c, const void *data, size_t len)
{
    uint64_t before = ts_counters(c->pair.b).garbage;
    int fd = stranger(c, data, len);

    if (!thrown_out(fd))
        ts_fail(__FILE__, __LINE__,
                "a connection with %zu bytes of garbage stays open (%llu counted)", len,
                (unsigned long long)(ts_counters(c->pair.b).garbage - before));
    (void)close(fd);
    ts_until(ts_counters(c->pair.b).garbage == before + 1);
}

static void test_garbage_is_thrown_out_and_counted(void **state)
{
    struct conf *c = *state;
    static const char http[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03};
    static const uint8_t zeroes[65536];
    static uint8_t noise[65536];

    traffic_start(c);
    expect_garbage(c, http, sizeof http - 1);
    expect_garbage(c, tls, sizeof tls);
    expect_garbage(c, zeroes, sizeof zeroes);
    for (uint64_t seed = 1; seed <= 50; seed++) {
        size_t len = 8 + seed * seed * 20;

        ts_fill(noise, 0, len, seed);
        noise[0] |= 0x80; /* not the first byte of a frame */
        expect_garbage(c, noise, len);
    }
    traffic_check();
}

/* A frame's prefix: "DX", type, flags, length of the body, little-endian. */
static void prefix(uint8_t *p, uint8_t type, uint32_t body_len)
{
    p[0] = 'D';
    p[1] = 'X';
    p[2] = type;
    p[3] = 0;
    for (int i = 0; i < 4; i++)
        p[4 + i] = (uint8_t)(body_len >> (8 * i));
}

/* Well-formed prefixes of every type, with bodies that are too long, too short, or noise. Before a
 * HELLO nothing but a HELLO is understood, and that only when it is one. */
static void test_frames_of_strangers_are_garbage(void **state)
{
    struct conf *c = *state;
    static const uint32_t lens[] = {0, 1, 100, 0xffffffff};
    uint8_t frame[8 + 128];

    traffic_start(c);
    for (uint32_t type = 0; type < 40; type++)
        for (size_t k = 0; k < sizeof lens / sizeof lens[0]; k++) {
            uint64_t before = ts_counters(c->pair.b).garbage;
            int fd;

            ts_fill(frame, 0, sizeof frame, type * 16 + k);
            prefix(frame, (uint8_t)type, lens[k]);
            memcpy(frame + 8, "\1\0\0\0", 4); /* our version, else a HELLO could be a later one */
            fd = stranger(c, frame, 8 + (lens[k] < 128 ? lens[k] : 128));
            if (!thrown_out(fd))
                ts_fail(__FILE__, __LINE__, "type %u with %u bytes is listened to", type, lens[k]);
            (void)close(fd);
            ts_until(ts_counters(c->pair.b).garbage == before + 1);
        }
    traffic_check();
}

/* A HELLO of a later major version is answered with a refusal that its sender can read: version
 * first, then the code. */
static void test_later_version_is_refused_politely(void **state)
{
    struct conf *c = *state;
    uint8_t frame[8 + 4] = {0};
    uint8_t answer[1024];
    int32_t code = 0;
    int fd;

    traffic_start(c);
    prefix(frame, 1, 4);
    frame[8] = 2;
    fd = stranger(c, frame, sizeof frame);
    assert_int_equal(recv(fd, answer, 16, MSG_WAITALL), 16);
    assert_memory_equal(answer, "DX\2", 3);
    memcpy(&code, answer + 12, sizeof code);
    assert_int_equal(code, PDX_EVERSION);
    assert_true(thrown_out(fd));
    (void)close(fd);
    traffic_check();
    assert_int_equal(ts_counters(c->pair.b).garbage, 0);
}

/* The beginning of a HELLO, then the end of the connection. */
static void test_half_frames_are_counted(void **state)
{
    struct conf *c = *state;
    uint8_t frame[8 + 64] = {0};

    traffic_start(c);
    prefix(frame, 1, 200);
    for (size_t len = 1; len <= sizeof frame; len += 7) {
        uint64_t before = ts_counters(c->pair.b).garbage;
        int fd = stranger(c, frame, len);

        (void)shutdown(fd, SHUT_WR);
        assert_true(thrown_out(fd));
        (void)close(fd);
        ts_until(ts_counters(c->pair.b).garbage == before + 1);
    }
    traffic_check();
}

/* A probe that connects and says nothing is no garbage. */
static void test_silent_visit_is_not_garbage(void **state)
{
    struct conf *c = *state;

    traffic_start(c);
    for (int i = 0; i < 50; i++) {
        int fd = stranger(c, NULL, 0);

        (void)shutdown(fd, SHUT_WR);
        assert_true(thrown_out(fd));
        (void)close(fd);
    }
    traffic_check();
    assert_int_equal(ts_counters(c->pair.b).garbage, 0);
}

/* Bytes that come too slowly, or not at all, meet the connect timeout. */
static void test_slow_strangers_are_timed_out(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    uint8_t frame[8];
    int fds[8];

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    b.connect_timeout_ns = TS_SCALE(200, 1000) * PDX_MSEC;
    ts_pair_open(&c->pair, &a, &b, 1 << 20);
    traffic_start(c);
    prefix(frame, 1, 200);
    for (int i = 0; i < 8; i++)
        fds[i] = stranger(c, frame, (size_t)i);
    for (int i = 0; i < 8; i++) {
        assert_true(thrown_out(fds[i]));
        (void)close(fds[i]);
    }
    ts_until(ts_counters(c->pair.b).garbage >= 7);
    traffic_check();
}

/* A crowd of silent strangers does not keep a new peer out for longer than the timeout. */
static void test_crowd_of_strangers_is_survived(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    struct pdx_peer *late;
    struct pdx_error why;
    struct pdx_engine *third;
    int fds[64];

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    b.max_sessions = 4;
    b.connect_timeout_ns = TS_SCALE(200, 1000) * PDX_MSEC;
    ts_pair_open(&c->pair, &a, &b, 1 << 20);
    for (int i = 0; i < 64; i++)
        fds[i] = ts_connect(port_of(c->pair.b));
    conf_opts(&a, "gamma");
    third = ts_engine(&a);
    late = ts_peer(third, c->pair.b);
    ts_ok(pdx_peer_wait_up(late, TS_LONG, &why), &why);
    pdx_peer_put(late);
    (void)pdx_engine_destroy(third);
    conf_assert_peer_well(c);
    for (int i = 0; i < 64; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

static uint64_t cpu_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * PDX_SEC + (uint64_t)ts.tv_nsec;
}

/* A connection that cannot be accepted because the process has no descriptor left: the listener
 * neither spins nor forgets it. */
static void test_no_descriptors_left_is_waited_out(void **state)
{
    struct conf *c = *state;
    struct timespec third = {.tv_nsec = 300000000};
    struct rlimit limit;
    struct rlimit none;
    uint16_t port = port_of(c->pair.b);
    uint64_t cpu;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int next = dup(fd);
    bool connected;

    assert_true(fd >= 0 && next > fd);
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    connected = ts_connect_fd(fd, port);
    cpu = cpu_now();
    (void)nanosleep(&third, NULL); /* what is measured is this time */
    cpu = cpu_now() - cpu;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(connected);
    if (cpu > 100 * PDX_MSEC)
        ts_fail(__FILE__, __LINE__, "%llu ms of processor time in 300 ms",
                (unsigned long long)(cpu / PDX_MSEC));
    assert_int_equal(send(fd, "GET / HTTP/1.1", 14, MSG_NOSIGNAL), 14);
    assert_true(thrown_out(fd));
    (void)close(fd);
    conf_assert_peer_well(c);
}

/* The liar is the one that is connected to. */
static void test_garbage_as_an_answer_takes_the_peer_down(void **state)
{
    struct conf *c = *state;
    uint8_t noise[4096];
    struct pdx_error why;

    traffic_start(c);
    for (int round = 0; round < 4; round++) {
        int fd = accept4(c->mute.fd, NULL, NULL, SOCK_CLOEXEC);

        assert_true(fd >= 0);
        ts_fill(noise, 0, sizeof noise, (uint64_t)round);
        if (round % 2) /* at first sight a HELLO_ACK */
            prefix(noise, 2, 200);
        (void)send(fd, noise, sizeof noise, MSG_NOSIGNAL);
        assert_true(thrown_out(fd));
        (void)close(fd);
        ts_until(pdx_peer_state(c->mute.peer, &why) == PDX_PEER_DOWN ||
                 pdx_peer_state(c->mute.peer, NULL) == PDX_PEER_CONNECTING);
    }
    ts_text_has(why.text, "mute");
    traffic_check();
}

#define CASE(f, setup) cmocka_unit_test_setup_teardown(f, conf_setup_##setup, teardown)

static const struct CMUnitTest cases[] = {
    CASE(test_garbage_is_thrown_out_and_counted, pair),
    CASE(test_frames_of_strangers_are_garbage, pair),
    CASE(test_later_version_is_refused_politely, pair),
    CASE(test_half_frames_are_counted, pair),
    CASE(test_silent_visit_is_not_garbage, pair),
    CASE(test_slow_strangers_are_timed_out, none),
    CASE(test_crowd_of_strangers_is_survived, none),
    CASE(test_no_descriptors_left_is_waited_out, pair),
    CASE(test_garbage_as_an_answer_takes_the_peer_down, mute),
};

CONF_MAIN(cases)
