/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/control.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/proto/hello.h"

#include <stdlib.h>
#include <string.h>

struct pdxi_control {
    struct pdx_peer *peer;      /* counted */
    struct pdxi_stream *stream; /* owned */
    struct pdxi_timer keepalive;
    struct pdxi_frame_hello_ack ack;
    uint64_t pong_stamp;
    bool send_hello;
    bool send_ping;
    bool send_pong;
    bool send_ticket_req;
    bool greeted;
    bool closed;
};

static struct pdx_engine *control_engine(const struct pdxi_control *c)
{
    return c->peer->engine;
}

/* ---- sending ---------------------------------------------------------- */

static size_t control_hello(const struct pdxi_control *c, uint8_t *buf)
{
    struct pdx_engine *engine = control_engine(c);
    struct pdxi_frame_hello hello = {
        .major = PDXI_PROTO_MAJOR,
        .minor = PDXI_PROTO_MINOR,
        .kind = PDXI_HELLO_CONTROL,
        .keepalive_ns = engine->keepalive_ns,
    };

    memcpy(hello.incarnation, engine->desc->incarnation, PDX_INCARNATION_LEN);
    memcpy(hello.target, c->peer->desc.incarnation, PDX_INCARNATION_LEN);
    memcpy(hello.name, engine->desc->name, sizeof hello.name);
    return pdxi_frame_hello_encode(buf, &hello);
}

static void control_fill(struct pdxi_stream *s, struct pdxi_batch *b)
{
    struct pdxi_control *c = s->owner;
    uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_HEAD_MAX);
    size_t len = 0;

    if (c->send_hello)
        len += control_hello(c, buf + len);
    if (c->send_ping)
        len += pdxi_frame_ping_encode(buf + len, PDXI_FRAME_PING,
                                      &(struct pdxi_frame_ping){pdxi_now_ns()});
    if (c->send_pong)
        len += pdxi_frame_ping_encode(buf + len, PDXI_FRAME_PONG,
                                      &(struct pdxi_frame_ping){c->pong_stamp});
    if (c->send_ticket_req)
        len += pdxi_frame_ticket_req_encode(buf + len);
    c->send_hello = false;
    c->send_ping = false;
    c->send_pong = false;
    c->send_ticket_req = false;
    if (len)
        pdxi_batch_commit(b, (uint32_t)len);
}

void pdxi_control_greet(struct pdxi_control *c)
{
    c->send_hello = true;
    pdxi_stream_kick(c->stream);
}

void pdxi_control_ask_ticket(struct pdxi_control *c)
{
    c->send_ticket_req = true;
    pdxi_stream_kick(c->stream);
}

/* ---- keepalive -------------------------------------------------------- */

static void control_arm(struct pdxi_control *c)
{
    struct pdxi_reactor *r = &control_engine(c)->reactor;

    pdxi_timer_start(&r->timers, &c->keepalive,
                     pdxi_after_ns(r->now_ns, control_engine(c)->keepalive_ns));
}

static void control_on_keepalive(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct pdxi_control *c = pdxi_container_of(timer, struct pdxi_control, keepalive);
    uint64_t limit_ns = 2 * control_engine(c)->keepalive_ns;
    uint64_t heard_ns = c->stream->last_rx_ns;

    if (c->peer->lane && c->peer->lane->last_rx_ns > heard_ns)
        heard_ns = c->peer->lane->last_rx_ns;
    if (now_ns - heard_ns >= limit_ns) {
        struct pdx_error why;

        pdxi_error_set(
            &why, PDX_EPEER, PDX_COST_PEER,
            "peer %s at %s has been silent for %.2f s (keepalive %.2f s): it is stopped, "
            "overloaded or cut off",
            c->peer->desc.name, c->stream->peer, (double)(now_ns - heard_ns) / 1e9,
            (double)control_engine(c)->keepalive_ns / 1e9);
        pdxi_peer_event(c->peer, PDXI_PEV_LOST, PDX_EPEER, &why);
        return;
    }
    c->send_ping = true;
    pdxi_stream_kick(c->stream);
    control_arm(c);
}

/* ---- receiving -------------------------------------------------------- */

static int control_on_hello_ack(struct pdxi_control *c, const uint8_t *body, size_t len,
                                struct pdx_error *why)
{
    int r = pdxi_frame_hello_ack_decode(body, len, &c->ack, why);

    if (r < 0)
        return r;
    r = pdxi_hello_check(&c->ack, c->peer->desc.incarnation, c->peer->desc.name, why);
    if (r < 0) {
        pdxi_peer_event(c->peer, PDXI_PEV_FAILED, r, why);
        return 0;
    }
    c->greeted = true;
    control_arm(c);
    pdxi_peer_event(c->peer, PDXI_PEV_GREETED, 0, NULL);
    return 0;
}

static int control_on_pong(struct pdxi_control *c, const uint8_t *body, size_t len,
                           struct pdx_error *why)
{
    struct pdxi_frame_ping pong;
    uint64_t now_ns = pdxi_now_ns();
    int r = pdxi_frame_ping_decode(body, len, &pong, why);

    if (r < 0)
        return r;
    if (pong.stamp <= now_ns)
        atomic_store_explicit(&c->peer->rtt_ns, now_ns - pong.stamp, memory_order_relaxed);
    pdxi_peer_event(c->peer, PDXI_PEV_STABLE, 0, NULL);
    return 0;
}

