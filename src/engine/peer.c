/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/peer.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "engine/control.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/net/resolve.h"
#include "engine/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE_FAILURES_MAX 3         /* in a row, before the whole connection is begun again */
#define ATTEMPT_SHORT_NS  (PDX_SEC) /* for an address that is not the last one */
#define STEADY_NS         (PDX_SEC) /* what was up for less came up in vain */

/* ---- memory ----------------------------------------------------------- */

void pdxi_peer_get(struct pdx_peer *peer)
{
    atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
}

void pdxi_peer_drop(struct pdx_peer *peer)
{
    struct pdx_engine *engine;

    if (atomic_fetch_sub_explicit(&peer->refs, 1, memory_order_acq_rel) != 1)
        return;
    engine = peer->engine;
    free(peer);
    pdxi_engine_drop(engine);
}

/* ---- state that callers see ------------------------------------------- */

/* What an operator has to see, and what went as asked. */
static enum pdx_log_level peer_log_level(enum pdx_peer_state was, enum pdx_peer_state now)
{
    bool lost = was == PDX_PEER_UP && now == PDX_PEER_CONNECTING;

    return lost || now == PDX_PEER_DOWN || now == PDX_PEER_STALE ? PDX_LOG_WARN : PDX_LOG_INFO;
}

/* The text is in place before the state is, and sleepers are woken after both. */
static void peer_show(struct pdx_peer *peer, const struct pdx_error *cause)
{
    struct pdx_engine *engine = peer->engine;
    enum pdx_peer_state was = atomic_load_explicit(&peer->state, memory_order_relaxed);
    enum pdx_peer_state now = peer->step.state;

    (void)pthread_mutex_lock(&engine->lock);
    if (cause)
        peer->reason = *cause;
    atomic_store(&peer->state, now);
    (void)pthread_mutex_unlock(&engine->lock);
    if (was == now)
        return;
    pdxi_futex_wake_all(&peer->state);
    pdxi_log(&engine->log, peer_log_level(was, now), "engine %s: peer %s is %s%s%s", engine->name,
             peer->desc.name, pdx_peer_state_name(now), cause ? ": " : "",
             cause ? cause->text : "");
}

static void peer_show_address(struct pdx_peer *peer)
{
    (void)pthread_mutex_lock(&peer->engine->lock);
    pdxi_sock_text(&peer->addrs[peer->step.addr], peer->address);
    (void)pthread_mutex_unlock(&peer->engine->lock);
}

int pdxi_peer_accepts(struct pdx_peer *peer, struct pdx_error *why)
{
    struct pdx_error reason;

    switch (pdx_peer_state(peer, NULL)) {
    case PDX_PEER_CONNECTING:
    case PDX_PEER_UP:
        return 0;
    case PDX_PEER_DOWN:
        (void)pdx_peer_state(peer, &reason);
        return pdxi_error_set(why, PDX_EPEER, PDX_COST_NONE,
                              "peer %s is down: %s; it is tried again in the background",
                              peer->desc.name, reason.text);
    case PDX_PEER_STALE:
        (void)pdx_peer_state(peer, &reason);
        return pdxi_error_set(why, PDX_ESTALE, PDX_COST_NONE, "peer %s is stale: %s",
                              peer->desc.name, reason.text);
    case PDX_PEER_CLOSED:
        break;
    }
    if (atomic_load(&peer->engine->stopping))
        return pdxi_error_set(why, PDX_ESHUTDOWN, PDX_COST_NONE, "engine %s is being destroyed",
                              peer->engine->name);
    return pdxi_error_set(why, PDX_EINVAL, PDX_COST_NONE, "peer %s was put", peer->desc.name);
}

/* ---- what the step machine asks for ----------------------------------- */

static void peer_disconnect(struct pdx_peer *peer)
{
    struct pdxi_lane *lane = peer->lane;

    pdxi_timer_cancel(&peer->engine->reactor.timers, &peer->timer);
    peer->lane = NULL;
    if (lane)
        lane->ops->close(lane);
    pdxi_control_close(peer->control);
    peer->control = NULL;
}

