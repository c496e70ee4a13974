/* SPDX-License-Identifier: Apache-2.0
 *
 * The content formula: what a rank holds is the same cut-out of the unsplit
 * model whatever the TP size, every byte counts, and poison is not content.
 */
#include "tool/content.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* KV heads, more of them and fewer than ranks; an odd unit; a conv state in blocks; a latent. */
static const struct tool_tensor shapes[] = {
    {.name = "k", .layer = 3, .rows = 16, .units = 8, .unit_len = 256},
    {.name = "v", .layer = 3, .rows = 16, .units = 2, .unit_len = 256},
    {.name = "conv", .layer = 5, .rows = 1, .units = 96, .unit_len = 6},
    {.name = "conv",
     .layer = 6,
     .rows = 3,
     .units = 64,
     .unit_len = 2,
     .ngroups = 3,
     .groups = {16, 16, 32}},
    {.name = "latent", .layer = 9, .rows = 16, .units = 1, .unit_len = 576, .replicated = true},
};

static const uint32_t tp_sizes[] = {1, 2, 4, 8};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Where unit `u` of a rank lies in the unsplit row, told unit by unit: the slow way. */
static uint64_t global_unit(const struct tool_tensor *t, uint32_t tp, uint32_t rank, uint64_t u)
{
    uint64_t first = 0;

    if (t->replicated)
        return u;
    if (t->ngroups == 0)
        return t->units < tp ? rank / (tp / t->units) : rank * (t->units / tp) + u;
    for (uint32_t g = 0; g < t->ngroups; g++) {
        uint64_t local = t->groups[g] / tp;

        if (u < local)
            return first + rank * local + u;
        u -= local;
        first += t->groups[g];
    }
    fail();
    return 0;
}

/* Each rank's item, put together unit by unit, is the unsplit item. */
static void check_reslicing(const struct tool_tensor *t, uint32_t tp)
{
    uint64_t base = tool_content_base(7, 11, 1, 13, 17), units = tool_tensor_units(t, tp);
    uint64_t whole_len = t->rows * t->units * t->unit_len;
    uint64_t part_len = t->rows * units * t->unit_len;
    uint8_t *whole = malloc(whole_len), *part = malloc(part_len);

    for (uint64_t i = 0; i < whole_len; i++)
        whole[i] = tool_content_byte(base, i);
    for (uint32_t rank = 0; rank < tp; rank++) {
        struct tool_slicing s;

        tool_slicing_init(&s, t, tp, rank);
        assert_int_equal(tool_slicing_item_len(&s), part_len);
        memset(part, 0, part_len);
        tool_item_fill(part, &s, base);
        for (uint64_t row = 0; row < t->rows; row++) {
            for (uint64_t u = 0; u < units; u++) {
                uint64_t from = (row * t->units + global_unit(t, tp, rank, u)) * t->unit_len;

                assert_memory_equal(part + (row * units + u) * t->unit_len, whole + from,
                                    t->unit_len);
            }
        }
        assert_int_equal(tool_item_check(part, &s, base, NULL), part_len);
    }
    free(whole);
    free(part);
}

static void test_content_is_the_same_at_every_tp_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        for (size_t k = 0; k < COUNT(tp_sizes); k++)
            check_reslicing(&shapes[i], tp_sizes[k]);
    }
}

static void test_content_check_finds_every_changed_bit(void **state)
{
    struct tool_slicing s;
    uint64_t len, base = tool_content_base(1, 2, 3, 4, 5);
    uint8_t *item;

    (void)state;
    tool_slicing_init(&s, &shapes[3], 4, 2);
    len = tool_slicing_item_len(&s);
    item = malloc(len);
    tool_item_fill(item, &s, base);
    for (uint64_t bit = 0; bit < len * 8; bit++) {
        uint8_t want = 0, right = item[bit / 8];

        item[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(tool_item_check(item, &s, base, &want), bit / 8);
        assert_int_equal(want, right);
        item[bit / 8] = right;
    }
    assert_int_equal(tool_item_check(item, &s, base, NULL), len);
    free(item);
}

/* Runs of any length from any byte on agree with the formula for one byte. */
static void test_content_runs_agree_with_single_bytes(void **state)
{
    uint8_t buf[700];

    (void)state;
    for (uint64_t pos = 0; pos < 70; pos++) {
        for (size_t len = 0; len < 600; len += len < 140 ? 1 : 51) {
            memset(buf, 0xee, sizeof buf);
            tool_content_fill(buf + 1, len, 99, pos);
            assert_int_equal(buf[0], 0xee);
            assert_int_equal(buf[1 + len], 0xee);
            for (size_t i = 0; i < len; i++)
                assert_int_equal(buf[1 + i], tool_content_byte(99, pos + i));
            assert_int_equal(tool_content_check(buf + 1, len, 99, pos), len);
        }
    }
}

/* The place of the first difference is right on both sides of a block's and a probe's end. */
static void test_content_check_tells_the_first_difference(void **state)
{
    static const size_t places[] = {0, 7, 63, 64, 65, 4095, 4096, 4159, 8191, 9999};
    uint8_t *buf = malloc(10000);

    (void)state;
    for (size_t i = 0; i < COUNT(places); i++) {
        tool_content_fill(buf, 10000, 5, 3);
        buf[places[i]] ^= 0x80;
        buf[9999] ^= 0x01;
        assert_int_equal(tool_content_check(buf, 10000, 5, 3), places[i]);
    }
    free(buf);
}

static void test_content_depends_on_everything(void **state)
{
    uint64_t key = tool_content_key("k", 3);
    uint64_t bases[] = {
        tool_content_base(1, 2, 3, key, 5),
        tool_content_base(2, 2, 3, key, 5),
        tool_content_base(1, 3, 3, key, 5),
        tool_content_base(1, 2, 4, key, 5),
        tool_content_base(1, 2, 3, key, 6),
        tool_content_base(1, 2, 3, tool_content_key("v", 3), 5),
        tool_content_base(1, 2, 3, tool_content_key("k", 4), 5),
        tool_content_base(2, 1, 3, key, 5),
        tool_poison_base(1, 2, 3),
        tool_poison_base(2, 1, 3),
        tool_poison_base(1, 3, 2),
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        for (size_t k = i + 1; k < COUNT(bases); k++)
            assert_true(bases[i] != bases[k]);
    }
}

static int word_compare(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* No byte range that was moved by whole words looks right where it does not belong. */
static void test_content_has_no_two_equal_words(void **state)
{
    size_t n = 1u << 16;
    uint64_t *words = malloc(n * sizeof *words);

    (void)state;
    tool_content_fill(words, n * sizeof *words, tool_content_base(1, 0, 0, 0, 0), 0);
    qsort(words, n, sizeof *words, word_compare);
    for (size_t i = 1; i < n; i++)
        assert_true(words[i - 1] != words[i]);
    free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content_is_the_same_at_every_tp_size),
        cmocka_unit_test(test_content_check_finds_every_changed_bit),
        cmocka_unit_test(test_content_runs_agree_with_single_bytes),
        cmocka_unit_test(test_content_check_tells_the_first_difference),
        cmocka_unit_test(test_content_depends_on_everything),
        cmocka_unit_test(test_content_has_no_two_equal_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
