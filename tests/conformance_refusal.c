/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: what is refused, by whom and with which code. A refused
 * submission has started nothing and calls nothing back; a lie that only the
 * owner can see through ends one transfer and leaves the connection alone.
 */
#include "conformance.h"

#include <stdatomic.h>

#define UNTOUCHED 0x5a

static atomic_int refused_called;

static void refused_count(void *ctx, struct pdx_transfer_status *status)
{
    (void)ctx;
    (void)status;
    atomic_fetch_add(&refused_called, 1);
}

/* One write of 100 bytes that `spoil` has spoilt. */
struct attempt {
    struct pdx_peer *peer;
    struct pdx_region *local;
    struct pdx_remote remote;
    struct pdx_seg segs[3];
    size_t nsegs;
    struct pdx_submit_opts opts;
};

static const uint64_t region_len = 1 << 20;

static void spoil_nothing(struct attempt *t)
{
    (void)t;
}
static void spoil_local_end(struct attempt *t)
{
    t->segs[1].local_off = region_len - 99;
}
static void spoil_local_start(struct attempt *t)
{
    t->segs[1].local_off = region_len;
}
static void spoil_remote_end(struct attempt *t)
{
    t->segs[1].remote_off = region_len - 99;
}
static void spoil_wrap(struct attempt *t)
{
    t->segs[1].remote_off = UINT64_MAX - 50;
}
static void spoil_huge(struct attempt *t)
{
    t->segs[1].len = UINT64_MAX;
}
static void spoil_empty(struct attempt *t)
{
    t->segs[1].len = 0;
}
static void spoil_none(struct attempt *t)
{
    t->nsegs = 0;
}
static void spoil_forever(struct attempt *t)
{
    t->opts.deadline_ns = PDX_FOREVER;
}
static void spoil_deadline(struct attempt *t)
{
    t->opts.deadline_ns = 24 * 3600 * PDX_SEC + 1;
}
static void spoil_notify_len(struct attempt *t)
{
    static const uint8_t payload[PDX_NOTIFY_MAX + 1];

    t->opts.notify = payload;
    t->opts.notify_len = sizeof payload;
}
static void spoil_notify_null(struct attempt *t)
{
    t->opts.notify_len = 1;
}
static void spoil_level(struct attempt *t)
{
    t->opts.level = (enum pdx_level)7;
}
static void spoil_flags(struct attempt *t)
{
    t->opts.flags = 1u << 31;
}
static void spoil_rights(struct attempt *t)
{
    t->remote.rights = PDX_RIGHT_READ;
}
static void spoil_incarnation(struct attempt *t)
{
    t->remote.incarnation[3] ^= 1;
}
static void spoil_local(struct attempt *t)
{
    t->local = NULL;
}

static const struct {
    const char *what;
    void (*spoil)(struct attempt *t);
    int code;
    const char *text; /* a part of the sentence */
} refusals[] = {
    {"past the local end", spoil_local_end, PDX_ERANGE, "1"},
    {"behind the local end", spoil_local_start, PDX_ERANGE, "1"},
    {"past the remote end", spoil_remote_end, PDX_ERANGE, "1"},
    {"offset that wraps", spoil_wrap, PDX_ERANGE, "1"},
    {"huge length", spoil_huge, PDX_ERANGE, "1"},
    {"empty entry", spoil_empty, PDX_EINVAL, "1"},
    {"no entry", spoil_none, PDX_EINVAL, ""},
    {"deadline of for ever", spoil_forever, PDX_EINVAL, "deadline"},
    {"deadline of more than a day", spoil_deadline, PDX_EINVAL, "deadline"},
    {"long notification", spoil_notify_len, PDX_EINVAL, "1024"},
    {"notification at NULL", spoil_notify_null, PDX_EINVAL, "notif"},
    {"unknown level", spoil_level, PDX_EINVAL, "level"},
    {"unknown flags", spoil_flags, PDX_EINVAL, "flag"},
    {"right not granted", spoil_rights, PDX_EACCESS, "write"},
    {"other incarnation", spoil_incarnation, PDX_ESTALE, ""},
    {"no region", spoil_local, PDX_EINVAL, "region"},
};

static void attempt_make(struct attempt *t, struct conf *c, void (*spoil)(struct attempt *t))
{
    *t = (struct attempt){.peer = c->pair.peer,
                          .local = c->pair.ra,
                          .remote = c->pair.remote,
                          .segs = {{0, 0, 100}, {200, 300, 100}, {500, 600, 100}},
                          .nsegs = 3,
                          .opts = PDX_SUBMIT_OPTS_INIT};
    t->opts.callback = refused_count;
    spoil(t);
}

