/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/transfer.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/peer.h"
#include "engine/wait.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCE_DRAINS 2 /* the limit of a fence, in drain times */

/* ---- memory ----------------------------------------------------------- */

static void transfer_on_arrive(struct pdxi_reactor *r, struct pdxi_cmd *cmd);
static void transfer_on_cancel(struct pdxi_reactor *r, struct pdxi_cmd *cmd);
static void transfer_on_deadline(struct pdxi_timer *timer, uint64_t now_ns);
static void transfer_on_drain_timeout(struct pdxi_timer *timer, uint64_t now_ns);

int pdxi_transfer_new(struct pdx_peer *peer, struct pdx_transfer_status **ret,
                      struct pdx_error *why)
{
    struct pdx_engine *engine = peer->engine;
    struct pdx_transfer_status *t = pdxi_slab_get(&engine->transfers);

    if (!t)
        return pdxi_refuse(why, PDX_EAGAIN,
                           "engine %s has %u transfers that are not finished or not put "
                           "(option max_transfers)",
                           engine->name, engine->transfers.capacity);
    memset(t, 0, sizeof *t);
    atomic_init(&t->code, PDX_QUEUED);
    atomic_init(&t->refs, 2);
    pdxi_peer_get(peer);
    t->peer = peer;
    t->number = atomic_fetch_add_explicit(&engine->next_number, 1, memory_order_relaxed) + 1;
    t->submitted_ns = pdxi_now_ns();
    pdxi_list_init(&t->link);
    pdxi_list_init(&t->ended_link);
    pdxi_timer_init(&t->deadline_timer, transfer_on_deadline);
    pdxi_timer_init(&t->drain_timer, transfer_on_drain_timeout);
    t->arrive_cmd.run = transfer_on_arrive;
    t->cancel_cmd.run = transfer_on_cancel;
    *ret = t;
    return 0;
}

/* What the transfer held while it was under way. */
static void transfer_release_work(struct pdx_transfer_status *t)
{
    struct pdxi_pool *pool = &t->peer->engine->pool;

    if (t->prepared)
        pdxi_prepared_drop(t->prepared);
    pdxi_pool_put(pool, t->runs);
    pdxi_pool_put(pool, t->notify);
    t->prepared = NULL;
    t->runs = NULL;
    t->notify = NULL;
}

static void transfer_free(struct pdx_transfer_status *t)
{
    struct pdx_peer *peer = t->peer;

    free(atomic_load_explicit(&t->cause, memory_order_relaxed));
    free(atomic_load_explicit(&t->text, memory_order_relaxed));
    pdxi_slab_put(&peer->engine->transfers, t);
    pdxi_peer_drop(peer);
}

void pdxi_transfer_drop(struct pdx_transfer_status *t)
{
    if (t->cq)
        pdxi_cq_unreserve(t->cq);
    transfer_release_work(t);
    transfer_free(t);
}

struct pdx_transfer_status *pdx_transfer_get(struct pdx_transfer_status *status)
{
    atomic_fetch_add_explicit(&status->refs, 1, memory_order_relaxed);
    return status;
}

void pdx_transfer_put(struct pdx_transfer_status *status)
{
    if (status && atomic_fetch_sub_explicit(&status->refs, 1, memory_order_acq_rel) == 1)
        transfer_free(status);
}

/* ---- the way to the reactor ------------------------------------------- */

int pdxi_transfer_post(struct pdx_transfer_status **ts, size_t n, struct pdx_error *why)
{
    struct pdx_engine *engine = ts[0]->peer->engine;

    pdxi_stat_add(&engine->stats, PDXI_STAT_SUBMITTED, n);
    atomic_fetch_add_explicit(&engine->inflight, (uint32_t)n, memory_order_relaxed);
    for (size_t i = 0; i < n; i++) {
        pdxi_count(&ts[i]->peer->submitted, 1);
        if (i > 0)
            pdxi_cmd_link(&ts[i - 1]->arrive_cmd, &ts[i]->arrive_cmd);
    }
    if (pdxi_reactor_post_chain(&engine->reactor, &ts[0]->arrive_cmd, &ts[n - 1]->arrive_cmd))
        return 0;
    for (size_t i = 0; i < n; i++)
        atomic_fetch_sub_explicit(&ts[i]->peer->submitted, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&engine->inflight, (uint32_t)n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&engine->stats.v[PDXI_STAT_SUBMITTED], n, memory_order_relaxed);
    return pdxi_refuse(why, PDX_ESHUTDOWN, "engine %s is being destroyed", engine->name);
}

