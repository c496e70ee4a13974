/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing wheel, with a clock that the test drives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/timer.h"

#include <stdlib.h>
#include <string.h>

#define MS   PDXI_TIMER_TICK_NS
#define TURN (PDXI_TIMER_SLOTS * MS) /* one rotation of the wheel */

static struct pdxi_timers wheel;

struct probe {
    struct pdxi_timer timer;
    unsigned calls;
    uint64_t called_ns;
    struct probe *other;
    uint64_t restart_ns;
};

static void probe_count(struct pdxi_timer *t, uint64_t now_ns)
{
    struct probe *p = (struct probe *)(void *)t;

    assert_false(pdxi_timer_started(t));
    p->calls++;
    p->called_ns = now_ns;
}

static void probe_init(struct probe *p, pdxi_timer_fn fn)
{
    memset(p, 0, sizeof *p);
    pdxi_timer_init(&p->timer, fn);
}

static void test_timer_fires_at_its_time_and_not_before(void **state)
{
    static const uint64_t delays[] = {1,        MS - 1, MS,       MS + 1,       5 * MS,
                                      TURN - 1, TURN,   TURN + 1, 3 * TURN + 7, 1000 * TURN};
    static const uint64_t origins[] = {0, 1, MS - 1, 123456789012345};
    struct probe p;

    (void)state;
    for (size_t o = 0; o < 4; o++) {
        for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++) {
            uint64_t expiry = origins[o] + delays[i];

            pdxi_timers_init(&wheel, origins[o]);
            probe_init(&p, probe_count);
            pdxi_timer_start(&wheel, &p.timer, expiry);
            assert_int_equal(pdxi_timers_run(&wheel, expiry - 1), 0);
            assert_true(pdxi_timer_started(&p.timer));
            assert_int_equal(pdxi_timers_run(&wheel, expiry + MS - 1), 1);
            assert_int_equal(p.calls, 1);
            assert_int_equal(pdxi_timers_run(&wheel, expiry + 10 * TURN), 0);
            assert_int_equal(pdxi_timers_next(&wheel, expiry), UINT64_MAX);
        }
    }
}

/* Sleeping for what next says, and no longer, gets a far timer called with few wake-ups. */
static void test_timer_next_leads_to_the_timer(void **state)
{
    struct probe near, far;
    uint64_t now = 77 * MS + 5;
    uint64_t start = now;
    unsigned wakes = 0;

    (void)state;
    pdxi_timers_init(&wheel, now);
    assert_int_equal(pdxi_timers_next(&wheel, now), UINT64_MAX);
    probe_init(&near, probe_count);
    probe_init(&far, probe_count);
    pdxi_timer_start(&wheel, &near.timer, start + 10 * MS);
    pdxi_timer_start(&wheel, &far.timer, start + 7 * TURN + 3 * MS);
    while (far.calls == 0) {
        uint64_t next = pdxi_timers_next(&wheel, now);

        assert_true(next != UINT64_MAX);
        now += next;
        wakes++;
        (void)pdxi_timers_run(&wheel, now);
    }
    assert_int_equal(wakes, 2);
    assert_in_range(near.called_ns, start + 10 * MS, start + 11 * MS);
    assert_in_range(far.called_ns, start + 7 * TURN + 3 * MS, start + 7 * TURN + 4 * MS);
}

/* Two timers share a slot; the far one must not hold up or come with the near one. */
static void test_timer_of_a_later_round_stays(void **state)
{
    struct probe p[3];
    const uint64_t at[3] = {2 * TURN + 9 * MS, 9 * MS, TURN + 9 * MS};

    (void)state;
    pdxi_timers_init(&wheel, 0);
    for (int i = 0; i < 3; i++) {
        probe_init(&p[i], probe_count);
        pdxi_timer_start(&wheel, &p[i].timer, at[i]);
    }
    assert_int_equal(pdxi_timers_next(&wheel, 0), 9 * MS);
    assert_int_equal(pdxi_timers_run(&wheel, 9 * MS), 1);
    assert_int_equal(p[1].calls, 1);
    assert_int_equal(pdxi_timers_next(&wheel, 9 * MS), TURN);
    assert_int_equal(pdxi_timers_run(&wheel, TURN + 8 * MS), 0);
    assert_int_equal(pdxi_timers_run(&wheel, TURN + 9 * MS), 1);
    assert_int_equal(p[2].calls, 1);
    assert_int_equal(pdxi_timers_run(&wheel, 5 * TURN), 1);
    assert_int_equal(p[0].calls, 1);
}

