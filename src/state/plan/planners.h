/* SPDX-License-Identifier: Apache-2.0
 *
 * The planners. Each pairs the tensors of one payload of two ranks and says
 * which parts of their items move; what does not fit becomes a finding. Pure:
 * no memory, no system, no engine.
 */
#ifndef PDXI_STATE_PLAN_PLANNERS_H
#define PDXI_STATE_PLAN_PLANNERS_H

#include "state/plan/payload.h"

/* `p` comes empty, with room as struct pdxi_payload says. Without findings and without matches the
 * payload is another rank's business. */
typedef void (*pdxi_plan_fn)(const struct pdxi_ask *ask, struct pdxi_payload *p,
                             struct pdxi_findings *f);

/* KV cache: keys and values with heads split over TP ranks, or latents that are the same on every
 * TP rank; and those of a draft model. */
void pdxi_plan_kv(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f);

/* One state component, by the row of its type. */
void pdxi_plan_state(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f);

/* Aux buffers, one to one. */
void pdxi_plan_aux(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f);

#endif