static int control_on_ping(struct pdxi_control *c, const uint8_t *body, size_t len,
                           struct pdx_error *why)
{
    struct pdxi_frame_ping ping;
    int r = pdxi_frame_ping_decode(body, len, &ping, why);

    if (r < 0)
        return r;
    c->pong_stamp = ping.stamp;
    c->send_pong = true;
    pdxi_stream_kick(c->stream);
    return 0;
}

static int control_on_ticket(struct pdxi_control *c, const uint8_t *body, size_t len,
                             struct pdx_error *why)
{
    struct pdxi_frame_ticket ticket;
    int r = pdxi_frame_ticket_decode(body, len, &ticket, why);

    if (r == 0)
        pdxi_peer_ticket(c->peer, ticket.ticket);
    return r;
}

static int control_on_bye(struct pdxi_control *c, const uint8_t *body, size_t len,
                          struct pdx_error *why)
{
    struct pdxi_frame_bye bye;
    struct pdx_error cause;
    int r = pdxi_frame_bye_decode(body, len, &bye, why);

    if (r < 0)
        return r;
    pdxi_error_set(&cause, PDX_EPEER, PDX_COST_PEER, "peer %s at %s has closed: %s",
                   c->peer->desc.name, c->stream->peer, bye.text);
    pdxi_peer_event(c->peer, PDXI_PEV_LOST, PDX_EPEER, &cause);
    return 0;
}

static int control_frame(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix,
                         const uint8_t *body, uint64_t *ret_payload, struct pdx_error *why)
{
    struct pdxi_control *c = s->owner;

    (void)ret_payload;
    if (!c->greeted && prefix->type != PDXI_FRAME_HELLO_ACK)
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                              "%s: frame of type %d before the greeting", s->peer,
                              (int)prefix->type);
    switch ((int)prefix->type) {
    case PDXI_FRAME_HELLO_ACK:
        if (!c->greeted)
            return control_on_hello_ack(c, body, prefix->body_len, why);
        break;
    case PDXI_FRAME_PING:
        return control_on_ping(c, body, prefix->body_len, why);
    case PDXI_FRAME_PONG:
        return control_on_pong(c, body, prefix->body_len, why);
    case PDXI_FRAME_TICKET:
        return control_on_ticket(c, body, prefix->body_len, why);
    case PDXI_FRAME_BYE:
        return control_on_bye(c, body, prefix->body_len, why);
    default:
        break;
    }
    return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                          "%s: frame of type %d does not belong on a control connection", s->peer,
                          (int)prefix->type);
}

/* ---- life ------------------------------------------------------------- */

static void control_connected(struct pdxi_stream *s)
{
    struct pdxi_control *c = s->owner;

    pdxi_peer_event(c->peer, PDXI_PEV_CONNECTED, 0, NULL);
}

static void control_lost(struct pdxi_stream *s, const struct pdx_error *why)
{
    struct pdxi_control *c = s->owner;
    struct pdx_error cause;

    if (why->code == PDX_EPROTO)
        pdxi_stat_add(&control_engine(c)->stats, PDXI_STAT_GARBAGE, 1);
    pdxi_error_set(&cause, PDX_EPEER, PDX_COST_PEER, "peer %s: %s", c->peer->desc.name, why->text);
    pdxi_peer_event(c->peer, PDXI_PEV_LOST, PDX_EPEER, &cause);
}

static void control_gone(struct pdxi_stream *s)
{
    struct pdxi_control *c = s->owner;

    pdxi_peer_drop(c->peer);
    free(c);
}

static const struct pdxi_stream_ops control_ops = {
    .frame = control_frame,
    .fill = control_fill,
    .connected = control_connected,
    .lost = control_lost,
    .gone = control_gone,
};

int pdxi_control_open(struct pdx_peer *peer, const struct pdxi_sockaddr *addr,
                      struct pdxi_control **ret, struct pdx_error *why)
{
    struct pdxi_control *c = calloc(1, sizeof *c);
    int fd;
    int r;

    if (!c)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a connection to %s", peer->desc.name);
    fd = pdxi_sock_connect(addr, "", why);
    if (fd < 0) {
        free(c);
        return fd;
    }
    r = pdxi_stream_open(&peer->engine->reactor, fd, true, addr, &control_ops, c, &c->stream, why);
    if (r < 0) {
        free(c);
        return r;
    }
    pdxi_timer_init(&c->keepalive, control_on_keepalive);
    pdxi_peer_get(peer);
    c->peer = peer;
    *ret = c;
    return 0;
}

const uint8_t *pdxi_control_ticket(const struct pdxi_control *c)
{
    return c->ack.ticket;
}

uint32_t pdxi_control_max_frames(const struct pdxi_control *c)
{
    return c->ack.max_frames;
}

void pdxi_control_close(struct pdxi_control *c)
{
    uint8_t buf[PDXI_FRAME_PREFIX_LEN + sizeof(struct pdxi_frame_bye) + 64];
    struct pdxi_frame_bye bye = {.code = 0, .text = "the initiator ends the connection"};

    if (!c || c->closed)
        return;
    c->closed = true;
    pdxi_timer_cancel(&control_engine(c)->reactor.timers, &c->keepalive);
    if (c->greeted)
        pdxi_stream_farewell(c->stream, buf, pdxi_frame_bye_encode(buf, &bye));
    pdxi_stream_close(c->stream, false);
}
