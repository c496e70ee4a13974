/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tcp/tcp_served.h"

#include "base/error.h"
#include "engine/engine.h"
#include "engine/region.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests --------------------------------------------------------- */

/* The next number, if the initiator may have one more frame unanswered. */
static int served_number(struct tcp_served *v, uint64_t *ret_seq, struct pdx_error *why)
{
    if (v->seq - v->answered_seq >= v->ack.max_frames)
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                              "more than %u frames without an answer", v->ack.max_frames);
    *ret_seq = ++v->seq;
    return 0;
}

/* Header, rights and bounds. Returns the region, or NULL: with *why PDX_EPROTO the connection is
 * garbage, else the one request is refused. */
static struct pdx_region *served_check(struct tcp_served *v, const struct pdxi_frame_data *f,
                                       const uint8_t *table, uint32_t right, struct pdx_error *why)
{
    struct pdx_region *region =
        pdxi_region_find(v->engine, f->region_id, f->region_generation, f->key, right, why);

    /* The sum of the lengths is checked in any case: it says where the next frame begins. */
    if (pdxi_frame_table_check(f, table, region ? region->len : UINT64_MAX, why) < 0)
        return NULL;
    return region;
}

static int served_keep_table(struct tcp_served *v, const struct pdxi_frame_data *f,
                             const uint8_t *table, uint8_t **ret, struct pdx_error *why)
{
    size_t len = (size_t)f->nsegs * PDXI_FRAME_SEG_LEN;

    *ret = NULL;
    if (f->nsegs == 1)
        return 0;
    *ret = pdxi_pool_get(&v->engine->pool, len);
    if (!*ret)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_TRANSFER, "no memory for a table");
    memcpy(*ret, table, len);
    return 0;
}

static int served_on_write(struct tcp_served *v, const uint8_t *body, size_t len,
                           uint64_t *ret_payload, struct pdx_error *why)
{
    const uint8_t *table = body + PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN;
    uint64_t seq = 0;
    int r = pdxi_frame_data_decode(body, len, &v->rx, why);

    if (r == 0)
        r = served_number(v, &seq, why);
    if (r < 0)
        return r;
    v->rx_region = served_check(v, &v->rx, table, PDX_RIGHT_WRITE, &v->rx_why);
    if (!v->rx_region && v->rx_why.code == PDX_EPROTO) {
        *why = v->rx_why;
        return PDX_EPROTO;
    }
    if (v->rx_region && served_keep_table(v, &v->rx, table, &v->rx_table, &v->rx_why) < 0)
        v->rx_region = NULL;
    v->rx_over = v->rx_region && tcp_track_is_over(v, v->rx.xfer);
    if (v->rx_over)
        v->rx_region = NULL;
    v->rx_seg = 0;
    v->rx_off = 0;
    *ret_payload = v->rx.payload;
    return 0;
}

static int served_on_read(struct tcp_served *v, const uint8_t *body, size_t len,
                          struct pdx_error *why)
{
    const uint8_t *table = body + PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN;
    struct pdxi_frame_data f;
    struct pdx_region *region;
    struct pdx_error refusal;
    uint8_t *kept;
    uint64_t seq = 0;
    int r = pdxi_frame_data_decode(body, len, &f, why);

    if (r == 0)
        r = served_number(v, &seq, why);
    if (r < 0)
        return r;
    region = served_check(v, &f, table, PDX_RIGHT_READ, &refusal);
    if (!region && refusal.code == PDX_EPROTO) {
        *why = refusal;
        return PDX_EPROTO;
    }
    if (region && served_keep_table(v, &f, table, &kept, &refusal) == 0)
        return tcp_answer_read(v, seq, region, &f, kept);
    tcp_answer_err(v, seq, &refusal);
    tcp_track_fail(v, f.xfer, &refusal);
    return 0;
}

