/* SPDX-License-Identifier: Apache-2.0
 *
 * A route: the prepared jobs of every payload between two ranks, and the rules
 * by which a send's index lists are judged. Never changed after creation but
 * for its counters, so that any number of threads may send over it.
 */
#ifndef PDXI_STATE_ROUTE_H
#define PDXI_STATE_ROUTE_H

#include "state/layout.h"
#include "state/state_type.h"
#include <pdx/state.h>

#include <stdatomic.h>

struct pdxi_route_part {
    struct pdx_prepared *prepared;      /* counted; NULL: nothing to send from this rank */
    const struct pdxi_state_type *type; /* of a component; NULL: not known */
    char type_name[PDX_STATE_TYPE_MAX + 1];
};

struct pdx_route {
    uint32_t flags; /* enum pdx_route_flags */
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

/* Hands an error of the engine on, with the name of the payload in front of its text. */
int pdxi_route_refuse(struct pdx_error *why, const char *what, const struct pdx_error *from);

/* A list that has indices has a pointer to them. Returns 0 or PDX_EINVAL. */
int pdxi_route_check_list(const char *what, const char *side, struct pdx_index_list list,
                          struct pdx_error *why);

#endif
