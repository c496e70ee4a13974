/* SPDX-License-Identifier: Apache-2.0
 *
 * The reactor: the one thread on which everything of an engine happens. It
 * sleeps in one place (engine/io), and is woken by descriptors, by timers and
 * by commands that other threads push.
 *
 * A loop: commands, a turn for everything that has work left, due timers,
 * callbacks of ended transfers, then sleep - or only look, while turns are
 * left.
 */
#ifndef PDXI_REACTOR_H
#define PDXI_REACTOR_H

#include "base/list.h"
#include "base/mpsc.h"
#include "engine/doorbell.h"
#include "engine/io/io.h"
#include "engine/timer.h"

#include <pdx/engine.h>
#include <pthread.h>
#include <stdatomic.h>

struct pdxi_reactor;

/* Something another thread asks for. Part of the object it is about. */
struct pdxi_cmd {
    struct pdxi_mpsc_node node;
    void (*run)(struct pdxi_reactor *r, struct pdxi_cmd *cmd);
};

/* Work that did not finish in its time slice. Part of the object it is about. */
struct pdxi_turn {
    struct pdxi_list link;
    void (*run)(struct pdxi_turn *turn);
};

struct pdxi_reactor {
    struct pdx_engine *engine; /* owner */
    struct pdxi_io *io;        /* owned */
    struct pdxi_doorbell doorbell;
    struct pdxi_watch bell_watch;
    struct pdxi_mpsc cmds;
    struct pdxi_timers timers;
    struct pdxi_list turns;
    struct pdxi_list ended;  /* transfers whose callbacks are due */
    struct pdxi_list graves; /* closed streams whose memory goes at the end of the loop */
    uint64_t now_ns;         /* of this loop */
    uint64_t busy_ns;        /* last time there was something to do */
    uint8_t *staging;        /* owned: PDXI_STAGING_LEN bytes */
    pthread_t thread;
    bool started;
    bool stopping;
    struct pdxi_cmd stop_cmd;
    const char *io_name; /* static */
    char io_reason[160];
};

/* Creates the io backend on a new thread and starts to loop. Returns 0, PDX_EUNSUPPORTED, PDX_ESYS,
 * PDX_ENOMEM. */
int pdxi_reactor_start(struct pdxi_reactor *r, struct pdx_engine *engine, enum pdx_io io,
                       uint32_t max_watches, struct pdx_error *why);

/* Ends the loop after it has run what ends the engine, and joins the thread. */
void pdxi_reactor_stop(struct pdxi_reactor *r);

/* The last thing, also for one that never started: who has just posted may still ring until here.
 */
void pdxi_reactor_fini(struct pdxi_reactor *r);

/* Any thread. Returns false when the reactor has stopped: the command will not run. */
bool pdxi_reactor_post(struct pdxi_reactor *r, struct pdxi_cmd *cmd);

/* The same for several at once, in order; all or none. `cmds` have been linked by pdxi_cmd_link. */
bool pdxi_reactor_post_chain(struct pdxi_reactor *r, struct pdxi_cmd *first, struct pdxi_cmd *last);

/* Makes `cmd` the one that runs right after `before`. */
static inline void pdxi_cmd_link(struct pdxi_cmd *before, struct pdxi_cmd *cmd)
{
    cmd->node.next = &before->node;
}

/* Whether the calling thread is the reactor. */
bool pdxi_reactor_is_self(const struct pdxi_reactor *r);

/* Whether the calling thread is the reactor of any engine: such a thread must not block. */
bool pdxi_reactor_is_any(void);

/* Reactor thread only. */
void pdxi_turn_add(struct pdxi_reactor *r, struct pdxi_turn *turn);
void pdxi_turn_remove(struct pdxi_turn *turn);

#endif
