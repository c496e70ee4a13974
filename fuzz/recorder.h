/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine that records, for fuzzing src/state: the public functions that it
 * calls, with the engine's own checks (engine/proto/plan and overlap) behind
 * them. Regions have a length and no memory, so they may be of any size. Only
 * one submission call may come between two looks, which is what makes a send
 * whole or nothing.
 */
#ifndef PDX_FUZZ_RECORDER_H
#define PDX_FUZZ_RECORDER_H

#include "engine/proto/plan.h"
#include <pdx/pdx.h>

#define RECORDER_LOCAL  0xa1 /* bytes of incarnations */
#define RECORDER_REMOTE 0xb2

/* A job as it was prepared, owned by the recorder. */
struct pdx_prepared {
    struct pdx_job job;         /* without items */
    struct pdx_remote *remotes; /* of each pair */
    struct pdxi_plan_pair *plan_pairs;
    struct pdxi_plan_limits limits;
    uint64_t item_bytes;
    uint32_t refs;
};

struct recorder_submission {
    const struct pdx_prepared *prepared; /* counted */
    struct pdx_items items;              /* lists copied */
    uint64_t bytes;                      /* as the plan says */
    struct pdx_submit_opts opts;
};

/* A region of that incarnation. Lives until recorder_end. */
struct pdx_region *recorder_region(uint8_t incarnation, uint64_t len, uint32_t rights);
uint32_t recorder_region_id(const struct pdx_region *region);

struct pdx_engine *recorder_engine(void);
struct pdx_peer *recorder_peer(void);
/* The peer's incarnation; RECORDER_REMOTE in every byte until told otherwise. */
void recorder_peer_is(const uint8_t incarnation[PDX_INCARNATION_LEN]);

/* The next submission is refused with this code; 0: none is. */
void recorder_refuse(int code);

/* What was submitted since the last recorder_forget, in order. */
size_t recorder_n(void);
const struct recorder_submission *recorder_at(size_t i);
/* The one that a status stands for. */
const struct recorder_submission *recorder_of(const struct pdx_transfer_status *status);
void recorder_forget(void);

/* Ends a run: all prepared jobs must have been put. */
void recorder_end(void);

#endif
