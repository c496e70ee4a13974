/* SPDX-License-Identifier: Apache-2.0
 *
 * mamba: the recurrent state of a request, one slot in each tensor. The rows of
 * a tensor are split by channels or heads; a convolution state has several
 * blocks that are each split for themselves (see head_slice.h).
 */
#include "state/plan/planners.h"
#include "state/plan/ranks.h"
#include "state/plan/state_tensor.h"

static enum pdxi_part mamba_tensor(struct pdxi_payload *p, struct pdxi_match *m,
                                   const struct pdxi_ask *ask, struct pdxi_findings *f)
{
    return pdxi_state_tensor(p, m, ask, 0, f);
}

void pdxi_plan_mamba(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    if (!pdxi_payload_pair(p, ask, 0, ask->local_tensors.n, 0, ask->remote_tensors.n, false, f) ||
        !pdxi_ranks_fit(ask->local, ask->remote))
        return;
    pdxi_head_slice_each(p, ask, mamba_tensor, f);
}
