/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends the KV cache and the per-request state of a model from one rank to
 * another. A route pairs the local layout with a peer's layout once, when the
 * two sides meet; every mismatch is found then. After that a send costs a pass
 * over its indices, and everything in it is checked before anything moves.
 */
#ifndef PDX_STATE_H
#define PDX_STATE_H

#include <pdx/api.h>
#include <pdx/error.h>
#include <pdx/layout.h>
#include <pdx/peer.h>
#include <pdx/transfer.h>

PDX_BEGIN_DECLS

struct pdx_route;

/* A list of page, slot or row numbers. `idx` NULL: this side has no such component for this request
 * ("none"), which is not the same as an empty list. */
struct pdx_index_list {
    const int32_t *idx;
    size_t n;
};

enum pdx_route_flags {
    PDX_ROUTE_TRUNCATE_PAGED = 1 /* swa and dsa lists of different length are cut to the shorter,
                                    which is counted and logged; without it they are refused */
};

struct pdx_route_opts {
    size_t size; /* set by PDX_ROUTE_OPTS_INIT */
    uint32_t flags;
};

#define PDX_ROUTE_OPTS_INIT                   \
    {                                         \
        .size = sizeof(struct pdx_route_opts) \
    }

/* Compares two layouts without an engine, as pdx_route_create does.
 * Errors: PDX_EMISMATCH; `why->text` lists every mismatch with both values and what to change.
 * Thread: any. */
PDX_API int pdx_route_check(const struct pdx_layout *local, const struct pdx_layout *remote,
                            struct pdx_error *why);

/* Makes a route from the rank of `local` (prefill) to the rank of `remote` (decode) at `peer`.
 * `opts` may be NULL.
 * Errors: PDX_EMISMATCH (as pdx_route_check), PDX_ESTATE_TYPE, PDX_ESTALE (the remote layout
 * belongs to another incarnation than the peer), PDX_EINVAL, PDX_ENOMEM. Thread: any. Lifetime:
 * until pdx_route_destroy; holds the peer and the local regions, copies both layouts. */
PDX_API int pdx_route_create(struct pdx_engine *engine, const struct pdx_layout *local,
                             struct pdx_peer *peer, const struct pdx_layout *remote,
                             const struct pdx_route_opts *opts, struct pdx_route **ret_route,
                             struct pdx_error *why);

/* NULL is permitted. Transfers under way go on. Thread: any. Errors: none. */
PDX_API void pdx_route_destroy(struct pdx_route *route);

struct pdx_route_counters {
    uint64_t kv_sends;
    uint64_t state_sends; /* components */
    uint64_t aux_sends;
    uint64_t refused;
    uint64_t truncated; /* lists cut because of PDX_ROUTE_TRUNCATE_PAGED */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_route_counters(const struct pdx_route *route,
                                struct pdx_route_counters *ret_counters);

/* Sends pages of the KV cache: every tensor of the route, the heads that the destination holds.
 * Shape: src and dst have the same length; page src.idx[i] goes to page dst.idx[i].
 * Returns: 0 and *ret_status (one transfer). An empty pair of lists is refused.
 * Errors: PDX_EINVAL (lengths differ: both in the text), PDX_ERANGE (a page outside its pool),
 * those of pdx_submit. Nothing was sent on any error. Thread: any; never blocks. Lifetime: the
 * lists are copied; the source pages belong to the transfer until it is terminal. `opts` may be
 * NULL. */
PDX_API int pdx_send_kvcache(struct pdx_route *route, struct pdx_index_list src,
                             struct pdx_index_list dst, const struct pdx_submit_opts *opts,
                             struct pdx_transfer_status **ret_status, struct pdx_error *why);

/* Sends the per-request state, one transfer per component.
 * Shape: src[c] and dst[c] for each of ncomponents, in the layout's order. ret_statuses has room
 * for cap >= ncomponents handles; a component that is "none" on both sides gets NULL. Returns: 0
 * and *ret_n = ncomponents. Errors (all before the first component is queued; nothing was sent):
 *   PDX_EINVAL      "PD state transfer failed: kv_args.state_types is empty but state_indices were
 *                   provided"; "... state component count mismatch (local=.., remote=..)"; "...
 * mamba requires single state index, got src=.., dst=.."; lengths that differ; a component that
 * only one side has PDX_ESTATE_TYPE "... unknown state_type=.." PDX_ENOSPC      cap < ncomponents
 *   PDX_ERANGE and those of pdx_submit
 * Thread: any; never blocks. opts->callback and opts->cq apply to each component's transfer. */
PDX_API int pdx_send_state(struct pdx_route *route, const struct pdx_index_list *src,
                           const struct pdx_index_list *dst, size_t ncomponents,
                           const struct pdx_submit_opts *opts,
                           struct pdx_transfer_status **ret_statuses, size_t cap, size_t *ret_n,
                           struct pdx_error *why);

/* Sends all aux buffers of one request slot (one transfer).
 * Errors: PDX_ERANGE (a slot outside its buffer), PDX_EINVAL (the route has no aux buffers), those
 * of pdx_submit. Thread, lifetime: as pdx_send_kvcache. */
PDX_API int pdx_send_aux(struct pdx_route *route, int32_t src_slot, int32_t dst_slot,
                         const struct pdx_submit_opts *opts,
                         struct pdx_transfer_status **ret_status, struct pdx_error *why);

PDX_END_DECLS

#endif
