/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache. Keys and values: a page is page_size rows (tokens) of this
 * rank's heads, which other TP sizes split differently. Latents (MLA): the same
 * on every TP rank, so pages move whole and one rank sends them. A layer has
 * one or the other; a draft model's tensors are paired by themselves.
 */
#include "state/plan/head_slice.h"
#include "state/plan/planners.h"
#include "state/plan/ranks.h"
#include "state/plan/state_tensor.h"

static enum pdxi_part kv_whole(const struct pdxi_match *m, const struct pdxi_ask *ask,
                               struct pdxi_findings *f)
{
    uint64_t local = ask->local_tensors.at[m->local].item_len;
    uint64_t remote = ask->remote_tensors.at[m->remote].item_len;

    if (local == remote)
        return PDXI_PART_HERE;
    pdxi_findings_add(f,
                      "%s tensor %u: item_len: local %llu, remote %llu. Serve the same model with "
                      "the same page size and cache dtype on both sides.",
                      ask->what, m->local, (unsigned long long)local, (unsigned long long)remote);
    return PDXI_PART_WRONG;
}

static enum pdxi_part kv_latent(const struct pdxi_match *m, const struct pdxi_ask *ask,
                                struct pdxi_findings *f)
{
    if (kv_whole(m, ask, f) == PDXI_PART_WRONG)
        return PDXI_PART_WRONG;
    return pdxi_ranks_first_copy(ask->local, ask->remote, ask->trust) ? PDXI_PART_HERE
                                                                      : PDXI_PART_ELSEWHERE;
}

/* Heads as the layouts tell them for all tensors. */
static enum pdxi_part kv_heads(struct pdxi_payload *p, struct pdxi_match *m,
                               const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    struct pdxi_tensor lt = ask->local_tensors.at[m->local];
    struct pdxi_tensor rt = ask->remote_tensors.at[m->remote];
    uint64_t total = ask->local->kv_heads;

    lt.shard_dim = pdxi_units(total, ask->local->tp_size);
    lt.outer = ask->local->page_size;
    rt.shard_dim = pdxi_units(total, ask->remote->tp_size);
    rt.outer = ask->remote->page_size;
    return pdxi_head_slice(p, m, ask, &lt, &rt, &total, 1, f);
}

static bool kv_has_own_heads(const struct pdxi_ask *ask, const struct pdxi_match *m)
{
    return ask->local_tensors.at[m->local].shard_dim || ask->remote_tensors.at[m->remote].shard_dim;
}

static enum pdxi_part kv_tensor(struct pdxi_payload *p, struct pdxi_match *m,
                                const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    if (ask->local_tensors.at[m->local].part == PDX_KV_PART_LATENT)
        return kv_latent(m, ask, f);
    if (kv_has_own_heads(ask, m))
        return pdxi_state_tensor(p, m, ask, 0, f);
    if (ask->local->tp_size == ask->remote->tp_size)
        return kv_whole(m, ask, f);
    return kv_heads(p, m, ask, f);
}

/* Whether heads can be found on ranks of both TP sizes, for the tensors that leave it to the
 * layout. */
static bool kv_heads_fit(const struct pdxi_payload *p, const struct pdxi_ask *ask,
                         struct pdxi_findings *f)
{
    uint64_t local = ask->local->kv_heads;
    uint64_t remote = ask->remote->kv_heads;
    bool needed = false;

    if (ask->local->tp_size == ask->remote->tp_size)
        return true;
    for (uint32_t i = 0; i < p->nmatches && !needed; i++)
        needed = ask->local_tensors.at[p->matches[i].local].part != PDX_KV_PART_LATENT &&
                 !kv_has_own_heads(ask, &p->matches[i]);
    if (!needed || (local && local == remote && pdxi_units_fit(local, ask->local->tp_size) &&
                    pdxi_units_fit(local, ask->remote->tp_size)))
        return true;
    pdxi_findings_add(f,
                      "%s: KV heads of the model: local %llu over tp_size %u, remote %llu over "
                      "tp_size %u (total_kv_head_num, or kv_head_num x tp_size; 0: not told). Set "
                      "total_kv_head_num on both sides, and TP sizes "
                      "that divide it or that it divides.",
                      ask->what, (unsigned long long)local, ask->local->tp_size,
                      (unsigned long long)remote, ask->remote->tp_size);
    return false;
}

