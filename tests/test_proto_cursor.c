/* SPDX-License-Identifier: Apache-2.0
 *
 * The cursor: by example, and random jobs against four plain loops that list
 * every byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/proto/cursor.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SEGS  64
#define MAX_ITEMS 16
#define NPAIRS    3
#define NSLICES   4

/* A job, the plan made of it, and everything in between. */
struct job {
    struct pdx_pair pairs[NPAIRS];
    struct pdx_slice slices[NSLICES];
    int32_t local[MAX_ITEMS];
    int32_t remote[MAX_ITEMS];
    struct pdx_job job;
    uint64_t region_lens[NPAIRS];
    uint64_t remote_lens[NPAIRS];

    struct pdxi_plan_pair plan_pairs[NPAIRS];
    struct pdx_slice plan_slices[NSLICES];
    struct pdxi_plan_run plan_runs[MAX_ITEMS];
    struct pdxi_plan plan;
};

static void job_init(struct job *j, uint64_t region_len, uint64_t remote_len)
{
    memset(j, 0, sizeof *j);
    for (size_t i = 0; i < NPAIRS; i++) {
        j->region_lens[i] = region_len;
        j->remote_lens[i] = remote_len;
    }
    j->job.pairs = j->pairs;
    j->job.slices = j->slices;
    j->job.items.local = j->local;
    j->job.items.remote = j->remote;
    j->job.npairs = 1;
}

static void job_items(struct job *j, size_t n, const int32_t *local, const int32_t *remote)
{
    j->job.items.n = n;
    memcpy(j->local, local, n * sizeof *local);
    memcpy(j->remote, remote, n * sizeof *remote);
}

static void job_plan(struct job *j)
{
    struct pdxi_plan_limits limits;
    struct pdx_error why;
    uint64_t item_bytes;
    int64_t nruns;

    if (pdxi_plan_shape(&j->job, j->region_lens, j->remote_lens, j->plan_pairs, j->plan_slices,
                        &limits, &item_bytes, &why) < 0)
        fail_msg("%s", why.text);
    nruns = pdxi_plan_runs(&j->job.items, &limits, j->plan_runs, &why);
    if (nruns < 0)
        fail_msg("%s", why.text);
    j->plan = (struct pdxi_plan){.pairs = j->plan_pairs,
                                 .runs = j->plan_runs,
                                 .slices = j->plan_slices,
                                 .npairs = (uint32_t)j->job.npairs,
                                 .nruns = (uint32_t)nruns,
                                 .nslices = (uint32_t)j->job.nslices,
                                 .bytes = item_bytes * j->job.items.n};
}

static const struct pdxi_cursor_limits wide_open = {MAX_SEGS, UINT64_MAX, UINT64_MAX};

/* Compares one step with the segments it shall give, and their sum. */
static void expect_step(const struct pdxi_plan *plan, struct pdxi_cursor *c,
                        const struct pdxi_cursor_limits *limits, uint32_t pair,
                        const struct pdx_seg *want, uint32_t nwant)
{
    struct pdx_seg segs[MAX_SEGS];
    uint32_t got_pair;
    uint64_t bytes, sum = 0;
    uint32_t n;

    assert_false(pdxi_cursor_at_end(plan, c));
    n = pdxi_cursor_next(plan, c, limits, segs, &got_pair, &bytes);
    assert_int_equal(n, nwant);
    assert_int_equal(got_pair, pair);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(segs[i].local_off, want[i].local_off);
        assert_int_equal(segs[i].remote_off, want[i].remote_off);
        assert_int_equal(segs[i].len, want[i].len);
        sum += want[i].len;
    }
    assert_int_equal(bytes, sum);
}

static void expect_end(const struct pdxi_plan *plan, struct pdxi_cursor *c)
{
    struct pdx_seg seg;
    uint32_t pair;
    uint64_t bytes = 1;

    assert_true(pdxi_cursor_at_end(plan, c));
    assert_int_equal(pdxi_cursor_next(plan, c, &wide_open, &seg, &pair, &bytes), 0);
    assert_int_equal(bytes, 0);
}

