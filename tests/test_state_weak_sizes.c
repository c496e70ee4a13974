/* SPDX-License-Identifier: Apache-2.0
 *
 * The weak points W29 to W34 of the connector that this library replaces: equal
 * pipeline splits, lists that are guessed to be halves, lengths beyond 32 bits,
 * counts that differ, what a refusal leaves behind, pages written twice. A test
 * for each, of the better behaviour. test_state_weak_points.c has W1 to W13.
 */
#include "state_pair.h"
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const int32_t numbers[] = {1, 2, 3, 4, 5};

static struct pdx_index_list list(size_t n)
{
    return (struct pdx_index_list){numbers, n};
}

/* --- W29 --- */

/* The second of two stages into the second of two: layer by layer, in MHA, MLA and state, told or
 * counted; uneven stages too. */
static void test_w29_equal_splits_pair_one_to_one(void **state)
{
    static const uint32_t tp[][2] = {{1, 1}, {2, 1}, {1, 2}};
    struct sm_list lists[3];

    (void)state;
    sm_mha(&lists[0], 4, 2, 3, 2, 5);
    sm_mla(&lists[1], 2, 4, 5);
    lists[2] = (struct sm_list){.type = "mamba", .n = 5};
    for (size_t i = 0; i < 5; i++)
        lists[2].shapes[i] = (struct sm_shape){.rows = 1, .units = 4, .unit_len = 3};
    sm_number(&lists[2]);
    for (size_t i = 0; i < COUNT(lists) * COUNT(tp) * 2; i++) {
        struct sm_plan plan = {.list = &lists[i % 3],
                               .prefill = {.tp = tp[i / 3 % 3][0], .pp = 2, .ends = {3}},
                               .decode = {.tp = tp[i / 3 % 3][1], .pp = 2, .ends = {3}},
                               .src = numbers,
                               .dst = numbers + 1,
                               .n = i % 3 == 2 ? 1 : 4,
                               .nitems = 6};

        lists[i % 3].untold = i >= 9;
        (void)sm_run(&plan);
    }
}

/* --- W30 --- */

/* Four latents beside a mamba state: four tensors of one length, each to its own; not K and V of
 * two layers. The same list as MHA is another model. */
static void test_w30_the_kind_of_cache_is_told(void **state)
{
    const struct pdx_index_list page = list(1);
    struct pdx_transfer_status *st;
    const struct pdx_job *job;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_MLA;
    p.local.desc.total_kv_head_num = p.remote.desc.total_kv_head_num = 1;
    pair_route(&p, 0);
    assert_int_equal(pdx_send_kvcache(p.route, page, page, NULL, &st, &p.why), 0);
    job = fake_submission_of(st)->job;
    assert_int_equal(job->npairs, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(job->pairs[i].local_base, p.local.kv[i].off);
        assert_int_equal(job->pairs[i].remote_base, p.remote.kv[i].off);
    }
    assert_true(pdx_route_carries(p.route, PDX_PAYLOAD_STATE, 0));
    pair_fini(&p);
    pair_init(&p);
    p.local.desc.kv_kind = PDX_KV_MLA;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv_kind: local MLA, remote MHA");
    pair_fini(&p);
}

/* --- W31 --- */

#define GiB (UINT64_C(1) << 30)

struct large {
    struct pdx_tensor kv[2], mamba;
    struct pdx_component component;
    struct pdx_layout_desc desc;
    struct pdx_layout *layout;
};

/* Two pages of 5 GiB for one rank's 5 heads, or 10 GiB for 10, in regions without memory; a state
 * of as much. */
