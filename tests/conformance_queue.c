/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: completion queues.
 */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct pdx_cq *cq_of(struct pdx_engine *engine, size_t depth)
{
    struct pdx_cq *cq = NULL;
    struct pdx_error why;

    ts_ok(pdx_cq_create(engine, depth, &cq, &why), &why);
    return cq;
}

/* A write whose only trace is its completion. */
static int write_blind(struct conf *c, struct pdx_cq *cq, uint64_t id, struct pdx_error *why)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_seg seg = {0, 0, 512};

    opts.id = id;
    opts.cq = cq;
    opts.cq_ctx = (void *)(uintptr_t)(id * 2 + 1);
    return pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, &seg, 1, &opts, NULL, why);
}

static struct pdx_transfer_status *write_endless(struct conf *c, struct pdx_cq *cq, uint64_t id)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;

    opts.id = id;
    opts.cq = cq;
    return ts_mute_write(&c->mute, c->pair.ra, &opts);
}

static void test_queue_tells_each_end_once(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 256);
    bool seen[200] = {false};
    struct pdx_completion done[16];
    struct pdx_error why;
    int n = 0;

    for (uint64_t i = 0; i < 200; i++)
        ts_ok(write_blind(c, cq, i, &why), &why);
    while (n < 200) {
        int got = pdx_cq_wait(cq, done, 16, TS_LONG);

        assert_in_range(got, 1, 16);
        for (int i = 0; i < got; i++) {
            assert_in_range(done[i].id, 0, 199);
            assert_false(seen[done[i].id]);
            seen[done[i].id] = true;
            assert_ptr_equal(done[i].ctx, (void *)(uintptr_t)(done[i].id * 2 + 1));
            assert_int_equal(done[i].code, PDX_DONE);
            assert_int_equal(done[i].err, 0);
            assert_int_equal(done[i].bytes, 512);
        }
        n += got;
    }
    assert_int_equal(pdx_cq_poll(cq, done, 16), 0);
    assert_int_equal(pdx_cq_wait(cq, done, 16, 5 * PDX_MSEC), PDX_ETIMEDOUT);
    pdx_cq_destroy(cq);
}

static void test_queue_keeps_the_order_of_completion(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 8);
    const int order[] = {5, 2, 7, 0, 1, 6, 3, 4};
    struct pdx_transfer_status *st[8];
    struct pdx_completion done[8];

    for (uint64_t i = 0; i < 8; i++)
        st[i] = write_endless(c, cq, i);
    for (int i = 0; i < 8; i++) {
        pdx_transfer_cancel(st[order[i]]);
        ts_ended(st[order[i]], PDX_CANCELLED, PDX_ECANCELLED);
    }
    for (int n = 0; n < 8;)
        n += pdx_cq_wait(cq, done + n, 8 - n, TS_LONG);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(done[i].id, order[i]);
        assert_int_equal(done[i].code, PDX_CANCELLED);
        assert_int_equal(done[i].err, PDX_ECANCELLED);
        pdx_transfer_put(st[i]);
    }
    pdx_cq_destroy(cq);
}

/* Level-triggered in somebody else's epoll: readable as often as asked while entries wait, and not
 * a moment longer. */
static void test_queue_fd_fits_a_foreign_loop(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 64);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7};
    struct pdx_completion done[64];
    struct pdx_error why;
    int ep = epoll_create1(EPOLL_CLOEXEC);

    assert_true(ep >= 0);
    assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, pdx_cq_fd(cq), &ev), 0);
    for (int round = 0; round < 20; round++) {
        assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
        for (uint64_t i = 0; i < 3; i++)
            ts_ok(write_blind(c, cq, i, &why), &why);
        for (int left = 3; left > 0; left--) {
            assert_int_equal(epoll_wait(ep, &ev, 1, (int)(TS_LONG / PDX_MSEC)), 1);
            assert_int_equal(ev.data.u32, 7);
            assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
            assert_int_equal(pdx_cq_poll(cq, done, 1), 1);
        }
    }
    assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
    (void)close(ep);
    pdx_cq_destroy(cq);
}

