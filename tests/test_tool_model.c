/* SPDX-License-Identifier: Apache-2.0
 *
 * Model configurations: the bytes of each preset against arithmetic written out
 * here from the published figures, what a TP rank holds, and the sentence for
 * each thing that can be wrong with a config.json.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 64u /* tokens, the default */
#define BF16 2u
#define FP32 4u

static struct tool_model load(const char *preset)
{
    struct pdx_error why = {0};
    struct tool_model m;

    if (tool_model_load(preset, 0, &m, &why) != 0)
        fail_msg("%s: %s", preset, why.text);
    assert_int_equal(m.page_size, PAGE);
    return m;
}

/* Tensors at [first, first + n) of an array: all of one name, with these layers and sizes. */
static void check_run(const struct tool_tensor *tensors, size_t first, const char *name,
                      const int32_t *layers, size_t n, uint64_t rows, uint64_t units,
                      uint64_t unit_len, bool replicated)
{
    for (size_t i = 0; i < n; i++) {
        const struct tool_tensor *t = &tensors[first + i];

        assert_string_equal(t->name, name);
        assert_int_equal(t->layer, layers[i]);
        assert_int_equal(t->rows, rows);
        assert_int_equal(t->units, units);
        assert_int_equal(t->unit_len, unit_len);
        assert_int_equal(t->replicated, replicated);
        assert_int_equal(t->ngroups, 0);
    }
}

static void check_mha(const struct tool_model *m, const int32_t *layers, size_t n, uint64_t heads,
                      uint64_t head_dim)
{
    assert_int_equal(m->kv_kind, PDX_KV_MHA);
    assert_int_equal(m->kv_heads, heads);
    assert_int_equal(m->nkv, 2 * n);
    check_run(m->kv, 0, "k", layers, n, PAGE, heads, head_dim * BF16, false);
    check_run(m->kv, n, "v", layers, n, PAGE, heads, head_dim * BF16, false);
}

/* 80 layers, 8 KV heads, head_dim 8192 / 64 = 128. */
static void test_llama_31_70b_has_only_a_kv_cache(void **state)
{
    struct tool_model m = load("Llama-3.1-70B");
    int32_t layers[80];

    (void)state;
    for (int32_t i = 0; i < 80; i++)
        layers[i] = i;
    assert_string_equal(m.architecture, "LlamaForCausalLM");
    assert_string_equal(m.dtype, "bfloat16");
    assert_int_equal(m.nlayers, 80);
    check_mha(&m, layers, 80, 8, 128);
    assert_int_equal(m.ncomponents, 0);
    /* 320 KiB per token, the figure known for this model */
    assert_int_equal(tool_model_kv_item_len(&m, 1), 320 * 1024 * PAGE);
    assert_int_equal(tool_model_kv_item_len(&m, 8), 40 * 1024 * PAGE);
    tool_model_fini(&m);
}

/* 48 layers of which every fourth has attention: 2 KV heads of 256. The others are gated delta
 * nets: 16 key heads and 32 value heads of 128, kernel 4. */
static void test_qwen3_next_has_delta_net_state(void **state)
{
    struct tool_model m = load("qwen3-next-80b-a3b"); /* case is ignored */
    int32_t full[12], linear[36];
    size_t nfull = 0, nlinear = 0;
    const struct tool_component *c = &m.components[0];

    (void)state;
    for (int32_t i = 0; i < 48; i++) {
        if (i % 4 == 3)
            full[nfull++] = i;
        else
            linear[nlinear++] = i;
    }
    assert_string_equal(m.name, "Qwen3-Next-80B-A3B");
    assert_int_equal(m.nlayers, 48);
    check_mha(&m, full, 12, 2, 256);
    /* 12 layers x (K, V) x 2 heads x 256 x 2 bytes */
    assert_int_equal(tool_model_kv_item_len(&m, 1), 24576 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "mamba");
    assert_int_equal(c->space, TOOL_INDEX_SLOT);
    assert_int_equal(c->ntensors, 4 * 36);
    check_run(c->tensors, 0, "conv_q", linear, 36, 1, 16, 128 * 3 * BF16, false);
    check_run(c->tensors, 36, "conv_k", linear, 36, 1, 16, 128 * 3 * BF16, false);
    check_run(c->tensors, 72, "conv_v", linear, 36, 1, 32, 128 * 3 * BF16, false);
    check_run(c->tensors, 108, "ssm", linear, 36, 1, 32, 128 * 128 * FP32, false);
    /* conv: (2048 + 2048 + 4096) channels x 3 x 2 = 49152; ssm: 32 x 128 x 128 x 4 = 2097152 */
    assert_int_equal(tool_component_item_len(c, 1), 36 * (49152 + 2097152));
    tool_model_fini(&m);
}

