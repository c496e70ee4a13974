/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers in a wheel: 4096 slots of one millisecond. Starting and cancelling
 * are O(1) and allocate nothing; a timer is part of its owner's object. One
 * that is farther away than the wheel goes round waits in its slot for its
 * round. The clock is the caller's: every function is told what time it is.
 *
 *   slot   0   1   2  ...  tick mod 4096  ...  4095
 *          |                    |
 *          t -- t               t -- t (next round)      occupied: one bit per slot
 *
 * A timer never fires before its time, and at most one millisecond after it
 * as far as the wheel has a say.
 */
#ifndef PDXI_TIMER_H
#define PDXI_TIMER_H

#include "base/list.h"

#include <stdint.h>

#define PDXI_TIMER_TICK_NS UINT64_C(1000000)
#define PDXI_TIMER_SLOTS   4096

struct pdxi_timer;

/* Called by pdxi_timers_run; the timer is no longer started. May start and cancel any timer, and
 * free this one. */
typedef void (*pdxi_timer_fn)(struct pdxi_timer *timer, uint64_t now_ns);

/* Part of the owner's object. */
struct pdxi_timer {
    struct pdxi_list link;
    uint64_t tick; /* fires when the clock stands at this many milliseconds */
    pdxi_timer_fn fn;
    uint32_t slot; /* of the wheel; behind its end: due, or not started */
};

struct pdxi_timers {
    uint64_t tick;        /* all up to this one have been run */
    struct pdxi_list due; /* started with a time that has passed */
    uint64_t occupied[PDXI_TIMER_SLOTS / 64];
    uint64_t earliest[PDXI_TIMER_SLOTS]; /* no timer of the slot has a lower tick */
    struct pdxi_list slots[PDXI_TIMER_SLOTS];
};

void pdxi_timers_init(struct pdxi_timers *ts, uint64_t now_ns);

void pdxi_timer_init(struct pdxi_timer *t, pdxi_timer_fn fn);

/* Starts, or restarts, for `expiry_ns`; UINT64_MAX is never, and the same as cancel. A time that
 * has passed is due at the next run, also when started by a callback of a run. */
void pdxi_timer_start(struct pdxi_timers *ts, struct pdxi_timer *t, uint64_t expiry_ns);

/* Without effect on a timer that is not started. */
void pdxi_timer_cancel(struct pdxi_timers *ts, struct pdxi_timer *t);

bool pdxi_timer_started(const struct pdxi_timer *t);

/* Nanoseconds until something may be due: 0 when it is now, UINT64_MAX when no timer is started. It
 * may be too early after a cancel, never too late. */
uint64_t pdxi_timers_next(const struct pdxi_timers *ts, uint64_t now_ns);

/* Calls those that are due. Returns how many. */
uint32_t pdxi_timers_run(struct pdxi_timers *ts, uint64_t now_ns);

#endif
