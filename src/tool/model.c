/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the tensors of a whole model from the shapes of its layers
 * (model_arch.c), and answers what a tensor-parallel rank holds of them.
 * Within the KV cache and within a component, tensors of one name follow each
 * other in layer order: all K, then all V.
 */
#include "tool/model.h"

#include "tool/file.h"
#include "tool/model_arch.h"
#include "tool/preset.h"
#include "tool/refuse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MODEL_PAGE_SIZE     64
#define MODEL_PAGE_SIZE_MAX 65536
#define MODEL_COMPONENTS    3 /* mamba, swa, dsa: at most one each */

/* What SGLang sends beside the cache for a request's first output token: the token and the cached
 * length (16 x int32 each), its log probability and index (16 each), the 128 top ones with indices,
 * the room (8 x u64). Each field is at least 64 bytes, as RDMA likes it. */
#define MODEL_AUX_LEN (4 * 64 + 2 * 512 + 64)

/* ---- Building ---- */

/* One tensor of every kind in `shape` for every layer of kind `layer`, kinds outermost. */
static int model_spread(const struct tool_arch_shape *s, enum tool_layer layer,
                        const struct tool_layer_shape *shape, struct tool_tensor **ret_tensors,
                        size_t *ret_n)
{
    struct tool_tensor *tensors, *t;
    size_t nlayers = 0;

    for (uint32_t i = 0; i < s->nlayers; i++)
        nlayers += s->layers[i] == layer;
    if (nlayers * shape->n == 0)
        return 0;
    tensors = calloc(nlayers * shape->n, sizeof *tensors);
    if (!tensors)
        return PDX_ENOMEM;
    t = tensors;
    for (size_t k = 0; k < shape->n; k++) {
        for (uint32_t i = 0; i < s->nlayers; i++) {
            if (s->layers[i] != layer)
                continue;
            *t = shape->tensors[k];
            t->layer = (int32_t)i;
            t++;
        }
    }
    *ret_tensors = tensors;
    *ret_n = nlayers * shape->n;
    return 0;
}

/* Adds a component when the model has layers for it. */
static int model_add(struct tool_model *m, const struct tool_arch_shape *s, const char *type,
                     enum tool_index_space space, enum tool_layer layer,
                     const struct tool_layer_shape *shape)
{
    struct tool_component *c = &m->components[m->ncomponents];
    int r = model_spread(s, layer, shape, &c->tensors, &c->ntensors);

    if (r < 0 || c->ntensors == 0)
        return r;
    (void)snprintf(c->type, sizeof c->type, "%s", type);
    c->space = space;
    c->window = space == TOOL_INDEX_WINDOW ? s->window : 0;
    m->ncomponents++;
    return 0;
}

static int model_build(struct tool_model *m, const struct tool_arch_shape *s)
{
    int r;

    (void)snprintf(m->architecture, sizeof m->architecture, "%s", s->architecture);
    (void)snprintf(m->dtype, sizeof m->dtype, "%s", s->dtype);
    m->nlayers = s->nlayers;
    m->kv_kind = s->kv_kind;
    m->kv_heads = s->kv_heads;
    m->aux_len = MODEL_AUX_LEN;
    m->components = calloc(MODEL_COMPONENTS, sizeof *m->components);
    if (!m->components)
        return PDX_ENOMEM;
    r = model_spread(s, TOOL_LAYER_FULL, &s->kv, &m->kv, &m->nkv);
    if (r == 0)
        r = model_add(m, s, "mamba", TOOL_INDEX_SLOT, TOOL_LAYER_STATE, &s->state);
    if (r == 0)
        r = model_add(m, s, "swa", TOOL_INDEX_WINDOW, TOOL_LAYER_SLIDING, &s->kv);
    if (r == 0)
        r = model_add(m, s, "dsa", TOOL_INDEX_KV_PAGES, TOOL_LAYER_FULL, &s->index);
    return r;
}

/* ---- Reading ---- */

/* The last part of a path, without ".json"; a config.json is called by its folder. */
static void model_name(char *buf, size_t cap, const char *name)
{
    size_t len = strlen(name);
    char text[256];
    const char *base;

    if (len > 5 && strcmp(name + len - 5, ".json") == 0)
        len -= 5;
    if (len > 7 && strncmp(name + len - 7, "/config", 7) == 0)
        len -= 7;
    base = memrchr(name, '/', len);
    if (base) {
        len -= (size_t)(base + 1 - name);
        name = base + 1;
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1),
                   name);
    tool_text_clean(buf, cap, text);
}

static int model_read(struct tool_config *c, struct tool_arch_shape *shape, struct tool_model *m,
                      struct pdx_error *why)
{
    int r = tool_arch_read(c, m->page_size, shape, why);

    if (r < 0)
        return r;
    model_name(m->name, sizeof m->name, c->name);
    r = model_build(m, shape);
    if (r < 0)
        return tool_refuse(why, r, "no memory for the %u layers of %s", shape->nlayers, c->name);
    return 0;
}

int tool_model_parse(const char *json, size_t len, const char *name, uint32_t page_size,
                     struct tool_model *ret, struct pdx_error *why)
{
    struct tool_model m = {.page_size = page_size ? page_size : MODEL_PAGE_SIZE};
    struct tool_arch_shape *shape;
    struct tool_config c;
    int r;

