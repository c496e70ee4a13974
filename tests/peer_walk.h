/* SPDX-License-Identifier: Apache-2.0
 *
 * One peer's step machine under arbitrary events, for the test and the fuzz
 * target. Beside it stands what a caller would see of the world: whether a
 * connection is open and how long the last pause was.
 */
#ifndef PDX_TESTS_PEER_WALK_H
#define PDX_TESTS_PEER_WALK_H

#include "engine/proto/peer_step.h"

#include <pdx/error.h>

#define PEER_EVENTS (PDXI_PEV_CLOSE + 1)
#define PEER_PHASES (PDXI_PEER_GONE + 1)

struct peer_walk {
    struct pdxi_peer_step step;
    bool open;           /* there is a connection, or an attempt at one */
    uint64_t last_pause; /* since the peer was stable last; 0: none */
};

static inline void peer_walk_begin(struct peer_walk *w)
{
    *w = (struct peer_walk){0};
    pdxi_peer_step_init(&w->step);
}

/* Whether an event can mean anything to a peer that is in this phase. */
static inline bool peer_walk_sensible(enum pdxi_peer_phase phase, enum pdxi_peer_event event,
                                      int arg)
{
    switch (event) {
    case PDXI_PEV_BEGIN:
        return phase == PDXI_PEER_IDLE;
    case PDXI_PEV_RESOLVED:
        return phase == PDXI_PEER_RESOLVING && arg > 0;
    case PDXI_PEV_CONNECTED:
        return phase == PDXI_PEER_CONNECTING;
    case PDXI_PEV_GREETED:
        return phase == PDXI_PEER_GREETING;
    case PDXI_PEV_LANE_UP:
        return phase == PDXI_PEER_OPENING || phase == PDXI_PEER_READY;
    case PDXI_PEV_FAILED:
        return phase >= PDXI_PEER_RESOLVING && phase <= PDXI_PEER_OPENING;
    case PDXI_PEV_LOST:
        return phase >= PDXI_PEER_RESOLVING && phase <= PDXI_PEER_READY;
    case PDXI_PEV_STABLE:
        return phase == PDXI_PEER_READY;
    case PDXI_PEV_PAUSE_OVER:
        return phase == PDXI_PEER_PAUSED;
    case PDXI_PEV_SUPERSEDED:
    case PDXI_PEV_CLOSE:
        return phase != PDXI_PEER_GONE;
    }
    return false;
}

static inline bool peer_walk_same(const struct pdxi_peer_step *a, const struct pdxi_peer_step *b)
{
    return a->phase == b->phase && a->state == b->state && a->addr == b->addr &&
           a->naddrs == b->naddrs && a->pause_ns == b->pause_ns;
}

#define PEER_MUST(cond)   \
    do {                  \
        if (!(cond))      \
            return #cond; \
    } while (0)

/* What may be asked of a caller whose connection is open or not. */
static inline const char *peer_walk_check_connection(struct peer_walk *w,
                                                     const struct pdxi_peer_step *was,
                                                     enum pdxi_peer_event event, unsigned actions)
{
    const struct pdxi_peer_step *s = &w->step;

    if (actions & PDXI_PACT_DISCONNECT)
        w->open = false;
    if (actions & (PDXI_PACT_RESOLVE | PDXI_PACT_PAUSE))
        PEER_MUST(!w->open);
    if (actions & PDXI_PACT_CONNECT) {
        PEER_MUST(!w->open && s->phase == PDXI_PEER_CONNECTING);
        PEER_MUST(event == PDXI_PEV_RESOLVED ? s->addr == 0 : s->addr == was->addr + 1);
        w->open = true;
    }
    if (actions & (PDXI_PACT_GREET | PDXI_PACT_OPEN_LANE | PDXI_PACT_DRAIN_QUEUE))
        PEER_MUST(w->open);
    PEER_MUST(w->open == (s->phase >= PDXI_PEER_CONNECTING && s->phase <= PDXI_PEER_READY));
    PEER_MUST(!w->open || s->addr < s->naddrs);
    return NULL;
}

static inline const char *peer_walk_check_pause(struct peer_walk *w,
                                                const struct pdxi_peer_step *was,
                                                enum pdxi_peer_event event, unsigned actions)
{
    const struct pdxi_peer_step *s = &w->step;