static int served_on_begin(struct tcp_served *v, const uint8_t *body, size_t len,
                           struct pdx_error *why)
{
    struct pdxi_frame_begin f;
    int r = pdxi_frame_begin_decode(body, len, &f, why);

    return r < 0 ? r : tcp_track_begin(v, &f, why);
}

static int served_on_notify(struct tcp_served *v, const uint8_t *body, size_t len,
                            struct pdx_error *why)
{
    struct pdxi_frame_notify f;
    struct pdx_error refusal;
    uint64_t seq = 0;
    int r = pdxi_frame_notify_decode(body, len, &f, why);

    if (r == 0)
        r = served_number(v, &seq, why);
    if (r < 0)
        return r;
    if (tcp_track_notify(v, &f, &refusal) < 0)
        tcp_answer_err(v, seq, &refusal);
    else
        tcp_answer_ack(v, seq);
    return 0;
}

static int served_frame(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix,
                        const uint8_t *body, uint64_t *ret_payload, struct pdx_error *why)
{
    struct tcp_served *v = s->owner;

    switch ((int)prefix->type) {
    case PDXI_FRAME_WRITE:
        return served_on_write(v, body, prefix->body_len, ret_payload, why);
    case PDXI_FRAME_READ:
        return served_on_read(v, body, prefix->body_len, why);
    case PDXI_FRAME_BEGIN:
        return served_on_begin(v, body, prefix->body_len, why);
    case PDXI_FRAME_NOTIFY:
        return served_on_notify(v, body, prefix->body_len, why);
    default:
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                              "%s: frame of type %d does not belong on a data connection", s->peer,
                              (int)prefix->type);
    }
}

/* ---- payload of writes ------------------------------------------------ */

static int served_sink(struct pdxi_stream *s, uint64_t max, struct iovec *iov, int cap)
{
    struct tcp_served *v = s->owner;
    uint64_t off = v->rx_off;
    int n = 0;

    if (!v->rx_region)
        return 0;
    for (uint32_t i = v->rx_seg; i < v->rx.nsegs && n < cap && max > 0; i++) {
        struct pdxi_frame_seg seg = tcp_seg(&v->rx, v->rx_table, i);
        char *to = v->rx_region->ptr + seg.off + off;

        seg.len -= off;
        if (seg.len > max)
            seg.len = max;
        __builtin_prefetch(to, 1, 2);
        iov[n].iov_base = to;
        iov[n++].iov_len = seg.len;
        max -= seg.len;
        off = 0;
    }
    return n;
}

static void served_end_write(struct tcp_served *v)
{
    struct pdx_region *region = v->rx_region;

    pdxi_pool_put(&v->engine->pool, v->rx_table);
    v->rx_table = NULL;
    v->rx_region = NULL;
    if (region) {
        pdxi_count(&region->bytes_in, v->rx.payload);
        pdxi_stat_add(&v->engine->stats, PDXI_STAT_BYTES_IN_WRITTEN, v->rx.payload);
        tcp_track_bytes(v, v->rx.xfer, v->rx.payload);
    }
    if (region || v->rx_over) {
        tcp_answer_ack(v, v->seq);
    } else {
        tcp_answer_err(v, v->seq, &v->rx_why);
        tcp_track_fail(v, v->rx.xfer, &v->rx_why);
    }
}

static void served_sunk(struct pdxi_stream *s, uint64_t n, uint64_t left)
{
    struct tcp_served *v = s->owner;

    while (v->rx_region && n > 0) {
        uint64_t rest = tcp_seg(&v->rx, v->rx_table, v->rx_seg).len - v->rx_off;

        if (n < rest) {
            v->rx_off += n;
            break;
        }
        n -= rest;
        v->rx_off = 0;
        v->rx_seg++;
    }
    if (left == 0)
        served_end_write(v);
}

