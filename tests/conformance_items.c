/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: ranges of a job's pairs, items that take turns in a buffer, and
 * items that a list names twice.
 */
#include "trial.h"

#define PARTS    5
#define PART_LEN ((size_t)20000)

/* A job whose pairs lie in a region each, and have items of 100, 200, ... bytes: two that every
 * submission without its own moves. */
struct parts {
    struct pdx_region *local[PARTS];
    struct pdx_region *target[PARTS];
    struct pdx_remote remote[PARTS];
    struct pdx_pair pairs[PARTS];
    struct pdx_job job;
};

static const int32_t parts_local[] = {3, 1};
static const int32_t parts_remote[] = {0, 7};

static void parts_open(struct parts *s, struct conf *c)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < PARTS; i++) {
        struct ts_mem local = {c->pair.ma.p + i * PART_LEN, PART_LEN};
        struct ts_mem target = {c->pair.mb.p + i * PART_LEN, PART_LEN};

        s->local[i] = ts_region(c->pair.a, &local, PDX_RIGHT_ALL);
        s->target[i] = ts_region(c->pair.b, &target, PDX_RIGHT_ALL);
        s->remote[i] = ts_remote(s->target[i]);
        s->pairs[i] = (struct pdx_pair){.local = s->local[i],
                                        .remote = &s->remote[i],
                                        .local_item_len = 100 * (i + 1),
                                        .remote_item_len = 100 * (i + 1)};
    }
    s->job = (struct pdx_job){.pairs = s->pairs,
                              .npairs = PARTS,
                              .items = {.local = parts_local, .remote = parts_remote, .n = 2}};
}

static void parts_close(struct parts *s)
{
    struct pdx_error why;

    for (size_t i = 0; i < PARTS; i++) {
        ts_ok(pdx_region_deregister(s->local[i], TS_LONG, &why), &why);
        ts_ok(pdx_region_deregister(s->target[i], TS_LONG, &why), &why);
    }
}

/* What went through the local region of a pair so far. */
static uint64_t parts_moved(const struct parts *s, enum pdx_op op, size_t pair)
{
    struct pdx_region_info info;

    pdx_region_info(s->local[pair], &info);
    return op == PDX_WRITE ? info.bytes_out : info.bytes_in;
}

/* One submission with `items`, of which pairs [first, first + n) are expected to move. */
static void parts_try(struct parts *s, struct conf *c, struct pdx_prepared *prepared,
                      enum pdx_op op, const struct pdx_items *items, size_t first, size_t n)
{
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;
    uint64_t before[PARTS], bytes = 0;
    struct pdx_error why;
    struct trial t;

    trial_open(&t, c, op, first);
    for (size_t i = 0; i < PARTS; i++) {
        before[i] = parts_moved(s, op, i);
        for (size_t k = 0; k < 2 && i >= first && i < first + n; k++) {
            uint64_t len = 100 * (i + 1);

            trial_move(&t, i * PART_LEN + (uint64_t)parts_local[k] * len,
                       i * PART_LEN + (uint64_t)parts_remote[k] * len, len);
            bytes += len;
        }
    }
    ts_ok(pdx_submit_prepared(prepared, items, NULL, &st, &why), &why);
    ts_done(st);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.bytes, bytes);
    assert_int_equal(info.bytes_done, bytes);
    pdx_transfer_put(st);
    for (size_t i = 0; i < PARTS; i++)
        assert_int_equal(parts_moved(s, op, i) - before[i],
                         i >= first && i < first + n ? 200 * (i + 1) : 0);
    trial_close(&t, "a range of pairs", first);
}

/* With the job's items and with its own, a submission moves the pairs that it names. */
static void test_range_of_pairs_finds_its_regions(void **state)
{
    struct conf *c = *state;
    struct pdx_items own = {.local = parts_local, .remote = parts_remote, .n = 2};
    struct pdx_items none = {0};
    struct pdx_prepared *prepared;
    struct pdx_error why;
    struct parts s;

    parts_open(&s, c);
    for (enum pdx_op op = PDX_WRITE; op <= PDX_READ; op++) {
        s.job.items.first_pair = 1;
        s.job.items.npairs = 2;
        ts_ok(pdx_prepare(c->pair.peer, op, &s.job, &prepared, &why), &why);
        parts_try(&s, c, prepared, op, NULL, 1, 2);
        parts_try(&s, c, prepared, op, &none, 1, 2);
        own.first_pair = own.npairs = 0;
        parts_try(&s, c, prepared, op, &own, 0, PARTS);
        for (uint32_t first = 0; first < PARTS; first++) {
            none.first_pair = own.first_pair = first;
            none.npairs = own.npairs = PARTS - first > 2 ? 2 : PARTS - first;
            parts_try(&s, c, prepared, op, &none, first, none.npairs);
            parts_try(&s, c, prepared, op, &own, first, own.npairs);
        }
        none = (struct pdx_items){0};
        pdx_prepared_put(prepared);
    }
    parts_close(&s);
}

