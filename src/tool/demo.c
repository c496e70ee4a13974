/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx demo: runs pdx decode and pdx prefill as two processes on the loopback
 * interface and tells what both say.
 */
#include "base/clock.h"
#include "tool/args.h"
#include "tool/child.h"
#include "tool/commands.h"
#include "tool/table.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEMO_REQUESTS "60"
#define DEMO_GRACE    (PDX_SEC * 10) /* for decode, once prefill has ended */
#define DEMO_TRACE    "examples/trace.jsonl"

struct demo {
    const char *model, *tp, *pp, *trace, *requests, *io, *mem;
    bool json;
    char *const *further; /* of prefill; NULL-terminated */
    char address[160];    /* where decode listens */
    char found[512];      /* the trace that comes with the program; "": none */
    struct tool_child decode;
    struct tool_child prefill;
    int decode_status;
    int prefill_status;
};

static bool demo_args(struct demo *d, int argc, char **argv, int *ret_exit)
{
    const struct tool_arg args[] = {
        {"model", 'm', TOOL_ARG_STRING, &d->model, 0, 0, "NAME|FILE",
         "preset or config.json (Qwen3-Next-80B-A3B); see pdx models"},
        {"tp", 't', TOOL_ARG_STRING, &d->tp, 0, 0, "P:D",
         "tensor-parallel sizes of prefill and decode (1:1)"},
        {"pp", 0, TOOL_ARG_STRING, &d->pp, 0, 0, "P:D",
         "pipeline stages of prefill and decode (1:1)"},
        {"trace", 0, TOOL_ARG_STRING, &d->trace, 0, 0, "FILE",
         "requests to play (the project's own trace)"},
        {"requests", 'n', TOOL_ARG_STRING, &d->requests, 0, 0, "N",
         "stop after N requests (" DEMO_REQUESTS ")"},
        {"io", 0, TOOL_ARG_STRING, &d->io, 0, 0, "auto|uring|epoll", "how the engines wait (auto)"},
        {"mem", 0, TOOL_ARG_STRING, &d->mem, 0, 0, "SIZE", "memory for the pools of each process"},
        {"json", 0, TOOL_ARG_FLAG, &d->json, 0, 0, NULL,
         "print one JSON object with what both say"},
    };
    const struct tool_command cmd = {
        .name = "demo",
        .synopsis = "[options] [-- options of pdx prefill]",
        .purpose = "Moves the cache and state of a model between two processes on this machine\n"
                   "and verifies every byte.",
        .args = args,
        .nargs = sizeof args / sizeof args[0],
        .operand = "options of pdx prefill",
        .max_operands = TOOL_CHILD_ARGS / 2,
    };
    int first;

    if (!tool_args_begin(&cmd, argc, argv, &first, ret_exit))
        return false;
    d->further = argv + first;
    return true;
}

struct demo_line { /* a command line under construction */
    const char *args[TOOL_CHILD_ARGS + 1];
    size_t n;
};

static void demo_add(struct demo_line *l, const char *option, const char *value)
{
    if (l->n + 2 > TOOL_CHILD_ARGS || (option && !value))
        return;
    if (option)
        l->args[l->n++] = option;
    l->args[l->n++] = value;
}

/* Whether prefill is told to make up its requests. */
static bool demo_generates(const struct demo *d)
{
    for (char *const *p = d->further; *p; p++) {
        if (strncmp(*p, "--g", 3) == 0 || strncmp(*p, "-g", 2) == 0)
            return true;
    }
    return false;
}

/* The trace beside the sources, or where the package puts it. */
static void demo_find_trace(struct demo *d)
{
    char exe[400];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash;

    (void)snprintf(d->found, sizeof d->found, "%s", DEMO_TRACE);
    if (access(d->found, R_OK) == 0)
        return;
    exe[n > 0 ? n : 0] = '\0';
    slash = strrchr(exe, '/');
    if (slash) {
        *slash = '\0';
        (void)snprintf(d->found, sizeof d->found, "%s/../share/pdx/trace.jsonl", exe);
        if (access(d->found, R_OK) == 0)
            return;
    }
    d->found[0] = '\0';
}

/* Passes on what decode says on stderr, and picks out where it listens. */
static void demo_pass_stderr(struct demo *d)
{
    char line[4096];

    while (tool_stream_line(&d->decode.err, line, sizeof line)) {
        if (sscanf(line, "listening on %159s", d->address) != 1)
            (void)fprintf(stderr, "%s\n", line);
    }
}

/* Waits up to 200 ms for output of the children and reads it. False when no stream is open. */
static bool demo_read(struct demo *d)
{
    struct tool_stream *streams[] = {&d->decode.out, &d->decode.err, &d->prefill.out};
    struct pollfd p[3];
    int n = 0;

    for (int i = 0; i < 3; i++) {
        p[i] = (struct pollfd){.fd = streams[i]->fd, .events = POLLIN};
        n += streams[i]->fd >= 0;
    }
    if (n == 0)
        return false;
    if (poll(p, 3, 200) > 0) {
        for (int i = 0; i < 3; i++) {
            if (p[i].fd >= 0 && p[i].revents)
                tool_stream_read(streams[i]);
        }
    }
    demo_pass_stderr(d);
    return true;
}

