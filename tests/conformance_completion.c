/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the ways to learn that a transfer has ended. Where a case needs
 * a transfer that does not end by itself, it is one to a mute peer.
 */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>

/* What a callback saw. */
struct seen {
    atomic_int calls;
    atomic_int code;
    _Atomic(struct pdx_transfer_status *) status;
};

static void seen_record(void *ctx, struct pdx_transfer_status *status)
{
    struct seen *seen = ctx;

    atomic_store(&seen->code, pdx_transfer_code(status));
    atomic_store(&seen->status, status);
    atomic_fetch_add(&seen->calls, 1);
}

static void test_poll_goes_forward_to_done(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    enum pdx_transfer_code last = PDX_QUEUED;
    struct pdx_transfer_status *st;
    uint64_t end = ts_now() + TS_LONG;

    opts.id = 4711;
    st = ts_write(&c->pair, 0, 0, 1 << 20, &opts);
    while (!pdx_transfer_is_terminal(last)) {
        enum pdx_transfer_code now = pdx_transfer_code(st);

        assert_true(now >= last && now <= PDX_DONE && now != PDX_WAITING);
        assert_true(pdx_transfer_text(st)[0] != '\0');
        assert_true(ts_now() < end);
        last = now;
    }
    assert_int_equal(last, PDX_DONE);
    ts_finish(st);
}

static void test_info_tells_what_happened(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_info info;
    struct pdx_transfer_status *st;
    struct pdx_error why;
    uint64_t before = ts_now();

    opts.id = 4711;
    st = ts_read(&c->pair, 10, 20, 300000, &opts);
    ts_done(st);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.id, 4711);
    assert_int_equal(info.op, PDX_READ);
    assert_int_equal(info.code, PDX_DONE);
    assert_int_equal(info.bytes, 300000);
    assert_int_equal(info.bytes_done, 300000);
    assert_true(info.segments >= 1 && info.frames >= 1);
    assert_int_equal(info.retries, 0);
    assert_string_equal(info.lane, conf_lane->name);
    assert_true(before <= info.submitted_ns);
    assert_true(info.submitted_ns <= info.first_post_ns);
    assert_true(info.first_post_ns <= info.last_post_ns);
    assert_true(info.last_post_ns <= info.completed_ns);
    assert_true(info.completed_ns <= ts_now());
    assert_int_equal(pdx_transfer_error(st, &why), 0);
    assert_int_equal(why.code, 0);
    assert_string_equal(pdx_transfer_code_name(PDX_DONE), "done");
    pdx_transfer_put(st);
}

static void test_wait_timeout_changes_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st = ts_mute_write(&c->mute, c->pair.ra, NULL);
    uint64_t before = ts_now();

    assert_int_equal(pdx_transfer_wait(st, 0), PDX_ETIMEDOUT);
    assert_int_equal(pdx_transfer_wait(st, 20 * PDX_MSEC), PDX_ETIMEDOUT);
    assert_true(ts_now() - before >= 20 * PDX_MSEC);
    assert_int_equal(pdx_transfer_code(st), PDX_QUEUED);
    assert_true(pdx_transfer_text(st)[0] != '\0');
    pdx_transfer_cancel(st);
    ts_ended(st, PDX_CANCELLED, PDX_ECANCELLED);
    assert_int_equal(pdx_transfer_wait(st, 0), 0);
    pdx_transfer_put(st);
}

static void test_wait_all_needs_every_one(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[18];

    for (int i = 0; i < 16; i++)
        st[i] = ts_write(&c->pair, 0, (uint64_t)i * 1000, 1000, NULL);
    st[16] = NULL;
    assert_int_equal(pdx_transfer_wait_all(st, 17, TS_LONG), 0);
    st[17] = ts_mute_write(&c->mute, c->pair.ra, NULL);
    assert_int_equal(pdx_transfer_wait_all(st, 18, 0), PDX_ETIMEDOUT);
    assert_int_equal(pdx_transfer_wait_all(st, 18, 10 * PDX_MSEC), PDX_ETIMEDOUT);
    pdx_transfer_cancel(st[17]);
    assert_int_equal(pdx_transfer_wait_all(st, 18, TS_LONG), 0);
    assert_int_equal(pdx_transfer_wait_all(st, 0, 0), 0);
    for (int i = 0; i < 16; i++)
        ts_finish(st[i]);
    pdx_transfer_put(st[16]);
    pdx_transfer_put(st[17]);
}

