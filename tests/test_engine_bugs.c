/* SPDX-License-Identifier: Apache-2.0
 *
 * A test per bug that the engine once had. Several need a peer that an honest
 * engine would never be: it answers late, or not at all, or with the same
 * words twice. Such a peer is a handful of blocking sockets here that speak
 * frames by hand, in the role of the initiator or of the target.
 */
#include "support.h"

#include "engine/io/io.h"
#include "engine/proto/frame.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a peer by hand --------------------------------------------------- */

struct frame {
    struct pdxi_frame_prefix prefix;
    uint8_t body[PDXI_FRAME_BODY_MAX];
};

static void say(int fd, const void *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            ts_fail(__FILE__, __LINE__, "cannot send: %s", strerror(errno));
        data = (const uint8_t *)data + n;
        len -= (size_t)n;
    }
}

/* Returns whether all of it came; false when the other side has closed. */
static bool hear(int fd, void *data, size_t len)
{
    uint8_t *at = data;

    while (len > 0) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&pfd, 1, (int)(TS_LONG / PDX_MSEC)) <= 0)
            ts_fail(__FILE__, __LINE__, "the other side is silent");
        n = recv(fd, at, len, 0);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* The next frame, without its payload. */
static bool hear_frame(int fd, struct frame *f)
{
    uint8_t head[PDXI_FRAME_PREFIX_LEN];
    struct pdx_error why;

    if (!hear(fd, head, sizeof head))
        return false;
    ts_ok(pdxi_frame_prefix_decode(head, &f->prefix, &why), &why);
    return hear(fd, f->body, f->prefix.body_len);
}

/* The next frame of this type; the payload of WRITEs on the way is dropped. */
static void hear_type(int fd, enum pdxi_frame_type type, struct frame *f)
{
    struct pdxi_frame_data data;
    struct pdx_error why;

    for (;;) {
        if (!hear_frame(fd, f))
            ts_fail(__FILE__, __LINE__, "closed where a frame of type %d was due", (int)type);
        if (f->prefix.type == PDXI_FRAME_WRITE) {
            uint8_t *payload;

            ts_ok(pdxi_frame_data_decode(f->body, f->prefix.body_len, &data, &why), &why);
            payload = malloc(data.payload);
            assert_non_null(payload);
            assert_true(hear(fd, payload, data.payload));
            free(payload);
        }
        if (f->prefix.type == type)
            return;
    }
}

/* Waits until the other side has closed. */
static void hear_end(int fd)
{
    uint8_t buf[4096];
    ssize_t n;

    do {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};

        if (poll(&pfd, 1, (int)(TS_LONG / PDX_MSEC)) <= 0)
            ts_fail(__FILE__, __LINE__, "the connection stays open");
        n = recv(fd, buf, sizeof buf, 0);
    } while (n > 0);
}

static void say_ack(int fd, uint64_t seq)
{
    uint8_t buf[64];

    say(fd, buf, pdxi_frame_ack_encode(buf, &(struct pdxi_frame_ack){.seq = seq}));
}

static void expect_ack(int fd, uint64_t seq)
{
    struct pdxi_frame_ack ack;
    struct pdx_error why;
    struct frame f;

    do {
        hear_type(fd, PDXI_FRAME_ACK, &f);
        ts_ok(pdxi_frame_ack_decode(f.body, f.prefix.body_len, &ack, &why), &why);
    } while (ack.seq < seq);
    assert_int_equal(ack.seq, seq);
}

/* ---- as the initiator ------------------------------------------------- */

static const uint8_t own_incarnation[PDX_INCARNATION_LEN] = "a peer by hand";

/* A connection to `engine` that is greeted; *ticket is used for data, and comes with control. */
static int greet(const struct pdx_engine *engine, enum pdxi_hello_kind kind,
                 uint8_t ticket[PDXI_TICKET_LEN])
{
    struct pdxi_frame_hello hello = {
        .major = PDXI_PROTO_MAJOR, .kind = kind, .keepalive_ns = 3600 * PDX_SEC, .name = "by-hand"};
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    struct pdxi_frame_hello_ack ack;
    struct pdx_engine_info info;
    struct pdx_error why;
    struct frame f;
    int fd;

    pdx_engine_info(engine, &info);
    memcpy(hello.incarnation, own_incarnation, sizeof hello.incarnation);
    memcpy(hello.target, info.incarnation, sizeof hello.target);
    memcpy(hello.ticket, ticket, sizeof hello.ticket);
    fd = ts_connect(info.port);
    assert_true(fd >= 0);
    say(fd, buf, pdxi_frame_hello_encode(buf, &hello));
    hear_type(fd, PDXI_FRAME_HELLO_ACK, &f);
    ts_ok(pdxi_frame_hello_ack_decode(f.body, f.prefix.body_len, &ack, &why), &why);
    assert_int_equal(ack.code, 0);
    if (kind == PDXI_HELLO_CONTROL)
        memcpy(ticket, ack.ticket, PDXI_TICKET_LEN);
    return fd;
}

/* One more data connection by a new ticket. */
static int greet_again(const struct pdx_engine *engine, int control)
{
    uint8_t ticket[PDXI_TICKET_LEN];
    uint8_t buf[64];
    struct frame f;

    say(control, buf, pdxi_frame_ticket_req_encode(buf));
    hear_type(control, PDXI_FRAME_TICKET, &f);
    memcpy(ticket, f.body, sizeof ticket);
    return greet(engine, PDXI_HELLO_DATA, ticket);
}

