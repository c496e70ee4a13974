/* SPDX-License-Identifier: Apache-2.0
 *
 * What a target owes its initiator, in the order of the requests.
 */
#include "base/error.h"
#include "engine/engine.h"
#include "engine/region.h"
#include "engine/tcp/tcp_served.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_ARENA_MIN (PDXI_FRAME_PREFIX_LEN + 64 + PDXI_FRAME_TEXT_MAX)
#define ANSWER_IOVS_MIN  4u

static struct tcp_answer *answer_new(struct tcp_served *v, enum pdxi_frame_type type, uint64_t seq)
{
    struct tcp_answer *a = pdxi_pool_get(&v->engine->pool, sizeof *a);
    struct pdx_error why;

    if (!a) {
        pdxi_error_set(&why, PDX_ENOMEM, PDX_COST_PEER, "no memory to answer");
        tcp_served_end(v, &why);
        return NULL;
    }
    a->type = type;
    a->seq = seq;
    a->table = NULL;
    pdxi_list_add_tail(&v->answers, &a->link);
    pdxi_stream_kick(v->stream);
    return a;
}

static void answer_free(struct tcp_served *v, struct tcp_answer *a)
{
    pdxi_list_remove(&a->link);
    pdxi_pool_put(&v->engine->pool, a->table);
    pdxi_pool_put(&v->engine->pool, a);
}

void tcp_answer_ack(struct tcp_served *v, uint64_t seq)
{
    struct tcp_answer *last;

    pdxi_stream_kick(v->stream);
    if (pdxi_list_empty(&v->answers)) {
        v->ack_seq = seq;
        return;
    }
    last = pdxi_container_of(v->answers.prev, struct tcp_answer, link);
    if (last->type == PDXI_FRAME_ACK)
        last->seq = seq;
    else
        (void)answer_new(v, PDXI_FRAME_ACK, seq);
}

void tcp_answer_err(struct tcp_served *v, uint64_t seq, const struct pdx_error *why)
{
    struct tcp_answer *a = answer_new(v, PDXI_FRAME_ERR, seq);

    pdxi_stat_add(&v->engine->stats, PDXI_STAT_REFUSED_FRAMES, 1);
    if (!a)
        return;
    a->code = why->code;
    (void)snprintf(a->text, sizeof a->text, "%.*s", PDXI_FRAME_TEXT_MAX, why->text);
}

int tcp_answer_read(struct tcp_served *v, uint64_t seq, struct pdx_region *region,
                    const struct pdxi_frame_data *f, uint8_t *table)
{
    struct tcp_answer *a = answer_new(v, PDXI_FRAME_READ_DATA, seq);

    if (!a) {
        pdxi_pool_put(&v->engine->pool, table);
        return PDX_ENOMEM;
    }
    a->region = region;
    a->frame = *f;
    a->table = table;
    return 0;
}

static void answer_put_ack(struct pdxi_batch *b, uint64_t seq)
{
    struct pdxi_frame_ack f = {.seq = seq};
    uint8_t *buf = pdxi_batch_room(b, ANSWER_ARENA_MIN);

    pdxi_batch_commit(b, (uint32_t)pdxi_frame_ack_encode(buf, &f));
}

static void answer_put_err(struct pdxi_batch *b, uint64_t seq, int code, const char *text)
{
    struct pdxi_frame_err f = {.seq = seq, .code = code};
    uint8_t *buf = pdxi_batch_room(b, ANSWER_ARENA_MIN);

    (void)pdxi_text_append(f.text, sizeof f.text, 0, "%s", text);
    pdxi_batch_commit(b, (uint32_t)pdxi_frame_err_encode(buf, &f));
}

/* The data, and behind it the word that it is valid. */
static void answer_put_read(struct tcp_served *v, struct pdxi_batch *b, const struct tcp_answer *a)
{
    struct pdxi_frame_read_data f = {.seq = a->seq, .payload = a->frame.payload};
    uint8_t *buf = pdxi_batch_room(b, ANSWER_ARENA_MIN);

    pdxi_batch_commit(b, (uint32_t)pdxi_frame_read_data_encode(buf, &f));
    for (uint32_t i = 0; i < a->frame.nsegs; i++) {
        struct pdxi_frame_seg seg = tcp_seg(&a->frame, a->table, i);
        const char *from = a->region->ptr + seg.off;

        __builtin_prefetch(from, 0, 2);
        pdxi_batch_refer(b, from, seg.len);
    }
    answer_put_ack(b, a->seq);
    v->reads_mixed |= v->read_region && v->read_region != a->region;
    v->read_region = a->region;
    pdxi_count(&a->region->bytes_out, a->frame.payload);
    pdxi_stat_add(&v->engine->stats, PDXI_STAT_BYTES_IN_READ, a->frame.payload);
    tcp_track_bytes(v, a->frame.xfer, a->frame.payload);
}

/* Returns false when the batch has no room for it. *ret_failed gets the transfer whose data can't
 * be sent any more, for the reason *ret_why. */
static bool answer_put(struct tcp_served *v, struct pdxi_batch *b, const struct tcp_answer *a,
                       uint64_t *ret_failed, struct pdx_error *ret_why)
{
    switch ((int)a->type) {
    case PDXI_FRAME_ACK:
        answer_put_ack(b, a->seq);
        return true;
    case PDXI_FRAME_ERR:
        answer_put_err(b, a->seq, a->code, a->text);
        return true;
    default:
        break;
    }
    if (b->niov > 0 && PDXI_BATCH_IOVS - b->niov < a->frame.nsegs + ANSWER_IOVS_MIN)
        return false;
    if (!pdxi_region_offered(a->region, a->frame.region_generation)) {
        pdxi_error_set(ret_why, PDX_ESTALE, PDX_COST_TRANSFER,
                       "region %u was deregistered before it was read", a->frame.region_id);
        answer_put_err(b, a->seq, ret_why->code, ret_why->text);
        *ret_failed = a->frame.xfer;
        return true;
    }
    answer_put_read(v, b, a);
    return true;
}

static bool answer_has_room(const struct pdxi_batch *b)
{
    return PDXI_BATCH_IOVS - b->niov >= ANSWER_IOVS_MIN &&
           PDXI_BATCH_ARENA - b->arena_len >= 2 * ANSWER_ARENA_MIN;
}

void tcp_answer_fill(struct tcp_served *v, struct pdxi_batch *b)
{
    if (v->ack_seq) {
        answer_put_ack(b, v->ack_seq);
        v->answered_seq = v->ack_seq;
        v->ack_seq = 0;
    }
    while (!v->closed && !pdxi_list_empty(&v->answers) && answer_has_room(b)) {
        struct tcp_answer *a = pdxi_container_of(v->answers.next, struct tcp_answer, link);
        uint64_t failed = 0;
        struct pdx_error why;

        if (!answer_put(v, b, a, &failed, &why))
            return;
        v->answered_seq = a->seq;
        answer_free(v, a);
        if (failed)
            tcp_track_fail(v, failed, &why); /* last: its hook may close us */
    }
}

void tcp_answer_drop_all(struct tcp_served *v)
{
    while (!pdxi_list_empty(&v->answers))
        answer_free(v, pdxi_container_of(v->answers.next, struct tcp_answer, link));
}
