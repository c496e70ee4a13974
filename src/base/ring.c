/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ring.h"

#include <assert.h>
#include <pdx/error.h>
#include <stdlib.h>
#include <string.h>

struct ring_cell {
    _Atomic uint64_t turn;
    char data[];
};

static struct ring_cell *ring_cell(const struct pdxi_ring *r, uint64_t pos)
{
    return (struct ring_cell *)(void *)(r->cells + (pos & r->mask) * r->stride);
}

int pdxi_ring_init(struct pdxi_ring *r, size_t cell_len, uint32_t capacity)
{
    assert(cell_len > 0 && cell_len <= PDXI_RING_CELL_MAX);
    assert(capacity >= 2 && (capacity & (capacity - 1)) == 0);
    memset(r, 0, sizeof *r);
    r->cell_len = cell_len;
    r->stride = sizeof(struct ring_cell) + ((cell_len + 7) & ~(size_t)7);
    r->mask = capacity - 1;
    r->cells = calloc(capacity, r->stride);
    if (!r->cells)
        return PDX_ENOMEM;
    for (uint64_t pos = 0; pos < capacity; pos++)
        atomic_init(&ring_cell(r, pos)->turn, pos);
    return 0;
}

void pdxi_ring_fini(struct pdxi_ring *r)
{
    free(r->cells);
    memset(r, 0, sizeof *r);
}

bool pdxi_ring_push(struct pdxi_ring *r, const void *cell)
{
    uint64_t pos = atomic_load_explicit(&r->tail, memory_order_relaxed);

    for (;;) {
        struct ring_cell *c = ring_cell(r, pos);
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);

        if (turn == pos) {
            if (atomic_compare_exchange_weak_explicit(&r->tail, &pos, pos + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                memcpy(c->data, cell, r->cell_len);
                atomic_store_explicit(&c->turn, pos + 1, memory_order_seq_cst);
                return true;
            }
        } else if ((int64_t)(turn - pos) < 0) {
            return false; /* still holds what was pushed one round ago */
        } else {
            pos = atomic_load_explicit(&r->tail, memory_order_relaxed);
        }
    }
}

bool pdxi_ring_pop(struct pdxi_ring *r, void *ret_cell)
{
    uint64_t pos = atomic_load_explicit(&r->head, memory_order_relaxed);

    for (;;) {
        struct ring_cell *c = ring_cell(r, pos);
        uint64_t turn = atomic_load_explicit(&c->turn, memory_order_acquire);

        if (turn == pos + 1) {
            if (atomic_compare_exchange_weak_explicit(&r->head, &pos, pos + 1, memory_order_relaxed,
                                                      memory_order_relaxed)) {
                memcpy(ret_cell, c->data, r->cell_len);
                atomic_store_explicit(&c->turn, pos + r->mask + 1, memory_order_release);
                return true;
            }
        } else if ((int64_t)(turn - (pos + 1)) < 0) {
            return false;
        } else {
            pos = atomic_load_explicit(&r->head, memory_order_relaxed);
        }
    }
}

bool pdxi_ring_empty(const struct pdxi_ring *r)
{
    uint64_t pos = atomic_load_explicit(&r->head, memory_order_seq_cst);
    uint64_t turn = atomic_load_explicit(&ring_cell(r, pos)->turn, memory_order_seq_cst);

    /* A turn beyond means that another reader was faster; the next cell is not looked at. */
    return (int64_t)(turn - (pos + 1)) < 0;
}