static void say_begin(int fd, uint64_t xfer, uint64_t id)
{
    uint8_t buf[64];

    say(fd, buf, pdxi_frame_begin_encode(buf, &(struct pdxi_frame_begin){xfer, id}));
}

static void say_data(int fd, enum pdxi_frame_type type, uint64_t xfer,
                     const struct pdx_remote *remote, uint64_t len, const void *payload)
{
    struct pdxi_frame_data d = {.xfer = xfer,
                                .payload = len,
                                .region_id = remote->id,
                                .region_generation = remote->generation,
                                .nsegs = 1};
    uint8_t buf[PDXI_FRAME_DATA_LEN];

    memcpy(d.key, remote->key, sizeof d.key);
    say(fd, buf, pdxi_frame_data_encode(buf, type, &d));
    if (payload)
        say(fd, payload, len);
}

static void say_done(int fd, uint64_t xfer, uint64_t id)
{
    struct pdxi_frame_notify n = {.xfer = xfer, .id = id, .outcome = PDX_INBOUND_DONE};
    uint8_t buf[1024];

    say(fd, buf, pdxi_frame_notify_encode(buf, &n));
}

/* ---- as the target ---------------------------------------------------- */

struct target {
    struct ts_mute mute; /* its descriptor, listener and peer */
    int control;
    int data;
};

static int target_hear_hello(struct target *t)
{
    struct frame f;
    int fd = accept(t->mute.fd, NULL, NULL);

    assert_true(fd >= 0);
    hear_type(fd, PDXI_FRAME_HELLO, &f);
    return fd;
}

static void target_welcome(struct target *t, int fd, const uint8_t ticket[PDXI_TICKET_LEN])
{
    struct pdxi_frame_hello_ack ack = {.major = PDXI_PROTO_MAJOR,
                                       .max_frames = 1024,
                                       .keepalive_ns = 3600 * PDX_SEC,
                                       .name = "mute"};
    uint8_t buf[PDXI_FRAME_HEAD_MAX];

    memcpy(ack.incarnation, t->mute.remote.incarnation, sizeof ack.incarnation);
    memcpy(ack.ticket, ticket, sizeof ack.ticket);
    say(fd, buf, pdxi_frame_hello_ack_encode(buf, &ack));
}

static int target_accept(struct target *t, const uint8_t ticket[PDXI_TICKET_LEN])
{
    int fd = target_hear_hello(t);

    target_welcome(t, fd, ticket);
    return fd;
}

/* Lets engine a connect. */
static void target_open(struct target *t, struct pdx_engine *a)
{
    static const uint8_t ticket[PDXI_TICKET_LEN] = {1};

    memset(t, 0, sizeof *t);
    ts_mute_open(&t->mute, a);
    t->control = target_accept(t, ticket);
    t->data = target_accept(t, ticket);
}

static void target_close(struct target *t)
{
    (void)close(t->data);
    (void)close(t->control);
    ts_mute_close(&t->mute);
}

static const struct pdxi_frame_ticket next_ticket = {{2}};

/* Another data connection is asked for. */
static void target_give_ticket(struct target *t)
{
    uint8_t buf[64];
    struct frame f;

    hear_type(t->control, PDXI_FRAME_TICKET_REQ, &f);
    say(t->control, buf, pdxi_frame_ticket_encode(buf, &next_ticket));
}

/* The data connection has ended; another one is asked for, and accepted. */
static void target_accept_again(struct target *t)
{
    hear_end(t->data);
    (void)close(t->data);
    target_give_ticket(t);
    t->data = target_accept(t, next_ticket.ticket);
}

/* ---- fixture ---------------------------------------------------------- */

#define REGION_LEN ((size_t)4 << 20)

static struct pdx_engine *engine_with(const char *name, void (*change)(struct pdx_engine_opts *))
{
    struct pdx_engine_opts opts;

    ts_engine_opts(&opts, name);
    opts.keepalive_ns = 3600 * PDX_SEC;
    if (change)
        change(&opts);
    return ts_engine(&opts);
}

static int setup(void **state)
{
    struct ts_pair *p = calloc(1, sizeof *p);
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    if (!p)
        return -1;
    ts_engine_opts(&a, "alpha");
    ts_engine_opts(&b, "beta");
    ts_pair_open(p, &a, &b, REGION_LEN);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    ts_pair_close(*state);
    free(*state);
    return 0;
}

/* ---- waiting ---------------------------------------------------------- */

static void ignore_ready(struct pdxi_watch *watch, unsigned events)
{
    (void)watch;
    (void)events;
}

/* io_uring does not remove a poll whose event it has not delivered yet, but says so (EALREADY); it
 * kept the socket, and closing the descriptor closed nothing: the other side was never told, and
 * what was queued was still sent. */
static void test_watch_with_an_undelivered_event_lets_its_file_go(void **state)
{
    struct pdxi_watch w = {.events = PDXI_IO_READ | PDXI_IO_WRITE, .fn = ignore_ready};
    struct pdxi_io *io;
    struct pdx_error why;

    (void)state;
    if (pdxi_io_create(&pdxi_io_uring, &io, 16, &why) < 0)
        skip();
    for (int i = 0; i < 100; i++) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        w.fd = fds[0];
        ts_ok(pdxi_io_add(io, &w, &why), &why);
        assert_true(pdxi_io_wait(io, 0) >= 0);
        say(fds[1], "x", 1);
        pdxi_io_remove(io, &w);
        (void)close(fds[0]);
        hear_end(fds[1]);
        (void)close(fds[1]);
    }
    pdxi_io_destroy(io);
}

