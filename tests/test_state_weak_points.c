/* SPDX-License-Identifier: Apache-2.0
 *
 * The weak points W1 to W13 of the connector that this library replaces: wrong
 * lengths, wrong heads, lists that are cut or passed over, bytes that went out
 * before something was found wrong. A test for each, of the better behaviour;
 * the numbers are but names.
 * test_state_weak_sizes.c has W29 to W34.
 */
#include "state_pair.h"
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const int32_t numbers[] = {1, 2, 3, 4, 5};
static const int32_t src_pages[] = {3, 4, 5, 0, 9, 8};
static const int32_t dst_pages[] = {6, 7, 1, 2, 9, 0};

static struct pdx_index_list list(size_t n)
{
    return (struct pdx_index_list){numbers, n};
}

static const struct pdx_index_list none = {NULL, 0};

static int send_kv(struct pair *p, struct pdx_index_list src, struct pdx_index_list dst)
{
    return pdx_send_kvcache(p->route, src, dst, NULL, NULL, &p->why);
}

static int send_state(struct pair *p, const struct pdx_index_list src[3],
                      const struct pdx_index_list dst[3])
{
    struct pdx_transfer_status *st[3];
    size_t n;

    return pdx_send_state(p->route, src, dst, 3, NULL, st, 3, &n, &p->why);
}

/* KV lists of different length: refused with both numbers, whatever they are, and none is cut. */
static void test_w01_kv_lists_of_different_length_are_refused(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED | PDX_ROUTE_TRUST_PAIRING);
    for (size_t src = 0; src <= 5; src++)
        for (size_t dst = 0; dst <= 5; dst++) {
            size_t before = fake_nsubmissions();
            char text[64];

            (void)snprintf(text, sizeof text, "src=%zu, dst=%zu. ", src, dst);
            assert_int_equal(send_kv(&p, list(src), list(dst)), src == dst ? 0 : PDX_EINVAL);
            assert_int_equal(fake_nsubmissions(), before + (src == dst && src));
            if (src != dst)
                pair_has(&p, text);
        }
    pair_fini(&p);
}

/* The combinations in which decode ranks with copies of heads got the wrong ones. */
static void test_w02_copies_of_heads_are_the_right_ones(void **state)
{
    static const uint32_t cases[][3] = {{1, 4, 2}, {1, 8, 2}, {1, 8, 4}, {2, 8, 4}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sm_list l;

        sm_mha(&l, cases[i][2], 4, 6, 6, 2);
        assert_int_equal(
            sm_transfer(&l, cases[i][0], cases[i][1], src_pages, dst_pages, COUNT(src_pages), 10),
            0);
    }
}

/* TP sizes that do not divide: refused when the sides meet, also where items move whole. */
static void test_w03_sizes_that_do_not_divide_make_no_route(void **state)
{
    (void)state;
    for (int mla = 0; mla < 2; mla++) {
        struct sm_side three = {.tp = 3}, two = {.tp = 2};
        struct sm_list l;
        struct sm_rank from, to;
        struct pdx_route *route = NULL;
        struct pdx_error why;

        if (mla)
            sm_mla(&l, 2, 8, 2);
        else
            sm_mha(&l, 6, 2, 8, 8, 2);
        sm_rank_init(&from, &l, FAKE_LOCAL, &three, 0, 0, 10);
        sm_rank_init(&to, &l, FAKE_REMOTE, &two, 0, 0, 10);
        assert_int_equal(pdx_route_create(fake_engine(), from.layout, fake_peer(), to.layout, NULL,
                                          &route, &why),
                         PDX_EMISMATCH);
        assert_non_null(strstr(why.text, "tp_size: local 3, remote 2: neither divides the other"));
        assert_null(route);
        sm_rank_fini(&from);
        sm_rank_fini(&to);
        fake_reset();
    }
}

