/* SPDX-License-Identifier: Apache-2.0
 *
 * The greeting: hello and offer. See rendezvous.h; the short messages are in
 * message.c.
 */
#include "tool/rendezvous.h"

#include "tool/refuse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t shape_add(uint64_t h, const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001B3); /* FNV-1a */
    return h;
}

static uint64_t shape_add_text(uint64_t h, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static uint64_t shape_add_text(uint64_t h, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return shape_add(h, text, strlen(text) + 1);
}

static uint64_t shape_add_tensors(uint64_t h, const struct tool_tensor *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        h = shape_add_text(h, "%s/%d/%" PRIu64 "x%" PRIu64 "x%" PRIu64 "/%d/%" PRIu32, t[i].name,
                           (int)t[i].layer, t[i].rows, t[i].units, t[i].unit_len, t[i].replicated,
                           t[i].ngroups);
        for (uint32_t g = 0; g < t[i].ngroups; g++)
            h = shape_add_text(h, "%" PRIu64, t[i].groups[g]);
    }
    return h;
}

uint64_t tool_shape(const struct tool_model *m)
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);

    h = shape_add_text(h, "%s/%u/%d/%u/%" PRIu64, m->dtype, m->page_size, (int)m->kv_kind,
                       m->kv_heads, m->aux_len);
    h = shape_add_tensors(h, m->kv, m->nkv);
    for (size_t c = 0; c < m->ncomponents; c++) {
        const struct tool_component *k = &m->components[c];

        h = shape_add_text(h, "%s/%d/%u", k->type, (int)k->space, k->window);
        h = shape_add_tensors(h, k->tensors, k->ntensors);
    }
    return h;
}

/* A member that is an integer in [min, max]. */
static int rendezvous_uint(const json_t *msg, const char *key, uint64_t min, uint64_t max,
                           uint64_t *ret, struct pdx_error *why)
{
    const json_t *v = json_object_get(msg, key);
    json_int_t x = json_integer_value(v);

    if (!json_is_integer(v) || x < 0 || (uint64_t)x < min || (uint64_t)x > max)
        return tool_refuse(why, PDX_EPROTO,
                           "\"%s\" of the message must be an integer in %" PRIu64 " .. %" PRIu64,
                           key, min, max);
    *ret = (uint64_t)x;
    return 0;
}

static int rendezvous_u32(const json_t *msg, const char *key, uint32_t min, uint32_t max,
                          uint32_t *ret, struct pdx_error *why)
{
    uint64_t v = 0;
    int err = rendezvous_uint(msg, key, min, max, &v, why);

    if (err == 0)
        *ret = (uint32_t)v;
    return err;
}

json_t *tool_hello_encode(const struct tool_hello *h)
{
    char shape[17];

    (void)snprintf(shape, sizeof shape, "%016" PRIx64, h->shape);
    return json_pack("{s:s,s:i,s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "op", "hello", "protocol",
                     TOOL_RENDEZVOUS_VERSION, "model", h->model, "shape", shape, "page_size",
                     (json_int_t)h->page_size, "prefill_tp", (json_int_t)h->tp[0], "decode_tp",
                     (json_int_t)h->tp[1], "prefill_pp", (json_int_t)h->pp[0], "decode_pp",
                     (json_int_t)h->pp[1], "inflight", (json_int_t)h->inflight, "max_tokens",
                     (json_int_t)h->max_tokens, "seed", (json_int_t)h->seed);
}

int tool_hello_decode(const json_t *msg, struct tool_hello *ret, struct pdx_error *why)
{
    const char *model = json_string_value(json_object_get(msg, "model"));
    const char *shape = json_string_value(json_object_get(msg, "shape"));
    struct tool_hello h = {0};
    uint32_t version;
    int err = rendezvous_u32(msg, "protocol", 0, UINT32_MAX, &version, why);

    if (err == 0 && version != TOOL_RENDEZVOUS_VERSION)
        return tool_refuse(why, PDX_EVERSION,
                           "the prefill side speaks rendezvous protocol %u, this side %d; use the "
                           "same pdx on both hosts",
                           version, TOOL_RENDEZVOUS_VERSION);
    if (err == 0 && (!model || strlen(model) >= sizeof h.model || !shape ||
                     sscanf(shape, "%" SCNx64, &h.shape) != 1))
        err = tool_refuse(why, PDX_EPROTO, "the hello lacks a usable \"model\" or \"shape\"");
    if (err == 0)
        err = rendezvous_u32(msg, "page_size", 1, UINT32_C(1) << 20, &h.page_size, why);
    if (err == 0)
        err = rendezvous_u32(msg, "prefill_tp", 1, TOOL_TP_MAX, &h.tp[0], why);
    if (err == 0)
        err = rendezvous_u32(msg, "decode_tp", 1, TOOL_TP_MAX, &h.tp[1], why);
    if (err == 0)
        err = rendezvous_u32(msg, "prefill_pp", 1, TOOL_PP_MAX, &h.pp[0], why);
    if (err == 0)
        err = rendezvous_u32(msg, "decode_pp", 1, TOOL_PP_MAX, &h.pp[1], why);
    if (err == 0)
        err = rendezvous_u32(msg, "inflight", 1, TOOL_INFLIGHT_MAX, &h.inflight, why);
    if (err == 0)
        err = rendezvous_u32(msg, "max_tokens", 1, INT32_MAX, &h.max_tokens, why);
    if (err == 0)
        err = rendezvous_uint(msg, "seed", 0, INT64_MAX, &h.seed, why);
    if (err < 0)
        return err;
    (void)snprintf(h.model, sizeof h.model, "%s", model);
    *ret = h;
    return 0;
}

