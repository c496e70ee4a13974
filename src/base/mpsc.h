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

/* Any thread. The sequentially consistent order is what the doorbell relies on. */
static inline void pdxi_mpsc_push(struct pdxi_mpsc *q, struct pdxi_mpsc_node *n)
{
    struct pdxi_mpsc_node *top = atomic_load_explicit(&q->top, memory_order_relaxed);

    do {
        n->next = top;
    } while (!atomic_compare_exchange_weak_explicit(&q->top, &top, n, memory_order_seq_cst,
                                                    memory_order_relaxed));
}

static inline bool pdxi_mpsc_empty(struct pdxi_mpsc *q)
{
    return atomic_load_explicit(&q->top, memory_order_seq_cst) == NULL;
}

/* The consumer: all entries, oldest first, linked by `next`; NULL when there are none. */
static inline struct pdxi_mpsc_node *pdxi_mpsc_take(struct pdxi_mpsc *q)
{
    struct pdxi_mpsc_node *n = atomic_exchange_explicit(&q->top, NULL, memory_order_acquire);
    struct pdxi_mpsc_node *oldest = NULL;

    while (n) {
        struct pdxi_mpsc_node *below = n->next;

        n->next = oldest;
        oldest = n;
        n = below;
    }
    return oldest;
}

#endif
