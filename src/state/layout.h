/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout, made from a description or decoded from bytes: the same object in
 * both cases, checked by the same rules. Tensors of all lists stand in one
 * array, so do the group widths and the region descriptors they refer to:
 *
 *     tensors      | kv ... | aux ... | component 0 ... | component 1 ... |
 *     regions      each region once; a tensor has its number
 */
#ifndef PDXI_STATE_LAYOUT_H
#define PDXI_STATE_LAYOUT_H

#include "state/plan/findings.h"
#include "state/plan/tensor.h"
#include <pdx/layout.h>

#define PDXI_LAYOUT_VERSION        1
#define PDXI_LAYOUT_TENSORS_MAX    16384
#define PDXI_LAYOUT_COMPONENTS_MAX 64
#define PDXI_LAYOUT_GROUPS_MAX     64 /* of one tensor */
#define PDXI_LAYOUT_DTYPE_MAX      31
#define PDXI_LAYOUT_SLOTS_MAX      65536u /* of one request */
#define PDXI_LAYOUT_ENCODED_MAX    (16u << 20)
#define PDXI_LAYOUT_REGION_MAX     1024 /* bytes of one region's descriptor */

struct pdxi_layout_region {
    struct pdx_region *region; /* borrowed; NULL in a decoded layout */
    struct pdx_remote remote;
    uint32_t desc_off; /* its descriptor in `descs` */
    uint32_t desc_len;
};

struct pdxi_layout_component {
    char type[PDX_STATE_TYPE_MAX + 1];
    uint32_t first; /* in tensors */
    uint32_t n;
    uint32_t slots; /* at least 1 */
};

struct pdx_layout {
    struct pdxi_rank rank;
    uint32_t engine_rank;
    uint32_t kv_head_num;
    uint32_t total_kv_head_num;
    char dtype[PDXI_LAYOUT_DTYPE_MAX + 1];
    bool decoded;
    struct pdxi_layout_region *regions;       /* owned */
    uint8_t *descs;                           /* owned */
    struct pdxi_tensor *tensors;              /* owned */
    uint64_t *groups;                         /* owned; tensors point into it */
    struct pdxi_layout_component *components; /* owned */
    uint32_t nregions;
    uint32_t ntensors;
    uint32_t ngroups;
    uint32_t ncomponents;
    uint32_t nkv;
    uint32_t naux;
};

static inline struct pdxi_tensors pdxi_layout_kv(const struct pdx_layout *l)
{
    return (struct pdxi_tensors){l->tensors, l->nkv};
}

static inline struct pdxi_tensors pdxi_layout_aux(const struct pdx_layout *l)
{
    return (struct pdxi_tensors){l->tensors + l->nkv, l->naux};
}

static inline struct pdxi_tensors pdxi_layout_component(const struct pdx_layout *l, uint32_t c)
{
    return (struct pdxi_tensors){l->tensors + l->components[c].first, l->components[c].n};
}

/* Room for so many; the arrays are zero, the counts in the layout too. NULL for want of memory. */
struct pdx_layout *pdxi_layout_alloc(size_t nregions, size_t descs_len, size_t ntensors,
                                     size_t ngroups, size_t ncomponents);

/* Whether a type or dtype can stand in a message: at most `max` printable ASCII characters. */
bool pdxi_layout_name_ok(const char *name, size_t len, size_t max);

/* Works out what follows from the description (TP rank, KV heads, parts and layer numbers) and
 * checks everything. Returns PDX_OK; PDX_ERANGE when all findings are tensors that leave their
 * regions, else PDX_EINVAL; PDX_ENOMEM without a finding. */
int pdxi_layout_check(struct pdx_layout *l, struct pdxi_findings *f);

/* The KV cache's share of that: first what follows, whatever the values are, then the rules. */
void pdxi_layout_kv_resolve(struct pdx_layout *l);
void pdxi_layout_kv_check(const struct pdx_layout *l, struct pdxi_findings *f);

/* Finds tensors of one list that share bytes, so that one would overwrite what an index addresses
 * in another. All of them lie inside their regions. Returns 0 or PDX_ENOMEM. */
int pdxi_layout_overlap(const struct pdx_layout *l, const char *list, struct pdxi_tensors t,
                        struct pdxi_findings *f);

#endif
