/* SPDX-License-Identifier: Apache-2.0
 *
 * What a send moves, as pieces that two plans can be compared by. A piece names
 * its tensors and is (source offset, destination offset, length). Order and cut
 * do not count: pieces that touch on both sides become one. Pieces are kept in
 * the order of their distance (destination minus source), then of their source,
 * so that two that touch are neighbours also where other pieces have the same
 * source.
 */
#ifndef PDX_VECTORS_PLAN_H
#define PDX_VECTORS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VEC_KV  (-2) /* lists of tensors that are no state component */
#define VEC_AUX (-1)

struct vec_tensor {
    int32_t list; /* component number, VEC_KV or VEC_AUX */
    uint32_t pos;
};

struct vec_piece {
    struct vec_tensor from, to;
    int64_t src, dst;
    int64_t len;
};

#define VEC_PIECES_MAX (1u << 20)

struct vec_plan {
    struct vec_piece *at; /* owned */
    size_t n;
    size_t cap;
    bool full; /* there were more than VEC_PIECES_MAX, or no memory */
};

void vec_plan_fini(struct vec_plan *p);
/* A piece without bytes is nothing. */
void vec_plan_add(struct vec_plan *p, const struct vec_piece *piece);
/* Sorts and merges; before plans are compared. */
void vec_plan_merge(struct vec_plan *p);

/* Whether two merged plans differ; the text says in which pieces. */
bool vec_plan_differs(const struct vec_plan *want, const struct vec_plan *got, char *ret_text,
                      size_t cap);

#endif
