/* SPDX-License-Identifier: Apache-2.0
 *
 * State types of a caller, read from an input: rows that may break the rules of
 * a row, with slicers that give what a sound one would, or anything else. What
 * a slicer gives depends on the question alone, so that a route that is checked
 * and one that is made get the same.
 */
#ifndef PDX_FUZZ_OWN_TYPES_H
#define PDX_FUZZ_OWN_TYPES_H

#include "input.h"
#include <pdx/state.h>

#define OWN_TYPES_MAX  3
#define OWN_SLICES_MAX 4

/* What a slicer gives. */
struct own_slicer {
    int n; /* its answer */
    uint8_t how[OWN_SLICES_MAX];
    struct pdx_slice raw[OWN_SLICES_MAX];
};

struct own_types {
    struct pdx_state_type rows[OWN_TYPES_MAX];
    struct own_slicer slicers[OWN_TYPES_MAX];
    size_t n;
};

void own_types_read(struct own_types *t, struct fuzz_input *in);

#endif
