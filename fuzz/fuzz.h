/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: the entry point's declaration, a check that
 * stays in every build, and copies of exactly the input's size, so that
 * AddressSanitizer sees a read of one byte too many.
 */
#ifndef PDX_FUZZ_H
#define PDX_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(cond)                                                               \
    do {                                                                               \
        if (!(cond)) {                                                                 \
            (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond); \
            abort();                                                                   \
        }                                                                              \
    } while (0)

/* The caller frees it. */
static inline uint8_t *fuzz_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);

    FUZZ_CHECK(copy || size == 0);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

#endif
