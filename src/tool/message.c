/* SPDX-License-Identifier: Apache-2.0
 *
 * The short messages of the rendezvous and the lists of items; see rendezvous.h.
 */
#include "tool/refuse.h"
#include "tool/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const message_ops[] = {
    [TOOL_OP_HELLO] = "hello", [TOOL_OP_OFFER] = "offer", [TOOL_OP_ANNOUNCE] = "announce",
    [TOOL_OP_PLACE] = "place", [TOOL_OP_SENT] = "sent",   [TOOL_OP_VERDICT] = "verdict",
    [TOOL_OP_BYE] = "bye",     [TOOL_OP_ERROR] = "error", [TOOL_OP_SUMMARY] = "summary",
};

int tool_message_op(const json_t *msg, struct pdx_error *why)
{
    const char *op = json_string_value(json_object_get(msg, "op"));

    for (int i = TOOL_OP_HELLO; op && i <= TOOL_OP_ERROR; i++) {
        if (strcmp(op, message_ops[i]) == 0)
            return i;
    }
    if (!op)
        return tool_refuse(why, PDX_EPROTO, "a message without \"op\"");
    return tool_refuse(why, PDX_EPROTO, "a message with the unknown \"op\" \"%.32s\"", op);
}

/* Copies printable ASCII: JSON wants whole characters, and the other side's words go to a terminal.
 */
static void message_copy_text(char *to, size_t cap, const char *from)
{
    (void)snprintf(to, cap, "%s", from);
    for (char *p = to; *p; p++) {
        if (*p < ' ' || *p > '~')
            *p = '?';
    }
}

json_t *tool_message_encode(const struct tool_message *m)
{
    const char *op = message_ops[m->op];
    char text[sizeof m->text];
    json_int_t room = (json_int_t)m->room, bytes = (json_int_t)m->bytes;

    message_copy_text(text, sizeof text, m->text);
    switch (m->op) {
    case TOOL_OP_ANNOUNCE:
        return json_pack("{s:s,s:I,s:I}", "op", op, "room", room, "tokens", (json_int_t)m->tokens);
    case TOOL_OP_SENT:
        return json_pack("{s:s,s:I,s:I,s:b,s:s}", "op", op, "room", room, "stage",
                         (json_int_t)m->stage, "ok", m->ok, "text", text);
    case TOOL_OP_VERDICT:
        return json_pack("{s:s,s:I,s:b,s:I,s:s}", "op", op, "room", room, "ok", m->ok, "bytes",
                         bytes, "text", text);
    case TOOL_OP_SUMMARY:
        return json_pack("{s:s,s:I,s:I,s:I,s:I,s:s}", "op", op, "requests", (json_int_t)m->requests,
                         "failed", (json_int_t)m->failed, "bytes", bytes, "guards",
                         (json_int_t)m->guards, "text", text);
    case TOOL_OP_BYE:
        return json_pack("{s:s}", "op", op);
    case TOOL_OP_ERROR:
        return json_pack("{s:s,s:s}", "op", op, "text", text);
    case TOOL_OP_HELLO:
    case TOOL_OP_OFFER:
    case TOOL_OP_PLACE:
        break;
    }
    return NULL;
}

struct message_fields {
    json_int_t room, tokens, stage, bytes, requests, failed, guards;
    int ok;
    const char *text;
};

static int message_unpack(const json_t *msg, int op, struct message_fields *f, json_error_t *at)
{
    json_t *v = (json_t *)(uintptr_t)msg; /* json_unpack_ex does not change it, but isn't const */

    switch ((enum tool_op)op) {
    case TOOL_OP_ANNOUNCE:
        return json_unpack_ex(v, at, 0, "{s:I,s:I}", "room", &f->room, "tokens", &f->tokens);
    case TOOL_OP_SENT:
        return json_unpack_ex(v, at, 0, "{s:I,s:I,s:b,s:s}", "room", &f->room, "stage", &f->stage,
                              "ok", &f->ok, "text", &f->text);
    case TOOL_OP_VERDICT:
        return json_unpack_ex(v, at, 0, "{s:I,s:b,s:I,s:s}", "room", &f->room, "ok", &f->ok,
                              "bytes", &f->bytes, "text", &f->text);
    case TOOL_OP_SUMMARY:
        return json_unpack_ex(v, at, 0, "{s:I,s:I,s:I,s:I,s:s}", "requests", &f->requests, "failed",
                              &f->failed, "bytes", &f->bytes, "guards", &f->guards, "text",
                              &f->text);
    case TOOL_OP_ERROR:
        return json_unpack_ex(v, at, 0, "{s:s}", "text", &f->text);
    case TOOL_OP_BYE:
    case TOOL_OP_HELLO:
    case TOOL_OP_OFFER:
    case TOOL_OP_PLACE:
        break;
    }
    return 0;
}