static void test_queue_full_refuses_and_loses_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 4);
    struct pdx_transfer_status *st[4];
    struct pdx_completion done[8];
    struct pdx_engine_counters before;
    struct pdx_error why;

    for (uint64_t i = 0; i < 4; i++)
        st[i] = write_endless(c, cq, i);
    before = ts_counters(c->pair.a);
    ts_refused(write_blind(c, cq, 77, &why), PDX_EAGAIN, &why);
    assert_int_equal(ts_counters(c->pair.a).transfers_submitted, before.transfers_submitted);
    assert_int_equal(ts_counters(c->pair.a).again, before.again + 1);
    for (int i = 0; i < 4; i++) {
        pdx_transfer_cancel(st[i]);
        ts_ended(st[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(st[i]);
    }
    /* Ended, but not fetched: the places are still taken. */
    ts_refused(write_blind(c, cq, 77, &why), PDX_EAGAIN, &why);
    assert_int_equal(pdx_cq_wait(cq, done, 1, TS_LONG), 1);
    ts_ok(write_blind(c, cq, 78, &why), &why);
    ts_refused(write_blind(c, cq, 77, &why), PDX_EAGAIN, &why);
    for (int n = 1; n < 5;)
        n += pdx_cq_wait(cq, done + n, 8 - n, TS_LONG);
    assert_int_equal(pdx_cq_poll(cq, done, 8), 0);
    assert_int_equal(done[4].id, 78);
    assert_int_equal(done[4].code, PDX_DONE);
    pdx_cq_destroy(cq);
}

#define POLL_THREADS 4
#define POLL_N       2000

struct poller {
    struct pdx_cq *cq;
    atomic_int *left;
    atomic_uchar *seen;
    int rc;
};

static void *poller_main(void *ctx)
{
    struct poller *p = ctx;
    struct pdx_completion done[7];

    while (atomic_load(p->left) > 0) {
        int got = pdx_cq_wait(p->cq, done, 7, 20 * PDX_MSEC);

        if (got == PDX_ETIMEDOUT)
            continue;
        if (got < 0) {
            p->rc = got;
            return NULL;
        }
        for (int i = 0; i < got; i++)
            atomic_fetch_add(&p->seen[done[i].id], 1);
        atomic_fetch_sub(p->left, got);
    }
    return NULL;
}

static void test_queue_serves_several_threads(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, POLL_N);
    static atomic_uchar seen[POLL_N];
    atomic_int left = POLL_N;
    struct poller pollers[POLL_THREADS];
    pthread_t threads[POLL_THREADS];
    struct pdx_error why;

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < POLL_THREADS; i++) {
        pollers[i] = (struct poller){.cq = cq, .left = &left, .seen = seen};
        assert_int_equal(pthread_create(&threads[i], NULL, poller_main, &pollers[i]), 0);
    }
    for (uint64_t i = 0; i < POLL_N; i++)
        ts_ok(write_blind(c, cq, i, &why), &why);
    for (int i = 0; i < POLL_THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(pollers[i].rc, 0);
    }
    for (int i = 0; i < POLL_N; i++)
        assert_int_equal(atomic_load(&seen[i]), 1);
    pdx_cq_destroy(cq);
}

static void test_queue_destroyed_leaves_its_transfers_alone(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 64);
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[9];

    opts.cq = cq;
    for (int i = 0; i < 8; i++)
        st[i] = ts_write(&c->pair, 0, 0, 1 << 20, &opts);
    st[8] = write_endless(c, cq, 8);
    pdx_cq_destroy(cq);
    for (int i = 0; i < 8; i++)
        ts_finish(st[i]);
    pdx_transfer_cancel(st[8]);
    ts_ended(st[8], PDX_CANCELLED, PDX_ECANCELLED);
    pdx_transfer_put(st[8]);
}

static void test_queue_outlives_its_engine(void **state)
{
    struct conf *c = *state;
    struct pdx_cq *cq = cq_of(c->pair.a, 4);
    struct pdx_completion done[4];

    for (uint64_t i = 0; i < 4; i++)
        pdx_transfer_put(write_endless(c, cq, i));
    ts_pair_close(&c->pair);
    ts_mute_close(&c->mute);
    assert_int_equal(pdx_cq_poll(cq, done, 4), 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(done[i].code, PDX_CANCELLED);
    pdx_cq_destroy(cq);
}

static const struct CMUnitTest cases[] = {
    CONF_PAIR(test_queue_tells_each_end_once),
    CONF_MUTE(test_queue_keeps_the_order_of_completion),
    CONF_PAIR(test_queue_fd_fits_a_foreign_loop),
    CONF_MUTE(test_queue_full_refuses_and_loses_nothing),
    CONF_PAIR(test_queue_serves_several_threads),
    CONF_MUTE(test_queue_destroyed_leaves_its_transfers_alone),
    CONF_MUTE(test_queue_outlives_its_engine),
};

CONF_MAIN(cases)
