/* SPDX-License-Identifier: Apache-2.0
 *
 * The prefix of every frame, and what the codecs of the single frames share.
 */
#include "engine/proto/frame.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "engine/proto/frame_field.h"

#include <string.h>

/* Name and body lengths of a type. Fields may narrow the length down further. */
struct frame_shape {
    const char *name;
    uint32_t min;
    uint32_t max;
};

#define FRAME_DATA_BODY (PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN)

static const struct frame_shape frame_shapes[] = {
    [PDXI_FRAME_HELLO] = {"HELLO", 4, PDXI_FRAME_HELLO_MAX},
    [PDXI_FRAME_HELLO_ACK] = {"HELLO_ACK", 8, PDXI_FRAME_HELLO_MAX},
    [PDXI_FRAME_PING] = {"PING", 8, 8},
    [PDXI_FRAME_PONG] = {"PONG", 8, 8},
    [PDXI_FRAME_TICKET_REQ] = {"TICKET_REQ", 0, 0},
    [PDXI_FRAME_TICKET] = {"TICKET", PDXI_TICKET_LEN, PDXI_TICKET_LEN},
    [PDXI_FRAME_BYE] = {"BYE", 6, 6 + PDXI_FRAME_TEXT_MAX},
    [PDXI_FRAME_WRITE] = {"WRITE", FRAME_DATA_BODY,
                          FRAME_DATA_BODY + PDXI_FRAME_SEGS_MAX *PDXI_FRAME_SEG_LEN},
    [PDXI_FRAME_READ] = {"READ", FRAME_DATA_BODY,
                         FRAME_DATA_BODY + PDXI_FRAME_SEGS_MAX *PDXI_FRAME_SEG_LEN},
    [PDXI_FRAME_BEGIN] = {"BEGIN", 16, 16},
    [PDXI_FRAME_NOTIFY] = {"NOTIFY", 26, 26 + PDX_NOTIFY_MAX + PDXI_FRAME_TEXT_MAX},
    [PDXI_FRAME_READ_DATA] = {"READ_DATA", 16, 16},
    [PDXI_FRAME_ACK] = {"ACK", 8, 8},
    [PDXI_FRAME_ERR] = {"ERR", 14, 14 + PDXI_FRAME_TEXT_MAX},
};

static const struct frame_shape *frame_shape(unsigned type)
{
    static const struct frame_shape unknown = {"?", 0, 0};

    if (type >= sizeof frame_shapes / sizeof frame_shapes[0] || !frame_shapes[type].name)
        return &unknown;
    return &frame_shapes[type];
}

const char *pdxi_frame_type_name(enum pdxi_frame_type type)
{
    return frame_shape(type)->name;
}

int pdxi_frame_prefix_decode(const uint8_t buf[PDXI_FRAME_PREFIX_LEN],
                             struct pdxi_frame_prefix *ret_prefix, struct pdx_error *why)
{
    uint16_t magic = pdxi_get_u16(buf);
    uint32_t body_len = pdxi_get_u32(buf + 4);
    const struct frame_shape *shape = frame_shape(buf[2]);

    if (magic != PDXI_FRAME_MAGIC)
        return pdxi_refuse(why, PDX_EPROTO,
                           "frame: the first bytes are %02x %02x, expected %02x %02x: no pdx peer, "
                           "or a stream that lost its place",
                           buf[0], buf[1], PDXI_FRAME_MAGIC & 0xff, PDXI_FRAME_MAGIC >> 8);
    if (shape->name[0] == '?')
        return pdxi_refuse(why, PDX_EPROTO, "frame: type %u is not known", buf[2]);
    if (body_len < shape->min || body_len > shape->max)
        return pdxi_refuse(why, PDX_EPROTO, "%s: a body of %u bytes, expected %u to %u",
                           shape->name, body_len, shape->min, shape->max);
    ret_prefix->type = (enum pdxi_frame_type)buf[2];
    ret_prefix->flags = buf[3];
    ret_prefix->body_len = body_len;
    return 0;
}

size_t pdxi_frame_prefix_encode(uint8_t *buf, enum pdxi_frame_type type, size_t body_len)
{
    pdxi_put_u16(buf, PDXI_FRAME_MAGIC);
    buf[2] = (uint8_t)type;
    buf[3] = 0;
    pdxi_put_u32(buf + 4, (uint32_t)body_len);
    return PDXI_FRAME_PREFIX_LEN + body_len;
}

int pdxi_frame_fixed_check(enum pdxi_frame_type type, size_t body_len, size_t fixed,
                           struct pdx_error *why)
{
    if (body_len >= fixed)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "%s: a body of %zu bytes, expected at least %zu",
                       pdxi_frame_type_name(type), body_len, fixed);
}

int pdxi_frame_len_check(enum pdxi_frame_type type, size_t body_len, size_t expected,
                         struct pdx_error *why)
{
    if (body_len == expected)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "%s: a body of %zu bytes, its fields need %zu",
                       pdxi_frame_type_name(type), body_len, expected);
}

int pdxi_frame_code_check(enum pdxi_frame_type type, int32_t code, struct pdx_error *why)
{
    if (code <= PDX_OK && code >= PDX_EREMOTE)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "%s: error code %d is not known",
                       pdxi_frame_type_name(type), (int)code);
}

int pdxi_frame_text_decode(enum pdxi_frame_type type, const char *field, const uint8_t *s,
                           size_t len, size_t max, char *ret_text, struct pdx_error *why)
{
    if (len > max)
        return pdxi_refuse(why, PDX_EPROTO, "%s: %s is %zu bytes long, the limit is %zu",
                           pdxi_frame_type_name(type), field, len, max);
    if (!pdxi_utf8_printable(s, len))
        return pdxi_refuse(why, PDX_EPROTO, "%s: %s is not UTF-8 text without control characters",
                           pdxi_frame_type_name(type), field);
    memcpy(ret_text, s, len);
    ret_text[len] = '\0';
    return 0;
}
