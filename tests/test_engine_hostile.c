/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers that speak the protocol and abuse it, written by hand frame by frame:
 * initiators that ask for what is not theirs, and a target that answers what
 * was not asked. The engine gives up their connection, keeps its memory, and
 * goes on with everybody else.
 */
#include "any_frame.h"
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define REGION_LEN  ((size_t)65536)
#define UNTOUCHED   0x5a
#define MAX_INBOUND 64

struct fixture {
    struct ts_pair pair; /* honest; b is the one that is attacked, or a by its mute peer */
    struct ts_mute mute;
    struct pdx_engine_info info; /* of b */
    int control;
    int data;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    if (!f)
        return -1;
    f->control = f->data = -1;
    ts_engine_opts(&a, "alpha");
    ts_engine_opts(&b, "beta");
    b.max_inbound = MAX_INBOUND;
    ts_pair_open(&f->pair, &a, &b, REGION_LEN);
    pdx_engine_info(f->pair.b, &f->info);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    if (f->control >= 0)
        (void)close(f->control);
    if (f->data >= 0)
        (void)close(f->data);
    ts_mute_close(&f->mute);
    ts_pair_close(&f->pair);
    free(f);
    return 0;
}

/* ---- the wire by hand --------------------------------------------------- */

/* Sends what the other side may no longer want to read. */
static void say(int fd, const void *data, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(fd, (const uint8_t *)data + sent, len - sent, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        sent += (size_t)n;
    }
}

static void say_frame(int fd, enum pdxi_frame_type type, const union any_frame *f)
{
    static uint8_t buf[PDXI_FRAME_HEAD_MAX];

    say(fd, buf, any_frame_encode(buf, type, f, NULL));
}

/* The next frame; 0 when the other side has closed. Payload that follows is the caller's to read.
 */
static enum pdxi_frame_type hear(int fd, union any_frame *ret)
{
    static uint8_t body[PDXI_FRAME_BODY_MAX];
    uint8_t head[PDXI_FRAME_PREFIX_LEN];
    struct timeval patience = {.tv_sec = (time_t)(TS_LONG / PDX_SEC)};
    struct pdxi_frame_prefix prefix;
    struct pdx_error why;
    ssize_t n;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    n = recv(fd, head, sizeof head, MSG_WAITALL);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        ts_fail(__FILE__, __LINE__, "nothing is said, and nobody hangs up");
    if (n <= 0)
        return 0;
    assert_int_equal(n, sizeof head);
    ts_ok(pdxi_frame_prefix_decode(head, &prefix, &why), &why);
    if (prefix.body_len)
        assert_int_equal(recv(fd, body, prefix.body_len, MSG_WAITALL), prefix.body_len);
    ts_ok(any_frame_decode(prefix.type, body, prefix.body_len, ret, &why), &why);
    return prefix.type;
}

