/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends a model (state_model.h) from every prefill rank that feeds each decode
 * rank, whole or cut at random into ranges of layers and chunks of the list in
 * any order, and checks every byte of every decode rank. What is drawn at
 * random follows from a seed.
 */
#ifndef PDX_STATE_RUN_H
#define PDX_STATE_RUN_H

#include "state_model.h"

/* A number below `below`; moves the seed on, which is never 0. */
size_t sm_draw(uint64_t *seed, size_t below);

/* Draws n different numbers below nitems: ascending and descending runs of a few, and jumps. */
#define SM_ITEMS_MAX 64

void sm_indices(uint64_t *seed, int32_t *idx, size_t n, size_t nitems);

/* A list and how it is sent. */
struct sm_plan {
    const struct sm_list *list;
    struct sm_side prefill;
    struct sm_side decode;
    const int32_t *src;
    const int32_t *dst;
    size_t n;
    size_t nitems;
    const struct pdx_route_opts *opts;
    bool layers;   /* in ranges of layers */
    bool chunks;   /* in parts of the lists */
    uint64_t seed; /* of what is drawn; 0 with `layers`: each layer by itself */
};

/* Whether a prefill rank has to do with a decode rank: TP sizes of which one divides the other. */
bool sm_sizes_meet(uint32_t a, uint32_t b);

/* Fails the test at the first wrong byte. Returns how many routes had nothing to send. */
size_t sm_run(const struct sm_plan *plan);

/* The common case: both sides without pipeline stages, everything in one call. */
size_t sm_transfer(const struct sm_list *l, uint32_t prefill_tp, uint32_t decode_tp,
                   const int32_t *src, const int32_t *dst, size_t n, size_t nitems);

#endif
