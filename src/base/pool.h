/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of memory of varying length for the data path, without malloc: a few
 * size classes, each a slab. What is larger than the largest class, or finds
 * its class empty, comes from malloc and is counted.
 */
#ifndef PDXI_BASE_POOL_H
#define PDXI_BASE_POOL_H

#include "base/slab.h"

#define PDXI_POOL_CLASSES 5

struct pdxi_pool {
    struct pdxi_slab classes[PDXI_POOL_CLASSES];
    _Atomic uint64_t mallocs; /* blocks that no class could serve */
};

/* `scale` is how many of the smallest blocks there are; larger ones are fewer. Returns 0 or
 * PDX_ENOMEM. */
int pdxi_pool_init(struct pdxi_pool *pool, uint32_t scale);
void pdxi_pool_fini(struct pdxi_pool *pool);

/* `len` bytes, 16-byte aligned, with undefined content; NULL when memory is short. Any thread. */
void *pdxi_pool_get(struct pdxi_pool *pool, size_t len);
/* NULL is permitted. Any thread. */
void pdxi_pool_put(struct pdxi_pool *pool, void *block);

#endif