static void test_cursor_whole_pages_are_a_segment_per_run(void **state)
{
    static const int32_t local[] = {3, 4, 5, 9, 0};
    static const int32_t remote[] = {7, 8, 9, 1, 0};
    static const struct pdx_seg want[2][3] = {
        {{300, 700, 300}, {900, 100, 100}, {0, 0, 100}},
        {{5035, 1077, 30}, {5095, 1017, 10}, {5005, 1007, 10}}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 10000, 10000);
    j.job.npairs = 2;
    j.pairs[0] = (struct pdx_pair){.local_item_len = 100, .remote_item_len = 100};
    j.pairs[1] = (struct pdx_pair){
        .local_base = 5005, .remote_base = 1007, .local_item_len = 10, .remote_item_len = 10};
    job_items(&j, 5, local, remote);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want[0], 3);
    expect_step(&j.plan, &c, &wide_open, 1, want[1], 3); /* never two pairs in one step */
    expect_end(&j.plan, &c);
}

/* Prefill with one rank, decode with two: the second rank's half of the heads, per token. */
static void test_cursor_head_slices_are_a_segment_per_token(void **state)
{
    static const int32_t local[] = {1, 2};
    static const int32_t remote[] = {4, 3};
    static const struct pdx_seg want[] = {{72, 128, 8},  {88, 136, 8}, {104, 144, 8},
                                          {120, 152, 8}, {136, 96, 8}, {152, 104, 8},
                                          {168, 112, 8}, {184, 120, 8}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 1000, 1000);
    j.pairs[0] = (struct pdx_pair){.local_item_len = 64, .remote_item_len = 32};
    j.slices[0] = (struct pdx_slice){
        .local_off = 8, .len = 8, .rows = 4, .local_pitch = 16, .remote_pitch = 8};
    j.job.nslices = 1;
    job_items(&j, 2, local, remote);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want, 8);
    expect_end(&j.plan, &c);
}

/* Sub-blocks of a convolution state: three parts of one item, two of them side by side at the
 * target, and only there. */
static void test_cursor_sub_blocks_of_one_item(void **state)
{
    static const int32_t local[] = {1};
    static const int32_t remote[] = {2};
    static const struct pdx_seg want[] = {{100, 100, 10}, {140, 110, 10}, {180, 140, 5}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 200, 150);
    j.pairs[0] = (struct pdx_pair){.local_item_len = 100, .remote_item_len = 50};
    j.slices[0] = (struct pdx_slice){0, 0, 10, 1, 0, 0};
    j.slices[1] = (struct pdx_slice){40, 10, 10, 1, 0, 0};
    j.slices[2] = (struct pdx_slice){80, 40, 5, 1, 0, 0};
    j.job.nslices = 3;
    job_items(&j, 1, local, remote);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want, 3);
    expect_end(&j.plan, &c);
}

/* The end of one item's slice touches the begin of the next one's on both sides. */
static void test_cursor_merges_what_touches_on_both_sides(void **state)
{
    static const int32_t local[] = {0, 1, 2};
    static const int32_t remote[] = {0, 1, 2};
    static const struct pdx_seg want[] = {{50, 50, 50},   {0, 0, 50},     {150, 150, 50},
                                          {100, 100, 50}, {250, 250, 50}, {200, 200, 50}};
    static const struct pdx_seg want_whole[] = {{0, 0, 300}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 300, 300);
    j.pairs[0] = (struct pdx_pair){.local_item_len = 100, .remote_item_len = 100};
    j.slices[0] = (struct pdx_slice){0, 0, 50, 1, 0, 0};
    j.slices[1] = (struct pdx_slice){50, 50, 25, 2, 25, 25};
    j.job.nslices = 2;
    job_items(&j, 3, local, remote);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want_whole, 1);
    expect_end(&j.plan, &c);
    /* In the other order nothing touches. */
    j.slices[1] = j.slices[0];
    j.slices[0] = (struct pdx_slice){50, 50, 50, 1, 0, 0};
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want, 6);
    expect_end(&j.plan, &c);
}

