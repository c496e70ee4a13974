/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of layers: which pairs they are, the draft model behind the last one,
 * what is no range; and pipeline stages that have no layer of something.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Tensors of the model are in the order of their layers, whatever number a draft tensor has: it
 * comes behind all of them. */
static void test_draft_comes_behind_the_last_layer(void **state)
{
    static const struct {
        struct pdx_layers layers;
        uint32_t first, n; /* pairs: K0 V0 K1 V1, then two of the draft model */
    } cases[] = {
        {{0, 1}, 0, 2},
        {{0, 2}, 0, 4},
        {{0, 1000}, 0, 4},
        {{1, 2}, 2, 2},
        {{1, PDX_LAYERS_END}, 2, 4},
        {{2, PDX_LAYERS_END}, 4, 2},
        {{PDX_LAYERS_END, PDX_LAYERS_END}, 4, 2},
        {{0, PDX_LAYERS_END}, 0, 6},
        {{2, 1000}, 0, 0},
    };
    const int32_t page = 3;
    const struct pdx_index_list one = {&page, 1};
    struct pdx_tensor kv[2][PAIR_KV_MAX];
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_draft(&p.local, kv[0], 1);
    pair_draft(&p.remote, kv[1], 1);
    pair_route(&p, 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_transfer_status *st;
        const struct pdx_items *items;

        assert_int_equal(
            pdx_send_kvcache_layers(p.route, &cases[i].layers, one, one, NULL, &st, &p.why), 0);
        assert_true((st != NULL) == (cases[i].n > 0));
        if (!st)
            continue;
        items = &fake_submission_of(st)->items;
        assert_int_equal(items->first_pair, cases[i].first);
        assert_int_equal(items->npairs, cases[i].n);
        assert_int_equal(fake_submission_of(st)->job->pairs[4].local_base, kv[0][4].off);
    }
    pair_fini(&p);
}

static void test_ranges_that_are_none_are_refused(void **state)
{
    static const struct pdx_layers bad[] = {
        {-1, 2}, {INT32_MIN, INT32_MAX}, {2, 2}, {3, 2}, {0, 0}, {PDX_LAYERS_END, 3}, {0, -1},
    };
    const int32_t page = 3;
    const struct pdx_index_list one = {&page, 1}, lists[] = {one, one, one};
    struct pdx_transfer_status *st[3];
    struct pdx_route_counters c;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    for (size_t i = 0; i <= COUNT(bad); i++) {
        const struct pdx_layers *l = i < COUNT(bad) ? &bad[i] : NULL;

        assert_int_equal(pdx_send_kvcache_layers(p.route, l, one, one, NULL, st, &p.why),
                         PDX_EINVAL);
        assert_int_equal(
            pdx_send_state_layers(p.route, l, lists, lists, 3, NULL, st, 3, &n, &p.why),
            PDX_EINVAL);
        pair_has(&p, "are not a range");
    }
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.refused, 2 * (COUNT(bad) + 1));
    assert_int_equal(fake_nsubmissions(), 0);
    pair_fini(&p);
}

/* State whose layouts do not tell layers has no ranges, unless there is none of it. */
static void test_ranges_of_untold_state_are_refused(void **state)
{
    static const struct pdx_layers first = {0, 1};
    const int32_t slot = 3;
    const struct pdx_index_list one = {&slot, 1}, none = {NULL, 0};
    const struct pdx_index_list all[] = {one, one, one}, told[] = {one, none, none};
    struct pdx_transfer_status *st[3];
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    for (int i = 0; i < 2; i++)
        p.local.mamba[i].layer = p.remote.mamba[i].layer = i;
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state_layers(p.route, &first, all, all, 3, NULL, st, 3, &n, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "component 1 (swa): its layouts do not tell layers");
    assert_int_equal(fake_nsubmissions(), 0);
    assert_int_equal(pdx_send_state_layers(p.route, &first, told, told, 3, NULL, st, 3, &n, &p.why),
                     0);
    assert_int_equal(fake_submission_of(st[0])->items.first_pair, 0);
    assert_int_equal(fake_submission_of(st[0])->items.npairs, 1);
    assert_true(!st[1] && !st[2]);
    pair_fini(&p);
}

/* --- Stages without a layer of something --- */

/* Pages are limited by the tensors that pair, on the rank that sends and on one that leaves it to
 * the other: not by layers of other stages, nor by a draft model that is left alone. */