/* 32 layers, attention at 4, 12, 20, 28 with 8 KV heads of 4096 / 32 = 128; mamba 1 in the others:
 * 2 x 4096 channels, kernel 4, 16 states. */
static void test_jamba_15_mini_has_mamba1_state(void **state)
{
    struct tool_model m = load("Jamba-1.5-Mini");
    const int32_t full[] = {4, 12, 20, 28};
    int32_t mamba[28];
    size_t n = 0;
    const struct tool_component *c = &m.components[0];

    (void)state;
    for (int32_t i = 0; i < 32; i++) {
        if (i != 4 && i != 12 && i != 20 && i != 28)
            mamba[n++] = i;
    }
    assert_int_equal(m.nlayers, 32);
    check_mha(&m, full, 4, 8, 128);
    /* 4 x 2 x 8 x 128 x 2 */
    assert_int_equal(tool_model_kv_item_len(&m, 1), 16384 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "mamba");
    assert_int_equal(c->ntensors, 2 * 28);
    check_run(c->tensors, 0, "conv", mamba, 28, 1, 8192, 3 * BF16, false);
    check_run(c->tensors, 28, "ssm", mamba, 28, 1, 8192, 16 * FP32, false);
    /* conv: 8192 x 3 x 2 = 49152; ssm: 8192 x 16 x 4 = 524288 */
    assert_int_equal(tool_component_item_len(c, 1), 28 * (49152 + 524288));
    tool_model_fini(&m);
}

/* 52 layers: attention at 7, 18, 29 and 40 with 8 KV heads of 128; 24 of mamba 2: 128 heads of 64,
 * 8 groups of 128 states, kernel 4. */
static void test_nemotron_h_8b_has_mamba2_state(void **state)
{
    struct tool_model m = load("Nemotron-H-8B");
    const int32_t full[] = {7, 18, 29, 40};
    const int32_t mamba[] = {0,  2,  4,  6,  9,  11, 13, 15, 17, 20, 22, 24,
                             26, 28, 31, 33, 35, 37, 39, 42, 44, 46, 48, 50};
    const size_t n = 24;
    const struct tool_component *c = &m.components[0];

    (void)state;
    assert_int_equal(m.nlayers, 52);
    check_mha(&m, full, 4, 8, 128);
    assert_int_equal(tool_model_kv_item_len(&m, 1), 16384 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "mamba");
    assert_int_equal(c->ntensors, 4 * n);
    check_run(c->tensors, 0, "conv_x", mamba, n, 1, 128, 64 * 3 * BF16, false);
    check_run(c->tensors, n, "conv_b", mamba, n, 1, 8, 128 * 3 * BF16, false);
    check_run(c->tensors, 2 * n, "conv_c", mamba, n, 1, 8, 128 * 3 * BF16, false);
    check_run(c->tensors, 3 * n, "ssm", mamba, n, 1, 128, 64 * 128 * FP32, false);
    /* conv: (8192 + 2 x 8 x 128) channels x 3 x 2 = 61440; ssm: 128 x 64 x 128 x 4 = 4194304 */
    assert_int_equal(tool_component_item_len(c, 1), 24 * (61440 + 4194304));
    tool_model_fini(&m);
}

