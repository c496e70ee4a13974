/* SPDX-License-Identifier: Apache-2.0
 *
 * How a side is split: which layers a stage has, that all stages together have
 * every tensor once and under its number in the whole model, that they are
 * sized alike, and which ranks of the two sides meet.
 */
#include "tool/pairing.h"
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

static struct tool_model load(const char *name)
{
    struct tool_model m;

    assert_int_equal(tool_model_load(name, 16, &m, NULL), 0);
    return m;
}

/* Against a table written out by hand, from SGLang's rule: the last stages have one more. */
static void test_group_gives_the_last_stages_what_is_left_over(void **state)
{
    static const struct {
        uint32_t nlayers, pp;
        uint32_t ends[8];
    } cases[] = {
        {32, 1, {32}},
        {32, 2, {16, 32}},
        {61, 2, {30, 61}},
        {62, 4, {15, 30, 46, 62}},
        {11, 8, {1, 2, 3, 4, 5, 7, 9, 11}},
        {5, 5, {1, 2, 3, 4, 5}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t last = 0;

        for (uint32_t k = 0; k < cases[i].pp; k++) {
            uint32_t first, end;

            tool_group_layers(cases[i].nlayers, cases[i].pp, k, &first, &end);
            assert_int_equal(first, last);
            assert_int_equal(end, cases[i].ends[k]);
            last = end;
        }
    }
}

/* Whether exactly one stage has the tensor, the one with its layer. */
static void check_tensor(const struct tool_group *g, const struct tool_tensor *t, size_t pool)
{
    size_t found = 0;

    for (uint32_t k = 0; k < g->pp; k++) {
        const struct tool_stage *stage = &g->stages[k];
        struct tool_tensor aux;
        size_t n;
        const struct tool_tensor *of = tool_sizing_tensors(&stage->model, pool, &aux, &n);

        for (size_t i = 0; i < n; i++) {
            if (memcmp(&of[i], t, sizeof *t) != 0)
                continue;
            assert_true((uint32_t)t->layer >= stage->first && (uint32_t)t->layer < stage->end);
            found++;
        }
    }
    assert_int_equal(found, 1);
}

static void test_stages_share_out_every_tensor_of_every_preset(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 8};

    (void)state;
    for (size_t i = 0; tool_preset_names[i]; i++) {
        struct tool_model m = load(tool_preset_names[i]);

        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            struct tool_group g;
            size_t parts = 0, whole = 0;

            assert_int_equal(tool_group_init(&g, &m, 1, sizes[j], NULL), 0);
            for (size_t pool = 0; pool <= m.ncomponents; pool++) {
                struct tool_tensor aux;
                size_t n;
                const struct tool_tensor *t = tool_sizing_tensors(&m, pool, &aux, &n);

                for (size_t x = 0; x < n; x++)
                    check_tensor(&g, &t[x], pool);
                whole += n;
                for (uint32_t k = 0; k < g.pp; k++) {
                    (void)tool_sizing_tensors(&g.stages[k].model, pool, &aux, &n);
                    parts += n;
                }
            }
            assert_int_equal(parts, whole);
            tool_group_fini(&g);
        }
        tool_model_fini(&m);
    }
}

/* Jamba's attention layers are 4, 12, 20 and 28: of eight stages of four layers every other one has
 * none. Such a rank has no pages, and all that it has is looked after as anywhere. */
static void test_stage_without_attention_has_no_pages(void **state)
{
    struct tool_model m = load("Jamba-1.5-Mini");
    struct tool_group g;
    struct tool_sizing s;

    (void)state;
    assert_int_equal(tool_group_init(&g, &m, 2, 8, NULL), 0);
    assert_int_equal(tool_group_plan(&g, 64 * MIB, TOOL_POOL_GAP, 2, 100, true, &s, NULL), 0);
    assert_int_equal(s.items[0] - s.guards[0], 2 * 7); /* as the stages with attention need it */
    for (uint32_t rank = 0; rank < tool_group_nranks(&g); rank++) {
        bool attention = rank / 2 % 2 == 1;
        uint64_t bytes = 0, guards = 0;
        struct tool_placement pl;
        struct tool_rank r;
        char text[256];

        assert_int_equal(tool_rank_init(&r, &g, rank, &s, 1, NULL), 0);
        assert_int_equal(r.pools[0].ntensors, attention ? 2 : 0);
        tool_rank_poison(&r);
        assert_int_equal(tool_rank_place(&r, 100, &pl), 0);
        assert_int_equal(pl.spans[0].n, attention ? 7 : 0);
        assert_int_equal(pl.spans[1].n, 1);
        tool_rank_fill(&r, 5, 6, &pl);
        assert_true(tool_rank_verify(&r, 5, 6, &pl, &bytes, text, sizeof text));
        assert_true(bytes > 0);
        tool_rank_release(&r, &pl);
        assert_true(tool_rank_check_rest(&r, &guards, text, sizeof text));
        assert_true(guards > 0);
        tool_rank_fini(&r);
    }
    tool_group_fini(&g);
    tool_model_fini(&m);
}

