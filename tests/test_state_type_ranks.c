/* SPDX-License-Identifier: Apache-2.0
 *
 * State types where TP or PP sizes differ: what is the same on every rank by
 * its type, by the kind of attention or by declaration; what is cut along a
 * told axis; and the texts where nothing says how ranks share a tensor.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct told {
    enum pdx_kv_kind kv_kind;
    uint32_t flags;     /* of the tensors in question */
    bool axis;          /* they tell shard_dim */
    uint32_t decode_tp; /* prefill has 2 */
};

/* The remote side has the other TP size. */
static int tp_route(struct typed *f, const char *type, const struct told *told)
{
    struct typed_side *sides[] = {&f->local, &f->remote};

    typed_init(f, type);
    for (int i = 0; i < 2; i++) {
        struct typed_side *s = sides[i];
        uint64_t units = i ? 16 / told->decode_tp : 8;

        s->desc.tp_size = i ? told->decode_tp : 2;
        s->tensors[0].flags = PDX_TENSOR_REPLICATED;
        s->tensors[1].flags = told->flags;
        if (told->axis) {
            s->tensors[1].shard_dim = units;
            typed_item_len(&s->tensors[1], units);
        }
        typed_kv(s, told->kv_kind);
    }
    return typed_route_flags(f, 0);
}

/* What makes a type's tensors the same on every rank, if nothing else is told. */
enum copies { NEVER, IN_MLA, ALWAYS };

static const struct {
    const char *type;
    enum copies copies;
    const char *text; /* what the original says */
} tp_cases[] = {
    {"mamba", NEVER, "PD state transfer does not support TP-mismatched MAMBA models"},
    {"swa", IN_MLA,
     "PD state transfer does not support TP-mismatched non-MLA SWA models (prefill_tp_size=2, "
     "decode_tp_size=1)"},
    {"dsa", IN_MLA, "TP-mismatched non-MLA DSA models"},
    {"nsa", IN_MLA, "TP-mismatched non-MLA DSA models"},
    {"swa_ring", IN_MLA, "TP-mismatched non-MLA SWA_RING models"},
    {"c128_state", IN_MLA, "TP-mismatched non-MLA C128_STATE models"},
    {"minimax_index_k", NEVER,
     "component 1 (minimax_index_k) tensor 0: PD disagg: heterogeneous TP not supported for "
     "MiniMax sparse index yet (prefill_tp_size=2, decode_tp_size=1)"},
    {"qsa_pending", ALWAYS, NULL},
    {"qsa_compressed", ALWAYS, NULL},
    {"dsa_tail", IN_MLA, "TP-mismatched non-MLA DSA_TAIL models"},
    {"block_scale", IN_MLA, "TP-mismatched non-MLA BLOCK_SCALE models"},
    {"block_scale_swa", IN_MLA, "TP-mismatched non-MLA BLOCK_SCALE_SWA models"},
};

static void test_between_tp_sizes_nothing_is_guessed(void **state)
{
    const enum pdx_kv_kind kinds[] = {PDX_KV_NONE, PDX_KV_MHA, PDX_KV_MLA};

    (void)state;
    for (size_t i = 0; i < COUNT(tp_cases); i++)
        for (size_t k = 0; k < COUNT(kinds); k++)
            for (int declared = 0; declared < 2; declared++) {
                struct told told = {.kv_kind = kinds[k], .decode_tp = 1};
                bool known = declared || tp_cases[i].copies == ALWAYS ||
                             (tp_cases[i].copies == IN_MLA && kinds[k] == PDX_KV_MLA);
                struct typed f;
                int rc;

                told.flags = declared ? PDX_TENSOR_REPLICATED : 0;
                rc = tp_route(&f, tp_cases[i].type, &told);
                if (rc != (known ? 0 : PDX_EMISMATCH) ||
                    (rc < 0 && !strstr(f.why.text, tp_cases[i].text)))
                    fail_msg("%s, kind %u, declared %d: %s", tp_cases[i].type, kinds[k], declared,
                             rc < 0 ? f.why.text : "taken");
                typed_fini(&f);
            }
}

