/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: many segments, many threads, many transfers; what they cost in
 * memory, and that an idle engine costs nothing.
 */
#include "conformance.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define MANY     100000
#define MANY_LEN ((uint64_t)8)

/* Segment i goes to place perm(i), so that nothing can be merged. */
static uint64_t many_place(uint64_t i)
{
    return i * 7919 % MANY * 2 * MANY_LEN;
}

/* To a peer that stands still, so that nothing can be done before submit has returned. */
static void test_a_hundred_thousand_segments_in_one_list(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts child = {.name = "child", .len = 2 * MANY * MANY_LEN};
    struct pdx_seg *segs = calloc(MANY, sizeof *segs);
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;
    struct pdx_error why;

    assert_non_null(segs);
    conf_open_child(c, &child);
    ts_fill(c->pair.ma.p, 0, c->pair.ma.len, 1);
    for (uint64_t i = 0; i < MANY; i++)
        segs[i] = (struct pdx_seg){i * MANY_LEN, many_place(i), MANY_LEN};
    ts_child_stop(&c->child);
    ts_ok(pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, segs, MANY, NULL, &st, &why), &why);
    assert_false(pdx_transfer_is_terminal(pdx_transfer_code(st)));
    ts_child_continue(&c->child);
    ts_done(st);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.segments, MANY);
    assert_int_equal(info.bytes_done, MANY * MANY_LEN);
    pdx_transfer_put(st);
    for (uint64_t i = 0; i < MANY; i++) /* back, to the same places of the other half */
        segs[i] = (struct pdx_seg){MANY * MANY_LEN + i * MANY_LEN, many_place(i), MANY_LEN};
    ts_ok(pdx_read(c->pair.peer, c->pair.ra, &c->pair.remote, segs, MANY, NULL, &st, &why), &why);
    ts_finish(st);
    ts_assert_pattern(c->pair.ma.p + MANY * MANY_LEN, 0, MANY * MANY_LEN, 1);
    free(segs);
}

static struct pdx_prepared *prepare_rows(struct conf *c, uint64_t rows)
{
    const int32_t zero = 0;
    const struct pdx_pair pair = {.local = c->pair.ra, .remote = &c->pair.remote};
    const struct pdx_slice slice = {0, 0, MANY_LEN, rows, MANY_LEN, 2 * MANY_LEN};
    const struct pdx_job job = {.pairs = &pair,
                                .npairs = 1,
                                .items = {.local = &zero, .remote = &zero, .n = 1},
                                .slices = &slice,
                                .nslices = 1};
    struct pdx_prepared *prepared = NULL;
    struct pdx_error why;

    ts_ok(pdx_prepare(c->pair.peer, PDX_WRITE, &job, &prepared, &why), &why);
    return prepared;
}

/* A million segments that nobody ever writes down: memory does not grow with their number. */
static void test_segments_are_generated_not_listed(void **state)
{
    struct conf *c = *state;
    const uint64_t rows = TS_SCALE(1000000, 100000);
    const uint64_t bound = 4 << 20;
    struct pdx_prepared *prepared;
    struct pdx_transfer_status *st;
    struct pdx_error why;
    struct ts_mallocs before;
    uint64_t before_resident;

    conf_open_pair(c, 2 * rows * MANY_LEN);
    ts_fill(c->pair.ma.p, 0, c->pair.ma.len, 3);
    memset(c->pair.mb.p, 0, c->pair.mb.len);
    prepared = prepare_rows(c, rows);
    for (int round = 0; round < 2; round++) { /* the first fills pools and buffers */
        ts_mallocs_mark();
        before = ts_mallocs_now();
        before_resident = ts_resident();
        ts_ok(pdx_submit_prepared(prepared, NULL, NULL, &st, &why), &why);
        ts_finish(st);
        if (ts_mallocs_counted() && ts_mallocs_now().peak - before.live > bound)
            ts_fail(__FILE__, __LINE__, "%llu bytes were allocated",
                    (unsigned long long)(ts_mallocs_now().peak - before.live));
        if (ts_mallocs_counted() && round == 1)
            assert_true(ts_resident() <= before_resident + bound);
    }
    pdx_prepared_put(prepared);
    for (uint64_t i = 0; i < rows; i++)
        ts_assert_pattern(c->pair.mb.p + i * 2 * MANY_LEN, i * MANY_LEN, MANY_LEN, 3);
}

#define SUBMITTERS TS_SCALE(64, 16)
#define PER_THREAD TS_SCALE(200, 50)
#define SLOT       ((uint64_t)64)

struct submitter {
    struct conf *c;
    uint64_t number;
    int bad;
};

