/* SPDX-License-Identifier: Apache-2.0
 *
 * dsa_tail: a list is one span of a ring, six numbers. Which entries go where,
 * by example and against a plain model of both rings; which spans and layouts
 * are refused; and that a component before it is then not sent either.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NROWS    6

static const int32_t one_slot[] = {3};

/* A ring of so many entries on either side; `entry` bytes each. */
static void ring_init(struct typed *t, uint64_t local, uint64_t remote, uint64_t entry)
{
    struct pdx_tensor *tensors[] = {&t->local.tensors[1], &t->remote.tensors[1]};

    typed_init(t, "dsa_tail");
    for (int i = 0; i < 2; i++) {
        tensors[i]->outer = i ? remote : local;
        tensors[i]->item_len = tensors[i]->outer * entry;
        tensors[i]->len = NROWS * tensors[i]->item_len;
    }
}

static int ring_send(struct typed *t, struct pdx_index_list src, struct pdx_index_list dst,
                     struct pdx_transfer_status **ret_status)
{
    const struct pdx_index_list s[] = {{one_slot, 1}, src}, d[] = {{one_slot, 1}, dst};
    struct pdx_transfer_status *st[2] = {NULL, NULL};
    size_t n = 77;
    int rc = pdx_send_state(t->route, s, d, 2, NULL, st, 2, &n, &t->why);

    assert_true(rc < 0 ? n == 77 && !st[0] && !st[1] : n == 2 && st[0]);
    *ret_status = st[1];
    return rc;
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

    (void)pair;
    assert_true(o->n < COUNT(o->at));
    o->at[o->n++] = (struct op){src, dst, len};
}

static void test_live_entries_go_in_order(void **state)
{
    static const struct {
        uint64_t local_ring, remote_ring, entry;
        int32_t src[6], dst[6];
        size_t n;
        struct op want[4];
    } cases[] = {
        /* Rows of 50 and 70 bytes, of 5 and 7 entries. */
        {5,
         7,
         10,
         {1, 3, 2, 0, 2, 5},
         {2, 1, 3, 0, 1, 7},
         4,
         {{80, 150, 10}, {90, 160, 10}, {50, 170, 10}, {60, 140, 10}}},
        {10,
         10,
         16,
         {2, 9, 1, 0, 2, 10},
         {5, 4, 3, 0, 0, 10},
         3,
         {{464, 864, 16}, {320, 880, 16}, {336, 896, 16}}},
        /* One entry, the last of the last row. */
        {4, 4, 3, {5, 3, 1, 0, 0, 4}, {0, 0, 0, 2, 1, 4}, 1, {{69, 6, 3}}},
        /* A full ring. */
        {3, 3, 1, {0, 1, 2, 0, 1, 3}, {1, 0, 3, 3, 0, 3}, 3, {{1, 3, 1}, {2, 4, 1}, {0, 5, 1}}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_transfer_status *st;
        struct ops ops = {.n = 0};
        struct typed t;

        ring_init(&t, cases[i].local_ring, cases[i].remote_ring, cases[i].entry);
        if (typed_route_flags(&t, 0) < 0 ||
            ring_send(&t, (struct pdx_index_list){cases[i].src, 6},
                      (struct pdx_index_list){cases[i].dst, 6}, &st) < 0)
            fail_msg("%zu: %s", i, t.why.text);
        fake_walk(fake_submission_of(st), ops_add, &ops);
        assert_int_equal(ops.n, cases[i].n);
        for (size_t k = 0; k < ops.n; k++)
            assert_memory_equal(&ops.at[k], &cases[i].want[k], sizeof ops.at[k]);
        typed_fini(&t);
    }
}

static size_t draw(uint64_t *seed, size_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(*seed >> 33) % below;
}

/* `count` entries of a row from `first` on, around the ring. */
static void span_of(int32_t ret[6], size_t row, size_t first, size_t count, size_t ring)
{
    size_t run = count < ring - first ? count : ring - first;

    ret[0] = (int32_t)row;
    ret[1] = (int32_t)first;
    ret[2] = (int32_t)run;
    ret[3] = 0;
    ret[4] = (int32_t)(count - run);
    ret[5] = (int32_t)ring;
}

/* Two layers of rings at random places: the n-th live entry is the n-th there, all other bytes stay
 * as they are. */
static void test_rings_of_any_size_and_place_arrive(void **state)
{
    uint64_t seed = 20240901;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 500; round++) {
        size_t local = 1 + draw(&seed, 9), remote = 1 + draw(&seed, 9), entry = 1 + draw(&seed, 5);
        size_t count = 1 + draw(&seed, local < remote ? local : remote);
        size_t sf = draw(&seed, local), df = draw(&seed, remote);
        size_t srow = draw(&seed, NROWS), drow = draw(&seed, NROWS);
        struct pdx_tensor tensors[2][2];
        struct pdx_transfer_status *st;
        int32_t src[6], dst[6];
        struct typed t;

        ring_init(&t, local, remote, entry);
        for (size_t i = 0; i < 2; i++) {
            tensors[0][i] = t.local.tensors[1];
            tensors[1][i] = t.remote.tensors[1];
            tensors[0][i].off += i * 4096;
            tensors[1][i].off += i * 4096;
        }
        t.local.components[1].tensors = tensors[0];
        t.remote.components[1].tensors = tensors[1];
        t.local.components[1].ntensors = t.remote.components[1].ntensors = 2;
        for (size_t i = 0; i < 16384; i++)
            fake_mem(t.local.tensors[0].region)[i] = (uint8_t)(1 + i * 7 % 251);
        span_of(src, srow, sf, count, local);
        span_of(dst, drow, df, count, remote);
        if (typed_route_flags(&t, 0) < 0 || ring_send(&t, (struct pdx_index_list){src, 6},
                                                      (struct pdx_index_list){dst, 6}, &st) < 0)
            fail_msg("%s", t.why.text);
        fake_run(fake_submission_of(st));
        for (size_t i = 0; i < 2; i++)
            for (size_t k = 0; k < count; k++)
                for (size_t b = 0; b < entry; b++) {
                    uint64_t from =
                        tensors[0][i].off + (srow * local + (sf + k) % local) * entry + b;
                    uint64_t to =
                        tensors[1][i].off + (drow * remote + (df + k) % remote) * entry + b;
                    uint8_t *got = fake_mem(tensors[1][i].region) + to;

                    assert_int_equal(*got, fake_mem(tensors[0][i].region)[from]);
                    assert_int_equal(fake_hits(tensors[1][i].region)[to], 1);
                    *got = 0;
                }
        for (size_t i = 0; i < 16384; i++)
            assert_int_equal(fake_mem(tensors[1][0].region)[i], 0);
        typed_fini(&t);
    }
}

