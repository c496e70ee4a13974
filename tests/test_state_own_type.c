/* SPDX-License-Identifier: Apache-2.0
 *
 * State types of the caller: rows that only declare, rows in place of the
 * library's, and rows that make no sense. Slicers: test_state_slicer.c.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_row_tells_how_many_indices_there_are(void **state)
{
    static const struct {
        uint32_t min, max, flags;
        size_t src, dst;
        const char *text; /* NULL: it is sent */
    } cases[] = {
        {2, 3, 0, 2, 2, NULL},
        {2, 3, 0, 3, 3, NULL},
        {2, 3, 0, 1, 1,
         "scale takes at least 2 and at most 3 indices of a request, got src=1, dst"},
        {2, 3, 0, 4, 4, "scale takes at least 2 and at most 3"},
        {2, 3, 0, 2, 4,
         "scale takes at least 2 and at most 3 indices of a request, got src=2, dst"},
        {2, 3, 0, 2, 3, "SCALE state index length mismatch: src=2, dst=3"},
        {2, 3, PDX_STATE_MAY_TRUNCATE, 3, 2, NULL},
        {2, 3, PDX_STATE_MAY_TRUNCATE, 3, 1, "scale takes at least 2"},
        {1, 1, 0, 2, 1, "scale requires single state index, got src=2, dst=1"},
        {1, 0, 0, 6, 6, NULL},
        {0, 2, 0, 2, 0, "SCALE state index length mismatch: src=2, dst=0"},
        {0, 2, 0, 3, 3, "scale takes at least 0 and at most 2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_state_type row = PDX_STATE_TYPE_INIT;
        struct pdx_transfer_status *st;
        struct typed t;
        int rc;

        row.name = "scale";
        row.min_indices = cases[i].min;
        row.max_indices = cases[i].max;
        row.flags = cases[i].flags;
        typed_init(&t, "scale");
        if (typed_route_with(&t, &row, PDX_ROUTE_TRUNCATE_PAGED) < 0)
            fail_msg("%zu: %s", i, t.why.text);
        rc = typed_send(&t, cases[i].src, cases[i].dst, &st);
        assert_int_equal(rc, cases[i].text ? PDX_EINVAL : 0);
        if (rc < 0)
            typed_has(&t, cases[i].text);
        assert_int_equal(fake_nsubmissions(), rc < 0 ? 0 : 1);
        typed_fini(&t);
    }
}

/* What a row says of copies and slots, as for the library's types. */
static void test_row_tells_copies_and_slots(void **state)
{
    static const struct {
        uint32_t flags;
        enum pdx_kv_kind kind;
        bool taken;
    } cases[] = {
        {0, PDX_KV_MLA, false},
        {PDX_STATE_REPLICATED_MLA, PDX_KV_MLA, true},
        {PDX_STATE_REPLICATED_MLA, PDX_KV_NONE, false},
        {PDX_STATE_REPLICATED, PDX_KV_NONE, true},
        {PDX_STATE_KV_HEADS, PDX_KV_NONE, false},
    };
    struct pdx_state_type row = PDX_STATE_TYPE_INIT;
    struct pdx_transfer_status *st;
    struct typed t;

    (void)state;
    row.name = "scale";
    row.max_indices = 1;
    for (size_t i = 0; i < COUNT(cases); i++) {
        typed_init(&t, "scale");
        t.local.desc.tp_size = 2;
        t.local.tensors[0].flags = t.remote.tensors[0].flags = PDX_TENSOR_REPLICATED;
        typed_kv(&t.local, cases[i].kind);
        typed_kv(&t.remote, cases[i].kind);
        row.flags = cases[i].flags;
        assert_int_equal(typed_route_with(&t, &row, 0), cases[i].taken ? 0 : PDX_EMISMATCH);
        if (!cases[i].taken)
            typed_has(&t, "SCALE models (prefill_tp_size=2, decode_tp_size=1)");
        typed_fini(&t);
    }
    row.flags = PDX_STATE_SLOTS;
    typed_init(&t, "scale");
    t.local.components[1].slots = t.remote.components[1].slots = 4;
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_int_equal(typed_send(&t, 4, 4, &st), 0);
    assert_int_equal(fake_submission_of(st)->items.n, 4);
    assert_int_equal(typed_send(&t, 5, 5, &st), PDX_EINVAL);
    typed_has(&t, "or set slots in both layouts");
    typed_fini(&t);
}