/* An event for every transfer of a list, each of which leaves the list by it. */
static void peer_tell_all(struct pdxi_list *transfers, enum pdxi_transfer_event event,
                          const struct pdx_error *cause)
{
    struct pdxi_list told;

    pdxi_list_init(&told);
    pdxi_list_splice_tail(&told, transfers);
    while (!pdxi_list_empty(&told)) {
        struct pdx_transfer_status *t =
            pdxi_container_of(told.next, struct pdx_transfer_status, link);

        pdxi_list_remove(&t->link);
        pdxi_transfer_event(t, event, cause);
    }
}

/* Everything is in the two lists by now: the lane was closed before. */
static void peer_fail_all(struct pdx_peer *peer, enum pdxi_transfer_event event,
                          const struct pdx_error *cause)
{
    peer_tell_all(&peer->queue, event, cause);
    peer_tell_all(&peer->fencing, PDXI_EV_PEER_LOST, cause);
    while (!pdxi_list_empty(&peer->notices)) {
        struct pdxi_notice *n = pdxi_container_of(peer->notices.next, struct pdxi_notice, link);

        pdxi_list_remove(&n->link);
        pdxi_peer_notice_put(peer, n);
    }
}

static void peer_arm(struct pdx_peer *peer, uint64_t delay_ns)
{
    struct pdxi_reactor *r = &peer->engine->reactor;

    peer->attempt_ns = delay_ns;
    pdxi_timer_start(&r->timers, &peer->timer, pdxi_after_ns(r->now_ns, delay_ns));
}

/* Whatever the system's reason, to callers it means that the peer cannot be reached now. */
static void peer_attempt_failed(struct pdx_peer *peer, const struct pdx_error *why)
{
    struct pdx_error cause;

    pdxi_error_set(&cause, PDX_EPEER, PDX_COST_PEER, "peer %s cannot be reached: %s",
                   peer->desc.name, why->text);
    pdxi_peer_event(peer, PDXI_PEV_FAILED, PDX_EPEER, &cause);
}

static void peer_connect(struct pdx_peer *peer)
{
    uint64_t limit_ns = peer->engine->connect_timeout_ns;
    struct pdx_error why;
    int r;

    if (peer->step.addr + 1 < peer->step.naddrs && limit_ns > ATTEMPT_SHORT_NS)
        limit_ns = ATTEMPT_SHORT_NS;
    peer_show_address(peer);
    peer_arm(peer, limit_ns);
    r = pdxi_control_open(peer, &peer->addrs[peer->step.addr], &peer->control, &why);
    if (r < 0)
        peer_attempt_failed(peer, &why);
}

static void peer_open_lane(struct pdx_peer *peer, const uint8_t ticket[PDXI_TICKET_LEN])
{
    struct pdx_error why;
    int r =
        pdxi_lane_tcp.open(peer, ticket, pdxi_control_max_frames(peer->control), &peer->lane, &why);

    if (r < 0)
        pdxi_peer_lane_lost(peer, &why);
}

static void peer_give_to_lane(struct pdx_peer *peer, struct pdx_transfer_status *t)
{
    struct pdxi_lane *lane = peer->lane;

    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&lane->active, &t->link);
    t->lane = lane;
    pdxi_transfer_event(t, PDXI_EV_START, NULL);
}

static void peer_drain_queue(struct pdx_peer *peer)
{
    while (!pdxi_list_empty(&peer->queue))
        peer_give_to_lane(peer,
                          pdxi_container_of(peer->queue.next, struct pdx_transfer_status, link));
    peer->lane->ops->kick(peer->lane);
}

/* Final: the peer leaves the engine's list, and the reactor's reference goes. */
static void peer_leave(struct pdx_peer *peer)
{
    struct pdx_engine *engine = peer->engine;

    if (peer->left)
        return;
    peer->left = true;
    (void)pthread_mutex_lock(&engine->lock);
    if (!pdxi_list_empty(&peer->link)) {
        pdxi_list_remove(&peer->link);
        engine->npeers--;
    }
    (void)pthread_mutex_unlock(&engine->lock);
    pdxi_peer_drop(peer);
}

