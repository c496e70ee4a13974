/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan accepts and refuses, by example and with hostile values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/proto/plan.h"

#include <string.h>

#define MAX_PAIRS  4
#define MAX_SLICES 8

/* A job with everything that shaping it needs and gives. */
struct shape {
    struct pdx_pair pairs[MAX_PAIRS];
    struct pdx_slice slices[MAX_SLICES];
    struct pdx_job job;
    uint64_t region_lens[MAX_PAIRS];
    uint64_t remote_lens[MAX_PAIRS];
    struct pdxi_plan_pair ret_pairs[MAX_PAIRS];
    struct pdx_slice ret_slices[MAX_SLICES];
    struct pdxi_plan_limits limits;
    uint64_t item_bytes;
    struct pdx_error why;
};

/* One pair of items of 100 bytes, in regions of 1000 and 2000 bytes. */
static void shape_init(struct shape *s)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < MAX_PAIRS; i++) {
        s->pairs[i] = (struct pdx_pair){.local_item_len = 100, .remote_item_len = 100};
        s->region_lens[i] = 1000;
        s->remote_lens[i] = 2000;
    }
    s->job.pairs = s->pairs;
    s->job.slices = s->slices;
    s->job.npairs = 1;
}

static int shape_run(struct shape *s)
{
    return pdxi_plan_shape(&s->job, s->region_lens, s->remote_lens, s->ret_pairs, s->ret_slices,
                           &s->limits, &s->item_bytes, &s->why);
}

static void expect_refused(struct shape *s, int code, const char *part)
{
    assert_int_equal(shape_run(s), code);
    assert_int_equal(s->why.code, code);
    if (!strstr(s->why.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, s->why.text);
}

static void test_plan_whole_items(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = 2;
    s.pairs[1] = (struct pdx_pair){.local_base = 10,
                                   .remote_base = 20,
                                   .local_item_len = 64,
                                   .remote_item_len = 64,
                                   .local_len = 640,
                                   .remote_len = 700};
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.item_bytes, 164);
    assert_int_equal(s.limits.local_items, 10);
    assert_int_equal(s.limits.remote_items, 10); /* 700 / 64, and a rest that is no item */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(s.ret_pairs[i].first_slice, i);
        assert_int_equal(s.ret_pairs[i].nslices, 1);
        assert_int_equal(s.ret_slices[i].len, s.pairs[i].local_item_len);
        assert_int_equal(s.ret_slices[i].rows, 1);
        assert_int_equal(s.ret_slices[i].local_off, 0);
    }
    assert_int_equal(s.ret_pairs[1].local_base, 10);
    assert_int_equal(s.ret_pairs[1].remote_base, 20);
}

static void test_plan_whole_items_need_equal_lengths(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = 2;
    s.pairs[1].remote_item_len = 50;
    expect_refused(&s, PDX_EINVAL, "pair 1: whole items need equal item lengths");
    s.pairs[1].local_item_len = s.pairs[1].remote_item_len = 0;
    expect_refused(&s, PDX_EINVAL, "pair 1");
    s.pairs[1].local_item_len = s.pairs[1].remote_item_len = 100;
    s.pairs[1].nslices = 1;
    expect_refused(&s, PDX_EINVAL, "pair 1: first_slice 0 and nslices 1");
}

static void test_plan_touching_rows_become_one(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 3;
    s.slices[0] = (struct pdx_slice){10, 20, 8, 4, 8, 8};
    s.slices[1] = (struct pdx_slice){10, 20, 8, 4, 8, 10};
    s.slices[2] =
        (struct pdx_slice){0, 0, 8, 1, 0, 3}; /* the pitch of a single row is not looked at */
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.ret_slices[0].len, 32);
    assert_int_equal(s.ret_slices[0].rows, 1);
    assert_int_equal(s.ret_slices[0].remote_off, 20);
    assert_int_equal(s.ret_slices[1].len, 8);
    assert_int_equal(s.ret_slices[1].rows, 4);
    assert_int_equal(s.ret_slices[2].len, 8);
    assert_int_equal(s.item_bytes, 72);
    assert_int_equal(s.ret_pairs[0].first_slice, 0);
    assert_int_equal(s.ret_pairs[0].nslices, 3);
}