static void test_pages_are_limited_by_what_pairs(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t rank = i % 2;
        bool draft = i / 2;
        const int32_t page = PAIR_ITEMS - 1;
        const struct pdx_index_list one = {&page, 1};
        struct pdx_tensor kv[PAIR_KV_MAX];
        struct pair p;

        pair_init(&p);
        for (struct pair_side *s = &p.local;; s = &p.remote) {
            s->desc.kv_kind = PDX_KV_MLA;
            s->desc.ncomponents = 0;
            if (s == &p.remote)
                break;
        }
        p.local.desc.engine_rank = rank;
        p.remote.desc.engine_rank = 0;
        p.remote.desc.tp_size = 1;
        if (draft) {
            pair_draft(&p.remote, kv, 1);
            kv[5].len = 3 * kv[5].item_len;
        } else {
            p.local.desc.pp_size = 2;
            p.local.desc.nkv = 2;
            p.remote.kv[3].len = 3 * p.remote.kv[3].item_len;
        }
        pair_route(&p, PDX_ROUTE_WITHOUT_DRAFT);
        assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0) == (rank == 0));
        if (pdx_send_kvcache(p.route, one, one, NULL, NULL, &p.why) < 0)
            fail_msg("rank %u%s: %s", rank, draft ? ", draft" : "", p.why.text);
        pair_fini(&p);
    }
}

/* A stage that has nothing of the cache and of one component: sends are judged and move nothing;
 * what it has goes. */
static void test_a_stage_without_layers_sends_nothing(void **state)
{
    const int32_t page = 3, far = 10, negative = -1;
    const struct pdx_index_list one = {&page, 1}, bad = {&far, 1}, below = {&negative, 1};
    const struct pdx_index_list lists[] = {one, one, one};
    struct pdx_transfer_status *st[3];
    struct pdx_route_counters c;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = 2;
    p.local.desc.nkv = 0;
    p.local.components[1].ntensors = 0;
    for (int i = 0; i < 2; i++)
        p.local.mamba[i].layer = p.remote.mamba[i].layer = i;
    p.local.dsa[0].layer = p.remote.dsa[0].layer = 0;
    for (int i = 0; i < 2; i++)
        p.remote.swa[i].layer = 4 + i;
    pair_route(&p, 0);
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0));
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, 1));
    assert_int_equal(pdx_send_kvcache(p.route, one, one, NULL, st, &p.why), 0);
    assert_null(st[0]);
    assert_int_equal(pdx_send_kvcache(p.route, one, bad, NULL, st, &p.why), PDX_ERANGE);
    assert_int_equal(pdx_send_kvcache(p.route, below, one, NULL, st, &p.why), PDX_ERANGE);
    assert_int_equal(pdx_send_kvcache(p.route, one, below, NULL, st, &p.why), PDX_ERANGE);
    assert_int_equal(pdx_send_state(p.route, lists, lists, 3, NULL, st, 3, &n, &p.why), 0);
    assert_true(st[0] && !st[1] && st[2]);
    assert_int_equal(fake_nsubmissions(), 2);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.elsewhere, 2);
    pair_fini(&p);
}

/* Nor has the other side: then there is no pool to be outside of, but numbers are not negative. */
static void test_stages_without_layers_on_both_sides(void **state)
{
    const int32_t page = 3, negative = -1;
    const struct pdx_index_list one = {&page, 1}, below = {&negative, 1};
    struct pdx_transfer_status *st;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = p.remote.desc.pp_size = 2;
    p.local.desc.nkv = p.remote.desc.nkv = 0;
    pair_route(&p, 0);
    assert_int_equal(pdx_send_kvcache(p.route, one, one, NULL, &st, &p.why), 0);
    assert_null(st);
    assert_int_equal(pdx_send_kvcache(p.route, below, one, NULL, &st, &p.why), PDX_ERANGE);
    assert_int_equal(pdx_send_kvcache(p.route, one, below, NULL, &st, &p.why), PDX_ERANGE);
    pair_fini(&p);
}

/* With equal splits there is no other stage that could have them. */
static void test_a_stage_without_layers_needs_another_one(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.pp_size = p.remote.desc.pp_size = 2;
    p.local.desc.nkv = 0;
    p.local.components[1].ntensors = 0;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv: tensor count: local 0, remote 2: the remote side has layers that nothing is");
    pair_has(&p, "component 1 (swa): tensor count: local 0, remote 2");
    pair_fini(&p);
    pair_init(&p);
    p.local.desc.pp_size = p.remote.desc.pp_size = 2;
    p.remote.desc.nkv = 0;
    p.remote.components[1].ntensors = 0;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv: Decode peer is missing a transfer entry for model layer 0");
    pair_has(&p, "component 1 (swa): tensor count: local 2, remote 0");
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draft_comes_behind_the_last_layer),
        cmocka_unit_test(test_ranges_that_are_none_are_refused),
        cmocka_unit_test(test_ranges_of_untold_state_are_refused),
        cmocka_unit_test(test_pages_are_limited_by_what_pairs),
        cmocka_unit_test(test_a_stage_without_layers_sends_nothing),
        cmocka_unit_test(test_stages_without_layers_on_both_sides),
        cmocka_unit_test(test_a_stage_without_layers_needs_another_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
