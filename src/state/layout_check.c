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
    if (r->page_size == 0 && r->kv_kind != PDX_KV_NONE)
        pdxi_findings_add(c->f, "page_size is 0. Give the tokens of one KV page.");
}

/* Either all tensors of a list tell their layer, or none. */
static void check_layers(struct layout_checker *c, const char *list, struct pdxi_tensors t)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < t.n; i++)
        told += t.at[i].layer != PDX_LAYER_NONE;
    if (told && told != t.n)
        pdxi_findings_add(c->f,
                          "%s: Layer metadata length must match transfer entries: %u of %u tensors "
                          "tell their layer. Tell it for all, or for none.",
                          list, told, t.n);
}

static void check_layer(struct layout_checker *c, const struct pdxi_tensor *t)
{
    if (t->layer < PDX_LAYER_NONE || t->layer == PDX_LAYERS_END)
        pdxi_findings_add(c->f, "%s: layer %d is negative or too large.", c->name, t->layer);
}

/* Items of a whole number, each inside its stride. */
static bool check_items(struct layout_checker *c, const struct pdxi_tensor *t)
{
    if (t->item_len == 0 || t->len < t->item_len ||
        (t->stride == t->item_len && t->len % t->item_len != 0))
        pdxi_findings_add(c->f,
                          "%s: len %llu is not a whole number of items of %llu bytes. Set item_len "
                          "to the bytes that one index addresses.",
                          c->name, (unsigned long long)t->len, (unsigned long long)t->item_len);
    else if (t->stride < t->item_len || (t->len - t->item_len) % t->stride != 0)
        pdxi_findings_add(c->f,
                          "%s: stride %llu and len %llu: a stride is at least item_len %llu, and "
                          "len ends with the last item. Leave stride 0 where items touch.",
                          c->name, (unsigned long long)t->stride, (unsigned long long)t->len,
                          (unsigned long long)t->item_len);
    else if (pdxi_tensor_items(t) > (uint64_t)INT32_MAX + 1)
        pdxi_findings_add(c->f, "%s: %llu items are more than an index can tell.", c->name,
                          (unsigned long long)pdxi_tensor_items(t));
    else
        return true;
    return false;
}

/* Where the tensor lies. */
static void check_range(struct layout_checker *c, const struct pdxi_tensor *t)
{
    const struct pdxi_layout_region *r = &c->l->regions[t->region];

    if (!check_items(c, t) || pdxi_inside(t->off, t->len, r->remote.len))
        return;
    pdxi_findings_add(c->f,
                      "%s: off %llu + len %llu leaves its region of %llu bytes. Register the "
                      "whole tensor.",
                      c->name, (unsigned long long)t->off, (unsigned long long)t->len,
                      (unsigned long long)r->remote.len);
    c->range++;
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

/* What a list of tensors may have. */
struct check_rules {
    uint32_t flags; /* enum pdx_tensor_flags */
    bool part;
    bool axis;       /* shard_dim, outer, groups */
    bool own_layers; /* its layers are checked elsewhere */
};

static void check_words(struct layout_checker *c, const struct check_rules *rules,
                        const struct pdxi_tensor *t)
{
    if (t->flags & ~rules->flags)
        pdxi_findings_add(c->f, "%s: flags 0x%x; only 0x%x can stand here.", c->name, t->flags,
                          rules->flags);
    if (!rules->part && t->told_part)
        pdxi_findings_add(c->f, "%s: part is for KV tensors. Leave it 0.", c->name);
    if (!rules->axis && (t->shard_dim || t->ngroups || t->outer != 1))
        pdxi_findings_add(c->f,
                          "%s: shard_dim, outer and groups are for tensors that TP splits. Leave "
                          "them 0.",
                          c->name);
    if ((t->flags & PDX_TENSOR_REPLICATED) && t->shard_dim)
        pdxi_findings_add(c->f,
                          "%s: it has shard_dim %llu, but every rank holds the same "
                          "(PDX_TENSOR_REPLICATED). Tell one of them.",
                          c->name, (unsigned long long)t->shard_dim);
}

/* Returns 0 or PDX_ENOMEM. */
static int check_tensors(struct layout_checker *c, const char *list,
                         const struct check_rules *rules, struct pdxi_tensors t)
{
    uint32_t found = c->f->n;

    if (!rules->own_layers)
        check_layers(c, list, t);
    for (uint32_t i = 0; i < t.n; i++) {
        (void)snprintf(c->name, sizeof c->name, "%s tensor %u", list, i);
        check_range(c, &t.at[i]);
        check_layer(c, &t.at[i]);
        check_words(c, rules, &t.at[i]);
        if (rules->axis)
            check_axis(c, &t.at[i]);
    }
    return c->f->n == found ? pdxi_layout_overlap(c->l, list, t, c->f) : 0;
}

static int check_component(struct layout_checker *c, uint32_t i)
{
    static const struct check_rules rules = {.flags = PDX_TENSOR_REPLICATED, .axis = true};
    const struct pdxi_layout_component *co = &c->l->components[i];
    char list[64];

    (void)snprintf(list, sizeof list, "component %u (%s)", i, co->type);
    if (co->n == 0 && c->l->rank.pp_size <= 1)
        pdxi_findings_add(c->f, "%s has no tensors. Register them or leave the component out.",
                          list);
    if (co->slots > PDXI_LAYOUT_SLOTS_MAX)
        pdxi_findings_add(c->f, "%s: %u slots of one request are more than %u.", list, co->slots,
                          PDXI_LAYOUT_SLOTS_MAX);
    return check_tensors(c, list, &rules, pdxi_layout_component(c->l, i));
}

/* What follows from the description, whatever its values are. */
static void check_resolve(struct pdx_layout *l)
{
    if (l->rank.tp_size)
        l->rank.tp_rank = l->engine_rank % l->rank.tp_size;
    for (uint32_t i = l->nkv; i < l->ntensors; i++)
        l->tensors[i].number = l->tensors[i].layer;
    pdxi_layout_kv_resolve(l);
}

int pdxi_layout_check(struct pdx_layout *l, struct pdxi_findings *f)
{
    static const struct check_rules kv_rules = {
        .flags = PDX_TENSOR_DRAFT, .part = true, .axis = true, .own_layers = true};
    static const struct check_rules aux_rules = {0};
    struct layout_checker c = {.l = l, .f = f};
    int rc;

    check_resolve(l);
    check_ranks(&c);
    pdxi_layout_kv_check(l, f);
    rc = check_tensors(&c, "kv", &kv_rules, pdxi_layout_kv(l));
    if (rc == 0)
        rc = check_tensors(&c, "aux", &aux_rules, pdxi_layout_aux(l));
    for (uint32_t i = 0; rc == 0 && i < l->ncomponents; i++)
        rc = check_component(&c, i);
    if (l->ntensors == 0 && l->rank.pp_size <= 1)
        pdxi_findings_add(f, "there are no tensors at all. Describe what this rank can send or "
                             "receive.");
    if (f->n)
        return f->n == c.range ? PDX_ERANGE : PDX_EINVAL;
    return rc;
}
