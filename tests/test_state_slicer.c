/* SPDX-License-Identifier: Apache-2.0
 *
 * Slicers of a caller's state type: they say byte by byte what goes where, leave
 * a tensor to another rank, or refuse with their own words. What they say is
 * checked before anything is made of it.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct slicer {
    size_t calls;
    struct pdx_slicer_ask ask; /* of the last call */
    struct pdx_slice slices[PDX_SLICES_MAX];
    int n;
    const char *text;
};

static int slicer_play(void *ctx, const struct pdx_slicer_ask *ask, struct pdx_slice *ret_slices,
                       char *ret_text, size_t text_cap)
{
    struct slicer *s = ctx;

    s->calls++;
    s->ask = *ask;
    for (int i = 0; i < s->n && i < PDX_SLICES_MAX; i++)
        ret_slices[i] = s->slices[i];
    if (s->text)
        (void)snprintf(ret_text, text_cap, "%s", s->text);
    return s->n;
}

static struct pdx_state_type slicer_row(struct slicer *s)
{
    return (struct pdx_state_type){.size = sizeof(struct pdx_state_type),
                                   .name = "turned",
                                   .min_indices = 1,
                                   .slicer = slicer_play,
                                   .slicer_ctx = s};
}

/* The one side has 2 rows of 4 bytes, the other 4 rows of 2: each column becomes a row. */
static void test_slicer_turns_items_around(void **state)
{
    struct slicer s = {.n = 4};
    struct pdx_state_type row = slicer_row(&s);
    struct pdx_transfer_status *st;
    struct typed t;
    uint8_t *from, *to;

    (void)state;
    for (uint64_t i = 0; i < 4; i++)
        s.slices[i] = (struct pdx_slice){.local_off = i,
                                         .remote_off = 2 * i,
                                         .len = 1,
                                         .rows = 2,
                                         .local_pitch = 4,
                                         .remote_pitch = 1};
    typed_init(&t, "turned");
    if (typed_route_with(&t, &row, 0) < 0)
        fail_msg("%s", t.why.text);
    assert_int_equal(s.calls, 1);
    from = fake_mem(t.local.tensors[1].region) + t.local.tensors[1].off;
    to = fake_mem(t.remote.tensors[1].region) + t.remote.tensors[1].off;
    for (int i = 0; i < 80; i++)
        from[i] = (uint8_t)(i + 1);
    assert_int_equal(typed_send(&t, 3, 3, &st), 0);
    fake_run(fake_submission_of(st));
    for (size_t k = 0; k < 10; k++)
        for (size_t i = 0; i < 8; i++) {
            bool sent = k == 4 || k == 1 || k == 7;

            assert_int_equal(to[8 * k + i], sent ? from[8 * k + i % 2 * 4 + i / 2] : 0);
        }
    assert_int_equal(s.calls, 1); /* nothing of it is asked again */
    typed_fini(&t);
}

static int slicer_by_tensor(void *ctx, const struct pdx_slicer_ask *ask,
                            struct pdx_slice *ret_slices, char *ret_text, size_t text_cap)
{
    const struct pdx_slice *slices = ctx;

    (void)ret_text;
    (void)text_cap;
    ret_slices[0] = slices[ask->tensor];
    return 1;
}

