/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call is told does not depend on the rank that makes it: two prefill
 * ranks hold the same, one of them sends it, and both give the same verdict on
 * the same lists. And what a call reads of its options.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Prefill rank `rank` of two, which hold the same, to a decode of one; not yet routed. */
static void copies(struct pair *p, uint32_t rank)
{
    pair_init(p);
    p->local.desc.engine_rank = rank;
    p->remote.desc.engine_rank = 0;
    p->remote.desc.tp_size = 1;
    p->local.desc.kv_kind = p->remote.desc.kv_kind = PDX_KV_MLA;
    for (int i = 0; i < 2; i++) {
        p->local.mamba[i].shard_dim = p->remote.mamba[i].shard_dim = 0;
        p->local.mamba[i].flags = p->remote.mamba[i].flags = PDX_TENSOR_REPLICATED;
    }
}

/* Refused with that code, and nothing was sent. */
static void refused(const struct pair *p, int rc, int code)
{
    if (rc != code)
        fail_msg("rank %u: %s, \"%s\", not %s", p->local.desc.engine_rank, pdx_err_name(rc),
                 rc < 0 ? p->why.text : "", pdx_err_name(code));
    assert_int_equal(fake_nsubmissions(), 0);
}

static void test_destinations_that_come_twice(void **state)
{
    static const int32_t src[] = {1, 2, 3}, dst[] = {4, 1, 4}, slot[] = {5};
    const struct pdx_index_list from[] = {{slot, 1}, {src, 3}, {src, 3}};
    const struct pdx_index_list to[] = {{slot, 1}, {src, 3}, {dst, 3}};

    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pair p;
        struct pdx_index_list s = {src, 3}, d = {dst, 3};

        copies(&p, rank);
        pair_route(&p, 0);
        assert_int_equal(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0), rank == 0);
        refused(&p, pdx_send_kvcache(p.route, s, d, NULL, NULL, &p.why), PDX_EINVAL);
        refused(&p, pdx_send_state(p.route, from, to, 3, NULL, NULL, 0, NULL, &p.why), PDX_EINVAL);
        pair_fini(&p);
    }
}

static void test_layers_of_state_that_does_not_tell_them(void **state)
{
    static const int32_t slot[] = {5};
    const struct pdx_index_list l[] = {{slot, 1}, {slot, 1}, {slot, 1}};
    const struct pdx_layers layers = {0, 1};

    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pair p;

        copies(&p, rank);
        pair_route(&p, 0);
        refused(&p, pdx_send_state_layers(p.route, &layers, l, l, 3, NULL, NULL, 0, NULL, &p.why),
                PDX_EINVAL);
        pair_has(&p, "do not tell layers");
        pair_fini(&p);
    }
}

static void test_slots_that_only_some_aux_buffers_have(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pair p;

        copies(&p, rank);
        p.local.aux[1].len = 4 * p.local.aux[1].item_len;
        pair_route(&p, 0);
        refused(&p, pdx_send_aux(p.route, 4, 3, NULL, NULL, &p.why), PDX_ERANGE);
        pair_has(&p, "aux: src index 4");
        assert_int_equal(pdx_send_aux(p.route, 3, 4, NULL, NULL, &p.why), 0);
        pair_fini(&p);
    }
}

/* Both ranks send their heads of K and V, one of them the latent, which has fewer pages. */
static void test_pages_that_only_some_parts_have(void **state)
{
    static const int32_t four[] = {4}, three[] = {3};

    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pair p;

        copies(&p, rank);
        p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_MIXED;
        p.local.desc.nkv = p.remote.desc.nkv = 3;
        p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
        for (struct pair_side *s = &p.local;; s = &p.remote) {
            for (int i = 0; i < 3; i++) {
                s->kv[i].part = (enum pdx_kv_part)(PDX_KV_PART_K + i);
                s->kv[i].layer = i / 2;
            }
            if (s == &p.remote)
                break;
        }
        pair_item_len(&p.remote.kv[0], 256);
        pair_item_len(&p.remote.kv[1], 256);
        p.remote.kv[2].len = 4 * 128;
        pair_route(&p, 0);
        refused(&p,
                pdx_send_kvcache(p.route, (struct pdx_index_list){three, 1},
                                 (struct pdx_index_list){four, 1}, NULL, NULL, &p.why),
                PDX_ERANGE);
        pair_has(&p, "kv: dst index 4");
        assert_int_equal(pdx_send_kvcache(p.route, (struct pdx_index_list){four, 1},
                                          (struct pdx_index_list){three, 1}, NULL, NULL, &p.why),
                         0);
        assert_int_equal(fake_nsubmissions(), 1);
        pair_fini(&p);
    }
}

