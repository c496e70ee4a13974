/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_model.h.
 */
#include "state_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SM_GAP 24 /* bytes between tensors that nobody may touch */

static uint64_t sm_units_of(uint64_t total, uint32_t tp)
{
    return total >= tp ? total / tp : 1;
}

/* The unit of the unsplit block that is number `j` on rank `rank`. */
static uint64_t sm_global_unit(uint64_t total, uint32_t tp, uint32_t rank, uint64_t j)
{
    if (total >= tp)
        return rank * (total / tp) + j;
    return rank / (tp / total);
}

/* Units of one rank's row. */
static uint64_t sm_rank_units(const struct sm_shape *s, uint32_t tp)
{
    uint64_t n = 0;

    if (s->copies)
        return s->units;
    if (s->ngroups == 0)
        return sm_units_of(s->units, tp);
    for (size_t g = 0; g < s->ngroups; g++)
        n += sm_units_of(s->groups[g], tp);
    return n;
}

/* Number `j` of the rank's row, as a unit of the unsplit row. */
static uint64_t sm_unit(const struct sm_shape *s, uint32_t tp, uint32_t rank, uint64_t j)
{
    uint64_t before = 0;

    if (s->copies)
        return j;
    if (s->ngroups == 0)
        return sm_global_unit(s->units, tp, rank, j);
    for (size_t g = 0; g < s->ngroups; g++) {
        uint64_t here = sm_units_of(s->groups[g], tp);

        if (j < here)
            return before + sm_global_unit(s->groups[g], tp, rank, j);
        j -= here;
        before += s->groups[g];
    }
    fail();
    return 0;
}

static uint8_t sm_byte(size_t tensor, size_t item, uint64_t row, uint64_t unit, uint64_t off)
{
    uint64_t h = ((((tensor * 131 + item + 1) * 137 + row) * 139 + unit) * 149 + off) *
                 UINT64_C(0x9e3779b97f4a7c15);

    return (uint8_t)(h >> 56);
}

static void sm_tensor_init(struct pdx_tensor *t, const struct sm_list *l, size_t i, uint32_t tp)
{
    const struct sm_shape *s = &l->shapes[i];
    size_t half = l->kv_kind == PDX_KV_MHA && !l->type ? l->n / 2 : l->n;

    t->layer = (int32_t)(i % half) + s->layer_add;
    t->item_len = s->rows * sm_rank_units(s, tp) * s->unit_len;
    if (!l->type || s->copies)
        return;
    t->shard_dim = sm_rank_units(s, tp);
    t->outer = s->rows;
    if (s->tell_groups) {
        t->groups = s->ngroups ? s->groups : &s->units;
        t->ngroups = s->ngroups ? s->ngroups : 1;
    }
}

void sm_rank_init(struct sm_rank *r, const struct sm_list *l, enum fake_side side, uint32_t tp,
                  uint32_t rank, size_t nitems)
{
    struct pdx_component c = {.type = l->type, .tensors = r->tensors, .ntensors = l->n};
    struct pdx_error why;
    uint64_t off = SM_GAP;

    *r = (struct sm_rank){.tp = tp, .rank = rank, .nitems = nitems};
    for (size_t i = 0; i < l->n; i++) {
        sm_tensor_init(&r->tensors[i], l, i, tp);
        r->tensors[i].off = off;
        r->tensors[i].len = nitems * r->tensors[i].item_len;
        off += r->tensors[i].len + SM_GAP;
    }
    r->region = fake_region(side, off);
    for (size_t i = 0; i < l->n; i++)
        r->tensors[i].region = r->region;
    r->desc = (struct pdx_layout_desc)PDX_LAYOUT_DESC_INIT;
    r->desc.engine_rank = rank;
    r->desc.tp_size = tp;
    r->desc.page_size = l->page_size;
    r->desc.total_kv_head_num = l->heads;
    if (l->type) {
        r->desc.components = &c;
        r->desc.ncomponents = 1;
    }
    if (!l->type ||
        l->kv_kind == PDX_KV_MLA) { /* a state list of an MLA model stands in for both */
        r->desc.kv_kind = l->kv_kind;
        r->desc.kv = r->tensors;
        r->desc.nkv = l->n;
    }
    if (pdx_layout_create(&r->desc, &r->layout, &why) < 0)
        fail_msg("%s", why.text);
}

void sm_rank_fini(struct sm_rank *r)
{
    pdx_layout_destroy(r->layout);
}

typedef void (*sm_byte_fn)(uint8_t *mem, uint8_t *hits, uint8_t want);

static void sm_set(uint8_t *mem, uint8_t *hits, uint8_t want)
{
    (void)hits;
    *mem = want;
}

/* Clears what was right, so that anything left over is a byte that nobody should have written. */
static void sm_compare(uint8_t *mem, uint8_t *hits, uint8_t want)
{
    if (*mem != want || *hits != 1)
        fail_msg("byte is %u, not %u; written %u times", *mem, want, *hits);
    *mem = 0;
    *hits = 0;
}

