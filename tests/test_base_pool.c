/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of memory by size class: which class serves which length, what happens
 * when a class is empty or no class is large enough, and many threads at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"

#include <pthread.h>
#include <string.h>

#define HEAD     ((size_t)16) /* of each block, inside its class */
#define LEAST    16           /* blocks of a class, however small the scale */
#define NTHREADS 4
#define NROUNDS  50000
#define NHELD    24

/* Bytes of a block with its head. */
static const size_t class_len[PDXI_POOL_CLASSES] = {512, 4096, 32768, 131072, 1048576};

static struct pdxi_pool pool;

static int setup(void **state)
{
    (void)state;
    return pdxi_pool_init(&pool, LEAST);
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++)
        assert_int_equal(pdxi_slab_used(&pool.classes[i]), 0);
    pdxi_pool_fini(&pool);
    return 0;
}

/* The class that a block of `len` bytes is taken from; PDXI_POOL_CLASSES when from none. The block
 * is written from end to end. */
static unsigned class_of(size_t len)
{
    unsigned found = PDXI_POOL_CLASSES;
    void *block = pdxi_pool_get(&pool, len);

    assert_non_null(block);
    assert_int_equal((uintptr_t)block % 16, 0);
    memset(block, 0xa5, len);
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++)
        if (pdxi_slab_used(&pool.classes[i]) > 0)
            found = i;
    pdxi_pool_put(&pool, block);
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++)
        assert_int_equal(pdxi_slab_used(&pool.classes[i]), 0);
    return found;
}

static void test_pool_takes_the_smallest_class_that_fits(void **state)
{
    (void)state;
    assert_int_equal(class_of(0), 0);
    assert_int_equal(class_of(1), 0);
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++) {
        assert_int_equal(class_of(class_len[i] - HEAD), i);
        assert_int_equal(class_of(class_len[i] - HEAD + 1), i + 1);
    }
    assert_int_equal(pool.mallocs, 1); /* the last one */
}

static void test_pool_counts_blocks_that_no_class_could_serve(void **state)
{
    void *blocks[LEAST + 3];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < LEAST + 3; i++) {
            assert_true(pool.mallocs == 3 * (uint64_t)round + (i > LEAST ? i - LEAST : 0));
            blocks[i] = pdxi_pool_get(&pool, 100);
            assert_non_null(blocks[i]);
            memset(blocks[i], (int)i, 100);
        }
        assert_int_equal(pdxi_slab_used(&pool.classes[0]), LEAST);
        assert_int_equal(pdxi_slab_used(&pool.classes[1]), 0); /* larger ones are not taken */
        for (size_t i = 0; i < LEAST + 3; i++) {
            for (size_t k = 0; k < 100; k++)
                assert_int_equal(((uint8_t *)blocks[i])[k], i); /* no two share a byte */
            pdxi_pool_put(&pool, blocks[i]);
        }
    }
}

static void test_pool_has_fewer_large_blocks_but_some(void **state)
{
    struct pdxi_pool large;

    (void)state;
    assert_int_equal(pdxi_pool_init(&large, 4096), 0);
    assert_int_equal(large.classes[0].capacity, 4096);
    for (unsigned i = 1; i < PDXI_POOL_CLASSES; i++) {
        assert_true(large.classes[i].capacity <= large.classes[i - 1].capacity);
        assert_true(large.classes[i].capacity >= LEAST);
    }
    pdxi_pool_fini(&large);
    pdxi_pool_fini(&large);
}

static void test_pool_refuses_what_cannot_be_had(void **state)
{
    (void)state;
    assert_null(pdxi_pool_get(&pool, SIZE_MAX));
    assert_null(pdxi_pool_get(&pool, SIZE_MAX - HEAD + 1));
    assert_int_equal(pool.mallocs, 0); /* nothing was even tried */
    pdxi_pool_put(&pool, NULL);
}

static _Atomic uint32_t doubles;

/* Blocks of all classes, more than the pool has: each is marked all along, and still is when it is
 * put back. */
static void *hammer_main(void *arg)
{
    uint8_t *held[NHELD] = {NULL};
    size_t len[NHELD] = {0};
    uint8_t me = (uint8_t)(uintptr_t)arg;
    uint32_t rng = me * 2654435761u;

    for (uint32_t round = 0; round < NROUNDS + NHELD; round++) {
        uint32_t i = round % NHELD;

        for (size_t k = 0; held[i] && k < len[i]; k += 61)
            doubles += held[i][k] != me;
        pdxi_pool_put(&pool, held[i]);
        held[i] = NULL;
        if (round >= NROUNDS)
            continue;
        rng = rng * 1664525u + 1013904223u;
        len[i] = rng >> 31 ? 1 + (rng >> 20) % 480 : 1 + (rng >> 16) % 8000;
        held[i] = pdxi_pool_get(&pool, len[i]);
        if (held[i])
            memset(held[i], me, len[i]);
    }
    return NULL;
}

static void test_pool_gives_no_block_to_two_threads(void **state)
{
    pthread_t threads[NTHREADS];

    (void)state;
    for (uintptr_t i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_main, (void *)(i + 1)), 0);
    for (int i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(doubles, 0);
    assert_true(pool.mallocs > 0); /* its end was met */
}

#define POOL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        POOL_TEST(test_pool_takes_the_smallest_class_that_fits),
        POOL_TEST(test_pool_counts_blocks_that_no_class_could_serve),
        POOL_TEST(test_pool_has_fewer_large_blocks_but_some),
        POOL_TEST(test_pool_refuses_what_cannot_be_had),
        POOL_TEST(test_pool_gives_no_block_to_two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
