/* SPDX-License-Identifier: Apache-2.0
 *
 * The KV cache. MHA: the first half of the tensors is K, the second V, each in
 * layer order; a page is page_size rows (tokens) of this rank's heads, which
 * other TP sizes split differently. MLA: one latent tensor per layer, the same
 * on every TP rank, so pages move whole and one rank sends them.
 */
#include "state/plan/head_slice.h"
#include "state/plan/planners.h"
#include "state/plan/ranks.h"

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

static enum pdxi_part kv_latent(struct pdxi_payload *p, struct pdxi_match *m,
                                const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    (void)p;
    if (kv_whole(m, ask, f) == PDXI_PART_WRONG)
        return PDXI_PART_WRONG;
    return pdxi_ranks_first_copy(ask->local, ask->remote, ask->trust) ? PDXI_PART_HERE
                                                                      : PDXI_PART_ELSEWHERE;
}

static enum pdxi_part kv_heads(struct pdxi_payload *p, struct pdxi_match *m,
                               const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    struct pdxi_tensor lt = ask->local_tensors.at[m->local];
    struct pdxi_tensor rt = ask->remote_tensors.at[m->remote];
    uint64_t total = ask->local->kv_heads;

    if (ask->local->tp_size == ask->remote->tp_size)
        return kv_whole(m, ask, f);
    lt.shard_dim = pdxi_units(total, ask->local->tp_size);
    lt.outer = ask->local->page_size;
    rt.shard_dim = pdxi_units(total, ask->remote->tp_size);
    rt.outer = ask->remote->page_size;
    return pdxi_head_slice(p, m, ask, &lt, &rt, &total, 1, f);
}

/* Whether heads can be found on ranks of both TP sizes. */
static bool kv_heads_fit(const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    uint64_t local = ask->local->kv_heads;
    uint64_t remote = ask->remote->kv_heads;

    if (ask->local->tp_size == ask->remote->tp_size)
        return true;
    if (local && local == remote && pdxi_units_fit(local, ask->local->tp_size) &&
        pdxi_units_fit(local, ask->remote->tp_size))
        return true;
    pdxi_findings_add(f,
                      "%s: KV heads of the model: local %llu over tp_size %u, remote %llu over "
                      "tp_size %u (0: not told). Set total_kv_head_num on both sides, and TP sizes "
                      "that divide it or that it divides.",
                      ask->what, (unsigned long long)local, ask->local->tp_size,
                      (unsigned long long)remote, ask->remote->tp_size);
    return false;
}

void pdxi_plan_kv(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    uint32_t nlocal = ask->local_tensors.n;
    uint32_t nremote = ask->remote_tensors.n;
    bool mha = ask->local->kv_kind == PDX_KV_MHA;
    uint32_t parts = mha ? 2 : 1; /* K and V, or the latent */
    uint32_t found = f->n;

    if (ask->local->kv_kind != ask->remote->kv_kind || nlocal == 0)
        return;
    for (uint32_t i = 0; i < parts && f->n == found; i++)
        (void)pdxi_payload_pair(p, ask, i * (nlocal / parts), nlocal / parts, i * (nremote / parts),
                                nremote / parts, true, f);
    if (f->n != found) {
        pdxi_findings_add(f,
                          "Destination %sKV descriptors do not match prefill pp configuration "
                          "(local start_layer %u, remote start_layer %u).",
                          mha ? "" : "MLA ", ask->local->start_layer, ask->remote->start_layer);
        return;
    }
    if (!pdxi_ranks_fit(ask->local, ask->remote) || (mha && !kv_heads_fit(ask, f)))
        return;
    pdxi_head_slice_each(p, ask, mha ? kv_heads : kv_latent, f);
}
