/* SPDX-License-Identifier: Apache-2.0
 *
 * How the prefill side of a session begins and ends: pools, engine, greeting,
 * routes. What happens in between is in sender_run.c.
 */
#include "tool/sender.h"

#include "base/clock.h"
#include "tool/pairing.h"
#include "tool/refuse.h"
#include "tool/station.h"
#include "tool/table.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENDER_CONNECT (PDX_SEC * 5)   /* for a decode that is still starting */
#define SENDER_OFFER   (PDX_SEC * 120) /* decode makes and fills its pools meanwhile */

static uint32_t sender_longest(const struct tool_trace *t)
{
    uint32_t longest = 1;

    for (size_t i = 0; i < t->n; i++) {
        if (t->requests[i].input_length > longest)
            longest = t->requests[i].input_length;
    }
    return longest;
}

/* Cuts requests to `most` tokens and says so. */
static void sender_cut(struct tool_sender *s, uint64_t most, const char *because)
{
    uint64_t tokens = 0;
    size_t n = 0;

    for (size_t i = 0; i < s->trace.n; i++) {
        struct tool_request *q = &s->trace.requests[i];

        if (q->input_length <= most)
            continue;
        n++;
        tokens += q->input_length - most;
        q->input_length = (uint32_t)most;
    }
    if (n)
        tool_report_note(&s->report,
                         "%zu of %zu requests cut to %llu tokens (%llu tokens in all): %s", n,
                         s->trace.n, (unsigned long long)most, (unsigned long long)tokens, because);
}

static int sender_make_ranks(struct tool_sender *s, struct pdx_error *why)
{
    uint32_t n = tool_group_nranks(&s->groups[0]), swapped = 0;
    uint64_t mem = s->opts.mem ? s->opts.mem : tool_sizing_default_limit();
    struct tool_sizing sizing;
    char text[TOOL_TEXT_MAX];
    int err = tool_group_plan(&s->groups[0], mem / n, TOOL_POOL_GAP, (uint32_t)s->opts.inflight,
                              sender_longest(&s->trace), false, &sizing, why);

    if (err < 0)
        return err;
    if (sizing.inflight < s->opts.inflight)
        tool_report_note(
            &s->report, "%u instead of %llu requests in flight at a time: --mem is %s here",
            sizing.inflight, (unsigned long long)s->opts.inflight, tool_text_size(text, mem));
    sender_cut(s, sizing.max_tokens, "no more fits into the pools here (--mem)");
    s->nflights = sizing.inflight;
    s->ranks = calloc(n, sizeof *s->ranks);
    if (!s->ranks)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %u ranks", n);
    s->nranks = n;
    for (uint32_t p = 0; p < n && err == 0; p++) {
        err = tool_rank_init(&s->ranks[p], &s->groups[0], p, &sizing, s->opts.seed, why);
        s->ranks[p].swap_layers = s->opts.swap_layers;
        swapped += err == 0 && tool_rank_can_swap(&s->ranks[p]);
    }
    if (err == 0 && s->opts.swap_layers && swapped == 0)
        err = tool_refuse(why, PDX_EINVAL,
                          "--swap-layers: no stage of %s has two layers with a KV cache",
                          s->model.name);
    for (uint32_t p = 0; p < n && err == 0; p++) {
        /* A server's memory has been touched before its first request. */
        tool_rank_poison(&s->ranks[p]);
        err = tool_rank_register(&s->ranks[p], s->engine, PDX_RIGHT_NONE, why);
    }
    return err;
}

int tool_sender_open(struct tool_sender *s, const struct tool_sender_opts *o,
                     struct tool_model *model, struct tool_trace *trace, struct pdx_error *why)
{
    struct tool_station_opts so = {.name = "prefill", .io = o->io, .verbose = o->verbose};
    int err = 0;

