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
#include <pdx/engine.h>
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

/* --- State types ---
 *
 * A type is a row: how many indices a request has of it, what different lengths mean, and how its
 * tensors lie on tensor-parallel ranks. The library's own are listed by pdx_state_type_at; a caller
 * gives its own to a route in the same form. */

enum pdx_state_flags {
    PDX_STATE_MAY_TRUNCATE = 1,   /* lists of different length are cut where the route permits it */
    PDX_STATE_REPLICATED = 2,     /* tensors without shard_dim are the same on every TP rank */
    PDX_STATE_REPLICATED_MLA = 4, /* so they are when attention is MLA */
    PDX_STATE_KV_HEADS = 8,  /* the split axis is the KV heads: copies as total_kv_head_num says */
    PDX_STATE_SLOTS = 16,    /* pdx_component.slots raises max_indices */
    PDX_STATE_RING_SPAN = 32 /* a list is one span of a ring: see doc/state.md, dsa_tail */
};

/* What a slicer is asked: which parts of one tensor go from one rank to another. */
struct pdx_slicer_ask {
    const char *type;
    uint32_t local_tp_size;
    uint32_t local_tp_rank; /* below local_tp_size */
    uint32_t remote_tp_size;
    uint32_t remote_tp_rank;
    uint32_t tensor;          /* position in the local component */
    struct pdx_tensor local;  /* region is NULL */
    struct pdx_tensor remote; /* as the peer told it: any values that pass pdx_layout_create */
};

#define PDX_SLICES_MAX 64 /* that a slicer may give for one tensor */

/* Writes the slices of a pair of items. Called while a route is made or checked, for each pair of
 * tensors, on that thread. Slices that leave an item are refused by the route.
 * Returns: how many slices (at most PDX_SLICES_MAX), 0 when another rank sends this tensor, or a
 * negative code after writing to ret_text (text_cap bytes) what does not fit and what to change. */
typedef int (*pdx_slicer_fn)(void *ctx, const struct pdx_slicer_ask *ask,
                             struct pdx_slice *ret_slices, char *ret_text, size_t text_cap);

struct pdx_state_type {
    size_t size;          /* set by PDX_STATE_TYPE_INIT */
    const char *name;     /* 1 to PDX_STATE_TYPE_MAX printable characters */
    uint32_t min_indices; /* 0: a request may have none; both lists are then empty */
    uint32_t max_indices; /* 0: any number */
    uint32_t flags;       /* enum pdx_state_flags */
    pdx_slicer_fn slicer; /* NULL: whole items, or slices of shard_dim, outer and groups */
    void *slicer_ctx;     /* borrowed while the route is made */
};

#define PDX_STATE_TYPE_INIT                                      \
    {                                                            \
        sizeof(struct pdx_state_type), NULL, 1, 0, 0, NULL, NULL \
    }

/* The library's own types in a fixed order. Returns: row i, or NULL behind the last one.
 * Thread: any. Lifetime: static. Errors: none. */
PDX_API const struct pdx_state_type *pdx_state_type_at(size_t i);

enum pdx_route_flags {
    /* Lists of types with PDX_STATE_MAY_TRUNCATE that differ in length are cut to the shorter,
     * which is counted and logged; without it they are refused. */
    PDX_ROUTE_TRUNCATE_PAGED = 1,
    /* The caller vouches for the pairing: any rank may send to any, what several ranks hold is sent
     * by each that is asked to, and layers that only the remote side has stay unwritten. Heads
     * are placed relative to the larger share. Without it a rank pair must be one that TP sizes and
     * ranks suggest, one rank sends what several hold, and every remote layer has a sender. */
    PDX_ROUTE_TRUST_PAIRING = 2,
    /* Draft tensors that only one side has are left alone. Without it they are a mismatch. */
    PDX_ROUTE_WITHOUT_DRAFT = 4,
    /* Old names of state types (nsa for dsa) are unknown. */
    PDX_ROUTE_CURRENT_NAMES = 8
};

struct pdx_route_opts {
    size_t size;                        /* set by PDX_ROUTE_OPTS_INIT */
    uint32_t flags;                     /* enum pdx_route_flags */
    const struct pdx_state_type *types; /* the caller's own; copied. They come before the library's
                                           of the same name */
    size_t ntypes;                      /* at most 64 */
    pdx_log_fn
        log;       /* NULL: nothing is logged. Called on the thread that makes the route or sends */
    void *log_ctx; /* borrowed until the route is destroyed */
};

