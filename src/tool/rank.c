/* SPDX-License-Identifier: Apache-2.0
 *
 * See rank.h.
 */
#include "tool/rank.h"

#include "tool/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tool_rank_init(struct tool_rank *r, const struct tool_group *g, uint32_t rank,
                   const struct tool_sizing *sizing, uint64_t seed, struct pdx_error *why)
{
    *r = (struct tool_rank){.group = g, .rank = rank, .npools = sizing->npools};
    r->model = &tool_group_stage(g, rank)->model;
    for (size_t i = 0; i < r->npools; i++) {
        int err = tool_pool_init(&r->pools[i], r->model, i, g->tp, rank, sizing, seed, why);

        if (err < 0)
            return err;
        if (tool_sizing_follows_kv(r->model, i))
            r->pools[i].leader = &r->pools[0];
    }
    return 0;
}

void tool_rank_fini(struct tool_rank *r)
{
    pdx_layout_destroy(r->layout);
    for (size_t i = 0; i < r->npools; i++)
        tool_pool_fini(&r->pools[i]);
    *r = (struct tool_rank){0};
}

/* The tensors of a pool as the library wants them; NULL when there are none or no memory. */
static struct pdx_tensor *rank_tensors(const struct tool_rank *r, size_t pool, bool state)
{
    const struct tool_pool *p = &r->pools[pool];
    struct pdx_tensor *v = calloc(p->ntensors, sizeof *v);

    for (size_t t = 0; v && t < p->ntensors; t++) {
        const struct tool_tensor *of = &p->tensors[t];
        uint64_t item_len = tool_tensor_item_len(of, r->group->tp);

        v[t] = (struct pdx_tensor){
            .region = p->region,
            .off = p->offs[t],
            .len = p->nitems * item_len,
            .item_len = item_len,
            .layer = of->layer,
        };
        if (state && of->replicated)
            v[t].flags = PDX_TENSOR_REPLICATED;
        if (!state || of->replicated)
            continue;
        v[t].shard_dim = tool_tensor_units(of, r->group->tp);
        v[t].outer = of->rows;
        v[t].groups = of->ngroups ? of->groups : NULL;
        v[t].ngroups = of->ngroups;
    }
    return v;
}

bool tool_rank_can_swap(const struct tool_rank *r)
{
    const struct tool_pool *kv = &r->pools[0];

    return kv->ntensors > 1 && kv->tensors[0].layer != kv->tensors[1].layer;
}

/* The first two layers take each other's number. */
static void rank_swap_layers(const struct tool_rank *r, struct pdx_tensor *kv)
{
    int32_t a = r->pools[0].tensors[0].layer, b = r->pools[0].tensors[1].layer;

    for (size_t t = 0; t < r->pools[0].ntensors; t++) {
        if (kv[t].layer == a || kv[t].layer == b)
            kv[t].layer = kv[t].layer == a ? b : a;
    }
}

static int rank_describe(struct tool_rank *r, struct pdx_component *components,
                         struct pdx_tensor *const *tensors, struct pdx_error *why)
{
    const struct tool_model *m = r->model;
    const struct tool_group *g = r->group;
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;

    if (r->swap_layers && tool_rank_can_swap(r))
        rank_swap_layers(r, tensors[0]);
    for (size_t c = 0; c < m->ncomponents; c++)
        components[c] = (struct pdx_component){
            .type = m->components[c].type,
            .tensors = tensors[c + 1],
            .ntensors = r->pools[c + 1].ntensors,
        };
    desc.engine_rank = r->rank;
    desc.tp_size = g->tp;
    desc.pp_size = g->pp;
    desc.pp_rank = r->rank / g->tp;
    desc.start_layer = tool_group_stage(g, r->rank)->first;
    desc.kv_kind = m->kv_kind; /* also where this stage has no layer with a KV cache */
    desc.page_size = m->page_size;
    desc.dtype = m->dtype;
    desc.total_kv_head_num = m->kv_heads;
    if (desc.kv_kind == PDX_KV_MHA)
        desc.kv_head_num = m->kv_heads < g->tp ? 1 : m->kv_heads / g->tp;
    desc.kv = tensors[0];
    desc.nkv = r->pools[0].ntensors;
    desc.aux = tensors[r->npools - 1];
    desc.naux = r->pools[r->npools - 1].ntensors;
    desc.components = components;
    desc.ncomponents = m->ncomponents;
    return pdx_layout_create(&desc, &r->layout, why);
}

int tool_rank_register(struct tool_rank *r, struct pdx_engine *engine, uint32_t rights,
                       struct pdx_error *why)
{
    struct pdx_component components[TOOL_COMPONENTS_MAX];
    struct pdx_tensor *tensors[TOOL_POOLS_MAX] = {0};
    int err = 0;

