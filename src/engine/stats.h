/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters of an engine. Any thread adds; a snapshot reads each exactly.
 */
#ifndef PDXI_STATS_H
#define PDXI_STATS_H

#include <pdx/engine.h>
#include <stdatomic.h>

enum pdxi_stat {
    PDXI_STAT_SUBMITTED,
    PDXI_STAT_DONE,
    PDXI_STAT_FAILED,
    PDXI_STAT_CANCELLED,
    PDXI_STAT_DEADLINE,
    PDXI_STAT_STALE,
    PDXI_STAT_REFUSED,
    PDXI_STAT_BYTES_WRITTEN,
    PDXI_STAT_BYTES_READ,
    PDXI_STAT_BYTES_IN_WRITTEN,
    PDXI_STAT_BYTES_IN_READ,
    PDXI_STAT_SEGMENTS,
    PDXI_STAT_FRAMES_SENT,
    PDXI_STAT_FRAMES_RECEIVED,
    PDXI_STAT_RETRIES,
    PDXI_STAT_PEERS_LOST,
    PDXI_STAT_SESSIONS_LOST,
    PDXI_STAT_GARBAGE,
    PDXI_STAT_REFUSED_FRAMES,
    PDXI_STAT_AGAIN,
    PDXI_STAT_WAKEUPS,
    PDXI_STAT_SYSCALLS,
    PDXI_NSTATS
};

struct pdxi_stats {
    _Atomic uint64_t v[PDXI_NSTATS];
};

static inline void pdxi_stat_add(struct pdxi_stats *s, enum pdxi_stat i, uint64_t n)
{
    atomic_fetch_add_explicit(&s->v[i], n, memory_order_relaxed);
}

static inline uint64_t pdxi_stat_get(const struct pdxi_stats *s, enum pdxi_stat i)
{
    return atomic_load_explicit(&s->v[i], memory_order_relaxed);
}

/* A counter of another object. */
static inline void pdxi_count(_Atomic uint64_t *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t pdxi_counted(const _Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
