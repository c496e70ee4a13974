/* SPDX-License-Identifier: Apache-2.0
 *
 * See slicing.h.
 */
#include "tool/slicing.h"

#include "tool/content.h"

#include <assert.h>

/* A run of units that is split by itself: the whole axis, or one of its groups. */
static void slicing_add_block(struct tool_slicing *s, const struct tool_tensor *t, uint64_t first,
                              uint64_t width, uint32_t tp, uint32_t rank)
{
    struct tool_tensor axis = *t;
    struct tool_block *b = &s->blocks[s->nblocks++];

    axis.units = width;
    axis.ngroups = 0;
    b->off = s->row_len;
    b->pos = (first + tool_tensor_first_unit(&axis, tp, rank)) * t->unit_len;
    b->len = tool_tensor_units(&axis, tp) * t->unit_len;
    s->row_len += b->len;
}

/* When the rank's row is the whole row, all rows are one run. */
static void slicing_join_rows(struct tool_slicing *s)
{
    if (s->row_len != s->full_row_len)
        return;
    s->nblocks = 1;
    s->row_len *= s->rows;
    s->full_row_len = s->row_len;
    s->rows = 1;
    s->blocks[0] = (struct tool_block){.len = s->row_len};
}

void tool_slicing_init(struct tool_slicing *s, const struct tool_tensor *t, uint32_t tp,
                       uint32_t rank)
{
    uint64_t first = 0;

    assert(t->ngroups <= TOOL_BLOCKS_MAX);
    *s = (struct tool_slicing){
        .rows = t->rows,
        .full_row_len = t->units * t->unit_len,
        .key = tool_content_key(t->name, t->layer),
    };
    if (t->ngroups == 0)
        slicing_add_block(s, t, 0, t->units, tp, rank);
    for (uint32_t g = 0; g < t->ngroups; g++) {
        slicing_add_block(s, t, first, t->groups[g], tp, rank);
        first += t->groups[g];
    }
    slicing_join_rows(s);
}