/* The last V tensor has fewer pages than all others, on either side: its number counts. */
static void test_w04_indices_are_checked_against_every_tensor(void **state)
{
    static const int32_t wrong[] = {-1, 7, 10, INT32_MIN, INT32_MAX};

    (void)state;
    for (int side = 0; side < 2; side++) {
        struct pair p;

        pair_init(&p);
        (side ? &p.remote : &p.local)->kv[3].len = 7 * 128;
        pair_route(&p, 0);
        for (size_t i = 0; i < COUNT(wrong); i++) {
            const int32_t pages[] = {0, 1, wrong[i]}, good[] = {0, 1, 6};
            const struct pdx_index_list w = {pages, 3}, g = {good, 3};
            size_t before = fake_nsubmissions();

            assert_int_equal(send_kv(&p, side ? g : w, side ? w : g), PDX_ERANGE);
            pair_has(&p, "kv: ");
            assert_int_equal(fake_nsubmissions(), before);
            assert_int_equal(send_kv(&p, g, g), 0);
        }
        pair_fini(&p);
    }
}

/* So they are on a rank that leaves the bytes to another one. */
static void test_w04_indices_are_checked_where_nothing_is_sent(void **state)
{
    static const int32_t wrong[] = {-1, 10, INT32_MIN, INT32_MAX};
    static const int32_t nine = 9;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_MLA;
    p.local.kv[1].len = 9 * 128; /* which has the fewest pages */
    p.remote.kv[2].len = 9 * 128;
    p.remote.desc.tp_size = 1;
    p.remote.desc.engine_rank = 0;
    for (int i = 0; i < 2; i++) {
        p.local.mamba[i].shard_dim = p.remote.mamba[i].shard_dim = 0;
        p.local.mamba[i].flags = p.remote.mamba[i].flags = PDX_TENSOR_REPLICATED;
    }
    pair_route(&p, 0);
    assert_false(pdx_route_carries(p.route, PDX_PAYLOAD_KV, 0));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const struct pdx_index_list w = {&wrong[i], 1};

        assert_int_equal(send_kv(&p, w, list(1)), PDX_ERANGE);
        pair_has(&p, "kv: src index ");
        assert_int_equal(send_kv(&p, list(1), w), PDX_ERANGE);
        for (size_t c = 0; c < 3; c++) {
            struct pdx_index_list good[] = {list(1), list(1), list(1)};
            struct pdx_index_list bad[] = {list(1), list(1), list(1)};

            bad[c] = w;
            assert_int_equal(send_state(&p, bad, good), PDX_ERANGE);
            assert_int_equal(send_state(&p, good, bad), PDX_ERANGE);
        }
        assert_int_equal(pdx_send_aux(p.route, wrong[i], 0, NULL, NULL, &p.why), PDX_ERANGE);
        assert_int_equal(pdx_send_aux(p.route, 0, wrong[i], NULL, NULL, &p.why), PDX_ERANGE);
    }
    assert_int_equal(send_kv(&p, (struct pdx_index_list){&nine, 1}, list(1)), PDX_ERANGE);
    assert_int_equal(send_kv(&p, list(1), (struct pdx_index_list){&nine, 1}), PDX_ERANGE);
    assert_int_equal(fake_nsubmissions(), 0);
    pair_fini(&p);
}

/* Every tensor of the pair's sides, in turn, has another item length than its partner. */
static void test_w05_item_lengths_of_every_pair_are_compared(void **state)
{
    (void)state;
    for (size_t i = 0; i < 11; i++) {
        struct pair p;
        struct pdx_tensor *t;
        char text[64];

        pair_init(&p);
        t = i < 4    ? &p.remote.kv[i]
            : i < 6  ? &p.remote.aux[i - 4]
            : i < 8  ? &p.remote.mamba[i - 6]
            : i < 10 ? &p.remote.swa[i - 8]
                     : &p.remote.dsa[0];
        (void)snprintf(text, sizeof text, "item_len: local %llu, remote %llu",
                       (unsigned long long)t->item_len, (unsigned long long)t->item_len / 2);
        pair_item_len(t, t->item_len / 2);
        pair_layouts(&p);
        assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why),
                         PDX_EMISMATCH);
        pair_has(&p, text);
        pair_fini(&p);
    }
}

