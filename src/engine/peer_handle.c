/* SPDX-License-Identifier: Apache-2.0
 *
 * What a caller does with a peer: add it, look at it, wait for it, put it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "engine/engine.h"
#include "engine/peer.h"

#include <stdio.h>
#include <string.h>

/* Counts one more holder, unless the last one has just gone. */
static bool peer_share(struct pdx_peer *peer)
{
    uint32_t users = atomic_load(&peer->users);

    while (users > 0) {
        if (atomic_compare_exchange_weak(&peer->users, &users, users + 1))
            return true;
    }
    return false;
}

/* Under the engine's lock: the same incarnation shared, older ones of the name told. */
static struct pdx_peer *peer_look_up(struct pdx_engine *engine, const struct pdxi_engine_desc *desc)
{
    struct pdx_peer *found = NULL;
    struct pdxi_list *pos;

    pdxi_list_for_each (pos, &engine->peers) {
        struct pdx_peer *peer = pdxi_container_of(pos, struct pdx_peer, link);

        if (memcmp(peer->desc.incarnation, desc->incarnation, PDX_INCARNATION_LEN) == 0) {
            if (!found && peer_share(peer))
                found = peer;
        } else if (strcmp(peer->desc.name, desc->name) == 0 &&
                   !atomic_exchange(&peer->superseded, 1)) {
            pdxi_peer_get(peer);
            if (!pdxi_reactor_post(&engine->reactor, &peer->supersede_cmd))
                pdxi_peer_drop(peer);
        }
    }
    return found;
}

/* A descriptor that names only loopback addresses serves only its own machine. */
static int peer_check_host(const struct pdx_engine *engine, const struct pdxi_engine_desc *desc,
                           struct pdx_error *why)
{
    struct pdxi_sockaddr a;

    if (memcmp(desc->host, engine->desc->host, PDXI_HOST_LEN) == 0)
        return 0;
    for (uint32_t i = 0; i < desc->naddrs; i++) {
        if (pdxi_sock_lookup(desc->addrs[i], true, &a, 1, NULL) < 1 || !pdxi_sock_is_loopback(&a))
            return 0;
    }
    return pdxi_refuse(why, PDX_EINVAL,
                       "peer %s is on another host but advertises only loopback (%s); this engine, "
                       "%s, has %s; bind the peer to an address that this host can reach "
                       "(pdx_engine_opts.bind, and advertise where it differs)",
                       desc->name, desc->addrs[0], engine->name, engine->advertised);
}

int pdx_peer_add(struct pdx_engine *engine, const void *desc, size_t len,
                 struct pdx_peer **ret_peer, struct pdx_error *why)
{
    struct pdxi_engine_desc d;
    struct pdx_peer *peer;
    int r;

    r = pdxi_engine_desc_decode(desc, len, &d, why);
    if (r == 0)
        r = peer_check_host(engine, &d, why);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&engine->lock);
    peer = peer_look_up(engine, &d);
    if (peer) {
        /* shared */
    } else if (engine->npeers >= engine->max_peers) {
        r = pdxi_refuse(why, PDX_EAGAIN, "engine %s has %u peers already (option max_peers)",
                        engine->name, engine->npeers);
    } else if (!(peer = pdxi_peer_new(engine, &d))) {
        r = pdxi_refuse(why, PDX_ENOMEM, "no memory for a peer");
    } else if (!pdxi_reactor_post(&engine->reactor, &peer->begin_cmd)) {
        r = pdxi_refuse(why, PDX_ESHUTDOWN, "engine %s is being destroyed", engine->name);
        atomic_store(&peer->refs, 1);
    } else {
        pdxi_list_add_tail(&engine->peers, &peer->link);
        engine->npeers++;
    }
    (void)pthread_mutex_unlock(&engine->lock);
    if (r == PDX_ESHUTDOWN)
        pdxi_peer_drop(peer);
    if (r == 0)
        *ret_peer = peer;
    return r;
}

void pdx_peer_put(struct pdx_peer *peer)
{
    if (!peer || atomic_fetch_sub(&peer->users, 1) != 1)
        return;
    pdxi_peer_get(peer); /* post touches the engine after the command may have run */
    if (!pdxi_reactor_post(&peer->engine->reactor, &peer->close_cmd))
        pdxi_peer_drop(peer);
    pdxi_peer_drop(peer);
}

enum pdx_peer_state pdx_peer_state(const struct pdx_peer *peer, struct pdx_error *why)
{
    enum pdx_peer_state state = atomic_load(&peer->state);

    if (!why)
        return state;
    (void)pthread_mutex_lock(&peer->engine->lock);
    state = atomic_load(&peer->state);
    if (state == PDX_PEER_UP)
        memset(why, 0, sizeof *why);
    else
        *why = peer->reason;
    (void)pthread_mutex_unlock(&peer->engine->lock);
    return state;
}

const char *pdx_peer_state_name(enum pdx_peer_state state)
{
    switch (state) {
    case PDX_PEER_CONNECTING:
        return "connecting";
    case PDX_PEER_UP:
        return "up";
    case PDX_PEER_DOWN:
        return "down";
    case PDX_PEER_STALE:
        return "stale";
    case PDX_PEER_CLOSED:
        return "closed";
    }
    return "?";
}

int pdx_peer_wait_up(struct pdx_peer *peer, uint64_t timeout_ns, struct pdx_error *why)
{
    uint64_t until_ns = pdxi_after_ns(pdxi_now_ns(), timeout_ns);

    if (pdxi_reactor_is_any())
        return pdxi_refuse(why, PDX_EREACTOR, "pdx_peer_wait_up would block a callback");
    for (;;) {
        enum pdx_peer_state state = pdx_peer_state(peer, why);

        if (state == PDX_PEER_UP)
            return 0;
        if (state == PDX_PEER_STALE)
            return PDX_ESTALE;
        if (state == PDX_PEER_CLOSED)
            return PDX_ESHUTDOWN;
        if (pdxi_now_ns() >= until_ns) {
            if (why)
                why->code = PDX_ETIMEDOUT;
            return PDX_ETIMEDOUT;
        }
        pdxi_futex_wait(&peer->state, state, until_ns);
    }
}

void pdx_peer_info(const struct pdx_peer *peer, struct pdx_peer_info *ret_info)
{
    memset(ret_info, 0, sizeof *ret_info);
    memcpy(ret_info->name, peer->desc.name, sizeof ret_info->name);
    memcpy(ret_info->incarnation, peer->desc.incarnation, PDX_INCARNATION_LEN);
    ret_info->engine = peer->engine;
    (void)pthread_mutex_lock(&peer->engine->lock);
    ret_info->state = atomic_load(&peer->state);
    (void)snprintf(ret_info->address, sizeof ret_info->address, "%s", peer->address);
    (void)pthread_mutex_unlock(&peer->engine->lock);
}
