/* SPDX-License-Identifier: Apache-2.0
 *
 * The initiator's end of a data connection. Numbered frames that are not
 * answered yet stand in a ring, each with a copy of the cursor from before it:
 * enough to find a read's destinations when its data arrives, and to go on
 * from the first unanswered frame over another connection.
 *
 *      answered        in flight          next
 *   ------------->[ entry entry entry ]--------->
 *               done_seq              next_seq
 */
#ifndef PDXI_TCP_LANE_H
#define PDXI_TCP_LANE_H

#include "engine/lane.h"
#include "engine/net/stream.h"
#include "engine/peer.h"

#define TCP_RING          1024u                /* entries; a power of two */
#define TCP_WINDOW        (UINT64_C(16) << 20) /* payload bytes in flight */
#define TCP_FRAME_PAYLOAD (UINT64_C(1) << 20)
#define TCP_BATCH_PAYLOAD (UINT64_C(2) << 20) /* gathered into one send */
#define TCP_INLINE_MAX    256u                /* shorter payloads are copied behind their head */

struct tcp_entry {
    struct pdx_transfer_status *transfer; /* NULL: a notice of a transfer that has ended */
    struct pdxi_notice *notice;           /* owned, or NULL */
    struct pdxi_cursor cursor;            /* before the frame */
    uint64_t payload;
    uint64_t end; /* of the frame, in bytes of the stream */
    uint32_t nsegs;
    enum pdxi_frame_type type;
    bool data_in; /* READ: its data has arrived */
};

struct tcp_lane {
    struct pdxi_lane base;
    struct pdxi_stream *stream; /* owned */
    struct pdxi_timer opening;
    uint8_t ticket[PDXI_TICKET_LEN];
    uint32_t max_frames;
    bool send_hello;
    bool greeted;
    bool closed;

    struct tcp_entry *ring; /* owned pool block while frames are in flight */
    uint64_t next_seq;      /* of the next numbered frame; the first is 1 */
    uint64_t sent_seq;      /* the frames below it have left the source memory */
    uint64_t done_seq;      /* the last one answered */
    uint64_t window;        /* payload in flight */

    /* READ_DATA that is arriving */
    uint64_t rx_seq;         /* 0: none */
    struct pdx_seg *rx_segs; /* owned pool block: where it goes; NULL: discarded */
    char *rx_base;           /* of the local region */
    uint32_t rx_nsegs;
    uint32_t rx_seg;
    uint64_t rx_off; /* into that segment */
};

static inline struct tcp_entry *tcp_entry(const struct tcp_lane *l, uint64_t seq)
{
    return &l->ring[seq & (TCP_RING - 1)];
}

static inline struct pdx_engine *tcp_engine(const struct tcp_lane *l)
{
    return l->base.peer->engine;
}

/* Puts frames of the active transfers and waiting notices into the batch. */
void tcp_lane_fill(struct tcp_lane *l, struct pdxi_batch *b);

/* Frames from the target. Return 0, or an error that ends the connection as garbage. */
int tcp_lane_on_ack(struct tcp_lane *l, const uint8_t *body, size_t len, struct pdx_error *why);
int tcp_lane_on_err(struct tcp_lane *l, const uint8_t *body, size_t len, struct pdx_error *why);
int tcp_lane_on_read_data(struct tcp_lane *l, const uint8_t *body, size_t len,
                          uint64_t *ret_payload, struct pdx_error *why);
/* Where arriving data goes (see struct pdxi_stream_ops). */
int tcp_lane_sink(struct tcp_lane *l, uint64_t max, struct iovec *iov, int cap);
void tcp_lane_sunk(struct tcp_lane *l, uint64_t n, uint64_t left);
/* Discards what still arrives of the present READ_DATA. */
void tcp_lane_discard(struct tcp_lane *l);

#endif