static void sm_each_byte(const struct sm_rank *r, const struct sm_list *l, const int32_t *idx,
                         size_t n, sm_byte_fn fn)
{
    uint8_t *mem = fake_mem(r->region);
    uint8_t *hits = (uint8_t *)fake_hits(r->region);

    for (size_t t = 0; t < l->n; t++) {
        const struct sm_shape *s = &l->shapes[t];
        uint64_t units = sm_rank_units(s, r->tp);

        for (size_t k = 0; k < n; k++) {
            uint64_t at = r->tensors[t].off + (uint64_t)idx[k] * r->tensors[t].item_len;

            for (uint64_t row = 0; row < s->rows; row++)
                for (uint64_t j = 0; j < units; j++)
                    for (uint64_t b = 0; b < s->unit_len; b++, at++)
                        fn(&mem[at], &hits[at],
                           sm_byte(t, k, row, sm_unit(s, r->tp, r->rank, j), b));
        }
    }
}

static uint64_t sm_region_len(const struct sm_rank *r, const struct sm_list *l)
{
    return r->tensors[l->n - 1].off + r->tensors[l->n - 1].len + SM_GAP;
}

void sm_fill(const struct sm_rank *r, const struct sm_list *l, const int32_t *idx, size_t n)
{
    sm_each_byte(r, l, idx, n, sm_set);
}

void sm_check(const struct sm_rank *r, const struct sm_list *l, const int32_t *idx, size_t n)
{
    uint64_t len = sm_region_len(r, l);

    sm_each_byte(r, l, idx, n, sm_compare);
    for (uint64_t i = 0; i < len; i++)
        if (fake_mem(r->region)[i] || fake_hits(r->region)[i])
            fail_msg("byte %llu of the region was written", (unsigned long long)i);
}

/* Returns whether something was sent. */
static bool sm_send(const struct sm_list *l, const struct sm_rank *p, const struct sm_rank *d,
                    struct pdx_index_list src, struct pdx_index_list dst)
{
    struct pdx_transfer_status *st = NULL;
    struct pdx_route *route;
    struct pdx_error why;
    size_t nst;
    bool carries;
    int rc;

    if (pdx_route_create(fake_engine(), p->layout, fake_peer(), d->layout, NULL, &route, &why) < 0)
        fail_msg("%s", why.text);
    carries = pdx_route_carries(route, l->type ? PDX_PAYLOAD_STATE : PDX_PAYLOAD_KV, 0);
    if (l->type)
        rc = pdx_send_state(route, &src, &dst, 1, NULL, &st, 1, &nst, &why);
    else
        rc = pdx_send_kvcache(route, src, dst, NULL, &st, &why);
    if (rc < 0)
        fail_msg("%s", why.text);
    assert_true(carries == (st != NULL));
    if (st)
        fake_run(fake_submission_of(st));
    pdx_route_destroy(route);
    return carries;
}

size_t sm_transfer(const struct sm_list *l, uint32_t prefill_tp, uint32_t decode_tp,
                   const int32_t *src, const int32_t *dst, size_t n, size_t nitems)
{
    size_t silent = 0;

    for (uint32_t d = 0; d < decode_tp; d++) {
        uint32_t feeding = prefill_tp >= decode_tp ? prefill_tp / decode_tp : 1;
        uint32_t first = prefill_tp >= decode_tp ? d * feeding : d / (decode_tp / prefill_tp);
        struct sm_rank to;

        sm_rank_init(&to, l, FAKE_REMOTE, decode_tp, d, nitems);
        for (uint32_t p = first; p < first + feeding; p++) {
            struct sm_rank from;

            sm_rank_init(&from, l, FAKE_LOCAL, prefill_tp, p, nitems);
            sm_fill(&from, l, src, n);
            silent += !sm_send(l, &from, &to, (struct pdx_index_list){src, n},
                               (struct pdx_index_list){dst, n});
            sm_rank_fini(&from);
        }
        sm_check(&to, l, dst, n);
        sm_rank_fini(&to);
        fake_reset();
    }
    return silent;
}

struct sm_collected {
    size_t pair; /* the one that is collected */
    size_t n;
    struct sm_piece *at;
};

static void sm_collect(void *ctx, size_t pair, uint64_t src, uint64_t dst, uint64_t len)
{
    struct sm_collected *c = ctx;

    if (pair != c->pair)
        return;
    assert_true(c->n < SM_PIECES_MAX);
    c->at[c->n++] = (struct sm_piece){src, dst, len};
}

static int sm_piece_order(const void *a, const void *b)
{
    const struct sm_piece *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

size_t sm_pieces(const struct fake_submission *s, size_t pair, struct sm_piece ret[SM_PIECES_MAX])
{
    struct sm_collected c = {.pair = pair, .at = ret};
    size_t kept = 0;

    fake_walk(s, sm_collect, &c);
    qsort(ret, c.n, sizeof ret[0], sm_piece_order);
    for (size_t i = 0; i < c.n; i++) {
        struct sm_piece *last = kept ? &ret[kept - 1] : NULL;

        if (last && last->src + last->len == ret[i].src && last->dst + last->len == ret[i].dst)
            last->len += ret[i].len;
        else
            ret[kept++] = ret[i];
    }
    return kept;
}