int tool_message_decode(const json_t *msg, struct tool_message *ret, struct pdx_error *why)
{
    struct message_fields f = {.text = ""};
    json_error_t at;
    int op = tool_message_op(msg, why);

    if (op < 0)
        return op;
    if (message_unpack(msg, op, &f, &at) < 0)
        return tool_refuse(why, PDX_EPROTO, "a wrong \"%s\" message: %s", message_ops[op], at.text);
    if (f.room < 0 || f.tokens < 0 || f.tokens > INT32_MAX || f.stage < 0 ||
        f.stage >= TOOL_PP_MAX || f.bytes < 0 || f.requests < 0 || f.failed < 0 || f.guards < 0)
        return tool_refuse(why, PDX_EPROTO, "a \"%s\" message with a number out of range",
                           message_ops[op]);
    *ret = (struct tool_message){
        .op = (enum tool_op)op,
        .room = (uint64_t)f.room,
        .tokens = (uint32_t)f.tokens,
        .stage = (uint32_t)f.stage,
        .ok = f.ok,
        .bytes = (uint64_t)f.bytes,
        .requests = (uint64_t)f.requests,
        .failed = (uint64_t)f.failed,
        .guards = (uint64_t)f.guards,
    };
    message_copy_text(ret->text, sizeof ret->text, f.text);
    return 0;
}

static json_t *place_encode_rank(const struct tool_placement *pl, size_t npools)
{
    json_t *pools = json_array();

    for (size_t i = 0; i < npools; i++) {
        json_t *list = json_array();
        uint32_t n = pl->items[i] ? pl->spans[i].n : 0;
        int bad = 0;

        for (uint32_t k = 0; k < n; k++)
            bad |= json_array_append_new(list, json_integer(pl->items[i][k]));
        if (json_array_append_new(pools, list) < 0 || bad) {
            json_decref(pools);
            return NULL;
        }
    }
    return pools;
}

json_t *tool_place_encode(uint64_t room, const struct tool_placement *ranks, size_t n,
                          size_t npools)
{
    json_t *list = json_array();

    for (size_t r = 0; r < n; r++) {
        if (json_array_append_new(list, place_encode_rank(&ranks[r], npools)) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:s,s:I,s:o}", "op", "place", "room", (json_int_t)room, "ranks", list);
}

int tool_place_room(const json_t *msg, uint64_t *ret_room, struct pdx_error *why)
{
    const json_t *room = json_object_get(msg, "room");

    if (!json_is_integer(room) || json_integer_value(room) < 0)
        return tool_refuse(why, PDX_EPROTO, "a \"place\" message without a room number");
    *ret_room = (uint64_t)json_integer_value(room);
    return 0;
}

static int place_decode_list(const json_t *list, uint32_t n, int32_t **ret, struct pdx_error *why)
{
    int32_t *items;

    if (!json_is_array(list) || json_array_size(list) != n)
        return tool_refuse(why, PDX_EPROTO,
                           "a \"place\" message with %zu items where the request needs %u",
                           json_array_size(list), n);
    if (n == 0)
        return 0;
    items = calloc(n, sizeof *items);
    if (!items)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %u items", n);
    *ret = items; /* the caller's from here, whatever is in it */
    for (uint32_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
            return tool_refuse(why, PDX_EPROTO, "a \"place\" message with an item out of range");
        items[i] = (int32_t)json_integer_value(v);
    }
    return 0;
}

static int place_decode_rank(const json_t *pools, const struct tool_model *m, uint32_t tokens,
                             struct tool_placement *ret, struct pdx_error *why)
{
    size_t npools = tool_sizing_npools(m);
    int err = 0;

    if (json_array_size(pools) != npools)
        return tool_refuse(why, PDX_EPROTO, "a \"place\" message for %zu pools instead of %zu",
                           json_array_size(pools), npools);
    for (size_t i = 0; i < npools && err == 0; i++) {
        uint32_t own;

        ret->spans[i] = tool_sizing_span(m, i, tokens);
        own = tool_sizing_follows_kv(m, i) ? 0 : ret->spans[i].n;
        err = place_decode_list(json_array_get(pools, i), own, &ret->items[i], why);
    }
    return err;
}

int tool_place_decode(const json_t *msg, const struct tool_group *g, uint32_t tokens,
                      struct tool_placement *ranks, struct pdx_error *why)
{
    const json_t *list = json_object_get(msg, "ranks");
    uint32_t n = tool_group_nranks(g);
    int err = 0;

    if (json_array_size(list) != n)
        return tool_refuse(why, PDX_EPROTO, "a \"place\" message for %zu ranks instead of %u",
                           json_array_size(list), n);
    for (uint32_t r = 0; r < n && err == 0; r++)
        err = place_decode_rank(json_array_get(list, r), &tool_group_stage(g, r)->model, tokens,
                                &ranks[r], why);
    return err;
}

void tool_placement_fini(struct tool_placement *pl)
{
    for (size_t i = 0; i < TOOL_POOLS_MAX; i++)
        free(pl->items[i]);
    *pl = (struct tool_placement){0};
}
