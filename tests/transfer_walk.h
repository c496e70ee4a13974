/* SPDX-License-Identifier: Apache-2.0
 *
 * One transfer's step machine under arbitrary events, for the test and the fuzz
 * target. Each step is held against what must be true of every transfer: one
 * end, quiet before it at both sides, the first cause kept, success never made
 * up.
 */
#ifndef PDX_TESTS_TRANSFER_WALK_H
#define PDX_TESTS_TRANSFER_WALK_H

#include "engine/proto/transfer_step.h"

#define TRANSFER_EVENTS (PDXI_EV_SHUTDOWN + 1)
#define TRANSFER_PHASES (PDXI_PHASE_ENDED + 1)

struct transfer_walk {
    struct pdxi_transfer_step step;
    unsigned finishes;
    unsigned releases;
    bool stopped; /* STOP was asked for since the last START */
    bool writes;
    bool exposed; /* frames of a write went with a lane that the target may not have closed */
};

static inline void transfer_walk_begin(struct transfer_walk *w, enum pdx_op op,
                                       enum pdx_level level, uint32_t max_losses)
{
    *w = (struct transfer_walk){.writes = op == PDX_WRITE};
    pdxi_transfer_step_init(&w->step, op, level, max_losses);
}

/* Whether an event can mean anything to a transfer that is in this state. */
static inline bool transfer_walk_sensible(const struct pdxi_transfer_step *s,
                                          enum pdxi_transfer_event event)
{
    bool queued = s->phase == PDXI_PHASE_QUEUED;
    bool active = s->phase == PDXI_PHASE_ACTIVE;
    bool draining = s->phase == PDXI_PHASE_DRAINING;
    bool fencing = s->phase == PDXI_PHASE_FENCING;

    switch (event) {
    case PDXI_EV_START:
        return queued;
    case PDXI_EV_ISSUED:
    case PDXI_EV_EXHAUSTED:
        return active;
    case PDXI_EV_SENT:
        return active && s->local && s->exhausted;
    case PDXI_EV_ANSWERED:
    case PDXI_EV_REFUSED:
        return s->inflight > 0;
    case PDXI_EV_FAULT:
    case PDXI_EV_CANCEL:
    case PDXI_EV_DEADLINE:
        return queued || active;
    case PDXI_EV_DRAIN_TIMEOUT:
        return draining || fencing;
    case PDXI_EV_FENCED:
        return fencing || (queued && s->fence);
    case PDXI_EV_LANE_LOST:
    case PDXI_EV_LANE_BROKEN:
        return active || s->inflight > 0;
    case PDXI_EV_PEER_LOST:
    case PDXI_EV_SHUTDOWN:
        return queued || active || fencing || s->inflight > 0;
    }
    return false;
}

static inline bool transfer_walk_same(const struct pdxi_transfer_step *a,
                                      const struct pdxi_transfer_step *b)
{
    return a->phase == b->phase && a->code == b->code && a->err == b->err &&
           a->inflight == b->inflight && a->retries == b->retries && a->losses == b->losses &&
           a->max_losses == b->max_losses && a->exhausted == b->exhausted &&
           a->writes == b->writes && a->local == b->local && a->fence == b->fence;
}

#define TRANSFER_MUST(cond) \
    do {                    \
        if (!(cond))        \
            return #cond;   \
    } while (0)

/* What the step did to the outcome and to the frames in flight. */
static inline const char *transfer_walk_check(const struct transfer_walk *w,
                                              const struct pdxi_transfer_step *was,
                                              enum pdxi_transfer_event event, unsigned actions)
{
    const struct pdxi_transfer_step *s = &w->step;
    bool lanes_quiet = event == PDXI_EV_LANE_LOST || event == PDXI_EV_LANE_BROKEN ||
                       event == PDXI_EV_PEER_LOST || event == PDXI_EV_SHUTDOWN;
    bool answer = event == PDXI_EV_ANSWERED || event == PDXI_EV_REFUSED;

