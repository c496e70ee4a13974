/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of a data connection. Offsets are into the body.
 *
 *   WRITE, READ  0 u64 xfer          NOTIFY     0 u64 xfer
 *                8 u64 payload                  8 u64 id
 *               16 u64 off                     16 i32 err
 *               24 u32 region_id               20 u16 outcome
 *               28 u32 region_generation       22 u16 payload_len
 *               32 u32 nsegs                   24 u16 text_len
 *               36 u32 zero                    26 payload, text
 *               40 u8[16] key        ERR        0 u64 seq
 *               56 nsegs > 1: table             8 i32 code
 *   BEGIN        0 u64 xfer                    12 u16 text_len
 *                8 u64 id                      14 text
 *   READ_DATA    0 u64 seq           ACK        0 u64 seq
 *                8 u64 payload
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/utf8.h"
#include "engine/proto/frame.h"
#include "engine/proto/frame_field.h"

#include <string.h>

#define DATA_BODY_LEN (PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN)
#define BEGIN_LEN     16
#define NOTIFY_LEN    26
#define READ_DATA_LEN 16
#define ACK_LEN       8
#define ERR_LEN       14

/* Refuses a number that is counted from 1. */
static int frame_number_check(enum pdxi_frame_type type, const char *field, uint64_t v,
                              struct pdx_error *why)
{
    if (v != 0)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "%s: %s is 0, expected at least 1",
                       pdxi_frame_type_name(type), field);
}

static int frame_payload_check(const char *frame, uint64_t payload, struct pdx_error *why)
{
    if (payload >= 1 && payload <= PDXI_FRAME_PAYLOAD_MAX)
        return 0;
    return pdxi_refuse(why, PDX_EPROTO, "%s: a payload of %llu bytes, expected 1 to %llu", frame,
                       (unsigned long long)payload, (unsigned long long)PDXI_FRAME_PAYLOAD_MAX);
}

size_t pdxi_frame_data_encode(uint8_t *buf, enum pdxi_frame_type type,
                              const struct pdxi_frame_data *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t table_len = f->nsegs > 1 ? (size_t)f->nsegs * PDXI_FRAME_SEG_LEN : 0;

    pdxi_put_u64(b, f->xfer);
    pdxi_put_u64(b + 8, f->payload);
    pdxi_put_u64(b + 16, f->nsegs > 1 ? 0 : f->off);
    pdxi_put_u32(b + 24, f->region_id);
    pdxi_put_u32(b + 28, f->region_generation);
    pdxi_put_u32(b + 32, f->nsegs);
    pdxi_put_u32(b + 36, 0);
    memcpy(b + 40, f->key, PDX_KEY_LEN);
    (void)pdxi_frame_prefix_encode(buf, type, DATA_BODY_LEN + table_len);
    return PDXI_FRAME_DATA_LEN;
}

void pdxi_frame_seg_encode(uint8_t *buf, uint64_t off, uint64_t len)
{
    pdxi_put_u64(buf, off);
    pdxi_put_u64(buf + 8, len);
}

struct pdxi_frame_seg pdxi_frame_seg_decode(const uint8_t *table, uint32_t i)
{
    const uint8_t *entry = table + (size_t)i * PDXI_FRAME_SEG_LEN;

    return (struct pdxi_frame_seg){pdxi_get_u64(entry), pdxi_get_u64(entry + 8)};
}

static int data_fields_check(const struct pdxi_frame_data *f, uint32_t reserved, size_t body_len,
                             struct pdx_error *why)
{
    size_t table_len = f->nsegs > 1 ? (size_t)f->nsegs * PDXI_FRAME_SEG_LEN : 0;

