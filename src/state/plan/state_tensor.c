/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_tensor.h.
 */
#include "state/plan/state_tensor.h"

#include "base/check.h"
#include "state/plan/ranks.h"

#include <string.h>

/* Both sides told the axis, and it is not the same one. */
static bool state_axis_differs(const struct pdxi_tensor *lt, const struct pdxi_tensor *rt)
{
    if (!lt->shard_dim || !rt->shard_dim)
        return false;
    return lt->outer != rt->outer || lt->ngroups != rt->ngroups ||
           (lt->ngroups && memcmp(lt->groups, rt->groups, lt->ngroups * sizeof *lt->groups) != 0);
}

/* Items that are the same on both sides, so that they move whole. */
static enum pdxi_part state_whole(const struct pdxi_match *m, const struct pdxi_ask *ask,
                                  const struct pdxi_tensor *lt, const struct pdxi_tensor *rt,
                                  struct pdxi_findings *f)
{
    if (lt->item_len != rt->item_len) {
        pdxi_findings_add(f,
                          "%s tensor %u: item_len: local %llu, remote %llu. Configure the same "
                          "state shapes and dtype on both sides; where TP splits the state, set "
                          "shard_dim on both.",
                          ask->what, m->local, (unsigned long long)lt->item_len,
                          (unsigned long long)rt->item_len);
        return PDXI_PART_WRONG;
    }
    if (lt->shard_dim && rt->shard_dim && lt->shard_dim != rt->shard_dim) {
        pdxi_findings_add(f,
                          "%s tensor %u: shard_dim: local %llu, remote %llu at the same TP size. "
                          "Configure the same state shapes on both sides.",
                          ask->what, m->local, (unsigned long long)lt->shard_dim,
                          (unsigned long long)rt->shard_dim);
        return PDXI_PART_WRONG;
    }
    return PDXI_PART_HERE;
}

/* The unsplit width of an axis of one block that no layout tells: what the shards add up to, or
 * `heads` where some ranks hold copies. 0: the shards contradict. */
static uint64_t state_total(const struct pdxi_ask *ask, const struct pdxi_tensor *lt,
                            const struct pdxi_tensor *rt, uint64_t heads)
{
    uint32_t local_tp = ask->local->tp_size;
    uint32_t remote_tp = ask->remote->tp_size;
    uint64_t local, remote;

    if (pdxi_mul_u64(lt->shard_dim, local_tp, &local) &&
        pdxi_mul_u64(rt->shard_dim, remote_tp, &remote) && local == remote)
        return local;
    if (heads && pdxi_units(heads, local_tp) == lt->shard_dim &&
        pdxi_units(heads, remote_tp) == rt->shard_dim)
        return heads;
    return 0;
}

static enum pdxi_part state_split(struct pdxi_payload *p, struct pdxi_match *m,
                                  const struct pdxi_ask *ask, const struct pdxi_tensor *lt,
                                  const struct pdxi_tensor *rt, uint64_t heads,
                                  struct pdxi_findings *f)
{
    uint64_t total = lt->ngroups ? 0 : state_total(ask, lt, rt, heads);

    if (lt->ngroups)
        return pdxi_head_slice(p, m, ask, lt, rt, lt->groups, lt->ngroups, f);
    if (total)
        return pdxi_head_slice(p, m, ask, lt, rt, &total, 1, f);
    pdxi_findings_add(
        f,
        "%s tensor %u: shard_dim x tp_size: local %llu x %u, remote %llu x %u are not "
        "the same axis. Set shard_dim 0 on both sides where every rank holds all of "
        "it; where ranks hold copies of units, set groups to the unsplit width.",
        ask->what, m->local, (unsigned long long)lt->shard_dim, ask->local->tp_size,
        (unsigned long long)rt->shard_dim, ask->remote->tp_size);
    return PDXI_PART_WRONG;
}

/* What one side says of the ranks, the other does not. */
static enum pdxi_part state_one_sided(const struct pdxi_match *m, const struct pdxi_ask *ask,
                                      const struct pdxi_tensor *lt, const struct pdxi_tensor *rt,
                                      struct pdxi_findings *f)
{
    pdxi_findings_add(f,
                      "%s tensor %u: shard_dim: local %llu%s, remote %llu%s at tp_size %u and %u. "
                      "Set it on both sides, or PDX_TENSOR_REPLICATED on both where every rank "
                      "holds all of it.",
                      ask->what, m->local, (unsigned long long)lt->shard_dim,
                      lt->flags & PDX_TENSOR_REPLICATED ? " (replicated)" : "",
                      (unsigned long long)rt->shard_dim,
                      rt->flags & PDX_TENSOR_REPLICATED ? " (replicated)" : "", ask->local->tp_size,
                      ask->remote->tp_size);
    return PDXI_PART_WRONG;
}

enum pdxi_part pdxi_state_tensor(struct pdxi_payload *p, struct pdxi_match *m,
                                 const struct pdxi_ask *ask, uint64_t heads,
                                 struct pdxi_findings *f)
{
    const struct pdxi_tensor *lt = &ask->local_tensors.at[m->local];
    const struct pdxi_tensor *rt = &ask->remote_tensors.at[m->remote];

    if (state_axis_differs(lt, rt)) {
        pdxi_findings_add(f,
                          "%s tensor %u: rows in front of the split axis (local %llu, remote %llu) "
                          "or its groups (local %u, remote %u of them) differ. Describe the tensor "
                          "alike on both sides.",
                          ask->what, m->local, (unsigned long long)lt->outer,
                          (unsigned long long)rt->outer, lt->ngroups, rt->ngroups);
        return PDXI_PART_WRONG;
    }
    if ((lt->flags ^ rt->flags) & PDX_TENSOR_REPLICATED)
        return state_one_sided(m, ask, lt, rt, f);
    if (ask->local->tp_size == ask->remote->tp_size)
        return state_whole(m, ask, lt, rt, f);
    if (lt->shard_dim && rt->shard_dim)
        return state_split(p, m, ask, lt, rt, heads, f);
    if (lt->shard_dim || rt->shard_dim)
        return state_one_sided(m, ask, lt, rt, f);
    if (state_whole(m, ask, lt, rt, f) == PDXI_PART_WRONG)
        return PDXI_PART_WRONG;
    return pdxi_ranks_first_copy(ask->local, ask->remote, ask->trust) ? PDXI_PART_HERE
                                                                      : PDXI_PART_ELSEWHERE;
}
