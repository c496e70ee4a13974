/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of tensors for sides.h: shapes that both sides share, cut to what a
 * rank holds of them, and laid out in memory in one of a few ways.
 */
#include "sides.h"

#include <string.h>

/* A tensor of the unsplit model. */
struct shape {
    int32_t layer; /* number in its list, from 0 */
    enum pdx_kv_part part;
    uint32_t flags;
    uint64_t rows;
    uint64_t units; /* of one block; 0: there is no split axis */
    uint64_t unit_len;
    uint8_t blocks; /* 1, or 3: [units, units, 2 units] */
    bool told;      /* shard_dim and outer */
    bool groups;
};

static uint64_t shape_units(uint64_t units, uint32_t tp)
{
    return units > tp ? units / tp : 1;
}

/* Appends this side's part of a shape; false when there is no room. */
static bool side_add(struct side *s, const struct shape *shape)
{
    static const uint64_t widths[] = {1, 1, 2};
    struct pdx_tensor *t = &s->tensors[s->n];
    uint64_t *groups = s->groups[s->n];
    uint64_t shard = shape->units ? 0 : 1;

    if (s->n == SIDES_TENSORS_MAX)
        return false;
    for (uint8_t b = 0; shape->units && b < shape->blocks; b++) {
        groups[b] = shape->units * widths[b];
        shard += shape_units(groups[b], s->tp);
    }
    *t = (struct pdx_tensor){
        .item_len = shape->rows * shard * shape->unit_len,
        .layer = shape->layer,
        .flags = shape->flags,
        .part = shape->part,
        .groups = groups,
    };
    if (shape->told) {
        t->outer = shape->rows;
        t->shard_dim = shape->units ? shard : 0;
        t->ngroups = shape->groups && shape->units ? shape->blocks : 0;
    }
    s->n++;
    return true;
}

/* How a list lies in memory. */
struct place {
    uint8_t how;
    uint64_t nitems;
};

static void input_place(struct fuzz_input *in, struct place *p)
{
    p->how = fuzz_input_byte(in);
    p->nitems = fuzz_input_count(in);
    if (p->nitems == 0)
        p->nitems = 8;
}

/* Lays out the tensors from `first` on: one behind the other, with gaps between items, with items
 * that take turns, or in turns in both regions. Bit 5: in the other region, bit 6: the last one has
 * an item less. */
static void side_place(struct side *s, size_t first, const struct place *p)
{
    uint64_t sum = 0, begin;
    uint8_t region = p->how >> 5 & 1;

    for (size_t i = first; i < s->n; i++)
        sum += s->tensors[i].item_len;
    begin = s->region_len[region];
    for (size_t i = first; i < s->n; i++) {
        struct pdx_tensor *t = &s->tensors[i];
        uint64_t nitems = p->nitems - (i + 1 == s->n && (p->how & 0x40) && p->nitems > 1);
        uint64_t stride = t->item_len;

        if ((p->how & 3) == 1)
            t->stride = stride += 1 + (p->how >> 2 & 7);
        if ((p->how & 3) == 2)
            t->stride = stride = sum;
        if ((p->how & 3) == 3)
            region = i & 1;
        s->region_of[i] = region;
        t->len = (nitems - 1) * stride + t->item_len;
        t->off = (p->how & 3) == 2 ? begin : s->region_len[region];
        begin += t->item_len;
        if (s->region_len[region] < t->off + t->len)
            s->region_len[region] = t->off + t->len;
    }
}

/* Whether a pipeline stage has a layer of so many. */
static bool side_has(const struct side *s, uint32_t layer, uint32_t nlayers)
{
    return layer * s->pp / nlayers == s->pp_rank;
}

/* Layer numbers from `add` on, or none. */
static void side_number(struct side *s, size_t first, bool told, int32_t add)
{
    for (size_t i = first; i < s->n; i++)
        s->tensors[i].layer = told ? s->tensors[i].layer + add : PDX_LAYER_NONE;
}