static json_t *blob_encode(const struct tool_blob *b)
{
    static const char digits[] = "0123456789abcdef";
    char *text = malloc(2 * b->len + 1);
    json_t *v = NULL;

    for (size_t i = 0; text && i < b->len; i++) {
        text[2 * i] = digits[b->data[i] >> 4];
        text[2 * i + 1] = digits[b->data[i] & 15];
    }
    if (text)
        v = json_stringn(text, 2 * b->len);
    free(text);
    return v;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int blob_decode(const json_t *v, const char *what, struct tool_blob *ret,
                       struct pdx_error *why)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v) / 2;
    uint8_t *data;

    if (!text || len == 0 || json_string_length(v) % 2)
        return tool_refuse(why, PDX_EPROTO, "the offer's %s is no string of hex digits", what);
    data = malloc(len);
    if (!data)
        return tool_refuse(why, PDX_ENOMEM, "no memory for the offer's %s", what);
    for (size_t i = 0; i < len; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            free(data);
            return tool_refuse(why, PDX_EPROTO, "the offer's %s is no string of hex digits", what);
        }
        data[i] = (uint8_t)(high << 4 | low);
    }
    *ret = (struct tool_blob){.data = data, .len = len};
    return 0;
}

json_t *tool_offer_encode(const struct tool_offer *o)
{
    json_t *layouts = json_array(), *capacity = json_array();
    int bad = 0;

    for (size_t i = 0; i < o->nlayouts; i++)
        bad |= json_array_append_new(layouts, blob_encode(&o->layouts[i]));
    for (size_t i = 0; i < o->npools; i++)
        bad |= json_array_append_new(capacity, json_integer(o->capacity[i]));
    if (bad) {
        json_decref(layouts);
        json_decref(capacity);
        return NULL;
    }
    return json_pack("{s:s,s:I,s:I,s:o,s:o,s:o}", "op", "offer", "inflight",
                     (json_int_t)o->inflight, "max_tokens", (json_int_t)o->max_tokens, "capacity",
                     capacity, "engine", blob_encode(&o->engine), "layouts", layouts);
}

static int offer_decode_capacity(const json_t *msg, struct tool_offer *o, struct pdx_error *why)
{
    const json_t *list = json_object_get(msg, "capacity");

    o->npools = json_array_size(list);
    if (o->npools == 0 || o->npools > TOOL_POOLS_MAX)
        return tool_refuse(why, PDX_EPROTO, "the offer has a capacity for %zu pools", o->npools);
    for (size_t i = 0; i < o->npools; i++) {
        json_int_t n = json_integer_value(json_array_get(list, i));

        if (n < 0 || n > INT32_MAX)
            return tool_refuse(why, PDX_EPROTO, "capacity %zu of the offer is out of range", i);
        o->capacity[i] = (uint32_t)n;
    }
    return 0;
}

static int offer_decode_layouts(const json_t *msg, struct tool_offer *o, struct pdx_error *why)
{
    const json_t *list = json_object_get(msg, "layouts");
    size_t n = json_array_size(list);
    int err = 0;

    if (n == 0 || n > TOOL_RANKS_MAX)
        return tool_refuse(why, PDX_EPROTO, "the offer has %zu layouts; expected 1 .. %d", n,
                           TOOL_RANKS_MAX);
    o->layouts = calloc(n, sizeof *o->layouts);
    if (!o->layouts)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %zu layouts", n);
    for (; o->nlayouts < n && err == 0; o->nlayouts += err == 0)
        err =
            blob_decode(json_array_get(list, o->nlayouts), "layout", &o->layouts[o->nlayouts], why);
    return err;
}

int tool_offer_decode(const json_t *msg, struct tool_offer *ret, struct pdx_error *why)
{
    struct tool_offer o = {0};
    int err = rendezvous_u32(msg, "inflight", 1, TOOL_INFLIGHT_MAX, &o.inflight, why);

    if (err == 0)
        err = rendezvous_u32(msg, "max_tokens", 1, INT32_MAX, &o.max_tokens, why);
    if (err == 0)
        err = offer_decode_capacity(msg, &o, why);
    if (err == 0)
        err = blob_decode(json_object_get(msg, "engine"), "engine descriptor", &o.engine, why);
    if (err == 0)
        err = offer_decode_layouts(msg, &o, why);
    if (err < 0)
        tool_offer_fini(&o);
    else
        *ret = o;
    return err;
}

void tool_offer_fini(struct tool_offer *o)
{
    for (size_t i = 0; i < o->nlayouts; i++)
        free(o->layouts[i].data);
    free(o->layouts);
    free(o->engine.data);
    *o = (struct tool_offer){0};
}