static void refuse_one(struct conf *c, size_t i)
{
    struct pdx_transfer_status *const poison = (void *)(uintptr_t)0x10;
    struct pdx_transfer_status *st = poison;
    struct pdx_engine_counters before = ts_counters(c->pair.a);
    struct pdx_engine_counters after;
    struct pdx_error why;
    struct attempt t;
    int rc;

    attempt_make(&t, c, refusals[i].spoil);
    rc = pdx_write(t.peer, t.local, &t.remote, t.segs, t.nsegs, &t.opts, &st, &why);
    /* A sum that overflows may be told from a range that is left. */
    if (rc != refusals[i].code && !(refusals[i].code == PDX_ERANGE && rc == PDX_EOVERFLOW))
        ts_fail(__FILE__, __LINE__, "%s: %s: %s", refusals[i].what, pdx_err_name(rc),
                rc < 0 ? why.text : "accepted");
    ts_refused(rc, rc, &why);
    ts_text_has(why.text, refusals[i].text);
    assert_ptr_equal(st, poison);
    after = ts_counters(c->pair.a);
    assert_int_equal(after.transfers_submitted, before.transfers_submitted);
    assert_int_equal(after.transfers_refused, before.transfers_refused + 1);
    /* The error is optional. */
    assert_int_equal(pdx_write(t.peer, t.local, &t.remote, t.segs, t.nsegs, &t.opts, &st, NULL),
                     rc);
}

static void test_refused_submission_starts_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st;
    struct pdx_region_info info;
    struct pdx_error why;
    struct attempt t;

    atomic_store(&refused_called, 0);
    memset(c->pair.mb.p, UNTOUCHED, c->pair.mb.len);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        refuse_one(c, i);
    pdx_region_info(c->pair.ra, &info);
    assert_int_equal(info.users, 0);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    assert_int_equal(atomic_load(&refused_called), 0);
    ts_assert_bytes(c->pair.mb.p + 1, UNTOUCHED, c->pair.mb.len - 1);
    /* The same without the mistake is fine. */
    attempt_make(&t, c, spoil_nothing);
    ts_ok(pdx_write(t.peer, t.local, &t.remote, t.segs, t.nsegs, &t.opts, &st, &why), &why);
    ts_finish(st);
    ts_until(atomic_load(&refused_called) == 1);
}

/* A job of 4 pages that `spoil` has spoilt. */
struct job_attempt {
    struct pdx_pair pair;
    int32_t local[4];
    int32_t remote[4];
    struct pdx_slice slice;
    struct pdx_job job;
};

static void job_spoil_nothing(struct job_attempt *t)
{
    (void)t;
}
static void job_spoil_negative(struct job_attempt *t)
{
    t->local[2] = -1;
}
static void job_spoil_index(struct job_attempt *t)
{
    t->remote[2] = 100;
}
static void job_spoil_slice(struct job_attempt *t)
{
    t->slice.len = 901;
}
static void job_spoil_row(struct job_attempt *t)
{
    t->slice.len = 1;
    t->slice.rows = 0;
}
static void job_spoil_pitch(struct job_attempt *t)
{
    t->slice = (struct pdx_slice){0, 0, 100, 2, 99, 100};
}
static void job_spoil_rows(struct job_attempt *t)
{
    t->slice = (struct pdx_slice){0, 0, 100, 10, 200, 100};
}
static void job_spoil_product(struct job_attempt *t)
{
    t->slice = (struct pdx_slice){0, 0, 1, UINT64_MAX, UINT64_MAX, 1};
}
static void job_spoil_pairs(struct job_attempt *t)
{
    t->job.npairs = 0;
}
static void job_spoil_items(struct job_attempt *t)
{
    t->job.items.n = 0;
}
static void job_spoil_item_len(struct job_attempt *t)
{
    t->job.nslices = 0;
    t->pair.remote_item_len = 999;
}
static void job_spoil_base(struct job_attempt *t)
{
    t->pair.local_base = region_len - 99999;
}
static void job_spoil_tensor(struct job_attempt *t)
{
    t->pair.remote_len = region_len + 1;
}
static void job_spoil_empty_slice(struct job_attempt *t)
{
    t->slice.len = 0;
}
static void job_spoil_region(struct job_attempt *t)
{
    t->pair.local = NULL;
}

