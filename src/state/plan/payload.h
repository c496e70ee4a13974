/* SPDX-License-Identifier: Apache-2.0
 *
 * What a planner answers: which local tensor goes to which remote one, and
 * which slices of their items. The memory is the caller's, sized before the
 * planner runs, so a planner can't fail for want of it.
 */
#ifndef PDXI_STATE_PLAN_PAYLOAD_H
#define PDXI_STATE_PLAN_PAYLOAD_H

#include "state/plan/findings.h"
#include "state/plan/tensor.h"
#include <pdx/state.h>

struct pdxi_match {
    uint32_t local; /* positions in the tensors of struct pdxi_ask */
    uint32_t remote;
    uint32_t first_slice;
    uint32_t nslices; /* 0: whole items */
};

struct pdxi_payload {
    struct pdxi_match *matches; /* room for one per local tensor */
    uint32_t nmatches;          /* 0: another rank sends these bytes, or there are none */
    struct pdx_slice *slices;   /* room for slices_cap */
    uint32_t nslices;
    uint32_t slices_cap;  /* the sum of max(1, ngroups) over the local tensors; with a slicer
                             PDX_SLICES_MAX for each */
    uint8_t *used;        /* scratch: room for one per remote tensor */
    uint64_t local_items; /* the least of the tensors that pair, whoever sends them; 0: none do */
    uint64_t remote_items;
};

/* The question put to a planner. */
struct pdxi_ask {
    const char *what; /* "kv", "component 1 (swa)", for its sentences */
    const struct pdxi_rank *local;
    const struct pdxi_rank *remote;
    struct pdxi_tensors local_tensors;
    struct pdxi_tensors remote_tensors;
    const struct pdx_state_type *type; /* of a state component, else NULL */
    const char *tp_text;               /* what the original says about its type, or NULL */
    const char *pp_text;
    bool trust;         /* PDX_ROUTE_TRUST_PAIRING */
    bool without_draft; /* PDX_ROUTE_WITHOUT_DRAFT */
};

/* Which tensors of a list to pair: those of one part, of the draft model or not. State tensors have
 * part 0. */
struct pdxi_select {
    enum pdx_kv_part part;
    uint32_t draft; /* PDX_TENSOR_DRAFT or 0 */
};

/* How many tensors of the list are selected. */
uint32_t pdxi_payload_count(const struct pdxi_tensors *t, struct pdxi_select which);

/* Pairs the selected tensors of both sides and appends the matches: by layer number where the
 * layouts give one, repeated numbers in order of appearance; else by position. Returns false, with
 * a finding, when they do not pair. */
bool pdxi_payload_pair(struct pdxi_payload *p, const struct pdxi_ask *ask, struct pdxi_select which,
                       struct pdxi_findings *f);

/* Appends a match, and notes how many items both tensors have. */
void pdxi_payload_match(struct pdxi_payload *p, const struct pdxi_ask *ask, uint32_t local,
                        uint32_t remote);

/* Appends a slice. What was appended since p->nslices was `first` is one list. */
void pdxi_payload_add(struct pdxi_payload *p, const struct pdx_slice *slice);

/* Gives the list that begins at `first` to `m`, the last match so far, or lets it share an equal
 * list of a match not far before it. */
void pdxi_payload_close(struct pdxi_payload *p, uint32_t first, struct pdxi_match *m);

#endif
