/* SPDX-License-Identifier: Apache-2.0
 *
 * What a case expects: a refusal, or the plan that its `out` (or `out_later`)
 * shows. The original told plans in three forms, which become one here: engine
 * calls, messages with aux buffers, and blocks of a convolution state.
 */
#ifndef PDX_VECTORS_WANT_H
#define PDX_VECTORS_WANT_H

#include "vectors_case.h"
#include "vectors_plan.h"

struct vec_want {
    bool refused;         /* the original failed */
    struct vec_plan plan; /* merged */
};

/* `result` is c->out or c->later. What cannot be read is noted in the case. */
void vec_want_init(struct vec_want *w, struct vec_case *c, const json_t *result);
void vec_want_fini(struct vec_want *w);

/* One aux buffer as the original would have sent it in a message. */
struct vec_message {
    uint32_t buffer;
    int32_t slot;
    uint8_t *payload; /* owned */
    size_t len;
};

/* Message number `i` of c->out; an empty one when it cannot be read. */
void vec_message_init(struct vec_message *m, struct vec_case *c, size_t i);
void vec_message_fini(struct vec_message *m);
size_t vec_nmessages(struct vec_case *c);

#endif
