/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/net/stream.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/pool.h"
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIRECT_MIN (32u << 10) /* shorter rests of a payload go through the staging buffer */
#define TAIL_LEN   (4u << 10)  /* of the staging buffer, behind a payload's end: the next head */
#define RX_SLICE   (2u << 20)  /* bytes received in one turn */
#define TX_SLICE   4           /* batches sent in one turn */
#define TX_BYTES   (8u << 20)  /* bytes sent in one turn */

/* ---- ending ----------------------------------------------------------- */

static struct pdxi_pool *stream_pool(struct pdxi_stream *s)
{
    return &s->reactor->engine->pool;
}

void pdxi_stream_close(struct pdxi_stream *s, bool reset)
{
    if (s->dead)
        return;
    s->dead = true;
    pdxi_io_remove(s->reactor->io, &s->watch);
    if (reset)
        pdxi_sock_reset(s->watch.fd);
    else
        (void)close(s->watch.fd);
    pdxi_turn_remove(&s->turn);
    pdxi_pool_put(stream_pool(s), s->batch);
    pdxi_pool_put(stream_pool(s), s->carry);
    s->batch = NULL;
    s->carry = NULL;
    pdxi_list_add_tail(&s->reactor->graves, &s->grave);
}

void pdxi_stream_farewell(struct pdxi_stream *s, const void *frame, size_t len)
{
    if (!s->dead && !s->connecting && !s->batch)
        (void)send(s->watch.fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The other side, or what it sent, ends the stream. */
static void stream_lose(struct pdxi_stream *s, const struct pdx_error *why)
{
    if (s->dead)
        return;
    /* When this side ends it, what is on its way must not arrive. */
    pdxi_stream_close(s, why->code != PDX_EPEER);
    s->ops->lost(s, why);
}

static void stream_lose_errno(struct pdxi_stream *s, int err)
{
    struct pdx_error why;
    const char *what = err == ECONNRESET || err == EPIPE ? "connection reset by peer"
                       : err == ECONNREFUSED ? "connection refused (nothing listens there)"
                       : err == ETIMEDOUT    ? "the network does not answer"
                                             : strerrordesc_np(err);

    pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER, "%s: %s", s->peer,
                   what ? what : "unknown error");
    stream_lose(s, &why);
}

/* ---- receiving -------------------------------------------------------- */

/* Copies staged payload to where it belongs. Returns how many bytes were payload. */
static size_t stream_place(struct pdxi_stream *s, const uint8_t *buf, size_t len)
{
    struct iovec iov[PDXI_SINK_IOVS];
    size_t n = len < s->payload_left ? len : (size_t)s->payload_left;
    size_t done = 0;

    while (done < n) {
        int niov = s->ops->sink(s, n - done, iov, PDXI_SINK_IOVS);
        size_t step = 0;

        for (int i = 0; i < niov; i++) {
            memcpy(iov[i].iov_base, buf + done + step, iov[i].iov_len);
            step += iov[i].iov_len;
        }
        if (niov == 0)
            step = n - done;
        done += step;
        s->payload_left -= step;
        s->ops->sunk(s, step, s->payload_left);
        if (s->dead)
            break;
    }
    return n;
}

/* Keeps the beginning of a head until its rest arrives. */
static int stream_carry(struct pdxi_stream *s, const uint8_t *buf, size_t len,
                        struct pdx_error *why)
{
    if (!s->carry)
        s->carry = pdxi_pool_get(stream_pool(s), PDXI_FRAME_HEAD_MAX);
    if (!s->carry)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_PEER, "no memory to receive from %s",
                              s->peer);
    memmove(s->carry, buf, len);
    s->carry_len = (uint32_t)len;
    return 0;
}

/* Takes one frame's head from buf. Returns its length, 0 when it is not complete, or an error. */
static int64_t stream_take_head(struct pdxi_stream *s, const uint8_t *buf, size_t len,
                                struct pdx_error *why)
{
    struct pdxi_frame_prefix prefix;
    uint64_t payload = 0;
    int r;

    if (len < PDXI_FRAME_PREFIX_LEN)
        return 0;
    r = pdxi_frame_prefix_decode(buf, &prefix, why);
    if (r < 0)
        return r;
    if (len < PDXI_FRAME_PREFIX_LEN + prefix.body_len)
        return 0;
    pdxi_stat_add(&s->reactor->engine->stats, PDXI_STAT_FRAMES_RECEIVED, 1);
    r = s->ops->frame(s, &prefix, buf + PDXI_FRAME_PREFIX_LEN, &payload, why);
    if (r < 0)
        return r;
    s->payload_left = payload;
    return (int64_t)PDXI_FRAME_PREFIX_LEN + prefix.body_len;
}

