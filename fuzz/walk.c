/* SPDX-License-Identifier: Apache-2.0
 *
 * See walk.h.
 */
#include "walk.h"

#include "base/check.h"
#include "fuzz.h"

/* Slices, rows and units of one submission that are looked at one by one. */
#define LOOKS_MAX 65536

/* A pair of the job, and which tensors it is. */
struct walk_pair {
    const struct walk_part *part;
    const struct pdx_job *job;
    const struct pdx_pair *pair;
    const struct pdxi_tensor *local;
    const struct pdxi_tensor *remote;
    uint32_t local_region; /* ids */
    uint32_t remote_region;
};

void walk_init(struct walk *w)
{
    w->n = 0;
    w->full = false;
    w->own = false;
    w->bytes = 0;
}

bool walk_is_ring(const struct walk_part *part)
{
    return part->type && (part->type->flags & PDX_STATE_RING_SPAN);
}

const struct pdxi_tensor *walk_tensor_at(const struct pdx_layout *l, const struct pdxi_tensors *t,
                                         uint32_t region, uint64_t off)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (l->regions[t->at[i].region].remote.id == region && t->at[i].off == off)
            return &t->at[i];
    return NULL;
}

/* How many tensors of the same kind and layer stand before it. */
static uint32_t tensor_before(const struct pdxi_tensors *list, const struct pdxi_tensor *t)
{
    uint32_t n = 0;

    for (const struct pdxi_tensor *o = list->at; o < t; o++)
        n += o->part == t->part && o->number == t->number &&
             (o->flags & PDX_TENSOR_DRAFT) == (t->flags & PDX_TENSOR_DRAFT);
    return n;
}

static bool is_aux(const struct walk_part *part)
{
    return !part->kv && !part->component;
}

const struct pdxi_tensor *walk_counterpart(const struct walk_part *part,
                                           const struct pdxi_tensors *list,
                                           const struct pdxi_tensor *t,
                                           const struct pdxi_tensors *other)
{
    if (is_aux(part))
        return t - list->at < other->n ? other->at + (t - list->at) : NULL;
    for (uint32_t i = 0; i < other->n; i++) {
        const struct pdxi_tensor *o = &other->at[i];

        if (o->part == t->part && o->number == t->number &&
            (o->flags & PDX_TENSOR_DRAFT) == (t->flags & PDX_TENSOR_DRAFT) &&
            tensor_before(other, o) == tensor_before(list, t))
            return o;
    }
    return NULL;
}

static void pair_find(struct walk_pair *p, const struct walk_part *part, const struct pdx_job *job,
                      size_t i)
{
    *p = (struct walk_pair){.part = part, .job = job, .pair = &job->pairs[i]};
    p->local_region = recorder_region_id(p->pair->local);
    p->remote_region = p->pair->remote->id;
    p->local =
        walk_tensor_at(part->local_layout, &part->local, p->local_region, p->pair->local_base);
    p->remote =
        walk_tensor_at(part->remote_layout, &part->remote, p->remote_region, p->pair->remote_base);
    FUZZ_CHECK(p->local && p->remote);
    FUZZ_CHECK(p->pair->local_len <= p->local->len && p->pair->remote_len <= p->remote->len);
    FUZZ_CHECK(walk_counterpart(part, &part->local, p->local, &part->remote) == p->remote);
}

/* The bytes of a tensor that an entry of a list names. */
static void item_range(const struct walk_part *part, const struct pdxi_tensor *t,
                       const struct walk_item *item, uint64_t *ret_off, uint64_t *ret_len)
{
    FUZZ_CHECK(item->item >= 0 && (uint64_t)item->item < pdxi_tensor_items(t));
    *ret_off = (uint64_t)item->item * t->stride;
    *ret_len = t->item_len;
    if (!walk_is_ring(part))
        return;
    FUZZ_CHECK(item->entry < t->outer);
    *ret_len = t->item_len / t->outer;
    *ret_off += item->entry * *ret_len;
}

static void walk_add(struct walk *w, const struct walk_pair *p, uint64_t src, uint64_t dst,
                     uint64_t len)
{
    FUZZ_CHECK(pdxi_add_u64(w->bytes, len, &w->bytes));
    if (w->n == WALK_PIECES_MAX) {
        w->full = true;
        return;
    }
    w->pieces[w->n++] = (struct walk_piece){.local_region = p->local_region,
                                            .remote_region = p->remote_region,
                                            .src = p->local->off + src,
                                            .dst = p->remote->off + dst,
                                            .len = len};
}

