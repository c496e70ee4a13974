/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_state, byte by byte: mamba states of one and several blocks, pages
 * with and without heads, at every pair of TP sizes, against the reference
 * tensor of state_model.h; and pairing by layers.
 */
#include "state_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const uint32_t tp_sizes[] = {1, 2, 4, 8};
static const int32_t src_slot[] = {4};
static const int32_t dst_slot[] = {1};
static const int32_t src_pages[] = {3, 4, 5, 0, 9, 8};
static const int32_t dst_pages[] = {6, 7, 1, 2, 9, 0};

/* Every pair of sizes. Returns how many routes had nothing to send. */
static size_t all_tp_pairs(const struct sm_list *l, const int32_t *src, const int32_t *dst,
                           size_t n)
{
    size_t silent = 0;

    for (size_t p = 0; p < COUNT(tp_sizes); p++)
        for (size_t d = 0; d < COUNT(tp_sizes); d++)
            silent += sm_transfer(l, tp_sizes[p], tp_sizes[d], src, dst, n, 10);
    return silent;
}

/* A convolution state and a recurrent one of different unit and width, twice: each pair has slices
 * of its own, and equal ones are kept once. */
static void test_mamba_tensors_of_different_shape_are_one_transfer(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .page_size = 1,
        .n = 4,
        .shapes = {{.rows = 1, .units = 16, .unit_len = 6},
                   {.rows = 3, .units = 8, .unit_len = 10},
                   {.rows = 1, .units = 16, .unit_len = 6},
                   {.rows = 3, .units = 8, .unit_len = 10}},
    };

    (void)state;
    assert_int_equal(all_tp_pairs(&l, src_slot, dst_slot, 1), 0);
}

/* [q | k | v]: every block is split for itself, with the channels last (several rows) or first. */
static void test_mamba_conv_blocks_are_split_each_for_itself(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .page_size = 1,
        .n = 2,
        .shapes = {{.rows = 1, .units = 32, .unit_len = 3, .groups = {8, 8, 16}, .ngroups = 3},
                   {.rows = 3, .units = 40, .unit_len = 2, .groups = {8, 24, 8}, .ngroups = 3}},
    };

    (void)state;
    l.shapes[0].tell_groups = l.shapes[1].tell_groups = true;
    assert_int_equal(all_tp_pairs(&l, src_slot, dst_slot, 1), 0);
}

/* Blocks that have fewer units than there are ranks: copies, of which one is sent. */
static void test_mamba_blocks_with_copies_are_written_once(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .page_size = 1,
        .n = 2,
        .shapes = {{.rows = 2, .units = 12, .unit_len = 5, .groups = {8, 2, 2}, .ngroups = 3},
                   {.rows = 1, .units = 2, .unit_len = 7}},
    };

    (void)state;
    l.shapes[0].tell_groups = l.shapes[1].tell_groups = true;
    assert_int_equal(all_tp_pairs(&l, src_slot, dst_slot, 1), 0);
}

/* A state that every rank holds whole is declared by shard_dim 0 and has one writer. */
static void test_mamba_state_that_all_ranks_hold_has_one_writer(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .page_size = 1,
        .n = 2,
        .shapes = {{.rows = 1, .units = 5, .unit_len = 8, .copies = true},
                   {.rows = 1, .units = 9, .unit_len = 4, .copies = true}},
    };

    (void)state;
    assert_int_equal(sm_transfer(&l, 4, 1, src_slot, dst_slot, 1, 10), 3);
    assert_int_equal(sm_transfer(&l, 4, 2, src_slot, dst_slot, 1, 10), 2);
    assert_int_equal(sm_transfer(&l, 2, 4, src_slot, dst_slot, 1, 10), 0);
    assert_int_equal(sm_transfer(&l, 2, 2, src_slot, dst_slot, 1, 10), 0);
}

/* One tensor is split, the other the same everywhere: the second rank sends the first one only, and
 * whole items stand beside slices in one job. */
static void test_mamba_split_and_common_tensors_mix(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .page_size = 1,
        .n = 3,
        .shapes = {{.rows = 1, .units = 8, .unit_len = 8},
                   {.rows = 1, .units = 9, .unit_len = 4, .copies = true},
                   {.rows = 1, .units = 7, .unit_len = 3, .copies = true}},
    };

    (void)state;
    assert_int_equal(all_tp_pairs(&l, src_slot, dst_slot, 1), 0);
}