static void test_cursor_pairs_walk_their_own_slices(void **state)
{
    static const int32_t item[] = {0};
    static const struct pdx_seg want[2][2] = {{{0, 0, 4}, {8, 8, 4}}, {{50, 50, 6}}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 100, 100);
    j.job.npairs = 2;
    j.job.nslices = 3;
    j.pairs[0] = (struct pdx_pair){.local_item_len = 16, .remote_item_len = 16, .nslices = 2};
    j.pairs[1] = (struct pdx_pair){.first_slice = 2, .nslices = 1}; /* anywhere in the tensor */
    j.slices[0] = (struct pdx_slice){0, 0, 4, 1, 0, 0};
    j.slices[1] = (struct pdx_slice){8, 8, 4, 1, 0, 0};
    j.slices[2] = (struct pdx_slice){50, 50, 6, 1, 0, 0};
    job_items(&j, 1, item, item);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &wide_open, 0, want[0], 2);
    expect_step(&j.plan, &c, &wide_open, 1, want[1], 1);
    expect_end(&j.plan, &c);
}

static void test_cursor_scatter_list(void **state)
{
    static const struct pdx_seg segs[] = {{0, 100, 10}, {10, 110, 10}, {20, 0, 5}, {25, 6, 5}};
    static const struct pdx_seg want[] = {{0, 100, 20}, {20, 0, 5}, {25, 6, 5}};
    static const struct pdx_seg want_cut[3][2] = {
        {{0, 100, 8}, {8, 108, 4}}, {{12, 112, 8}, {20, 0, 4}}, {{24, 4, 1}, {25, 6, 5}}};
    const struct pdxi_plan plan = {.segs = segs, .nsegs = 4, .npairs = 1, .bytes = 30};
    struct pdxi_cursor c;

    (void)state;
    pdxi_cursor_init(&c);
    expect_step(&plan, &c, &wide_open, 0, want, 3);
    expect_end(&plan, &c);
    pdxi_cursor_init(&c);
    for (int i = 0; i < 3; i++)
        expect_step(&plan, &c, &(struct pdxi_cursor_limits){2, 12, 8}, 0, want_cut[i], 2);
    expect_end(&plan, &c);
}

static void test_cursor_of_nothing_is_at_its_end(void **state)
{
    static const struct pdx_seg none[1];
    const struct pdxi_plan empty_list = {.segs = none, .npairs = 1};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    pdxi_cursor_init(&c);
    expect_end(&empty_list, &c);
    job_init(&j, 100, 100);
    j.pairs[0] = (struct pdx_pair){.local_item_len = 10, .remote_item_len = 10};
    job_plan(&j); /* no items */
    pdxi_cursor_init(&c);
    expect_end(&j.plan, &c);
}

/* 64 MiB in one piece, by the megabyte; then 2^31 items at once, which costs no more. */
static void test_cursor_cuts_large_pieces(void **state)
{
    const uint64_t mib = UINT64_C(1) << 20;
    const struct pdxi_cursor_limits limits = {16, mib, mib};
    struct pdxi_plan_pair pair = {.local_base = 8,
                                  .remote_base = 16,
                                  .local_item_len = 64 * mib,
                                  .remote_item_len = 64 * mib,
                                  .nslices = 1};
    struct pdxi_plan_run run = {0, 0, 1};
    struct pdx_slice slice = {.len = 64 * mib, .rows = 1};
    const struct pdxi_plan plan = {
        .pairs = &pair, .runs = &run, .slices = &slice, .npairs = 1, .nruns = 1, .nslices = 1};
    struct pdxi_cursor c;

    (void)state;
    pdxi_cursor_init(&c);
    for (uint64_t i = 0; i < 64; i++)
        expect_step(&plan, &c, &limits, 0, &(struct pdx_seg){8 + i * mib, 16 + i * mib, mib}, 1);
    expect_end(&plan, &c);

    run.count = UINT32_C(1) << 31;
    pdxi_cursor_init(&c);
    expect_step(&plan, &c, &wide_open, 0, &(struct pdx_seg){8, 16, 64 * mib << 31}, 1);
    expect_end(&plan, &c);
}

