/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a route: reads the options, pairs the layouts, then has a job made of
 * each payload (route_part.c), so that a send gives nothing but its indices.
 */
#include "state/route.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pdxi_route_log(const struct pdx_route *route, enum pdx_log_level level, const char *format,
                    ...)
{
    char line[512];
    va_list args;

    if (!route->log)
        return;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    route->log(route->log_ctx, level, line);
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

/* Slices are many short pieces, which operators may want to know of. "mamba" is "Mamba" in the
 * sentence that they know. */
static void route_log_slices(const struct pdx_route *route, const struct pdxi_pairing_part *part,
                             const struct pdx_layout *local, const struct pdx_layout *remote)
{
    const char *name = part->type ? part->type->name : "KV";

    if (part->payload.nmatches && part->payload.nslices &&
        local->rank.tp_size != remote->rank.tp_size)
        pdxi_route_log(route, PDX_LOG_INFO,
                       "%s: Using %s state slice transfer for different TP sizes between prefill "
                       "and decode. Prefill attn_tp_size=%u, Decode attn_tp_size=%u.",
                       part->what, strcmp(name, "mamba") == 0 ? "Mamba" : name, local->rank.tp_size,
                       remote->rank.tp_size);
}

static int route_fill(struct pdx_route *route, const struct pdxi_pairing *p, struct pdx_peer *peer,
                      const struct pdx_layout *local, const struct pdx_layout *remote,
                      struct pdx_error *why)
{
    int rc;

    route->has_kv = local->rank.kv_kind != PDX_KV_NONE;
    route->has_aux = local->naux > 0;
    rc = pdxi_route_part_init(&route->kv, peer, &p->parts[PDXI_PAIRING_KV], local, remote, why);
    if (rc < 0)
        return rc;
    rc = pdxi_route_part_init(&route->aux, peer, &p->parts[PDXI_PAIRING_AUX], local, remote, why);
    for (uint32_t i = 0; rc == 0 && i < local->ncomponents; i++) {
        struct pdxi_pairing_part *part = &p->parts[PDXI_PAIRING_COMPONENT + i];
        struct pdxi_route_part *to = &route->components[route->ncomponents++];

        memcpy(to->type_name, local->components[i].type, sizeof to->type_name);
        rc = pdxi_route_part_init(to, peer, part, local, remote, why);
    }
    for (uint32_t i = 0; rc == 0 && i < p->nparts; i++)
        route_log_slices(route, &p->parts[i], local, remote);
    for (uint32_t i = 0; rc == 0 && i < route->ncomponents; i++)
        if (!route->components[i].known)
            pdxi_route_log(route, PDX_LOG_WARN,
                           "component %u: unknown state_type=%s: its state will be refused when it "
                           "is sent. Give a row for it in pdx_route_opts.types.",
                           i, route->components[i].type_name);
    return rc;
}

/* A layout of a peer that restarted since names regions that are gone. */
static int route_check_peer(struct pdx_engine *engine, struct pdx_peer *peer,
                            const struct pdx_layout *remote, struct pdx_error *why)
{
    struct pdx_peer_info info;

    pdx_peer_info(peer, &info);
    if (info.engine != engine)
        return pdxi_refuse(why, PDX_EINVAL,
                           "peer %s was added to another engine. Add it to the engine of the local "
                           "layout's regions.",
                           info.name);
    if (remote->nregions == 0 || memcmp(info.incarnation, remote->regions[0].remote.incarnation,
                                        sizeof info.incarnation) == 0)
        return 0;
    return pdxi_refuse(why, PDX_ESTALE,
                       "the remote layout is not of peer %s as it runs now: it restarted, or the "
                       "layout is another engine's. Fetch its layout again.",
                       info.name);
}

/* Options as this version knows them, and the types to which they add. */
struct route_options {
    struct pdx_route_opts o;
    struct pdxi_state_types types;
};

static int route_read_opts(struct route_options *ret, const struct pdx_route_opts *opts,
                           struct pdx_error *why)
{
    const uint32_t known = PDX_ROUTE_TRUNCATE_PAGED | PDX_ROUTE_TRUST_PAIRING |
                           PDX_ROUTE_WITHOUT_DRAFT | PDX_ROUTE_CURRENT_NAMES;

    ret->o = (struct pdx_route_opts)PDX_ROUTE_OPTS_INIT;
    if (opts && opts->size < sizeof opts->size)
        return pdxi_refuse(why, PDX_EINVAL, "opts->size is 0. Start from PDX_ROUTE_OPTS_INIT.");
    if (opts)
        memcpy(&ret->o, opts, opts->size < sizeof ret->o ? opts->size : sizeof ret->o);
    if (ret->o.flags & ~known)
        return pdxi_refuse(why, PDX_EINVAL, "opts->flags 0x%x: known are 0x%x.", ret->o.flags,
                           known);
    ret->types = (struct pdxi_state_types){.own = ret->o.types,
                                           .nown = ret->o.ntypes,
                                           .current_names = ret->o.flags & PDX_ROUTE_CURRENT_NAMES};
    return pdxi_state_types_check(&ret->types, why);
}

int pdx_route_check(const struct pdx_layout *local, const struct pdx_layout *remote,
                    const struct pdx_route_opts *opts, struct pdx_error *why)
{
    struct route_options o;
    struct pdxi_pairing p;
    int rc;

    if (!local || !remote)
        return pdxi_refuse(why, PDX_EINVAL, "a layout is NULL.");
    rc = route_read_opts(&o, opts, why);
    if (rc == 0)
        rc = pdxi_pairing_init(&p, local, remote, &o.types, o.o.flags, why);
    if (rc == 0)
        pdxi_pairing_fini(&p);
    return rc;
}

static int route_check_args(struct pdx_engine *engine, const struct pdx_layout *local,
                            struct pdx_peer *peer, const struct pdx_layout *remote,
                            struct pdx_error *why)
{
    if (!engine || !local || !peer || !remote)
        return pdxi_refuse(why, PDX_EINVAL, "engine, peer or a layout is NULL.");
    if (local->decoded)
        return pdxi_refuse(why, PDX_EINVAL,
                           "the local layout is a decoded one. Pass the one that pdx_layout_create "
                           "made; the peer's goes second.");
    return route_check_peer(engine, peer, remote, why);
}

static int route_make(const struct route_options *o, const struct pdxi_pairing *p,
                      const struct pdx_layout *local, struct pdx_peer *peer,
                      const struct pdx_layout *remote, struct pdx_route **ret_route,
                      struct pdx_error *why)
{
    struct pdx_route *route = calloc(1, sizeof *route);
    int rc;

    if (route)
        route->components = calloc(local->ncomponents + 1, sizeof *route->components);
    if (!route || !route->components) {
        pdx_route_destroy(route);
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a route.");
    }
    route->flags = o->o.flags;
    route->log = o->o.log;
    route->log_ctx = o->o.log_ctx;
    rc = route_fill(route, p, peer, local, remote, why);
    if (rc < 0)
        pdx_route_destroy(route);
    else
        *ret_route = route;
    return rc;
}

int pdx_route_create(struct pdx_engine *engine, const struct pdx_layout *local,
                     struct pdx_peer *peer, const struct pdx_layout *remote,
                     const struct pdx_route_opts *opts, struct pdx_route **ret_route,
                     struct pdx_error *why)
{
    struct route_options o;
    struct pdxi_pairing p;
    int rc;

    if (!ret_route)
        return pdxi_refuse(why, PDX_EINVAL, "ret_route is NULL.");
    if ((rc = route_read_opts(&o, opts, why)) < 0 ||
        (rc = route_check_args(engine, local, peer, remote, why)) < 0 ||
        (rc = pdxi_pairing_init(&p, local, remote, &o.types, o.o.flags, why)) < 0)
        return rc;
    rc = route_make(&o, &p, local, peer, remote, ret_route, why);
    pdxi_pairing_fini(&p);
    return rc;
}

void pdx_route_destroy(struct pdx_route *route)
{
    if (!route)
        return;
    pdxi_route_part_fini(&route->kv);
    pdxi_route_part_fini(&route->aux);
    for (uint32_t i = 0; i < route->ncomponents; i++)
        pdxi_route_part_fini(&route->components[i]);
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
