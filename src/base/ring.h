/* SPDX-License-Identifier: Apache-2.0
 *
 * A queue of fixed size for many writers and many readers. Each cell carries a
 * number that says whose turn it is: `p` means that the writer of position p
 * may fill it, `p + 1` that it is full and the reader of position p may take
 * it. A position is claimed by one compare-and-swap; nobody waits for anybody.
 *
 *   turn    | 4 | 5 | 3 | 3 |     capacity 4, three pushed, two popped:
 *                     ^head      position 2 is full (2 + 1),
 *                         ^tail  position 3 may be filled
 *
 * Source: D. Vyukov, bounded MPMC queue.
 */
#ifndef PDXI_BASE_RING_H
#define PDXI_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PDXI_RING_CELL_MAX 64 /* bytes */

struct pdxi_ring {
    char *cells; /* owned */
    size_t stride;
    size_t cell_len;
    uint64_t mask;
    char pad_tail[64]; /* writers and readers on cache lines of their own */
    _Atomic uint64_t tail;
    char pad_head[64];
    _Atomic uint64_t head;
    char pad_end[64];
};

/* `capacity`: a power of two, at least 2. Returns 0 or PDX_ENOMEM. */
int pdxi_ring_init(struct pdxi_ring *r, size_t cell_len, uint32_t capacity);
void pdxi_ring_fini(struct pdxi_ring *r);

/* Any thread. Copies cell_len bytes. Returns false when the ring is full; a cell counts as taken
 * until its pop has returned. */
bool pdxi_ring_push(struct pdxi_ring *r, const void *cell);

/* Any thread. Returns false when the ring is empty, or the push of the oldest cell has not
 * returned yet. */
bool pdxi_ring_pop(struct pdxi_ring *r, void *ret_cell);

/* Any thread: whether a pop at this moment would find nothing. Sequentially consistent, for those
 * who look before they sleep. */
bool pdxi_ring_empty(const struct pdxi_ring *r);

#endif
