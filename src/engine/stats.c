/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/stats.h"

#include "engine/engine.h"
#include "engine/peer.h"

#include <string.h>

void pdx_engine_counters(const struct pdx_engine *engine, struct pdx_engine_counters *ret_counters)
{
    struct pdx_engine *e = (struct pdx_engine *)(uintptr_t)engine; /* its locks */
    const struct pdxi_stats *s = &engine->stats;
    struct pdx_engine_counters *c = ret_counters;

    memset(c, 0, sizeof *c);
    c->transfers_submitted = pdxi_stat_get(s, PDXI_STAT_SUBMITTED);
    c->transfers_done = pdxi_stat_get(s, PDXI_STAT_DONE);
    c->transfers_failed = pdxi_stat_get(s, PDXI_STAT_FAILED);
    c->transfers_cancelled = pdxi_stat_get(s, PDXI_STAT_CANCELLED);
    c->transfers_deadline = pdxi_stat_get(s, PDXI_STAT_DEADLINE);
    c->transfers_stale = pdxi_stat_get(s, PDXI_STAT_STALE);
    c->transfers_refused = pdxi_stat_get(s, PDXI_STAT_REFUSED);
    c->transfers_inflight = atomic_load_explicit(&engine->inflight, memory_order_relaxed);
    c->bytes_written = pdxi_stat_get(s, PDXI_STAT_BYTES_WRITTEN);
    c->bytes_read = pdxi_stat_get(s, PDXI_STAT_BYTES_READ);
    c->bytes_in_written = pdxi_stat_get(s, PDXI_STAT_BYTES_IN_WRITTEN);
    c->bytes_in_read = pdxi_stat_get(s, PDXI_STAT_BYTES_IN_READ);
    c->segments = pdxi_stat_get(s, PDXI_STAT_SEGMENTS);
    c->frames_sent = pdxi_stat_get(s, PDXI_STAT_FRAMES_SENT);
    c->frames_received = pdxi_stat_get(s, PDXI_STAT_FRAMES_RECEIVED);
    c->retries = pdxi_stat_get(s, PDXI_STAT_RETRIES);
    c->sessions = atomic_load_explicit(&engine->nsessions, memory_order_relaxed);
    c->peers_lost = pdxi_stat_get(s, PDXI_STAT_PEERS_LOST);
    c->sessions_lost = pdxi_stat_get(s, PDXI_STAT_SESSIONS_LOST);
    c->garbage = pdxi_stat_get(s, PDXI_STAT_GARBAGE);
    c->refused_frames = pdxi_stat_get(s, PDXI_STAT_REFUSED_FRAMES);
    c->again = pdxi_stat_get(s, PDXI_STAT_AGAIN);
    c->wakeups = pdxi_stat_get(s, PDXI_STAT_WAKEUPS);
    c->syscalls = pdxi_stat_get(s, PDXI_STAT_SYSCALLS);
    (void)pthread_mutex_lock(&e->lock);
    c->peers = e->npeers;
    (void)pthread_mutex_unlock(&e->lock);
    pdxi_inbound_count(&e->inbound, c);
}

void pdx_peer_counters(const struct pdx_peer *peer, struct pdx_peer_counters *ret_counters)
{
    struct pdx_peer_counters *c = ret_counters;
    uint64_t ended;

    /* In this order, so that what ends meanwhile was not counted as ended only. */
    c->transfers_done = atomic_load(&peer->done);
    c->transfers_ended_badly = atomic_load(&peer->ended_badly);
    c->transfers_submitted = atomic_load(&peer->submitted);
    ended = c->transfers_done + c->transfers_ended_badly;
    c->transfers_inflight = c->transfers_submitted > ended ? c->transfers_submitted - ended : 0;
    c->bytes_written = pdxi_counted(&peer->bytes_written);
    c->bytes_read = pdxi_counted(&peer->bytes_read);
    c->connects = pdxi_counted(&peer->connects);
    c->losses = pdxi_counted(&peer->losses);
    c->lane_breaks = pdxi_counted(&peer->lane_breaks);
    c->rtt_ns = pdxi_counted(&peer->rtt_ns);
}
