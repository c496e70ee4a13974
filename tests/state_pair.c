/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_pair.h.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void side_tensors(struct pair_side *s, struct pdx_tensor *t, size_t n, uint64_t item_len,
                         uint64_t *off)
{
    for (size_t i = 0; i < n; i++) {
        t[i] = (struct pdx_tensor){
            .region = s->region, .off = *off, .layer = PDX_LAYER_NONE, .item_len = item_len};
        t[i].len = PAIR_ITEMS * item_len;
        *off += 2 * t[i].len; /* room to grow */
    }
}

static void side_init(struct pair_side *s, enum fake_side side)
{
    uint64_t off = 0;

    *s = (struct pair_side){.region = fake_region(side, 1 << 17)};
    side_tensors(s, s->kv, 4, 128, &off);
    side_tensors(s, s->aux, 2, 16, &off);
    side_tensors(s, s->mamba, 2, 96, &off);
    side_tensors(s, s->swa, 2, 64, &off);
    side_tensors(s, s->dsa, 1, 32, &off);
    s->mamba[0].shard_dim = s->mamba[1].shard_dim = 8;
    s->components[0] = (struct pdx_component){.type = "mamba", .tensors = s->mamba, .ntensors = 2};
    s->components[1] = (struct pdx_component){.type = "swa", .tensors = s->swa, .ntensors = 2};
    s->components[2] = (struct pdx_component){.type = "dsa", .tensors = s->dsa, .ntensors = 1};
    s->desc = (struct pdx_layout_desc)PDX_LAYOUT_DESC_INIT;
    s->desc.engine_rank = 1;
    s->desc.tp_size = 2;
    s->desc.kv_kind = PDX_KV_MHA;
    s->desc.page_size = 4;
    s->desc.dtype = "bfloat16";
    s->desc.total_kv_head_num = 8;
    s->desc.kv = s->kv;
    s->desc.nkv = 4;
    s->desc.aux = s->aux;
    s->desc.naux = 2;
    s->desc.components = s->components;
    s->desc.ncomponents = 3;
}

void pair_init(struct pair *p)
{
    *p = (struct pair){0};
    side_init(&p->local, FAKE_LOCAL);
    side_init(&p->remote, FAKE_REMOTE);
}

void pair_item_len(struct pdx_tensor *t, uint64_t item_len)
{
    t->item_len = item_len;
    t->len = PAIR_ITEMS * item_len;
}

void pair_draft(struct pair_side *s, struct pdx_tensor kv[PAIR_KV_MAX], size_t nlayers)
{
    assert_true(4 + 2 * nlayers <= PAIR_KV_MAX);
    memcpy(kv, s->kv, sizeof s->kv);
    for (size_t i = 0; i < 2 * nlayers; i++) {
        kv[4 + i] = s->kv[0];
        kv[4 + i].off = 65536 + i * 4096;
        kv[4 + i].flags = PDX_TENSOR_DRAFT;
        if (kv[4 + i].layer != PDX_LAYER_NONE)
            kv[4 + i].layer = (int32_t)(i % nlayers);
    }
    s->desc.kv = kv;
    s->desc.nkv += 2 * nlayers;
}

void pair_layouts(struct pair *p)
{
    struct pdx_layout *made = NULL;
    size_t len;
    uint8_t *buf;

    if (pdx_layout_create(&p->local.desc, &p->local.layout, &p->why) < 0 ||
        pdx_layout_create(&p->remote.desc, &made, &p->why) < 0)
        fail_msg("%s", p->why.text);
    len = pdx_layout_encode(made, NULL, 0);
    buf = malloc(len);
    assert_non_null(buf);
    assert_int_equal(pdx_layout_encode(made, buf, len), len);
    if (pdx_layout_decode(buf, len, &p->remote.layout, &p->why) < 0)
        fail_msg("%s", p->why.text);
    free(buf);
    pdx_layout_destroy(made);
}

void pair_route(struct pair *p, uint32_t flags)
{
    const struct pdx_route_opts opts = {.size = sizeof opts, .flags = flags};

    pair_layouts(p);
    if (pdx_route_create(fake_engine(), p->local.layout, fake_peer(), p->remote.layout, &opts,
                         &p->route, &p->why) < 0)
        fail_msg("%s", p->why.text);
}

void pair_fini(struct pair *p)
{
    pdx_route_destroy(p->route);
    pdx_layout_destroy(p->local.layout);
    pdx_layout_destroy(p->remote.layout);
    fake_reset();
}

void pair_has(const struct pair *p, const char *part)
{
    if (!strstr(p->why.text, part))
        fail_msg("\"%s\" lacks \"%s\"", p->why.text, part);
}