/* 36 layers, sliding (window 128) and full by turns, 8 KV heads of 64. */
static void test_gpt_oss_120b_has_a_sliding_window(void **state)
{
    struct tool_model m = load("gpt-oss-120b");
    int32_t sliding[18], full[18];
    const struct tool_component *c = &m.components[0];

    (void)state;
    for (int32_t i = 0; i < 18; i++) {
        sliding[i] = 2 * i;
        full[i] = 2 * i + 1;
    }
    assert_int_equal(m.nlayers, 36);
    check_mha(&m, full, 18, 8, 64);
    /* 18 x 2 x 8 x 64 x 2 */
    assert_int_equal(tool_model_kv_item_len(&m, 1), 36864 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "swa");
    assert_int_equal(c->space, TOOL_INDEX_WINDOW);
    assert_int_equal(c->window, 128);
    assert_int_equal(c->ntensors, 2 * 18);
    check_run(c->tensors, 0, "k", sliding, 18, PAGE, 8, 64 * BF16, false);
    check_run(c->tensors, 18, "v", sliding, 18, PAGE, 8, 64 * BF16, false);
    assert_int_equal(tool_component_item_len(c, 1), 36864 * PAGE);
    tool_model_fini(&m);
}

/* 62 layers, every sixth full, window 1024, 16 KV heads of 128. */
static void test_gemma_3_27b_has_a_sliding_window(void **state)
{
    struct tool_model m = load("Gemma-3-27B");
    int32_t sliding[52], full[10];
    size_t nsliding = 0, nfull = 0;
    const struct tool_component *c = &m.components[0];

    (void)state;
    for (int32_t i = 0; i < 62; i++) {
        if (i % 6 == 5)
            full[nfull++] = i;
        else
            sliding[nsliding++] = i;
    }
    assert_int_equal(m.nlayers, 62);
    check_mha(&m, full, 10, 16, 128);
    /* 10 x 2 x 16 x 128 x 2 */
    assert_int_equal(tool_model_kv_item_len(&m, 1), 81920 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "swa");
    assert_int_equal(c->window, 1024);
    assert_int_equal(c->ntensors, 2 * 52);
    check_run(c->tensors, 0, "k", sliding, 52, PAGE, 16, 128 * BF16, false);
    check_run(c->tensors, 52, "v", sliding, 52, PAGE, 16, 128 * BF16, false);
    /* 52 x 2 x 16 x 128 x 2 */
    assert_int_equal(tool_component_item_len(c, 1), 425984 * PAGE);
    tool_model_fini(&m);
}

/* 61 layers: a latent of 512 + 64 and an index key of 128 fp8 values with one fp32 scale. */
static void test_deepseek_v32_has_a_latent_and_an_index(void **state)
{
    struct tool_model m = load("DeepSeek-V3.2");
    int32_t layers[61];
    const struct tool_component *c = &m.components[0];

    (void)state;
    for (int32_t i = 0; i < 61; i++)
        layers[i] = i;
    assert_int_equal(m.nlayers, 61);
    assert_int_equal(m.kv_kind, PDX_KV_MLA);
    assert_int_equal(m.kv_heads, 0);
    assert_int_equal(m.nkv, 61);
    check_run(m.kv, 0, "latent", layers, 61, PAGE, 1, 576 * BF16, true);
    assert_int_equal(tool_model_kv_item_len(&m, 1), 61 * 1152 * PAGE);

    assert_int_equal(m.ncomponents, 1);
    assert_string_equal(c->type, "dsa");
    assert_int_equal(c->space, TOOL_INDEX_KV_PAGES);
    assert_int_equal(c->ntensors, 61);
    check_run(c->tensors, 0, "index_k", layers, 61, 1, 1, PAGE * (128 + 4), true);
    assert_int_equal(tool_component_item_len(c, 1), 61 * 132 * PAGE);
    /* every rank holds all of it */
    assert_int_equal(tool_model_kv_item_len(&m, 8), 61 * 1152 * PAGE);
    assert_int_equal(tool_component_item_len(c, 8), 61 * 132 * PAGE);
    tool_model_fini(&m);
}

