/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slab.h"

#include <assert.h>
#include <pdx/error.h>
#include <string.h>
#include <sys/mman.h>

/* Zeroed and untouched: pages that are never used cost address space only. */
static void *slab_map(size_t len)
{
    void *mem =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return mem == MAP_FAILED ? NULL : mem;
}

int pdxi_slab_init(struct pdxi_slab *slab, size_t object_len, uint32_t capacity)
{
    assert(capacity > 0 && object_len > 0);
    memset(slab, 0, sizeof *slab);
    slab->object_len = (object_len + 63) & ~(size_t)63;
    slab->capacity = capacity;
    slab->mem = slab_map(slab->object_len * capacity);
    slab->next = slab_map(sizeof *slab->next * capacity);
    if (!slab->mem || !slab->next) {
        pdxi_slab_fini(slab);
        return PDX_ENOMEM;
    }
    return 0;
}

void pdxi_slab_fini(struct pdxi_slab *slab)
{
    if (slab->mem)
        (void)munmap(slab->mem, slab->object_len * slab->capacity);
    if (slab->next)
        (void)munmap((void *)slab->next, sizeof *slab->next * slab->capacity);
    memset(slab, 0, sizeof *slab);
}

void *pdxi_slab_get(struct pdxi_slab *slab)
{
    uint64_t head = atomic_load_explicit(&slab->head, memory_order_acquire);
    uint32_t fresh;

    while ((uint32_t)head) {
        uint32_t idx = (uint32_t)head - 1;
        uint64_t below = atomic_load_explicit(&slab->next[idx], memory_order_relaxed);
        uint64_t want = ((head >> 32) + 1) << 32 | below;

        if (atomic_compare_exchange_weak_explicit(&slab->head, &head, want, memory_order_acquire,
                                                  memory_order_acquire)) {
            atomic_fetch_add_explicit(&slab->used, 1, memory_order_relaxed);
            return pdxi_slab_at(slab, idx);
        }
    }
    fresh = atomic_load_explicit(&slab->fresh, memory_order_relaxed);
    while (fresh < slab->capacity) {
        if (atomic_compare_exchange_weak_explicit(&slab->fresh, &fresh, fresh + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            atomic_fetch_add_explicit(&slab->used, 1, memory_order_relaxed);
            return pdxi_slab_at(slab, fresh);
        }
    }
    return NULL;
}

void pdxi_slab_put(struct pdxi_slab *slab, void *object)
{
    uint32_t idx = pdxi_slab_index(slab, object);
    uint64_t head = atomic_load_explicit(&slab->head, memory_order_relaxed);
    uint64_t want;

    assert(idx < slab->capacity);
    do {
        atomic_store_explicit(&slab->next[idx], (uint32_t)head, memory_order_relaxed);
        want = ((head >> 32) + 1) << 32 | (idx + 1);
    } while (!atomic_compare_exchange_weak_explicit(&slab->head, &head, want, memory_order_release,
                                                    memory_order_relaxed));
    atomic_fetch_sub_explicit(&slab->used, 1, memory_order_relaxed);
}