static void peer_end_transfers(struct pdx_peer *peer, const struct pdx_error *cause)
{
    enum pdxi_transfer_event event = PDXI_EV_PEER_LOST;

    if (peer->step.state == PDX_PEER_CLOSED)
        event = peer->engine->reactor.stopping ? PDXI_EV_SHUTDOWN : PDXI_EV_CANCEL;
    peer_fail_all(peer, event, cause);
}

static void peer_resolve(struct pdx_peer *peer)
{
    peer->lookup = ++peer->engine->next_lookup;
    pdxi_resolve_start(peer, peer->lookup);
}

/* A connection that is lost is begun again at once, unless it was lost as soon as it was up: then
 * that would go on without end. */
static void peer_resolve_soon(struct pdx_peer *peer, bool lost)
{
    if (lost && peer->engine->reactor.now_ns - peer->up_ns < STEADY_NS)
        peer_arm(peer, PDXI_PEER_PAUSE_MIN);
    else
        peer_resolve(peer);
}

static void peer_act(struct pdx_peer *peer, unsigned actions, const struct pdx_error *cause)
{
    if (actions & PDXI_PACT_DISCONNECT)
        peer_disconnect(peer);
    if (actions & PDXI_PACT_FAIL_ALL)
        peer_end_transfers(peer, cause);
    if (actions & PDXI_PACT_PAUSE)
        peer_arm(peer, peer->step.pause_ns);
    if (actions & PDXI_PACT_RESOLVE)
        peer_resolve_soon(peer, actions & PDXI_PACT_DISCONNECT);
    if (actions & PDXI_PACT_CONNECT)
        peer_connect(peer);
    if (actions & PDXI_PACT_GREET)
        pdxi_control_greet(peer->control);
    if (actions & PDXI_PACT_OPEN_LANE)
        peer_open_lane(peer, pdxi_control_ticket(peer->control));
    if (actions & PDXI_PACT_DRAIN_QUEUE)
        peer_drain_queue(peer);
}

void pdxi_peer_event(struct pdx_peer *peer, enum pdxi_peer_event event, int arg,
                     const struct pdx_error *cause)
{
    enum pdxi_peer_phase was = peer->step.phase;
    unsigned actions;

    pdxi_peer_get(peer); /* the last reference may go below */
    actions = pdxi_peer_step(&peer->step, event, arg);
    if (was == PDXI_PEER_READY && peer->step.phase != PDXI_PEER_READY) {
        pdxi_stat_add(&peer->engine->stats, PDXI_STAT_PEERS_LOST, event == PDXI_PEV_CLOSE ? 0 : 1);
        pdxi_count(&peer->losses, event == PDXI_PEV_CLOSE ? 0 : 1);
    }
    if (was != PDXI_PEER_READY && peer->step.phase == PDXI_PEER_READY) {
        pdxi_count(&peer->connects, 1);
        peer->up_ns = peer->engine->reactor.now_ns;
        pdxi_timer_cancel(&peer->engine->reactor.timers, &peer->timer);
    }
    if (actions || was != peer->step.phase)
        peer_show(peer, cause);
    peer_act(peer, actions, cause);
    if (peer->step.phase == PDXI_PEER_GONE)
        peer_leave(peer);
    pdxi_peer_drop(peer);
}

/* ---- events ----------------------------------------------------------- */

static void peer_on_timer(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct pdx_peer *peer = pdxi_container_of(timer, struct pdx_peer, timer);
    struct pdx_error why;

    (void)now_ns;
    if (peer->step.phase == PDXI_PEER_PAUSED) {
        pdxi_peer_event(peer, PDXI_PEV_PAUSE_OVER, 0, NULL);
        return;
    }
    if (peer->step.phase == PDXI_PEER_RESOLVING) {
        peer_resolve(peer);
        return;
    }
    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER,
                   "%s at %s does not answer: %s within %.3g s (option connect_timeout_ns)",
                   peer->desc.name, peer->address,
                   peer->step.phase == PDXI_PEER_CONNECTING ? "no TCP connection"
                   : peer->step.phase == PDXI_PEER_READY    ? "no ticket for a data connection"
                                                            : "connected, but no greeting",
                   (double)peer->attempt_ns / 1e9);
    pdxi_peer_event(peer, PDXI_PEV_LOST, PDX_EPEER, &why);
}

