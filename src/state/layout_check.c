/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules that every layout obeys, whether its own process described it or a
 * peer sent it. All that is broken is found in one pass, so that a user mends
 * it in one go. Sums and products of what a peer chose are checked for 64 bits.
 */
#include "base/check.h"
#include "state/layout.h"
#include "state/plan/head_slice.h"

#include <stdio.h>

/* Findings of one layout, and how many of them are about ranges. */
struct layout_checker {
    const struct pdx_layout *l;
    struct pdxi_findings *f;
    uint32_t range;
    char name[96]; /* of the tensor at hand: "kv tensor 3" */
};

static void check_ranks(struct layout_checker *c)
{
    const struct pdxi_rank *r = &c->l->rank;

    if (r->tp_size == 0)
        pdxi_findings_add(c->f, "tp_size is 0. Use 1 without tensor parallelism.");
    if (r->pp_size == 0 || r->pp_rank >= r->pp_size)
        pdxi_findings_add(c->f, "pp_rank %u is not below pp_size %u.", r->pp_rank, r->pp_size);
    if (r->page_size == 0)
        pdxi_findings_add(c->f, "page_size is 0. Give the tokens of one KV page.");
}

static void check_heads(struct layout_checker *c)
{
    const struct pdx_layout *l = c->l;
    uint32_t tp = l->rank.tp_size;
    uint32_t total = l->total_kv_head_num;

    if (l->rank.kv_kind != PDX_KV_MHA || tp == 0 || total == 0)
        return;
    if (!pdxi_units_fit(total, tp))
        pdxi_findings_add(
            c->f,
            "total_kv_head_num %u and tp_size %u: neither divides the other. Choose a "
            "TP size that divides the heads, or is a multiple of them.",
            total, tp);
    else if (l->kv_head_num && l->kv_head_num != pdxi_units(total, tp))
        pdxi_findings_add(c->f,
                          "kv_head_num is %u, but %u heads (total_kv_head_num) over tp_size %u are "
                          "%llu on a rank. Set one of them right.",
                          l->kv_head_num, total, tp, (unsigned long long)pdxi_units(total, tp));
}

/* What the heads of this rank are, 0 when not told. */
static uint64_t check_local_heads(const struct pdx_layout *l)
{
    if (l->kv_head_num)
        return l->kv_head_num;
    return l->total_kv_head_num ? pdxi_units(l->total_kv_head_num, l->rank.tp_size) : 0;
}

static void check_kv(struct layout_checker *c)
{
    const struct pdx_layout *l = c->l;
    const struct pdxi_tensors kv = pdxi_layout_kv(l);
    uint32_t half = kv.n / 2;

    if ((unsigned)l->rank.kv_kind > PDX_KV_MLA) {
        pdxi_findings_add(c->f, "kv_kind %u is none of enum pdx_kv_kind.",
                          (unsigned)l->rank.kv_kind);
        return;
    }
    if (l->rank.kv_kind == PDX_KV_NONE) {
        if (kv.n)
            pdxi_findings_add(c->f, "kv_kind is none, but there are %u KV tensors. Set the kind.",
                              kv.n);
        return;
    }
    if (kv.n == 0)
        pdxi_findings_add(c->f, "KV memory descriptors are empty: kv_kind is %s, but nkv is 0.",
                          l->rank.kv_kind == PDX_KV_MHA ? "MHA" : "MLA");
    if ((int64_t)l->rank.start_layer + kv.n > INT32_MAX)
        pdxi_findings_add(c->f, "start_layer %u is out of range.", l->rank.start_layer);
    if (l->rank.kv_kind == PDX_KV_MLA)
        return;
    check_heads(c);
    if (kv.n % 2) {
        pdxi_findings_add(c->f,
                          "nkv is %u: MHA needs K of every layer, then V of every layer, an even "
                          "number.",
                          kv.n);
        return;
    }
    for (uint32_t i = 0; i < half; i++)
        if (kv.at[i].layer != kv.at[half + i].layer) {
            pdxi_findings_add(c->f,
                              "kv tensor %u (K) is of layer %d, but tensor %u (its V) of layer %d. "
                              "List V in the layer order of K.",
                              i, kv.at[i].layer, half + i, kv.at[half + i].layer);
            break;
        }
}

/* Either all tensors of a list tell their layer, or none. */
static void check_layers(struct layout_checker *c, const char *list, struct pdxi_tensors t)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < t.n; i++) {
        if (t.at[i].layer < PDX_LAYER_NONE) {
            pdxi_findings_add(c->f, "%s tensor %u: layer %d is negative.", list, i, t.at[i].layer);
            return;
        }
        told += t.at[i].layer != PDX_LAYER_NONE;
    }
    if (told && told != t.n)
        pdxi_findings_add(c->f,
                          "%s: Layer metadata length must match transfer entries: %u of %u tensors "
                          "tell their layer. Tell it for all, or for none.",
                          list, told, t.n);
}

