/* SPDX-License-Identifier: Apache-2.0
 *
 * Pipeline stages, layer ranges and chunks, byte by byte: models of every kind
 * (heads, latents, both, draft models, state of some layers only, items that
 * take turns), cut into stages of unequal size, at TP sizes that differ, sent
 * whole or in any order of ranges and chunks. Each byte arrives once whatever
 * the cuts are.
 */
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NLAYERS  6 /* of the models; the stages below are cut for them */
#define HEADS    4
#define NPAGES   4
#define NITEMS   7

/* --- Models --- */

static void make_mha(struct sm_list *l)
{
    sm_mha(l, HEADS, 2, 3, 2, NLAYERS);
}

static void make_mha_untold(struct sm_list *l)
{
    make_mha(l);
    l->untold = true;
}

static void make_mla(struct sm_list *l)
{
    sm_mla(l, 2, 5, NLAYERS);
}

static void make_mla_untold(struct sm_list *l)
{
    make_mla(l);
    l->untold = true;
}

/* Each tensor tells what it holds, so that they stand in any order. */
static void make_mha_parts(struct sm_list *l)
{
    make_mha(l);
    for (size_t i = 0; i < l->n; i++) {
        size_t layer = i / 2, v = (i + layer) % 2;

        l->shapes[i].part = v ? PDX_KV_PART_V : PDX_KV_PART_K;
        l->shapes[i].unit_len = v ? 2 : 3;
        l->shapes[i].layer = (int32_t)layer;
    }
}

static void make_mha_parts_untold(struct sm_list *l)
{
    make_mha_parts(l);
    l->untold = true;
}

/* Two latents of each layer, as with an indexer's keys: they pair in order of appearance. */
static void make_mla_twice(struct sm_list *l)
{
    sm_mla(l, 2, 3, 2 * NLAYERS);
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i].layer = (int32_t)(i / 2);
}

/* A hybrid model: only some layers have attention, so that a stage may have none. */
static void make_sparse(struct sm_list *l)
{
    sm_mha(l, HEADS, 2, 2, 2, 2);
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i].layer = i % 2 ? 5 : 4;
}

static void add(struct sm_list *l, struct sm_shape s)
{
    assert_true(l->n < SM_TENSORS_MAX);
    s.rows = s.rows ? s.rows : l->page_size;
    l->shapes[l->n++] = s;
}

/* Latents in odd layers, heads in even ones, an indexer's keys beside the heads; in no order. */
static void make_mixed(struct sm_list *l)
{
    const struct sm_shape k = {.part = PDX_KV_PART_K, .units = HEADS, .unit_len = 3};
    const struct sm_shape v = {.part = PDX_KV_PART_V, .units = HEADS, .unit_len = 2};
    const struct sm_shape latent = {
        .part = PDX_KV_PART_LATENT, .units = 1, .unit_len = 7, .copies = true};

    *l = (struct sm_list){.kv_kind = PDX_KV_MIXED, .page_size = 2, .heads = HEADS};
    for (int32_t layer = NLAYERS - 1; layer >= 0; layer--) {
        struct sm_shape at[] = {v, latent, k};

        for (int i = 0; i < 3; i++)
            at[i].layer = layer;
        if (layer % 2 == 0)
            add(l, at[0]);
        add(l, at[1]);
        if (layer % 2 == 0)
            add(l, at[2]);
    }
}

/* A draft model of its own number of heads, with copies at the larger TP sizes. */
static void add_draft(struct sm_list *l, bool tell_parts)
{
    for (int32_t i = 0; i < 4; i++)
        add(l, (struct sm_shape){.part = !tell_parts ? PDX_KV_PART_BY_KIND
                                         : i < 2     ? PDX_KV_PART_K
                                                     : PDX_KV_PART_V,
                                 .units = 2,
                                 .unit_len = i < 2 ? 5 : 4,
                                 .layer = i % 2,
                                 .own_heads = true,
                                 .tell_groups = true,
                                 .draft = true});
}

static void make_mha_draft(struct sm_list *l)
{
    make_mha(l);
    add_draft(l, false);
}

static void make_mha_draft_untold(struct sm_list *l)
{
    make_mha_draft(l);
    l->untold = true;
}

/* The draft model of a model with latents has heads. */
static void make_mla_draft(struct sm_list *l)
{
    make_mla(l);
    add_draft(l, true);
}

static void make_mixed_draft(struct sm_list *l)
{
    make_mixed(l);
    add_draft(l, true);
}

