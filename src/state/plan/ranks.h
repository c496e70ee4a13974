/* SPDX-License-Identifier: Apache-2.0
 *
 * Which prefill rank has business with which decode rank, and which of several
 * ranks that hold the same bytes is the one that sends them.
 */
#ifndef PDXI_STATE_PLAN_RANKS_H
#define PDXI_STATE_PLAN_RANKS_H

#include "state/plan/findings.h"
#include "state/plan/tensor.h"

/* Whether one TP size divides the other; without that no rank of one side covers ranks of the
 * other. */
bool pdxi_ranks_fit(const struct pdxi_rank *local, const struct pdxi_rank *remote);

/* Finds TP sizes that do not fit, pipeline stages that do not meet, and, unless `trust`, a pair of
 * ranks that do not belong together. */
void pdxi_ranks_check(const struct pdxi_rank *local, const struct pdxi_rank *remote, bool trust,
                      struct pdxi_findings *f);

/* Whether `local` sends what is the same on every rank of its TP group. */
bool pdxi_ranks_first_copy(const struct pdxi_rank *local, const struct pdxi_rank *remote,
                           bool trust);

/* Whether `local` sends aux: the last stage knows the first token, unless each stage of the peer
 * has a stage of its own. */
bool pdxi_ranks_send_aux(const struct pdxi_rank *local, const struct pdxi_rank *remote, bool trust);

#endif
