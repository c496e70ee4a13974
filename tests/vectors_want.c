/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_want.h.
 */
#include "vectors_want.h"

#include "child.h"

#include <stdlib.h>
#include <string.h>

/* The frames of a message, after its endpoint. */
enum { MESSAGE_MARK, MESSAGE_ROOM, MESSAGE_BUFFER, MESSAGE_SLOT, MESSAGE_LEN, MESSAGE_PAYLOAD };

#define MESSAGE_FRAMES 6

/* ["kv", 3], ["aux", 0] or [component, tensor]. */
static struct vec_tensor want_tensor(struct vec_case *c, const json_t *call, const char *key)
{
    const json_t *v = vec_list(c, call, key);
    const json_t *list = json_array_get(v, 0);
    const char *name = json_string_value(list);
    struct vec_tensor t = {0};
    int64_t n = 0;

    if (name && strcmp(name, "kv") == 0)
        n = VEC_KV;
    else if (name && strcmp(name, "aux") == 0)
        n = VEC_AUX;
    else
        n = vec_int(c, list, key);
    if (n < VEC_KV || n > INT32_MAX)
        vec_malformed(c, "%s names no list of tensors", key);
    else
        t.list = (int32_t)n;
    n = vec_int(c, json_array_get(v, 1), key);
    if (n < 0 || n > UINT32_MAX)
        vec_malformed(c, "%s names no tensor", key);
    else
        t.pos = (uint32_t)n;
    return t;
}

static void want_pieces(struct vec_want *w, struct vec_case *c, const json_t *ops,
                        struct vec_piece name)
{
    const json_t *op;
    size_t i;

    json_array_foreach(ops, i, op)
    {
        struct vec_piece piece = name;

        piece.src = vec_int(c, json_array_get(op, 0), "a source offset");
        piece.dst = vec_int(c, json_array_get(op, 1), "a destination offset");
        piece.len = vec_int(c, json_array_get(op, 2), "a length");
        if (piece.len < 0)
            vec_malformed(c, "a length is negative");
        vec_plan_add(&w->plan, &piece);
    }
}

static void want_calls(struct vec_want *w, struct vec_case *c, const json_t *calls)
{
    const json_t *call;
    size_t i;

    json_array_foreach(calls, i, call)
    {
        struct vec_piece name = {
            .from = want_tensor(c, call, "src"),
            .to = want_tensor(c, call, "dst"),
        };

        want_pieces(w, c, vec_list(c, call, "ops"), name);
    }
}

size_t vec_nmessages(struct vec_case *c)
{
    return json_array_size(vec_list(c, c->out, "frames"));
}

/* The bytes of one frame, with a 0 behind them. */
static uint8_t *message_frame(struct vec_case *c, const json_t *frames, size_t i, size_t *ret_len)
{
    const char *text = json_string_value(json_array_get(frames, i));
    size_t len = text ? strlen(text) / 2 : 0;
    uint8_t *bytes = calloc(len + 1, 1);

    *ret_len = 0;
    if (!text)
        vec_malformed(c, "a frame of an aux message is not a string");
    else if (bytes && len && ts_unhex(text, bytes, len) != len)
        vec_malformed(c, "a frame of an aux message is not hexadecimal");
    else if (bytes)
        *ret_len = len;
    return bytes;
}

/* A frame with a decimal number. */
static int32_t message_number(struct vec_case *c, const json_t *frames, size_t i)
{
    size_t len;
    uint8_t *text = message_frame(c, frames, i, &len);
    char *end = NULL;
    long n = text ? strtol((char *)text, &end, 10) : 0;
    bool good = text && len && end == (char *)text + len && n >= 0 && n <= INT32_MAX;

    free(text);
    if (!good)
        vec_malformed(c, "frame %zu of an aux message is not a number", i);
    return good ? (int32_t)n : 0;
}

void vec_message_init(struct vec_message *m, struct vec_case *c, size_t i)
{
    const json_t *frames =
        vec_list_at(c, vec_list_at(c, vec_list(c, c->out, "frames"), i, "frames"), 1, "frames");
    uint8_t *len;
    size_t n;

    *m = (struct vec_message){0};
    if (json_array_size(frames) != MESSAGE_FRAMES) {
        vec_malformed(c, "an aux message has %zu frames, not %d", json_array_size(frames),
                      MESSAGE_FRAMES);
        return;
    }
    m->buffer = (uint32_t)message_number(c, frames, MESSAGE_BUFFER);
    m->slot = message_number(c, frames, MESSAGE_SLOT);
    m->payload = message_frame(c, frames, MESSAGE_PAYLOAD, &m->len);
    len = message_frame(c, frames, MESSAGE_LEN, &n);
    if (!m->payload || !len || n != 4 ||
        ((uint32_t)len[0] << 24 | (uint32_t)len[1] << 16 | (uint32_t)len[2] << 8 | len[3]) !=
            m->len)
        vec_malformed(c, "an aux message tells another length than that of its payload");
    free(len);
}

void vec_message_fini(struct vec_message *m)
{
    free(m->payload);
    *m = (struct vec_message){0};
}

/* A message carries the bytes of our slot to the slot and buffer that it names. */
static void want_message(struct vec_want *w, struct vec_case *c, size_t i)
{
    const json_t *items = vec_list(c, c->local, "aux_item_lens");
    int64_t slot = vec_int(c, json_object_get(c->in, "src_aux"), "src_aux");
    struct vec_piece piece = {.len = 0};
    struct vec_message m;
    uint64_t item;

    vec_message_init(&m, c, i);
    item = vec_len(c, json_array_get(items, m.buffer), "aux_item_lens", 0);
    piece.from = piece.to = (struct vec_tensor){VEC_AUX, m.buffer};
    piece.len = (int64_t)m.len;
    if (__builtin_mul_overflow(slot, item, &piece.src) ||
        __builtin_mul_overflow(m.slot, item, &piece.dst))
        vec_malformed(c, "a slot lies beyond 64 bits");
    vec_plan_add(&w->plan, &piece);
    vec_message_fini(&m);
}

void vec_want_init(struct vec_want *w, struct vec_case *c, const json_t *result)
{
    const json_t *calls = vec_list(c, result, "calls");
    const json_t *blocks = vec_list(c, result, "blocks");

    *w = (struct vec_want){.refused = json_is_object(json_object_get(result, "error")) ||
                                      json_integer_value(json_object_get(result, "ret")) != 0};
    if (w->refused)
        return;
    if (!calls && !blocks)
        vec_malformed(c, "the result has neither calls nor blocks nor an error");
    want_calls(w, c, calls);
    want_pieces(w, c, blocks, (struct vec_piece){.len = 0});
    for (size_t i = 0; result == c->out && i < vec_nmessages(c); i++)
        want_message(w, c, i);
    if (w->plan.full)
        vec_malformed(c, "the result has more than %u pieces", VEC_PIECES_MAX);
    vec_plan_merge(&w->plan);
}

void vec_want_fini(struct vec_want *w)
{
    vec_plan_fini(&w->plan);
    *w = (struct vec_want){0};
}
