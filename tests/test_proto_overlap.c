/* SPDX-License-Identifier: Apache-2.0
 *
 * Items that a list names twice: by example, and random lists against a
 * comparison of every item with every other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/proto/overlap.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS_END (UINT32_C(1) << 31) /* behind the largest item */

static uint64_t rng = 88172645463325252;

static uint64_t random_below(uint64_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % n;
}

/* Runs whose side that is not written always names the same items. */
static struct pdxi_plan_run run_of(bool local, uint32_t start, uint32_t count)
{
    return local ? (struct pdxi_plan_run){start, 0, count}
                 : (struct pdxi_plan_run){0, start, count};
}

/* With scratch memory of exactly the length that was asked for, full of dirt. */
static bool find(struct pdxi_overlap *o, const struct pdxi_plan_run *runs, uint32_t nruns,
                 bool local, struct pdxi_overlap_twice *twice)
{
    void *scratch;
    bool found;

    pdxi_overlap_init(o, runs, nruns, local);
    if (o->scratch_len == 0)
        return false;
    scratch = malloc(o->scratch_len);
    assert_non_null(scratch);
    memset(scratch, 0xa5, o->scratch_len);
    found = pdxi_overlap_find(o, scratch, twice);
    free(scratch);
    return found;
}

static void test_overlap_ascending_runs_need_no_memory(void **state)
{
    const struct pdxi_plan_run runs[] = {{9, 0, 3}, {5, 3, 1}, {5, 100, 2}, {0, ITEMS_END - 1, 1}};
    struct pdxi_overlap o;

    (void)state;
    pdxi_overlap_init(&o, runs, 4, false);
    assert_int_equal(o.scratch_len, 0);
    pdxi_overlap_init(&o, runs, 1, true);
    assert_int_equal(o.scratch_len, 0);
    pdxi_overlap_init(&o, runs, 0, true);
    assert_int_equal(o.scratch_len, 0);
    pdxi_overlap_init(&o, runs, 4, true);
    assert_int_not_equal(o.scratch_len, 0);
}

static void test_overlap_names_item_and_places(void **state)
{
    /* The list 7 8 9, 100, 3 4 5 6 7 8: item 7 is the first that comes again. */
    const struct pdxi_plan_run runs[] = {{0, 7, 3}, {0, 100, 1}, {0, 3, 6}};
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;

    (void)state;
    assert_true(find(&o, runs, 3, false, &twice));
    assert_int_equal(twice.item, 7);
    assert_int_equal(twice.first, 0);
    assert_int_equal(twice.second, 8);
    /* On the other side it is item 0, which all three begin with. */
    assert_true(find(&o, runs, 3, true, &twice));
    assert_int_equal(twice.item, 0);
    assert_int_equal(twice.first, 0);
    assert_int_equal(twice.second, 3);
}

/* Runs that touch at every bit of a word do not overlap; one item more and they do. */
static void test_overlap_run_edges(void **state)
{
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;

    (void)state;
    for (unsigned local = 0; local < 2; local++) {
        for (uint32_t at = 1; at < 200; at++) {
            struct pdxi_plan_run runs[] = {run_of(local, at, 130), run_of(local, 0, at)};

            assert_false(find(&o, runs, 2, local, &twice));
            assert_true(o.mapped);
            runs[1].count++;
            assert_true(find(&o, runs, 2, local, &twice));
            assert_int_equal(twice.item, at);
            assert_int_equal(twice.first, 0);
            assert_int_equal(twice.second, 130 + at);
        }
    }
}

static void test_overlap_largest_items(void **state)
{
    struct pdxi_plan_run runs[] = {
        {ITEMS_END - 1, 0, 1}, {0, 0, 1}, {ITEMS_END - 70, 0, 69}, {1, 0, 5}};
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;

    (void)state;
    assert_false(find(&o, runs, 4, true, &twice));
    assert_false(o.mapped);
    runs[2].count++;
    assert_true(find(&o, runs, 4, true, &twice));
    assert_int_equal(twice.item, ITEMS_END - 1);
    assert_int_equal(twice.first, 0);
    assert_int_equal(twice.second, 1 + 1 + 69);
    /* A run of all items, and the last one again. */
    runs[0] = (struct pdxi_plan_run){0, 0, ITEMS_END - 1};
    runs[1] = (struct pdxi_plan_run){ITEMS_END - 2, 0, 1};
    assert_true(find(&o, runs, 2, true, &twice));
    assert_int_equal(twice.item, ITEMS_END - 2);
    assert_int_equal(twice.second, ITEMS_END - 1);
}

#define MAX_RUNS  48
#define MAX_COUNT 100

/* Every item of the list; returns how many. */
static size_t expand(const struct pdxi_plan_run *runs, uint32_t nruns, bool local, uint32_t *list)
{
    size_t n = 0;

    for (uint32_t i = 0; i < nruns; i++) {
        for (uint32_t k = 0; k < runs[i].count; k++)
            list[n++] = (local ? runs[i].local : runs[i].remote) + k;
    }
    return n;
}