#define FAILED "PD state transfer failed: component 1 (dsa_tail)"

/* A good span is {1, 3, 2, 0, 2, 5} here, and {2, 1, 3, 0, 1, 7} on the other side. */
static void test_hostile_spans_are_refused(void **state)
{
    static const int32_t good_src[] = {1, 3, 2, 0, 2, 5}, good_dst[] = {2, 1, 3, 0, 1, 7};
    static const struct {
        int32_t span[8];
        size_t n;
        const char *text;
    } cases[] = {
        {{1, 3, 2, 0, 2}, 5, "a span is six numbers"},
        {{1, 3, 2, 0, 2, 5, 0}, 7, "a span is six numbers"},
        {{1}, 1, "a span is six numbers"},
        {{1, 3, 2, 0, 2, 6}, 6, "its ring is not as large as the layout says"},
        {{1, 3, 2, 0, 2, 0}, 6, "its ring is not as large"},
        {{1, 3, 2, 0, 2, -5}, 6, "its ring is not as large"},
        {{1, 3, 2, 0, 2, INT32_MIN}, 6, "its ring is not as large"},
        {{-1, 3, 2, 0, 2, 5}, 6, "its row is outside the tensor"},
        {{NROWS, 3, 2, 0, 2, 5}, 6, "its row is outside the tensor"},
        {{INT32_MAX, 3, 2, 0, 2, 5}, 6, "its row is outside the tensor"},
        {{INT32_MIN, 3, 2, 0, 2, 5}, 6, "its row is outside the tensor"},
        {{1, -1, 2, 0, 2, 5}, 6, "its runs leave the ring"},
        {{1, 3, -2, 0, 2, 5}, 6, "its runs leave the ring"},
        {{1, 3, 2, -1, 2, 5}, 6, "its runs leave the ring"},
        {{1, 3, 2, 0, -2, 5}, 6, "its runs leave the ring"},
        {{1, 4, 2, 0, 2, 5}, 6, "its runs leave the ring"},
        {{1, 3, 2, 4, 2, 5}, 6, "its runs leave the ring"},
        {{1, 6, 0, 0, 4, 5}, 6, "its runs leave the ring"},
        {{1, 0, 4, 0, 4, 5}, 6, "its runs leave the ring, or are longer than it together"},
        {{1, INT32_MAX, INT32_MAX, 0, 2, 5}, 6, "its runs leave the ring"},
        {{1, 1, INT32_MAX, 0, 2, 5}, 6, "its runs leave the ring"},
        {{1, 3, 2, INT32_MAX, INT32_MAX, 5}, 6, "its runs leave the ring"},
        {{1, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 5}, 6, "its runs leave the ring"},
        {{1, 3, 0, 0, 0, 5}, 6, "it has no live entry"},
        {{1, 3, 2, 0, 1, 5}, 6, "the span of src has 3 live entries, that of dst 4"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct pdx_index_list bent = {cases[i].span, cases[i].n};
        struct pdx_transfer_status *st;
        struct typed t;

        ring_init(&t, 5, 7, 10);
        assert_int_equal(typed_route_flags(&t, PDX_ROUTE_TRUNCATE_PAGED), 0);
        assert_int_equal(ring_send(&t, bent, (struct pdx_index_list){good_dst, 6}, &st),
                         PDX_EINVAL);
        typed_begins(&t, FAILED);
        typed_has(&t, cases[i].text);
        assert_int_equal(fake_nsubmissions(), 0);
        typed_fini(&t);
        /* The same on the other side. */
        ring_init(&t, 7, 5, 10);
        assert_int_equal(typed_route_flags(&t, 0), 0);
        assert_int_equal(ring_send(&t, (struct pdx_index_list){good_dst, 6}, bent, &st),
                         PDX_EINVAL);
        typed_begins(&t, FAILED);
        typed_has(&t, i + 1 < COUNT(cases) ? cases[i].text
                                           : "the span of src has 4 live entries, that of dst 3");
        assert_int_equal(fake_nsubmissions(), 0);
        typed_fini(&t);
        ring_init(&t, 5, 7, 10);
        assert_int_equal(typed_route_flags(&t, 0), 0);
        assert_int_equal(ring_send(&t, (struct pdx_index_list){good_src, 6},
                                   (struct pdx_index_list){good_dst, 6}, &st),
                         0);
        typed_fini(&t);
    }
}

/* The same entry in both runs: it would be written twice. */
static void test_entries_that_come_twice_are_refused(void **state)
{
    static const int32_t twice[] = {1, 0, 2, 1, 2, 5}, once[] = {1, 0, 4, 0, 0, 5};
    struct pdx_transfer_status *st;
    struct typed t;

    (void)state;
    ring_init(&t, 5, 5, 2);
    assert_int_equal(typed_route_flags(&t, 0), 0);
    assert_int_equal(
        ring_send(&t, (struct pdx_index_list){once, 6}, (struct pdx_index_list){twice, 6}, &st),
        PDX_EINVAL);
    typed_has(&t, "dst: its two runs overlap");
    assert_int_equal(fake_nsubmissions(), 0);
    typed_fini(&t);
}

/* Both none or both empty: nothing to send. One side only is never passed over. */
static void test_one_empty_span_is_refused(void **state)
{
    static const int32_t span[] = {1, 3, 2, 0, 2, 5};
    const struct pdx_index_list lists[] = {{NULL, 0}, {span, 0}, {span, 6}};
    struct typed t;

    (void)state;
    ring_init(&t, 5, 5, 10);
    assert_int_equal(typed_route_flags(&t, 0), 0);
    for (size_t i = 0; i < 9; i++) {
        size_t src = i / 3, dst = i % 3, before = fake_nsubmissions();
        struct pdx_transfer_status *st;
        int rc = ring_send(&t, lists[src], lists[dst], &st);

        assert_int_equal(rc, src == dst ? 0 : PDX_EINVAL);
        assert_int_equal(fake_nsubmissions(), before + (rc ? 0 : src == 2 ? 2 : 1));
        assert_true((st != NULL) == (rc == 0 && src == 2));
        if (rc < 0)
            typed_begins(&t, FAILED " has indices on one side only, or on none: src=");
    }
    typed_fini(&t);
}

static void test_rings_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        uint64_t local_ring, remote_ring, local_len, remote_len, remote_stride;
        const char *text; /* NULL: in order */
    } cases[] = {
        {5, 7, 50, 70, 0, NULL},
        {4096, 1, 4096, 1, 0, NULL},
        {5, 7, 50, 77, 0,
         "DSA tail descriptor metadata mismatch: local rows of 50 bytes are 5 "
         "entries, remote rows of 77 bytes 7"},
        {10, 5, 50, 50, 0, "DSA tail descriptor metadata mismatch"},
        {4097, 1, 4097, 1, 0,
         "component 1 (dsa_tail) tensor 0 (local): outer 4097 must be the "
         "entries of the ring, at most 4096"},
        {1, 4097, 1, 4097, 0, "component 1 (dsa_tail) tensor 0 (remote): outer 4097"},
        {5, 5, 50, 50, 60,
         "component 1 (dsa_tail) tensor 0 (remote): outer 5 must be the entries "
         "of the ring, at most 4096 and the same as in tensor 0 (5), without "
         "stride (60 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct typed t;
        int rc;

        ring_init(&t, cases[i].local_ring, cases[i].remote_ring, 1);
        t.local.tensors[1].len = t.local.tensors[1].item_len = cases[i].local_len;
        t.remote.tensors[1].len = t.remote.tensors[1].item_len = cases[i].remote_len;
        t.remote.tensors[1].stride = cases[i].remote_stride;
        rc = typed_route_flags(&t, 0);
        assert_int_equal(rc, cases[i].text ? PDX_EMISMATCH : 0);
        if (rc < 0)
            typed_has(&t, cases[i].text);
        typed_fini(&t);
    }
}

