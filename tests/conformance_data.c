/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the right bytes at the right place and nowhere else: sizes,
 * prepared and grouped submissions, levels, far offsets. ts_pair_close looks at
 * the canaries around regions.
 */
#include "conformance.h"

#define UNTOUCHED 0x5a
#define MARGIN    ((size_t)4096)

/* One contiguous transfer at odd offsets, and the bytes around it. */
static void move_one(struct conf *c, size_t len, bool read)
{
    uint8_t *from = read ? c->pair.mb.p : c->pair.ma.p;
    uint8_t *to = read ? c->pair.ma.p : c->pair.mb.p;
    const size_t src = 3;
    const size_t dst = MARGIN + 13;

    ts_fill(from + src, 0, len, len);
    memset(to, UNTOUCHED, dst + len + MARGIN);
    if (read)
        ts_finish(ts_read(&c->pair, dst, src, len, NULL));
    else
        ts_finish(ts_write(&c->pair, src, dst, len, NULL));
    ts_assert_pattern(to + dst, 0, len, len);
    ts_assert_bytes(to, UNTOUCHED, dst);
    ts_assert_bytes(to + dst + len, UNTOUCHED, MARGIN);
}

static const size_t size_classes[] = {1, 63, 64, 4095, 65536, (1 << 20) + 1, 16 << 20};

static void test_write_moves_every_size(void **state)
{
    struct conf *c = *state;

    conf_open_pair(c, (16 << 20) + 4 * MARGIN);
    for (size_t i = 0; i < sizeof size_classes / sizeof size_classes[0]; i++)
        move_one(c, size_classes[i], false);
}

static void test_read_moves_every_size(void **state)
{
    struct conf *c = *state;

    conf_open_pair(c, (16 << 20) + 4 * MARGIN);
    for (size_t i = 0; i < sizeof size_classes / sizeof size_classes[0]; i++)
        move_one(c, size_classes[i], true);
}

static void test_whole_region_moves_both_ways(void **state)
{
    struct conf *c = *state;

    ts_fill(c->pair.ma.p, 0, c->pair.ma.len, 1);
    ts_finish(ts_write(&c->pair, 0, 0, c->pair.ma.len, NULL));
    ts_assert_pattern(c->pair.mb.p, 0, c->pair.mb.len, 1);
    ts_fill(c->pair.mb.p, 0, c->pair.mb.len, 2);
    ts_finish(ts_read(&c->pair, 0, 0, c->pair.ma.len, NULL));
    ts_assert_pattern(c->pair.ma.p, 0, c->pair.ma.len, 2);
}

#define PAGES 64
#define PAGE  ((size_t)1000)

static struct pdx_prepared *prepare_pages(struct conf *c, const struct pdx_items *items)
{
    const struct pdx_pair pair = {.local = c->pair.ra,
                                  .remote = &c->pair.remote,
                                  .local_item_len = PAGE,
                                  .remote_item_len = PAGE,
                                  .local_len = PAGES * PAGE,
                                  .remote_len = PAGES * PAGE};
    const struct pdx_job job = {.pairs = &pair, .npairs = 1, .items = *items};
    struct pdx_prepared *prepared = NULL;
    struct pdx_error why;

    ts_ok(pdx_prepare(c->pair.peer, PDX_WRITE, &job, &prepared, &why), &why);
    return prepared;
}

static void test_prepared_is_submitted_a_thousand_times(void **state)
{
    struct conf *c = *state;
    int32_t local[PAGES];
    int32_t remote[PAGES];
    struct pdx_prepared *prepared;
    struct pdx_transfer_status *st;
    struct pdx_error why;

    for (int32_t i = 0; i < PAGES; i++) {
        local[i] = i;
        remote[i] = (i * 37 + 5) % PAGES;
    }
    prepared = prepare_pages(c, &(struct pdx_items){.local = local, .remote = remote, .n = PAGES});
    for (uint64_t round = 0; round < 1000; round++) {
        ts_fill(c->pair.ma.p, 0, PAGES * PAGE, round);
        ts_ok(pdx_submit_prepared(prepared, NULL, NULL, &st, &why), &why);
        ts_finish(st);
        for (size_t i = 0; i < PAGES; i++)
            ts_assert_pattern(c->pair.mb.p + (size_t)remote[i] * PAGE, i * PAGE, PAGE, round);
    }
    pdx_prepared_put(prepared);
}

static void test_prepared_takes_items_per_submission(void **state)
{
    struct conf *c = *state;
    struct pdx_prepared *prepared =
        prepare_pages(c, &(struct pdx_items){.local = NULL, .remote = NULL, .n = 0});
    struct pdx_transfer_status *st[PAGES];
    struct pdx_error why;

    ts_fill(c->pair.ma.p, 0, PAGES * PAGE, 3);
    ts_refused(pdx_submit_prepared(prepared, NULL, NULL, &st[0], &why), PDX_EINVAL, &why);
    for (int32_t i = 0; i < PAGES; i++) {
        int32_t remote = PAGES - 1 - i;

        ts_ok(pdx_submit_prepared(prepared,
                                  &(struct pdx_items){.local = &i, .remote = &remote, .n = 1}, NULL,
                                  &st[i], &why),
              &why);
    }
    pdx_prepared_put(prepared); /* transfers under way keep what they need */
    for (size_t i = 0; i < PAGES; i++) {
        ts_finish(st[i]);
        ts_assert_pattern(c->pair.mb.p + (PAGES - 1 - i) * PAGE, i * PAGE, PAGE, 3);
    }
}

