/* SPDX-License-Identifier: Apache-2.0
 *
 * swa and dsa: pages of a pool of their own, or of the KV cache's numbering.
 * Between different TP sizes they move in head slices where the layouts give
 * the split axis, and whole where attention is MLA, whose pages are the same on
 * every rank.
 */
#include "state/plan/planners.h"
#include "state/plan/ranks.h"
#include "state/plan/state_tensor.h"

static enum pdxi_part paged_tensor(struct pdxi_payload *p, struct pdxi_match *m,
                                   const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    uint64_t heads = ask->local->kv_heads == ask->remote->kv_heads ? ask->local->kv_heads : 0;

    return pdxi_state_tensor(p, m, ask, heads, f);
}

/* Pages whose heads the TP sizes split differently, without a word on where the heads are. */
static bool paged_heads_untold(const struct pdxi_payload *p, const struct pdxi_ask *ask)
{
    if (ask->local->kv_kind == PDX_KV_MLA || ask->local->tp_size == ask->remote->tp_size)
        return false;
    for (uint32_t i = 0; i < p->nmatches; i++)
        if (!ask->local_tensors.at[p->matches[i].local].shard_dim &&
            !ask->remote_tensors.at[p->matches[i].remote].shard_dim)
            return true;
    return false;
}

/* "swa" is "SWA" in the sentence that operators know. */
static void paged_upper(char ret[PDX_STATE_TYPE_MAX + 1], const char *type)
{
    size_t i = 0;

    for (; i < PDX_STATE_TYPE_MAX && type[i]; i++)
        ret[i] = type[i] >= 'a' && type[i] <= 'z' ? (char)(type[i] - 'a' + 'A') : type[i];
    ret[i] = '\0';
}

void pdxi_plan_paged(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    char type[PDX_STATE_TYPE_MAX + 1];

    if (!pdxi_payload_pair(p, ask, 0, ask->local_tensors.n, 0, ask->remote_tensors.n, false, f) ||
        !pdxi_ranks_fit(ask->local, ask->remote))
        return;
    if (paged_heads_untold(p, ask)) {
        paged_upper(type, ask->type);
        pdxi_findings_add(f,
                          "%s: PD state transfer does not support TP-mismatched non-MLA %s models "
                          "(prefill_tp_size=%u, decode_tp_size=%u) unless both layouts give "
                          "shard_dim, the KV heads on the rank, and outer, the tokens of a page.",
                          ask->what, type, ask->local->tp_size, ask->remote->tp_size);
        return;
    }
    pdxi_head_slice_each(p, ask, paged_tensor, f);
}
