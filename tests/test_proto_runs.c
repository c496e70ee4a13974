/* SPDX-License-Identifier: Apache-2.0
 *
 * How lists of items become runs: by example, lists of random runs against the
 * definition, and items at the limits and beyond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/proto/plan.h"

#include <stdio.h>
#include <string.h>

static uint64_t rng = 88172645463325252;

static uint64_t random_next(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static void test_plan_runs_merge_what_follows_on_both_sides(void **state)
{
    static const int32_t local[] = {5, 6, 7, 9, 10, 3, 2, 2, INT32_MAX};
    static const int32_t remote[] = {0, 1, 2, 3, 4, 5, 6, 8, 7};
    static const struct pdxi_plan_run want[] = {{5, 0, 3}, {9, 3, 2}, {3, 5, 1},
                                                {2, 6, 1}, {2, 8, 1}, {INT32_MAX, 7, 1}};
    const struct pdx_items items = {.local = local, .remote = remote, .n = 9};
    const struct pdxi_plan_limits limits = {UINT64_C(1) << 31, 9};
    struct pdxi_plan_run runs[9];

    (void)state;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, NULL), 6);
    assert_memory_equal(runs, want, sizeof want);
    assert_int_equal(pdxi_plan_runs(&(struct pdx_items){.local = NULL, .remote = NULL, .n = 0},
                                    &limits, runs, NULL),
                     0);
}

#define LONG_LIST 700

/* One item after the other, as the definition of a run says. */
static size_t runs_reference(const struct pdx_items *items, struct pdxi_plan_run *runs)
{
    size_t n = 0;

    for (size_t i = 0; i < items->n; i++) {
        struct pdxi_plan_run *r = n ? &runs[n - 1] : NULL;

        if (r && (uint32_t)items->local[i] == r->local + r->count &&
            (uint32_t)items->remote[i] == r->remote + r->count)
            r->count++;
        else
            runs[n++] =
                (struct pdxi_plan_run){(uint32_t)items->local[i], (uint32_t)items->remote[i], 1};
    }
    return n;
}

/* Runs of random lengths that end on one side, the other or both, so that they end at every place
 * of a block. */
static void long_list(int32_t *local, int32_t *remote, size_t n, unsigned longest)
{
    for (size_t i = 0, left = 0; i < n; i++, left--) {
        unsigned jump = 0;

        if (left == 0) {
            left = 1 + random_next() % longest;
            jump = 1 + random_next() % 3;
        }
        local[i] = i ? local[i - 1] + 1 + (int32_t)(jump & 1) : 0;
        remote[i] = i ? remote[i - 1] + 1 + (int32_t)(jump >> 1) : 1000;
    }
}

static void test_plan_runs_of_long_lists(void **state)
{
    static const unsigned longest[] = {1, 8, 40, 200, 2000};
    const struct pdxi_plan_limits limits = {UINT64_C(1) << 31, UINT64_C(1) << 31};
    struct pdxi_plan_run runs[LONG_LIST], want[LONG_LIST];
    int32_t local[LONG_LIST], remote[LONG_LIST];

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        const struct pdx_items items = {
            .local = local, .remote = remote, .n = random_next() % (LONG_LIST + 1)};
        size_t nwant;

        long_list(local, remote, LONG_LIST, longest[round % 5]);
        memset(runs, 0xa5, sizeof runs);
        nwant = runs_reference(&items, want);
        assert_int_equal(pdxi_plan_runs(&items, &limits, runs, NULL), nwant);
        assert_memory_equal(runs, want, nwant * sizeof *want);
    }
}

