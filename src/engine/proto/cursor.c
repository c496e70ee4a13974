/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proto/cursor.h"

#include <assert.h>

/* What one call has taken so far. */
struct cursor_out {
    struct pdx_seg *segs; /* the caller's */
    uint32_t nsegs;
    uint32_t max_segs;
    uint64_t max_seg;
    uint64_t room; /* bytes that may still be taken */
};

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Takes what the limits permit of `len` bytes, and returns how many; they lengthen the last segment
 * where they touch it on both sides. */
static inline uint64_t cursor_take(struct cursor_out *o, uint64_t local, uint64_t remote,
                                   uint64_t len)
{
    uint64_t taken = 0;

    len = least(len, o->room);
    if (o->nsegs > 0) {
        struct pdx_seg *last = &o->segs[o->nsegs - 1];

        if (last->local_off + last->len == local && last->remote_off + last->len == remote) {
            taken = least(len, o->max_seg - last->len);
            last->len += taken;
        }
    }
    while (taken < len && o->nsegs < o->max_segs) {
        uint64_t piece = least(len - taken, o->max_seg);

        o->segs[o->nsegs++] = (struct pdx_seg){local + taken, remote + taken, piece};
        taken += piece;
    }
    o->room -= taken;
    return taken;
}

/* The walks return whether they came to the end of what they walk. */

static bool cursor_walk_segs(const struct pdxi_plan *plan, struct pdxi_cursor *c,
                             struct cursor_out *o)
{
    for (; c->slice < plan->nsegs; c->slice++) {
        const struct pdx_seg *s = &plan->segs[c->slice];
        uint64_t left = s->len - c->off;
        uint64_t taken = cursor_take(o, s->local_off + c->off, s->remote_off + c->off, left);

        if (taken < left) {
            c->off += taken;
            return false;
        }
        c->off = 0;
    }
    return true;
}

/* Whole items of one length on both sides: a run is one piece of memory. */
static bool cursor_walk_runs(const struct pdxi_plan *plan, const struct pdxi_plan_pair *pair,
                             struct pdxi_cursor *c, struct cursor_out *o)
{
    const uint64_t item_len = pair->local_item_len;

    for (; c->run < plan->nruns; c->run++) {
        const struct pdxi_plan_run *run = &plan->runs[c->run];
        uint64_t left = run->count * item_len - c->off;
        uint64_t taken = cursor_take(o, pair->local_base + run->local * item_len + c->off,
                                     pair->remote_base + run->remote * item_len + c->off, left);

        if (taken < left) {
            c->off += taken;
            return false;
        }
        c->off = 0;
    }
    return true;
}

/* `local` and `remote`: where the item starts. */
static inline bool cursor_walk_rows(const struct pdx_slice *s, uint64_t local, uint64_t remote,
                                    struct pdxi_cursor *c, struct cursor_out *o)
{
    local += s->local_off + c->row * s->local_pitch;
    remote += s->remote_off + c->row * s->remote_pitch;
    for (; c->row < s->rows; c->row++) {
        uint64_t left = s->len - c->off;
        uint64_t taken = cursor_take(o, local + c->off, remote + c->off, left);

        if (taken < left) {
            c->off += taken;
            return false;
        }
        c->off = 0;
        local += s->local_pitch;
        remote += s->remote_pitch;
    }
    c->row = 0;
    return true;
}

static bool cursor_walk_items(const struct pdxi_plan *plan, const struct pdxi_plan_pair *pair,
                              struct pdxi_cursor *c, struct cursor_out *o)
{
    const struct pdx_slice *slices = &plan->slices[pair->first_slice];

    for (; c->run < plan->nruns; c->run++, c->item = 0) {
        const struct pdxi_plan_run *run = &plan->runs[c->run];

        for (; c->item < run->count; c->item++, c->slice = 0) {
            uint64_t local =
                pair->local_base + (uint64_t)(run->local + c->item) * pair->local_item_len;
            uint64_t remote =
                pair->remote_base + (uint64_t)(run->remote + c->item) * pair->remote_item_len;

            for (; c->slice < pair->nslices; c->slice++) {
                if (!cursor_walk_rows(&slices[c->slice], local, remote, c, o))
                    return false;
            }
        }
    }
    return true;
}

static bool cursor_whole_items(const struct pdxi_plan *plan, const struct pdxi_plan_pair *pair)
{
    const struct pdx_slice *s = &plan->slices[pair->first_slice];

    /* Inside an item that it fills, a slice can only begin at its start. */
    return pair->nslices == 1 && s->rows == 1 && s->len == pair->local_item_len &&
           s->len == pair->remote_item_len;
}

bool pdxi_cursor_at_end(const struct pdxi_plan *plan, const struct pdxi_cursor *c)
{
    if (plan->segs)
        return c->slice >= plan->nsegs;
    return c->pair >= plan->npairs || plan->nruns == 0;
}

uint32_t pdxi_cursor_next(const struct pdxi_plan *plan, struct pdxi_cursor *c,
                          const struct pdxi_cursor_limits *limits, struct pdx_seg *ret_segs,
                          uint32_t *ret_pair, uint64_t *ret_bytes)
{
    struct cursor_out o = {.segs = ret_segs,
                           .max_segs = limits->max_segs,
                           .max_seg = limits->max_seg,
                           .room = limits->max_bytes};

    assert(limits->max_segs > 0 && limits->max_bytes > 0 && limits->max_seg > 0);
    *ret_pair = c->pair;
    *ret_bytes = 0;
    if (pdxi_cursor_at_end(plan, c))
        return 0;
    if (plan->segs) {
        (void)cursor_walk_segs(plan, c, &o);
    } else {
        const struct pdxi_plan_pair *pair = &plan->pairs[c->pair];

        if (cursor_whole_items(plan, pair) ? cursor_walk_runs(plan, pair, c, &o)
                                           : cursor_walk_items(plan, pair, c, &o))
            *c = (struct pdxi_cursor){.pair = c->pair + 1};
    }
    *ret_bytes = limits->max_bytes - o.room;
    return o.nsegs;
}