static void test_plan_bad_slice_is_named(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 2;
    s.slices[0] = (struct pdx_slice){0, 0, 10, 1, 0, 0};
    s.slices[1] = (struct pdx_slice){0, 0, 0, 1, 0, 0};
    expect_refused(&s, PDX_EINVAL, "slice 1: len 0, rows 1");
    s.slices[1] = (struct pdx_slice){0, 0, 10, 0, 0, 0};
    expect_refused(&s, PDX_EINVAL, "slice 1: len 10, rows 0");
    s.slices[1] = (struct pdx_slice){0, 0, 10, 2, 9, 10};
    expect_refused(&s, PDX_EINVAL, "slice 1: rows of 10 bytes overlap");
    s.slices[1] = (struct pdx_slice){0, 0, 10, 2, 10, 9};
    expect_refused(&s, PDX_EINVAL, "slice 1: rows of 10 bytes overlap");
}

static void test_plan_slice_stays_inside_its_item(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 2;
    s.slices[0] = (struct pdx_slice){0, 0, 10, 1, 0, 0};
    s.slices[1] = (struct pdx_slice){50, 10, 10, 5, 10, 20};
    assert_int_equal(shape_run(&s), 0);
    s.slices[1].local_off = 51;
    expect_refused(&s, PDX_ERANGE, "slice 1 ends at byte 101 of the local item of 100 bytes");
    s.slices[1].local_off = 0;
    s.slices[1].remote_off = 11;
    expect_refused(&s, PDX_ERANGE, "slice 1 ends at byte 101 of the remote item of 100 bytes");
}

static void test_plan_item_length_zero_reaches_the_whole_tensor(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 1;
    s.slices[0] = (struct pdx_slice){900, 0, 100, 1, 0, 0};
    s.pairs[0].local_item_len = 0;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 1);
    assert_int_equal(s.limits.remote_items, 20);
    s.slices[0].local_off = 901;
    expect_refused(&s, PDX_ERANGE, "slice 0 ends at byte 1001 of the local tensor of 1000 bytes");
    s.slices[0].local_off = 0;
    s.pairs[0].local_len = 99;
    expect_refused(&s, PDX_ERANGE, "slice 0 ends at byte 100 of the local tensor of 99 bytes");
}

/* Items of several tensors take turns in one buffer: the last one of each ends where its slices
 * do, not where the next turn begins. */
static void test_plan_last_item_ends_with_its_slices(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 2;
    s.slices[0] = (struct pdx_slice){0, 0, 10, 1, 0, 0};
    s.slices[1] = (struct pdx_slice){20, 0, 10, 2, 15, 10}; /* reaches 45 and 20 */
    for (unsigned tensor = 0; tensor < 2; tensor++) {
        s.pairs[0].local_base = tensor * 50;
        assert_int_equal(shape_run(&s), 0);
        assert_int_equal(s.limits.local_items, 10);
    }
    s.pairs[0] = (struct pdx_pair){.local_item_len = 100, .remote_item_len = 100};
    s.pairs[0].local_len = 345;
    s.pairs[0].remote_len = 519;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 4);
    assert_int_equal(s.limits.remote_items, 5); /* a byte is missing of the sixth */
    s.pairs[0].local_len = 344;
    s.pairs[0].remote_len = 520;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 3);
    assert_int_equal(s.limits.remote_items, 6);
    s.pairs[0].local_len = 44;
    s.pairs[0].remote_len = 20;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 0);
    assert_int_equal(s.limits.remote_items, 1);
    s.pairs[0].local_base = 1000; /* nothing is left of the region */
    s.pairs[0].local_len = 0;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 0);
}

static void test_plan_item_counts_at_the_far_end(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 1;
    s.slices[0] = (struct pdx_slice){0, 0, 1, 1, 0, 0};
    s.region_lens[0] = s.remote_lens[0] = UINT64_MAX;
    s.pairs[0] = (struct pdx_pair){.local_item_len = UINT64_MAX, .remote_item_len = UINT64_MAX - 1};
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 1);
    assert_int_equal(s.limits.remote_items, 2);
    s.pairs[0].local_item_len = 1; /* more than can be counted, or named */
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, UINT64_C(1) << 31);
    s.slices[0].len = UINT64_MAX;
    s.pairs[0].local_item_len = s.pairs[0].remote_item_len = UINT64_MAX;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.local_items, 1);
    s.remote_lens[0]--;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.remote_items, 0);
}

