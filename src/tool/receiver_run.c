/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers prefill's messages: places requests, compares what arrived, and looks
 * at everything else at the end.
 */
#include "base/clock.h"
#include "tool/receiver.h"
#include "tool/refuse.h"
#include "tool/table.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

_Static_assert(TOOL_PP_MAX <= 64, "tool_room.arrived has a bit for each stage");

static void receiver_fail(struct tool_receiver *r, const char *text)
{
    if (!r->failure[0])
        (void)snprintf(r->failure, sizeof r->failure, "%.1000s", text);
}

static struct tool_room *receiver_find(struct tool_receiver *r, uint64_t number)
{
    for (uint32_t i = 0; i < r->sizing.inflight; i++) {
        if (r->rooms[i].used && r->rooms[i].number == number)
            return &r->rooms[i];
    }
    return NULL;
}

static struct tool_room *receiver_free_room(struct tool_receiver *r)
{
    for (uint32_t i = 0; i < r->sizing.inflight; i++) {
        if (!r->rooms[i].used)
            return &r->rooms[i];
    }
    return NULL;
}

static int receiver_announced(struct tool_receiver *r, const struct tool_message *m,
                              struct pdx_error *why)
{
    struct tool_room *room = receiver_free_room(r);
    unsigned long long number = m->room;

    if (receiver_find(r, m->room))
        return tool_refuse(why, PDX_EPROTO, "%s announced request %llu twice", r->link.peer,
                           number);
    if (!room || m->tokens == 0 || m->tokens > r->sizing.max_tokens)
        return tool_refuse(why, PDX_EPROTO,
                           "%s announced request %llu of %u tokens, more than was offered",
                           r->link.peer, number, m->tokens);
    room->number = m->room;
    room->tokens = m->tokens;
    room->arrived = 0;
    room->lost = false;
    room->text[0] = '\0';
    for (uint32_t d = 0; d < r->nranks; d++) {
        if (tool_rank_place(&r->ranks[d], m->tokens, &room->ranks[d]) < 0)
            return tool_refuse(why, PDX_EPROTO,
                               "%s announced request %llu of %u tokens when no such room was left",
                               r->link.peer, number, m->tokens);
        room->used = true;
        if (!room->text[0] &&
            !tool_rank_check_poison(&r->ranks[d], &room->ranks[d], room->text, sizeof room->text))
            receiver_fail(r, room->text);
    }
    return tool_link_send(
        &r->link, tool_place_encode(m->room, room->ranks, r->nranks, r->sizing.npools), why);
}

/* Compares a request on all ranks. */
static void receiver_verify(struct tool_receiver *r, struct tool_room *room)
{
    uint64_t began = pdxi_now_ns();

    for (uint32_t d = 0; d < r->nranks; d++) {
        char text[sizeof room->text];

        if (!tool_rank_verify(&r->ranks[d], r->hello.seed, room->number, &room->ranks[d], &r->bytes,
                              text, sizeof text) &&
            !room->text[0])
            memcpy(room->text, text, sizeof text);
    }
    r->busy_ns += pdxi_now_ns() - began;
}

/* All stages have ended: compares, unless one of them could not send, gives the place back and
 * tells prefill. */
static int receiver_judge(struct tool_receiver *r, struct tool_room *room, struct pdx_error *why)
{
    struct tool_message verdict = {.op = TOOL_OP_VERDICT, .room = room->number};
    uint64_t before = r->bytes;

    if (!room->lost)
        receiver_verify(r, room);
    for (uint32_t d = 0; d < r->nranks; d++) {
        if (room->lost)
            tool_rank_forget(&r->ranks[d], &room->ranks[d]);
        tool_rank_release(&r->ranks[d], &room->ranks[d]);
    }
    room->used = false;
    verdict.ok = !room->text[0];
    verdict.bytes = r->bytes - before;
    memcpy(verdict.text, room->text, sizeof verdict.text);
    r->requests += verdict.ok;
    r->failed += !verdict.ok;
    if (!verdict.ok) {
        char text[1024];

        (void)snprintf(text, sizeof text, "request %llu: %.980s", (unsigned long long)room->number,
                       room->text);
        receiver_fail(r, text);
    }
    return tool_link_send(&r->link, tool_message_encode(&verdict), why);
}

