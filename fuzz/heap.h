/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory a piece of work takes at its height, and keeps. Under
 * AddressSanitizer every allocation is counted; elsewhere the C library's own
 * account only tells what is kept.
 */
#ifndef PDX_FUZZ_HEAP_H
#define PDX_FUZZ_HEAP_H

#include <stddef.h>

/* Begins anew. */
void fuzz_heap_mark(void);
/* Bytes above what there was at the mark: now, and at the most since. */
size_t fuzz_heap_kept(void);
size_t fuzz_heap_peak(void);

#endif
