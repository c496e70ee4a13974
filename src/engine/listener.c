/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/listener.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/net/stream.h"
#include "engine/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GREETERS_MAX     1024             /* connections that have not said HELLO yet */
#define GREETER_LIMIT_NS (5 * PDX_SEC)    /* for the whole HELLO, however slowly it drips */
#define ACCEPT_PAUSE_NS  (100 * PDX_MSEC) /* when there is no descriptor or no place left */

struct pdxi_listener {
    struct pdxi_reactor *reactor; /* NULL until started */
    struct pdxi_watch watch;
    struct pdxi_turn turn;
    struct pdxi_timer pause;
    struct pdxi_list greeters;
    uint32_t ngreeters;
};

struct greeter {
    struct pdxi_list link;
    struct pdxi_listener *listener; /* outlives the greeters */
    struct pdxi_stream *stream;
    struct pdxi_timer timer;
    uint64_t began_ns;
};

/* ---- a connection before its HELLO ------------------------------------ */

/* The stream goes its own way (to a session, or to its end); the greeter is not needed any more. */
static void greeter_leave(struct greeter *g)
{
    pdxi_timer_cancel(&g->listener->reactor->timers, &g->timer);
    pdxi_list_remove(&g->link);
    g->listener->ngreeters--;
    free(g);
}

static void greeter_count_garbage(const struct greeter *g, const char *text)
{
    struct pdx_engine *engine = g->listener->reactor->engine;

    pdxi_stat_add(&engine->stats, PDXI_STAT_GARBAGE, 1);
    pdxi_log(&engine->log, PDX_LOG_WARN, "engine %s: closed %s: %s", engine->name, g->stream->peer,
             text);
}

static int greeter_frame(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix,
                         const uint8_t *body, uint64_t *ret_payload, struct pdx_error *why)
{
    struct greeter *g = s->owner;
    struct pdx_engine *engine = g->listener->reactor->engine;
    struct pdxi_frame_hello hello;
    int r;

    (void)ret_payload;
    if (prefix->type != PDXI_FRAME_HELLO)
        return pdxi_error_set(why, PDX_EPROTO, PDX_COST_PEER, "frame of type %d before HELLO",
                              (int)prefix->type);
    r = pdxi_frame_hello_decode(body, prefix->body_len, &hello, why);
    if (r < 0)
        return r;
    if (pdxi_session_greet(engine, s, &hello, why) < 0)
        pdxi_log(&engine->log, PDX_LOG_WARN, "engine %s: %s", engine->name, why->text);
    else
        greeter_leave(g);
    return 0; /* refused: the stream is closed, and `gone` follows */
}

static void greeter_fill(struct pdxi_stream *s, struct pdxi_batch *b)
{
    (void)s;
    (void)b;
}

static void greeter_lost(struct pdxi_stream *s, const struct pdx_error *why)
{
    struct greeter *g = s->owner;

    /* A connection that closes without a word is a port scan or a health check, not garbage. */
    if (why->code == PDX_EPROTO || s->bytes_in > 0)
        greeter_count_garbage(g, why->text);
}

static void greeter_gone(struct pdxi_stream *s)
{
    greeter_leave(s->owner);
}

static const struct pdxi_stream_ops greeter_ops = {
    .frame = greeter_frame,
    .fill = greeter_fill,
    .lost = greeter_lost,
    .gone = greeter_gone,
};

static void greeter_on_timer(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct greeter *g = pdxi_container_of(timer, struct greeter, timer);

    (void)now_ns;
    greeter_count_garbage(g, "it did not say HELLO in time");
    pdxi_stream_close(g->stream, false);
}

static void greeter_create(struct pdxi_listener *l, int fd, const struct pdxi_sockaddr *addr)
{
    struct pdx_engine *engine = l->reactor->engine;
    struct greeter *g = calloc(1, sizeof *g);
    struct pdx_error why;

    if (!g) {
        (void)close(fd);
        return;
    }
    pdxi_sock_tune(fd, engine->congestion);
    if (pdxi_stream_open(l->reactor, fd, false, addr, &greeter_ops, g, &g->stream, &why) < 0) {
        pdxi_log(&engine->log, PDX_LOG_WARN, "engine %s: %s", engine->name, why.text);
        free(g);
        return;
    }
    g->listener = l;
    g->began_ns = l->reactor->now_ns;
    pdxi_timer_init(&g->timer, greeter_on_timer);
    pdxi_timer_start(&l->reactor->timers, &g->timer,
                     pdxi_after_ns(l->reactor->now_ns, GREETER_LIMIT_NS));
    pdxi_list_add_tail(&l->greeters, &g->link);
    l->ngreeters++;
}

/* ---- accepting -------------------------------------------------------- */

