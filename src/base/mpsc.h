/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue from many threads to one: a stack that the consumer takes whole and
 * turns round, so that each producer's entries keep their order. Pushing is
 * one compare-and-swap; there is no entry to allocate and no limit to meet.
 */
#ifndef PDXI_BASE_MPSC_H
#define PDXI_BASE_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct pdxi_mpsc_node {
    struct pdxi_mpsc_node *next;
};

struct pdxi_mpsc {
    _Atomic(struct pdxi_mpsc_node *) top;
};

/* Stands on top of a closed queue. */
#define PDXI_MPSC_CLOSED ((struct pdxi_mpsc_node *)1)

/* Any thread. Pushes entries that are linked already, `newest` to `oldest` by `next`, all at once.
 * Returns false, having done nothing, when the queue is closed. The sequentially consistent order
 * is what the doorbell relies on. */
static inline bool pdxi_mpsc_push_chain(struct pdxi_mpsc *q, struct pdxi_mpsc_node *newest,
                                        struct pdxi_mpsc_node *oldest)
{
    struct pdxi_mpsc_node *top = atomic_load_explicit(&q->top, memory_order_relaxed);

    do {
        if (top == PDXI_MPSC_CLOSED)
            return false;
        oldest->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&q->top, &top, newest, memory_order_seq_cst,
                                                    memory_order_relaxed));
    return true;
}

/* One entry. */
static inline bool pdxi_mpsc_push(struct pdxi_mpsc *q, struct pdxi_mpsc_node *n)
{
    return pdxi_mpsc_push_chain(q, n, n);
}

static inline bool pdxi_mpsc_empty(struct pdxi_mpsc *q)
{
    return atomic_load_explicit(&q->top, memory_order_seq_cst) == NULL;
}

/* A stack taken whole, turned round: oldest first. */
static inline struct pdxi_mpsc_node *pdxi_mpsc_reverse(struct pdxi_mpsc_node *n)
{
    struct pdxi_mpsc_node *oldest = NULL;

    while (n) {
        struct pdxi_mpsc_node *below = n->next;

        n->next = oldest;
        oldest = n;
        n = below;
    }
    return oldest;
}

/* The consumer: all entries, oldest first, linked by `next`; NULL when there are none. Not after
 * close. */
static inline struct pdxi_mpsc_node *pdxi_mpsc_take(struct pdxi_mpsc *q)
{
    return pdxi_mpsc_reverse(atomic_exchange_explicit(&q->top, NULL, memory_order_acquire));
}

/* The consumer: takes what is left and refuses every later push. Once. */
static inline struct pdxi_mpsc_node *pdxi_mpsc_close(struct pdxi_mpsc *q)
{
    return pdxi_mpsc_reverse(
        atomic_exchange_explicit(&q->top, PDXI_MPSC_CLOSED, memory_order_acq_rel));
}

#endif