#define KV_LAYERS_MAX 8

/* What a byte says of a layer: bits 0 to 2 the bytes of a head, 3 values are longer than keys, 4
 * latent, 5 with an indexer, 6 heads of its own, 7 with groups. */
static struct shape kv_shape(const struct sides_model *m, uint8_t b, int32_t layer,
                             enum pdx_kv_part part, bool draft)
{
    struct shape s = {
        .layer = layer,
        .part = part,
        .flags = draft ? (uint32_t)PDX_TENSOR_DRAFT : 0,
        .rows = m->page_size,
        .units = part == PDX_KV_PART_LATENT ? 0 : m->heads,
        .unit_len = 1 + (b & 7),
        .blocks = 1,
    };

    if (part == PDX_KV_PART_V && (b & 8))
        s.unit_len++;
    if (part != PDX_KV_PART_LATENT && ((b & 0x40) || (draft && (m->draft & 0x40)))) {
        s.units = m->heads ? m->heads * 2 : 2;
        s.told = true;
        s.groups = b & 0x80;
    }
    if (m->kind != PDX_KV_MIXED)
        s.part = PDX_KV_PART_BY_KIND;
    return s;
}

/* One pass over the layers for one part; for MIXED one pass has all of them. */
static void kv_pass(struct side *s, const struct sides_model *m, const uint8_t *shapes, uint32_t n,
                    enum pdx_kv_part part, bool draft)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t b = shapes[i];
        bool latent = m->kind == PDX_KV_MLA || (m->kind == PDX_KV_MIXED && (b & 0x10));
        struct shape shape;

        if (draft ? s->pp_rank + 1 != s->pp : !side_has(s, i, n))
            continue;
        if (latent != (part == PDX_KV_PART_LATENT))
            continue;
        shape = kv_shape(m, b, (int32_t)i, part, draft);
        (void)side_add(s, &shape);
        if (latent && (b & 0x20)) {
            shape.unit_len++;
            (void)side_add(s, &shape);
        }
    }
}

static void kv_list(struct side *s, const struct sides_model *m, const uint8_t *shapes, uint32_t n,
                    bool draft)
{
    size_t first = s->n;

    if (m->kind == PDX_KV_MLA || m->kind == PDX_KV_MIXED)
        kv_pass(s, m, shapes, n, PDX_KV_PART_LATENT, draft);
    if (m->kind == PDX_KV_MHA || m->kind == PDX_KV_MIXED) {
        kv_pass(s, m, shapes, n, PDX_KV_PART_K, draft);
        kv_pass(s, m, shapes, n, PDX_KV_PART_V, draft);
    }
    side_number(s, first, m->kind == PDX_KV_MIXED || (m->numbers & 1), m->numbers >> 4);
}

static void side_kv(struct side *s, const struct sides_model *m, const uint8_t *shapes,
                    const uint8_t *draft_shapes, const struct place *place)
{
    uint32_t first = 0;

    kv_list(s, m, shapes, m->nlayers, false);
    if (!(m->draft & (s->remote ? 0x20 : 0x10)))
        kv_list(s, m, draft_shapes, m->ndraft, true);
    while (first < m->nlayers && !side_has(s, first, m->nlayers))
        first++;
    s->desc.start_layer = (uint32_t)(m->numbers >> 4) + first;
    s->desc.kv = s->tensors;
    s->desc.nkv = s->n;
    side_place(s, 0, place);
}

void sides_read_kv(struct sides *s, const struct sides_model *m, struct fuzz_input *in)
{
    uint8_t shapes[KV_LAYERS_MAX] = {0}, draft[KV_LAYERS_MAX] = {0};
    struct place local, remote;

    for (uint32_t i = 0; i < m->nlayers; i++)
        shapes[i] = fuzz_input_byte(in);
    for (uint32_t i = 0; i < m->ndraft; i++)
        draft[i] = fuzz_input_byte(in);
    input_place(in, &local);
    input_place(in, &remote);
    side_kv(&s->local, m, shapes, draft, &local);
    side_kv(&s->remote, m, shapes, draft, &remote);
}