/* Two tensors of each layer, the second with blocks that have copies. */
static void make_mamba(struct sm_list *l)
{
    *l = (struct sm_list){.type = "mamba"};
    for (int32_t i = 0; i < NLAYERS; i++) {
        add(l, (struct sm_shape){.rows = 1, .units = 24, .unit_len = 2, .layer = i});
        add(l, (struct sm_shape){.rows = 3,
                                 .units = 24 + 4 + 48,
                                 .unit_len = 1,
                                 .groups = {24, 4, 48},
                                 .ngroups = 3,
                                 .tell_groups = true,
                                 .layer = i});
    }
}

/* State of late layers only: the first stage has none. */
static void make_mamba_late(struct sm_list *l)
{
    *l = (struct sm_list){.type = "mamba"};
    for (int32_t i = 4; i < NLAYERS; i++)
        add(l, (struct sm_shape){.rows = 1, .units = 24, .unit_len = 2, .layer = i});
}

static void make_swa(struct sm_list *l)
{
    *l = (struct sm_list){.type = "swa"};
    for (int32_t i = 0; i < NLAYERS; i += 2)
        add(l, (struct sm_shape){
                   .rows = 2, .units = HEADS, .unit_len = 3, .tell_groups = true, .layer = i});
}

/* Whole pages, one writer of several. */
static void make_dsa(struct sm_list *l)
{
    *l = (struct sm_list){.type = "dsa", .kv_kind = PDX_KV_MLA};
    for (int32_t i = 0; i < NLAYERS; i++)
        add(l, (struct sm_shape){.rows = 1, .units = 9, .unit_len = 1, .copies = true, .layer = i});
}

static void make_mamba_untold(struct sm_list *l)
{
    make_mamba(l);
    l->untold = true;
}

typedef void (*make_fn)(struct sm_list *l);

struct model {
    make_fn make;
    size_t n;         /* indices that a request has of it */
    bool equal_split; /* pairs by position, so the stages must be the same on both sides */
    bool any_order;   /* told layers and parts, each once, so that places say nothing */
};

static const struct model models[] = {
    {make_mha, NPAGES, false, false},
    {make_mha_untold, NPAGES, false, false},
    {make_mha_parts, NPAGES, false, true},
    {make_mha_parts_untold, NPAGES, false, false},
    {make_mla, NPAGES, false, true},
    {make_mla_untold, NPAGES, false, false},
    {make_mla_twice, NPAGES, false, false},
    {make_sparse, NPAGES, false, false},
    {make_mixed, NPAGES, false, true},
    {make_mha_draft, NPAGES, false, false},
    {make_mha_draft_untold, NPAGES, false, false},
    {make_mla_draft, NPAGES, false, false},
    {make_mixed_draft, NPAGES, false, false},
    {make_mamba, 1, false, false},
    {make_mamba_late, 1, false, true},
    {make_swa, NPAGES, false, true},
    {make_dsa, NPAGES, false, true},
    {make_mamba_untold, 1, true, false},
};

/* --- Ways to cut them --- */

struct split {
    uint32_t prefill_pp, decode_pp;
    int32_t ends[SM_STAGES_MAX];
};

static const struct split unsplit[] = {{1, 1, {0}}};
static const struct split splits[] = {
    {2, 1, {2}}, {2, 1, {5}}, {3, 1, {1, 4}}, {4, 1, {1, 2, 5}}, {2, 2, {4}}, {4, 4, {2, 3, 5}},
};
static const uint32_t tp_sizes[][2] = {
    {1, 1}, {2, 1}, {1, 2}, {4, 2}, {2, 8}, {8, 4}, {8, 2}, {12, 4}, {1, 12},
};

/* What `run` sets in a plan; it comes whole. */
typedef void (*vary_fn)(struct sm_plan *p, uint64_t *seed);

static void run_plan(const struct model *m, const struct sm_list *l, const struct split *split,
                     const uint32_t tp[2], vary_fn vary, uint64_t *seed)
{
    int32_t src[NPAGES], dst[NPAGES];
    struct sm_plan p = {.list = l,
                        .prefill = {.tp = tp[0], .pp = split->prefill_pp},
                        .decode = {.tp = tp[1], .pp = split->decode_pp},
                        .src = src,
                        .dst = dst,
                        .n = m->n,
                        .nitems = NITEMS};

    memcpy(p.prefill.ends, split->ends, sizeof split->ends);
    if (split->decode_pp > 1)
        memcpy(p.decode.ends, split->ends, sizeof split->ends);
    sm_indices(seed, src, m->n, NITEMS);
    sm_indices(seed, dst, m->n, NITEMS);
    vary(&p, seed);
    if (!m->any_order)
        p.prefill.backwards = p.decode.backwards = false;
    (void)sm_run(&p);
}

