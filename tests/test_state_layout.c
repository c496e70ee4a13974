/* SPDX-License-Identifier: Apache-2.0
 *
 * Layouts: what is refused and how it is said, and the encoded form: it comes
 * back the same, tolerates what later versions add, and refuses everything
 * that is cut or out of bounds with memory bounded by the input.
 */
#include "base/pack.h"
#include "fake_engine.h"
#include "state/layout.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire_vectors.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A description with one of everything, and what it points to. */
struct sample {
    struct pdx_region *region;
    struct pdx_tensor kv[4];
    struct pdx_tensor aux[1];
    struct pdx_tensor mamba[2];
    struct pdx_tensor swa[1];
    struct pdx_component components[2];
    struct pdx_layout_desc desc;
};

static const uint64_t conv_groups[] = {8, 8, 16};
static const uint64_t odd_groups[] = {9, 9, 16};
static const uint64_t zero_groups[] = {0, 16, 16};

static void sample_init(struct sample *s)
{
    uint64_t off = 0;

    *s = (struct sample){.region = fake_region(FAKE_LOCAL, 1 << 16)};
    for (int i = 0; i < 4; i++, off += 10 * 64)
        s->kv[i] = (struct pdx_tensor){
            .region = s->region, .off = off, .len = 640, .item_len = 64, .layer = 3 + i % 2};
    s->aux[0] = (struct pdx_tensor){.region = s->region, .off = off, .len = 80, .item_len = 8};
    s->aux[0].layer = PDX_LAYER_NONE;
    s->mamba[0] = (struct pdx_tensor){.region = s->region,
                                      .off = off + 80,
                                      .len = 960,
                                      .item_len = 96,
                                      .layer = PDX_LAYER_NONE,
                                      .shard_dim = 16,
                                      .outer = 3,
                                      .groups = conv_groups,
                                      .ngroups = 3};
    s->mamba[1] = s->mamba[0];
    s->mamba[1].ngroups = 0;
    s->mamba[1].off += 960;
    s->swa[0] = (struct pdx_tensor){.region = fake_region(FAKE_LOCAL, 4096),
                                    .len = 4096,
                                    .item_len = 1024,
                                    .layer = PDX_LAYER_NONE};
    s->components[0] = (struct pdx_component){.type = "mamba", .tensors = s->mamba, .ntensors = 2};
    s->components[1] = (struct pdx_component){.type = "swa", .tensors = s->swa, .ntensors = 1};
    s->desc = (struct pdx_layout_desc)PDX_LAYOUT_DESC_INIT;
    s->desc.engine_rank = 5;
    s->desc.tp_size = 2;
    s->desc.kv_kind = PDX_KV_MHA;
    s->desc.page_size = 4;
    s->desc.dtype = "bfloat16";
    s->desc.kv_head_num = 2;
    s->desc.total_kv_head_num = 4;
    s->desc.kv = s->kv;
    s->desc.nkv = 4;
    s->desc.aux = s->aux;
    s->desc.naux = 1;
    s->desc.components = s->components;
    s->desc.ncomponents = 2;
}

static struct pdx_layout *sample_layout(struct sample *s)
{
    struct pdx_layout *l;
    struct pdx_error why;

    if (pdx_layout_create(&s->desc, &l, &why) < 0)
        fail_msg("%s", why.text);
    return l;
}

static uint8_t *encoded(const struct pdx_layout *l, size_t *ret_len)
{
    uint8_t *buf;

    *ret_len = pdx_layout_encode(l, NULL, 0);
    buf = malloc(*ret_len);
    assert_non_null(buf);
    assert_int_equal(pdx_layout_encode(l, buf, *ret_len), *ret_len);
    return buf;
}

static int reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

/* One thing wrong at a time, and what the text must name. */
typedef void (*spoil_fn)(struct sample *s);

#define SPOIL(name, statement)                 \
    static void spoil_##name(struct sample *s) \
    {                                          \
        statement;                             \
    }

