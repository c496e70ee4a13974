/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tcp/tcp_lane.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/proto/hello.h"

#include <stdlib.h>
#include <string.h>

static struct tcp_lane *tcp_of(struct pdxi_lane *lane)
{
    return pdxi_container_of(lane, struct tcp_lane, base);
}

/* ---- greeting --------------------------------------------------------- */

static void tcp_hello(struct tcp_lane *l, struct pdxi_batch *b)
{
    struct pdx_engine *engine = tcp_engine(l);
    uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_HEAD_MAX);
    struct pdxi_frame_hello hello = {
        .major = PDXI_PROTO_MAJOR,
        .minor = PDXI_PROTO_MINOR,
        .kind = PDXI_HELLO_DATA,
        .keepalive_ns = engine->keepalive_ns,
    };

    memcpy(hello.incarnation, engine->desc->incarnation, PDX_INCARNATION_LEN);
    memcpy(hello.target, l->base.peer->desc.incarnation, PDX_INCARNATION_LEN);
    memcpy(hello.ticket, l->ticket, sizeof hello.ticket);
    memcpy(hello.name, engine->desc->name, sizeof hello.name);
    pdxi_batch_commit(b, (uint32_t)pdxi_frame_hello_encode(buf, &hello));
    l->send_hello = false;
}

static int tcp_on_hello_ack(struct tcp_lane *l, const uint8_t *body, size_t len,
                            struct pdx_error *why)
{
    struct pdxi_frame_hello_ack ack;
    int r = pdxi_frame_hello_ack_decode(body, len, &ack, why);

    if (r < 0)
        return r;
    r = pdxi_hello_check(&ack, l->base.peer->desc.incarnation, l->base.peer->desc.name, why);
    if (r < 0) {
        pdxi_peer_lane_lost(l->base.peer, why);
        return 0;
    }
    l->greeted = true;
    if (ack.max_frames < l->max_frames)
        l->max_frames = ack.max_frames;
    pdxi_timer_cancel(&tcp_engine(l)->reactor.timers, &l->opening);
    pdxi_peer_lane_up(l->base.peer);
    return 0;
}

static void tcp_on_opening_timeout(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct tcp_lane *l = pdxi_container_of(timer, struct tcp_lane, opening);
    struct pdx_error why;

    (void)now_ns;
    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER,
                   "peer %s at %s does not answer on a data connection", l->base.peer->desc.name,
                   l->stream->peer);
    pdxi_peer_lane_lost(l->base.peer, &why);
}

/* ---- the stream's hooks ----------------------------------------------- */

static int tcp_frame(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix,
                     const uint8_t *body, uint64_t *ret_payload, struct pdx_error *why)
{
    struct tcp_lane *l = s->owner;

    l->base.last_rx_ns = s->last_rx_ns;
    if (!l->greeted && prefix->type == PDXI_FRAME_HELLO_ACK)
        return tcp_on_hello_ack(l, body, prefix->body_len, why);
    if (l->greeted) {
        switch ((int)prefix->type) {
        case PDXI_FRAME_ACK:
            return tcp_lane_on_ack(l, body, prefix->body_len, why);
        case PDXI_FRAME_ERR:
            return tcp_lane_on_err(l, body, prefix->body_len, why);
        case PDXI_FRAME_READ_DATA:
            return tcp_lane_on_read_data(l, body, prefix->body_len, ret_payload, why);
        default:
            break;
        }
    }
    return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                          "%s: frame of type %d is not expected on a data connection", s->peer,
                          (int)prefix->type);
}

static int tcp_sink(struct pdxi_stream *s, uint64_t max, struct iovec *iov, int cap)
{
    return tcp_lane_sink(s->owner, max, iov, cap);
}

static void tcp_sunk(struct pdxi_stream *s, uint64_t n, uint64_t left)
{
    struct tcp_lane *l = s->owner;

    l->base.last_rx_ns = s->last_rx_ns;
    tcp_lane_sunk(l, n, left);
}

/* The caller's memory cannot be written: its transfer fails, the connection goes on. */
static void tcp_sink_fault(struct pdxi_stream *s)
{
    struct tcp_lane *l = s->owner;
    struct pdx_transfer_status *t = tcp_entry(l, l->rx_seq)->transfer;
    struct pdx_error why;

    tcp_lane_discard(l);
    pdxi_error_set(&why, PDX_EINVAL, PDX_COST_TRANSFER,
                   "memory of a registered region cannot be written: it was unmapped while a "
                   "transfer used it");
    if (t)
        pdxi_transfer_event(t, PDXI_EV_FAULT, &why);
}

static void tcp_fill(struct pdxi_stream *s, struct pdxi_batch *b)
{
    struct tcp_lane *l = s->owner;

    if (l->send_hello)
        tcp_hello(l, b);
    else if (l->greeted)
        tcp_lane_fill(l, b);
}

/* What has been handed to the kernel does not refer to the source any more. */
static void tcp_sent(struct pdxi_stream *s)
{
    struct tcp_lane *l = s->owner;

    for (; l->sent_seq < l->next_seq; l->sent_seq++) {
        struct tcp_entry *e = l->sent_seq > l->done_seq ? tcp_entry(l, l->sent_seq) : NULL;

        if (e && e->transfer && e->transfer->step.local && e->transfer->step.exhausted)
            pdxi_transfer_event(e->transfer, PDXI_EV_SENT, NULL);
    }
}

static void tcp_connected(struct pdxi_stream *s)
{
    struct tcp_lane *l = s->owner;

    l->send_hello = true;
    pdxi_stream_kick(s);
}