static void test_presets_all_load_and_have_aux(void **state)
{
    size_t n = 0;

    (void)state;
    for (; tool_preset_names[n]; n++) {
        struct tool_model m = load(tool_preset_names[n]);

        assert_string_equal(m.name, tool_preset_names[n]);
        assert_int_equal(m.aux_len % 64, 0);
        assert_true(m.aux_len >= 64);
        tool_model_fini(&m);
    }
    assert_int_equal(n, 7);
}

/* ---- Tensor parallelism ---- */

static void test_tensor_units_are_split_or_copied(void **state)
{
    const struct tool_tensor kv = {.rows = 64, .units = 2, .unit_len = 512};
    const struct tool_tensor ssm = {.rows = 1, .units = 32, .unit_len = 65536};
    const struct tool_tensor latent = {
        .rows = 64, .units = 1, .unit_len = 1152, .replicated = true};

    (void)state;
    assert_int_equal(tool_tensor_units(&kv, 1), 2);
    assert_int_equal(tool_tensor_units(&kv, 2), 1);
    assert_int_equal(tool_tensor_item_len(&kv, 2), 64 * 512);
    assert_int_equal(tool_tensor_first_unit(&kv, 2, 1), 1);
    /* fewer heads than ranks: ranks 0 and 1 hold head 0, ranks 2 and 3 head 1 */
    assert_int_equal(tool_tensor_units(&kv, 4), 1);
    assert_int_equal(tool_tensor_first_unit(&kv, 4, 1), 0);
    assert_int_equal(tool_tensor_first_unit(&kv, 4, 2), 1);
    assert_int_equal(tool_tensor_first_unit(&kv, 4, 3), 1);
    assert_int_equal(tool_tensor_units(&ssm, 4), 8);
    assert_int_equal(tool_tensor_first_unit(&ssm, 4, 3), 24);
    assert_int_equal(tool_tensor_item_len(&ssm, 4), 8 * 65536);
    assert_int_equal(tool_tensor_units(&latent, 8), 1);
    assert_int_equal(tool_tensor_first_unit(&latent, 8, 7), 0);
    assert_int_equal(tool_tensor_item_len(&latent, 8), 64 * 1152);
}

static void test_ranks_together_hold_the_model(void **state)
{
    (void)state;
    for (size_t i = 0; tool_preset_names[i]; i++) {
        struct tool_model m = load(tool_preset_names[i]);

        for (uint32_t tp = 1; tp <= 8; tp *= 2) {
            if (tool_model_check_tp(&m, tp, NULL) != 0)
                fail_msg("%s refuses TP %u", m.name, tp);
            for (size_t c = 0; c < m.ncomponents; c++) {
                const struct tool_tensor *t = &m.components[c].tensors[0];

                if (!t->replicated)
                    assert_int_equal(tool_component_item_len(&m.components[c], tp) * tp,
                                     tool_component_item_len(&m.components[c], 1));
            }
        }
        tool_model_fini(&m);
    }
}

static void check_tp(const char *preset, uint32_t tp, const char *text)
{
    struct pdx_error why = {0};
    struct tool_model m = load(preset);
    int r = tool_model_check_tp(&m, tp, &why);

    tool_model_fini(&m);
    assert_int_equal(r, PDX_EINVAL);
    assert_int_equal(why.code, PDX_EINVAL);
    assert_string_equal(why.text, text);
}

static void test_tp_size_that_does_not_divide_is_refused(void **state)
{
    (void)state;
    check_tp("Llama-3.1-70B", 3,
             "TP size 3 cannot split Llama-3.1-70B: tensor \"k\" of its KV cache has 8 heads; the "
             "size must divide that number or be a multiple of it");
    check_tp("Llama-3.1-70B", 12,
             "TP size 12 cannot split Llama-3.1-70B: tensor \"k\" of its KV cache has 8 heads; the "
             "size must divide that number or be a multiple of it");
    check_tp("Llama-3.1-70B", 0, "TP size 0 cannot split Llama-3.1-70B; it must be at least 1");
    /* KV heads may be copied, a request's state may not */
    check_tp("Qwen3-Next-80B-A3B", 32,
             "TP size 32 cannot split Qwen3-Next-80B-A3B: tensor \"conv_q\" of its mamba has 16 "
             "heads; the size must divide that number");
}