SPOIL(size, s->desc.size = 0)
SPOIL(tp, s->desc.tp_size = 0)
SPOIL(pp, s->desc.pp_rank = 1)
SPOIL(page, s->desc.page_size = 0)
SPOIL(kind, s->desc.kv_kind = (enum pdx_kv_kind)7)
SPOIL(kind_none, s->desc.kv_kind = PDX_KV_NONE)
SPOIL(no_kv, s->desc.nkv = 0)
SPOIL(odd_kv, s->desc.nkv = 3)
SPOIL(null_kv, s->desc.kv = NULL)
SPOIL(heads, s->desc.kv_head_num = 3)
SPOIL(heads_tp, s->desc.tp_size = 3)
SPOIL(dtype, s->desc.dtype = "a dtype with blanks")
SPOIL(dtype_long, s->desc.dtype = "0123456789012345678901234567890123456789")
SPOIL(region, s->kv[2].region = NULL)
SPOIL(item_zero, s->kv[1].item_len = 0)
SPOIL(item_len, s->kv[1].len = 639)
SPOIL(page_heads, s->kv[3].item_len = 4; s->kv[3].len = 40)
SPOIL(kv_axis, s->kv[0].shard_dim = 2; s->kv[0].outer = 2)
SPOIL(layer_missing, s->kv[0].layer = PDX_LAYER_NONE)
SPOIL(layer_negative, s->swa[0].layer = -2)
SPOIL(layer_v, s->kv[3].layer = 9)
SPOIL(type_null, s->components[1].type = NULL)
SPOIL(type_empty, s->components[1].type = "")
SPOIL(type_long, s->components[1].type = "123456789012345678901234567890123")
SPOIL(no_tensors, s->components[1].ntensors = 0)
SPOIL(axis, s->mamba[1].shard_dim = 7)
SPOIL(rows, s->mamba[1].outer = 5)
SPOIL(groups_sum, s->mamba[0].shard_dim = 8)
SPOIL(groups_tp, s->mamba[0].groups = odd_groups)
SPOIL(groups_zero, s->mamba[0].groups = zero_groups)
SPOIL(groups_null, s->mamba[0].groups = NULL)
SPOIL(groups_many, s->mamba[0].ngroups = 65)
SPOIL(components_many, s->desc.ncomponents = 65)
SPOIL(components_null, s->desc.components = NULL)
SPOIL(tensors_many, s->desc.naux = 16384)
SPOIL(start, s->desc.start_layer = 0x7fffffff)
SPOIL(leaves, s->swa[0].off = 1)
SPOIL(wraps, s->swa[0].off = UINT64_MAX - 100)

static const struct {
    spoil_fn spoil;
    int code;
    const char *text;
} spoiled[] = {
    {spoil_size, PDX_EINVAL, "PDX_LAYOUT_DESC_INIT"},
    {spoil_tp, PDX_EINVAL, "tp_size is 0"},
    {spoil_pp, PDX_EINVAL, "pp_rank 1 is not below pp_size 1"},
    {spoil_page, PDX_EINVAL, "page_size is 0"},
    {spoil_kind, PDX_EINVAL, "kv_kind 7"},
    {spoil_kind_none, PDX_EINVAL, "kv_kind is none, but there are 4 KV tensors"},
    {spoil_no_kv, PDX_EINVAL, "KV memory descriptors are empty"},
    {spoil_odd_kv, PDX_EINVAL, "kv: there are 3 tensors: MHA needs K of every layer"},
    {spoil_null_kv, PDX_EINVAL, "kv: there are 4 tensors, but their pointer is NULL"},
    {spoil_heads, PDX_EINVAL, "kv_head_num is 3, but 4 heads (total_kv_head_num) over tp_size 2"},
    {spoil_heads_tp, PDX_EINVAL, "total_kv_head_num 4 and tp_size 3"},
    {spoil_dtype, PDX_EINVAL, "dtype"},
    {spoil_dtype_long, PDX_EINVAL, "dtype"},
    {spoil_region, PDX_EINVAL, "kv tensor 2: region is NULL"},
    {spoil_item_zero, PDX_EINVAL, "kv tensor 1: len 640 is not a whole number of items of 0"},
    {spoil_item_len, PDX_EINVAL, "kv tensor 1: len 639 is not a whole number of items of 64"},
    {spoil_page_heads, PDX_EINVAL, "item_len 4 is not a multiple of page_size 4 x 2 heads"},
    {spoil_kv_axis, PDX_EINVAL, "kv tensor 0: shard_dim 2, outer 2"},
    {spoil_layer_missing, PDX_EINVAL, "3 of 4 tensors tell their layer"},
    {spoil_layer_negative, PDX_EINVAL, "layer -2 is negative"},
    {spoil_layer_v, PDX_EINVAL, "tensor 3 (its V) of layer 9"},
    {spoil_type_null, PDX_EINVAL, "component 1: its type"},
    {spoil_type_empty, PDX_EINVAL, "component 1: its type"},
    {spoil_type_long, PDX_EINVAL, "component 1: its type"},
    {spoil_no_tensors, PDX_EINVAL, "component 1 (swa) has no tensors"},
    {spoil_axis, PDX_EINVAL, "component 0 (mamba) tensor 1: item_len 96"},
    {spoil_rows, PDX_EINVAL, "item_len 96 is not a multiple of outer 5"},
    {spoil_groups_sum, PDX_EINVAL, "are 16 units on a rank of tp_size 2, but shard_dim is 8"},
    {spoil_groups_tp, PDX_EINVAL, "neither is a multiple of tp_size 2"},
    {spoil_groups_zero, PDX_EINVAL, "neither is a multiple of tp_size 2"},
    {spoil_groups_null, PDX_EINVAL, "component 0 tensor 0: 3 groups"},
    {spoil_groups_many, PDX_EINVAL, "component 0 tensor 0: 65 groups"},
    {spoil_components_many, PDX_EINVAL, "65 components"},
    {spoil_components_null, PDX_EINVAL, "2 components, but their pointer is NULL"},
    {spoil_tensors_many, PDX_EINVAL, "aux: more than 16384 tensors"},
    {spoil_start, PDX_EINVAL, "start_layer 2147483647"},
    {spoil_leaves, PDX_ERANGE, "off 1 + len 4096 leaves its region of 4096"},
    {spoil_wraps, PDX_ERANGE, "leaves its region of 4096"},
};