/* Where both layouts tell the axis it is cut, whatever the type, but for rings. */
static void test_between_tp_sizes_a_told_axis_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tp_cases); i++) {
        struct told told = {.axis = true, .decode_tp = 4};
        bool ring = strcmp(tp_cases[i].type, "dsa_tail") == 0;
        struct typed f;
        int rc = tp_route(&f, tp_cases[i].type, &told);

        if (rc != (ring ? PDX_EMISMATCH : 0))
            fail_msg("%s: %s", tp_cases[i].type, rc < 0 ? f.why.text : "taken");
        typed_fini(&f);
    }
}

/* At one TP size nothing has to be told. */
static void test_at_one_tp_size_everything_goes_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tp_cases); i++) {
        struct told told = {.decode_tp = 2};
        struct typed f;

        if (tp_route(&f, tp_cases[i].type, &told) < 0)
            fail_msg("%s: %s", tp_cases[i].type, f.why.text);
        typed_fini(&f);
    }
}

static const struct {
    const char *type;
    const char *text;
} pp_cases[] = {
    {"swa", "component 1 (swa): PP-heterogeneous transfer requires layer ids on both peers; got "
            "src=1 dst=1 entries"},
    {"minimax_index_k", "component 1 (minimax_index_k): PD disagg: PP>1 not supported for MiniMax "
                        "sparse index yet. PP-heterogeneous"},
    {"qsa_pending", "PD disaggregation requires PP=1 for qsa_pending; PP>1 needs peer "
                    "state_layer_ids for global-layer descriptor pairing. PP-heterogeneous"},
    {"qsa_compressed", "PD disaggregation requires PP=1 for qsa_compressed; PP>1 needs peer "
                       "state_layer_ids for global-layer descriptor pairing. PP-heterogeneous"},
    {"dsa_tail", "component 1 (dsa_tail): PP-heterogeneous"},
};

/* A stage of two into an unsplit peer needs layer numbers, and with them every type goes. */
static void test_stages_of_every_type_need_their_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pp_cases); i++)
        for (int told = 0; told < 2; told++) {
            struct typed f;
            int rc;

            typed_init(&f, pp_cases[i].type);
            f.local.desc.pp_size = 2;
            f.local.tensors[0].layer = f.remote.tensors[0].layer = 4;
            if (told)
                f.local.tensors[1].layer = f.remote.tensors[1].layer = 3;
            rc = typed_route_flags(&f, 0);
            if (rc != (told ? 0 : PDX_EMISMATCH) ||
                (rc < 0 && !strstr(f.why.text, pp_cases[i].text)))
                fail_msg("%s: %s", pp_cases[i].type, rc < 0 ? f.why.text : "taken");
            typed_fini(&f);
        }
}

struct log {
    size_t n;
    char text[512];
};

static void log_keep(void *ctx, enum pdx_log_level level, const char *text)
{
    struct log *l = ctx;

    assert_int_equal(level, PDX_LOG_INFO);
    l->n++;
    (void)snprintf(l->text, sizeof l->text, "%s", text);
}

/* Slices are many short pieces: a route that has them says so once. */
static void test_slices_between_tp_sizes_are_logged(void **state)
{
    struct pdx_route_opts opts = PDX_ROUTE_OPTS_INIT;

    (void)state;
    for (int differ = 0; differ < 2; differ++) {
        struct log log = {.n = 0};
        struct typed t;

        typed_init(&t, "mamba");
        t.local.tensors[1].shard_dim = 4;
        t.remote.tensors[1].shard_dim = 4;
        if (differ) {
            t.local.desc.tp_size = 2;
            t.local.tensors[0].flags = t.remote.tensors[0].flags = PDX_TENSOR_REPLICATED;
            t.remote.tensors[1].shard_dim = 8;
            typed_item_len(&t.remote.tensors[1], 16);
        }
        opts.log = log_keep;
        opts.log_ctx = &log;
        assert_int_equal(typed_route(&t, &opts), 0);
        assert_int_equal(log.n, differ);
        if (differ)
            assert_non_null(strstr(log.text,
                                   "Using Mamba state slice transfer for different TP sizes "
                                   "between prefill and decode. Prefill attn_tp_size=2, "
                                   "Decode attn_tp_size=1."));
        typed_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_tp_sizes_nothing_is_guessed),
        cmocka_unit_test(test_between_tp_sizes_a_told_axis_is_cut),
        cmocka_unit_test(test_at_one_tp_size_everything_goes_whole),
        cmocka_unit_test(test_slices_between_tp_sizes_are_logged),
        cmocka_unit_test(test_stages_of_every_type_need_their_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