/* Where the tensor lies. */
static void check_range(struct layout_checker *c, const struct pdxi_tensor *t)
{
    const struct pdxi_layout_region *r = &c->l->regions[t->region];

    if (t->item_len == 0 || t->len == 0 || t->len % t->item_len != 0) {
        pdxi_findings_add(c->f,
                          "%s: len %llu is not a whole number of items of %llu bytes. Set item_len "
                          "to the bytes that one index addresses.",
                          c->name, (unsigned long long)t->len, (unsigned long long)t->item_len);
        return;
    }
    if (t->len / t->item_len > (uint64_t)INT32_MAX + 1)
        pdxi_findings_add(c->f, "%s: %llu items are more than an index can tell.", c->name,
                          (unsigned long long)(t->len / t->item_len));
    if (!pdxi_inside(t->off, t->len, r->remote.len)) {
        pdxi_findings_add(c->f,
                          "%s: off %llu + len %llu leaves its region of %llu bytes. Register the "
                          "whole tensor.",
                          c->name, (unsigned long long)t->off, (unsigned long long)t->len,
                          (unsigned long long)r->remote.len);
        c->range++;
    }
}

/* What is on one rank of the blocks that the groups are in the unsplit model. */
static bool check_groups_sum(const struct pdxi_tensor *t, uint32_t tp, uint64_t *ret_sum)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < t->ngroups; i++)
        if (!pdxi_units_fit(t->groups[i], tp) ||
            !pdxi_add_u64(sum, pdxi_units(t->groups[i], tp), &sum))
            return false;
    *ret_sum = sum;
    return true;
}

/* How an item of a state tensor is split. */
static void check_axis(struct layout_checker *c, const struct pdxi_tensor *t)
{
    uint32_t tp = c->l->rank.tp_size;
    uint64_t units = t->shard_dim ? t->shard_dim : 1;
    uint64_t row = t->item_len / t->outer;
    uint64_t sum;

    if (t->item_len && (t->item_len % t->outer || row % units))
        pdxi_findings_add(
            c->f,
            "%s: item_len %llu is not a multiple of outer %llu x shard_dim %llu. Give "
            "the shape of one item on this rank.",
            c->name, (unsigned long long)t->item_len, (unsigned long long)t->outer,
            (unsigned long long)units);
    if (t->ngroups == 0 || tp == 0)
        return;
    if (!check_groups_sum(t, tp, &sum))
        pdxi_findings_add(c->f,
                          "%s: a group's width neither is a multiple of tp_size %u nor divides it. "
                          "Give the widths of the unsplit model.",
                          c->name, tp);
    else if (sum != t->shard_dim)
        pdxi_findings_add(c->f,
                          "%s: its groups are %llu units on a rank of tp_size %u, but shard_dim is "
                          "%llu. Give the widths of the unsplit model.",
                          c->name, (unsigned long long)sum, tp, (unsigned long long)t->shard_dim);
}

static void check_tensors(struct layout_checker *c, const char *list, struct pdxi_tensors t,
                          bool state)
{
    check_layers(c, list, t);
    for (uint32_t i = 0; i < t.n; i++) {
        (void)snprintf(c->name, sizeof c->name, "%s tensor %u", list, i);
        check_range(c, &t.at[i]);
        if (state)
            check_axis(c, &t.at[i]);
        else if (t.at[i].shard_dim || t.at[i].ngroups || t.at[i].outer != 1)
            pdxi_findings_add(c->f,
                              "%s: shard_dim, outer and groups are for state tensors. Leave them "
                              "0; heads are told by kv_head_num.",
                              c->name);
    }
}

/* Pages hold page_size tokens of whole heads. */
static void check_pages(struct layout_checker *c)
{
    const struct pdx_layout *l = c->l;
    const struct pdxi_tensors kv = pdxi_layout_kv(l);
    uint64_t heads;

    if (l->rank.kv_kind != PDX_KV_MHA || l->rank.tp_size == 0 || l->rank.page_size == 0)
        return;
    heads = check_local_heads(l);
    for (uint32_t i = 0; heads && i < kv.n; i++) {
        uint64_t token = kv.at[i].item_len / l->rank.page_size;

        if (kv.at[i].item_len % l->rank.page_size == 0 && token % heads == 0)
            continue;
        pdxi_findings_add(c->f,
                          "kv tensor %u: item_len %llu is not a multiple of page_size %u x %llu "
                          "heads. Set item_len to the bytes of one page.",
                          i, (unsigned long long)kv.at[i].item_len, l->rank.page_size,
                          (unsigned long long)heads);
        return;
    }
}

static void check_component(struct layout_checker *c, uint32_t i)
{
    const struct pdxi_layout_component *co = &c->l->components[i];
    char list[64];

    (void)snprintf(list, sizeof list, "component %u (%s)", i, co->type);
    if (co->n == 0)
        pdxi_findings_add(c->f, "%s has no tensors. Register them or leave the component out.",
                          list);
    check_tensors(c, list, pdxi_layout_component(c->l, i), true);
}

int pdxi_layout_check(struct pdx_layout *l, struct pdxi_findings *f)
{
    struct layout_checker c = {.l = l, .f = f};

    check_ranks(&c);
    check_kv(&c);
    check_tensors(&c, "kv", pdxi_layout_kv(l), false);
    check_pages(&c);
    check_tensors(&c, "aux", pdxi_layout_aux(l), false);
    for (uint32_t i = 0; i < l->ncomponents; i++)
        check_component(&c, i);
    if (l->ntensors == 0)
        pdxi_findings_add(f, "there are no tensors at all. Describe what this rank can send or "
                             "receive.");
    if (f->n)
        return f->n == c.range ? PDX_ERANGE : PDX_EINVAL;
    l->rank.tp_rank = l->engine_rank % l->rank.tp_size;
    if (l->rank.kv_kind == PDX_KV_MHA)
        l->rank.kv_heads = l->total_kv_head_num ? l->total_kv_head_num
                                                : (uint64_t)l->kv_head_num * l->rank.tp_size;
    return PDX_OK;
}