/* All tensors of a side have rings of one size: a span says one. */
static void test_rings_of_a_side_are_alike(void **state)
{
    struct pdx_tensor tensors[2], theirs[2];
    struct typed t;

    (void)state;
    ring_init(&t, 5, 5, 10);
    tensors[0] = tensors[1] = t.local.tensors[1];
    tensors[1].off += 4096;
    tensors[1].outer = 10;
    tensors[1].item_len = 100;
    tensors[1].len = 600;
    theirs[0] = tensors[0];
    theirs[1] = tensors[1];
    theirs[0].region = theirs[1].region = t.remote.tensors[1].region;
    t.local.components[1].tensors = tensors;
    t.remote.components[1].tensors = theirs;
    t.local.components[1].ntensors = t.remote.components[1].ntensors = 2;
    assert_int_equal(typed_route_flags(&t, 0), PDX_EMISMATCH);
    typed_has(&t, "component 1 (dsa_tail) tensor 1 (local): outer 10 must be the entries of the "
                  "ring, at most 4096 and the same as in tensor 0 (5)");
    typed_fini(&t);
}

/* Rows that are there, of which the entries have no 32-bit number: refused, or the right bytes. */
static void test_rows_beyond_the_numbers_of_entries_are_not_mistaken(void **state)
{
    static const int32_t rows[] = {(1 << 19) - 1, 1 << 19, 1 << 20, (1 << 20) + 1};
    const uint64_t nrows = (1 << 20) + 2, ring = 4096;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const int32_t far[] = {rows[i], 0, 2, 0, 0, 4096}, near[] = {1, 0, 2, 0, 0, 4096};
        struct pdx_transfer_status *st;
        struct ops ops = {.n = 0};
        struct typed t;

        typed_init(&t, "dsa_tail");
        t.local.tensors[1] =
            (struct pdx_tensor){.region = fake_region_bare(FAKE_LOCAL, nrows * ring),
                                .len = nrows * ring,
                                .item_len = ring,
                                .layer = PDX_LAYER_NONE,
                                .outer = ring};
        t.remote.tensors[1] = t.local.tensors[1];
        t.remote.tensors[1].region = fake_region_bare(FAKE_REMOTE, nrows * ring);
        if (typed_route_flags(&t, 0) < 0) {
            typed_fini(&t);
            continue;
        }
        if (ring_send(&t, (struct pdx_index_list){far, 6}, (struct pdx_index_list){near, 6}, &st) ==
            0) {
            fake_walk(fake_submission_of(st), ops_add, &ops);
            assert_int_equal(ops.at[0].src, (uint64_t)rows[i] * ring);
            assert_int_equal(ops.at[1].src, (uint64_t)rows[i] * ring + 1);
        } else {
            assert_int_equal(fake_nsubmissions(), 0);
        }
        typed_fini(&t);
    }
}