    if (f->nsegs < 1 || f->nsegs > PDXI_FRAME_SEGS_MAX)
        return pdxi_refuse(why, PDX_EPROTO, "WRITE or READ: nsegs is %u, expected 1 to %d",
                           f->nsegs, PDXI_FRAME_SEGS_MAX);
    if (body_len != DATA_BODY_LEN + table_len)
        return pdxi_refuse(why, PDX_EPROTO,
                           "WRITE or READ: a body of %zu bytes, nsegs %u needs %zu", body_len,
                           f->nsegs, DATA_BODY_LEN + table_len);
    if (f->xfer == 0)
        return pdxi_refuse(why, PDX_EPROTO, "WRITE or READ: xfer is 0, expected at least 1");
    if (f->nsegs > 1 && f->off != 0)
        return pdxi_refuse(why, PDX_EPROTO, "WRITE or READ: off is %llu beside a table, expected 0",
                           (unsigned long long)f->off);
    if (reserved != 0)
        return pdxi_refuse(why, PDX_EPROTO, "WRITE or READ: bytes 36 to 39 are not 0");
    if (f->payload < f->nsegs)
        return pdxi_refuse(why, PDX_EPROTO,
                           "WRITE or READ: a payload of %llu bytes for %u segments",
                           (unsigned long long)f->payload, f->nsegs);
    return frame_payload_check("WRITE or READ", f->payload, why);
}

int pdxi_frame_data_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_data *ret,
                           struct pdx_error *why)
{
    struct pdxi_frame_data f;
    int rc;

    if (body_len < DATA_BODY_LEN)
        return pdxi_refuse(why, PDX_EPROTO,
                           "WRITE or READ: a body of %zu bytes, expected at least %d", body_len,
                           DATA_BODY_LEN);
    f.xfer = pdxi_get_u64(body);
    f.payload = pdxi_get_u64(body + 8);
    f.off = pdxi_get_u64(body + 16);
    f.region_id = pdxi_get_u32(body + 24);
    f.region_generation = pdxi_get_u32(body + 28);
    f.nsegs = pdxi_get_u32(body + 32);
    memcpy(f.key, body + 40, PDX_KEY_LEN);
    rc = data_fields_check(&f, pdxi_get_u32(body + 36), body_len, why);
    if (rc == 0)
        *ret = f;
    return rc;
}

int pdxi_frame_table_check(const struct pdxi_frame_data *f, const uint8_t *table,
                           uint64_t region_len, struct pdx_error *why)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->nsegs; i++) {
        struct pdxi_frame_seg seg = {f->off, f->payload};

        if (f->nsegs > 1)
            seg = pdxi_frame_seg_decode(table, i);
        if (seg.len == 0)
            return pdxi_refuse(why, PDX_EPROTO, "segment %u of %u is empty", i, f->nsegs);
        if (!pdxi_inside(seg.off, seg.len, region_len))
            return pdxi_refuse(why, PDX_ERANGE,
                               "segment %u of %u, %llu bytes at offset %llu, leaves region %u of "
                               "%llu bytes",
                               i, f->nsegs, (unsigned long long)seg.len,
                               (unsigned long long)seg.off, f->region_id,
                               (unsigned long long)region_len);
        if (seg.len > f->payload - sum)
            return pdxi_refuse(why, PDX_EPROTO,
                               "the first %u of %u segments have more bytes than the payload's "
                               "%llu",
                               i + 1, f->nsegs, (unsigned long long)f->payload);
        sum += seg.len;
    }
    if (sum != f->payload)
        return pdxi_refuse(why, PDX_EPROTO, "the segments have %llu bytes, the payload has %llu",
                           (unsigned long long)sum, (unsigned long long)f->payload);
    return 0;
}

size_t pdxi_frame_begin_encode(uint8_t *buf, const struct pdxi_frame_begin *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;

    pdxi_put_u64(b, f->xfer);
    pdxi_put_u64(b + 8, f->id);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_BEGIN, BEGIN_LEN);
}

int pdxi_frame_begin_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_begin *ret,
                            struct pdx_error *why)
{
    struct pdxi_frame_begin f;
    int rc = pdxi_frame_len_check(PDXI_FRAME_BEGIN, body_len, BEGIN_LEN, why);

