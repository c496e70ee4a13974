/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a model into stages, and sizes the ranks of all of them alike; see
 * group.h.
 */
#include "tool/group.h"

#include "tool/refuse.h"

#include <stdlib.h>

int tool_group_check(const struct tool_model *m, uint32_t tp, uint32_t pp, struct pdx_error *why)
{
    int err = tool_model_check_tp(m, tp, why);

    if (err < 0)
        return err;
    if (pp == 0 || pp > m->nlayers || pp > TOOL_PP_MAX)
        return tool_refuse(
            why, PDX_EINVAL,
            "PP size %u cannot split %s: it must be from 1 to %u, so that each stage "
            "has a layer",
            pp, m->name, m->nlayers < TOOL_PP_MAX ? m->nlayers : TOOL_PP_MAX);
    if (tp > TOOL_TP_MAX || tp * pp > TOOL_RANKS_MAX)
        return tool_refuse(
            why, PDX_EINVAL,
            "TP size %u with PP size %u makes %llu ranks; the TP size may be at most "
            "%d, and both together make at most %d ranks",
            tp, pp, (unsigned long long)tp * pp, TOOL_TP_MAX, TOOL_RANKS_MAX);
    return 0;
}

void tool_group_layers(uint32_t nlayers, uint32_t pp, uint32_t stage, uint32_t *ret_first,
                       uint32_t *ret_end)
{
    uint32_t each = nlayers / pp, shorter = pp - nlayers % pp;

    *ret_first = stage * each + (stage > shorter ? stage - shorter : 0);
    *ret_end = *ret_first + each + (stage >= shorter);
}

/* Copies the tensors of the stage's layers; none leaves NULL. */
static int stage_take(const struct tool_stage *stage, const struct tool_tensor *tensors, size_t n,
                      struct tool_tensor **ret_tensors, size_t *ret_n)
{
    struct tool_tensor *taken = calloc(n ? n : 1, sizeof *taken);
    size_t ntaken = 0;

    if (!taken)
        return PDX_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].layer >= (int32_t)stage->first && tensors[i].layer < (int32_t)stage->end)
            taken[ntaken++] = tensors[i];
    }
    if (ntaken == 0) {
        free(taken);
        taken = NULL;
    }
    *ret_tensors = taken;
    *ret_n = ntaken;
    return 0;
}

/* The model with the layers of one stage. */
static int stage_init(struct tool_stage *stage, const struct tool_model *m)
{
    struct tool_model *part = &stage->model;
    int err;

    *part = *m;
    part->kv = NULL;
    part->nkv = 0;
    part->ncomponents = 0;
    part->components = calloc(m->ncomponents + 1, sizeof *part->components);
    if (!part->components)
        return PDX_ENOMEM;
    err = stage_take(stage, m->kv, m->nkv, &part->kv, &part->nkv);
    for (size_t c = 0; c < m->ncomponents && err == 0; c++) {
        struct tool_component *k = &part->components[part->ncomponents++];

        *k = m->components[c];
        k->tensors = NULL;
        k->ntensors = 0;
        err = stage_take(stage, m->components[c].tensors, m->components[c].ntensors, &k->tensors,
                         &k->ntensors);
    }
    return err;
}

int tool_group_init(struct tool_group *g, const struct tool_model *m, uint32_t tp, uint32_t pp,
                    struct pdx_error *why)
{
    int err = 0;

    *g = (struct tool_group){.tp = tp};
    g->stages = calloc(pp, sizeof *g->stages);
    while (g->stages && err == 0 && g->pp < pp) {
        struct tool_stage *stage = &g->stages[g->pp];

        tool_group_layers(m->nlayers, pp, g->pp++, &stage->first, &stage->end);
        err = stage_init(stage, m);
    }
    if (!g->stages || err < 0)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %u stages of %s", pp, m->name);
    return 0;
}

void tool_group_fini(struct tool_group *g)
{
    for (uint32_t k = 0; g->stages && k < g->pp; k++)
        tool_model_fini(&g->stages[k].model);
    free(g->stages);
    *g = (struct tool_group){0};
}

static uint32_t group_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The fewer items of a pool, where a stage without its layers has none and does not count. */
static void group_join(struct tool_sizing *all, const struct tool_sizing *one)
{
    for (size_t i = 0; i < one->npools; i++) {
        if (one->items[i] == 0 || (all->items[i] && all->items[i] <= one->items[i]))
            continue;
        all->items[i] = one->items[i];
        all->guards[i] = one->guards[i];
    }
    all->npools = one->npools;
    if (one->bytes > all->bytes)
        all->bytes = one->bytes;
}

int tool_group_plan(const struct tool_group *g, uint64_t limit, uint64_t gap, uint32_t inflight,
                    uint32_t max_tokens, bool guarded, struct tool_sizing *ret,
                    struct pdx_error *why)
{
    struct tool_sizing all = {.inflight = inflight, .max_tokens = max_tokens}, one;

    /* First what each stage has room for, then all of them for the least of that. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < g->pp; k++) {
            int err = tool_sizing_plan(&g->stages[k].model, g->tp, limit, gap, all.inflight,
                                       all.max_tokens, guarded, &one, why);

            if (err < 0)
                return err;
            all.inflight = group_min(all.inflight, one.inflight);
            all.max_tokens = group_min(all.max_tokens, one.max_tokens);
            if (pass == 1)
                group_join(&all, &one);
        }
    }
    *ret = all;
    return 0;
}
