/* SPDX-License-Identifier: Apache-2.0
 *
 * What a target answers on a data connection: confirmations, refusals and the
 * data of reads. The target is not trusted: every number is checked against
 * what is in flight.
 */
#include "base/error.h"
#include "engine/engine.h"
#include "engine/region.h"
#include "engine/tcp/tcp_lane.h"

/* ---- answers ---------------------------------------------------------- */

static void rx_count(struct tcp_lane *l, struct pdx_transfer_status *t, const struct tcp_entry *e)
{
    struct pdx_peer *peer = l->base.peer;
    struct pdxi_stats *stats = &tcp_engine(l)->stats;

    if (e->type == PDXI_FRAME_WRITE) {
        pdxi_stat_add(stats, PDXI_STAT_BYTES_WRITTEN, e->payload);
        pdxi_count(&peer->bytes_written, e->payload);
        pdxi_count(&peer->tcp.bytes_out, e->payload);
    } else {
        pdxi_stat_add(stats, PDXI_STAT_BYTES_READ, e->payload);
        pdxi_count(&peer->bytes_read, e->payload);
        pdxi_count(&peer->tcp.bytes_in, e->payload);
    }
    pdxi_count(&t->bytes_done, e->payload);
}

/* The region may be gone by now for a LOCAL write, whose transfer has let go of it. */
static void rx_count_region(struct pdx_transfer_status *t, const struct tcp_entry *e, uint32_t pair)
{
    struct pdx_region *region;

    if (!t->prepared)
        return;
    region = pdxi_transfer_local(t, pair);
    pdxi_count(e->type == PDXI_FRAME_WRITE ? &region->bytes_out : &region->bytes_in, e->payload);
}

/* The frame with the lowest number in flight is answered; `cause` NULL confirms it. */
static void rx_answer(struct tcp_lane *l, const struct pdx_error *cause)
{
    struct tcp_entry e = *tcp_entry(l, ++l->done_seq); /* a copy: the ring may go below */
    struct pdx_transfer_status *t = e.transfer;

    l->window -= e.payload;
    if (l->done_seq + 1 == l->next_seq) {
        pdxi_pool_put(&tcp_engine(l)->pool, l->ring);
        l->ring = NULL;
    }
    if (!t) {
        pdxi_peer_notice_put(l->base.peer, e.notice);
        return;
    }
    if (cause) {
        pdxi_transfer_event(t, PDXI_EV_REFUSED, cause);
        return;
    }
    if (e.payload) {
        rx_count(l, t, &e);
        rx_count_region(t, &e, e.cursor.pair);
    }
    /* A read whose notification waits for its last data. */
    if (t->op == PDX_READ && t->tracked && !t->notified && t->step.inflight == 1 &&
        t->step.phase == PDXI_PHASE_ACTIVE) {
        pdxi_list_remove(&t->link);
        pdxi_list_add_tail(&l->base.active, &t->link);
    }
    pdxi_transfer_event(t, PDXI_EV_ANSWERED, NULL);
}

static int rx_check_seq(const struct tcp_lane *l, uint64_t seq, const char *what,
                        struct pdx_error *why)
{
    /* A frame that has not left completely cannot have been answered, and its source is still in
     * use. */
    if (seq > l->done_seq && seq < l->next_seq && tcp_entry(l, seq)->end <= l->stream->bytes_out)
        return 0;
    return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                          "%s for frame %llu, but %llu .. %llu are in flight", what,
                          (unsigned long long)seq, (unsigned long long)l->done_seq + 1,
                          (unsigned long long)l->next_seq - 1);
}

/* Confirms everything up to `seq`. The lane may close meanwhile (never now: events do not close
 * it). */
static int rx_confirm(struct tcp_lane *l, uint64_t seq, struct pdx_error *why)
{
    while (l->done_seq < seq) {
        const struct tcp_entry *e = tcp_entry(l, l->done_seq + 1);

        if (e->type == PDXI_FRAME_READ && !e->data_in)
            return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                                  "ACK of read frame %llu without its data",
                                  (unsigned long long)l->done_seq + 1);
        rx_answer(l, NULL);
    }
    return 0;
}

int tcp_lane_on_ack(struct tcp_lane *l, const uint8_t *body, size_t len, struct pdx_error *why)
{
    struct pdxi_frame_ack ack;
    int r = pdxi_frame_ack_decode(body, len, &ack, why);

    if (r == 0)
        r = rx_check_seq(l, ack.seq, "ACK", why);
    if (r == 0)
        r = rx_confirm(l, ack.seq, why);
    if (r == 0)
        pdxi_stream_kick(l->stream);
    return r;
}

