/* SPDX-License-Identifier: Apache-2.0
 *
 * How many pages and slots a rank's pools get: as many as the requests in flight
 * need, and no more than the memory limit allows. Pure arithmetic; what had to
 * be made smaller stays visible in the result.
 */
#ifndef PDX_TOOL_SIZING_H
#define PDX_TOOL_SIZING_H

#include "tool/model.h"

#define TOOL_COMPONENTS_MAX 14
/* Pool 0 is the KV cache, 1 + c component c, the last one aux. */
#define TOOL_POOLS_MAX (TOOL_COMPONENTS_MAX + 2)

/* A pool has at most this many items, so that a list of them stays a message of some megabytes. */
#define TOOL_ITEMS_MAX (UINT32_C(1) << 20)

struct tool_sizing {
    uint32_t items[TOOL_POOLS_MAX];  /* guards included */
    uint32_t guards[TOOL_POOLS_MAX]; /* never handed out */
    size_t npools;
    uint32_t inflight;   /* requests that have slots at the same time */
    uint32_t max_tokens; /* the longest request that fits */
    uint64_t bytes;      /* of one rank */
};

struct tool_span { /* items of a pool that a request uses: ordinals in the request */
    uint64_t first;
    uint32_t n;
};

/* Which items of pool `pool` a request of `tokens` tokens has: all its pages, those that cover the
 * window, or one slot; none where the model, or this stage of it, has no such tensors. */
struct tool_span tool_sizing_span(const struct tool_model *m, size_t pool, uint32_t tokens);

/* The tensors of pool `pool`; `aux` is the caller's room for the one of the aux pool. */
const struct tool_tensor *tool_sizing_tensors(const struct tool_model *m, size_t pool,
                                              struct tool_tensor *aux, size_t *ret_n);

static inline size_t tool_sizing_npools(const struct tool_model *m)
{
    return m->ncomponents + 2;
}

/* Whether the pool takes its indices from the KV cache. */
bool tool_sizing_follows_kv(const struct tool_model *m, size_t pool);

/* Sizes one rank of a group of `tp` for `inflight` requests of at most `max_tokens`, within `limit`
 * bytes of which every tensor also takes up to `gap` for the strips between them. `guarded`: keep
 * some items back that nobody may write to.
 * Errors: PDX_ENOMEM, the sentence has what is needed for one request of one page, what there is,
 * and the option to change; PDX_EINVAL for a model with too many components. */
int tool_sizing_plan(const struct tool_model *m, uint32_t tp, uint64_t limit, uint64_t gap,
                     uint32_t inflight, uint32_t max_tokens, bool guarded, struct tool_sizing *ret,
                     struct pdx_error *why);

/* The limit for one process when the user gave none: a quarter of what tool_memory_available says,
 * at most 4 GiB. */
uint64_t tool_sizing_default_limit(void);

#endif
