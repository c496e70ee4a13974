/* SPDX-License-Identifier: Apache-2.0
 *
 * A checked job: the plan's arrays, the regions it holds and the remote
 * regions it names, in one block. A plain submission makes one for itself.
 */
#ifndef PDXI_PREPARED_H
#define PDXI_PREPARED_H

#include "engine/proto/plan.h"

#include <stdatomic.h>

struct pdx_prepared {
    _Atomic uint32_t refs;
    bool owned_by_caller; /* made by pdx_prepare: keeps the peer open */
    enum pdx_op op;
    struct pdx_peer *peer; /* counted */
    struct pdxi_plan plan; /* all pairs; arrays in this block; bytes: of a scatter list only */
    struct pdxi_plan_limits limits;
    uint64_t item_bytes;          /* one item over all pairs */
    uint32_t nitems;              /* of the job's own list; 0: each submission has one */
    struct pdxi_plan_range range; /* the pairs that the job's own list is for */
    struct pdx_region **locals;   /* in this block; plan.npairs, each held */
    struct pdx_remote *remotes;   /* in this block; plan.npairs */
};

/* Checks a job and copies it. Returns 0 or the error of pdx_submit. */
int pdxi_prepared_make(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                       struct pdx_prepared **ret, struct pdx_error *why);
/* The same for a scatter list. */
int pdxi_prepared_make_segs(struct pdx_peer *peer, enum pdx_op op, struct pdx_region *local,
                            const struct pdx_remote *remote, const struct pdx_seg *segs,
                            size_t nsegs, struct pdx_prepared **ret, struct pdx_error *why);
/* Checks lists of items for the job's operation and merges them into `ret_runs`, which has room for
 * items->n entries. Returns the number of runs, or a negative code. */
int64_t pdxi_prepared_runs(const struct pdx_prepared *p, const struct pdx_items *items,
                           struct pdxi_plan_run *ret_runs, struct pdx_error *why);
void pdxi_prepared_get(struct pdx_prepared *p);
void pdxi_prepared_drop(struct pdx_prepared *p);

#endif