/* Whether `rows` runs of `len` bytes stay in [begin, begin + room). */
static bool rows_inside(uint64_t at, uint64_t len, uint64_t rows, uint64_t pitch, uint64_t begin,
                        uint64_t room)
{
    uint64_t last;

    return len > 0 && rows > 0 && at >= begin && pdxi_mul_u64(rows - 1, pitch, &last) &&
           pdxi_add_u64(last, at - begin, &last) && pdxi_inside(last, len, room) &&
           (rows == 1 || pitch >= len);
}

/* One slice of one item. `local` and `remote`: as the job numbers its items. */
static void walk_slice(struct walk *w, const struct walk_pair *p, const struct pdx_slice *s,
                       int32_t local, int32_t remote, const struct walk_item *src,
                       const struct walk_item *dst)
{
    uint64_t from = (uint64_t)local * p->pair->local_item_len + s->local_off;
    uint64_t to = (uint64_t)remote * p->pair->remote_item_len + s->remote_off;
    uint64_t begin, room;

    item_range(p->part, p->local, src, &begin, &room);
    FUZZ_CHECK(rows_inside(from, s->len, s->rows, s->local_pitch, begin, room));
    item_range(p->part, p->remote, dst, &begin, &room);
    FUZZ_CHECK(rows_inside(to, s->len, s->rows, s->remote_pitch, begin, room));
    if (s->rows > WALK_PIECES_MAX) {
        w->full = true;
        FUZZ_CHECK(pdxi_add_u64(w->bytes, s->rows * s->len, &w->bytes));
        return;
    }
    for (uint64_t row = 0; row < s->rows; row++)
        walk_add(w, p, from + row * s->local_pitch, to + row * s->remote_pitch, s->len);
}

/* The split axis of a pair, where both layouts tell one. */
struct walk_axis {
    uint64_t widths[64]; /* of its blocks, in the unsplit model */
    uint32_t nblocks;
    uint64_t rows;
    uint64_t unit_len;
};

static uint64_t axis_units(uint64_t total, uint32_t tp)
{
    return total > tp ? total / tp : 1;
}

static bool axis_of(const struct walk_pair *p, struct walk_axis *ret)
{
    const struct pdxi_rank *l = &p->part->local_layout->rank, *r = &p->part->remote_layout->rank;
    const struct pdxi_tensor *lt = p->local, *rt = p->remote;
    struct walk_axis a = {.nblocks = 1, .rows = lt->outer};
    uint64_t shard = lt->shard_dim;

    if (lt->part == PDX_KV_PART_LATENT || l->tp_size == r->tp_size)
        return false;
    if (p->part->kv && !lt->shard_dim) {
        a.widths[0] = l->kv_heads;
        a.rows = l->page_size;
        shard = axis_units(l->kv_heads, l->tp_size);
    } else if (!lt->shard_dim || !rt->shard_dim) {
        return false;
    } else if (lt->ngroups) {
        a.nblocks = lt->ngroups;
        memcpy(a.widths, lt->groups, lt->ngroups * sizeof *a.widths);
    } else {
        a.widths[0] = lt->shard_dim * l->tp_size;
        if (a.widths[0] != rt->shard_dim * r->tp_size)
            a.widths[0] = l->kv_heads;
    }
    FUZZ_CHECK(shard > 0 && lt->item_len % (a.rows * shard) == 0);
    a.unit_len = lt->item_len / (a.rows * shard);
    *ret = a;
    return true;
}

/* Where a unit of this rank's row stands in the unsplit model. */
static void axis_place(const struct walk_axis *a, const struct pdxi_rank *rank, uint64_t unit,
                       uint32_t *ret_block, uint64_t *ret_unit)
{
    uint32_t block = 0;

    while (block < a->nblocks && unit >= axis_units(a->widths[block], rank->tp_size)) {
        unit -= axis_units(a->widths[block], rank->tp_size);
        block++;
    }
    FUZZ_CHECK(block < a->nblocks);
    *ret_block = block;
    if (a->widths[block] >= rank->tp_size)
        *ret_unit = rank->tp_rank * (a->widths[block] / rank->tp_size) + unit;
    else
        *ret_unit = rank->tp_rank / (rank->tp_size / a->widths[block]) + unit;
}

