/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools without an engine: how they are sized, how items are handed out, and
 * that a wrong byte anywhere is found and named.
 */
#include "tool/rank.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static struct tool_model load(const char *name, uint32_t page_size)
{
    struct tool_model m;

    assert_int_equal(tool_model_load(name, page_size, &m, NULL), 0);
    return m;
}

static void test_sizing_takes_what_the_requests_need_and_no_more(void **state)
{
    struct tool_model m = load("gpt-oss-120b", 16);
    struct tool_sizing s;

    (void)state;
    assert_int_equal(
        tool_sizing_plan(&m, 1, UINT64_C(1) << 40, TOOL_POOL_GAP, 4, 1000, false, &s, NULL), 0);
    assert_int_equal(s.npools, 3);
    assert_int_equal(s.items[0], 4 * 63);      /* 63 pages of 16 tokens */
    assert_int_equal(s.items[1], 4 * (8 + 1)); /* a window of 128 tokens touches 9 */
    assert_int_equal(s.items[2], 4);
    assert_int_equal(s.inflight, 4);
    assert_int_equal(s.max_tokens, 1000);
    tool_model_fini(&m);
}

static void test_sizing_keeps_to_its_limit_and_says_what_is_left(void **state)
{
    struct tool_model m = load("Qwen3-Next-80B-A3B", 64);
    struct tool_sizing s;

    (void)state;
    for (uint64_t limit = 256 * MIB; limit <= 4096 * MIB; limit *= 2) {
        assert_int_equal(tool_sizing_plan(&m, 1, limit, TOOL_POOL_GAP, 4, 1000000, true, &s, NULL),
                         0);
        assert_true(s.bytes <= limit);
        assert_true(s.max_tokens < 1000000);
        assert_int_equal(s.max_tokens % 64, 0);
        assert_int_equal(s.items[0] - s.guards[0], s.max_tokens / 64);
        assert_true(s.guards[0] > 0 && s.guards[1] > 0 && s.guards[2] > 0);
    }
    assert_int_equal(s.inflight, 4);
    assert_int_equal(tool_sizing_plan(&m, 1, 512 * MIB, TOOL_POOL_GAP, 4, 64, true, &s, NULL), 0);
    assert_true(s.inflight < 4);
    tool_model_fini(&m);
}

static void test_sizing_refuses_less_than_one_request(void **state)
{
    struct tool_model m = load("Qwen3-Next-80B-A3B", 64);
    struct tool_sizing s = {.inflight = 77};
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_sizing_plan(&m, 1, 64 * MIB, TOOL_POOL_GAP, 4, 1000, true, &s, &why),
                     PDX_ENOMEM);
    assert_non_null(strstr(why.text, "--mem"));
    assert_non_null(strstr(why.text, "64.0 MiB"));
    assert_int_equal(s.inflight, 77); /* untouched */
    tool_model_fini(&m);
}

/* Against the definition: the pages that hold one of the last `window` tokens. */
static void test_sizing_window_covers_the_last_tokens(void **state)
{
    struct tool_model m = load("gpt-oss-120b", 16);
    struct tool_sizing s;

    (void)state;
    assert_int_equal(m.components[0].window, 128);
    assert_int_equal(
        tool_sizing_plan(&m, 1, UINT64_C(1) << 40, TOOL_POOL_GAP, 1, 400, false, &s, NULL), 0);
    for (uint32_t tokens = 1; tokens <= 400; tokens++) {
        struct tool_span w = tool_sizing_span(&m, 1, tokens);
        uint32_t oldest = tokens > 128 ? tokens - 128 : 0;

        assert_int_equal(w.first, oldest / 16);
        assert_int_equal(w.first + w.n - 1, (tokens - 1) / 16);
        assert_true(w.n <= s.items[1]); /* also of requests shorter than the longest */
    }
    tool_model_fini(&m);
}

static struct tool_group group; /* of the one rank that a test has at a time */

