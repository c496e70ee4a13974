/* SPDX-License-Identifier: Apache-2.0
 *
 * HELLO and HELLO_ACK, and the frames of the control connection. Offsets are
 * into the body.
 *
 *   HELLO       0 u16 major          HELLO_ACK   0 u16 major
 *               2 u16 minor                      2 u16 minor
 *               4 u16 kind                       4 i32 code
 *               6 u16 name_len                   8 u32 caps
 *               8 u32 caps                      12 u32 max_frames
 *              12 u64 keepalive_ns              16 u64 keepalive_ns
 *              20 u8[16] incarnation            24 u8[16] incarnation
 *              36 u8[16] target                 40 u8[16] ticket
 *              52 u8[16] ticket                 56 u16 name_len
 *              68 name                          58 u16 text_len
 *                                               60 name, text
 *   PING, PONG  0 u64 stamp          BYE         0 i32 code
 *   TICKET      0 u8[16] ticket                  4 u16 text_len
 *                                                6 text
 */
#include "base/bytes.h"
#include "base/utf8.h"
#include "engine/proto/frame.h"
#include "engine/proto/frame_field.h"

#include <string.h>

#define HELLO_LEN     68 /* fixed part of the body */
#define HELLO_ACK_LEN 60
#define BYE_LEN       6

static const uint8_t ticket_none[PDXI_TICKET_LEN];

size_t pdxi_frame_hello_encode(uint8_t *buf, const struct pdxi_frame_hello *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t name_len = pdxi_utf8_clean(b + HELLO_LEN, PDX_NAME_MAX, f->name);

    pdxi_put_u16(b, f->major);
    pdxi_put_u16(b + 2, f->minor);
    pdxi_put_u16(b + 4, (uint16_t)f->kind);
    pdxi_put_u16(b + 6, (uint16_t)name_len);
    pdxi_put_u32(b + 8, f->caps);
    pdxi_put_u64(b + 12, f->keepalive_ns);
    memcpy(b + 20, f->incarnation, PDX_INCARNATION_LEN);
    memcpy(b + 36, f->target, PDX_INCARNATION_LEN);
    memcpy(b + 52, f->kind == PDXI_HELLO_DATA ? f->ticket : ticket_none, PDXI_TICKET_LEN);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_HELLO, HELLO_LEN + name_len);
}

size_t pdxi_frame_hello_ack_encode(uint8_t *buf, const struct pdxi_frame_hello_ack *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t name_len = pdxi_utf8_clean(b + HELLO_ACK_LEN, PDX_NAME_MAX, f->name);
    size_t text_len = pdxi_utf8_clean(b + HELLO_ACK_LEN + name_len, PDXI_FRAME_TEXT_MAX, f->text);

    pdxi_put_u16(b, f->major);
    pdxi_put_u16(b + 2, f->minor);
    pdxi_put_u32(b + 4, (uint32_t)f->code);
    pdxi_put_u32(b + 8, f->caps);
    pdxi_put_u32(b + 12, f->max_frames);
    pdxi_put_u64(b + 16, f->keepalive_ns);
    memcpy(b + 24, f->incarnation, PDX_INCARNATION_LEN);
    memcpy(b + 40, f->ticket, PDXI_TICKET_LEN);
    pdxi_put_u16(b + 56, (uint16_t)name_len);
    pdxi_put_u16(b + 58, (uint16_t)text_len);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_HELLO_ACK, HELLO_ACK_LEN + name_len + text_len);
}

/* The length of a body of our major version: exact, or more when the sender's minor is higher. */
static int hello_len_check(enum pdxi_frame_type type, size_t body_len, size_t known, uint16_t minor,
                           struct pdx_error *why)
{
    if (minor > PDXI_PROTO_MINOR && body_len > known && body_len <= PDXI_FRAME_HELLO_MAX)
        return 0;
    return pdxi_frame_len_check(type, body_len, known, why);
}