    if (page_size > MODEL_PAGE_SIZE_MAX)
        return tool_refuse(why, PDX_EINVAL, "the page size is %u tokens; it must be at most %u",
                           page_size, MODEL_PAGE_SIZE_MAX);
    r = tool_config_open(&c, json, len, name, why);
    if (r < 0)
        return r;
    shape = malloc(sizeof *shape);
    if (shape)
        r = model_read(&c, shape, &m, why);
    else
        r = tool_refuse(why, PDX_ENOMEM, "no memory to read %s", name);
    free(shape);
    tool_config_close(&c);
    if (r < 0) {
        tool_model_fini(&m);
        return r;
    }
    *ret = m;
    return 0;
}

static int model_load_file(const char *path, uint32_t page_size, struct tool_model *ret,
                           struct pdx_error *why)
{
    char *text;
    size_t len;
    int r = tool_file_read(path, TOOL_CONFIG_MAX, &text, &len, why);

    if (r < 0)
        return r;
    r = tool_model_parse(text, len, path, page_size, ret, why);
    free(text);
    return r;
}

int tool_model_load(const char *preset_or_path, uint32_t page_size, struct tool_model *ret,
                    struct pdx_error *why)
{
    size_t len = strlen(preset_or_path);
    char known[256];
    size_t at = 0;

    if (strchr(preset_or_path, '/') || (len > 5 && strcmp(preset_or_path + len - 5, ".json") == 0))
        return model_load_file(preset_or_path, page_size, ret, why);
    for (size_t i = 0; tool_preset_names[i]; i++) {
        if (strcasecmp(preset_or_path, tool_preset_names[i]) == 0)
            return tool_model_parse(tool_preset_texts[i], strlen(tool_preset_texts[i]),
                                    tool_preset_names[i], page_size, ret, why);
    }
    for (size_t i = 0; tool_preset_names[i] && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                               tool_preset_names[i]);
    return tool_refuse(why, PDX_EINVAL,
                       "there is no preset \"%.64s\"; there are %s, or give the path of a "
                       "config.json (with a '/' or ending in .json)",
                       preset_or_path, known);
}

void tool_model_fini(struct tool_model *m)
{
    for (size_t i = 0; i < m->ncomponents; i++)
        free(m->components[i].tensors);
    free(m->components);
    free(m->kv);
    *m = (struct tool_model){0};
}

/* ---- What a rank holds ---- */

uint64_t tool_tensor_units(const struct tool_tensor *t, uint32_t tp)
{
    if (t->replicated)
        return t->units;
    return t->units < tp ? 1 : t->units / tp;
}

uint64_t tool_tensor_item_len(const struct tool_tensor *t, uint32_t tp)
{
    return t->rows * tool_tensor_units(t, tp) * t->unit_len;
}

uint64_t tool_tensor_first_unit(const struct tool_tensor *t, uint32_t tp, uint32_t rank)
{
    return t->replicated ? 0 : rank * t->units / tp;
}

static uint64_t tensors_item_len(const struct tool_tensor *tensors, size_t n, uint32_t tp)
{
    uint64_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += tool_tensor_item_len(&tensors[i], tp);
    return len;
}

uint64_t tool_model_kv_item_len(const struct tool_model *m, uint32_t tp)
{
    return tensors_item_len(m->kv, m->nkv, tp);
}

uint64_t tool_component_item_len(const struct tool_component *c, uint32_t tp)
{
    return tensors_item_len(c->tensors, c->ntensors, tp);
}

/* Heads of a page may be fewer than ranks, which then hold copies; a request's state has one owner
 * for every part. */
static bool tensor_splits(const struct tool_tensor *t, uint32_t tp, bool copies)
{
    return t->replicated || t->units % tp == 0 || (copies && tp % t->units == 0);
}

static int tensors_check_tp(const struct tool_model *m, const char *of,
                            const struct tool_tensor *tensors, size_t n, bool copies, uint32_t tp,
                            struct pdx_error *why)
{
    for (size_t i = 0; i < n; i++) {
        const struct tool_tensor *t = &tensors[i];

        if (tensor_splits(t, tp, copies))
            continue;
        return tool_refuse(why, PDX_EINVAL,
                           "TP size %u cannot split %s: tensor \"%s\" of its %s has %llu %s; the "
                           "size must divide that number%s",
                           tp, m->name, t->name, of, (unsigned long long)t->units, t->unit,
                           copies ? " or be a multiple of it" : "");
    }
    return 0;
}

int tool_model_check_tp(const struct tool_model *m, uint32_t tp, struct pdx_error *why)
{
    int r;

    if (tp == 0)
        return tool_refuse(why, PDX_EINVAL, "TP size 0 cannot split %s; it must be at least 1",
                           m->name);
    r = tensors_check_tp(m, "KV cache", m->kv, m->nkv, true, tp, why);
    for (size_t i = 0; r == 0 && i < m->ncomponents; i++) {
        const struct tool_component *c = &m->components[i];

        r = tensors_check_tp(m, c->type, c->tensors, c->ntensors, c->space != TOOL_INDEX_SLOT, tp,
                             why);
    }
    return r;
}