static void make_rank(struct tool_rank *r, const struct tool_model *m, uint32_t tp, uint32_t rank,
                      uint32_t inflight, uint32_t tokens)
{
    struct tool_sizing s;

    assert_int_equal(tool_group_init(&group, m, tp, 1, NULL), 0);
    assert_int_equal(
        tool_group_plan(&group, UINT64_C(1) << 40, TOOL_POOL_GAP, inflight, tokens, true, &s, NULL),
        0);
    assert_int_equal(tool_rank_init(r, &group, rank, &s, 1, NULL), 0);
}

static void end_rank(struct tool_rank *r)
{
    tool_rank_fini(r);
    tool_group_fini(&group);
}

static void test_pool_hands_out_each_item_once_and_no_guard(void **state)
{
    struct tool_model m = load("Llama-3.1-70B", 1);
    struct tool_rank r;
    struct tool_pool *p = &r.pools[0];
    uint32_t n, steps = 0;
    int32_t *items;
    bool *seen;

    (void)state;
    make_rank(&r, &m, 8, 0, 2, 50);
    n = p->nitems - p->nguards;
    assert_int_equal(n, 100);
    items = calloc(n, sizeof *items);
    for (int round = 0; round < 5; round++) {
        seen = calloc(p->nitems, sizeof *seen);
        assert_false(tool_pool_take(p, n + 1, items));
        assert_true(tool_pool_take(p, n, items));
        assert_false(tool_pool_take(p, 1, items));
        for (uint32_t i = 0; i < n; i++) {
            assert_false(seen[items[i]]);
            seen[items[i]] = true;
            steps += i > 0 && items[i] == items[i - 1] + 1;
            for (uint32_t g = 0; g < p->nguards; g++)
                assert_int_not_equal(items[i], p->order[g]);
        }
        tool_pool_give(p, items, n);
        free(seen);
    }
    assert_true(steps < 5 * n / 4); /* shuffled, not in order */
    free(items);
    end_rank(&r);
    tool_model_fini(&m);
}

static void test_rank_places_all_of_a_request_or_nothing(void **state)
{
    struct tool_model m = load("DeepSeek-V3.2", 64);
    struct tool_rank r;
    struct tool_placement a, b, c;

    (void)state;
    make_rank(&r, &m, 1, 0, 2, 640);
    assert_int_equal(tool_rank_place(&r, 640, &a), 0);
    assert_int_equal(a.spans[0].n, 10);
    assert_int_equal(a.spans[1].n, 10);
    assert_null(a.items[1]); /* dsa has the pages of the KV cache */
    assert_ptr_equal(tool_placement_items(&r, &a, 1), a.items[0]);
    assert_int_equal(tool_rank_place(&r, 700, &b), PDX_EAGAIN);
    assert_int_equal(r.pools[0].nfree, 10);
    assert_int_equal(tool_rank_place(&r, 100, &b), 0);
    assert_int_equal(tool_rank_place(&r, 1, &c), PDX_EAGAIN); /* no aux slot is left */
    assert_int_equal(r.pools[0].nfree, 8);
    tool_rank_release(&r, &b);
    tool_rank_release(&r, &a);
    assert_int_equal(r.pools[0].nfree, 20);
    end_rank(&r);
    tool_model_fini(&m);
}

/* A filled request is verified, leaves poison behind, and the whole memory is then as before. */
static void test_rank_verifies_and_poisons(void **state)
{
    static const char *const models[] = {"gpt-oss-120b", "DeepSeek-V3.2", "Jamba-1.5-Mini"};

    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct tool_model m = load(models[i], 16);
        struct tool_placement pl;
        struct tool_rank r;
        uint64_t bytes = 0, guards = 0, items = 0;
        char text[512];

        make_rank(&r, &m, 8, 3, 1, 200);
        tool_rank_poison(&r);
        assert_int_equal(tool_rank_place(&r, 200, &pl), 0);
        assert_true(tool_rank_check_poison(&r, &pl, text, sizeof text));
        tool_rank_fill(&r, 5, 6, &pl);
        assert_false(tool_rank_check_poison(&r, &pl, text, sizeof text));
        assert_true(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
        for (size_t k = 0; k < r.npools; k++) {
            for (size_t t = 0; t < r.pools[k].ntensors; t++)
                items += pl.spans[k].n * tool_tensor_item_len(&r.pools[k].tensors[t], 8);
        }
        assert_int_equal(bytes, items);
        assert_true(tool_rank_check_poison(&r, &pl, text, sizeof text));
        tool_rank_release(&r, &pl);
        assert_true(tool_rank_check_rest(&r, &guards, text, sizeof text));
        assert_true(guards >= r.pools[0].nitems);
        end_rank(&r);
        tool_model_fini(&m);
    }
}

