/* SPDX-License-Identifier: Apache-2.0
 *
 * Two descriptions that fit (MHA, aux, mamba, swa, dsa at TP 2), each to be
 * bent by a test before a route is made of them.
 */
#ifndef PDX_STATE_PAIR_H
#define PDX_STATE_PAIR_H

#include "fake_engine.h"

#define PAIR_ITEMS  10 /* of every tensor */
#define PAIR_KV_MAX 16

struct pair_side {
    struct pdx_region *region;
    struct pdx_tensor kv[4]; /* two layers */
    struct pdx_tensor aux[2];
    struct pdx_tensor mamba[2];
    struct pdx_tensor swa[2];
    struct pdx_tensor dsa[1];
    struct pdx_component components[3];
    struct pdx_layout_desc desc;
    struct pdx_layout *layout; /* after pair_layouts */
};

struct pair {
    struct pair_side local;
    struct pair_side remote;
    struct pdx_route *route; /* after pair_route */
    struct pdx_error why;
};

void pair_init(struct pair *p);
/* Changes item_len, and len with it. */
void pair_item_len(struct pdx_tensor *t, uint64_t item_len);
/* Adds a draft model of so many layers behind the two; all KV tensors then stand in `kv`. */
void pair_draft(struct pair_side *s, struct pdx_tensor kv[PAIR_KV_MAX], size_t nlayers);
/* Makes both layouts; the remote one goes through its encoded form. */
void pair_layouts(struct pair *p);
/* Both layouts and a route, which must succeed. */
void pair_route(struct pair *p, uint32_t flags);
/* Gives up what was made, and the fake engine's memory. */
void pair_fini(struct pair *p);

/* Whether the text has the part; shows both when not. */
void pair_has(const struct pair *p, const char *part);

#endif
