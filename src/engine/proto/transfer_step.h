/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a transfer as a pure state machine. It knows how many numbered
 * frames are unanswered and the first cause of an end, and says when the
 * transfer may become terminal: never while a frame of it can still touch
 * memory.
 *
 *   QUEUED --start--> ACTIVE --(all issued, all answered)--> ENDED (done)
 *     |  ^              |
 *     |  +--lane gone---+   goes on over a new lane
 *     |                 |
 *     +--cancel, -------+--> DRAINING --(all answered)--> ENDED (first cause)
 *     |  deadline, refusal      |
 *     |                         | lane gone
 *     +------> FENCING <--------+
 *                 +--(the target has closed the lane too, or a limit)--> ENDED (first cause)
 *
 * FENCING is for writes: a lane that is gone here may still have bytes on the
 * target's side of the socket. The target closes it before it accepts a newer
 * lane, so the newer lane's greeting is the proof; a target that is stopped
 * gives none, and then a limit ends the wait.
 */
#ifndef PDXI_PROTO_TRANSFER_STEP_H
#define PDXI_PROTO_TRANSFER_STEP_H

#include <pdx/transfer.h>

enum pdxi_transfer_phase {
    PDXI_PHASE_QUEUED = 0,
    PDXI_PHASE_ACTIVE,   /* a lane has it */
    PDXI_PHASE_DRAINING, /* ends with `code`; waits for the answers to what was sent */
    PDXI_PHASE_FENCING,  /* ends with `code`; waits until the target has closed the lane too */
    PDXI_PHASE_ENDED
};

enum pdxi_transfer_event {
    PDXI_EV_START,     /* a lane took it */
    PDXI_EV_ISSUED,    /* one numbered frame was put on the lane */
    PDXI_EV_EXHAUSTED, /* the last frame was put on the lane */
    PDXI_EV_SENT,      /* everything issued has left the source memory (LOCAL level) */
    PDXI_EV_ANSWERED,  /* one frame was confirmed */
    PDXI_EV_REFUSED,   /* one frame was answered with an error; `err` is the cause */
    PDXI_EV_FAULT,     /* our side cannot go on; `err` is the cause */
    PDXI_EV_CANCEL,
    PDXI_EV_DEADLINE,
    PDXI_EV_DRAIN_TIMEOUT, /* the answers, or the fence, did not come in time */
    PDXI_EV_FENCED,        /* a newer lane is up: the target has closed the earlier ones */
    PDXI_EV_LANE_LOST,     /* the lane is gone and quiet; after max_losses of them it fails */
    PDXI_EV_LANE_BROKEN,   /* the same because another transfer had to end: not this one's fault */
    PDXI_EV_PEER_LOST,     /* the peer is gone and all its lanes are quiet; `err` is the cause */
    PDXI_EV_SHUTDOWN       /* the same because the engine ends */
};

enum pdxi_transfer_action {
    PDXI_ACT_FINISH = 1,    /* publish `code` and `err`: terminal */
    PDXI_ACT_RELEASE = 2,   /* no frame refers to it any more */
    PDXI_ACT_STOP = 4,      /* issue nothing more; tell a tracking target */
    PDXI_ACT_ARM_DRAIN = 8, /* wait drain_ns for the answers */
    PDXI_ACT_BREAK_LANE = 16,
    PDXI_ACT_REQUEUE = 32, /* wait for a new lane, then go on from the first unanswered frame */
    PDXI_ACT_FENCE = 64    /* wait for FENCED, with a limit */
};

struct pdxi_transfer_step {
    enum pdxi_transfer_phase phase;
    enum pdx_transfer_code code; /* the outcome; 0 while there is none */
    int err;                     /* enum pdx_err of the outcome */
    uint32_t inflight;           /* numbered frames without an answer */
    uint32_t retries;            /* lanes after the first */
    uint32_t losses;             /* those of them that were needed because one was lost */
    uint32_t max_losses;
    bool exhausted;
    bool writes; /* the target's memory */
    bool local;  /* a write of PDX_LEVEL_LOCAL */
    bool fence;  /* frames of it went over a lane that the target may not have closed yet */
};

/* `op` is 0 for a notification alone. The level counts for writes only. */
void pdxi_transfer_step_init(struct pdxi_transfer_step *s, enum pdx_op op, enum pdx_level level,
                             uint32_t max_losses);

/* Returns a set of enum pdxi_transfer_action. `err` (negative) is read for REFUSED, FAULT and
 * PEER_LOST. Events that make no sense in a phase change nothing and return 0. */
unsigned pdxi_transfer_step(struct pdxi_transfer_step *s, enum pdxi_transfer_event event, int err);

#endif
