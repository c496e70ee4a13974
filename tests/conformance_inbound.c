/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: notifications and what the target knows of transfers that are
 * directed at it.
 */
#include "conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static void incarnation_of(const struct pdx_engine *engine, uint8_t ret[PDX_INCARNATION_LEN])
{
    struct pdx_engine_info info;

    pdx_engine_info(engine, &info);
    memcpy(ret, info.incarnation, PDX_INCARNATION_LEN);
}

/* The record of transfer `id` of a at b, final. */
static void final_record(struct conf *c, uint64_t id, struct pdx_inbound *ret)
{
    uint8_t inc[PDX_INCARNATION_LEN];
    int rc;

    incarnation_of(c->pair.a, inc);
    rc = pdx_inbound_wait(c->pair.b, inc, id, TS_LONG, false, ret);
    if (rc < 0)
        ts_fail(__FILE__, __LINE__, "no final record of %llu: %s", (unsigned long long)id,
                pdx_err_name(rc));
    assert_int_equal(ret->id, id);
    assert_memory_equal(ret->incarnation, inc, sizeof inc);
    assert_string_equal(ret->peer, "alpha");
    assert_true(ret->began_ns > 0 && ret->began_ns <= ret->ended_ns);
}

#define ORDER_N   2000
#define ORDER_LEN ((size_t)512)

/* The target's hook looks at the bytes at the moment of the notification. */
struct order {
    uint8_t *mem;
    atomic_int told;
    atomic_int wrong;
};

static void order_look(void *ctx, const struct pdx_inbound *rec)
{
    struct order *o = ctx;
    char want[32];
    int n = snprintf(want, sizeof want, "slot %llu", (unsigned long long)rec->id);

    if (rec->code != PDX_INBOUND_DONE || rec->id >= ORDER_N || rec->bytes != ORDER_LEN ||
        rec->payload_len != (size_t)n || memcmp(rec->payload, want, rec->payload_len) != 0 ||
        ts_mismatch(o->mem + rec->id * ORDER_LEN, 0, ORDER_LEN, rec->id + 1) != ORDER_LEN)
        atomic_fetch_add(&o->wrong, 1);
    atomic_fetch_add(&o->told, 1);
}

static void order_open(struct conf *c, struct order *o)
{
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    memset(o, 0, sizeof *o);
    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    b.on_inbound = order_look;
    b.on_inbound_ctx = o;
    ts_pair_open(&c->pair, &a, &b, ORDER_N * ORDER_LEN);
    o->mem = c->pair.mb.p;
    for (uint64_t i = 0; i < ORDER_N; i++)
        ts_fill(c->pair.ma.p + i * ORDER_LEN, 0, ORDER_LEN, i + 1);
}

static void test_notification_never_overtakes_its_data(void **state)
{
    struct conf *c = *state;
    static struct order order;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status **st = calloc(ORDER_N, sizeof(struct pdx_transfer_status *));
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];
    char text[32];

    assert_non_null(st);
    order_open(c, &order);
    incarnation_of(c->pair.a, inc);
    for (uint64_t i = 0; i < ORDER_N; i++) {
        opts.id = i;
        opts.notify = text;
        opts.notify_len = (size_t)snprintf(text, sizeof text, "slot %llu", (unsigned long long)i);
        st[i] = ts_write(&c->pair, i * ORDER_LEN, i * ORDER_LEN, ORDER_LEN, &opts);
        memset(text, 'x', sizeof text); /* copied by the submission */
    }
    for (uint64_t i = 0; i < ORDER_N; i++) {
        ts_finish(st[i]);
        /* DONE at the initiator means that the target knows. */
        assert_int_equal(pdx_inbound_get(c->pair.b, inc, i, false, &rec), 0);
        assert_int_equal(rec.code, PDX_INBOUND_DONE);
    }
    ts_until(atomic_load(&order.told) == ORDER_N);
    assert_int_equal(atomic_load(&order.wrong), 0);
    free(st);
}

/* A reader that learns of DONE by asking finds the bytes, however early it asks. */
static void test_record_is_done_only_with_all_bytes(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];

    incarnation_of(c->pair.a, inc);
    opts.flags = PDX_SUBMIT_TRACK;
    for (uint64_t round = 1; round <= 50; round++) {
        ts_fill(c->pair.ma.p, 0, c->pair.ma.len, round);
        opts.id = round;
        st = ts_write(&c->pair, 0, 0, c->pair.ma.len, &opts);
        ts_until(pdx_inbound_get(c->pair.b, inc, round, false, &rec) == 0 &&
                 rec.code != PDX_INBOUND_IN_PROGRESS);
        assert_int_equal(rec.code, PDX_INBOUND_DONE);
        assert_int_equal(rec.bytes, c->pair.ma.len);
        assert_int_equal(rec.payload_len, 0);
        ts_assert_pattern(c->pair.mb.p, 0, c->pair.mb.len, round);
        ts_finish(st);
    }
}