    *s = (struct tool_sender){.opts = *o, .model = *model, .trace = *trace, .link.fd = -1};
    *model = (struct tool_model){0};
    *trace = (struct tool_trace){0};
    tool_report_init(&s->report, &s->model);
    tool_progress_init(&s->progress, o->quiet);
    if (o->max_tokens)
        sender_cut(s, o->max_tokens, "--max-tokens");
    for (int side = 0; side < 2 && err == 0; side++)
        err = tool_group_check(&s->model, o->tp[side], o->pp[side], why);
    if (err == 0)
        err = tool_pairing_check(o->tp, o->pp, why);
    for (int side = 0; side < 2 && err == 0; side++)
        err = tool_group_init(&s->groups[side], &s->model, o->tp[side], o->pp[side], why);
    if (err == 0)
        err = tool_station_open(&so, &s->engine, why);
    if (err < 0)
        return err;
    tool_report_stages(&s->report, &s->groups[0]);
    return sender_make_ranks(s, why);
}

int tool_sender_expect(struct tool_sender *s, enum tool_op op, uint64_t timeout_ns, json_t **ret,
                       struct pdx_error *why)
{
    uint64_t end = pdxi_after_ns(pdxi_now_ns(), timeout_ns);
    struct tool_message error;
    int got;

    while ((got = tool_link_receive(&s->link, ret, why)) == 0) {
        struct pollfd p = {.fd = s->link.fd, .events = tool_link_events(&s->link)};

        if (pdxi_now_ns() >= end)
            return tool_refuse(why, PDX_EPEER, "%s has not answered for %llu s", s->link.peer,
                               (unsigned long long)(timeout_ns / PDX_SEC));
        (void)poll(&p, 1, 200);
        got = tool_link_flush(&s->link, why);
        if (got < 0)
            return got;
    }
    if (got < 0)
        return got;
    got = tool_message_op(*ret, why);
    if (got == (int)op)
        return 0;
    if (got == TOOL_OP_ERROR && tool_message_decode(*ret, &error, why) == 0)
        got = tool_refuse(why, PDX_EREMOTE, "%s refuses: %s", s->link.peer, error.text);
    else
        got = tool_refuse(why, PDX_EPROTO, "%s did not answer as agreed; is that a pdx?",
                          s->link.peer);
    json_decref(*ret);
    return got;
}

/* Hello and offer. */
static int sender_greet(struct tool_sender *s, struct pdx_error *why)
{
    struct tool_hello h = {
        .shape = tool_shape(&s->model),
        .page_size = s->model.page_size,
        .tp = {s->opts.tp[0], s->opts.tp[1]},
        .pp = {s->opts.pp[0], s->opts.pp[1]},
        .inflight = (uint32_t)s->nflights,
        .max_tokens = sender_longest(&s->trace),
        .seed = s->opts.seed,
    };
    json_t *msg;
    int err = tool_link_connect(&s->link, s->opts.connect, "decode", SENDER_CONNECT, why);

    if (err < 0)
        return err;
    (void)snprintf(h.model, sizeof h.model, "%s", s->model.name);
    err = tool_link_send(&s->link, tool_hello_encode(&h), why);
    if (err == 0)
        err = tool_sender_expect(s, TOOL_OP_OFFER, SENDER_OFFER, &msg, why);
    if (err == PDX_EPEER)
        return tool_refuse(why, err,
                           "%s; this may be the port of decode's engine: give --connect the one "
                           "that decode printed (\"listening on\")",
                           why->text);
    if (err < 0)
        return err;
    err = tool_offer_decode(msg, &s->offer, why);
    json_decref(msg);
    if (err == 0 &&
        (s->offer.nlayouts != tool_group_nranks(&s->groups[1]) ||
         s->offer.npools != tool_sizing_npools(&s->model) || s->offer.inflight > s->nflights))
        err = tool_refuse(why, PDX_EPROTO, "%s offers something else than was asked for",
                          s->link.peer);
    return err;
}

