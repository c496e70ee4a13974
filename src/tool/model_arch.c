/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes are those in which SGLang and vLLM keep the caches of these
 * models (their memory pools and mamba state calculators), per layer:
 *
 *   full, sliding   K, V      per page: page_size tokens x kv heads x head_dim
 *   MLA             latent    per page: page_size tokens x (kv_lora_rank + qk_rope_head_dim)
 *   DSA             index_k   per page: page_size x index_head_dim bytes of fp8, then one fp32
 *                             scale for every 128 of them
 *   delta net       conv      per slot: channels of q, k and v x (kernel - 1)
 *                   ssm       per slot: value heads x head_v_dim x head_k_dim, fp32
 *   mamba 2         conv      per slot: channels of x, B and C x (kernel - 1)
 *                   ssm       per slot: heads x head_dim x state, fp32
 *   mamba 1         conv      per slot: inner channels x (kernel - 1)
 *                   ssm       per slot: inner channels x state, fp32
 *
 * A conv state of several parts is split over TP ranks part by part, so each
 * part is a tensor of its own here; its units are the heads (or groups) that
 * must stay together.
 */
#include "tool/model_arch.h"

#include "tool/refuse.h"
#include <stdio.h>
#include <string.h>

#define HEADS_MAX   4096
#define DIM_MAX     8192
#define HIDDEN_MAX  (1u << 18)
#define WINDOW_MAX  (1u << 24)
#define INDEX_BLOCK 128 /* fp8 values that share one scale */
#define FP32_LEN    4
#define REPLICATED  true

/* Reads one aspect of the model into the shape, whose page size, dtype and layer count are known.
 */
typedef int (*arch_step)(const struct tool_config *c, struct tool_arch_shape *s,
                         struct pdx_error *why);

struct arch {
    const char *name;
    arch_step layers; /* which layer is of which kind */
    arch_step kv;
    arch_step state;     /* NULL: no layer has any */
    arch_step index;     /* NULL: there is none */
    const char *section; /* key of the language model's object; NULL: the root */
    const char *prefix;
};

static void shape_add(struct tool_layer_shape *shape, const char *name, uint64_t rows,
                      uint64_t units, const char *unit, uint64_t unit_len, bool replicated)
{
    struct tool_tensor *t = &shape->tensors[shape->n++];

    *t = (struct tool_tensor){
        .rows = rows, .units = units, .unit_len = unit_len, .unit = unit, .replicated = replicated};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
}

/* ---- Which layer is what ---- */

/* `layer_types`, as newer configurations have it. */
static int layers_by_types(const struct tool_config *c, enum tool_layer other,
                           const char *other_name, struct tool_arch_shape *s, struct pdx_error *why)
{
    char need[64];
    int r = tool_config_strings(c, "layer_types", s->nlayers, why);

    if (r < 0)
        return r;
    (void)snprintf(need, sizeof need, "\"full_attention\" or \"%s\"", other_name);
    for (uint32_t i = 0; i < s->nlayers; i++) {
        const char *type = tool_config_string_at(c, "layer_types", i);

        if (strcmp(type, "full_attention") == 0)
            s->layers[i] = TOOL_LAYER_FULL;
        else if (strcmp(type, other_name) == 0)
            s->layers[i] = other;
        else
            return tool_config_refuse_at(c, "layer_types", i, need, why);
    }
    return 0;
}

/* The last of every `period` layers, counted from `offset`, has full attention. */
static void layers_by_period(uint32_t period, uint32_t offset, enum tool_layer other,
                             struct tool_arch_shape *s)
{
    for (uint32_t i = 0; i < s->nlayers; i++)
        s->layers[i] = i % period == offset ? TOOL_LAYER_FULL : other;
}

static int layers_all_full(const struct tool_config *c, struct tool_arch_shape *s,
                           struct pdx_error *why)
{
    (void)c;
    (void)why;
    layers_by_period(1, 0, TOOL_LAYER_OTHER, s);
    return 0;
}

