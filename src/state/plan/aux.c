/* SPDX-License-Identifier: Apache-2.0
 *
 * aux: small host buffers of one slot per request, the same on every rank.
 */
#include "state/plan/planners.h"
#include "state/plan/ranks.h"

void pdxi_plan_aux(const struct pdxi_ask *ask, struct pdxi_payload *p, struct pdxi_findings *f)
{
    const struct pdxi_tensors *l = &ask->local_tensors;
    const struct pdxi_tensors *r = &ask->remote_tensors;

    if (!pdxi_ranks_fit(ask->local, ask->remote))
        return;
    for (uint32_t i = 0; i < l->n && i < r->n; i++)
        pdxi_payload_match(p, ask, i, i);
    if (!pdxi_ranks_send_aux(ask->local, ask->remote, ask->trust)) {
        p->nmatches = 0;
        return;
    }
    if (l->n != r->n) {
        pdxi_findings_add(f,
                          "%s: buffer count: local %u, remote %u. Register the same aux buffers on "
                          "both sides.",
                          ask->what, l->n, r->n);
        return;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->at[i].item_len != r->at[i].item_len)
            pdxi_findings_add(f,
                              "%s buffer %u: item_len: local %llu, remote %llu. Configure the same "
                              "metadata buffers on both sides.",
                              ask->what, i, (unsigned long long)l->at[i].item_len,
                              (unsigned long long)r->at[i].item_len);
    }
}
