/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one kind of item of one rank: KV pages, mamba slots, window
 * pages, aux slots. Tensors lie one after the other with strips between them:
 *
 *     | strip | tensor 0: item 0, 1, .. n-1 | strip | tensor 1: ... | strip |
 *
 * Everything that no request owns holds poison (content.h). Items are handed out
 * in a shuffled order, as in a server that has run for a while, and some, the
 * guards, never are.
 */
#ifndef PDX_TOOL_POOL_H
#define PDX_TOOL_POOL_H

#include "tool/content.h"
#include "tool/sizing.h"

#include <pdx/pdx.h>

/* Longest way between two tensors; what tool_sizing_plan is told. */
#define TOOL_POOL_GAP 8192

/* The first byte that is not what it must be. */
struct tool_fault {
    const struct tool_tensor *tensor; /* NULL: in a strip between tensors */
    int64_t item;                     /* page or slot number; -1 in a strip */
    uint64_t ordinal;                 /* its place in the request; poison: 0 */
    uint64_t off;                     /* bytes into the item; in a strip: into the pool's memory */
    uint8_t want;
    uint8_t got;
    bool poison; /* content was expected, and the item's poison is still there */
};

struct tool_pool {
    char name[PDX_STATE_TYPE_MAX + 1]; /* "kv", "mamba", ..., "aux" */
    uint32_t number;                   /* for content: 0 kv, 1 + c, TOOL_CONTENT_AUX */
    bool slots;                        /* an item is a request's slot, not a page */
    const struct tool_pool *leader; /* whose items it shares (dsa: the KV pages); NULL: its own */
    const struct tool_tensor *tensors; /* borrowed from the model, or &aux */
    struct tool_tensor aux;
    size_t ntensors;
    struct tool_slicing *slicings; /* owned */
    uint64_t *offs;                /* owned; where item 0 of each tensor is */
    uint8_t *mem;                  /* owned mapping; NULL for a pool without tensors */
    uint64_t len;
    uint64_t poison;           /* base */
    struct pdx_region *region; /* owned; NULL before registration */
    uint32_t nitems;
    uint32_t nguards;
    uint32_t nfree;  /* of those that may be handed out */
    int32_t *order;  /* owned; guards first, then the free ones, the next at the end */
    bool *taken;     /* owned */
    uint64_t random; /* state of the shuffle */
};

/* Pool `pos` (see TOOL_POOLS_MAX) of rank `rank` of a side, whose place in its TP group is rank mod
 * tp. Errors: PDX_ENOMEM. */
int tool_pool_init(struct tool_pool *p, const struct tool_model *m, size_t pos, uint32_t tp,
                   uint32_t rank, const struct tool_sizing *sizing, uint64_t seed,
                   struct pdx_error *why);
/* Also after a failed init, and of zeroes. */
void tool_pool_fini(struct tool_pool *p);
int tool_pool_register(struct tool_pool *p, struct pdx_engine *engine, uint32_t rights,
                       struct pdx_error *why);

/* Takes n items; false when there are not as many. Not for a pool with a leader. */
bool tool_pool_take(struct tool_pool *p, uint32_t n, int32_t *ret_items);
void tool_pool_give(struct tool_pool *p, const int32_t *items, uint32_t n);

uint8_t *tool_pool_at(const struct tool_pool *p, size_t tensor, int32_t item);

/* All of the memory, or the given items of it. */
void tool_pool_poison(struct tool_pool *p);
void tool_pool_poison_items(struct tool_pool *p, const int32_t *items, uint32_t n);
/* Each returns false, with the first fault, when a byte is not poison. */
bool tool_pool_check_poison(const struct tool_pool *p, const int32_t *items, uint32_t n,
                            struct tool_fault *ret);
/* Strips, guards and free items; adds the number of items looked at to *count. */
bool tool_pool_check_rest(const struct tool_pool *p, uint64_t *count, struct tool_fault *ret);

/* Content of a request: items[i] is number span.first + i of it. */
void tool_pool_fill(struct tool_pool *p, uint64_t seed, uint64_t request, struct tool_span span,
                    const int32_t *items);
/* Compares, and poisons what was compared while it is in the cache. Goes on after a fault, so that
 * all of it is poison afterwards. Adds the bytes compared to *bytes. */
bool tool_pool_verify(struct tool_pool *p, uint64_t seed, uint64_t request, struct tool_span span,
                      const int32_t *items, uint64_t *bytes, struct tool_fault *ret);

/* "kv, tensor k, layer 3, page 17 (number 4 of the request), offset 0x123: expected 0x45, ..." */
void tool_fault_text(const struct tool_pool *p, const struct tool_fault *f, char *buf, size_t cap);

#endif