/* The items of rank `from` at the places of the whole model's rank, tensor by tensor of one layer:
 * what a transfer would do. */
static void copy_layer(const struct tool_rank *from, const struct tool_placement *src,
                       const struct tool_rank *to, const struct tool_placement *dst,
                       int32_t from_layer, int32_t to_layer)
{
    for (size_t pool = 0; pool < from->npools; pool++) {
        const struct tool_pool *a = &from->pools[pool], *b = &to->pools[pool];

        for (size_t x = 0; x < a->ntensors; x++) {
            for (size_t y = 0; y < b->ntensors; y++) {
                if (strcmp(a->tensors[x].name, b->tensors[y].name) != 0 ||
                    a->tensors[x].layer != from_layer || b->tensors[y].layer != to_layer)
                    continue;
                for (uint32_t i = 0; i < src->spans[pool].n; i++)
                    memcpy(tool_pool_at(b, y, tool_placement_items(to, dst, pool)[i]),
                           tool_pool_at(a, x, tool_placement_items(from, src, pool)[i]),
                           tool_slicing_item_len(&a->slicings[x]));
            }
        }
    }
}

/* Layers of two stages, put where the whole model has them, are found right; two of them that took
 * each other's place are found wrong, although every byte is one that was sent. */
static void check_order(const char *model, int32_t a, int32_t b)
{
    struct tool_model m = load(model);
    struct tool_group parts, whole;
    struct tool_placement src[2], dst;
    struct tool_sizing s;
    struct tool_rank from[2], to;
    char text[512], layer[32];
    uint64_t bytes = 0;

    assert_int_equal(tool_group_init(&parts, &m, 1, 2, NULL), 0);
    assert_int_equal(tool_group_init(&whole, &m, 1, 1, NULL), 0);
    assert_int_equal(tool_group_plan(&whole, 2048 * MIB, TOOL_POOL_GAP, 1, 50, true, &s, NULL), 0);
    assert_int_equal(tool_rank_init(&to, &whole, 0, &s, 2, NULL), 0);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(tool_rank_init(&from[k], &parts, k, &s, 1, NULL), 0);
        assert_int_equal(tool_rank_place(&from[k], 50, &src[k]), 0);
        tool_rank_fill(&from[k], 5, 6, &src[k]);
    }
    assert_int_equal(tool_rank_place(&to, 50, &dst), 0);
    for (int wrong = 0; wrong < 2; wrong++) {
        for (int32_t x = -1; x < (int32_t)m.nlayers; x++) { /* -1: aux */
            int32_t y = !wrong ? x : x == a ? b : x == b ? a : x;

            copy_layer(&from[x >= (int32_t)m.nlayers / 2], &src[x >= (int32_t)m.nlayers / 2], &to,
                       &dst, x, y);
        }
        assert_int_equal(tool_rank_verify(&to, 5, 6, &dst, &bytes, text, sizeof text), !wrong);
    }
    (void)snprintf(layer, sizeof layer, ", layer %d, ", (int)a);
    assert_non_null(strstr(text, layer));
    tool_rank_release(&to, &dst);
    tool_rank_fini(&to);
    for (uint32_t k = 0; k < 2; k++) {
        tool_rank_release(&from[k], &src[k]);
        tool_rank_fini(&from[k]);
    }
    tool_group_fini(&parts);
    tool_group_fini(&whole);
    tool_model_fini(&m);
}

static void test_rank_notices_layers_in_a_wrong_order(void **state)
{
    (void)state;
    check_order("gpt-oss-120b", 1, 3);    /* full attention, of one stage */
    check_order("gpt-oss-120b", 0, 34);   /* sliding, of two stages */
    check_order("Jamba-1.5-Mini", 2, 18); /* mamba, at the same place of two stages */
    check_order("DeepSeek-V3.2", 0, 60);  /* latents and indices, the first and the last */
}

/* Stages of one layer each: where there is a mamba state 6 MiB are room for one request, however
 * long, and where there are pages for several, but not for long ones. */
