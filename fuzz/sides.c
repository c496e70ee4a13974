/* SPDX-License-Identifier: Apache-2.0
 *
 * See sides.h: ranks and model, then the bends.
 */
#include "sides.h"

#include "recorder.h"

#include <string.h>

const char *sides_type_name(uint8_t i)
{
    static const char *const names[] = {
        "mamba",
        "swa",
        "dsa",
        "swa_ring",
        "c128_state",
        "minimax_index_k",
        "qsa_pending",
        "qsa_compressed",
        "dsa_tail",
        "block_scale",
        "block_scale_swa",
        "nsa",
        "own_a",
        "own_b",
        "own_c",
        "unknown",
        "",
        NULL,
        "two words",
        "a-type-whose-name-is-32-letters-",
        "a-type-whose-name-is-32-letters-x",
        "\xc3\xa4",
    };

    return names[i % (sizeof names / sizeof names[0])];
}

static void read_ranks(struct sides *s, struct fuzz_input *in)
{
    static const uint8_t sizes[] = {1, 2, 4, 8, 3, 6, 16, 12};
    struct side *l = &s->local, *r = &s->remote;
    uint8_t tp = fuzz_input_byte(in);
    uint8_t rank = fuzz_input_byte(in);
    uint8_t partner = fuzz_input_byte(in); /* 0: the one that takes from the local rank */
    uint8_t pp = fuzz_input_byte(in);
    uint8_t pp_rank = fuzz_input_byte(in);

    l->tp = sizes[tp & 7];
    r->tp = sizes[tp >> 4 & 7];
    l->tp_rank = rank % l->tp;
    r->tp_rank = l->tp >= r->tp ? l->tp_rank / (l->tp / r->tp) : l->tp_rank * (r->tp / l->tp);
    r->tp_rank = (r->tp_rank + partner) % r->tp;
    l->pp = 1 + (pp & 3);
    r->pp = (pp >> 4 & 3) == 0 ? 1 : (pp >> 4 & 3) == 1 ? l->pp : 1 + (pp >> 6 & 3u);
    l->pp_rank = (pp_rank & 15u) % l->pp;
    r->pp_rank = (l->pp_rank + (pp_rank >> 4)) % r->pp;
}

/* `dtype`: 1 the same on both sides, 2 on the local one only, 3 different. */
static void side_desc(struct side *s, const struct sides_model *m, uint8_t told, uint8_t dtype)
{
    struct pdx_layout_desc *d = &s->desc;

    *d = (struct pdx_layout_desc)PDX_LAYOUT_DESC_INIT;
    d->engine_rank = s->pp_rank * s->tp + s->tp_rank;
    d->tp_size = s->tp;
    d->pp_size = s->pp;
    d->pp_rank = s->pp_rank;
    d->kv_kind = (enum pdx_kv_kind)m->kind;
    d->page_size = m->page_size;
    if (told & 1)
        d->total_kv_head_num = m->heads;
    if (told & 2)
        d->kv_head_num = m->heads > s->tp ? m->heads / s->tp : 1;
    if (dtype && !(dtype == 2 && s->remote))
        d->dtype = dtype == 3 && s->remote ? "float8" : "bfloat16";
    d->components = s->components;
    s->region_rights[0] = s->region_rights[1] = PDX_RIGHT_ALL;
}

static void read_model(struct sides *s, struct sides_model *m, struct fuzz_input *in)
{
    uint8_t kind = fuzz_input_byte(in); /* and bits 2, 3: heads are told; 4, 5: dtype */
    uint8_t numbers;

    m->kind = kind & 3;
    m->page_size = 1 + fuzz_input_byte(in) % 16;
    m->heads = fuzz_input_byte(in) % 33;
    m->nlayers = fuzz_input_byte(in) % 7;
    numbers = fuzz_input_byte(in);
    m->numbers = numbers;
    m->draft = fuzz_input_byte(in);
    m->ndraft = (m->draft & 15u) % 3;
    m->naux = fuzz_input_byte(in) % 4;
    m->ncomponents = fuzz_input_byte(in);
    side_desc(&s->local, m, kind >> 2 & 3, kind >> 4 & 3);
    side_desc(&s->remote, m, kind >> 2 & 3, kind >> 4 & 3);
}

/* A value that replaces or changes another; how: bits 0 and 1. */
static uint64_t bent(uint64_t was, uint8_t how, uint64_t by)
{
    switch (how & 3) {
    case 0:
        return by;
    case 1:
        return was + by;
    case 2:
        return was - by;
    default:
        return was * (by + 1);
    }
}

static void bend_tensor(struct side *s, size_t i, uint8_t field, uint8_t how, uint64_t by)
{
    struct pdx_tensor *t = &s->tensors[i];
    uint64_t *const fields[] = {&t->off,    &t->len,       &t->item_len,
                                &t->stride, &t->shard_dim, &t->outer};
    size_t of_group = (how >> 2) % SIDES_GROUPS_MAX;
    size_t kind = field % 12;

    if (kind < sizeof fields / sizeof fields[0])
        *fields[kind] = bent(*fields[kind], how, by);
    else if (kind == 6)
        t->layer = (int32_t)bent((uint32_t)t->layer, how, by);
    else if (kind == 7)
        t->flags = (uint32_t)bent(t->flags, how, by);
    else if (kind == 8)
        t->part = (enum pdx_kv_part)(uint32_t)bent(t->part, how, by);
    else if (kind == 9)
        s->groups[i][of_group] = bent(s->groups[i][of_group], how, by);
    else if (kind == 10)
        t->ngroups = bent(t->ngroups, how, by);
    else
        s->region_of[i] = (uint8_t)(by % (SIDES_REGIONS + 1));
}