/* Without the row the type is unknown, and only its state is refused. */
static void test_row_is_of_one_route(void **state)
{
    const struct pdx_route_opts shorter = {.size = offsetof(struct pdx_route_opts, types),
                                           .types = (const struct pdx_state_type *)1,
                                           .ntypes = 1};
    struct pdx_transfer_status *st;
    struct typed t;

    (void)state;
    typed_init(&t, "scale");
    assert_int_equal(typed_route(&t, &shorter), 0); /* a program from before there were rows */
    assert_false(pdx_route_carries(t.route, PDX_PAYLOAD_STATE, 1));
    assert_int_equal(typed_send(&t, 1, 1, &st), PDX_ESTATE_TYPE);
    typed_begins(&t, "PD state transfer failed: unknown state_type=scale. ");
    typed_fini(&t);
}

/* The caller's row counts, also under an old name of the library's; a row may be one of the
 * library's under another name. */
static void test_row_comes_before_the_librarys(void **state)
{
    static const char *const names[][2] = {
        {"mamba", "mamba"}, {"dsa", "dsa"}, {"dsa", "nsa"}, {"nsa", "nsa"}};
    struct pdx_state_type row = PDX_STATE_TYPE_INIT;
    struct pdx_transfer_status *st;
    struct typed t;

    (void)state;
    row.min_indices = 2;
    row.max_indices = 2;
    for (size_t i = 0; i < COUNT(names); i++) {
        row.name = names[i][0];
        typed_init(&t, names[i][1]);
        assert_int_equal(typed_route_with(&t, &row, 0), 0);
        assert_int_equal(typed_send(&t, 2, 2, &st), 0);
        assert_int_equal(typed_send(&t, 1, 1, &st), PDX_EINVAL);
        typed_has(&t, "takes at least 2 and at most 2");
        typed_fini(&t);
    }
    row = *pdx_state_type_at(0);
    row.name = "mine";
    typed_init(&t, "mine");
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_int_equal(typed_send(&t, 2, 1, &st), PDX_EINVAL);
    typed_has(&t, "mine requires single state index, got src=2, dst=1");
    typed_fini(&t);
}

/* A ring by another name. */
static void test_row_may_be_a_ring(void **state)
{
    static const int32_t span[] = {1, 3, 1, 0, 2, 4};
    const struct pdx_index_list lists[] = {{NULL, 0}, {span, 6}};
    struct pdx_state_type row = PDX_STATE_TYPE_INIT;
    struct pdx_transfer_status *st[2];
    struct typed t;
    size_t n;

    (void)state;
    row.name = "tail";
    row.flags = PDX_STATE_RING_SPAN | PDX_STATE_REPLICATED;
    typed_init(&t, "tail");
    t.local.tensors[1].outer = t.remote.tensors[1].outer = 4;
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_int_equal(pdx_send_state(t.route, lists, lists, 2, NULL, st, 2, &n, &t.why), 0);
    assert_int_equal(fake_submission_of(st[1])->items.n, 3);
    typed_fini(&t);
}

/* --- Rows that make no sense --- */

static int slicer_of_nothing(void *ctx, const struct pdx_slicer_ask *ask,
                             struct pdx_slice *ret_slices, char *ret_text, size_t text_cap)
{
    (void)ctx;
    (void)ask;
    (void)ret_slices;
    (void)ret_text;
    (void)text_cap;
    return 0;
}