void pdxi_peer_begin(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct pdx_peer *peer = pdxi_container_of(cmd, struct pdx_peer, begin_cmd);

    if (r->stopping)
        pdxi_peer_shutdown(peer);
    else
        pdxi_peer_event(peer, PDXI_PEV_BEGIN, 0, NULL);
    pdxi_peer_drop(peer);
}

void pdxi_peer_resolved(struct pdx_peer *peer, uint64_t lookup, const struct pdxi_sockaddr *addrs,
                        int naddrs, const struct pdx_error *why)
{
    if (lookup != peer->lookup || peer->step.phase != PDXI_PEER_RESOLVING)
        return;
    if (naddrs > 0) {
        memcpy(peer->addrs, addrs, (size_t)naddrs * sizeof *addrs);
        pdxi_peer_event(peer, PDXI_PEV_RESOLVED, naddrs, NULL);
    } else {
        peer_attempt_failed(peer, why);
    }
}

void pdxi_peer_shutdown(struct pdx_peer *peer)
{
    struct pdx_error why;

    pdxi_error_set(&why, PDX_ESHUTDOWN, PDX_COST_ENGINE, "the engine %s is being destroyed",
                   peer->engine->name);
    pdxi_peer_event(peer, PDXI_PEV_CLOSE, 0, &why);
}

void pdxi_peer_notice_put(struct pdx_peer *peer, struct pdxi_notice *notice)
{
    peer->nnotices--;
    pdxi_pool_put(&peer->engine->pool, notice);
}

void pdxi_peer_notice(struct pdx_peer *peer, const struct pdx_transfer_status *t)
{
    struct pdxi_notice *n;
    const char *cause = atomic_load_explicit(&t->cause, memory_order_relaxed);

    if (peer->step.phase != PDXI_PEER_READY)
        return; /* the target learns it from the loss of the session */
    /* A target that takes no data can't make the list endless. */
    if (peer->nnotices >= peer->engine->transfers.capacity)
        return;
    n = pdxi_pool_get(&peer->engine->pool, sizeof *n);
    if (!n)
        return;
    peer->nnotices++;
    memset(n, 0, sizeof *n);
    n->frame.xfer = t->number;
    n->frame.id = t->id;
    n->frame.outcome = t->step.code == PDX_CANCELLED || t->step.code == PDX_DEADLINE
                           ? PDX_INBOUND_ABORTED
                           : PDX_INBOUND_FAILED;
    n->frame.err = t->step.err;
    (void)snprintf(n->frame.text, sizeof n->frame.text, "%s", cause ? cause : "");
    pdxi_list_add_tail(&peer->notices, &n->link);
    if (peer->lane && peer->lane->up)
        peer->lane->ops->kick(peer->lane);
}

void pdxi_peer_enqueue(struct pdx_peer *peer, struct pdx_transfer_status *t)
{
    pdxi_list_add_tail(&peer->queue, &t->link);
    if (peer->lane && peer->lane->up)
        peer_drain_queue(peer);
}

void pdxi_peer_lane_up(struct pdx_peer *peer)
{
    peer->lane->up = true;
    /* The target has closed the earlier lane before it answered on this one. */
    peer_tell_all(&peer->fencing, PDXI_EV_FENCED, NULL);
    peer->lane_up_ns = peer->engine->reactor.now_ns;
    pdxi_peer_event(peer, PDXI_PEV_LANE_UP, 0, NULL);
}

