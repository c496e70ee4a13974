/* SPDX-License-Identifier: Apache-2.0
 *
 * One pair of state tensors: whether items move whole or in slices. What the
 * planners of slots and pages share.
 */
#ifndef PDXI_STATE_PLAN_STATE_TENSOR_H
#define PDXI_STATE_PLAN_STATE_TENSOR_H

#include "state/plan/head_slice.h"

/* Works out the part of one pair, as pdxi_part_fn. `heads`: how many units the axis has in the
 * unsplit model, for tensors whose shards do not add up to it because ranks hold copies; 0: not
 * known. Tensors without a split axis are the same on every rank; that somebody said so has been
 * checked. */
enum pdxi_part pdxi_state_tensor(struct pdxi_payload *p, struct pdxi_match *m,
                                 const struct pdxi_ask *ask, uint64_t heads,
                                 struct pdxi_findings *f);

#endif
