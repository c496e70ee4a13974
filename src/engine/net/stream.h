/* SPDX-License-Identifier: Apache-2.0
 *
 * One TCP connection that carries frames, control and data alike. The stream
 * owns the socket, cuts what arrives into frames and payload, and sends what
 * its owner puts into batches. The owner gets six hooks.
 *
 * Receiving: heads (prefix and body) and short payloads go through the
 * reactor's staging buffer; long payloads are received straight into the
 * memory that the owner names. Sending: a batch gathers heads and payload of
 * many frames and is sent with as few system calls as the socket takes.
 *
 * Between two calls of the reactor nothing in the kernel refers to the
 * caller's memory: what was sent has been copied, what arrives waits in the
 * socket. Closing the socket is therefore all it takes to be quiet.
 */
#ifndef PDXI_NET_STREAM_H
#define PDXI_NET_STREAM_H

#include "engine/net/batch.h"
#include "engine/net/sock.h"
#include "engine/proto/frame.h"
#include "engine/reactor.h"

struct pdxi_stream;

#define PDXI_SINK_IOVS   128
#define PDXI_STAGING_LEN (256u << 10)

struct pdxi_stream_ops {
    /* A frame has arrived. *ret_payload (0 on entry) gets the bytes of payload that follow it.
     * Returns 0, or an error that closes the stream as garbage. */
    int (*frame)(struct pdxi_stream *s, const struct pdxi_frame_prefix *prefix, const uint8_t *body,
                 uint64_t *ret_payload, struct pdx_error *why);
    /* Where the next payload bytes go: at most `cap` iovs and `max` bytes. 0: they are discarded.
     * NULL for streams without payload. */
    int (*sink)(struct pdxi_stream *s, uint64_t max, struct iovec *iov, int cap);
    /* `n` bytes of payload are in place, or discarded; `left` more follow. */
    void (*sunk)(struct pdxi_stream *s, uint64_t n, uint64_t left);
    /* The memory of the sink cannot be written (EFAULT): discard from now on. */
    void (*sink_fault)(struct pdxi_stream *s);
    /* Puts what there is to send into the empty batch. */
    void (*fill)(struct pdxi_stream *s, struct pdxi_batch *b);
    /* The batch has left. May be NULL. */
    void (*sent)(struct pdxi_stream *s);
    /* A connection on its way is established. NULL for accepted ones. */
    void (*connected)(struct pdxi_stream *s);
    /* The stream has closed itself: the other side ended it (PDX_EPEER), or it broke the protocol
     * (PDX_EPROTO). */
    void (*lost)(struct pdxi_stream *s, const struct pdx_error *why);
    /* The last call: the owner may free itself. The stream frees its own memory afterwards. */
    void (*gone)(struct pdxi_stream *s);
};

struct pdxi_stream {
    struct pdxi_reactor *reactor;
    const struct pdxi_stream_ops *ops; /* ops and owner may be replaced inside `frame` */
    void *owner;
    struct pdxi_watch watch;
    struct pdxi_turn turn;
    struct pdxi_list grave;
    uint64_t payload_left;
    uint64_t last_rx_ns;
    uint8_t *carry; /* owned: the beginning of a head */
    uint32_t carry_len;
    bool connecting;
    bool readable;
    bool writable;
    bool ended; /* the other side will send nothing more */
    bool dead;
    struct pdxi_batch *batch;  /* owned: being sent */
    char peer[PDXI_SOCK_TEXT]; /* the other side's address, for texts */
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* Takes over `fd`; `peer` is the other side's address. Returns 0, or an error with the descriptor
 * closed; then no hook is called. */
int pdxi_stream_open(struct pdxi_reactor *reactor, int fd, bool connecting,
                     const struct pdxi_sockaddr *peer, const struct pdxi_stream_ops *ops,
                     void *owner, struct pdxi_stream **ret_stream, struct pdx_error *why);

/* There is something to send: `fill` will be asked. */
void pdxi_stream_kick(struct pdxi_stream *s);

/* Sends a last small frame if that is possible at once; the caller closes afterwards. */
void pdxi_stream_farewell(struct pdxi_stream *s, const void *frame, size_t len);

/* Closes the socket. After return no memory of the owner's payload is touched and no hook but
 * `gone` is called. With `reset` unread data of ours does not reach the other side. Idempotent. */
void pdxi_stream_close(struct pdxi_stream *s, bool reset);

#endif