/* PDX_EPEER: decode ended before it listened, and both statuses are set. */
static int demo_start_decode(struct demo *d, struct pdx_error *why)
{
    struct demo_line l = {
        .args = {"decode", "--listen", "127.0.0.1:0", "--once", "--json", "--quiet"}, .n = 6};
    int err;

    demo_add(&l, "--model", d->model);
    demo_add(&l, "--io", d->io);
    demo_add(&l, "--mem", d->mem);
    err = tool_child_start(&d->decode, l.args, TOOL_CHILD_OUT | TOOL_CHILD_ERR, why);
    while (err == 0 && !d->address[0]) {
        if (demo_read(d))
            continue;
        /* It has said why. */
        d->decode_status = tool_child_wait(&d->decode);
        d->prefill_status = d->decode_status ? d->decode_status : TOOL_EXIT_FAILED;
        return PDX_EPEER;
    }
    return err;
}

static int demo_start_prefill(struct demo *d, struct pdx_error *why)
{
    struct demo_line l = {.args = {"prefill", "--connect", d->address}, .n = 3};

    demo_add(&l, "--model", d->model);
    demo_add(&l, "--tp", d->tp);
    demo_add(&l, "--pp", d->pp);
    demo_add(&l, "--requests", d->requests ? d->requests : DEMO_REQUESTS);
    demo_add(&l, "--trace", d->trace);
    demo_add(&l, "--io", d->io);
    demo_add(&l, "--mem", d->mem);
    if (d->json)
        demo_add(&l, NULL, "--json");
    for (char *const *p = d->further; *p; p++)
        demo_add(&l, NULL, *p);
    return tool_child_start(&d->prefill, l.args, d->json ? TOOL_CHILD_OUT : 0, why);
}

/* Until both have ended. Decode ends with its prefill; if it does not, it is ended. */
static void demo_attend(struct demo *d)
{
    uint64_t end = UINT64_MAX;

    for (;;) {
        bool open = demo_read(d);

        if (!open)
            break;
        if (d->prefill.pid && tool_child_ended(&d->prefill, &d->prefill_status))
            end = pdxi_after_ns(pdxi_now_ns(), DEMO_GRACE);
        if (!d->prefill.pid && (d->prefill_status == TOOL_EXIT_USAGE || pdxi_now_ns() > end))
            tool_child_kill(&d->decode);
    }
    if (d->prefill.pid)
        d->prefill_status = tool_child_wait(&d->prefill);
    d->decode_status = tool_child_wait(&d->decode);
}

static json_t *demo_json(const struct tool_stream *s)
{
    return s->len ? json_loadb(s->text, s->len, 0, NULL) : NULL;
}

static void demo_print(const json_t *decode, bool good)
{
    const char *verdict = json_string_value(json_object_get(decode, "verdict"));
    json_int_t bytes = json_integer_value(json_object_get(decode, "verified_bytes"));
    double seconds = json_real_value(json_object_get(decode, "compare_seconds"));
    char size[TOOL_TEXT_MAX], time[TOOL_TEXT_MAX];

    if (decode)
        (void)printf("decode compared %s in %s and says\n%s\n",
                     tool_text_size(size, (uint64_t)bytes),
                     tool_text_duration(time, (uint64_t)(seconds * 1e9)), verdict ? verdict : "?");
    (void)printf("\ndemo %s\n", good ? "OK: both processes agree" : "FAILED");
}

static int demo_tell(struct demo *d)
{
    bool good = d->decode_status == 0 && d->prefill_status == 0;
    json_t *decode = demo_json(&d->decode.out);

    if (d->json) {
        json_t *prefill = demo_json(&d->prefill.out);
        json_t *all = json_pack("{s:s,s:b,s:O?,s:O?}", "command", "demo", "ok", good, "prefill",
                                prefill, "decode", decode);

        if (all)
            (void)json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        (void)printf("\n");
        json_decref(all);
        json_decref(prefill);
    } else if (d->prefill_status != TOOL_EXIT_USAGE) {
        demo_print(decode, good);
    }
    json_decref(decode);
    if (good)
        return TOOL_EXIT_OK;
    return d->prefill_status == TOOL_EXIT_USAGE ? TOOL_EXIT_USAGE : TOOL_EXIT_FAILED;
}

int tool_demo_main(int argc, char **argv)
{
    struct demo d = {.decode = {.out.fd = -1, .err.fd = -1},
                     .prefill = {.out.fd = -1, .err.fd = -1}};
    struct pdx_error why;
    int status, err;

    if (!demo_args(&d, argc, argv, &status))
        return status;
    if (!d.trace && !demo_generates(&d)) {
        demo_find_trace(&d);
        d.trace = d.found[0] ? d.found : NULL;
    }
    err = demo_start_decode(&d, &why);
    if (err == 0) {
        err = demo_start_prefill(&d, &why);
        if (err == 0)
            demo_attend(&d);
    }
    if (err == 0 || d.prefill_status != 0) {
        status = demo_tell(&d);
    } else {
        (void)fprintf(stderr, "pdx demo: %s\n", why.text);
        status = TOOL_EXIT_FAILED;
    }
    tool_child_fini(&d.prefill);
    tool_child_fini(&d.decode);
    return status;
}
