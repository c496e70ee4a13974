/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx decode: waits for a pdx prefill, serves it, and says how it went.
 */
#include "base/clock.h"
#include "tool/args.h"
#include "tool/commands.h"
#include "tool/receiver.h"
#include "tool/refuse.h"
#include "tool/station.h"
#include "tool/table.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct decode_opts {
    struct tool_receiver_opts receiver;
    struct tool_station_opts station;
    const char *listen;
    uint64_t tp;
    uint64_t pp;
    bool once;
    bool json;
};

static bool decode_args(struct decode_opts *o, int argc, char **argv, int *ret_exit)
{
    const struct tool_arg args[] = {
        {"listen", 'l', TOOL_ARG_ADDRESS, &o->listen, 0, 0, NULL,
         "where pdx prefill finds this process (127.0.0.1:7400);\nport 0 lets the kernel choose"},
        {"bind", 'b', TOOL_ARG_ADDRESS, &o->station.bind, 0, 0, NULL,
         "where the engine listens for the data (127.0.0.1:0)"},
        {"advertise", 'a', TOOL_ARG_STRING, &o->station.advertise, 0, 0, "HOST[:PORT],...",
         "addresses that prefill shall use for the data (the bound one)"},
        {"model", 'm', TOOL_ARG_STRING, &o->receiver.model, 0, 0, "NAME|FILE",
         "preset or config.json (the preset that prefill names)"},
        {"tp", 't', TOOL_ARG_UINT, &o->tp, 1, TOOL_TP_MAX, "D",
         "tensor-parallel size here (what prefill says)"},
        {"pp", 0, TOOL_ARG_UINT, &o->pp, 1, TOOL_PP_MAX, "D",
         "pipeline stages here (what prefill says)"},
        {"mem", 0, TOOL_ARG_SIZE, &o->receiver.mem, 1u << 16, 0, NULL,
         "memory for all pools here (a quarter of what is available, at most 4GiB)"},
        {"io", 0, TOOL_ARG_STRING, &o->station.io, 0, 0, "auto|uring|epoll",
         "how the engine waits (auto)"},
        {"once", '1', TOOL_ARG_FLAG, &o->once, 0, 0, NULL, "end after one prefill"},
        {"json", 0, TOOL_ARG_FLAG, &o->json, 0, 0, NULL,
         "print one JSON object per prefill, one a line"},
        {"quiet", 'q', TOOL_ARG_FLAG, &o->receiver.quiet, 0, 0, NULL, "no progress"},
        {"verbose", 'v', TOOL_ARG_FLAG, &o->station.verbose, 0, 0, NULL,
         "log what the engine does"},
    };
    const struct tool_command cmd = {
        .name = "decode",
        .synopsis = "[options]",
        .purpose = "Offers memory to a pdx prefill and compares every byte that arrives.",
        .args = args,
        .nargs = sizeof args / sizeof args[0],
    };

    if (!tool_args_begin(&cmd, argc, argv, NULL, ret_exit))
        return false;
    o->receiver.tp = (uint32_t)o->tp;
    o->receiver.pp = (uint32_t)o->pp;
    return true;
}

static void decode_verdict(const struct tool_receiver *r, char *text, size_t cap)
{
    char size[TOOL_TEXT_MAX], count[TOOL_TEXT_MAX];

    if (r->failure[0])
        (void)snprintf(text, cap, "FAILED: %llu good, %llu bad request%s: %s",
                       (unsigned long long)r->requests, (unsigned long long)r->failed,
                       tool_text_plural(r->failed), r->failure);
    else
        (void)snprintf(text, cap,
                       "OK: %llu request%s, %s, every byte verified, %s guard pages untouched",
                       (unsigned long long)r->requests, tool_text_plural(r->requests),
                       tool_text_size(size, r->bytes), tool_text_count(count, r->guards));
}

static void decode_print(const struct tool_receiver *r, const char *verdict)
{
    char pools[TOOL_TEXT_MAX], bytes[TOOL_TEXT_MAX], time[TOOL_TEXT_MAX];
    char from[TOOL_TEXT_MAX], to[TOOL_TEXT_MAX];
    struct pdx_engine_info info;

    pdx_engine_info(r->engine, &info);
    (void)printf("pdx decode: %s, %s from %s, %s\n"
                 "  engine %s (%s), shared by the ranks, data at %s\n"
                 "  pools: %s per rank, %u request%s at a time, each up to %u tokens\n"
                 "  %s compared and poisoned again in %s\n\n%s\n",
                 r->model.name, tool_text_ranks(to, r->hello.tp[1], r->hello.pp[1]),
                 tool_text_ranks(from, r->hello.tp[0], r->hello.pp[0]), r->link.peer, info.io,
                 info.io_reason, info.advertised, tool_text_size(pools, r->sizing.bytes),
                 r->sizing.inflight, tool_text_plural(r->sizing.inflight), r->sizing.max_tokens,
                 tool_text_size(bytes, r->bytes), tool_text_duration(time, r->busy_ns), verdict);
}

