/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proto/transfer_step.h"

#include <string.h>

void pdxi_transfer_step_init(struct pdxi_transfer_step *s, enum pdx_op op, enum pdx_level level,
                             uint32_t max_losses)
{
    memset(s, 0, sizeof *s);
    s->writes = op == PDX_WRITE;
    s->local = s->writes && level == PDX_LEVEL_LOCAL;
    s->max_losses = max_losses;
}

/* An error of the peer's memory or identity is STALE, everything else FAILED. */
static enum pdx_transfer_code code_of_err(int err)
{
    return err == PDX_ESTALE ? PDX_STALE : PDX_FAILED;
}

static unsigned step_end(struct pdxi_transfer_step *s)
{
    s->phase = PDXI_PHASE_ENDED;
    return PDXI_ACT_FINISH | (s->inflight == 0 ? PDXI_ACT_RELEASE : 0);
}

/* Nothing is in flight: the end, unless bytes may still be on the target's side of a lane. */
static unsigned step_end_quiet(struct pdxi_transfer_step *s)
{
    if (!s->fence)
        return step_end(s);
    s->phase = PDXI_PHASE_FENCING;
    return PDXI_ACT_FENCE;
}

/* Notes the first cause and ends as soon as nothing is in flight. */
static unsigned step_begin_end(struct pdxi_transfer_step *s, enum pdx_transfer_code code, int err)
{
    bool was_active = s->phase == PDXI_PHASE_ACTIVE;

    if (s->phase != PDXI_PHASE_QUEUED && !was_active)
        return 0;
    s->code = code;
    s->err = err;
    if (s->inflight == 0)
        return step_end_quiet(s) | (was_active ? PDXI_ACT_STOP : 0);
    s->phase = PDXI_PHASE_DRAINING;
    return PDXI_ACT_STOP | PDXI_ACT_ARM_DRAIN;
}

static unsigned step_done(struct pdxi_transfer_step *s)
{
    s->code = PDX_DONE;
    s->err = 0;
    return step_end(s);
}

static unsigned step_answered(struct pdxi_transfer_step *s)
{
    if (s->inflight == 0)
        return 0;
    s->inflight--;
    if (s->inflight > 0)
        return 0;
    switch (s->phase) {
    case PDXI_PHASE_ACTIVE:
        return s->exhausted ? step_done(s) : 0;
    case PDXI_PHASE_DRAINING:
        return step_end(s);
    case PDXI_PHASE_ENDED:
        return PDXI_ACT_RELEASE;
    case PDXI_PHASE_QUEUED:
    case PDXI_PHASE_FENCING:
        break;
    }
    return 0;
}

/* The cause comes before the answer is counted, so that a last frame's refusal is not taken for
 * success. */
static unsigned step_refused(struct pdxi_transfer_step *s, int err)
{
    unsigned actions = 0;

    if (s->inflight == 0)
        return 0;
    if (s->phase == PDXI_PHASE_ACTIVE) {
        s->code = code_of_err(err);
        s->err = err;
        s->phase = PDXI_PHASE_DRAINING;
        actions = PDXI_ACT_STOP | (s->inflight > 1 ? PDXI_ACT_ARM_DRAIN : 0);
    }
    return actions | step_answered(s);
}

static unsigned step_lane_lost(struct pdxi_transfer_step *s, bool broken)
{
    bool had_inflight = s->inflight > 0;

    s->inflight = 0;
    switch (s->phase) {
    case PDXI_PHASE_ACTIVE:
        s->exhausted = false;
        s->fence = s->writes && had_inflight;
        if (!broken && s->losses >= s->max_losses)
            return step_begin_end(s, PDX_FAILED, PDX_EPEER);
        s->losses += broken ? 0 : 1;
        s->retries++;
        s->phase = PDXI_PHASE_QUEUED;
        return PDXI_ACT_REQUEUE;
    case PDXI_PHASE_DRAINING:
        s->fence = s->writes;
        return step_end_quiet(s);
    case PDXI_PHASE_ENDED:
        return had_inflight ? PDXI_ACT_RELEASE : 0;
    case PDXI_PHASE_QUEUED:
    case PDXI_PHASE_FENCING:
        break;
    }
    return 0;
}

/* The target has closed every lane that a transfer without one had before. */
static unsigned step_fenced(struct pdxi_transfer_step *s)
{
    if (s->phase != PDXI_PHASE_QUEUED && s->phase != PDXI_PHASE_FENCING)
        return 0;
    s->fence = false;
    return s->phase == PDXI_PHASE_FENCING ? step_end(s) : 0;
}

/* The peer is gone as a whole: there is nobody to wait for. */
static unsigned step_gone(struct pdxi_transfer_step *s, enum pdx_transfer_code code, int err)
{
    bool had_inflight = s->inflight > 0;

    s->inflight = 0;
    s->fence = false;
    switch (s->phase) {
    case PDXI_PHASE_QUEUED:
    case PDXI_PHASE_ACTIVE:
        s->code = code;
        s->err = err;
        return step_end(s);
    case PDXI_PHASE_DRAINING:
    case PDXI_PHASE_FENCING:
        return step_end(s);
    case PDXI_PHASE_ENDED:
        break;
    }
    return had_inflight ? PDXI_ACT_RELEASE : 0;
}

static unsigned step_drain_timeout(struct pdxi_transfer_step *s)
{
    if (s->phase == PDXI_PHASE_FENCING) {
        s->fence = false;
        return step_end(s);
    }
    return s->phase == PDXI_PHASE_DRAINING ? PDXI_ACT_BREAK_LANE : 0;
}

static unsigned step_start(struct pdxi_transfer_step *s)
{
    if (s->phase == PDXI_PHASE_QUEUED) {
        s->phase = PDXI_PHASE_ACTIVE;
        s->fence = false; /* the new lane is up */
    }
    return 0;
}

unsigned pdxi_transfer_step(struct pdxi_transfer_step *s, enum pdxi_transfer_event event, int err)
{
    switch (event) {
    case PDXI_EV_START:
        return step_start(s);
    case PDXI_EV_ISSUED:
        if (s->phase == PDXI_PHASE_ACTIVE)
            s->inflight++;
        return 0;
    case PDXI_EV_EXHAUSTED:
        if (s->phase != PDXI_PHASE_ACTIVE)
            return 0;
        s->exhausted = true;
        return s->inflight == 0 ? step_done(s) : 0;
    case PDXI_EV_SENT:
        return s->local && s->exhausted && s->phase == PDXI_PHASE_ACTIVE ? step_done(s) : 0;
    case PDXI_EV_ANSWERED:
        return step_answered(s);
    case PDXI_EV_REFUSED:
        return step_refused(s, err);
    case PDXI_EV_FAULT:
        return step_begin_end(s, code_of_err(err), err);
    case PDXI_EV_CANCEL:
        return step_begin_end(s, PDX_CANCELLED, PDX_ECANCELLED);
    case PDXI_EV_DEADLINE:
        return step_begin_end(s, PDX_DEADLINE, PDX_EDEADLINE);
    case PDXI_EV_DRAIN_TIMEOUT:
        return step_drain_timeout(s);
    case PDXI_EV_FENCED:
        return step_fenced(s);
    case PDXI_EV_LANE_LOST:
        return step_lane_lost(s, false);
    case PDXI_EV_LANE_BROKEN:
        return step_lane_lost(s, true);
    case PDXI_EV_PEER_LOST:
        return step_gone(s, code_of_err(err), err);
    case PDXI_EV_SHUTDOWN:
        return step_gone(s, PDX_CANCELLED, PDX_ESHUTDOWN);
    }
    return 0;
}
