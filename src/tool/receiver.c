/* SPDX-License-Identifier: Apache-2.0
 *
 * How the decode side of a session begins and ends: hello, model, pools, offer.
 * What happens in between is in receiver_run.c.
 */
#include "tool/receiver.h"

#include "base/clock.h"
#include "tool/pairing.h"
#include "tool/refuse.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RECEIVER_HELLO (PDX_SEC * 10)

/* Waits for the hello. */
static int receiver_hear(struct tool_receiver *r, struct pdx_error *why)
{
    uint64_t end = pdxi_after_ns(pdxi_now_ns(), RECEIVER_HELLO);
    json_t *msg;
    int got;

    while ((got = tool_link_receive(&r->link, &msg, why)) == 0) {
        struct pollfd p = {.fd = r->link.fd, .events = POLLIN};

        if (pdxi_now_ns() >= end)
            return tool_refuse(why, PDX_EPEER, "%s connected and said nothing", r->link.peer);
        (void)poll(&p, 1, 200);
    }
    if (got < 0)
        return got;
    got = tool_message_op(msg, why);
    if (got > 0 && got != TOOL_OP_HELLO)
        got = tool_refuse(why, PDX_EPROTO, "%s did not begin with a hello", r->link.peer);
    if (got > 0)
        got = tool_hello_decode(msg, &r->hello, why);
    json_decref(msg);
    return got;
}

/* What prefill says opens no file here. */
static bool receiver_knows(const char *model)
{
    for (size_t i = 0; tool_preset_names[i]; i++) {
        if (strcasecmp(model, tool_preset_names[i]) == 0)
            return true;
    }
    return false;
}

static int receiver_load_model(struct tool_receiver *r, struct pdx_error *why)
{
    const char *name = r->opts.model ? r->opts.model : r->hello.model;
    int err;

    if (!r->opts.model && !receiver_knows(name))
        return tool_refuse(why, PDX_EINVAL,
                           "decode does not know prefill's model \"%s\": start pdx decode with "
                           "--model and the same config.json",
                           name);
    err = tool_model_load(name, r->hello.page_size, &r->model, why);
    if (err == 0 && tool_shape(&r->model) != r->hello.shape)
        err = tool_refuse(why, PDX_EMISMATCH,
                          "prefill runs %s and decode %s, and their tensors differ; give both the "
                          "same --model",
                          r->hello.model, r->model.name);
    return err;
}

static int receiver_check(struct tool_receiver *r, struct pdx_error *why)
{
    const uint32_t *tp = r->hello.tp, *pp = r->hello.pp;
    int err = receiver_load_model(r, why);

    if (err == 0 && r->opts.tp && r->opts.tp != tp[1])
        err = tool_refuse(why, PDX_EMISMATCH,
                          "prefill expects decode at TP %u, but it runs with --tp %u", tp[1],
                          r->opts.tp);
    if (err == 0 && r->opts.pp && r->opts.pp != pp[1])
        err = tool_refuse(why, PDX_EMISMATCH,
                          "prefill expects decode at PP %u, but it runs with --pp %u", pp[1],
                          r->opts.pp);
    for (int side = 0; side < 2 && err == 0; side++)
        err = tool_group_check(&r->model, tp[side], pp[side], why);
    return err < 0 ? err : tool_pairing_check(tp, pp, why);
}

static int receiver_make_ranks(struct tool_receiver *r, struct pdx_error *why)
{
    uint32_t n = r->hello.tp[1] * r->hello.pp[1];
    uint64_t mem = r->opts.mem ? r->opts.mem : tool_sizing_default_limit();
    int err = tool_group_init(&r->group, &r->model, r->hello.tp[1], r->hello.pp[1], why);

    if (err == 0)
        err = tool_group_plan(&r->group, mem / n, TOOL_POOL_GAP, r->hello.inflight,
                              r->hello.max_tokens, true, &r->sizing, why);
    if (err < 0)
        return err;
    r->nranks = n;
    r->ranks = calloc(n, sizeof *r->ranks);
    r->rooms = calloc(r->sizing.inflight, sizeof *r->rooms);
    if (!r->ranks || !r->rooms)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %u ranks", n);
    for (uint32_t i = 0; i < r->sizing.inflight; i++) {
        r->rooms[i].ranks = calloc(n, sizeof *r->rooms[i].ranks);
        if (!r->rooms[i].ranks)
            return tool_refuse(why, PDX_ENOMEM, "no memory for %u requests", r->sizing.inflight);
    }
    for (uint32_t d = 0; d < n && err == 0; d++) {
        /* Another seed than prefill's, so that page numbers differ on the two sides. */
        err = tool_rank_init(&r->ranks[d], &r->group, d, &r->sizing, ~r->hello.seed, why);
        if (err == 0)
            tool_rank_poison(&r->ranks[d]);
        if (err == 0)
            err = tool_rank_register(&r->ranks[d], r->engine, PDX_RIGHT_WRITE, why);
    }
    return err;
}

