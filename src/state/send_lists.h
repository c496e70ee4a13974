/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the index lists of one state component by the rules of its type, and
 * brings them into the engine's form.
 */
#ifndef PDXI_STATE_SEND_LISTS_H
#define PDXI_STATE_SEND_LISTS_H

#include "state/route.h"

#define PDXI_STATE_FAILED "PD state transfer failed: " /* in front of the texts operators know */

/* Entries of rings, of all components of one send. */
struct pdxi_send_entries {
    int32_t local[PDXI_RING_MAX];
    int32_t remote[PDXI_RING_MAX];
    size_t n;
};

/* Returns 0 and the items in *ret; none of them for a component that is none, or empty, on both
 * sides. Negative code: the lists break the type's rules. */
int pdxi_send_lists(const struct pdx_route *route, size_t component, struct pdx_index_list src,
                    struct pdx_index_list dst, struct pdxi_send_entries *entries,
                    struct pdx_items *ret, struct pdx_error *why);

#endif