static const enum pdx_kv_part kv_parts[] = {PDX_KV_PART_K, PDX_KV_PART_V, PDX_KV_PART_LATENT};

#define KV_NPARTS (sizeof kv_parts / sizeof kv_parts[0])

/* Tensors of the draft model, or of the model itself, with whatever they hold. */
static uint32_t kv_count(const struct pdxi_tensors *t, uint32_t draft)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < KV_NPARTS; i++)
        n += pdxi_payload_count(t, (struct pdxi_select){kv_parts[i], draft});
    return n;
}

static void kv_pair(struct pdxi_payload *p, const struct pdxi_ask *ask, uint32_t draft,
                    struct pdxi_findings *f)
{
    uint32_t found = f->n;

    for (uint32_t i = 0; i < KV_NPARTS && f->n == found; i++)
        (void)pdxi_payload_pair(p, ask, (struct pdxi_select){kv_parts[i], draft}, f);
    if (f->n != found)
        pdxi_findings_add(f,
                          "Destination %sKV descriptors do not match prefill pp configuration "
                          "(%slocal start_layer %u, remote start_layer %u).",
                          ask->local->kv_kind == PDX_KV_MLA ? "MLA " : "",
                          draft ? "draft model; " : "", ask->local->start_layer,
                          ask->remote->start_layer);
}

/* The last pipeline stage has the draft model; the stages before it have nothing to send. */
static void kv_pair_draft(struct pdxi_payload *p, const struct pdxi_ask *ask,
                          struct pdxi_findings *f)
{
    uint32_t local = kv_count(&ask->local_tensors, PDX_TENSOR_DRAFT);
    uint32_t remote = kv_count(&ask->remote_tensors, PDX_TENSOR_DRAFT);
    bool split = ask->local->pp_size > ask->remote->pp_size;
    bool early = split && ask->local->pp_rank + 1 < ask->local->pp_size;
    bool last = split && !early;

    if (local && remote && (local >= remote || !last || ask->trust))
        kv_pair(p, ask, PDX_TENSOR_DRAFT, f);
    else if (local && remote)
        pdxi_findings_add(f,
                          "%s: draft model tensors: local %u, remote %u: the remote side has draft "
                          "layers that nothing is sent to. Run the same draft model on both sides.",
                          ask->what, local, remote);
    else if (local != remote && !ask->without_draft && !(local == 0 && (early || ask->trust)))
        pdxi_findings_add(f,
                          "%s: draft model tensors: local %u, remote %u. Run the same draft model "
                          "on both sides, or pass PDX_ROUTE_WITHOUT_DRAFT to leave them alone.",
                          ask->what, local, remote);
}

/* A later stage whose layers nobody told would write over the first one's. */
static void kv_check_start(const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    const struct pdxi_tensors *t = &ask->local_tensors;

    if (ask->local->pp_size > ask->remote->pp_size && ask->local->pp_rank > 0 && !ask->trust &&
        t->n && t->at[0].layer == PDX_LAYER_NONE && !(t->at[0].flags & PDX_TENSOR_DRAFT) &&
        ask->local->start_layer == 0)
        pdxi_findings_add(f,
                          "%s: pp_rank is %u of %u, but its layers begin at start_layer 0. Set "
                          "start_layer, or pdx_tensor.layer on both sides.",
                          ask->what, ask->local->pp_rank, ask->local->pp_size);
}

void pdxi_plan_kv(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    uint32_t found = f->n;

    if (ask->local->kv_kind != ask->remote->kv_kind)
        return;
    kv_check_start(ask, f);
    kv_pair(p, ask, 0, f);
    kv_pair_draft(p, ask, f);
    if (f->n != found || !pdxi_ranks_fit(ask->local, ask->remote) || !kv_heads_fit(p, ask, f))
        return;
    pdxi_head_slice_each(p, ask, kv_tensor, f);
}
