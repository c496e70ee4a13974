/* SPDX-License-Identifier: Apache-2.0
 *
 * Two descriptions that fit, each with two components: a mamba state that is in
 * order, and behind it one of the type in question. No KV cache unless asked
 * for, one tensor of ten items each.
 */
#ifndef PDX_STATE_TYPED_H
#define PDX_STATE_TYPED_H

#include "fake_engine.h"

#define TYPED_ITEMS 10 /* of every tensor */

struct typed_side {
    struct pdx_tensor tensors[2]; /* of the components; 8 bytes an item */
    struct pdx_tensor kv[2];      /* after typed_kv */
    struct pdx_component components[2];
    struct pdx_layout_desc desc;
    struct pdx_layout *layout; /* after typed_route */
};

struct typed {
    struct typed_side local;
    struct typed_side remote;
    struct pdx_route *route; /* after typed_route */
    struct pdx_error why;
};

void typed_init(struct typed *t, const char *type);
/* Changes item_len of a tensor, and len with it. */
void typed_item_len(struct pdx_tensor *t, uint64_t item_len);
/* Adds K and V, or two latents, of pages that fit at any TP size up to 8. */
void typed_kv(struct typed_side *s, enum pdx_kv_kind kind);
/* Makes both layouts, which must be in order, and a route. Returns what pdx_route_create does. */
int typed_route(struct typed *t, const struct pdx_route_opts *opts);
int typed_route_flags(struct typed *t, uint32_t flags);
/* A route that knows one type more; the row is overwritten once the route is made. */
int typed_route_with(struct typed *t, const struct pdx_state_type *type, uint32_t flags);
/* Sends so many indices (4, 1, 7, 2, 9, 3) of the type in question, and nothing else. */
int typed_send(struct typed *t, size_t src, size_t dst, struct pdx_transfer_status **ret_status);
/* Fails unless the text of the last error begins so, or has that part. */
void typed_begins(const struct typed *t, const char *text);
void typed_has(const struct typed *t, const char *part);
void typed_fini(struct typed *t);

#endif