static void large_init(struct large *l, enum fake_side side, uint32_t tp)
{
    struct pdx_region *region = fake_region_bare(side, 100 * GiB);
    uint64_t item_len = 10 / tp * GiB;
    uint8_t buf[1024];
    struct pdx_layout *made;
    struct pdx_error why;
    size_t len;

    *l = (struct large){.desc = PDX_LAYOUT_DESC_INIT};
    for (uint64_t i = 0; i < 2; i++)
        l->kv[i] = (struct pdx_tensor){.region = region,
                                       .off = i * 2 * item_len,
                                       .len = 2 * item_len,
                                       .item_len = item_len,
                                       .layer = PDX_LAYER_NONE};
    l->mamba = l->kv[0];
    l->mamba.off = 4 * item_len;
    l->mamba.shard_dim = 10 / tp;
    l->component = (struct pdx_component){.type = "mamba", .tensors = &l->mamba, .ntensors = 1};
    l->desc.tp_size = tp;
    l->desc.engine_rank = tp - 1;
    l->desc.kv_kind = PDX_KV_MHA;
    l->desc.page_size = 4;
    l->desc.total_kv_head_num = 10;
    l->desc.kv = l->kv;
    l->desc.nkv = 2;
    l->desc.components = &l->component;
    l->desc.ncomponents = 1;
    if (pdx_layout_create(&l->desc, &made, &why) < 0)
        fail_msg("%s", why.text);
    l->layout = made;
    if (side == FAKE_LOCAL)
        return;
    len = pdx_layout_encode(made, buf, sizeof buf);
    assert_int_equal(pdx_layout_decode(buf, len, &l->layout, &why), 0);
    pdx_layout_destroy(made);
}

struct op {
    uint64_t src, dst, len;
};

struct ops {
    struct op at[16];
    size_t n;
};

static void ops_add(void *ctx, size_t pair, uint64_t src, uint64_t dst, uint64_t len)
{
    struct ops *o = ctx;

    assert_true(o->n < COUNT(o->at));
    if (pair == 0)
        o->at[o->n++] = (struct op){src, dst, len};
}

/* Sends page and slot 1 to 0 and returns the pieces of the first tensor of each. */
static void large_send(uint32_t prefill_tp, uint32_t decode_tp, struct ops *kv, struct ops *mamba)
{
    static const int32_t one = 1, zero = 0;
    const struct pdx_index_list src = {&one, 1}, dst = {&zero, 1};
    struct pdx_transfer_status *st;
    struct pdx_route *route;
    struct large from, to;
    struct pdx_error why;
    size_t n;

    large_init(&from, FAKE_LOCAL, prefill_tp);
    large_init(&to, FAKE_REMOTE, decode_tp);
    if (pdx_route_create(fake_engine(), from.layout, fake_peer(), to.layout, NULL, &route, &why) <
            0 ||
        pdx_send_kvcache(route, src, dst, NULL, &st, &why) < 0)
        fail_msg("%s", why.text);
    kv->n = mamba->n = 0;
    fake_walk(fake_submission_of(st), ops_add, kv);
    if (pdx_send_state(route, &src, &dst, 1, NULL, &st, 1, &n, &why) < 0)
        fail_msg("%s", why.text);
    fake_walk(fake_submission_of(st), ops_add, mamba);
    pdx_route_destroy(route);
    pdx_layout_destroy(from.layout);
    pdx_layout_destroy(to.layout);
    fake_reset();
}

static void test_w31_items_are_longer_than_32_bits(void **state)
{
    struct ops kv, mamba;

    (void)state;
    large_send(2, 2, &kv, &mamba); /* whole */
    assert_int_equal(kv.n, 1);
    assert_true(kv.at[0].src == 5 * GiB && kv.at[0].dst == 0 && kv.at[0].len == 5 * GiB);
    assert_true(mamba.n == 1 && mamba.at[0].src == 5 * GiB && mamba.at[0].len == 5 * GiB);
    large_send(2, 1, &kv, &mamba); /* the second half of each token's heads, and of the state */
    assert_int_equal(kv.n, 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(kv.at[i].src, 5 * GiB + i * (5 * GiB / 4));
        assert_int_equal(kv.at[i].dst, 5 * GiB / 4 + i * (10 * GiB / 4));
        assert_int_equal(kv.at[i].len, 5 * GiB / 4);
    }
    assert_true(mamba.n == 1 && mamba.at[0].src == 5 * GiB && mamba.at[0].dst == 5 * GiB &&
                mamba.at[0].len == 5 * GiB);
    large_send(1, 2, &kv, &mamba);
    assert_int_equal(kv.n, 4);
    assert_true(kv.at[3].src == 10 * GiB + 3 * (10 * GiB / 4) + 5 * GiB / 4);
    assert_true(kv.at[3].dst == 3 * (5 * GiB / 4));
    assert_true(mamba.n == 1 && mamba.at[0].src == 15 * GiB && mamba.at[0].dst == 0 &&
                mamba.at[0].len == 5 * GiB);
}