/* Small writes, each to a slot of its own. */
static void *submitter_main(void *ctx)
{
    struct submitter *s = ctx;
    struct ts_pair *p = &s->c->pair;
    struct pdx_transfer_status *st[200] = {NULL};

    for (uint64_t i = 0; i < PER_THREAD; i++) {
        uint64_t off = (s->number * PER_THREAD + i) * SLOT;
        struct pdx_seg seg = {off, off, SLOT};

        if (pdx_write(p->peer, p->ra, &p->remote, &seg, 1, NULL, &st[i], NULL) < 0)
            s->bad++;
    }
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        if (!st[i] || pdx_transfer_wait(st[i], TS_LONG) < 0 || pdx_transfer_code(st[i]) != PDX_DONE)
            s->bad++;
        pdx_transfer_put(st[i]);
    }
    return NULL;
}

static void test_many_threads_submit_at_once(void **state)
{
    struct conf *c = *state;
    static struct submitter s[64];
    pthread_t threads[64];
    const uint64_t n = SUBMITTERS;
    const uint64_t len = n * PER_THREAD * SLOT;

    conf_open_pair(c, len);
    ts_fill(c->pair.ma.p, 0, len, 6);
    for (uint64_t i = 0; i < n; i++) {
        s[i] = (struct submitter){.c = c, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, submitter_main, &s[i]), 0);
    }
    for (uint64_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(s[i].bad, 0);
    }
    ts_assert_pattern(c->pair.mb.p, 0, len, 6);
    assert_int_equal(ts_counters(c->pair.a).transfers_done, n * PER_THREAD);
    assert_int_equal(ts_counters(c->pair.a).transfers_inflight, 0);
}

#define WINDOW 32

/* n times a prepared job, WINDOW of them under way. ts_finish would ask for a sentence, which is
 * made when it is asked for. */
static void keep_submitting(struct pdx_prepared *prepared, uint64_t n)
{
    struct pdx_transfer_status *st[WINDOW] = {NULL};
    struct pdx_error why;

    for (uint64_t i = 0; i < n + WINDOW; i++) {
        if (st[i % WINDOW]) {
            assert_int_equal(pdx_transfer_wait(st[i % WINDOW], TS_LONG), 0);
            assert_int_equal(pdx_transfer_code(st[i % WINDOW]), PDX_DONE);
            pdx_transfer_put(st[i % WINDOW]);
        }
        st[i % WINDOW] = NULL;
        if (i < n)
            ts_ok(pdx_submit_prepared(prepared, NULL, NULL, &st[i % WINDOW], &why), &why);
    }
}

static void test_steady_state_allocates_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_prepared *prepared = prepare_rows(c, 4);
    struct ts_mallocs before;
    struct ts_mallocs after;

    keep_submitting(prepared, 2000);
    before = ts_mallocs_now();
    keep_submitting(prepared, TS_SCALE(100000, 5000));
    after = ts_mallocs_now();
    if (after.calls - before.calls > 50)
        ts_fail(__FILE__, __LINE__, "%llu allocations",
                (unsigned long long)(after.calls - before.calls));
    if (ts_mallocs_counted()) /* the counter itself counts */
        assert_true(after.calls > 0);
    pdx_prepared_put(prepared);
}

static void test_transfers_are_bounded(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    struct pdx_transfer_status *st[16];
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_error why;

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    a.max_transfers = 16;
    ts_pair_open(&c->pair, &a, &b, 4096);
    for (int i = 0; i < 16; i++)
        st[i] = ts_write(&c->pair, 0, 0, 1, NULL);
    assert_int_equal(pdx_transfer_wait_all(st, 16, TS_LONG), 0);
    /* Ended, but the handles are held. */
    ts_refused(pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, &seg, 1, NULL, NULL, &why),
               PDX_EAGAIN, &why);
    ts_text_has(why.text, "16");
    assert_int_equal(ts_counters(c->pair.a).again, 1);
    ts_finish(st[7]);
    st[7] = NULL;
    ts_until(pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, &seg, 1, NULL, &st[7], &why) ==
             0);
    for (int i = 0; i < 16; i++)
        ts_finish(st[i]);
}

static void test_four_thousand_transfers_wait_their_turn(void **state)
{
    struct conf *c = *state;
    const int n = TS_SCALE(4096, 1024);
    static struct pdx_transfer_status *st[4096];

    for (int i = 0; i < n; i++)
        st[i] = ts_write(&c->pair, 0, 0, 4096, NULL);
    assert_int_equal(pdx_transfer_wait_all(st, (size_t)n, TS_LONG), 0);
    for (int i = 0; i < n; i++)
        ts_finish(st[i]);
}