static void run_models(const struct split *at, size_t nsplits, vary_fn vary, uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t m = 0; m < COUNT(models); m++) {
        struct sm_list l;

        models[m].make(&l);
        for (size_t s = 0; s < nsplits; s++)
            for (size_t t = 0; t < COUNT(tp_sizes); t++)
                if (!models[m].equal_split || at[s].prefill_pp == at[s].decode_pp)
                    run_plan(&models[m], &l, &at[s], tp_sizes[t], vary, &seed);
    }
}

static void vary_nothing(struct sm_plan *p, uint64_t *seed)
{
    (void)p;
    (void)seed;
}

/* Every kind of model at different TP sizes. */
static void test_models_of_every_kind_arrive(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_nothing, 20240701);
}

/* Stages of unequal size find their layers; with equal splits each serves its own. */
static void test_stages_find_their_layers_at_every_tp_pair(void **state)
{
    (void)state;
    run_models(splits, COUNT(splits), vary_nothing, 20240702);
}

static bool told(const struct sm_plan *p)
{
    return !p->list->type || !p->list->untold;
}

static void vary_each_layer(struct sm_plan *p, uint64_t *seed)
{
    (void)seed;
    p->layers = told(p);
}

/* One layer after the other, in any order, is the same as all of them in one call. */
static void test_layer_by_layer_is_the_same_as_whole(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_each_layer, 20240703);
    run_models(splits, COUNT(splits), vary_each_layer, 20240704);
}

/* State of one slot cannot be cut. */
static void vary_chunks(struct sm_plan *p, uint64_t *seed)
{
    p->chunks = p->n > 1;
    p->seed = *seed;
}

/* Parts of the page list, in any order, are the same as one call. */
static void test_chunks_in_any_order_are_the_same_as_whole(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_chunks, 20240705);
    run_models(splits, 2, vary_chunks, 20240706);
}

/* Ranges of layers, chunks, and items that take turns on either side or both. */
static void vary_all(struct sm_plan *p, uint64_t *seed)
{
    p->layers = told(p) && sm_draw(seed, 2);
    p->chunks = p->n > 1 && sm_draw(seed, 2);
    p->prefill.backwards = sm_draw(seed, 2);
    p->decode.backwards = sm_draw(seed, 2);
    p->prefill.turns = sm_draw(seed, 2);
    p->decode.turns = sm_draw(seed, 2);
    p->seed = *seed;
}

static void test_all_of_it_at_once_is_the_same_as_whole(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_all, 20240707);
    run_models(splits, COUNT(splits), vary_all, 20240708);
}

static void vary_order(struct sm_plan *p, uint64_t *seed)
{
    (void)seed;
    p->decode.backwards = true;
}

/* Where layers and parts are told, the lists of both sides need not be in the same order. */
static void test_told_tensors_pair_in_any_order(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_order, 20240712);
    run_models(splits, COUNT(splits), vary_order, 20240713);
}

static void vary_turns(struct sm_plan *p, uint64_t *seed)
{
    size_t which = 1 + sm_draw(seed, 3);

    p->prefill.turns = which & 1;
    p->decode.turns = which & 2;
}

/* Items of several tensors take turns in one buffer, on one side or both: the bytes between them
 * stay as they are. */
static void test_items_that_take_turns_arrive(void **state)
{
    (void)state;
    run_models(unsplit, COUNT(unsplit), vary_turns, 20240709);
    run_models(unsplit, COUNT(unsplit), vary_turns, 20240710);
    run_models(splits, 2, vary_turns, 20240711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_of_every_kind_arrive),
        cmocka_unit_test(test_stages_find_their_layers_at_every_tp_pair),
        cmocka_unit_test(test_layer_by_layer_is_the_same_as_whole),
        cmocka_unit_test(test_chunks_in_any_order_are_the_same_as_whole),
        cmocka_unit_test(test_all_of_it_at_once_is_the_same_as_whole),
        cmocka_unit_test(test_told_tensors_pair_in_any_order),
        cmocka_unit_test(test_items_that_take_turns_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