static void test_range_outside_the_job_is_refused(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st;
    struct pdx_prepared *prepared;
    struct pdx_items items = {.first_pair = 3, .npairs = 3};
    struct pdx_submission sub = {.items = items};
    struct pdx_error why;
    struct parts s;

    parts_open(&s, c);
    ts_ok(pdx_prepare(c->pair.peer, PDX_WRITE, &s.job, &prepared, &why), &why);
    ts_refused(pdx_submit_prepared(prepared, &items, NULL, &st, &why), PDX_EINVAL, &why);
    ts_text_has(why.text, "first_pair 3 and npairs 3 leave the job's 5 pairs");
    sub.prepared = prepared;
    ts_refused(pdx_submit_many(&sub, 1, &st, &why), PDX_EINVAL, &why);
    items.npairs = 0;
    ts_refused(pdx_submit_prepared(prepared, &items, NULL, &st, &why), PDX_EINVAL, &why);
    pdx_prepared_put(prepared);
    s.job.items.first_pair = 4;
    s.job.items.npairs = UINT32_MAX;
    ts_refused(pdx_submit(c->pair.peer, PDX_WRITE, &s.job, NULL, &st, &why), PDX_EINVAL, &why);
    ts_refused(pdx_prepare(c->pair.peer, PDX_WRITE, &s.job, &prepared, &why), PDX_EINVAL, &why);
    s.job.items.npairs = 1;
    ts_ok(pdx_submit(c->pair.peer, PDX_WRITE, &s.job, NULL, &st, &why), &why);
    ts_finish(st);
    assert_int_equal(parts_moved(&s, PDX_WRITE, 4), 1000);
    assert_int_equal(parts_moved(&s, PDX_WRITE, 3), 0);
    parts_close(&s);
}

/* Items of three tensors take turns in one buffer: all of them move, the last ones too, which are
 * the end of the buffer. */
static void test_items_that_take_turns_in_a_buffer(void **state)
{
    struct conf *c = *state;
    const uint64_t len = c->pair.ma.len / 256, each = len / 3; /* a bit is left of each turn */
    const struct pdx_slice slice = {0, 0, each, 1, 0, 0};
    struct pdx_transfer_status *st;
    struct pdx_pair pairs[3];
    int32_t items[256];
    struct pdx_error why;
    struct trial t;

    for (int32_t i = 0; i < 256; i++)
        items[i] = i;
    for (uint64_t i = 0; i < 3; i++)
        pairs[i] = (struct pdx_pair){.local = c->pair.ra,
                                     .remote = &c->pair.remote,
                                     .local_base = i * each,
                                     .remote_base = (2 - i) * each,
                                     .local_item_len = len,
                                     .remote_item_len = len,
                                     .local_len = 255 * len + each};
    const struct pdx_job job = {.pairs = pairs,
                                .npairs = 3,
                                .items = {.local = items, .remote = items, .n = 256},
                                .slices = &slice,
                                .nslices = 1};
    trial_open(&t, c, PDX_WRITE, 1);
    for (uint64_t i = 0; i < 3 * 256; i++)
        trial_move(&t, i / 3 * len + i % 3 * each, i / 3 * len + (2 - i % 3) * each, each);
    ts_ok(pdx_submit(c->pair.peer, PDX_WRITE, &job, NULL, &st, &why), &why);
    ts_finish(st);
    trial_close(&t, "items in turns", 1);
    pairs[1].local_len--; /* now a byte of the last one is missing */
    ts_refused(pdx_submit(c->pair.peer, PDX_WRITE, &job, NULL, &st, &why), PDX_ERANGE, &why);
    ts_text_has(why.text, "item 255 of 256: local 255 must be in [0, 255)");
}

/* Once to a place is enough, from one place to several is fine. */
static void test_items_written_twice_are_refused(void **state)
{
    struct conf *c = *state;
    const int32_t twice[] = {5, 6, 7, 2, 6}, once[] = {9, 8, 1, 0, 4};
    struct pdx_items good = {.local = twice, .remote = once, .n = 5};
    struct pdx_items bad = {.local = once, .remote = twice, .n = 5};
    struct pdx_submission subs[2] = {{.items = good}, {.items = bad}};
    struct pdx_transfer_status *st[2];
    struct pdx_prepared *prepared;
    struct pdx_error why;
    struct parts s;
    struct trial t;

    parts_open(&s, c);
    for (enum pdx_op op = PDX_WRITE; op <= PDX_READ; op++) {
        const char *text = op == PDX_WRITE ? "remote item 6 would be written twice: it is at "
                                             "positions 1 and 4 of the list"
                                           : "local item 6 would be written twice: it is at "
                                             "positions 1 and 4 of the list";

        if (op == PDX_READ) {
            subs[0].items = bad;
            subs[1].items = good;
        }
        trial_open(&t, c, op, 1);
        s.job.items = subs[1].items;
        ts_refused(pdx_submit(c->pair.peer, op, &s.job, NULL, st, &why), PDX_EINVAL, &why);
        ts_text_has(why.text, text);
        ts_refused(pdx_prepare(c->pair.peer, op, &s.job, &prepared, &why), PDX_EINVAL, &why);
        ts_text_has(why.text, text);
        s.job.items.n = 0;
        ts_ok(pdx_prepare(c->pair.peer, op, &s.job, &prepared, &why), &why);
        subs[0].prepared = subs[1].prepared = prepared;
        ts_refused(pdx_submit_prepared(prepared, &subs[1].items, NULL, st, &why), PDX_EINVAL, &why);
        ts_text_has(why.text, text);
        ts_refused(pdx_submit_many(subs, 2, st, &why), PDX_EINVAL, &why);
        ts_text_has(why.text, "submission 1");
        trial_close(&t, "nothing", 0);
        ts_ok(pdx_submit_prepared(prepared, &subs[0].items, NULL, st, &why), &why);
        ts_finish(st[0]);
        pdx_prepared_put(prepared);
    }
    parts_close(&s);
}

static const struct CMUnitTest cases[] = {
    CONF_PAIR(test_range_of_pairs_finds_its_regions),
    CONF_PAIR(test_range_outside_the_job_is_refused),
    CONF_PAIR(test_items_that_take_turns_in_a_buffer),
    CONF_PAIR(test_items_written_twice_are_refused),
};

CONF_MAIN(cases)