/* Each layer has lengths of its own, K another than V. */
static void test_w06_every_tensor_has_its_own_length(void **state)
{
    static const uint32_t sizes[][2] = {{2, 2}, {4, 2}, {1, 4}, {3, 6}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct sm_list l;

        sm_mha(&l, 12, 3, 1, 1, 4);
        for (size_t k = 0; k < l.n; k++)
            l.shapes[k].unit_len = 1 + (k * 5 + 3) % 7;
        (void)sm_transfer(&l, sizes[i][0], sizes[i][1], src_pages, dst_pages, COUNT(src_pages), 10);
        sm_mla(&l, 3, 4, 4);
        (void)sm_transfer(&l, sizes[i][0], sizes[i][1], src_pages, dst_pages, COUNT(src_pages), 10);
    }
}

/* A component is passed over when both sides say none, and never else; the text names it. */
static void test_w07_state_is_passed_over_only_when_both_say_none(void **state)
{
    const struct pdx_index_list kinds[] = {none, list(0), list(1)};
    static const char *const names[] = {"mamba", "swa", "dsa"};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < 9; i++) {
            struct pdx_index_list src[] = {list(1), list(1), list(1)};
            struct pdx_index_list dst[] = {list(1), list(1), list(1)};
            size_t before = fake_nsubmissions();
            bool good = i == 0 || i == 8;

            src[c] = kinds[i / 3];
            dst[c] = kinds[i % 3];
            assert_int_equal(send_state(&p, src, dst), good ? 0 : PDX_EINVAL);
            assert_int_equal(fake_nsubmissions(), before + (i == 8 ? 3 : good ? 2 : 0));
            if (!good)
                pair_has(&p, names[c]);
        }
    pair_fini(&p);
}

struct log {
    size_t n;
    enum pdx_log_level level;
    char text[512];
};

static void log_keep(void *ctx, enum pdx_log_level level, const char *text)
{
    struct log *l = ctx;

    l->n++;
    l->level = level;
    (void)snprintf(l->text, sizeof l->text, "%s", text);
}

/* Strict by default; where it is asked for, the common part goes, is counted and logged. */
static void test_w08_drift_of_pages_is_refused_or_counted(void **state)
{
    const struct pdx_index_list src[] = {list(1), list(4), none};
    const struct pdx_index_list dst[] = {list(1), list(2), none};
    struct pdx_route_opts opts = PDX_ROUTE_OPTS_INIT;
    struct pdx_route_counters c;
    struct log log = {.n = 0};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    opts.log = log_keep;
    opts.log_ctx = &log;
    for (uint32_t flags = 0; flags <= PDX_ROUTE_TRUNCATE_PAGED; flags++) {
        opts.flags = flags;
        assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(),
                                          p.remote.layout, &opts, &p.route, &p.why),
                         0);
        assert_int_equal(log.n, 0);
        assert_int_equal(send_state(&p, src, dst), flags ? 0 : PDX_EINVAL);
        pdx_route_counters(p.route, &c);
        assert_int_equal(c.truncated, flags ? 1 : 0);
        assert_int_equal(fake_nsubmissions(), flags ? 2 : 0);
        assert_int_equal(log.n, flags ? 1 : 0);
        /* What the engine does not take is neither counted nor logged. */
        fake_refuse_submit(PDX_EAGAIN);
        assert_true(send_state(&p, src, dst) < 0);
        fake_refuse_submit(0);
        assert_int_equal(log.n, flags ? 1 : 0);
        pdx_route_destroy(p.route);
        p.route = NULL;
    }
    assert_int_equal(log.level, PDX_LOG_WARN);
    assert_string_equal(
        log.text,
        "State index length mismatch for swa: src=4 dst=2; truncating to common prefix=2");
    pair_fini(&p);
}