    /* The first cause wins, and an outcome is there from its cause on. */
    if (was->code)
        TRANSFER_MUST(s->code == was->code && s->err == was->err);
    TRANSFER_MUST((s->code != 0) == (s->phase >= PDXI_PHASE_DRAINING));
    TRANSFER_MUST((s->err != 0) == (s->code != 0 && s->code != PDX_DONE));
    /* Success is never made up. */
    if (s->code == PDX_DONE && !was->code)
        TRANSFER_MUST(
            s->exhausted && (was->inflight <= 1 || event == PDXI_EV_SENT) &&
            (event == PDXI_EV_ANSWERED || event == PDXI_EV_EXHAUSTED || event == PDXI_EV_SENT));
    /* Only answers and quiet lanes take frames away; only ISSUED adds one. */
    if (lanes_quiet)
        TRANSFER_MUST(s->inflight == 0);
    else
        TRANSFER_MUST(s->inflight + answer == was->inflight + (event == PDXI_EV_ISSUED));
    /* An end needs quiet, unless it only says that the source was read. */
    if (actions & PDXI_ACT_FINISH)
        TRANSFER_MUST(s->inflight == 0 || (s->local && s->code == PDX_DONE));
    if (actions & PDXI_ACT_RELEASE)
        TRANSFER_MUST(s->inflight == 0);
    /* Ended early with a lane at hand: the lane hears of it, once, unless it is quiet anyway. */
    if (was->phase == PDXI_PHASE_ACTIVE && s->code && s->code != PDX_DONE && !lanes_quiet)
        TRANSFER_MUST(actions & PDXI_ACT_STOP);
    if (actions & PDXI_ACT_STOP)
        TRANSFER_MUST(was->phase == PDXI_PHASE_ACTIVE);
    /* Who waits for answers does so with a limit, and what comes after the limit helps. */
    if (was->phase != PDXI_PHASE_DRAINING && s->phase == PDXI_PHASE_DRAINING)
        TRANSFER_MUST(s->inflight > 0 && (actions & PDXI_ACT_ARM_DRAIN));
    TRANSFER_MUST(!(actions & PDXI_ACT_BREAK_LANE) ==
                  !(event == PDXI_EV_DRAIN_TIMEOUT && was->phase == PDXI_PHASE_DRAINING));
    /* A new lane begins where nothing is in flight and nothing is exhausted. */
    TRANSFER_MUST(!(actions & PDXI_ACT_REQUEUE) ==
                  !(was->phase == PDXI_PHASE_ACTIVE && s->phase == PDXI_PHASE_QUEUED));
    if (actions & PDXI_ACT_REQUEUE)
        TRANSFER_MUST(!s->exhausted && s->retries == was->retries + 1 &&
                      s->losses <= s->max_losses);
    return NULL;
}

/* What the step did for the quiet of the target's memory. */
static inline const char *transfer_walk_check_fence(const struct transfer_walk *w,
                                                    const struct pdxi_transfer_step *was,
                                                    enum pdxi_transfer_event event,
                                                    unsigned actions)
{
    const struct pdxi_transfer_step *s = &w->step;
    bool enters = was->phase != PDXI_PHASE_FENCING && s->phase == PDXI_PHASE_FENCING;
    bool opens = event == PDXI_EV_FENCED || event == PDXI_EV_DRAIN_TIMEOUT ||
                 event == PDXI_EV_PEER_LOST || event == PDXI_EV_SHUTDOWN;

    TRANSFER_MUST(s->fence == w->exposed);
    if (actions & PDXI_ACT_FINISH)
        TRANSFER_MUST(!w->exposed);
    TRANSFER_MUST(!(actions & PDXI_ACT_FENCE) == !enters);
    if (s->phase == PDXI_PHASE_FENCING)
        TRANSFER_MUST(w->exposed && s->inflight == 0 && s->code != PDX_DONE);
    if (was->phase == PDXI_PHASE_FENCING)
        TRANSFER_MUST(opens && s->phase == PDXI_PHASE_ENDED);
    return NULL;
}

/* The walk's own account of what the target may still put in place. A transfer that is done at the
 * LOCAL level has given up that question. */
