/* SPDX-License-Identifier: Apache-2.0
 *
 * What the target knows of transfers that peers directed at it, by the
 * initiator's incarnation and its id. A record appears with the first tracked
 * frame, gets its final code exactly once, and goes when it is forgotten, too
 * old, or one too many.
 */
#ifndef PDXI_INBOUND_H
#define PDXI_INBOUND_H

#include "base/list.h"
#include "base/pool.h"

#include <pdx/engine.h>
#include <pthread.h>

struct pdxi_inbound_rec;

struct pdxi_inbound {
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* a record became final, or the table closed */
    struct pdxi_pool *pool;    /* borrowed from the engine */
    struct pdxi_list *buckets; /* owned; nbuckets, a power of two */
    struct pdxi_list finished; /* oldest first */
    struct pdxi_list progress;
    uint32_t nbuckets;
    uint32_t max;
    uint32_t count;
    uint64_t age_ns;
    uint64_t evicted;
    uint64_t aged;
    bool closed;
};

int pdxi_inbound_init(struct pdxi_inbound *in, struct pdxi_pool *pool, uint32_t max,
                      uint64_t age_ns);
void pdxi_inbound_fini(struct pdxi_inbound *in);

/* Wakes every waiter with PDX_ESHUTDOWN, from now on. */
void pdxi_inbound_close(struct pdxi_inbound *in);

/* A transfer (or notification) of this key begins; what an earlier use of the key left is replaced.
 * `xfer` tells a repeated BEGIN of the same transfer (over a new connection) from a new use.
 * Returns 0, PDX_ENOMEM, or PDX_EAGAIN when `max` records are in progress. */
int pdxi_inbound_begin(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                       const char *peer, uint64_t xfer, uint64_t id, uint64_t now_ns);

void pdxi_inbound_add_bytes(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                            uint64_t id, uint64_t bytes);

/* The final code. Returns true, and a copy in *ret_rec when not NULL, if the record was in
 * progress; false when it is unknown or final already. */
bool pdxi_inbound_end(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                      uint64_t id, enum pdx_inbound_code code, int err, const char *text,
                      const void *payload, size_t payload_len, uint64_t now_ns,
                      struct pdx_inbound *ret_rec);

/* The initiator is lost: one of its records in progress, if there is any, ends FAILED. Call until
 * it returns false. */
bool pdxi_inbound_fail_next(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                            int err, const char *text, uint64_t now_ns,
                            struct pdx_inbound *ret_rec);

/* The three counters of the table; drops what is too old first. */
void pdxi_inbound_count(struct pdxi_inbound *in, struct pdx_engine_counters *ret);

/* See pdx_inbound_get and pdx_inbound_wait; until_ns 0 does not wait. */
int pdxi_inbound_take(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                      uint64_t id, uint64_t until_ns, bool forget, struct pdx_inbound *ret_rec);

#endif
