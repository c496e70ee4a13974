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
    if (src.n == 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "kv: there are no pages, src=0, dst=0. Leave out the call for a chunk "
                           "without pages.");
    return 0;
}

/* Submits one payload's items; nothing happens when another rank sends them. */
static int send_submit(struct pdx_route *route, const char *what, struct pdx_prepared *prepared,
                       const struct pdx_items *items, const struct pdx_submit_opts *opts,
                       _Atomic uint64_t *counter, struct pdx_transfer_status **ret_status,
                       struct pdx_error *why)
{
    struct pdx_error engine_why;
    int rc;

    if (!prepared) {
        pdxi_route_count(&route->elsewhere, 1);
        if (ret_status)
            *ret_status = NULL;
        return 0;
    }
    rc = pdx_submit_prepared(prepared, items, opts, ret_status, &engine_why);
    if (rc < 0)
        return pdxi_route_refuse(why, what, &engine_why);
    pdxi_route_count(counter, 1);
    return 0;
}

int pdx_send_kvcache(struct pdx_route *route, struct pdx_index_list src, struct pdx_index_list dst,
                     const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                     struct pdx_error *why)
{
    struct pdx_items items = {.local = src.idx, .remote = dst.idx, .n = src.n};
    int rc = send_check_kv(route, src, dst, why);

    if (rc == 0)
        rc = send_submit(route, "kv", route->kv.prepared, &items, opts, &route->kv_sends,
                         ret_status, why);
    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}

int pdx_send_aux(struct pdx_route *route, int32_t src_slot, int32_t dst_slot,
                 const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                 struct pdx_error *why)
{
    struct pdx_items items = {.local = &src_slot, .remote = &dst_slot, .n = 1};
    int rc;

    if (route->has_aux)
        rc = send_submit(route, "aux", route->aux.prepared, &items, opts, &route->aux_sends,
                         ret_status, why);
    else
        rc = pdxi_refuse(why, PDX_EINVAL,
                         "aux: the route has no aux buffers. Put them into both layouts.");
    if (rc < 0)
        pdxi_route_count(&route->refused, 1);
    return rc;
}
