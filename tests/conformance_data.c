/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the right bytes at the right place and nowhere else, for every
 * way to describe them. ts_pair_close looks at the canaries around regions.
 */
#include "conformance.h"

#include <stdlib.h>
#include <sys/mman.h>

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

/* Puts the same content on both sides, moves with `submit`, and compares the receiving side with a
 * copy in which `naive` moved the bytes one run at a time. */
struct trial {
    struct conf *c;
    enum pdx_op op;
    uint8_t *want; /* owned */
};

static void trial_open(struct trial *t, struct conf *c, enum pdx_op op, uint64_t seed)
{
    struct ts_pair *p = &c->pair;

    t->c = c;
    t->op = op;
    t->want = malloc(p->ma.len);
    assert_non_null(t->want);
    ts_fill(p->ma.p, 0, p->ma.len, 2 * seed);
    ts_fill(p->mb.p, 0, p->mb.len, 2 * seed + 1);
    memcpy(t->want, op == PDX_WRITE ? p->mb.p : p->ma.p, p->ma.len);
}

static void trial_move(struct trial *t, uint64_t local, uint64_t remote, uint64_t len)
{
    if (t->op == PDX_WRITE)
        memcpy(t->want + remote, t->c->pair.ma.p + local, len);
    else
        memcpy(t->want + local, t->c->pair.mb.p + remote, len);
}

static void trial_close(struct trial *t, const char *what, uint64_t seed)
{
    struct ts_pair *p = &t->c->pair;
    const uint8_t *got = t->op == PDX_WRITE ? p->mb.p : p->ma.p;
    size_t i = 0;

    while (i < p->ma.len && got[i] == t->want[i])
        i++;
    free(t->want);
    if (i < p->ma.len)
        ts_fail(__FILE__, __LINE__, "%s, op %d, seed %llu: byte %zu is wrong", what, t->op,
                (unsigned long long)seed, i);
}

#define SCATTER_MAX 3000

/* Runs of both sides' memory in two random orders. */
static size_t scatter_make(struct pdx_seg *segs, uint64_t *rng, size_t len)
{
    size_t n = 1 + ts_rand(rng) % SCATTER_MAX;
    size_t room = len / n;

    for (size_t i = 0; i < n; i++) {
        uint64_t pad = ts_rand(rng) % 4 ? ts_rand(rng) % room : 0;

        segs[i] = (struct pdx_seg){i * room + pad, i * room + pad, room - pad};
    }
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = ts_rand(rng) % (i + 1);
        struct pdx_seg swap = segs[i];

        segs[i] = segs[j];
        segs[j] = swap;
    }
    for (size_t i = 0; i < n; i++) /* the other side lies elsewhere in its place */
        if (ts_rand(rng) % 2)
            segs[i].local_off -= segs[i].local_off % room % (room / 2 + 1);
    return n;
}

static void scatter_try(struct conf *c, enum pdx_op op, uint64_t seed)
{
    static struct pdx_seg segs[SCATTER_MAX];
    struct pdx_transfer_status *st;
    struct ts_pair *p = &c->pair;
    struct pdx_error why;
    struct trial t;
    uint64_t rng = seed;
    size_t n = scatter_make(segs, &rng, p->ma.len);

    if (op == PDX_READ)
        for (size_t i = 0; i < n; i++) { /* the side that receives keeps its places disjoint */
            uint64_t swap = segs[i].local_off;

            segs[i].local_off = segs[i].remote_off;
            segs[i].remote_off = swap;
        }
    trial_open(&t, c, op, seed);
    for (size_t i = 0; i < n; i++)
        trial_move(&t, segs[i].local_off, segs[i].remote_off, segs[i].len);
    ts_ok((op == PDX_READ ? pdx_read : pdx_write)(p->peer, p->ra, &p->remote, segs, n, NULL, &st,
                                                  &why),
          &why);
    memset(segs, 0, sizeof segs); /* copied by the submission */
    ts_finish(st);
    trial_close(&t, "scatter list", seed);
}

static void test_scatter_lists_match_a_naive_copy(void **state)
{
    struct conf *c = *state;

    for (uint64_t seed = 1; seed <= TS_SCALE(20, 4); seed++) {
        scatter_try(c, PDX_WRITE, seed);
        scatter_try(c, PDX_READ, seed);
    }
}

#define SHAPE_PAIRS  4
#define SHAPE_ITEMS  48
#define SHAPE_SLICES 4
#define SHAPE_ZONE   ((uint64_t)256) /* of an item; one slice lies in it */

/* A random job. Each pair has its own quarter of the regions; each slice its own zone of the items,
 * on the two sides in different order. */
struct shape {
    struct pdx_pair pairs[SHAPE_PAIRS];
    int32_t local[SHAPE_ITEMS];
    int32_t remote[SHAPE_ITEMS];
    struct pdx_slice slices[SHAPE_SLICES];
    struct pdx_job job;
};

