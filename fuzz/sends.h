/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends over a route, read from an input: KV cache, state and aux, whole or by
 * layers, with hostile lists and options. Each outcome is held against the
 * judge's verdict, what was recorded is walked, and the route's counters must
 * follow.
 */
#ifndef PDX_FUZZ_SENDS_H
#define PDX_FUZZ_SENDS_H

#include "judge.h"

/* Until the input ends, but not for ever. `j` is the route's. */
void sends_run(struct judge *j, struct pdx_route *route, struct fuzz_input *in);

/* That an error is filled in as it should be. */
void sends_check_error(int rc, const struct pdx_error *why);
/* Makes a text without end of it, for sends_check_error to find an end. */
void sends_spoil_error(struct pdx_error *why);

#endif
