/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine without network for the tests of src/state: the public functions
 * that it calls, which record what they are given. Jobs are checked by the
 * engine's own rules (engine/proto/plan), then kept; a submission can be looked
 * at, walked op by op, or carried out on memory. The walk is written straight
 * from the definition of a job, with four nested loops and nothing merged.
 */
#ifndef PDX_FAKE_ENGINE_H
#define PDX_FAKE_ENGINE_H

#include <pdx/pdx.h>

/* Which engine a region belongs to. */
enum fake_side { FAKE_LOCAL = 1, FAKE_REMOTE = 2 };

/* A region of that side over zeroed memory. Lives until fake_reset. */
struct pdx_region *fake_region(enum fake_side side, size_t len);
uint8_t *fake_mem(const struct pdx_region *region);
/* How often each byte was written by fake_run. */
const uint8_t *fake_hits(const struct pdx_region *region);

/* Any address serves as an engine; the peer has the incarnation of FAKE_REMOTE. */
struct pdx_engine *fake_engine(void);
struct pdx_peer *fake_peer(void);
/* The peer restarts: layouts that were made before are of another incarnation. */
void fake_peer_restart(void);

/* Gives up all regions, submissions and counts. Fails when a prepared job was not put. */
void fake_reset(void);

/* pdx_prepare is refused with this code once it succeeded `after` times. */
void fake_refuse_prepare(size_t after, int code);
/* Submissions are refused with this code from now on; 0 ends that. */
void fake_refuse_submit(int code);

struct fake_submission {
    const struct pdx_job *job; /* pairs and slices as prepared */
    struct pdx_items items;
    struct pdx_submit_opts opts;
};

size_t fake_nsubmissions(void);
const struct fake_submission *fake_submission_at(size_t i);
size_t fake_nprepared(void); /* alive now */
/* The submission that a status stands for. */
const struct fake_submission *fake_submission_of(const struct pdx_transfer_status *status);

/* Calls `op` for each piece of the submission, offsets from the tensors' starts. */
typedef void (*fake_op_fn)(void *ctx, size_t pair, uint64_t src, uint64_t dst, uint64_t len);
void fake_walk(const struct fake_submission *s, fake_op_fn op, void *ctx);

/* Copies the bytes, checking that each piece lies in its tensors. */
void fake_run(const struct fake_submission *s);
void fake_run_all(void);

/* A region of any length without memory, for submissions that are walked but not carried out;
 * fake_mem and fake_hits of it are NULL. */
struct pdx_region *fake_region_bare(enum fake_side side, size_t len);

#endif
