/* SPDX-License-Identifier: Apache-2.0
 *
 * A model small enough to check every byte: tensors whose content is a formula
 * of tensor, item, row and unit of the unsplit model. Ranks of a TP group hold
 * their part of it by the ground truth (r / (size / units) where there are
 * fewer units than ranks), told here once more and apart from the library.
 * Pipeline stages hold the tensors of their layers. state_run.h sends it.
 */
#ifndef PDX_STATE_MODEL_H
#define PDX_STATE_MODEL_H

#include "fake_engine.h"

#define SM_TENSORS_MAX 24
#define SM_GROUPS_MAX  4
#define SM_STAGES_MAX  4

struct sm_shape {
    uint64_t rows;
    uint64_t units; /* of the unsplit model */
    uint64_t unit_len;
    uint64_t groups[SM_GROUPS_MAX]; /* add up to units */
    size_t ngroups;
    int32_t layer;
    enum pdx_kv_part part; /* told where it is not 0 */
    bool copies;           /* every rank holds all units, and the layout says nothing of an axis */
    bool replicated;       /* with copies: the layout says so, PDX_TENSOR_REPLICATED */
    bool tell_groups;      /* put the groups (or the one block's width) into the layout */
    bool own_heads;        /* KV: the tensor tells its axis, as state tensors do */
    bool draft;
};

/* One payload of a model: its KV cache, or one state component. */
struct sm_list {
    const char *type;         /* NULL: KV */
    enum pdx_kv_kind kv_kind; /* with a type: the tensors stand for a KV cache too, whose heads and
                                 kind say what the component's tensors leave out */
    uint32_t page_size;       /* 0: 1 */
    uint32_t heads;           /* total_kv_head_num */
    struct sm_shape shapes[SM_TENSORS_MAX];
    size_t n;
    bool untold; /* layers are not told: KV counts from start_layer, state pairs by position */
};

/* MHA: `k` and `v` are bytes of one head of one token. */
void sm_mha(struct sm_list *l, uint32_t heads, uint32_t page_size, uint64_t k, uint64_t v,
            size_t nlayers);
/* MLA: layer i has len + i bytes of each token. */
void sm_mla(struct sm_list *l, uint32_t page_size, uint64_t len, size_t nlayers);
/* Layer numbers 0, 1, ... for the tensors of a state list. */
void sm_number(struct sm_list *l);

/* How the model lies on one side. */
struct sm_side {
    uint32_t tp;
    uint32_t pp;                 /* 0: 1 */
    int32_t ends[SM_STAGES_MAX]; /* the layer behind the last one of each stage but the last, which
                                    has the rest and the draft model */
    bool backwards;              /* tensors are listed the other way round */
    bool turns;                  /* items of a rank's tensors take turns in one buffer, with gaps */
};

struct sm_rank {
    const struct sm_list *list;
    struct sm_side side;
    uint32_t rank;
    uint32_t stage;
    size_t nitems; /* of each tensor */
    struct pdx_region *region;
    size_t region_len;
    size_t n;                  /* tensors of this stage */
    size_t at[SM_TENSORS_MAX]; /* their places in the list */
    struct pdx_tensor tensors[SM_TENSORS_MAX];
    struct pdx_tensor stand_in[SM_TENSORS_MAX]; /* the KV cache of a state list's rank */
    struct pdx_component component;
    struct pdx_layout_desc desc;
    struct pdx_layout *layout; /* of the remote side: through its encoded form */
};

/* What a test is at, for the message of a failure; and a failure, printf-like. */
void sm_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sm_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define sm_expect(cond)                \
    do {                               \
        if (!(cond))                   \
            sm_fail("not: %s", #cond); \
    } while (0)

/* A rank with memory (gaps between tensors) and a layout. It stays where it is. */
void sm_rank_init(struct sm_rank *r, const struct sm_list *l, enum fake_side side,
                  const struct sm_side *how, uint32_t rank, uint32_t stage, size_t nitems);
void sm_rank_fini(struct sm_rank *r);

/* Item idx[k] gets the content of the request's item k. */
void sm_fill(const struct sm_rank *r, const int32_t *idx, size_t n);
/* Every item idx[k] has the content of item k, each byte written once; nothing else was written. */
void sm_check(const struct sm_rank *r, const int32_t *idx, size_t n);

/* Pieces of one pair of a submission: sorted by source, joined where they touch on both sides.
 * Returns how many. */
struct sm_piece {
    uint64_t src, dst, len;
};

#define SM_PIECES_MAX 256

size_t sm_pieces(const struct fake_submission *s, size_t pair, struct sm_piece ret[SM_PIECES_MAX]);

#endif
