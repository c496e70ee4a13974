/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_kvcache, byte by byte: every pair of TP sizes and every number of
 * heads, copies of heads included, against the reference tensor of
 * state_model.h.
 */
#include "kv_cases.h"
#include "state_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint32_t tp_sizes[] = {1, 2, 4, 8, 16};
static const uint32_t head_counts[] = {1, 2, 4, 8, 16};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Runs, jumps, backwards, and neighbours on one side only. */
static const int32_t src_pages[] = {3, 4, 5, 0, 9, 8};
static const int32_t dst_pages[] = {6, 7, 1, 2, 9, 0};

static void mha(struct sm_list *l, uint32_t heads, uint32_t page_size, uint64_t k_len,
                uint64_t v_len, size_t nlayers)
{
    *l = (struct sm_list){
        .kv_kind = PDX_KV_MHA, .page_size = page_size, .heads = heads, .n = 2 * nlayers};
    for (size_t i = 0; i < l->n; i++)
        l->shapes[i] = (struct sm_shape){
            .rows = page_size, .units = heads, .unit_len = i < nlayers ? k_len : v_len};
}

static void test_mha_heads_arrive_whole_at_every_tp_pair(void **state)
{
    struct sm_list l;

    (void)state;
    for (size_t p = 0; p < COUNT(tp_sizes); p++)
        for (size_t d = 0; d < COUNT(tp_sizes); d++)
            for (size_t h = 0; h < COUNT(head_counts); h++) {
                uint32_t wide = tp_sizes[p] / tp_sizes[d];
                uint32_t copies = tp_sizes[p] / head_counts[h];
                uint32_t each = wide < copies ? wide : copies;
                size_t silent;

                mha(&l, head_counts[h], 3, 5, 5, 1);
                silent = sm_transfer(&l, tp_sizes[p], tp_sizes[d], src_pages, dst_pages,
                                     COUNT(src_pages), 10);
                /* One of `each` ranks that hold the same sends it. */
                assert_int_equal(silent, each > 1 ? tp_sizes[p] - tp_sizes[p] / each : 0);
            }
}

/* K and V with heads of different length, as attention with a decoupled rotary part has. */
static void test_mha_keys_and_values_may_differ_in_length(void **state)
{
    struct sm_list l;

    (void)state;
    mha(&l, 8, 4, 12, 8, 2);
    (void)sm_transfer(&l, 2, 2, src_pages, dst_pages, COUNT(src_pages), 10);
    (void)sm_transfer(&l, 4, 2, src_pages, dst_pages, COUNT(src_pages), 10);
    (void)sm_transfer(&l, 2, 8, src_pages, dst_pages, COUNT(src_pages), 10);
}

/* A head count that is no power of two, at TP sizes of 3. */
static void test_mha_six_heads_split_by_three(void **state)
{
    struct sm_list l;

    (void)state;
    mha(&l, 6, 2, 7, 7, 1);
    (void)sm_transfer(&l, 3, 1, src_pages, dst_pages, COUNT(src_pages), 10);
    (void)sm_transfer(&l, 1, 3, src_pages, dst_pages, COUNT(src_pages), 10);
    (void)sm_transfer(&l, 6, 3, src_pages, dst_pages, COUNT(src_pages), 10);
    (void)sm_transfer(&l, 3, 6, src_pages, dst_pages, COUNT(src_pages), 10);
}

static void test_mla_pages_are_sent_by_one_rank(void **state)
{
    struct sm_list l = {.kv_kind = PDX_KV_MLA, .page_size = 2, .n = 3};

    (void)state;
    for (size_t i = 0; i < l.n; i++)
        l.shapes[i] = (struct sm_shape){.rows = 2, .units = 1, .unit_len = 9 + i, .copies = true};
    for (size_t p = 0; p < COUNT(tp_sizes); p++)
        for (size_t d = 0; d < COUNT(tp_sizes); d++) {
            uint32_t wide = tp_sizes[p] > tp_sizes[d] ? tp_sizes[p] / tp_sizes[d] : 1;
            size_t silent = sm_transfer(&l, tp_sizes[p], tp_sizes[d], src_pages, dst_pages,
                                        COUNT(src_pages), 10);

            assert_int_equal(silent, wide > 1 ? tp_sizes[p] - tp_sizes[d] : 0);
        }
}

#define CASE_ITEMS 32

