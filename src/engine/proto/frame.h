/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames of the wire, control and data connections alike. A frame is a
 * prefix of 8 bytes, a body whose length the prefix gives, and for WRITE and
 * READ_DATA a payload whose length the body gives. Everything is
 * little-endian. Decoding never reads past what it was given, allocates
 * nothing and accepts only what encoding can produce; the exceptions are the
 * prefix's flags and `caps`, of which any value passes. doc/wire.md describes the
 * same for other implementations.
 *
 *   0       2     3      4          8
 *   +-------+-----+------+----------+----------- - -
 *   | magic | type| flags| body_len | body ...
 *   +-------+-----+------+----------+----------- - -
 *
 * WRITE, READ and NOTIFY are numbered per connection, from 1, by their order
 * on it; the other side answers each by ACK (cumulative) or ERR.
 *
 * Versions: HELLO and HELLO_ACK begin with major and minor in every version,
 * HELLO_ACK with its code behind them. Of another major version only these
 * are read, and the rest is zero in what decoding returns. With the same major
 * and a higher minor than ours, bytes behind the known body are ignored. All
 * other frames, and these two from a minor not above ours, have exactly the
 * length that their fields say: a peer that speaks a higher minor sends
 * no type, code or length that the lower one does not know.
 */
#ifndef PDXI_PROTO_FRAME_H
#define PDXI_PROTO_FRAME_H

#include <pdx/engine.h>
#include <pdx/error.h>
#include <pdx/region.h>

#define PDXI_FRAME_MAGIC       0x5844 /* "DX" */
#define PDXI_FRAME_PREFIX_LEN  8
#define PDXI_FRAME_DATA_LEN    64   /* prefix and fixed body of WRITE and READ */
#define PDXI_FRAME_SEG_LEN     16   /* one table entry */
#define PDXI_FRAME_SEGS_MAX    1000 /* entries in one table */
#define PDXI_FRAME_PAYLOAD_MAX (UINT64_C(64) << 20)
#define PDXI_FRAME_BODY_MAX    (PDXI_FRAME_DATA_LEN + PDXI_FRAME_SEGS_MAX * PDXI_FRAME_SEG_LEN)
/* Any frame but its payload. */
#define PDXI_FRAME_HEAD_MAX (PDXI_FRAME_PREFIX_LEN + PDXI_FRAME_BODY_MAX)
#define PDXI_FRAME_TEXT_MAX 255 /* bytes of a text, without its terminator */
/* The body of HELLO and HELLO_ACK, with room for later fields. */
#define PDXI_FRAME_HELLO_MAX 1024
#define PDXI_TICKET_LEN      16
#define PDXI_PROTO_MAJOR     1 /* another major version is refused */
#define PDXI_PROTO_MINOR     0 /* a higher minor version only adds what can be ignored */

enum pdxi_frame_type {
    /* control connection */
    PDXI_FRAME_HELLO = 1, /* first frame of every connection, from its initiator */
    PDXI_FRAME_HELLO_ACK, /* the answer; a refusal is followed by close */
    PDXI_FRAME_PING,
    PDXI_FRAME_PONG,
    PDXI_FRAME_TICKET_REQ, /* initiator: one more data connection, please */
    PDXI_FRAME_TICKET,     /* target: join it with this */
    PDXI_FRAME_BYE,        /* either: closing on purpose */
    /* data connection, initiator -> target */
    PDXI_FRAME_WRITE = 16,
    PDXI_FRAME_READ,
    PDXI_FRAME_BEGIN,  /* the frames of transfer `xfer` are tracked under the caller's id */
    PDXI_FRAME_NOTIFY, /* a tracked transfer's end, or a notification alone */
    /* data connection, target -> initiator */
    PDXI_FRAME_READ_DATA = 32,
    PDXI_FRAME_ACK,
    PDXI_FRAME_ERR
};

struct pdxi_frame_prefix {
    enum pdxi_frame_type type;
    uint8_t flags; /* none defined: 0 is sent, any value accepted */
    uint32_t body_len;
};