static void transfer_on_arrive(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct pdx_transfer_status *t = pdxi_container_of(cmd, struct pdx_transfer_status, arrive_cmd);
    struct pdx_error why;

    /* The peer may have been lost since the submission was checked. */
    if (r->stopping) {
        pdxi_transfer_event(t, PDXI_EV_SHUTDOWN, NULL);
    } else if (pdxi_peer_accepts(t->peer, &why) < 0) {
        pdxi_transfer_event(t, PDXI_EV_PEER_LOST, &why);
    } else {
        pdxi_timer_start(&r->timers, &t->deadline_timer, t->deadline_ns);
        pdxi_peer_enqueue(t->peer, t);
    }
}

void pdx_transfer_cancel(struct pdx_transfer_status *status)
{
    if (pdx_transfer_is_terminal(pdx_transfer_code(status)))
        return;
    if (atomic_exchange(&status->cancel_asked, 1))
        return;
    (void)pdx_transfer_get(status);
    if (!pdxi_reactor_post(&status->peer->engine->reactor, &status->cancel_cmd))
        pdx_transfer_put(status);
}

static void transfer_on_cancel(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct pdx_transfer_status *t = pdxi_container_of(cmd, struct pdx_transfer_status, cancel_cmd);

    (void)r;
    pdxi_transfer_event(t, PDXI_EV_CANCEL, NULL);
    pdx_transfer_put(t);
}

static void transfer_on_deadline(struct pdxi_timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    pdxi_transfer_event(pdxi_container_of(timer, struct pdx_transfer_status, deadline_timer),
                        PDXI_EV_DEADLINE, NULL);
}

static void transfer_on_drain_timeout(struct pdxi_timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    pdxi_transfer_event(pdxi_container_of(timer, struct pdx_transfer_status, drain_timer),
                        PDXI_EV_DRAIN_TIMEOUT, NULL);
}

/* ---- events ----------------------------------------------------------- */

/* The sentence behind an end that has no other cause. */
static void transfer_default_cause(const struct pdx_transfer_status *t,
                                   enum pdxi_transfer_event event, bool queued, char *buf,
                                   size_t cap)
{
    double limit_s = (double)(t->deadline_ns - t->submitted_ns) / (double)PDX_SEC;

    switch (event) {
    case PDXI_EV_CANCEL:
        (void)snprintf(buf, cap, "cancelled by the caller");
        return;
    case PDXI_EV_DEADLINE:
        if (queued)
            (void)snprintf(buf, cap,
                           "the deadline of %.3g s passed while it waited for a connection (peer "
                           "%s)",
                           limit_s, pdx_peer_state_name(pdx_peer_state(t->peer, NULL)));
        else
            (void)snprintf(buf, cap,
                           "the deadline of %.3g s passed; %u frames are not answered by the peer",
                           limit_s, t->step.inflight);
        return;
    case PDXI_EV_SHUTDOWN:
        (void)snprintf(buf, cap, "the engine %s is being destroyed", t->peer->engine->name);
        return;
    case PDXI_EV_LANE_LOST:
        (void)snprintf(buf, cap, "the connection was lost %u times while it was under way",
                       t->step.losses + 1);
        return;
    case PDXI_EV_START:
    case PDXI_EV_ISSUED:
    case PDXI_EV_EXHAUSTED:
    case PDXI_EV_SENT:
    case PDXI_EV_ANSWERED:
    case PDXI_EV_REFUSED:
    case PDXI_EV_FAULT:
    case PDXI_EV_DRAIN_TIMEOUT:
    case PDXI_EV_FENCED:
    case PDXI_EV_LANE_BROKEN:
    case PDXI_EV_PEER_LOST:
        break;
    }
    (void)snprintf(buf, cap, "unknown cause");
}

static void transfer_note_cause(struct pdx_transfer_status *t, enum pdxi_transfer_event event,
                                bool queued, const struct pdx_error *cause)
{
    char own[256];
    const char *text = cause ? cause->text : own;

    if (!cause)
        transfer_default_cause(t, event, queued, own, sizeof own);
    atomic_store_explicit(&t->cause, strdup(text), memory_order_relaxed);
    t->err = t->step.err;
    if (t->tracked)
        pdxi_peer_notice(t->peer, t);
}

static void transfer_started(struct pdx_transfer_status *t)
{
    pdxi_wait_change(&t->code, PDX_IN_FLIGHT);
    if (t->step.retries == 0)
        return;
    pdxi_stat_add(&t->peer->engine->stats, PDXI_STAT_RETRIES, 1);
    atomic_store_explicit(&t->retries, t->step.retries, memory_order_relaxed);
}

