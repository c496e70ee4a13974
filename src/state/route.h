/* SPDX-License-Identifier: Apache-2.0
 *
 * A route: the prepared jobs of every payload between two ranks, and the rules
 * by which a send's index lists are judged. Never changed after creation but
 * for its counters, so that any number of threads may send over it.
 */
#ifndef PDXI_STATE_ROUTE_H
#define PDXI_STATE_ROUTE_H

#include "state/pairing.h"
#include "state/plan/ring_span.h"

#include <stdatomic.h>

/* The pairs of a job are in the order of their layers, those of the draft model last. */
struct pdxi_route_layer {
    int32_t layer;
    uint32_t first_pair;
};

struct pdxi_route_part {
    struct pdx_prepared *prepared;   /* counted; NULL: nothing to send from this rank */
    struct pdxi_route_layer *layers; /* owned; ascending; then one with PDX_LAYERS_END where the
                                        draft begins, which is npairs without one */
    uint32_t nlayers;                /* 0: the layouts do not tell layers */
    uint32_t npairs;
    bool told;            /* the layouts tell layers, also when there is no job */
    uint64_t local_items; /* indices are below that in every tensor, also when there is no job */
    uint64_t remote_items;
    struct pdxi_ring local_ring; /* of types with PDX_STATE_RING_SPAN */
    struct pdxi_ring remote_ring;
    bool known; /* a component whose type is known */
    uint32_t min_indices;
    uint32_t max_indices; /* 0: any number */
    uint32_t type_flags;  /* enum pdx_state_flags */
    char type_name[PDX_STATE_TYPE_MAX + 1];
};

struct pdx_route {
    uint32_t flags; /* enum pdx_route_flags */
    pdx_log_fn log;
    void *log_ctx; /* borrowed */
    struct pdxi_route_part kv;
    struct pdxi_route_part aux;
    bool has_kv; /* the layouts have one, whoever sends it */
    bool has_aux;
    struct pdxi_route_part *components; /* owned */
    uint32_t ncomponents;               /* the same on both sides */
    _Atomic uint64_t kv_sends;
    _Atomic uint64_t state_sends;
    _Atomic uint64_t aux_sends;
    _Atomic uint64_t refused;
    _Atomic uint64_t truncated;
    _Atomic uint64_t elsewhere;
};

static inline void pdxi_route_count(_Atomic uint64_t *counter, uint64_t n)
{
    (void)atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Sorts the pairs by layer, has the engine check and keep the job, and keeps what sends are judged
 * by. Returns 0, PDX_ENOMEM, or what pdx_prepare returned. */
int pdxi_route_part_init(struct pdxi_route_part *ret, struct pdx_peer *peer,
                         struct pdxi_pairing_part *part, const struct pdx_layout *local,
                         const struct pdx_layout *remote, struct pdx_error *why);
void pdxi_route_part_fini(struct pdxi_route_part *part);

/* Checks a range of layers. Returns 0 or PDX_EINVAL. */
int pdxi_route_check_layers(const struct pdx_layers *layers, struct pdx_error *why);

/* Narrows `items` to the pairs of the layers. Returns whether any pair is left. */
bool pdxi_route_part_select(const struct pdxi_route_part *part, const struct pdx_layers *layers,
                            struct pdx_items *items);

/* Judges indices that no job will: those of a payload that another rank sends. Returns 0,
 * PDX_ERANGE, PDX_EINVAL for a destination that comes twice, or PDX_ENOMEM. */
int pdxi_route_part_check_unsent(const struct pdxi_route_part *part, const char *what,
                                 const struct pdx_items *items, struct pdx_error *why);

/* Their ranges alone; says which index of which side is outside. Returns 0 or PDX_ERANGE. */
int pdxi_route_part_check_items(const struct pdxi_route_part *part, const char *what,
                                const struct pdx_items *items, struct pdx_error *why);

/* Tells the route's log, printf-like. */
void pdxi_route_log(const struct pdx_route *route, enum pdx_log_level level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* Hands an error of the engine on, with the name of the payload in front of its text. */
int pdxi_route_refuse(struct pdx_error *why, const char *what, const struct pdx_error *from);

/* A list that has indices has a pointer to them. Returns 0 or PDX_EINVAL. */
int pdxi_route_check_list(const char *what, const char *side, struct pdx_index_list list,
                          struct pdx_error *why);

#endif
