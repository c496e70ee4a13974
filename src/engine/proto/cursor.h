/* SPDX-License-Identifier: Apache-2.0
 *
 * The generator behind every transfer: a position in a plan that is moved on
 * by as many segments as a transport has room for. It merges what is adjacent
 * on both sides and cuts at the transport's limits. A cursor is a small value:
 * a copy taken before a step walks the same segments again, which is how reads
 * find their destinations when data arrives and how a transfer goes on over a
 * new connection.
 */
#ifndef PDXI_PROTO_CURSOR_H
#define PDXI_PROTO_CURSOR_H

#include "engine/proto/plan.h"

struct pdxi_cursor {
    uint64_t row; /* of the slice */
    uint64_t off; /* bytes into the row, or into the run where whole items touch */
    uint32_t pair;
    uint32_t run;
    uint32_t item;  /* of the run */
    uint32_t slice; /* or the scatter list's entry */
};

struct pdxi_cursor_limits {
    uint32_t max_segs;  /* at least 1 */
    uint64_t max_bytes; /* sum over the segments; at least 1 */
    uint64_t max_seg;   /* one segment; at least 1 */
};

static inline void pdxi_cursor_init(struct pdxi_cursor *c)
{
    *c = (struct pdxi_cursor){0};
}

/* Whether nothing is left. */
bool pdxi_cursor_at_end(const struct pdxi_plan *plan, const struct pdxi_cursor *c);

/* Takes the next segments, all of one pair, whose number goes to *ret_pair, and their sum to
 * *ret_bytes. Returns how many (0 only at the end); moves the cursor behind them. */
uint32_t pdxi_cursor_next(const struct pdxi_plan *plan, struct pdxi_cursor *c,
                          const struct pdxi_cursor_limits *limits, struct pdx_seg *ret_segs,
                          uint32_t *ret_pair, uint64_t *ret_bytes);

#endif
