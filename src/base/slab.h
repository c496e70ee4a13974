/* SPDX-License-Identifier: Apache-2.0
 *
 * A fixed number of equal objects, taken and given back by any thread without
 * a lock. The memory is reserved at creation and touched only as far as it was
 * ever in use. Free objects form a stack of indices whose head carries a tag,
 * so that an index that left and came back between two reads of the head is
 * noticed.
 */
#ifndef PDXI_BASE_SLAB_H
#define PDXI_BASE_SLAB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct pdxi_slab {
    char *mem;              /* owned: capacity objects of object_len bytes */
    _Atomic uint32_t *next; /* owned: next[i] is the free object below i, plus 1; 0 ends */
    size_t object_len;
    uint32_t capacity;
    _Atomic uint32_t fresh; /* objects below this were in use at least once */
    _Atomic uint64_t head;  /* tag << 32 | index + 1; 0 in the low half: no free object */
    _Atomic uint32_t used;
};

/* Returns 0 or PDX_ENOMEM. object_len is rounded up to 64 bytes. */
int pdxi_slab_init(struct pdxi_slab *slab, size_t object_len, uint32_t capacity);
void pdxi_slab_fini(struct pdxi_slab *slab);

/* An object with whatever its last user left in it (zeroes the first time), or NULL when all are
 * taken. Any thread. */
void *pdxi_slab_get(struct pdxi_slab *slab);
void pdxi_slab_put(struct pdxi_slab *slab, void *object);

static inline uint32_t pdxi_slab_used(const struct pdxi_slab *slab)
{
    return atomic_load_explicit(&slab->used, memory_order_relaxed);
}

static inline uint32_t pdxi_slab_index(const struct pdxi_slab *slab, const void *object)
{
    return (uint32_t)((size_t)((const char *)object - slab->mem) / slab->object_len);
}

/* `index` < capacity. */
static inline void *pdxi_slab_at(const struct pdxi_slab *slab, uint32_t index)
{
    return slab->mem + (size_t)index * slab->object_len;
}

#endif
