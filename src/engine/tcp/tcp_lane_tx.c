/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the frames of a lane: one frame of each active transfer in turn, so
 * that a small transfer is not behind a large one, gathered into batches.
 */
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/region.h"
#include "engine/tcp/tcp_lane.h"

#include <string.h>

#define PAGE            4096u
#define BATCH_IOVS_MIN  4u /* with fewer left the batch is sent first */
#define BATCH_ARENA_MIN (PDXI_FRAME_DATA_LEN + 64 * PDXI_FRAME_SEG_LEN)
#define NOTIFY_HEAD_MAX (PDXI_FRAME_PREFIX_LEN + 64 + PDXI_FRAME_TEXT_MAX + PDX_NOTIFY_MAX)
#define FRAMES_HEAD_MAX (PDXI_FRAME_DATA_LEN + NOTIFY_HEAD_MAX) /* a BEGIN before the NOTIFY */

static bool tx_has_room(struct tcp_lane *l, struct pdxi_batch *b)
{
    if (l->next_seq - l->done_seq - 1 >= l->max_frames || l->window >= TCP_WINDOW)
        return false;
    if (b->bytes >= TCP_BATCH_PAYLOAD || PDXI_BATCH_IOVS - b->niov < BATCH_IOVS_MIN)
        return false;
    if (PDXI_BATCH_ARENA - b->arena_len < BATCH_ARENA_MIN)
        return false;
    if (!l->ring)
        l->ring = pdxi_pool_get(&tcp_engine(l)->pool, TCP_RING * sizeof *l->ring);
    return l->ring != NULL;
}

/* Enters a numbered frame, complete in the batch, into the ring. */
static void tx_enter(struct tcp_lane *l, const struct pdxi_batch *b, struct pdx_transfer_status *t,
                     enum pdxi_frame_type type, const struct pdxi_cursor *before, uint64_t payload,
                     uint32_t nsegs)
{
    uint64_t now_ns = tcp_engine(l)->reactor.now_ns;
    struct tcp_entry *e = tcp_entry(l, l->next_seq++);

    e->transfer = t;
    e->notice = NULL;
    e->cursor = *before;
    e->payload = payload;
    e->end = l->stream->bytes_out + b->total;
    e->nsegs = nsegs;
    e->type = type;
    e->data_in = false;
    l->window += payload;
    pdxi_stat_add(&tcp_engine(l)->stats, PDXI_STAT_FRAMES_SENT, 1);
    if (!t)
        return;
    if (atomic_load_explicit(&t->first_post_ns, memory_order_relaxed) == 0) {
        atomic_store_explicit(&t->first_post_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&t->lane_name, l->base.ops->name, memory_order_relaxed);
    }
    atomic_store_explicit(&t->last_post_ns, now_ns, memory_order_relaxed);
    pdxi_count(&t->frames, 1);
    pdxi_count(&t->segments, nsegs);
    pdxi_transfer_event(t, PDXI_EV_ISSUED, NULL);
}

/* Payload of a WRITE: tiny ones behind their head, others by reference. The first line of every
 * page is fetched ahead, which hides the TLB miss of scattered pages from the copy in the kernel.
 */
static void tx_payload(struct pdxi_batch *b, const char *base, const struct pdx_seg *segs,
                       uint32_t nsegs, uint64_t payload)
{
    if (payload <= TCP_INLINE_MAX) {
        uint8_t *at = pdxi_batch_room(b, (uint32_t)payload);
        uint32_t len = 0;

        if (at) {
            for (uint32_t i = 0; i < nsegs; i++) {
                memcpy(at + len, base + segs[i].local_off, segs[i].len);
                len += (uint32_t)segs[i].len;
            }
            pdxi_batch_commit(b, len);
            return;
        }
    }
    for (uint32_t i = 0; i < nsegs; i++) {
        const char *from = base + segs[i].local_off;

        if (segs[i].len <= 4 * PAGE)
            __builtin_prefetch(from, 0, 2);
        pdxi_batch_refer(b, from, segs[i].len);
    }
}

static void tx_head(struct pdxi_batch *b, struct pdx_transfer_status *t, enum pdxi_frame_type type,
                    uint32_t pair, const struct pdx_seg *segs, uint32_t nsegs, uint64_t payload)
{
    const struct pdx_remote *remote = pdxi_transfer_remote(t, pair);
    uint32_t table = nsegs > 1 ? nsegs * PDXI_FRAME_SEG_LEN : 0;
    uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_DATA_LEN + table);
    struct pdxi_frame_data f = {
        .xfer = t->number,
        .payload = payload,
        .off = nsegs == 1 ? segs[0].remote_off : 0,
        .region_id = remote->id,
        .region_generation = remote->generation,
        .nsegs = nsegs,
    };

    memcpy(f.key, remote->key, sizeof f.key);
    (void)pdxi_frame_data_encode(buf, type, &f);
    for (uint32_t i = 0; table && i < nsegs; i++)
        pdxi_frame_seg_encode(buf + PDXI_FRAME_DATA_LEN + i * PDXI_FRAME_SEG_LEN,
                              segs[i].remote_off, segs[i].len);
    pdxi_batch_commit(b, PDXI_FRAME_DATA_LEN + table);
}