/* The connection as a whole still stands: one more lane is asked for. */
static void peer_reopen_lane(struct pdx_peer *peer, const struct pdx_error *cause)
{
    if (peer->step.phase != PDXI_PEER_READY || ++peer->lane_failures > LANE_FAILURES_MAX) {
        pdxi_peer_event(peer, PDXI_PEV_LOST, cause->code, cause);
        return;
    }
    pdxi_log(&peer->engine->log, PDX_LOG_WARN, "engine %s: lane tcp to peer %s is opened again: %s",
             peer->engine->name, peer->desc.name, cause->text);
    peer_arm(peer, peer->engine->connect_timeout_ns);
    pdxi_control_ask_ticket(peer->control);
}

void pdxi_peer_lane_lost(struct pdx_peer *peer, const struct pdx_error *cause)
{
    struct pdxi_lane *lane = peer->lane;

    if (lane && lane->up && peer->engine->reactor.now_ns - peer->lane_up_ns >= STEADY_NS)
        peer->lane_failures = 0;
    peer->lane = NULL;
    if (lane)
        lane->ops->close(lane);
    peer_reopen_lane(peer, cause);
}

void pdxi_peer_lane_break(struct pdx_peer *peer, const struct pdx_error *cause)
{
    pdxi_count(&peer->lane_breaks, 1);
    if (peer->lane)
        peer->lane->broken = true;
    peer->lane_failures = 0; /* on purpose: says nothing about the path */
    pdxi_peer_lane_lost(peer, cause);
}

void pdxi_peer_ticket(struct pdx_peer *peer, const uint8_t ticket[PDXI_TICKET_LEN])
{
    if (peer->step.phase != PDXI_PEER_READY || peer->lane)
        return;
    pdxi_timer_cancel(&peer->engine->reactor.timers, &peer->timer);
    peer_open_lane(peer, ticket);
}

/* ---- birth ----------------------------------------------------------- */

static void peer_on_close(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct pdx_peer *peer = pdxi_container_of(cmd, struct pdx_peer, close_cmd);
    struct pdx_error why;

    (void)r;
    pdxi_error_set(&why, PDX_ECANCELLED, PDX_COST_PEER, "peer %s was put by the caller",
                   peer->desc.name);
    pdxi_peer_event(peer, PDXI_PEV_CLOSE, 0, &why);
    pdxi_peer_drop(peer);
}

static void peer_on_supersede(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct pdx_peer *peer = pdxi_container_of(cmd, struct pdx_peer, supersede_cmd);
    struct pdx_error why;

    (void)r;
    pdxi_error_set(&why, PDX_ESTALE, PDX_COST_PEER,
                   "%s has restarted: a newer incarnation of it was added; use that peer",
                   peer->desc.name);
    pdxi_peer_event(peer, PDXI_PEV_SUPERSEDED, 0, &why);
    pdxi_peer_drop(peer);
}

struct pdx_peer *pdxi_peer_new(struct pdx_engine *engine, const struct pdxi_engine_desc *desc)
{
    struct pdx_peer *peer = calloc(1, sizeof *peer);

    if (!peer)
        return NULL;
    peer->engine = engine;
    peer->desc = *desc;
    atomic_init(&peer->refs, 3); /* the reactor's, the callers' together, and begin_cmd's */
    atomic_init(&peer->users, 1);
    atomic_init(&peer->state, PDX_PEER_CONNECTING);
    pdxi_error_set(&peer->reason, PDX_EPEER, PDX_COST_PEER,
                   "the first attempt to reach peer %s at %s is under way", desc->name,
                   desc->addrs[0]);
    (void)snprintf(peer->address, sizeof peer->address, "%.*s", PDXI_SOCK_TEXT - 1, desc->addrs[0]);
    pdxi_peer_step_init(&peer->step);
    pdxi_list_init(&peer->link);
    pdxi_list_init(&peer->queue);
    pdxi_list_init(&peer->fencing);
    pdxi_list_init(&peer->notices);
    pdxi_timer_init(&peer->timer, peer_on_timer);
    peer->begin_cmd.run = pdxi_peer_begin;
    peer->close_cmd.run = peer_on_close;
    peer->supersede_cmd.run = peer_on_supersede;
    pdxi_engine_get(engine);
    return peer;
}
