/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/slab.h"

#include <pthread.h>
#include <sched.h>

#define NTHREADS 4
#define NROUNDS  100000
#define CAPACITY 64

/* First in its 64-byte object. */
struct object {
    _Atomic uint32_t owner; /* 0: nobody */
    uint32_t plain;         /* written without a lock by its owner */
};

static void test_slab_has_exactly_its_capacity(void **state)
{
    struct pdxi_slab slab;
    struct object *o[CAPACITY];

    (void)state;
    assert_int_equal(pdxi_slab_init(&slab, sizeof **o, CAPACITY), 0);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < CAPACITY; i++) {
            assert_int_equal(pdxi_slab_used(&slab), i);
            o[i] = pdxi_slab_get(&slab);
            assert_non_null(o[i]);
            assert_int_equal((uintptr_t)o[i] % 64, 0);
            assert_int_equal(o[i]->plain, 0); /* given out for the first time, or put back zeroed */
            o[i]->plain = i + 1;
            assert_ptr_equal(pdxi_slab_at(&slab, pdxi_slab_index(&slab, o[i])), o[i]);
        }
        assert_null(pdxi_slab_get(&slab));
        for (uint32_t i = 0; i < CAPACITY; i++)
            assert_int_equal(o[i]->plain, i + 1); /* no two are the same */
        for (uint32_t i = 0; i < CAPACITY; i++) {
            o[i]->plain = 0;
            pdxi_slab_put(&slab, o[i]);
        }
        assert_int_equal(pdxi_slab_used(&slab), 0);
    }
    pdxi_slab_fini(&slab);
}

static void test_slab_keeps_what_its_last_user_left(void **state)
{
    struct pdxi_slab slab;
    struct object *o;

    (void)state;
    assert_int_equal(pdxi_slab_init(&slab, sizeof *o, 1), 0);
    o = pdxi_slab_get(&slab);
    assert_non_null(o);
    o->plain = 42;
    pdxi_slab_put(&slab, o);
    o = pdxi_slab_get(&slab);
    assert_non_null(o);
    assert_int_equal(o->plain, 42);
    pdxi_slab_fini(&slab);
}

static void test_slab_rounds_lengths_up(void **state)
{
    struct pdxi_slab slab;

    (void)state;
    assert_int_equal(pdxi_slab_init(&slab, 65, 2), 0);
    assert_int_equal(slab.object_len, 128);
    assert_ptr_equal(pdxi_slab_at(&slab, 1), slab.mem + 128);
    pdxi_slab_fini(&slab);
    pdxi_slab_fini(&slab);
}

static struct pdxi_slab shared;
static _Atomic uint32_t doubles;

/* Holds up to half the slab, so that four together meet its end again and again. */
static void *hammer_main(void *arg)
{
    struct object *held[CAPACITY / 2];
    uint32_t me = (uint32_t)(uintptr_t)arg;
    uint32_t nheld = 0, rng = me * 2654435761u;

    for (uint32_t round = 0; round < NROUNDS; round++) {
        rng = rng * 1664525u + 1013904223u;
        if (rng >> 31 && nheld < CAPACITY / 2) {
            struct object *o = pdxi_slab_get(&shared);

            if (!o) {
                sched_yield();
                continue;
            }
            doubles += atomic_exchange(&o->owner, me) != 0;
            o->plain = me;
            held[nheld++] = o;
        } else if (nheld > 0) {
            struct object *o = held[--nheld];

            doubles += o->plain != me || atomic_exchange(&o->owner, 0) != me;
            pdxi_slab_put(&shared, o);
        }
    }
    while (nheld > 0) {
        doubles += atomic_exchange(&held[--nheld]->owner, 0) != me;
        pdxi_slab_put(&shared, held[nheld]);
    }
    return NULL;
}

static void test_slab_gives_no_object_to_two_threads(void **state)
{
    pthread_t threads[NTHREADS];
    uint32_t n = 0;

    (void)state;
    assert_int_equal(pdxi_slab_init(&shared, sizeof(struct object), CAPACITY), 0);
    for (uintptr_t i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer_main, (void *)(i + 1)), 0);
    for (int i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(doubles, 0);
    assert_int_equal(pdxi_slab_used(&shared), 0);
    while (pdxi_slab_get(&shared)) /* none was lost either */
        n++;
    assert_int_equal(n, CAPACITY);
    pdxi_slab_fini(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slab_has_exactly_its_capacity),
        cmocka_unit_test(test_slab_keeps_what_its_last_user_left),
        cmocka_unit_test(test_slab_rounds_lengths_up),
        cmocka_unit_test(test_slab_gives_no_object_to_two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