static void test_cursor_limits_are_independent(void **state)
{
    static const int32_t local[] = {0, 1, 3};
    static const int32_t remote[] = {0, 1, 2};
    static const struct pdx_seg by_segs[] = {{0, 0, 20}};
    static const struct pdx_seg by_bytes[] = {{0, 0, 20}, {30, 20, 4}};
    static const struct pdx_seg by_seg[] = {
        {0, 0, 9}, {9, 9, 9}, {18, 18, 2}, {30, 20, 9}, {39, 29, 1}};
    struct job j;
    struct pdxi_cursor c;

    (void)state;
    job_init(&j, 100, 100);
    j.pairs[0] = (struct pdx_pair){.local_item_len = 10, .remote_item_len = 10};
    job_items(&j, 3, local, remote);
    job_plan(&j);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &(struct pdxi_cursor_limits){1, 1000, 1000}, 0, by_segs, 1);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &(struct pdxi_cursor_limits){10, 24, 1000}, 0, by_bytes, 2);
    expect_step(&j.plan, &c, &(struct pdxi_cursor_limits){10, 24, 1000}, 0,
                &(struct pdx_seg){34, 24, 6}, 1);
    expect_end(&j.plan, &c);
    pdxi_cursor_init(&c);
    expect_step(&j.plan, &c, &(struct pdxi_cursor_limits){10, 1000, 9}, 0, by_seg, 5);
    expect_end(&j.plan, &c);
}

static uint64_t rng = 88172645463325252;

static uint64_t random_below(uint64_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % n;
}

/* A byte that moves. */
struct byte {
    uint32_t pair;
    uint64_t local;
    uint64_t remote;
};

static struct byte reference[1 << 17];
static size_t nreference;

static void reference_add(uint32_t pair, uint64_t local, uint64_t remote, uint64_t len)
{
    for (uint64_t i = 0; i < len; i++) {
        assert_true(nreference < sizeof reference / sizeof reference[0]);
        reference[nreference++] = (struct byte){pair, local + i, remote + i};
    }
}

static void reference_slices(const struct job *j, uint32_t pair, uint64_t local, uint64_t remote)
{
    const struct pdx_pair *p = &j->pairs[pair];
    size_t n = p->nslices ? p->nslices : j->job.nslices;

    if (j->job.nslices == 0)
        reference_add(pair, local, remote, p->local_item_len);
    for (size_t k = 0; k < n; k++) {
        const struct pdx_slice *s = &j->slices[p->first_slice + k];

        for (uint64_t row = 0; row < s->rows; row++)
            reference_add(pair, local + s->local_off + row * s->local_pitch,
                          remote + s->remote_off + row * s->remote_pitch, s->len);
    }
}

static void reference_build(const struct job *j)
{
    nreference = 0;
    for (uint32_t i = 0; i < j->job.npairs; i++) {
        const struct pdx_pair *p = &j->pairs[i];

        for (size_t k = 0; k < j->job.items.n; k++)
            reference_slices(j, i, p->local_base + (uint64_t)j->local[k] * p->local_item_len,
                             p->remote_base + (uint64_t)j->remote[k] * p->remote_item_len);
    }
}

