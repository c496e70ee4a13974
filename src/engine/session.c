/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/session.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "engine/engine.h"
#include "engine/region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SESSION_MAX_FRAMES 1024u /* numbered frames that may be unanswered on a data connection */

/* ---- ending ----------------------------------------------------------- */

/* Records of the initiator's transfers that will never hear their end. */
static void session_fail_inbound(struct pdxi_session *session, const char *text)
{
    struct pdx_engine *engine = session->engine;
    struct pdx_inbound rec;

    while (pdxi_inbound_fail_next(&engine->inbound, session->incarnation, PDX_EPEER, text,
                                  pdxi_now_ns(), &rec)) {
        if (engine->on_inbound)
            engine->on_inbound(engine->on_inbound_ctx, &rec);
    }
}

static void session_end(struct pdxi_session *session, const struct pdx_error *why)
{
    struct pdxi_served *served = session->served;

    if (session->ended)
        return;
    session->ended = true;
    pdxi_timer_cancel(&session->engine->reactor.timers, &session->timer);
    session->served = NULL;
    if (served)
        served->ops->close(served);
    pdxi_stream_close(session->stream, false);
    session_fail_inbound(session, why->text);
    pdxi_list_remove(&session->link);
    atomic_fetch_sub_explicit(&session->engine->nsessions, 1, memory_order_relaxed);
    pdxi_log(&session->engine->log, PDX_LOG_INFO, "engine %s: session of %s ended: %s",
             session->engine->name, session->name, why->text);
}

static void session_lose(struct pdxi_session *session, const struct pdx_error *why)
{
    pdxi_stat_add(&session->engine->stats, PDXI_STAT_SESSIONS_LOST, 1);
    session_end(session, why);
}

void pdxi_session_served_lost(struct pdxi_session *session, struct pdxi_served *served,
                              const struct pdx_error *why)
{
    if (session->served == served)
        session->served = NULL;
    pdxi_log(&session->engine->log, PDX_LOG_INFO, "engine %s: lane of %s ended: %s",
             session->engine->name, session->name, why->text);
}

void pdxi_session_hear(struct pdxi_session *session, uint64_t xfer)
{
    if (xfer == 0) /* a notification that has no number */
        return;
    session->heard[session->nheard++ % PDXI_SESSION_HEARD] = xfer;
    if (xfer > session->heard_max)
        session->heard_max = xfer;
}

bool pdxi_session_heard(const struct pdxi_session *session, uint64_t xfer)
{
    if (xfer == 0 || xfer > session->replay_max)
        return false;
    for (uint32_t i = 0; i < PDXI_SESSION_HEARD; i++) {
        if (session->heard[i] == xfer)
            return true;
    }
    return false;
}

void pdxi_session_inbound_end(struct pdxi_session *session, uint64_t id, enum pdx_inbound_code code,
                              int err, const char *text, const void *payload, size_t payload_len)
{
    struct pdx_engine *engine = session->engine;
    struct pdx_inbound rec;

    if (pdxi_inbound_end(&engine->inbound, session->incarnation, id, code, err, text, payload,
                         payload_len, pdxi_now_ns(), &rec) &&
        engine->on_inbound)
        engine->on_inbound(engine->on_inbound_ctx, &rec);
}

/* ---- the control connection ------------------------------------------- */

static void session_fill(struct pdxi_stream *s, struct pdxi_batch *b)
{
    struct pdxi_session *session = s->owner;
    uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_HEAD_MAX);
    size_t len = 0;

    if (session->send_ack)
        len += pdxi_frame_hello_ack_encode(buf + len, &session->ack);
    if (session->send_pong)
        len += pdxi_frame_ping_encode(buf + len, PDXI_FRAME_PONG,
                                      &(struct pdxi_frame_ping){session->pong_stamp});
    if (session->send_ticket) {
        struct pdxi_frame_ticket ticket;

        memcpy(ticket.ticket, session->ticket, sizeof ticket.ticket);
        len += pdxi_frame_ticket_encode(buf + len, &ticket);
    }
    session->send_ack = false;
    session->send_pong = false;
    session->send_ticket = false;
    if (len)
        pdxi_batch_commit(b, (uint32_t)len);
}

static int session_new_ticket(struct pdxi_session *session, struct pdx_error *why)
{
    if (getrandom(session->ticket, sizeof session->ticket, 0) != (ssize_t)sizeof session->ticket)
        return pdxi_error_set(why, PDX_ESYS, PDX_COST_PEER, "the system gives no random bytes");
    session->ticket_valid = true;
    return 0;
}

static int session_on_ping(struct pdxi_session *session, const uint8_t *body, size_t len,
                           struct pdx_error *why)
{
    struct pdxi_frame_ping ping;
    int r = pdxi_frame_ping_decode(body, len, &ping, why);

    if (r < 0)
        return r;
    session->pong_stamp = ping.stamp;
    session->send_pong = true;
    pdxi_stream_kick(session->stream);
    return 0;
}

static int session_on_ticket_req(struct pdxi_session *session, struct pdx_error *why)
{
    int r = session_new_ticket(session, why);

    if (r < 0)
        return r;
    session->send_ticket = true;
    pdxi_stream_kick(session->stream);
    return 0;
}

