/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the items of a submission name one of them twice on the side that is
 * written. Lists that ascend, as page lists mostly do, are told by a look at
 * their runs; others take one bit per item of the range that they span, or,
 * where that range is too wide for their length, a sort of their runs. Either
 * way the work grows with the list, whatever is in it. Pure: memory is the
 * caller's.
 */
#ifndef PDXI_PROTO_OVERLAP_H
#define PDXI_PROTO_OVERLAP_H

#include "engine/proto/plan.h"

struct pdxi_overlap {
    const struct pdxi_plan_run *runs; /* borrowed */
    uint32_t nruns;
    bool local;         /* the side that is written */
    bool mapped;        /* a bit per item; otherwise sorted */
    uint32_t least;     /* the smallest item */
    uint32_t span;      /* items from there to behind the largest one */
    size_t scratch_len; /* bytes that pdxi_overlap_find needs; 0: no item comes twice */
};

struct pdxi_overlap_twice {
    uint32_t item;
    size_t first; /* its places in the list, from 0; the two lowest ones */
    size_t second;
};

/* Over runs as pdxi_plan_runs makes them. */
void pdxi_overlap_init(struct pdxi_overlap *o, const struct pdxi_plan_run *runs, uint32_t nruns,
                       bool local);

/* Whether an item comes twice, and then which one: any of those that do. `scratch` is scratch_len
 * bytes of any content, aligned for uint64_t; scratch_len is not 0. */
bool pdxi_overlap_find(const struct pdxi_overlap *o, void *scratch, struct pdxi_overlap_twice *ret);

#endif
