/* SPDX-License-Identifier: Apache-2.0
 *
 * How one side splits a model: pipeline stages, each a run of neighbouring
 * layers, and in each stage a tensor-parallel group of ranks.
 *
 *     TP 2, PP 2      stage 0          stage 1
 *     layers          0 .. 15          16 .. 31
 *     rank            0     1          2     3
 *     rank in TP      0     1          0     1
 *
 * A stage is a model of its own: it has the tensors of its layers, under their
 * numbers in the whole model. So content, pools and layouts need not know about
 * stages, and what arrives is compared where the whole model has it. A stage
 * may have no layer of some kind; its pool then has no tensors.
 */
#ifndef PDX_TOOL_GROUP_H
#define PDX_TOOL_GROUP_H

#include "tool/sizing.h"

#define TOOL_TP_MAX    256
#define TOOL_PP_MAX    64
#define TOOL_RANKS_MAX 1024 /* of one side: TP x PP */

struct tool_stage {
    uint32_t first;          /* layer of the whole model */
    uint32_t end;            /* one past the last */
    struct tool_model model; /* owned */
};

struct tool_group {
    uint32_t tp;
    uint32_t pp;
    struct tool_stage *stages; /* owned; pp of them */
};

/* Refuses sizes that cannot split the model, with the sizes and what they must be. */
int tool_group_check(const struct tool_model *m, uint32_t tp, uint32_t pp, struct pdx_error *why);

/* The layers [*ret_first, *ret_end) of stage `stage`: all stages have as many, and where that does
 * not come out even the last ones have one more, as in SGLang. */
void tool_group_layers(uint32_t nlayers, uint32_t pp, uint32_t stage, uint32_t *ret_first,
                       uint32_t *ret_end);

/* Sizes that passed tool_group_check. Copies what it needs of the model. Errors: PDX_ENOMEM; then
 * tool_group_fini is due as well. */
int tool_group_init(struct tool_group *g, const struct tool_model *m, uint32_t tp, uint32_t pp,
                    struct pdx_error *why);
/* Also of zeroes. */
void tool_group_fini(struct tool_group *g);

static inline uint32_t tool_group_nranks(const struct tool_group *g)
{
    return g->tp * g->pp;
}

static inline const struct tool_stage *tool_group_stage(const struct tool_group *g, uint32_t rank)
{
    return &g->stages[rank / g->tp];
}

/* Sizes all ranks alike, as tool_sizing_plan does one: as many requests, tokens and items as the
 * stage that needs most has room for. ret->bytes is the largest rank's. */
int tool_group_plan(const struct tool_group *g, uint64_t limit, uint64_t gap, uint32_t inflight,
                    uint32_t max_tokens, bool guarded, struct tool_sizing *ret,
                    struct pdx_error *why);

#endif
