/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx prefill: reads its options, plays a trace against a pdx decode, and says
 * how it went.
 */
#include "tool/args.h"
#include "tool/commands.h"
#include "tool/refuse.h"
#include "tool/sender.h"
#include "tool/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFILL_REQUESTS 16
#define PREFILL_MEAN     4096 /* tokens of a generated request */

struct prefill_opts {
    struct tool_sender_opts sender;
    const char *model;
    const char *trace;
    const char *rate;
    uint64_t page_size;
    uint64_t generate;
    uint64_t mean_tokens;
    double arrivals;
    uint64_t requests;
    bool json;
};

static bool prefill_args(struct prefill_opts *o, int argc, char **argv, int *ret_exit)
{
    struct tool_sender_opts *s = &o->sender;
    const struct tool_arg args[] = {
        {"connect", 'c', TOOL_ARG_ADDRESS, &s->connect, 0, 0, NULL,
         "where pdx decode listens (127.0.0.1:7400)"},
        {"model", 'm', TOOL_ARG_STRING, &o->model, 0, 0, "NAME|FILE",
         "preset or config.json (Qwen3-Next-80B-A3B); see pdx models"},
        {"page-size", 0, TOOL_ARG_UINT, &o->page_size, 1, 65536, "TOKENS", "tokens per page (64)"},
        {"tp", 't', TOOL_ARG_PAIR, s->tp, 1, TOOL_TP_MAX, "P:D",
         "tensor-parallel sizes of prefill and decode (1:1)"},
        {"pp", 0, TOOL_ARG_PAIR, s->pp, 1, TOOL_PP_MAX, "P:D",
         "pipeline stages of prefill and decode (1:1); decode has as many\nas prefill, or 1"},
        {"trace", 0, TOOL_ARG_STRING, &o->trace, 0, 0, "FILE",
         "requests to play, one JSON object a line: timestamp (ms),\n"
         "input_length, output_length (not used)"},
        {"generate", 'g', TOOL_ARG_UINT, &o->generate, 1, 1000000, "N",
         "make up N requests instead (the default, 16)"},
        {"mean-tokens", 0, TOOL_ARG_UINT, &o->mean_tokens, 1, 1u << 24, "N",
         "average length of a made-up request (4096)"},
        {"arrivals", 0, TOOL_ARG_REAL, &o->arrivals, 0, 0, "PER_S",
         "made-up requests per second, for --rate real (2)"},
        {"requests", 'n', TOOL_ARG_UINT, &o->requests, 1, 1000000, "N", "stop after N requests"},
        {"max-tokens", 0, TOOL_ARG_UINT, &s->max_tokens, 1, INT32_MAX, "N",
         "cut longer requests to N tokens"},
        {"inflight", 0, TOOL_ARG_UINT, &s->inflight, 1, TOOL_INFLIGHT_MAX, "N",
         "requests under way at the same time (4)"},
        {"rate", 0, TOOL_ARG_STRING, &o->rate, 0, 0, "real|max",
         "keep the trace's timestamps, or go as fast as possible (max)"},
        {"seed", 0, TOOL_ARG_UINT, &s->seed, 0, 0, "N", "of content and made-up requests (1)"},
        {"deadline", 0, TOOL_ARG_DURATION, &s->deadline_ns, PDX_MSEC, PDX_SEC * 86400, NULL,
         "of each transfer (30s)"},
        {"mem", 0, TOOL_ARG_SIZE, &s->mem, 1u << 16, 0, NULL,
         "memory for all pools here (a quarter of what is available, at most 4GiB)"},
        {"io", 0, TOOL_ARG_STRING, &s->io, 0, 0, "auto|uring|epoll", "how the engine waits (auto)"},
        {"corrupt", 0, TOOL_ARG_UINT, &s->corrupt, 0, 0, "N",
         "change one byte of request N (from 0) before it is sent; the run must fail"},
        {"swap-layers", 0, TOOL_ARG_FLAG, &s->swap_layers, 0, 0, NULL,
         "tell the numbers of two layers of the KV cache the wrong way round; the\n"
         "run must fail"},
        {"json", 0, TOOL_ARG_FLAG, &o->json, 0, 0, NULL, "print one JSON object instead of tables"},
        {"quiet", 'q', TOOL_ARG_FLAG, &s->quiet, 0, 0, NULL, "no progress"},
        {"verbose", 'v', TOOL_ARG_FLAG, &s->verbose, 0, 0, NULL, "log what the engine does"},
    };
    const struct tool_command cmd = {
        .name = "prefill",
        .synopsis = "[options]",
        .purpose =
            "Sends the KV cache and state of the requests of a trace to a pdx decode, which\n"
            "compares every byte.",
        .args = args,
        .nargs = sizeof args / sizeof args[0],
    };

    return tool_args_begin(&cmd, argc, argv, NULL, ret_exit);
}

