/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/net/resolve.h"

#include "base/error.h"
#include "engine/engine.h"
#include "engine/peer.h"

#include <pthread.h>
#include <stdlib.h>

struct resolve_job {
    struct pdxi_cmd cmd;
    struct pdx_peer *peer; /* counted; keeps the engine too */
    uint64_t lookup;
    int naddrs;
    struct pdxi_sockaddr addrs[PDXI_ADDRS_MAX];
    struct pdx_error why;
};

/* All addresses in the advertised order. One that cannot be resolved is passed over; with none
 * left, the last reason stays in `why`. Returns how many, or -1 when a name is met and `numeric` is
 * set. */
static int resolve_all(const struct pdxi_engine_desc *desc, bool numeric,
                       struct pdxi_sockaddr *addrs, struct pdx_error *why)
{
    int n = 0;

    for (uint32_t i = 0; i < desc->naddrs && n < PDXI_ADDRS_MAX; i++) {
        int got = pdxi_sock_lookup(desc->addrs[i], numeric, addrs + n, PDXI_ADDRS_MAX - n, why);

        if (got > 0)
            n += got;
        else if (numeric)
            return -1;
    }
    return n;
}

static void resolve_done(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    struct resolve_job *job = pdxi_container_of(cmd, struct resolve_job, cmd);

    (void)r;
    pdxi_peer_resolved(job->peer, job->lookup, job->addrs, job->naddrs, &job->why);
    pdxi_peer_drop(job->peer);
    free(job);
}

static void *resolve_main(void *arg)
{
    struct resolve_job *job = arg;

    struct pdx_peer *peer = job->peer;

    job->naddrs = resolve_all(&peer->desc, false, job->addrs, &job->why);
    pdxi_peer_get(peer); /* post touches the engine after the command may have run */
    if (!pdxi_reactor_post(&peer->engine->reactor, &job->cmd)) {
        pdxi_peer_drop(peer);
        free(job);
    }
    pdxi_peer_drop(peer);
    return NULL;
}

static int resolve_spawn(struct resolve_job *job)
{
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    err = pthread_create(&thread, &attr, resolve_main, job);
    (void)pthread_attr_destroy(&attr);
    return err;
}

void pdxi_resolve_start(struct pdx_peer *peer, uint64_t lookup)
{
    struct pdxi_sockaddr addrs[PDXI_ADDRS_MAX];
    struct resolve_job *job;
    struct pdx_error why;
    int err;
    int n = resolve_all(&peer->desc, true, addrs, &why);

    if (n >= 0) {
        pdxi_peer_resolved(peer, lookup, addrs, n, &why);
        return;
    }
    job = calloc(1, sizeof *job);
    if (!job) {
        pdxi_refuse(&why, PDX_ENOMEM, "no memory to look up %s", peer->desc.addrs[0]);
        pdxi_peer_resolved(peer, lookup, NULL, 0, &why);
        return;
    }
    pdxi_peer_get(peer);
    job->cmd.run = resolve_done;
    job->peer = peer;
    job->lookup = lookup;
    err = resolve_spawn(job);
    if (err) {
        pdxi_error_sys(&why, err, "no thread to look up %s", peer->desc.addrs[0]);
        pdxi_peer_drop(peer);
        free(job);
        pdxi_peer_resolved(peer, lookup, NULL, 0, &why);
    }
}