static void test_plan_range_names_some_pairs(void **state)
{
    struct pdx_items items = {0};
    struct pdxi_plan_range range;
    struct pdx_error why;

    (void)state;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), 0);
    assert_int_equal(range.first, 0);
    assert_int_equal(range.npairs, 5);
    items.first_pair = 4;
    items.npairs = 1;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), 0);
    assert_int_equal(range.first, 4);
    assert_int_equal(range.npairs, 1);
    items.npairs = 2;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "first_pair 4 and npairs 2 leave the job's 5 pairs"));
    items.npairs = 0;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), PDX_EINVAL);
    items.first_pair = items.npairs = UINT32_MAX;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), PDX_EINVAL);
    items.first_pair = 0;
    items.npairs = 6;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), PDX_EINVAL);
    items.first_pair = 5;
    items.npairs = 1;
    assert_int_equal(pdxi_plan_range(&items, 5, &range, &why), PDX_EINVAL);
    assert_int_equal(range.first, 4); /* untouched by failures */
}

/* Every range of pairs moves the sum of what its pairs move. */
static void test_plan_narrow_counts_the_bytes_of_its_pairs(void **state)
{
    struct pdxi_plan plan = {0}, whole = {0};
    struct pdx_error why;
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = MAX_PAIRS;
    for (uint32_t i = 0; i < MAX_PAIRS; i++)
        s.pairs[i].local_item_len = s.pairs[i].remote_item_len = 1 + 10 * i;
    assert_int_equal(shape_run(&s), 0);
    whole.pairs = s.ret_pairs;
    whole.npairs = MAX_PAIRS;
    for (uint32_t first = 0; first < MAX_PAIRS; first++) {
        uint64_t each = 0;

        for (uint32_t n = 1; first + n <= MAX_PAIRS; n++) {
            const struct pdxi_plan_range range = {first, n};

            each += s.pairs[first + n - 1].local_item_len;
            plan = whole;
            assert_int_equal(pdxi_plan_narrow(&plan, &range, s.item_bytes, 3, &why), 0);
            assert_int_equal(plan.bytes, 3 * each);
            assert_ptr_equal(plan.pairs, &s.ret_pairs[first]);
            assert_int_equal(plan.npairs, n);
        }
    }
    plan = whole;
    assert_int_equal(pdxi_plan_narrow(&plan, &(struct pdxi_plan_range){1, 2}, s.item_bytes,
                                      UINT64_MAX / 31, &why),
                     PDX_EOVERFLOW);
    assert_non_null(strstr(why.text, "items of 32 bytes"));
    assert_int_equal(plan.npairs, MAX_PAIRS);
    assert_int_equal(plan.bytes, 0);
    assert_int_equal(
        pdxi_plan_narrow(&plan, &(struct pdxi_plan_range){0, 1}, s.item_bytes, UINT64_MAX, &why),
        0);
}

static void test_plan_tensor_stays_inside_its_region(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = 2;
    s.pairs[1].local_base = 1001;
    expect_refused(&s, PDX_ERANGE, "pair 1: local_base 1001");
    s.pairs[1].local_base = 500;
    s.pairs[1].local_len = 501;
    expect_refused(&s, PDX_ERANGE, "leave the local region of 1000 bytes");
    s.pairs[1].local_len = 500;
    s.pairs[1].remote_len = 2001;
    expect_refused(&s, PDX_ERANGE, "leave the remote region of 2000 bytes");
    s.pairs[1].remote_len = 0;
    s.pairs[1].remote_base = UINT64_MAX;
    expect_refused(&s, PDX_ERANGE, "remote_base 18446744073709551615");
    s.pairs[1].remote_base = 2000; /* no item there, but no offence */
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.limits.remote_items, 0);
}

static void test_plan_overflow_is_refused(void **state)
{
    const uint64_t half = UINT64_C(1) << 63;
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.nslices = 2;
    s.slices[0] = (struct pdx_slice){0, 0, 1, 1, 0, 0};
    s.slices[1] = (struct pdx_slice){0, 0, half, 2, half, half};
    expect_refused(&s, PDX_EOVERFLOW, "slice 1: 2 rows");
    s.slices[1] = (struct pdx_slice){0, 0, 1, 3, half, 1};
    expect_refused(&s, PDX_EOVERFLOW, "slice 1");
    s.slices[1] = (struct pdx_slice){0, UINT64_MAX, 1, 1, 0, 0};
    expect_refused(&s, PDX_EOVERFLOW, "slice 1");
    s.slices[1] = (struct pdx_slice){1, 0, 1, 2, UINT64_MAX, 1};
    expect_refused(&s, PDX_EOVERFLOW, "slice 1");
    s.slices[0] = s.slices[1] = (struct pdx_slice){0, 0, half, 1, 0, 0};
    expect_refused(&s, PDX_EOVERFLOW, "slice 1");
    /* Each pair is right, all together are not. */
    s.job.nslices = 1;
    s.job.npairs = 2;
    for (size_t i = 0; i < 2; i++) {
        s.region_lens[i] = s.remote_lens[i] = half;
        s.pairs[i].local_item_len = s.pairs[i].remote_item_len = half;
    }
    expect_refused(&s, PDX_EOVERFLOW, "pair 1");
    s.job.npairs = 1;
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.item_bytes, half);
}