    for (size_t i = 0; i < r->npools && err == 0; i++) {
        err = tool_pool_register(&r->pools[i], engine, rights, why);
        if (err < 0 || r->pools[i].ntensors == 0)
            continue;
        tensors[i] = rank_tensors(r, i, i > 0 && i < r->npools - 1);
        if (!tensors[i])
            err = tool_refuse(why, PDX_ENOMEM, "no memory for the layout of rank %u", r->rank);
    }
    if (err == 0)
        err = rank_describe(r, components, tensors, why);
    for (size_t i = 0; i < r->npools; i++)
        free(tensors[i]);
    return err;
}

int tool_rank_place(struct tool_rank *r, uint32_t tokens, struct tool_placement *ret)
{
    struct tool_placement pl = {0};
    int err = 0;

    for (size_t i = 0; i < r->npools && err == 0; i++) {
        uint32_t n;

        pl.spans[i] = tool_sizing_span(r->model, i, tokens);
        n = pl.spans[i].n;
        if (n == 0 || r->pools[i].leader)
            continue;
        pl.items[i] = calloc(n, sizeof *pl.items[i]);
        if (!pl.items[i]) {
            err = PDX_ENOMEM;
        } else if (!tool_pool_take(&r->pools[i], n, pl.items[i])) {
            err = PDX_EAGAIN;
            free(pl.items[i]);
            pl.items[i] = NULL;
        }
    }
    if (err < 0)
        tool_rank_release(r, &pl);
    else
        *ret = pl;
    return err;
}

void tool_rank_release(struct tool_rank *r, struct tool_placement *pl)
{
    for (size_t i = 0; i < r->npools; i++) {
        if (pl->items[i])
            tool_pool_give(&r->pools[i], pl->items[i], pl->spans[i].n);
        free(pl->items[i]);
    }
    *pl = (struct tool_placement){0};
}

const int32_t *tool_placement_items(const struct tool_rank *r, const struct tool_placement *pl,
                                    size_t pool)
{
    return pl->items[r->pools[pool].leader ? 0 : pool];
}

void tool_rank_poison(struct tool_rank *r)
{
    for (size_t i = 0; i < r->npools; i++)
        tool_pool_poison(&r->pools[i]);
}

void tool_rank_fill(struct tool_rank *r, uint64_t seed, uint64_t request,
                    const struct tool_placement *pl)
{
    for (size_t i = 0; i < r->npools; i++)
        tool_pool_fill(&r->pools[i], seed, request, pl->spans[i], tool_placement_items(r, pl, i));
}

static void rank_text(const struct tool_rank *r, size_t pool, const struct tool_fault *f,
                      char *text, size_t cap)
{
    int n = snprintf(text, cap, "rank %u, ", r->rank);

    if (n > 0 && (size_t)n < cap)
        tool_fault_text(&r->pools[pool], f, text + n, cap - (size_t)n);
}

bool tool_rank_check_poison(const struct tool_rank *r, const struct tool_placement *pl, char *text,
                            size_t cap)
{
    for (size_t i = 0; i < r->npools; i++) {
        struct tool_fault f;

        if (tool_pool_check_poison(&r->pools[i], tool_placement_items(r, pl, i), pl->spans[i].n,
                                   &f))
            continue;
        rank_text(r, i, &f, text, cap);
        return false;
    }
    return true;
}

bool tool_rank_verify(struct tool_rank *r, uint64_t seed, uint64_t request,
                      const struct tool_placement *pl, uint64_t *bytes, char *text, size_t cap)
{
    bool good = true;

    for (size_t i = 0; i < r->npools; i++) {
        struct tool_fault f;

        if (tool_pool_verify(&r->pools[i], seed, request, pl->spans[i],
                             tool_placement_items(r, pl, i), bytes, &f))
            continue;
        if (good)
            rank_text(r, i, &f, text, cap);
        good = false;
    }
    return good;
}

bool tool_rank_check_rest(const struct tool_rank *r, uint64_t *count, char *text, size_t cap)
{
    for (size_t i = 0; i < r->npools; i++) {
        struct tool_fault f;

        if (tool_pool_check_rest(&r->pools[i], count, &f))
            continue;
        rank_text(r, i, &f, text, cap);
        return false;
    }
    return true;
}

void tool_rank_forget(struct tool_rank *r, const struct tool_placement *pl)
{
    for (size_t i = 0; i < r->npools; i++)
        tool_pool_poison_items(&r->pools[i], tool_placement_items(r, pl, i), pl->spans[i].n);
}