/* The rings of one call have room for 4096 entries; what is beyond has to be sent by itself. */
static void test_rings_of_one_call_are_limited(void **state)
{
    static const int32_t one[] = {0, 0, 1, 0, 0, 4096}, all[] = {0, 0, 4096, 0, 0, 4096};
    const struct pdx_index_list both[] = {{one, 6}, {one, 6}};
    const struct pdx_index_list first[] = {{all, 6}, {NULL, 0}};
    struct pdx_transfer_status *st[2];
    struct typed t;
    size_t n;

    (void)state;
    ring_init(&t, 4096, 4096, 1);
    t.local.tensors[1].len = t.remote.tensors[1].len = 4096;
    t.local.components[0] = t.local.components[1];
    t.remote.components[0] = t.remote.components[1];
    if (typed_route_flags(&t, 0) < 0)
        fail_msg("%s", t.why.text);
    assert_int_equal(pdx_send_state(t.route, first, first, 2, NULL, st, 2, &n, &t.why), 0);
    assert_int_equal(fake_submission_of(st[0])->items.n, 4096);
    assert_int_equal(pdx_send_state(t.route, both, both, 2, NULL, st, 2, &n, &t.why), PDX_EINVAL);
    typed_begins(&t, FAILED ": the rings of one send have more than 4096 entries");
    assert_int_equal(fake_nsubmissions(), 1);
    typed_fini(&t);
}