/* swa pages with heads: the layout tells the axis, copies of heads included. */
static void test_swa_pages_are_sliced_by_heads(void **state)
{
    struct sm_list l = {.type = "swa", .page_size = 1, .n = 2};

    (void)state;
    for (uint32_t heads = 1; heads <= 16; heads *= 2) {
        for (size_t i = 0; i < l.n; i++)
            l.shapes[i] = (struct sm_shape){
                .rows = 3, .units = heads, .unit_len = 5, .tell_groups = heads < 8};
        (void)all_tp_pairs(&l, src_pages, dst_pages, COUNT(src_pages));
    }
}

/* The heads of the KV cache tell where copies of the pages' heads are, without groups. */
static void test_swa_copies_are_found_by_the_kv_heads(void **state)
{
    struct sm_list kv = {
        .kv_kind = PDX_KV_MHA,
        .page_size = 2,
        .heads = 2,
        .n = 2,
        .shapes = {{.rows = 2, .units = 2, .unit_len = 4}, {.rows = 2, .units = 2, .unit_len = 4}},
    };
    struct sm_list swa = {
        .type = "swa", .n = 1, .shapes = {{.rows = 2, .units = 2, .unit_len = 6}}};

    (void)state;
    for (uint32_t d = 0; d < 8; d++) {
        struct sm_rank from_kv, to_kv, from, to;
        struct pdx_component local, remote;
        struct pdx_layout *ll, *rl;
        struct pdx_transfer_status *st;
        struct pdx_route *route;
        struct pdx_error why;
        struct pdx_index_list s = {src_pages, COUNT(src_pages)};
        struct pdx_index_list t = {dst_pages, COUNT(dst_pages)};
        size_t nst;

        sm_rank_init(&from_kv, &kv, FAKE_LOCAL, 1, 0, 10);
        sm_rank_init(&to_kv, &kv, FAKE_REMOTE, 8, d, 10);
        swa.page_size = 2;
        sm_rank_init(&from, &swa, FAKE_LOCAL, 1, 0, 10);
        sm_rank_init(&to, &swa, FAKE_REMOTE, 8, d, 10);
        local = (struct pdx_component){"swa", from.tensors, 1};
        remote = (struct pdx_component){"swa", to.tensors, 1};
        from_kv.desc.components = &local;
        to_kv.desc.components = &remote;
        from_kv.desc.ncomponents = to_kv.desc.ncomponents = 1;
        assert_int_equal(pdx_layout_create(&from_kv.desc, &ll, &why), 0);
        assert_int_equal(pdx_layout_create(&to_kv.desc, &rl, &why), 0);
        sm_fill(&from, &swa, src_pages, COUNT(src_pages));
        if (pdx_route_create(fake_engine(), ll, fake_peer(), rl, NULL, &route, &why) < 0 ||
            pdx_send_state(route, &s, &t, 1, NULL, &st, 1, &nst, &why) < 0)
            fail_msg("%s", why.text);
        fake_run(fake_submission_of(st));
        sm_check(&to, &swa, dst_pages, COUNT(dst_pages));
        pdx_route_destroy(route);
        pdx_layout_destroy(ll);
        pdx_layout_destroy(rl);
        sm_rank_fini(&from_kv);
        sm_rank_fini(&to_kv);
        sm_rank_fini(&from);
        sm_rank_fini(&to);
        fake_reset();
    }
}

