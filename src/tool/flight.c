/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on the prefill side, from its announcement to decode's verdict.
 * Each pipeline stage sends its part and tells so by itself, as if it were a
 * process of its own.
 */
#include "tool/refuse.h"
#include "tool/sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void leg_fail(struct tool_leg *leg, const char *text)
{
    if (!leg->text[0])
        (void)snprintf(leg->text, sizeof leg->text, "%.*s", (int)sizeof leg->text - 1, text);
}

static bool flight_fits_remote(const struct tool_sender *s, uint32_t tokens)
{
    for (size_t i = 0; i < s->offer.npools; i++) {
        if (!tool_sizing_follows_kv(&s->model, i) &&
            tool_sizing_span(&s->model, i, tokens).n > s->remote_free[i])
            return false;
    }
    return true;
}

static void flight_count_remote(struct tool_sender *s, const struct tool_flight *f, bool take)
{
    for (size_t i = 0; i < s->offer.npools; i++) {
        uint32_t n = tool_sizing_span(&s->model, i, f->tokens).n;

        if (!tool_sizing_follows_kv(&s->model, i))
            s->remote_free[i] += take ? -n : n;
    }
}

static void flight_release_local(struct tool_sender *s, struct tool_flight *f)
{
    for (uint32_t p = 0; p < s->nranks; p++)
        tool_rank_release(&s->ranks[p], &f->local[p]);
}

/* Whether what rank p holds in a pool goes to decode from there. */
static bool flight_carries(const struct tool_sender *s, uint32_t p, size_t pool)
{
    enum pdx_payload payload = pool == 0                     ? PDX_PAYLOAD_KV
                               : pool == s->offer.npools - 1 ? PDX_PAYLOAD_AUX
                                                             : PDX_PAYLOAD_STATE;

    for (size_t i = 0; i < s->npairs; i++) {
        if (s->pairs[i].p == p && pdx_route_carries(s->pairs[i].route, payload,
                                                    payload == PDX_PAYLOAD_STATE ? pool - 1 : 0))
            return true;
    }
    return false;
}

/* Changes one byte of what is sent, so that the comparison has something to find. */
static void flight_corrupt(struct tool_sender *s, struct tool_flight *f)
{
    uint64_t random =
        tool_content_base(s->opts.seed, f->room, 0, tool_content_key("corrupt", 0), 0);
    uint32_t p = (uint32_t)(random >> 48) % s->nranks;
    size_t pool = random % s->offer.npools, tensor;
    const struct tool_pool *of;
    int32_t item;

    /* The next pool, then the next rank: the last stage has aux to send at least. */
    while (f->local[p].spans[pool].n == 0 || !flight_carries(s, p, pool)) {
        pool = (pool + 1) % s->offer.npools;
        if (pool == 0)
            p = (p + 1) % s->nranks;
    }
    of = &s->ranks[p].pools[pool];
    tensor = (random >> 8) % of->ntensors;
    item = tool_placement_items(&s->ranks[p], &f->local[p],
                                pool)[(random >> 16) % f->local[p].spans[pool].n];
    tool_pool_at(of, tensor, item)[(random >> 32) % tool_slicing_item_len(&of->slicings[tensor])] ^=
        0x40;
}

static int flight_alloc(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    if (f->local)
        return 0;
    f->local = calloc(s->nranks, sizeof *f->local);
    f->remote = calloc(s->offer.nlayouts, sizeof *f->remote);
    f->sends = calloc(s->npairs * s->offer.npools, sizeof *f->sends);
    f->legs = calloc(s->opts.pp[0], sizeof *f->legs);
    if (f->local && f->remote && f->sends && f->legs)
        return 0;
    return tool_refuse(why, PDX_ENOMEM, "no memory for a request in flight");
}

/* Local items on every rank: 1, 0 or an error. */
static int flight_take_local(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    for (uint32_t p = 0; p < s->nranks; p++) {
        int err = tool_rank_place(&s->ranks[p], f->tokens, &f->local[p]);

        if (err == 0)
            continue;
        flight_release_local(s, f);
        return err == PDX_EAGAIN
                   ? 0
                   : tool_refuse(why, err, "no memory for the page lists of request %llu",
                                 (unsigned long long)f->room);
    }
    return 1;
}