/* Two components: the second one's entries stand behind the first one's. */
static void test_two_rings_go_in_one_call(void **state)
{
    static const int32_t a[] = {1, 3, 2, 0, 2, 5}, b[] = {4, 0, 1, 0, 0, 5};
    const struct pdx_index_list src[] = {{a, 6}, {b, 6}};
    struct pdx_transfer_status *st[2];
    struct typed t;
    size_t n;

    (void)state;
    ring_init(&t, 5, 5, 10);
    t.local.components[0] = t.local.components[1];
    t.remote.components[0] = t.remote.components[1];
    assert_int_equal(typed_route_flags(&t, 0), 0);
    assert_int_equal(pdx_send_state(t.route, src, src, 2, NULL, st, 2, &n, &t.why), 0);
    assert_int_equal(fake_submission_of(st[0])->items.n, 4);
    assert_int_equal(fake_submission_of(st[0])->items.local[2], 5);
    assert_int_equal(fake_submission_of(st[1])->items.n, 1);
    assert_int_equal(fake_submission_of(st[1])->items.local[0], 20);
    typed_fini(&t);
}

/* The second of two ranks of an MLA model: spans are judged, nothing is sent. */
static void test_ring_of_an_mla_model_has_one_writer(void **state)
{
    static const int32_t good[] = {1, 3, 2, 0, 2, 5}, bad[] = {9, 3, 2, 0, 2, 5};

    (void)state;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct pdx_transfer_status *st;
        struct typed t;

        ring_init(&t, 5, 5, 10);
        t.local.desc.tp_size = 2;
        t.local.desc.engine_rank = rank;
        t.local.tensors[0].flags = t.remote.tensors[0].flags = PDX_TENSOR_REPLICATED;
        typed_kv(&t.local, PDX_KV_MLA);
        typed_kv(&t.remote, PDX_KV_MLA);
        if (typed_route_flags(&t, 0) < 0)
            fail_msg("%s", t.why.text);
        assert_true(pdx_route_carries(t.route, PDX_PAYLOAD_STATE, 1) == (rank == 0));
        if (rank) {
            const struct pdx_index_list s[] = {{one_slot, 1}, {good, 6}};
            const struct pdx_index_list d[] = {{one_slot, 1}, {bad, 6}};
            struct pdx_transfer_status *both[2];
            size_t n;

            assert_int_equal(pdx_send_state(t.route, s, s, 2, NULL, both, 2, &n, &t.why), 0);
            assert_true(!both[0] && !both[1]);
            assert_int_equal(pdx_send_state(t.route, s, d, 2, NULL, both, 2, &n, &t.why),
                             PDX_EINVAL);
            typed_has(&t, "its row is outside the tensor");
            assert_int_equal(fake_nsubmissions(), 0);
        } else {
            assert_int_equal(ring_send(&t, (struct pdx_index_list){good, 6},
                                       (struct pdx_index_list){good, 6}, &st),
                             0);
            assert_non_null(st);
        }
        typed_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_entries_go_in_order),
        cmocka_unit_test(test_rings_of_any_size_and_place_arrive),
        cmocka_unit_test(test_hostile_spans_are_refused),
        cmocka_unit_test(test_entries_that_come_twice_are_refused),
        cmocka_unit_test(test_one_empty_span_is_refused),
        cmocka_unit_test(test_rings_that_do_not_fit_are_refused),
        cmocka_unit_test(test_rings_of_a_side_are_alike),
        cmocka_unit_test(test_rows_beyond_the_numbers_of_entries_are_not_mistaken),
        cmocka_unit_test(test_rings_of_one_call_are_limited),
        cmocka_unit_test(test_two_rings_go_in_one_call),
        cmocka_unit_test(test_ring_of_an_mla_model_has_one_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
