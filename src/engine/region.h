/* SPDX-License-Identifier: Apache-2.0
 *
 * Registered memory. The number of a region is its place in the engine's slab;
 * its generation tells it from earlier users of the place.
 */
#ifndef PDXI_REGION_H
#define PDXI_REGION_H

#include <pdx/region.h>
#include <stdatomic.h>

struct pdx_region {
    struct pdx_engine *engine; /* counted */
    char *ptr;                 /* the caller's memory */
    uint64_t len;
    enum pdx_mem_kind kind;
    uint32_t rights;
    uint32_t id;
    _Atomic uint32_t generation; /* odd while the region is offered to peers */
    _Atomic uint32_t users;      /* own transfers and prepared jobs; futex word */
    _Atomic uint32_t revoked;
    uint8_t key[PDX_KEY_LEN];
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t bytes_in;
};

/* For own transfers: one more user. Returns false when the region is being deregistered. */
bool pdxi_region_hold(struct pdx_region *region);
void pdxi_region_drop(struct pdx_region *region);

/* For peers' requests, on the reactor: the region with this number, generation and key. Returns
 * NULL and sets *why: PDX_ESTALE for a number or generation that is not (or no longer) offered,
 * PDX_EACCESS for a wrong key or a right that is not granted. */
struct pdx_region *pdxi_region_find(struct pdx_engine *engine, uint32_t id, uint32_t generation,
                                    const uint8_t key[PDX_KEY_LEN], uint32_t right,
                                    struct pdx_error *why);

/* Whether the region is still offered under this generation. Reactor thread. */
bool pdxi_region_offered(const struct pdx_region *region, uint32_t generation);

#endif
