/* SPDX-License-Identifier: Apache-2.0
 *
 * What planners know of one side: its ranks, and tensors as plain values
 * without memory behind them.
 */
#ifndef PDXI_STATE_PLAN_TENSOR_H
#define PDXI_STATE_PLAN_TENSOR_H

#include <pdx/layout.h>

struct pdxi_tensor {
    uint64_t off; /* bytes into the region where item 0 starts */
    uint64_t len; /* bytes from there to the end of the last item */
    uint64_t item_len;
    uint64_t stride;            /* from one item to the next, at least item_len */
    uint64_t shard_dim;         /* units of the split axis on this rank; 0: not split or not told */
    uint64_t outer;             /* rows in front of the split axis, at least 1 */
    const uint64_t *groups;     /* unsplit widths of the axis' blocks; borrowed from the layout */
    uint32_t ngroups;           /* 0: one block */
    uint32_t region;            /* number in the layout's table */
    uint32_t flags;             /* enum pdx_tensor_flags */
    enum pdx_kv_part told_part; /* as told */
    enum pdx_kv_part part;      /* KV: never by kind; state: always 0 */
    int32_t layer;              /* as told; PDX_LAYER_NONE: not told */
    int32_t number; /* the layer it pairs by, told or counted; PDX_LAYER_NONE: by position */
};

struct pdxi_tensors {
    const struct pdxi_tensor *at;
    uint32_t n;
};

/* How many items a tensor has. */
static inline uint64_t pdxi_tensor_items(const struct pdxi_tensor *t)
{
    return (t->len - t->item_len) / t->stride + 1;
}

struct pdxi_rank {
    uint32_t tp_size;
    uint32_t tp_rank; /* below tp_size */
    uint32_t pp_size;
    uint32_t pp_rank;
    enum pdx_kv_kind kv_kind;
    uint32_t page_size;
    uint64_t kv_heads; /* of the model before splitting; 0: not known */
    uint32_t start_layer;
};

#endif