static inline bool transfer_walk_exposed(const struct transfer_walk *w,
                                         const struct pdxi_transfer_step *was,
                                         enum pdxi_transfer_event event)
{
    switch (event) {
    case PDXI_EV_LANE_LOST:
    case PDXI_EV_LANE_BROKEN:
        return w->exposed || (w->writes && was->inflight > 0 && was->phase != PDXI_PHASE_ENDED);
    case PDXI_EV_START:
    case PDXI_EV_FENCED:
    case PDXI_EV_PEER_LOST:
    case PDXI_EV_SHUTDOWN:
        return false;
    case PDXI_EV_DRAIN_TIMEOUT:
        return w->exposed && was->phase != PDXI_PHASE_FENCING;
    case PDXI_EV_ISSUED:
    case PDXI_EV_EXHAUSTED:
    case PDXI_EV_SENT:
    case PDXI_EV_ANSWERED:
    case PDXI_EV_REFUSED:
    case PDXI_EV_FAULT:
    case PDXI_EV_CANCEL:
    case PDXI_EV_DEADLINE:
        break;
    }
    return w->exposed;
}

/* Returns the sentence that is not true after this step, or NULL. */
static inline const char *transfer_walk_step(struct transfer_walk *w,
                                             enum pdxi_transfer_event event, int err,
                                             unsigned *ret_actions)
{
    const struct pdxi_transfer_step was = w->step;
    unsigned actions = pdxi_transfer_step(&w->step, event, err);
    const char *broken;

    *ret_actions = actions;
    if (!transfer_walk_sensible(&was, event)) {
        TRANSFER_MUST(actions == 0 && transfer_walk_same(&was, &w->step));
        return NULL;
    }
    TRANSFER_MUST(!transfer_walk_same(&was, &w->step) || event == PDXI_EV_DRAIN_TIMEOUT ||
                  event == PDXI_EV_EXHAUSTED);
    w->finishes += (actions & PDXI_ACT_FINISH) != 0;
    w->releases += (actions & PDXI_ACT_RELEASE) != 0;
    TRANSFER_MUST(w->finishes == (w->step.phase == PDXI_PHASE_ENDED));
    TRANSFER_MUST(w->releases == (w->step.phase == PDXI_PHASE_ENDED && w->step.inflight == 0));
    TRANSFER_MUST(!(w->stopped && (actions & PDXI_ACT_STOP)));
    w->stopped = event != PDXI_EV_START && (w->stopped || (actions & PDXI_ACT_STOP));
    w->exposed = transfer_walk_exposed(w, &was, event);
    broken = transfer_walk_check(w, &was, event, actions);
    return broken ? broken : transfer_walk_check_fence(w, &was, event, actions);
}

/* Whether these events, one after the other, end it and let go of it. */
static inline const char *transfer_walk_ends(struct transfer_walk w,
                                             const enum pdxi_transfer_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned actions;
        const char *broken = transfer_walk_step(&w, events[i], PDX_EPEER, &actions);

        if (broken)
            return broken;
    }
    TRANSFER_MUST(w.finishes == 1 && w.releases == 1);
    return NULL;
}

/* From wherever a transfer is, each of these ends it. */
static inline const char *transfer_walk_can_end(const struct transfer_walk *w)
{
    static const enum pdxi_transfer_event ways[][3] = {
        {PDXI_EV_SHUTDOWN, PDXI_EV_SHUTDOWN, PDXI_EV_SHUTDOWN},
        {PDXI_EV_PEER_LOST, PDXI_EV_PEER_LOST, PDXI_EV_PEER_LOST},
        {PDXI_EV_DEADLINE, PDXI_EV_LANE_BROKEN, PDXI_EV_FENCED},
        {PDXI_EV_DEADLINE, PDXI_EV_LANE_LOST, PDXI_EV_DRAIN_TIMEOUT},
    };
    const char *broken = NULL;

    for (size_t i = 0; !broken && i < sizeof ways / sizeof ways[0]; i++)
        broken = transfer_walk_ends(*w, ways[i], 3);
    return broken;
}

#endif