/* That a slice moves units to where the same units are. */
static void check_units(const struct walk_pair *p, const struct walk_axis *a,
                        const struct pdx_slice *s, uint32_t *looks)
{
    const struct pdxi_rank *l = &p->part->local_layout->rank, *r = &p->part->remote_layout->rank;
    uint64_t local_row = p->local->item_len / a->rows, remote_row = p->remote->item_len / a->rows;
    uint64_t rows = s->rows, len = s->len;

    if (len == p->local->item_len && len == p->remote->item_len) {
        rows = a->rows; /* a whole item */
        len = local_row;
    }
    FUZZ_CHECK(rows == a->rows && len % a->unit_len == 0);
    FUZZ_CHECK(rows == 1 || s->rows == 1 ||
               (s->local_pitch == local_row && s->remote_pitch == remote_row));
    FUZZ_CHECK(s->local_off % a->unit_len == 0 && s->remote_off % a->unit_len == 0);
    FUZZ_CHECK(s->local_off + len <= local_row && s->remote_off + len <= remote_row);
    for (uint64_t at = 0; at < len && *looks < LOOKS_MAX; at += a->unit_len, ++*looks) {
        uint32_t local_block, remote_block;
        uint64_t local_unit, remote_unit;

        axis_place(a, l, (s->local_off + at) / a->unit_len, &local_block, &local_unit);
        axis_place(a, r, (s->remote_off + at) / a->unit_len, &remote_block, &remote_unit);
        FUZZ_CHECK(local_block == remote_block && local_unit == remote_unit);
    }
}

/* Of the ranks that hold the same and feed the same remote rank, the first one sends it. */
static bool rank_sends(const struct walk_pair *p, uint64_t width)
{
    uint32_t local = p->part->local_layout->rank.tp_size;
    uint32_t remote = p->part->remote_layout->rank.tp_size;
    uint64_t copies = width < local ? local / width : 1;
    uint64_t feeding = local > remote ? local / remote : 1;

    return p->part->local_layout->rank.tp_rank % (feeding < copies ? feeding : copies) == 0;
}

static bool walk_is_split(const struct walk_pair *p, struct walk_axis *axis)
{
    return !p->part->trust && !(p->part->type && p->part->type->slicer) && !walk_is_ring(p->part) &&
           axis_of(p, axis);
}

/* What one item has to move, where the library decides it. */
static uint64_t pair_bytes(const struct walk_pair *p)
{
    const struct pdxi_rank *l = &p->part->local_layout->rank, *r = &p->part->remote_layout->rank;
    struct walk_axis axis;
    uint64_t units = 0;

    if (!walk_is_split(p, &axis)) {
        uint64_t len =
            walk_is_ring(p->part) ? p->local->item_len / p->local->outer : p->local->item_len;

        return p->part->trust || rank_sends(p, 1) || l->tp_size == r->tp_size ? len : 0;
    }
    for (uint32_t b = 0; b < axis.nblocks; b++) {
        uint64_t local = axis_units(axis.widths[b], l->tp_size);
        uint64_t remote = axis_units(axis.widths[b], r->tp_size);

        if (rank_sends(p, axis.widths[b]))
            units += local < remote ? local : remote;
    }
    return units * axis.rows * axis.unit_len;
}

static bool job_has(const struct walk_part *part, const struct pdx_job *job,
                    const struct pdxi_tensor *t)
{
    for (size_t i = 0; job && i < job->npairs; i++)
        if (walk_tensor_at(part->local_layout, &part->local,
                           recorder_region_id(job->pairs[i].local), job->pairs[i].local_base) == t)
            return true;
    return false;
}

static bool has_draft(const struct pdxi_tensors *t)
{
    return t->n && (t->at[t->n - 1].flags & PDX_TENSOR_DRAFT);
}

/* Whether a remote tensor may go without a sender here: another stage of several has it, or it is
 * of a draft model that the caller leaves alone. */
static bool may_lack_sender(const struct walk_part *part, const struct pdxi_tensor *t)
{
    const struct pdxi_rank *l = &part->local_layout->rank, *r = &part->remote_layout->rank;
    bool split = l->pp_size > r->pp_size;

    if (part->trust || is_aux(part))
        return true;
    if (!(t->flags & PDX_TENSOR_DRAFT))
        return split;
    return (split && l->pp_rank + 1 < l->pp_size) ||
           (part->without_draft && !has_draft(&part->local));
}