static const struct {
    const char *what;
    void (*spoil)(struct job_attempt *t);
    int code;
} job_refusals[] = {
    {"negative index", job_spoil_negative, PDX_ERANGE},
    {"index past the tensor", job_spoil_index, PDX_ERANGE},
    {"slice longer than the item", job_spoil_slice, PDX_ERANGE},
    {"no rows", job_spoil_row, PDX_EINVAL},
    {"pitch below the length", job_spoil_pitch, PDX_EINVAL},
    {"rows leave the item", job_spoil_rows, PDX_ERANGE},
    {"product that wraps", job_spoil_product, PDX_ERANGE},
    {"no pairs", job_spoil_pairs, PDX_EINVAL},
    {"no items", job_spoil_items, PDX_EINVAL},
    {"whole items of two lengths", job_spoil_item_len, PDX_EINVAL},
    {"tensor leaves the local region", job_spoil_base, PDX_ERANGE},
    {"tensor leaves the remote region", job_spoil_tensor, PDX_ERANGE},
    {"empty slice", job_spoil_empty_slice, PDX_EINVAL},
    {"no region", job_spoil_region, PDX_EINVAL},
};

static void job_make(struct job_attempt *t, struct conf *c, void (*spoil)(struct job_attempt *t))
{
    *t = (struct job_attempt){.pair = {.local = c->pair.ra,
                                       .remote = &c->pair.remote,
                                       .local_item_len = 1000,
                                       .remote_item_len = 1000,
                                       .local_len = 100000,
                                       .remote_len = 100000},
                              .local = {1, 2, 3, 99},
                              .remote = {4, 3, 2, 98},
                              .slice = {100, 0, 900, 1, 0, 0}};
    t->job = (struct pdx_job){.pairs = &t->pair,
                              .npairs = 1,
                              .items = {.local = t->local, .remote = t->remote, .n = 4},
                              .slices = &t->slice,
                              .nslices = 1};
    spoil(t);
}

static void test_refused_job_starts_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st = NULL;
    struct pdx_error why;
    struct job_attempt t;
    int rc;

    atomic_store(&refused_called, 0);
    opts.callback = refused_count;
    memset(c->pair.mb.p, UNTOUCHED, c->pair.mb.len);
    for (size_t i = 0; i < sizeof job_refusals / sizeof job_refusals[0]; i++) {
        job_make(&t, c, job_refusals[i].spoil);
        rc = pdx_submit(c->pair.peer, PDX_WRITE, &t.job, &opts, &st, &why);
        if (rc != job_refusals[i].code &&
            !(job_refusals[i].code == PDX_ERANGE && rc == PDX_EOVERFLOW))
            ts_fail(__FILE__, __LINE__, "%s: %s: %s", job_refusals[i].what, pdx_err_name(rc),
                    rc < 0 ? why.text : "accepted");
        ts_refused(rc, rc, &why);
        assert_null(st);
    }
    assert_int_equal(ts_counters(c->pair.a).transfers_submitted, 0);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    ts_assert_bytes(c->pair.mb.p + 1, UNTOUCHED, c->pair.mb.len - 1);
    assert_int_equal(atomic_load(&refused_called), 0);
    job_make(&t, c, job_spoil_nothing);
    ts_ok(pdx_submit(c->pair.peer, PDX_WRITE, &t.job, NULL, &st, &why), &why);
    ts_finish(st);
    ts_refused(pdx_submit(c->pair.peer, (enum pdx_op)3, &t.job, NULL, &st, &why), PDX_EINVAL, &why);
}

static void test_region_of_another_engine_is_refused(void **state)
{
    struct conf *c = *state;
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_error why;

    ts_refused(pdx_write(c->pair.peer, c->pair.rb, &c->pair.remote, &seg, 1, NULL, NULL, &why),
               PDX_EINVAL, &why);
}

/* Lies that only the owner can see through. */
static void forge_key(struct pdx_remote *r)
{
    r->key[7] ^= 0x40;
}
static void forge_generation(struct pdx_remote *r)
{
    r->generation += 2;
}
static void forge_id(struct pdx_remote *r)
{
    r->id += 1000;
}
static void forge_len(struct pdx_remote *r)
{
    r->len += 4096;
}
static void forge_wide(struct pdx_remote *r)
{
    r->len = UINT64_MAX;
}

