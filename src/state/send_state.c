/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_state: one transfer per component, all or none. Every component is
 * judged before the first is queued, and the engine takes the batch as a whole.
 * The sentences begin as operators know them from SGLang.
 */
#include "state/send_lists.h"

#include <stdio.h>
#include <string.h>

#define FAILED PDXI_STATE_FAILED

/* What one call sends. */
struct send_batch {
    struct pdx_submission entries[PDXI_LAYOUT_COMPONENTS_MAX];
    struct pdxi_send_entries ring_entries;
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
        if (!route->components[i].known)
            return pdxi_refuse(
                why, PDX_ESTATE_TYPE,
                FAILED "unknown state_type=%s. Component %zu has a type that neither "
                       "this library knows nor pdx_route_opts.types; known are: %s.",
                route->components[i].type_name, i, pdxi_state_type_names(names, sizeof names));
    return 0;
}

/* A range of layers needs layouts that tell them. */
static int state_check_told(const struct pdxi_route_part *part, size_t i,
                            const struct pdx_layers *layers, struct pdx_error *why)
{
    if (!layers || part->told)
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       FAILED "component %zu (%s): its layouts do not tell layers. Set "
                              "pdx_tensor.layer on both sides, or send it whole.",
                       i, part->type_name);
}

/* Judges one component and makes its entry. */
static int state_plan_one(const struct pdx_route *route, size_t i, const struct pdx_layers *layers,
                          struct pdx_index_list src, struct pdx_index_list dst,
                          struct send_batch *b, struct pdx_error *why)
{
    const struct pdxi_route_part *part = &route->components[i];
    struct pdx_submission *e = &b->entries[i];
    int rc = pdxi_send_lists(route, i, src, dst, &b->ring_entries, &e->items, why);

    e->prepared = NULL;
    if (rc < 0 || e->items.n == 0)
        return rc;
    if ((rc = state_check_told(part, i, layers, why)) < 0)
        return rc;
    if (pdxi_route_part_select(part, layers, &e->items)) {
        e->prepared = part->prepared;
        b->sent++;
        b->truncated += src.n != dst.n && !(part->type_flags & PDX_STATE_RING_SPAN);
        return 0;
    }
    b->elsewhere += !part->prepared;
    if (part->type_flags & PDX_STATE_RING_SPAN)
        return 0;
    return pdxi_route_part_check_unsent(part, part->type_name, &e->items, why);
}

static int state_plan(const struct pdx_route *route, const struct pdx_layers *layers,
                      const struct pdx_index_list *src, const struct pdx_index_list *dst,
                      size_t ncomponents, const struct pdx_submit_opts *opts, struct send_batch *b,
                      struct pdx_error *why)
{
    int rc = 0;

    b->ring_entries.n = 0;
    for (size_t i = 0; i < ncomponents && rc == 0; i++) {
        rc = state_plan_one(route, i, layers, src[i], dst[i], b, why);
        b->entries[i].opts = opts;
    }
    return rc;
}

/* Says which lists were cut, once it is sure that they were sent. */
static void state_log_truncated(const struct pdx_route *route, const struct send_batch *b,
                                const struct pdx_index_list *src, const struct pdx_index_list *dst,
                                size_t ncomponents)
{
    for (size_t i = 0; b->truncated && i < ncomponents; i++)
        if (b->entries[i].prepared && src[i].n != dst[i].n &&
            !(route->components[i].type_flags & PDX_STATE_RING_SPAN))
            pdxi_route_log(route, PDX_LOG_WARN,
                           "State index length mismatch for %s: src=%zu dst=%zu; truncating to "
                           "common prefix=%zu",
                           route->components[i].type_name, src[i].n, dst[i].n,
                           b->entries[i].items.n);
}

/* The components share the id, and with it the record at the target. */
static int state_check_record(const struct send_batch *b, const struct pdx_submit_opts *opts,
                              struct pdx_error *why)
{
    struct pdx_submit_opts o = PDX_SUBMIT_OPTS_INIT;