static int receiver_encode(struct tool_receiver *r, struct tool_offer *o, struct pdx_error *why)
{
    o->engine.len = pdx_engine_desc(r->engine, NULL, 0);
    o->engine.data = malloc(o->engine.len);
    o->layouts = calloc(r->nranks, sizeof *o->layouts);
    if (!o->engine.data || !o->layouts)
        return tool_refuse(why, PDX_ENOMEM, "no memory for the offer");
    (void)pdx_engine_desc(r->engine, o->engine.data, o->engine.len);
    for (; o->nlayouts < r->nranks; o->nlayouts++) {
        const struct pdx_layout *layout = r->ranks[o->nlayouts].layout;
        struct tool_blob *b = &o->layouts[o->nlayouts];

        b->len = pdx_layout_encode(layout, NULL, 0);
        b->data = malloc(b->len);
        if (!b->data)
            return tool_refuse(why, PDX_ENOMEM, "no memory for the offer");
        (void)pdx_layout_encode(layout, b->data, b->len);
    }
    return 0;
}

static int receiver_offer(struct tool_receiver *r, struct pdx_error *why)
{
    struct tool_offer o = {
        .inflight = r->sizing.inflight,
        .max_tokens = r->sizing.max_tokens,
        .npools = r->sizing.npools,
    };
    int err = receiver_encode(r, &o, why);

    for (size_t i = 0; i < o.npools; i++)
        o.capacity[i] = r->sizing.items[i] - r->sizing.guards[i];
    if (err == 0)
        err = tool_link_send(&r->link, tool_offer_encode(&o), why);
    tool_offer_fini(&o);
    return err;
}

/* Tells prefill why it ends here. */
static void receiver_tell(struct tool_receiver *r, const struct pdx_error *why)
{
    struct tool_message m = {.op = TOOL_OP_ERROR};

    (void)snprintf(m.text, sizeof m.text, "%.1000s", why->text);
    if (tool_link_send(&r->link, tool_message_encode(&m), NULL) == 0)
        tool_link_drain(&r->link, PDX_SEC);
}

enum tool_session tool_receiver_serve(struct tool_receiver *r, const struct tool_receiver_opts *o,
                                      struct pdx_engine *engine, struct tool_link *link,
                                      struct pdx_error *why)
{
    int err;

    *r = (struct tool_receiver){.opts = *o, .engine = engine, .link = *link};
    tool_progress_init(&r->progress, o->quiet);
    err = receiver_hear(r, why);
    if (err == PDX_EVERSION)
        receiver_tell(r, why);
    if (err < 0)
        return TOOL_SESSION_STRANGER;
    r->link.max_line = TOOL_LINK_LINE;
    err = receiver_check(r, why);
    if (err == 0)
        err = receiver_make_ranks(r, why);
    if (err < 0) {
        receiver_tell(r, why);
        return TOOL_SESSION_REFUSED;
    }
    err = receiver_offer(r, why);
    if (err == 0)
        err = tool_receiver_run(r, why);
    tool_progress_end(&r->progress);
    if (err == 0)
        return TOOL_SESSION_COMPLETE;
    receiver_tell(r, why);
    return TOOL_SESSION_BROKEN;
}

void tool_receiver_close(struct tool_receiver *r)
{
    for (uint32_t i = 0; r->rooms && i < r->sizing.inflight; i++) {
        for (uint32_t d = 0; r->rooms[i].ranks && d < r->nranks; d++)
            tool_placement_fini(&r->rooms[i].ranks[d]);
        free(r->rooms[i].ranks);
    }
    free(r->rooms);
    for (uint32_t d = 0; r->ranks && d < r->nranks; d++)
        tool_rank_fini(&r->ranks[d]);
    free(r->ranks);
    tool_group_fini(&r->group);
    tool_model_fini(&r->model);
    tool_link_fini(&r->link);
}
