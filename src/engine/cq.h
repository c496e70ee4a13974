/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion queues. A submission reserves its place, so that the reactor
 * always finds room; the eventfd is readable exactly while entries wait.
 */
#ifndef PDXI_CQ_H
#define PDXI_CQ_H

#include <pdx/completion.h>

/* A place for one completion of a transfer of `engine`. Returns 0, PDX_EAGAIN, or PDX_EINVAL for a
 * queue of another engine. Any thread. */
int pdxi_cq_reserve(struct pdx_cq *cq, const struct pdx_engine *engine, struct pdx_error *why);
/* Gives the place of a refused submission back. */
void pdxi_cq_unreserve(struct pdx_cq *cq);
/* Fills a reserved place and gives the transfer's reference back. Reactor thread. */
void pdxi_cq_push(struct pdx_cq *cq, const struct pdx_completion *completion);

#endif