static int session_on_bye(struct pdxi_session *session, const uint8_t *body, size_t len,
                          struct pdx_error *why)
{
    struct pdxi_frame_bye bye;
    struct pdx_error cause;
    int r = pdxi_frame_bye_decode(body, len, &bye, why);

    if (r < 0)
        return r;
    pdxi_error_set(&cause, PDX_EPEER, PDX_COST_PEER, "%s has closed: %s", session->name, bye.text);
    session_end(session, &cause);
    return 0;
}

static int session_frame(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix,
                         const uint8_t *body, uint64_t *ret_payload, struct pdx_error *why)
{
    struct pdxi_session *session = s->owner;

    (void)ret_payload;
    switch ((int)prefix->type) {
    case PDXI_FRAME_PING:
        return session_on_ping(session, body, prefix->body_len, why);
    case PDXI_FRAME_PONG:
        return 0;
    case PDXI_FRAME_TICKET_REQ:
        return session_on_ticket_req(session, why);
    case PDXI_FRAME_BYE:
        return session_on_bye(session, body, prefix->body_len, why);
    default:
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER,
                              "%s: frame of type %d does not belong on a control connection",
                              s->peer, (int)prefix->type);
    }
}

static void session_lost(struct pdxi_stream *s, const struct pdx_error *why)
{
    struct pdxi_session *session = s->owner;
    struct pdx_error cause;

    if (why->code == PDX_EPROTO)
        pdxi_stat_add(&session->engine->stats, PDXI_STAT_GARBAGE, 1);
    pdxi_error_set(&cause, PDX_EPEER, PDX_COST_PEER, "the initiator %s was lost: %s", session->name,
                   why->text);
    session_lose(session, &cause);
}

static void session_gone(struct pdxi_stream *s)
{
    free(s->owner);
}

static const struct pdxi_stream_ops session_ops = {
    .frame = session_frame,
    .fill = session_fill,
    .lost = session_lost,
    .gone = session_gone,
};

static void session_on_keepalive(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct pdxi_session *session = pdxi_container_of(timer, struct pdxi_session, timer);
    uint64_t limit_ns = 2 * session->keepalive_ns;
    uint64_t silent_ns = now_ns - session->stream->last_rx_ns;
    struct pdx_error why;

    if (silent_ns < limit_ns) {
        pdxi_timer_start(&session->engine->reactor.timers, timer,
                         pdxi_after_ns(now_ns, limit_ns - silent_ns));
        return;
    }
    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER,
                   "the initiator %s at %s has been silent for %.2f s (its keepalive is %.2f s)",
                   session->name, session->stream->peer, (double)silent_ns / 1e9,
                   (double)session->keepalive_ns / 1e9);
    session_lose(session, &why);
}

/* ---- greeting --------------------------------------------------------- */

/* Room for the initiator's own delays: it sends a sign of life every keepalive. */
#define KEEPALIVE_MIN_NS (10 * PDX_MSEC)
#define KEEPALIVE_MAX_NS (3600 * PDX_SEC)

/* An initiator connects anew when it has lost its session, be it unnoticed here. Its transfers have
 * ended with that. */
static void session_replace(struct pdx_engine *engine, const struct pdxi_frame_hello *hello)
{
    struct pdxi_list *pos;
    struct pdxi_list *tmp;
    struct pdx_error why;

    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER,
                   "the initiator %s has lost the connection and begun another one", hello->name);
    pdxi_list_for_each_safe (pos, tmp, &engine->sessions) {
        struct pdxi_session *session = pdxi_container_of(pos, struct pdxi_session, link);

        if (memcmp(session->incarnation, hello->incarnation, PDX_INCARNATION_LEN) == 0)
            session_lose(session, &why);
    }
}

static int session_create(struct pdx_engine *engine, struct pdxi_stream *stream,
                          const struct pdxi_frame_hello *hello,
                          const struct pdxi_frame_hello_ack *ack, struct pdx_error *why)
{
    struct pdxi_session *session = calloc(1, sizeof *session);
    int r;

    if (!session)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_PEER, "no memory for a session");
    session->engine = engine;
    session->stream = stream;
    session->ack = *ack;
    session->send_ack = true;
    memcpy(session->incarnation, hello->incarnation, sizeof session->incarnation);
    memcpy(session->name, hello->name, sizeof session->name);
    session->keepalive_ns = hello->keepalive_ns;
    if (session->keepalive_ns < KEEPALIVE_MIN_NS)
        session->keepalive_ns = KEEPALIVE_MIN_NS;
    if (session->keepalive_ns > KEEPALIVE_MAX_NS)
        session->keepalive_ns = KEEPALIVE_MAX_NS;
    r = session_new_ticket(session, why);
    if (r < 0) {
        free(session);
        return r;
    }
    memcpy(session->ack.ticket, session->ticket, sizeof session->ack.ticket);
    pdxi_timer_init(&session->timer, session_on_keepalive);
    pdxi_timer_start(&engine->reactor.timers, &session->timer,
                     pdxi_after_ns(engine->reactor.now_ns, 2 * session->keepalive_ns));
    pdxi_list_add_tail(&engine->sessions, &session->link);
    atomic_fetch_add_explicit(&engine->nsessions, 1, memory_order_relaxed);
    stream->owner = session;
    stream->ops = &session_ops;
    pdxi_stream_kick(stream);
    pdxi_log(&engine->log, PDX_LOG_INFO, "engine %s: session of %s from %s", engine->name,
             session->name, stream->peer);
    return 0;
}

