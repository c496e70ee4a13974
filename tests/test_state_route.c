/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a route: what does not fit is found then, all of it in one message,
 * and what fits becomes one prepared job per payload.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* One thing different at a time, and what the text must have. */
typedef void (*bend_fn)(struct pair *p);

#define BEND(name, statement)               \
    static void bend_##name(struct pair *p) \
    {                                       \
        statement;                          \
    }

BEND(page_size, p->remote.desc.page_size = 2)
BEND(dtype, p->remote.desc.dtype = "float16")
BEND(dtype_untold, p->remote.desc.dtype = NULL)
BEND(kind, p->remote.desc.kv_kind = PDX_KV_MLA)
BEND(total, p->remote.desc.total_kv_head_num = 16)
BEND(heads, p->local.desc.total_kv_head_num = 0; p->local.desc.kv_head_num = 4;
     p->remote.desc.total_kv_head_num = 0; p->remote.desc.kv_head_num = 2)
BEND(kv_item, pair_item_len(&p->remote.kv[1], 64))
BEND(kv_own_heads, p->local.kv[0].shard_dim = 4; p->remote.kv[0].shard_dim = 8)
BEND(kv_count, p->remote.desc.nkv = 2)
BEND(kv_more, p->local.desc.nkv = 2)
BEND(kv_told, for (int i = 0; i < 4; i++) p->remote.kv[i].layer = i % 2)
BEND(kv_start, p->local.desc.start_layer = 1)
BEND(tp, p->remote.desc.tp_size = 3; p->remote.desc.total_kv_head_num = 0)
BEND(tp_rank, p->remote.desc.engine_rank = 0)
BEND(tp_wide, p->local.desc.tp_size = 1; p->local.desc.engine_rank = 0; p->remote.desc.tp_size = 2;
     p->remote.desc.total_kv_head_num = 0; p->local.desc.total_kv_head_num = 0)
BEND(pp, p->remote.desc.pp_size = 2)
BEND(pp_rank, p->local.desc.pp_size = p->remote.desc.pp_size = 2; p->remote.desc.pp_rank = 1)
BEND(component_count, p->remote.desc.ncomponents = 2)
BEND(order, p->remote.components[1].type = "dsa"; p->remote.components[2].type = "swa")
BEND(mamba_tensors, p->remote.components[0].ntensors = 1)
BEND(mamba_item, pair_item_len(&p->remote.mamba[1], 48))
BEND(mamba_dim, p->remote.mamba[1].shard_dim = 4)
BEND(mamba_outer, p->remote.mamba[0].outer = 2)
BEND(mamba_layers, p->remote.mamba[0].layer = 1; p->remote.mamba[1].layer = 1)
BEND(swa_item, pair_item_len(&p->remote.swa[0], 32))
BEND(aux_count, p->remote.desc.naux = 1)
BEND(aux_item, pair_item_len(&p->remote.aux[1], 8))

/* The remote side with half the ranks, so that items are twice as long. */
static void half_tp(struct pair *p)
{
    p->remote.desc.tp_size = 1;
    p->remote.desc.engine_rank = 0;
    for (int i = 0; i < 4; i++)
        pair_item_len(&p->remote.kv[i], 256);
    for (int i = 0; i < 2; i++) {
        pair_item_len(&p->remote.mamba[i], 192);
        p->remote.mamba[i].shard_dim = 16;
    }
    p->local.desc.ncomponents = p->remote.desc.ncomponents = 1;
}

BEND(swa_at_tp, half_tp(p); p->local.components[0] = p->local.components[1];
     p->remote.components[0] = p->remote.components[1])
BEND(dsa_at_tp, half_tp(p); p->local.components[0] = p->local.components[2];
     p->remote.components[0] = p->remote.components[2])
BEND(mamba_one_dim, half_tp(p); p->remote.mamba[0].shard_dim = 0)
BEND(mamba_no_dims, half_tp(p); p->remote.mamba[0].shard_dim = 0; p->local.mamba[0].shard_dim = 0)
BEND(mamba_copies_len, bend_mamba_no_dims(p); p->local.mamba[0].flags = PDX_TENSOR_REPLICATED;
     p->remote.mamba[0].flags = PDX_TENSOR_REPLICATED)
BEND(mamba_one_copy, bend_mamba_no_dims(p); pair_item_len(&p->remote.mamba[0], 96);
     p->remote.mamba[0].flags = PDX_TENSOR_REPLICATED)
