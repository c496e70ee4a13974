/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a route: pairs the layouts, then has the engine check and keep one job
 * for each payload, so that a send gives nothing but its indices.
 */
#include "state/route.h"

#include "state/pairing.h"

#include <stdlib.h>
#include <string.h>

int pdx_route_check(const struct pdx_layout *local, const struct pdx_layout *remote,
                    struct pdx_error *why)
{
    struct pdxi_pairing p;
    int rc;

    if (!local || !remote)
        return pdxi_refuse(why, PDX_EINVAL, "a layout is NULL.");
    rc = pdxi_pairing_init(&p, local, remote, false, why);
    if (rc == 0)
        pdxi_pairing_fini(&p);
    return rc;
}

int pdxi_route_refuse(struct pdx_error *why, const char *what, const struct pdx_error *from)
{
    int rc = pdxi_error_set(why, from->code, from->cost, "%s: %s", what, from->text);

    if (why)
        why->error_class = from->error_class;
    return rc;
}

int pdxi_route_check_list(const char *what, const char *side, struct pdx_index_list list,
                          struct pdx_error *why)
{
    if (list.idx || !list.n)
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       "%s: the %s list has %zu indices, but idx is NULL. Pass the indices, or n 0 "
                       "for none.",
                       what, side, list.n);
}

/* A job in the engine's terms; both arrays owned. */
struct route_job {
    struct pdx_pair *pairs;
    struct pdx_slice *slices;
    size_t nslices;
};

/* Which of the slices hold for which pair. In a job that has any, a pair of whole items has one
 * too, and a pair that has all of them need not say so. */
static void route_slices(struct route_job *j, const struct pdxi_pairing_part *part)
{
    const struct pdxi_payload *p = &part->payload;

    if (p->nslices == 0)
        return;
    memcpy(j->slices, p->slices, p->nslices * sizeof *j->slices);
    j->nslices = p->nslices;
    for (uint32_t i = 0; i < p->nmatches; i++) {
        j->pairs[i].first_slice = p->matches[i].first_slice;
        j->pairs[i].nslices = p->matches[i].nslices;
        if (p->matches[i].nslices)
            continue;
        j->pairs[i].first_slice = (uint32_t)j->nslices;
        j->pairs[i].nslices = 1;
        j->slices[j->nslices++] =
            (struct pdx_slice){.len = part->local.at[p->matches[i].local].item_len, .rows = 1};
    }
    for (uint32_t i = 0; i < p->nmatches; i++)
        if (j->pairs[i].nslices == j->nslices)
            j->pairs[i].nslices = 0;
}

static int route_job_init(struct route_job *j, const struct pdxi_pairing_part *part,
                          const struct pdx_layout *local, const struct pdx_layout *remote)
{
    const struct pdxi_payload *p = &part->payload;

    *j = (struct route_job){
        .pairs = calloc(p->nmatches, sizeof *j->pairs),
        .slices = calloc(p->nslices + p->nmatches, sizeof *j->slices),
    };
    if (!j->pairs || !j->slices)
        return PDX_ENOMEM;
    for (uint32_t i = 0; i < p->nmatches; i++) {
        const struct pdxi_tensor *lt = &part->local.at[p->matches[i].local];
        const struct pdxi_tensor *rt = &part->remote.at[p->matches[i].remote];

        j->pairs[i] = (struct pdx_pair){
            .local = local->regions[lt->region].region,
            .remote = &remote->regions[rt->region].remote,
            .local_base = lt->off,
            .remote_base = rt->off,
            .local_item_len = lt->item_len,
            .remote_item_len = rt->item_len,
            .local_len = lt->len,
            .remote_len = rt->len,
        };
    }
    route_slices(j, part);
    return 0;
}

static int route_prepare(struct pdx_peer *peer, const struct pdxi_pairing_part *part,
                         const struct pdx_layout *local, const struct pdx_layout *remote,
                         struct pdxi_route_part *ret, struct pdx_error *why)
{
    struct pdx_error engine_why;
    struct route_job j;
    struct pdx_job job;
    int rc;

    if (part->payload.nmatches == 0)
        return 0;
    rc = route_job_init(&j, part, local, remote);
    if (rc < 0) {
        (void)pdxi_refuse(why, rc, "%s: no memory for %u pairs.", part->what,
                          part->payload.nmatches);
        goto out_job;
    }
    job = (struct pdx_job){
        .pairs = j.pairs,
        .npairs = part->payload.nmatches,
        .slices = j.nslices ? j.slices : NULL,
        .nslices = j.nslices,
    };
    rc = pdx_prepare(peer, PDX_WRITE, &job, &ret->prepared, &engine_why);
    if (rc < 0)
        (void)pdxi_route_refuse(why, part->what, &engine_why);

out_job:
    free(j.pairs);
    free(j.slices);
    return rc;
}

static int route_fill(struct pdx_route *route, const struct pdxi_pairing *p, struct pdx_peer *peer,
                      const struct pdx_layout *local, const struct pdx_layout *remote,
                      struct pdx_error *why)
{
    int rc;