#define REFUSED_UNREAD 16384 /* more tensors than that */

/* A count must not promise more than there is, or so much that it is refused unread. */
static size_t bent_count(size_t was, uint8_t how, uint64_t by)
{
    uint64_t n = bent(was, how, by);

    return (n <= was && was <= REFUSED_UNREAD) || n > REFUSED_UNREAD ? (size_t)n : was;
}

/* The size of a description that ends before some field, is none, or has more than is known. */
static size_t bent_size(uint64_t by)
{
    static const size_t sizes[] = {
        0,
        sizeof(size_t) - 1,
        offsetof(struct pdx_layout_desc, engine_rank),
        offsetof(struct pdx_layout_desc, page_size),
        offsetof(struct pdx_layout_desc, kv),
        offsetof(struct pdx_layout_desc, aux),
        offsetof(struct pdx_layout_desc, naux),
        offsetof(struct pdx_layout_desc, ncomponents),
        sizeof(struct pdx_layout_desc) + 16,
    };

    return sizes[by % (sizeof sizes / sizeof sizes[0])];
}

static void bend_pointers(struct pdx_layout_desc *d, uint8_t which)
{
    if (which & 1)
        d->kv = NULL;
    if (which & 2)
        d->aux = NULL;
    if (which & 4)
        d->components = NULL;
}

static void bend_desc(struct side *s, uint8_t field, uint8_t how, uint64_t by)
{
    struct pdx_layout_desc *d = &s->desc;
    uint32_t *const fields[] = {&d->engine_rank, &d->tp_size,          &d->pp_size,
                                &d->pp_rank,     &d->page_size,        &d->kv_head_num,
                                &d->start_layer, &d->total_kv_head_num};
    struct pdx_component *c = &s->components[(how >> 2) % SIDES_COMPONENTS_MAX];
    size_t kind = field % 20;

    if (kind < sizeof fields / sizeof fields[0])
        *fields[kind] = (uint32_t)bent(*fields[kind], how, by);
    else if (kind == 8)
        d->kv_kind = (enum pdx_kv_kind)(uint32_t)bent(d->kv_kind, how, by);
    else if (kind == 9)
        d->nkv = bent_count(d->nkv, how, by);
    else if (kind == 10)
        d->naux = bent_count(d->naux, how, by);
    else if (kind == 11)
        d->ncomponents = bent_count(d->ncomponents, how, by);
    else if (kind == 12)
        c->ntensors = bent_count(c->ntensors, how, by);
    else if (kind == 13)
        c->slots = (uint32_t)bent(c->slots, how, by);
    else if (kind == 14)
        c->type = sides_type_name((uint8_t)by);
    else if (kind == 15)
        d->dtype = sides_type_name((uint8_t)by);
    else if (kind == 16)
        s->region_len[how >> 2 & 1] = bent(s->region_len[how >> 2 & 1], how, by);
    else if (kind == 17)
        s->region_rights[how >> 2 & 1] = (uint32_t)by % 5;
    else if (kind == 18)
        d->size = bent_size(by);
    else
        bend_pointers(d, (uint8_t)by);
}

static void read_bends(struct sides *s, struct fuzz_input *in)
{
    uint8_t n = fuzz_input_byte(in) % 8;

    for (uint8_t i = 0; i < n; i++) {
        uint8_t what = fuzz_input_byte(in); /* bit 7: remote; 6: a tensor; the others: which */
        uint8_t field = fuzz_input_byte(in);
        uint8_t how = fuzz_input_byte(in);
        uint64_t by = fuzz_input_number(in);
        struct side *side = what & 0x80 ? &s->remote : &s->local;

        if (!(what & 0x40))
            bend_desc(side, field, how, by);
        else if (side->n)
            bend_tensor(side, (what & 0x3f) % side->n, field, how, by);
    }
}

/* A region's rights in a descriptor are never none of them. */
static void side_regions(struct side *s)
{
    struct pdx_region *regions[SIDES_REGIONS + 1] = {NULL};

    for (int i = 0; i < SIDES_REGIONS; i++) {
        uint32_t rights = s->region_rights[i] ? s->region_rights[i] : (uint32_t)PDX_RIGHT_ALL;

        regions[i] = recorder_region(s->remote ? RECORDER_REMOTE : RECORDER_LOCAL,
                                     s->region_len[i] ? s->region_len[i] : 1, rights);
    }
    for (size_t i = 0; i < s->n; i++)
        s->tensors[i].region = regions[s->region_of[i]];
}

void sides_read(struct sides *s, struct fuzz_input *in)
{
    struct sides_model m = {0};
    size_t n;

    memset(s, 0, sizeof *s);
    s->remote.remote = true;
    read_ranks(s, in);
    read_model(s, &m, in);
    n = (m.ncomponents & 0x7f) % (SIDES_COMPONENTS_MAX + 1);
    sides_read_kv(s, &m, in);
    sides_read_aux(s, &m, in);
    for (size_t c = 0; c < n; c++)
        sides_read_component(s, c, in);
    s->local.desc.ncomponents = s->remote.desc.ncomponents = n;
    if (n > 1 && (m.ncomponents & 0x80)) {
        struct pdx_component swap = s->remote.components[0];

        s->remote.components[0] = s->remote.components[1];
        s->remote.components[1] = swap;
    }
    read_bends(s, in);
    side_regions(&s->local);
    side_regions(&s->remote);
}
