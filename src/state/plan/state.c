/* SPDX-License-Identifier: Apache-2.0
 *
 * State components. How a type's tensors lie on the ranks is in its row: the
 * same on every rank, split by an axis that the layouts tell, entries of a
 * ring, or whatever the row's slicer says. Between different TP sizes nothing
 * is guessed: what no layout and no row tells is refused.
 */
#include "base/check.h"
#include "base/error.h"
#include "state/plan/planners.h"
#include "state/plan/ranks.h"
#include "state/plan/ring_span.h"
#include "state/plan/state_tensor.h"

/* A tensor as a slicer sees it. */
static struct pdx_tensor state_public(const struct pdxi_tensor *t)
{
    return (struct pdx_tensor){
        .off = t->off,
        .len = t->len,
        .item_len = t->item_len,
        .stride = t->stride,
        .layer = t->layer,
        .flags = t->flags,
        .part = t->part,
        .shard_dim = t->shard_dim,
        .outer = t->outer,
        .groups = t->groups,
        .ngroups = t->ngroups,
    };
}

/* Whether the rows of a slice lie apart inside an item on one side. Between items of a stride lies
 * the memory of other tensors, so the engine's own limit, the stride, is not enough. */
static bool state_slice_inside(const struct pdx_slice *s, uint64_t off, uint64_t pitch,
                               uint64_t item_len)
{
    uint64_t last;

    return s->len && s->rows && (s->rows == 1 || pitch >= s->len) &&
           pdxi_mul_u64(s->rows - 1, pitch, &last) && pdxi_add_u64(last, off, &last) &&
           pdxi_inside(last, s->len, item_len);
}

static bool state_check_slice(const struct pdxi_match *m, const struct pdxi_ask *ask, int i,
                              const struct pdx_slice *s, struct pdxi_findings *f)
{
    uint64_t local = ask->local_tensors.at[m->local].item_len;
    uint64_t remote = ask->remote_tensors.at[m->remote].item_len;

    if (state_slice_inside(s, s->local_off, s->local_pitch, local) &&
        state_slice_inside(s, s->remote_off, s->remote_pitch, remote))
        return true;
    pdxi_findings_add(
        f,
        "%s tensor %u: slice %d of its slicer is empty, has rows that overlap, or leaves an item: "
        "len %llu, "
        "rows %llu, local off %llu, pitch %llu, item_len %llu, remote off %llu, pitch "
        "%llu, item_len %llu.",
        ask->what, m->local, i, (unsigned long long)s->len, (unsigned long long)s->rows,
        (unsigned long long)s->local_off, (unsigned long long)s->local_pitch,
        (unsigned long long)local, (unsigned long long)s->remote_off,
        (unsigned long long)s->remote_pitch, (unsigned long long)remote);
    return false;
}

/* Asks the row's slicer. */
static enum pdxi_part state_slicer(struct pdxi_payload *p, struct pdxi_match *m,
                                   const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    const struct pdx_slicer_ask public_ask = {
        .type = ask->type->name,
        .local_tp_size = ask->local->tp_size,
        .local_tp_rank = ask->local->tp_rank,
        .remote_tp_size = ask->remote->tp_size,
        .remote_tp_rank = ask->remote->tp_rank,
        .tensor = m->local,
        .local = state_public(&ask->local_tensors.at[m->local]),
        .remote = state_public(&ask->remote_tensors.at[m->remote]),
    };
    struct pdx_slice slices[PDX_SLICES_MAX];
    char text[256] = "";
    uint32_t first = p->nslices;
    int n = ask->type->slicer(ask->type->slicer_ctx, &public_ask, slices, text, sizeof text);

    text[sizeof text - 1] = '\0';
    if (n < 0 || n > PDX_SLICES_MAX) {
        pdxi_findings_add(
            f, "%s tensor %u: its slicer gave %d (slices, at most 64; below 0: it refuses): %s",
            ask->what, m->local, n, text[0] ? text : "no text");
        return PDXI_PART_WRONG;
    }
    if (n == 0)
        return PDXI_PART_ELSEWHERE;
    for (int i = 0; i < n; i++) {
        if (!state_check_slice(m, ask, i, &slices[i], f))
            return PDXI_PART_WRONG;
        pdxi_payload_add(p, &slices[i]);
    }
    pdxi_payload_close(p, first, m);
    return PDXI_PART_HERE;
}

