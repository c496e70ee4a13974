/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer is another engine as seen by the one that submits transfers to it.
 * It connects in the background, reconnects by itself, and says at any time
 * which state it is in and why. The other side needs no peer object to be
 * written to or read from: it only hands out its descriptors.
 */
#ifndef PDX_PEER_H
#define PDX_PEER_H

#include <pdx/api.h>
#include <pdx/engine.h>
#include <pdx/error.h>

PDX_BEGIN_DECLS

struct pdx_peer;

enum pdx_peer_state {
    PDX_PEER_CONNECTING = 1, /* first or renewed attempt; submissions wait for it */
    PDX_PEER_UP,
    PDX_PEER_DOWN,  /* unreachable; submissions are refused, attempts go on in the background */
    PDX_PEER_STALE, /* another incarnation answers: add its new descriptor. Final */
    PDX_PEER_CLOSED /* put, or the engine was destroyed. Final */
};

/* Adds a peer by its descriptor and starts to connect. A second add of the same incarnation gives
 * the same peer once more (counted). Adding a new incarnation of a known name ends the old one
 * PDX_PEER_STALE; its transfers end PDX_STALE. So the peers of one engine need different names.
 * Errors:
 * - PDX_EPROTO: not an engine descriptor
 * - PDX_EVERSION
 * - PDX_EINVAL: only loopback addresses of another host; the text shows both hosts' addresses
 * - PDX_EAGAIN: max_peers
 * - PDX_ENOMEM, PDX_ESHUTDOWN
 * Thread: any; never blocks. Lifetime: until pdx_peer_put was called as often as the peer was
 * returned. */
PDX_API int pdx_peer_add(struct pdx_engine *engine, const void *desc, size_t len,
                         struct pdx_peer **ret_peer, struct pdx_error *why);

/* Gives the reference back; the last one closes the connections, and transfers that are not
 * finished end PDX_CANCELLED. Prepared jobs and routes hold references too. NULL is permitted.
 * Thread: any. Errors: none. Lifetime: `peer` is invalid for this holder afterwards. */
PDX_API void pdx_peer_put(struct pdx_peer *peer);

/* The state now. `why` (optional) gets the reason of any state but UP.
 * Thread: any. Errors: none. */
PDX_API enum pdx_peer_state pdx_peer_state(const struct pdx_peer *peer, struct pdx_error *why);

/* The name of a state: "connecting", "up", "down", "stale", "closed".
 * Thread: any. Lifetime: static. Errors: none. */
PDX_API const char *pdx_peer_state_name(enum pdx_peer_state state);

/* Waits until the peer is UP. A peer that is DOWN is waited for as well.
 * Errors:
 * - PDX_ETIMEDOUT: `why` has class, cost and text of the last reason
 * - PDX_ESTALE
 * - PDX_ESHUTDOWN: the engine was destroyed
 * - PDX_EREACTOR
 * Thread: any but a reactor; blocks. */
PDX_API int pdx_peer_wait_up(struct pdx_peer *peer, uint64_t timeout_ns, struct pdx_error *why);

struct pdx_peer_info {
    char name[PDX_NAME_MAX + 1];
    uint8_t incarnation[PDX_INCARNATION_LEN];
    char address[128]; /* the one in use, or tried last */
    enum pdx_peer_state state;
    struct pdx_engine *engine; /* to which it was added */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_peer_info(const struct pdx_peer *peer, struct pdx_peer_info *ret_info);

struct pdx_peer_counters {
    uint64_t transfers_submitted;
    uint64_t transfers_inflight;
    uint64_t transfers_done;
    uint64_t transfers_ended_badly; /* failed, cancelled, deadline, stale */
    uint64_t bytes_written;
    uint64_t bytes_read;
    uint64_t connects;    /* connections that came up */
    uint64_t losses;      /* connections lost after they were up */
    uint64_t lane_breaks; /* lanes broken to make a transfer quiet */
    uint64_t rtt_ns;      /* last keepalive round trip */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_peer_counters(const struct pdx_peer *peer, struct pdx_peer_counters *ret_counters);

struct pdx_lane_info {
    char name[32];      /* "tcp" */
    bool usable;        /* the peer is up; while a connection is replaced, transfers wait for it */
    char reason[256];   /* why it is used, or why not */
    uint64_t bytes_out; /* confirmed writes */
    uint64_t bytes_in;  /* confirmed reads */
    uint64_t segments;
};

/* The lanes in order of preference, with the reason for each; also those that cannot be used.
 * Returns: how many there are; at most `cap` are written.
 * Thread: any. Errors: none. */
PDX_API size_t pdx_peer_lanes(const struct pdx_peer *peer, struct pdx_lane_info *lanes, size_t cap);

PDX_END_DECLS

#endif
