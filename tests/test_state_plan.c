/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx_send_state, byte by byte: mamba states of one and several blocks, pages
 * with and without heads, at every pair of TP sizes up to 16, against the
 * reference tensor of state_model.h; what cannot be laid on ranks is refused;
 * and what SGLang's connector did on inputs of its own.
 */
#include "mamba_cases.h"
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TP_MAX   16
#define NITEMS   8
#define NPAGES   4

static const int32_t src_slot[] = {4};
static const int32_t dst_slot[] = {1};

/* Calls for every pair of sizes that meet. */
typedef void (*tp_pair_fn)(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed);

static void each_tp_pair(struct sm_list *l, tp_pair_fn fn, uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint32_t p = 1; p <= TP_MAX; p++)
        for (uint32_t d = 1; d <= TP_MAX; d++)
            if (sm_sizes_meet(p, d))
                fn(l, p, d, &seed);
}

/* Some items, drawn at random. Returns how many routes had nothing to send. */
static size_t drawn_transfer(const struct sm_list *l, uint32_t p, uint32_t d, size_t n,
                             uint64_t *seed)
{
    int32_t src[NPAGES], dst[NPAGES];

    sm_indices(seed, src, n, NITEMS);
    sm_indices(seed, dst, n, NITEMS);
    return sm_transfer(l, p, d, src, dst, n, NITEMS);
}

/* A width that lies on both groups of ranks: a multiple of both sizes, or with copies on one or
 * both of them. */
static uint64_t drawn_width(uint32_t p, uint32_t d, uint64_t *seed)
{
    uint32_t larger = p > d ? p : d;

    if (sm_draw(seed, 2))
        return larger * (1 + sm_draw(seed, 2));
    for (;;) {
        uint32_t width = 1 + (uint32_t)sm_draw(seed, larger);

        if (sm_sizes_meet(width, p) && sm_sizes_meet(width, d))
            return width;
    }
}

static void one_block(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    uint32_t larger = p > d ? p : d;

    for (size_t i = 0; i < l->n; i++)
        l->shapes[i].units = larger * (1 + sm_draw(seed, 3));
    assert_int_equal(drawn_transfer(l, p, d, 1, seed), 0);
}

/* A convolution state and a recurrent one of different unit and width, twice: each pair has slices
 * of its own. */
static void test_mamba_tensors_of_different_shape_are_one_transfer(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .n = 4,
        .shapes = {{.rows = 1, .unit_len = 6},
                   {.rows = 3, .unit_len = 10},
                   {.rows = 1, .unit_len = 6},
                   {.rows = 3, .unit_len = 10}},
    };

    (void)state;
    sm_number(&l);
    each_tp_pair(&l, one_block, 20240611);
}

static void blocks(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < l->n; i++) {
            struct sm_shape *s = &l->shapes[i];

            s->units = 0;
            for (size_t g = 0; g < s->ngroups; g++) {
                s->groups[g] = drawn_width(p, d, seed);
                s->units += s->groups[g];
            }
        }
        (void)drawn_transfer(l, p, d, 1, seed);
    }
}

/* [q | k | v]: every block is split for itself, with the channels last (several rows) or first.
 * Some have fewer units than there are ranks: copies, of which one is sent. */
static void test_mamba_conv_blocks_are_split_each_for_itself(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .n = 3,
        .shapes = {{.rows = 1, .unit_len = 3, .ngroups = 3, .tell_groups = true},
                   {.rows = 3, .unit_len = 2, .ngroups = 4, .tell_groups = true},
                   {.rows = 2, .unit_len = 1, .ngroups = 2, .tell_groups = true}},
    };

    (void)state;
    sm_number(&l);
    each_tp_pair(&l, blocks, 20240612);
}

/* One block with copies has to be told; and how many ranks then have nothing to send. */
static void copied_block(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    for (uint32_t units = 1; units <= 16; units++) {
        uint32_t feeding = p > d ? p / d : 1, copies = p > units ? p / units : 1;
        uint32_t each = feeding < copies ? feeding : copies;

        if (!sm_sizes_meet(units, p) || !sm_sizes_meet(units, d))
            continue;
        l->shapes[0].units = units;
        assert_int_equal(drawn_transfer(l, p, d, 1, seed), p - p / each);
    }
}

