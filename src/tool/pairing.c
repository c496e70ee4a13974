/* SPDX-License-Identifier: Apache-2.0
 *
 * See pairing.h.
 */
#include "tool/pairing.h"

#include "tool/refuse.h"

int tool_pairing_check(uint32_t prefill_tp, uint32_t decode_tp, struct pdx_error *why)
{
    uint32_t large = prefill_tp > decode_tp ? prefill_tp : decode_tp;
    uint32_t small = prefill_tp > decode_tp ? decode_tp : prefill_tp;

    if (large % small == 0)
        return 0;
    return tool_refuse(why, PDX_EINVAL,
                       "prefill TP %u and decode TP %u do not fit together: the larger one must be "
                       "a multiple of the smaller one",
                       prefill_tp, decode_tp);
}

bool tool_pairing_meets(uint32_t prefill_tp, uint32_t decode_tp, uint32_t p, uint32_t d)
{
    return prefill_tp >= decode_tp ? p / (prefill_tp / decode_tp) == d
                                   : d / (decode_tp / prefill_tp) == p;
}