/* Components of equal sizes in another order: nothing but the names tells them apart. */
static void test_w09_types_are_compared_when_the_sides_meet(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    for (struct pair_side *s = &p.local;; s = &p.remote) {
        pair_item_len(&s->dsa[0], 64);
        s->components[1].ntensors = 1;
        if (s == &p.remote)
            break;
    }
    p.remote.components[1].type = "dsa";
    p.remote.components[2].type = "swa";
    pair_layouts(&p);
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_EMISMATCH);
    pair_has(&p, "state types: local [mamba, swa, dsa], remote [mamba, dsa, swa]");
    pair_fini(&p);
}

/* Stages of a split prefill find the layers of their state, and cannot be told without numbers. */
static void test_w10_state_of_a_stage_finds_its_layers(void **state)
{
    const struct sm_side whole = {.tp = 1};
    struct sm_list l = {.type = "mamba", .n = 5};
    struct sm_rank from, to;
    struct pdx_error why;
    struct sm_plan plan = {.list = &l,
                           .prefill = {.tp = 2, .pp = 2, .ends = {2}},
                           .decode = {.tp = 1},
                           .src = numbers,
                           .dst = numbers + 2,
                           .n = 1,
                           .nitems = 6};

    (void)state;
    for (size_t i = 0; i < l.n; i++)
        l.shapes[i] = (struct sm_shape){.rows = 1, .units = 8, .unit_len = 3};
    sm_number(&l);
    assert_int_equal(sm_run(&plan), 0);
    l.untold = true;
    sm_rank_init(&from, &l, FAKE_LOCAL, &plan.prefill, 0, 1, 6);
    sm_rank_init(&to, &l, FAKE_REMOTE, &whole, 0, 0, 6);
    assert_int_equal(pdx_route_check(from.layout, to.layout, NULL, &why), PDX_EMISMATCH);
    assert_non_null(strstr(why.text, "PP-heterogeneous transfer requires layer ids on both peers"));
    sm_rank_fini(&from);
    sm_rank_fini(&to);
    fake_reset();
}

/* [q | k | v] is cut block by block, in every row. */
static void test_w11_conv_blocks_are_not_cut_across(void **state)
{
    static const uint32_t sizes[][2] = {{2, 1}, {1, 2}, {4, 2}, {2, 8}, {8, 2}};
    struct sm_list l = {.type = "mamba",
                        .n = 2,
                        .shapes = {{.rows = 3,
                                    .units = 32,
                                    .unit_len = 2,
                                    .groups = {8, 8, 16},
                                    .ngroups = 3,
                                    .tell_groups = true},
                                   {.rows = 1,
                                    .units = 20,
                                    .unit_len = 3,
                                    .groups = {8, 4, 8},
                                    .ngroups = 3,
                                    .tell_groups = true}}};

    (void)state;
    sm_number(&l);
    for (size_t i = 0; i < COUNT(sizes); i++)
        (void)sm_transfer(&l, sizes[i][0], sizes[i][1], numbers, numbers + 1, 1, 6);
}

/* One mamba tensor of rank 1 of 2, and its partner on the one decode rank. */
static const struct {
    uint64_t local_len, local_dim, remote_len, remote_dim;
    uint32_t flags; /* of both */
    const char *text;
} dims[] = {
    {96, 0, 96, 0, 0, "PD state transfer does not support TP-mismatched"}, /* nobody knows */
    {96, 0, 96, 0, PDX_TENSOR_REPLICATED, NULL},                           /* declared */
    {96, 8, 192, 16, 0, NULL},
    {96, 8, 192, 0, 0, "shard_dim: local 8, remote 0"},
    {96, 0, 192, 16, 0, "shard_dim: local 0, remote 16"},
    {96, 8, 96, 16, 0, "the bytes of one unit or the rows differ"},
    {96, 8, 192, 8, 0, "local 8 x 2, remote 8 x 1 are not the same axis"}, /* it would leave */
    {96, 16, 96, 16, 0, "local 16 x 2, remote 16 x 1 are not the same axis"},
};