/* Entry 3 of 5 is wrong, then right. */
static void test_submit_many_is_all_or_nothing(void **state)
{
    struct conf *c = *state;
    struct pdx_prepared *prepared =
        prepare_pages(c, &(struct pdx_items){.local = NULL, .remote = NULL, .n = 0});
    int32_t index[5] = {0, 1, 2, PAGES, 4};
    struct pdx_transfer_status *const poison = (void *)(uintptr_t)0x10;
    struct pdx_transfer_status *st[5] = {poison, poison, poison, poison, poison};
    struct pdx_submission subs[5];
    struct pdx_engine_counters before = ts_counters(c->pair.a);
    struct pdx_error why;

    ts_fill(c->pair.ma.p, 0, c->pair.ma.len, 9);
    memset(c->pair.mb.p, UNTOUCHED, c->pair.mb.len);
    for (int i = 0; i < 5; i++)
        subs[i] = (struct pdx_submission){
            .prepared = prepared, .items = {.local = &index[i], .remote = &index[i], .n = 1}};
    ts_refused(pdx_submit_many(subs, 5, st, &why), PDX_ERANGE, &why);
    ts_text_has(why.text, "3");
    assert_ptr_equal(st[0], poison);
    assert_int_equal(ts_counters(c->pair.a).transfers_submitted, before.transfers_submitted);
    /* A full round trip later still nothing of it has arrived. */
    ts_finish(ts_write(&c->pair, 0, c->pair.mb.len - 1, 1, NULL));
    ts_assert_bytes(c->pair.mb.p, UNTOUCHED, c->pair.mb.len - 1);
    index[3] = 3;
    subs[1].prepared = NULL;
    ts_ok(pdx_submit_many(subs, 5, st, &why), &why);
    assert_null(st[1]);
    assert_int_equal(pdx_transfer_wait_all(st, 5, TS_LONG), 0);
    for (size_t i = 0; i < 5; i++) {
        if (i == 1) {
            ts_assert_bytes(c->pair.mb.p + PAGE, UNTOUCHED, PAGE);
            continue;
        }
        ts_finish(st[i]);
        ts_assert_pattern(c->pair.mb.p + i * PAGE, i * PAGE, PAGE, 9);
    }
    pdx_prepared_put(prepared);
}

/* The queue has places for some of the entries only: none is started, no place stays taken. */
static void test_submit_many_gives_reserved_places_back(void **state)
{
    struct conf *c = *state;
    const int32_t zero = 0;
    struct pdx_prepared *prepared =
        prepare_pages(c, &(struct pdx_items){.local = &zero, .remote = &zero, .n = 1});
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_submission subs[5];
    struct pdx_completion done[4];
    struct pdx_error why;

    ts_ok(pdx_cq_create(c->pair.a, 4, &opts.cq, &why), &why);
    for (int i = 0; i < 5; i++)
        subs[i] = (struct pdx_submission){.prepared = prepared, .opts = &opts};
    ts_refused(pdx_submit_many(subs, 5, NULL, &why), PDX_EAGAIN, &why);
    ts_ok(pdx_submit_many(subs, 4, NULL, &why), &why);
    for (int n = 0; n < 4;) {
        int got = pdx_cq_wait(opts.cq, done, 4, TS_LONG);

        assert_true(got > 0);
        n += got;
    }
    pdx_cq_destroy(opts.cq);
    pdx_prepared_put(prepared);
}

static void test_local_level_frees_the_source(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    const size_t len = c->pair.ma.len;

    opts.level = PDX_LEVEL_LOCAL;
    for (uint64_t round = 1; round <= 20; round++) {
        ts_fill(c->pair.ma.p, 0, len, round);
        ts_finish(ts_write(&c->pair, 0, 0, len, &opts));
        memset(c->pair.ma.p, UNTOUCHED, len);
        ts_until(ts_counters(c->pair.b).bytes_in_written == round * len);
        ts_sync(c->pair.b);
        ts_assert_pattern(c->pair.mb.p, 0, len, round);
    }
}

/* 6 GiB of address space on both sides, of which a few pages are used. */
static void test_offsets_beyond_4_gib(void **state)
{
    struct conf *c = *state;
    const uint64_t gib4 = UINT64_C(4) << 30;
    const uint64_t offs[] = {gib4 - 5000, gib4 + 123457, (UINT64_C(6) << 30) - 10000};

    conf_open_pair(c, (size_t)6 << 30);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t other = offs[2 - i];

        ts_fill(c->pair.ma.p + offs[i], 0, 10000, i);
        ts_finish(ts_write(&c->pair, offs[i], other, 10000, NULL));
        ts_assert_pattern(c->pair.mb.p + other, 0, 10000, i);
        ts_finish(ts_read(&c->pair, 10 + i * 20000, other, 10000, NULL));
        ts_assert_pattern(c->pair.ma.p + 10 + i * 20000, 0, 10000, i);
    }
}

static const struct CMUnitTest cases[] = {
    CONF_NONE(test_write_moves_every_size),
    CONF_NONE(test_read_moves_every_size),
    CONF_PAIR(test_whole_region_moves_both_ways),
    CONF_PAIR(test_prepared_is_submitted_a_thousand_times),
    CONF_PAIR(test_prepared_takes_items_per_submission),
    CONF_PAIR(test_submit_many_is_all_or_nothing),
    CONF_PAIR(test_submit_many_gives_reserved_places_back),
    CONF_PAIR(test_local_level_frees_the_source),
    CONF_NONE(test_offsets_beyond_4_gib),
};

CONF_MAIN(cases)
