/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: a terminal code means silence. Cancel, deadline and
 * deregistration in the middle of transfers, and what the memory looks like
 * afterwards. Old content has the top bit of every byte clear, new content has
 * it set, so that one byte that moved too late shows.
 */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>

#define OLD_BYTE 0x11
#define NEW_BYTE 0x99

static void test_cancel_is_idempotent(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st = ts_mute_write(&c->mute, c->pair.ra, NULL);

    for (int i = 0; i < 100; i++)
        pdx_transfer_cancel(st);
    ts_ended(st, PDX_CANCELLED, PDX_ECANCELLED);
    for (int i = 0; i < 100; i++)
        pdx_transfer_cancel(st);
    ts_ended(st, PDX_CANCELLED, PDX_ECANCELLED);
    ts_text_has(pdx_transfer_text(st), "mute");
    pdx_transfer_put(st);
}

#define CANCEL_THREADS 4
#define CANCEL_N       64

struct canceller {
    struct pdx_transfer_status *st[CANCEL_N];
    atomic_int go;
};

static void *canceller_main(void *ctx)
{
    struct canceller *t = ctx;

    while (!atomic_load(&t->go))
        ;
    for (int i = 0; i < CANCEL_N; i++)
        pdx_transfer_cancel(t->st[(i * 7) % CANCEL_N]);
    return NULL;
}