enum pdxi_hello_kind { PDXI_HELLO_CONTROL = 1, PDXI_HELLO_DATA };

struct pdxi_frame_hello {
    uint16_t major;
    uint16_t minor;
    enum pdxi_hello_kind kind;
    uint32_t caps;                            /* none defined */
    uint8_t incarnation[PDX_INCARNATION_LEN]; /* of the sender */
    uint8_t target[PDX_INCARNATION_LEN];      /* who the sender means to reach */
    uint8_t ticket[PDXI_TICKET_LEN];          /* data connections; else zeroes */
    uint64_t keepalive_ns;
    char name[PDX_NAME_MAX + 1]; /* of the sender; printable UTF-8 without control characters */
};

struct pdxi_frame_hello_ack {
    int32_t
        code; /* 0, or enum pdx_err: EVERSION, ESTALE, EACCESS (ticket), EAGAIN (limit), EPROTO */
    uint16_t major;
    uint16_t minor;
    uint32_t caps;
    uint32_t max_frames; /* numbered frames that may be unanswered on a data connection; at least 1
                            when accepted */
    uint8_t incarnation[PDX_INCARNATION_LEN]; /* of the answering engine */
    uint8_t ticket[PDXI_TICKET_LEN];          /* for the first data connection */
    uint64_t keepalive_ns;
    char name[PDX_NAME_MAX + 1];
    char text[PDXI_FRAME_TEXT_MAX + 1]; /* of a refusal */
};

/* PING and PONG: `stamp` comes back as it was. */
struct pdxi_frame_ping {
    uint64_t stamp;
};

struct pdxi_frame_ticket {
    uint8_t ticket[PDXI_TICKET_LEN];
};

struct pdxi_frame_bye {
    int32_t code;
    char text[PDXI_FRAME_TEXT_MAX + 1];
};

/* WRITE and READ. One segment travels in the header; more follow it as a table of nsegs entries
 * {u64 off, u64 len}. Their lengths add up to `payload`. */
struct pdxi_frame_data {
    uint64_t xfer;    /* the initiator's transfer number, from 1 */
    uint64_t payload; /* bytes; 1 .. PDXI_FRAME_PAYLOAD_MAX */
    uint64_t off;     /* nsegs 1: bytes into the region; else 0 */
    uint32_t region_id;
    uint32_t region_generation;
    uint32_t nsegs; /* 1 .. PDXI_FRAME_SEGS_MAX */
    uint8_t key[PDX_KEY_LEN];
};

struct pdxi_frame_begin {
    uint64_t xfer;
    uint64_t id;
};

/* How a tracked transfer ended at its initiator. */
struct pdxi_frame_notify {
    uint64_t xfer; /* 0: a notification alone, always DONE */
    uint64_t id;
    enum pdx_inbound_code outcome; /* DONE, FAILED or ABORTED */
    int32_t err;                   /* enum pdx_err; 0 for DONE and only for DONE */
    uint16_t payload_len;          /* at most PDX_NOTIFY_MAX */
    const uint8_t *payload;        /* decoding: points into the body */
    char text[PDXI_FRAME_TEXT_MAX + 1];
};

/* Answers to numbered frame `seq`. READ_DATA carries the payload of a READ; its ACK or ERR follows.
 */
struct pdxi_frame_read_data {
    uint64_t seq;
    uint64_t payload;
};

struct pdxi_frame_ack {
    uint64_t seq; /* this one and all before it */
};

struct pdxi_frame_err {
    uint64_t seq; /* this one only; also counts as an ACK of all before it */
    int32_t code;
    char text[PDXI_FRAME_TEXT_MAX + 1];
};

/* "HELLO", "WRITE", ...; "?" for a value that is none. */
const char *pdxi_frame_type_name(enum pdxi_frame_type type);

/* Reads a prefix: magic, a known type, and a body length that this type can have.
 * Returns 0 or PDX_EPROTO with a sentence. */
int pdxi_frame_prefix_decode(const uint8_t buf[PDXI_FRAME_PREFIX_LEN],
                             struct pdxi_frame_prefix *ret_prefix, struct pdx_error *why);

