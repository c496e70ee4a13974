/* SPDX-License-Identifier: Apache-2.0
 *
 * Which prefill ranks have something for which decode ranks: those of whose shares
 * of the model one lies inside the other. Which of several ranks that hold the same
 * bytes sends them is the library's business (pdx_route_carries). Sizes come in
 * pairs: of prefill, of decode.
 */
#ifndef PDX_TOOL_PAIRING_H
#define PDX_TOOL_PAIRING_H

#include <pdx/error.h>
#include <stddef.h>

/* One TP size must divide the other; decode has prefill's PP size, or one stage. Errors: PDX_EINVAL
 * with both sizes. */
int tool_pairing_check(const uint32_t tp[2], const uint32_t pp[2], struct pdx_error *why);

/* Whether prefill rank p has a part of what decode rank d holds. */
bool tool_pairing_meets(const uint32_t tp[2], const uint32_t pp[2], uint32_t p, uint32_t d);

/* How many pairs of ranks meet. */
static inline size_t tool_pairing_count(const uint32_t tp[2], const uint32_t pp[2])
{
    return (size_t)pp[0] * (tp[0] > tp[1] ? tp[0] : tp[1]);
}

#endif
