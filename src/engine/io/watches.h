/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of watches that both backends keep: a slot per watch, and a token
 * of slot and generation that travels through the kernel. A slot gets another
 * generation whenever its watch leaves, so that events the kernel had in hand
 * for the old one are recognised and dropped.
 */
#ifndef PDXI_IO_WATCHES_H
#define PDXI_IO_WATCHES_H

#include "engine/io/io.h"

#include <assert.h>
#include <stdlib.h>

struct pdxi_watch_slot {
    struct pdxi_watch *watch; /* borrowed from its owner until remove; NULL: free */
    uint32_t generation;
    uint32_t next_free; /* number of the free slot below; 0 ends */
};

/* Slots are numbered from 1. */
struct pdxi_watches {
    struct pdxi_watch_slot *slots; /* owned */
    uint32_t max;
    uint32_t used; /* slots below this number plus 1 were in use at least once */
    uint32_t free; /* number of the first free slot of those; 0: none */
};

static inline int pdxi_watches_init(struct pdxi_watches *t, uint32_t max)
{
    *t = (struct pdxi_watches){.max = max};
    t->slots = calloc((size_t)max + 1, sizeof *t->slots);
    return t->slots ? 0 : PDX_ENOMEM;
}

static inline void pdxi_watches_fini(struct pdxi_watches *t)
{
    free(t->slots);
}

/* Gives the watch a slot. Returns false when all are taken. */
static inline bool pdxi_watches_add(struct pdxi_watches *t, struct pdxi_watch *w)
{
    uint32_t slot = t->free;

    assert(w->slot == 0);
    if (slot)
        t->free = t->slots[slot].next_free;
    else if (t->used < t->max)
        slot = ++t->used;
    else
        return false;
    t->slots[slot].watch = w;
    w->slot = slot;
    w->generation = t->slots[slot].generation;
    return true;
}

static inline void pdxi_watches_remove(struct pdxi_watches *t, struct pdxi_watch *w)
{
    struct pdxi_watch_slot *s = &t->slots[w->slot];

    assert(s->watch == w);
    s->watch = NULL;
    s->generation++;
    s->next_free = t->free;
    t->free = w->slot;
    w->slot = 0;
}

static inline uint64_t pdxi_watch_token(const struct pdxi_watch *w)
{
    return (uint64_t)w->generation << 32 | w->slot;
}

/* The watch that a token stands for, or NULL when it left meanwhile. */
static inline struct pdxi_watch *pdxi_watches_find(const struct pdxi_watches *t, uint64_t token)
{
    const struct pdxi_watch_slot *s = &t->slots[(uint32_t)token];

    return s->generation == token >> 32 ? s->watch : NULL;
}

#endif
