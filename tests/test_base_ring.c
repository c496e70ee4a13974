/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define NWRITERS 2
#define NREADERS 2
#define NEACH    100000 /* cells per writer */

static void test_ring_is_first_in_first_out_up_to_its_capacity(void **state)
{
    struct pdxi_ring r;
    uint64_t v;

    (void)state;
    assert_int_equal(pdxi_ring_init(&r, sizeof v, 8), 0);
    for (uint64_t round = 0; round < 100; round++) {
        assert_true(pdxi_ring_empty(&r));
        assert_false(pdxi_ring_pop(&r, &v));
        for (uint64_t i = 0; i < 8; i++) {
            v = round * 8 + i;
            assert_true(pdxi_ring_push(&r, &v));
            assert_false(pdxi_ring_empty(&r));
        }
        assert_false(pdxi_ring_push(&r, &v));
        for (uint64_t i = 0; i < 8; i++) {
            assert_true(pdxi_ring_pop(&r, &v));
            assert_int_equal(v, round * 8 + i);
        }
    }
    pdxi_ring_fini(&r);
}

/* Filling and emptying at every offset of the ring. */
static void test_ring_goes_round(void **state)
{
    struct pdxi_ring r;
    uint32_t in = 0, out = 0, v;

    (void)state;
    assert_int_equal(pdxi_ring_init(&r, sizeof v, 4), 0);
    for (uint32_t step = 0; step < 1000; step++) {
        for (uint32_t i = 0; i < 1 + step % 4 && pdxi_ring_push(&r, &in); i++)
            in++;
        assert_true(in - out <= 4);
        for (uint32_t i = 0; i < 1 + step % 3 && pdxi_ring_pop(&r, &v); i++)
            assert_int_equal(v, out++);
        assert_int_equal(pdxi_ring_empty(&r), in == out);
    }
    assert_true(in > 1000);
    pdxi_ring_fini(&r);
}

static void test_ring_carries_cells_of_any_length(void **state)
{
    struct pdxi_ring r;
    unsigned char in[PDXI_RING_CELL_MAX], out[PDXI_RING_CELL_MAX + 1];

    (void)state;
    for (size_t len = 1; len <= PDXI_RING_CELL_MAX; len++) {
        assert_int_equal(pdxi_ring_init(&r, len, 2), 0);
        for (unsigned char i = 0; i < 3; i++) {
            memset(in, 0x40 + i, sizeof in);
            assert_int_equal(pdxi_ring_push(&r, in), i < 2);
        }
        for (unsigned char i = 0; i < 2; i++) {
            memset(in, 0x40 + i, sizeof in);
            memset(out, 0xee, sizeof out);
            assert_true(pdxi_ring_pop(&r, out));
            assert_memory_equal(out, in, len);
            assert_int_equal(out[len], 0xee); /* and not a byte more */
        }
        pdxi_ring_fini(&r);
    }
}

/* 40 bytes, so that a cell that is copied while it is being written shows. */
struct cell {
    uint32_t writer;
    uint32_t number;
    uint64_t copies[4];
};

static struct pdxi_ring shared;
static _Atomic uint32_t popped;
static _Atomic uint8_t seen[NWRITERS][NEACH];
static _Atomic uint32_t wrong;

static void *writer_main(void *arg)
{
    uint32_t writer = (uint32_t)(uintptr_t)arg;

    for (uint32_t i = 0; i < NEACH; i++) {
        struct cell c = {writer, i, {i, i, i, i}};

        while (!pdxi_ring_push(&shared, &c))
            sched_yield();
    }
    return NULL;
}

static void *reader_main(void *arg)
{
    int64_t last[NWRITERS] = {-1, -1};
    struct cell c;

    (void)arg;
    while (atomic_load(&popped) < NWRITERS * NEACH) {
        if (!pdxi_ring_pop(&shared, &c)) {
            sched_yield();
            continue;
        }
        atomic_fetch_add(&popped, 1);
        if (c.writer >= NWRITERS || c.number >= NEACH) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        for (int i = 0; i < 4; i++)
            wrong += c.copies[i] != c.number;
        wrong += c.number <= last[c.writer]; /* a writer's cells come in order */
        wrong += atomic_fetch_add(&seen[c.writer][c.number], 1) != 0;
        last[c.writer] = c.number;
    }
    return NULL;
}

static void test_ring_gives_each_cell_to_one_reader(void **state)
{
    pthread_t threads[NWRITERS + NREADERS];

    (void)state;
    assert_int_equal(pdxi_ring_init(&shared, sizeof(struct cell), 16), 0);
    for (uintptr_t i = 0; i < NWRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, writer_main, (void *)i), 0);
    for (uintptr_t i = NWRITERS; i < NWRITERS + NREADERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader_main, NULL), 0);
    for (int i = 0; i < NWRITERS + NREADERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(wrong, 0);
    assert_int_equal(popped, NWRITERS * NEACH);
    for (uint32_t w = 0; w < NWRITERS; w++)
        for (uint32_t i = 0; i < NEACH; i++)
            assert_int_equal(seen[w][i], 1);
    assert_true(pdxi_ring_empty(&shared));
    pdxi_ring_fini(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_is_first_in_first_out_up_to_its_capacity),
        cmocka_unit_test(test_ring_goes_round),
        cmocka_unit_test(test_ring_carries_cells_of_any_length),
        cmocka_unit_test(test_ring_gives_each_cell_to_one_reader),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