    if (rc < 0)
        return rc;
    f.xfer = pdxi_get_u64(body);
    f.id = pdxi_get_u64(body + 8);
    rc = frame_number_check(PDXI_FRAME_BEGIN, "xfer", f.xfer, why);
    if (rc == 0)
        *ret = f;
    return rc;
}

size_t pdxi_frame_notify_encode(uint8_t *buf, const struct pdxi_frame_notify *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t payload_len = f->payload_len < PDX_NOTIFY_MAX ? f->payload_len : PDX_NOTIFY_MAX;
    size_t text_len = pdxi_utf8_clean(b + NOTIFY_LEN + payload_len, PDXI_FRAME_TEXT_MAX, f->text);

    pdxi_put_u64(b, f->xfer);
    pdxi_put_u64(b + 8, f->id);
    pdxi_put_u32(b + 16, (uint32_t)f->err);
    pdxi_put_u16(b + 20, (uint16_t)f->outcome);
    pdxi_put_u16(b + 22, (uint16_t)payload_len);
    pdxi_put_u16(b + 24, (uint16_t)text_len);
    if (payload_len > 0)
        memcpy(b + NOTIFY_LEN, f->payload, payload_len);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_NOTIFY, NOTIFY_LEN + payload_len + text_len);
}

static int notify_outcome_check(uint16_t outcome, int32_t err, uint64_t xfer, struct pdx_error *why)
{
    if (outcome != PDX_INBOUND_DONE && outcome != PDX_INBOUND_FAILED &&
        outcome != PDX_INBOUND_ABORTED)
        return pdxi_refuse(why, PDX_EPROTO, "NOTIFY: outcome is %u, expected %d, %d or %d", outcome,
                           PDX_INBOUND_DONE, PDX_INBOUND_FAILED, PDX_INBOUND_ABORTED);
    if ((outcome == PDX_INBOUND_DONE) != (err == PDX_OK))
        return pdxi_refuse(why, PDX_EPROTO, "NOTIFY: outcome %u with error code %d", outcome,
                           (int)err);
    if (xfer == 0 && outcome != PDX_INBOUND_DONE)
        return pdxi_refuse(why, PDX_EPROTO, "NOTIFY: outcome %u of no transfer (xfer is 0)",
                           outcome);
    return pdxi_frame_code_check(PDXI_FRAME_NOTIFY, err, why);
}

int pdxi_frame_notify_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_notify *ret,
                             struct pdx_error *why)
{
    struct pdxi_frame_notify f;
    size_t text_len;
    uint16_t outcome;
    int rc = pdxi_frame_fixed_check(PDXI_FRAME_NOTIFY, body_len, NOTIFY_LEN, why);

    if (rc < 0)
        return rc;
    f.xfer = pdxi_get_u64(body);
    f.id = pdxi_get_u64(body + 8);
    f.err = (int32_t)pdxi_get_u32(body + 16);
    outcome = pdxi_get_u16(body + 20);
    f.payload_len = pdxi_get_u16(body + 22);
    f.payload = body + NOTIFY_LEN;
    text_len = pdxi_get_u16(body + 24);
    rc = pdxi_frame_len_check(PDXI_FRAME_NOTIFY, body_len, NOTIFY_LEN + f.payload_len + text_len,
                              why);
    if (rc < 0)
        return rc;
    if (f.payload_len > PDX_NOTIFY_MAX)
        return pdxi_refuse(why, PDX_EPROTO, "NOTIFY: a payload of %u bytes, the limit is %d",
                           f.payload_len, PDX_NOTIFY_MAX);
    rc = notify_outcome_check(outcome, f.err, f.xfer, why);
    if (rc < 0)
        return rc;
    f.outcome = (enum pdx_inbound_code)outcome;
    rc = pdxi_frame_text_decode(PDXI_FRAME_NOTIFY, "text", f.payload + f.payload_len, text_len,
                                PDXI_FRAME_TEXT_MAX, f.text, why);
    if (rc == 0)
        *ret = f;
    return rc;
}

