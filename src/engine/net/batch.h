/* SPDX-License-Identifier: Apache-2.0
 *
 * What one send call gathers: heads, tables and very small payloads are copied
 * into an arena, other payload is referred to where it lies.
 */
#ifndef PDXI_NET_BATCH_H
#define PDXI_NET_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define PDXI_BATCH_IOVS  1024 /* the kernel's limit for one call */
#define PDXI_BATCH_ARENA (64u << 10)

struct pdxi_batch {
    uint32_t niov;
    uint32_t first; /* iovs before it are sent */
    uint32_t arena_len;
    uint64_t bytes; /* of payload referred to, the whole batch */
    uint64_t total; /* of everything */
    struct iovec iov[PDXI_BATCH_IOVS];
    uint8_t arena[PDXI_BATCH_ARENA];
};

/* `len` bytes of arena, or NULL when the batch has no room for them (or no iov to name them). */
uint8_t *pdxi_batch_room(struct pdxi_batch *b, uint32_t len);
/* Makes the first `len` bytes of what pdxi_batch_room gave part of the batch. */
void pdxi_batch_commit(struct pdxi_batch *b, uint32_t len);
/* Refers to payload. The caller has seen to it that an iov is free. */
void pdxi_batch_refer(struct pdxi_batch *b, const void *base, size_t len);

/* Makes it empty. */
void pdxi_batch_reset(struct pdxi_batch *b);

/* Marks `n` bytes as sent. Returns whether that was all. */
bool pdxi_batch_advance(struct pdxi_batch *b, size_t n);

#endif
