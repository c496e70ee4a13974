/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_kvcache, byte by byte: every pair of TP sizes up to 16 and every
 * number of heads up to 16, copies of heads included, against the reference
 * tensor of state_model.h; what cannot be laid on ranks is refused before
 * anything is sent; and what SGLang's connector did on inputs of its own.
 */
#include "kv_cases.h"
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)    (sizeof(a) / sizeof((a)[0]))
#define SIZE_MAX_TP 16
#define NPAGES      5
#define NITEMS      9

/* Runs, jumps, backwards, and neighbours on one side only. */
static const int32_t src_pages[] = {3, 4, 5, 0, 9, 8};
static const int32_t dst_pages[] = {6, 7, 1, 2, 9, 0};

/* Lists of the next combination. */
struct drawn {
    uint64_t seed;
    int32_t src[NPAGES], dst[NPAGES];
};

static void drawn_init(struct drawn *d, uint64_t seed)
{
    d->seed = seed;
    print_message("seed %llu\n", (unsigned long long)seed);
}

static size_t drawn_transfer(struct drawn *d, const struct sm_list *l, uint32_t p, uint32_t t)
{
    sm_indices(&d->seed, d->src, NPAGES, NITEMS);
    sm_indices(&d->seed, d->dst, NPAGES, NITEMS);
    return sm_transfer(l, p, t, d->src, d->dst, NPAGES, NITEMS);
}

/* Of how many prefill ranks in a row, which hold the same heads and feed the same decode rank, one
 * sends. */
static uint32_t same_heads(uint32_t p, uint32_t d, uint32_t heads)
{
    uint32_t feeding = p > d ? p / d : 1, copies = p > heads ? p / heads : 1;

    return feeding < copies ? feeding : copies;
}

static void test_mha_heads_arrive_whole_at_every_tp_pair(void **state)
{
    struct drawn drawn;
    struct sm_list l;

    (void)state;
    drawn_init(&drawn, 20240601);
    for (uint32_t p = 1; p <= SIZE_MAX_TP; p++)
        for (uint32_t d = 1; d <= SIZE_MAX_TP; d++)
            for (uint32_t heads = 1; heads <= 24; heads++) {
                uint32_t each = same_heads(p, d, heads);

                if (!sm_sizes_meet(p, d) || !sm_sizes_meet(heads, p) || !sm_sizes_meet(heads, d))
                    continue;
                sm_mha(&l, heads, 3, 3, 2, 1);
                assert_int_equal(drawn_transfer(&drawn, &l, p, d), p - p / each);
            }
}

/* One side of a model with so many heads; NULL where they do not lie on its ranks, which must be
 * said. */
static struct pdx_layout *fit_layout(enum fake_side side, uint32_t tp, uint32_t heads,
                                     uint32_t rank)
{
    uint64_t on_rank = heads > tp ? heads / tp : 1;
    struct pdx_tensor kv[2];
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;
    struct pdx_layout *layout = NULL;
    struct pdx_error why;
    int rc;

    for (uint64_t i = 0; i < 2; i++)
        kv[i] = (struct pdx_tensor){.region = fake_region(side, 8 * on_rank),
                                    .len = 8 * on_rank,
                                    .item_len = 4 * on_rank,
                                    .layer = PDX_LAYER_NONE};
    desc.engine_rank = rank;
    desc.tp_size = tp;
    desc.kv_kind = PDX_KV_MHA;
    desc.page_size = 2;
    desc.total_kv_head_num = heads;
    desc.kv = kv;
    desc.nkv = 2;
    rc = pdx_layout_create(&desc, &layout, &why);
    if (sm_sizes_meet(heads, tp) != (rc == 0))
        fail_msg("%u heads on %u ranks: %s", heads, tp, pdx_err_name(rc));
    if (rc < 0) {
        assert_int_equal(rc, PDX_EINVAL);
        assert_non_null(strstr(why.text, "neither divides the other"));
    }
    return layout;
}

