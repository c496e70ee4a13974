/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays the trace: starts requests as they are due and as there is room, and
 * otherwise sleeps in poll(2) on the link and on the completion queue.
 */
#include "base/check.h"
#include "base/clock.h"
#include "tool/refuse.h"
#include "tool/sender.h"
#include "tool/table.h"

#include <poll.h>
#include <stdio.h>

#define SENDER_BATCH 64
#define SENDER_STALL (PDX_SEC * 60)  /* longest silence, on top of the deadline of a transfer */
#define SENDER_BYE   (PDX_SEC * 300) /* decode looks at all of its memory once more */

static bool sender_has_work(const struct tool_sender *s)
{
    return s->active > 0 || (!s->stopping && s->next < s->trace.n);
}

/* When the next request may start, in CLOCK_MONOTONIC. A trace need not be in order. */
static uint64_t sender_due_ns(const struct tool_sender *s)
{
    uint64_t first = s->trace.requests[0].timestamp_ms;
    uint64_t due = s->trace.requests[s->next].timestamp_ms, wait_ns;

    if (!s->opts.real_rate || due <= first)
        return 0;
    if (!pdxi_mul_u64(due - first, PDX_MSEC, &wait_ns))
        wait_ns = UINT64_MAX;
    return pdxi_after_ns(s->report.began_ns, wait_ns);
}

static struct tool_flight *sender_free_flight(struct tool_sender *s)
{
    for (size_t i = 0; i < s->nflights; i++) {
        if (s->flights[i].state == TOOL_FLIGHT_FREE)
            return &s->flights[i];
    }
    return NULL;
}

static struct tool_flight *sender_find(struct tool_sender *s, uint64_t room)
{
    for (size_t i = 0; i < s->nflights; i++) {
        if (s->flights[i].state != TOOL_FLIGHT_FREE && s->flights[i].room == room)
            return &s->flights[i];
    }
    return NULL;
}

/* Starts at most one request, so that answers are not kept waiting while content is made.
 * Returns 1 when it did, 0, or an error. */
static int sender_start_one(struct tool_sender *s, struct pdx_error *why)
{
    struct tool_flight *f = sender_free_flight(s);
    int started;

    if (!f || s->stopping || s->next == s->trace.n || pdxi_now_ns() < sender_due_ns(s))
        return 0;
    started = tool_flight_start(s, f, s->next, why);
    if (started == 0 && s->active == 0)
        return tool_refuse(why, PDX_EPROTO, "%s has no room for request %zu, of %u tokens, alone",
                           s->link.peer, s->next, f->tokens);
    if (started == 1) {
        s->next++;
        s->heard_ns = pdxi_now_ns();
    }
    return started;
}

static int sender_take_place(struct tool_sender *s, const json_t *msg, struct pdx_error *why)
{
    struct tool_flight *f;
    uint64_t room;
    int err = tool_place_room(msg, &room, why);

    if (err < 0)
        return err;
    f = sender_find(s, room);
    if (!f || f->state != TOOL_FLIGHT_PLACING)
        return tool_refuse(why, PDX_EPROTO, "%s placed request %llu, which waits for no place",
                           s->link.peer, (unsigned long long)room);
    return tool_flight_place(s, f, msg, why);
}

static int sender_take_short(struct tool_sender *s, const json_t *msg, struct pdx_error *why)
{
    struct tool_message m;
    struct tool_flight *f;
    int err = tool_message_decode(msg, &m, why);

    if (err < 0)
        return err;
    if (m.op == TOOL_OP_ERROR)
        return tool_refuse(why, PDX_EREMOTE, "%s gave up: %s", s->link.peer, m.text);
    f = m.op == TOOL_OP_VERDICT ? sender_find(s, m.room) : NULL;
    if (!f)
        return tool_refuse(why, PDX_EPROTO, "%s sent a message that is not due", s->link.peer);
    return tool_flight_verdict(s, f, &m, why);
}

static int sender_take_messages(struct tool_sender *s, struct pdx_error *why)
{
    json_t *msg;
    int got;

    while ((got = tool_link_receive(&s->link, &msg, why)) == 1) {
        int op = tool_message_op(msg, why), err = op;

        s->heard_ns = pdxi_now_ns();
        if (op == TOOL_OP_PLACE)
            err = sender_take_place(s, msg, why);
        else if (op > 0)
            err = sender_take_short(s, msg, why);
        json_decref(msg);
        if (err < 0)
            return err;
    }
    return got;
}

static int sender_take_completions(struct tool_sender *s, struct pdx_error *why)
{
    struct pdx_completion done[SENDER_BATCH];
    int n;

    while ((n = pdx_cq_poll(s->cq, done, SENDER_BATCH)) > 0) {
        s->heard_ns = pdxi_now_ns();
        for (int i = 0; i < n; i++) {
            int err = tool_flight_completed(s, done[i].ctx, why);

            if (err < 0)
                return err;
        }
    }
    return 0;
}