static void test_a_notification_for_several_components(void **state)
{
    static const int32_t slot[] = {5};
    const struct pdx_index_list l[] = {{slot, 1}, {slot, 1}, {slot, 1}};
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;

    (void)state;
    opts.flags = PDX_SUBMIT_TRACK;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pair p;

        copies(&p, rank);
        pair_route(&p, 0);
        refused(&p, pdx_send_state(p.route, l, l, 3, &opts, NULL, 0, NULL, &p.why), PDX_EINVAL);
        pair_has(&p, "speaks for one transfer");
        pair_fini(&p);
    }
}

/* An older caller's options end before the notification; what lies behind is not theirs. */
static void test_shorter_options_are_read_no_further(void **state)
{
    static const int32_t slot[] = {5};
    const struct pdx_index_list l[] = {{slot, 1}, {slot, 1}, {slot, 1}};
    const size_t size = offsetof(struct pdx_submit_opts, flags);
    struct pdx_submit_opts whole = PDX_SUBMIT_OPTS_INIT;
    void *opts = malloc(size);
    struct pair p;

    (void)state;
    assert_non_null(opts);
    whole.size = size;
    memcpy(opts, &whole, size);
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state(p.route, l, l, 3, opts, NULL, 0, NULL, &p.why), 0);
    assert_int_equal(fake_nsubmissions(), 3);
    free(opts);
    pair_fini(&p);
}

/* Cutting to the shorter list is permitted; cutting to nothing is not passing it over. */
static void test_nothing_is_cut_to_nothing(void **state)
{
    static const int32_t pages[] = {5, 6};
    const struct pdx_state_type own = {
        .size = sizeof own, .name = "swa", .flags = PDX_STATE_MAY_TRUNCATE | PDX_STATE_REPLICATED};
    const struct pdx_route_opts opts = {
        .size = sizeof opts, .flags = PDX_ROUTE_TRUNCATE_PAGED, .types = &own, .ntypes = 1};
    const struct pdx_index_list empty[] = {{NULL, 0}, {pages, 0}, {NULL, 0}};
    const struct pdx_index_list two[] = {{NULL, 0}, {pages, 2}, {NULL, 0}};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      &opts, &p.route, &p.why),
                     0);
    refused(&p, pdx_send_state(p.route, empty, two, 3, NULL, NULL, 0, NULL, &p.why), PDX_EINVAL);
    pair_has(&p, "SWA state index length mismatch: src=0, dst=2");
    refused(&p, pdx_send_state(p.route, two, empty, 3, NULL, NULL, 0, NULL, &p.why), PDX_EINVAL);
    assert_int_equal(pdx_send_state(p.route, empty, empty, 3, NULL, NULL, 0, NULL, &p.why), 0);
    pair_fini(&p);
}

/* A layout is of one engine; its own decoder would refuse another one. */
static void test_a_layout_of_two_engines_is_refused(void **state)
{
    struct pdx_layout *layout = NULL;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.kv[1].region = p.remote.region;
    assert_int_equal(pdx_layout_create(&p.local.desc, &layout, &p.why), PDX_EINVAL);
    pair_has(&p, "regions are of two engines");
    assert_null(layout);
    pair_fini(&p);
}

/* Heads on a rank are compared however each side told them. */
static void test_heads_told_in_two_ways_are_compared(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.remote.desc.total_kv_head_num = 0;
    p.remote.desc.kv_head_num = 2;
    pair_layouts(&p);
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why), PDX_EMISMATCH);
    pair_has(&p, "kv_head_num: local 4, remote 2");
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destinations_that_come_twice),
        cmocka_unit_test(test_layers_of_state_that_does_not_tell_them),
        cmocka_unit_test(test_slots_that_only_some_aux_buffers_have),
        cmocka_unit_test(test_pages_that_only_some_parts_have),
        cmocka_unit_test(test_a_notification_for_several_components),
        cmocka_unit_test(test_shorter_options_are_read_no_further),
        cmocka_unit_test(test_nothing_is_cut_to_nothing),
        cmocka_unit_test(test_a_layout_of_two_engines_is_refused),
        cmocka_unit_test(test_heads_told_in_two_ways_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