static struct pdx_layout *case_layout(const struct kv_case *c, bool local)
{
    uint32_t nlayers = local ? c->layers.src : c->layers.dst;
    size_t n = c->kind == PDX_KV_MHA ? 2 * (size_t)nlayers : nlayers;
    bool same_split = c->layers.pp_size > 1 && c->layers.src == c->layers.dst;
    uint64_t item_len = local ? c->item.src : c->item.dst;
    struct pdx_region *region =
        fake_region(local ? FAKE_LOCAL : FAKE_REMOTE, n * CASE_ITEMS * item_len);
    struct pdx_tensor t[16];
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct pdx_layout *layout;
    struct pdx_error why;

    assert_true(n <= COUNT(t));
    for (size_t i = 0; i < n; i++)
        t[i] = (struct pdx_tensor){.region = region,
                                   .off = i * CASE_ITEMS * item_len,
                                   .len = CASE_ITEMS * item_len,
                                   .item_len = item_len,
                                   .layer = PDX_LAYER_NONE};
    d.engine_rank = local ? c->tp.prefill_rank : c->tp.decode_rank;
    d.tp_size = local ? c->tp.prefill_tp : c->tp.decode_tp;
    d.pp_size = local || same_split ? c->layers.pp_size : 1;
    d.start_layer = local || same_split ? c->layers.start : 0;
    d.kv_kind = c->kind;
    d.page_size = c->kv.page_size;
    d.total_kv_head_num = c->kv.total_heads;
    d.kv_head_num = local ? c->kv.heads : 0;
    if (!local && !c->kv.total_heads)
        d.kv_head_num = c->kv.heads * c->tp.prefill_tp / c->tp.decode_tp;
    d.kv = t;
    d.nkv = n;
    if (pdx_layout_create(&d, &layout, &why) < 0)
        fail_msg("%s: %s", c->name, why.text);
    return layout;
}

/* Tensor i of the source pairs with the right one, and the pieces are those wanted. */
static void case_check_pair(const struct kv_case *c, const struct fake_submission *s, size_t i)
{
    bool same_split = c->layers.src == c->layers.dst;
    uint64_t local = s->job->pairs[i].local_base / (CASE_ITEMS * c->item.src);
    uint64_t remote = s->job->pairs[i].remote_base / (CASE_ITEMS * c->item.dst);
    uint64_t block = local / c->layers.src; /* 0: K or latent, 1: V */
    struct sm_piece got[SM_PIECES_MAX];

    assert_int_equal(remote, block * c->layers.dst + local % c->layers.src +
                                 (same_split ? 0 : c->layers.start));
    assert_int_equal(sm_pieces(s, i, got), c->npieces);
    assert_memory_equal(got, c->want, c->npieces * sizeof got[0]);
}

static void test_kv_matches_what_the_original_sent(void **state)
{
    const struct pdx_route_opts trust = {sizeof trust, PDX_ROUTE_TRUST_PAIRING};

    (void)state;
    for (size_t i = 0; i < NKV_CASES; i++) {
        const struct kv_case *c = &kv_cases[i];
        struct pdx_layout *local = case_layout(c, true);
        struct pdx_layout *remote = case_layout(c, false);
        struct pdx_transfer_status *st;
        struct pdx_route *route;
        struct pdx_error why;

        if (pdx_route_create(fake_engine(), local, fake_peer(), remote, &trust, &route, &why) < 0 ||
            pdx_send_kvcache(route, (struct pdx_index_list){c->src, c->n},
                             (struct pdx_index_list){c->dst, c->n}, NULL, &st, &why) < 0)
            fail_msg("%s: %s", c->name, why.text);
        assert_int_equal(fake_submission_of(st)->job->npairs,
                         (c->kind == PDX_KV_MHA ? 2 : 1) * c->layers.src);
        for (size_t k = 0; k < fake_submission_of(st)->job->npairs; k++)
            case_check_pair(c, fake_submission_of(st), k);
        pdx_route_destroy(route);
        pdx_layout_destroy(local);
        pdx_layout_destroy(remote);
        fake_reset();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mha_heads_arrive_whole_at_every_tp_pair),
        cmocka_unit_test(test_mha_keys_and_values_may_differ_in_length),
        cmocka_unit_test(test_mha_six_heads_split_by_three),
        cmocka_unit_test(test_mla_pages_are_sent_by_one_rank),
        cmocka_unit_test(test_kv_matches_what_the_original_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