void sides_read_aux(struct sides *s, const struct sides_model *m, struct fuzz_input *in)
{
    struct place local, remote;
    size_t first[2] = {s->local.n, s->remote.n};

    for (uint8_t i = 0; i < m->naux; i++) {
        struct shape shape = {.rows = 1, .unit_len = 1 + fuzz_input_byte(in) % 64};

        (void)side_add(&s->local, &shape);
        (void)side_add(&s->remote, &shape);
    }
    input_place(in, &local);
    input_place(in, &remote);
    for (int i = 0; i < 2; i++) {
        struct side *side = i ? &s->remote : &s->local;

        side_number(side, first[i], false, 0);
        side->desc.aux = side->tensors + first[i];
        side->desc.naux = side->n - first[i];
        side_place(side, first[i], i ? &remote : &local);
    }
}

/* Four bytes: rows, units, bytes of a unit, and how: bits 0 and 1 split, split with groups,
 * replicated, not told; 2 three blocks; from 3 on what a ring has more rows of on the remote side.
 */
static void input_shape(struct fuzz_input *in, struct shape *s, uint8_t *ret_more)
{
    uint8_t how;

    *s = (struct shape){.blocks = 1};
    s->rows = 1 + fuzz_input_byte(in);
    s->units = fuzz_input_byte(in);
    s->unit_len = 1 + fuzz_input_byte(in) % 64;
    how = fuzz_input_byte(in);
    s->told = (how & 3) < 2;
    s->groups = (how & 3) == 1;
    s->blocks = how & 4 ? 3 : 1;
    if ((how & 3) == 2)
        s->flags = PDX_TENSOR_REPLICATED;
    if ((how & 3) >= 2)
        s->units = 0;
    *ret_more = how >> 3;
}

static bool is_ring(const char *type)
{
    return type && (strcmp(type, "dsa_tail") == 0 || strcmp(type, "own_b") == 0);
}

static void side_component(struct side *s, size_t c, const char *type, uint32_t slots, size_t first)
{
    s->components[c] = (struct pdx_component){
        .type = type, .tensors = s->tensors + first, .ntensors = s->n - first, .slots = slots};
}

void sides_read_component(struct sides *s, size_t c, struct fuzz_input *in)
{
    const char *type = sides_type_name(fuzz_input_byte(in));
    uint8_t slots = fuzz_input_byte(in);
    uint8_t how = fuzz_input_byte(in); /* tensors; bit 6: layers are told */
    uint32_t n = (how & 0x3f) % 5, nlayers = (n + 1) / 2;
    size_t first[2] = {s->local.n, s->remote.n};
    struct place local, remote;

    for (uint32_t i = 0; i < n; i++) {
        struct shape shape;
        uint8_t more;

        input_shape(in, &shape, &more);
        shape.layer = (int32_t)i / 2;
        if (is_ring(type)) {
            shape.told = true;
            shape.units = 0;
        }
        if (side_has(&s->local, i / 2, nlayers))
            (void)side_add(&s->local, &shape);
        if (is_ring(type))
            shape.rows += more;
        if (side_has(&s->remote, i / 2, nlayers))
            (void)side_add(&s->remote, &shape);
    }
    input_place(in, &local);
    input_place(in, &remote);
    side_number(&s->local, first[0], how & 0x40, 0);
    side_number(&s->remote, first[1], how & 0x40, 0);
    side_place(&s->local, first[0], &local);
    side_place(&s->remote, first[1], &remote);
    side_component(&s->local, c, type, slots == 0xff ? UINT32_MAX : slots, first[0]);
    side_component(&s->remote, c, type, slots == 0xff ? UINT32_MAX : slots, first[1]);
}