/* Whether the other side hangs up, whatever it still says. */
static bool hung_up(int fd)
{
    static uint8_t ignored[65536];
    uint64_t end = ts_now() + TS_LONG;
    struct timeval patience = {.tv_sec = 1};
    ssize_t n;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    do {
        n = recv(fd, ignored, sizeof ignored, 0);
    } while ((n > 0 || (n < 0 && errno == EAGAIN)) && ts_now() < end);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

static const uint8_t my_incarnation[PDX_INCARNATION_LEN] = "not an engine!!";

static int greet(struct fixture *f, enum pdxi_hello_kind kind, const uint8_t *ticket,
                 const uint8_t *incarnation, struct pdxi_frame_hello_ack *ret_ack)
{
    union any_frame frame = {.hello = {.major = PDXI_PROTO_MAJOR,
                                       .kind = kind,
                                       .keepalive_ns = 3600 * PDX_SEC,
                                       .name = "mallory"}};
    int fd = ts_connect(f->info.port);

    assert_true(fd >= 0);
    memcpy(frame.hello.incarnation, incarnation, PDX_INCARNATION_LEN);
    memcpy(frame.hello.target, f->info.incarnation, PDX_INCARNATION_LEN);
    if (ticket)
        memcpy(frame.hello.ticket, ticket, PDXI_TICKET_LEN);
    say_frame(fd, PDXI_FRAME_HELLO, &frame);
    assert_int_equal(hear(fd, &frame), PDXI_FRAME_HELLO_ACK);
    *ret_ack = frame.hello_ack;
    return fd;
}

/* A session with a data connection. */
static void join(struct fixture *f)
{
    struct pdxi_frame_hello_ack ack;

    f->control = greet(f, PDXI_HELLO_CONTROL, NULL, my_incarnation, &ack);
    assert_int_equal(ack.code, 0);
    f->data = greet(f, PDXI_HELLO_DATA, ack.ticket, my_incarnation, &ack);
    assert_int_equal(ack.code, 0);
}

static union any_frame data_frame(struct fixture *f, uint64_t off, uint64_t len)
{
    union any_frame frame = {.data = {.xfer = 1,
                                      .payload = len,
                                      .off = off,
                                      .region_id = f->pair.remote.id,
                                      .region_generation = f->pair.remote.generation,
                                      .nsegs = 1}};

    memcpy(frame.data.key, f->pair.remote.key, PDX_KEY_LEN);
    return frame;
}

/* The honest peer is as well as before. */
static void check_honest(struct fixture *f)
{
    struct pdx_peer_counters pc;

    ts_finish(ts_write(&f->pair, 0, 0, 1, NULL));
    pdx_peer_counters(f->pair.peer, &pc);
    assert_int_equal(pc.losses, 0);
    assert_int_equal(pc.connects, 1);
}

/* Memory has not grown with what was asked for since it was `before`. Sanitizers grow by
 * themselves. */
static void check_grown(uint64_t before)
{
    uint64_t now = ts_resident();

    if (!TS_SANITIZED && now > before + (8 << 20))
        ts_fail(__FILE__, __LINE__, "%llu bytes of memory are taken",
                (unsigned long long)(now - before));
}

/* ---- initiators --------------------------------------------------------- */

/* The helpers of this file can speak: what is allowed works. */
static void test_initiator_by_hand_is_served(void **state)
{
    struct fixture *f = *state;
    union any_frame frame = data_frame(f, 10, 5);
    uint8_t byte[5];

    join(f);
    say_frame(f->data, PDXI_FRAME_WRITE, &frame);
    say(f->data, "hello", 5);
    assert_int_equal(hear(f->data, &frame), PDXI_FRAME_ACK);
    assert_int_equal(frame.ack.seq, 1);
    frame = data_frame(f, 10, 5);
    say_frame(f->data, PDXI_FRAME_READ, &frame);
    assert_int_equal(hear(f->data, &frame), PDXI_FRAME_READ_DATA);
    assert_int_equal(recv(f->data, byte, 5, MSG_WAITALL), 5);
    assert_memory_equal(byte, "hello", 5);
    assert_int_equal(hear(f->data, &frame), PDXI_FRAME_ACK);
    assert_int_equal(frame.ack.seq, 2);
    check_honest(f);
}

static void test_ticket_is_good_once_and_for_its_owner(void **state)
{
    struct fixture *f = *state;
    static const uint8_t other[PDX_INCARNATION_LEN] = "somebody else!!";
    struct pdxi_frame_hello_ack control;
    struct pdxi_frame_hello_ack ack;
    uint8_t guess[PDXI_TICKET_LEN];
    int fd;

    f->control = greet(f, PDXI_HELLO_CONTROL, NULL, my_incarnation, &control);
    assert_int_equal(control.code, 0);
    memcpy(guess, control.ticket, sizeof guess);
    guess[0] ^= 1;
    fd = greet(f, PDXI_HELLO_DATA, guess, my_incarnation, &ack);
    assert_int_equal(ack.code, PDX_EACCESS);
    assert_true(hung_up(fd));
    (void)close(fd);
    fd = greet(f, PDXI_HELLO_DATA, control.ticket, other, &ack);
    assert_int_equal(ack.code, PDX_EACCESS);
    assert_true(hung_up(fd));
    (void)close(fd);
    f->data = greet(f, PDXI_HELLO_DATA, control.ticket, my_incarnation, &ack);
    assert_int_equal(ack.code, 0);
    fd = greet(f, PDXI_HELLO_DATA, control.ticket, my_incarnation, &ack);
    assert_int_equal(ack.code, PDX_EACCESS);
    assert_true(hung_up(fd));
    (void)close(fd);
    check_honest(f);
}

/* Frames that do not belong on a data connection end it, and it alone. */
static void test_wrong_frames_end_the_data_connection(void **state)
{
    struct fixture *f = *state;
    const enum pdxi_frame_type wrong[] = {PDXI_FRAME_PING, PDXI_FRAME_ACK, PDXI_FRAME_READ_DATA,
                                          PDXI_FRAME_TICKET_REQ};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        union any_frame frame = {.read_data = {.seq = 1, .payload = 1}};
        uint64_t before = ts_counters(f->pair.b).garbage;

        join(f);
        say_frame(f->data, wrong[i], &frame);
        assert_true(hung_up(f->data));
        ts_until(ts_counters(f->pair.b).garbage == before + 1);
        assert_int_equal(ts_counters(f->pair.b).sessions, 2);
        (void)close(f->data);
        (void)close(f->control);
        f->data = f->control = -1;
        ts_until(ts_counters(f->pair.b).sessions == 1);
    }
    check_honest(f);
}

