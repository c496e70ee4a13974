/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/utf8.h"
#include "engine/advertise.h"
#include "engine/listener.h"
#include "engine/peer.h"
#include "engine/region.h"
#include "engine/session.h"
#include "engine/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define WATCHES_SPARE 64 /* besides connections: doorbell, listener, greeters */

/* ---- options ---------------------------------------------------------- */

void pdx_engine_opts_init(struct pdx_engine_opts *opts)
{
    memset(opts, 0, sizeof *opts);
    opts->size = sizeof *opts;
    opts->bind = "127.0.0.1:0";
    opts->io = PDX_IO_AUTO;
    opts->deadline_ns = 30 * PDX_SEC;
    opts->keepalive_ns = 2 * PDX_SEC;
    opts->connect_timeout_ns = 5 * PDX_SEC;
    opts->drain_ns = 10 * PDX_MSEC;
    opts->max_transfers = 65536;
    opts->max_regions = 16384;
    opts->max_peers = 4096;
    opts->max_sessions = 4096;
    opts->max_inbound = 65536;
    opts->inbound_age_ns = 300 * PDX_SEC;
    opts->tcp_congestion = "cubic";
    opts->log_level = PDX_LOG_INFO;
}

struct option_range {
    const char *name;
    uint64_t value;
    uint64_t min;
    uint64_t max;
};

static int engine_check_opts(const struct pdx_engine_opts *o, struct pdx_error *why)
{
    const struct option_range ranges[] = {
        {"io", (uint64_t)o->io, PDX_IO_AUTO, PDX_IO_EPOLL},
        {"deadline_ns", o->deadline_ns, PDX_MSEC, PDXI_DEADLINE_MAX_NS},
        {"keepalive_ns", o->keepalive_ns, 10 * PDX_MSEC, 3600 * PDX_SEC},
        {"connect_timeout_ns", o->connect_timeout_ns, PDX_MSEC, 3600 * PDX_SEC},
        {"drain_ns", o->drain_ns, PDX_MSEC, 60 * PDX_SEC},
        {"spin_ns", o->spin_ns, 0, PDX_SEC},
        {"max_transfers", o->max_transfers, 1, 1u << 20},
        {"max_regions", o->max_regions, 1, 1u << 20},
        {"max_peers", o->max_peers, 1, 1u << 16},
        {"max_sessions", o->max_sessions, 1, 1u << 16},
        {"max_inbound", o->max_inbound, 1, 1u << 24},
        {"inbound_age_ns", o->inbound_age_ns, 1, UINT64_MAX},
        {"log_level", (uint64_t)o->log_level, PDX_LOG_ERROR, PDX_LOG_DEBUG},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const struct option_range *r = &ranges[i];

        if (r->value < r->min || r->value > r->max)
            return pdxi_refuse(why, PDX_EINVAL, "engine option %s is %llu; it must be %llu .. %llu",
                               r->name, (unsigned long long)r->value, (unsigned long long)r->min,
                               (unsigned long long)r->max);
    }
    if (o->name && (o->name[0] == '\0' || strlen(o->name) > PDX_NAME_MAX ||
                    !pdxi_utf8_printable(o->name, strlen(o->name))))
        return pdxi_refuse(why, PDX_EINVAL,
                           "engine option name must have 1 .. %d bytes of printable UTF-8",
                           PDX_NAME_MAX);
    return 0;
}

/* What the caller's struct has, and the defaults for what it is too old to have. */
static int engine_read_opts(const struct pdx_engine_opts *opts, struct pdx_engine_opts *ret,
                            struct pdx_error *why)
{
    pdx_engine_opts_init(ret);
    if (opts) {
        if (opts->size < sizeof opts->size)
            return pdxi_refuse(why, PDX_EINVAL,
                               "engine options have size %zu; start from pdx_engine_opts_init",
                               opts->size);
        memcpy(ret, opts, opts->size < sizeof *ret ? opts->size : sizeof *ret);
    }
    if (!ret->bind)
        ret->bind = "127.0.0.1:0";
    if (!ret->tcp_congestion)
        ret->tcp_congestion = "cubic";
    return engine_check_opts(ret, why);
}

/* ---- life ------------------------------------------------------------- */

void pdxi_engine_get(struct pdx_engine *engine)
{
    atomic_fetch_add_explicit(&engine->refs, 1, memory_order_relaxed);
}

static void engine_free(struct pdx_engine *engine)
{
    pdxi_reactor_fini(&engine->reactor);
    pdxi_listener_free(engine->listener);
    pdxi_inbound_fini(&engine->inbound);
    pdxi_pool_fini(&engine->pool);
    pdxi_slab_fini(&engine->regions);
    pdxi_slab_fini(&engine->transfers);
    (void)pthread_mutex_destroy(&engine->lock);
    free(engine->desc);
    free(engine->name);
    free(engine->congestion);
    free(engine->address);
    free(engine->advertised);
    free(engine);
}