/* One WRITE or READ with as many segments as there is room for. */
static void tx_data(struct tcp_lane *l, struct pdxi_batch *b, struct pdx_transfer_status *t)
{
    struct pdx_seg segs[PDXI_FRAME_SEGS_MAX];
    struct pdxi_cursor before = t->cursor;
    uint32_t iovs = PDXI_BATCH_IOVS - b->niov - 2;
    uint32_t table = (PDXI_BATCH_ARENA - b->arena_len - PDXI_FRAME_DATA_LEN) / PDXI_FRAME_SEG_LEN;
    struct pdxi_cursor_limits limits = {
        .max_segs = PDXI_FRAME_SEGS_MAX,
        .max_bytes = TCP_FRAME_PAYLOAD,
        .max_seg = TCP_FRAME_PAYLOAD,
    };
    enum pdxi_frame_type type = t->op == PDX_WRITE ? PDXI_FRAME_WRITE : PDXI_FRAME_READ;
    const struct pdx_region *local;
    uint64_t payload;
    uint32_t nsegs;
    uint32_t pair;

    if (limits.max_segs > table)
        limits.max_segs = table;
    if (limits.max_segs > iovs && type == PDXI_FRAME_WRITE)
        limits.max_segs = iovs;
    if (limits.max_bytes > TCP_WINDOW - l->window)
        limits.max_bytes = TCP_WINDOW - l->window;
    nsegs = pdxi_cursor_next(&t->plan, &t->cursor, &limits, segs, &pair, &payload);
    local = pdxi_transfer_local(t, pair);
    tx_head(b, t, type, pair, segs, nsegs, payload);
    if (type == PDXI_FRAME_WRITE)
        tx_payload(b, local->ptr, segs, nsegs, payload);
    pdxi_stat_add(&tcp_engine(l)->stats, PDXI_STAT_SEGMENTS, nsegs);
    pdxi_count(&l->base.peer->tcp.segments, nsegs);
    tx_enter(l, b, t, type, &before, payload, nsegs);
}

static void tx_begin(struct pdxi_batch *b, struct pdx_transfer_status *t)
{
    struct pdxi_frame_begin f = {.xfer = t->number, .id = t->id};
    uint8_t *buf = pdxi_batch_room(b, PDXI_FRAME_DATA_LEN);

    pdxi_batch_commit(b, (uint32_t)pdxi_frame_begin_encode(buf, &f));
    t->began = true;
}

static void tx_notify(struct tcp_lane *l, struct pdxi_batch *b, struct pdx_transfer_status *t)
{
    struct pdxi_frame_notify f = {
        .xfer = t->number,
        .id = t->id,
        .outcome = PDX_INBOUND_DONE,
        .payload = t->notify,
        .payload_len = (uint16_t)t->notify_len,
    };
    uint8_t *buf = pdxi_batch_room(b, NOTIFY_HEAD_MAX);

    pdxi_batch_commit(b, (uint32_t)pdxi_frame_notify_encode(buf, &f));
    t->notified = true;
    tx_enter(l, b, t, PDXI_FRAME_NOTIFY, &t->cursor, 0, 0);
}

static void tx_park(struct tcp_lane *l, struct pdx_transfer_status *t)
{
    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&l->base.waiting, &t->link);
}

/* One frame of a transfer, and where the transfer stands next. */
static void tx_transfer(struct tcp_lane *l, struct pdxi_batch *b, struct pdx_transfer_status *t)
{
    bool at_end = pdxi_cursor_at_end(&t->plan, &t->cursor);

    if (t->tracked && !t->began)
        tx_begin(b, t);
    if (!at_end) {
        tx_data(l, b, t);
        at_end = pdxi_cursor_at_end(&t->plan, &t->cursor);
    } else if (t->tracked && !t->notified) {
        /* The target is told that it was read only when all of it has arrived here. */
        if (t->op == PDX_READ && t->step.inflight > 0) {
            tx_park(l, t);
            return;
        }
        tx_notify(l, b, t);
    }
    pdxi_list_remove(&t->link);
    pdxi_list_add_tail(&l->base.active, &t->link);
    if (at_end && (!t->tracked || t->notified)) {
        tx_park(l, t);
        pdxi_transfer_event(t, PDXI_EV_EXHAUSTED, NULL);
    }
}

/* Ends of tracked transfers that the target has not heard of. */
static void tx_notice(struct tcp_lane *l, struct pdxi_batch *b)
{
    struct pdxi_list *first = pdxi_list_first(&l->base.peer->notices);
    struct pdxi_notice *n = pdxi_container_of(first, struct pdxi_notice, link);
    uint8_t *buf = pdxi_batch_room(b, NOTIFY_HEAD_MAX);
    struct pdxi_cursor none;

    pdxi_batch_commit(b, (uint32_t)pdxi_frame_notify_encode(buf, &n->frame));
    pdxi_cursor_init(&none);
    tx_enter(l, b, NULL, PDXI_FRAME_NOTIFY, &none, 0, 0);
    tcp_entry(l, l->next_seq - 1)->notice = n;
    pdxi_list_remove(&n->link);
}

void tcp_lane_fill(struct tcp_lane *l, struct pdxi_batch *b)
{
    while (tx_has_room(l, b)) {
        struct pdxi_list *first;

        if (!pdxi_list_empty(&l->base.peer->notices)) {
            if (PDXI_BATCH_ARENA - b->arena_len < NOTIFY_HEAD_MAX)
                return;
            tx_notice(l, b);
            continue;
        }
        first = pdxi_list_first(&l->base.active);
        if (!first || PDXI_BATCH_ARENA - b->arena_len < FRAMES_HEAD_MAX)
            return;
        tx_transfer(l, b, pdxi_container_of(first, struct pdx_transfer_status, link));
    }
}