static void test_rank_names_the_byte_that_is_wrong(void **state)
{
    struct tool_model m = load("gpt-oss-120b", 16);
    struct tool_placement pl;
    struct tool_rank r;
    struct tool_pool *p = &r.pools[1];
    uint64_t bytes = 0;
    char text[512], place[64];

    (void)state;
    make_rank(&r, &m, 2, 1, 1, 200);
    tool_rank_poison(&r);
    assert_int_equal(tool_rank_place(&r, 200, &pl), 0);
    tool_rank_fill(&r, 5, 6, &pl);
    tool_pool_at(p, 2, pl.items[1][3])[123] ^= 0x10;
    assert_false(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
    assert_non_null(strstr(text, "rank 1, component swa, tensor "));
    (void)snprintf(place, sizeof place, "layer %d, page %d (", (int)p->tensors[2].layer,
                   (int)pl.items[1][3]);
    assert_non_null(strstr(text, place));
    assert_non_null(strstr(text, "offset 123: expected 0x"));
    assert_null(strstr(text, "nothing was written"));

    /* A page that did not arrive says so. */
    tool_rank_fill(&r, 5, 6, &pl);
    tool_pool_poison_items(p, &pl.items[1][2], 1);
    assert_false(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
    assert_non_null(strstr(text, "nothing was written there"));

    /* An aux buffer belongs to no layer. */
    tool_rank_fill(&r, 5, 6, &pl);
    tool_pool_at(&r.pools[2], 0, pl.items[2][0])[9] ^= 1;
    assert_false(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
    assert_non_null(strstr(text, "component aux, tensor "));
    assert_null(strstr(text, "layer"));

    /* Right bytes of another request, or at another place of the request, are wrong. */
    tool_rank_fill(&r, 5, 7, &pl);
    assert_false(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
    tool_rank_release(&r, &pl);
    end_rank(&r);
    tool_model_fini(&m);
}

/* One byte in each kind of place that nobody may write to. */
static void test_rank_finds_a_stray_byte_anywhere(void **state)
{
    struct tool_model m = load("gpt-oss-120b", 16);
    struct tool_rank r;
    struct tool_pool *p = &r.pools[0];
    uint64_t count = 0;
    char text[512];
    uint8_t *places[4];

    (void)state;
    make_rank(&r, &m, 8, 0, 1, 200);
    tool_rank_poison(&r);
    places[0] = p->mem;                                         /* the first strip */
    places[1] = p->mem + p->len - 1;                            /* the last one */
    places[2] = tool_pool_at(p, 5, p->order[0]) + 40;           /* a guard */
    places[3] = tool_pool_at(p, 6, p->order[p->nguards]) + 400; /* a free page */
    for (size_t i = 0; i < 4; i++) {
        *places[i] ^= 1;
        assert_false(tool_rank_check_rest(&r, &count, text, sizeof text));
        assert_non_null(strstr(text, i < 2 ? "between two tensors" : "component kv, tensor "));
        *places[i] ^= 1;
    }
    assert_true(tool_rank_check_rest(&r, &count, text, sizeof text));
    end_rank(&r);
    tool_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizing_takes_what_the_requests_need_and_no_more),
        cmocka_unit_test(test_sizing_keeps_to_its_limit_and_says_what_is_left),
        cmocka_unit_test(test_sizing_refuses_less_than_one_request),
        cmocka_unit_test(test_sizing_window_covers_the_last_tokens),
        cmocka_unit_test(test_pool_hands_out_each_item_once_and_no_guard),
        cmocka_unit_test(test_rank_places_all_of_a_request_or_nothing),
        cmocka_unit_test(test_rank_verifies_and_poisons),
        cmocka_unit_test(test_rank_names_the_byte_that_is_wrong),
        cmocka_unit_test(test_rank_finds_a_stray_byte_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