static void test_wait_any_names_the_first_in_array_order(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[4] = {NULL};
    size_t pos = 99;

    assert_int_equal(pdx_transfer_wait_any(st, 0, 0, &pos), PDX_EINVAL);
    assert_int_equal(pdx_transfer_wait_any(st, 4, 0, &pos), PDX_EINVAL);
    st[1] = ts_mute_write(&c->mute, c->pair.ra, NULL);
    assert_int_equal(pdx_transfer_wait_any(st, 4, 5 * PDX_MSEC, &pos), PDX_ETIMEDOUT);
    assert_int_equal(pos, 99);
    st[2] = ts_write(&c->pair, 0, 0, 64, NULL);
    st[3] = ts_write(&c->pair, 0, 64, 64, NULL);
    ts_done(st[2]);
    ts_done(st[3]);
    assert_int_equal(pdx_transfer_wait_any(st, 4, 0, &pos), 0);
    assert_int_equal(pos, 2);
    pdx_transfer_cancel(st[1]);
    ts_ended(st[1], PDX_CANCELLED, PDX_ECANCELLED);
    assert_int_equal(pdx_transfer_wait_any(st, 4, TS_LONG, &pos), 0);
    assert_int_equal(pos, 1);
    for (int i = 1; i < 4; i++)
        pdx_transfer_put(st[i]);
}

#define ANY_N 8

struct any_thread {
    struct pdx_transfer_status *st[ANY_N];
    atomic_int ready;
    int rc;
    size_t pos;
};

static void *any_main(void *ctx)
{
    struct any_thread *t = ctx;

    atomic_fetch_add(&t->ready, 1);
    t->rc = pdx_transfer_wait_any(t->st, ANY_N, TS_LONG, &t->pos);
    return NULL;
}

static void test_wait_any_is_woken_by_each_position(void **state)
{
    struct conf *c = *state;

    for (size_t k = 0; k < ANY_N; k++) {
        struct any_thread t = {.pos = 99};
        pthread_t thread;

        for (int i = 0; i < ANY_N; i++)
            t.st[i] = ts_mute_write(&c->mute, c->pair.ra, NULL);
        assert_int_equal(pthread_create(&thread, NULL, any_main, &t), 0);
        while (!atomic_load(&t.ready))
            ts_pause();
        pdx_transfer_cancel(t.st[k]);
        (void)pthread_join(thread, NULL);
        assert_int_equal(t.rc, 0);
        assert_int_equal(t.pos, k);
        for (int i = 0; i < ANY_N; i++) {
            pdx_transfer_cancel(t.st[i]);
            pdx_transfer_put(t.st[i]);
        }
    }
}

struct waiter {
    struct pdx_transfer_status *st;
    atomic_int *waiting;
    int rc;
    enum pdx_transfer_code code;
};

static void *waiter_main(void *ctx)
{
    struct waiter *w = ctx;

    atomic_fetch_add(w->waiting, 1);
    w->rc = pdx_transfer_wait(w->st, TS_LONG);
    w->code = pdx_transfer_code(w->st);
    return NULL;
}

static void test_wait_wakes_all_its_threads(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st = ts_mute_write(&c->mute, c->pair.ra, NULL);
    atomic_int waiting = 0;
    struct waiter w[8];
    pthread_t threads[8];

    for (int i = 0; i < 8; i++) {
        w[i] = (struct waiter){.st = st, .waiting = &waiting};
        assert_int_equal(pthread_create(&threads[i], NULL, waiter_main, &w[i]), 0);
    }
    while (atomic_load(&waiting) < 8)
        ts_pause();
    pdx_transfer_cancel(st);
    for (int i = 0; i < 8; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(w[i].rc, 0);
        assert_int_equal(w[i].code, PDX_CANCELLED);
    }
    pdx_transfer_put(st);
}