static void test_untracked_transfer_leaves_no_record(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];

    incarnation_of(c->pair.a, inc);
    opts.id = 5;
    ts_finish(ts_write(&c->pair, 0, 0, 100, &opts));
    assert_int_equal(pdx_inbound_get(c->pair.b, inc, 5, false, &rec), PDX_ENOENT);
    assert_int_equal(ts_counters(c->pair.b).inbound_records, 0);
}

static void test_tracked_read_is_known_to_the_owner(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_inbound rec;

    opts.id = 6;
    opts.notify = "read it all";
    opts.notify_len = 11;
    ts_finish(ts_read(&c->pair, 0, 0, 300000, &opts));
    final_record(c, 6, &rec);
    assert_int_equal(rec.code, PDX_INBOUND_DONE);
    assert_int_equal(rec.bytes, 300000);
    assert_int_equal(rec.payload_len, 11);
    assert_memory_equal(rec.payload, "read it all", 11);
}

static void test_notification_alone_carries_its_payload(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_inbound rec;
    struct pdx_error why;
    uint8_t payload[PDX_NOTIFY_MAX + 1];
    const size_t lens[] = {0, 1, PDX_NOTIFY_MAX};

    for (size_t i = 0; i < 3; i++) {
        ts_fill(payload, 0, sizeof payload, i);
        opts.id = 1000 + i;
        ts_ok(pdx_notify(c->pair.peer, payload, lens[i], &opts, &st, &why), &why);
        ts_finish(st);
        final_record(c, 1000 + i, &rec);
        assert_int_equal(rec.code, PDX_INBOUND_DONE);
        assert_int_equal(rec.payload_len, lens[i]);
        ts_assert_pattern(rec.payload, 0, lens[i], i);
    }
    ts_refused(pdx_notify(c->pair.peer, payload, PDX_NOTIFY_MAX + 1, &opts, &st, &why), PDX_EINVAL,
               &why);
}

/* A record goes when it is forgotten; an id may be used again. */
static void test_record_can_be_forgotten(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];

    incarnation_of(c->pair.a, inc);
    opts.flags = PDX_SUBMIT_TRACK;
    opts.id = 3;
    for (uint64_t len = 1; len <= 3; len++) {
        ts_finish(ts_write(&c->pair, 0, 0, len, &opts));
        assert_int_equal(pdx_inbound_wait(c->pair.b, inc, 3, TS_LONG, true, &rec), 0);
        assert_int_equal(rec.bytes, len);
        assert_int_equal(pdx_inbound_get(c->pair.b, inc, 3, false, &rec), PDX_ENOENT);
        assert_int_equal(pdx_inbound_wait(c->pair.b, inc, 3, 5 * PDX_MSEC, false, &rec),
                         PDX_ETIMEDOUT);
    }
    assert_int_equal(ts_counters(c->pair.b).inbound_records, 0);
}

/* The initiator's cancel and its deadline are seen as ABORTED by the target, with the reason. */
static void abort_one(struct conf *c, uint64_t id, bool by_deadline)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    const int err = by_deadline ? PDX_EDEADLINE : PDX_ECANCELLED;
    struct pdx_transfer_status *st;
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];

    incarnation_of(c->pair.a, inc);
    opts.id = id;
    opts.flags = PDX_SUBMIT_TRACK;
    opts.deadline_ns = by_deadline ? 200 * PDX_MSEC : TS_LONG;
    st = conf_long_write(c, 50000, 1 << 20, &opts);
    ts_until(pdx_inbound_get(c->pair.b, inc, id, false, &rec) == 0);
    if (!by_deadline) {
        assert_int_equal(rec.code, PDX_INBOUND_IN_PROGRESS);
        pdx_transfer_cancel(st);
    }
    ts_ended(st, by_deadline ? PDX_DEADLINE : PDX_CANCELLED, err);
    pdx_transfer_put(st);
    final_record(c, id, &rec);
    assert_int_equal(rec.code, PDX_INBOUND_ABORTED);
    assert_int_equal(rec.err, err);
    assert_true(rec.text[0] != '\0');
}

