/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache of a layout: which part of its layer each tensor holds, which
 * layer that is, and the rules that heads and pages obey. kv[] is two lists,
 * one after the other: the model's tensors, then those of the draft model.
 */
#include "state/layout.h"
#include "state/plan/head_slice.h"

/* One of the two lists. */
struct kv_list {
    const char *name; /* "kv", "kv (draft)" */
    struct pdxi_tensor *at;
    uint32_t first; /* its place in kv[] */
    uint32_t n;
    bool draft;
};

static void kv_lists(const struct pdx_layout *l, struct kv_list ret[2])
{
    uint32_t first = 0;

    while (first < l->nkv && !(l->tensors[first].flags & PDX_TENSOR_DRAFT))
        first++;
    ret[0] = (struct kv_list){.name = "kv", .at = l->tensors, .n = first};
    ret[1] = (struct kv_list){.name = "kv (draft)",
                              .at = l->tensors + first,
                              .first = first,
                              .n = l->nkv - first,
                              .draft = true};
}

/* What kv_kind says of a place in the list. */
static enum pdx_kv_part kv_part_of_kind(enum pdx_kv_kind kind, uint32_t i, uint32_t n)
{
    if (kind == PDX_KV_MLA)
        return PDX_KV_PART_LATENT;
    return i < n / 2 ? PDX_KV_PART_K : PDX_KV_PART_V;
}

static void kv_resolve_list(struct pdx_layout *l, const struct kv_list *k)
{
    uint32_t of_part[PDX_KV_PART_LATENT + 1] = {0};

    for (uint32_t i = 0; i < k->n; i++) {
        struct pdxi_tensor *t = &k->at[i];
        uint64_t counted;

        t->part = t->told_part ? t->told_part : kv_part_of_kind(l->rank.kv_kind, i, k->n);
        if ((unsigned)t->part > PDX_KV_PART_LATENT)
            t->part = PDX_KV_PART_LATENT; /* pdxi_layout_kv_check refuses it */
        counted = (k->draft ? 0 : (uint64_t)l->rank.start_layer) + of_part[t->part]++;
        t->number = t->layer != PDX_LAYER_NONE ? t->layer
                    : counted < INT32_MAX      ? (int32_t)counted
                                               : INT32_MAX;
        if (t->shard_dim && t->outer == 1 && l->rank.page_size)
            t->outer = l->rank.page_size;
    }
}

void pdxi_layout_kv_resolve(struct pdx_layout *l)
{
    struct kv_list lists[2];

    kv_lists(l, lists);
    kv_resolve_list(l, &lists[0]);
    kv_resolve_list(l, &lists[1]);
    if (l->rank.kv_kind == PDX_KV_MHA || l->rank.kv_kind == PDX_KV_MIXED)
        l->rank.kv_heads = l->total_kv_head_num ? l->total_kv_head_num
                                                : (uint64_t)l->kv_head_num * l->rank.tp_size;
}

static void kv_check_heads(const struct pdx_layout *l, struct pdxi_findings *f)
{
    uint32_t tp = l->rank.tp_size;
    uint32_t total = l->total_kv_head_num;

    if (l->rank.kv_kind == PDX_KV_MLA || tp == 0 || total == 0)
        return;
    if (!pdxi_units_fit(total, tp))
        pdxi_findings_add(
            f,
            "total_kv_head_num %u and tp_size %u: neither divides the other. Choose a "
            "TP size that divides the heads, or is a multiple of them.",
            total, tp);
    else if (l->kv_head_num && l->kv_head_num != pdxi_units(total, tp))
        pdxi_findings_add(f,
                          "kv_head_num is %u, but %u heads (total_kv_head_num) over tp_size %u are "
                          "%llu on a rank. Set one of them right.",
                          l->kv_head_num, total, tp, (unsigned long long)pdxi_units(total, tp));
}

