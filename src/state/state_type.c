/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_type.h. The rules are those of SGLang's connectors where these
 * agree, and the stricter one where they don't; doc/state.md has the table.
 */
#include "state/state_type.h"

#include "base/error.h"
#include "state/layout.h"

#include <string.h>

/* A row of the library, with what only its own types need. */
struct state_builtin {
    struct pdx_state_type row;
    const char *tp_text;
    const char *pp_text;
};

#define ROW(type_name, min, max, type_flags)                                              \
    {                                                                                     \
        .size = sizeof(struct pdx_state_type), .name = (type_name), .min_indices = (min), \
        .max_indices = (max), .flags = (uint32_t)(type_flags)                             \
    }

static const struct state_builtin state_builtins[] = {
    {ROW("mamba", 1, 1, PDX_STATE_SLOTS), NULL, NULL},
    {ROW("swa", 1, 0, PDX_STATE_MAY_TRUNCATE | PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS), NULL,
     NULL},
    {ROW("dsa", 1, 0, PDX_STATE_MAY_TRUNCATE | PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS), NULL,
     NULL},
    {ROW("swa_ring", 1, 0, PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS), NULL, NULL},
    {ROW("c128_state", 0, 0, PDX_STATE_REPLICATED_MLA), NULL, NULL},
    {ROW("minimax_index_k", 1, 0, PDX_STATE_MAY_TRUNCATE),
     "PD disagg: heterogeneous TP not supported for MiniMax sparse index yet",
     "PD disagg: PP>1 not supported for MiniMax sparse index yet"},
    {ROW("qsa_pending", 0, 0, PDX_STATE_REPLICATED), NULL,
     "PD disaggregation requires PP=1 for qsa_pending; PP>1 needs peer state_layer_ids "
     "for global-layer descriptor pairing"},
    {ROW("qsa_compressed", 0, 0, PDX_STATE_REPLICATED), NULL,
     "PD disaggregation requires PP=1 for qsa_compressed; PP>1 needs peer state_layer_ids "
     "for global-layer descriptor pairing"},
    {ROW("dsa_tail", 0, 0, PDX_STATE_RING_SPAN | PDX_STATE_REPLICATED_MLA), NULL, NULL},
    {ROW("block_scale", 1, 0, PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS), NULL, NULL},
    {ROW("block_scale_swa", 1, 0,
         PDX_STATE_MAY_TRUNCATE | PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS),
     NULL, NULL},
};

#define NBUILTINS (sizeof state_builtins / sizeof state_builtins[0])

static const struct {
    const char *old_name;
    const char *name;
} state_old_names[] = {
    {"nsa", "dsa"},
};

#define NOLD_NAMES (sizeof state_old_names / sizeof state_old_names[0])

const struct pdx_state_type *pdx_state_type_at(size_t i)
{
    return i < NBUILTINS ? &state_builtins[i].row : NULL;
}

/* Only part of the flags make sense together. */
static int state_type_check(const struct pdx_state_type *t, size_t i, struct pdx_error *why)
{
    const uint32_t known = PDX_STATE_MAY_TRUNCATE | PDX_STATE_REPLICATED |
                           PDX_STATE_REPLICATED_MLA | PDX_STATE_KV_HEADS | PDX_STATE_SLOTS |
                           PDX_STATE_RING_SPAN;
    size_t len = t->name ? strnlen(t->name, PDX_STATE_TYPE_MAX + 1) : 0;

    if (t->size != sizeof *t)
        return pdxi_refuse(why, PDX_EINVAL,
                           "opts->types[%zu].size is %zu, not %zu. Start from PDX_STATE_TYPE_INIT.",
                           i, t->size, sizeof *t);
    if (len == 0 || !pdxi_layout_name_ok(t->name, len, PDX_STATE_TYPE_MAX))
        return pdxi_refuse(why, PDX_EINVAL,
                           "opts->types[%zu].name must be 1 to %d printable characters.", i,
                           PDX_STATE_TYPE_MAX);
    if (t->flags & ~known)
        return pdxi_refuse(why, PDX_EINVAL, "opts->types[%zu] (%s): flags 0x%x; known are 0x%x.", i,
                           t->name, t->flags, known);
    if (t->max_indices && t->max_indices < t->min_indices)
        return pdxi_refuse(why, PDX_EINVAL,
                           "opts->types[%zu] (%s): max_indices %u is below min_indices %u.", i,
                           t->name, t->max_indices, t->min_indices);
    if ((t->flags & PDX_STATE_SLOTS) && t->max_indices == 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "opts->types[%zu] (%s): PDX_STATE_SLOTS needs max_indices.", i, t->name);
    if ((t->flags & PDX_STATE_RING_SPAN) &&
        ((t->flags & (PDX_STATE_SLOTS | PDX_STATE_MAY_TRUNCATE | PDX_STATE_KV_HEADS)) ||
         t->max_indices || t->min_indices > 1 || t->slicer))
        return pdxi_refuse(why, PDX_EINVAL,
                           "opts->types[%zu] (%s): a ring span has no max_indices, at most 1 "
                           "min_indices, no slicer, and "
                           "only replication goes with it.",
                           i, t->name);
    return 0;
}

int pdxi_state_types_check(const struct pdxi_state_types *types, struct pdx_error *why)
{
    int rc = 0;

    if (types->nown && !types->own)
        return pdxi_refuse(why, PDX_EINVAL, "opts->ntypes is %zu, but types is NULL.", types->nown);
    if (types->nown > PDXI_STATE_TYPES_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "opts->ntypes is %zu; at most %d.", types->nown,
                           PDXI_STATE_TYPES_MAX);
    for (size_t i = 0; i < types->nown && rc == 0; i++)
        rc = state_type_check(&types->own[i], i, why);
    return rc;
}

static const struct pdx_state_type *state_type_named(const struct pdxi_state_types *types,
                                                     const char *name)
{
    for (size_t i = 0; i < types->nown; i++)
        if (strcmp(types->own[i].name, name) == 0)
            return &types->own[i];
    for (size_t i = 0; i < NBUILTINS; i++)
        if (strcmp(state_builtins[i].row.name, name) == 0)
            return &state_builtins[i].row;
    return NULL;
}

const struct pdx_state_type *pdxi_state_types_find(const struct pdxi_state_types *types,
                                                   const char *name)
{
    const struct pdx_state_type *t = state_type_named(types, name);

    for (size_t i = 0; !t && !types->current_names && i < NOLD_NAMES; i++)
        if (strcmp(state_old_names[i].old_name, name) == 0)
            t = state_type_named(types, state_old_names[i].name);
    return t;
}

const char *pdxi_state_type_names(char *buf, size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < NBUILTINS; i++)
        len = pdxi_text_append(buf, cap, len, "%s%s", i ? ", " : "", state_builtins[i].row.name);
    return buf;
}

static const struct state_builtin *state_builtin(const struct pdx_state_type *type)
{
    for (size_t i = 0; i < NBUILTINS; i++)
        if (type == &state_builtins[i].row)
            return &state_builtins[i];
    return NULL;
}

const char *pdxi_state_type_tp_text(const struct pdx_state_type *type)
{
    const struct state_builtin *b = state_builtin(type);

    return b ? b->tp_text : NULL;
}

const char *pdxi_state_type_pp_text(const struct pdx_state_type *type)
{
    const struct state_builtin *b = state_builtin(type);

    return b ? b->pp_text : NULL;
}