static int hello_fields_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_hello *f,
                               struct pdx_error *why)
{
    uint16_t kind = pdxi_get_u16(body + 4);
    size_t name_len = pdxi_get_u16(body + 6);
    int rc = hello_len_check(PDXI_FRAME_HELLO, body_len, HELLO_LEN + name_len, f->minor, why);

    if (rc < 0)
        return rc;
    if (kind != PDXI_HELLO_CONTROL && kind != PDXI_HELLO_DATA)
        return pdxi_refuse(why, PDX_EPROTO, "HELLO: kind is %u, expected %d or %d", kind,
                           PDXI_HELLO_CONTROL, PDXI_HELLO_DATA);
    if (kind == PDXI_HELLO_CONTROL && memcmp(body + 52, ticket_none, PDXI_TICKET_LEN) != 0)
        return pdxi_refuse(why, PDX_EPROTO, "HELLO: a control connection with a ticket");
    f->kind = (enum pdxi_hello_kind)kind;
    f->caps = pdxi_get_u32(body + 8);
    f->keepalive_ns = pdxi_get_u64(body + 12);
    memcpy(f->incarnation, body + 20, PDX_INCARNATION_LEN);
    memcpy(f->target, body + 36, PDX_INCARNATION_LEN);
    memcpy(f->ticket, body + 52, PDXI_TICKET_LEN);
    return pdxi_frame_text_decode(PDXI_FRAME_HELLO, "name", body + HELLO_LEN, name_len,
                                  PDX_NAME_MAX, f->name, why);
}

int pdxi_frame_hello_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_hello *ret,
                            struct pdx_error *why)
{
    struct pdxi_frame_hello f = {0};
    int rc = pdxi_frame_fixed_check(PDXI_FRAME_HELLO, body_len, 4, why);

    if (rc < 0)
        return rc;
    f.major = pdxi_get_u16(body);
    f.minor = pdxi_get_u16(body + 2);
    if (f.major == PDXI_PROTO_MAJOR) {
        rc = pdxi_frame_fixed_check(PDXI_FRAME_HELLO, body_len, HELLO_LEN, why);
        if (rc == 0)
            rc = hello_fields_decode(body, body_len, &f, why);
        if (rc < 0)
            return rc;
    }
    *ret = f;
    return 0;
}

/* The codes that can refuse a HELLO. */
static int hello_ack_code_check(int32_t code, struct pdx_error *why)
{
    if (code == PDX_OK || code == PDX_EVERSION || code == PDX_ESTALE || code == PDX_EACCESS ||
        code == PDX_EAGAIN || code == PDX_EPROTO)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "HELLO_ACK: code %d can't be an answer to a HELLO",
                       (int)code);
}

static int hello_ack_fields_decode(const uint8_t *body, size_t body_len,
                                   struct pdxi_frame_hello_ack *f, struct pdx_error *why)
{
    const uint8_t *name = body + HELLO_ACK_LEN;
    size_t name_len = pdxi_get_u16(body + 56);
    size_t text_len = pdxi_get_u16(body + 58);
    int rc = hello_len_check(PDXI_FRAME_HELLO_ACK, body_len, HELLO_ACK_LEN + name_len + text_len,
                             f->minor, why);

    if (rc < 0)
        return rc;
    f->caps = pdxi_get_u32(body + 8);
    f->max_frames = pdxi_get_u32(body + 12);
    f->keepalive_ns = pdxi_get_u64(body + 16);
    memcpy(f->incarnation, body + 24, PDX_INCARNATION_LEN);
    memcpy(f->ticket, body + 40, PDXI_TICKET_LEN);
    if (f->code == PDX_OK && f->max_frames == 0)
        return pdxi_refuse(why, PDX_EPROTO, "HELLO_ACK: max_frames is 0, expected at least 1");
    rc = pdxi_frame_text_decode(PDXI_FRAME_HELLO_ACK, "name", name, name_len, PDX_NAME_MAX, f->name,
                                why);
    if (rc < 0)
        return rc;
    return pdxi_frame_text_decode(PDXI_FRAME_HELLO_ACK, "text", name + name_len, text_len,
                                  PDXI_FRAME_TEXT_MAX, f->text, why);
}

