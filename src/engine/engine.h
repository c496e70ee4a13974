/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's own struct: what its parts share. Who may touch what is said
 * per member.
 */
#ifndef PDXI_ENGINE_H
#define PDXI_ENGINE_H

#include "base/log.h"
#include "base/pool.h"
#include "base/slab.h"
#include "engine/inbound.h"
#include "engine/proto/descriptor.h"
#include "engine/reactor.h"
#include "engine/stats.h"

#include <pdx/engine.h>
#include <pthread.h>
#include <stdatomic.h>

#define PDXI_DEADLINE_MAX_NS (24 * 3600 * PDX_SEC) /* of one transfer, and of the default */

struct pdxi_listener;

struct pdx_engine {
    _Atomic uint32_t refs; /* the creator's, and one per object that outlives destroy */
    _Atomic bool stopping; /* submissions are refused */

    /* Constant after creation. */
    char *name;       /* owned */
    char *congestion; /* owned */
    struct pdxi_log log;
    uint64_t deadline_ns;
    uint64_t keepalive_ns;
    uint64_t connect_timeout_ns;
    uint64_t drain_ns;
    uint64_t spin_ns;
    uint32_t max_peers;
    uint32_t max_sessions;
    pdx_inbound_fn on_inbound;
    void *on_inbound_ctx;
    struct pdxi_engine_desc *desc; /* owned */
    char *address;                 /* owned: the bound address */
    char *advertised;              /* owned: comma-separated */
    uint16_t port;

    /* Any thread. */
    struct pdxi_slab transfers;
    struct pdxi_slab regions;
    _Atomic uint32_t nrevoked; /* regions that wait for the end of their deregistration */
    struct pdxi_pool pool;
    struct pdxi_inbound inbound;
    struct pdxi_stats stats;
    _Atomic uint64_t next_number; /* of transfers */
    _Atomic uint32_t inflight;    /* transfers that are not terminal */
    pthread_mutex_t lock;         /* of the peers' list and of what peers show */
    struct pdxi_list peers;
    uint32_t npeers;

    /* The reactor's. */
    struct pdxi_reactor reactor;
    struct pdxi_listener *listener; /* owned */
    struct pdxi_list sessions;
    _Atomic uint32_t nsessions;
    uint64_t next_lookup;
};

void pdxi_engine_get(struct pdx_engine *engine);
void pdxi_engine_drop(struct pdx_engine *engine);

/* Reactor thread: ends everything, as the last thing it does. */
void pdxi_engine_shutdown(struct pdx_engine *engine);

#endif