static void test_layout_names_each_mistake(void **state)
{
    struct pdx_layout *l = NULL;
    struct pdx_error why;
    struct sample s;

    (void)state;
    for (size_t i = 0; i < COUNT(spoiled); i++) {
        int rc;

        sample_init(&s);
        spoiled[i].spoil(&s);
        rc = pdx_layout_create(&s.desc, &l, &why);
        if (rc != spoiled[i].code || why.code != rc || !strstr(why.text, spoiled[i].text))
            fail_msg("%zu: got %s, \"%s\", not \"%s\"", i, pdx_err_name(rc), why.text,
                     spoiled[i].text);
        assert_int_equal(why.cost, PDX_COST_NONE);
        assert_null(l); /* untouched */
        assert_int_equal(pdx_layout_create(&s.desc, &l, NULL), rc);
    }
}

static void test_layout_tells_all_mistakes_at_once(void **state)
{
    struct pdx_layout *l;
    struct pdx_error why;
    struct sample s;

    (void)state;
    sample_init(&s);
    s.kv[1].len = 639;
    s.desc.kv_head_num = 3;
    s.mamba[1].shard_dim = 7;
    s.swa[0].off = 1;
    assert_int_equal(pdx_layout_create(&s.desc, &l, &why), PDX_EINVAL);
    assert_non_null(strstr(why.text, "(1) kv_head_num is 3"));
    assert_non_null(strstr(why.text, "kv tensor 1"));
    assert_non_null(strstr(why.text, "component 0 (mamba) tensor 1"));
    assert_non_null(strstr(why.text, "component 1 (swa) tensor 0"));
}

/* More than a text can hold: whole sentences, and how many are missing. */
static void test_layout_counts_mistakes_that_do_not_fit(void **state)
{
    struct pdx_tensor t[200];
    struct pdx_component c = {.type = "mamba", .tensors = t, .ntensors = COUNT(t)};
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct pdx_region *region = fake_region(FAKE_LOCAL, 100);
    struct pdx_layout *l;
    struct pdx_error why;
    unsigned more = 0;
    int shown = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(t); i++)
        t[i] = (struct pdx_tensor){.region = region, .len = 200, .item_len = 100};
    d.components = &c;
    d.ncomponents = 1;
    assert_int_equal(pdx_layout_create(&d, &l, &why), PDX_ERANGE);
    for (const char *p = why.text; (p = strstr(p, "Register the whole tensor.")) != NULL; p++)
        shown++;
    assert_true(shown > 5);
    assert_int_equal(sscanf(strrchr(why.text, '.'), ". and %u more", &more), 1);
    assert_int_equal((unsigned)shown + more, COUNT(t));
}

/* A program that was built against a shorter description gets the defaults for the rest. */
static void test_layout_reads_no_more_than_size(void **state)
{
    struct pdx_layout *l;
    struct pdx_error why;
    struct sample s;

    (void)state;
    sample_init(&s);
    s.desc.size = offsetof(struct pdx_layout_desc, components);
    s.desc.components = (const struct pdx_component *)1;
    assert_int_equal(pdx_layout_create(&s.desc, &l, &why), 0);
    pdx_layout_destroy(l);
    pdx_layout_destroy(NULL);
}

