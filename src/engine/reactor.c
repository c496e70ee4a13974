/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reactor.h"

#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/net/stream.h"
#include "engine/transfer.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_LOOKS 64       /* looks between two sched_yield while spinning */
#define TURNS_NS   PDX_MSEC /* after which the turns that are left wait for the clocks */

static _Thread_local const struct pdxi_reactor *reactor_self;

bool pdxi_reactor_is_self(const struct pdxi_reactor *r)
{
    return reactor_self == r;
}

bool pdxi_reactor_is_any(void)
{
    return reactor_self != NULL;
}

bool pdxi_reactor_post_chain(struct pdxi_reactor *r, struct pdxi_cmd *first, struct pdxi_cmd *last)
{
    if (!pdxi_mpsc_push_chain(&r->cmds, &last->node, &first->node))
        return false;
    /* On the reactor itself the loop looks again before it sleeps. */
    if (reactor_self != r)
        (void)pdxi_doorbell_ring(&r->doorbell);
    return true;
}

bool pdxi_reactor_post(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    return pdxi_reactor_post_chain(r, cmd, cmd);
}

void pdxi_turn_add(struct pdxi_reactor *r, struct pdxi_turn *turn)
{
    if (pdxi_list_empty(&turn->link))
        pdxi_list_add_tail(&r->turns, &turn->link);
}

void pdxi_turn_remove(struct pdxi_turn *turn)
{
    pdxi_list_remove(&turn->link);
}

static void reactor_on_bell(struct pdxi_watch *watch, unsigned events)
{
    struct pdxi_reactor *r = pdxi_container_of(watch, struct pdxi_reactor, bell_watch);

    (void)events;
    pdxi_doorbell_drain(&r->doorbell);
}

static void reactor_run_nodes(struct pdxi_reactor *r, struct pdxi_mpsc_node *n)
{
    while (n) {
        struct pdxi_mpsc_node *next = n->next; /* the command may free itself */
        struct pdxi_cmd *cmd = pdxi_container_of(n, struct pdxi_cmd, node);

        cmd->run(r, cmd);
        n = next;
    }
}

static bool reactor_run_cmds(struct pdxi_reactor *r)
{
    struct pdxi_mpsc_node *n;

    if (pdxi_mpsc_empty(&r->cmds))
        return false;
    n = pdxi_mpsc_take(&r->cmds);
    reactor_run_nodes(r, n);
    return true;
}

/* One turn each; those that add themselves again wait for the next loop, behind those that did not
 * have theirs in time. */
static bool reactor_run_turns(struct pdxi_reactor *r)
{
    struct pdxi_list now;

    if (pdxi_list_empty(&r->turns))
        return false;
    pdxi_list_init(&now);
    pdxi_list_splice_tail(&now, &r->turns);
    while (!pdxi_list_empty(&now)) {
        struct pdxi_turn *turn = pdxi_container_of(now.next, struct pdxi_turn, link);

        pdxi_list_remove(&turn->link);
        turn->run(turn);
        if (pdxi_now_ns() - r->now_ns >= TURNS_NS)
            break;
    }
    pdxi_list_splice_tail(&now, &r->turns);
    pdxi_list_splice_tail(&r->turns, &now);
    return true;
}

static void reactor_bury(struct pdxi_reactor *r)
{
    while (!pdxi_list_empty(&r->graves)) {
        struct pdxi_stream *s = pdxi_container_of(r->graves.next, struct pdxi_stream, grave);

        pdxi_list_remove(&s->grave);
        s->ops->gone(s);
        free(s);
    }
}

/* How long the loop may sleep. While something was going on a moment ago it only looks. */
static uint64_t reactor_timeout(struct pdxi_reactor *r)
{
    uint64_t spin_ns = r->engine->spin_ns;

    if (!pdxi_list_empty(&r->turns))
        return 0;
    if (spin_ns && r->now_ns - r->busy_ns < spin_ns)
        return 0;
    return pdxi_timers_next(&r->timers, r->now_ns);
}

static int reactor_wait(struct pdxi_reactor *r)
{
    uint64_t syscalls = r->io->syscalls;
    uint64_t timeout_ns = reactor_timeout(r);
    int n;

    if (timeout_ns > 0) {
        pdxi_doorbell_prepare_sleep(&r->doorbell);
        if (!pdxi_mpsc_empty(&r->cmds))
            timeout_ns = 0;
        else
            pdxi_stat_add(&r->engine->stats, PDXI_STAT_WAKEUPS, 1);
    }
    n = pdxi_io_wait(r->io, timeout_ns);
    pdxi_doorbell_awake(&r->doorbell);
    pdxi_stat_add(&r->engine->stats, PDXI_STAT_SYSCALLS, r->io->syscalls - syscalls);
    return n;
}

static void reactor_loop(struct pdxi_reactor *r)
{
    unsigned looks = 0;

    while (!r->stopping) {
        bool busy;
        int n = reactor_wait(r);

        if (n < 0) {
            pdxi_log(&r->engine->log, PDX_LOG_ERROR,
                     "engine %s: waiting failed for good; the engine ends", r->engine->name);
            break;
        }
        r->now_ns = pdxi_now_ns();
        busy = n > 0;
        busy |= reactor_run_cmds(r);
        /* What has arrived before a clock ran out counts, also when this thread was held up. */
        busy |= reactor_run_turns(r);
        busy |= pdxi_timers_run(&r->timers, r->now_ns) > 0;
        pdxi_transfer_run_callbacks(r);
        reactor_bury(r);
        if (busy)
            r->busy_ns = r->now_ns;
        else if (r->engine->spin_ns && ++looks % SPIN_LOOKS == 0)
            (void)sched_yield();
    }
}