static void test_mamba_block_with_copies_is_written_once(void **state)
{
    struct sm_list l = {
        .type = "mamba", .n = 1, .shapes = {{.rows = 2, .unit_len = 7, .tell_groups = true}}};

    (void)state;
    each_tp_pair(&l, copied_block, 20240613);
}

static void whole_state(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    assert_int_equal(drawn_transfer(l, p, d, 1, seed), p > d ? p - d : 0);
}

/* A state that every rank holds whole has to be declared, and has one writer. */
static void test_mamba_state_that_all_ranks_hold_has_one_writer(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .n = 2,
        .shapes = {{.rows = 1, .units = 5, .unit_len = 8, .copies = true, .replicated = true},
                   {.rows = 1, .units = 9, .unit_len = 4, .copies = true, .replicated = true}},
    };

    (void)state;
    sm_number(&l);
    each_tp_pair(&l, whole_state, 20240614);
}

static void mixed_state(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    l->shapes[0].units = l->shapes[3].units = p * d;
    assert_int_equal(drawn_transfer(l, p, d, 1, seed), 0);
}

/* Some tensors are split, others the same everywhere: later ranks send the first ones only, and
 * whole items stand beside slices in one job. */
static void test_mamba_split_and_common_tensors_mix(void **state)
{
    struct sm_list l = {
        .type = "mamba",
        .n = 4,
        .shapes = {{.rows = 1, .unit_len = 2},
                   {.rows = 1, .units = 9, .unit_len = 4, .copies = true, .replicated = true},
                   {.rows = 1, .units = 7, .unit_len = 3, .copies = true, .replicated = true},
                   {.rows = 2, .unit_len = 1}},
    };

    (void)state;
    sm_number(&l);
    each_tp_pair(&l, mixed_state, 20240615);
}

static void pages_of_heads(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    for (uint32_t heads = 1; heads <= 16; heads++) {
        if (!sm_sizes_meet(heads, p) || !sm_sizes_meet(heads, d))
            continue;
        for (size_t i = 0; i < l->n; i++)
            l->shapes[i].units = heads;
        if (l->kv_kind == PDX_KV_MHA)
            l->heads = heads;
        (void)drawn_transfer(l, p, d, NPAGES, seed);
    }
}

/* Pages with heads: the layout tells the axis, copies of heads included. */
static void test_swa_pages_are_sliced_by_heads(void **state)
{
    struct sm_list l = {.type = "swa",
                        .n = 2,
                        .shapes = {{.rows = 3, .unit_len = 3, .tell_groups = true},
                                   {.rows = 3, .unit_len = 2, .tell_groups = true}}};

    (void)state;
    sm_number(&l);
    each_tp_pair(&l, pages_of_heads, 20240616);
}

/* The heads of the KV cache tell where copies of the pages' heads are, without groups. */
static void test_paged_copies_are_found_by_the_kv_heads(void **state)
{
    const char *const types[] = {"swa", "dsa", "swa_ring", "block_scale", "block_scale_swa"};
    struct sm_list l = {.kv_kind = PDX_KV_MHA,
                        .page_size = 2,
                        .n = 2,
                        .shapes = {{.rows = 2, .unit_len = 3}, {.rows = 2, .unit_len = 3}}};

    (void)state;
    sm_number(&l);
    for (size_t i = 0; i < COUNT(types); i++) {
        l.type = types[i];
        each_tp_pair(&l, pages_of_heads, 20240617 + i);
    }
}

static void whole_pages(struct sm_list *l, uint32_t p, uint32_t d, uint64_t *seed)
{
    assert_int_equal(drawn_transfer(l, p, d, NPAGES, seed), p > d ? p - d : 0);
}

/* Pages of MLA models are the same on every rank, whatever the TP sizes; no tensor says so. */
static void test_paged_state_of_mla_models_goes_whole(void **state)
{
    const char *const types[] = {"swa",         "dsa",           "swa_ring",
                                 "c128_state",  "block_scale",   "block_scale_swa",
                                 "qsa_pending", "qsa_compressed"};
    struct sm_list l = {
        .kv_kind = PDX_KV_MLA,
        .n = 2,
        .shapes = {{.rows = 1, .units = 11, .unit_len = 2, .copies = true},
                   {.rows = 1, .units = 3, .unit_len = 5, .copies = true}},
    };

    (void)state;
    sm_number(&l);
    for (size_t i = 0; i < COUNT(types); i++) {
        l.type = types[i];
        each_tp_pair(&l, whole_pages, 20240621 + i);
    }
}