/* ---- What can be wrong ---- */

static int parse(const char *json, struct pdx_error *why)
{
    struct tool_model m;
    int r = tool_model_parse(json, strlen(json), "c.json", 0, &m, why);

    if (r == 0)
        tool_model_fini(&m);
    return r;
}

/* `text` may end in "...": then more follows that is the JSON library's own. */
static void check_wrong(const char *json, const char *text)
{
    size_t len = strlen(text);
    struct pdx_error why = {0};
    int r = parse(json, &why);

    if (len > 3 && strcmp(text + len - 3, "...") == 0)
        assert_memory_equal(why.text, text, len - 3);
    else
        assert_string_equal(why.text, text);
    assert_int_equal(r, PDX_EINVAL);
    assert_int_equal(why.code, PDX_EINVAL);
    assert_int_equal(parse(json, NULL), PDX_EINVAL);
}

#define LLAMA "\"architectures\": [\"LlamaForCausalLM\"], "
#define LLAMA_SHAPE                                                                \
    "\"num_hidden_layers\": 2, \"hidden_size\": 256, \"num_attention_heads\": 4, " \
    "\"num_key_value_heads\": 2"
#define KNOWN                                                                      \
    "one that pdx knows: DeepseekV32ForCausalLM, DeepseekV3ForCausalLM, "          \
    "Gemma3ForCausalLM, Gemma3ForConditionalGeneration, GptOssForCausalLM, "       \
    "JambaForCausalLM, LlamaForCausalLM, NemotronHForCausalLM, Qwen3ForCausalLM, " \
    "Qwen3MoeForCausalLM, Qwen3NextForCausalLM"

static void test_config_that_is_no_object_is_refused(void **state)
{
    struct pdx_error why = {0};

    (void)state;
    assert_int_equal(parse("{" LLAMA LLAMA_SHAPE "}", &why), 0);
    check_wrong("[1]", "c.json must hold one JSON object {...}, as config.json does");
    check_wrong("", "c.json is not JSON: line 1, column 0: ...");
    check_wrong("{\"a\": 1,\n \"b\" 2}", "c.json is not JSON: line 2, column 6: ...");
    check_wrong("{\"a\": 1, \"a\": 2}", "c.json is not JSON: line 1, column 12: ...");
}

static void test_config_of_unknown_architecture_lists_the_known(void **state)
{
    (void)state;
    check_wrong("{\"architectures\": [\"BertModel\"]}",
                "c.json: entry 0 of key \"architectures\" is \"BertModel\"; it must be " KNOWN);
    check_wrong("{}", "c.json: entry 0 of key \"architectures\" is missing; it must be " KNOWN);
    check_wrong("{\"architectures\": []}",
                "c.json: entry 0 of key \"architectures\" is missing; it must be " KNOWN);
    check_wrong("{\"architectures\": [7]}",
                "c.json: entry 0 of key \"architectures\" is 7; it must be " KNOWN);
    /* what a hostile file says is cut and shown in ASCII */
    check_wrong("{\"architectures\": [\"\\u001b[2J\\u00e4-0123456789-0123456789-0123456789\"]}",
                "c.json: entry 0 of key \"architectures\" is "
                "\"\\u001B[2J\\u00E4-0123456789-0123456789-0...; it must be " KNOWN);
}

