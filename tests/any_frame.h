/* SPDX-License-Identifier: Apache-2.0
 *
 * Every frame type behind one pair of functions, for tests and fuzz targets
 * that treat them alike.
 */
#ifndef PDX_TESTS_ANY_FRAME_H
#define PDX_TESTS_ANY_FRAME_H

#include <string.h>

#include "engine/proto/frame.h"

union any_frame {
    struct pdxi_frame_hello hello;
    struct pdxi_frame_hello_ack hello_ack;
    struct pdxi_frame_ping ping;
    struct pdxi_frame_ticket ticket;
    struct pdxi_frame_bye bye;
    struct pdxi_frame_data data;
    struct pdxi_frame_begin begin;
    struct pdxi_frame_notify notify;
    struct pdxi_frame_read_data read_data;
    struct pdxi_frame_ack ack;
    struct pdxi_frame_err err;
};

static inline int any_frame_decode(enum pdxi_frame_type type, const uint8_t *body, size_t len,
                                   union any_frame *ret, struct pdx_error *why)
{
    switch (type) {
    case PDXI_FRAME_HELLO:
        return pdxi_frame_hello_decode(body, len, &ret->hello, why);
    case PDXI_FRAME_HELLO_ACK:
        return pdxi_frame_hello_ack_decode(body, len, &ret->hello_ack, why);
    case PDXI_FRAME_PING:
    case PDXI_FRAME_PONG:
        return pdxi_frame_ping_decode(body, len, &ret->ping, why);
    case PDXI_FRAME_TICKET_REQ: /* has no body: the prefix is all of it */
        return len == 0 ? 0 : PDX_EPROTO;
    case PDXI_FRAME_TICKET:
        return pdxi_frame_ticket_decode(body, len, &ret->ticket, why);
    case PDXI_FRAME_BYE:
        return pdxi_frame_bye_decode(body, len, &ret->bye, why);
    case PDXI_FRAME_WRITE:
    case PDXI_FRAME_READ:
        return pdxi_frame_data_decode(body, len, &ret->data, why);
    case PDXI_FRAME_BEGIN:
        return pdxi_frame_begin_decode(body, len, &ret->begin, why);
    case PDXI_FRAME_NOTIFY:
        return pdxi_frame_notify_decode(body, len, &ret->notify, why);
    case PDXI_FRAME_READ_DATA:
        return pdxi_frame_read_data_decode(body, len, &ret->read_data, why);
    case PDXI_FRAME_ACK:
        return pdxi_frame_ack_decode(body, len, &ret->ack, why);
    case PDXI_FRAME_ERR:
        return pdxi_frame_err_decode(body, len, &ret->err, why);
    }
    return PDX_EPROTO;
}

/* `table`: the entries of a WRITE or READ with more than one segment, as they travel. Returns the
 * length of everything but the payload. */
static inline size_t any_frame_encode(uint8_t *buf, enum pdxi_frame_type type,
                                      const union any_frame *f, const uint8_t *table)
{
    size_t len;

    switch (type) {
    case PDXI_FRAME_HELLO:
        return pdxi_frame_hello_encode(buf, &f->hello);
    case PDXI_FRAME_HELLO_ACK:
        return pdxi_frame_hello_ack_encode(buf, &f->hello_ack);
    case PDXI_FRAME_PING:
    case PDXI_FRAME_PONG:
        return pdxi_frame_ping_encode(buf, type, &f->ping);
    case PDXI_FRAME_TICKET_REQ:
        return pdxi_frame_ticket_req_encode(buf);
    case PDXI_FRAME_TICKET:
        return pdxi_frame_ticket_encode(buf, &f->ticket);
    case PDXI_FRAME_BYE:
        return pdxi_frame_bye_encode(buf, &f->bye);
    case PDXI_FRAME_WRITE:
    case PDXI_FRAME_READ:
        len = pdxi_frame_data_encode(buf, type, &f->data);
        for (uint32_t i = 0; f->data.nsegs > 1 && i < f->data.nsegs; i++) {
            struct pdxi_frame_seg seg = pdxi_frame_seg_decode(table, i);

            pdxi_frame_seg_encode(buf + len, seg.off, seg.len);
            len += PDXI_FRAME_SEG_LEN;
        }
        return len;
    case PDXI_FRAME_BEGIN:
        return pdxi_frame_begin_encode(buf, &f->begin);
    case PDXI_FRAME_NOTIFY:
        return pdxi_frame_notify_encode(buf, &f->notify);
    case PDXI_FRAME_READ_DATA:
        return pdxi_frame_read_data_encode(buf, &f->read_data);
    case PDXI_FRAME_ACK:
        return pdxi_frame_ack_encode(buf, &f->ack);
    case PDXI_FRAME_ERR:
        return pdxi_frame_err_encode(buf, &f->err);
    }
    return 0;
}

#endif