/* Slices of tensors that differ in one value only are not taken for the same. */
static void test_slices_belong_to_their_tensor(void **state)
{
    static struct pdx_slice slices[] = {
        {.len = 1, .rows = 2, .local_pitch = 2, .remote_pitch = 2},
        {.local_off = 1, .len = 1, .rows = 2, .local_pitch = 2, .remote_pitch = 2},
        {.remote_off = 1, .len = 1, .rows = 2, .local_pitch = 2, .remote_pitch = 2},
        {.len = 2, .rows = 2, .local_pitch = 2, .remote_pitch = 2},
        {.len = 1, .rows = 3, .local_pitch = 2, .remote_pitch = 2},
        {.len = 1, .rows = 2, .local_pitch = 3, .remote_pitch = 2},
        {.len = 1, .rows = 2, .local_pitch = 2, .remote_pitch = 3},
        {.len = 1, .rows = 2, .local_pitch = 2, .remote_pitch = 2}, /* as the first */
    };
    struct pdx_state_type row = slicer_row(NULL);
    struct pdx_tensor tensors[2][COUNT(slices)];
    struct pdx_transfer_status *st;
    const struct pdx_job *job;
    struct typed t;

    (void)state;
    row.slicer = slicer_by_tensor;
    row.slicer_ctx = slices;
    typed_init(&t, "turned");
    for (size_t i = 0; i < COUNT(slices); i++) {
        tensors[0][i] = t.local.tensors[1];
        tensors[1][i] = t.remote.tensors[1];
        tensors[0][i].off = tensors[1][i].off = 1024 * i;
    }
    t.local.components[1].tensors = tensors[0];
    t.remote.components[1].tensors = tensors[1];
    t.local.components[1].ntensors = t.remote.components[1].ntensors = COUNT(slices);
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_int_equal(typed_send(&t, 1, 1, &st), 0);
    job = fake_submission_of(st)->job;
    assert_int_equal(job->nslices, COUNT(slices) - 1);
    for (size_t i = 0; i < COUNT(slices); i++) {
        assert_int_equal(job->pairs[i].nslices, 1);
        assert_memory_equal(&job->slices[job->pairs[i].first_slice], &slices[i], sizeof slices[i]);
    }
    typed_fini(&t);
}

/* TP sizes, ranks and both tensors as they were told; asked when checking too. */
static void test_slicer_sees_both_sides(void **state)
{
    static const uint64_t groups[] = {3, 3};
    struct slicer s = {.n = 1, .slices = {{.len = 2, .rows = 1}}};
    struct pdx_state_type row = slicer_row(&s);
    const struct pdx_route_opts opts = {.size = sizeof opts, .types = &row, .ntypes = 1};
    struct typed t;

    (void)state;
    typed_init(&t, "turned");
    t.local.desc.tp_size = 6;
    t.local.desc.engine_rank = 11;
    t.remote.desc.tp_size = 3;
    t.remote.desc.engine_rank = 5;
    t.local.tensors[0].flags = t.remote.tensors[0].flags = PDX_TENSOR_REPLICATED;
    t.local.tensors[1].layer = t.remote.tensors[1].layer = 6;
    t.remote.tensors[1].shard_dim = 2;
    t.remote.tensors[1].outer = 4;
    t.remote.tensors[1].groups = groups;
    t.remote.tensors[1].ngroups = 2;
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_string_equal(s.ask.type, "turned");
    assert_int_equal(s.ask.local_tp_size, 6);
    assert_int_equal(s.ask.local_tp_rank, 5);
    assert_int_equal(s.ask.remote_tp_size, 3);
    assert_int_equal(s.ask.remote_tp_rank, 2);
    assert_int_equal(s.ask.tensor, 0);
    assert_null(s.ask.local.region);
    assert_null(s.ask.remote.region);
    assert_int_equal(s.ask.local.off, 2048);
    assert_int_equal(s.ask.local.item_len, 8);
    assert_int_equal(s.ask.local.len, 80);
    assert_int_equal(s.ask.local.stride, 8);
    assert_int_equal(s.ask.local.layer, 6);
    assert_int_equal(s.ask.local.shard_dim, 0);
    assert_int_equal(s.ask.remote.shard_dim, 2);
    assert_int_equal(s.ask.remote.outer, 4);
    assert_int_equal(s.ask.remote.ngroups, 2);
    s.ask.type = NULL;
    assert_int_equal(pdx_route_check(t.local.layout, t.remote.layout, &opts, &t.why), 0);
    assert_int_equal(s.calls, 2);
    typed_fini(&t);
}

/* Another rank sends this tensor. */
static void test_slicer_may_leave_a_tensor_to_another_rank(void **state)
{
    struct slicer s = {.n = 0};
    struct pdx_state_type row = slicer_row(&s);
    struct pdx_transfer_status *st = (struct pdx_transfer_status *)&s;
    struct pdx_route_counters c;
    struct typed t;

    (void)state;
    typed_init(&t, "turned");
    assert_int_equal(typed_route_with(&t, &row, 0), 0);
    assert_false(pdx_route_carries(t.route, PDX_PAYLOAD_STATE, 1));
    assert_int_equal(typed_send(&t, 1, 1, &st), 0);
    assert_null(st);
    assert_int_equal(typed_send(&t, 2, 1, &st), PDX_EINVAL);
    pdx_route_counters(t.route, &c);
    assert_int_equal(c.elsewhere, 1);
    typed_fini(&t);
}