/* Sliding layers with a full one at the end of every `period`; the period is what Hugging Face's
 * configuration class assumes where the file has neither list nor pattern. */
static int layers_sliding(const struct tool_config *c, uint32_t period, struct tool_arch_shape *s,
                          struct pdx_error *why)
{
    int r;

    if (tool_config_has(c, "layer_types")) {
        r = layers_by_types(c, TOOL_LAYER_SLIDING, "sliding_attention", s, why);
    } else {
        r = tool_config_uint_or(c, "sliding_window_pattern", 1, TOOL_LAYERS_MAX, period, &period,
                                why);
        if (r == 0)
            layers_by_period(period, period - 1, TOOL_LAYER_SLIDING, s);
    }
    return r < 0 ? r : tool_config_uint(c, "sliding_window", 1, WINDOW_MAX, &s->window, why);
}

static int layers_gemma3(const struct tool_config *c, struct tool_arch_shape *s,
                         struct pdx_error *why)
{
    return layers_sliding(c, 6, s, why);
}

static int layers_gpt_oss(const struct tool_config *c, struct tool_arch_shape *s,
                          struct pdx_error *why)
{
    return layers_sliding(c, 2, s, why);
}

static int layers_qwen3_next(const struct tool_config *c, struct tool_arch_shape *s,
                             struct pdx_error *why)
{
    uint32_t period;
    int r;

    if (tool_config_has(c, "layer_types"))
        return layers_by_types(c, TOOL_LAYER_STATE, "linear_attention", s, why);
    r = tool_config_uint(c, "full_attention_interval", 1, TOOL_LAYERS_MAX, &period, why);
    if (r == 0)
        layers_by_period(period, period - 1, TOOL_LAYER_STATE, s);
    return r;
}

static int layers_jamba(const struct tool_config *c, struct tool_arch_shape *s,
                        struct pdx_error *why)
{
    uint32_t period, offset;
    int r = tool_config_uint(c, "attn_layer_period", 1, TOOL_LAYERS_MAX, &period, why);

    if (r == 0)
        r = tool_config_uint(c, "attn_layer_offset", 0, period - 1, &offset, why);
    if (r == 0)
        layers_by_period(period, offset, TOOL_LAYER_STATE, s);
    return r;
}

/* A letter per layer: M mamba, * attention, - MLP, E mixture of experts. */
static int layers_nemotron_h(const struct tool_config *c, struct tool_arch_shape *s,
                             struct pdx_error *why)
{
    const char *pattern;
    int r = tool_config_string(c, "hybrid_override_pattern", &pattern, why);

    if (r < 0)
        return r;
    if (strlen(pattern) != s->nlayers || strspn(pattern, "M*-E") != s->nlayers)
        return tool_refuse(why, PDX_EINVAL,
                           "%s: key \"hybrid_override_pattern\" has %zu letters of which the first "
                           "%zu are known; it must have one of M, *, - and E for each of %u layers",
                           c->name, strlen(pattern), strspn(pattern, "M*-E"), s->nlayers);
    for (uint32_t i = 0; i < s->nlayers; i++)
        s->layers[i] = pattern[i] == '*'   ? TOOL_LAYER_FULL
                       : pattern[i] == 'M' ? TOOL_LAYER_STATE
                                           : TOOL_LAYER_OTHER;
    return 0;
}

/* ---- The KV cache ---- */

static int kv_heads(const struct tool_config *c, uint32_t head_dim, struct tool_arch_shape *s,
                    struct pdx_error *why)
{
    int r = tool_config_uint(c, "num_key_value_heads", 1, HEADS_MAX, &s->kv_heads, why);

    if (r < 0)
        return r;
    s->kv_kind = PDX_KV_MHA;
    shape_add(&s->kv, "k", s->page_size, s->kv_heads, "heads", (uint64_t)head_dim * s->dtype_len,
              false);
    shape_add(&s->kv, "v", s->page_size, s->kv_heads, "heads", (uint64_t)head_dim * s->dtype_len,
              false);
    return 0;
}

