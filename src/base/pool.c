/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pdx/error.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a block with its head, and how much rarer it is than the smallest. */
static const struct {
    size_t len;
    uint32_t divisor;
} pool_classes[PDXI_POOL_CLASSES] = {
    {512, 1}, {4 << 10, 4}, {32 << 10, 32}, {128 << 10, 128}, {1 << 20, 1024},
};

struct pool_head {
    uint32_t class; /* PDXI_POOL_CLASSES: from malloc */
    uint32_t unused[3];
};

_Static_assert(sizeof(struct pool_head) == 16, "blocks stay 16-byte aligned");

int pdxi_pool_init(struct pdxi_pool *pool, uint32_t scale)
{
    memset(pool, 0, sizeof *pool);
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++) {
        uint32_t n = scale / pool_classes[i].divisor;

        if (pdxi_slab_init(&pool->classes[i], pool_classes[i].len, n < 16 ? 16 : n) < 0) {
            pdxi_pool_fini(pool);
            return PDX_ENOMEM;
        }
    }
    return 0;
}

void pdxi_pool_fini(struct pdxi_pool *pool)
{
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++)
        pdxi_slab_fini(&pool->classes[i]);
}

void *pdxi_pool_get(struct pdxi_pool *pool, size_t len)
{
    struct pool_head *head = NULL;
    uint32_t class = 0;

    if (len > SIZE_MAX - sizeof *head)
        return NULL;
    len += sizeof *head;
    while (class < PDXI_POOL_CLASSES && pool_classes[class].len < len)
        class ++;
    if (class < PDXI_POOL_CLASSES)
        head = pdxi_slab_get(&pool->classes[class]);
    if (!head) {
        class = PDXI_POOL_CLASSES;
        atomic_fetch_add_explicit(&pool->mallocs, 1, memory_order_relaxed);
        head = malloc(len);
        if (!head)
            return NULL;
    }
    head->class = class;
    return head + 1;
}

void pdxi_pool_put(struct pdxi_pool *pool, void *block)
{
    struct pool_head *head = block;

    if (!block)
        return;
    head--;
    if (head->class == PDXI_POOL_CLASSES)
        free(head);
    else
        pdxi_slab_put(&pool->classes[head->class], head);
}