static enum pdxi_part state_part(struct pdxi_payload *p, struct pdxi_match *m,
                                 const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    bool split = (ask->type->flags & PDX_STATE_KV_HEADS) != 0;
    uint64_t heads =
        split && ask->local->kv_heads == ask->remote->kv_heads ? ask->local->kv_heads : 0;

    if (ask->type->slicer)
        return state_slicer(p, m, ask, f);
    if (ask->type->flags & PDX_STATE_RING_SPAN)
        return pdxi_ring_span_tensor(m, ask, f);
    return pdxi_state_tensor(p, m, ask, heads, f);
}

/* Whether the type or the KV cache makes every rank hold the same, where no tensor says more. */
static bool state_replicated(const struct pdxi_ask *ask)
{
    if (ask->type->flags & PDX_STATE_REPLICATED)
        return true;
    return (ask->type->flags & PDX_STATE_REPLICATED_MLA) && ask->local->kv_kind == PDX_KV_MLA;
}

/* Whether no side says how ranks share the tensor. */
static bool state_untold(const struct pdxi_ask *ask, const struct pdxi_match *m)
{
    const struct pdxi_tensor *lt = &ask->local_tensors.at[m->local];
    const struct pdxi_tensor *rt = &ask->remote_tensors.at[m->remote];

    return !lt->shard_dim && !rt->shard_dim && !((lt->flags | rt->flags) & PDX_TENSOR_REPLICATED);
}

/* Different TP sizes, and nothing says what the ranks have of it. Told once for the component. */
static bool state_refuse_untold(const struct pdxi_payload *p, const struct pdxi_ask *ask,
                                struct pdxi_findings *f)
{
    char upper[PDX_STATE_TYPE_MAX + 1];
    char what[160];
    uint32_t i = 0;

    if (ask->local->tp_size == ask->remote->tp_size || ask->type->slicer || state_replicated(ask))
        return false;
    while (i < p->nmatches && !state_untold(ask, &p->matches[i]))
        i++;
    if (i == p->nmatches)
        return false;
    pdxi_text_upper(upper, sizeof upper, ask->type->name); /* "SWA", as operators know it */
    if (ask->tp_text)
        (void)pdxi_text_append(what, sizeof what, 0, "%s", ask->tp_text);
    else
        (void)pdxi_text_append(
            what, sizeof what, 0, "PD state transfer does not support TP-mismatched %s%s models",
            ask->type->flags & PDX_STATE_REPLICATED_MLA ? "non-MLA " : "", upper);
    pdxi_findings_add(
        f,
        "%s tensor %u: %s (prefill_tp_size=%u, decode_tp_size=%u) unless both layouts "
        "give, for each of its tensors, shard_dim, the units of the split axis on the rank, with "
        "outer, the rows in front of it, and groups where it is several blocks as in conv "
        "[q|k|v]; or PDX_TENSOR_REPLICATED where every rank holds the same.",
        ask->what, p->matches[i].local, what, ask->local->tp_size, ask->remote->tp_size);
    return true;
}

void pdxi_plan_state(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    if (!pdxi_payload_pair(p, ask, (struct pdxi_select){PDX_KV_PART_BY_KIND, 0}, f) ||
        !pdxi_ranks_fit(ask->local, ask->remote) || state_refuse_untold(p, ask, f))
        return;
    pdxi_head_slice_each(p, ask, state_part, f);
}
