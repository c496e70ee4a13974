/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tensors of a layout may say: parts of a layer, draft models, copies,
 * strides, whose bytes they are, and lists that are empty on a pipeline stage.
 * All of it comes back from the encoded form, and is judged there too.
 */
#include "base/pack.h"
#include "fake_engine.h"
#include "state/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define REGION_LEN 65536

/* Two layers of keys, values and a latent, a draft model of one layer, an aux buffer, a state. */
struct sample {
    struct pdx_tensor kv[8];
    struct pdx_tensor aux[2];
    struct pdx_tensor mamba[2];
    struct pdx_component components[1];
    struct pdx_layout_desc desc;
};

static const uint64_t head_group[] = {4};

static struct pdx_tensor tensor(struct pdx_region *region, uint64_t *off, uint64_t item_len,
                                enum pdx_kv_part part, int32_t layer)
{
    struct pdx_tensor t = {.region = region,
                           .off = *off,
                           .len = 10 * item_len,
                           .item_len = item_len,
                           .part = part,
                           .layer = layer};

    *off += t.len;
    return t;
}

static void sample_init(struct sample *s)
{
    struct pdx_region *region = fake_region(FAKE_LOCAL, REGION_LEN);
    uint64_t off = 0;

    *s = (struct sample){.desc = PDX_LAYOUT_DESC_INIT};
    for (int32_t i = 0; i < 2; i++) {
        s->kv[3 * i] = tensor(region, &off, 64, PDX_KV_PART_K, i);
        s->kv[3 * i + 1] = tensor(region, &off, 64, PDX_KV_PART_V, i);
        s->kv[3 * i + 2] = tensor(region, &off, 20, PDX_KV_PART_LATENT, i);
    }
    s->kv[6] = tensor(region, &off, 64, PDX_KV_PART_K, 0);
    s->kv[7] = tensor(region, &off, 64, PDX_KV_PART_V, 0);
    s->kv[6].flags = s->kv[7].flags = PDX_TENSOR_DRAFT;
    s->aux[0] = tensor(region, &off, 8, 0, PDX_LAYER_NONE);
    s->aux[1] = tensor(region, &off, 8, 0, PDX_LAYER_NONE);
    s->mamba[0] = tensor(region, &off, 30, 0, 7);
    s->mamba[1] = tensor(region, &off, 30, 0, 8);
    s->mamba[0].flags = PDX_TENSOR_REPLICATED;
    s->mamba[1].shard_dim = 5;
    s->components[0] =
        (struct pdx_component){.type = "mamba", .tensors = s->mamba, .ntensors = 2, .slots = 3};
    s->desc.tp_size = 2;
    s->desc.kv_kind = PDX_KV_MIXED;
    s->desc.page_size = 4;
    s->desc.total_kv_head_num = 4;
    s->desc.kv = s->kv;
    s->desc.nkv = 8;
    s->desc.aux = s->aux;
    s->desc.naux = 2;
    s->desc.components = s->components;
    s->desc.ncomponents = 1;
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

typedef void (*bend_fn)(struct sample *s);

#define BEND(name, statement)                 \
    static void bend_##name(struct sample *s) \
    {                                         \
        statement;                            \
    }

/* Items of kv[0] and kv[1] in turns of `stride`, the second one `phase` behind the first. */
static void turns(struct sample *s, uint64_t stride, uint64_t phase)
{
    for (int i = 0; i < 2; i++) {
        s->kv[i].off = 32768 + (i ? phase : 0);
        s->kv[i].stride = stride;
        s->kv[i].len = 9 * stride + 64;
    }
}

/* As MHA: K of both layers, then V of both; places tell the parts. */
static void as_mha(struct sample *s)
{
    s->kv[2] = s->kv[4];
    s->kv[1].layer = 1;
    s->kv[2].layer = 0;
    s->kv[4] = s->kv[6];
    s->kv[5] = s->kv[7];
    for (int i = 0; i < 6; i++)
        s->kv[i].part = PDX_KV_PART_BY_KIND;
    s->desc.kv_kind = PDX_KV_MHA;
    s->desc.nkv = 6;
}

/* As MLA: the two latents only. */
static void as_mla(struct sample *s)
{
    s->kv[0] = s->kv[2];
    s->kv[1] = s->kv[5];
    s->kv[0].part = s->kv[1].part = PDX_KV_PART_BY_KIND;
    s->desc.kv_kind = PDX_KV_MLA;
    s->desc.nkv = 2;
}

static void untell_layers(struct sample *s)
{
    for (size_t i = 0; i < s->desc.nkv; i++)
        s->kv[i].layer = PDX_LAYER_NONE;
}

BEND(nothing, (void)s)
BEND(mha, as_mha(s))
BEND(mha_untold, as_mha(s); untell_layers(s))
BEND(mha_told_parts, as_mha(s); s->kv[0].part = s->kv[1].part = PDX_KV_PART_V;
     s->kv[2].part = s->kv[3].part = PDX_KV_PART_K)
BEND(mla, as_mla(s))
BEND(mla_draft_heads, as_mla(s); s->kv[2] = s->kv[6]; s->kv[3] = s->kv[7]; s->desc.nkv = 4)
BEND(no_draft, s->desc.nkv = 6)
BEND(only_draft, s->desc.kv = s->kv + 6; s->desc.nkv = 2)
BEND(turns_fit, turns(s, 128, 64))
BEND(turns_gap, turns(s, 150, 70))
BEND(one_item, s->kv[0].len = 64; s->kv[0].stride = 1000)
BEND(own_heads, s->kv[0].shard_dim = 8; s->kv[0].outer = 4)
BEND(own_heads_rows, s->kv[0].shard_dim = 8)
BEND(own_copies, s->kv[6].shard_dim = 2; s->kv[6].groups = head_group; s->kv[6].ngroups = 1)
BEND(lists_share, s->aux[0].off = s->mamba[0].off; s->mamba[1].off = s->kv[3].off)
BEND(empty_stage, s->desc.pp_size = 2; s->desc.nkv = 0; s->components[0].ntensors = 0)
BEND(empty_rank, s->desc.pp_size = 2; s->desc.nkv = s->desc.naux = s->desc.ncomponents = 0)

static const struct {
    const char *name;
    bend_fn bend;
} good[] = {
    {"nothing", bend_nothing},
    {"mha", bend_mha},
    {"mha_untold", bend_mha_untold},
    {"mha_told_parts", bend_mha_told_parts},
    {"mla", bend_mla},
    {"mla_draft_heads", bend_mla_draft_heads},
    {"no_draft", bend_no_draft},
    {"only_draft", bend_only_draft},
    {"turns_fit", bend_turns_fit},
    {"turns_gap", bend_turns_gap},
    {"one_item", bend_one_item},
    {"own_heads", bend_own_heads},
    {"own_heads_rows", bend_own_heads_rows},
    {"own_copies", bend_own_copies},
    {"lists_share", bend_lists_share},
    {"empty_stage", bend_empty_stage},
    {"empty_rank", bend_empty_rank},
};

BEND(stride_short, s->kv[0].stride = 63)
BEND(stride_end, s->kv[0].stride = 65; s->kv[0].len = 640)
BEND(stride_pad, s->kv[0].stride = 100; s->kv[0].len = 1000)
BEND(len_short, s->kv[0].stride = 100; s->kv[0].len = 63)
BEND(same_bytes, s->kv[1].off = s->kv[0].off)
BEND(one_byte, s->kv[1].off = s->kv[0].off + 639)
BEND(turns_meet, turns(s, 127, 64))
BEND(turns_behind, turns(s, 128, 65))
BEND(turns_before, turns(s, 128, 63))
BEND(turns_strides, turns(s, 128, 64); s->kv[1].stride = 256; s->kv[1].len = 4 * 256 + 64)
BEND(draft_share, s->kv[7].off = s->kv[0].off)
BEND(aux_share, s->aux[1].off = s->aux[0].off + 72)
BEND(state_share, s->mamba[1].off = s->mamba[0].off)
BEND(draft_first, s->kv[0].flags = PDX_TENSOR_DRAFT)
BEND(draft_state, s->mamba[1].flags = PDX_TENSOR_DRAFT)
BEND(replicated_kv, s->kv[2].flags = PDX_TENSOR_REPLICATED)
BEND(flags_aux, s->aux[0].flags = PDX_TENSOR_REPLICATED)
BEND(flags_unknown, s->mamba[1].flags = 4)
BEND(replicated_axis, s->mamba[0].shard_dim = 5)
BEND(part_missing, s->kv[4].part = PDX_KV_PART_BY_KIND)
BEND(part_draft_missing, s->kv[6].part = PDX_KV_PART_BY_KIND)
BEND(part_none, for (int i = 0; i < 8; i++) s->kv[i].part = PDX_KV_PART_BY_KIND)
BEND(part_unknown, s->kv[0].part = (enum pdx_kv_part)4)
BEND(part_state, s->mamba[0].part = PDX_KV_PART_K)
BEND(part_aux, s->aux[1].part = PDX_KV_PART_LATENT)
BEND(part_mha, as_mha(s); for (int i = 0; i < 4; i++) s->kv[i].part = PDX_KV_PART_LATENT)
BEND(part_mla, as_mla(s); s->kv[0].part = s->kv[1].part = PDX_KV_PART_V)
BEND(part_some, as_mha(s); s->kv[0].part = PDX_KV_PART_K)
BEND(mixed_untold, untell_layers(s))
BEND(mixed_some_untold, s->kv[2].layer = PDX_LAYER_NONE)
BEND(draft_some_untold, s->kv[7].layer = PDX_LAYER_NONE)
BEND(mha_draft_odd, as_mha(s); s->desc.nkv = 5)
BEND(layer_end, s->mamba[1].layer = PDX_LAYERS_END)
BEND(own_rows, s->kv[0].shard_dim = 8; s->kv[0].outer = 2)
BEND(own_latent, s->kv[2].shard_dim = 5)
BEND(own_groups, s->kv[0].groups = head_group; s->kv[0].ngroups = 1)
BEND(own_units, s->kv[0].shard_dim = 7)
BEND(axis_aux, s->aux[0].shard_dim = 8)
BEND(rows_aux, s->aux[0].outer = 2)
BEND(slots_many, s->components[0].slots = 65537)
BEND(no_kv, s->desc.nkv = 0)
BEND(no_state, s->components[0].ntensors = 0)

static const struct {
    bend_fn bend;
    const char *text;
} bad[] = {
    {bend_stride_short, "kv tensor 0: stride 63 and len 640: a stride is at least item_len 64"},
    {bend_stride_end, "kv tensor 0: stride 65 and len 640"},
    {bend_stride_pad, "kv tensor 0: stride 100 and len 1000"},
    {bend_len_short, "kv tensor 0: len 63 is not a whole number of items of 64"},
    {bend_same_bytes, "kv tensors 0 and 1 share bytes"},
    {bend_one_byte,
     "kv tensors 0 and 1 share bytes of their region, or mix without taking turns: off 0, len 640"},
    {bend_turns_meet, "kv tensors 0 and 1 share bytes"},
    {bend_turns_behind, "kv tensors 0 and 1 share bytes"},
    {bend_turns_before, "kv tensors 0 and 1 share bytes"},
    {bend_turns_strides, "stride 128, and off 32832, len 1088, item_len 64, stride 256"},
    {bend_draft_share, "share bytes"},
    {bend_aux_share, "aux tensors 0 and 1 share bytes"},
    {bend_state_share, "component 0 (mamba) tensors 0 and 1 share bytes"},
    {bend_draft_first, "kv tensor 1 stands behind a draft tensor"},
    {bend_draft_state, "component 0 (mamba) tensor 1: flags 0x2; only 0x1 can stand here"},
    {bend_replicated_kv, "kv tensor 2: flags 0x1; only 0x2"},
    {bend_flags_aux, "aux tensor 0: flags 0x1; only 0x0"},
    {bend_flags_unknown, "component 0 (mamba) tensor 1: flags 0x4"},
    {bend_replicated_axis, "component 0 (mamba) tensor 0: it has shard_dim 5"},
    {bend_part_missing, "kv: 5 of 6 tensors tell their part"},
    {bend_part_draft_missing, "kv (draft): 1 of 2 tensors tell their part"},
    {bend_part_none, "kv: 0 of 6 tensors tell their part"},
    {bend_part_unknown, "kv tensor 0: part 4"},
    {bend_part_state, "component 0 (mamba) tensor 0: part is for KV tensors"},
    {bend_part_aux, "aux tensor 1: part is for KV tensors"},
    {bend_part_mha, "kv tensor 0: part 3 is not one of its kv_kind. Use PDX_KV_MIXED"},
    {bend_part_mla, "kv tensor 0: part 2 is not one of its kv_kind"},
    {bend_part_some, "kv: 1 of 4 tensors tell their part"},
    {bend_mixed_untold, "kv: Layer metadata length must match transfer entries: 0 of 6"},
    {bend_mixed_some_untold, "kv: Layer metadata length must match transfer entries: 5 of 6"},
    {bend_draft_some_untold, "kv (draft): Layer metadata length must match transfer entries: 1 of"},
    {bend_mha_draft_odd, "kv (draft): there are 1 tensors: MHA needs K"},
    {bend_layer_end, "component 0 (mamba) tensor 1: layer 2147483647 is negative or too large"},
    {bend_own_rows, "kv tensor 0: shard_dim 8, outer 2: only keys and values have heads"},
    {bend_own_latent, "kv tensor 2: shard_dim 5, outer 4: only keys and values"},
    {bend_own_groups, "kv tensor 0: shard_dim 0"},
    {bend_own_units, "kv tensor 0: item_len 64 is not a multiple of outer 4 x shard_dim 7"},
    {bend_axis_aux, "aux tensor 0: shard_dim, outer and groups are for tensors that TP splits"},
    {bend_rows_aux, "aux tensor 0: shard_dim, outer and groups"},
    {bend_slots_many, "component 0 (mamba): 65537 slots of one request are more than 65536"},
    {bend_no_kv, "KV memory descriptors are empty"},
    {bend_no_state, "component 0 (mamba) has no tensors"},
};

/* What is in order comes back the same from its encoded form. */
static void test_tensors_in_order_go_over_the_wire(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        uint8_t buf[4096], again[4096];
        struct pdx_layout *l, *back;
        struct pdx_error why;
        struct sample s;
        size_t len;

        sample_init(&s);
        good[i].bend(&s);
        if (pdx_layout_create(&s.desc, &l, &why) < 0)
            fail_msg("%s: %s", good[i].name, why.text);
        len = pdx_layout_encode(l, buf, sizeof buf);
        assert_true(len <= sizeof buf);
        if (pdx_layout_decode(buf, len, &back, &why) < 0)
            fail_msg("%s: %s", good[i].name, why.text);
        assert_int_equal(pdx_layout_encode(back, again, sizeof again), len);
        assert_memory_equal(buf, again, len);
        if (pdx_route_check(l, back, NULL, &why) < 0)
            fail_msg("%s: %s", good[i].name, why.text);
        pdx_layout_destroy(l);
        pdx_layout_destroy(back);
        fake_reset();
    }
}