static void test_encoded_layout_comes_back_the_same(void **state)
{
    struct pdx_layout *l, *back;
    struct pdx_error why;
    struct sample s;
    size_t len, again_len;
    uint8_t *buf, *again;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    if (pdx_layout_decode(buf, len, &back, &why) < 0)
        fail_msg("%s", why.text);
    again = encoded(back, &again_len);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, buf, len);
    assert_int_equal(pdx_route_check(l, back, NULL, &why), 0);
    free(buf);
    free(again);
    pdx_layout_destroy(l);
    pdx_layout_destroy(back);
}

static void test_encode_into_a_small_buffer_writes_nothing(void **state)
{
    struct pdx_layout *l;
    struct sample s;
    uint8_t buf[64];

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    memset(buf, 0xa5, sizeof buf);
    assert_true(pdx_layout_encode(l, buf, sizeof buf) > sizeof buf);
    for (size_t i = 0; i < sizeof buf; i++)
        assert_int_equal(buf[i], 0xa5);
    pdx_layout_destroy(l);
}

/* Copies of exactly the input's size, so that a read behind it is seen. */
static int decode_copy(const uint8_t *buf, size_t len, struct pdx_layout **ret,
                       struct pdx_error *why)
{
    uint8_t *copy = malloc(len ? len : 1);
    int rc;

    assert_non_null(copy);
    memcpy(copy, buf, len);
    rc = pdx_layout_decode(copy, len, ret, why);
    free(copy);
    return rc;
}

static void test_every_truncation_of_a_layout_is_refused(void **state)
{
    struct pdx_layout *l, *back = NULL;
    struct pdx_error why;
    struct sample s;
    size_t len;
    uint8_t *buf;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    for (size_t n = 0; n < len; n++) {
        assert_int_equal(decode_copy(buf, n, &back, &why), PDX_EPROTO);
        assert_true(why.text[0] != '\0');
        assert_null(back);
    }
    free(buf);
    pdx_layout_destroy(l);
}

/* Each byte changed in turn: refused, or a layout that encodes and compares without harm. */
static void test_changed_bytes_of_a_layout_do_no_harm(void **state)
{
    struct pdx_layout *l, *back;
    struct pdx_error why;
    struct sample s;
    size_t len, accepted = 0;
    uint8_t *buf;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    for (size_t n = 0; n < len; n++)
        for (int flip = 1; flip < 256; flip += 42) {
            buf[n] ^= (uint8_t)flip;
            if (decode_copy(buf, len, &back, &why) == 0) {
                size_t ignored;

                accepted++;
                (void)pdx_route_check(l, back, NULL, &why);
                free(encoded(back, &ignored));
                pdx_layout_destroy(back);
            }
            buf[n] ^= (uint8_t)flip;
        }
    assert_true(accepted > 0); /* keys of a region, lengths that still fit, ... */
    free(buf);
    pdx_layout_destroy(l);
}

/* Appends a key to the map of an encoded layout, which has 16 keys. */
static uint8_t *with_key(const uint8_t *buf, size_t len, size_t *ret_len)
{
    struct pdxi_packer p;
    uint8_t *more = malloc(len + 64);

    assert_non_null(more);
    assert_memory_equal(buf, "\xde\x00\x10", 3);
    memcpy(more, buf, len);
    more[2]++;
    pdxi_pack_init(&p, more + len, 64);
    pdxi_pack_str(&p, "later");
    pdxi_pack_array(&p, 2);
    pdxi_pack_uint(&p, 1);
    pdxi_pack_map(&p, 1);
    pdxi_pack_str(&p, "x");
    pdxi_pack_str(&p, "y");
    *ret_len = len + p.len;
    return more;
}

static void test_unknown_keys_of_a_layout_are_skipped(void **state)
{
    struct pdx_layout *l, *back;
    struct pdx_error why;
    struct sample s;
    size_t len, more_len, again_len;
    uint8_t *buf, *more, *again;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    more = with_key(buf, len, &more_len);
    if (decode_copy(more, more_len, &back, &why) < 0)
        fail_msg("%s", why.text);
    again = encoded(back, &again_len);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, buf, len);
    free(buf);
    free(more);
    free(again);
    pdx_layout_destroy(l);
    pdx_layout_destroy(back);
}