/* Lengths that only fit in 64 bits when they wrap. */
static void test_w31_lengths_that_wrap_are_refused(void **state)
{
    static const struct {
        uint64_t off, len, item_len, stride;
    } cases[] = {
        {UINT64_MAX, 8, 8, 0},
        {UINT64_MAX - 7, 16, 8, 0},
        {0, UINT64_MAX - 7, 8, 0},
        {8, UINT64_MAX - 7, 8, 0},
        {UINT64_MAX / 2 + 1, UINT64_MAX / 2 + 1, UINT64_MAX / 2 + 1, 0},
        {0, 16, 8, UINT64_MAX},
        {0, UINT64_MAX, 1, UINT64_MAX - 1},
        {0, (UINT64_C(1) << 31) + 1, 1, 0}, /* one more than an index can tell */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_tensor t = {
            .region = fake_region_bare(FAKE_LOCAL, UINT64_C(1) << (i + 1 < COUNT(cases) ? 6 : 40)),
            .off = cases[i].off,
            .len = cases[i].len,
            .item_len = cases[i].item_len,
            .stride = cases[i].stride,
            .layer = PDX_LAYER_NONE};
        struct pdx_component c = {.type = "mamba", .tensors = &t, .ntensors = 1};
        struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
        struct pdx_layout *l = NULL;
        struct pdx_error why;

        d.components = &c;
        d.ncomponents = 1;
        assert_true(pdx_layout_create(&d, &l, &why) < 0);
        assert_non_null(strstr(why.text, "component 0 (mamba) tensor 0: "));
        assert_null(l);
        fake_reset();
    }
}

/* --- W32 --- */

#define BEND(name, statement)               \
    static void bend_##name(struct pair *p) \
    {                                       \
        statement;                          \
    }

BEND(kv_less, p->remote.desc.nkv = 2)
BEND(kv_more, p->local.desc.nkv = 2)
BEND(kv_none, p->remote.desc.nkv = 0; p->remote.desc.kv_kind = PDX_KV_NONE)
BEND(mla_more, p->local.desc.kv_kind = p->remote.desc.kv_kind = PDX_KV_MLA; p->local.desc.nkv = 3)
BEND(aux_less, p->remote.desc.naux = 1)
BEND(aux_more, p->local.desc.naux = 1)
BEND(aux_none, p->local.desc.naux = 0)
BEND(state_less, p->remote.components[1].ntensors = 1)
BEND(state_more, p->local.components[1].ntensors = 1)
BEND(state_layers, p->local.components[1].ntensors = 1; p->local.swa[0].layer = 1;
     p->remote.swa[0].layer = 1; p->remote.swa[1].layer = 2)
BEND(components_less, p->remote.desc.ncomponents = 2)
BEND(components_none, p->local.desc.ncomponents = 0)

static void test_w32_counts_that_differ_are_refused(void **state)
{
    static void (*const bends[])(struct pair *) = {
        bend_kv_less,    bend_kv_more,      bend_kv_none,         bend_mla_more,
        bend_aux_less,   bend_aux_more,     bend_aux_none,        bend_state_less,
        bend_state_more, bend_state_layers, bend_components_less, bend_components_none,
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bends); i++) {
        struct pair p;

        pair_init(&p);
        bends[i](&p);
        pair_layouts(&p);
        if (pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout, NULL,
                             &p.route, &p.why) != PDX_EMISMATCH)
            fail_msg("%zu: taken", i);
        assert_int_equal(fake_nprepared(), 0);
        pair_fini(&p);
    }
}

/* A count without its list is no empty list. */
static void test_w32_a_missing_list_is_refused(void **state)
{
    struct pair p;

    (void)state;
    for (int i = 0; i < 4; i++) {
        pair_init(&p);
        if (i == 0)
            p.local.desc.kv = NULL;
        else if (i == 1)
            p.local.desc.aux = NULL;
        else if (i == 2)
            p.local.desc.components = NULL;
        else
            p.local.components[1].tensors = NULL;
        assert_int_equal(pdx_layout_create(&p.local.desc, &p.local.layout, &p.why), PDX_EINVAL);
        pair_has(&p, "but their pointer is NULL");
        assert_null(p.local.layout);
        pair_fini(&p);
    }
}