BEND(mamba_same_dim, half_tp(p); p->remote.mamba[0].shard_dim = 8)
BEND(mamba_unit, half_tp(p); pair_item_len(&p->remote.mamba[0], 96))
BEND(kv_unit, half_tp(p); pair_item_len(&p->remote.kv[2], 128))
BEND(kv_heads_untold, half_tp(p); p->remote.desc.total_kv_head_num = 0)
BEND(pp_state, p->local.desc.pp_size = 2)

static const struct {
    const char *name;
    bend_fn bend;
    const char *text[3];
} bent[] = {
    {"page_size", bend_page_size, {"page_size: local 4, remote 2"}},
    {"dtype", bend_dtype, {"local bfloat16, remote float16"}},
    {"dtype_untold", bend_dtype_untold, {"local bfloat16, remote not told"}},
    {"kind", bend_kind, {"kv_kind: local MHA, remote MLA"}},
    {"total", bend_total, {"total_kv_head_num: local 8, remote 16"}},
    {"heads", bend_heads, {"kv_head_num: local 4, remote 2"}},
    {"kv_item", bend_kv_item, {"kv tensor 1: item_len: local 128, remote 64"}},
    {"kv_own_heads", bend_kv_own_heads, {"kv tensor 0: shard_dim: local 4, remote 8"}},
    {"kv_count",
     bend_kv_count,
     {"missing a transfer entry for model layer 1", "local has 2 entries, remote 1",
      "Destination KV descriptors do not match prefill pp configuration"}},
    {"kv_more", bend_kv_more, {"tensor count: local 1, remote 2"}},
    {"kv_told",
     bend_kv_told,
     {"Layer metadata must be provided by both PD peers or neither", "local tells layers: no"}},
    {"kv_start",
     bend_kv_start,
     {"missing a transfer entry for model layer 2", "local start_layer 1, remote start_layer 0"}},
    {"tp", bend_tp, {"tp_size: local 2, remote 3"}},
    {"tp_rank", bend_tp_rank, {"TP ranks: local 1 of 2, remote 0 of 2", "PDX_ROUTE_TRUST_PAIRING"}},
    {"tp_wide", bend_tp_wide, {"KV heads of the model: local 0 over tp_size 1"}},
    {"pp", bend_pp, {"Decode pp size (2) should be equal to prefill pp size (1) or 1"}},
    {"pp_rank", bend_pp_rank, {"pp_rank: local 0, remote 1"}},
    {"component_count",
     bend_component_count,
     {"state component count mismatch (local=3, remote=2)", "[mamba, swa, dsa]", "[mamba, swa]"}},
    {"order", bend_order, {"state types: local [mamba, swa, dsa], remote [mamba, dsa, swa]"}},
    {"mamba_tensors", bend_mamba_tensors, {"component 0 (mamba): tensor count: local 2, remote 1"}},
    {"mamba_item",
     bend_mamba_item,
     {"component 0 (mamba) tensor 1: item_len: local 96, remote 48"}},
    {"mamba_dim", bend_mamba_dim, {"shard_dim: local 8, remote 4 at the same TP size"}},
    {"mamba_outer", bend_mamba_outer, {"rows in front of the split axis (local 1, remote 2)"}},
    {"mamba_layers", bend_mamba_layers, {"Layer metadata must be provided by both PD peers"}},
    {"swa_item", bend_swa_item, {"component 1 (swa) tensor 0: item_len: local 64, remote 32"}},
    {"aux_count", bend_aux_count, {"aux: buffer count: local 2, remote 1"}},
    {"aux_item", bend_aux_item, {"aux buffer 1: item_len: local 16, remote 8"}},
    {"swa_at_tp",
     bend_swa_at_tp,
     {"PD state transfer does not support TP-mismatched non-MLA SWA models (prefill_tp_size=2, "
      "decode_tp_size=1)"}},
    {"dsa_at_tp", bend_dsa_at_tp, {"TP-mismatched non-MLA DSA models"}},
    {"mamba_one_dim", bend_mamba_one_dim, {"shard_dim: local 8, remote 0 at tp_size 2 and 1"}},
    {"mamba_no_dims",
     bend_mamba_no_dims,
     {"component 0 (mamba) tensor 0: PD state transfer does not support TP-mismatched "
      "MAMBA "
      "models (prefill_tp_size=2, decode_tp_size=1)",
      "PDX_TENSOR_REPLICATED"}},
    {"mamba_copies_len", bend_mamba_copies_len, {"tensor 0: item_len: local 96, remote 192"}},
    {"mamba_one_copy",
     bend_mamba_one_copy,
     {"tensor 0: shard_dim: local 0, remote 0 (replicated) at tp_size 2 and 1"}},
    {"mamba_same_dim",
     bend_mamba_same_dim,
     {"shard_dim x tp_size: local 8 x 2, remote 8 x 1 are not the same axis"}},
    {"mamba_unit", bend_mamba_unit, {"the bytes of one unit or the rows differ"}},
    {"kv_unit", bend_kv_unit, {"kv tensor 2: local has 128 bytes = 4 rows of 4 units, remote 128"}},
    {"kv_heads_untold",
     bend_kv_heads_untold,
     {"KV heads of the model: local 8 over tp_size 2, remote 0"}},
    {"pp_state", bend_pp_state, {"PP-heterogeneous transfer requires layer ids on both peers"}},
};

