/* SPDX-License-Identifier: Apache-2.0
 *
 * Model configurations: whatever a config.json says is either refused with a
 * sentence or gives a model whose sizes are in keeping with each other.
 */
#include "fuzz.h"

#include "tool/model.h"

#define LAYERS_MAX 1024

static void check_tensors(const struct tool_model *m, const struct tool_tensor *tensors, size_t n)
{
    FUZZ_CHECK(n > 0 && n <= 4 * LAYERS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct tool_tensor *t = &tensors[i];

        FUZZ_CHECK(t->layer >= 0 && (uint32_t)t->layer < m->nlayers);
        FUZZ_CHECK(t->rows > 0 && t->units > 0 && t->unit_len > 0 && t->name[0]);
        FUZZ_CHECK(tool_tensor_item_len(t, 1) == t->rows * t->units * t->unit_len);
        FUZZ_CHECK(tool_tensor_item_len(t, 1) >> 48 == 0); /* sums over layers stay in 64 bits */
    }
}

/* A size that splits the model splits it without a rest; copies only make it more. */
static void check_tp(const struct tool_model *m, uint32_t tp)
{
    struct pdx_error why = {0};

    if (tool_model_check_tp(m, tp, &why) < 0) {
        FUZZ_CHECK(why.code == PDX_EINVAL && why.text[0]);
        return;
    }
    FUZZ_CHECK(tool_model_kv_item_len(m, tp) * tp >= tool_model_kv_item_len(m, 1));
    for (size_t i = 0; i < m->ncomponents; i++)
        FUZZ_CHECK(tool_component_item_len(&m->components[i], tp) * tp >=
                   tool_component_item_len(&m->components[i], 1));
    for (size_t i = 0; i < m->nkv; i++) {
        const struct tool_tensor *t = &m->kv[i];

        FUZZ_CHECK(tool_tensor_first_unit(t, tp, tp - 1) + tool_tensor_units(t, tp) == t->units);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct pdx_error why = {0};
    struct tool_model m;
    int r = tool_model_parse((const char *)copy, size, "fuzz.json", 0, &m, &why);

    free(copy);
    if (r < 0) {
        FUZZ_CHECK(r == PDX_EINVAL && why.code == r && why.text[0]);
        return 0;
    }
    FUZZ_CHECK(m.nlayers >= 1 && m.nlayers <= LAYERS_MAX && m.kv_kind != PDX_KV_NONE);
    check_tensors(&m, m.kv, m.nkv);
    for (size_t i = 0; i < m.ncomponents; i++) {
        const struct tool_component *c = &m.components[i];

        check_tensors(&m, c->tensors, c->ntensors);
        FUZZ_CHECK((c->space == TOOL_INDEX_WINDOW) == (c->window > 0));
    }
    for (uint32_t tp = 1; tp <= 9; tp++)
        check_tp(&m, tp);
    tool_model_fini(&m);
    return 0;
}
