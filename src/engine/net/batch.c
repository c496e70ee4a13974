/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/net/batch.h"

#include <assert.h>

void pdxi_batch_reset(struct pdxi_batch *b)
{
    b->niov = 0;
    b->first = 0;
    b->arena_len = 0;
    b->bytes = 0;
    b->total = 0;
}

static bool batch_can_extend(const struct pdxi_batch *b)
{
    const struct iovec *last;

    if (b->niov == 0)
        return false;
    last = &b->iov[b->niov - 1];
    return (uint8_t *)last->iov_base + last->iov_len == b->arena + b->arena_len &&
           (uint8_t *)last->iov_base >= b->arena;
}

uint8_t *pdxi_batch_room(struct pdxi_batch *b, uint32_t len)
{
    if (len > PDXI_BATCH_ARENA - b->arena_len)
        return NULL;
    if (b->niov == PDXI_BATCH_IOVS && !batch_can_extend(b))
        return NULL;
    return b->arena + b->arena_len;
}

void pdxi_batch_commit(struct pdxi_batch *b, uint32_t len)
{
    if (batch_can_extend(b)) {
        b->iov[b->niov - 1].iov_len += len;
    } else {
        b->iov[b->niov].iov_base = b->arena + b->arena_len;
        b->iov[b->niov++].iov_len = len;
    }
    b->arena_len += len;
    b->total += len;
}

void pdxi_batch_refer(struct pdxi_batch *b, const void *base, size_t len)
{
    assert(b->niov < PDXI_BATCH_IOVS);
    b->iov[b->niov].iov_base = (void *)(uintptr_t)base;
    b->iov[b->niov++].iov_len = len;
    b->bytes += len;
    b->total += len;
}

bool pdxi_batch_advance(struct pdxi_batch *b, size_t n)
{
    while (b->first < b->niov && n >= b->iov[b->first].iov_len)
        n -= b->iov[b->first++].iov_len;
    if (b->first == b->niov)
        return true;
    b->iov[b->first].iov_base = (uint8_t *)b->iov[b->first].iov_base + n;
    b->iov[b->first].iov_len -= n;
    return false;
}