/* A stage has sent its part, or could not. The place stays the request's until all have told: the
 * others may still be writing to it. */
static int receiver_sent(struct tool_receiver *r, const struct tool_message *m,
                         struct pdx_error *why)
{
    struct tool_room *room = receiver_find(r, m->room);
    uint32_t stages = r->hello.pp[0];
    uint64_t bit = UINT64_C(1) << m->stage; /* below TOOL_PP_MAX: tool_message_decode */

    if (!room)
        return tool_refuse(why, PDX_EPROTO, "%s sent request %llu, which was not announced",
                           r->link.peer, (unsigned long long)m->room);
    if (m->stage >= stages || (room->arrived & bit))
        return tool_refuse(why, PDX_EPROTO,
                           "%s sent stage %u of request %llu, which has %u stages, %s",
                           r->link.peer, m->stage, (unsigned long long)m->room, stages,
                           m->stage < stages ? "twice" : "counted from 0");
    room->arrived |= bit;
    if (!m->ok && !room->lost)
        (void)snprintf(room->text, sizeof room->text, "%s",
                       m->text[0] ? m->text : "prefill could not send it");
    room->lost |= !m->ok;
    if (room->arrived != UINT64_MAX >> (64 - stages))
        return 0;
    return receiver_judge(r, room, why);
}

/* The last look, and the summary. */
static int receiver_bye(struct tool_receiver *r, struct pdx_error *why)
{
    struct tool_message m = {.op = TOOL_OP_SUMMARY};
    char text[1000];

    for (uint32_t i = 0; i < r->sizing.inflight; i++) {
        if (r->rooms[i].used)
            return tool_refuse(why, PDX_EPROTO, "%s said goodbye while request %llu was under way",
                               r->link.peer, (unsigned long long)r->rooms[i].number);
    }
    for (uint32_t d = 0; d < r->nranks; d++) {
        if (!tool_rank_check_rest(&r->ranks[d], &r->guards, text, sizeof text))
            receiver_fail(r, text);
    }
    m.requests = r->requests;
    m.failed = r->failed;
    m.bytes = r->bytes;
    m.guards = r->guards;
    (void)snprintf(m.text, sizeof m.text, "%s", r->failure);
    r->done = true;
    return tool_link_send(&r->link, tool_message_encode(&m), why);
}

static int receiver_take(struct tool_receiver *r, const json_t *msg, struct pdx_error *why)
{
    struct tool_message m;
    int err = tool_message_decode(msg, &m, why);

    if (err < 0)
        return err;
    switch (m.op) {
    case TOOL_OP_ANNOUNCE:
        return receiver_announced(r, &m, why);
    case TOOL_OP_SENT:
        return receiver_sent(r, &m, why);
    case TOOL_OP_BYE:
        return receiver_bye(r, why);
    case TOOL_OP_HELLO:
    case TOOL_OP_OFFER:
    case TOOL_OP_PLACE:
    case TOOL_OP_VERDICT:
    case TOOL_OP_SUMMARY:
    case TOOL_OP_ERROR:
        break;
    }
    return tool_refuse(why, PDX_EPROTO, "%s sent a message that is not due", r->link.peer);
}

static void receiver_show(struct tool_receiver *r)
{
    char size[TOOL_TEXT_MAX];

    if (tool_progress_due(&r->progress, pdxi_now_ns()))
        tool_progress_line(&r->progress, "%llu request%s compared, %s, %llu bad",
                           (unsigned long long)(r->requests + r->failed),
                           tool_text_plural(r->requests + r->failed),
                           tool_text_size(size, r->bytes), (unsigned long long)r->failed);
}

int tool_receiver_run(struct tool_receiver *r, struct pdx_error *why)
{
    r->began_ns = pdxi_now_ns();
    while (!r->done) {
        struct pollfd p = {.fd = r->link.fd, .events = tool_link_events(&r->link)};
        json_t *msg;
        int got;

        (void)poll(&p, 1, 200);
        got = tool_link_flush(&r->link, why);
        while (got == 0 && !r->done && (got = tool_link_receive(&r->link, &msg, why)) == 1) {
            got = receiver_take(r, msg, why);
            json_decref(msg);
            receiver_show(r);
        }
        if (got < 0)
            return got;
        receiver_show(r);
    }
    tool_link_drain(&r->link, PDX_SEC * 10);
    return 0;
}
