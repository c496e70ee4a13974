/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx models: what each model keeps per token and per request. For a model
 * that is named, its tensors too.
 */
#include "tool/args.h"
#include "tool/commands.h"
#include "tool/model.h"
#include "tool/model_arch.h"
#include "tool/table.h"

#include <string.h>

#define MODELS_MAX     64   /* operands */
#define MODELS_PURPOSE 1024 /* bytes of --help */
#define MODELS_HEADS   "model|>layers|KV|>KV layers|>per token|state|>state layers|>size|"

/* Tensors of one name follow each other; how many there are from position i on. */
static size_t models_run(const struct tool_tensor *tensors, size_t n, size_t i)
{
    size_t end = i + 1;

    while (end < n && tensors[end].layer > tensors[end - 1].layer)
        end++;
    return end - i;
}

/* "36.0 KiB/token (last 128)", "73.7 MiB/request". */
static void models_size_cell(struct tool_table *t, const struct tool_model *m,
                             const struct tool_component *c, uint32_t tp)
{
    char size[TOOL_TEXT_MAX];
    uint64_t item_len = tool_component_item_len(c, tp);

    switch (c->space) {
    case TOOL_INDEX_SLOT:
        tool_table_cell(t, "%s/request", tool_text_size(size, item_len));
        break;
    case TOOL_INDEX_KV_PAGES:
        tool_table_cell(t, "%s/token", tool_text_size(size, item_len / m->page_size));
        break;
    case TOOL_INDEX_WINDOW:
        tool_table_cell(t, "%s/token (last %u)", tool_text_size(size, item_len / m->page_size),
                        c->window);
        break;
    }
}

static void models_row(struct tool_table *t, const struct tool_model *m, uint32_t tp)
{
    char size[TOOL_TEXT_MAX];

    tool_table_cell(t, "%s", m->name);
    tool_table_cell(t, "%u", m->nlayers);
    tool_table_cell(t, "%s", m->kv_kind == PDX_KV_MLA ? "MLA" : "MHA");
    tool_table_cell(t, "%zu", models_run(m->kv, m->nkv, 0));
    tool_table_cell(t, "%s", tool_text_size(size, tool_model_kv_item_len(m, tp) / m->page_size));
    for (size_t i = 0; i < m->ncomponents; i++) {
        const struct tool_component *c = &m->components[i];

        for (int blank = 0; i > 0 && blank < 5; blank++)
            tool_table_cell(t, "%s", "");
        tool_table_cell(t, "%s", c->type);
        tool_table_cell(t, "%zu", models_run(c->tensors, c->ntensors, 0));
        models_size_cell(t, m, c, tp);
        tool_table_cell(t, "%s", "");
    }
    for (int none = 0; m->ncomponents == 0 && none < 4; none++)
        tool_table_cell(t, "%s", none == 0 ? "-" : "");
}

static void models_tensors(struct tool_table *t, const char *of, const struct tool_tensor *tensors,
                           size_t n, uint32_t tp)
{
    char size[TOOL_TEXT_MAX];

    for (size_t i = 0; i < n;) {
        size_t run = models_run(tensors, n, i);
        const struct tool_tensor *x = &tensors[i];

        tool_table_cell(t, "%s", of);
        tool_table_cell(t, "%s", x->name);
        tool_table_cell(t, "%zu", run);
        tool_table_cell(t, "%llu", (unsigned long long)x->rows);
        tool_table_cell(t, "%llu", (unsigned long long)tool_tensor_units(x, tp));
        tool_table_cell(t, "%s", tool_text_size(size, x->unit_len));
        tool_table_cell(t, "%s", tool_text_size(size, tool_tensor_item_len(x, tp)));
        tool_table_cell(t, "%s", x->replicated ? "whole on every rank" : "by units");
        i += run;
    }
}

static int models_print_tensors(const struct tool_model *m, uint32_t tp)
{
    struct tool_table t;
    int r;

    tool_table_init(&t, "of|tensor|>layers|>rows|>units|>unit|>item|TP splits");
    models_tensors(&t, "KV cache", m->kv, m->nkv, tp);
    for (size_t i = 0; i < m->ncomponents; i++)
        models_tensors(&t, m->components[i].type, m->components[i].tensors,
                       m->components[i].ntensors, tp);
    (void)printf("\n%s (%s, %s, pages of %u tokens), one rank of %u:\n\n", m->name, m->architecture,
                 m->dtype, m->page_size, tp);
    r = tool_table_print(&t, 2, stdout);
    tool_table_fini(&t);
    return r;
}