static void test_callback_runs_once_on_success_and_on_failure(void **state)
{
    struct conf *c = *state;
    static struct seen good;
    static struct seen bad;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[2];

    memset(&good, 0, sizeof good);
    memset(&bad, 0, sizeof bad);
    opts.callback = seen_record;
    opts.callback_ctx = &good;
    st[0] = ts_write(&c->pair, 0, 0, 5000, &opts);
    opts.callback_ctx = &bad;
    st[1] = ts_mute_write(&c->mute, c->pair.ra, &opts);
    ts_until(atomic_load(&good.calls) == 1);
    ts_done(st[0]);
    assert_int_equal(atomic_load(&bad.calls), 0);
    pdx_transfer_cancel(st[1]);
    pdx_transfer_cancel(st[1]);
    ts_until(atomic_load(&bad.calls) == 1);
    assert_ptr_equal(atomic_load(&good.status), st[0]);
    assert_ptr_equal(atomic_load(&bad.status), st[1]);
    assert_int_equal(atomic_load(&good.code), PDX_DONE);
    assert_int_equal(atomic_load(&bad.code), PDX_CANCELLED);
    pdx_transfer_cancel(st[0]);
    pdx_transfer_put(st[0]);
    pdx_transfer_put(st[1]);
    /* After the engine is gone nothing can call any more. */
    ts_mute_close(&c->mute);
    ts_pair_close(&c->pair);
    assert_int_equal(atomic_load(&good.calls), 1);
    assert_int_equal(atomic_load(&bad.calls), 1);
}

static void test_callback_needs_no_handle(void **state)
{
    struct conf *c = *state;
    static struct seen seen;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_seg seg = {0, 0, 4096};
    struct pdx_error why;

    memset(&seen, 0, sizeof seen);
    opts.callback = seen_record;
    opts.callback_ctx = &seen;
    for (int i = 0; i < 100; i++)
        ts_ok(pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, &seg, 1, &opts, NULL, &why),
              &why);
    ts_until(atomic_load(&seen.calls) == 100);
    assert_int_equal(atomic_load(&seen.code), PDX_DONE);
    ts_until(ts_counters(c->pair.a).transfers_inflight == 0);
}

/* Each callback submits the next transfer of the chain, cancels one to the mute peer and puts its
 * own handle. */
struct chain {
    struct conf *c;
    struct pdx_transfer_status *victims[64];
    int left;
    atomic_int rc; /* of the submission that failed */
    atomic_bool ended;
};

static void chain_next(void *ctx, struct pdx_transfer_status *status);

static void chain_submit(struct chain *chain)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_seg seg = {0, 0, 100};
    struct pdx_transfer_status *st;
    struct ts_pair *p = &chain->c->pair;
    int rc;

    opts.callback = chain_next;
    opts.callback_ctx = chain;
    rc = pdx_write(p->peer, p->ra, &p->remote, &seg, 1, &opts, &st, NULL);
    if (rc < 0) {
        atomic_store(&chain->rc, rc);
        atomic_store(&chain->ended, true);
    }
}

static void chain_next(void *ctx, struct pdx_transfer_status *status)
{
    struct chain *chain = ctx;

    if (chain->left < 64)
        pdx_transfer_cancel(chain->victims[chain->left]);
    pdx_transfer_put(status);
    if (chain->left-- > 0)
        chain_submit(chain);
    else
        atomic_store(&chain->ended, true);
}

