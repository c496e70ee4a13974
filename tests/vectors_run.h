/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries out the case's operation through the public API - layouts, the encoded
 * form of the remote one, a route, a send - with an engine that records. Which
 * operations there are is a table; adding one that is not planned yet is a row
 * with a function.
 */
#ifndef PDX_VECTORS_RUN_H
#define PDX_VECTORS_RUN_H

#include "vectors_case.h"
#include "vectors_plan.h"

struct vec_outcome;

struct vec_op {
    const char *name;
    void (*run)(struct vec_case *c, uint32_t flags, struct vec_outcome *ret); /* NULL: skipped */
    const char *reason;                                                       /* why it is */
};

/* NULL when there is none of that name. */
const struct vec_op *vec_op_find(const char *name);

#define VEC_LOG_MAX 4096

struct vec_outcome {
    bool refused; /* by the library, with the text */
    bool broken;  /* the library contradicts itself, as the text says: right for no case */
    char text[PDX_ERROR_TEXT_MAX + 256];
    char log[VEC_LOG_MAX]; /* lines of the route, each with its end */
    size_t log_len;
    struct vec_plan plan; /* merged; empty when refused */
};

void vec_outcome_fini(struct vec_outcome *o);

#endif
