/* SPDX-License-Identifier: Apache-2.0
 *
 * A completion queue collects terminal transfers of one engine. It has a file
 * descriptor that is readable while completions wait, so that it fits into a
 * foreign epoll, io_uring or asyncio loop.
 */
#ifndef PDX_COMPLETION_H
#define PDX_COMPLETION_H

#include <pdx/api.h>
#include <pdx/engine.h>
#include <pdx/error.h>
#include <pdx/transfer.h>

PDX_BEGIN_DECLS

struct pdx_completion {
    uint64_t id;                 /* pdx_submit_opts.id */
    void *ctx;                   /* pdx_submit_opts.cq_ctx */
    enum pdx_transfer_code code; /* terminal */
    int err;                     /* enum pdx_err; 0 for DONE */
    uint64_t bytes;              /* confirmed by the peer; LOCAL level: so far */
};

/* Creates a queue with room for `depth` completions that were not polled yet. A submission that
 * names the queue reserves a place, until its completion was polled, or is refused with PDX_EAGAIN;
 * so a completion is never lost.
 * Units: depth 1 .. 2^20; rounded up to a power of two.
 * Errors: PDX_EINVAL (depth), PDX_ENOMEM, PDX_ESYS (eventfd). Thread: any.
 * Lifetime: until pdx_cq_destroy. */
PDX_API int pdx_cq_create(struct pdx_engine *engine, size_t depth, struct pdx_cq **ret_cq,
                          struct pdx_error *why);

/* Gives the queue up. Transfers that name it go on; their completions are dropped. NULL is
 * permitted. Thread: any, not while another thread polls it. Errors: none. */
PDX_API void pdx_cq_destroy(struct pdx_cq *cq);

/* A file descriptor that polls readable (level-triggered) while completions wait. Not to be read,
 * written or closed by the caller.
 * Thread: any. Lifetime: the queue's. Errors: none. */
PDX_API int pdx_cq_fd(const struct pdx_cq *cq);

/* Takes up to `cap` completions in order of completion.
 * Returns: how many. Errors: none. Thread: any, several at once; never blocks. */
PDX_API int pdx_cq_poll(struct pdx_cq *cq, struct pdx_completion *completions, int cap);

/* As pdx_cq_poll, but waits for the first one. cap is at least 1.
 * Returns: how many. Errors: PDX_ETIMEDOUT, PDX_EINVAL (cap below 1), PDX_EREACTOR.
 * Thread: any but a reactor; blocks. */
PDX_API int pdx_cq_wait(struct pdx_cq *cq, struct pdx_completion *completions, int cap,
                        uint64_t timeout_ns);

PDX_END_DECLS

#endif
