/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefill side of a session: its ranks, the routes to the decode ranks, and
 * the requests in flight. One thread drives all of it from poll(2) on two file
 * descriptors, the link to the decode process and the completion queue of the
 * engine.
 */
#ifndef PDX_TOOL_SENDER_H
#define PDX_TOOL_SENDER_H

#include "tool/link.h"
#include "tool/rendezvous.h"
#include "tool/report.h"
#include "tool/trace.h"

#define TOOL_CORRUPT_NONE UINT64_MAX

struct tool_sender_opts {
    const char *connect;
    const char *io;
    uint32_t tp[2]; /* prefill, decode */
    uint32_t pp[2];
    uint64_t mem; /* 0: tool_sizing_default_limit */
    uint64_t seed;
    uint64_t inflight;
    uint64_t max_tokens; /* 0: as in the trace */
    uint64_t deadline_ns;
    uint64_t corrupt; /* the request one of whose bytes is changed before it is sent */
    bool swap_layers; /* see struct tool_rank */
    bool real_rate;   /* requests start at their timestamps */
    bool quiet;
    bool verbose;
};

struct tool_sender_pair {
    uint32_t p;
    uint32_t d;
    struct pdx_route *route; /* owned */
};

struct tool_flight_send {
    struct pdx_transfer_status *status; /* owned; NULL once it is booked */
    size_t pool;
    uint32_t stage;
};

/* The part of a request that one prefill stage sends. */
struct tool_leg {
    struct tool_flight *flight; /* whose it is */
    uint32_t stage;
    size_t pending;  /* completions that have not come yet */
    char text[1024]; /* why it failed; empty: it did not */
};

enum tool_flight_state {
    TOOL_FLIGHT_FREE = 0,
    TOOL_FLIGHT_PLACING, /* announced; decode looks for pages */
    TOOL_FLIGHT_SENDING,
    TOOL_FLIGHT_JUDGED /* sent by all stages; decode compares */
};

/* One request on its way. */
struct tool_flight {
    enum tool_flight_state state;
    uint64_t room;
    uint32_t tokens;
    struct tool_placement *local;  /* owned; one per prefill rank */
    struct tool_placement *remote; /* owned; one per decode rank */
    struct tool_flight_send *sends;
    size_t nsends;
    struct tool_leg *legs; /* owned; one per prefill stage */
    uint32_t landed;       /* legs whose stage has told decode that it is done */
};

struct tool_sender {
    struct tool_sender_opts opts;
    struct tool_model model;     /* owned */
    struct tool_group groups[2]; /* owned; prefill, decode */
    struct tool_trace trace;     /* owned; lengths already cut */
    struct tool_rank *ranks;     /* owned; nranks of them */
    uint32_t nranks;
    struct pdx_engine *engine;      /* owned; shared by the ranks */
    struct pdx_cq *cq;              /* owned */
    struct pdx_peer *peer;          /* owned */
    struct tool_link link;          /* owned */
    struct tool_offer offer;        /* owned */
    struct tool_sender_pair *pairs; /* owned */
    size_t npairs;
    struct tool_flight *flights; /* owned; nflights of them */
    size_t nflights;
    uint32_t remote_free[TOOL_POOLS_MAX]; /* items of each decode rank */
    size_t next;                          /* request to start next */
    size_t active;
    bool stopping; /* a transfer failed: nothing new is started */
    uint64_t heard_ns;
    struct tool_report report;
    struct tool_progress progress;
    struct tool_message summary; /* decode's last word */
    char failure[1024];          /* the first one; empty: none */
};

/* Takes over the model and the trace (also when it fails). Creates engine, ranks and regions;
 * connects nothing. */
int tool_sender_open(struct tool_sender *s, const struct tool_sender_opts *o,
                     struct tool_model *model, struct tool_trace *trace, struct pdx_error *why);
/* Meets the decode process and makes the routes. *ret_refused: decode answered with a refusal. */
int tool_sender_meet(struct tool_sender *s, bool *ret_refused, struct pdx_error *why);
/* Plays the trace. Returns 0 when everything ended in order (look at s->failure), or what broke. */
int tool_sender_run(struct tool_sender *s, struct pdx_error *why);
/* Also after a failed open. */
void tool_sender_close(struct tool_sender *s);

/* A message of kind `op`; others are errors. Blocks up to timeout_ns. */
int tool_sender_expect(struct tool_sender *s, enum tool_op op, uint64_t timeout_ns, json_t **ret,
                       struct pdx_error *why);
/* Remembers the first failure. */
void tool_sender_fail(struct tool_sender *s, uint64_t room, const char *text);

/* flight.c. Start: 1 started, 0 not enough free items now. */
int tool_flight_start(struct tool_sender *s, struct tool_flight *f, uint64_t room,
                      struct pdx_error *why);
int tool_flight_place(struct tool_sender *s, struct tool_flight *f, const json_t *msg,
                      struct pdx_error *why);
/* One of its transfers is terminal. */
int tool_flight_completed(struct tool_sender *s, struct tool_leg *leg, struct pdx_error *why);
int tool_flight_verdict(struct tool_sender *s, struct tool_flight *f, const struct tool_message *m,
                        struct pdx_error *why);
/* Ends whatever it is doing and frees it. */
void tool_flight_fini(struct tool_sender *s, struct tool_flight *f);

#endif