static void test_timer_cancelled_is_silent(void **state)
{
    struct probe p;

    (void)state;
    pdxi_timers_init(&wheel, 0);
    probe_init(&p, probe_count);
    pdxi_timer_cancel(&wheel, &p.timer); /* not started: without effect */
    pdxi_timer_start(&wheel, &p.timer, 5 * MS);
    pdxi_timer_cancel(&wheel, &p.timer);
    assert_false(pdxi_timer_started(&p.timer));
    assert_int_equal(pdxi_timers_next(&wheel, 0), UINT64_MAX);
    pdxi_timer_start(&wheel, &p.timer, 2 * TURN + 5 * MS); /* the same slot has forgotten it */
    assert_int_equal(pdxi_timers_next(&wheel, 0), 2 * TURN + 5 * MS);
    pdxi_timer_start(&wheel, &p.timer, 0); /* due at once, then cancelled */
    assert_int_equal(pdxi_timers_next(&wheel, 0), 0);
    pdxi_timer_cancel(&wheel, &p.timer);
    assert_int_equal(pdxi_timers_run(&wheel, 10 * TURN), 0);
    assert_int_equal(p.calls, 0);
}

static void test_timer_restart_moves_it(void **state)
{
    struct probe p;

    (void)state;
    pdxi_timers_init(&wheel, 0);
    probe_init(&p, probe_count);
    pdxi_timer_start(&wheel, &p.timer, 5 * MS);
    pdxi_timer_start(&wheel, &p.timer, 50 * MS);
    assert_int_equal(pdxi_timers_run(&wheel, 49 * MS), 0);
    pdxi_timer_start(&wheel, &p.timer, 60 * MS);
    assert_int_equal(pdxi_timers_run(&wheel, 59 * MS), 0);
    assert_int_equal(pdxi_timers_run(&wheel, 60 * MS), 1);
}

static void test_timer_of_never_does_not_start(void **state)
{
    struct probe p;

    (void)state;
    pdxi_timers_init(&wheel, 0);
    probe_init(&p, probe_count);
    pdxi_timer_start(&wheel, &p.timer, 5 * MS);
    pdxi_timer_start(&wheel, &p.timer, UINT64_MAX);
    assert_false(pdxi_timer_started(&p.timer));
    pdxi_timer_start(&wheel, &p.timer, UINT64_MAX - 1);
    assert_true(pdxi_timer_started(&p.timer));
    assert_int_equal(pdxi_timers_next(&wheel, 0), UINT64_MAX); /* its millisecond has no end */
    assert_int_equal(pdxi_timers_run(&wheel, UINT64_MAX), 0);
}

static void probe_restart(struct pdxi_timer *t, uint64_t now_ns)
{
    struct probe *p = (struct probe *)(void *)t;

    probe_count(t, now_ns);
    pdxi_timer_start(&wheel, t, p->restart_ns);
}

/* A callback that starts its timer for the past must not keep the run going for ever. */
static void test_timer_restarted_by_its_callback_waits_for_the_next_run(void **state)
{
    struct probe p;

    (void)state;
    pdxi_timers_init(&wheel, 0);
    probe_init(&p, probe_restart);
    pdxi_timer_start(&wheel, &p.timer, MS);
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(pdxi_timers_run(&wheel, 2 * MS), 1);
        assert_int_equal(p.calls, i);
        assert_int_equal(pdxi_timers_next(&wheel, 2 * MS), 0);
    }
    p.restart_ns = 2 * MS + TURN;
    assert_int_equal(pdxi_timers_run(&wheel, 2 * MS), 1);
    assert_int_equal(pdxi_timers_next(&wheel, 2 * MS), TURN);
}

static void probe_cancel_other(struct pdxi_timer *t, uint64_t now_ns)
{
    struct probe *p = (struct probe *)(void *)t;

    probe_count(t, now_ns);
    pdxi_timer_cancel(&wheel, &p->other->timer);
}

/* Both are due in one run, in one slot or in two, and each cancels the other. */
static void test_timer_cancelled_by_a_callback_of_the_same_run_is_silent(void **state)
{
    struct probe p[2];

    (void)state;
    for (uint64_t apart = 0; apart < 3; apart++) {
        pdxi_timers_init(&wheel, 0);
        for (uint64_t i = 0; i < 2; i++) {
            probe_init(&p[i], probe_cancel_other);
            p[i].other = &p[1 - i];
            pdxi_timer_start(&wheel, &p[i].timer, 5 * MS + i * apart * MS);
        }
        assert_int_equal(pdxi_timers_run(&wheel, 20 * MS), 1);
        assert_int_equal(p[0].calls + p[1].calls, 1);
    }
}

static void probe_free(struct pdxi_timer *t, uint64_t now_ns)
{
    (void)now_ns;
    free(t);
}