static void test_route_names_each_mismatch(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bent); i++) {
        struct pair p;

        pair_init(&p);
        bent[i].bend(&p);
        pair_layouts(&p);
        if (pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why) != PDX_EMISMATCH)
            fail_msg("%s: not found", bent[i].name);
        for (size_t k = 0; k < COUNT(bent[i].text) && bent[i].text[k]; k++)
            pair_has(&p, bent[i].text[k]);
        assert_int_equal(p.why.error_class, PDX_CLASS_CALLER);
        assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(),
                                          p.remote.layout, NULL, &p.route, NULL),
                         PDX_EMISMATCH);
        assert_null(p.route);
        assert_int_equal(fake_nprepared(), 0);
        pair_fini(&p);
    }
}

static void test_route_tells_all_mismatches_at_once(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    bend_page_size(&p);
    bend_dtype(&p);
    bend_kv_item(&p);
    bend_mamba_item(&p);
    bend_swa_item(&p);
    bend_aux_item(&p);
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "rank 1 (local) and rank 1 (remote) do not fit: (1) ");
    pair_has(&p, "page_size: local 4, remote 2");
    pair_has(&p, "float16");
    pair_has(&p, "kv tensor 1");
    pair_has(&p, "component 0 (mamba) tensor 1");
    pair_has(&p, "component 1 (swa) tensor 0");
    pair_has(&p, "aux buffer 1");
    pair_fini(&p);
}

/* The texts are about both sides: a few of many tensors stand for all, other payloads keep room. */
static void test_route_sums_up_many_equal_mismatches(void **state)
{
    struct pdx_tensor t[2][64];
    struct pair p;

    (void)state;
    pair_init(&p);
    for (int i = 0; i < 64; i++) {
        t[0][i] = p.local.kv[0];
        t[1][i] = p.remote.kv[0];
        t[0][i].off = t[1][i].off = (uint64_t)i * t[0][i].len;
        pair_item_len(&t[1][i], 64);
    }
    p.local.desc.kv = t[0];
    p.remote.desc.kv = t[1];
    p.local.desc.nkv = p.remote.desc.nkv = 64;
    bend_aux_item(&p);
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv tensor 2");
    pair_has(&p, "kv: 61 more of its tensors were not compared");
    pair_has(&p, "aux buffer 1");
    pair_fini(&p);
}

static void test_route_prepares_one_job_per_payload(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(fake_nprepared(), 5);
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0));
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_AUX, 0));
    for (size_t c = 0; c < 3; c++)
        assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, c));
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, 3));
    /* A route needs neither layout any more. */
    pdx_layout_destroy(p.local.layout);
    pdx_layout_destroy(p.remote.layout);
    p.local.layout = p.remote.layout = NULL;
    pdx_route_destroy(p.route);
    p.route = NULL;
    assert_int_equal(fake_nprepared(), 0);
    pdx_route_destroy(NULL);
    pair_fini(&p);
}

/* What was prepared before the refusal is given back. */
static void test_route_refused_by_the_engine_leaves_nothing(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    fake_refuse_prepare(0, PDX_EACCESS);
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_EACCESS);
    pair_has(&p, "kv: prepare was refused");
    assert_null(p.route);
    fake_refuse_prepare(1, PDX_EACCESS);
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_EACCESS);
    pair_has(&p, "aux: prepare was refused");
    assert_int_equal(fake_nprepared(), 0);
    pair_fini(&p);
}

