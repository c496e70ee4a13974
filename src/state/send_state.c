/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_state: one transfer per component, all or none. Every component is
 * judged before the first is queued, and the engine takes the batch as a whole.
 * The sentences begin as operators know them from SGLang.
 */
#include "state/route.h"

#include <stdio.h>

#define FAILED "PD state transfer failed: "

struct send_batch {
    struct pdx_submission entries[PDXI_LAYOUT_COMPONENTS_MAX];
    uint64_t sent;      /* entries with something to send */
    uint64_t truncated; /* lists that were cut */
    uint64_t elsewhere; /* components that another rank sends */
};

/* What concerns the call, not one component. */
static int state_check_call(const struct pdx_route *route, const struct pdx_index_list *src,
                            const struct pdx_index_list *dst, size_t n, struct pdx_error *why)
{
    char names[256];

    if (n && route->ncomponents == 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           FAILED "kv_args.state_types is empty but state_indices were provided. "
                                  "Put the state components into both layouts.");
    if (n != route->ncomponents)
        return pdxi_refuse(why, PDX_EINVAL,
                           FAILED
                           "state component count mismatch (local=%zu, remote=%zu). Pass one "
                           "list of each side for every component of the layouts; idx NULL "
                           "says none.",
                           n, (size_t)route->ncomponents);
    if (n && (!src || !dst))
        return pdxi_refuse(why, PDX_EINVAL, FAILED "src or dst is NULL.");
    for (size_t i = 0; i < n; i++)
        if (!route->components[i].type)
            return pdxi_refuse(why, PDX_ESTATE_TYPE,
                               FAILED "unknown state_type=%s. Component %zu has a type that this "
                                      "library does not know; known are: %s.",
                               route->components[i].type_name, i,
                               pdxi_state_type_names(names, sizeof names));
    return 0;
}

/* Judges both lists of one component. Returns 0 and how many of their indices are sent, 0 for a
 * component that both sides are without. */
static int state_check_lists(const struct pdx_route *route, size_t i, struct pdx_index_list src,
                             struct pdx_index_list dst, size_t *ret_n, struct pdx_error *why)
{
    const struct pdxi_state_type *type = route->components[i].type;
    bool may_cut =
        type->lengths == PDXI_LENGTHS_MAY_CUT && (route->flags & PDX_ROUTE_TRUNCATE_PAGED);
    char what[64];
    int rc;

    (void)snprintf(what, sizeof what, "component %zu (%s)", i, type->name);
    if ((rc = pdxi_route_check_list(what, "src", src, why)) < 0 ||
        (rc = pdxi_route_check_list(what, "dst", dst, why)) < 0)
        return rc;
    *ret_n = 0;
    if (!src.idx && !dst.idx)
        return 0;
    if (type->single && (src.n != 1 || dst.n != 1))
        return pdxi_refuse(why, PDX_EINVAL,
                           FAILED "%s requires single state index, got src=%zu, dst=%zu. Pass the "
                                  "request's one slot on each side (component %zu).",
                           type->name, src.n, dst.n, i);
    if (!src.idx || !dst.idx || !src.n || !dst.n)
        return pdxi_refuse(why, PDX_EINVAL,
                           FAILED "%s has indices on one side only, or on none: src=%zu%s, "
                                  "dst=%zu%s. Pass them on both, or idx NULL on both when the "
                                  "request has no such state.",
                           what, src.n, src.idx ? "" : " (none)", dst.n, dst.idx ? "" : " (none)");
    if (src.n != dst.n && !may_cut)
        return pdxi_refuse(why, PDX_EINVAL,
                           FAILED "State index length mismatch for %s: src=%zu dst=%zu (component "
                                  "%zu). Pass one destination for each source%s.",
                           type->name, src.n, dst.n, i,
                           type->lengths == PDXI_LENGTHS_MAY_CUT
                               ? ", or create the route with PDX_ROUTE_TRUNCATE_PAGED"
                               : "");
    *ret_n = src.n < dst.n ? src.n : dst.n;
    return 0;
}

static int state_plan(const struct pdx_route *route, const struct pdx_index_list *src,
                      const struct pdx_index_list *dst, size_t ncomponents,
                      const struct pdx_submit_opts *opts, struct send_batch *b,
                      struct pdx_error *why)
{
    for (size_t i = 0; i < ncomponents; i++) {
        size_t n;
        int rc = state_check_lists(route, i, src[i], dst[i], &n, why);

        if (rc < 0)
            return rc;
        b->entries[i] = (struct pdx_submission){
            .prepared = n ? route->components[i].prepared : NULL,
            .items = {.local = src[i].idx, .remote = dst[i].idx, .n = n},
            .opts = opts,
        };
        if (b->entries[i].prepared) {
            b->sent++;
            b->truncated += src[i].n != dst[i].n;
        } else if (n) {
            b->elsewhere++;
        }
    }
    return 0;
}

/* The components share the id, and with it the record at the target. */
static int state_check_record(const struct send_batch *b, const struct pdx_submit_opts *opts,
                              struct pdx_error *why)
{
    if (b->sent < 2 || !opts || (!opts->notify && !(opts->flags & PDX_SUBMIT_TRACK)))
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       FAILED "a notification (or PDX_SUBMIT_TRACK) speaks for one transfer, but "
                              "%llu components are to be sent. Call pdx_notify when all of them "
                              "are done.",
                       (unsigned long long)b->sent);
}

static int state_submit(const struct send_batch *b, size_t n,
                        struct pdx_transfer_status **ret_statuses, struct pdx_error *why)
{
    struct pdx_error engine_why;

    if (b->sent)
        return pdx_submit_many(b->entries, n, ret_statuses, &engine_why) < 0
                   ? pdxi_route_refuse(why, "state (entries are components)", &engine_why)
                   : 0;
    for (size_t i = 0; ret_statuses && i < n; i++)
        ret_statuses[i] = NULL;
    return 0;
}

int pdx_send_state(struct pdx_route *route, const struct pdx_index_list *src,
                   const struct pdx_index_list *dst, size_t ncomponents,
                   const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_statuses,
                   size_t cap, size_t *ret_n, struct pdx_error *why)
{
    struct send_batch b = {.sent = 0};
    int rc = state_check_call(route, src, dst, ncomponents, why);

    if (rc == 0 && ret_statuses && cap < ncomponents)
        rc = pdxi_refuse(why, PDX_ENOSPC,
                         FAILED "room for %zu statuses, but there are %zu components. Make the "
                                "array larger.",
                         cap, ncomponents);
    if (rc == 0)
        rc = state_plan(route, src, dst, ncomponents, opts, &b, why);
    if (rc == 0)
        rc = state_check_record(&b, opts, why);
    if (rc == 0)
        rc = state_submit(&b, ncomponents, ret_statuses, why);
    if (rc < 0) {
        pdxi_route_count(&route->refused, 1);
        return rc;
    }
    pdxi_route_count(&route->state_sends, b.sent);
    pdxi_route_count(&route->truncated, b.truncated);
    pdxi_route_count(&route->elsewhere, b.elsewhere);
    if (ret_n)
        *ret_n = ncomponents;
    return 0;
}