/* ---- submitting ------------------------------------------------------- */

/* Whole items need a slice per pair; there was room for one, and the items were written over the
 * others. */
static void test_whole_items_of_many_pairs_arrive(void **state)
{
    enum { NPAIRS = 300, NITEMS = 4 };
    static const int32_t items[NITEMS] = {3, 0, 2, 1};
    struct ts_pair *p = *state;
    struct pdx_pair *pairs = calloc(NPAIRS, sizeof *pairs);
    struct pdx_job job = {
        .pairs = pairs, .npairs = NPAIRS, .items = {.local = items, .remote = items, .n = NITEMS}};
    struct pdx_transfer_status *status;
    struct pdx_error why;
    uint64_t base = 0;
    int rc;

    assert_non_null(pairs);
    ts_fill(p->ma.p, 0, REGION_LEN, 1);
    for (size_t i = 0; i < NPAIRS; i++) {
        uint64_t len = 64 + i;

        pairs[i] = (struct pdx_pair){.local = p->ra,
                                     .remote = &p->remote,
                                     .local_base = base,
                                     .remote_base = base,
                                     .local_item_len = len,
                                     .remote_item_len = len,
                                     .local_len = len * NITEMS,
                                     .remote_len = len * NITEMS};
        base += len * NITEMS;
    }
    rc = pdx_submit(p->peer, PDX_WRITE, &job, NULL, &status, &why);
    free(pairs);
    ts_ok(rc, &why);
    ts_finish(status);
    ts_assert_pattern(p->mb.p, 0, base, 1);
    ts_assert_bytes(p->mb.p + base, 0, REGION_LEN - base);
}

/* ---- the initiator's lane --------------------------------------------- */

/* 930 of these leave a batch with room for the NOTIFY alone, but not for the BEGIN before it. */
static void test_batch_is_filled_to_the_brim_by_notifications(void **state)
{
    enum { N = 1000 };
    struct pdx_engine *a = engine_with("alpha", NULL);
    struct pdx_transfer_status *statuses[N];
    static const uint8_t ticket[PDXI_TICKET_LEN] = {1};
    struct target t = {0};
    struct pdx_error why;
    struct frame f;

    (void)state;
    ts_mute_open(&t.mute, a);
    for (size_t i = 0; i < N; i++) {
        struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;

        opts.id = i;
        ts_ok(pdx_notify(t.mute.peer, "hello world", 11, &opts, &statuses[i], &why), &why);
    }
    t.control = target_accept(&t, ticket);
    t.data = target_accept(&t, ticket);
    for (size_t i = 0; i < N; i++)
        hear_type(t.data, PDXI_FRAME_NOTIFY, &f);
    say_ack(t.data, N);
    for (size_t i = 0; i < N; i++)
        ts_finish(statuses[i]);
    target_close(&t);
    assert_int_equal(pdx_engine_destroy(a), 0);
}

/* The notice of a cancelled transfer was lost with the lane that the same cancellation broke, and
 * the target waited for ever. */