static int prefill_trace(const struct prefill_opts *o, struct tool_trace *ret,
                         struct pdx_error *why)
{
    uint64_t n = o->generate ? o->generate : o->requests ? o->requests : PREFILL_REQUESTS;

    if (o->trace && o->generate)
        return tool_refuse(why, PDX_EINVAL, "--trace and --generate exclude each other");
    if (o->trace)
        return tool_trace_load(o->trace, o->requests, ret, why);
    if (o->requests && o->requests < n)
        n = o->requests;
    return tool_trace_generate(n, o->sender.seed, (uint32_t)o->mean_tokens, o->arrivals, ret, why);
}

/* Everything that can be wrong with the input, before anybody is contacted. */
static int prefill_open(struct prefill_opts *o, struct tool_sender *s, struct pdx_error *why)
{
    struct tool_model model = {0};
    struct tool_trace trace = {0};
    int err = 0;

    if (strcmp(o->rate, "real") == 0)
        o->sender.real_rate = true;
    else if (strcmp(o->rate, "max") != 0)
        err = tool_refuse(why, PDX_EINVAL, "--rate is real or max, not \"%.32s\"", o->rate);
    if (err == 0)
        err = tool_model_load(o->model, (uint32_t)o->page_size, &model, why);
    if (err == 0)
        err = prefill_trace(o, &trace, why);
    if (err == 0 && trace.n == 0)
        err = tool_refuse(why, PDX_EINVAL, "%s has no requests", o->trace);
    if (err == 0 && o->sender.corrupt != TOOL_CORRUPT_NONE && o->sender.corrupt >= trace.n)
        err =
            tool_refuse(why, PDX_EINVAL, "--corrupt %llu: the trace has only %zu request%s",
                        (unsigned long long)o->sender.corrupt, trace.n, tool_text_plural(trace.n));
    if (err == 0)
        return tool_sender_open(s, &o->sender, &model, &trace, why);
    tool_trace_fini(&trace);
    tool_model_fini(&model);
    return err;
}

static void prefill_verdict(const struct tool_sender *s, char *text, size_t cap)
{
    char size[TOOL_TEXT_MAX], count[TOOL_TEXT_MAX];

    if (s->failure[0])
        (void)snprintf(text, cap, "FAILED: %llu good, %llu bad of %zu request%s: %s",
                       (unsigned long long)s->summary.requests,
                       (unsigned long long)s->summary.failed, s->trace.n,
                       tool_text_plural(s->trace.n), s->failure);
    else
        (void)snprintf(
            text, cap, "OK: %llu request%s, %s, every byte verified, %s guard pages untouched",
            (unsigned long long)s->summary.requests, tool_text_plural(s->summary.requests),
            tool_text_size(size, s->summary.bytes), tool_text_count(count, s->summary.guards));
}

static void prefill_print(struct tool_sender *s, const char *verdict)
{
    struct pdx_engine_info info;
    char from[TOOL_TEXT_MAX], to[TOOL_TEXT_MAX];

    pdx_engine_info(s->engine, &info);
    (void)printf("pdx prefill: %s, %s to %s, to %s\n"
                 "  engine %s (%s), shared by the ranks\n\n",
                 s->model.name, tool_text_ranks(from, s->opts.tp[0], s->opts.pp[0]),
                 tool_text_ranks(to, s->opts.tp[1], s->opts.pp[1]), s->link.peer, info.io,
                 info.io_reason);
    tool_report_print(&s->report, stdout);
    (void)printf("\n%s\n", verdict);
}