/* Models whose head_dim is not hidden_size / num_attention_heads. */
static int kv_mha(const struct tool_config *c, struct tool_arch_shape *s, struct pdx_error *why)
{
    uint32_t dim;
    int r = tool_config_uint(c, "head_dim", 1, DIM_MAX, &dim, why);

    return r < 0 ? r : kv_heads(c, dim, s, why);
}

/* Models whose head_dim is hidden_size / num_attention_heads unless it is given. */
static int kv_mha_derived(const struct tool_config *c, struct tool_arch_shape *s,
                          struct pdx_error *why)
{
    uint32_t hidden, heads;
    int r;

    if (tool_config_has(c, "head_dim"))
        return kv_mha(c, s, why);
    r = tool_config_uint(c, "hidden_size", 1, HIDDEN_MAX, &hidden, why);
    if (r == 0)
        r = tool_config_uint(c, "num_attention_heads", 1, HEADS_MAX, &heads, why);
    if (r < 0)
        return r;
    if (hidden % heads != 0 || hidden / heads > DIM_MAX)
        return tool_refuse(
            why, PDX_EINVAL,
            "%s: key \"hidden_size\" is %u and \"num_attention_heads\" %u; the first "
            "must be a multiple of the second, at most %u times, or \"head_dim\" "
            "must be given",
            c->name, hidden, heads, DIM_MAX);
    return kv_heads(c, hidden / heads, s, why);
}

/* The first releases call it attention_head_dim. */
static int kv_nemotron_h(const struct tool_config *c, struct tool_arch_shape *s,
                         struct pdx_error *why)
{
    uint32_t dim;
    int r;

    if (tool_config_has(c, "head_dim"))
        return kv_mha(c, s, why);
    r = tool_config_uint(c, "attention_head_dim", 1, DIM_MAX, &dim, why);
    return r < 0 ? r : kv_heads(c, dim, s, why);
}

static int kv_mla(const struct tool_config *c, struct tool_arch_shape *s, struct pdx_error *why)
{
    uint32_t rank, rope;
    int r = tool_config_uint(c, "kv_lora_rank", 1, DIM_MAX, &rank, why);

    if (r == 0)
        r = tool_config_uint(c, "qk_rope_head_dim", 1, DIM_MAX, &rope, why);
    if (r < 0)
        return r;
    s->kv_kind = PDX_KV_MLA;
    shape_add(&s->kv, "latent", s->page_size, 1, "latents", (uint64_t)(rank + rope) * s->dtype_len,
              REPLICATED);
    return 0;
}

static int index_dsa(const struct tool_config *c, struct tool_arch_shape *s, struct pdx_error *why)
{
    uint32_t dim;
    int r = tool_config_uint(c, "index_head_dim", INDEX_BLOCK, DIM_MAX, &dim, why);

    if (r < 0)
        return r;
    if (dim % INDEX_BLOCK != 0)
        return tool_refuse(why, PDX_EINVAL,
                           "%s: key \"index_head_dim\" is %u; it must be a multiple of %u, the "
                           "values that share one scale",
                           c->name, dim, INDEX_BLOCK);
    /* All values of the page come first, then all scales: the page is one row. */
    shape_add(&s->index, "index_k", 1, 1, "indices",
              (uint64_t)s->page_size * (dim + dim / INDEX_BLOCK * FP32_LEN), REPLICATED);
    return 0;
}

/* ---- Recurrent state ---- */

static int state_delta_net(const struct tool_config *c, struct tool_arch_shape *s,
                           struct pdx_error *why)
{
    uint32_t kernel, key_heads, key_dim, value_heads, value_dim;
    uint64_t conv_len; /* of one channel */
    int r = tool_config_uint(c, "linear_conv_kernel_dim", 2, DIM_MAX, &kernel, why);