static void test_slicer_refuses_in_its_own_words(void **state)
{
    static char long_text[1024];
    static const struct {
        int n;
        const char *text, *want;
    } cases[] = {
        {PDX_EMISMATCH, "turned: 3 blocks here, 4 there",
         "component 1 (turned) tensor 0: its slicer gave"},
        {PDX_EMISMATCH, "turned: 3 blocks here, 4 there", ": turned: 3 blocks here, 4 there"},
        {-1, NULL, "its slicer gave -1 (slices, at most 64; below 0: it refuses): no text"},
        {PDX_SLICES_MAX + 1, NULL,
         "its slicer gave 65 (slices, at most 64; below 0: it refuses): no text"},
        {-1, long_text, "below 0: it refuses): xxxx"},
    };

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slicer s = {.n = cases[i].n, .text = cases[i].text};
        struct pdx_state_type row = slicer_row(&s);
        struct typed t;

        typed_init(&t, "turned");
        assert_int_equal(typed_route_with(&t, &row, 0), PDX_EMISMATCH);
        typed_has(&t, cases[i].want);
        assert_null(t.route);
        assert_int_equal(fake_nprepared(), 0);
        typed_fini(&t);
    }
}

/* Items of 8 bytes, alone or 12 bytes apart: what is between them is another tensor's. */
static void refuse_slice(const struct pdx_slice *slice, size_t i, uint64_t stride,
                         bool when_checked)
{
    struct slicer s = {.n = 2, .slices = {{.len = 1, .rows = 1}, *slice}};
    struct pdx_state_type row = slicer_row(&s);
    const struct pdx_route_opts opts = {.size = sizeof opts, .types = &row, .ntypes = 1};
    struct typed t;

    typed_init(&t, "turned");
    if (stride) {
        t.local.tensors[1].stride = t.remote.tensors[1].stride = stride;
        t.local.tensors[1].len = t.remote.tensors[1].len = 9 * stride + 8;
    }
    if (typed_route_with(&t, &row, 0) >= 0)
        fail_msg("slice %zu, stride %d: taken", i, (int)stride);
    typed_has(&t, "component 1 (turned)");
    assert_null(t.route);
    assert_int_equal(fake_nprepared(), 0);
    if (when_checked)
        assert_int_equal(pdx_route_check(t.local.layout, t.remote.layout, &opts, &t.why),
                         PDX_EMISMATCH);
    typed_fini(&t);
}

static void test_slices_that_leave_an_item_are_refused(void **state)
{
    static const struct pdx_slice cases[] = {
        {.len = 9, .rows = 1},
        {.local_off = 7, .len = 2, .rows = 1},
        {.remote_off = 7, .len = 2, .rows = 1},
        {.len = 2, .rows = 4, .local_pitch = 3, .remote_pitch = 2},
        {.len = 2, .rows = 4, .local_pitch = 2, .remote_pitch = 3},
        {.len = 2, .rows = 2, .local_pitch = UINT64_MAX, .remote_pitch = 2},
        {.local_off = UINT64_MAX, .len = 2, .rows = 1},
        {.remote_off = UINT64_MAX - 1, .len = 2, .rows = 1},
        {.len = UINT64_MAX, .rows = 1},
        {.len = 1, .rows = UINT64_MAX, .local_pitch = 1, .remote_pitch = 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint64_t stride = 0; stride <= 12; stride += 12)
            refuse_slice(&cases[i], i, stride, true);
}

static void test_slices_of_nothing_are_refused(void **state)
{
    static const struct pdx_slice cases[] = {
        {.len = 0, .rows = 1},
        {.len = 1, .rows = 0},
        {.len = 2, .rows = 2, .local_pitch = 1, .remote_pitch = 2}, /* rows that overlap */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse_slice(&cases[i], i, 0, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slicer_turns_items_around),
        cmocka_unit_test(test_slices_belong_to_their_tensor),
        cmocka_unit_test(test_slicer_sees_both_sides),
        cmocka_unit_test(test_slicer_may_leave_a_tensor_to_another_rank),
        cmocka_unit_test(test_slicer_refuses_in_its_own_words),
        cmocka_unit_test(test_slices_that_leave_an_item_are_refused),
        cmocka_unit_test(test_slices_of_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