static void sender_show(struct tool_sender *s)
{
    uint64_t now = pdxi_now_ns(), bytes;
    char size[TOOL_TEXT_MAX], rate[TOOL_TEXT_MAX];

    if (!tool_progress_due(&s->progress, now))
        return;
    bytes = tool_report_bytes(&s->report);
    tool_progress_line(
        &s->progress, "%llu of %zu requests, %zu in flight, %s sent, %s",
        (unsigned long long)s->report.requests, s->trace.n, s->active, tool_text_size(size, bytes),
        tool_text_rate(rate, (double)bytes * 1e9 / (double)(now - s->report.began_ns + 1)));
}

/* How long poll may sleep, ms. */
static int sender_patience(const struct tool_sender *s)
{
    uint64_t now = pdxi_now_ns(), due;

    if (s->stopping || s->next == s->trace.n || s->active == s->nflights)
        return 200;
    due = sender_due_ns(s);
    if (due <= now)
        return 200; /* no room for it now */
    return due - now > PDX_MSEC * 200 ? 200 : (int)((due - now) / PDX_MSEC) + 1;
}

static int sender_step(struct tool_sender *s, bool busy, struct pdx_error *why)
{
    struct pollfd p[2] = {
        {.fd = s->link.fd, .events = tool_link_events(&s->link)},
        {.fd = pdx_cq_fd(s->cq), .events = POLLIN},
    };
    int err;

    (void)poll(p, 2, busy ? 0 : sender_patience(s));
    err = tool_link_flush(&s->link, why);
    if (err == 0)
        err = sender_take_messages(s, why);
    if (err == 0)
        err = sender_take_completions(s, why);
    if (err == 0 && s->active && pdxi_now_ns() - s->heard_ns > s->opts.deadline_ns + SENDER_STALL)
        err = tool_refuse(why, PDX_EPEER, "%s has said nothing for %llu s although it has work",
                          s->link.peer,
                          (unsigned long long)((s->opts.deadline_ns + SENDER_STALL) / PDX_SEC));
    return err;
}

/* Decode's count must be the engine's: what was not compared was not verified. */
static void sender_check_summary(struct tool_sender *s)
{
    const struct tool_message *m = &s->summary;
    uint64_t bytes = tool_report_bytes(&s->report);

    if (s->failure[0])
        return;
    if (m->failed || m->text[0])
        (void)snprintf(s->failure, sizeof s->failure, "%.1000s",
                       m->text[0] ? m->text : "decode does not say why");
    else if (m->requests != s->report.requests || m->bytes != bytes)
        (void)snprintf(s->failure, sizeof s->failure,
                       "decode compared %llu request%s and %llu bytes, but %llu request%s and %llu "
                       "bytes were sent",
                       (unsigned long long)m->requests, tool_text_plural(m->requests),
                       (unsigned long long)m->bytes, (unsigned long long)s->report.requests,
                       tool_text_plural(s->report.requests), (unsigned long long)bytes);
}

/* Asks decode for its summary. */
static int sender_part(struct tool_sender *s, struct pdx_error *why)
{
    struct tool_message bye = {.op = TOOL_OP_BYE};
    json_t *msg;
    int err = tool_link_send(&s->link, tool_message_encode(&bye), why);

    if (err == 0)
        err = tool_sender_expect(s, TOOL_OP_SUMMARY, SENDER_BYE, &msg, why);
    if (err < 0)
        return err;
    err = tool_message_decode(msg, &s->summary, why);
    json_decref(msg);
    if (err == 0)
        sender_check_summary(s);
    return err;
}

/* When the connection is gone, decode may have said why before. */
static int sender_last_words(struct tool_sender *s, struct pdx_error *why)
{
    struct tool_message m;
    json_t *msg;

    while (tool_link_receive(&s->link, &msg, NULL) == 1) {
        bool error =
            tool_message_op(msg, NULL) == TOOL_OP_ERROR && tool_message_decode(msg, &m, NULL) == 0;

        json_decref(msg);
        if (error)
            return tool_refuse(why, PDX_EREMOTE, "%s gave up: %s", s->link.peer, m.text);
    }
    return PDX_EPEER;
}

int tool_sender_run(struct tool_sender *s, struct pdx_error *why)
{
    int err = 0;

    s->report.began_ns = s->heard_ns = pdxi_now_ns();
    while (err == 0 && sender_has_work(s)) {
        int started = sender_start_one(s, why);

        sender_show(s);
        err = started < 0 ? started : sender_step(s, started == 1, why);
    }
    s->report.ended_ns = pdxi_now_ns();
    tool_report_lanes(&s->report, s->peer);
    if (err == 0)
        err = sender_part(s, why);
    if (err == PDX_EPEER)
        err = sender_last_words(s, why);
    tool_progress_end(&s->progress);
    return err;
}