static void random_slices(struct job *j, uint64_t *ret_local, uint64_t *ret_remote)
{
    for (size_t k = 0; k < j->job.nslices; k++) {
        struct pdx_slice *s = &j->slices[k];
        uint64_t local, remote;

        s->len = 1 + random_below(12);
        s->rows = random_below(2) ? 1 : 1 + random_below(5);
        s->local_pitch = s->len + (random_below(2) ? 0 : random_below(6));
        s->remote_pitch = s->len + (random_below(2) ? 0 : random_below(6));
        s->local_off = random_below(10);
        s->remote_off = random_below(10);
        if (k > 0 && random_below(2)) { /* behind the slice before, so that some touch */
            s->local_off = s[-1].local_off + s[-1].len;
            s->remote_off = s[-1].remote_off + s[-1].len;
        }
        local = s->local_off + (s->rows - 1) * s->local_pitch + s->len;
        remote = s->remote_off + (s->rows - 1) * s->remote_pitch + s->len;
        *ret_local = local > *ret_local ? local : *ret_local;
        *ret_remote = remote > *ret_remote ? remote : *ret_remote;
    }
}

static void random_items(struct job *j)
{
    j->job.items.n = random_below(MAX_ITEMS + 1);
    for (size_t k = 0; k < j->job.items.n; k++) {
        bool follows = k > 0 && random_below(2);

        j->local[k] = follows ? j->local[k - 1] + 1 : (int32_t)random_below(40);
        j->remote[k] =
            follows && random_below(8) ? j->remote[k - 1] + 1 : (int32_t)random_below(40);
    }
}

/* Regions end right behind the last item, so that one byte too far is seen. */
static void random_job(struct job *j)
{
    uint64_t local_item = 0, remote_item = 0;

    job_init(j, 0, 0);
    j->job.npairs = 1 + random_below(NPAIRS);
    j->job.nslices = random_below(NSLICES + 1);
    random_items(j);
    random_slices(j, &local_item, &remote_item);
    for (size_t i = 0; i < j->job.npairs; i++) {
        struct pdx_pair *p = &j->pairs[i];

        p->local_base = random_below(100);
        p->remote_base = random_below(100);
        p->local_item_len = local_item + random_below(3);
        p->remote_item_len = remote_item + random_below(3);
        if (j->job.nslices == 0)
            p->local_item_len = p->remote_item_len = 1 + random_below(30);
        else if (random_below(2)) {
            p->first_slice = (uint32_t)random_below(j->job.nslices);
            p->nslices = 1 + (uint32_t)random_below(j->job.nslices - p->first_slice);
        }
        j->region_lens[i] = p->local_base + p->local_item_len * (40 + MAX_ITEMS);
        j->remote_lens[i] = p->remote_base + p->remote_item_len * (40 + MAX_ITEMS);
    }
    job_plan(j);
}

static void expect_inside(const struct job *j, uint32_t pair, const struct pdx_seg *s)
{
    assert_true(s->local_off + s->len <= j->region_lens[pair]);
    assert_true(s->remote_off + s->len <= j->remote_lens[pair]);
}

/* Walks the plan and compares every byte, in order, with the reference from `at` on. */
static void expect_walk(const struct job *j, struct pdxi_cursor c, size_t at,
                        const struct pdxi_cursor_limits *limits)
{
    struct pdx_seg segs[MAX_SEGS], again[MAX_SEGS];
    uint32_t n, pair, pair_again;
    uint64_t bytes, bytes_again;

    while (!pdxi_cursor_at_end(&j->plan, &c)) {
        struct pdxi_cursor copy = c;
        uint64_t sum = 0;

        n = pdxi_cursor_next(&j->plan, &c, limits, segs, &pair, &bytes);
        assert_in_range(n, 1, limits->max_segs);
        for (uint32_t i = 0; i < n; i++) {
            assert_in_range(segs[i].len, 1, limits->max_seg);
            expect_inside(j, pair, &segs[i]);
            sum += segs[i].len;
            for (uint64_t b = 0; b < segs[i].len; b++, at++) {
                assert_true(at < nreference);
                assert_int_equal(reference[at].pair, pair);
                assert_int_equal(reference[at].local, segs[i].local_off + b);
                assert_int_equal(reference[at].remote, segs[i].remote_off + b);
            }
        }
        assert_int_equal(bytes, sum);
        assert_true(bytes <= limits->max_bytes);
        /* A copy goes the same way. */
        assert_int_equal(
            pdxi_cursor_next(&j->plan, &copy, limits, again, &pair_again, &bytes_again), n);
        assert_memory_equal(segs, again, n * sizeof *segs);
        assert_int_equal(pair, pair_again);
        assert_int_equal(bytes, bytes_again);
        assert_memory_equal(&c, &copy, sizeof c);
    }
    assert_int_equal(at, nreference);
}