int tool_flight_start(struct tool_sender *s, struct tool_flight *f, uint64_t room,
                      struct pdx_error *why)
{
    struct tool_message m = {.op = TOOL_OP_ANNOUNCE, .room = room};
    int err = flight_alloc(s, f, why);

    if (err < 0)
        return err;
    f->room = room;
    f->tokens = m.tokens = s->trace.requests[room].input_length;
    f->landed = 0;
    for (uint32_t k = 0; k < s->opts.pp[0]; k++)
        f->legs[k] = (struct tool_leg){.flight = f, .stage = k};
    if (!flight_fits_remote(s, f->tokens))
        return 0;
    err = flight_take_local(s, f, why);
    if (err <= 0)
        return err;
    f->state = TOOL_FLIGHT_PLACING;
    s->active++;
    flight_count_remote(s, f, true);
    err = tool_link_send(&s->link, tool_message_encode(&m), why);
    if (err < 0)
        return err;
    /* Decode looks for pages while the content is made. */
    for (uint32_t p = 0; p < s->nranks; p++)
        tool_rank_fill(&s->ranks[p], s->opts.seed, room, &f->local[p]);
    if (room == s->opts.corrupt)
        flight_corrupt(s, f);
    return 1;
}

static struct pdx_index_list flight_list(const struct tool_rank *r, const struct tool_placement *pl,
                                         size_t pool)
{
    return (struct pdx_index_list){.idx = tool_placement_items(r, pl, pool),
                                   .n = pl->spans[pool].n};
}

/* A NULL status: another rank sends these bytes. */
static void flight_add(struct tool_flight *f, uint32_t stage, struct pdx_transfer_status *status,
                       size_t pool)
{
    if (!status)
        return;
    f->sends[f->nsends++] =
        (struct tool_flight_send){.status = status, .pool = pool, .stage = stage};
    f->legs[stage].pending++;
}

static int flight_submit_state(struct tool_sender *s, struct tool_flight *f,
                               const struct tool_sender_pair *pair,
                               const struct pdx_submit_opts *opts, struct pdx_error *why)
{
    struct pdx_index_list src[TOOL_COMPONENTS_MAX], dst[TOOL_COMPONENTS_MAX];
    struct pdx_transfer_status *statuses[TOOL_COMPONENTS_MAX];
    const struct tool_rank *r = &s->ranks[pair->p];
    size_t n = s->model.ncomponents, got = 0;
    int err;

    for (size_t c = 0; c < n; c++) {
        src[c] = flight_list(r, &f->local[pair->p], c + 1);
        dst[c] = flight_list(r, &f->remote[pair->d], c + 1);
        if (src[c].n == 0) /* this stage has no such layer; to decode others send it */
            dst[c] = (struct pdx_index_list){0};
    }
    err = pdx_send_state(pair->route, src, dst, n, opts, statuses, TOOL_COMPONENTS_MAX, &got, why);
    for (size_t c = 0; err == 0 && c < got; c++)
        flight_add(f, pair->p / s->opts.tp[0], statuses[c], c + 1);
    return err;
}

static int flight_submit_pair(struct tool_sender *s, struct tool_flight *f,
                              const struct tool_sender_pair *pair, struct pdx_error *why)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    const struct tool_rank *r = &s->ranks[pair->p];
    const struct tool_placement *src = &f->local[pair->p], *dst = &f->remote[pair->d];
    uint32_t stage = pair->p / s->opts.tp[0];
    size_t aux = s->offer.npools - 1;
    struct pdx_transfer_status *status = NULL;
    int err = 0;

    opts.id = f->room * s->npairs + (uint64_t)(pair - s->pairs);
    opts.deadline_ns = s->opts.deadline_ns;
    opts.cq = s->cq;
    opts.cq_ctx = &f->legs[stage];
    if (src->spans[0].n) {
        err = pdx_send_kvcache(pair->route, flight_list(r, src, 0), flight_list(r, dst, 0), &opts,
                               &status, why);
        if (err == 0)
            flight_add(f, stage, status, 0);
    }
    if (err == 0 && s->model.ncomponents)
        err = flight_submit_state(s, f, pair, &opts, why);
    if (err == 0 && src->spans[aux].n) {
        err =
            pdx_send_aux(pair->route, src->items[aux][0], dst->items[aux][0], &opts, &status, why);
        if (err == 0)
            flight_add(f, stage, status, aux);
    }
    return err;
}