/* A ticket is good once, for the initiator it was given to. */
static struct pdxi_session *session_by_ticket(struct pdx_engine *engine,
                                              const struct pdxi_frame_hello *hello)
{
    struct pdxi_list *pos;

    pdxi_list_for_each (pos, &engine->sessions) {
        struct pdxi_session *session = pdxi_container_of(pos, struct pdxi_session, link);

        if (!session->ticket_valid ||
            !pdxi_secret_equal(session->ticket, hello->ticket, PDXI_TICKET_LEN))
            continue;
        if (memcmp(session->incarnation, hello->incarnation, PDX_INCARNATION_LEN) != 0)
            continue;
        session->ticket_valid = false;
        return session;
    }
    return NULL;
}

/* A newer lane replaces the older one, whose unread data must not be put in place any more. */
static int session_join(struct pdxi_session *session, struct pdxi_stream *stream,
                        struct pdx_error *why)
{
    struct pdxi_served *old = session->served;

    session->served = NULL;
    session->replay_max = session->heard_max;
    if (old)
        old->ops->close(old);
    return pdxi_served_tcp.join(session, stream, why);
}

static int session_refuse(struct pdxi_stream *stream, const struct pdxi_frame_hello_ack *ack,
                          struct pdx_error *why)
{
    uint8_t buf[PDXI_FRAME_PREFIX_LEN + sizeof *ack + 64];

    pdxi_stream_farewell(stream, buf, pdxi_frame_hello_ack_encode(buf, ack));
    pdxi_error_set(why, ack->code, PDX_COST_PEER, "%s was refused: %s", stream->peer, ack->text);
    pdxi_stream_close(stream, false);
    return ack->code;
}

int pdxi_session_greet(struct pdx_engine *engine, struct pdxi_stream *stream,
                       const struct pdxi_frame_hello *hello, struct pdx_error *why)
{
    struct pdxi_hello_own own = {
        .name = engine->name,
        .keepalive_ns = engine->keepalive_ns,
        .max_frames = SESSION_MAX_FRAMES,
    };
    struct pdxi_frame_hello_ack ack;
    struct pdxi_session *session;
    int r;

    if (hello->kind == PDXI_HELLO_CONTROL &&
        memcmp(hello->target, engine->desc->incarnation, PDX_INCARNATION_LEN) == 0)
        session_replace(engine, hello);
    memcpy(own.incarnation, engine->desc->incarnation, sizeof own.incarnation);
    own.full =
        hello->kind == PDXI_HELLO_CONTROL &&
        atomic_load_explicit(&engine->nsessions, memory_order_relaxed) >= engine->max_sessions;
    if (pdxi_hello_judge(hello, &own, &ack) < 0)
        return session_refuse(stream, &ack, why);
    if (hello->kind == PDXI_HELLO_CONTROL) {
        r = session_create(engine, stream, hello, &ack, why);
    } else {
        session = session_by_ticket(engine, hello);
        if (!session) {
            ack.code = PDX_EACCESS;
            (void)snprintf(ack.text, sizeof ack.text, "the ticket is not (or no longer) good");
            return session_refuse(stream, &ack, why);
        }
        session->ack = ack;
        r = session_join(session, stream, why);
    }
    if (r < 0)
        pdxi_stream_close(stream, true);
    return r;
}

/* ---- all sessions ----------------------------------------------------- */

void pdxi_sessions_close(struct pdx_engine *engine)
{
    uint8_t buf[PDXI_FRAME_PREFIX_LEN + sizeof(struct pdxi_frame_bye) + 64];
    struct pdxi_frame_bye bye = {.code = PDX_ESHUTDOWN, .text = "the engine is being destroyed"};
    struct pdx_error why;

    pdxi_error_set(&why, PDX_ESHUTDOWN, PDX_COST_ENGINE, "the engine %s is being destroyed",
                   engine->name);
    while (!pdxi_list_empty(&engine->sessions)) {
        struct pdxi_session *session =
            pdxi_container_of(engine->sessions.next, struct pdxi_session, link);

        pdxi_stream_farewell(session->stream, buf, pdxi_frame_bye_encode(buf, &bye));
        session_end(session, &why);
    }
}

void pdxi_sessions_revoke(struct pdx_engine *engine, const struct pdx_region *region)
{
    struct pdxi_list *pos;
    struct pdxi_list *tmp;

    pdxi_list_for_each_safe (pos, tmp, &engine->sessions) {
        struct pdxi_session *session = pdxi_container_of(pos, struct pdxi_session, link);

        if (session->served)
            session->served->ops->revoke(session->served, region);
    }
}