/* Two items of a long run change places, on one side or the other. */
static void test_plan_runs_see_into_a_long_run(void **state)
{
    const struct pdxi_plan_limits limits = {LONG_LIST, LONG_LIST};
    struct pdxi_plan_run runs[LONG_LIST];
    int32_t lists[2][LONG_LIST];
    const struct pdx_items items = {.local = lists[0], .remote = lists[1], .n = LONG_LIST};

    (void)state;
    for (int32_t i = 0; i < LONG_LIST; i++)
        lists[0][i] = lists[1][i] = i;
    for (uint32_t i = 1; i + 3 < LONG_LIST; i++) {
        int32_t *list = lists[i % 2];

        list[i] = (int32_t)i + 1;
        list[i + 1] = (int32_t)i;
        assert_int_equal(pdxi_plan_runs(&items, &limits, runs, NULL), 4);
        assert_int_equal(runs[0].count, i);
        assert_int_equal(runs[3].local, i + 2);
        assert_int_equal(runs[3].count, LONG_LIST - i - 2);
        list[i] = (int32_t)i;
        list[i + 1] = (int32_t)i + 1;
    }
}

/* A run that grows past a limit is refused at the first item outside. */
static void test_plan_runs_refuse_the_end_of_a_long_run(void **state)
{
    struct pdxi_plan_run runs[LONG_LIST];
    int32_t local[LONG_LIST], remote[LONG_LIST];
    const struct pdx_items items = {.local = local, .remote = remote, .n = LONG_LIST};
    struct pdx_error why;
    char part[64];

    (void)state;
    for (int32_t i = 0; i < LONG_LIST; i++) {
        local[i] = i;
        remote[i] = i + 5;
    }
    for (uint64_t end = 1; end < LONG_LIST; end++) {
        struct pdxi_plan_limits limits = {end, LONG_LIST + 5};

        (void)snprintf(part, sizeof part, "item %u of 700: local %u must be in [0, %u)",
                       (unsigned)end, (unsigned)end, (unsigned)end);
        assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
        assert_non_null(strstr(why.text, part));
        limits = (struct pdxi_plan_limits){LONG_LIST, end + 5};
        (void)snprintf(part, sizeof part, "item %u of 700", (unsigned)end);
        assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
        assert_non_null(strstr(why.text, part));
    }
    /* Up to the last item that there can be. */
    for (int32_t i = 0; i < LONG_LIST; i++)
        local[i] = INT32_MAX - LONG_LIST + 1 + i;
    assert_int_equal(
        pdxi_plan_runs(&items, &(struct pdxi_plan_limits){UINT64_MAX, UINT64_MAX}, runs, &why), 1);
    assert_int_equal(runs[0].count, LONG_LIST);
}

static void test_plan_runs_refuse_items_outside(void **state)
{
    int32_t local[] = {0, 1, 2};
    int32_t remote[] = {0, 1, 2};
    const struct pdx_items items = {.local = local, .remote = remote, .n = 3};
    struct pdxi_plan_limits limits = {3, 3};
    struct pdxi_plan_run runs[3];
    struct pdx_error why;

    (void)state;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), 1);
    local[2] = 3;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    assert_non_null(strstr(why.text, "item 2 of 3: local 3 must be in [0, 3)"));
    local[2] = 2;
    remote[1] = -1;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    assert_non_null(strstr(why.text, "item 1 of 3: local 1 must be in [0, 3), remote -1"));
    limits = (struct pdxi_plan_limits){UINT64_MAX, UINT64_MAX};
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    remote[1] = 1;
    local[1] = -2;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    local[1] = 1;
    remote[1] = INT32_MIN;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    limits = (struct pdxi_plan_limits){0, 3};
    remote[1] = 1;
    assert_int_equal(pdxi_plan_runs(&items, &limits, runs, &why), PDX_ERANGE);
    assert_non_null(strstr(why.text, "item 0 of 3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_runs_merge_what_follows_on_both_sides),
        cmocka_unit_test(test_plan_runs_of_long_lists),
        cmocka_unit_test(test_plan_runs_see_into_a_long_run),
        cmocka_unit_test(test_plan_runs_refuse_the_end_of_a_long_run),
        cmocka_unit_test(test_plan_runs_refuse_items_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