/* Books the transfers of a stage, all of which are terminal. */
static void leg_book(struct tool_sender *s, struct tool_leg *leg)
{
    struct tool_flight *f = leg->flight;

    for (size_t i = 0; i < f->nsends; i++) {
        struct tool_flight_send *send = &f->sends[i];
        struct pdx_transfer_info info;

        if (send->stage != leg->stage)
            continue;
        pdx_transfer_info(send->status, &info);
        tool_report_add(&s->report, send->pool, &info);
        s->report.stages[leg->stage].bytes += info.bytes_done;
        if (info.code != PDX_DONE)
            leg_fail(leg, pdx_transfer_text(send->status));
        pdx_transfer_put(send->status);
        send->status = NULL;
    }
}

/* A stage is done with its part: tells decode, which waits for all stages. With the last one the
 * source is given back. */
static int leg_land(struct tool_sender *s, struct tool_leg *leg, struct pdx_error *why)
{
    struct tool_flight *f = leg->flight;
    struct tool_message m = {.op = TOOL_OP_SENT, .room = f->room, .stage = leg->stage};

    leg_book(s, leg);
    m.ok = !leg->text[0];
    (void)snprintf(m.text, sizeof m.text, "%s", leg->text);
    if (!m.ok) {
        tool_sender_fail(s, f->room, leg->text);
        s->stopping = true;
    }
    if (++f->landed == s->opts.pp[0]) {
        f->nsends = 0;
        flight_release_local(s, f);
        f->state = TOOL_FLIGHT_JUDGED;
    }
    return tool_link_send(&s->link, tool_message_encode(&m), why);
}

int tool_flight_place(struct tool_sender *s, struct tool_flight *f, const json_t *msg,
                      struct pdx_error *why)
{
    struct pdx_error refused;
    int err = tool_place_decode(msg, &s->groups[1], f->tokens, f->remote, why);

    if (err < 0)
        return err;
    f->state = TOOL_FLIGHT_SENDING;
    for (size_t i = 0; i < s->npairs && err == 0; i++)
        err = flight_submit_pair(s, f, &s->pairs[i], &refused);
    /* What was submitted before a refusal still has to end; no stage has sent all of its part. */
    for (uint32_t k = 0; k < s->opts.pp[0] && err < 0; k++)
        leg_fail(&f->legs[k], refused.text);
    err = 0;
    for (uint32_t k = 0; k < s->opts.pp[0] && err == 0; k++) {
        if (f->legs[k].pending == 0)
            err = leg_land(s, &f->legs[k], why);
    }
    return err;
}

int tool_flight_completed(struct tool_sender *s, struct tool_leg *leg, struct pdx_error *why)
{
    return --leg->pending ? 0 : leg_land(s, leg, why);
}

static void flight_free_remote(struct tool_sender *s, struct tool_flight *f)
{
    for (uint32_t d = 0; d < s->offer.nlayouts; d++)
        tool_placement_fini(&f->remote[d]);
}

int tool_flight_verdict(struct tool_sender *s, struct tool_flight *f, const struct tool_message *m,
                        struct pdx_error *why)
{
    if (f->state != TOOL_FLIGHT_JUDGED)
        return tool_refuse(why, PDX_EPROTO, "%s judged request %llu before it was sent",
                           s->link.peer, (unsigned long long)f->room);
    if (!m->ok)
        tool_sender_fail(s, f->room, m->text);
    s->report.requests++;
    s->report.tokens += f->tokens;
    flight_count_remote(s, f, false);
    flight_free_remote(s, f);
    f->state = TOOL_FLIGHT_FREE;
    s->active--;
    return 0;
}

void tool_flight_fini(struct tool_sender *s, struct tool_flight *f)
{
    for (size_t i = 0; i < f->nsends; i++) {
        if (!f->sends[i].status)
            continue;
        pdx_transfer_cancel(f->sends[i].status);
        (void)pdx_transfer_wait(f->sends[i].status, PDX_SEC * 5);
        pdx_transfer_put(f->sends[i].status);
    }
    if (f->local)
        flight_release_local(s, f);
    if (f->remote)
        flight_free_remote(s, f);
    free(f->local);
    free(f->remote);
    free(f->sends);
    free(f->legs);
    *f = (struct tool_flight){0};
}