static struct pdxi_cursor_limits random_limits(void)
{
    return (struct pdxi_cursor_limits){1 + (uint32_t)random_below(MAX_SEGS),
                                       1 + random_below(random_below(2) ? 40 : 4000),
                                       1 + random_below(random_below(2) ? 10 : 1000)};
}

static void test_cursor_moves_every_byte_once_and_in_order(void **state)
{
    static struct job j;

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        struct pdxi_cursor_limits limits = random_limits();
        struct pdxi_cursor c;

        random_job(&j);
        reference_build(&j);
        assert_int_equal(j.plan.bytes, nreference);
        pdxi_cursor_init(&c);
        expect_walk(&j, c, 0, &limits);
    }
}

/* A transfer goes on in the middle with other limits, over another connection. */
static void test_cursor_goes_on_with_other_limits(void **state)
{
    static struct job j;

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct pdxi_cursor_limits first = random_limits();
        struct pdxi_cursor_limits second = random_limits();
        struct pdx_seg segs[MAX_SEGS];
        struct pdxi_cursor c;
        uint32_t pair;
        uint64_t bytes = 0, at = 0;

        random_job(&j);
        reference_build(&j);
        pdxi_cursor_init(&c);
        for (uint64_t steps = random_below(5); steps > 0; steps--) {
            (void)pdxi_cursor_next(&j.plan, &c, &first, segs, &pair, &bytes);
            at += bytes;
        }
        expect_walk(&j, c, at, &second);
    }
}

static void test_cursor_scatter_list_moves_every_byte_in_order(void **state)
{
    static struct job j;
    struct pdx_seg segs[MAX_ITEMS];

    (void)state;
    for (unsigned round = 0; round < 5000; round++) {
        struct pdxi_cursor_limits limits = random_limits();
        struct pdxi_cursor c;

        job_init(&j, 1000, 1000);
        j.plan = (struct pdxi_plan){
            .segs = segs, .npairs = 1, .nsegs = 1 + (uint32_t)random_below(MAX_ITEMS)};
        nreference = 0;
        for (uint32_t i = 0; i < j.plan.nsegs; i++) {
            segs[i] = (struct pdx_seg){random_below(400), random_below(400), 1 + random_below(30)};
            if (i > 0 && random_below(2)) {
                segs[i].local_off = segs[i - 1].local_off + segs[i - 1].len;
                segs[i].remote_off = segs[i - 1].remote_off + segs[i - 1].len;
            }
            reference_add(0, segs[i].local_off, segs[i].remote_off, segs[i].len);
        }
        pdxi_cursor_init(&c);
        expect_walk(&j, c, 0, &limits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cursor_whole_pages_are_a_segment_per_run),
        cmocka_unit_test(test_cursor_head_slices_are_a_segment_per_token),
        cmocka_unit_test(test_cursor_sub_blocks_of_one_item),
        cmocka_unit_test(test_cursor_merges_what_touches_on_both_sides),
        cmocka_unit_test(test_cursor_pairs_walk_their_own_slices),
        cmocka_unit_test(test_cursor_scatter_list),
        cmocka_unit_test(test_cursor_of_nothing_is_at_its_end),
        cmocka_unit_test(test_cursor_cuts_large_pieces),
        cmocka_unit_test(test_cursor_limits_are_independent),
        cmocka_unit_test(test_cursor_moves_every_byte_once_and_in_order),
        cmocka_unit_test(test_cursor_goes_on_with_other_limits),
        cmocka_unit_test(test_cursor_scatter_list_moves_every_byte_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