    if (event == PDXI_PEV_STABLE)
        w->last_pause = 0;
    /* Only the loss of a stable connection is followed by an attempt at once. */
    if (was->phase == PDXI_PEER_READY && (actions & PDXI_PACT_RESOLVE)) {
        PEER_MUST(w->last_pause == 0);
        w->last_pause = PDXI_PEER_PAUSE_MIN;
    }
    if (!(actions & PDXI_PACT_PAUSE))
        return NULL;
    PEER_MUST(w->last_pause != 0 || s->pause_ns == PDXI_PEER_PAUSE_MIN);
    PEER_MUST(s->pause_ns > w->last_pause || w->last_pause == PDXI_PEER_PAUSE_MAX);
    PEER_MUST(s->pause_ns <= PDXI_PEER_PAUSE_MAX);
    w->last_pause = s->pause_ns;
    return NULL;
}

/* Returns the sentence that is not true after this step, or NULL. */
static inline const char *peer_walk_step(struct peer_walk *w, enum pdxi_peer_event event, int arg,
                                         unsigned *ret_actions)
{
    const struct pdxi_peer_step was = w->step;
    const struct pdxi_peer_step *s = &w->step;
    unsigned actions = pdxi_peer_step(&w->step, event, arg);
    bool refuses = s->state != PDX_PEER_CONNECTING && s->state != PDX_PEER_UP;
    const char *broken;

    *ret_actions = actions;
    if (!peer_walk_sensible(was.phase, event, arg)) {
        PEER_MUST(actions == 0 && peer_walk_same(&was, s));
        return NULL;
    }
    PEER_MUST(actions != 0 || event == PDXI_PEV_STABLE);
    /* What callers see follows from where the peer is. */
    PEER_MUST((s->phase == PDXI_PEER_READY) == (s->state == PDX_PEER_UP));
    PEER_MUST((s->phase == PDXI_PEER_GONE) ==
              (s->state == PDX_PEER_STALE || s->state == PDX_PEER_CLOSED));
    PEER_MUST(s->phase != PDXI_PEER_PAUSED || s->state == PDX_PEER_DOWN);
    if (s->state == PDX_PEER_UP && was.state != PDX_PEER_UP)
        PEER_MUST(event == PDXI_PEV_LANE_UP);
    /* Nothing keeps waiting for a peer that refuses work, or for a connection that is lost. */
    if ((refuses && s->state != was.state) || (was.state == PDX_PEER_UP && s->state != was.state))
        PEER_MUST(actions & PDXI_PACT_FAIL_ALL);
    if (s->phase == PDXI_PEER_GONE)
        PEER_MUST(actions == (PDXI_PACT_DISCONNECT | PDXI_PACT_FAIL_ALL));
    PEER_MUST(!(actions & PDXI_PACT_RESOLVE) == (s->phase != PDXI_PEER_RESOLVING));
    PEER_MUST(!(actions & PDXI_PACT_PAUSE) == (s->phase != PDXI_PEER_PAUSED));
    broken = peer_walk_check_connection(w, &was, event, actions);
    return broken ? broken : peer_walk_check_pause(w, &was, event, actions);
}

/* A peer that is not gone comes up from wherever it is, and can always be closed. */
static inline const char *peer_walk_can_go_on(const struct peer_walk *w)
{
    static const enum pdxi_peer_event way[] = {
        PDXI_PEV_LOST,      PDXI_PEV_BEGIN,   PDXI_PEV_PAUSE_OVER, PDXI_PEV_RESOLVED,
        PDXI_PEV_CONNECTED, PDXI_PEV_GREETED, PDXI_PEV_LANE_UP,
    };
    struct peer_walk up = *w;
    struct peer_walk closed = *w;
    const char *broken;
    unsigned actions;

    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        broken = peer_walk_step(&up, way[i], way[i] == PDXI_PEV_RESOLVED ? 1 : PDX_EPEER, &actions);
        if (broken)
            return broken;
    }
    PEER_MUST(up.step.phase == PDXI_PEER_READY || w->step.phase == PDXI_PEER_GONE);
    broken = peer_walk_step(&closed, PDXI_PEV_CLOSE, 0, &actions);
    if (broken)
        return broken;
    PEER_MUST(closed.step.phase == PDXI_PEER_GONE);
    return NULL;
}

#endif
