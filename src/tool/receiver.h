/* SPDX-License-Identifier: Apache-2.0
 *
 * The decode side of a session: offers its pools, places requests, and compares
 * every byte that arrives. It also looks at what must not change: a page is
 * poison when it is handed out, and all memory is poison again at the end.
 */
#ifndef PDX_TOOL_RECEIVER_H
#define PDX_TOOL_RECEIVER_H

#include "tool/link.h"
#include "tool/rendezvous.h"
#include "tool/report.h"

struct tool_receiver_opts {
    const char *model; /* NULL: the preset that prefill names */
    uint32_t tp;       /* 0: what prefill says */
    uint32_t pp;       /* 0: what prefill says */
    uint64_t mem;      /* 0: tool_sizing_default_limit */
    bool quiet;
};

/* A request that has a place here. */
struct tool_room {
    bool used;
    uint64_t number;
    uint32_t tokens;
    uint64_t arrived; /* bit k: prefill stage k has sent its part, or told that it could not */
    bool lost;        /* one of them could not */
    struct tool_placement *ranks; /* owned; one per rank */
    char text[1024];              /* what is wrong with it already; empty: nothing */
};

struct tool_receiver {
    struct tool_receiver_opts opts;
    struct pdx_engine *engine; /* borrowed; shared by the ranks and by sessions */
    struct tool_link link;     /* owned */
    struct tool_hello hello;
    struct tool_model model; /* owned */
    struct tool_group group; /* owned */
    uint32_t nranks;
    struct tool_sizing sizing;
    struct tool_rank *ranks; /* owned; nranks of them */
    struct tool_room *rooms; /* owned; sizing.inflight of them */
    struct tool_progress progress;
    uint64_t began_ns;
    uint64_t busy_ns; /* spent comparing */
    uint64_t requests;
    uint64_t failed;
    uint64_t bytes; /* compared */
    uint64_t guards;
    bool done;          /* the summary is on its way */
    char failure[1024]; /* the first one; empty: none */
};

/* What became of a connection. */
enum tool_session {
    TOOL_SESSION_STRANGER = 1, /* it never said a hello that can be read: nothing happened */
    TOOL_SESSION_REFUSED,      /* it cannot be served: nothing was sent */
    TOOL_SESSION_BROKEN,       /* it ended in the middle */
    TOOL_SESSION_COMPLETE      /* look at failure */
};

/* Serves one connection to its end, taking over the link. `why` explains the first three. Call
 * tool_receiver_close afterwards, whatever it was. */
enum tool_session tool_receiver_serve(struct tool_receiver *r, const struct tool_receiver_opts *o,
                                      struct pdx_engine *engine, struct tool_link *link,
                                      struct pdx_error *why);
void tool_receiver_close(struct tool_receiver *r);

/* receiver_run.c: from the offer to the summary. */
int tool_receiver_run(struct tool_receiver *r, struct pdx_error *why);

#endif
