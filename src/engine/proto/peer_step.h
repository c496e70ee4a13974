/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to a peer as a pure state machine: resolve, try the
 * addresses in order, greet, open a lane, and after a loss begin again: at
 * once after the loss of a stable connection, else with growing pauses.
 *
 *   IDLE -> RESOLVING -> CONNECTING -> GREETING -> OPENING -> UP
 *              ^             |  next address          |        |
 *              |             v                        v        v lost: at once
 *              +--------- PAUSED <--------------------+--- (queued work ends)
 *
 *   any --another incarnation answers--> STALE      any --closed--> CLOSED
 */
#ifndef PDXI_PROTO_PEER_STEP_H
#define PDXI_PROTO_PEER_STEP_H

#include <pdx/peer.h>

enum pdxi_peer_phase {
    PDXI_PEER_IDLE = 0,
    PDXI_PEER_RESOLVING,
    PDXI_PEER_CONNECTING, /* address `addr` */
    PDXI_PEER_GREETING,
    PDXI_PEER_OPENING, /* the first lane */
    PDXI_PEER_READY,
    PDXI_PEER_PAUSED, /* until the next attempt */
    PDXI_PEER_GONE    /* final: STALE or CLOSED */
};

enum pdxi_peer_event {
    PDXI_PEV_BEGIN,
    PDXI_PEV_RESOLVED, /* `arg` addresses, at least 1 */
    PDXI_PEV_CONNECTED,
    PDXI_PEV_GREETED,
    PDXI_PEV_LANE_UP,
    PDXI_PEV_STABLE, /* it has been up for a while */
    PDXI_PEV_FAILED, /* resolving, connecting, greeting or opening failed; `arg` is an enum pdx_err
                      */
    PDXI_PEV_LOST,   /* an established connection ended; `arg` is an enum pdx_err */
    PDXI_PEV_PAUSE_OVER,
    PDXI_PEV_SUPERSEDED, /* a newer incarnation of this name was added */
    PDXI_PEV_CLOSE
};

enum pdxi_peer_action {
    PDXI_PACT_RESOLVE = 1,
    PDXI_PACT_CONNECT = 2, /* to address `addr` */
    PDXI_PACT_GREET = 4,
    PDXI_PACT_OPEN_LANE = 8,
    PDXI_PACT_DRAIN_QUEUE = 16, /* hand queued transfers to the lane */
    PDXI_PACT_DISCONNECT = 32,  /* close what is open; comes before every other action */
    PDXI_PACT_FAIL_ALL = 64,    /* end all transfers with the cause */
    PDXI_PACT_PAUSE = 128       /* for pause_ns */
};

struct pdxi_peer_step {
    enum pdxi_peer_phase phase;
    enum pdx_peer_state state; /* what the caller sees */
    uint32_t addr;
    uint32_t naddrs;
    uint64_t pause_ns; /* before the last attempt, since the peer was stable; 0: none */
};

#define PDXI_PEER_PAUSE_MIN (UINT64_C(50) * PDX_MSEC)
#define PDXI_PEER_PAUSE_MAX (UINT64_C(1) * PDX_SEC)

void pdxi_peer_step_init(struct pdxi_peer_step *s);

/* Returns a set of enum pdxi_peer_action. Events that make no sense in a phase (they can be late)
 * change nothing and return 0. */
unsigned pdxi_peer_step(struct pdxi_peer_step *s, enum pdxi_peer_event event, int arg);

#endif