/* Outside MLA whole pages of these types, and of any other where the tensors declare it, are the
 * same on every rank. */
static void test_declared_copies_go_whole_in_any_model(void **state)
{
    const char *const types[] = {"qsa_pending", "qsa_compressed", "swa", "dsa", "minimax_index_k"};
    struct sm_list l = {.n = 1,
                        .shapes = {{.rows = 1, .units = 11, .unit_len = 2, .copies = true}}};

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        l.type = types[i];
        l.shapes[0].replicated = i >= 2;
        each_tp_pair(&l, whole_pages, 20240631 + i);
    }
}

/* A block of `width` units on a rank of `tp`, told by groups; NULL where it does not lie there. */
static struct pdx_layout *fit_layout(enum fake_side side, uint32_t tp, uint64_t width)
{
    struct pdx_tensor t = {.len = 12, .item_len = 12, .shard_dim = 12, .ngroups = 1};
    struct pdx_component c = {.type = "mamba", .tensors = &t, .ntensors = 1};
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;
    struct pdx_layout *layout = NULL;
    struct pdx_error why;
    int rc;

    t.region = fake_region(side, 64);
    t.shard_dim = width > tp ? width / tp : 1;
    t.item_len = t.len = t.shard_dim;
    t.groups = &width;
    desc.tp_size = tp;
    desc.components = &c;
    desc.ncomponents = 1;
    rc = pdx_layout_create(&desc, &layout, &why);
    if (sm_sizes_meet((uint32_t)width, tp) != (rc == 0))
        fail_msg("%u units on %u ranks: %s", (unsigned)width, tp, pdx_err_name(rc));
    assert_true(rc == 0 || strstr(why.text, "neither is a multiple of tp_size"));
    return layout;
}

/* Widths that lie on one TP size only, or TP sizes that do not meet. */
static void test_axes_that_do_not_fit_are_refused(void **state)
{
    size_t refused = 0;

    (void)state;
    for (uint32_t p = 1; p <= TP_MAX; p++)
        for (uint32_t d = 1; d <= TP_MAX; d++)
            for (uint64_t width = 1; width <= 48; width++) {
                struct pdx_layout *local = fit_layout(FAKE_LOCAL, p, width);
                struct pdx_layout *remote = fit_layout(FAKE_REMOTE, d, width);
                int rc = local && remote ? pdx_route_check(local, remote, NULL, NULL) : PDX_EINVAL;

                if (local && remote && (rc == 0) != sm_sizes_meet(p, d))
                    fail_msg("TP sizes %u and %u: %s", p, d, pdx_err_name(rc));
                refused += rc != 0;
                pdx_layout_destroy(local);
                pdx_layout_destroy(remote);
                fake_reset();
            }
    assert_true(refused > 1000);
}

#define CASE_ITEMS 10

static struct pdx_layout *mamba_layout(const struct mamba_case *c, bool local)
{
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct pdx_tensor t[4];
    struct pdx_component co = {.type = "mamba", .tensors = t, .ntensors = c->n};
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
    const struct pdx_route_opts trust = {.size = sizeof trust, .flags = PDX_ROUTE_TRUST_PAIRING};

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
    const struct sm_side prefill = {.tp = 2}, decode = {.tp = 4};
    struct sm_list l = {.type = "mamba", .n = 8};
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
    sm_number(&l);
    sm_rank_init(&from, &l, FAKE_LOCAL, &prefill, 1, 0, 10);
    sm_rank_init(&to, &l, FAKE_REMOTE, &decode, 3, 0, 10);
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
        cmocka_unit_test(test_mamba_block_with_copies_is_written_once),
        cmocka_unit_test(test_mamba_state_that_all_ranks_hold_has_one_writer),
        cmocka_unit_test(test_mamba_split_and_common_tensors_mix),
        cmocka_unit_test(test_swa_pages_are_sliced_by_heads),
        cmocka_unit_test(test_paged_copies_are_found_by_the_kv_heads),
        cmocka_unit_test(test_paged_state_of_mla_models_goes_whole),
        cmocka_unit_test(test_declared_copies_go_whole_in_any_model),
        cmocka_unit_test(test_axes_that_do_not_fit_are_refused),
        cmocka_unit_test(test_mamba_matches_what_the_original_sent),
        cmocka_unit_test(test_equal_slices_are_shared_by_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