    if (b->sent + b->elsewhere < 2 || !opts || opts->size < sizeof opts->size)
        return 0;
    memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    if (!o.notify && !(o.flags & PDX_SUBMIT_TRACK))
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       FAILED "a notification (or PDX_SUBMIT_TRACK) speaks for one transfer, but "
                              "%llu components are to be sent. Call pdx_notify when all of them "
                              "are done.",
                       (unsigned long long)(b->sent + b->elsewhere));
}

/* Says which index of which component the engine found outside of its tensors. */
static int state_explain_range(const struct pdx_route *route, const struct send_batch *b, size_t n,
                               struct pdx_error *why)
{
    char what[80];
    int rc = 0;

    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct pdxi_route_part *part = &route->components[i];

        if (!b->entries[i].prepared || (part->type_flags & PDX_STATE_RING_SPAN))
            continue;
        (void)snprintf(what, sizeof what, "component %zu (%s)", i, part->type_name);
        rc = pdxi_route_part_check_items(part, what, &b->entries[i].items, why);
    }
    return rc;
}

static int state_submit(const struct pdx_route *route, const struct send_batch *b, size_t n,
                        struct pdx_transfer_status **ret_statuses, struct pdx_error *why)
{
    struct pdx_error engine_why;
    int rc;

    if (b->sent) {
        rc = pdx_submit_many(b->entries, n, ret_statuses, &engine_why);
        if (rc == PDX_ERANGE && state_explain_range(route, b, n, why) < 0)
            return rc;
        return rc < 0 ? pdxi_route_refuse(why, "state (entries are components)", &engine_why) : 0;
    }
    for (size_t i = 0; ret_statuses && i < n; i++)
        ret_statuses[i] = NULL;
    return 0;
}

static int send_state(struct pdx_route *route, const struct pdx_layers *layers,
                      const struct pdx_index_list *src, const struct pdx_index_list *dst,
                      size_t ncomponents, const struct pdx_submit_opts *opts,
                      struct pdx_transfer_status **ret_statuses, size_t cap, size_t *ret_n,
                      struct pdx_error *why)
{
    struct send_batch b; /* large, so filled in as far as it is used */
    int rc = state_check_call(route, src, dst, ncomponents, why);

    b.sent = b.truncated = b.elsewhere = 0;
    if (rc == 0 && ret_statuses && cap < ncomponents)
        rc = pdxi_refuse(why, PDX_ENOSPC,
                         FAILED "room for %zu statuses, but there are %zu components. Make the "
                                "array larger.",
                         cap, ncomponents);
    if (rc == 0)
        rc = state_plan(route, layers, src, dst, ncomponents, opts, &b, why);
    if (rc == 0)
        rc = state_check_record(&b, opts, why);
    if (rc == 0)
        rc = state_submit(route, &b, ncomponents, ret_statuses, why);
    if (rc < 0)
        return rc;
    state_log_truncated(route, &b, src, dst, ncomponents);
    pdxi_route_count(&route->state_sends, b.sent);
    pdxi_route_count(&route->truncated, b.truncated);
    pdxi_route_count(&route->elsewhere, b.elsewhere);
    if (ret_n)
        *ret_n = ncomponents;
    return 0;
}

int pdx_send_state(struct pdx_route *route, const struct pdx_index_list *src,
                   const struct pdx_index_list *dst, size_t ncomponents,
                   const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_statuses,
                   size_t cap, size_t *ret_n, struct pdx_error *why)
{
    int rc = send_state(route, NULL, src, dst, ncomponents, opts, ret_statuses, cap, ret_n, why);

    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}

int pdx_send_state_layers(struct pdx_route *route, const struct pdx_layers *layers,
                          const struct pdx_index_list *src, const struct pdx_index_list *dst,
                          size_t ncomponents, const struct pdx_submit_opts *opts,
                          struct pdx_transfer_status **ret_statuses, size_t cap, size_t *ret_n,
                          struct pdx_error *why)
{
    int rc = pdxi_route_check_layers(layers, why);

    if (rc == 0)
        rc = send_state(route, layers, src, dst, ncomponents, opts, ret_statuses, cap, ret_n, why);
    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}