static void test_plan_is_what_the_stages_with_the_least_room_hold(void **state)
{
    struct tool_model m = load("Qwen3-Next-80B-A3B");
    const uint64_t limit = 6 * MIB;
    struct tool_sizing s, mamba, pages;
    struct tool_group g;
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_group_init(&g, &m, 1, 48, NULL), 0);
    assert_int_equal(tool_sizing_plan(&g.stages[0].model, 1, limit, TOOL_POOL_GAP, 4, 100000, false,
                                      &mamba, NULL),
                     0);
    assert_int_equal(tool_sizing_plan(&g.stages[3].model, 1, limit, TOOL_POOL_GAP, 4, 100000, false,
                                      &pages, NULL),
                     0);
    assert_int_equal(tool_sizing_span(&g.stages[0].model, 0, 50).n, 0);
    assert_int_equal(tool_sizing_span(&g.stages[0].model, 1, 50).n, 1);
    assert_int_equal(tool_sizing_span(&g.stages[3].model, 0, 50).n, 4);
    assert_int_equal(tool_sizing_span(&g.stages[3].model, 1, 50).n, 0);
    assert_true(mamba.inflight == 1 && mamba.max_tokens == 100000);
    assert_true(pages.inflight == 4 && pages.max_tokens < 3072);
    assert_int_equal(tool_group_plan(&g, limit, TOOL_POOL_GAP, 4, 100000, false, &s, NULL), 0);
    assert_int_equal(s.inflight, 1);
    assert_true(s.max_tokens >= pages.max_tokens && s.max_tokens <= 3072);
    assert_int_equal(s.items[0], s.max_tokens / 16);
    assert_int_equal(s.items[1], 1);
    assert_int_equal(s.items[2], 1);
    assert_true(s.bytes <= limit);
    assert_int_equal(tool_group_plan(&g, MIB, TOOL_POOL_GAP, 4, 100, false, &s, &why), PDX_ENOMEM);
    assert_non_null(strstr(why.text, "--mem"));
    tool_group_fini(&g);
    tool_model_fini(&m);
}

static void check_refused(const struct tool_model *m, uint32_t tp, uint32_t pp, const char *part)
{
    struct pdx_error why;

    assert_int_equal(tool_group_check(m, tp, pp, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, part));
}

static void test_group_refuses_what_cannot_be_split(void **state)
{
    struct tool_model m = load("DeepSeek-V3.2"); /* any TP size does */

    (void)state;
    assert_int_equal(tool_group_check(&m, 16, 61, NULL), 0);
    assert_int_equal(tool_group_check(&m, TOOL_TP_MAX, 4, NULL), 0);
    check_refused(&m, 1, 62, "PP size 62 cannot split DeepSeek-V3.2: it must be from 1 to 61");
    check_refused(&m, 1, 0, "PP size 0");
    check_refused(&m, 0, 1, "TP size 0");
    check_refused(&m, TOOL_TP_MAX, 5, "makes 1280 ranks");
    check_refused(&m, TOOL_TP_MAX + 1, 1, "at most 256");
    tool_model_fini(&m);
}

/* By the definition: ranks meet when their stages have a layer in common, and their shares of an
 * axis of 24 units a unit. */
static void test_ranks_that_share_something_meet(void **state)
{
    static const uint32_t tps[][2] = {{1, 1}, {2, 4}, {4, 2}, {8, 1}, {1, 8}, {6, 2}};
    static const uint32_t pps[][2] = {{1, 1}, {2, 1}, {3, 3}, {4, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof tps / sizeof tps[0] * 4; i++) {
        const uint32_t *tp = tps[i / 4], *pp = pps[i % 4];
        size_t count = 0;

        assert_int_equal(tool_pairing_check(tp, pp, NULL), 0);
        for (uint32_t p = 0; p < tp[0] * pp[0]; p++) {
            for (uint32_t d = 0; d < tp[1] * pp[1]; d++) {
                uint32_t u = 24 / tp[0], v = 24 / tp[1], a = p % tp[0] * u, b = d % tp[1] * v;
                uint32_t pf, pe, df, de;
                bool meet;

                tool_group_layers(13, pp[0], p / tp[0], &pf, &pe);
                tool_group_layers(13, pp[1], d / tp[1], &df, &de);
                meet = a < b + v && b < a + u && pf < de && df < pe;
                assert_int_equal(tool_pairing_meets(tp, pp, p, d), meet);
                count += meet;
            }
        }
        assert_int_equal(tool_pairing_count(tp, pp), count);
    }
}

static void test_pairing_refuses_other_sizes(void **state)
{
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_pairing_check((uint32_t[]){3, 2}, (uint32_t[]){1, 1}, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "prefill TP 3 and decode TP 2"));
    assert_int_equal(tool_pairing_check((uint32_t[]){2, 2}, (uint32_t[]){1, 2}, &why), PDX_EINVAL);
    assert_int_equal(tool_pairing_check((uint32_t[]){2, 2}, (uint32_t[]){4, 2}, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "prefill PP 4 and decode PP 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_gives_the_last_stages_what_is_left_over),
        cmocka_unit_test(test_stages_share_out_every_tensor_of_every_preset),
        cmocka_unit_test(test_stage_without_attention_has_no_pages),
        cmocka_unit_test(test_rank_notices_layers_in_a_wrong_order),
        cmocka_unit_test(test_plan_is_what_the_stages_with_the_least_room_hold),
        cmocka_unit_test(test_group_refuses_what_cannot_be_split),
        cmocka_unit_test(test_ranks_that_share_something_meet),
        cmocka_unit_test(test_pairing_refuses_other_sizes),
    };

    return cmocka_run_group_tests_name("tool_group", tests, NULL, NULL);
}
