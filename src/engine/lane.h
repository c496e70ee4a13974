/* SPDX-License-Identifier: Apache-2.0
 *
 * One way to move bytes to a peer. The core reaches a transport through this
 * table only. All hooks run on the reactor thread.
 *
 * A lane has two lists: transfers that still have frames to issue, and those
 * that only wait for answers. It reports everything through
 * pdxi_transfer_event, and its own end through pdxi_peer_lane_lost.
 */
#ifndef PDXI_LANE_H
#define PDXI_LANE_H

#include "base/list.h"
#include "engine/proto/frame.h"
#include "engine/transfer.h"

#include <pdx/peer.h>

struct pdxi_lane;

struct pdxi_lane_ops {
    const char *name; /* "tcp" */
    /* Starts to open a lane to a peer whose control connection is up, with the ticket that the peer
     * gave for it. Ends in pdxi_peer_lane_up or pdxi_peer_lane_lost. */
    int (*open)(struct pdx_peer *peer, const uint8_t ticket[PDXI_TICKET_LEN], uint32_t max_frames,
                struct pdxi_lane **ret_lane, struct pdx_error *why);
    /* Takes a transfer (already linked to the lane's active list): move as much as there is room
     * for. */
    void (*kick)(struct pdxi_lane *lane);
    /* The transfer ends early: issue nothing more for it; tell a target that tracks it. */
    void (*stop)(struct pdxi_lane *lane, struct pdx_transfer_status *t);
    /* Closes. After return the lane touches no memory; its transfers get PDXI_EV_LANE_LOST, rewound
     * to their first unanswered frame. The lane is freed later by itself. */
    void (*close)(struct pdxi_lane *lane);
};

/* First member of a transport's own struct. */
struct pdxi_lane {
    const struct pdxi_lane_ops *ops;
    struct pdx_peer *peer;    /* counted */
    struct pdxi_list active;  /* transfers with frames to issue */
    struct pdxi_list waiting; /* everything issued, or stopped; answers are missing */
    bool up;
    bool broken; /* it is closed on purpose, to make a transfer quiet */
    uint64_t last_rx_ns;
};

extern const struct pdxi_lane_ops pdxi_lane_tcp;

#endif
