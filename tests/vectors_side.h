/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a case as a layout: what the rank that the case tells of would
 * describe to the library. The tensors of a side lie one behind the other in
 * one region of the fake engine, with gaps, so that the base of a pair names
 * its tensor.
 */
#ifndef PDX_VECTORS_SIDE_H
#define PDX_VECTORS_SIDE_H

#include "fake_engine.h"
#include "vectors_case.h"
#include "vectors_plan.h"

struct vec_side {
    enum fake_side side;
    struct pdx_region *region;
    struct pdx_tensor *tensors;       /* owned; in the order of `off` */
    struct vec_tensor *names;         /* of each tensor; owned */
    struct pdx_component *components; /* owned */
    uint64_t *groups;                 /* owned */
    size_t ntensors;
    size_t cap;
    uint64_t end; /* of the last tensor, with the gap behind it */
    struct pdx_layout_desc desc;
    struct pdx_layout *layout;
};

/* They describe the side: a KV cache; state, and what a rank has besides; aux buffers; a mamba
 * tensor of mamba_blocks. What is wrong with the case is noted there. */
void vec_side_kv(struct vec_side *s, struct vec_case *c, enum fake_side side);
void vec_side_state(struct vec_side *s, struct vec_case *c, enum fake_side side);
void vec_side_aux(struct vec_side *s, struct vec_case *c, enum fake_side side);
void vec_side_blocks(struct vec_side *s, struct vec_case *c, enum fake_side side);
void vec_side_fini(struct vec_side *s);

/* Makes the layout; that of the remote side goes through its encoded form. Returns what the library
 * says. */
int vec_side_layout(struct vec_side *s, struct pdx_error *why);

/* The tensor that starts there, or NULL. */
const struct pdx_tensor *vec_side_tensor(const struct vec_side *s, uint64_t base);
struct vec_tensor vec_side_name(const struct vec_side *s, const struct pdx_tensor *t);

/* Whether the original would have sent aux as messages: then it knows nothing of the buffers there.
 */
bool vec_side_aux_by_message(struct vec_case *c);

#endif
