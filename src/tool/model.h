/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory shapes of a model, worked out from its Hugging Face config.json:
 * which layers have a KV cache, a sliding-window cache, recurrent state or an
 * index cache, and how large their tensors are in the unsplit model. Every
 * tensor, whatever its kind, is rows x units x unit_len bytes per item, where
 * tensor parallelism splits the units: heads of a KV page, channels or heads
 * of a mamba state.
 */
#ifndef PDX_TOOL_MODEL_H
#define PDX_TOOL_MODEL_H

#include <pdx/error.h>
#include <pdx/layout.h>

struct tool_tensor {
    char name[16];     /* "k", "v", "latent", "conv", "conv_q", "ssm", "index_k" */
    int32_t layer;     /* global number */
    uint64_t rows;     /* in front of the split axis: tokens of a page; 1 for most states */
    uint64_t units;    /* length of the axis that TP splits, unsplit model */
    uint64_t unit_len; /* bytes */
    const char *unit;  /* what one is called, for sentences: "heads" */
    bool replicated;   /* every TP rank holds all units (MLA latent, DSA index) */
    uint32_t ngroups;  /* blocks of the split axis that are split each for itself; 0: one */
    uint64_t groups[4];
};

/* How a request's indices for a component come about. */
enum tool_index_space {
    TOOL_INDEX_SLOT = 1, /* one slot per request (mamba) */
    TOOL_INDEX_KV_PAGES, /* the same page numbers as the KV cache (dsa) */
    TOOL_INDEX_WINDOW    /* pages of an own pool that cover the last `window` tokens (swa) */
};

struct tool_component {
    char type[PDX_STATE_TYPE_MAX + 1]; /* "mamba", "swa", "dsa" */
    enum tool_index_space space;
    uint32_t window;             /* tokens; TOOL_INDEX_WINDOW only */
    struct tool_tensor *tensors; /* owned */
    size_t ntensors;
};

struct tool_model {
    char name[64];         /* "Qwen3-Next-80B-A3B" or the file's name */
    char architecture[64]; /* of config.json */
    char dtype[16];        /* "bfloat16" */
    uint32_t nlayers;
    uint32_t page_size; /* tokens */
    enum pdx_kv_kind kv_kind;
    uint32_t kv_heads;      /* unsplit; 0 for MLA */
    struct tool_tensor *kv; /* owned; all K in layer order, then all V; or one latent per layer */
    size_t nkv;
    struct tool_component *components; /* owned */
    size_t ncomponents;
    uint64_t aux_len; /* bytes of one aux slot */
};

/* Reads a config.json. `name` is what to call it in messages (its path). page_size 0: the default
 * of 64. Errors: PDX_EINVAL with one sentence naming file, key, what is needed and what is there
 * (unknown architecture: lists the known ones); PDX_ENOMEM. */
int tool_model_parse(const char *json, size_t len, const char *name, uint32_t page_size,
                     struct tool_model *ret, struct pdx_error *why);
/* A preset by name (case ignored), or, when the string has a '/' or ends in ".json", a file. */
int tool_model_load(const char *preset_or_path, uint32_t page_size, struct tool_model *ret,
                    struct pdx_error *why);
void tool_model_fini(struct tool_model *m);

/* Preset names, NULL-terminated. */
extern const char *const tool_preset_names[];

/* Bytes of one item on one rank of a TP group of `tp` (units split evenly; at least one unit, so
 * that ranks hold copies when there are fewer units than ranks; everything when replicated). */
uint64_t tool_tensor_item_len(const struct tool_tensor *t, uint32_t tp);
/* Units on one rank. */
uint64_t tool_tensor_units(const struct tool_tensor *t, uint32_t tp);
/* First unit that rank `rank` of `tp` holds, per group for grouped tensors see tool_tensor_units.
 */
uint64_t tool_tensor_first_unit(const struct tool_tensor *t, uint32_t tp, uint32_t rank);
/* Bytes of one item over all tensors of the KV cache or of a component, on one rank of `tp`. */
uint64_t tool_model_kv_item_len(const struct tool_model *m, uint32_t tp);
uint64_t tool_component_item_len(const struct tool_component *c, uint32_t tp);
/* Refuses a TP size that cannot split the model, naming the tensor and both numbers. */
int tool_model_check_tp(const struct tool_model *m, uint32_t tp, struct pdx_error *why);

#endif