static void decode_print_json(const struct tool_receiver *r, const char *verdict)
{
    struct pdx_engine_info info;
    json_t *o;

    pdx_engine_info(r->engine, &info);
    o = json_pack(
        "{s:s,s:b,s:s,s:s,s:i,s:i,s:i,s:i,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:f}", "command",
        "decode", "ok", !r->failure[0], "verdict", verdict, "model", r->model.name, "prefill_tp",
        (int)r->hello.tp[0], "decode_tp", (int)r->hello.tp[1], "prefill_pp", (int)r->hello.pp[0],
        "decode_pp", (int)r->hello.pp[1], "io", info.io, "io_reason", info.io_reason,
        "verified_requests", (json_int_t)r->requests, "failed_requests", (json_int_t)r->failed,
        "verified_bytes", (json_int_t)r->bytes, "guard_items", (json_int_t)r->guards,
        "pool_bytes_per_rank", (json_int_t)r->sizing.bytes, "max_tokens",
        (json_int_t)r->sizing.max_tokens, "compare_seconds", (double)r->busy_ns / 1e9);
    if (o)
        (void)json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    (void)printf("\n");
    json_decref(o);
}

static void decode_broke(const struct decode_opts *o, const char *text)
{
    char clean[PDX_ERROR_TEXT_MAX]; /* of the engine's sentences, which may quote an option */

    tool_text_clean(clean, sizeof clean, text);
    if (o->json) {
        json_t *v =
            json_pack("{s:s,s:b,s:s+}", "command", "decode", "ok", 0, "verdict", "FAILED: ", clean);

        if (v)
            (void)json_dumpf(v, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
        (void)printf("\n");
        json_decref(v);
    }
    (void)fprintf(stderr, "pdx decode: %s\n", clean);
}

/* Serves one connection. Returns the exit status it calls for, or -1 when it was no session. */
static int decode_session(const struct decode_opts *o, struct tool_receiver *r,
                          struct pdx_engine *engine, struct tool_link *link)
{
    char verdict[1280];
    struct pdx_error why;
    int status = TOOL_EXIT_FAILED;

    switch (tool_receiver_serve(r, &o->receiver, engine, link, &why)) {
    case TOOL_SESSION_STRANGER:
        (void)fprintf(stderr, "pdx decode: %s; waiting for another\n", why.text);
        return -1;
    case TOOL_SESSION_REFUSED:
        decode_broke(o, why.text);
        return TOOL_EXIT_USAGE;
    case TOOL_SESSION_BROKEN:
        decode_broke(o, why.text);
        return TOOL_EXIT_FAILED;
    case TOOL_SESSION_COMPLETE:
        status = r->failure[0] ? TOOL_EXIT_FAILED : TOOL_EXIT_OK;
        decode_verdict(r, verdict, sizeof verdict);
        if (o->json)
            decode_print_json(r, verdict);
        else
            decode_print(r, verdict);
        (void)fflush(stdout);
    }
    return status;
}

static int decode_loop(const struct decode_opts *o, struct tool_receiver *r,
                       struct pdx_engine *engine, int listener)
{
    for (;;) {
        struct pollfd p = {.fd = listener, .events = POLLIN};
        struct tool_link link;
        struct pdx_error why;
        int got, status;

        (void)poll(&p, 1, -1);
        got = tool_link_accept(listener, "prefill", &link, &why);
        if (got < 0) {
            decode_broke(o, why.text);
            return TOOL_EXIT_FAILED;
        }
        if (got == 0)
            continue;
        status = decode_session(o, r, engine, &link);
        tool_receiver_close(r);
        if (o->once && status >= 0)
            return status;
    }
}

int tool_decode_main(int argc, char **argv)
{
    struct decode_opts o = {
        .station = {.name = "decode", .io = "auto"},
        .listen = "127.0.0.1:7400",
    };
    struct tool_receiver *r = NULL;
    struct pdx_engine *engine = NULL;
    struct pdx_error why;
    char address[160];
    int listener, status = TOOL_EXIT_USAGE;

    if (!decode_args(&o, argc, argv, &status))
        return status;
    listener = tool_link_listen(o.listen, address, &why);
    if (listener < 0 || tool_station_open(&o.station, &engine, &why) < 0) {
        decode_broke(&o, why.text);
        status = TOOL_EXIT_USAGE;
        goto out_listener;
    }
    r = calloc(1, sizeof *r); /* too large for a stack */
    if (!r) {
        decode_broke(&o, "no memory");
        status = TOOL_EXIT_FAILED;
        goto out_engine;
    }
    (void)fprintf(o.json ? stderr : stdout, "listening on %s\n", address);
    (void)fflush(stdout);
    status = decode_loop(&o, r, engine, listener);
    free(r);
out_engine:
    (void)pdx_engine_destroy(engine);
out_listener:
    if (listener >= 0)
        (void)close(listener);
    return status;
}