/* Either every tensor tells its part, or kv_kind does for all. */
static bool kv_check_parts(const struct pdx_layout *l, const struct kv_list *k,
                           struct pdxi_findings *f)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < k->n; i++) {
        const struct pdxi_tensor *t = &k->at[i];
        bool latent = t->told_part == PDX_KV_PART_LATENT;

        told += t->told_part != PDX_KV_PART_BY_KIND;
        if ((unsigned)t->told_part > PDX_KV_PART_LATENT ||
            (!k->draft && t->told_part && l->rank.kv_kind != PDX_KV_MIXED &&
             latent != (l->rank.kv_kind == PDX_KV_MLA))) {
            pdxi_findings_add(f,
                              "%s tensor %u: part %u is not one of its kv_kind. Use PDX_KV_MIXED "
                              "for layers of both kinds.",
                              k->name, k->first + i, (unsigned)t->told_part);
            return false;
        }
    }
    if (told == k->n || (told == 0 && l->rank.kv_kind != PDX_KV_MIXED))
        return true;
    pdxi_findings_add(f,
                      "%s: %u of %u tensors tell their part. Tell it for all; it can only be left "
                      "out for all, and not with PDX_KV_MIXED.",
                      k->name, told, k->n);
    return false;
}

/* V follows K in the same layer order, where places tell them apart. */
static void kv_check_order(const struct pdx_layout *l, const struct kv_list *k,
                           struct pdxi_findings *f)
{
    uint32_t half = k->n / 2;

    uint32_t keys = 0;

    for (uint32_t i = 0; i < k->n; i++)
        keys += k->at[i].part == PDX_KV_PART_K;
    if (l->rank.kv_kind == PDX_KV_MHA && k->n && k->at[0].told_part && keys * 2 != k->n &&
        !k->draft)
        pdxi_findings_add(f, "%s: %u tensors are K, %u V. MHA needs both of every layer.", k->name,
                          keys, k->n - keys);
    if (k->n == 0 || l->rank.kv_kind != PDX_KV_MHA || k->at[0].told_part)
        return;
    if (k->n % 2) {
        pdxi_findings_add(f,
                          "%s: there are %u tensors: MHA needs K of every layer, then V of every "
                          "layer, an even number.",
                          k->name, k->n);
        return;
    }
    for (uint32_t i = 0; i < half; i++)
        if (k->at[i].layer != k->at[half + i].layer) {
            pdxi_findings_add(f,
                              "%s tensor %u (K) is of layer %d, but tensor %u (its V) of layer %d. "
                              "List V in the layer order of K.",
                              k->name, k->first + i, k->at[i].layer, k->first + half + i,
                              k->at[half + i].layer);
            return;
        }
}

/* Either all tensors of a list tell their layer, or none; of both kinds, all do. */
static void kv_check_layers(const struct pdx_layout *l, const struct kv_list *k,
                            struct pdxi_findings *f)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < k->n; i++)
        told += k->at[i].layer != PDX_LAYER_NONE;
    if (told == k->n || (told == 0 && l->rank.kv_kind != PDX_KV_MIXED))
        return;
    pdxi_findings_add(f,
                      "%s: Layer metadata length must match transfer entries: %u of %u tensors "
                      "tell their layer. Tell it for all, or, without PDX_KV_MIXED, for none.",
                      k->name, told, k->n);
}

/* A layer has its keys and its values once; latents may be several (an indexer's are). Layers that
 * nobody set are all 0, and are found by this. Told ones mostly ascend. */
static void kv_check_repeats(const struct pdx_layout *l, const struct kv_list *k,
                             struct pdxi_findings *f)
{
    int32_t largest[PDX_KV_PART_LATENT + 1] = {-1, -1, -1, -1}; /* so far, of each part */

    if (k->n == 0 || l->rank.kv_kind == PDX_KV_MIXED || k->at[0].layer == PDX_LAYER_NONE)
        return;
    for (uint32_t i = 0; i < k->n; i++) {
        const struct pdxi_tensor *t = &k->at[i];

        if (t->part == PDX_KV_PART_LATENT)
            continue;
        for (uint32_t j = 0; t->number <= largest[t->part] && j < i; j++)
            if (k->at[j].part == t->part && k->at[j].number == t->number) {
                pdxi_findings_add(f,
                                  "%s tensors %u and %u are both of layer %d. Set the global layer "
                                  "of each, or PDX_LAYER_NONE for all; use PDX_KV_MIXED where a "
                                  "layer has several tensors of one part.",
                                  k->name, k->first + j, k->first + i, t->number);
                return;
            }
        if (t->number > largest[t->part])
            largest[t->part] = t->number;
    }
}

