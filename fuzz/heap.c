/* SPDX-License-Identifier: Apache-2.0
 *
 * See heap.h.
 */
#include "heap.h"

#include <malloc.h>
#include <stdbool.h>

/* AddressSanitizer's, where it is linked. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *))
    __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));

static struct {
    bool counting; /* hooks are in place */
    size_t live;   /* counted from a first value in the middle, so that it does not wrap */
    size_t peak;
    size_t mark;
} heap = {.live = (size_t)1 << 62};

static void heap_on_malloc(const volatile void *p, size_t size)
{
    (void)p;
    heap.live += size;
    if (heap.live > heap.peak)
        heap.peak = heap.live;
}

static void heap_on_free(const volatile void *p)
{
    if (p)
        heap.live -= __sanitizer_get_allocated_size(p);
}

static size_t heap_now(void)
{
    struct mallinfo2 info;

    if (heap.counting)
        return heap.live;
    info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void fuzz_heap_mark(void)
{
    if (!heap.counting && __sanitizer_install_malloc_and_free_hooks &&
        __sanitizer_get_allocated_size)
        heap.counting = __sanitizer_install_malloc_and_free_hooks(heap_on_malloc, heap_on_free) > 0;
    heap.mark = heap_now();
    heap.peak = heap.live;
}

static size_t heap_since_mark(void)
{
    size_t now = heap_now();

    return now > heap.mark ? now - heap.mark : 0;
}

/* The allocator's own figure counts what it caches for the next request as in use. */
size_t fuzz_heap_kept(void)
{
    return heap.counting ? heap_since_mark() : 0;
}

size_t fuzz_heap_peak(void)
{
    return heap.counting ? heap.peak - heap.mark : heap_since_mark();
}