static void test_config_value_that_is_missing_or_absurd_is_refused(void **state)
{
    (void)state;
    check_wrong("{" LLAMA "\"num_hidden_layers\": 2, \"hidden_size\": 256, "
                "\"num_attention_heads\": 4}",
                "c.json: key \"num_key_value_heads\" is missing; it must be a whole number from 1 "
                "to 4096");
    check_wrong("{" LLAMA "\"num_hidden_layers\": 0}",
                "c.json: key \"num_hidden_layers\" is 0; it must be a whole number from 1 to 1024");
    check_wrong(
        "{" LLAMA "\"num_hidden_layers\": -3}",
        "c.json: key \"num_hidden_layers\" is -3; it must be a whole number from 1 to 1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": 9223372036854775807}",
                "c.json: key \"num_hidden_layers\" is 9223372036854775807; it must be a whole "
                "number from 1 to 1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": 4.5}",
                "c.json: key \"num_hidden_layers\" is 4.5; it must be a whole number from 1 to "
                "1024");
    check_wrong(
        "{" LLAMA "\"num_hidden_layers\": \"many\"}",
        "c.json: key \"num_hidden_layers\" is \"many\"; it must be a whole number from 1 to "
        "1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": null}",
                "c.json: key \"num_hidden_layers\" is null; it must be a whole number from 1 to "
                "1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": [1]}",
                "c.json: key \"num_hidden_layers\" is an array; it must be a whole number from 1 "
                "to 1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": {}}",
                "c.json: key \"num_hidden_layers\" is an object; it must be a whole number from 1 "
                "to 1024");
    check_wrong("{" LLAMA "\"num_hidden_layers\": 2, \"hidden_size\": 5376, "
                "\"num_attention_heads\": 5}",
                "c.json: key \"hidden_size\" is 5376 and \"num_attention_heads\" 5; the first must "
                "be a multiple of the second, at most 8192 times, or \"head_dim\" must be given");
    check_wrong("{" LLAMA LLAMA_SHAPE ", \"torch_dtype\": \"int3\"}",
                "c.json: key \"torch_dtype\" is \"int3\"; it must be \"bfloat16\", \"float16\" or "
                "\"float32\"");
    check_wrong("{" LLAMA LLAMA_SHAPE ", \"dtype\": 16}",
                "c.json: key \"dtype\" is 16; it must be a string");
}

#define QWEN                                                                           \
    "{\"architectures\": [\"Qwen3NextForCausalLM\"], \"num_key_value_heads\": 2, "     \
    "\"head_dim\": 256, \"linear_conv_kernel_dim\": 4, \"linear_num_key_heads\": 16, " \
    "\"linear_key_head_dim\": 128, \"linear_num_value_heads\": 32, "                   \
    "\"linear_value_head_dim\": 128, \"num_hidden_layers\": 3, "

static void test_config_layer_list_is_checked(void **state)
{
    struct pdx_error why = {0};

    (void)state;
    assert_int_equal(parse(QWEN "\"layer_types\": [\"linear_attention\", \"linear_attention\", "
                                "\"full_attention\"]}",
                           &why),
                     0);
    check_wrong(QWEN "\"head\": 1}",
                "c.json: key \"full_attention_interval\" is missing; it must be a whole number "
                "from 1 to 1024");
    check_wrong(QWEN "\"full_attention_interval\": 4}",
                "c.json: none of the 3 layers has full attention; at least one must, for a KV "
                "cache to move");
    check_wrong(QWEN "\"layer_types\": [\"full_attention\"]}",
                "c.json: key \"layer_types\" has 1 entries; it must have 3");
    check_wrong(QWEN "\"layer_types\": \"full_attention\"}",
                "c.json: key \"layer_types\" is \"full_attention\"; it must be an array of "
                "strings");
    check_wrong(QWEN "\"layer_types\": [\"full_attention\", 2, \"full_attention\"]}",
                "c.json: entry 1 of key \"layer_types\" is 2; it must be a string");
    check_wrong(QWEN "\"layer_types\": [\"full_attention\", \"mamba\", \"full_attention\"]}",
                "c.json: entry 1 of key \"layer_types\" is \"mamba\"; it must be "
                "\"full_attention\" or \"linear_attention\"");
}