static void test_timer_may_be_freed_by_its_callback(void **state)
{
    (void)state;
    pdxi_timers_init(&wheel, 0);
    for (uint64_t i = 0; i < 10; i++) {
        struct pdxi_timer *t = malloc(sizeof *t);

        assert_non_null(t);
        pdxi_timer_init(t, probe_free);
        pdxi_timer_start(&wheel, t, i / 3 * MS);
    }
    assert_int_equal(pdxi_timers_run(&wheel, TURN), 10);
}

/* The model: expiries in an array, looked through from end to end. */
#define NTIMERS 200
static struct model {
    uint64_t now;
    uint64_t expiry[NTIMERS]; /* UINT64_MAX: not started */
    struct probe probes[NTIMERS];
    uint64_t rng;
} model;

static uint64_t model_random(uint64_t below)
{
    model.rng ^= model.rng << 13;
    model.rng ^= model.rng >> 7;
    model.rng ^= model.rng << 17;
    return model.rng % below;
}

static uint64_t model_delay(void)
{
    switch (model_random(6)) {
    case 0:
        return model_random(MS);
    case 1:
        return model_random(50) * MS;
    case 2:
        return model_random(TURN);
    case 3:
        return TURN + model_random(3) * MS - MS;
    case 4:
        return model_random(20 * TURN);
    default:
        return 0;
    }
}

static void model_start(uint32_t i)
{
    model.expiry[i] = model.now + model_delay();
    pdxi_timer_start(&wheel, &model.probes[i].timer, model.expiry[i]);
}

static void model_fired(struct pdxi_timer *t, uint64_t now_ns)
{
    uint32_t i = (uint32_t)((struct probe *)(void *)t - model.probes);

    probe_count(t, now_ns);
    assert_true(model.expiry[i] <= now_ns);
    model.expiry[i] = UINT64_MAX;
    if (model_random(4) == 0)
        model_start(i);
}

/* The time at which the array says that something is due: rounded up to the tick. */
static uint64_t model_next(void)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < NTIMERS; i++) {
        if (model.expiry[i] != UINT64_MAX) {
            uint64_t tick = (model.expiry[i] + MS - 1) / MS * MS;

            if (tick < next)
                next = tick;
        }
    }
    return next;
}

static void model_check_next(void)
{
    uint64_t told = pdxi_timers_next(&wheel, model.now);
    uint64_t next = model_next();

    if (next == UINT64_MAX) {
        assert_int_equal(told, UINT64_MAX);
        return;
    }
    /* Never too late; too early only after a cancel. */
    assert_true(told <= (next > model.now ? next - model.now : 0));
}

/* 100 000 steps; after each, exactly those that the array calls due have fired. */
static void test_timer_agrees_with_a_plain_array(void **state)
{
    (void)state;
    model.rng = 0x9e3779b97f4a7c15;
    model.now = 1234567890123;
    pdxi_timers_init(&wheel, model.now);
    for (uint32_t i = 0; i < NTIMERS; i++) {
        probe_init(&model.probes[i], model_fired);
        model.expiry[i] = UINT64_MAX;
    }
    for (uint32_t step = 0; step < 100000; step++) {
        uint32_t i = (uint32_t)model_random(NTIMERS);
        uint64_t due = 0;

        switch (model_random(4)) {
        case 0:
        case 1:
            model_start(i);
            break;
        case 2:
            model.expiry[i] = UINT64_MAX;
            pdxi_timer_cancel(&wheel, &model.probes[i].timer);
            break;
        default:
            model.now += model_delay() / (1 + model_random(8));
            for (uint32_t j = 0; j < NTIMERS; j++)
                due += model.expiry[j] != UINT64_MAX &&
                       (model.expiry[j] + MS - 1) / MS <= model.now / MS;
            assert_int_equal(pdxi_timers_run(&wheel, model.now), due);
        }
        assert_int_equal(pdxi_timer_started(&model.probes[i].timer), model.expiry[i] != UINT64_MAX);
        model_check_next();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timer_fires_at_its_time_and_not_before),
        cmocka_unit_test(test_timer_next_leads_to_the_timer),
        cmocka_unit_test(test_timer_of_a_later_round_stays),
        cmocka_unit_test(test_timer_cancelled_is_silent),
        cmocka_unit_test(test_timer_restart_moves_it),
        cmocka_unit_test(test_timer_of_never_does_not_start),
        cmocka_unit_test(test_timer_restarted_by_its_callback_waits_for_the_next_run),
        cmocka_unit_test(test_timer_cancelled_by_a_callback_of_the_same_run_is_silent),
        cmocka_unit_test(test_timer_may_be_freed_by_its_callback),
        cmocka_unit_test(test_timer_agrees_with_a_plain_array),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