/* A model that this TP size cannot split has the reason in place of numbers. */
static void models_refused_row(struct tool_table *t, const struct tool_model *m, const char *text)
{
    const char *reason = strstr(text, ": "); /* behind the size and the name */

    tool_table_cell(t, "%s", m->name);
    tool_table_cell(t, "%u", m->nlayers);
    tool_table_cell(t, "%s", m->kv_kind == PDX_KV_MLA ? "MLA" : "MHA");
    for (int none = 0; none < 5; none++)
        tool_table_cell(t, "-");
    tool_table_cell(t, "%s", reason ? reason + 2 : text);
}

static int models_all(uint64_t page_size, uint64_t tp, struct tool_table *t, struct pdx_error *why)
{
    for (size_t i = 0; tool_preset_names[i]; i++) {
        struct tool_model m;
        int r = tool_model_load(tool_preset_names[i], (uint32_t)page_size, &m, why);

        if (r < 0)
            return r;
        if (tool_model_check_tp(&m, (uint32_t)tp, why) == 0)
            models_row(t, &m, (uint32_t)tp);
        else
            models_refused_row(t, &m, why->text);
        tool_model_fini(&m);
    }
    (void)printf("Presets, per rank of %u:\n\n", (unsigned)tp);
    return tool_table_print(t, 2, stdout);
}

/* Reads one model and adds its row. */
static int models_load(const char *name, uint64_t page_size, uint64_t tp, struct tool_table *t,
                       struct tool_model *m, struct pdx_error *why)
{
    int r = tool_model_load(name, (uint32_t)page_size, m, why);

    if (r < 0)
        return r;
    r = tool_model_check_tp(m, (uint32_t)tp, why);
    if (r < 0) {
        tool_model_fini(m);
        return r;
    }
    models_row(t, m, (uint32_t)tp);
    return 0;
}

static int models_named(char **names, size_t n, uint64_t page_size, uint64_t tp,
                        struct tool_table *t, struct pdx_error *why)
{
    struct tool_model models[MODELS_MAX];
    size_t nmodels = 0;
    int r = 0;

    while (r == 0 && nmodels < n) {
        r = models_load(names[nmodels], page_size, tp, t, &models[nmodels], why);
        nmodels += r == 0;
    }
    if (r == 0)
        r = tool_table_print(t, 2, stdout);
    for (size_t i = 0; i < nmodels; i++) {
        if (r == 0)
            r = models_print_tensors(&models[i], (uint32_t)tp);
        tool_model_fini(&models[i]);
    }
    return r;
}

/* With the architectures, two a line. */
static void models_purpose(char text[MODELS_PURPOSE])
{
    size_t len = (size_t)snprintf(
        text, MODELS_PURPOSE,
        "Shows what models keep per token and per request: the presets, or each MODEL\n"
        "(a preset's name, or the path of a Hugging Face config.json) with its tensors.\n\n"
        "A config.json may be of one of these architectures:");

    for (size_t i = 0; tool_arch_name(i) && len < MODELS_PURPOSE; i++)
        len += (size_t)snprintf(text + len, MODELS_PURPOSE - len, "%s%s%s", i ? "," : "",
                                i % 2 ? " " : "\n  ", tool_arch_name(i));
}

int tool_models_main(int argc, char **argv)
{
    uint64_t page_size = 64, tp = 1;
    char purpose[MODELS_PURPOSE];
    const struct tool_arg args[] = {
        {.name = "page-size",
         .kind = TOOL_ARG_UINT,
         .value = &page_size,
         .min = 1,
         .max = 65536,
         .label = "TOKENS",
         .help = "tokens per page (default 64)"},
        {.name = "tp",
         .kind = TOOL_ARG_UINT,
         .value = &tp,
         .min = 1,
         .max = 65536,
         .help = "what one rank of N holds (default 1: the unsplit model)"},
    };
    const struct tool_command cmd = {
        .name = "models",
        .synopsis = "[options] [MODEL...]",
        .purpose = purpose,
        .args = args,
        .nargs = sizeof args / sizeof args[0],
        .operand = "MODEL",
        .max_operands = MODELS_MAX,
    };
    struct pdx_error why = {.text = "no memory for the table"};
    struct tool_table t;
    int first, status, r;

    models_purpose(purpose);
    if (!tool_args_begin(&cmd, argc, argv, &first, &status))
        return status;
    tool_table_init(&t, MODELS_HEADS);
    if (first == argc)
        r = models_all(page_size, tp, &t, &why);
    else
        r = models_named(argv + first, (size_t)(argc - first), page_size, tp, &t, &why);
    tool_table_fini(&t);
    if (r == 0)
        return TOOL_EXIT_OK;
    (void)fprintf(stderr, "pdx models: %s\n", why.text);
    return TOOL_EXIT_USAGE;
}