static void test_plan_pairs_have_their_own_slices(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = 3;
    s.job.nslices = 3;
    s.slices[0] = (struct pdx_slice){0, 0, 10, 1, 0, 0};
    s.slices[1] = (struct pdx_slice){90, 0, 10, 1, 0, 0};
    s.slices[2] = (struct pdx_slice){40, 0, 1, 1, 0, 0};
    s.pairs[0].nslices = 2;
    s.pairs[1].first_slice = 2;
    s.pairs[1].nslices = 1;
    s.pairs[1].local_item_len = 41; /* too short for slice 1, which is not its own */
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.item_bytes, 20 + 1 + 21);
    assert_int_equal(s.ret_pairs[1].first_slice, 2);
    assert_int_equal(s.ret_pairs[1].nslices, 1);
    assert_int_equal(s.ret_pairs[2].nslices, 3);
    s.pairs[2].nslices = 1;
    s.pairs[1].first_slice = 0; /* as pair 0, but fewer */
    assert_int_equal(shape_run(&s), 0);
    assert_int_equal(s.item_bytes, 20 + 10 + 10);
    s.pairs[1].first_slice = 2;
    s.pairs[1].nslices = 2;
    expect_refused(&s, PDX_EINVAL, "pair 1: first_slice 2 and nslices 2 leave the job's 3 slices");
    s.pairs[1].nslices = 0;
    expect_refused(&s, PDX_EINVAL, "pair 1");
    s.pairs[1].first_slice = UINT32_MAX;
    s.pairs[1].nslices = UINT32_MAX;
    expect_refused(&s, PDX_EINVAL, "pair 1");
    s.pairs[1].first_slice = 1; /* now it is */
    s.pairs[1].nslices = 1;
    expect_refused(&s, PDX_ERANGE, "pair 1: slice 1");
}

static void test_plan_empty_job_is_refused(void **state)
{
    struct shape s;

    (void)state;
    shape_init(&s);
    s.job.npairs = 0;
    expect_refused(&s, PDX_EINVAL, "no pairs");
    s.job.npairs = 1;
    s.job.pairs = NULL;
    expect_refused(&s, PDX_EINVAL, "no pairs");
    s.job.pairs = s.pairs;
    s.job.slices = NULL;
    s.job.nslices = 2;
    expect_refused(&s, PDX_EINVAL, "slices is NULL");
}

static uint64_t rng = 88172645463325252;

static uint64_t random_next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

/* Small numbers, powers of two and their neighbours, and the far end. */
static uint64_t random_hostile(void)
{
    switch (random_next() % 4) {
    case 0:
        return random_next() % 4;
    case 1:
        return random_next() % 1000;
    case 2:
        return (UINT64_C(1) << random_next() % 64) + random_next() % 3 - 1;
    default:
        return UINT64_MAX - random_next() % 3;
    }
}

__extension__ typedef unsigned __int128 wide;

/* Mostly harmless, so that some jobs pass. */
static uint64_t random_mixed(uint64_t harmless)
{
    return random_next() % 4 ? harmless : random_hostile();
}

/* 128 bits don't overflow here: where the last byte of a slice is, after the last item. */
static wide wide_end(uint64_t base, uint64_t item_len, uint64_t items, const struct pdx_slice *sl,
                     uint64_t off, uint64_t pitch)
{
    return (wide)base + (wide)item_len * (items - 1) + off +
           (wide)(sl->rows - 1) * (sl->rows > 1 ? pitch : 0) + sl->len;
}

static void shape_check_wide(const struct shape *s)
{
    wide bytes = 0;

    for (size_t i = 0; i < s->job.npairs; i++) {
        const struct pdx_pair *p = &s->pairs[i];

        for (size_t k = 0; k < s->job.nslices; k++) {
            const struct pdx_slice *sl = &s->slices[k];

            bytes += (wide)sl->len * sl->rows;
            if (s->limits.local_items)
                assert_true(wide_end(p->local_base, p->local_item_len, s->limits.local_items, sl,
                                     sl->local_off, sl->local_pitch) <= s->region_lens[i]);
            if (s->limits.remote_items)
                assert_true(wide_end(p->remote_base, p->remote_item_len, s->limits.remote_items, sl,
                                     sl->remote_off, sl->remote_pitch) <= s->remote_lens[i]);
        }
    }
    assert_true(bytes == s->item_bytes);
}