/* Works through what is in the staging buffer. */
static void stream_parse(struct pdxi_stream *s, const uint8_t *buf, size_t len)
{
    struct pdx_error why;

    while (len > 0 && !s->dead) {
        int64_t n;

        if (s->payload_left > 0) {
            n = (int64_t)stream_place(s, buf, len);
        } else {
            n = stream_take_head(s, buf, len, &why);
            if (s->dead)
                return;
            if (n == 0)
                n = stream_carry(s, buf, len, &why);
            if (n < 0) {
                stream_lose(s, &why);
                return;
            }
            if (n == 0)
                return;
        }
        buf += n;
        len -= (size_t)n;
    }
}

/* What a receive call said; returns whether to go on. A read shorter than `asked` has emptied the
 * socket, and an edge will tell of more - unless the end was seen already. */
static bool stream_received(struct pdxi_stream *s, ssize_t n, size_t asked)
{
    pdxi_stat_add(&s->reactor->engine->stats, PDXI_STAT_SYSCALLS, 1);
    if (n > 0) {
        s->bytes_in += (uint64_t)n;
        s->last_rx_ns = s->reactor->now_ns;
        if ((size_t)n < asked && !s->ended)
            s->readable = false;
        return true;
    }
    if (n == 0) {
        struct pdx_error why;

        pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER, "%s closed the connection", s->peer);
        stream_lose(s, &why);
    } else if (errno == EAGAIN) {
        s->readable = false;
    } else if (errno == EFAULT && s->payload_left > 0) {
        s->ops->sink_fault(s);
        return true;
    } else if (errno != EINTR) {
        stream_lose_errno(s, errno);
    }
    return false;
}

static void stream_recv_staged(struct pdxi_stream *s)
{
    uint8_t *staging = s->reactor->staging;
    size_t carried = s->carry_len;
    size_t room = PDXI_STAGING_LEN - carried;
    ssize_t n;

    /* A discarded payload is read with the buffer's full length. */
    n = recv(s->watch.fd, staging + carried, room, MSG_DONTWAIT);
    if (!stream_received(s, n, room) || n <= 0)
        return;
    if (carried) {
        memcpy(staging, s->carry, carried);
        s->carry_len = 0;
        pdxi_pool_put(stream_pool(s), s->carry);
        s->carry = NULL;
    }
    stream_parse(s, staging, carried + (size_t)n);
}

/* Receives straight into the sink, and the next head behind a payload's end into the staging
 * buffer. */
static void stream_recv_direct(struct pdxi_stream *s)
{
    struct iovec iov[PDXI_SINK_IOVS + 1];
    struct msghdr msg = {.msg_iov = iov};
    int niov = s->ops->sink(s, s->payload_left, iov, PDXI_SINK_IOVS);
    size_t covered = 0;
    ssize_t n;

    if (niov == 0) {
        stream_recv_staged(s);
        return;
    }
    for (int i = 0; i < niov; i++)
        covered += iov[i].iov_len;
    if (covered == s->payload_left) {
        iov[niov].iov_base = s->reactor->staging;
        iov[niov++].iov_len = TAIL_LEN;
    }
    msg.msg_iovlen = (size_t)niov;
    n = recvmsg(s->watch.fd, &msg, MSG_DONTWAIT);
    /* A short read may also mean memory that cannot be written, so it says nothing here. */
    if (!stream_received(s, n, 0) || n <= 0)
        return;
    if ((size_t)n < covered)
        covered = (size_t)n;
    s->payload_left -= covered;
    s->ops->sunk(s, covered, s->payload_left);
    if (!s->dead && (size_t)n > covered)
        stream_parse(s, s->reactor->staging, (size_t)n - covered);
}

/* A reset means that the other side has given up what is still unread here: it must not be put in
 * place any more. TCP would deliver it first, so the error is asked for before every receive into
 * memory. */
static bool stream_was_reset(struct pdxi_stream *s)
{
    int err = pdxi_sock_error(s->watch.fd);

    pdxi_stat_add(&s->reactor->engine->stats, PDXI_STAT_SYSCALLS, 1);
    if (err)
        stream_lose_errno(s, err);
    return err != 0;
}

static void stream_rx(struct pdxi_stream *s)
{
    uint64_t limit = s->bytes_in + RX_SLICE;

    while (s->readable && !s->dead && s->bytes_in < limit) {
        if (s->ops->sink && stream_was_reset(s))
            return;
        if (s->payload_left >= DIRECT_MIN)
            stream_recv_direct(s);
        else
            stream_recv_staged(s);
    }
}

/* ---- sending ---------------------------------------------------------- */