#define ACCEPTS_PER_TURN 64

/* Those that were silent for longest make room: who means it says HELLO at once. Returns whether
 * there will be room at the end of this loop. */
static bool listener_evict(struct pdxi_listener *l)
{
    uint64_t now_ns = l->reactor->now_ns;
    struct pdxi_list *pos = l->greeters.next;
    int n = 0;

    for (; n < ACCEPTS_PER_TURN && pos != &l->greeters; n++, pos = pos->next) {
        struct greeter *g = pdxi_container_of(pos, struct greeter, link);

        if (now_ns - g->began_ns < ACCEPT_PAUSE_NS)
            break;
        greeter_count_garbage(g, "it did not say HELLO, and others may be waiting");
        pdxi_stream_close(g->stream, false);
    }
    return n > 0;
}

/* Accepts one connection. Returns 0, PDX_EAGAIN when none waits, PDX_EBUSY when there is no room
 * now. */
static int listener_accept(struct pdxi_listener *l)
{
    struct pdxi_sockaddr addr = {.len = sizeof addr.u};
    int fd;

    if (l->ngreeters >= GREETERS_MAX)
        return PDX_EBUSY;
    fd = accept4(l->watch.fd, &addr.u.any, &addr.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        greeter_create(l, fd, &addr);
        return 0;
    }
    if (errno == EAGAIN)
        return PDX_EAGAIN;
    return errno == EINTR || errno == ECONNABORTED ? 0 : PDX_EBUSY; /* no descriptor, no memory */
}

static void listener_run(struct pdxi_turn *turn)
{
    struct pdxi_listener *l = pdxi_container_of(turn, struct pdxi_listener, turn);
    int r = 0;

    for (int i = 0; i < ACCEPTS_PER_TURN && r == 0; i++)
        r = listener_accept(l);
    if (r == PDX_EBUSY && l->ngreeters >= GREETERS_MAX && listener_evict(l))
        r = 0;
    if (r == 0)
        pdxi_turn_add(l->reactor, &l->turn);
    else if (r == PDX_EBUSY)
        pdxi_timer_start(&l->reactor->timers, &l->pause,
                         pdxi_after_ns(l->reactor->now_ns, ACCEPT_PAUSE_NS));
}

static void listener_on_pause(struct pdxi_timer *timer, uint64_t now_ns)
{
    struct pdxi_listener *l = pdxi_container_of(timer, struct pdxi_listener, pause);

    (void)now_ns;
    pdxi_turn_add(l->reactor, &l->turn);
}

static void listener_on_ready(struct pdxi_watch *watch, unsigned events)
{
    struct pdxi_listener *l = pdxi_container_of(watch, struct pdxi_listener, watch);

    (void)events;
    pdxi_turn_add(l->reactor, &l->turn);
}

int pdxi_listener_open(const char *bind, struct pdxi_listener **ret, struct pdxi_sockaddr *ret_addr,
                       struct pdx_error *why)
{
    struct pdxi_sockaddr addr;
    struct pdxi_listener *l;
    int fd;
    int r;

    r = pdxi_sock_lookup(bind, false, &addr, 1, why);
    if (r < 0)
        return r;
    l = calloc(1, sizeof *l);
    if (!l)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a listener");
    fd = pdxi_sock_listen(&addr, ret_addr, why);
    if (fd < 0) {
        free(l);
        return fd;
    }
    l->watch.fd = fd;
    l->watch.events = PDXI_IO_READ;
    l->watch.fn = listener_on_ready;
    l->turn.run = listener_run;
    pdxi_list_init(&l->turn.link);
    pdxi_list_init(&l->greeters);
    pdxi_timer_init(&l->pause, listener_on_pause);
    *ret = l;
    return 0;
}

int pdxi_listener_start(struct pdxi_listener *l, struct pdxi_reactor *r, struct pdx_error *why)
{
    l->reactor = r;
    return pdxi_io_add(r->io, &l->watch, why);
}

void pdxi_listener_stop(struct pdxi_listener *l)
{
    struct pdxi_list *pos;

    if (!l->reactor)
        return;
    pdxi_io_remove(l->reactor->io, &l->watch);
    (void)close(l->watch.fd);
    l->watch.fd = -1;
    pdxi_turn_remove(&l->turn);
    pdxi_timer_cancel(&l->reactor->timers, &l->pause);
    pdxi_list_for_each (pos, &l->greeters)
        pdxi_stream_close(pdxi_container_of(pos, struct greeter, link)->stream, false);
}

void pdxi_listener_free(struct pdxi_listener *l)
{
    if (!l)
        return;
    if (l->watch.fd >= 0)
        (void)close(l->watch.fd);
    free(l);
}
