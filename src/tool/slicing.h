/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the units of one tensor lie on one tensor-parallel rank. An item of the
 * unsplit model is rows x units x unit_len bytes in a row; a rank holds, of each
 * row, one run of neighbouring units per block:
 *
 *     unsplit row   | q0 q1 q2 q3 | k0 k1 k2 k3 | v0 v1 v2 v3 v4 v5 v6 v7 |
 *     rank 1 of 2         | q2 q3 | k2 k3 | v4 v5 v6 v7 |
 *
 * Content and comparison walk these runs, so that both sides mean the same bytes
 * whatever their TP sizes are.
 */
#ifndef PDX_TOOL_SLICING_H
#define PDX_TOOL_SLICING_H

#include "tool/model.h"

#define TOOL_BLOCKS_MAX 4

struct tool_block {
    uint64_t off; /* bytes into the rank's row */
    uint64_t pos; /* bytes into the row of the unsplit model */
    uint64_t len;
};

struct tool_slicing {
    uint64_t rows;
    uint64_t row_len;      /* bytes on this rank */
    uint64_t full_row_len; /* bytes in the unsplit model */
    uint32_t nblocks;
    struct tool_block blocks[TOOL_BLOCKS_MAX];
    uint64_t key; /* of the content: what tells this tensor from the others of its pool */
};

void tool_slicing_init(struct tool_slicing *s, const struct tool_tensor *t, uint32_t tp,
                       uint32_t rank);

static inline uint64_t tool_slicing_item_len(const struct tool_slicing *s)
{
    return s->rows * s->row_len;
}

#endif