/* Where the value of a key begins. */
static uint8_t *value_of(uint8_t *buf, size_t len, const char *key)
{
    size_t klen = strlen(key);
    uint8_t *p = buf;

    while ((p = memchr(p, 0xa0 | (int)klen, len - (size_t)(p - buf))) != NULL) {
        if (memcmp(p + 1, key, klen) == 0)
            return p + 1 + klen;
        p++;
    }
    fail_msg("no key %s", key);
    return NULL;
}

static void test_layout_of_another_version_or_kind_is_refused(void **state)
{
    struct pdx_layout *l, *back;
    struct pdx_error why;
    struct sample s;
    size_t len;
    uint8_t *buf;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    *value_of(buf, len, "v") = 2;
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EVERSION);
    assert_non_null(strstr(why.text, "version 2"));
    *value_of(buf, len, "v") = 1;
    *value_of(buf, len, "kv_kind") = 4;
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_non_null(strstr(why.text, "kv_kind"));
    *value_of(buf, len, "kv_kind") = 1;
    value_of(buf, len, "pdx")[1] = 'k';
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_int_equal(pdx_layout_decode(NULL, 0, &back, &why), PDX_EINVAL);
    free(buf);
    pdx_layout_destroy(l);
}

/* What a peer sends is judged by the rules for one's own description. */
static void test_decoded_layout_obeys_the_same_rules(void **state)
{
    struct pdx_layout *l, *back;
    struct pdx_error why;
    struct sample s;
    size_t len;
    uint8_t *buf;

    (void)state;
    sample_init(&s);
    l = sample_layout(&s);
    buf = encoded(l, &len);
    *value_of(buf, len, "heads") = 3;
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_non_null(strstr(why.text, "kv_head_num is 3"));
    free(buf);
    pdx_layout_destroy(l);
}

/* Encodes a layout from parts: `nregions` empty descriptors or none, `n` aux tensors of `elements`
 * small numbers. */
static size_t crafted(uint8_t *buf, size_t cap, size_t nregions, size_t n, size_t elements)
{
    static const char *const keys[] = {"rank", "tp",    "pp",          "pp_rank",    "kv_kind",
                                       "page", "heads", "total_heads", "start_layer"};
    static const uint8_t values[] = {0, 1, 1, 0, 0, 1, 0, 0, 0};
    struct pdxi_packer p;

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
    pdxi_pack_array(&p, nregions);
    for (size_t i = 0; i < nregions; i++)
        pdxi_pack_bin(&p, "", 0);
    pdxi_pack_str(&p, "kv");
    pdxi_pack_array(&p, 0);
    pdxi_pack_str(&p, "aux");
    pdxi_pack_array(&p, n);
    for (size_t i = 0; i < n; i++) {
        pdxi_pack_array(&p, elements);
        for (size_t k = 0; k < elements; k++)
            pdxi_pack_uint(&p, 0);
    }
    pdxi_pack_str(&p, "state");
    pdxi_pack_array(&p, 0);
    assert_true(pdxi_pack_fits(&p));
    return p.len;
}

static void test_layout_limits_hold_on_the_wire(void **state)
{
    size_t cap = 1 << 20;
    uint8_t *buf = malloc(cap);
    struct pdx_layout *back;
    struct pdx_error why;
    size_t len;

    (void)state;
    assert_non_null(buf);
    len = crafted(buf, cap, 0, 16385, 4);
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_non_null(strstr(why.text, "aux"));
    len = crafted(buf, cap, 16385, 0, 4);
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_non_null(strstr(why.text, "regions"));
    len = crafted(buf, cap, 0, 1, 3); /* too few elements */
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    len = crafted(buf, cap, 0, 1, 4); /* refers to a region that is not there */
    assert_int_equal(decode_copy(buf, len, &back, &why), PDX_EPROTO);
    assert_int_equal(pdx_layout_decode(buf, (16 << 20) + 1, &back, &why), PDX_EPROTO);
    assert_non_null(strstr(why.text, "16777217"));
    free(buf);
}