/* n different numbers below `of`, in random order. */
static void shape_indices(int32_t *out, size_t n, size_t of, uint64_t *rng)
{
    int32_t all[4 * SHAPE_ITEMS];

    for (size_t i = 0; i < of; i++)
        all[i] = (int32_t)i;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + ts_rand(rng) % (of - i);
        int32_t swap = all[i];

        all[i] = all[j];
        all[j] = swap;
        out[i] = all[i];
    }
    if (ts_rand(rng) % 2 == 0) /* often in runs, as pages are */
        for (size_t i = 1; i < n; i++)
            out[i] = (int32_t)((size_t)(out[0] + (int32_t)i) % of);
}

static void shape_slices(struct shape *s, size_t n, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++) {
        struct pdx_slice *slice = &s->slices[i];
        uint64_t rows = 1 + ts_rand(rng) % 5;
        uint64_t len = 1 + ts_rand(rng) % (SHAPE_ZONE / rows);
        uint64_t slack = rows > 1 ? (SHAPE_ZONE - len) / (rows - 1) - len : 0;

        *slice = (struct pdx_slice){.local_off = i * SHAPE_ZONE,
                                    .remote_off = (n - 1 - i) * SHAPE_ZONE,
                                    .len = len,
                                    .rows = rows,
                                    .local_pitch = len + ts_rand(rng) % (slack + 1),
                                    .remote_pitch = len + ts_rand(rng) % (slack + 1)};
        if (ts_rand(rng) % 3 == 0) /* rows without gaps */
            slice->local_pitch = slice->remote_pitch = len;
    }
}

static void shape_make(struct shape *s, struct conf *c, uint64_t *rng)
{
    size_t npairs = 1 + ts_rand(rng) % SHAPE_PAIRS;
    size_t n = 1 + ts_rand(rng) % SHAPE_ITEMS;
    size_t of = n + ts_rand(rng) % (2 * SHAPE_ITEMS);
    size_t nslices = ts_rand(rng) % (SHAPE_SLICES + 1);
    uint64_t local_item = SHAPE_ZONE * SHAPE_SLICES + ts_rand(rng) % 100;
    uint64_t remote_item = nslices ? SHAPE_ZONE * SHAPE_SLICES + ts_rand(rng) % 100 : local_item;
    uint64_t quarter = c->pair.ma.len / SHAPE_PAIRS;

    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < npairs; i++)
        s->pairs[i] = (struct pdx_pair){.local = c->pair.ra,
                                        .remote = &c->pair.remote,
                                        .local_base = (npairs - 1 - i) * quarter + 7,
                                        .remote_base = i * quarter + 11,
                                        .local_item_len = local_item,
                                        .remote_item_len = remote_item,
                                        .local_len = of * local_item,
                                        .remote_len = of * remote_item};
    shape_indices(s->local, n, of, rng);
    shape_indices(s->remote, n, of, rng);
    shape_slices(s, nslices, rng);
    s->job = (struct pdx_job){.pairs = s->pairs,
                              .npairs = npairs,
                              .items = {s->local, s->remote, n},
                              .slices = nslices ? s->slices : NULL,
                              .nslices = nslices};
}

static void shape_naive_item(struct trial *t, const struct pdx_job *job, uint64_t local,
                             uint64_t remote, uint64_t item_len)
{
    if (job->nslices == 0)
        trial_move(t, local, remote, item_len);
    for (size_t k = 0; k < job->nslices; k++) {
        const struct pdx_slice *s = &job->slices[k];

        for (uint64_t row = 0; row < s->rows; row++)
            trial_move(t, local + s->local_off + row * s->local_pitch,
                       remote + s->remote_off + row * s->remote_pitch, s->len);
    }
}

static void shape_naive(struct trial *t, const struct pdx_job *job)
{
    for (size_t i = 0; i < job->npairs; i++) {
        const struct pdx_pair *p = &job->pairs[i];

        for (size_t k = 0; k < job->items.n; k++)
            shape_naive_item(t, job,
                             p->local_base + (uint64_t)job->items.local[k] * p->local_item_len,
                             p->remote_base + (uint64_t)job->items.remote[k] * p->remote_item_len,
                             p->local_item_len);
    }
}

static void shape_try(struct conf *c, enum pdx_op op, uint64_t seed)
{
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;
    struct pdx_error why;
    struct shape s;
    struct trial t;
    uint64_t rng = seed;

    shape_make(&s, c, &rng);
    trial_open(&t, c, op, seed);
    shape_naive(&t, &s.job);
    ts_ok(pdx_submit(c->pair.peer, op, &s.job, NULL, &st, &why), &why);
    memset(&s, 0, sizeof s); /* copied by the submission */
    ts_done(st);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.bytes, info.bytes_done);
    pdx_transfer_put(st);
    trial_close(&t, "job", seed);
}

static void test_jobs_match_a_naive_copy(void **state)
{
    struct conf *c = *state;

    for (uint64_t seed = 1; seed <= TS_SCALE(100, 20); seed++) {
        shape_try(c, PDX_WRITE, seed);
        shape_try(c, PDX_READ, seed);
    }
}