#define PDX_ROUTE_OPTS_INIT                                   \
    {                                                         \
        sizeof(struct pdx_route_opts), 0, NULL, 0, NULL, NULL \
    }

/* Compares two layouts without an engine, as pdx_route_create does. `opts` may be NULL.
 * Errors:
 * - PDX_EMISMATCH: `why->text` lists every mismatch with both values and what to change, and counts
 *   those that no longer fit in
 * - PDX_EINVAL: NULL, unknown flags, a row of opts->types
 * - PDX_ENOMEM
 * Thread: any. Lifetime: keeps nothing. */
PDX_API int pdx_route_check(const struct pdx_layout *local, const struct pdx_layout *remote,
                            const struct pdx_route_opts *opts, struct pdx_error *why);

/* Makes a route from the rank of `local` (prefill) to the rank of `remote` (decode) at `peer`.
 * `opts` may be NULL. A component of a type that the library does not know does not keep a route
 * from being made: the KV cache can go over it, pdx_send_state refuses.
 * Errors:
 * - PDX_EMISMATCH: as pdx_route_check
 * - PDX_ESTALE: the remote layout belongs to another incarnation than the peer
 * - PDX_EINVAL: NULL, unknown flags, a row of opts->types, a decoded layout as the local one, a
 *   peer of another engine
 * - PDX_ENOMEM, and those of pdx_prepare
 * Thread: any. Lifetime: until pdx_route_destroy; holds the peer and the local regions of
 * what it sends, keeps nothing of the layouts. */
PDX_API int pdx_route_create(struct pdx_engine *engine, const struct pdx_layout *local,
                             struct pdx_peer *peer, const struct pdx_layout *remote,
                             const struct pdx_route_opts *opts, struct pdx_route **ret_route,
                             struct pdx_error *why);

/* NULL is permitted. Transfers under way go on. Thread: any. Errors: none. */
PDX_API void pdx_route_destroy(struct pdx_route *route);

enum pdx_payload {
    PDX_PAYLOAD_KV = 1,
    PDX_PAYLOAD_AUX,
    PDX_PAYLOAD_STATE /* one component */
};

/* Whether sends of a payload over this route move anything. What several prefill ranks hold (MLA
 * pages, copies of KV heads, aux) is sent by the first of those that feed the remote rank, aux by
 * the last pipeline stage. On a route of another one the lists of such a send are judged all the
 * same, and it returns 0 with a NULL status: no transfer, no callback, no completion,
 * no notification. `component` counts for PDX_PAYLOAD_STATE only. Thread: any. Errors: none. */
PDX_API bool pdx_route_carries(const struct pdx_route *route, enum pdx_payload payload,
                               size_t component);

