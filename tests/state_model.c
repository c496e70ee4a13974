/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_model.h.
 */
#include "state_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SM_GAP      24 /* bytes between tensors that nobody may touch */
#define SM_TURN_GAP 3  /* between items that take turns */

static char sm_noted[256];

void sm_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sm_noted, sizeof sm_noted, format, args);
    va_end(args);
}

void sm_fail(const char *format, ...)
{
    char text[PDX_ERROR_TEXT_MAX + 256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fail_msg("%s: %s", sm_noted, text);
}

/* --- Lists --- */

void sm_mha(struct sm_list *l, uint32_t heads, uint32_t page_size, uint64_t k, uint64_t v,
            size_t nlayers)
{
    *l = (struct sm_list){
        .kv_kind = PDX_KV_MHA, .page_size = page_size, .heads = heads, .n = 2 * nlayers};
    assert_true(l->n <= SM_TENSORS_MAX);
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i] = (struct sm_shape){.rows = page_size,
                                         .units = heads,
                                         .unit_len = i < nlayers ? k : v,
                                         .layer = (int32_t)(i % nlayers)};
}

void sm_mla(struct sm_list *l, uint32_t page_size, uint64_t len, size_t nlayers)
{
    *l = (struct sm_list){.kv_kind = PDX_KV_MLA, .page_size = page_size, .n = nlayers};
    assert_true(l->n <= SM_TENSORS_MAX);
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i] = (struct sm_shape){.rows = page_size,
                                         .units = 1,
                                         .unit_len = len + i,
                                         .layer = (int32_t)i,
                                         .copies = true};
}

void sm_number(struct sm_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i].layer = (int32_t)i;
}

/* --- Which unit is where --- */

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

/* --- Ranks --- */

static uint32_t sm_stages(const struct sm_side *how)
{
    return how->pp ? how->pp : 1;
}

static bool sm_on_stage(const struct sm_shape *s, const struct sm_side *how, uint32_t stage)
{
    bool last = stage + 1 == sm_stages(how);

    if (s->draft)
        return last;
    return (stage == 0 || s->layer >= how->ends[stage - 1]) &&
           (last || s->layer < how->ends[stage]);
}

static void sm_tensor_init(struct pdx_tensor *t, const struct sm_list *l, const struct sm_shape *s,
                           uint32_t tp)
{
    t->layer = l->untold ? PDX_LAYER_NONE : s->layer;
    t->part = s->part;
    t->flags = (s->draft ? PDX_TENSOR_DRAFT : 0u) | (s->replicated ? PDX_TENSOR_REPLICATED : 0u);
    t->item_len = s->rows * sm_rank_units(s, tp) * s->unit_len;
    if (s->copies || !(l->type || s->own_heads))
        return;
    t->shard_dim = sm_rank_units(s, tp);
    t->outer = s->rows;
    if (s->tell_groups) {
        t->groups = s->ngroups ? s->groups : &s->units;
        t->ngroups = s->ngroups ? s->ngroups : 1;
    }
}

/* One tensor behind the other. Returns the length of the region. */
static uint64_t sm_place_apart(struct sm_rank *r)
{
    uint64_t off = SM_GAP;

    for (size_t i = 0; i < r->n; i++) {
        r->tensors[i].off = off;
        r->tensors[i].len = r->nitems * r->tensors[i].item_len;
        off += r->tensors[i].len + SM_GAP;
    }
    return off;
}

static uint64_t sm_place_in_turns(struct sm_rank *r)
{
    uint64_t stride = 0;

    for (size_t i = 0; i < r->n; i++) {
        r->tensors[i].off = SM_GAP + stride;
        stride += r->tensors[i].item_len + SM_TURN_GAP;
    }
    for (size_t i = 0; i < r->n; i++) {
        r->tensors[i].stride = stride;
        r->tensors[i].len = (r->nitems - 1) * stride + r->tensors[i].item_len;
    }
    return SM_GAP + r->nitems * stride + SM_GAP;
}

