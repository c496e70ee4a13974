/* SPDX-License-Identifier: Apache-2.0
 *
 * How other threads wake the reactor. Writing the eventfd costs a system call,
 * and microseconds when the processor idles, so it happens only when the
 * reactor has said that it sleeps:
 *
 *     any thread                      reactor
 *     put work into the queue         prepare_sleep: sleeping = 1
 *     ring: sleeping? then write      look into the queue again: work? then awake
 *                                     else sleep until the eventfd is readable; awake; drain
 *
 * All four steps that matter are sequentially consistent (the queue's push and
 * look have to be as well), so one of the two sides sees the other.
 */
#ifndef PDXI_DOORBELL_H
#define PDXI_DOORBELL_H

#include <pdx/error.h>
#include <stdatomic.h>

struct pdxi_doorbell {
    int fd; /* owned; an eventfd, readable after it was rung */
    _Atomic uint32_t sleeping;
};

/* Returns 0 or PDX_ESYS. */
int pdxi_doorbell_init(struct pdxi_doorbell *d, struct pdx_error *why);
void pdxi_doorbell_fini(struct pdxi_doorbell *d);

/* Any thread. Returns whether the eventfd was written. */
bool pdxi_doorbell_ring(struct pdxi_doorbell *d);

/* The reactor. */
static inline void pdxi_doorbell_prepare_sleep(struct pdxi_doorbell *d)
{
    atomic_store_explicit(&d->sleeping, 1, memory_order_seq_cst);
}

static inline void pdxi_doorbell_awake(struct pdxi_doorbell *d)
{
    atomic_store_explicit(&d->sleeping, 0, memory_order_relaxed);
}

/* The reactor, when the eventfd is readable: makes it unreadable. */
void pdxi_doorbell_drain(struct pdxi_doorbell *d);

#endif