static void test_route_wants_the_peer_as_it_runs_now(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    fake_peer_restart();
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_ESTALE);
    pair_has(&p, "decode-0");
    pair_fini(&p);
}

static void test_route_refuses_wrong_arguments(void **state)
{
    struct pdx_route_opts opts = {.size = sizeof opts, .flags = 16};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    assert_int_equal(
        pdx_route_create(fake_engine(), NULL, fake_peer(), p.remote.layout, NULL, &p.route, &p.why),
        PDX_EINVAL);
    assert_int_equal(pdx_route_create(fake_engine(), p.remote.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "the local layout is a decoded one");
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      &opts, &p.route, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "opts->flags 0x10: known are 0xf");
    opts = (struct pdx_route_opts){.flags = PDX_ROUTE_TRUST_PAIRING}; /* its flags would be lost */
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      &opts, &p.route, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "opts->size is 0");
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, NULL, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "ret_route");
    assert_int_equal(pdx_route_check(p.local.layout, NULL, NULL, &p.why), PDX_EINVAL);
    pair_fini(&p);
}

/* A type that is not known stops its own state, not the KV cache. */
static void test_route_with_an_unknown_type_carries_the_rest(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.components[1].type = p.remote.components[1].type = "weird";
    pair_route(&p, 0);
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0));
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, 0));
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, 1));
    pair_fini(&p);
}

/* Tensor `i` of the prepared KV job begins at this offset of the remote region. */
static void check_kv_pairs(struct pair *p, const uint64_t *remote_bases, size_t n)
{
    const int32_t page = 1;
    struct pdx_transfer_status *st;
    const struct pdx_job *job;

    if (pdx_send_kvcache(p->route, (struct pdx_index_list){&page, 1},
                         (struct pdx_index_list){&page, 1}, NULL, &st, &p->why) < 0)
        fail_msg("%s", p->why.text);
    job = fake_submission_of(st)->job;
    assert_int_equal(job->npairs, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(job->pairs[i].remote_base, remote_bases[i]);
}

/* A stage of two, layer 1, into a peer with both: K 1 and V 1. */
static void test_pp_stage_finds_its_layers(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = 2;
    p.local.desc.pp_rank = 1;
    p.local.desc.start_layer = 1;
    p.local.desc.nkv = 2;
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    pair_route(&p, 0);
    check_kv_pairs(&p, (uint64_t[]){p.remote.kv[1].off, p.remote.kv[3].off}, 2);
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_AUX, 0));
    pair_fini(&p);
}

/* The first of two stages does not know the first token: the last one sends aux. */
static void test_aux_goes_with_the_last_stage(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = 2;
    p.local.desc.nkv = 2;
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    pair_route(&p, 0);
    check_kv_pairs(&p, (uint64_t[]){p.remote.kv[0].off, p.remote.kv[2].off}, 2);
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_AUX, 0));
    pair_fini(&p);
}

/* Equal splits pair one to one, whatever number the first layer has; K and V of a layer go
 * together. */
static void test_same_pp_split_pairs_one_to_one(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = p.remote.desc.pp_size = 2;
    p.local.desc.pp_rank = p.remote.desc.pp_rank = 1;
    p.local.desc.start_layer = p.remote.desc.start_layer = 2;
    pair_route(&p, 0);
    check_kv_pairs(&p,
                   (uint64_t[]){p.remote.kv[0].off, p.remote.kv[2].off, p.remote.kv[1].off,
                                p.remote.kv[3].off},
                   4);
    pair_fini(&p);
}

/* Told layers count, not places: the remote lists are the other way round. */
static void test_told_layers_pair_in_any_order(void **state)
{
    const int32_t slot = 3;
    const struct pdx_index_list one = {&slot, 1}, none = {NULL, 0};
    const struct pdx_index_list lists[] = {one, none, none};
    struct pdx_transfer_status *st[3];
    const struct pdx_job *job;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    for (int i = 0; i < 4; i++) {
        p.local.kv[i].layer = 5 + i % 2;
        p.remote.kv[i].layer = 6 - i % 2;
    }
    for (int i = 0; i < 2; i++) {
        p.local.mamba[i].layer = 8 + i;
        p.remote.mamba[i].layer = 9 - i;
    }
    pair_route(&p, 0);
    check_kv_pairs(&p,
                   (uint64_t[]){p.remote.kv[1].off, p.remote.kv[3].off, p.remote.kv[0].off,
                                p.remote.kv[2].off},
                   4);
    assert_int_equal(pdx_send_state(p.route, lists, lists, 3, NULL, st, 3, &n, &p.why), 0);
    job = fake_submission_of(st[0])->job;
    assert_int_equal(job->pairs[0].remote_base, p.remote.mamba[1].off);
    assert_int_equal(job->pairs[1].remote_base, p.remote.mamba[0].off);
    pair_fini(&p);
}