/* Beginnings of transfers, all under one id: each replaces the record before, and nothing is left
 * of those that it replaces. */
static void test_beginnings_without_end_are_bounded(void **state)
{
    struct fixture *f = *state;
    const uint64_t n = TS_SCALE(500000, 20000);
    union any_frame frame = {.begin = {.id = 7}};
    union any_frame answer;
    uint8_t buf[64 * 32];
    size_t len = 0;
    uint64_t before;

    join(f);
    before = ts_resident();
    for (frame.begin.xfer = 1; frame.begin.xfer <= n; frame.begin.xfer++) {
        len += pdxi_frame_begin_encode(buf + len, &frame.begin);
        if (len > sizeof buf - 64 || frame.begin.xfer == n) {
            say(f->data, buf, len);
            len = 0;
        }
    }
    /* Either it was heard to the end, or thrown out. */
    frame = data_frame(f, 0, 1);
    say_frame(f->data, PDXI_FRAME_READ, &frame);
    (void)hear(f->data, &answer);
    assert_true(ts_counters(f->pair.b).inbound_records <= MAX_INBOUND);
    check_grown(before);
    check_honest(f);
}

/* The same with different ids: the table is full, the rest goes untracked. */
static void test_beginnings_beyond_the_table_are_refused(void **state)
{
    struct fixture *f = *state;
    union any_frame frame = {.begin = {0}};
    union any_frame answer;

    join(f);
    for (uint64_t i = 1; i <= 10 * MAX_INBOUND; i++) {
        frame.begin = (struct pdxi_frame_begin){.xfer = i, .id = i};
        say_frame(f->data, PDXI_FRAME_BEGIN, &frame);
    }
    frame.notify = (struct pdxi_frame_notify){
        .xfer = 10 * MAX_INBOUND, .id = 10 * MAX_INBOUND, .outcome = PDX_INBOUND_DONE};
    say_frame(f->data, PDXI_FRAME_NOTIFY, &frame);
    assert_int_equal(hear(f->data, &answer), PDXI_FRAME_ERR);
    assert_int_equal(answer.err.code, PDX_EAGAIN);
    assert_int_equal(ts_counters(f->pair.b).inbound_records, MAX_INBOUND);
    /* With the session its records end, and there is room again. */
    (void)close(f->control);
    f->control = -1;
    ts_until(ts_counters(f->pair.b).sessions == 1);
    check_honest(f);
}