/* The last thing: nothing may be left that could call back. Submissions that come in meanwhile are
 * ended too; after close they are refused. */
static void reactor_end(struct pdxi_reactor *r)
{
    r->stopping = true; /* also when it ends by itself */
    pdxi_engine_shutdown(r->engine);
    reactor_run_nodes(r, pdxi_mpsc_close(&r->cmds));
    pdxi_transfer_run_callbacks(r);
    reactor_bury(r);
}

struct reactor_start {
    struct pdxi_reactor *reactor;
    enum pdx_io io;
    uint32_t max_watches;
    struct pdx_error why;
    int result;
    bool ready;
    pthread_mutex_t lock;
    pthread_cond_t cond;
};

/* The ring belongs to the thread that creates it, so this runs on the reactor. */
static int reactor_create_io(struct reactor_start *start)
{
    struct pdxi_reactor *r = start->reactor;
    struct pdx_error why;
    int n;

    if (start->io != PDX_IO_EPOLL) {
        n = pdxi_io_create(&pdxi_io_uring, &r->io, start->max_watches, &why);
        if (n == 0) {
            (void)snprintf(r->io_reason, sizeof r->io_reason, "the kernel permits it");
            return 0;
        }
        if (start->io == PDX_IO_URING) {
            start->why = why;
            return n;
        }
        (void)snprintf(r->io_reason, sizeof r->io_reason, "io_uring: %.140s", why.text);
    } else {
        (void)snprintf(r->io_reason, sizeof r->io_reason, "asked for");
    }
    return pdxi_io_create(&pdxi_io_epoll, &r->io, start->max_watches, &start->why);
}

static int reactor_prepare(struct reactor_start *start)
{
    struct pdxi_reactor *r = start->reactor;
    int n = reactor_create_io(start);

    if (n < 0)
        return n;
    r->io_name = r->io->ops->name;
    n = pdxi_doorbell_init(&r->doorbell, &start->why);
    if (n < 0)
        goto out_io;
    r->bell_watch.fd = r->doorbell.fd;
    r->bell_watch.events = PDXI_IO_READ;
    r->bell_watch.fn = reactor_on_bell;
    n = pdxi_io_add(r->io, &r->bell_watch, &start->why);
    if (n < 0)
        goto out_bell;
    return 0;
out_bell:
    pdxi_doorbell_fini(&r->doorbell);
out_io:
    pdxi_io_destroy(r->io);
    return n;
}

static void *reactor_main(void *arg)
{
    struct reactor_start *start = arg;
    struct pdxi_reactor *r = start->reactor;
    int result = reactor_prepare(start);

    reactor_self = r;
    r->now_ns = pdxi_now_ns();
    (void)pthread_mutex_lock(&start->lock);
    start->result = result;
    start->ready = true;
    (void)pthread_cond_signal(&start->cond);
    (void)pthread_mutex_unlock(&start->lock);
    if (result < 0)
        return NULL;
    reactor_loop(r);
    reactor_end(r);
    pdxi_io_destroy(r->io);
    return NULL;
}

/* Signals are the application's: the reactor takes none. */
static int reactor_spawn(struct pdxi_reactor *r, struct reactor_start *start)
{
    sigset_t all;
    sigset_t old;
    int err;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&r->thread, NULL, reactor_main, start);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err;
}

int pdxi_reactor_start(struct pdxi_reactor *r, struct pdx_engine *engine, enum pdx_io io,
                       uint32_t max_watches, struct pdx_error *why)
{
    struct reactor_start start = {
        .reactor = r,
        .io = io,
        .max_watches = max_watches,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .cond = PTHREAD_COND_INITIALIZER,
    };
    int err;

    r->engine = engine;
    pdxi_list_init(&r->turns);
    pdxi_list_init(&r->ended);
    pdxi_list_init(&r->graves);
    pdxi_timers_init(&r->timers, pdxi_now_ns());
    r->staging = malloc(PDXI_STAGING_LEN);
    if (!r->staging)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for the receive buffer");
    err = reactor_spawn(r, &start);
    if (err) {
        free(r->staging);
        r->staging = NULL;
        return pdxi_error_sys(why, err, "cannot start the reactor thread");
    }
    (void)pthread_mutex_lock(&start.lock);
    while (!start.ready)
        (void)pthread_cond_wait(&start.cond, &start.lock);
    (void)pthread_mutex_unlock(&start.lock);
    if (start.result < 0) {
        (void)pthread_join(r->thread, NULL);
        free(r->staging);
        r->staging = NULL;
        if (why)
            *why = start.why;
        return start.result;
    }
    (void)pthread_setname_np(r->thread, "pdx-reactor");
    r->started = true;
    return 0;
}

static void reactor_on_stop(struct pdxi_reactor *r, struct pdxi_cmd *cmd)
{
    (void)cmd;
    r->stopping = true;
}

void pdxi_reactor_stop(struct pdxi_reactor *r)
{
    if (!r->started)
        return;
    r->stop_cmd.run = reactor_on_stop;
    (void)pdxi_reactor_post(r, &r->stop_cmd); /* refused: it has ended by itself */
    (void)pthread_join(r->thread, NULL);
    r->started = false;
    free(r->staging);
    r->staging = NULL;
}

void pdxi_reactor_fini(struct pdxi_reactor *r)
{
    if (r->io_name)
        pdxi_doorbell_fini(&r->doorbell);
}
