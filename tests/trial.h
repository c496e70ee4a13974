/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial puts content on both sides of a pair, lets the test move some of it,
 * and compares the side that receives with a copy in which the same bytes were
 * moved one run at a time.
 */
#ifndef PDX_TESTS_TRIAL_H
#define PDX_TESTS_TRIAL_H

#include "conformance.h"

struct trial {
    struct conf *c;
    enum pdx_op op;
    uint8_t *want; /* owned */
};

void trial_open(struct trial *t, struct conf *c, enum pdx_op op, uint64_t seed);
/* What the transfer is expected to move; offsets into the memory of both sides. */
void trial_move(struct trial *t, uint64_t local, uint64_t remote, uint64_t len);
/* Compares; `what` and `seed` name the trial when it fails. */
void trial_close(struct trial *t, const char *what, uint64_t seed);

#endif
