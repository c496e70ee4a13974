/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/inbound.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pdxi_inbound_rec {
    struct pdxi_list bucket;
    struct pdxi_list order; /* of the finished ones, or of those in progress */
    uint8_t incarnation[PDX_INCARNATION_LEN];
    uint64_t id;
    uint64_t xfer;
    enum pdx_inbound_code code;
    int err;
    uint64_t bytes;
    uint64_t began_ns;
    uint64_t ended_ns;
    char *text;    /* owned pool block, or NULL */
    void *payload; /* owned pool block, or NULL */
    uint32_t payload_len;
    char peer[PDX_NAME_MAX + 1];
};

int pdxi_inbound_init(struct pdxi_inbound *in, struct pdxi_pool *pool, uint32_t max,
                      uint64_t age_ns)
{
    pthread_condattr_t attr;
    uint32_t n = 16;

    memset(in, 0, sizeof *in);
    while (n < max && n < (1u << 20))
        n *= 2;
    in->buckets = malloc(n * sizeof *in->buckets);
    if (!in->buckets)
        return PDX_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        pdxi_list_init(&in->buckets[i]);
    in->nbuckets = n;
    in->pool = pool;
    in->max = max;
    in->age_ns = age_ns;
    pdxi_list_init(&in->finished);
    pdxi_list_init(&in->progress);
    (void)pthread_mutex_init(&in->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&in->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    return 0;
}

static void inbound_remove(struct pdxi_inbound *in, struct pdxi_inbound_rec *rec)
{
    pdxi_list_remove(&rec->bucket);
    pdxi_list_remove(&rec->order);
    pdxi_pool_put(in->pool, rec->text);
    pdxi_pool_put(in->pool, rec->payload);
    pdxi_pool_put(in->pool, rec);
    in->count--;
}

void pdxi_inbound_fini(struct pdxi_inbound *in)
{
    if (!in->buckets)
        return;
    for (uint32_t i = 0; i < in->nbuckets; i++) {
        while (!pdxi_list_empty(&in->buckets[i]))
            inbound_remove(in,
                           pdxi_container_of(in->buckets[i].next, struct pdxi_inbound_rec, bucket));
    }
    free(in->buckets);
    in->buckets = NULL;
    (void)pthread_cond_destroy(&in->changed);
    (void)pthread_mutex_destroy(&in->lock);
}

void pdxi_inbound_close(struct pdxi_inbound *in)
{
    (void)pthread_mutex_lock(&in->lock);
    in->closed = true;
    (void)pthread_cond_broadcast(&in->changed);
    (void)pthread_mutex_unlock(&in->lock);
}

/* Incarnations are random, ids are not. */
static struct pdxi_list *inbound_bucket(const struct pdxi_inbound *in,
                                        const uint8_t incarnation[PDX_INCARNATION_LEN], uint64_t id)
{
    uint64_t h;

    memcpy(&h, incarnation, sizeof h);
    h = (h ^ id) * UINT64_C(0x9e3779b97f4a7c15);
    return &in->buckets[(h >> 32) & (in->nbuckets - 1)];
}

static struct pdxi_inbound_rec *inbound_find(const struct pdxi_inbound *in,
                                             const uint8_t incarnation[PDX_INCARNATION_LEN],
                                             uint64_t id)
{
    struct pdxi_list *bucket = inbound_bucket(in, incarnation, id);
    struct pdxi_list *pos;

    pdxi_list_for_each (pos, bucket) {
        struct pdxi_inbound_rec *rec = pdxi_container_of(pos, struct pdxi_inbound_rec, bucket);

        if (rec->id == id && memcmp(rec->incarnation, incarnation, PDX_INCARNATION_LEN) == 0)
            return rec;
    }
    return NULL;
}

/* Drops finished records that are too old, and the oldest until `room` more fit. */
static void inbound_trim(struct pdxi_inbound *in, uint64_t now_ns, uint32_t room)
{
    while (!pdxi_list_empty(&in->finished)) {
        struct pdxi_inbound_rec *rec =
            pdxi_container_of(in->finished.next, struct pdxi_inbound_rec, order);

        if (now_ns - rec->ended_ns >= in->age_ns)
            in->aged++;
        else if (in->count + room > in->max)
            in->evicted++;
        else
            return;
        inbound_remove(in, rec);
    }
}

static int inbound_begin_locked(struct pdxi_inbound *in, const uint8_t *incarnation,
                                const char *peer, uint64_t xfer, uint64_t id, uint64_t now_ns)
{
    struct pdxi_inbound_rec *rec = inbound_find(in, incarnation, id);

    if (rec && rec->xfer == xfer && xfer != 0)
        return 0; /* goes on over a new connection, or its end was heard already */
    if (rec)
        inbound_remove(in, rec);
    inbound_trim(in, now_ns, 1);
    if (in->count >= in->max)
        return PDX_EAGAIN;
    rec = pdxi_pool_get(in->pool, sizeof *rec);
    if (!rec)
        return PDX_ENOMEM;
    memset(rec, 0, sizeof *rec);
    memcpy(rec->incarnation, incarnation, PDX_INCARNATION_LEN);
    (void)snprintf(rec->peer, sizeof rec->peer, "%s", peer);
    rec->id = id;
    rec->xfer = xfer;
    rec->code = PDX_INBOUND_IN_PROGRESS;
    rec->began_ns = now_ns;
    pdxi_list_add_tail(&in->progress, &rec->order);
    pdxi_list_add_tail(inbound_bucket(in, incarnation, id), &rec->bucket);
    in->count++;
    return 0;
}

int pdxi_inbound_begin(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                       const char *peer, uint64_t xfer, uint64_t id, uint64_t now_ns)
{
    int r;

    (void)pthread_mutex_lock(&in->lock);
    r = inbound_begin_locked(in, incarnation, peer, xfer, id, now_ns);
    (void)pthread_mutex_unlock(&in->lock);
    return r;
}

void pdxi_inbound_add_bytes(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                            uint64_t id, uint64_t bytes)
{
    struct pdxi_inbound_rec *rec;

    (void)pthread_mutex_lock(&in->lock);
    rec = inbound_find(in, incarnation, id);
    if (rec && rec->code == PDX_INBOUND_IN_PROGRESS)
        rec->bytes += bytes;
    (void)pthread_mutex_unlock(&in->lock);
}

static void inbound_copy(const struct pdxi_inbound_rec *rec, struct pdx_inbound *ret)
{
    memcpy(ret->incarnation, rec->incarnation, sizeof ret->incarnation);
    ret->id = rec->id;
    ret->code = rec->code;
    ret->err = rec->err;
    ret->bytes = rec->bytes;
    ret->began_ns = rec->began_ns;
    ret->ended_ns = rec->ended_ns;
    memcpy(ret->peer, rec->peer, sizeof ret->peer);
    (void)pdxi_text_append(ret->text, sizeof ret->text, 0, "%s", rec->text ? rec->text : "");
    ret->payload_len = rec->payload_len;
    if (rec->payload_len)
        memcpy(ret->payload, rec->payload, rec->payload_len);
}

/* Without memory for text or payload the record still gets its code; a payload that is lost makes
 * it FAILED rather than a DONE that lacks it. */
static void inbound_finish(struct pdxi_inbound *in, struct pdxi_inbound_rec *rec,
                           enum pdx_inbound_code code, int err, const char *text,
                           const void *payload, size_t payload_len, uint64_t now_ns)
{
    rec->code = code;
    rec->err = err;
    rec->ended_ns = now_ns;
    if (payload_len) {
        rec->payload = pdxi_pool_get(in->pool, payload_len);
        if (rec->payload) {
            memcpy(rec->payload, payload, payload_len);
            rec->payload_len = (uint32_t)payload_len;
        } else {
            rec->code = PDX_INBOUND_FAILED;
            rec->err = PDX_ENOMEM;
            text = "no memory for the notification's payload";
        }
    }
    if (text && text[0]) {
        size_t len = strlen(text) + 1;

        rec->text = pdxi_pool_get(in->pool, len);
        if (rec->text)
            memcpy(rec->text, text, len);
    }
    pdxi_list_remove(&rec->order);
    pdxi_list_add_tail(&in->finished, &rec->order);
    (void)pthread_cond_broadcast(&in->changed);
}

bool pdxi_inbound_end(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                      uint64_t id, enum pdx_inbound_code code, int err, const char *text,
                      const void *payload, size_t payload_len, uint64_t now_ns,
                      struct pdx_inbound *ret_rec)
{
    struct pdxi_inbound_rec *rec;
    bool ended = false;

    (void)pthread_mutex_lock(&in->lock);
    rec = inbound_find(in, incarnation, id);
    if (rec && rec->code == PDX_INBOUND_IN_PROGRESS) {
        inbound_finish(in, rec, code, err, text, payload, payload_len, now_ns);
        if (ret_rec)
            inbound_copy(rec, ret_rec);
        ended = true;
    }
    (void)pthread_mutex_unlock(&in->lock);
    return ended;
}

/* Records of others go to the end of the list, so that a walk over many records of one initiator
 * looks at each record about once. */
static struct pdxi_inbound_rec *inbound_next_of(struct pdxi_inbound *in, const uint8_t *incarnation)
{
    struct pdxi_list *passed = NULL;
    struct pdxi_list *first;

    while ((first = pdxi_list_first(&in->progress)) && first != passed) {
        struct pdxi_inbound_rec *rec = pdxi_container_of(first, struct pdxi_inbound_rec, order);

        if (memcmp(rec->incarnation, incarnation, PDX_INCARNATION_LEN) == 0)
            return rec;
        if (!passed)
            passed = first;
        pdxi_list_remove(first);
        pdxi_list_add_tail(&in->progress, first);
    }
    return NULL;
}

bool pdxi_inbound_fail_next(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                            int err, const char *text, uint64_t now_ns, struct pdx_inbound *ret_rec)
{
    struct pdxi_inbound_rec *rec;

    (void)pthread_mutex_lock(&in->lock);
    rec = inbound_next_of(in, incarnation);
    if (rec) {
        inbound_finish(in, rec, PDX_INBOUND_FAILED, err, text, NULL, 0, now_ns);
        if (ret_rec)
            inbound_copy(rec, ret_rec);
    }
    (void)pthread_mutex_unlock(&in->lock);
    return rec != NULL;
}

void pdxi_inbound_count(struct pdxi_inbound *in, struct pdx_engine_counters *ret)
{
    (void)pthread_mutex_lock(&in->lock);
    inbound_trim(in, pdxi_now_ns(), 0);
    ret->inbound_records = in->count;
    ret->inbound_evicted = in->evicted;
    ret->inbound_aged = in->aged;
    (void)pthread_mutex_unlock(&in->lock);
}

int pdxi_inbound_take(struct pdxi_inbound *in, const uint8_t incarnation[PDX_INCARNATION_LEN],
                      uint64_t id, uint64_t until_ns, bool forget, struct pdx_inbound *ret_rec)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / PDX_SEC),
                             .tv_nsec = (long)(until_ns % PDX_SEC)};
    struct pdxi_inbound_rec *rec;
    int r = 0;

    (void)pthread_mutex_lock(&in->lock);
    for (;;) {
        inbound_trim(in, pdxi_now_ns(), 0);
        rec = inbound_find(in, incarnation, id);
        if (rec && (rec->code != PDX_INBOUND_IN_PROGRESS || until_ns == 0))
            break;
        if (in->closed)
            r = PDX_ESHUTDOWN;
        else if (until_ns == 0)
            r = PDX_ENOENT;
        else if (pdxi_now_ns() >= until_ns)
            r = PDX_ETIMEDOUT;
        if (r < 0)
            break;
        if (until_ns == UINT64_MAX)
            (void)pthread_cond_wait(&in->changed, &in->lock);
        else
            (void)pthread_cond_timedwait(&in->changed, &in->lock, &until);
    }
    if (r == 0) {
        inbound_copy(rec, ret_rec);
        if (forget && rec->code != PDX_INBOUND_IN_PROGRESS)
            inbound_remove(in, rec);
    }
    (void)pthread_mutex_unlock(&in->lock);
    return r;
}
