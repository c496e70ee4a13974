/* SPDX-License-Identifier: Apache-2.0
 *
 * Which lanes there are to a peer, which one is used, and why the others are
 * not.
 */
#include "engine/engine.h"
#include "engine/peer.h"

#include <stdio.h>
#include <string.h>

static void explain_absent(struct pdx_lane_info *lane, const char *name, const char *reason)
{
    memset(lane, 0, sizeof *lane);
    (void)snprintf(lane->name, sizeof lane->name, "%s", name);
    (void)snprintf(lane->reason, sizeof lane->reason, "%s", reason);
}

static void explain_tcp(const struct pdx_peer *peer, struct pdx_lane_info *lane)
{
    struct pdx_peer_info info;
    struct pdx_error why;
    enum pdx_peer_state state = pdx_peer_state(peer, &why);

    memset(lane, 0, sizeof *lane);
    pdx_peer_info(peer, &info);
    (void)snprintf(lane->name, sizeof lane->name, "tcp");
    lane->usable = state == PDX_PEER_UP;
    lane->bytes_out = pdxi_counted(&peer->tcp.bytes_out);
    lane->bytes_in = pdxi_counted(&peer->tcp.bytes_in);
    lane->segments = pdxi_counted(&peer->tcp.segments);
    if (lane->usable)
        (void)snprintf(lane->reason, sizeof lane->reason, "connected to %s, congestion control %s",
                       info.address,
                       peer->engine->congestion[0] ? peer->engine->congestion
                                                   : "as the system has it");
    else
        (void)snprintf(lane->reason, sizeof lane->reason, "%s: %.200s", pdx_peer_state_name(state),
                       why.text);
}

size_t pdx_peer_lanes(const struct pdx_peer *peer, struct pdx_lane_info *lanes, size_t cap)
{
    struct pdx_lane_info all[3];
    size_t n = 0;

    explain_absent(&all[n++], "verbs", "this version of pdx has no RDMA lane yet");
    explain_absent(&all[n++], "local", "this version of pdx has no same-host lane yet");
    explain_tcp(peer, &all[n++]);
    for (size_t i = 0; i < n && i < cap; i++)
        lanes[i] = all[i];
    return n;
}