/* The first place in the list of an item, or n. */
static size_t place_of(const uint32_t *list, size_t n, size_t from, uint32_t item)
{
    while (from < n && list[from] != item)
        from++;
    return from;
}

static bool has_twice(const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (place_of(list, n, i + 1, list[i]) < n)
            return true;
    }
    return false;
}

struct tally {
    unsigned mapped;
    unsigned sorted;
    unsigned found;
    unsigned clean; /* not ascending, and no item twice */
};

static void try_random(struct tally *tally, uint32_t span, uint32_t longest)
{
    static uint32_t list[MAX_RUNS * MAX_COUNT];
    const uint32_t nruns = (uint32_t)(2 + random_below(MAX_RUNS - 1));
    const uint32_t base = (uint32_t)random_below(ITEMS_END - span - MAX_COUNT);
    const bool local = random_below(2);
    struct pdxi_plan_run runs[MAX_RUNS];
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;
    size_t n, first;
    bool found;

    for (uint32_t i = 0; i < nruns; i++)
        runs[i] = run_of(local, base + (uint32_t)random_below(span),
                         (uint32_t)(1 + random_below(longest)));
    n = expand(runs, nruns, local, list);
    found = find(&o, runs, nruns, local, &twice);
    assert_int_equal(found, has_twice(list, n));
    tally->mapped += o.scratch_len && o.mapped;
    tally->sorted += o.scratch_len && !o.mapped;
    tally->found += found;
    tally->clean += o.scratch_len && !found;
    if (!found)
        return;
    first = place_of(list, n, 0, twice.item);
    assert_int_equal(twice.first, first);
    assert_int_equal(twice.second, place_of(list, n, first + 1, twice.item));
    assert_true(twice.second < n);
}

static void test_overlap_random_lists_match_a_comparison_of_all(void **state)
{
    static const uint32_t spans[] = {40, 1000, 30000, 1 << 20, 1 << 30};
    struct tally tally = {0};

    (void)state;
    for (unsigned round = 0; round < 2000; round++)
        try_random(&tally, spans[round % 5], round % 3 ? MAX_COUNT : 1);
    assert_true(tally.mapped > 200 && tally.sorted > 200);
    assert_true(tally.found > 200 && tally.clean > 200);
}

#define MANY 9000u

/* `step` apart and shuffled, so that a list of many runs spans a given range. */
static void shuffled(struct pdxi_plan_run *runs, uint32_t n, uint32_t step)
{
    for (uint32_t i = 0; i < n; i++)
        runs[i] = run_of(false, (i + 1) * step, 1);
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = (uint32_t)random_below(i + 1);
        struct pdxi_plan_run swap = runs[i];

        runs[i] = runs[k];
        runs[k] = swap;
    }
}

/* Among many runs the one at `from` fills the gap in front of that at `to`, and then its item too.
 */
static void try_reach(struct pdxi_plan_run *runs, uint32_t n, uint32_t step, bool *ret_mapped)
{
    uint32_t from = (uint32_t)random_below(n), to = (uint32_t)random_below(n);
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;

    shuffled(runs, n, step);
    assert_false(find(&o, runs, n, false, &twice));
    *ret_mapped = o.mapped;
    if (from == to)
        return;
    runs[from].remote = runs[to].remote - (step - 1);
    runs[from].count = step - 1;
    assert_false(step > 1 && find(&o, runs, n, false, &twice));
    runs[from].count++;
    assert_true(find(&o, runs, n, false, &twice));
    assert_int_equal(twice.item, runs[to].remote);
    assert_int_equal(twice.first, from < to ? from + step - 1 : to);
    assert_int_equal(twice.second, from < to ? to + step - 1 : from + step - 1);
}

/* For each way to look, and each width of a digit. */
static void test_overlap_one_among_many(void **state)
{
    static const uint32_t steps[] = {1, 70, 5000, (ITEMS_END - 1) / (MANY + 1)};
    static const uint32_t counts[] = {300, 8191, MANY};
    static struct pdxi_plan_run runs[MANY];
    bool ways[2] = {false, false};

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        for (unsigned round = 0; round < 20; round++) {
            bool mapped;

            try_reach(runs, counts[i % 3], steps[i / 3], &mapped);
            ways[mapped] = true;
        }
    }
    assert_true(ways[0] && ways[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap_ascending_runs_need_no_memory),
        cmocka_unit_test(test_overlap_names_item_and_places),
        cmocka_unit_test(test_overlap_run_edges),
        cmocka_unit_test(test_overlap_largest_items),
        cmocka_unit_test(test_overlap_random_lists_match_a_comparison_of_all),
        cmocka_unit_test(test_overlap_one_among_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