static void test_config_of_each_family_names_its_keys(void **state)
{
    (void)state;
    check_wrong("{\"architectures\": [\"Gemma3ForConditionalGeneration\"]}",
                "c.json: key \"text_config\" is missing; it must be an object with the language "
                "model's keys");
    check_wrong("{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"text_config\": "
                "{\"num_hidden_layers\": 6}}",
                "c.json: key \"text_config.sliding_window\" is missing; it must be a whole number "
                "from 1 to 16777216");
    check_wrong("{\"architectures\": [\"GptOssForCausalLM\"], \"num_hidden_layers\": 2, "
                "\"sliding_window\": 128}",
                "c.json: key \"head_dim\" is missing; it must be a whole number from 1 to 8192");
    check_wrong("{\"architectures\": [\"JambaForCausalLM\"], \"num_hidden_layers\": 8, "
                "\"attn_layer_period\": 8, \"attn_layer_offset\": 8}",
                "c.json: key \"attn_layer_offset\" is 8; it must be a whole number from 0 to 7");
    check_wrong("{\"architectures\": [\"NemotronHForCausalLM\"], \"num_hidden_layers\": 4, "
                "\"hybrid_override_pattern\": \"M*xM\"}",
                "c.json: key \"hybrid_override_pattern\" has 4 letters of which the first 2 are "
                "known; it must have one of M, *, - and E for each of 4 layers");
    check_wrong("{\"architectures\": [\"NemotronHForCausalLM\"], \"num_hidden_layers\": 4, "
                "\"hybrid_override_pattern\": \"M*-\"}",
                "c.json: key \"hybrid_override_pattern\" has 3 letters of which the first 3 are "
                "known; it must have one of M, *, - and E for each of 4 layers");
    check_wrong("{\"architectures\": [\"NemotronHForCausalLM\"], \"num_hidden_layers\": 2, "
                "\"hybrid_override_pattern\": \"M*\"}",
                "c.json: key \"attention_head_dim\" is missing; it must be a whole number from 1 "
                "to 8192");
    check_wrong("{\"architectures\": [\"DeepseekV32ForCausalLM\"], \"num_hidden_layers\": 2, "
                "\"kv_lora_rank\": 512, \"qk_rope_head_dim\": 64}",
                "c.json: key \"index_head_dim\" is missing; it must be a whole number from 128 to "
                "8192");
    check_wrong("{\"architectures\": [\"DeepseekV32ForCausalLM\"], \"num_hidden_layers\": 2, "
                "\"kv_lora_rank\": 512, \"qk_rope_head_dim\": 64, \"index_head_dim\": 200}",
                "c.json: key \"index_head_dim\" is 200; it must be a multiple of 128, the values "
                "that share one scale");
}

/* Gemma 3's own files give neither a layer list nor a pattern, and their dtype may be in either
 * object. */
static void test_gemma_without_a_pattern_has_every_sixth_layer_full(void **state)
{
    static const char json[] =
        "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"torch_dtype\": \"float16\", "
        "\"text_config\": {\"num_hidden_layers\": 12, \"num_key_value_heads\": 4, \"head_dim\": "
        "256, \"sliding_window\": 512, \"dtype\": \"float32\"}}";
    struct tool_model m;

    (void)state;
    assert_int_equal(
        tool_model_parse(json, sizeof json - 1, "/models/gemma/config.json", 16, &m, NULL), 0);
    assert_string_equal(m.name, "gemma");
    assert_string_equal(m.dtype, "float32");
    assert_int_equal(m.page_size, 16);
    assert_int_equal(m.nkv, 2 * 2);
    assert_int_equal(m.kv[0].layer, 5);
    assert_int_equal(m.kv[1].layer, 11);
    assert_int_equal(m.kv[0].rows, 16);
    assert_int_equal(m.kv[0].unit_len, 256 * FP32);
    tool_model_fini(&m);
}

static void test_page_size_and_file_size_are_limited(void **state)
{
    size_t len = (1 << 20) + 1;
    char *big = malloc(len);
    struct pdx_error why;
    struct tool_model m;

    (void)state;
    assert_int_equal(tool_model_load("gpt-oss-120b", 65537, &m, &why), PDX_EINVAL);
    assert_string_equal(why.text, "the page size is 65537 tokens; it must be at most 65536");
    assert_non_null(big);
    memset(big, ' ', len);
    assert_int_equal(tool_model_parse(big, len, "big.json", 0, &m, &why), PDX_EINVAL);
    assert_string_equal(why.text,
                        "big.json is 1048577 bytes long; a config.json has at most 1048576");
    free(big);
}