static void sm_describe(struct sm_rank *r)
{
    const struct sm_list *l = r->list;
    const struct sm_side *how = &r->side;

    r->desc = (struct pdx_layout_desc)PDX_LAYOUT_DESC_INIT;
    r->desc.engine_rank = r->rank;
    r->desc.tp_size = how->tp;
    r->desc.pp_size = sm_stages(how);
    r->desc.pp_rank = r->stage;
    r->desc.page_size = l->page_size ? l->page_size : 1;
    r->desc.total_kv_head_num = l->heads;
    r->desc.start_layer = l->untold && r->stage ? (uint32_t)how->ends[r->stage - 1] : 0;
    r->desc.kv_kind = l->kv_kind;
    if (!l->type) {
        r->desc.kv = r->tensors;
        r->desc.nkv = r->n;
        return;
    }
    r->component = (struct pdx_component){.type = l->type, .tensors = r->tensors, .ntensors = r->n};
    r->desc.components = &r->component;
    r->desc.ncomponents = 1;
    if (l->kv_kind == PDX_KV_NONE)
        return;
    for (size_t i = 0; i < r->n; i++)
        r->stand_in[i] = (struct pdx_tensor){
            .region = r->region,
            .off = r->tensors[i].off,
            .len = r->tensors[i].len,
            .item_len = r->tensors[i].item_len,
            .stride = r->tensors[i].stride,
            .layer = l->kv_kind == PDX_KV_MHA ? PDX_LAYER_NONE : r->tensors[i].layer,
        };
    r->desc.kv = r->stand_in;
    r->desc.nkv = r->n;
}

/* What the peer gets to see of a layout. */
static struct pdx_layout *sm_through_the_wire(struct pdx_layout *made)
{
    size_t len = pdx_layout_encode(made, NULL, 0);
    uint8_t *buf = malloc(len);
    struct pdx_layout *back = NULL;
    struct pdx_error why;

    assert_non_null(buf);
    assert_int_equal(pdx_layout_encode(made, buf, len), len);
    if (pdx_layout_decode(buf, len, &back, &why) < 0)
        sm_fail("%s", why.text);
    free(buf);
    pdx_layout_destroy(made);
    return back;
}

void sm_rank_init(struct sm_rank *r, const struct sm_list *l, enum fake_side side,
                  const struct sm_side *how, uint32_t rank, uint32_t stage, size_t nitems)
{
    struct pdx_error why;

    *r = (struct sm_rank){.list = l, .side = *how, .rank = rank, .stage = stage, .nitems = nitems};
    for (size_t k = 0; k < l->n; k++) {
        size_t i = how->backwards ? l->n - 1 - k : k;

        if (!sm_on_stage(&l->shapes[i], how, stage))
            continue;
        sm_tensor_init(&r->tensors[r->n], l, &l->shapes[i], how->tp);
        r->at[r->n++] = i;
    }
    r->region_len = how->turns ? sm_place_in_turns(r) : sm_place_apart(r);
    r->region = fake_region(side, r->region_len);
    for (size_t i = 0; i < r->n; i++)
        r->tensors[i].region = r->region;
    sm_describe(r);
    if (pdx_layout_create(&r->desc, &r->layout, &why) < 0)
        sm_fail("%s", why.text);
    if (side == FAKE_REMOTE)
        r->layout = sm_through_the_wire(r->layout);
}

void sm_rank_fini(struct sm_rank *r)
{
    pdx_layout_destroy(r->layout);
}

/* --- Content --- */

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
        sm_fail("byte is %u, not %u; written %u times", *mem, want, *hits);
    *mem = 0;
    *hits = 0;
}

static void sm_each_byte(const struct sm_rank *r, const int32_t *idx, size_t n, sm_byte_fn fn)
{
    uint8_t *mem = fake_mem(r->region);
    uint8_t *hits = (uint8_t *)fake_hits(r->region);

    for (size_t t = 0; t < r->n; t++) {
        const struct sm_shape *s = &r->list->shapes[r->at[t]];
        const struct pdx_tensor *tensor = &r->tensors[t];
        uint64_t units = sm_rank_units(s, r->side.tp);
        uint64_t stride = tensor->stride ? tensor->stride : tensor->item_len;

        for (size_t k = 0; k < n; k++) {
            uint64_t at = tensor->off + (uint64_t)idx[k] * stride;

            for (uint64_t row = 0; row < s->rows; row++)
                for (uint64_t j = 0; j < units; j++) {
                    uint64_t unit = sm_unit(s, r->side.tp, r->rank, j);

                    for (uint64_t b = 0; b < s->unit_len; b++, at++)
                        fn(&mem[at], &hits[at], sm_byte(r->at[t], k, row, unit, b));
                }
        }
    }
}

void sm_fill(const struct sm_rank *r, const int32_t *idx, size_t n)
{
    sm_each_byte(r, idx, n, sm_set);
}

void sm_check(const struct sm_rank *r, const int32_t *idx, size_t n)
{
    const uint8_t *mem = fake_mem(r->region);
    const uint8_t *hits = fake_hits(r->region);

    sm_each_byte(r, idx, n, sm_compare);
    for (size_t i = 0; i < r->region_len; i++)
        if (mem[i] || hits[i])
            sm_fail("byte %zu of the region was written", i);
}

/* --- Pieces --- */

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