    route->has_kv = local->nkv > 0;
    route->has_aux = local->naux > 0;
    rc = route_prepare(peer, &p->parts[PDXI_PAIRING_KV], local, remote, &route->kv, why);
    if (rc < 0)
        return rc;
    rc = route_prepare(peer, &p->parts[PDXI_PAIRING_AUX], local, remote, &route->aux, why);
    for (uint32_t i = 0; rc == 0 && i < local->ncomponents; i++) {
        const struct pdxi_pairing_part *part = &p->parts[PDXI_PAIRING_COMPONENT + i];
        struct pdxi_route_part *to = &route->components[route->ncomponents++];

        to->type = part->type;
        memcpy(to->type_name, local->components[i].type, sizeof to->type_name);
        rc = route_prepare(peer, part, local, remote, to, why);
    }
    return rc;
}

/* A layout of a peer that restarted since names regions that are gone. */
static int route_check_peer(struct pdx_peer *peer, const struct pdx_layout *remote,
                            struct pdx_error *why)
{
    struct pdx_peer_info info;

    pdx_peer_info(peer, &info);
    if (remote->nregions == 0 || memcmp(info.incarnation, remote->regions[0].remote.incarnation,
                                        sizeof info.incarnation) == 0)
        return 0;
    return pdxi_refuse(why, PDX_ESTALE,
                       "the remote layout is not of peer %s as it runs now: it restarted, or the "
                       "layout is another engine's. Fetch its layout again.",
                       info.name);
}

static int route_check_args(struct pdx_engine *engine, const struct pdx_layout *local,
                            struct pdx_peer *peer, const struct pdx_layout *remote,
                            const struct pdx_route_opts *o, struct pdx_error *why)
{
    const uint32_t known = PDX_ROUTE_TRUNCATE_PAGED | PDX_ROUTE_TRUST_PAIRING;

    if (!engine || !local || !peer || !remote)
        return pdxi_refuse(why, PDX_EINVAL, "engine, peer or a layout is NULL.");
    if (o->size < sizeof o->size)
        return pdxi_refuse(why, PDX_EINVAL, "opts->size is 0. Start from PDX_ROUTE_OPTS_INIT.");
    if (local->decoded)
        return pdxi_refuse(why, PDX_EINVAL,
                           "the local layout is a decoded one. Pass the one that pdx_layout_create "
                           "made; the peer's goes second.");
    if (o->flags & ~known)
        return pdxi_refuse(why, PDX_EINVAL, "opts->flags 0x%x: known are 0x%x.", o->flags, known);
    return route_check_peer(peer, remote, why);
}

int pdx_route_create(struct pdx_engine *engine, const struct pdx_layout *local,
                     struct pdx_peer *peer, const struct pdx_layout *remote,
                     const struct pdx_route_opts *opts, struct pdx_route **ret_route,
                     struct pdx_error *why)
{
    struct pdx_route_opts o = PDX_ROUTE_OPTS_INIT;
    struct pdxi_pairing p;
    struct pdx_route *route;
    int rc;

    if (!ret_route)
        return pdxi_refuse(why, PDX_EINVAL, "ret_route is NULL.");
    if (opts) {
        memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
        o.size = opts->size;
    }
    rc = route_check_args(engine, local, peer, remote, &o, why);
    if (rc < 0)
        return rc;
    rc = pdxi_pairing_init(&p, local, remote, o.flags & PDX_ROUTE_TRUST_PAIRING, why);
    if (rc < 0)
        return rc;
    route = calloc(1, sizeof *route);
    if (route)
        route->components = calloc(local->ncomponents + 1, sizeof *route->components);
    if (!route || !route->components) {
        rc = pdxi_refuse(why, PDX_ENOMEM, "no memory for a route.");
        goto out_route;
    }
    route->flags = o.flags;
    rc = route_fill(route, &p, peer, local, remote, why);
    if (rc == 0) {
        *ret_route = route;
        route = NULL;
    }

out_route:
    pdx_route_destroy(route);
    pdxi_pairing_fini(&p);
    return rc;
}

void pdx_route_destroy(struct pdx_route *route)
{
    if (!route)
        return;
    pdx_prepared_put(route->kv.prepared);
    pdx_prepared_put(route->aux.prepared);
    for (uint32_t i = 0; i < route->ncomponents; i++)
        pdx_prepared_put(route->components[i].prepared);
    free(route->components);
    free(route);
}

bool pdx_route_carries(const struct pdx_route *route, enum pdx_payload payload, size_t component)
{
    switch (payload) {
    case PDX_PAYLOAD_KV:
        return route->kv.prepared != NULL;
    case PDX_PAYLOAD_AUX:
        return route->aux.prepared != NULL;
    case PDX_PAYLOAD_STATE:
        return component < route->ncomponents && route->components[component].prepared != NULL;
    }
    return false;
}

void pdx_route_counters(const struct pdx_route *route, struct pdx_route_counters *ret_counters)
{
    *ret_counters = (struct pdx_route_counters){
        .kv_sends = atomic_load_explicit(&route->kv_sends, memory_order_relaxed),
        .state_sends = atomic_load_explicit(&route->state_sends, memory_order_relaxed),
        .aux_sends = atomic_load_explicit(&route->aux_sends, memory_order_relaxed),
        .refused = atomic_load_explicit(&route->refused, memory_order_relaxed),
        .truncated = atomic_load_explicit(&route->truncated, memory_order_relaxed),
        .elsewhere = atomic_load_explicit(&route->elsewhere, memory_order_relaxed),
    };
}