static void test_counters_add_up_to_what_moved(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_counters a;
    struct pdx_engine_counters b;
    struct pdx_peer_counters pc;
    struct pdx_region_info ra;
    struct pdx_region_info rb;
    struct pdx_lane_info lanes[8];
    struct pdx_transfer_info info;
    struct pdx_transfer_status *st;
    uint64_t written = 0;
    uint64_t read = 0;
    uint64_t segments = 0;
    uint64_t rng = 5;
    size_t nlanes;
    uint64_t lane_bytes = 0;
    uint64_t lane_segments = 0;

    for (int i = 0; i < 200; i++) {
        uint64_t len = 1 + ts_rand(&rng) % 20000;

        st = i % 3 ? ts_write(&c->pair, 0, 0, len, NULL) : ts_read(&c->pair, 0, 0, len, NULL);
        *(i % 3 ? &written : &read) += len;
        ts_done(st);
        pdx_transfer_info(st, &info);
        segments += info.segments;
        pdx_transfer_put(st);
    }
    a = ts_counters(c->pair.a);
    b = ts_counters(c->pair.b);
    pdx_peer_counters(c->pair.peer, &pc);
    pdx_region_info(c->pair.ra, &ra);
    pdx_region_info(c->pair.rb, &rb);
    assert_int_equal(a.transfers_submitted, 200);
    assert_int_equal(a.transfers_done, 200);
    assert_int_equal(a.transfers_inflight, 0);
    assert_int_equal(a.bytes_written, written);
    assert_int_equal(a.bytes_read, read);
    assert_int_equal(b.bytes_in_written, written);
    assert_int_equal(b.bytes_in_read, read);
    assert_int_equal(a.segments, segments);
    assert_int_equal(pc.transfers_submitted, 200);
    assert_int_equal(pc.transfers_done, 200);
    assert_int_equal(pc.transfers_inflight, 0);
    assert_int_equal(pc.bytes_written, written);
    assert_int_equal(pc.bytes_read, read);
    assert_int_equal(ra.bytes_out, written);
    assert_int_equal(ra.bytes_in, read);
    assert_int_equal(rb.bytes_in, written);
    assert_int_equal(rb.bytes_out, read);
    assert_int_equal(ra.users, 0);
    assert_int_equal(a.peers, 1);
    assert_int_equal(b.sessions, 1);
    assert_int_equal(a.frames_received > 0 && b.frames_received > 0, true);
    nlanes = pdx_peer_lanes(c->pair.peer, lanes, 8);
    for (size_t i = 0; i < nlanes && i < 8; i++) {
        assert_true(lanes[i].reason[0] != '\0');
        lane_bytes += lanes[i].bytes_out + lanes[i].bytes_in;
        lane_segments += lanes[i].segments;
    }
    assert_int_equal(lane_bytes, written + read);
    assert_int_equal(lane_segments, segments);
}

static uint64_t cpu_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * PDX_SEC + (uint64_t)ts.tv_nsec;
}

/* Two engines with an idle connection between them, keepalive and all. */
static void test_idle_engines_cost_nothing(void **state)
{
    struct conf *c = *state;
    struct timespec second = {.tv_sec = 1};
    uint64_t cpu;
    uint64_t wakeups;

    ts_finish(ts_write(&c->pair, 0, 0, 1000, NULL));
    wakeups = ts_counters(c->pair.a).wakeups + ts_counters(c->pair.b).wakeups;
    cpu = cpu_now();
    (void)nanosleep(&second, NULL); /* what is measured is this second */
    cpu = cpu_now() - cpu;
    wakeups = ts_counters(c->pair.a).wakeups + ts_counters(c->pair.b).wakeups - wakeups;
    if (cpu > 20 * PDX_MSEC || wakeups > 50)
        ts_fail(__FILE__, __LINE__, "idle: %llu us of processor time, %llu wake-ups in a second",
                (unsigned long long)(cpu / PDX_USEC), (unsigned long long)wakeups);
}

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void test_engines_leave_no_descriptors_behind(void **state)
{
    struct conf *c = *state;
    int before = 0;

    for (int i = 0; i < 12; i++) {
        if (i == 2) /* by then whatever is opened once and kept is open */
            before = open_descriptors();
        conf_open_pair(c, 4096);
        ts_finish(ts_write(&c->pair, 0, 0, 4096, NULL));
        ts_pair_close(&c->pair);
    }
    assert_int_equal(open_descriptors(), before);
}

/* However many transfers: a control connection and lanes, not a connection each. */
static void test_transfers_share_their_connections(void **state)
{
    struct conf *c = *state;
    int before;

    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    before = open_descriptors();
    for (int i = 0; i < TS_SCALE(5000, 500); i++)
        ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    assert_int_equal(open_descriptors(), before);
    conf_assert_peer_well(c);
}

static const struct CMUnitTest cases[] = {
    CONF_NONE(test_a_hundred_thousand_segments_in_one_list),
    CONF_NONE(test_segments_are_generated_not_listed),
    CONF_NONE(test_many_threads_submit_at_once),
    CONF_PAIR(test_steady_state_allocates_nothing),
    CONF_NONE(test_transfers_are_bounded),
    CONF_PAIR(test_four_thousand_transfers_wait_their_turn),
    CONF_PAIR(test_counters_add_up_to_what_moved),
    CONF_PAIR(test_idle_engines_cost_nothing),
    CONF_NONE(test_engines_leave_no_descriptors_behind),
    CONF_PAIR(test_transfers_share_their_connections),
};

CONF_MAIN(cases)