/* Whatever is accepted lies inside the regions, computed in 128 bits. */
static void test_plan_hostile_values_never_leave_the_region(void **state)
{
    unsigned accepted = 0;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        struct shape s;

        shape_init(&s);
        s.job.npairs = 1 + random_next() % 2;
        s.job.nslices = 1 + random_next() % 2;
        for (size_t i = 0; i < s.job.npairs; i++) {
            s.pairs[i] = (struct pdx_pair){.local_base = random_mixed(i),
                                           .remote_base = random_mixed(0),
                                           .local_item_len = random_mixed(UINT64_C(1) << 40),
                                           .remote_item_len = random_mixed(1000),
                                           .local_len = random_mixed(0),
                                           .remote_len = random_mixed(0)};
            s.region_lens[i] = random_mixed(UINT64_MAX);
            s.remote_lens[i] = random_mixed(UINT64_C(1) << 41);
        }
        for (size_t k = 0; k < s.job.nslices; k++)
            s.slices[k] =
                (struct pdx_slice){random_mixed(k), random_mixed(100 * k), random_mixed(100),
                                   random_mixed(2), random_mixed(500),     random_mixed(100 + k)};
        if (shape_run(&s) == 0) {
            accepted++;
            shape_check_wide(&s);
        }
    }
    assert_true(accepted > 1000);
}

static void test_plan_segs_are_checked(void **state)
{
    struct pdx_seg segs[] = {{0, 10, 5}, {95, 45, 5}, {0, 0, 50}};
    struct pdx_error why;
    uint64_t bytes = 77;

    (void)state;
    assert_int_equal(pdxi_plan_segs(segs, 3, 100, 50, &bytes, &why), 0);
    assert_int_equal(bytes, 60);
    assert_int_equal(pdxi_plan_segs(segs, 0, 100, 50, &bytes, &why), 0);
    assert_int_equal(bytes, 0);
    segs[1].len = 0;
    assert_int_equal(pdxi_plan_segs(segs, 3, 100, 50, &bytes, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "segment 1"));
    segs[1] = (struct pdx_seg){96, 45, 5};
    assert_int_equal(pdxi_plan_segs(segs, 3, 100, 50, &bytes, &why), PDX_ERANGE);
    assert_non_null(strstr(why.text, "segment 1: 5 bytes at local offset 96"));
    segs[1] = (struct pdx_seg){0, UINT64_MAX - 3, 5};
    assert_int_equal(pdxi_plan_segs(segs, 3, 100, 50, &bytes, &why), PDX_ERANGE);
    segs[0] = segs[1] = segs[2] = (struct pdx_seg){0, 0, UINT64_MAX};
    assert_int_equal(pdxi_plan_segs(segs, 3, UINT64_MAX, UINT64_MAX, &bytes, &why), PDX_EOVERFLOW);
    assert_non_null(strstr(why.text, "segment 1"));
    assert_int_equal(bytes, 0); /* untouched by failures */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_whole_items),
        cmocka_unit_test(test_plan_whole_items_need_equal_lengths),
        cmocka_unit_test(test_plan_touching_rows_become_one),
        cmocka_unit_test(test_plan_bad_slice_is_named),
        cmocka_unit_test(test_plan_slice_stays_inside_its_item),
        cmocka_unit_test(test_plan_item_length_zero_reaches_the_whole_tensor),
        cmocka_unit_test(test_plan_last_item_ends_with_its_slices),
        cmocka_unit_test(test_plan_item_counts_at_the_far_end),
        cmocka_unit_test(test_plan_range_names_some_pairs),
        cmocka_unit_test(test_plan_narrow_counts_the_bytes_of_its_pairs),
        cmocka_unit_test(test_plan_tensor_stays_inside_its_region),
        cmocka_unit_test(test_plan_overflow_is_refused),
        cmocka_unit_test(test_plan_pairs_have_their_own_slices),
        cmocka_unit_test(test_plan_empty_job_is_refused),
        cmocka_unit_test(test_plan_hostile_values_never_leave_the_region),
        cmocka_unit_test(test_plan_segs_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
