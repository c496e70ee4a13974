/* SPDX-License-Identifier: Apache-2.0
 *
 * See ranks.h.
 *
 *     P > D: decode rank r takes from prefill ranks r * (P / D) and the P / D - 1 after it
 *     P < D: decode rank r takes from prefill rank r / (D / P)
 */
#include "state/plan/ranks.h"

bool pdxi_ranks_fit(const struct pdxi_rank *local, const struct pdxi_rank *remote)
{
    return local->tp_size % remote->tp_size == 0 || remote->tp_size % local->tp_size == 0;
}

static void ranks_check_tp(const struct pdxi_rank *local, const struct pdxi_rank *remote,
                           bool trust, struct pdxi_findings *f)
{
    uint32_t first, last;

    if (!pdxi_ranks_fit(local, remote)) {
        pdxi_findings_add(
            f,
            "tp_size: local %u, remote %u: neither divides the other. Choose TP sizes "
            "of which one is a multiple of the other.",
            local->tp_size, remote->tp_size);
        return;
    }
    if (local->tp_size >= remote->tp_size) {
        uint32_t each = local->tp_size / remote->tp_size;

        first = remote->tp_rank * each;
        last = first + each - 1;
    } else {
        first = remote->tp_rank / (remote->tp_size / local->tp_size);
        last = first;
    }
    if (!trust && (local->tp_rank < first || local->tp_rank > last))
        pdxi_findings_add(f,
                          "TP ranks: local %u of %u, remote %u of %u: the remote rank takes from "
                          "local ranks %u to %u. Connect those, or pass PDX_ROUTE_TRUST_PAIRING "
                          "when the pairing is your own.",
                          local->tp_rank, local->tp_size, remote->tp_rank, remote->tp_size, first,
                          last);
}

void pdxi_ranks_check(const struct pdxi_rank *local, const struct pdxi_rank *remote, bool trust,
                      struct pdxi_findings *f)
{
    ranks_check_tp(local, remote, trust, f);
    if (remote->pp_size != local->pp_size && remote->pp_size != 1)
        pdxi_findings_add(
            f,
            "Decode pp size (%u) should be equal to prefill pp size (%u) or 1. Change "
            "the pipeline size of one side.",
            remote->pp_size, local->pp_size);
    else if (!trust && remote->pp_size == local->pp_size && remote->pp_rank != local->pp_rank)
        pdxi_findings_add(f,
                          "pp_rank: local %u, remote %u of %u stages each. Connect equal stages.",
                          local->pp_rank, remote->pp_rank, local->pp_size);
}

bool pdxi_ranks_first_copy(const struct pdxi_rank *local, const struct pdxi_rank *remote,
                           bool trust)
{
    return trust || local->tp_size <= remote->tp_size ||
           local->tp_rank % (local->tp_size / remote->tp_size) == 0;
}

bool pdxi_ranks_send_aux(const struct pdxi_rank *local, const struct pdxi_rank *remote, bool trust)
{
    if (!pdxi_ranks_first_copy(local, remote, trust))
        return false;
    return trust || local->pp_size == remote->pp_size || local->pp_rank + 1 == local->pp_size;
}
