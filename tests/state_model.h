/* SPDX-License-Identifier: Apache-2.0
 *
 * A model small enough to check every byte: tensors whose content is a formula
 * of tensor, item, row and unit of the unsplit model. Ranks of a TP group hold
 * their part of it by the ground truth (r / (size / units) where there are
 * fewer units than ranks), told here once more and apart from the library.
 */
#ifndef PDX_STATE_MODEL_H
#define PDX_STATE_MODEL_H

#include "fake_engine.h"

#define SM_TENSORS_MAX 8
#define SM_GROUPS_MAX  4

struct sm_shape {
    uint64_t rows;
    uint64_t units; /* of the unsplit model */
    uint64_t unit_len;
    uint64_t groups[SM_GROUPS_MAX]; /* add up to units */
    size_t ngroups;
    bool copies;       /* every rank holds all units, and the layout says nothing of an axis */
    bool tell_groups;  /* put the groups (or the one block's width) into the layout */
    int32_t layer_add; /* added to the tensor's number for its layer */
};

/* One payload of a model: its KV cache, or one state component. */
struct sm_list {
    const char *type; /* NULL: KV */
    enum pdx_kv_kind kv_kind;
    uint32_t page_size;
    uint32_t heads; /* total_kv_head_num */
    struct sm_shape shapes[SM_TENSORS_MAX];
    size_t n;
};

struct sm_rank {
    uint32_t tp;
    uint32_t rank;
    size_t nitems; /* of each tensor */
    struct pdx_region *region;
    struct pdx_tensor tensors[SM_TENSORS_MAX];
    struct pdx_layout_desc desc;
    struct pdx_layout *layout;
};

/* A rank with memory (gaps between tensors) and a layout. */
void sm_rank_init(struct sm_rank *r, const struct sm_list *l, enum fake_side side, uint32_t tp,
                  uint32_t rank, size_t nitems);
void sm_rank_fini(struct sm_rank *r);

/* Item idx[k] gets the content of the request's item k. */
void sm_fill(const struct sm_rank *r, const struct sm_list *l, const int32_t *idx, size_t n);
/* Every item idx[k] has the content of item k, each byte written once; nothing else was written. */
void sm_check(const struct sm_rank *r, const struct sm_list *l, const int32_t *idx, size_t n);

/* Sends the items from all prefill ranks that feed each decode rank, and checks all of it. Returns
 * how many routes had nothing to send. */
size_t sm_transfer(const struct sm_list *l, uint32_t prefill_tp, uint32_t decode_tp,
                   const int32_t *src, const int32_t *dst, size_t n, size_t nitems);

/* The pieces of one pair of a submission: sorted by source, joined where they touch on both sides.
 * Returns how many. */
struct sm_piece {
    uint64_t src, dst, len;
};

#define SM_PIECES_MAX 256

size_t sm_pieces(const struct fake_submission *s, size_t pair, struct sm_piece ret[SM_PIECES_MAX]);

#endif