static void test_w12_dims_of_mamba_are_checked(void **state)
{
    struct pair p;

    (void)state;
    for (size_t i = 0; i < COUNT(dims); i++) {
        pair_init(&p);
        p.remote.desc.tp_size = 1;
        p.remote.desc.engine_rank = 0;
        p.local.desc.ncomponents = p.remote.desc.ncomponents = 1;
        p.local.components[0].ntensors = p.remote.components[0].ntensors = 1;
        p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_NONE;
        p.local.desc.nkv = p.remote.desc.nkv = 0;
        pair_item_len(&p.local.mamba[0], dims[i].local_len);
        pair_item_len(&p.remote.mamba[0], dims[i].remote_len);
        p.local.mamba[0].shard_dim = dims[i].local_dim;
        p.remote.mamba[0].shard_dim = dims[i].remote_dim;
        p.local.mamba[0].flags = p.remote.mamba[0].flags = dims[i].flags;
        pair_layouts(&p);
        assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout, NULL, &p.why),
                         dims[i].text ? PDX_EMISMATCH : 0);
        if (dims[i].text)
            pair_has(&p, dims[i].text);
        pair_fini(&p);
    }
    /* A remainder is found on its own side. */
    pair_init(&p);
    p.local.mamba[0].shard_dim = 7;
    assert_int_equal(pdx_layout_create(&p.local.desc, &p.local.layout, &p.why), PDX_EINVAL);
    pair_has(&p, "item_len 96 is not a multiple of outer 1 x shard_dim 7");
    pair_fini(&p);
}

/* Whatever is wrong with one component, wherever it stands: the others are not sent. */
static void test_w13_nothing_moves_when_one_component_is_refused(void **state)
{
    static const int32_t twice[] = {3, 3}, far[] = {1, 10}, negative[] = {-1, 2};
    const struct pdx_index_list bad[] = {
        list(3), none, list(0), {twice, 2}, {far, 2}, {negative, 2}, {NULL, 2},
    };
    struct pair p;

    (void)state;
    pair_init(&p);
    for (struct pair_side *s = &p.local;; s = &p.remote) {
        s->components[0].slots = 2;
        if (s == &p.remote)
            break;
    }
    pair_route(&p, 0);
    for (size_t c = 0; c < 3; c++)
        for (size_t i = 0; i < COUNT(bad); i++) {
            struct pdx_index_list good[] = {list(2), list(2), list(2)};
            struct pdx_index_list lists[] = {list(2), list(2), list(2)};
            struct pdx_route_counters before, after;

            pdx_route_counters(p.route, &before);
            lists[c] = bad[i];
            assert_true(send_state(&p, good, lists) < 0);
            pdx_route_counters(p.route, &after);
            assert_int_equal(after.state_sends, 0);
            assert_int_equal(after.refused, before.refused + 1);
            assert_int_equal(fake_nsubmissions(), 0);
        }
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_w01_kv_lists_of_different_length_are_refused),
        cmocka_unit_test(test_w02_copies_of_heads_are_the_right_ones),
        cmocka_unit_test(test_w03_sizes_that_do_not_divide_make_no_route),
        cmocka_unit_test(test_w04_indices_are_checked_against_every_tensor),
        cmocka_unit_test(test_w04_indices_are_checked_where_nothing_is_sent),
        cmocka_unit_test(test_w05_item_lengths_of_every_pair_are_compared),
        cmocka_unit_test(test_w06_every_tensor_has_its_own_length),
        cmocka_unit_test(test_w07_state_is_passed_over_only_when_both_say_none),
        cmocka_unit_test(test_w08_drift_of_pages_is_refused_or_counted),
        cmocka_unit_test(test_w09_types_are_compared_when_the_sides_meet),
        cmocka_unit_test(test_w10_state_of_a_stage_finds_its_layers),
        cmocka_unit_test(test_w11_conv_blocks_are_not_cut_across),
        cmocka_unit_test(test_w12_dims_of_mamba_are_checked),
        cmocka_unit_test(test_w13_nothing_moves_when_one_component_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