/* Heads on this rank, 0 when not told. */
static uint64_t kv_local_heads(const struct pdx_layout *l)
{
    if (l->kv_head_num)
        return l->kv_head_num;
    return l->total_kv_head_num ? pdxi_units(l->total_kv_head_num, l->rank.tp_size) : 0;
}

/* Pages hold page_size tokens of whole heads. What a tensor says of its own heads is checked as a
 * state tensor's axis is. */
static void kv_check_pages(const struct pdx_layout *l, struct pdxi_findings *f)
{
    uint64_t heads;

    if (l->rank.tp_size == 0 || l->rank.page_size == 0)
        return;
    heads = kv_local_heads(l);
    for (uint32_t i = 0; i < l->nkv; i++) {
        const struct pdxi_tensor *t = &l->tensors[i];
        uint64_t token = t->item_len / l->rank.page_size;

        if ((t->shard_dim || t->outer != 1 || t->ngroups) &&
            (t->part == PDX_KV_PART_LATENT || !t->shard_dim || t->outer != l->rank.page_size)) {
            pdxi_findings_add(f,
                              "kv tensor %u: shard_dim %llu, outer %llu: only keys and values have "
                              "heads of their own, and outer is then page_size %u.",
                              i, (unsigned long long)t->shard_dim, (unsigned long long)t->outer,
                              l->rank.page_size);
            return;
        }
        if (t->part == PDX_KV_PART_LATENT || t->shard_dim || heads == 0 ||
            (t->item_len % l->rank.page_size == 0 && token % heads == 0))
            continue;
        pdxi_findings_add(f,
                          "kv tensor %u: item_len %llu is not a multiple of page_size %u x %llu "
                          "heads. Set item_len to the bytes of one page.",
                          i, (unsigned long long)t->item_len, l->rank.page_size,
                          (unsigned long long)heads);
        return;
    }
}

static bool kv_check_kind(const struct pdx_layout *l, struct pdxi_findings *f)
{
    if ((unsigned)l->rank.kv_kind > PDX_KV_MIXED) {
        pdxi_findings_add(f, "kv_kind %u is none of enum pdx_kv_kind.", (unsigned)l->rank.kv_kind);
        return false;
    }
    if (l->rank.kv_kind == PDX_KV_NONE) {
        if (l->nkv)
            pdxi_findings_add(f, "kv_kind is none, but there are %u KV tensors. Set the kind.",
                              l->nkv);
        return false;
    }
    if (l->nkv == 0 && l->rank.pp_size <= 1)
        pdxi_findings_add(f, "KV memory descriptors are empty: kv_kind is told, but nkv is 0.");
    if ((int64_t)l->rank.start_layer + l->nkv > INT32_MAX)
        pdxi_findings_add(f, "start_layer %u is out of range.", l->rank.start_layer);
    return true;
}

void pdxi_layout_kv_check(const struct pdx_layout *l, struct pdxi_findings *f)
{
    struct kv_list lists[2];

    if (!kv_check_kind(l, f))
        return;
    kv_check_heads(l, f);
    kv_lists(l, lists);
    for (uint32_t i = 0; i < lists[1].n; i++)
        if (!(lists[1].at[i].flags & PDX_TENSOR_DRAFT)) {
            pdxi_findings_add(f,
                              "kv tensor %u stands behind a draft tensor. List the draft model's "
                              "tensors last.",
                              lists[1].first + i);
            return;
        }
    for (int i = 0; i < 2; i++) {
        kv_check_layers(l, &lists[i], f);
        kv_check_repeats(l, &lists[i], f);
        if (kv_check_parts(l, &lists[i], f))
            kv_check_order(l, &lists[i], f);
    }
    kv_check_pages(l, f);
}
