/* SPDX-License-Identifier: Apache-2.0
 *
 * Ties the frames of tracked transfers to their inbound records.
 */
#include "base/clock.h"
#include "base/error.h"
#include "engine/engine.h"
#include "engine/tcp/tcp_served.h"

#include <string.h>

void tcp_track_init(struct tcp_served *v)
{
    for (uint32_t i = 0; i < TCP_TRACK_BUCKETS; i++)
        pdxi_list_init(&v->tracks[i]);
}

static struct tcp_track *track_find(struct tcp_served *v, uint64_t xfer)
{
    struct pdxi_list *bucket = &v->tracks[xfer % TCP_TRACK_BUCKETS];
    struct pdxi_list *pos;

    if (v->ntracks == 0)
        return NULL;
    pdxi_list_for_each (pos, bucket) {
        struct tcp_track *t = pdxi_container_of(pos, struct tcp_track, link);

        if (t->xfer == xfer)
            return t;
    }
    return NULL;
}

static void track_remove(struct tcp_served *v, struct tcp_track *t)
{
    pdxi_list_remove(&t->link);
    pdxi_pool_put(&v->engine->pool, t);
    v->ntracks--;
}

static int track_begin_record(struct tcp_served *v, uint64_t xfer, uint64_t id)
{
    return pdxi_inbound_begin(&v->engine->inbound, v->base.session->incarnation,
                              v->base.session->name, xfer, id, pdxi_now_ns());
}

/* Without room for a record the transfer goes on untracked; its NOTIFY is refused. */
int tcp_track_begin(struct tcp_served *v, const struct pdxi_frame_begin *f, struct pdx_error *why)
{
    struct tcp_track *t = track_find(v, f->xfer);
    bool over = pdxi_session_heard(v->base.session, f->xfer);

    if (t)
        return 0;
    if (!over &&
        (v->ntracks >= v->engine->inbound.max || track_begin_record(v, f->xfer, f->id) < 0))
        return 0;
    t = pdxi_pool_get(&v->engine->pool, sizeof *t);
    if (!t)
        return pdxi_error_set(why, PDX_ENOMEM, PDX_COST_PEER, "no memory to track a transfer");
    t->xfer = f->xfer;
    t->id = f->id;
    t->over = over;
    pdxi_list_add_tail(&v->tracks[f->xfer % TCP_TRACK_BUCKETS], &t->link);
    v->ntracks++;
    return 0;
}

bool tcp_track_is_over(struct tcp_served *v, uint64_t xfer)
{
    const struct tcp_track *t = track_find(v, xfer);

    return t && t->over;
}

void tcp_track_bytes(struct tcp_served *v, uint64_t xfer, uint64_t bytes)
{
    struct tcp_track *t = track_find(v, xfer);

    if (t)
        pdxi_inbound_add_bytes(&v->engine->inbound, v->base.session->incarnation, t->id, bytes);
}

/* Final at once, so that the DONE which the initiator may have sent already does not count. */
void tcp_track_fail(struct tcp_served *v, uint64_t xfer, const struct pdx_error *why)
{
    struct tcp_track *t = track_find(v, xfer);

    if (!t || t->over)
        return;
    t->over = true;
    pdxi_session_inbound_end(v->base.session, t->id, PDX_INBOUND_FAILED, why->code, why->text, NULL,
                             0);
}

int tcp_track_notify(struct tcp_served *v, const struct pdxi_frame_notify *f, struct pdx_error *why)
{
    struct tcp_track *t = track_find(v, f->xfer);
    int r = PDX_EAGAIN;

    if (pdxi_session_heard(v->base.session, f->xfer)) {
        if (t)
            track_remove(v, t);
        return 0;
    }
    /* An untracked transfer may have been refused a frame: nobody knows whether it is DONE. */
    if (t || f->xfer == 0 || f->outcome != PDX_INBOUND_DONE)
        r = track_begin_record(v, f->xfer, f->id); /* a tracked transfer has one */
    if (t)
        track_remove(v, t);
    if (r < 0)
        return pdxi_error_set(why, r, PDX_COST_TRANSFER,
                              "the target has no room for one more inbound record (its option "
                              "max_inbound is %u)",
                              v->engine->inbound.max);
    pdxi_session_hear(v->base.session, f->xfer);
    pdxi_session_inbound_end(v->base.session, f->id, f->outcome, f->err, f->text, f->payload,
                             f->payload_len);
    return 0;
}

void tcp_track_drop_all(struct tcp_served *v)
{
    for (uint32_t i = 0; i < TCP_TRACK_BUCKETS; i++) {
        while (!pdxi_list_empty(&v->tracks[i]))
            track_remove(v, pdxi_container_of(v->tracks[i].next, struct tcp_track, link));
    }
}
