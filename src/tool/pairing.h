/* SPDX-License-Identifier: Apache-2.0
 *
 * Which prefill ranks have something for which decode ranks: those of whose shares
 * of the model one lies inside the other. Which of several ranks that hold the same
 * bytes sends them is the library's business (pdx_route_carries).
 */
#ifndef PDX_TOOL_PAIRING_H
#define PDX_TOOL_PAIRING_H

#include <pdx/error.h>

/* One TP size must divide the other. Errors: PDX_EINVAL with both sizes. */
int tool_pairing_check(uint32_t prefill_tp, uint32_t decode_tp, struct pdx_error *why);

/* Whether prefill rank p has a part of what decode rank d holds. */
bool tool_pairing_meets(uint32_t prefill_tp, uint32_t decode_tp, uint32_t p, uint32_t d);

#endif
