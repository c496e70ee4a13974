/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian integers at any alignment, for the fixed headers of the wire.
 */
#ifndef PDXI_BASE_BYTES_H
#define PDXI_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PDXI_LE16(x) (x)
#define PDXI_LE32(x) (x)
#define PDXI_LE64(x) (x)
#else
#define PDXI_LE16(x) __builtin_bswap16(x)
#define PDXI_LE32(x) __builtin_bswap32(x)
#define PDXI_LE64(x) __builtin_bswap64(x)
#endif

static inline void pdxi_put_u16(void *p, uint16_t v)
{
    v = PDXI_LE16(v);
    memcpy(p, &v, sizeof v);
}

static inline void pdxi_put_u32(void *p, uint32_t v)
{
    v = PDXI_LE32(v);
    memcpy(p, &v, sizeof v);
}

static inline void pdxi_put_u64(void *p, uint64_t v)
{
    v = PDXI_LE64(v);
    memcpy(p, &v, sizeof v);
}

static inline uint16_t pdxi_get_u16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return PDXI_LE16(v);
}

static inline uint32_t pdxi_get_u32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return PDXI_LE32(v);
}

static inline uint64_t pdxi_get_u64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return PDXI_LE64(v);
}

#endif
