/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout describes where one rank of one side keeps its KV cache, its
 * per-request state and its auxiliary buffers: tensors, item lengths, page
 * size, ranks, layers. It is what SGLang calls KVArgs. A layout is made from
 * the rank's own regions, encoded to bytes for the other side, and decoded
 * there; a route (state.h) pairs a local one with a decoded one.
 *
 * Words: an item is what one index addresses. For the KV cache it is one page
 * of page_size tokens with this rank's heads; for mamba state one request
 * slot; for swa and dsa one page of their own pool; for rings one row; for aux
 * one request slot.
 */
#ifndef PDX_LAYOUT_H
#define PDX_LAYOUT_H

#include <pdx/api.h>
#include <pdx/error.h>
#include <pdx/region.h>

PDX_BEGIN_DECLS

struct pdx_layout;

#define PDX_STATE_TYPE_MAX 32 /* longest state type name */
#define PDX_LAYER_NONE     (-1)

enum pdx_kv_kind {
    PDX_KV_NONE = 0, /* this rank has no KV cache (or only state) */
    PDX_KV_MHA,      /* kv[] is K of every local layer, then V of every local layer */
    PDX_KV_MLA,      /* kv[] is one latent tensor per local layer, the same on every TP rank */
    PDX_KV_MIXED     /* layers of both kinds: each kv[] tells its part, in any order */
};

/* What a KV tensor holds of its layer. */
enum pdx_kv_part {
    PDX_KV_PART_BY_KIND = 0, /* what kv_kind says of its place in the list */
    PDX_KV_PART_K,           /* keys of this rank's heads */
    PDX_KV_PART_V,           /* values */
    PDX_KV_PART_LATENT       /* MLA, an indexer's keys: the same on every TP rank */
};

enum pdx_tensor_flags {
    /* State: every TP rank holds the same, so one rank sends it. Without it and without shard_dim
     * nobody knows how the ranks share the tensor, and routes between different TP sizes refuse
     * it, unless its type says it (doc/state.md). */
    PDX_TENSOR_REPLICATED = 1,
    /* KV: of the speculative draft model. Draft tensors stand behind all others of kv[], by
     * themselves in the order that kv_kind says. */
    PDX_TENSOR_DRAFT = 2
};

struct pdx_tensor {
    struct pdx_region *region;
    uint64_t off;      /* bytes into the region where item 0 starts */
    uint64_t len;      /* bytes from there to the end of the last item */
    uint64_t item_len; /* bytes of one item */
    uint64_t stride;   /* bytes from one item to the next; 0: item_len. More where items of several
                          tensors take turns in one buffer */
    int32_t layer; /* global layer number (0 is the first layer); PDX_LAYER_NONE: not told. All of a
                      list or none. Aux has none */
    uint32_t flags;        /* enum pdx_tensor_flags */
    enum pdx_kv_part part; /* KV only; told for every tensor of PDX_KV_MIXED */

    /* An item is `outer` rows; each row holds shard_dim units of the axis that tensor parallelism
     * splits. State tensors, and KV tensors whose number of heads is not the layout's (then outer
     * is page_size). */
    uint64_t shard_dim;     /* units on this rank; 0: there is no such axis, or it is not told */
    uint64_t outer;         /* rows in front of the split axis; 0 means 1 (KV: page_size) */
    const uint64_t *groups; /* conv state [q | k | v]: widths of its blocks in the unsplit model. A
                               block of fewer units than ranks has copies: one on each rank */
    size_t ngroups;         /* 0: one block, as wide as the shards of all ranks; at most 64 */
};

struct pdx_component {
    const char *type; /* "mamba", "swa", "dsa", ... ; see doc/state.md. A name that the library does
                         not know is taken too, and refused when its state is sent */
    const struct pdx_tensor *tensors;
    size_t ntensors; /* 0: this pipeline stage has no layer of it */
    uint32_t slots; /* of types with one slot per request (mamba): how many a request may have here;
                       0 means 1; at most 65536 */
};

struct pdx_layout_desc {
    size_t size;          /* set by PDX_LAYOUT_DESC_INIT */
    uint32_t engine_rank; /* global; the rank in the tensor-parallel group is engine_rank mod
                             tp_size. Each rank has its own: two that both say 0 send the same
                             heads, and no route can see that */
    uint32_t tp_size;     /* at least 1 */
    uint32_t pp_size;     /* at least 1 */
    uint32_t pp_rank;
    enum pdx_kv_kind kv_kind;
    uint32_t page_size;         /* tokens per page; has no default */
    const char *dtype;          /* of the KV cache, for example "bfloat16"; NULL: not told */
    uint32_t kv_head_num;       /* heads on this rank (MHA); 0: not told */
    uint32_t total_kv_head_num; /* heads of the model before splitting (MHA); may be less than
                                   tp_size: then ranks hold copies. 0: kv_head_num x tp_size */
    uint32_t start_layer;       /* global number of the first local layer, where kv[].layer is not
                                   told */
    const struct pdx_tensor *kv;
    size_t nkv;                   /* 0 with a kv_kind: this pipeline stage has no layer of it */
    const struct pdx_tensor *aux; /* host buffers with first token, log probabilities, ... */
    size_t naux;
    const struct pdx_component *components; /* in the same order on both sides */
    size_t ncomponents;
};

#define PDX_LAYOUT_DESC_INIT                                                                      \
    {                                                                                             \
        sizeof(struct pdx_layout_desc), 0, 1, 1, 0, PDX_KV_NONE, 0, NULL, 0, 0, 0, NULL, 0, NULL, \
            0, NULL, 0                                                                            \
    }

/* Checks a description and copies it.
 * Shape: at most 16384 tensors and 64 components.
 * Errors:
 * - PDX_EINVAL: all that is wrong in one text: which tensor, which values
 * - PDX_ERANGE: tensors leave their regions, and nothing else is wrong
 * - PDX_ENOMEM
 * Thread: any. Lifetime: borrows the regions until destroyed; copies everything else. */
PDX_API int pdx_layout_create(const struct pdx_layout_desc *desc, struct pdx_layout **ret_layout,
                              struct pdx_error *why);

/* Reads a layout that another engine encoded.
 * Errors:
 * - PDX_EPROTO: the text says where
 * - PDX_EVERSION
 * - PDX_ENOMEM
 * - PDX_EINVAL: NULL
 * Memory is bounded by `len`. Thread: any. Lifetime: borrows nothing; until destroyed. */
PDX_API int pdx_layout_decode(const void *buf, size_t len, struct pdx_layout **ret_layout,
                              struct pdx_error *why);

/* Encodes a layout with the descriptors of its regions. Format: doc/state.md.
 * Returns: the length in bytes, also when `cap` is smaller (then nothing is written); `buf` may be
 * NULL with `cap` 0. Thread: any. Errors: none. */
PDX_API size_t pdx_layout_encode(const struct pdx_layout *layout, void *buf, size_t cap);

/* NULL is permitted. Thread: any. Errors: none. Lifetime: routes made from it keep what they need.
 */
PDX_API void pdx_layout_destroy(struct pdx_layout *layout);

PDX_END_DECLS

#endif