/* --- W33 --- */

/* Refused sends of every kind, then good ones: what was refused has left nothing. */
static void test_w33_a_refusal_leaves_nothing_behind(void **state)
{
    const struct pdx_index_list good[] = {list(1), list(2), list(2)};
    const struct pdx_index_list bad[] = {list(1), list(2), list(3)};
    struct pdx_transfer_status *st[3];
    struct pdx_route_counters c;
    struct pair p;
    size_t n, alive;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    alive = fake_nprepared();
    for (int i = 0; i < 50; i++) {
        assert_int_equal(pdx_send_state(p.route, good, bad, 3, NULL, st, 3, &n, &p.why),
                         PDX_EINVAL);
        assert_int_equal(pdx_send_kvcache(p.route, list(2), list(3), NULL, st, &p.why), PDX_EINVAL);
        assert_int_equal(pdx_send_aux(p.route, -1, 0, NULL, st, &p.why), PDX_ERANGE);
        fake_refuse_submit(PDX_EAGAIN);
        assert_int_equal(pdx_send_state(p.route, good, good, 3, NULL, st, 3, &n, &p.why),
                         PDX_EAGAIN);
        assert_int_equal(pdx_send_kvcache(p.route, list(2), list(2), NULL, st, &p.why), PDX_EAGAIN);
        fake_refuse_submit(0);
        assert_int_equal(fake_nprepared(), alive);
        assert_int_equal(fake_nsubmissions(), 0);
    }
    assert_int_equal(pdx_send_state(p.route, good, good, 3, NULL, st, 3, &n, &p.why), 0);
    assert_int_equal(pdx_send_kvcache(p.route, list(2), list(2), NULL, st, &p.why), 0);
    assert_int_equal(fake_nsubmissions(), 4);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.refused, 250);
    assert_int_equal(c.state_sends, 3);
    assert_int_equal(c.kv_sends, 1);
    assert_int_equal(c.aux_sends + c.truncated + c.elsewhere, 0);
    pdx_route_destroy(p.route);
    p.route = NULL;
    assert_int_equal(fake_nprepared(), 4); /* of the transfers, which go on */
    pair_fini(&p);
}

/* --- W34 --- */

/* A page that comes twice, at every pair of places of the destination list; on the source it may.
 */
static void test_w34_a_destination_comes_once(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.components[0].slots = p.remote.components[0].slots = 4;
    pair_route(&p, 0);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++) {
            int32_t pages[] = {2, 7, 3, 9};
            const struct pdx_index_list twice = {pages, 4};
            struct pdx_index_list good[] = {list(4), list(4), list(4)};
            struct pdx_transfer_status *st[3];
            size_t n;

            pages[i] = pages[k];
            assert_int_equal(pdx_send_kvcache(p.route, list(4), twice, NULL, NULL, &p.why),
                             PDX_EINVAL);
            pair_has(&p, "comes twice");
            for (size_t c = 0; c < 3; c++) {
                struct pdx_index_list dst[] = {list(4), list(4), list(4)};

                dst[c] = twice;
                assert_int_equal(pdx_send_state(p.route, good, dst, 3, NULL, st, 3, &n, &p.why),
                                 PDX_EINVAL);
            }
            assert_int_equal(fake_nsubmissions(), 0);
            assert_int_equal(pdx_send_kvcache(p.route, twice, list(4), NULL, st, &p.why), 0);
            fake_run_all();
            pair_fini(&p);
            pair_init(&p);
            p.local.components[0].slots = p.remote.components[0].slots = 4;
            pair_route(&p, 0);
        }
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_w29_equal_splits_pair_one_to_one),
        cmocka_unit_test(test_w30_the_kind_of_cache_is_told),
        cmocka_unit_test(test_w31_items_are_longer_than_32_bits),
        cmocka_unit_test(test_w31_lengths_that_wrap_are_refused),
        cmocka_unit_test(test_w32_counts_that_differ_are_refused),
        cmocka_unit_test(test_w32_a_missing_list_is_refused),
        cmocka_unit_test(test_w33_a_refusal_leaves_nothing_behind),
        cmocka_unit_test(test_w34_a_destination_comes_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