static void test_tensors_out_of_order_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct pdx_layout *l = NULL;
        struct pdx_error why;
        struct sample s;

        sample_init(&s);
        bad[i].bend(&s);
        if (pdx_layout_create(&s.desc, &l, &why) != PDX_EINVAL || !strstr(why.text, bad[i].text))
            fail_msg("%zu: got %s, \"%s\", not \"%s\"", i, pdx_err_name(why.code), why.text,
                     bad[i].text);
        assert_null(l);
        fake_reset();
    }
}

/* The encoded form tells everything; a peer's is judged by the same rules. */
static void test_parts_strides_and_slots_are_on_the_wire(void **state)
{
    uint8_t buf[4096];
    struct pdx_layout *l, *back;
    struct sample s;
    size_t len;

    (void)state;
    sample_init(&s);
    turns(&s, 150, 70);
    assert_int_equal(pdx_layout_create(&s.desc, &l, NULL), 0);
    len = pdx_layout_encode(l, buf, sizeof buf);
    assert_int_equal(pdx_layout_decode(buf, len, &back, NULL), 0);
    assert_int_equal(back->rank.kv_kind, PDX_KV_MIXED);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(pdxi_layout_kv(back).at[i].part, s.kv[i].part);
    assert_int_equal(pdxi_layout_kv(back).at[1].stride, 150);
    assert_int_equal(pdxi_tensor_items(&pdxi_layout_kv(back).at[1]), 10);
    assert_int_equal(pdxi_layout_kv(back).at[2].stride, 20);
    assert_int_equal(pdxi_layout_kv(back).at[5].flags, 0);
    assert_int_equal(pdxi_layout_kv(back).at[6].flags, PDX_TENSOR_DRAFT);
    assert_int_equal(pdxi_layout_component(back, 0).at[0].flags, PDX_TENSOR_REPLICATED);
    assert_int_equal(back->components[0].slots, 3);
    pdx_layout_destroy(l);
    pdx_layout_destroy(back);
}