/* Several threads cancel the same transfers of all sizes at random moments. */
static void cancel_round(struct conf *c, uint64_t *rng)
{
    struct canceller t = {.go = 0};
    pthread_t threads[CANCEL_THREADS];

    for (int i = 0; i < CANCEL_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, canceller_main, &t), 0);
    for (int i = 0; i < CANCEL_N; i++) {
        uint64_t len = 1 + ts_rand(rng) % (ts_rand(rng) % 2 ? 1000 : 1 << 20);

        t.st[i] = ts_rand(rng) % 2 ? ts_write(&c->pair, 0, 0, len, NULL)
                                   : ts_read(&c->pair, 0, 0, len, NULL);
    }
    for (uint64_t n = ts_rand(rng) % 20000; n > 0; n--)
        (void)ts_now();
    atomic_store(&t.go, 1);
    for (int i = 0; i < CANCEL_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < CANCEL_N; i++) {
        assert_int_equal(pdx_transfer_wait(t.st[i], TS_LONG), 0);
        if (pdx_transfer_code(t.st[i]) != PDX_DONE)
            ts_ended(t.st[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(t.st[i]);
    }
}

static void test_cancel_at_random_times_ends_everything(void **state)
{
    struct conf *c = *state;
    uint64_t rng = 1;

    for (int round = 0; round < TS_SCALE(60, 10); round++)
        cancel_round(c, &rng);
    assert_int_equal(ts_counters(c->pair.a).transfers_inflight, 0);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
}

/* A cancelled write: after its end the source is rewritten, and no byte of that shows at the
 * target. A cancelled read: after its end the destination is the caller's alone. */
static void cancel_quietly(struct conf *c, bool read, uint64_t *rng)
{
    const size_t len = c->pair.ma.len;
    struct pdx_transfer_status *st;
    const uint8_t *to = read ? c->pair.ma.p : c->pair.mb.p;

    memset(c->pair.ma.p, OLD_BYTE, len);
    memset(c->pair.mb.p, OLD_BYTE, len);
    st = read ? ts_read(&c->pair, 0, 0, len, NULL) : ts_write(&c->pair, 0, 0, len, NULL);
    for (uint64_t n = ts_rand(rng) % 5000; n > 0; n--)
        (void)ts_now();
    pdx_transfer_cancel(st);
    assert_int_equal(pdx_transfer_wait(st, TS_LONG), 0);
    pdx_transfer_put(st);
    memset(read ? c->pair.mb.p : c->pair.ma.p, NEW_BYTE, len);
    /* Whatever was still under way has arrived by the time this has. */
    ts_finish(ts_write(&c->pair, len - 1, len - 1, 1, NULL));
    ts_assert_bytes(to, OLD_BYTE, len - 1);
}

static void test_cancelled_transfer_is_quiet(void **state)
{
    struct conf *c = *state;
    uint64_t rng = 2;

    for (int round = 0; round < TS_SCALE(200, 40); round++)
        cancel_quietly(c, round % 2, &rng);
}

static void test_abort_storm_leaves_nothing_behind(void **state)
{
    struct conf *c = *state;
    enum { N = 1000 };
    static struct pdx_transfer_status *st[N];
    struct pdx_peer_counters pc;

    for (int i = 0; i < N; i++)
        st[i] = ts_write(&c->pair, 0, 0, 100000, NULL);
    for (int i = 0; i < N; i++)
        pdx_transfer_cancel(st[i]);
    assert_int_equal(pdx_transfer_wait_all(st, N, TS_LONG), 0);
    for (int i = 0; i < N; i++)
        pdx_transfer_put(st[i]);
    assert_int_equal(ts_counters(c->pair.a).transfers_inflight, 0);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    pdx_peer_counters(c->pair.peer, &pc);
    assert_int_equal(pc.transfers_inflight, 0);
    assert_int_equal(pc.transfers_done + pc.transfers_ended_badly, N + 1);
}

/* With the shortest patience the connection is broken again and again to make cancelled transfers
 * quiet. Those that nobody cancelled go on, however often. */
static void test_cancelled_transfers_cost_the_others_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    struct pdx_transfer_status *innocent[2];
    struct pdx_peer_counters pc = {0};

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    a.drain_ns = PDX_MSEC;
    ts_pair_open(&c->pair, &a, &b, 16 << 20);
    for (int i = 0; i < 2; i++)
        innocent[i] = conf_long_write(c, 100000, 1 << 20, NULL);
    for (int round = 0; round < 200 && pc.lane_breaks < 8; round++) {
        struct pdx_transfer_status *st = conf_long_write(c, 20000, 1 << 20, NULL);
        struct pdx_transfer_info info;

        ts_until((pdx_transfer_info(st, &info), info.frames > 4));
        pdx_transfer_cancel(st);
        ts_ended(st, PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(st);
        pdx_peer_counters(c->pair.peer, &pc);
    }
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
    for (int i = 0; i < 2; i++) {
        if (pdx_transfer_is_terminal(pdx_transfer_code(innocent[i])))
            ts_fail(__FILE__, __LINE__, "after %d breaks: %s", (int)pc.lane_breaks,
                    pdx_transfer_text(innocent[i]));
        pdx_transfer_cancel(innocent[i]);
        ts_ended(innocent[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(innocent[i]);
    }
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
}

static void test_deadline_ends_what_never_starts(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;

    opts.deadline_ns = 30 * PDX_MSEC;
    opts.id = 12345;
    st = ts_mute_write(&c->mute, c->pair.ra, &opts);
    ts_ended(st, PDX_DEADLINE, PDX_EDEADLINE);
    pdx_transfer_info(st, &info);
    assert_true(info.completed_ns - info.submitted_ns >= opts.deadline_ns);
    assert_int_equal(info.bytes_done, 0);
    ts_text_has(pdx_transfer_text(st), "mute");
    ts_text_has(pdx_transfer_text(st), "12345");
    pdx_transfer_put(st);
}

static void test_deadline_default_is_the_engines(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    struct pdx_transfer_status *st;

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    a.deadline_ns = 40 * PDX_MSEC;
    ts_pair_open(&c->pair, &a, &b, 1 << 16);
    ts_mute_open(&c->mute, c->pair.a);
    st = ts_mute_write(&c->mute, c->pair.ra, NULL);
    ts_ended(st, PDX_DEADLINE, PDX_EDEADLINE);
    pdx_transfer_put(st);
}

/* The deadline comes in the middle of the data; the connection may go, the peer must not. */
static void test_deadline_in_the_middle_spares_the_peer(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;

    opts.deadline_ns = 60 * PDX_MSEC;
    st = conf_long_write(c, 20000, 1 << 20, &opts);
    ts_ended(st, PDX_DEADLINE, PDX_EDEADLINE);
    pdx_transfer_info(st, &info);
    assert_true(info.bytes_done < info.bytes);
    pdx_transfer_put(st);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
}

/* Threads keep the target's region busy until they are told that it is gone. */
struct load {
    struct conf *c;
    bool read;
    atomic_bool revoked;  /* deregister has returned */
    atomic_int late_done; /* DONE of a submission made after that */
    atomic_int done;
    atomic_int stale;
    atomic_int other;
    int rc; /* of a submission that failed */
};

#define LOAD_DEPTH 8
#define LOAD_LEN   ((uint64_t)100000)

static void load_count(struct load *l, struct pdx_transfer_status *st, bool late)
{
    enum pdx_transfer_code code;

    (void)pdx_transfer_wait(st, TS_LONG);
    code = pdx_transfer_code(st);
    atomic_fetch_add(code == PDX_DONE ? &l->done : code == PDX_STALE ? &l->stale : &l->other, 1);
    if (code == PDX_DONE && late)
        atomic_fetch_add(&l->late_done, 1);
    pdx_transfer_put(st);
}

static void *load_main(void *ctx)
{
    struct load *l = ctx;
    struct ts_pair *p = &l->c->pair;
    struct pdx_transfer_status *st[LOAD_DEPTH] = {NULL};
    bool late[LOAD_DEPTH] = {false};
    bool last = false;

    for (uint64_t i = 0; !last || i % LOAD_DEPTH != 0; i++) {
        struct pdx_seg seg = {i % LOAD_DEPTH * LOAD_LEN, i % LOAD_DEPTH * LOAD_LEN, LOAD_LEN};
        int k = (int)(i % LOAD_DEPTH);

        if (st[k])
            load_count(l, st[k], late[k]);
        st[k] = NULL;
        if (i % LOAD_DEPTH == 0)
            last = atomic_load(&l->revoked);
        late[k] = atomic_load(&l->revoked);
        l->rc = (l->read ? pdx_read : pdx_write)(p->peer, p->ra, &p->remote, &seg, 1, NULL, &st[k],
                                                 NULL);
        if (l->rc < 0)
            break;
    }
    for (int k = 0; k < LOAD_DEPTH; k++)
        if (st[k])
            load_count(l, st[k], late[k]);
    return NULL;
}

/* Deregisters the target's region under load. When that has returned, not a byte is written to or
 * read from the memory, and nothing submitted later is DONE. */
static void revoke_round(struct conf *c, bool read, uint64_t *rng)
{
    struct load l = {.c = c, .read = read};
    const size_t len = c->pair.mb.len;
    struct ts_mem *to = read ? &c->pair.ma : &c->pair.mb;
    struct pdx_error why;
    pthread_t thread;
    int want = 1 + (int)(ts_rand(rng) % 50);
    int rc;

    c->pair.rb = ts_region(c->pair.b, &c->pair.mb, PDX_RIGHT_ALL);
    c->pair.remote = ts_remote(c->pair.rb);
    memset(c->pair.ma.p, OLD_BYTE, len);
    memset(c->pair.mb.p, OLD_BYTE, len);
    assert_int_equal(pthread_create(&thread, NULL, load_main, &l), 0);
    while (atomic_load(&l.done) < want && atomic_load(&l.other) == 0)
        ts_pause();
    rc = pdx_region_deregister(c->pair.rb, TS_LONG, &why);
    memset(c->pair.mb.p, NEW_BYTE, len);
    atomic_store(&l.revoked, true);
    (void)pthread_join(thread, NULL);
    ts_ok(rc, &why);
    c->pair.rb = NULL;
    assert_int_equal(l.rc, 0);
    assert_int_equal(atomic_load(&l.late_done), 0);
    assert_int_equal(atomic_load(&l.other), 0);
    assert_true(atomic_load(&l.stale) >= 1);
    ts_assert_bytes(to->p, read ? OLD_BYTE : NEW_BYTE, len);
}

/* Revocation is no fault of the connection. */
static void revoke_check_peer(struct conf *c)
{
    c->pair.rb = ts_region(c->pair.b, &c->pair.mb, PDX_RIGHT_ALL);
    c->pair.remote = ts_remote(c->pair.rb);
    conf_assert_peer_well(c);
}

static void test_deregister_silences_writes(void **state)
{
    struct conf *c = *state;
    uint64_t rng = 3;
    struct pdx_error why;

    ts_ok(pdx_region_deregister(c->pair.rb, 0, &why), &why);
    for (int round = 0; round < TS_SCALE(20, 5); round++)
        revoke_round(c, false, &rng);
    revoke_check_peer(c);
}

static void test_deregister_silences_reads(void **state)
{
    struct conf *c = *state;
    uint64_t rng = 4;
    struct pdx_error why;

    ts_ok(pdx_region_deregister(c->pair.rb, 0, &why), &why);
    for (int round = 0; round < TS_SCALE(20, 5); round++)
        revoke_round(c, true, &rng);
    revoke_check_peer(c);
}

/* Own transfers hold the region. */
static void test_deregister_is_refused_while_in_use(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st = ts_mute_write(&c->mute, c->pair.ra, NULL);
    struct pdx_region_info info;
    struct pdx_error why;

    ts_refused(pdx_region_deregister(c->pair.ra, 0, &why), PDX_EBUSY, &why);
    ts_refused(pdx_region_deregister(c->pair.ra, 10 * PDX_MSEC, &why), PDX_EBUSY, &why);
    pdx_region_info(c->pair.ra, &info);
    assert_int_equal(info.users, 1);
    assert_int_equal(pdx_transfer_code(st), PDX_QUEUED);
    pdx_transfer_cancel(st);
    ts_ok(pdx_region_deregister(c->pair.ra, TS_LONG, &why), &why);
    c->pair.ra = NULL;
    ts_ended(st, PDX_CANCELLED, PDX_ECANCELLED);
    pdx_transfer_put(st);
}

static void test_prepared_job_holds_its_regions(void **state)
{
    struct conf *c = *state;
    const int32_t zero = 0;
    const struct pdx_pair pair = {.local = c->pair.ra,
                                  .remote = &c->pair.remote,
                                  .local_item_len = 100,
                                  .remote_item_len = 100};
    const struct pdx_job job = {
        .pairs = &pair, .npairs = 1, .items = {.local = &zero, .remote = &zero, .n = 1}};
    struct pdx_prepared *prepared;
    struct pdx_transfer_status *st = NULL;
    struct pdx_error why;

    ts_ok(pdx_prepare(c->pair.peer, PDX_WRITE, &job, &prepared, &why), &why);
    ts_refused(pdx_region_deregister(c->pair.ra, 0, &why), PDX_EBUSY, &why);
    /* Busy, but new transfers are refused already. */
    ts_refused(pdx_submit_prepared(prepared, NULL, NULL, &st, &why), PDX_ESTALE, &why);
    pdx_prepared_put(prepared);
    ts_ok(pdx_region_deregister(c->pair.ra, TS_LONG, &why), &why);
    c->pair.ra = NULL;
}

struct putter {
    struct pdx_prepared *prepared;
    uint64_t wait;
};

static void *putter_main(void *ctx)
{
    struct putter *p = ctx;

    for (uint64_t n = p->wait; n > 0; n--)
        (void)ts_now();
    pdx_prepared_put(p->prepared);
    return NULL;
}

/* The last user leaves at the moment when deregister goes to sleep. */
static void test_deregister_is_woken_by_the_last_user(void **state)
{
    struct conf *c = *state;
    const int32_t zero = 0;
    struct pdx_error why;
    uint64_t rng = 6;

    for (int round = 0; round < TS_SCALE(2000, 200); round++) {
        struct pdx_region *region = ts_region(c->pair.a, &c->pair.ma, PDX_RIGHT_ALL);
        const struct pdx_pair pair = {.local = region,
                                      .remote = &c->pair.remote,
                                      .local_item_len = 100,
                                      .remote_item_len = 100};
        const struct pdx_job job = {
            .pairs = &pair, .npairs = 1, .items = {.local = &zero, .remote = &zero, .n = 1}};
        struct putter putter = {.wait = ts_rand(&rng) % 1000};
        uint64_t before = ts_now();
        pthread_t thread;

        ts_ok(pdx_prepare(c->pair.peer, PDX_WRITE, &job, &putter.prepared, &why), &why);
        assert_int_equal(pthread_create(&thread, NULL, putter_main, &putter), 0);
        ts_ok(pdx_region_deregister(region, TS_LONG, &why), &why);
        (void)pthread_join(thread, NULL);
        if (ts_now() - before > TS_LONG / 2)
            ts_fail(__FILE__, __LINE__, "round %d: nobody woke the waiter", round);
    }
}

static void test_destroy_ends_everything_readably(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[32];
    struct pdx_error why;

    opts.id = 987654;
    for (int i = 0; i < 32; i++)
        st[i] = i % 2 ? conf_long_write(c, 1000, 1 << 20, &opts)
                      : ts_mute_write(&c->mute, c->pair.ra, &opts);
    assert_int_equal(pdx_engine_destroy(c->pair.a), 0);
    c->pair.a = NULL;
    memset(c->pair.ma.p, NEW_BYTE, c->pair.ma.len);
    for (int i = 0; i < 32; i++) {
        assert_true(pdx_transfer_is_terminal(pdx_transfer_code(st[i])));
        ts_ended(st[i], PDX_CANCELLED, PDX_ESHUTDOWN);
        assert_int_equal(pdx_transfer_error(st[i], &why), PDX_ESHUTDOWN);
        ts_text_has(pdx_transfer_text(st[i]), "987654");
        pdx_transfer_put(st[i]);
    }
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_CLOSED);
}

static void test_peer_put_ends_its_transfers(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[8];

    for (int i = 0; i < 8; i++)
        st[i] = ts_mute_write(&c->mute, c->pair.ra, NULL);
    pdx_peer_put(c->mute.peer);
    c->mute.peer = NULL;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pdx_transfer_wait(st[i], TS_LONG), 0);
        assert_int_equal(pdx_transfer_code(st[i]), PDX_CANCELLED);
        pdx_transfer_put(st[i]);
    }
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
}

static const struct CMUnitTest cases[] = {
    CONF_MUTE(test_cancel_is_idempotent),
    CONF_PAIR(test_cancel_at_random_times_ends_everything),
    CONF_PAIR(test_cancelled_transfer_is_quiet),
    CONF_PAIR(test_abort_storm_leaves_nothing_behind),
    CONF_NONE(test_cancelled_transfers_cost_the_others_nothing),
    CONF_MUTE(test_deadline_ends_what_never_starts),
    CONF_NONE(test_deadline_default_is_the_engines),
    CONF_PAIR(test_deadline_in_the_middle_spares_the_peer),
    CONF_PAIR(test_deregister_silences_writes),
    CONF_PAIR(test_deregister_silences_reads),
    CONF_MUTE(test_deregister_is_refused_while_in_use),
    CONF_PAIR(test_prepared_job_holds_its_regions),
    CONF_PAIR(test_deregister_is_woken_by_the_last_user),
    CONF_MUTE(test_destroy_ends_everything_readably),
    CONF_MUTE(test_peer_put_ends_its_transfers),
};

CONF_MAIN(cases)