void pdxi_engine_drop(struct pdx_engine *engine)
{
    if (atomic_fetch_sub_explicit(&engine->refs, 1, memory_order_acq_rel) == 1)
        engine_free(engine);
}

static int engine_init_memory(struct pdx_engine *engine, const struct pdx_engine_opts *o)
{
    int r =
        pdxi_slab_init(&engine->transfers, sizeof(struct pdx_transfer_status), o->max_transfers);

    if (r == 0)
        r = pdxi_slab_init(&engine->regions, sizeof(struct pdx_region), o->max_regions);
    if (r == 0)
        r = pdxi_pool_init(&engine->pool, o->max_transfers);
    if (r == 0)
        r = pdxi_inbound_init(&engine->inbound, &engine->pool, o->max_inbound, o->inbound_age_ns);
    return r;
}

/* The default name differs between processes and containers: peers of one name replace each other.
 */
static char *engine_make_name(const struct pdx_engine_opts *o, const uint8_t *incarnation)
{
    char *name;

    if (o->name)
        return strdup(o->name);
    if (asprintf(&name, "pdx-%ld-%02x%02x%02x", (long)getpid(), incarnation[0], incarnation[1],
                 incarnation[2]) < 0)
        return NULL;
    return name;
}

static int engine_init_identity(struct pdx_engine *engine, const struct pdx_engine_opts *o,
                                struct pdx_error *why)
{
    struct pdxi_engine_desc *d = calloc(1, sizeof *d);

    engine->desc = d;
    if (!d)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an engine");
    if (getrandom(d->incarnation, sizeof d->incarnation, 0) != (ssize_t)sizeof d->incarnation)
        return pdxi_refuse(why, PDX_ESYS, "the system gives no random bytes for an incarnation");
    engine->congestion = strdup(o->tcp_congestion);
    engine->name = engine_make_name(o, d->incarnation);
    if (!engine->name || !engine->congestion)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an engine");
    (void)snprintf(d->name, sizeof d->name, "%s", engine->name);
    return 0;
}

/* Says which option an error comes from. */
static int engine_blame(int r, const char *option, struct pdx_error *why)
{
    char text[sizeof why->text];

    if (!why)
        return r;
    memcpy(text, why->text, sizeof text);
    (void)pdxi_text_append(why->text, sizeof why->text, 0, "engine option %s: %s", option, text);
    return r;
}

static int engine_init_listener(struct pdx_engine *engine, const struct pdx_engine_opts *o,
                                struct pdx_error *why)
{
    struct pdxi_sockaddr bound;
    char text[PDXI_SOCK_TEXT];
    int r = pdxi_listener_open(o->bind, &engine->listener, &bound, why);

    if (r < 0)
        return engine_blame(r, "bind", why);
    engine->port = pdxi_sock_port(&bound);
    pdxi_sock_text(&bound, text);
    engine->address = strdup(text);
    r = pdxi_advertise(o->advertise, &bound, engine->desc, why);
    if (r < 0)
        return engine_blame(r, "advertise", why);
    engine->advertised = pdxi_advertise_text(engine->desc);
    if (!engine->address || !engine->advertised)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an engine");
    return 0;
}

static int engine_init(struct pdx_engine *engine, const struct pdx_engine_opts *o,
                       struct pdx_error *why)
{
    int r;

    atomic_init(&engine->refs, 1);
    (void)pthread_mutex_init(&engine->lock, NULL);
    pdxi_list_init(&engine->peers);
    pdxi_list_init(&engine->sessions);
    engine->log = (struct pdxi_log){.fn = o->log, .ctx = o->log_ctx, .level = o->log_level};
    engine->deadline_ns = o->deadline_ns;
    engine->keepalive_ns = o->keepalive_ns;
    engine->connect_timeout_ns = o->connect_timeout_ns;
    engine->drain_ns = o->drain_ns;
    engine->spin_ns = o->spin_ns;
    engine->max_peers = o->max_peers;
    engine->max_sessions = o->max_sessions;
    engine->on_inbound = o->on_inbound;
    engine->on_inbound_ctx = o->on_inbound_ctx;
    if (engine_init_memory(engine, o) < 0)
        return pdxi_refuse(why, PDX_ENOMEM,
                           "no address space for %u transfers and %u regions; lower max_transfers "
                           "or max_regions",
                           o->max_transfers, o->max_regions);
    r = engine_init_identity(engine, o, why);
    if (r == 0)
        r = engine_init_listener(engine, o, why);
    return r;
}

/* The listener is served by the reactor, from its first loop on. */
struct engine_listen {
    struct pdxi_cmd cmd;
    struct pdx_engine *engine;
    struct pdx_error why;
    int result;
    _Atomic uint32_t done; /* futex word */
};