int tcp_lane_on_err(struct tcp_lane *l, const uint8_t *body, size_t len, struct pdx_error *why)
{
    struct pdxi_frame_err err;
    struct pdx_error cause;
    int r = pdxi_frame_err_decode(body, len, &err, why);

    if (r == 0)
        r = rx_check_seq(l, err.seq, "ERR", why);
    if (r == 0)
        r = rx_confirm(l, err.seq - 1, why);
    if (r < 0)
        return r;
    pdxi_error_set(&cause, err.code < 0 ? err.code : PDX_EREMOTE, PDX_COST_TRANSFER,
                   "refused by the owner of the memory: %s", err.text);
    rx_answer(l, &cause);
    pdxi_stream_kick(l->stream);
    return 0;
}

/* ---- data of reads ---------------------------------------------------- */

void tcp_lane_discard(struct tcp_lane *l)
{
    pdxi_pool_put(&tcp_engine(l)->pool, l->rx_segs);
    l->rx_segs = NULL;
}

/* The segments are generated again from the cursor of before the frame, with the frame's own
 * limits. A transfer that is ending gets nothing put in place any more. */
static void rx_aim(struct tcp_lane *l, const struct tcp_entry *e)
{
    struct pdx_transfer_status *t = e->transfer;
    struct pdxi_cursor cursor = e->cursor;
    struct pdxi_cursor_limits limits = {
        .max_segs = e->nsegs,
        .max_bytes = e->payload,
        .max_seg = TCP_FRAME_PAYLOAD,
    };
    uint64_t bytes;
    uint32_t pair;

    l->rx_seg = 0;
    l->rx_off = 0;
    l->rx_segs = NULL;
    if (t->step.phase != PDXI_PHASE_ACTIVE)
        return;
    l->rx_segs = pdxi_pool_get(&tcp_engine(l)->pool, e->nsegs * sizeof *l->rx_segs);
    if (!l->rx_segs) {
        struct pdx_error why;

        pdxi_error_set(&why, PDX_ENOMEM, PDX_COST_TRANSFER, "no memory to receive into");
        pdxi_transfer_event(t, PDXI_EV_FAULT, &why);
        return;
    }
    l->rx_nsegs = pdxi_cursor_next(&t->plan, &cursor, &limits, l->rx_segs, &pair, &bytes);
    l->rx_base = pdxi_transfer_local(t, pair)->ptr;
}

int tcp_lane_on_read_data(struct tcp_lane *l, const uint8_t *body, size_t len,
                          uint64_t *ret_payload, struct pdx_error *why)
{
    struct pdxi_frame_read_data data;
    struct tcp_entry *e;
    int r = pdxi_frame_read_data_decode(body, len, &data, why);

    if (r == 0)
        r = rx_check_seq(l, data.seq, "READ_DATA", why);
    if (r < 0)
        return r;
    e = tcp_entry(l, data.seq);
    if (e->type != PDXI_FRAME_READ || e->data_in || data.payload != e->payload)
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                              "READ_DATA of %llu bytes for frame %llu, which does not ask for it",
                              (unsigned long long)data.payload, (unsigned long long)data.seq);
    l->rx_seq = data.seq;
    rx_aim(l, e);
    *ret_payload = data.payload;
    return 0;
}

int tcp_lane_sink(struct tcp_lane *l, uint64_t max, struct iovec *iov, int cap)
{
    uint64_t off = l->rx_off;
    int n = 0;

    /* The transfer began to end while its data arrived. */
    if (l->rx_segs && tcp_entry(l, l->rx_seq)->transfer->step.phase != PDXI_PHASE_ACTIVE)
        tcp_lane_discard(l);
    if (!l->rx_segs)
        return 0;
    for (uint32_t i = l->rx_seg; i < l->rx_nsegs && n < cap && max > 0; i++) {
        uint64_t len = l->rx_segs[i].len - off;

        if (len > max)
            len = max;
        iov[n].iov_base = l->rx_base + l->rx_segs[i].local_off + off;
        iov[n++].iov_len = len;
        max -= len;
        off = 0;
    }
    return n;
}

void tcp_lane_sunk(struct tcp_lane *l, uint64_t n, uint64_t left)
{
    while (l->rx_segs && n > 0) {
        uint64_t rest = l->rx_segs[l->rx_seg].len - l->rx_off;

        if (n < rest) {
            l->rx_off += n;
            break;
        }
        n -= rest;
        l->rx_off = 0;
        l->rx_seg++;
    }
    if (left == 0) {
        tcp_entry(l, l->rx_seq)->data_in = true;
        tcp_lane_discard(l);
        l->rx_seq = 0;
    }
}