/* Requests for data by one who never reads it: a bounded number is taken on, then it is over, or
 * the socket fills. Others are served all the while. */
static void test_reader_that_does_not_read_is_bounded(void **state)
{
    struct fixture *f = *state;
    union any_frame frame = data_frame(f, 0, REGION_LEN);
    struct timeval patience = {.tv_usec = 100000};
    static uint8_t buf[PDXI_FRAME_HEAD_MAX];
    size_t len = any_frame_encode(buf, PDXI_FRAME_READ, &frame, NULL);
    uint64_t before;

    join(f);
    before = ts_resident();
    (void)setsockopt(f->data, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    for (int i = 0; i < 100000; i++)
        if (send(f->data, buf, len, MSG_NOSIGNAL) != (ssize_t)len)
            break;
    check_honest(f);
    check_grown(before);
}

/* ---- a target ------------------------------------------------------------ */

/* Plays the mute peer's engine up to its first data connection. */
static void serve(struct fixture *f)
{
    union any_frame frame;
    union any_frame ack = {.hello_ack = {.major = PDXI_PROTO_MAJOR,
                                         .max_frames = 64,
                                         .keepalive_ns = 3600 * PDX_SEC,
                                         .ticket = "one good ticket",
                                         .name = "mute"}};

    memcpy(ack.hello_ack.incarnation, f->mute.remote.incarnation, PDX_INCARNATION_LEN);
    for (int i = 0; i < 2; i++) {
        int fd = accept4(f->mute.fd, NULL, NULL, SOCK_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(hear(fd, &frame), PDXI_FRAME_HELLO);
        assert_int_equal(frame.hello.kind, i == 0 ? PDXI_HELLO_CONTROL : PDXI_HELLO_DATA);
        if (i == 1)
            assert_memory_equal(frame.hello.ticket, ack.hello_ack.ticket, PDXI_TICKET_LEN);
        say_frame(fd, PDXI_FRAME_HELLO_ACK, &ack);
        *(i == 0 ? &f->control : &f->data) = fd;
    }
}

/* Submits a read of 1000 bytes and hears the request for it. */
static struct pdx_transfer_status *ask(struct fixture *f, union any_frame *ret)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_seg seg = {100, 200, 1000};
    struct pdx_transfer_status *st;
    struct pdx_error why;

    opts.deadline_ns = TS_LONG / 2;
    ts_mute_open(&f->mute, f->pair.a);
    serve(f);
    memset(f->pair.ma.p, UNTOUCHED, REGION_LEN);
    ts_ok(pdx_read(f->mute.peer, f->pair.ra, &f->mute.remote, &seg, 1, &opts, &st, &why), &why);
    assert_int_equal(hear(f->data, ret), PDXI_FRAME_READ);
    assert_int_equal(ret->data.off, 200);
    assert_int_equal(ret->data.payload, 1000);
    assert_memory_equal(ret->data.key, f->mute.remote.key, PDX_KEY_LEN);
    return st;
}

static void test_target_by_hand_is_understood(void **state)
{
    struct fixture *f = *state;
    union any_frame frame;
    struct pdx_transfer_status *st = ask(f, &frame);
    uint8_t data[1000];

    ts_fill(data, 0, sizeof data, 5);
    frame.read_data = (struct pdxi_frame_read_data){.seq = 1, .payload = sizeof data};
    say_frame(f->data, PDXI_FRAME_READ_DATA, &frame);
    say(f->data, data, sizeof data);
    frame.ack.seq = 1;
    say_frame(f->data, PDXI_FRAME_ACK, &frame);
    ts_finish(st);
    ts_assert_pattern(f->pair.ma.p + 100, 0, sizeof data, 5);
    ts_assert_bytes(f->pair.ma.p, UNTOUCHED, 100);
    ts_assert_bytes(f->pair.ma.p + 1100, UNTOUCHED, REGION_LEN - 1100);
}

/* Answers that were not asked for: the connection is given up, no byte is put in place. */
static const struct {
    const char *what;
    enum pdxi_frame_type type;
    union any_frame frame;
    size_t payload;
} lies[] = {
    {"ACK without the data", PDXI_FRAME_ACK, {.ack = {1}}, 0},
    {"ACK of a frame to come", PDXI_FRAME_ACK, {.ack = {2}}, 0},
    {"ERR of a frame to come", PDXI_FRAME_ERR, {.err = {7, PDX_EACCESS, "no"}}, 0},
    {"data of a frame to come", PDXI_FRAME_READ_DATA, {.read_data = {2, 1000}}, 1000},
    {"too much data", PDXI_FRAME_READ_DATA, {.read_data = {1, 1001}}, 1001},
    {"too little data", PDXI_FRAME_READ_DATA, {.read_data = {1, 999}}, 999},
    {"a request", PDXI_FRAME_READ, {.data = {.xfer = 1, .payload = 1, .nsegs = 1}}, 0},
};

static void lie(struct fixture *f, size_t i)
{
    static const uint8_t payload[2000];
    uint64_t garbage = ts_counters(f->pair.a).garbage;
    union any_frame frame;
    struct pdx_transfer_status *st = ask(f, &frame);

    say_frame(f->data, lies[i].type, &lies[i].frame);
    say(f->data, payload, lies[i].payload);
    if (!hung_up(f->data))
        ts_fail(__FILE__, __LINE__, "%s is put up with", lies[i].what);
    ts_until(ts_counters(f->pair.a).garbage == garbage + 1);
    assert_int_not_equal(pdx_transfer_code(st), PDX_DONE);
    ts_assert_bytes(f->pair.ma.p, UNTOUCHED, REGION_LEN);
    pdx_transfer_cancel(st);
    assert_int_equal(pdx_transfer_wait(st, TS_LONG), 0);
    assert_int_not_equal(pdx_transfer_code(st), PDX_DONE);
    pdx_transfer_put(st);
    (void)close(f->data);
    (void)close(f->control);
    f->data = f->control = -1;
    ts_mute_close(&f->mute);
}

static void test_lying_target_gets_nowhere(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        lie(f, i);
    check_honest(f);
}

/* One answer of a kind that is understood: this transfer fails with the target's own words. */
static void test_refusal_carries_the_targets_words(void **state)
{
    struct fixture *f = *state;
    union any_frame frame;
    struct pdx_transfer_status *st = ask(f, &frame);

    frame.err = (struct pdxi_frame_err){1, PDX_EREMOTE, "the disk of this host is on fire"};
    say_frame(f->data, PDXI_FRAME_ERR, &frame);
    ts_ended(st, PDX_FAILED, PDX_EREMOTE);
    ts_text_has(pdx_transfer_text(st), "the disk of this host is on fire");
    pdx_transfer_put(st);
    assert_int_equal(pdx_peer_state(f->mute.peer, NULL), PDX_PEER_UP);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_initiator_by_hand_is_served),
    CASE(test_ticket_is_good_once_and_for_its_owner),
    CASE(test_wrong_frames_end_the_data_connection),
    CASE(test_beginnings_without_end_are_bounded),
    CASE(test_beginnings_beyond_the_table_are_refused),
    CASE(test_reader_that_does_not_read_is_bounded),
    CASE(test_target_by_hand_is_understood),
    CASE(test_lying_target_gets_nowhere),
    CASE(test_refusal_carries_the_targets_words),
};

int main(void)
{
    return cmocka_run_group_tests_name("hostile", tests, NULL, NULL);
}
