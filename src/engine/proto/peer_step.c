/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proto/peer_step.h"

#include <string.h>

void pdxi_peer_step_init(struct pdxi_peer_step *s)
{
    memset(s, 0, sizeof *s);
    s->state = PDX_PEER_CONNECTING;
}

static unsigned peer_resolve(struct pdxi_peer_step *s)
{
    s->phase = PDXI_PEER_RESOLVING;
    return PDXI_PACT_RESOLVE;
}

static unsigned peer_end(struct pdxi_peer_step *s, enum pdx_peer_state state)
{
    s->phase = PDXI_PEER_GONE;
    s->state = state;
    return PDXI_PACT_DISCONNECT | PDXI_PACT_FAIL_ALL;
}

static uint64_t peer_next_pause(uint64_t pause_ns)
{
    if (pause_ns == 0)
        return PDXI_PEER_PAUSE_MIN;
    return pause_ns < PDXI_PEER_PAUSE_MAX / 2 ? pause_ns * 2 : PDXI_PEER_PAUSE_MAX;
}

/* All addresses failed: callers are told at once, attempts go on in the background. */
static unsigned peer_pause(struct pdxi_peer_step *s, bool connected)
{
    s->phase = PDXI_PEER_PAUSED;
    s->state = PDX_PEER_DOWN;
    s->pause_ns = peer_next_pause(s->pause_ns);
    return PDXI_PACT_FAIL_ALL | PDXI_PACT_PAUSE | (connected ? PDXI_PACT_DISCONNECT : 0);
}

/* An engine that answers but is another one will not become the one that was meant. */
static bool peer_verdict_is_final(int err)
{
    return err == PDX_ESTALE;
}

static unsigned peer_failed(struct pdxi_peer_step *s, int err)
{
    switch (s->phase) {
    case PDXI_PEER_RESOLVING:
        return peer_pause(s, false);
    case PDXI_PEER_CONNECTING:
    case PDXI_PEER_GREETING:
    case PDXI_PEER_OPENING:
        if (peer_verdict_is_final(err))
            return peer_end(s, PDX_PEER_STALE);
        if (s->addr + 1 < s->naddrs) {
            s->addr++;
            s->phase = PDXI_PEER_CONNECTING;
            return PDXI_PACT_DISCONNECT | PDXI_PACT_CONNECT;
        }
        return peer_pause(s, true);
    case PDXI_PEER_IDLE:
    case PDXI_PEER_READY:
    case PDXI_PEER_PAUSED:
    case PDXI_PEER_GONE:
        break;
    }
    return 0;
}

static unsigned peer_lost(struct pdxi_peer_step *s, int err)
{
    if (s->phase != PDXI_PEER_READY)
        return peer_failed(s, err);
    if (peer_verdict_is_final(err))
        return peer_end(s, PDX_PEER_STALE);
    if (s->pause_ns > 0)
        return peer_pause(s, true); /* up and down again: not a storm of attempts */
    s->pause_ns = PDXI_PEER_PAUSE_MIN;
    s->state = PDX_PEER_CONNECTING;
    return PDXI_PACT_DISCONNECT | PDXI_PACT_FAIL_ALL | peer_resolve(s);
}

unsigned pdxi_peer_step(struct pdxi_peer_step *s, enum pdxi_peer_event event, int arg)
{
    if (s->phase == PDXI_PEER_GONE)
        return 0;
    switch (event) {
    case PDXI_PEV_BEGIN:
        return s->phase == PDXI_PEER_IDLE ? peer_resolve(s) : 0;
    case PDXI_PEV_RESOLVED:
        if (s->phase != PDXI_PEER_RESOLVING || arg < 1)
            return 0;
        s->naddrs = (uint32_t)arg;
        s->addr = 0;
        s->phase = PDXI_PEER_CONNECTING;
        return PDXI_PACT_CONNECT;
    case PDXI_PEV_CONNECTED:
        if (s->phase != PDXI_PEER_CONNECTING)
            return 0;
        s->phase = PDXI_PEER_GREETING;
        return PDXI_PACT_GREET;
    case PDXI_PEV_GREETED:
        if (s->phase != PDXI_PEER_GREETING)
            return 0;
        s->phase = PDXI_PEER_OPENING;
        return PDXI_PACT_OPEN_LANE;
    case PDXI_PEV_LANE_UP:
        if (s->phase == PDXI_PEER_OPENING) {
            s->phase = PDXI_PEER_READY;
            s->state = PDX_PEER_UP;
        }
        return s->phase == PDXI_PEER_READY ? PDXI_PACT_DRAIN_QUEUE : 0;
    case PDXI_PEV_STABLE:
        if (s->phase == PDXI_PEER_READY)
            s->pause_ns = 0;
        return 0;
    case PDXI_PEV_FAILED:
        return peer_failed(s, arg);
    case PDXI_PEV_LOST:
        return peer_lost(s, arg);
    case PDXI_PEV_PAUSE_OVER:
        return s->phase == PDXI_PEER_PAUSED ? peer_resolve(s) : 0;
    case PDXI_PEV_SUPERSEDED:
        return peer_end(s, PDX_PEER_STALE);
    case PDXI_PEV_CLOSE:
        return peer_end(s, PDX_PEER_CLOSED);
    }
    return 0;
}