struct pdx_route_counters {
    uint64_t kv_sends;
    uint64_t state_sends; /* components */
    uint64_t aux_sends;
    uint64_t refused;   /* calls */
    uint64_t truncated; /* lists cut because of PDX_ROUTE_TRUNCATE_PAGED */
    uint64_t elsewhere; /* payloads left to the rank that sends them: see pdx_route_carries */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_route_counters(const struct pdx_route *route,
                                struct pdx_route_counters *ret_counters);

/* Sends pages of the KV cache: every tensor of the route, the heads that the destination holds. A
 * request may be sent in chunks of pages, each a call of its own.
 * Shape: src and dst have the same length; page src.idx[i] goes to page dst.idx[i]; no destination
 * page comes twice.
 * Returns: 0 and *ret_status (one transfer), or NULL there when another rank sends these bytes (see
 * pdx_route_carries) or both lists are empty (a last chunk without pages): then there is no
 * callback, no completion and no notification. ret_status may be NULL, but who counts completions
 * of a queue needs it, to know whether there will be one. Errors, on each of which nothing was
 * sent:
 * - PDX_EINVAL: lengths differ (both are in the text), a destination page comes twice, layouts
 *   without a KV cache
 * - PDX_ERANGE: a page outside its pool
 * - those of pdx_submit
 * Thread: any; never blocks. Lifetime: the lists are copied; the source pages belong to the
 * transfer until it is terminal. `opts` may be NULL. */
PDX_API int pdx_send_kvcache(struct pdx_route *route, struct pdx_index_list src,
                             struct pdx_index_list dst, const struct pdx_submit_opts *opts,
                             struct pdx_transfer_status **ret_status, struct pdx_error *why);

/* A range of layers by their global numbers: first <= layer < end. The tensors of a draft model
 * come behind the last layer: they belong to every range that ends with PDX_LAYERS_END, which may
 * also be the whole of it ({PDX_LAYERS_END, PDX_LAYERS_END}). */
struct pdx_layers {
    int32_t first;
    int32_t end;
};

#define PDX_LAYERS_END INT32_MAX

/* Sends the same pages of some layers only, so that a layer can go while later ones are computed.
 * Ranges that follow each other from 0 to PDX_LAYERS_END send each tensor exactly once.
 * Returns: as pdx_send_kvcache; the status is also NULL when this rank has no layer of the range.
 * Errors: as pdx_send_kvcache, and PDX_EINVAL for a range with first < 0 or end <= first. Thread,
 * lifetime: as pdx_send_kvcache. */
PDX_API int pdx_send_kvcache_layers(struct pdx_route *route, const struct pdx_layers *layers,
                                    struct pdx_index_list src, struct pdx_index_list dst,
                                    const struct pdx_submit_opts *opts,
                                    struct pdx_transfer_status **ret_status, struct pdx_error *why);

/* Sends the per-request state, one transfer per component.
 * Shape: src[c] and dst[c] for each of ncomponents, in the layout's order. ret_statuses has room
 * for cap >= ncomponents handles, or is NULL; a component that is "none" on both sides, or that
 * another rank sends (see pdx_route_carries), gets NULL. How many indices a type takes, and what
 * different lengths mean: doc/state.md.
 * Returns: 0 and *ret_n = ncomponents.
 * Errors, all of them before the first component is queued, so that nothing was sent. In front
 * of the quoted texts stands "PD state transfer failed: ", behind each what to do:
 * - PDX_EINVAL: "kv_args.state_types is empty but state_indices were provided" (a layout without
 *   components)
 * - PDX_EINVAL: "state component count mismatch (local=%zu, remote=%zu)" (ncomponents, and the
 *   components of the route)
 * - PDX_EINVAL: "mamba requires single state index, got src=%zu, dst=%zu" (also when one side is
 *   none)
 * - PDX_EINVAL: "State index length mismatch for %s: src=%zu dst=%zu", or "SWA_RING state index
 *   length mismatch: src=%zu, dst=%zu" (the type's name) for types that are never cut
 * - PDX_EINVAL: indices are missing or empty on one side; a destination comes twice
 * - PDX_ESTATE_TYPE: "unknown state_type=%s", also when both lists of that component are none, for
 *   state that is not understood is never passed over
 * - PDX_ENOSPC: cap < ncomponents
 * - PDX_EINVAL: opts->notify or PDX_SUBMIT_TRACK with more than one component to send: a record at
 * the target belongs to one transfer and could speak for one component only. Notify with pdx_notify
 * when all are DONE
 * - PDX_ERANGE: an index outside a tensor
 * - those of pdx_submit_many
 * Thread: any; never blocks. opts->callback, cq, deadline and id
 * apply to each component's transfer. Lifetime: as pdx_send_kvcache. */
PDX_API int pdx_send_state(struct pdx_route *route, const struct pdx_index_list *src,
                           const struct pdx_index_list *dst, size_t ncomponents,
                           const struct pdx_submit_opts *opts,
                           struct pdx_transfer_status **ret_statuses, size_t cap, size_t *ret_n,
                           struct pdx_error *why);

/* Sends the state of some layers only, as pdx_send_kvcache_layers. A component without a tensor in
 * the range gets a NULL status; one whose layouts do not tell layers is refused with PDX_EINVAL
 * unless it is none on both sides. */
PDX_API int pdx_send_state_layers(struct pdx_route *route, const struct pdx_layers *layers,
                                  const struct pdx_index_list *src,
                                  const struct pdx_index_list *dst, size_t ncomponents,
                                  const struct pdx_submit_opts *opts,
                                  struct pdx_transfer_status **ret_statuses, size_t cap,
                                  size_t *ret_n, struct pdx_error *why);

/* Sends all aux buffers of one request slot (one transfer, or NULL as pdx_send_kvcache). Transfers
 * are not ordered: a notification that goes with aux says nothing about pages and state
 * (doc/state.md, section 2, tells how to know that a request is complete). Errors:
 * - PDX_ERANGE: a slot outside its buffer
 * - PDX_EINVAL: the layouts have no aux buffers
 * - those of pdx_submit
 * Thread, lifetime: as pdx_send_kvcache. */
PDX_API int pdx_send_aux(struct pdx_route *route, int32_t src_slot, int32_t dst_slot,
                         const struct pdx_submit_opts *opts,
                         struct pdx_transfer_status **ret_status, struct pdx_error *why);

PDX_END_DECLS

#endif