int pdxi_frame_hello_ack_decode(const uint8_t *body, size_t body_len,
                                struct pdxi_frame_hello_ack *ret, struct pdx_error *why)
{
    struct pdxi_frame_hello_ack f = {0};
    int rc = pdxi_frame_fixed_check(PDXI_FRAME_HELLO_ACK, body_len, 8, why);

    if (rc < 0)
        return rc;
    f.major = pdxi_get_u16(body);
    f.minor = pdxi_get_u16(body + 2);
    f.code = (int32_t)pdxi_get_u32(body + 4);
    if (f.major == PDXI_PROTO_MAJOR) {
        rc = pdxi_frame_fixed_check(PDXI_FRAME_HELLO_ACK, body_len, HELLO_ACK_LEN, why);
        if (rc == 0)
            rc = hello_ack_code_check(f.code, why);
        if (rc == 0)
            rc = hello_ack_fields_decode(body, body_len, &f, why);
        if (rc < 0)
            return rc;
    }
    *ret = f;
    return 0;
}

size_t pdxi_frame_ping_encode(uint8_t *buf, enum pdxi_frame_type type,
                              const struct pdxi_frame_ping *f)
{
    pdxi_put_u64(buf + PDXI_FRAME_PREFIX_LEN, f->stamp);
    return pdxi_frame_prefix_encode(buf, type, 8);
}

int pdxi_frame_ping_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ping *ret,
                           struct pdx_error *why)
{
    int rc = pdxi_frame_len_check(PDXI_FRAME_PING, body_len, 8, why);

    if (rc < 0)
        return rc;
    ret->stamp = pdxi_get_u64(body);
    return 0;
}

size_t pdxi_frame_ticket_req_encode(uint8_t *buf)
{
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_TICKET_REQ, 0);
}

size_t pdxi_frame_ticket_encode(uint8_t *buf, const struct pdxi_frame_ticket *f)
{
    memcpy(buf + PDXI_FRAME_PREFIX_LEN, f->ticket, PDXI_TICKET_LEN);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_TICKET, PDXI_TICKET_LEN);
}

int pdxi_frame_ticket_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ticket *ret,
                             struct pdx_error *why)
{
    int rc = pdxi_frame_len_check(PDXI_FRAME_TICKET, body_len, PDXI_TICKET_LEN, why);

    if (rc < 0)
        return rc;
    memcpy(ret->ticket, body, PDXI_TICKET_LEN);
    return 0;
}

size_t pdxi_frame_bye_encode(uint8_t *buf, const struct pdxi_frame_bye *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t text_len = pdxi_utf8_clean(b + BYE_LEN, PDXI_FRAME_TEXT_MAX, f->text);

    pdxi_put_u32(b, (uint32_t)f->code);
    pdxi_put_u16(b + 4, (uint16_t)text_len);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_BYE, BYE_LEN + text_len);
}

int pdxi_frame_bye_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_bye *ret,
                          struct pdx_error *why)
{
    struct pdxi_frame_bye f;
    size_t text_len;
    int rc = pdxi_frame_fixed_check(PDXI_FRAME_BYE, body_len, BYE_LEN, why);

    if (rc < 0)
        return rc;
    f.code = (int32_t)pdxi_get_u32(body);
    text_len = pdxi_get_u16(body + 4);
    rc = pdxi_frame_len_check(PDXI_FRAME_BYE, body_len, BYE_LEN + text_len, why);
    if (rc == 0)
        rc = pdxi_frame_code_check(PDXI_FRAME_BYE, f.code, why);
    if (rc == 0)
        rc = pdxi_frame_text_decode(PDXI_FRAME_BYE, "text", body + BYE_LEN, text_len,
                                    PDXI_FRAME_TEXT_MAX, f.text, why);
    if (rc == 0)
        *ret = f;
    return rc;
}
