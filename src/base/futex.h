/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting on a 32-bit word, within one process.
 */
#ifndef PDXI_BASE_FUTEX_H
#define PDXI_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is `seen`, at the latest until `until_ns` (CLOCK_MONOTONIC; UINT64_MAX: no
 * limit). Returns early at will: the caller looks again. */
static inline void pdxi_futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t until_ns)
{
    struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000),
                          .tv_nsec = (long)(until_ns % 1000000000)};

    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen,
                  until_ns == UINT64_MAX ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void pdxi_futex_wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, NULL, NULL, 0);
}

#endif
