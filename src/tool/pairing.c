/* SPDX-License-Identifier: Apache-2.0
 *
 * See pairing.h.
 */
#include "tool/pairing.h"

#include "tool/refuse.h"

int tool_pairing_check(const uint32_t tp[2], const uint32_t pp[2], struct pdx_error *why)
{
    uint32_t large = tp[0] > tp[1] ? tp[0] : tp[1], small = tp[0] > tp[1] ? tp[1] : tp[0];

    if (large % small != 0)
        return tool_refuse(
            why, PDX_EINVAL,
            "prefill TP %u and decode TP %u do not fit together: the larger one must "
            "be a multiple of the smaller one",
            tp[0], tp[1]);
    if (pp[1] != pp[0] && pp[1] != 1)
        return tool_refuse(
            why, PDX_EINVAL,
            "prefill PP %u and decode PP %u do not fit together: decode must have as "
            "many stages as prefill, or 1",
            pp[0], pp[1]);
    return 0;
}

bool tool_pairing_meets(const uint32_t tp[2], const uint32_t pp[2], uint32_t p, uint32_t d)
{
    uint32_t in_p = p % tp[0], in_d = d % tp[1]; /* ranks in the TP groups */

    if (pp[1] > 1 && p / tp[0] != d / tp[1])
        return false;
    return tp[0] >= tp[1] ? in_p / (tp[0] / tp[1]) == in_d : in_d / (tp[1] / tp[0]) == in_p;
}
