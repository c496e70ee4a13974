/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on sizes that says when it does not fit. Every length and offset
 * that a caller or a peer had a hand in goes through these.
 */
#ifndef PDXI_BASE_CHECK_H
#define PDXI_BASE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* Each returns false, with *ret untouched, when the result needs more than 64 bits. */
static inline bool pdxi_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;

    if (__builtin_add_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline bool pdxi_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;

    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

/* Whether [off, off + len) lies inside [0, limit). */
static inline bool pdxi_inside(uint64_t off, uint64_t len, uint64_t limit)
{
    return len <= limit && off <= limit - len;
}

#endif