/* Encoders write prefix and body to `buf`, which has room for PDXI_FRAME_HEAD_MAX bytes (fixed-size
 * frames: their size), and return the length written. In names and texts, bytes that are not
 * printable UTF-8 become '?'. */
size_t pdxi_frame_hello_encode(uint8_t *buf, const struct pdxi_frame_hello *f);
size_t pdxi_frame_hello_ack_encode(uint8_t *buf, const struct pdxi_frame_hello_ack *f);
size_t pdxi_frame_ping_encode(uint8_t *buf, enum pdxi_frame_type type,
                              const struct pdxi_frame_ping *f);
size_t pdxi_frame_ticket_req_encode(uint8_t *buf);
size_t pdxi_frame_ticket_encode(uint8_t *buf, const struct pdxi_frame_ticket *f);
size_t pdxi_frame_bye_encode(uint8_t *buf, const struct pdxi_frame_bye *f);
/* Writes the fixed 64 bytes; the caller puts the table behind them with pdxi_frame_seg_encode. */
size_t pdxi_frame_data_encode(uint8_t *buf, enum pdxi_frame_type type,
                              const struct pdxi_frame_data *f);
void pdxi_frame_seg_encode(uint8_t *buf, uint64_t off, uint64_t len);
size_t pdxi_frame_begin_encode(uint8_t *buf, const struct pdxi_frame_begin *f);
size_t pdxi_frame_notify_encode(uint8_t *buf, const struct pdxi_frame_notify *f);
size_t pdxi_frame_read_data_encode(uint8_t *buf, const struct pdxi_frame_read_data *f);
size_t pdxi_frame_ack_encode(uint8_t *buf, const struct pdxi_frame_ack *f);
size_t pdxi_frame_err_encode(uint8_t *buf, const struct pdxi_frame_err *f);

/* Decoders read a body of body_len bytes (behind the prefix). Return 0, or PDX_EPROTO with a
 * sentence that names the frame, the field and its value. */
int pdxi_frame_hello_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_hello *ret,
                            struct pdx_error *why);
int pdxi_frame_hello_ack_decode(const uint8_t *body, size_t body_len,
                                struct pdxi_frame_hello_ack *ret, struct pdx_error *why);
int pdxi_frame_ping_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ping *ret,
                           struct pdx_error *why);
int pdxi_frame_ticket_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ticket *ret,
                             struct pdx_error *why);
int pdxi_frame_bye_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_bye *ret,
                          struct pdx_error *why);
/* Header and table lengths fit together and nsegs and payload are within limits; the entries are
 * checked by pdxi_frame_table_check. */
int pdxi_frame_data_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_data *ret,
                           struct pdx_error *why);
int pdxi_frame_begin_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_begin *ret,
                            struct pdx_error *why);
int pdxi_frame_notify_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_notify *ret,
                             struct pdx_error *why);
int pdxi_frame_read_data_decode(const uint8_t *body, size_t body_len,
                                struct pdxi_frame_read_data *ret, struct pdx_error *why);
int pdxi_frame_ack_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_ack *ret,
                          struct pdx_error *why);
int pdxi_frame_err_decode(const uint8_t *body, size_t body_len, struct pdxi_frame_err *ret,
                          struct pdx_error *why);

/* Entry i of a table. */
struct pdxi_frame_seg {
    uint64_t off;
    uint64_t len;
};
struct pdxi_frame_seg pdxi_frame_seg_decode(const uint8_t *table, uint32_t i);

/* Checks that every segment of a WRITE or READ lies inside a region of region_len bytes, is not
 * empty and that they add up to the payload. `table` is the body behind its fixed part (nsegs > 1).
 * Returns 0; PDX_ERANGE for a segment outside the region; PDX_EPROTO for an empty one or a wrong
 * sum. */
int pdxi_frame_table_check(const struct pdxi_frame_data *f, const uint8_t *table,
                           uint64_t region_len, struct pdx_error *why);

#endif