/* With the shortest patience, so that the connection which carries the word is often broken. */
static void test_target_sees_aborts_with_their_reason(void **state)
{
    struct conf *c = *state;
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    a.drain_ns = PDX_MSEC;
    ts_pair_open(&c->pair, &a, &b, 1 << 20);
    for (uint64_t id = 1; id <= TS_SCALE(20, 5); id++)
        abort_one(c, id, false);
    abort_one(c, 100, true);
    ts_finish(ts_write(&c->pair, 0, 0, 100, NULL));
}

/* Transfer `id` of an initiator in another process, which dies in the middle of it. */
static void test_target_sees_the_death_of_the_initiator(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts opts = {.name = "prefill-7"};
    static uint8_t desc[TS_DESC_MAX];
    static char engine[2 * TS_DESC_MAX + 1];
    static char region[2 * TS_DESC_MAX + 1];
    struct pdx_inbound rec;

    ts_child_open(&c->child, &opts);
    ts_hex(desc, pdx_engine_desc(c->pair.a, desc, sizeof desc), engine);
    ts_hex(desc, pdx_region_export(c->pair.ra, desc, sizeof desc), region);
    ts_child_expect(&c->child, "ok", "connect %s %s", engine, region);
    ts_child_expect(&c->child, "ok", "drive w 1 65536 1048576 70");
    ts_until(pdx_inbound_get(c->pair.a, c->child.remote.incarnation, 70, false, &rec) == 0);
    assert_int_equal(rec.code, PDX_INBOUND_IN_PROGRESS);
    ts_child_kill(&c->child);
    assert_int_equal(
        pdx_inbound_wait(c->pair.a, c->child.remote.incarnation, 70, TS_LONG, false, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_FAILED);
    assert_true(rec.err < 0);
    assert_string_equal(rec.peer, "prefill-7");
    ts_text_has(rec.text, "prefill-7");
    ts_until(ts_counters(c->pair.a).sessions == 0);
    assert_int_equal(ts_counters(c->pair.a).sessions_lost, 1);
}

static void open_with_table(struct conf *c, uint32_t max, uint64_t age_ns)
{
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    b.max_inbound = max;
    b.inbound_age_ns = age_ns;
    ts_pair_open(&c->pair, &a, &b, 1 << 16);
}

static void test_records_are_bounded(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_engine_counters counters;
    struct pdx_inbound rec;
    uint8_t inc[PDX_INCARNATION_LEN];

    open_with_table(c, 64, 300 * PDX_SEC);
    incarnation_of(c->pair.a, inc);
    opts.flags = PDX_SUBMIT_TRACK;
    for (opts.id = 1; opts.id <= 1000; opts.id++)
        ts_finish(ts_write(&c->pair, 0, 0, 8, &opts));
    counters = ts_counters(c->pair.b);
    assert_int_equal(counters.inbound_records, 64);
    assert_int_equal(counters.inbound_evicted, 1000 - 64);
    final_record(c, 1000, &rec);
    assert_int_equal(rec.code, PDX_INBOUND_DONE);
    assert_int_equal(pdx_inbound_get(c->pair.b, inc, 1, false, &rec), PDX_ENOENT);
}

static void test_records_age(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;

    open_with_table(c, 1000, 30 * PDX_MSEC);
    opts.flags = PDX_SUBMIT_TRACK;
    for (opts.id = 1; opts.id <= 100; opts.id++)
        ts_finish(ts_write(&c->pair, 0, 0, 8, &opts));
    ts_until(ts_counters(c->pair.b).inbound_records == 0);
    assert_int_equal(ts_counters(c->pair.b).inbound_aged, 100);
    assert_int_equal(ts_counters(c->pair.b).inbound_evicted, 0);
}

static const struct CMUnitTest cases[] = {
    CONF_NONE(test_notification_never_overtakes_its_data),
    CONF_PAIR(test_record_is_done_only_with_all_bytes),
    CONF_PAIR(test_untracked_transfer_leaves_no_record),
    CONF_PAIR(test_tracked_read_is_known_to_the_owner),
    CONF_PAIR(test_notification_alone_carries_its_payload),
    CONF_PAIR(test_record_can_be_forgotten),
    CONF_NONE(test_target_sees_aborts_with_their_reason),
    CONF_PAIR(test_target_sees_the_death_of_the_initiator),
    CONF_NONE(test_records_are_bounded),
    CONF_NONE(test_records_age),
};

CONF_MAIN(cases)
