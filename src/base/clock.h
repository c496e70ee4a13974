/* SPDX-License-Identifier: Apache-2.0
 *
 * The one clock of the library, and the arithmetic of points in time.
 */
#ifndef PDXI_BASE_CLOCK_H
#define PDXI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t pdxi_now_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* `now + delay`, or UINT64_MAX (never) when that does not fit. */
static inline uint64_t pdxi_after_ns(uint64_t now, uint64_t delay)
{
    uint64_t r;

    return __builtin_add_overflow(now, delay, &r) ? UINT64_MAX : r;
}

#endif
