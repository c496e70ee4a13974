/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in front of the C library's allocator and counts, so that tests can
 * say how often and how much a piece of work allocates. All threads are
 * counted together. Sanitizers replace the allocator themselves; then nothing
 * is counted, and ts_mallocs_counted says so.
 */
#include "support.h"

#if TS_SANITIZED

bool ts_mallocs_counted(void)
{
    return false;
}

void ts_mallocs_mark(void)
{
}

struct ts_mallocs ts_mallocs_now(void)
{
    return (struct ts_mallocs){0};
}

#else

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The C library's own, behind the names that are taken here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static atomic_uint_fast64_t count_calls;
static atomic_uint_fast64_t count_live;
static atomic_uint_fast64_t count_peak;

static void *count_new(void *p)
{
    uint64_t live;
    uint64_t peak;

    atomic_fetch_add_explicit(&count_calls, 1, memory_order_relaxed);
    if (!p)
        return NULL;
    live = atomic_fetch_add_explicit(&count_live, malloc_usable_size(p), memory_order_relaxed) +
           malloc_usable_size(p);
    peak = atomic_load_explicit(&count_peak, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(
                              &count_peak, &peak, live, memory_order_relaxed, memory_order_relaxed))
        ;
    return p;
}

static void count_old(void *p)
{
    if (p)
        atomic_fetch_sub_explicit(&count_live, malloc_usable_size(p), memory_order_relaxed);
}

void *malloc(size_t size)
{
    return count_new(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return count_new(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
    count_old(p);
    return count_new(__libc_realloc(p, size));
}

void free(void *p)
{
    count_old(p);
    __libc_free(p);
}

void *memalign(size_t align, size_t size)
{
    return count_new(__libc_memalign(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
    void *p = memalign(align, size);

    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

bool ts_mallocs_counted(void)
{
    return true;
}

void ts_mallocs_mark(void)
{
    atomic_store(&count_peak, atomic_load(&count_live));
}

struct ts_mallocs ts_mallocs_now(void)
{
    return (struct ts_mallocs){.calls = atomic_load(&count_calls),
                               .live = atomic_load(&count_live),
                               .peak = atomic_load(&count_peak)};
}

#endif
