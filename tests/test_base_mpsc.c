/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mpsc.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define NPRODUCERS 4
#define NEACH      50000

struct entry {
    struct pdxi_mpsc_node node;
    uint32_t producer;
    uint32_t number;
};

static struct entry *entry_of(struct pdxi_mpsc_node *n)
{
    return (struct entry *)(void *)n;
}

static void test_mpsc_gives_the_oldest_first(void **state)
{
    struct pdxi_mpsc q = {NULL};
    struct entry e[5];
    struct pdxi_mpsc_node *n;

    (void)state;
    assert_true(pdxi_mpsc_empty(&q));
    assert_null(pdxi_mpsc_take(&q));
    for (int i = 0; i < 5; i++) {
        assert_true(pdxi_mpsc_push(&q, &e[i].node));
        assert_false(pdxi_mpsc_empty(&q));
    }
    n = pdxi_mpsc_take(&q);
    for (int i = 0; i < 5; i++, n = n->next)
        assert_ptr_equal(n, &e[i].node);
    assert_null(n);
    assert_true(pdxi_mpsc_empty(&q));
}

static void test_mpsc_chain_comes_in_its_order(void **state)
{
    struct pdxi_mpsc q = {NULL};
    struct entry e[5];
    struct pdxi_mpsc_node *n;

    (void)state;
    assert_true(pdxi_mpsc_push(&q, &e[0].node));
    e[3].node.next = &e[2].node;
    e[2].node.next = &e[1].node;
    assert_true(pdxi_mpsc_push_chain(&q, &e[3].node, &e[1].node));
    assert_true(pdxi_mpsc_push(&q, &e[4].node));
    n = pdxi_mpsc_take(&q);
    for (int i = 0; i < 5; i++, n = n->next)
        assert_ptr_equal(n, &e[i].node);
    assert_null(n);
}

static void test_mpsc_closed_gives_the_rest_and_takes_no_more(void **state)
{
    struct pdxi_mpsc q = {NULL};
    struct entry e[3];
    struct pdxi_mpsc_node *n;

    (void)state;
    assert_true(pdxi_mpsc_push(&q, &e[0].node));
    assert_true(pdxi_mpsc_push(&q, &e[1].node));
    n = pdxi_mpsc_close(&q);
    assert_ptr_equal(n, &e[0].node);
    assert_ptr_equal(n->next, &e[1].node);
    assert_null(n->next->next);
    e[2].node.next = &e[0].node;
    assert_false(pdxi_mpsc_push(&q, &e[2].node));
    assert_ptr_equal(e[2].node.next, &e[0].node); /* untouched */
}

static struct pdxi_mpsc shared;
static struct entry *entries; /* NPRODUCERS x NEACH */
static _Atomic uint32_t accepted;

static void *producer_main(void *arg)
{
    uint32_t producer = (uint32_t)(uintptr_t)arg;

    for (uint32_t i = 0; i < NEACH; i++) {
        struct entry *e = &entries[producer * NEACH + i];

        e->producer = producer;
        e->number = i;
        if (!pdxi_mpsc_push(&shared, &e->node))
            break;
        atomic_fetch_add(&accepted, 1);
    }
    return NULL;
}

static void producers_start(pthread_t *threads)
{
    atomic_store(&shared.top, NULL);
    atomic_store(&accepted, 0);
    entries = calloc(NPRODUCERS * NEACH, sizeof *entries);
    assert_non_null(entries);
    for (uintptr_t i = 0; i < NPRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, producer_main, (void *)i), 0);
}

static void producers_join(const pthread_t *threads)
{
    for (int i = 0; i < NPRODUCERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    free(entries);
}

/* Each producer's entries come complete and in order. Returns how many there were. */
static uint32_t expect_order(struct pdxi_mpsc_node *n, uint32_t next[NPRODUCERS])
{
    uint32_t count = 0;

    for (; n; n = n->next, count++) {
        struct entry *e = entry_of(n);

        assert_int_equal(e->number, next[e->producer]);
        next[e->producer]++;
    }
    return count;
}

static void test_mpsc_keeps_the_order_of_each_producer(void **state)
{
    uint32_t next[NPRODUCERS] = {0};
    pthread_t threads[NPRODUCERS];
    uint32_t taken = 0;

    (void)state;
    producers_start(threads);
    while (taken < NPRODUCERS * NEACH) {
        uint32_t n = expect_order(pdxi_mpsc_take(&shared), next);

        taken += n;
        if (n == 0)
            sched_yield();
    }
    assert_true(pdxi_mpsc_empty(&shared));
    producers_join(threads);
}

/* Closing in the middle: every push that was accepted came out. */
static void test_mpsc_close_loses_nothing_accepted(void **state)
{
    uint32_t next[NPRODUCERS] = {0};
    pthread_t threads[NPRODUCERS];
    uint32_t taken = 0;

    (void)state;
    producers_start(threads);
    while (taken < NEACH / 2)
        taken += expect_order(pdxi_mpsc_take(&shared), next);
    taken += expect_order(pdxi_mpsc_close(&shared), next);
    for (int i = 0; i < NPRODUCERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&accepted), taken);
    free(entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpsc_gives_the_oldest_first),
        cmocka_unit_test(test_mpsc_chain_comes_in_its_order),
        cmocka_unit_test(test_mpsc_closed_gives_the_rest_and_takes_no_more),
        cmocka_unit_test(test_mpsc_keeps_the_order_of_each_producer),
        cmocka_unit_test(test_mpsc_close_loses_nothing_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