/* Each pair with slices of its own, and a pair whose item length is 0: a scatter list. */
static void test_pairs_may_have_their_own_slices(void **state)
{
    struct conf *c = *state;
    struct ts_pair *p = &c->pair;
    const int32_t zero = 0;
    const struct pdx_slice slices[] = {
        {0, 100, 10, 1, 0, 0}, {50000, 300, 20, 2, 40, 30}, {7, 70000, 5, 1, 0, 0}};
    const struct pdx_pair pairs[] = {
        {.local = p->ra, .remote = &p->remote, .first_slice = 0, .nslices = 2},
        {.local = p->ra, .remote = &p->remote, .first_slice = 2, .nslices = 1},
    };
    const struct pdx_job job = {
        .pairs = pairs, .npairs = 2, .items = {&zero, &zero, 1}, .slices = slices, .nslices = 3};
    struct pdx_transfer_status *st;
    struct pdx_error why;
    struct trial t;

    trial_open(&t, c, PDX_WRITE, 5);
    trial_move(&t, 0, 100, 10);
    trial_move(&t, 50000, 300, 20);
    trial_move(&t, 50040, 330, 20);
    trial_move(&t, 7, 70000, 5);
    ts_ok(pdx_submit(p->peer, PDX_WRITE, &job, NULL, &st, &why), &why);
    ts_finish(st);
    trial_close(&t, "slices per pair", 0);
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
    prepared = prepare_pages(c, &(struct pdx_items){local, remote, PAGES});
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
    struct pdx_prepared *prepared = prepare_pages(c, &(struct pdx_items){NULL, NULL, 0});
    struct pdx_transfer_status *st[PAGES];
    struct pdx_error why;

    ts_fill(c->pair.ma.p, 0, PAGES * PAGE, 3);
    ts_refused(pdx_submit_prepared(prepared, NULL, NULL, &st[0], &why), PDX_EINVAL, &why);
    for (int32_t i = 0; i < PAGES; i++) {
        int32_t remote = PAGES - 1 - i;

        ts_ok(
            pdx_submit_prepared(prepared, &(struct pdx_items){&i, &remote, 1}, NULL, &st[i], &why),
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
    struct pdx_prepared *prepared = prepare_pages(c, &(struct pdx_items){NULL, NULL, 0});
    int32_t index[5] = {0, 1, 2, PAGES, 4};
    struct pdx_transfer_status *const poison = (void *)(uintptr_t)0x10;
    struct pdx_transfer_status *st[5] = {poison, poison, poison, poison, poison};
    struct pdx_submission subs[5];
    struct pdx_engine_counters before = ts_counters(c->pair.a);
    struct pdx_error why;

    ts_fill(c->pair.ma.p, 0, c->pair.ma.len, 9);
    memset(c->pair.mb.p, UNTOUCHED, c->pair.mb.len);
    for (int i = 0; i < 5; i++)
        subs[i] = (struct pdx_submission){prepared, {&index[i], &index[i], 1}, NULL};
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
    struct pdx_prepared *prepared = prepare_pages(c, &(struct pdx_items){&zero, &zero, 1});
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

/* An index times an item length that needs more than 32 bits. */
static void test_items_beyond_4_gib(void **state)
{
    struct conf *c = *state;
    const uint64_t page = UINT64_C(1) << 20;
    const int32_t local[] = {6000, 1};
    const int32_t remote[] = {2, 5999};
    const struct pdx_slice slice = {100, 200, 3000, 1, 0, 0};
    struct pdx_transfer_status *st;
    struct pdx_error why;

    conf_open_pair(c, (size_t)6 << 30);
    const struct pdx_pair pair = {.local = c->pair.ra,
                                  .remote = &c->pair.remote,
                                  .local_item_len = page,
                                  .remote_item_len = page};
    const struct pdx_job job = {
        .pairs = &pair, .npairs = 1, .items = {local, remote, 2}, .slices = &slice, .nslices = 1};
    for (uint64_t i = 0; i < 2; i++)
        ts_fill(c->pair.ma.p + (uint64_t)local[i] * page + 100, 0, 3000, i);
    ts_ok(pdx_submit(c->pair.peer, PDX_WRITE, &job, NULL, &st, &why), &why);
    ts_finish(st);
    for (uint64_t i = 0; i < 2; i++)
        ts_assert_pattern(c->pair.mb.p + (uint64_t)remote[i] * page + 200, 0, 3000, i);
}

static const struct CMUnitTest cases[] = {
    CONF_NONE(test_write_moves_every_size),
    CONF_NONE(test_read_moves_every_size),
    CONF_PAIR(test_whole_region_moves_both_ways),
    CONF_PAIR(test_scatter_lists_match_a_naive_copy),
    CONF_PAIR(test_jobs_match_a_naive_copy),
    CONF_PAIR(test_pairs_may_have_their_own_slices),
    CONF_PAIR(test_prepared_is_submitted_a_thousand_times),
    CONF_PAIR(test_prepared_takes_items_per_submission),
    CONF_PAIR(test_submit_many_is_all_or_nothing),
    CONF_PAIR(test_submit_many_gives_reserved_places_back),
    CONF_PAIR(test_local_level_frees_the_source),
    CONF_NONE(test_offsets_beyond_4_gib),
    CONF_NONE(test_items_beyond_4_gib),
};

CONF_MAIN(cases)
