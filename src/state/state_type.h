/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of state types. A type is a row, struct pdx_state_type: what its
 * lists of indices may look like, and how its tensors lie on the ranks. A
 * caller's rows stand in front of the library's and have the same form, so
 * that routes and sends know no type by name.
 */
#ifndef PDXI_STATE_STATE_TYPE_H
#define PDXI_STATE_STATE_TYPE_H

#include <pdx/error.h>
#include <pdx/state.h>

#define PDXI_STATE_TYPES_MAX 64 /* of a caller */

struct pdxi_state_types {
    const struct pdx_state_type *own; /* the caller's; borrowed */
    size_t nown;
    bool current_names; /* PDX_ROUTE_CURRENT_NAMES */
};

/* Checks the caller's rows. Returns 0 or PDX_EINVAL. */
int pdxi_state_types_check(const struct pdxi_state_types *types, struct pdx_error *why);

/* The row of a name, old names included where permitted, or NULL. */
const struct pdx_state_type *pdxi_state_types_find(const struct pdxi_state_types *types,
                                                   const char *name);

/* Writes the library's names, "mamba, swa, dsa", for messages. Returns `buf`. */
const char *pdxi_state_type_names(char *buf, size_t cap);

/* What the original says where a type's layouts cannot be matched: between different TP sizes, and
 * between different pipelines. NULL: nothing of its own. */
const char *pdxi_state_type_tp_text(const struct pdx_state_type *type);
const char *pdxi_state_type_pp_text(const struct pdx_state_type *type);

#endif
