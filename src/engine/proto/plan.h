/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is the compact form of a submission that the cursor walks: pairs,
 * runs of items and slices, or a plain scatter list. This file checks what a
 * caller gave and brings it into that form. Pure: memory is the caller's.
 */
#ifndef PDXI_PROTO_PLAN_H
#define PDXI_PROTO_PLAN_H

#include <pdx/transfer.h>

/* One tensor on both sides; regions are known to the caller by the pair's number. */
struct pdxi_plan_pair {
    uint64_t local_base; /* bytes into the region where item 0 starts */
    uint64_t remote_base;
    uint64_t local_item_len;
    uint64_t remote_item_len;
    uint64_t bytes_before; /* that one item moves in the job's pairs before this one */
    uint32_t first_slice;  /* which of the plan's slices hold for this pair */
    uint32_t nslices;      /* at least 1 once the plan is checked */
};

/* `count` items, one after the other on both sides. */
struct pdxi_plan_run {
    uint32_t local;
    uint32_t remote;
    uint32_t count;
};

struct pdxi_plan {
    const struct pdxi_plan_pair *pairs;
    const struct pdxi_plan_run *runs;
    const struct pdx_slice *slices;
    const struct pdx_seg
        *segs; /* not NULL: a scatter list; then one pair, and runs and slices unused */
    uint32_t npairs;
    uint32_t nruns;
    uint32_t nslices;
    uint32_t nsegs;
    uint64_t bytes; /* the whole plan */
};

/* Some of a job's pairs, one after the other. */
struct pdxi_plan_range {
    uint32_t first;
    uint32_t npairs;
};

/* How many items each side of every pair has. */
struct pdxi_plan_limits {
    uint64_t local_items; /* the least over all pairs */
    uint64_t remote_items;
};

/* Checks pairs and slices against the lengths of their regions and fills `ret_pairs` (npairs
 * entries), `ret_slices` and *ret_limits. `ret_slices` has room for nslices entries, or for npairs
 * when the job has none: pairs may differ in item length, so each pair then refers to a slice that
 * is its whole item. Slices whose rows touch each other become one row. *ret_item_bytes is what one
 * item moves over all pairs. region_lens[i] and remote_lens[i] are the region lengths of pair i.
 * Returns 0, PDX_EINVAL (also a pair whose slice range leaves the job's slices), PDX_ERANGE or
 * PDX_EOVERFLOW; the text names pair or slice by number, with the values. */
int pdxi_plan_shape(const struct pdx_job *job, const uint64_t *region_lens,
                    const uint64_t *remote_lens, struct pdxi_plan_pair *ret_pairs,
                    struct pdx_slice *ret_slices, struct pdxi_plan_limits *ret_limits,
                    uint64_t *ret_item_bytes, struct pdx_error *why);

/* The pairs that a submission's items name, of a job's `npairs`; it names none: all. Returns 0 or
 * PDX_EINVAL. */
int pdxi_plan_range(const struct pdx_items *items, uint32_t npairs, struct pdxi_plan_range *ret,
                    struct pdx_error *why);

/* Leaves of a plan with all pairs of its job those of `range`, and counts its bytes for `nitems`
 * items. `item_bytes` as from pdxi_plan_shape. Returns 0, or PDX_EOVERFLOW with the plan as it was.
 */
int pdxi_plan_narrow(struct pdxi_plan *plan, const struct pdxi_plan_range *range,
                     uint64_t item_bytes, uint64_t nitems, struct pdx_error *why);

/* Merges item lists into runs. `ret_runs` has room for items->n entries. Returns the number of runs
 * (0 for no items), or PDX_ERANGE for the first item that is negative or not below its limit. */
int64_t pdxi_plan_runs(const struct pdx_items *items, const struct pdxi_plan_limits *limits,
                       struct pdxi_plan_run *ret_runs, struct pdx_error *why);

/* Checks a scatter list against both region lengths. Returns 0 and the sum of lengths, or
 * PDX_EINVAL, PDX_ERANGE, PDX_EOVERFLOW naming the entry. */
int pdxi_plan_segs(const struct pdx_seg *segs, size_t nsegs, uint64_t local_len,
                   uint64_t remote_len, uint64_t *ret_bytes, struct pdx_error *why);

#endif