/* Elements 8 to 10 of the first KV tensor, from its stride on, and what stands behind them. */
static void pack_kv(struct pdxi_packer *p, uint64_t stride, uint64_t flags, uint64_t part,
                    bool more)
{
    pdxi_pack_array(p, more ? 12 : 11);
    pdxi_pack_uint(p, 0); /* region */
    pdxi_pack_uint(p, 0); /* off */
    pdxi_pack_uint(p, 40);
    pdxi_pack_uint(p, 4);
    pdxi_pack_int(p, 0); /* layer */
    pdxi_pack_uint(p, 0);
    pdxi_pack_uint(p, 1);
    pdxi_pack_array(p, 0);
    pdxi_pack_uint(p, stride);
    pdxi_pack_uint(p, flags);
    pdxi_pack_uint(p, part);
    if (more)
        pdxi_pack_str(p, "later");
}

/* A layout of one latent tensor and one component, written by hand. */
static size_t pack_layout(uint8_t *buf, size_t cap, uint64_t stride, uint64_t flags, uint64_t part,
                          bool more, uint64_t slots)
{
    static const char *const keys[] = {"rank", "tp",    "pp",          "pp_rank",    "kv_kind",
                                       "page", "heads", "total_heads", "start_layer"};
    static const uint8_t values[] = {0, 1, 2, 0, PDX_KV_MLA, 1, 0, 0, 0};
    uint8_t desc[256];
    struct pdxi_packer p;
    size_t len = pdx_region_export(fake_region(FAKE_REMOTE, 4096), desc, sizeof desc);

    pdxi_pack_init(&p, buf, cap);
    pdxi_pack_map(&p, COUNT(keys) + 7);
    pdxi_pack_str(&p, "pdx");
    pdxi_pack_str(&p, "layout");
    pdxi_pack_str(&p, "v");
    pdxi_pack_uint(&p, 1);
    for (size_t i = 0; i < COUNT(keys); i++) {
        pdxi_pack_str(&p, keys[i]);
        pdxi_pack_uint(&p, values[i]);
    }
    pdxi_pack_str(&p, "dtype");
    pdxi_pack_str(&p, "");
    pdxi_pack_str(&p, "regions");
    pdxi_pack_array(&p, 1);
    pdxi_pack_bin(&p, desc, len);
    pdxi_pack_str(&p, "kv");
    pdxi_pack_array(&p, 1);
    pack_kv(&p, stride, flags, part, more);
    pdxi_pack_str(&p, "aux");
    pdxi_pack_array(&p, 0);
    pdxi_pack_str(&p, "state");
    pdxi_pack_array(&p, 1);
    pdxi_pack_map(&p, 3);
    pdxi_pack_str(&p, "type");
    pdxi_pack_str(&p, "mamba");
    pdxi_pack_str(&p, "tensors");
    pdxi_pack_array(&p, 0);
    pdxi_pack_str(&p, "slots");
    pdxi_pack_uint(&p, slots);
    assert_true(pdxi_pack_fits(&p));
    return p.len;
}

