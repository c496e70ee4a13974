/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of rings: dsa_tail keeps the last tokens of a request in a ring, one
 * row of `ring` entries per request. Which entries are alive is told by six
 * numbers on each side,
 *
 *     [row, first, count, first2, count2, ring]
 *
 * two runs of entries, the second one for what has wrapped around (count2 0:
 * nothing has). Both sides may stand at different places of rings of different
 * size; the n-th live entry goes to the n-th. So entries, not rows, are what
 * the engine's items are.
 */
#ifndef PDXI_STATE_PLAN_RING_SPAN_H
#define PDXI_STATE_PLAN_RING_SPAN_H

#include "state/plan/head_slice.h"

#define PDXI_RING_SPAN_LEN 6
#define PDXI_RING_MAX      4096 /* entries of one ring */

/* Checks one pair of ring tensors, as pdxi_part_fn: entries of the same length, and the same number
 * of them in each tensor of a side. */
enum pdxi_part pdxi_ring_span_tensor(const struct pdxi_match *m, const struct pdxi_ask *ask,
                                     struct pdxi_findings *f);

/* What a route keeps of its rings. */
struct pdxi_ring {
    uint32_t entries; /* of one row, at most PDXI_RING_MAX */
    uint64_t rows;
};

/* Writes the live entries of a span, in order, as item numbers: row x ring + entry. `ret` has room
 * for ring->entries. Returns how many, or -1 with *ret_why a clause that says what is wrong. */
int pdxi_ring_span_expand(const struct pdxi_ring *ring, const int32_t *span, size_t n, int32_t *ret,
                          const char **ret_why);

#endif
