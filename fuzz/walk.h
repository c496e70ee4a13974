/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks a recorded submission straight from the definition of a job, and holds
 * every piece against what the layouts say: it lies inside the items that the
 * lists name, on both sides, it goes to the tensor that is the same one there,
 * to the heads or channels that are the same ones, and no byte is written
 * twice.
 */
#ifndef PDX_FUZZ_WALK_H
#define PDX_FUZZ_WALK_H

#include "recorder.h"
#include "state/layout.h"

/* One payload of a route, from copies of both layouts. */
struct walk_part {
    const struct pdx_layout *local_layout;
    const struct pdx_layout *remote_layout;
    struct pdxi_tensors local;
    struct pdxi_tensors remote;
    const struct pdx_state_type *type; /* of a component that is known, else NULL */
    bool kv;
    bool component; /* neither: aux */
    bool trust;     /* the route's PDX_ROUTE_TRUST_PAIRING */
    bool without_draft;
};

/* What entry k of a list names: an item, and of a ring the entry in this row. */
struct walk_item {
    int32_t item;
    uint32_t entry;
};

struct walk_items {
    const struct walk_item *local;
    const struct walk_item *remote;
    size_t n;
};

struct walk_piece {
    uint32_t local_region;
    uint32_t remote_region;
    uint64_t src; /* in the region */
    uint64_t dst;
    uint64_t len;
};

#define WALK_PIECES_MAX 4096

struct walk {
    struct walk_piece pieces[WALK_PIECES_MAX];
    size_t n;
    bool full;      /* there were more, so they can't be compared with each other */
    bool own;       /* by a caller's slicer, whose slices may write bytes twice */
    uint64_t bytes; /* of all */
};

/* That a payload's job (NULL: there is none) has the tensors that this rank has to send, and the
 * remote side's tensors all have a sender. Not for components of an unknown type. */
void walk_check_job(const struct walk_part *part, const struct pdx_job *job);

/* Begins with none. */
void walk_init(struct walk *w);
/* Adds the pieces of a submission, checking each. */
void walk_submission(struct walk *w, const struct walk_part *part,
                     const struct recorder_submission *s, const struct walk_items *items);
/* That no byte of the destination is written twice. Sorts the pieces. */
void walk_check_once(struct walk *w);
/* That both move the same, however it is divided. Sorted both. */
void walk_check_same(const struct walk *a, const struct walk *b);

/* The tensor of a list that begins there, or NULL; there is one at most, as they share no bytes. */
const struct pdxi_tensor *walk_tensor_at(const struct pdx_layout *l, const struct pdxi_tensors *t,
                                         uint32_t region, uint64_t off);

/* The tensor of the other side's list that is the same one as `t`, or NULL. Aux buffers go by
 * position. */
const struct pdxi_tensor *walk_counterpart(const struct walk_part *part,
                                           const struct pdxi_tensors *list,
                                           const struct pdxi_tensor *t,
                                           const struct pdxi_tensors *other);

bool walk_is_ring(const struct walk_part *part);

#endif
