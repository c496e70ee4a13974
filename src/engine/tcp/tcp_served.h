/* SPDX-License-Identifier: Apache-2.0
 *
 * The target's end of a data connection. Every request is checked against the
 * region it names before a byte of it is put in place or sent. Answers leave
 * in the order of the requests; confirmations of writes are merged.
 */
#ifndef PDXI_TCP_SERVED_H
#define PDXI_TCP_SERVED_H

#include "engine/net/stream.h"
#include "engine/session.h"

#define TCP_TRACK_BUCKETS 64u

struct tcp_answer {
    struct pdxi_list link;
    enum pdxi_frame_type type; /* ACK, ERR or READ_DATA */
    uint64_t seq;
    int code;                     /* ERR */
    struct pdx_region *region;    /* READ_DATA */
    struct pdxi_frame_data frame; /* READ_DATA: the request */
    uint8_t *table;               /* owned pool block, or NULL */
    char text[PDXI_FRAME_TEXT_MAX + 1];
};

/* A tracked transfer whose NOTIFY has not come (on this connection). */
struct tcp_track {
    struct pdxi_list link;
    uint64_t xfer;
    uint64_t id;
    bool over; /* the application knows its end: no byte of it is put in place any more */
};

struct tcp_served {
    struct pdxi_served base;
    struct pdxi_stream *stream; /* owned */
    struct pdx_engine *engine;
    struct pdxi_frame_hello_ack ack;
    bool send_hello_ack;
    bool closed;

    uint64_t seq;          /* of the last numbered frame that arrived */
    uint64_t answered_seq; /* all up to it have been answered */
    uint64_t ack_seq;      /* to be confirmed before the answers below; 0: none */
    struct pdxi_list answers;
    const struct pdx_region *read_region; /* the batch being sent refers to its memory; or NULL */
    bool reads_mixed;                     /* and to that of others */

    struct pdxi_list tracks[TCP_TRACK_BUCKETS];
    uint32_t ntracks;

    /* the WRITE that is arriving */
    struct pdx_region *rx_region; /* NULL: its payload is discarded */
    bool rx_over;                 /* and confirmed all the same: its transfer is over */
    struct pdxi_frame_data rx;
    uint8_t *rx_table; /* owned pool block, or NULL */
    uint32_t rx_seg;
    uint64_t rx_off;
    struct pdx_error rx_why; /* why it is discarded */
};

/* Segment i of a request: in the header, or in the table. */
static inline struct pdxi_frame_seg tcp_seg(const struct pdxi_frame_data *f, const uint8_t *table,
                                            uint32_t i)
{
    if (f->nsegs == 1)
        return (struct pdxi_frame_seg){.off = f->off, .len = f->payload};
    return pdxi_frame_seg_decode(table, i);
}

/* Ends the connection from this side. */
void tcp_served_end(struct tcp_served *v, const struct pdx_error *why);

/* Answers, in order (tcp_answer.c). */
void tcp_answer_ack(struct tcp_served *v, uint64_t seq);
void tcp_answer_err(struct tcp_served *v, uint64_t seq, const struct pdx_error *why);
/* Takes over `table`. Returns 0 or PDX_ENOMEM. */
int tcp_answer_read(struct tcp_served *v, uint64_t seq, struct pdx_region *region,
                    const struct pdxi_frame_data *f, uint8_t *table);
void tcp_answer_fill(struct tcp_served *v, struct pdxi_batch *b);
void tcp_answer_drop_all(struct tcp_served *v);

/* Tracked transfers (tcp_track.c). */
void tcp_track_init(struct tcp_served *v);
int tcp_track_begin(struct tcp_served *v, const struct pdxi_frame_begin *f, struct pdx_error *why);
bool tcp_track_is_over(struct tcp_served *v, uint64_t xfer);
void tcp_track_bytes(struct tcp_served *v, uint64_t xfer, uint64_t bytes);
/* Calls the application's hook, which may close the connection. */
void tcp_track_fail(struct tcp_served *v, uint64_t xfer, const struct pdx_error *why);
int tcp_track_notify(struct tcp_served *v, const struct pdxi_frame_notify *f,
                     struct pdx_error *why);
void tcp_track_drop_all(struct tcp_served *v);

#endif
