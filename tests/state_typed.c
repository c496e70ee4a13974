/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_typed.h.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KV_OFF   4096u /* where the KV cache begins, behind the components */
#define KV_HEADS 8u

static void side_init(struct typed_side *s, enum fake_side side, const char *type)
{
    struct pdx_region *region = fake_region(side, 4 * KV_OFF);

    *s = (struct typed_side){.desc = PDX_LAYOUT_DESC_INIT};
    for (int i = 0; i < 2; i++) {
        s->tensors[i] =
            (struct pdx_tensor){.region = region, .off = i * 2048u, .layer = PDX_LAYER_NONE};
        typed_item_len(&s->tensors[i], 8);
        s->components[i] = (struct pdx_component){
            .type = i ? type : "mamba", .tensors = &s->tensors[i], .ntensors = 1};
    }
    s->desc.components = s->components;
    s->desc.ncomponents = 2;
}

void typed_init(struct typed *t, const char *type)
{
    *t = (struct typed){0};
    side_init(&t->local, FAKE_LOCAL, type);
    side_init(&t->remote, FAKE_REMOTE, type);
}

void typed_item_len(struct pdx_tensor *t, uint64_t item_len)
{
    t->item_len = item_len;
    t->len = TYPED_ITEMS * item_len;
}

void typed_kv(struct typed_side *s, enum pdx_kv_kind kind)
{
    for (int i = 0; i < 2; i++) {
        s->kv[i] = (struct pdx_tensor){
            .region = s->tensors[0].region, .off = KV_OFF + i * KV_OFF, .layer = PDX_LAYER_NONE};
        typed_item_len(&s->kv[i], kind == PDX_KV_MHA ? 8 * KV_HEADS / s->desc.tp_size : 8);
    }
    s->desc.kv_kind = kind;
    s->desc.page_size = 1;
    s->desc.total_kv_head_num = kind == PDX_KV_MHA ? KV_HEADS : 0;
    s->desc.kv = s->kv;
    s->desc.nkv = kind == PDX_KV_NONE ? 0 : 2;
}

int typed_route(struct typed *t, const struct pdx_route_opts *opts)
{
    if (pdx_layout_create(&t->local.desc, &t->local.layout, &t->why) < 0 ||
        pdx_layout_create(&t->remote.desc, &t->remote.layout, &t->why) < 0)
        fail_msg("%s", t->why.text);
    return pdx_route_create(fake_engine(), t->local.layout, fake_peer(), t->remote.layout, opts,
                            &t->route, &t->why);
}

int typed_route_flags(struct typed *t, uint32_t flags)
{
    const struct pdx_route_opts opts = {.size = sizeof opts, .flags = flags};

    return typed_route(t, &opts);
}

int typed_route_with(struct typed *t, const struct pdx_state_type *type, uint32_t flags)
{
    struct pdx_state_type copy = *type;
    const struct pdx_route_opts opts = {
        .size = sizeof opts, .flags = flags, .types = &copy, .ntypes = 1};
    int rc = typed_route(t, &opts);

    memset(&copy, 0xa5, sizeof copy);
    return rc;
}

int typed_send(struct typed *t, size_t src, size_t dst, struct pdx_transfer_status **ret_status)
{
    static const int32_t numbers[] = {4, 1, 7, 2, 9, 3};
    const struct pdx_index_list s[] = {{NULL, 0}, {numbers, src}};
    const struct pdx_index_list d[] = {{NULL, 0}, {numbers, dst}};
    struct pdx_transfer_status *st[2] = {NULL, NULL};
    size_t n;
    int rc = pdx_send_state(t->route, s, d, 2, NULL, st, 2, &n, &t->why);

    *ret_status = st[1];
    return rc;
}

void typed_begins(const struct typed *t, const char *text)
{
    if (strncmp(t->why.text, text, strlen(text)) != 0)
        fail_msg("\"%s\" does not begin \"%s\"", t->why.text, text);
}

void typed_has(const struct typed *t, const char *part)
{
    if (!strstr(t->why.text, part))
        fail_msg("\"%s\" lacks \"%s\"", t->why.text, part);
}

void typed_fini(struct typed *t)
{
    pdx_route_destroy(t->route);
    pdx_layout_destroy(t->local.layout);
    pdx_layout_destroy(t->remote.layout);
    fake_reset();
}
