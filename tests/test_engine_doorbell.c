/* SPDX-License-Identifier: Apache-2.0
 *
 * The doorbell with its queue and real threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mpsc.h"
#include "engine/doorbell.h"

#include <poll.h>
#include <pthread.h>

#define ROUNDS   200000
#define NTHREADS 2
#define PATIENCE 20000 /* ms that one sleep may last before it counts as a lost wake-up */

static bool bell_readable(const struct pdxi_doorbell *d, int timeout_ms)
{
    struct pollfd p = {.fd = d->fd, .events = POLLIN};

    return poll(&p, 1, timeout_ms) == 1;
}

static void test_doorbell_is_written_only_for_a_sleeper(void **state)
{
    struct pdxi_doorbell d;

    (void)state;
    assert_int_equal(pdxi_doorbell_init(&d, NULL), 0);
    assert_false(pdxi_doorbell_ring(&d));
    assert_false(bell_readable(&d, 0));
    pdxi_doorbell_prepare_sleep(&d);
    assert_true(pdxi_doorbell_ring(&d));
    assert_false(pdxi_doorbell_ring(&d)); /* once is enough */
    assert_true(bell_readable(&d, 0));
    pdxi_doorbell_awake(&d);
    pdxi_doorbell_drain(&d);
    assert_false(bell_readable(&d, 0));
    pdxi_doorbell_drain(&d); /* does not block */
    pdxi_doorbell_prepare_sleep(&d);
    pdxi_doorbell_awake(&d);
    assert_false(pdxi_doorbell_ring(&d));
    pdxi_doorbell_fini(&d);
    pdxi_doorbell_fini(&d);
}

struct entry {
    struct pdxi_mpsc_node node;
    uint32_t thread;
    uint32_t round;
};

struct shared {
    struct pdxi_doorbell bell;
    struct pdxi_mpsc queue;
    _Atomic uint32_t answered[NTHREADS];
};

struct ringer {
    struct shared *shared;
    uint32_t thread;
};

/* One entry at a time: the next is pushed when the last was answered, so that the reactor goes to
 * sleep again and again and every round is a chance to lose the wake-up. */
static void *ringer_main(void *arg)
{
    struct ringer *r = arg;
    struct entry e = {.thread = r->thread};

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        e.round = round;
        (void)pdxi_mpsc_push(&r->shared->queue, &e.node);
        (void)pdxi_doorbell_ring(&r->shared->bell);
        while (atomic_load_explicit(&r->shared->answered[r->thread], memory_order_acquire) != round)
            sched_yield();
    }
    return NULL;
}

static uint32_t reactor_answer(struct shared *s)
{
    struct pdxi_mpsc_node *n = pdxi_mpsc_take(&s->queue);
    uint32_t count = 0;

    while (n) {
        struct entry *e = (struct entry *)(void *)n;

        n = n->next;
        count++;
        atomic_store_explicit(&s->answered[e->thread], e->round, memory_order_release);
    }
    return count;
}

static void test_doorbell_loses_no_wakeup(void **state)
{
    static struct shared s;
    struct ringer ringers[NTHREADS];
    pthread_t threads[NTHREADS];
    uint32_t answered = 0;

    (void)state;
    assert_int_equal(pdxi_doorbell_init(&s.bell, NULL), 0);
    for (uint32_t i = 0; i < NTHREADS; i++) {
        ringers[i] = (struct ringer){&s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, ringer_main, &ringers[i]), 0);
    }
    while (answered < NTHREADS * ROUNDS) {
        pdxi_doorbell_prepare_sleep(&s.bell);
        if (pdxi_mpsc_empty(&s.queue)) {
            if (!bell_readable(&s.bell, PATIENCE))
                fail_msg("asleep with work after %u entries", answered);
            pdxi_doorbell_awake(&s.bell);
            pdxi_doorbell_drain(&s.bell);
        } else {
            pdxi_doorbell_awake(&s.bell);
        }
        answered += reactor_answer(&s);
    }
    for (uint32_t i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(answered, NTHREADS * ROUNDS);
    pdxi_doorbell_fini(&s.bell);
}

/* The race alone, without the system calls that hide it: both sides take their two steps at the
 * same time, and at least one has to see the other. */
struct race {
    struct shared shared;
    struct pdxi_mpsc_node node; /* not the ringer's: it is taken after the ringer's last round */
    _Atomic uint32_t arrived;
    bool rang;
};

static void race_meet(struct race *r, uint32_t n)
{
    atomic_fetch_add_explicit(&r->arrived, 1, memory_order_acq_rel);
    for (unsigned spins = 1; atomic_load_explicit(&r->arrived, memory_order_acquire) < n; spins++)
        if (spins % 1024 == 0)
            sched_yield();
}

static void *race_ring(void *arg)
{
    struct race *r = arg;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        race_meet(r, 4 * round + 2);
        (void)pdxi_mpsc_push(&r->shared.queue, &r->node);
        r->rang = pdxi_doorbell_ring(&r->shared.bell);
        race_meet(r, 4 * round + 4);
    }
    return NULL;
}

static void test_doorbell_one_side_sees_the_other(void **state)
{
    static struct race r;
    pthread_t thread;
    uint32_t lost = 0;

    (void)state;
    assert_int_equal(pdxi_doorbell_init(&r.shared.bell, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, race_ring, &r), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bool empty;

        race_meet(&r, 4 * round + 2);
        pdxi_doorbell_prepare_sleep(&r.shared.bell);
        empty = pdxi_mpsc_empty(&r.shared.queue);
        race_meet(&r, 4 * round + 4);
        lost += empty && !r.rang;
        pdxi_doorbell_awake(&r.shared.bell);
        (void)pdxi_mpsc_take(&r.shared.queue);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(lost, 0);
    pdxi_doorbell_fini(&r.shared.bell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doorbell_is_written_only_for_a_sleeper),
        cmocka_unit_test(test_doorbell_one_side_sees_the_other),
        cmocka_unit_test(test_doorbell_loses_no_wakeup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