/* Rank 0 to rank 0. Returns whether the route was refused, which must be for the sizes. */
static bool fit_route(const struct pdx_layout *local, const struct pdx_layout *remote, uint32_t p,
                      uint32_t d)
{
    struct pdx_error why;
    struct pdx_route *route = NULL;
    int rc = pdx_route_create(fake_engine(), local, fake_peer(), remote, NULL, &route, &why);

    if (sm_sizes_meet(p, d) != (rc == 0))
        fail_msg("TP sizes %u and %u: %s", p, d, pdx_err_name(rc));
    assert_int_equal(pdx_route_check(local, remote, NULL, NULL), rc);
    pdx_route_destroy(route);
    if (rc == 0)
        return false;
    assert_int_equal(rc, PDX_EMISMATCH);
    assert_non_null(strstr(why.text, "neither divides the other"));
    return true;
}

/* Numbers of heads that lie on one of the TP sizes only, or on none; and TP sizes that do not meet,
 * with heads that lie on both. Nothing of it becomes a route. */
static void test_heads_and_sizes_that_do_not_fit_are_refused(void **state)
{
    size_t refused_layouts = 0, refused_routes = 0;

    (void)state;
    for (uint32_t p = 1; p <= SIZE_MAX_TP; p++)
        for (uint32_t d = 1; d <= SIZE_MAX_TP; d++)
            for (uint32_t heads = 1; heads <= 48; heads++) {
                struct pdx_layout *local = fit_layout(FAKE_LOCAL, p, heads, 0);
                struct pdx_layout *remote = fit_layout(FAKE_REMOTE, d, heads, 0);

                if (local && remote)
                    refused_routes += fit_route(local, remote, p, d);
                else
                    refused_layouts++;
                pdx_layout_destroy(local);
                pdx_layout_destroy(remote);
                fake_reset();
            }
    assert_true(refused_layouts > 1000 && refused_routes > 100);
}

/* Which rank takes from which: every other pair is refused. */
static void test_only_ranks_that_belong_together_make_a_route(void **state)
{
    (void)state;
    for (uint32_t p = 1; p <= 8; p++)
        for (uint32_t d = 1; d <= 8; d++)
            for (uint32_t pair = 0; sm_sizes_meet(p, d) && pair < p * d; pair++) {
                uint32_t from = pair / d, to = pair % d;
                bool meet = p >= d ? from / (p / d) == to : to / (d / p) == from;
                struct pdx_layout *local = fit_layout(FAKE_LOCAL, p, p * d, from);
                struct pdx_layout *remote = fit_layout(FAKE_REMOTE, d, p * d, to);
                struct pdx_error why;
                int rc = pdx_route_check(local, remote, NULL, &why);

                if (rc != (meet ? 0 : PDX_EMISMATCH))
                    fail_msg("rank %u of %u, rank %u of %u: %s", from, p, to, d, pdx_err_name(rc));
                assert_true(meet || strstr(why.text, "PDX_ROUTE_TRUST_PAIRING"));
                pdx_layout_destroy(local);
                pdx_layout_destroy(remote);
                fake_reset();
            }
}

/* K and V with heads of different length, as attention with a decoupled rotary part has, over
 * layers. */
static void test_mha_keys_and_values_may_differ_in_length(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {4, 2}, {2, 8}, {3, 6}, {12, 4}};
    struct sm_list l;

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        sm_mha(&l, 24, 4, 12, 8, 2);
        (void)sm_transfer(&l, sizes[i][0], sizes[i][1], src_pages, dst_pages, COUNT(src_pages), 10);
    }
}

static void test_mla_pages_are_sent_by_one_rank(void **state)
{
    struct drawn drawn;
    struct sm_list l;

    (void)state;
    drawn_init(&drawn, 20240602);
    sm_mla(&l, 2, 9, 3);
    for (uint32_t p = 1; p <= SIZE_MAX_TP; p++)
        for (uint32_t d = 1; d <= SIZE_MAX_TP; d++)
            if (sm_sizes_meet(p, d))
                assert_int_equal(drawn_transfer(&drawn, &l, p, d), p > d ? p - d : 0);
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
    const struct pdx_route_opts trust = {.size = sizeof trust, .flags = PDX_ROUTE_TRUST_PAIRING};

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
        cmocka_unit_test(test_heads_and_sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(test_only_ranks_that_belong_together_make_a_route),
        cmocka_unit_test(test_mha_keys_and_values_may_differ_in_length),
        cmocka_unit_test(test_mla_pages_are_sent_by_one_rank),
        cmocka_unit_test(test_kv_matches_what_the_original_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