/* Pages of MLA models are the same on every rank, whatever the TP sizes. */
static void test_paged_state_of_mla_models_goes_whole(void **state)
{
    const char *const types[] = {"swa", "dsa"};
    struct sm_list l = {
        .kv_kind = PDX_KV_MLA,
        .page_size = 1,
        .n = 2,
        .shapes = {{.rows = 1, .units = 11, .unit_len = 12, .copies = true},
                   {.rows = 1, .units = 3, .unit_len = 44, .copies = true}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        l.type = types[i];
        (void)all_tp_pairs(&l, src_pages, dst_pages, COUNT(src_pages));
    }
}

/* What SGLang's connector did on inputs drawn at random: one slot, one piece per tensor. */
struct mamba_case {
    const char *name;
    struct {
        uint32_t prefill_tp, prefill_rank, decode_tp, decode_rank;
    } tp;
    size_t n;
    uint64_t src_item[4], dst_item[4], src_dim[4], dst_dim[4];
    int32_t src, dst;
    struct sm_piece want[4];
};

static const struct mamba_case mamba_cases[] = {
    {"st_mamba_same 01",
     {1, 0, 1, 0},
     4,
     {96, 4096, 640, 256},
     {96, 4096, 640, 256},
     {8, 8, 8, 8},
     {8, 8, 8, 8},
     9,
     4,
     {{864, 384, 96}, {36864, 16384, 4096}, {5760, 2560, 640}, {2304, 1024, 256}}},
    {"st_mamba_tp 00",
     {2, 1, 1, 0},
     4,
     {256, 256, 192, 1024},
     {512, 512, 384, 2048},
     {16, 16, 32, 16},
     {32, 32, 64, 32},
     3,
     4,
     {{768, 2304, 256}, {768, 2304, 256}, {576, 1728, 192}, {3072, 9216, 1024}}},
    {"st_mamba_tp 01",
     {4, 1, 1, 0},
     3,
     {96, 16, 48},
     {384, 64, 192},
     {16, 8, 8},
     {64, 32, 32},
     0,
     4,
     {{0, 1632, 96}, {0, 272, 16}, {0, 816, 48}}},
    {"st_mamba_tp 02",
     {4, 3, 2, 1},
     3,
     {16, 1024, 256},
     {32, 2048, 512},
     {8, 16, 16},
     {16, 32, 32},
     4,
     4,
     {{64, 144, 16}, {4096, 9216, 1024}, {1024, 2304, 256}}},
    {"st_mamba_tp 03",
     {8, 3, 2, 0},
     2,
     {256, 1024},
     {1024, 4096},
     {16, 16},
     {64, 64},
     3,
     4,
     {{768, 4864, 256}, {3072, 19456, 1024}}},
    {"st_mamba_tp 04",
     {1, 0, 2, 1},
     3,
     {2048, 1024, 128},
     {1024, 512, 64},
     {128, 64, 64},
     {64, 32, 32},
     5,
     3,
     {{11264, 3072, 1024}, {5632, 1536, 512}, {704, 192, 64}}},
    {"st_mamba_tp 05",
     {1, 1, 4, 1},
     4,
     {192, 1024, 64, 2048},
     {48, 256, 16, 512},
     {32, 64, 32, 32},
     {8, 16, 8, 8},
     4,
     3,
     {{816, 144, 48}, {4352, 768, 256}, {272, 48, 16}, {8704, 1536, 512}}},
    {"st_mamba_tp 06",
     {2, 1, 4, 7},
     2,
     {32, 2048},
     {16, 1024},
     {16, 32},
     {8, 16},
     8,
     4,
     {{272, 64, 16}, {17408, 4096, 1024}}},
    {"st_mamba_tp 07",
     {2, 1, 8, 2},
     4,
     {96, 128, 512, 96},
     {24, 32, 128, 24},
     {16, 64, 32, 16},
     {4, 16, 8, 4},
     4,
     7,
     {{432, 168, 24}, {576, 224, 32}, {2304, 896, 128}, {432, 168, 24}}},
};

#define CASE_ITEMS 10

static struct pdx_layout *mamba_layout(const struct mamba_case *c, bool local)
{
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct pdx_tensor t[4];
    struct pdx_component co = {"mamba", t, c->n};
    struct pdx_layout *layout;
    struct pdx_error why;

    for (size_t i = 0; i < c->n; i++) {
        uint64_t item_len = local ? c->src_item[i] : c->dst_item[i];

        t[i] = (struct pdx_tensor){
            .region = fake_region(local ? FAKE_LOCAL : FAKE_REMOTE, CASE_ITEMS * item_len),
            .len = CASE_ITEMS * item_len,
            .item_len = item_len,
            .layer = PDX_LAYER_NONE,
            .shard_dim = local ? c->src_dim[i] : c->dst_dim[i],
        };
    }
    d.engine_rank = local ? c->tp.prefill_rank : c->tp.decode_rank;
    d.tp_size = local ? c->tp.prefill_tp : c->tp.decode_tp;
    d.components = &co;
    d.ncomponents = 1;
    if (pdx_layout_create(&d, &layout, &why) < 0)
        fail_msg("%s: %s", c->name, why.text);
    return layout;
}

static void test_mamba_matches_what_the_original_sent(void **state)
{
    const struct pdx_route_opts trust = {sizeof trust, PDX_ROUTE_TRUST_PAIRING};

    (void)state;
    for (size_t i = 0; i < COUNT(mamba_cases); i++) {
        const struct mamba_case *c = &mamba_cases[i];
        struct pdx_layout *local = mamba_layout(c, true);
        struct pdx_layout *remote = mamba_layout(c, false);
        struct pdx_index_list src = {&c->src, 1}, dst = {&c->dst, 1};
        struct sm_piece got[SM_PIECES_MAX];
        struct pdx_transfer_status *st;
        struct pdx_route *route;
        struct pdx_error why;
        size_t nst;

        if (pdx_route_create(fake_engine(), local, fake_peer(), remote, &trust, &route, &why) < 0 ||
            pdx_send_state(route, &src, &dst, 1, NULL, &st, 1, &nst, &why) < 0)
            fail_msg("%s: %s", c->name, why.text);
        assert_int_equal(fake_submission_of(st)->job->npairs, c->n);
        for (size_t k = 0; k < c->n; k++) {
            assert_int_equal(sm_pieces(fake_submission_of(st), k, got), 1);
            assert_memory_equal(&got[0], &c->want[k], sizeof got[0]);
        }
        pdx_route_destroy(route);
        pdx_layout_destroy(local);
        pdx_layout_destroy(remote);
        fake_reset();
    }
}

/* Equal slices of many layers are kept once: what a route holds does not grow with them. */
static void test_equal_slices_are_shared_by_layers(void **state)
{
    struct sm_list l = {.type = "mamba", .page_size = 1, .n = 8};
    struct sm_rank from, to;
    struct pdx_transfer_status *st;
    struct pdx_route *route;
    struct pdx_index_list src = {src_slot, 1}, dst = {dst_slot, 1};
    struct pdx_error why;
    size_t nst;

    (void)state;
    for (size_t i = 0; i < l.n; i++)
        l.shapes[i] =
            (struct sm_shape){.rows = 1, .units = i % 2 ? 8 : 16, .unit_len = i % 2 ? 4 : 2};
    sm_rank_init(&from, &l, FAKE_LOCAL, 2, 1, 10);
    sm_rank_init(&to, &l, FAKE_REMOTE, 4, 3, 10);
    assert_int_equal(
        pdx_route_create(fake_engine(), from.layout, fake_peer(), to.layout, NULL, &route, &why),
        0);
    assert_int_equal(pdx_send_state(route, &src, &dst, 1, NULL, &st, 1, &nst, &why), 0);
    assert_int_equal(fake_submission_of(st)->job->npairs, 8);
    /* Both kinds are 8 bytes at the same places here, so even they share. */
    assert_int_equal(fake_submission_of(st)->job->nslices, 1);
    pdx_route_destroy(route);
    sm_rank_fini(&from);
    sm_rank_fini(&to);
    fake_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mamba_tensors_of_different_shape_are_one_transfer),
        cmocka_unit_test(test_mamba_conv_blocks_are_split_each_for_itself),
        cmocka_unit_test(test_mamba_blocks_with_copies_are_written_once),
        cmocka_unit_test(test_mamba_state_that_all_ranks_hold_has_one_writer),
        cmocka_unit_test(test_mamba_split_and_common_tensors_mix),
        cmocka_unit_test(test_swa_pages_are_sliced_by_heads),
        cmocka_unit_test(test_swa_copies_are_found_by_the_kv_heads),
        cmocka_unit_test(test_paged_state_of_mla_models_goes_whole),
        cmocka_unit_test(test_mamba_matches_what_the_original_sent),
        cmocka_unit_test(test_equal_slices_are_shared_by_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