static void test_notice_survives_its_lane(void **state)
{
    struct ts_pair *p = *state;
    struct pdx_engine *a = engine_with("alpha", NULL);
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *status;
    struct pdxi_frame_notify n;
    struct pdx_region *region;
    struct pdx_error why;
    struct target t;
    struct frame f;

    region = ts_region(a, &p->ma, PDX_RIGHT_ALL);
    target_open(&t, a);
    opts.id = 77;
    opts.flags = PDX_SUBMIT_TRACK;
    status = ts_mute_write(&t.mute, region, &opts);
    hear_type(t.data, PDXI_FRAME_WRITE, &f);
    hear_type(t.data, PDXI_FRAME_NOTIFY, &f);
    pdx_transfer_cancel(status);
    hear_type(t.data, PDXI_FRAME_NOTIFY, &f);
    ts_ended(status, PDX_CANCELLED, PDX_ECANCELLED);
    target_accept_again(&t);
    hear_type(t.data, PDXI_FRAME_NOTIFY, &f);
    ts_ok(pdxi_frame_notify_decode(f.body, f.prefix.body_len, &n, &why), &why);
    assert_int_equal(n.id, 77);
    assert_int_equal(n.outcome, PDX_INBOUND_ABORTED);
    say_ack(t.data, 1);
    pdx_transfer_put(status);
    target_close(&t);
    ts_ok(pdx_region_deregister(region, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(a), 0);
}

static void short_connect(struct pdx_engine_opts *opts)
{
    opts->connect_timeout_ns = 300 * PDX_MSEC;
}

/* A target that gives no ticket for another data connection left its peer UP without a lane, for as
 * long as it answered on the control connection. */
static void test_ticket_that_never_comes_ends_the_connection(void **state)
{
    struct pdx_engine *a = engine_with("alpha", short_connect);
    struct pdx_peer_counters pc;
    struct target t;
    struct frame f;

    (void)state;
    target_open(&t, a);
    ts_until(pdx_peer_state(t.mute.peer, NULL) == PDX_PEER_UP);
    (void)shutdown(t.data, SHUT_RDWR);
    hear_type(t.control, PDXI_FRAME_TICKET_REQ, &f);
    hear_end(t.control);
    pdx_peer_counters(t.mute.peer, &pc);
    assert_int_equal(pc.losses, 1);
    target_close(&t);
    assert_int_equal(pdx_engine_destroy(a), 0);
}

/* Data connections that end as soon as they are up were opened again without end and without pause.
 */
static void test_flapping_lane_ends_the_connection(void **state)
{
    struct pdx_engine *a = engine_with("alpha", NULL);
    struct target t;

    (void)state;
    target_open(&t, a);
    ts_until(pdx_peer_state(t.mute.peer, NULL) == PDX_PEER_UP);
    for (int i = 0; i < 3; i++) {
        (void)shutdown(t.data, SHUT_RDWR);
        target_accept_again(&t);
    }
    (void)shutdown(t.data, SHUT_RDWR);
    hear_end(t.control);
    target_close(&t);
    assert_int_equal(pdx_engine_destroy(a), 0);
}

static void long_drain(struct pdx_engine_opts *opts)
{
    opts->drain_ns = 100 * PDX_MSEC;
}

struct stall {
    atomic_bool entered;
    atomic_bool leave;
};

static void stall_reactor(void *ctx, struct pdx_transfer_status *status)
{
    struct stall *s = ctx;

    (void)status;
    atomic_store(&s->entered, true);
    while (!atomic_load(&s->leave))
        ts_pause();
}

/* A reactor that was held up looked at its clocks before it looked at its sockets: the answer that
 * had come in time was not seen, and the connection was broken. */
static void test_answer_in_the_socket_counts_before_the_clock(void **state)
{
    struct ts_pair *p = *state;
    struct pdx_engine *a = engine_with("alpha", long_drain);
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *holder;
    struct pdx_transfer_status *status;
    struct stall stall = {0};
    struct pdx_peer_counters pc;
    struct pdx_region *region;
    struct pdx_error why;
    struct target t;
    struct frame f;
    uint64_t end_ns;

    region = ts_region(a, &p->ma, PDX_RIGHT_ALL);
    target_open(&t, a);
    status = ts_mute_write(&t.mute, region, NULL);
    hear_type(t.data, PDXI_FRAME_WRITE, &f);
    opts.callback = stall_reactor;
    opts.callback_ctx = &stall;
    holder = ts_mute_write(&t.mute, region, &opts);
    hear_type(t.data, PDXI_FRAME_WRITE, &f);
    say_ack(t.data, 1);
    ts_finish(status);
    status = ts_mute_write(&t.mute, region, NULL);
    hear_type(t.data, PDXI_FRAME_WRITE, &f);
    pdx_transfer_cancel(status);
    say_ack(t.data, 2); /* the reactor is held from here */
    ts_until(atomic_load(&stall.entered));
    say_ack(t.data, 3);
    for (end_ns = ts_now() + 300 * PDX_MSEC; ts_now() < end_ns;)
        ts_pause();
    atomic_store(&stall.leave, true);
    ts_ended(status, PDX_CANCELLED, PDX_ECANCELLED);
    pdx_peer_counters(t.mute.peer, &pc);
    assert_int_equal(pc.lane_breaks, 0);
    pdx_transfer_put(status);
    ts_finish(holder);
    target_close(&t);
    ts_ok(pdx_region_deregister(region, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(a), 0);
}

/* ---- the fence -------------------------------------------------------- */

static void longest_drain(struct pdx_engine_opts *opts)
{
    opts->drain_ns = 60 * PDX_SEC; /* no limit is reached in the time of a test */
}

/* A target by hand whose initiator has cancelled a write and a read, and has not been answered. */
struct fenced {
    struct pdx_engine *a;
    struct pdx_region *region;
    struct target t;
    struct pdx_transfer_status *write;
    struct pdx_transfer_status *read;
};

static void fenced_open(struct fenced *w, struct ts_pair *p,
                        void (*change)(struct pdx_engine_opts *))
{
    const struct pdx_seg seg = {.len = 1};
    struct pdx_error why;
    struct frame f;

    w->a = engine_with("alpha", change);
    w->region = ts_region(w->a, &p->ma, PDX_RIGHT_ALL);
    target_open(&w->t, w->a);
    w->write = ts_mute_write(&w->t.mute, w->region, NULL);
    ts_ok(pdx_read(w->t.mute.peer, w->region, &w->t.mute.remote, &seg, 1, NULL, &w->read, &why),
          &why);
    hear_type(w->t.data, PDXI_FRAME_WRITE, &f);
    hear_type(w->t.data, PDXI_FRAME_READ, &f);
    pdx_transfer_cancel(w->write);
    pdx_transfer_cancel(w->read);
    ts_sync(w->a);
}

static void fenced_close(struct fenced *w)
{
    struct pdx_error why;

    pdx_transfer_put(w->write);
    pdx_transfer_put(w->read);
    target_close(&w->t);
    ts_ok(pdx_region_deregister(w->region, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(w->a), 0);
}

/* What the reactor has seen so far has not ended the write. */
static void fenced_waits(struct fenced *w)
{
    ts_sync(w->a);
    assert_int_equal(pdx_transfer_code(w->write), PDX_IN_FLIGHT);
}

/* A cancelled write ended when its lane was closed at this side. Its target could be in the middle
 * of putting it in place. */
static void test_write_ends_when_the_target_has_closed_its_lane(void **state)
{
    struct fenced w;
    int fd;

    fenced_open(&w, *state, longest_drain);
    fenced_waits(&w);
    (void)close(w.t.data);
    ts_ended(w.read, PDX_CANCELLED, PDX_ECANCELLED); /* is this side's business alone */
    fenced_waits(&w);
    target_give_ticket(&w.t);
    fd = target_hear_hello(&w.t);
    fenced_waits(&w);
    target_welcome(&w.t, fd, next_ticket.ticket);
    w.t.data = fd;
    ts_ended(w.write, PDX_CANCELLED, PDX_ECANCELLED);
    fenced_close(&w);
}

/* No new lane comes, and the peer is not lost: the limit ends it. */
static void test_write_ends_though_the_target_gives_no_new_lane(void **state)
{
    struct pdx_peer_counters pc;
    struct fenced w;

    fenced_open(&w, *state, NULL);
    hear_end(w.t.data);
    ts_ended(w.write, PDX_CANCELLED, PDX_ECANCELLED);
    ts_ended(w.read, PDX_CANCELLED, PDX_ECANCELLED);
    assert_int_equal(pdx_peer_state(w.t.mute.peer, NULL), PDX_PEER_UP);
    pdx_peer_counters(w.t.mute.peer, &pc);
    assert_int_equal(pc.lane_breaks, 1);
    assert_int_equal(pc.transfers_inflight, 0);
    fenced_close(&w);
}

/* Nobody waits at a fence of a peer that is given up; the code stays what it was going to be. */
static void test_fence_falls_with_its_peer_and_its_engine(void **state)
{
    struct fenced w;

    fenced_open(&w, *state, longest_drain);
    (void)close(w.t.data);
    ts_ended(w.read, PDX_CANCELLED, PDX_ECANCELLED);
    fenced_waits(&w);
    w.t.data = -1;
    pdx_peer_put(w.t.mute.peer);
    w.t.mute.peer = NULL;
    ts_ended(w.write, PDX_CANCELLED, PDX_ECANCELLED);
    fenced_close(&w);

    fenced_open(&w, *state, longest_drain);
    (void)close(w.t.data);
    ts_ended(w.read, PDX_CANCELLED, PDX_ECANCELLED);
    fenced_waits(&w);
    w.t.data = -1;
    assert_int_equal(pdx_engine_destroy(w.a), 0);
    w.a = NULL;
    ts_ended(w.write, PDX_CANCELLED, PDX_ECANCELLED);
    fenced_close(&w);
}

/* ---- the target's lane ------------------------------------------------ */

static atomic_int inbound_calls;

static void count_inbound(void *ctx, const struct pdx_inbound *rec)
{
    (void)ctx;
    (void)rec;
    atomic_fetch_add(&inbound_calls, 1);
}

static void counting(struct pdx_engine_opts *opts)
{
    atomic_store(&inbound_calls, 0);
    opts->on_inbound = count_inbound;
}

/* When the confirmation of a notified write was lost with its lane, the initiator wrote it again:
 * over memory that the target's application had been told was its own again. */
static void test_write_is_not_repeated_after_its_notification(void **state)
{
    struct ts_pair *p = *state;
    struct pdx_engine *b = engine_with("beta", counting);
    struct pdx_region *region = ts_region(b, &p->mb, PDX_RIGHT_ALL);
    struct pdx_remote remote = ts_remote(region);
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    uint8_t payload[1000];
    struct pdx_inbound rec;
    struct pdx_error why;
    int control = greet(b, PDXI_HELLO_CONTROL, ticket);
    int data = greet(b, PDXI_HELLO_DATA, ticket);

    memset(payload, 'x', sizeof payload);
    say_begin(data, 5, 50);
    say_data(data, PDXI_FRAME_WRITE, 5, &remote, sizeof payload, payload);
    say_done(data, 5, 50);
    assert_int_equal(pdx_inbound_wait(b, own_incarnation, 50, TS_LONG, true, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_DONE);
    ts_assert_bytes(p->mb.p, 'x', sizeof payload);
    memset(p->mb.p, 'y', sizeof payload); /* the application's again */
    (void)close(data);
    data = greet_again(b, control);
    say_begin(data, 5, 50);
    say_data(data, PDXI_FRAME_WRITE, 5, &remote, sizeof payload, payload);
    say_done(data, 5, 50);
    expect_ack(data, 2);
    ts_assert_bytes(p->mb.p, 'y', sizeof payload);
    assert_int_equal(pdx_inbound_get(b, own_incarnation, 50, false, &rec), PDX_ENOENT);
    /* A new transfer is a new one. */
    say_begin(data, 6, 50);
    say_data(data, PDXI_FRAME_WRITE, 6, &remote, sizeof payload, payload);
    say_done(data, 6, 50);
    expect_ack(data, 4);
    ts_assert_bytes(p->mb.p, 'x', sizeof payload);
    assert_int_equal(atomic_load(&inbound_calls), 2);
    (void)close(data);
    (void)close(control);
    ts_ok(pdx_region_deregister(region, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(b), 0);
}

/* A record of a session that was lost unnoticed stayed in progress when the initiator had come back
 * before: nobody was left who would end it. */
static void test_new_session_ends_the_records_of_the_old_one(void **state)
{
    struct pdx_engine *b = engine_with("beta", NULL);
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    uint8_t none[PDXI_TICKET_LEN] = {0};
    struct pdx_inbound rec;
    int control = greet(b, PDXI_HELLO_CONTROL, ticket);
    int data = greet(b, PDXI_HELLO_DATA, ticket);
    int again;

    (void)state;
    say_begin(data, 1, 10);
    ts_until(pdx_inbound_get(b, own_incarnation, 10, false, &rec) == 0);
    assert_int_equal(rec.code, PDX_INBOUND_IN_PROGRESS);
    again = greet(b, PDXI_HELLO_CONTROL, none);
    assert_int_equal(pdx_inbound_wait(b, own_incarnation, 10, TS_LONG, false, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_FAILED);
    hear_end(control);
    hear_end(data);
    ts_until(ts_counters(b).sessions == 1);
    (void)close(data);
    (void)close(control);
    (void)close(again);
    assert_int_equal(pdx_engine_destroy(b), 0);
}

static void few_records(struct pdx_engine_opts *opts)
{
    opts->max_inbound = 16;
    opts->max_transfers = 16;
}

static void one_record(struct pdx_engine_opts *opts)
{
    opts->max_inbound = 1;
}

/* A transfer whose BEGIN had found no room was not known as failed when a frame of it was refused,
 * and got a record that said DONE when there was room again. */
static void test_untracked_transfer_is_not_done(void **state)
{
    struct ts_pair *p = *state;
    struct pdx_engine *b = engine_with("beta", one_record);
    struct pdx_region *region = ts_region(b, &p->mb, PDX_RIGHT_READ);
    struct pdx_remote remote = ts_remote(region);
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    struct pdx_inbound rec;
    struct pdx_error why;
    struct frame f;
    int control = greet(b, PDXI_HELLO_CONTROL, ticket);
    int data = greet(b, PDXI_HELLO_DATA, ticket);

    say_begin(data, 1, 10);
    say_begin(data, 2, 20);
    say_data(data, PDXI_FRAME_WRITE, 2, &remote, 4, "xxxx");
    hear_type(data, PDXI_FRAME_ERR, &f);
    say_done(data, 1, 10);
    expect_ack(data, 2);
    say_done(data, 2, 20);
    hear_type(data, PDXI_FRAME_ERR, &f);
    assert_int_equal(pdx_inbound_get(b, own_incarnation, 20, false, &rec), PDX_ENOENT);
    say_done(data, 0, 30);
    expect_ack(data, 4);
    assert_int_equal(pdx_inbound_get(b, own_incarnation, 30, false, &rec), 0);
    (void)close(data);
    (void)close(control);
    ts_ok(pdx_region_deregister(region, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(b), 0);
}

/* Each BEGIN with a new transfer number took memory, though its record only replaced another. */
static void test_begins_take_bounded_memory(void **state)
{
    enum { N = 50000 };
    struct pdx_engine *b = engine_with("beta", few_records);
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    int control = greet(b, PDXI_HELLO_CONTROL, ticket);
    int data = greet(b, PDXI_HELLO_DATA, ticket);
    uint64_t live = ts_mallocs_now().live;

    (void)state;
    for (uint64_t i = 1; i <= N; i++)
        say_begin(data, i, 0);
    say_done(data, 0, 1);
    expect_ack(data, 1);
    if (ts_mallocs_counted())
        assert_in_range(ts_mallocs_now().live, 0, live + 1000000);
    (void)close(data);
    (void)close(control);
    assert_int_equal(pdx_engine_destroy(b), 0);
}

/* A thousand silent connections kept everybody else out for five seconds, and again. */
static void test_silent_connections_keep_nobody_out(void **state)
{
    enum { N = 1100 };
    struct ts_pair *p = *state;
    static int fds[N];
    struct pdx_engine *c;
    struct pdx_peer *peer;
    struct pdx_engine_info info;
    struct pdx_error why;
    struct rlimit files;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < 2 * N + 100)
        skip();
    pdx_engine_info(p->b, &info);
    for (int i = 0; i < N; i++) {
        fds[i] = ts_connect(info.port);
        assert_true(fds[i] >= 0);
    }
    c = engine_with("gamma", NULL);
    peer = ts_peer(c, p->b);
    ts_ok(pdx_peer_wait_up(peer, TS_LONG, &why), &why);
    assert_true(ts_counters(p->b).garbage > 0); /* some had to go */
    pdx_peer_put(peer);
    assert_int_equal(pdx_engine_destroy(c), 0);
    for (int i = 0; i < N; i++)
        (void)close(fds[i]);
}

/* ---- regions ---------------------------------------------------------- */

/* Every deregistration broke the connections on which data of any region was being sent; after a
 * few of them a read that had nothing to do with it failed. */
static void test_deregistration_leaves_reads_of_other_regions_alone(void **state)
{
    struct ts_pair *p = *state;
    struct pdx_remote remote = ts_remote(p->rb);
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    uint8_t *heard = malloc(REGION_LEN);
    int control = greet(p->b, PDXI_HELLO_CONTROL, ticket);
    int data = greet(p->b, PDXI_HELLO_DATA, ticket);
    struct pdx_region *other;
    struct pdx_error why;
    struct ts_mem m;
    struct frame f;

    assert_non_null(heard);
    ts_fill(p->mb.p, 0, REGION_LEN, 3);
    ts_mem_open(&m, 4096);
    other = ts_region(p->b, &m, PDX_RIGHT_ALL);
    for (int i = 0; i < 8; i++)
        say_data(data, PDXI_FRAME_READ, 1, &remote, REGION_LEN, NULL);
    ts_until(ts_counters(p->b).bytes_in_read >= REGION_LEN);
    ts_ok(pdx_region_deregister(other, TS_LONG, &why), &why);
    for (int i = 0; i < 8; i++) {
        hear_type(data, PDXI_FRAME_READ_DATA, &f);
        assert_true(hear(data, heard, REGION_LEN));
        ts_assert_pattern(heard, 0, REGION_LEN, 3);
        hear_type(data, PDXI_FRAME_ACK, &f);
    }
    free(heard);
    (void)close(data);
    (void)close(control);
    ts_mem_close(&m);
}

struct revoker {
    _Atomic(struct pdx_region *) region;
    atomic_int result;
};

static void deregister_inside(void *ctx, const struct pdx_inbound *rec)
{
    struct revoker *r = ctx;
    struct pdx_region *region = atomic_exchange(&r->region, NULL);

    (void)rec;
    if (region)
        atomic_store(&r->result, pdx_region_deregister(region, 0, NULL));
}

/* A hook that deregistered a region closed the connection whose batch was being filled, and the
 * filling went on in memory that was somebody else's by then. */
static void test_hook_may_deregister_what_is_being_sent(void **state)
{
    struct revoker revoker = {.result = 1};
    struct pdx_engine_opts opts;
    struct pdx_remote remotes[2];
    struct pdx_region *regions[2];
    uint8_t ticket[PDXI_TICKET_LEN] = {0};
    struct ts_mem m[2];
    struct pdx_error why;
    struct pdx_engine *b;
    struct frame f;
    uint8_t *heard = malloc(REGION_LEN);
    int control;
    int data;

    (void)state;
    assert_non_null(heard);
    ts_engine_opts(&opts, "beta");
    opts.on_inbound = deregister_inside;
    opts.on_inbound_ctx = &revoker;
    b = ts_engine(&opts);
    for (int i = 0; i < 2; i++) {
        ts_mem_open(&m[i], REGION_LEN);
        regions[i] = ts_region(b, &m[i], PDX_RIGHT_ALL);
        remotes[i] = ts_remote(regions[i]);
    }
    control = greet(b, PDXI_HELLO_CONTROL, ticket);
    data = greet(b, PDXI_HELLO_DATA, ticket);
    /* More than the socket takes; behind it one read that goes well and one that will not. */
    say_begin(data, 2, 20);
    for (int i = 0; i < 1000; i++)
        say_data(data, PDXI_FRAME_READ, 1, &remotes[0], REGION_LEN, NULL);
    say_data(data, PDXI_FRAME_READ, 1, &remotes[0], 64, NULL);
    say_data(data, PDXI_FRAME_READ, 2, &remotes[1], 64, NULL);
    ts_until(ts_counters(b).frames_received >= 1004);
    ts_ok(pdx_region_deregister(regions[1], TS_LONG, &why), &why);
    atomic_store(&revoker.region, regions[0]);
    while (hear_frame(data, &f)) {
        if (f.prefix.type == PDXI_FRAME_READ_DATA &&
            !hear(data, heard, f.body[9] || f.body[10] ? REGION_LEN : 64))
            break;
    }
    ts_until(atomic_load(&revoker.result) == 0);
    (void)close(data);
    (void)close(control);
    assert_int_equal(pdx_engine_destroy(b), 0);
    for (int i = 0; i < 2; i++)
        ts_mem_close(&m[i]);
    free(heard);
}

/* Two engines whose hooks deregistered each other's regions waited for each other. */
static void test_hook_of_another_engine_may_not_wait_for_a_region(void **state)
{
    struct ts_pair *p = *state;
    struct revoker revoker = {.result = 1};
    struct pdx_submit_opts submit = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *status;
    struct pdx_engine_opts opts;
    struct pdx_engine *c;
    struct pdx_peer *peer;
    struct pdx_error why;

    ts_engine_opts(&opts, "gamma");
    opts.on_inbound = deregister_inside;
    opts.on_inbound_ctx = &revoker;
    c = ts_engine(&opts);
    peer = ts_peer(p->a, c);
    atomic_store(&revoker.region, p->rb);
    ts_ok(pdx_notify(peer, "x", 1, &submit, &status, &why), &why);
    ts_finish(status);
    assert_int_equal(atomic_load(&revoker.result), PDX_EREACTOR);
    ts_finish(ts_write(p, 0, 0, 1, NULL)); /* nothing was revoked */
    pdx_peer_put(peer);
    assert_int_equal(pdx_engine_destroy(c), 0);
}

struct preparer {
    struct ts_pair *pair;
    pthread_t thread;
    atomic_int rounds;
    atomic_bool stop;
};

static void *prepare_and_put(void *ctx)
{
    static const int32_t item = 0;
    struct preparer *p = ctx;
    struct pdx_pair pair = {.local = p->pair->ra,
                            .remote = &p->pair->remote,
                            .local_item_len = 64,
                            .remote_item_len = 64};
    struct pdx_job job = {
        .pairs = &pair, .npairs = 1, .items = {.local = &item, .remote = &item, .n = 1}};
    struct pdx_prepared *prepared;

    while (!atomic_load(&p->stop) &&
           pdx_prepare(p->pair->peer, PDX_WRITE, &job, &prepared, NULL) == 0) {
        pdx_prepared_put(prepared);
        atomic_fetch_add(&p->rounds, 1);
    }
    return NULL;
}

/* The last user of a region looked whether somebody waits for it before it let go, not after. */
static void test_last_user_of_a_region_wakes_who_deregisters(void **state)
{
    struct ts_pair *pair = *state;
    struct pdx_error why;

    for (int i = 0; i < TS_SCALE(2000, 300); i++) {
        struct preparer p = {.pair = pair};

        assert_int_equal(pthread_create(&p.thread, NULL, prepare_and_put, &p), 0);
        ts_until(atomic_load(&p.rounds) > 0);
        atomic_store(&p.stop, true);
        ts_ok(pdx_region_deregister(pair->ra, TS_LONG, &why), &why);
        (void)pthread_join(p.thread, NULL);
        pair->ra = ts_region(pair->a, &pair->ma, PDX_RIGHT_ALL);
    }
}

/* ---- the end of an engine --------------------------------------------- */

struct waiter {
    struct pdx_engine *engine;
    pthread_t thread;
    atomic_int tid;
    int result;
};

static void *wait_inbound(void *ctx)
{
    struct waiter *w = ctx;
    struct pdx_inbound rec;

    atomic_store(&w->tid, gettid());
    w->result = pdx_inbound_wait(w->engine, own_incarnation, 1, PDX_FOREVER, false, &rec);
    return NULL;
}

/* Whether a thread of this process sleeps. */
static bool asleep(int tid)
{
    char path[64];
    char state = '?';
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    f = tid ? fopen(path, "re") : NULL;
    if (!f)
        return false;
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    (void)fclose(f);
    return state == 'S';
}

/* Those who wait for a record are woken by the end of the engine, and found it freed. */
static void test_destroy_waits_for_those_it_wakes(void **state)
{
    enum { N = 8 };

    (void)state;
    for (int i = 0; i < TS_SCALE(50, 10); i++) {
        struct pdx_engine *b = engine_with("beta", NULL);
        struct waiter waiters[N];

        for (int k = 0; k < N; k++) {
            waiters[k] = (struct waiter){.engine = b};
            assert_int_equal(pthread_create(&waiters[k].thread, NULL, wait_inbound, &waiters[k]),
                             0);
        }
        for (int k = 0; k < N; k++)
            ts_until(asleep(atomic_load(&waiters[k].tid)));
        assert_int_equal(pdx_engine_destroy(b), 0);
        for (int k = 0; k < N; k++) {
            (void)pthread_join(waiters[k].thread, NULL);
            assert_int_equal(waiters[k].result, PDX_ESHUTDOWN);
        }
    }
}

static void *put_peers(void *ctx)
{
    struct pdx_peer **peers = ctx;

    for (int i = 0; i < 8; i++)
        pdx_peer_put(peers[i]);
    return NULL;
}

/* Peers that were put while their engine was destroyed touched it after its end. */
static void test_peers_are_put_during_destroy(void **state)
{
    struct ts_pair *p = *state;

    for (int i = 0; i < TS_SCALE(200, 40); i++) {
        struct pdx_engine *a = engine_with("omega", NULL);
        struct pdx_peer *peers[8];
        pthread_t thread;

        for (int k = 0; k < 8; k++)
            peers[k] = ts_peer(a, p->b);
        assert_int_equal(pthread_create(&thread, NULL, put_peers, peers), 0);
        assert_int_equal(pdx_engine_destroy(a), 0);
        (void)pthread_join(thread, NULL);
    }
}

#define BUG(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watch_with_an_undelivered_event_lets_its_file_go),
        BUG(test_whole_items_of_many_pairs_arrive),
        BUG(test_batch_is_filled_to_the_brim_by_notifications),
        BUG(test_notice_survives_its_lane),
        BUG(test_ticket_that_never_comes_ends_the_connection),
        BUG(test_flapping_lane_ends_the_connection),
        BUG(test_answer_in_the_socket_counts_before_the_clock),
        BUG(test_write_ends_when_the_target_has_closed_its_lane),
        BUG(test_write_ends_though_the_target_gives_no_new_lane),
        BUG(test_fence_falls_with_its_peer_and_its_engine),
        BUG(test_write_is_not_repeated_after_its_notification),
        BUG(test_new_session_ends_the_records_of_the_old_one),
        BUG(test_untracked_transfer_is_not_done),
        BUG(test_begins_take_bounded_memory),
        BUG(test_silent_connections_keep_nobody_out),
        BUG(test_deregistration_leaves_reads_of_other_regions_alone),
        BUG(test_hook_may_deregister_what_is_being_sent),
        BUG(test_hook_of_another_engine_may_not_wait_for_a_region),
        BUG(test_last_user_of_a_region_wakes_who_deregisters),
        BUG(test_destroy_waits_for_those_it_wakes),
        BUG(test_peers_are_put_during_destroy),
    };
    const char *filter = getenv("PDX_TEST_CASE");

    if (filter)
        cmocka_set_test_filter(filter);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