static void served_sink_fault(struct pdxi_stream *s)
{
    struct tcp_served *v = s->owner;

    pdxi_error_set(&v->rx_why, PDX_EREMOTE, PDX_COST_TRANSFER,
                   "memory of region %u cannot be written: its owner has unmapped it",
                   v->rx.region_id);
    v->rx_region = NULL;
}

/* ---- life ------------------------------------------------------------- */

static void served_fill(struct pdxi_stream *s, struct pdxi_batch *b)
{
    struct tcp_served *v = s->owner;

    if (v->send_hello_ack) {
        uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_HEAD_MAX);

        pdxi_batch_commit(b, (uint32_t)pdxi_frame_hello_ack_encode(buf, &v->ack));
        v->send_hello_ack = false;
    }
    tcp_answer_fill(v, b);
}

static void served_sent(struct pdxi_stream *s)
{
    struct tcp_served *v = s->owner;

    v->read_region = NULL;
    v->reads_mixed = false;
}

static void served_close(struct pdxi_served *served)
{
    struct tcp_served *v = pdxi_container_of(served, struct tcp_served, base);

    if (v->closed)
        return;
    v->closed = true;
    pdxi_stream_close(v->stream, true);
    tcp_answer_drop_all(v);
    tcp_track_drop_all(v);
    pdxi_pool_put(&v->engine->pool, v->rx_table);
    v->rx_table = NULL;
    v->rx_region = NULL;
}

void tcp_served_end(struct tcp_served *v, const struct pdx_error *why)
{
    pdxi_session_served_lost(v->base.session, &v->base, why);
    served_close(&v->base);
}

static void served_lost(struct pdxi_stream *s, const struct pdx_error *why)
{
    struct tcp_served *v = s->owner;

    if (why->code == PDX_EPROTO)
        pdxi_stat_add(&v->engine->stats, PDXI_STAT_GARBAGE, 1);
    tcp_served_end(v, why);
}

static void served_gone(struct pdxi_stream *s)
{
    struct tcp_served *v = s->owner;

    tcp_answer_drop_all(v); /* what came after the close */
    free(v);
}

static const struct pdxi_stream_ops served_ops = {
    .frame = served_frame,
    .sink = served_sink,
    .sunk = served_sunk,
    .sink_fault = served_sink_fault,
    .fill = served_fill,
    .sent = served_sent,
    .lost = served_lost,
    .gone = served_gone,
};

static int served_join(struct pdxi_session *session, struct pdxi_stream *stream,
                       struct pdx_error *why)
{
    struct tcp_served *v = calloc(1, sizeof *v);

    if (!v)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_PEER, "no memory for a lane");
    v->base.ops = &pdxi_served_tcp;
    v->base.session = session;
    v->engine = session->engine;
    v->stream = stream;
    v->ack = session->ack;
    v->send_hello_ack = true;
    pdxi_list_init(&v->answers);
    tcp_track_init(v);
    session->served = &v->base;
    stream->owner = v;
    stream->ops = &served_ops;
    pdxi_stream_kick(stream);
    return 0;
}

/* When a batch under way refers to the region the connection ends; the initiator asks again and is
 * told that the region is gone. */
static void served_revoke(struct pdxi_served *served, const struct pdx_region *region)
{
    struct tcp_served *v = pdxi_container_of(served, struct tcp_served, base);
    struct pdx_error why;

    if (v->read_region == region || v->reads_mixed) {
        pdxi_error_set(&why, PDX_ESTALE, PDX_COST_PEER,
                       "region %u was deregistered while it was being sent", region->id);
        tcp_served_end(v, &why);
        return;
    }
    if (v->rx_region != region)
        return;
    pdxi_error_set(&v->rx_why, PDX_ESTALE, PDX_COST_TRANSFER,
                   "region %u was deregistered while it was being written", region->id);
    v->rx_region = NULL;
}

const struct pdxi_served_ops pdxi_served_tcp = {
    .join = served_join,
    .close = served_close,
    .revoke = served_revoke,
};