static void test_tensors_of_a_peer_are_judged(void **state)
{
    static const struct {
        uint64_t stride, flags, part, slots;
        bool more;
        const char *text; /* NULL: it is in order */
    } cases[] = {
        {4, 0, 0, 1, false, NULL},
        {0, 0, PDX_KV_PART_LATENT, 0, true, NULL},
        {9, 0, 0, 1, false, NULL},
        {6, 0, 0, 65536, false, NULL},
        {6, 0, 0, 65537, false,
         "component 0 (mamba): 65537 slots of one request are more than 65536"},
        {5, 0, 0, 1, false, "stride 5 and len 40"},
        {3, 0, 0, 1, false, "stride 3 and len 40"},
        {UINT64_MAX, 0, 0, 1, false, "stride 18446744073709551615"},
        {4, 8, 0, 1, false, "flags 0x8"},
        {4, UINT64_C(1) << 32, 0, 1, false, "kv is missing, of another type or out of range"},
        {4, 0, 4, 1, false, "kv is missing, of another type or out of range"},
        {4, 0, 0, UINT64_C(1) << 31, false, "slots of one request are more than 65536"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_layout *l = NULL;
        struct pdx_error why = {.text = ""};
        uint8_t buf[1024];
        size_t len = pack_layout(buf, sizeof buf, cases[i].stride, cases[i].flags, cases[i].part,
                                 cases[i].more, cases[i].slots);
        int rc = pdx_layout_decode(buf, len, &l, &why);

        if (rc != (cases[i].text ? PDX_EPROTO : 0) ||
            (cases[i].text && !strstr(why.text, cases[i].text)))
            fail_msg("%zu: got %s, \"%s\"", i, pdx_err_name(rc), why.text);
        pdx_layout_destroy(l);
        fake_reset();
    }
}

/* Values at the ends of their types: what is taken here is taken by the peer too. */
static void test_what_is_made_can_be_read(void **state)
{
    static const uint32_t slots[] = {1, 65536, 65537, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT(slots); i++) {
        struct pdx_layout *l = NULL, *back = NULL;
        uint8_t buf[4096];
        struct pdx_error why;
        struct sample s;

        sample_init(&s);
        s.desc.engine_rank = UINT32_MAX;
        s.desc.pp_size = UINT32_MAX;
        s.desc.pp_rank = UINT32_MAX - 1;
        s.components[0].slots = slots[i];
        s.components[0].type = "12345678901234567890123456789012";
        if (pdx_layout_create(&s.desc, &l, NULL) < 0)
            continue;
        if (pdx_layout_decode(buf, pdx_layout_encode(l, buf, sizeof buf), &back, &why) < 0)
            fail_msg("slots %u: %s", slots[i], why.text);
        pdx_layout_destroy(l);
        pdx_layout_destroy(back);
        fake_reset();
    }
}

/* What one region number stands for: tensors of different regions share nothing. */
static void test_tensors_of_two_regions_share_nothing(void **state)
{
    struct pdx_layout *l;
    struct sample s;

    (void)state;
    sample_init(&s);
    s.kv[1].region = fake_region(FAKE_LOCAL, REGION_LEN);
    s.kv[1].off = s.kv[0].off;
    assert_int_equal(pdx_layout_create(&s.desc, &l, NULL), 0);
    pdx_layout_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_in_order_go_over_the_wire),
        cmocka_unit_test(test_tensors_out_of_order_are_named),
        cmocka_unit_test_teardown(test_parts_strides_and_slots_are_on_the_wire, reset),
        cmocka_unit_test(test_tensors_of_a_peer_are_judged),
        cmocka_unit_test_teardown(test_what_is_made_can_be_read, reset),
        cmocka_unit_test_teardown(test_tensors_of_two_regions_share_nothing, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