/* The example that doc/state.md points to. */
static void test_documented_layout_is_read_and_written(void **state)
{
    struct pdx_layout *l;
    struct pdx_error why;
    uint8_t doc[1024];
    uint8_t buf[1024];
    size_t len = wire_vector("layout", doc, sizeof doc);

    (void)state;
    if (pdx_layout_decode(doc, len, &l, &why) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(l->engine_rank, 3);
    assert_int_equal(l->rank.tp_rank, 1);
    assert_int_equal(l->rank.page_size, 64);
    assert_string_equal(l->dtype, "bfloat16");
    assert_int_equal(l->regions[0].remote.id, 7);
    assert_int_equal(pdxi_layout_kv(l).n, 2);
    assert_int_equal(pdxi_layout_kv(l).at[1].off, 65536000);
    assert_int_equal(pdxi_layout_kv(l).at[1].layer, 3);
    assert_int_equal(pdxi_layout_aux(l).at[0].layer, PDX_LAYER_NONE);
    assert_int_equal(l->ncomponents, 1);
    assert_string_equal(l->components[0].type, "mamba");
    assert_int_equal(l->components[0].slots, 1);
    assert_int_equal(pdxi_layout_component(l, 0).at[0].outer, 3);
    assert_int_equal(pdxi_layout_component(l, 0).at[0].groups[2], 4096);
    assert_int_equal(pdxi_layout_component(l, 0).at[1].shard_dim, 16);
    assert_int_equal(pdx_layout_encode(l, buf, sizeof buf), len);
    assert_memory_equal(buf, doc, len);
    pdx_layout_destroy(l);
}

/* The largest number of tensors, each in a region of its own. */
static void test_largest_layout_goes_over_the_wire(void **state)
{
    enum { N = 16384 };
    struct pdx_tensor *t = calloc(N + 1, sizeof *t);
    struct pdx_component c = {.type = "mamba", .tensors = t, .ntensors = N};
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct pdx_layout *l, *back;
    struct pdx_error why;
    size_t len;
    uint8_t *buf;

    (void)state;
    assert_non_null(t);
    for (size_t i = 0; i <= N; i++)
        t[i] = (struct pdx_tensor){.region = fake_region(FAKE_LOCAL, 8),
                                   .len = 8,
                                   .item_len = 4,
                                   .layer = (int32_t)(i / 2)};
    d.components = &c;
    d.ncomponents = 1;
    c.ntensors = N + 1;
    assert_int_equal(pdx_layout_create(&d, &l, &why), PDX_EINVAL);
    c.ntensors = N;
    if (pdx_layout_create(&d, &l, &why) < 0)
        fail_msg("%s", why.text);
    buf = encoded(l, &len);
    if (pdx_layout_decode(buf, len, &back, &why) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(pdx_route_check(l, back, NULL, &why), 0);
    free(buf);
    free(t);
    pdx_layout_destroy(l);
    pdx_layout_destroy(back);
}

static void test_decoding_a_layout_takes_memory_by_its_length(void **state)
{
    size_t cap = 1 << 20;
    uint8_t *buf = malloc(cap);
    struct pdx_layout *back;
    struct ts_mallocs before, after;
    size_t len;

    (void)state;
    assert_non_null(buf);
    len = crafted(buf, cap, 0, 16384, 4);
    ts_mallocs_mark();
    before = ts_mallocs_now();
    assert_int_equal(pdx_layout_decode(buf, len, &back, NULL), PDX_EPROTO);
    after = ts_mallocs_now();
    if (ts_mallocs_counted()) {
        assert_true(after.peak - before.live > len);
        assert_true(after.peak - before.live <= 128 * len + 65536);
        assert_int_equal(after.live, before.live);
    }
    free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_layout_names_each_mistake, reset),
        cmocka_unit_test_teardown(test_layout_tells_all_mistakes_at_once, reset),
        cmocka_unit_test_teardown(test_layout_counts_mistakes_that_do_not_fit, reset),
        cmocka_unit_test_teardown(test_layout_reads_no_more_than_size, reset),
        cmocka_unit_test_teardown(test_encoded_layout_comes_back_the_same, reset),
        cmocka_unit_test_teardown(test_encode_into_a_small_buffer_writes_nothing, reset),
        cmocka_unit_test_teardown(test_every_truncation_of_a_layout_is_refused, reset),
        cmocka_unit_test_teardown(test_changed_bytes_of_a_layout_do_no_harm, reset),
        cmocka_unit_test_teardown(test_unknown_keys_of_a_layout_are_skipped, reset),
        cmocka_unit_test_teardown(test_layout_of_another_version_or_kind_is_refused, reset),
        cmocka_unit_test_teardown(test_decoded_layout_obeys_the_same_rules, reset),
        cmocka_unit_test_teardown(test_layout_limits_hold_on_the_wire, reset),
        cmocka_unit_test(test_documented_layout_is_read_and_written),
        cmocka_unit_test_teardown(test_largest_layout_goes_over_the_wire, reset),
        cmocka_unit_test_teardown(test_decoding_a_layout_takes_memory_by_its_length, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