/* The deepest nesting that fits is refused, not recursed into. */
static void test_deep_nesting_is_refused(void **state)
{
    size_t len = 1 << 20;
    char *deep = malloc(len);
    struct pdx_error why;
    struct tool_model m;

    (void)state;
    assert_non_null(deep);
    memset(deep, '[', len);
    assert_int_equal(tool_model_parse(deep, len, "deep.json", 0, &m, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "deep.json is not JSON: line 1, column "));
    free(deep);
}

static void test_model_name_that_is_no_preset_lists_them(void **state)
{
    struct pdx_error why;
    struct tool_model m;

    (void)state;
    assert_int_equal(tool_model_load("gpt-5", 0, &m, &why), PDX_EINVAL);
    assert_string_equal(why.text,
                        "there is no preset \"gpt-5\"; there are DeepSeek-V3.2, Gemma-3-27B, "
                        "gpt-oss-120b, Jamba-1.5-Mini, Llama-3.1-70B, Nemotron-H-8B, "
                        "Qwen3-Next-80B-A3B, or give the path of a config.json (with a '/' or "
                        "ending in .json)");
}

static void test_model_file_is_read_or_explained(void **state)
{
    static const char json[] = "{" LLAMA LLAMA_SHAPE "}";
    char path[] = "/tmp/pdx-model-XXXXXX.json";
    int fd = mkstemps(path, 5);
    struct pdx_error why;
    struct tool_model m;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, json, sizeof json - 1), sizeof json - 1);
    assert_int_equal(tool_model_load(path, 0, &m, &why), 0);
    assert_int_equal(tool_model_kv_item_len(&m, 1), 2 * 2 * 2 * 64 * BF16 * PAGE);
    tool_model_fini(&m);

    assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
    assert_int_equal(tool_model_load(path, 0, &m, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "is longer than 1048576 bytes"));
    (void)close(fd);
    (void)unlink(path);

    assert_int_equal(tool_model_load(path, 0, &m, &why), PDX_ESYS);
    assert_non_null(strstr(why.text, "cannot open /tmp/pdx-model-"));
    assert_non_null(strstr(why.text, ": No such file or directory"));
    assert_int_equal(tool_model_load("/tmp", 0, &m, &why), PDX_ESYS);
    assert_string_equal(why.text, "cannot read /tmp: Is a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llama_31_70b_has_only_a_kv_cache),
        cmocka_unit_test(test_qwen3_next_has_delta_net_state),
        cmocka_unit_test(test_jamba_15_mini_has_mamba1_state),
        cmocka_unit_test(test_nemotron_h_8b_has_mamba2_state),
        cmocka_unit_test(test_gpt_oss_120b_has_a_sliding_window),
        cmocka_unit_test(test_gemma_3_27b_has_a_sliding_window),
        cmocka_unit_test(test_deepseek_v32_has_a_latent_and_an_index),
        cmocka_unit_test(test_presets_all_load_and_have_aux),
        cmocka_unit_test(test_tensor_units_are_split_or_copied),
        cmocka_unit_test(test_ranks_together_hold_the_model),
        cmocka_unit_test(test_tp_size_that_does_not_divide_is_refused),
        cmocka_unit_test(test_config_that_is_no_object_is_refused),
        cmocka_unit_test(test_config_of_unknown_architecture_lists_the_known),
        cmocka_unit_test(test_config_value_that_is_missing_or_absurd_is_refused),
        cmocka_unit_test(test_config_layer_list_is_checked),
        cmocka_unit_test(test_config_of_each_family_names_its_keys),
        cmocka_unit_test(test_gemma_without_a_pattern_has_every_sixth_layer_full),
        cmocka_unit_test(test_page_size_and_file_size_are_limited),
        cmocka_unit_test(test_deep_nesting_is_refused),
        cmocka_unit_test(test_model_name_that_is_no_preset_lists_them),
        cmocka_unit_test(test_model_file_is_read_or_explained),
    };

    return cmocka_run_group_tests_name("tool_model", tests, NULL, NULL);
}
