/* SPDX-License-Identifier: Apache-2.0
 *
 * What two layouts have to do with each other: for each payload (kv, aux, every
 * state component) which tensors pair and which parts of their items move, or
 * everything that does not fit.
 */
#ifndef PDXI_STATE_PAIRING_H
#define PDXI_STATE_PAIRING_H

#include "state/layout.h"
#include "state/plan/payload.h"
#include "state/state_type.h"

struct pdxi_pairing_part {
    const struct pdx_state_type *type; /* of a component; NULL: not a component, or not known.
                                          Borrowed from the types that were asked with */
    struct pdxi_tensors local;
    struct pdxi_tensors remote;
    struct pdxi_payload payload;
    uint32_t slots; /* of a component */
    char what[64];  /* "kv", "component 1 (swa)" */
};

struct pdxi_pairing {
    struct pdxi_pairing_part *parts; /* owned: kv, aux, then the components */
    uint32_t nparts;
};

#define PDXI_PAIRING_KV        0
#define PDXI_PAIRING_AUX       1
#define PDXI_PAIRING_COMPONENT 2

/* Compares and pairs under `flags` (enum pdx_route_flags). A component of an unknown type stays
 * without matches. Returns 0, PDX_EMISMATCH with all findings, or PDX_ENOMEM. */
int pdxi_pairing_init(struct pdxi_pairing *ret, const struct pdx_layout *local,
                      const struct pdx_layout *remote, const struct pdxi_state_types *types,
                      uint32_t flags, struct pdx_error *why);
void pdxi_pairing_fini(struct pdxi_pairing *p);

#endif
