/* SPDX-License-Identifier: Apache-2.0
 *
 * A submitted transfer: the TransferStatus that callers hold, and what the
 * reactor and the lanes need to carry it out. Everything but the atomic
 * members belongs to the reactor between submission and the terminal code.
 */
#ifndef PDXI_TRANSFER_H
#define PDXI_TRANSFER_H

#include "engine/prepared.h"
#include "engine/proto/cursor.h"
#include "engine/proto/transfer_step.h"
#include "engine/reactor.h"

#include <pdx/transfer.h>

#define PDXI_TRANSFER_LOSSES 3 /* lanes that a transfer may lose before it fails */

struct pdx_transfer_status {
    _Atomic uint32_t code; /* enum pdx_transfer_code, and whether somebody sleeps; futex word */
    _Atomic uint32_t refs;
    _Atomic uint32_t cancel_asked;
    bool tracked;
    bool began;                    /* BEGIN was sent on the present lane */
    bool notified;                 /* the notification was issued on the present lane */
    bool rewound;                  /* by the lane that is being lost */
    enum pdx_op op;                /* 0: a notification alone */
    struct pdx_peer *peer;         /* counted until the last put */
    struct pdx_prepared *prepared; /* counted until terminal; NULL for a notification alone */
    struct pdxi_plan plan;         /* prepared's arrays, own runs if there are any */
    uint32_t first_pair;           /* of prepared's pairs: pair 0 of the plan */
    void *runs;                    /* owned pool block, or NULL */
    struct pdxi_cursor cursor;
    struct pdxi_transfer_step step;
    struct pdxi_list link;       /* of the peer's queue or of a lane */
    struct pdxi_list ended_link; /* of the reactor's list of due callbacks */
    struct pdxi_lane *lane;      /* the one that has it, or NULL */
    struct pdxi_timer deadline_timer;
    struct pdxi_timer drain_timer;
    struct pdxi_cmd arrive_cmd;
    struct pdxi_cmd cancel_cmd;
    uint64_t id;
    uint64_t number; /* unique in this engine */
    uint64_t deadline_ns;
    void *notify; /* owned pool block, or NULL */
    uint32_t notify_len;
    pdx_transfer_fn callback;
    void *callback_ctx;
    struct pdx_cq *cq; /* counted until terminal; a place is reserved */
    void *cq_ctx;
    _Atomic(char *) cause; /* owned: the sentence of a bad end */
    _Atomic(char *) text;  /* owned: made by the first pdx_transfer_text */
    uint64_t submitted_ns;
    _Atomic uint64_t first_post_ns;
    _Atomic uint64_t last_post_ns;
    _Atomic uint64_t completed_ns;
    _Atomic uint64_t bytes_done;
    _Atomic uint64_t segments;
    _Atomic uint64_t frames;
    _Atomic uint32_t retries;
    int err;
    _Atomic(const char *) lane_name; /* static; NULL before the first frame */
};

/* The memory of one of the plan's pairs, by the number that the cursor gives. Not of a notification
 * alone, nor of a transfer that is terminal. */
static inline struct pdx_region *pdxi_transfer_local(const struct pdx_transfer_status *t,
                                                     uint32_t pair)
{
    return t->prepared->locals[t->first_pair + pair];
}

static inline const struct pdx_remote *pdxi_transfer_remote(const struct pdx_transfer_status *t,
                                                            uint32_t pair)
{
    return &t->prepared->remotes[t->first_pair + pair];
}

/* Takes a transfer from the engine's slab, zeroed but for its identity, with one reference for the
 * reactor and one for the caller. Returns 0 or PDX_EAGAIN. */
int pdxi_transfer_new(struct pdx_peer *peer, struct pdx_transfer_status **ret,
                      struct pdx_error *why);

/* Undoes pdxi_transfer_new and all that was put into it, for a submission that is refused. */
void pdxi_transfer_drop(struct pdx_transfer_status *t);

/* Queues `n` checked transfers at once; they begin in order. Returns 0, or PDX_ESHUTDOWN with none
 * queued. */
int pdxi_transfer_post(struct pdx_transfer_status **ts, size_t n, struct pdx_error *why);

/* Reactor thread. Runs an event through the step machine and does what it says. `cause` explains an
 * event that ends the transfer (may be NULL otherwise). */
void pdxi_transfer_event(struct pdx_transfer_status *t, enum pdxi_transfer_event event,
                         const struct pdx_error *cause);

/* Reactor thread. Runs the callbacks of ended transfers, those that they cause too. */
void pdxi_transfer_run_callbacks(struct pdxi_reactor *r);

/* One line that names the transfer: "write #7 (1.5 MiB)". */
void pdxi_transfer_describe(const struct pdx_transfer_status *t, char *buf, size_t cap);

#endif
