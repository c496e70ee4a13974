/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing secrets (region keys, tickets) in a time that does not tell how
 * much of a guess is right.
 */
#ifndef PDXI_BASE_SECRET_H
#define PDXI_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool pdxi_secret_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
    unsigned diff = 0;

    for (size_t i = 0; i < len; i++)
        diff |= (unsigned)(a[i] ^ b[i]);
    return diff == 0;
}

#endif