    if (r == 0)
        r = tool_config_uint(c, "linear_num_key_heads", 1, HEADS_MAX, &key_heads, why);
    if (r == 0)
        r = tool_config_uint(c, "linear_key_head_dim", 1, DIM_MAX, &key_dim, why);
    if (r == 0)
        r = tool_config_uint(c, "linear_num_value_heads", 1, HEADS_MAX, &value_heads, why);
    if (r == 0)
        r = tool_config_uint(c, "linear_value_head_dim", 1, DIM_MAX, &value_dim, why);
    if (r < 0)
        return r;
    conv_len = (uint64_t)(kernel - 1) * s->dtype_len;
    shape_add(&s->state, "conv_q", 1, key_heads, "heads", key_dim * conv_len, false);
    shape_add(&s->state, "conv_k", 1, key_heads, "heads", key_dim * conv_len, false);
    shape_add(&s->state, "conv_v", 1, value_heads, "heads", value_dim * conv_len, false);
    shape_add(&s->state, "ssm", 1, value_heads, "heads", (uint64_t)value_dim * key_dim * FP32_LEN,
              false);
    return 0;
}

static int state_mamba2(const struct tool_config *c, struct tool_arch_shape *s,
                        struct pdx_error *why)
{
    uint32_t kernel, heads, dim, groups, state;
    uint64_t conv_len;
    int r = tool_config_uint(c, "conv_kernel", 2, DIM_MAX, &kernel, why);

    if (r == 0)
        r = tool_config_uint(c, "mamba_num_heads", 1, HEADS_MAX, &heads, why);
    if (r == 0)
        r = tool_config_uint(c, "mamba_head_dim", 1, DIM_MAX, &dim, why);
    if (r == 0)
        r = tool_config_uint(c, "n_groups", 1, HEADS_MAX, &groups, why);
    if (r == 0)
        r = tool_config_uint(c, "ssm_state_size", 1, DIM_MAX, &state, why);
    if (r < 0)
        return r;
    conv_len = (uint64_t)(kernel - 1) * s->dtype_len;
    shape_add(&s->state, "conv_x", 1, heads, "heads", dim * conv_len, false);
    shape_add(&s->state, "conv_b", 1, groups, "groups", state * conv_len, false);
    shape_add(&s->state, "conv_c", 1, groups, "groups", state * conv_len, false);
    shape_add(&s->state, "ssm", 1, heads, "heads", (uint64_t)dim * state * FP32_LEN, false);
    return 0;
}

static int state_mamba1(const struct tool_config *c, struct tool_arch_shape *s,
                        struct pdx_error *why)
{
    uint32_t kernel, hidden, expand, state;
    uint64_t inner;
    int r = tool_config_uint(c, "mamba_d_conv", 2, DIM_MAX, &kernel, why);

    if (r == 0)
        r = tool_config_uint(c, "hidden_size", 1, HIDDEN_MAX, &hidden, why);
    if (r == 0)
        r = tool_config_uint(c, "mamba_expand", 1, 64, &expand, why);
    if (r == 0)
        r = tool_config_uint(c, "mamba_d_state", 1, DIM_MAX, &state, why);
    if (r < 0)
        return r;
    inner = (uint64_t)hidden * expand;
    shape_add(&s->state, "conv", 1, inner, "channels", (uint64_t)(kernel - 1) * s->dtype_len,
              false);
    shape_add(&s->state, "ssm", 1, inner, "channels", (uint64_t)state * FP32_LEN, false);
    return 0;
}

/* ---- The table ---- */

static const struct arch arch_table[] = {
    {"DeepseekV32ForCausalLM", layers_all_full, kv_mla, NULL, index_dsa, NULL, NULL},
    {"DeepseekV3ForCausalLM", layers_all_full, kv_mla, NULL, NULL, NULL, NULL},
    {"Gemma3ForCausalLM", layers_gemma3, kv_mha, NULL, NULL, NULL, NULL},
    {"Gemma3ForConditionalGeneration", layers_gemma3, kv_mha, NULL, NULL, "text_config",
     "text_config."},
    {"GptOssForCausalLM", layers_gpt_oss, kv_mha, NULL, NULL, NULL, NULL},
    {"JambaForCausalLM", layers_jamba, kv_mha_derived, state_mamba1, NULL, NULL, NULL},
    {"LlamaForCausalLM", layers_all_full, kv_mha_derived, NULL, NULL, NULL, NULL},
    {"NemotronHForCausalLM", layers_nemotron_h, kv_nemotron_h, state_mamba2, NULL, NULL, NULL},
    {"Qwen3ForCausalLM", layers_all_full, kv_mha, NULL, NULL, NULL, NULL},
    {"Qwen3MoeForCausalLM", layers_all_full, kv_mha, NULL, NULL, NULL, NULL},
    {"Qwen3NextForCausalLM", layers_qwen3_next, kv_mha, state_delta_net, NULL, NULL, NULL},
};