static void tcp_lost(struct pdxi_stream *s, const struct pdx_error *why)
{
    struct tcp_lane *l = s->owner;
    struct pdx_error cause;

    if (why->code == PDX_EPROTO)
        pdxi_stat_add(&tcp_engine(l)->stats, PDXI_STAT_GARBAGE, 1);
    pdxi_error_set(&cause, why->code == PDX_EPROTO ? PDX_EPEER : why->code, PDX_COST_PEER,
                   "the data connection to peer %s was lost: %s", l->base.peer->desc.name,
                   why->text);
    pdxi_peer_lane_lost(l->base.peer, &cause);
}

static void tcp_gone(struct pdxi_stream *s)
{
    struct tcp_lane *l = s->owner;

    pdxi_peer_drop(l->base.peer);
    free(l);
}

static const struct pdxi_stream_ops tcp_ops = {
    .frame = tcp_frame,
    .sink = tcp_sink,
    .sunk = tcp_sunk,
    .sink_fault = tcp_sink_fault,
    .fill = tcp_fill,
    .sent = tcp_sent,
    .connected = tcp_connected,
    .lost = tcp_lost,
    .gone = tcp_gone,
};

/* ---- the lane's hooks ------------------------------------------------- */

static int tcp_open(struct pdx_peer *peer, const uint8_t ticket[PDXI_TICKET_LEN],
                    uint32_t max_frames, struct pdxi_lane **ret_lane, struct pdx_error *why)
{
    struct pdxi_reactor *reactor = &peer->engine->reactor;
    const struct pdxi_sockaddr *addr = &peer->addrs[peer->step.addr];
    struct tcp_lane *l = calloc(1, sizeof *l);
    int fd;
    int r;

    if (!l)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_PEER, "no memory for a lane to %s",
                              peer->desc.name);
    fd = pdxi_sock_connect(addr, peer->engine->congestion, why);
    if (fd < 0) {
        free(l);
        return fd;
    }
    r = pdxi_stream_open(reactor, fd, true, addr, &tcp_ops, l, &l->stream, why);
    if (r < 0) {
        free(l);
        return r;
    }
    l->base.ops = &pdxi_lane_tcp;
    l->base.peer = peer;
    pdxi_peer_get(peer);
    pdxi_list_init(&l->base.active);
    pdxi_list_init(&l->base.waiting);
    memcpy(l->ticket, ticket, sizeof l->ticket);
    l->max_frames = max_frames < TCP_RING ? max_frames : TCP_RING;
    l->next_seq = 1;
    l->sent_seq = 1;
    pdxi_timer_init(&l->opening, tcp_on_opening_timeout);
    pdxi_timer_start(&reactor->timers, &l->opening,
                     pdxi_after_ns(reactor->now_ns, peer->engine->connect_timeout_ns));
    *ret_lane = &l->base;
    return 0;
}

static void tcp_kick(struct pdxi_lane *lane)
{
    pdxi_stream_kick(tcp_of(lane)->stream);
}

static void tcp_stop(struct pdxi_lane *lane, struct pdx_transfer_status *t)
{
    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&lane->waiting, &t->link);
}

/* Back to the first unanswered frame of each transfer, and to the first unanswered notice. */
static void tcp_rewind(struct tcp_lane *l)
{
    struct pdxi_list *notices = &l->base.peer->notices;
    struct pdxi_list unheard;

    pdxi_list_init(&unheard);
    for (uint64_t seq = l->done_seq + 1; seq < l->next_seq; seq++) {
        struct tcp_entry *e = tcp_entry(l, seq);

        if (e->notice)
            pdxi_list_add_tail(&unheard, &e->notice->link);
        if (!e->transfer || e->transfer->rewound)
            continue;
        e->transfer->cursor = e->cursor;
        e->transfer->notified = false;
        e->transfer->rewound = true;
    }
    pdxi_list_splice_tail(&unheard, notices);
    pdxi_list_splice_tail(notices, &unheard);
}

static void tcp_tell_lost(struct pdxi_list *transfers, enum pdxi_transfer_event event)
{
    while (!pdxi_list_empty(transfers)) {
        struct pdx_transfer_status *t =
            pdxi_container_of(transfers->next, struct pdx_transfer_status, link);

        pdxi_list_remove(&t->link);
        t->rewound = false;
        pdxi_transfer_event(t, event, NULL);
    }
}

static void tcp_close(struct pdxi_lane *lane)
{
    struct tcp_lane *l = tcp_of(lane);
    enum pdxi_transfer_event event = lane->broken ? PDXI_EV_LANE_BROKEN : PDXI_EV_LANE_LOST;
    struct pdxi_pool *pool = &tcp_engine(l)->pool;

    if (l->closed)
        return;
    l->closed = true;
    lane->up = false;
    pdxi_timer_cancel(&tcp_engine(l)->reactor.timers, &l->opening);
    /* With frames in flight a reset tells the target to put nothing in place any more. */
    pdxi_stream_close(l->stream, l->next_seq > l->done_seq + 1);
    tcp_rewind(l);
    l->done_seq = l->next_seq - 1;
    pdxi_pool_put(pool, l->ring);
    pdxi_pool_put(pool, l->rx_segs);
    l->ring = NULL;
    l->rx_segs = NULL;
    tcp_tell_lost(&lane->active, event);
    tcp_tell_lost(&lane->waiting, event);
}

const struct pdxi_lane_ops pdxi_lane_tcp = {
    .name = "tcp",
    .open = tcp_open,
    .kick = tcp_kick,
    .stop = tcp_stop,
    .close = tcp_close,
};
