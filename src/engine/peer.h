/* SPDX-License-Identifier: Apache-2.0
 *
 * The initiator's side of a connection to another engine: the control
 * connection, the lanes, the queue of transfers that wait for them. What to do
 * next is decided by proto/peer_step.
 */
#ifndef PDXI_PEER_H
#define PDXI_PEER_H

#include "engine/net/sock.h"
#include "engine/proto/descriptor.h"
#include "engine/proto/frame.h"
#include "engine/proto/peer_step.h"
#include "engine/reactor.h"

#include <pdx/peer.h>

struct pdxi_control;
struct pdxi_lane;
struct pdx_transfer_status;

/* Counters of the lane, kept over its reincarnations. */
struct pdxi_lane_stats {
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t segments;
};

struct pdx_peer {
    struct pdx_engine *engine; /* counted */
    _Atomic uint32_t refs;     /* memory */
    _Atomic uint32_t users;    /* handles of callers; the last one closes */
    struct pdxi_list link;     /* of the engine, under its lock */
    struct pdxi_engine_desc desc;

    /* What callers see: written by the reactor under the engine's lock; the state also without. */
    _Atomic uint32_t state; /* enum pdx_peer_state; futex word */
    struct pdx_error reason;
    char address[PDXI_SOCK_TEXT];

    /* The reactor's. */
    struct pdxi_peer_step step;
    struct pdxi_list queue;   /* transfers that wait for a lane */
    struct pdxi_list fencing; /* ended ones that wait until the target has closed their lane */
    struct pdxi_list notices; /* ends of tracked transfers that the target is to be told */
    uint32_t nnotices;        /* of them, and of those on the lane that are not answered */
    struct pdxi_sockaddr addrs[PDXI_ADDRS_MAX];
    struct pdxi_control *control; /* owned, or NULL */
    struct pdxi_lane *lane;       /* the peer's, or NULL */
    struct pdxi_timer timer;      /* attempt, ticket, or pause */
    struct pdxi_cmd begin_cmd;
    struct pdxi_cmd close_cmd;
    struct pdxi_cmd supersede_cmd;
    _Atomic uint32_t superseded;
    uint64_t lookup;        /* number of the one that is awaited */
    uint64_t up_ns;         /* when the connection came up last */
    uint64_t lane_up_ns;    /* when a lane did */
    uint64_t attempt_ns;    /* what the timer was set for */
    uint32_t lane_failures; /* in a row */
    bool left;              /* the engine's list */

    _Atomic uint64_t submitted;
    _Atomic uint64_t done;
    _Atomic uint64_t ended_badly;
    _Atomic uint64_t bytes_written;
    _Atomic uint64_t bytes_read;
    _Atomic uint64_t connects;
    _Atomic uint64_t losses;
    _Atomic uint64_t lane_breaks;
    _Atomic uint64_t rtt_ns;
    struct pdxi_lane_stats tcp;
};

/* A peer with two references, the reactor's and the callers' together, and one of its begin_cmd,
 * which the caller posts. NULL without memory. */
struct pdx_peer *pdxi_peer_new(struct pdx_engine *engine, const struct pdxi_engine_desc *desc);
void pdxi_peer_get(struct pdx_peer *peer);
void pdxi_peer_drop(struct pdx_peer *peer);

/* Whether a submission may be queued now. Any thread. Returns 0, PDX_ESTALE, PDX_EPEER,
 * PDX_ESHUTDOWN with the reason. */
int pdxi_peer_accepts(struct pdx_peer *peer, struct pdx_error *why);

/* That a tracked transfer ended badly; a lane sends it when it can, and holds it until it is
 * answered. */
struct pdxi_notice {
    struct pdxi_list link;
    struct pdxi_frame_notify frame;
};

/* Reactor thread. */
void pdxi_peer_begin(struct pdxi_reactor *r, struct pdxi_cmd *cmd);
void pdxi_peer_resolved(struct pdx_peer *peer, uint64_t lookup, const struct pdxi_sockaddr *addrs,
                        int naddrs, const struct pdx_error *why);
void pdxi_peer_shutdown(struct pdx_peer *peer);
void pdxi_peer_notice(struct pdx_peer *peer, const struct pdx_transfer_status *t);
void pdxi_peer_notice_put(struct pdx_peer *peer, struct pdxi_notice *notice);
void pdxi_peer_enqueue(struct pdx_peer *peer, struct pdx_transfer_status *t);
void pdxi_peer_event(struct pdx_peer *peer, enum pdxi_peer_event event, int arg,
                     const struct pdx_error *cause);
void pdxi_peer_lane_up(struct pdx_peer *peer);
/* The lane closed itself or is to be given up: `cause` says why. */
void pdxi_peer_lane_lost(struct pdx_peer *peer, const struct pdx_error *cause);
/* Breaks the lane so that a transfer becomes quiet; the others go on over a new one. */
void pdxi_peer_lane_break(struct pdx_peer *peer, const struct pdx_error *cause);
/* The control connection has a ticket for one more lane. */
void pdxi_peer_ticket(struct pdx_peer *peer, const uint8_t ticket[PDXI_TICKET_LEN]);

#endif