/* Two tensors of the same layer pair in order of appearance. */
/* Latents and their indexer's keys, both of layer 7. */
static void test_repeated_layers_pair_in_order(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_MLA;
    for (int i = 0; i < 4; i++)
        p.local.kv[i].layer = p.remote.kv[i].layer = 7;
    pair_route(&p, 0);
    check_kv_pairs(&p,
                   (uint64_t[]){p.remote.kv[0].off, p.remote.kv[1].off, p.remote.kv[2].off,
                                p.remote.kv[3].off},
                   4);
    pair_fini(&p);
}

/* Layers that nobody set are all 0. Keys and values come once in a layer; and a stage that has a
 * layer has all of it, so that zeros of two stages do not pair with the first half of the peer. */
static void test_layers_that_were_forgotten_are_found(void **state)
{
    struct pair p;
    struct pdx_layout *layout = NULL;

    (void)state;
    pair_init(&p);
    for (int i = 0; i < 4; i++)
        p.local.kv[i].layer = 0;
    assert_int_equal(pdx_layout_create(&p.local.desc, &layout, &p.why), PDX_EINVAL);
    pair_has(&p, "kv tensors 0 and 1 are both of layer 0");
    pair_fini(&p);

    /* Also where others lie between them. */
    pair_init(&p);
    for (int i = 0; i < 3; i++)
        p.local.kv[i].part = PDX_KV_PART_K;
    p.local.kv[3].part = PDX_KV_PART_V;
    for (int i = 0; i < 4; i++)
        p.local.kv[i].layer = (int[]){3, 1, 3, 3}[i];
    assert_int_equal(pdx_layout_create(&p.local.desc, &layout, &p.why), PDX_EINVAL);
    pair_has(&p, "kv tensors 0 and 2 are both of layer 3");
    pair_fini(&p);

    pair_init(&p);
    p.local.desc.pp_size = 2;
    p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_MLA;
    p.local.desc.nkv = 2;
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    for (int i = 0; i < 4; i++)
        p.local.kv[i].layer = p.remote.kv[i].layer = 0;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv: the remote side has more tensors of layer 0 than the local one");
    pair_fini(&p);
}

/* A later stage that forgot where its layers begin. */
static void test_a_later_stage_says_where_it_begins(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = 2;
    p.local.desc.pp_rank = 1;
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv: pp_rank is 1 of 2, but its layers begin at start_layer 0");
    pair_fini(&p);
}

/* The caller's own pairing: foreign ranks, and layers that only the remote side has. */
static void test_trusted_pairing_is_not_questioned(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.remote.desc.engine_rank = 0;
    p.local.desc.nkv = 2;
    pair_route(&p, PDX_ROUTE_TRUST_PAIRING);
    check_kv_pairs(&p, (uint64_t[]){p.remote.kv[0].off, p.remote.kv[2].off}, 2);
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_route_names_each_mismatch),
        cmocka_unit_test(test_route_tells_all_mismatches_at_once),
        cmocka_unit_test(test_route_sums_up_many_equal_mismatches),
        cmocka_unit_test(test_route_prepares_one_job_per_payload),
        cmocka_unit_test(test_route_refused_by_the_engine_leaves_nothing),
        cmocka_unit_test(test_route_wants_the_peer_as_it_runs_now),
        cmocka_unit_test(test_route_refuses_wrong_arguments),
        cmocka_unit_test(test_route_with_an_unknown_type_carries_the_rest),
        cmocka_unit_test(test_pp_stage_finds_its_layers),
        cmocka_unit_test(test_aux_goes_with_the_last_stage),
        cmocka_unit_test(test_same_pp_split_pairs_one_to_one),
        cmocka_unit_test(test_told_layers_pair_in_any_order),
        cmocka_unit_test(test_repeated_layers_pair_in_order),
        cmocka_unit_test(test_layers_that_were_forgotten_are_found),
        cmocka_unit_test(test_a_later_stage_says_where_it_begins),
        cmocka_unit_test(test_trusted_pairing_is_not_questioned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
