/* SPDX-License-Identifier: Apache-2.0
 *
 * One row per known architecture: how a config.json says which layers are of
 * which kind, and what one layer of each kind keeps in memory. model.c turns
 * that into the tensors of the whole model.
 */
#ifndef PDX_TOOL_MODEL_ARCH_H
#define PDX_TOOL_MODEL_ARCH_H

#include "tool/config.h"
#include "tool/model.h"

#define TOOL_LAYERS_MAX 1024
#define TOOL_KINDS_MAX  4 /* tensors that one layer has of one kind */

enum tool_layer {
    TOOL_LAYER_OTHER = 0, /* keeps nothing (MLP) */
    TOOL_LAYER_FULL,      /* attention over everything: the KV cache */
    TOOL_LAYER_SLIDING,   /* attention over the last `window` tokens */
    TOOL_LAYER_STATE      /* recurrent: one state per request */
};

/* What one layer keeps. */
struct tool_layer_shape {
    struct tool_tensor tensors[TOOL_KINDS_MAX]; /* their layer is not set */
    size_t n;
};

struct tool_arch_shape {
    const char *architecture; /* static, as is dtype */
    const char *dtype;        /* of the cache: "bfloat16" */
    uint32_t dtype_len;       /* bytes */
    uint32_t page_size;       /* tokens */
    uint32_t nlayers;
    enum tool_layer layers[TOOL_LAYERS_MAX];
    enum pdx_kv_kind kv_kind;
    uint32_t kv_heads;             /* 0 for MLA */
    uint32_t window;               /* tokens; 0 unless there is a sliding layer */
    struct tool_layer_shape kv;    /* of full and sliding layers */
    struct tool_layer_shape state; /* of state layers */
    struct tool_layer_shape index; /* beside the KV cache of full layers; n 0: none */
};

/* Fills *ret from `c`, whose section it moves to the language model's. Errors: PDX_EINVAL with a
 * sentence. */
int tool_arch_read(struct tool_config *c, uint32_t page_size, struct tool_arch_shape *ret,
                   struct pdx_error *why);

/* The i-th known architecture, or NULL behind the last. */
const char *tool_arch_name(size_t i);

#endif