#define NARCHS (sizeof arch_table / sizeof arch_table[0])

const char *tool_arch_name(size_t i)
{
    return i < NARCHS ? arch_table[i].name : NULL;
}

static int arch_find(const struct tool_config *c, const struct arch **ret, struct pdx_error *why)
{
    const char *name = tool_config_string_at(c, "architectures", 0);
    char known[512];
    size_t len = 0;

    for (size_t i = 0; name && i < NARCHS; i++) {
        if (strcmp(name, arch_table[i].name) == 0) {
            *ret = &arch_table[i];
            return 0;
        }
    }
    for (size_t i = 0; i < NARCHS; i++)
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s",
                                i == 0 ? "one that pdx knows: " : ", ", arch_table[i].name);
    return tool_config_refuse_at(c, "architectures", 0, known, why);
}

static bool arch_has(const struct tool_arch_shape *s, enum tool_layer kind)
{
    for (uint32_t i = 0; i < s->nlayers; i++) {
        if (s->layers[i] == kind)
            return true;
    }
    return false;
}

/* Of weights and cache, in the language model's object or the root ("torch_dtype" in older files).
 * Absent, as where the weights are quantised, it is bfloat16. */
static int arch_dtype(const struct tool_config *c, struct tool_arch_shape *s, struct pdx_error *why)
{
    static const struct {
        const char *name;
        uint32_t len;
    } known[] = {{"bfloat16", 2}, {"float16", 2}, {"float32", 4}};
    const char *key = tool_config_has(c, "dtype") ? "dtype" : "torch_dtype";
    const char *dtype = known[0].name;
    int r;

    if (!tool_config_has(c, key) && c->section != c->root) {
        struct tool_config root = {
            .root = c->root, .section = c->root, .prefix = "", .name = c->name};

        return arch_dtype(&root, s, why);
    }
    r = tool_config_has(c, key) ? tool_config_string(c, key, &dtype, why) : 0;
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(dtype, known[i].name) == 0) {
            s->dtype = known[i].name;
            s->dtype_len = known[i].len;
            return 0;
        }
    }
    return tool_config_refuse(c, key, "\"bfloat16\", \"float16\" or \"float32\"", why);
}

int tool_arch_read(struct tool_config *c, uint32_t page_size, struct tool_arch_shape *ret,
                   struct pdx_error *why)
{
    const struct arch *arch;
    int r = arch_find(c, &arch, why);

    if (r < 0)
        return r;
    *ret = (struct tool_arch_shape){.architecture = arch->name, .page_size = page_size};
    if (arch->section)
        r = tool_config_enter(c, arch->section, arch->prefix, why);
    if (r == 0)
        r = arch_dtype(c, ret, why);
    if (r == 0)
        r = tool_config_uint(c, "num_hidden_layers", 1, TOOL_LAYERS_MAX, &ret->nlayers, why);
    if (r == 0)
        r = arch->layers(c, ret, why);
    if (r == 0 && !arch_has(ret, TOOL_LAYER_FULL))
        r = tool_refuse(why, PDX_EINVAL,
                        "%s: none of the %u layers has full attention; at least one must, for a KV "
                        "cache to move",
                        c->name, ret->nlayers);
    if (r == 0)
        r = arch->kv(c, ret, why);
    if (r == 0 && arch_has(ret, TOOL_LAYER_STATE))
        r = arch->state(c, ret, why);
    if (r == 0 && arch->index)
        r = arch->index(c, ret, why);
    return r;
}