static bool stream_fill(struct pdxi_stream *s)
{
    struct pdxi_batch *b = s->batch;

    if (!b) {
        b = pdxi_pool_get(stream_pool(s), sizeof *b);
        if (!b)
            return false; /* asked again by the next kick or event */
        s->batch = b;
    }
    pdxi_batch_reset(b);
    s->ops->fill(s, b);
    if (s->dead)
        return false;
    if (b->niov == 0) {
        pdxi_pool_put(stream_pool(s), b);
        s->batch = NULL;
        return false;
    }
    return true;
}

/* Sends the batch. Returns whether all of it has left. */
static bool stream_send(struct pdxi_stream *s)
{
    struct pdxi_batch *b = s->batch;
    struct msghdr msg = {.msg_iov = b->iov + b->first, .msg_iovlen = b->niov - b->first};
    ssize_t n = sendmsg(s->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

    pdxi_stat_add(&s->reactor->engine->stats, PDXI_STAT_SYSCALLS, 1);
    if (n < 0) {
        if (errno == EAGAIN) {
            s->writable = false;
        } else if (errno == EFAULT) {
            struct pdx_error why;

            pdxi_error_set(&why, PDX_EINVAL, PDX_COST_PEER,
                           "memory of a registered region cannot be read: it was unmapped while "
                           "a transfer used it");
            stream_lose(s, &why);
        } else if (errno != EINTR) {
            stream_lose_errno(s, errno);
        }
        return false;
    }
    s->bytes_out += (uint64_t)n;
    return pdxi_batch_advance(b, (size_t)n);
}

static void stream_tx(struct pdxi_stream *s)
{
    uint64_t limit = s->bytes_out + TX_BYTES;

    for (int batches = 0; s->writable && !s->dead && batches < TX_SLICE && s->bytes_out < limit;) {
        if ((!s->batch || s->batch->first == s->batch->niov) && !stream_fill(s))
            return;
        if (!stream_send(s))
            continue;
        batches++;
        if (s->ops->sent)
            s->ops->sent(s);
    }
}

/* ---- events ----------------------------------------------------------- */

static void stream_run(struct pdxi_turn *turn)
{
    struct pdxi_stream *s = pdxi_container_of(turn, struct pdxi_stream, turn);

    if (s->readable)
        stream_rx(s);
    if (!s->dead && s->writable)
        stream_tx(s);
    if (!s->dead && (s->readable || (s->writable && s->batch)))
        pdxi_turn_add(s->reactor, &s->turn);
}

static void stream_on_ready(struct pdxi_watch *watch, unsigned events)
{
    struct pdxi_stream *s = pdxi_container_of(watch, struct pdxi_stream, watch);

    if (events & PDXI_IO_ERROR) {
        int err = pdxi_sock_error(watch->fd);

        if (err) {
            stream_lose_errno(s, err);
            return;
        }
    }
    s->ended |= !s->connecting && (events & (PDXI_IO_ERROR | PDXI_IO_END));
    if (s->connecting) {
        if (!(events & PDXI_IO_WRITE))
            return;
        s->connecting = false;
        s->writable = true;
        s->readable = true;
        s->ops->connected(s);
    } else {
        s->readable |= (events & (PDXI_IO_READ | PDXI_IO_ERROR)) != 0;
        s->writable |= (events & PDXI_IO_WRITE) != 0;
    }
    if (!s->dead)
        pdxi_turn_add(s->reactor, &s->turn);
}

void pdxi_stream_kick(struct pdxi_stream *s)
{
    if (!s->dead && s->writable)
        pdxi_turn_add(s->reactor, &s->turn);
}

int pdxi_stream_open(struct pdxi_reactor *reactor, int fd, bool connecting,
                     const struct pdxi_sockaddr *peer, const struct pdxi_stream_ops *ops,
                     void *owner, struct pdxi_stream **ret_stream, struct pdx_error *why)
{
    struct pdxi_stream *s = calloc(1, sizeof *s);
    int r;

    if (!s) {
        (void)close(fd);
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a connection");
    }
    s->reactor = reactor;
    s->ops = ops;
    s->owner = owner;
    s->connecting = connecting;
    s->last_rx_ns = reactor->now_ns;
    s->watch.fd = fd;
    s->watch.events = PDXI_IO_READ | PDXI_IO_WRITE;
    s->watch.fn = stream_on_ready;
    s->turn.run = stream_run;
    pdxi_list_init(&s->turn.link);
    pdxi_sock_text(peer, s->peer);
    r = pdxi_io_add(reactor->io, &s->watch, why);
    if (r < 0) {
        (void)close(fd);
        free(s);
        return r;
    }
    *ret_stream = s;
    return 0;
}