/* What decode can hold decides as well. */
static void sender_settle(struct tool_sender *s)
{
    if (s->offer.inflight < s->nflights)
        tool_report_note(&s->report,
                         "%u instead of %zu requests in flight at a time: --mem of decode",
                         s->offer.inflight, s->nflights);
    s->nflights = s->offer.inflight;
    sender_cut(s, s->offer.max_tokens, "no more fits into the pools of decode (--mem there)");
    memcpy(s->remote_free, s->offer.capacity, sizeof s->remote_free);
}

static int sender_add_route(struct tool_sender *s, uint32_t p, uint32_t d,
                            const struct pdx_layout *remote, struct pdx_error *why)
{
    struct tool_sender_pair *pair = &s->pairs[s->npairs];
    int err;

    pair->p = p;
    pair->d = d;
    err = pdx_route_create(s->engine, s->ranks[p].layout, s->peer, remote, NULL, &pair->route, why);
    s->npairs += err == 0;
    return err;
}

static int sender_make_routes(struct tool_sender *s, struct pdx_error *why)
{
    const uint32_t *tp = s->opts.tp, *pp = s->opts.pp;
    int err = 0;

    s->pairs = calloc(tool_pairing_count(tp, pp), sizeof *s->pairs);
    if (!s->pairs)
        return tool_refuse(why, PDX_ENOMEM, "no memory for the routes");
    for (uint32_t d = 0; d < s->offer.nlayouts && err == 0; d++) {
        const struct tool_blob *b = &s->offer.layouts[d];
        struct pdx_layout *remote = NULL;

        err = pdx_layout_decode(b->data, b->len, &remote, why);
        for (uint32_t p = 0; p < s->nranks && err == 0; p++) {
            if (tool_pairing_meets(tp, pp, p, d))
                err = sender_add_route(s, p, d, remote, why);
        }
        pdx_layout_destroy(remote);
    }
    return err;
}

int tool_sender_meet(struct tool_sender *s, bool *ret_refused, struct pdx_error *why)
{
    int err = sender_greet(s, why);
    size_t depth;

    *ret_refused = err == PDX_EREMOTE;
    if (err < 0)
        return err;
    sender_settle(s);
    err = pdx_peer_add(s->engine, s->offer.engine.data, s->offer.engine.len, &s->peer, why);
    if (err == 0)
        err = sender_make_routes(s, why);
    if (err < 0)
        return err;
    depth = s->nflights * s->npairs * s->offer.npools;
    err = pdx_cq_create(s->engine, depth, &s->cq, why);
    s->flights = calloc(s->nflights, sizeof *s->flights);
    if (err == 0 && !s->flights)
        err = tool_refuse(why, PDX_ENOMEM, "no memory for %zu requests", s->nflights);
    return err;
}

void tool_sender_fail(struct tool_sender *s, uint64_t room, const char *text)
{
    char whole[sizeof s->failure];

    if (s->failure[0])
        return;
    (void)snprintf(whole, sizeof whole, "request %llu: %.900s", (unsigned long long)room, text);
    tool_text_clean(s->failure, sizeof s->failure, whole);
}

void tool_sender_close(struct tool_sender *s)
{
    tool_progress_end(&s->progress);
    for (size_t i = 0; s->flights && i < s->nflights; i++)
        tool_flight_fini(s, &s->flights[i]);
    free(s->flights);
    for (size_t i = 0; i < s->npairs; i++)
        pdx_route_destroy(s->pairs[i].route);
    free(s->pairs);
    pdx_peer_put(s->peer);
    for (uint32_t p = 0; s->ranks && p < s->nranks; p++)
        tool_rank_fini(&s->ranks[p]);
    free(s->ranks);
    pdx_cq_destroy(s->cq);
    if (s->engine)
        (void)pdx_engine_destroy(s->engine);
    tool_link_fini(&s->link);
    tool_offer_fini(&s->offer);
    tool_report_fini(&s->report);
    tool_trace_fini(&s->trace);
    for (int side = 0; side < 2; side++)
        tool_group_fini(&s->groups[side]);
    tool_model_fini(&s->model);
}
