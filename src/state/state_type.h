/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of state types. A type is a row: what its lists of indices may look
 * like, and the planner that knows how its tensors are split. Adding a type is
 * adding a row; engine, routes and sends do not change.
 */
#ifndef PDXI_STATE_STATE_TYPE_H
#define PDXI_STATE_STATE_TYPE_H

#include "state/plan/planners.h"

/* What it means that the lists of both sides differ in length. */
enum pdxi_length_rule {
    PDXI_LENGTHS_EQUAL = 1, /* an error */
    PDXI_LENGTHS_MAY_CUT    /* an error, unless the route permits cutting to the shorter one */
};

struct pdxi_state_type {
    const char *name;
    bool single; /* exactly one index on each side; otherwise one or more */
    enum pdxi_length_rule lengths;
    pdxi_plan_fn plan; /* also the rule for different TP and PP sizes */
};

/* The row of a type, or NULL for a type that is not known. */
const struct pdxi_state_type *pdxi_state_type_find(const char *name);

/* Writes the known names, "mamba, swa, dsa", for messages. Returns `buf`. */
const char *pdxi_state_type_names(char *buf, size_t cap);

#endif
