/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends of one transfer each: KV cache pages and the aux slot. The index lists
 * are judged first; the engine then takes them or refuses them as a whole.
 */
#include "state/route.h"

static int send_check_kv(const struct pdx_route *route, struct pdx_index_list src,
                         struct pdx_index_list dst, struct pdx_error *why)
{
    int rc;

    if (!route->has_kv)
        return pdxi_refuse(why, PDX_EINVAL,
                           "kv: KV memory descriptors are empty on prefill side. Make the layouts "
                           "with kv_kind and kv tensors.");
    if ((rc = pdxi_route_check_list("kv", "src", src, why)) < 0 ||
        (rc = pdxi_route_check_list("kv", "dst", dst, why)) < 0)
        return rc;
    if (src.n != dst.n)
        return pdxi_refuse(
            why, PDX_EINVAL,
            "kv: page lists differ in length, src=%zu, dst=%zu. Pass one destination "
            "page for each source page.",
            src.n, dst.n);
    return 0;
}

/* What is sent, and how it is counted. */
struct send {
    const char *what;
    const struct pdxi_route_part *part;
    const struct pdx_layers *layers; /* NULL: all */
    struct pdx_items items;
    _Atomic uint64_t *counter;
};

/* Submits one payload's items; nothing happens when there are none, when another rank sends them,
 * or when no layer of the range is here. */
static int send_submit(struct pdx_route *route, struct send *s, const struct pdx_submit_opts *opts,
                       struct pdx_transfer_status **ret_status, struct pdx_error *why)
{
    struct pdx_error engine_why;
    int rc;

    if (s->items.n == 0 || !pdxi_route_part_select(s->part, s->layers, &s->items)) {
        rc = pdxi_route_part_check_unsent(s->part, s->what, &s->items, why);
        if (rc < 0)
            return rc;
        if (s->items.n && !s->part->prepared)
            pdxi_route_count(&route->elsewhere, 1);
        if (ret_status)
            *ret_status = NULL;
        return 0;
    }
    rc = pdx_submit_prepared(s->part->prepared, &s->items, opts, ret_status, &engine_why);
    if (rc < 0) {
        int at =
            rc == PDX_ERANGE ? pdxi_route_part_check_items(s->part, s->what, &s->items, why) : 0;

        return at < 0 ? at : pdxi_route_refuse(why, s->what, &engine_why);
    }
    pdxi_route_count(s->counter, 1);
    return 0;
}

static int send_kvcache(struct pdx_route *route, const struct pdx_layers *layers,
                        struct pdx_index_list src, struct pdx_index_list dst,
                        const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                        struct pdx_error *why)
{
    struct send s = {
        .what = "kv",
        .part = &route->kv,
        .layers = layers,
        .items = {.local = src.idx, .remote = dst.idx, .n = src.n},
        .counter = &route->kv_sends,
    };
    int rc = send_check_kv(route, src, dst, why);

    return rc < 0 ? rc : send_submit(route, &s, opts, ret_status, why);
}

int pdx_send_kvcache(struct pdx_route *route, struct pdx_index_list src, struct pdx_index_list dst,
                     const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                     struct pdx_error *why)
{
    int rc = send_kvcache(route, NULL, src, dst, opts, ret_status, why);

    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}

int pdx_send_kvcache_layers(struct pdx_route *route, const struct pdx_layers *layers,
                            struct pdx_index_list src, struct pdx_index_list dst,
                            const struct pdx_submit_opts *opts,
                            struct pdx_transfer_status **ret_status, struct pdx_error *why)
{
    int rc = pdxi_route_check_layers(layers, why);

    if (rc == 0)
        rc = send_kvcache(route, layers, src, dst, opts, ret_status, why);
    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}

int pdx_send_aux(struct pdx_route *route, int32_t src_slot, int32_t dst_slot,
                 const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                 struct pdx_error *why)
{
    struct send s = {
        .what = "aux",
        .part = &route->aux,
        .items = {.local = &src_slot, .remote = &dst_slot, .n = 1},
        .counter = &route->aux_sends,
    };
    int rc;

    if (route->has_aux)
        rc = send_submit(route, &s, opts, ret_status, why);
    else
        rc = pdxi_refuse(why, PDX_EINVAL,
                         "aux: the route has no aux buffers. Put them into both layouts.");
    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}
