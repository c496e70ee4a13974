/* SPDX-License-Identifier: Apache-2.0
 *
 * What a send must come to, told once more from doc/state.md and the headers,
 * and apart from src/state: whether it is refused, and if not, which payloads
 * move and which items their lists name.
 */
#ifndef PDX_FUZZ_JUDGE_H
#define PDX_FUZZ_JUDGE_H

#include "index_lists.h"
#include "state/route.h"
#include "walk.h"

/* A route with copies of what it was made from. */
struct judge {
    const struct pdx_route *route; /* only asked what it prepared */
    const struct pdx_layout *local;
    const struct pdx_layout *remote;
    uint32_t flags; /* enum pdx_route_flags */
    const struct pdx_state_type *types;
    size_t ntypes;
    size_t ring_entries; /* of the components of one send that were judged so far; begins with 0 */
};

enum verdict {
    VERDICT_REFUSED,
    VERDICT_NOTHING,   /* accepted, nothing moves */
    VERDICT_ELSEWHERE, /* accepted, another rank sends it */
    VERDICT_SENT
};

#define JUDGE_ITEMS_MAX PDXI_RING_MAX

/* What the lists of one payload name. */
struct judge_items {
    struct walk_item local[JUDGE_ITEMS_MAX];
    struct walk_item remote[JUDGE_ITEMS_MAX];
    size_t n;
    bool cut; /* one of the lists was longer */
};

/* The row of a type's name, or NULL. */
const struct pdx_state_type *judge_type(const struct judge *j, const char *name);

/* Payloads by number: components, or one of these. */
#define JUDGE_KV  (-1)
#define JUDGE_AUX (-2)

struct walk_part judge_part(const struct judge *j, int payload);
/* Checks what the route prepared. */
void judge_route(const struct judge *j);

/* Entries of a row where a component's lists are spans, else 0. */
uint64_t judge_ring(const struct judge *j, int payload, bool remote);

/* Judges the lists of one payload; `layers` NULL: all. A range is judged before. */
enum verdict judge_lists(struct judge *j, int payload, const struct pdx_layers *layers,
                         struct pdx_index_list src, struct pdx_index_list dst,
                         struct judge_items *ret);

bool judge_layers(const struct pdx_layers *layers);

#endif