void walk_check_job(const struct walk_part *part, const struct pdx_job *job)
{
    const struct pdxi_rank *l = &part->local_layout->rank, *r = &part->remote_layout->rank;
    bool aux_elsewhere =
        is_aux(part) && !part->trust && l->pp_size != r->pp_size && l->pp_rank + 1 < l->pp_size;

    for (uint32_t i = 0; i < part->local.n; i++) {
        struct walk_pair p = {.part = part, .local = &part->local.at[i]};

        p.remote = walk_counterpart(part, &part->local, p.local, &part->remote);
        FUZZ_CHECK(p.remote || is_aux(part) ||
                   ((p.local->flags & PDX_TENSOR_DRAFT) && part->without_draft &&
                    !has_draft(&part->remote)));
        if (!(part->type && part->type->slicer))
            FUZZ_CHECK(job_has(part, job, p.local) ==
                       (p.remote && !aux_elsewhere && pair_bytes(&p) > 0));
    }
    for (uint32_t i = 0; i < part->remote.n; i++)
        FUZZ_CHECK(walk_counterpart(part, &part->remote, &part->remote.at[i], &part->local) ||
                   may_lack_sender(part, &part->remote.at[i]));
}

static void walk_pair(struct walk *w, const struct walk_pair *p,
                      const struct recorder_submission *s, const struct walk_items *items,
                      uint32_t *looks)
{
    const struct pdx_slice whole = {.len = p->pair->local_item_len, .rows = 1};
    const struct pdx_slice *slices = p->job->slices + p->pair->first_slice;
    size_t n = p->pair->nslices ? p->pair->nslices : p->job->nslices;
    struct walk_axis axis;
    bool split = walk_is_split(p, &axis);
    uint64_t bytes = 0;

    if (n == 0) {
        FUZZ_CHECK(p->pair->local_item_len == p->pair->remote_item_len);
        slices = &whole;
        n = 1;
    }
    for (size_t k = 0; split && k < n; k++)
        check_units(p, &axis, &slices[k], looks);
    for (size_t k = 0; k < n; k++)
        bytes += slices[k].len * slices[k].rows;
    if (!p->part->trust && !(p->part->type && p->part->type->slicer))
        FUZZ_CHECK(bytes == pair_bytes(p));
    for (size_t i = 0; i < items->n; i++)
        for (size_t k = 0; k < n; k++)
            walk_slice(w, p, &slices[k], s->items.local[i], s->items.remote[i], &items->local[i],
                       &items->remote[i]);
}

/* Where a tensor stands in the order of sending. */
static int64_t tensor_order(const struct pdxi_tensor *t)
{
    return t->flags & PDX_TENSOR_DRAFT ? PDX_LAYERS_END : t->number;
}

void walk_submission(struct walk *w, const struct walk_part *part,
                     const struct recorder_submission *s, const struct walk_items *items)
{
    const struct pdx_job *job = &s->prepared->job;
    size_t first = s->items.first_pair;
    size_t end = s->items.npairs ? first + s->items.npairs : job->npairs;
    uint64_t before = w->bytes;
    int64_t order = PDX_LAYER_NONE;
    uint32_t looks = 0;

    w->own = part->type && part->type->slicer;
    FUZZ_CHECK(items->n == s->items.n && end <= job->npairs && first < end);
    for (size_t i = first; i < end; i++) {
        struct walk_pair p;

        pair_find(&p, part, job, i);
        FUZZ_CHECK(tensor_order(p.local) >= order);
        order = tensor_order(p.local);
        for (size_t k = first; k < i; k++)
            FUZZ_CHECK(job->pairs[k].local != p.pair->local ||
                       job->pairs[k].local_base != p.pair->local_base);
        walk_pair(w, &p, s, items, &looks);
    }
    FUZZ_CHECK(w->bytes - before == s->bytes && s->bytes > 0);
}

static int piece_order(const void *a, const void *b)
{
    const struct walk_piece *x = a, *y = b;

    if (x->remote_region != y->remote_region)
        return x->remote_region < y->remote_region ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

void walk_check_once(struct walk *w)
{
    qsort(w->pieces, w->n, sizeof *w->pieces, piece_order);
    for (size_t i = 1; i < w->n; i++) {
        const struct walk_piece *a = &w->pieces[i - 1], *b = &w->pieces[i];

        FUZZ_CHECK(w->own || a->remote_region != b->remote_region || a->dst + a->len <= b->dst);
    }
}

void walk_check_same(const struct walk *a, const struct walk *b)
{
    FUZZ_CHECK(a->bytes == b->bytes);
    if (a->full || b->full)
        return;
    FUZZ_CHECK(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct walk_piece *x = &a->pieces[i], *y = &b->pieces[i];

        FUZZ_CHECK(x->remote_region == y->remote_region && x->dst == y->dst);
        FUZZ_CHECK(x->local_region == y->local_region && x->src == y->src && x->len == y->len);
    }
}