static void test_bad_rows_are_refused(void **state)
{
    static const struct {
        struct pdx_state_type row;
        const char *text;
    } cases[] = {
        {{.size = 0, .name = "x"}, "opts->types[1].size is 0, not "},
        {{.size = sizeof(struct pdx_state_type) - 1, .name = "x"}, "PDX_STATE_TYPE_INIT"},
        {{.size = sizeof(struct pdx_state_type) + 8, .name = "x"}, "PDX_STATE_TYPE_INIT"},
        {{.size = sizeof(struct pdx_state_type)}, "opts->types[1].name must be 1 to 32"},
        {{.size = sizeof(struct pdx_state_type), .name = ""}, "opts->types[1].name must be 1 to"},
        {{.size = sizeof(struct pdx_state_type), .name = "123456789012345678901234567890123"},
         "opts->types[1].name must be 1 to 32"},
        {{.size = sizeof(struct pdx_state_type), .name = "two words"}, "opts->types[1].name"},
        {{.size = sizeof(struct pdx_state_type), .name = "x\n"}, "opts->types[1].name"},
        {{.size = sizeof(struct pdx_state_type), .name = "x", .flags = 64},
         "opts->types[1] (x): flags 0x40; known are 0x3f"},
        {{.size = sizeof(struct pdx_state_type), .name = "x", .min_indices = 3, .max_indices = 2},
         "max_indices 2 is below min_indices 3"},
        {{.size = sizeof(struct pdx_state_type), .name = "x", .flags = PDX_STATE_SLOTS},
         "PDX_STATE_SLOTS needs max_indices"},
        {{.size = sizeof(struct pdx_state_type),
          .name = "x",
          .flags = PDX_STATE_RING_SPAN | PDX_STATE_MAY_TRUNCATE},
         "a ring span has no max_indices, at most 1 min_indices"},
        {{.size = sizeof(struct pdx_state_type),
          .name = "x",
          .max_indices = 6,
          .flags = PDX_STATE_RING_SPAN},
         "a ring span"},
        {{.size = sizeof(struct pdx_state_type),
          .name = "x",
          .flags = PDX_STATE_RING_SPAN,
          .slicer = slicer_of_nothing},
         "a ring span"},
        {{.size = sizeof(struct pdx_state_type),
          .name = "x",
          .flags = PDX_STATE_RING_SPAN | PDX_STATE_KV_HEADS},
         "a ring span"},
        {{.size = sizeof(struct pdx_state_type),
          .name = "x",
          .max_indices = 1,
          .flags = PDX_STATE_RING_SPAN | PDX_STATE_SLOTS},
         "a ring span"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_state_type rows[2] = {PDX_STATE_TYPE_INIT, cases[i].row};
        const struct pdx_route_opts opts = {.size = sizeof opts, .types = rows, .ntypes = 2};
        struct typed t;

        rows[0].name = "fine";
        typed_init(&t, "swa");
        if (typed_route(&t, &opts) != PDX_EINVAL)
            fail_msg("row %zu was taken", i);
        typed_has(&t, cases[i].text);
        assert_null(t.route);
        assert_int_equal(pdx_route_check(t.local.layout, t.remote.layout, &opts, NULL), PDX_EINVAL);
        typed_fini(&t);
    }
}

static void test_rows_are_limited(void **state)
{
    struct pdx_state_type rows[65];
    struct pdx_route_opts opts = {.size = sizeof opts, .types = rows, .ntypes = COUNT(rows)};
    char names[65][8];
    struct typed t;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        (void)snprintf(names[i], sizeof names[i], "t%zu", i);
        rows[i] = (struct pdx_state_type)PDX_STATE_TYPE_INIT;
        rows[i].name = names[i];
    }
    typed_init(&t, "t63");
    assert_int_equal(typed_route(&t, &opts), PDX_EINVAL);
    typed_has(&t, "opts->ntypes is 65; at most 64");
    opts.ntypes = 64;
    assert_int_equal(pdx_route_create(fake_engine(), t.local.layout, fake_peer(), t.remote.layout,
                                      &opts, &t.route, &t.why),
                     0);
    assert_true(pdx_route_carries(t.route, PDX_PAYLOAD_STATE, 1));
    opts.types = NULL;
    assert_int_equal(pdx_route_check(t.local.layout, t.remote.layout, &opts, &t.why), PDX_EINVAL);
    typed_has(&t, "opts->ntypes is 64, but types is NULL");
    typed_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_tells_how_many_indices_there_are),
        cmocka_unit_test(test_row_tells_copies_and_slots),
        cmocka_unit_test(test_row_is_of_one_route),
        cmocka_unit_test(test_row_comes_before_the_librarys),
        cmocka_unit_test(test_row_may_be_a_ring),
        cmocka_unit_test(test_bad_rows_are_refused),
        cmocka_unit_test(test_rows_are_limited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