static void prefill_print_json(struct tool_sender *s, const char *verdict)
{
    struct pdx_engine_info info;
    json_t *o = tool_report_json(&s->report), *head;

    pdx_engine_info(s->engine, &info);
    head = json_pack("{s:s,s:b,s:s,s:s,s:i,s:i,s:i,s:i,s:s,s:s,s:I,s:I,s:I}", "command", "prefill",
                     "ok", !s->failure[0], "verdict", verdict, "model", s->model.name, "prefill_tp",
                     (int)s->opts.tp[0], "decode_tp", (int)s->opts.tp[1], "prefill_pp",
                     (int)s->opts.pp[0], "decode_pp", (int)s->opts.pp[1], "io", info.io,
                     "io_reason", info.io_reason, "verified_requests",
                     (json_int_t)s->summary.requests, "verified_bytes",
                     (json_int_t)s->summary.bytes, "guard_items", (json_int_t)s->summary.guards);
    if (head && o)
        (void)json_object_update(head, o);
    if (head)
        (void)json_dumpf(head, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    (void)printf("\n");
    json_decref(head);
    json_decref(o);
}

/* What went wrong before or instead of a verdict. */
static int prefill_broke(const struct prefill_opts *o, const char *text, int status)
{
    char clean[PDX_ERROR_TEXT_MAX]; /* of the engine's sentences, which may quote an option */

    tool_text_clean(clean, sizeof clean, text);
    if (o->json) {
        json_t *v = json_pack("{s:s,s:b,s:s+}", "command", "prefill", "ok", 0, "verdict",
                              "FAILED: ", clean);

        if (v)
            (void)json_dumpf(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        (void)printf("\n");
        json_decref(v);
    }
    (void)fprintf(stderr, "pdx prefill: %s\n", clean);
    return status;
}

static int prefill_run(struct prefill_opts *o, struct tool_sender *s)
{
    char verdict[1280];
    struct pdx_error why;
    bool refused = false;
    int err = prefill_open(o, s, &why);

    if (err < 0)
        return prefill_broke(o, why.text, TOOL_EXIT_USAGE);
    err = tool_sender_meet(s, &refused, &why);
    if (err < 0)
        return prefill_broke(o, why.text,
                             refused || err == PDX_EINVAL || err == PDX_EMISMATCH
                                 ? TOOL_EXIT_USAGE
                                 : TOOL_EXIT_FAILED);
    err = tool_sender_run(s, &why);
    if (err < 0)
        return prefill_broke(o, why.text, TOOL_EXIT_FAILED);
    prefill_verdict(s, verdict, sizeof verdict);
    if (o->json)
        prefill_print_json(s, verdict);
    else
        prefill_print(s, verdict);
    return s->failure[0] ? TOOL_EXIT_FAILED : TOOL_EXIT_OK;
}

int tool_prefill_main(int argc, char **argv)
{
    struct prefill_opts o = {
        .sender = {.connect = "127.0.0.1:7400",
                   .io = "auto",
                   .tp = {1, 1},
                   .pp = {1, 1},
                   .seed = 1,
                   .inflight = 4,
                   .deadline_ns = PDX_SEC * 30,
                   .corrupt = TOOL_CORRUPT_NONE},
        .model = "Qwen3-Next-80B-A3B",
        .rate = "max",
        .mean_tokens = PREFILL_MEAN,
        .arrivals = 2,
    };
    struct tool_sender *s;
    int status;

    if (!prefill_args(&o, argc, argv, &status))
        return status;
    s = calloc(1, sizeof *s); /* too large for a stack */
    if (!s)
        return prefill_broke(&o, "no memory", TOOL_EXIT_FAILED);
    s->link.fd = -1;
    status = prefill_run(&o, s);
    tool_sender_close(s);
    free(s);
    return status;
}