static void engine_on_listen(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct engine_listen *listen = pdxi_container_of(cmd, struct engine_listen, cmd);

    listen->result = pdxi_listener_start(listen->engine->listener, r, &listen->why);
    atomic_store(&listen->done, 1);
    pdxi_futex_wake_all(&listen->done);
}

static int engine_start(struct pdx_engine *engine, const struct pdx_engine_opts *o,
                        struct pdx_error *why)
{
    /* Two connections per peer and per session, and those that have not said HELLO. */
    uint32_t watches = 2 * (o->max_peers + o->max_sessions) + 1024 + WATCHES_SPARE;
    struct engine_listen listen = {.cmd = {.run = engine_on_listen}, .engine = engine};
    int r = pdxi_reactor_start(&engine->reactor, engine, o->io, watches, why);

    if (r < 0)
        return r;
    (void)pdxi_reactor_post(&engine->reactor, &listen.cmd);
    while (!atomic_load(&listen.done))
        pdxi_futex_wait(&listen.done, 0, UINT64_MAX);
    if (listen.result < 0) {
        pdxi_reactor_stop(&engine->reactor);
        if (why)
            *why = listen.why;
    }
    return listen.result;
}

int pdx_engine_create(const struct pdx_engine_opts *opts, struct pdx_engine **ret_engine,
                      struct pdx_error *why)
{
    struct pdx_engine_opts o;
    struct pdx_engine *engine;
    int r = engine_read_opts(opts, &o, why);

    if (r < 0)
        return r;
    engine = calloc(1, sizeof *engine);
    if (!engine)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an engine");
    r = engine_init(engine, &o, why);
    if (r == 0)
        r = engine_start(engine, &o, why);
    if (r < 0) {
        engine_free(engine);
        return r;
    }
    pdxi_log(&engine->log, PDX_LOG_INFO,
             "engine %s: listens on %s, advertises %s, waits with %s (%s)", engine->name,
             engine->address, engine->advertised, engine->reactor.io_name,
             engine->reactor.io_reason);
    *ret_engine = engine;
    return 0;
}

void pdxi_engine_shutdown(struct pdx_engine *engine)
{
    struct pdxi_list *pos;
    struct pdx_peer *peer;

    atomic_store(&engine->stopping, true);
    pdxi_listener_stop(engine->listener);
    pdxi_sessions_close(engine);
    for (;;) {
        (void)pthread_mutex_lock(&engine->lock);
        pos = pdxi_list_first(&engine->peers);
        peer = pos ? pdxi_container_of(pos, struct pdx_peer, link) : NULL;
        if (peer)
            pdxi_peer_get(peer);
        (void)pthread_mutex_unlock(&engine->lock);
        if (!peer)
            break;
        pdxi_peer_shutdown(peer); /* leaves the list */
        pdxi_peer_drop(peer);
    }
    pdxi_inbound_close(&engine->inbound);
}

int pdx_engine_destroy(struct pdx_engine *engine)
{
    if (!engine)
        return 0;
    if (pdxi_reactor_is_any())
        return PDX_EREACTOR;
    atomic_store(&engine->stopping, true);
    pdxi_reactor_stop(&engine->reactor);
    pdxi_engine_drop(engine);
    return 0;
}

/* ---- what it shows ---------------------------------------------------- */

size_t pdx_engine_desc(const struct pdx_engine *engine, void *buf, size_t cap)
{
    return pdxi_engine_desc_encode(engine->desc, buf, cap);
}

void pdx_engine_info(const struct pdx_engine *engine, struct pdx_engine_info *ret_info)
{
    ret_info->name = engine->name;
    ret_info->io = engine->reactor.io_name;
    ret_info->io_reason = engine->reactor.io_reason;
    ret_info->address = engine->address;
    ret_info->advertised = engine->advertised;
    ret_info->port = engine->port;
    memcpy(ret_info->incarnation, engine->desc->incarnation, PDX_INCARNATION_LEN);
}

int pdx_inbound_get(struct pdx_engine *engine, const uint8_t incarnation[PDX_INCARNATION_LEN],
                    uint64_t id, bool forget, struct pdx_inbound *ret_rec)
{
    return pdxi_inbound_take(&engine->inbound, incarnation, id, 0, forget, ret_rec);
}

int pdx_inbound_wait(struct pdx_engine *engine, const uint8_t incarnation[PDX_INCARNATION_LEN],
                     uint64_t id, uint64_t timeout_ns, bool forget, struct pdx_inbound *ret_rec)
{
    int r;

    if (pdxi_reactor_is_any())
        return PDX_EREACTOR;
    pdxi_engine_get(engine); /* its end wakes us */
    r = pdxi_inbound_take(&engine->inbound, incarnation, id,
                          pdxi_after_ns(pdxi_now_ns(), timeout_ns), forget, ret_rec);
    pdxi_engine_drop(engine);
    return r;
}
