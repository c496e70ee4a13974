/* SPDX-License-Identifier: Apache-2.0
 *
 * One request on the prefill side, from its announcement to decode's verdict.
 */
#include "tool/refuse.h"
#include "tool/sender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void flight_fail(struct tool_flight *f, const char *text)
{
    if (!f->text[0])
        (void)snprintf(f->text, sizeof f->text, "%.*s", (int)sizeof f->text - 1, text);
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
    for (uint32_t p = 0; p < s->opts.tp[0]; p++)
        tool_rank_release(&s->ranks[p], &f->local[p]);
}

/* Changes one byte of what rank 0 sends, so that the comparison has something to find. */
static void flight_corrupt(struct tool_sender *s, struct tool_flight *f)
{
    struct tool_rank *r = &s->ranks[0];
    uint64_t random =
        tool_content_base(s->opts.seed, f->room, 0, tool_content_key("corrupt", 0), 0);
    size_t pool = random % r->npools;
    size_t tensor;
    int32_t item;

    while (f->local[0].spans[pool].n == 0 || r->pools[pool].ntensors == 0)
        pool = (pool + 1) % r->npools;
    tensor = (random >> 8) % r->pools[pool].ntensors;
    item = tool_placement_items(r, &f->local[0], pool)[(random >> 16) % f->local[0].spans[pool].n];
    tool_pool_at(&r->pools[pool], tensor,
                 item)[(random >> 32) % tool_slicing_item_len(&r->pools[pool].slicings[tensor])] ^=
        0x40;
}

static int flight_alloc(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    if (f->local)
        return 0;
    f->local = calloc(s->opts.tp[0], sizeof *f->local);
    f->remote = calloc(s->opts.tp[1], sizeof *f->remote);
    f->sends = calloc(s->npairs * s->offer.npools, sizeof *f->sends);
    if (f->local && f->remote && f->sends)
        return 0;
    return tool_refuse(why, PDX_ENOMEM, "no memory for a request in flight");
}

/* Local items on every rank: 1, 0 or an error. */
static int flight_take_local(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    for (uint32_t p = 0; p < s->opts.tp[0]; p++) {
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
    f->text[0] = '\0';
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
    for (uint32_t p = 0; p < s->opts.tp[0]; p++)
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
static void flight_add(struct tool_flight *f, struct pdx_transfer_status *status, size_t pool)
{
    if (!status)
        return;
    f->sends[f->nsends++] = (struct tool_flight_send){.status = status, .pool = pool};
    f->pending++;
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
    }
    err = pdx_send_state(pair->route, src, dst, n, opts, statuses, TOOL_COMPONENTS_MAX, &got, why);
    for (size_t c = 0; err == 0 && c < got; c++)
        flight_add(f, statuses[c], c + 1);
    return err;
}

static int flight_submit_pair(struct tool_sender *s, struct tool_flight *f,
                              const struct tool_sender_pair *pair, struct pdx_error *why)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    const struct tool_rank *r = &s->ranks[pair->p];
    const struct tool_placement *src = &f->local[pair->p], *dst = &f->remote[pair->d];
    size_t aux = s->offer.npools - 1;
    struct pdx_transfer_status *status = NULL;
    int err = 0;

    opts.id = f->room * s->npairs + (uint64_t)(pair - s->pairs);
    opts.deadline_ns = s->opts.deadline_ns;
    opts.cq = s->cq;
    opts.cq_ctx = f;
    if (src->spans[0].n) {
        err = pdx_send_kvcache(pair->route, flight_list(r, src, 0), flight_list(r, dst, 0), &opts,
                               &status, why);
        if (err == 0)
            flight_add(f, status, 0);
    }
    if (err == 0 && s->model.ncomponents)
        err = flight_submit_state(s, f, pair, &opts, why);
    if (err == 0 && src->spans[aux].n) {
        err =
            pdx_send_aux(pair->route, src->items[aux][0], dst->items[aux][0], &opts, &status, why);
        if (err == 0)
            flight_add(f, status, aux);
    }
    return err;
}

/* All transfers are terminal: books them, gives the source back and tells decode. */
static int flight_land(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    struct tool_message m = {.op = TOOL_OP_SENT, .room = f->room};

    for (size_t i = 0; i < f->nsends; i++) {
        struct pdx_transfer_info info;

        pdx_transfer_info(f->sends[i].status, &info);
        tool_report_add(&s->report, f->sends[i].pool, &info);
        if (info.code != PDX_DONE)
            flight_fail(f, pdx_transfer_text(f->sends[i].status));
        pdx_transfer_put(f->sends[i].status);
    }
    f->nsends = 0;
    flight_release_local(s, f);
    f->state = TOOL_FLIGHT_JUDGED;
    m.ok = !f->text[0];
    (void)snprintf(m.text, sizeof m.text, "%s", f->text);
    if (!m.ok) {
        tool_sender_fail(s, f->room, f->text);
        s->stopping = true;
    }
    return tool_link_send(&s->link, tool_message_encode(&m), why);
}

int tool_flight_place(struct tool_sender *s, struct tool_flight *f, const json_t *msg,
                      struct pdx_error *why)
{
    struct pdx_error refused;
    int err = tool_place_decode(msg, &s->model, f->tokens, f->remote, s->opts.tp[1], why);

    if (err < 0)
        return err;
    f->state = TOOL_FLIGHT_SENDING;
    for (size_t i = 0; i < s->npairs && err == 0; i++)
        err = flight_submit_pair(s, f, &s->pairs[i], &refused);
    if (err < 0)
        flight_fail(f, refused.text);
    /* What was submitted before a refusal still has to end. */
    return f->pending ? 0 : flight_land(s, f, why);
}

int tool_flight_completed(struct tool_sender *s, struct tool_flight *f, struct pdx_error *why)
{
    return --f->pending ? 0 : flight_land(s, f, why);
}

static void flight_free_remote(struct tool_sender *s, struct tool_flight *f)
{
    for (uint32_t d = 0; d < s->opts.tp[1]; d++)
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
    *f = (struct tool_flight){0};
}
