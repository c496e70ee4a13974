/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices of an axis that tensor parallelism splits: the heads of a KV page,
 * the channels of a mamba state. A model's axis of `total` units lies on the
 * ranks of a group in order, total / size units each; where there are fewer
 * units than ranks, size / total ranks in a row hold a copy of the same unit.
 *
 *     total 4     TP 2: | 0 1 | 2 3 |     TP 8: | 0 | 0 | 1 | 1 | 2 | 2 | 3 | 3 |
 *
 * An item is rows of such an axis. An axis may consist of blocks that are each
 * split for themselves, as the convolution state [q | k | v] of linear
 * attention; a rank then holds its part of each block, one after the other.
 */
#ifndef PDXI_STATE_PLAN_HEAD_SLICE_H
#define PDXI_STATE_PLAN_HEAD_SLICE_H

#include "state/plan/payload.h"

/* Whether `total` units can lie on `size` ranks. */
static inline bool pdxi_units_fit(uint64_t total, uint32_t size)
{
    return total > 0 && (total % size == 0 || size % total == 0);
}

/* How many of them one rank holds. */
static inline uint64_t pdxi_units(uint64_t total, uint32_t size)
{
    return total > size ? total / size : 1;
}

enum pdxi_part {
    PDXI_PART_WRONG = 0, /* the tensors do not fit; a finding says why */
    PDXI_PART_ELSEWHERE, /* other ranks hold and send the same */
    PDXI_PART_HERE       /* the match has its slices, or is whole */
};

/* Works out the slices of `m` from two tensors whose shard_dim, outer and item_len are set. The
 * split axis has ntotals blocks of the unsplit widths `totals`. */
enum pdxi_part pdxi_head_slice(struct pdxi_payload *p, struct pdxi_match *m,
                               const struct pdxi_ask *ask, const struct pdxi_tensor *lt,
                               const struct pdxi_tensor *rt, const uint64_t *totals,
                               uint32_t ntotals, struct pdxi_findings *f);

/* Calls `one` for each match and keeps those that are sent from here. Stops after a few that do not
 * fit. */
typedef enum pdxi_part (*pdxi_part_fn)(struct pdxi_payload *p, struct pdxi_match *m,
                                       const struct pdxi_ask *ask, struct pdxi_findings *f);
void pdxi_head_slice_each(struct pdxi_payload *p, const struct pdxi_ask *ask, pdxi_part_fn one,
                          struct pdxi_findings *f);

#endif
