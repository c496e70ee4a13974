/* SPDX-License-Identifier: Apache-2.0
 *
 * One rank of one side: its pools, its layout, and where a request's items lie
 * in them. A rank has the tensors of its pipeline stage, and of these its share
 * in the TP group.
 */
#ifndef PDX_TOOL_RANK_H
#define PDX_TOOL_RANK_H

#include "tool/group.h"
#include "tool/pool.h"

struct tool_rank {
    const struct tool_group *group; /* borrowed */
    const struct tool_model *model; /* the stage's, of the group */
    uint32_t rank;                  /* in the group */
    bool swap_layers; /* told before registration: the layout has the numbers of two layers of the
                         KV cache exchanged, a mistake that comparing must find */
    size_t npools;
    struct tool_pool pools[TOOL_POOLS_MAX];
    struct pdx_layout *layout; /* owned; NULL before registration */
};

/* The items of one request on one rank, a list per pool. */
struct tool_placement {
    int32_t *items[TOOL_POOLS_MAX]; /* owned; NULL: none (or those of the leader) */
    struct tool_span spans[TOOL_POOLS_MAX];
};

/* Maps the pools. Errors: PDX_ENOMEM, PDX_ESYS. After an error tool_rank_fini is due as well. */
int tool_rank_init(struct tool_rank *r, const struct tool_group *g, uint32_t rank,
                   const struct tool_sizing *sizing, uint64_t seed, struct pdx_error *why);
/* Whether the rank has two layers of the KV cache, which swap_layers takes. */
bool tool_rank_can_swap(const struct tool_rank *r);
/* Registers the pools and makes the layout. */
int tool_rank_register(struct tool_rank *r, struct pdx_engine *engine, uint32_t rights,
                       struct pdx_error *why);
void tool_rank_fini(struct tool_rank *r);

/* Takes the items of a request. Errors: PDX_EAGAIN (a pool has not as many free; nothing was
 * taken), PDX_ENOMEM. */
int tool_rank_place(struct tool_rank *r, uint32_t tokens, struct tool_placement *ret);
void tool_rank_release(struct tool_rank *r, struct tool_placement *pl);

/* The list of pool `pool`, the leader's where it has one. */
const int32_t *tool_placement_items(const struct tool_rank *r, const struct tool_placement *pl,
                                    size_t pool);

void tool_rank_poison(struct tool_rank *r);
void tool_rank_fill(struct tool_rank *r, uint64_t seed, uint64_t request,
                    const struct tool_placement *pl);

/* Each returns false with a sentence when a byte is wrong. */
bool tool_rank_check_poison(const struct tool_rank *r, const struct tool_placement *pl, char *text,
                            size_t cap);
bool tool_rank_verify(struct tool_rank *r, uint64_t seed, uint64_t request,
                      const struct tool_placement *pl, uint64_t *bytes, char *text, size_t cap);
bool tool_rank_check_rest(const struct tool_rank *r, uint64_t *count, char *text, size_t cap);
/* Poisons a request's items without a look at them. */
void tool_rank_forget(struct tool_rank *r, const struct tool_placement *pl);

#endif