size_t pdxi_frame_read_data_encode(uint8_t *buf, const struct pdxi_frame_read_data *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;

    pdxi_put_u64(b, f->seq);
    pdxi_put_u64(b + 8, f->payload);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_READ_DATA, READ_DATA_LEN);
}

int pdxi_frame_read_data_decode(const uint8_t *body, size_t body_len,
                                struct pdxi_frame_read_data *ret, struct pdx_error *why)
{
    struct pdxi_frame_read_data f;
    int rc = pdxi_frame_len_check(PDXI_FRAME_READ_DATA, body_len, READ_DATA_LEN, why);

    if (rc < 0)
        return rc;
    f.seq = pdxi_get_u64(body);
    f.payload = pdxi_get_u64(body + 8);
    rc = frame_number_check(PDXI_FRAME_READ_DATA, "seq", f.seq, why);
    if (rc == 0)
        rc = frame_payload_check("READ_DATA", f.payload, why);
    if (rc == 0)
        *ret = f;
    return rc;
}

size_t pdxi_frame_ack_encode(uint8_t *buf, const struct pdxi_frame_ack *f)
{
    pdxi_put_u64(buf + PDXI_FRAME_PREFIX_LEN, f->seq);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_ACK, ACK_LEN);
}

int pdxi_frame_ack_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ack *ret,
                          struct pdx_error *why)
{
    uint64_t seq;
    int rc = pdxi_frame_len_check(PDXI_FRAME_ACK, body_len, ACK_LEN, why);

    if (rc < 0)
        return rc;
    seq = pdxi_get_u64(body);
    rc = frame_number_check(PDXI_FRAME_ACK, "seq", seq, why);
    if (rc == 0)
        ret->seq = seq;
    return rc;
}

size_t pdxi_frame_err_encode(uint8_t *buf, const struct pdxi_frame_err *f)
{
    uint8_t *b = buf + PDXI_FRAME_PREFIX_LEN;
    size_t text_len = pdxi_utf8_clean(b + ERR_LEN, PDXI_FRAME_TEXT_MAX, f->text);

    pdxi_put_u64(b, f->seq);
    pdxi_put_u32(b + 8, (uint32_t)f->code);
    pdxi_put_u16(b + 12, (uint16_t)text_len);
    return pdxi_frame_prefix_encode(buf, PDXI_FRAME_ERR, ERR_LEN + text_len);
}

int pdxi_frame_err_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_err *ret,
                          struct pdx_error *why)
{
    struct pdxi_frame_err f;
    size_t text_len;
    int rc = pdxi_frame_fixed_check(PDXI_FRAME_ERR, body_len, ERR_LEN, why);

    if (rc < 0)
        return rc;
    f.seq = pdxi_get_u64(body);
    f.code = (int32_t)pdxi_get_u32(body + 8);
    text_len = pdxi_get_u16(body + 12);
    rc = pdxi_frame_len_check(PDXI_FRAME_ERR, body_len, ERR_LEN + text_len, why);
    if (rc == 0)
        rc = frame_number_check(PDXI_FRAME_ERR, "seq", f.seq, why);
    if (rc == 0)
        rc = pdxi_frame_code_check(PDXI_FRAME_ERR, f.code, why);
    if (rc < 0)
        return rc;
    if (f.code == PDX_OK)
        return pdxi_refuse(why, PDX_EPROTO, "ERR: code is 0, expected an error");
    rc = pdxi_frame_text_decode(PDXI_FRAME_ERR, "text", body + ERR_LEN, text_len,
                                PDXI_FRAME_TEXT_MAX, f.text, why);
    if (rc == 0)
        *ret = f;
    return rc;
}