static const struct {
    const char *what;
    void (*forge)(struct pdx_remote *r);
    uint64_t off;
    enum pdx_transfer_code code;
    int err;
} forgeries[] = {
    {"key", forge_key, 0, PDX_FAILED, PDX_EACCESS},
    {"generation", forge_generation, 0, PDX_STALE, PDX_ESTALE},
    {"number", forge_id, 0, PDX_STALE, PDX_ESTALE},
    {"length", forge_len, (1 << 20) - 50, PDX_FAILED, PDX_ERANGE},
    {"endless length", forge_wide, UINT64_MAX - 200, PDX_FAILED, PDX_ERANGE},
};

static void forge_one(struct conf *c, size_t i, bool read)
{
    struct pdx_remote remote = c->pair.remote;
    struct pdx_seg seg = {0, forgeries[i].off, 100};
    struct pdx_transfer_status *st;
    struct pdx_error why;
    uint64_t before = ts_counters(c->pair.b).refused_frames;

    forgeries[i].forge(&remote);
    ts_ok(
        (read ? pdx_read : pdx_write)(c->pair.peer, c->pair.ra, &remote, &seg, 1, NULL, &st, &why),
        &why);
    ts_ended(st, forgeries[i].code, forgeries[i].err);
    (void)pdx_transfer_error(st, &why);
    assert_int_equal(why.cost, PDX_COST_TRANSFER);
    pdx_transfer_put(st);
    assert_int_equal(ts_counters(c->pair.b).refused_frames, before + 1);
    conf_assert_peer_well(c);
}

static void test_owner_refuses_forged_remotes(void **state)
{
    struct conf *c = *state;

    memset(c->pair.ma.p, 1, c->pair.ma.len);
    memset(c->pair.mb.p, UNTOUCHED, c->pair.mb.len);
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        forge_one(c, i, false);
        forge_one(c, i, true);
    }
    ts_assert_bytes(c->pair.mb.p + 1, UNTOUCHED, c->pair.mb.len - 1);
    ts_assert_bytes(c->pair.ma.p, 1, c->pair.ma.len);
}

/* The rights in the value are the initiator's courtesy; the owner has its own. */
static void test_owner_refuses_rights_it_has_not_granted(void **state)
{
    struct conf *c = *state;
    const uint32_t granted[] = {PDX_RIGHT_READ, PDX_RIGHT_WRITE, PDX_RIGHT_NONE};
    struct pdx_error why;

    for (size_t i = 0; i < 3; i++) {
        ts_ok(pdx_region_deregister(c->pair.rb, 0, &why), &why);
        c->pair.rb = ts_region(c->pair.b, &c->pair.mb, granted[i]);
        c->pair.remote = ts_remote(c->pair.rb);
        assert_int_equal(c->pair.remote.rights, granted[i]);
        c->pair.remote.rights = PDX_RIGHT_ALL;
        for (int read = 0; read < 2; read++) {
            struct pdx_transfer_status *st = (read ? ts_read : ts_write)(&c->pair, 0, 0, 100, NULL);

            if (granted[i] == (uint32_t)(read ? PDX_RIGHT_READ : PDX_RIGHT_WRITE))
                ts_done(st);
            else
                ts_ended(st, PDX_FAILED, PDX_EACCESS);
            pdx_transfer_put(st);
        }
    }
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
    assert_int_equal(ts_counters(c->pair.b).refused_frames, 4);
}

/* One bad transfer among good ones on the same connection. */
static void test_refusal_hits_one_transfer_only(void **state)
{
    struct conf *c = *state;
    struct pdx_remote forged = c->pair.remote;
    struct pdx_transfer_status *good[20];
    struct pdx_transfer_status *bad[20];
    struct pdx_seg seg = {0, 0, 30000};
    struct pdx_error why;

    forge_key(&forged);
    for (int i = 0; i < 20; i++) {
        good[i] = ts_write(&c->pair, 0, 0, 30000, NULL);
        ts_ok(pdx_write(c->pair.peer, c->pair.ra, &forged, &seg, 1, NULL, &bad[i], &why), &why);
    }
    for (int i = 0; i < 20; i++) {
        ts_finish(good[i]);
        ts_ended(bad[i], PDX_FAILED, PDX_EACCESS);
        pdx_transfer_put(bad[i]);
    }
    conf_assert_peer_well(c);
}

static const struct CMUnitTest cases[] = {
    CONF_PAIR(test_refused_submission_starts_nothing),
    CONF_PAIR(test_refused_job_starts_nothing),
    CONF_PAIR(test_region_of_another_engine_is_refused),
    CONF_PAIR(test_owner_refuses_forged_remotes),
    CONF_PAIR(test_owner_refuses_rights_it_has_not_granted),
    CONF_PAIR(test_refusal_hits_one_transfer_only),
};

CONF_MAIN(cases)