static void test_callback_may_submit_cancel_and_put(void **state)
{
    struct conf *c = *state;
    static struct chain chain;

    memset(&chain, 0, sizeof chain);
    chain.c = c;
    chain.left = 1000;
    for (int i = 0; i < 64; i++)
        chain.victims[i] = ts_mute_write(&c->mute, c->pair.ra, NULL);
    chain_submit(&chain);
    ts_until(atomic_load(&chain.ended));
    assert_int_equal(atomic_load(&chain.rc), 0);
    assert_int_equal(chain.left, -1);
    for (int i = 0; i < 64; i++) {
        ts_ended(chain.victims[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(chain.victims[i]);
    }
    assert_int_equal(ts_counters(c->pair.a).transfers_done, 1001);
}

/* Every blocking call, made on the reactor thread. */
struct blocked {
    struct conf *c;
    struct pdx_transfer_status *endless;
    struct pdx_cq *cq;
    int rc[8];
    atomic_bool ended;
};

static void blocked_try(void *ctx, struct pdx_transfer_status *status)
{
    struct blocked *b = ctx;
    const uint8_t nobody[PDX_INCARNATION_LEN] = {0};
    struct pdx_completion done;
    struct pdx_inbound rec;
    size_t pos;

    (void)status;
    b->rc[0] = pdx_transfer_wait(b->endless, PDX_SEC);
    b->rc[1] = pdx_transfer_wait_all(&b->endless, 1, PDX_SEC);
    b->rc[2] = pdx_transfer_wait_any(&b->endless, 1, PDX_SEC, &pos);
    b->rc[3] = pdx_cq_wait(b->cq, &done, 1, PDX_SEC);
    b->rc[4] = pdx_inbound_wait(b->c->pair.a, nobody, 1, PDX_SEC, false, &rec);
    b->rc[5] = pdx_peer_wait_up(b->c->mute.peer, PDX_SEC, NULL);
    b->rc[6] = pdx_region_deregister(b->c->pair.ra, PDX_SEC, NULL);
    b->rc[7] = pdx_engine_destroy(b->c->pair.a);
    atomic_store(&b->ended, true);
}

static void test_callback_must_not_block(void **state)
{
    struct conf *c = *state;
    static struct blocked blocked;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_error why;

    memset(&blocked, 0, sizeof blocked);
    blocked.c = c;
    blocked.endless = ts_mute_write(&c->mute, c->pair.ra, NULL);
    ts_ok(pdx_cq_create(c->pair.a, 4, &blocked.cq, &why), &why);
    opts.callback = blocked_try;
    opts.callback_ctx = &blocked;
    st = ts_write(&c->pair, 0, 0, 100, &opts);
    ts_until(atomic_load(&blocked.ended));
    for (int i = 0; i < 8; i++)
        if (blocked.rc[i] != PDX_EREACTOR)
            ts_fail(__FILE__, __LINE__, "blocking call %d from a callback: %s", i,
                    pdx_err_name(blocked.rc[i]));
    ts_finish(st);
    assert_int_equal(pdx_transfer_code(blocked.endless), PDX_QUEUED);
    ts_finish(ts_write(&c->pair, 0, 0, 100, NULL));
    pdx_transfer_cancel(blocked.endless);
    ts_ended(blocked.endless, PDX_CANCELLED, PDX_ECANCELLED);
    pdx_transfer_put(blocked.endless);
    pdx_cq_destroy(blocked.cq);
}

static void test_status_outlives_peer_region_and_engine(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;

    opts.id = 99;
    st = ts_write(&c->pair, 0, 0, 5000, &opts);
    assert_ptr_equal(pdx_transfer_get(st), st);
    pdx_transfer_put(st);
    ts_done(st);
    ts_mute_close(&c->mute);
    ts_pair_close(&c->pair);
    assert_int_equal(pdx_transfer_wait(st, 0), 0);
    assert_int_equal(pdx_transfer_code(st), PDX_DONE);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.id, 99);
    assert_int_equal(info.bytes_done, 5000);
    assert_true(pdx_transfer_text(st)[0] != '\0');
    pdx_transfer_cancel(st);
    pdx_transfer_put(st);
}

static const struct CMUnitTest cases[] = {
    CONF_PAIR(test_poll_goes_forward_to_done),
    CONF_PAIR(test_info_tells_what_happened),
    CONF_MUTE(test_wait_timeout_changes_nothing),
    CONF_MUTE(test_wait_all_needs_every_one),
    CONF_MUTE(test_wait_any_names_the_first_in_array_order),
    CONF_MUTE(test_wait_any_is_woken_by_each_position),
    CONF_MUTE(test_wait_wakes_all_its_threads),
    CONF_MUTE(test_callback_runs_once_on_success_and_on_failure),
    CONF_PAIR(test_callback_needs_no_handle),
    CONF_MUTE(test_callback_may_submit_cancel_and_put),
    CONF_MUTE(test_callback_must_not_block),
    CONF_MUTE(test_status_outlives_peer_region_and_engine),
};

CONF_MAIN(cases)