static void transfer_count_end(struct pdx_transfer_status *t)
{
    static const enum pdxi_stat stat_of[] = {
        [PDX_DONE] = PDXI_STAT_DONE,           [PDX_FAILED] = PDXI_STAT_FAILED,
        [PDX_CANCELLED] = PDXI_STAT_CANCELLED, [PDX_DEADLINE] = PDXI_STAT_DEADLINE,
        [PDX_STALE] = PDXI_STAT_STALE,
    };
    struct pdx_engine *engine = t->peer->engine;

    pdxi_stat_add(&engine->stats, stat_of[t->step.code], 1);
    pdxi_count(t->step.code == PDX_DONE ? &t->peer->done : &t->peer->ended_badly, 1);
    atomic_fetch_sub_explicit(&engine->inflight, 1, memory_order_relaxed);
}

/* Everything that the caller can observe is in place before the code is. */
static void transfer_finish(struct pdx_transfer_status *t)
{
    struct pdxi_reactor *r = &t->peer->engine->reactor;
    struct pdx_completion done = {
        .id = t->id,
        .ctx = t->cq_ctx,
        .code = t->step.code,
        .err = t->step.err,
        .bytes = atomic_load_explicit(&t->bytes_done, memory_order_relaxed),
    };
    struct pdx_cq *cq = t->cq;

    pdxi_timer_cancel(&r->timers, &t->deadline_timer);
    pdxi_timer_cancel(&r->timers, &t->drain_timer);
    transfer_release_work(t);
    transfer_count_end(t);
    t->cq = NULL;
    atomic_store_explicit(&t->completed_ns, pdxi_now_ns(), memory_order_relaxed);
    if (t->callback) {
        (void)pdx_transfer_get(t);
        pdxi_list_add_tail(&r->ended, &t->ended_link);
    }
    pdxi_wait_publish(&t->code, t->step.code);
    if (cq)
        pdxi_cq_push(cq, &done);
}

void pdxi_transfer_run_callbacks(struct pdxi_reactor *r)
{
    struct pdxi_list *first;

    while ((first = pdxi_list_first(&r->ended))) {
        struct pdx_transfer_status *t =
            pdxi_container_of(first, struct pdx_transfer_status, ended_link);

        pdxi_list_remove(first);
        t->callback(t->callback_ctx, t);
        pdx_transfer_put(t);
    }
}

static void transfer_requeue(struct pdx_transfer_status *t)
{
    t->lane = NULL;
    t->began = false;
    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&t->peer->queue, &t->link);
}

/* The lane is closed here; a new one is on its way, and with it the word that the target has closed
 * the old one. A target that is stopped does not answer: the limit keeps the end within reach. */
static void transfer_fence(struct pdx_transfer_status *t)
{
    struct pdxi_reactor *r = &t->peer->engine->reactor;

    t->lane = NULL;
    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&t->peer->fencing, &t->link);
    pdxi_timer_start(&r->timers, &t->drain_timer,
                     pdxi_after_ns(r->now_ns, FENCE_DRAINS * t->peer->engine->drain_ns));
}

static void transfer_break_lane(struct pdx_transfer_status *t)
{
    struct pdx_error why;
    char name[96];

    pdxi_transfer_describe(t, name, sizeof name);
    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER,
                   "the connection was broken on purpose: %s had to end and the peer did not "
                   "answer",
                   name);
    pdxi_peer_lane_break(t->peer, &why);
}

void pdxi_transfer_event(struct pdx_transfer_status *t, enum pdxi_transfer_event event,
                         const struct pdx_error *cause)
{
    struct pdxi_reactor *r = &t->peer->engine->reactor;
    bool had_outcome = t->step.code != 0;
    bool queued = t->step.phase == PDXI_PHASE_QUEUED;
    unsigned actions = pdxi_transfer_step(&t->step, event, cause ? cause->code : 0);

    if (event == PDXI_EV_START && queued)
        transfer_started(t);
    if (!had_outcome && t->step.code && t->step.code != PDX_DONE)
        transfer_note_cause(t, event, queued, cause);
    if (actions & PDXI_ACT_STOP && t->lane)
        t->lane->ops->stop(t->lane, t);
    if (actions & PDXI_ACT_ARM_DRAIN)
        pdxi_timer_start(&r->timers, &t->drain_timer,
                         pdxi_after_ns(r->now_ns, t->peer->engine->drain_ns));
    if (actions & PDXI_ACT_REQUEUE)
        transfer_requeue(t);
    if (actions & PDXI_ACT_FENCE)
        transfer_fence(t);
    if (actions & PDXI_ACT_FINISH)
        transfer_finish(t);
    if (actions & PDXI_ACT_RELEASE) {
        pdxi_list_remove(&t->link);
        t->lane = NULL;
        pdx_transfer_put(t);
    } else if (actions & PDXI_ACT_BREAK_LANE) {
        transfer_break_lane(t);
    }
}
