/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a transfer: an example of each edge, then long random walks held
 * against what must be true of every transfer (transfer_walk.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transfer_walk.h"

#include <pdx/error.h>

#define FINISH      PDXI_ACT_FINISH
#define RELEASE     PDXI_ACT_RELEASE
#define STOP        PDXI_ACT_STOP
#define ARM_DRAIN   PDXI_ACT_ARM_DRAIN
#define BREAK_LANE  PDXI_ACT_BREAK_LANE
#define REQUEUE     PDXI_ACT_REQUEUE
#define FENCE       PDXI_ACT_FENCE
#define WALK_STEPS  2000000
#define WALK_LOSSES 2

static struct transfer_walk walk;

/* One step, checked like those of the random walks; returns what it asks for. */
static unsigned step(enum pdxi_transfer_event event, int err)
{
    unsigned actions;
    const char *broken = transfer_walk_step(&walk, event, err, &actions);

    if (broken)
        fail_msg("event %d: not true: %s", (int)event, broken);
    return actions;
}

static void begin(enum pdx_level level)
{
    transfer_walk_begin(&walk, PDX_WRITE, level, WALK_LOSSES);
}

/* A lane takes it, and `n` frames of it are on their way. */
static void take(unsigned n, bool exhausted)
{
    assert_int_equal(step(PDXI_EV_START, 0), 0);
    while (n-- > 0)
        assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
    if (exhausted)
        assert_int_equal(step(PDXI_EV_EXHAUSTED, 0), 0);
}

static void begin_with(enum pdx_level level, unsigned n, bool exhausted)
{
    begin(level);
    take(n, exhausted);
}

static void assert_outcome(enum pdx_transfer_code code, int err)
{
    assert_int_equal(walk.step.code, code);
    assert_int_equal(walk.step.err, err);
}

static void test_transfer_is_done_when_all_is_issued_and_answered(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 2, true);
    assert_int_equal(step(PDXI_EV_SENT, 0), 0); /* says nothing about the target */
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), FINISH | RELEASE);
    assert_outcome(PDX_DONE, 0);
}

static void test_transfer_whose_frames_are_answered_at_once_goes_on(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 1, false);
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
    assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
    assert_int_equal(step(PDXI_EV_EXHAUSTED, 0), FINISH | RELEASE);
    assert_outcome(PDX_DONE, 0);
}

static void test_local_transfer_is_done_before_it_is_released(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_LOCAL, 2, false);
    assert_int_equal(step(PDXI_EV_SENT, 0), 0); /* there is more to come */
    assert_int_equal(step(PDXI_EV_EXHAUSTED, 0), 0);
    assert_int_equal(step(PDXI_EV_SENT, 0), FINISH);
    assert_int_equal(step(PDXI_EV_REFUSED, PDX_EACCESS), 0); /* too late to matter */
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), RELEASE);
    assert_outcome(PDX_DONE, 0);
}

static void test_local_transfer_is_released_by_a_quiet_lane(void **state)
{
    static const enum pdxi_transfer_event quiet[] = {PDXI_EV_LANE_LOST, PDXI_EV_LANE_BROKEN,
                                                     PDXI_EV_PEER_LOST, PDXI_EV_SHUTDOWN};

    (void)state;
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        begin_with(PDX_LEVEL_LOCAL, 3, true);
        assert_int_equal(step(PDXI_EV_SENT, 0), FINISH);
        assert_int_equal(step(quiet[i], PDX_EPEER), RELEASE);
        assert_outcome(PDX_DONE, 0);
    }
}

static void test_refusal_of_the_only_frame_ends_at_once(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 1, true);
    assert_int_equal(step(PDXI_EV_REFUSED, PDX_EACCESS), STOP | FINISH | RELEASE);
    assert_outcome(PDX_FAILED, PDX_EACCESS);
}

static void test_refusal_waits_for_the_other_answers(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 3, true);
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
    assert_int_equal(step(PDXI_EV_REFUSED, PDX_ESTALE), STOP | ARM_DRAIN);
    assert_int_equal(step(PDXI_EV_REFUSED, PDX_EACCESS), FINISH | RELEASE);
    assert_outcome(PDX_STALE, PDX_ESTALE); /* the first cause */
}

/* Causes of our own side, with their outcome. */
static const struct {
    enum pdxi_transfer_event event;
    int given;
    enum pdx_transfer_code code;
    int err;
} causes[] = {
    {PDXI_EV_CANCEL, 0, PDX_CANCELLED, PDX_ECANCELLED},
    {PDXI_EV_DEADLINE, 0, PDX_DEADLINE, PDX_EDEADLINE},
    {PDXI_EV_FAULT, PDX_EINVAL, PDX_FAILED, PDX_EINVAL},
    {PDXI_EV_FAULT, PDX_ESTALE, PDX_STALE, PDX_ESTALE},
};

#define for_each_cause(i) for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)

static void test_queued_transfer_ends_at_once(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin(PDX_LEVEL_REMOTE);
        assert_int_equal(step(causes[i].event, causes[i].given), FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

static void test_transfer_with_nothing_in_flight_stops_and_ends(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin_with(PDX_LEVEL_REMOTE, 1, false);
        assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
        assert_int_equal(step(causes[i].event, causes[i].given), STOP | FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

static void test_transfer_in_flight_drains_before_it_ends(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin_with(PDX_LEVEL_LOCAL, 2, true);
        assert_int_equal(step(causes[i].event, causes[i].given), STOP | ARM_DRAIN);
        for_each_cause(j) assert_int_equal(step(causes[j].event, causes[j].given), 0);
        assert_int_equal(step(PDXI_EV_SENT, 0), 0); /* no success after a cause */
        assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
        assert_int_equal(step(PDXI_EV_ANSWERED, 0), FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

static void test_drain_that_takes_too_long_breaks_the_lane(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 2, false);
    assert_int_equal(step(PDXI_EV_DEADLINE, 0), STOP | ARM_DRAIN);
    assert_int_equal(step(PDXI_EV_DRAIN_TIMEOUT, 0), BREAK_LANE);
    assert_int_equal(step(PDXI_EV_LANE_BROKEN, 0), FENCE);
    assert_int_equal(step(PDXI_EV_FENCED, 0), FINISH | RELEASE);
    assert_outcome(PDX_DEADLINE, PDX_EDEADLINE);
}

/* Whatever else happens, only these end it, and it ends as it was going to. */
static void test_fence_is_opened_by_a_new_lane_a_limit_or_loss(void **state)
{
    static const enum pdxi_transfer_event ends[] = {PDXI_EV_FENCED, PDXI_EV_DRAIN_TIMEOUT,
                                                    PDXI_EV_PEER_LOST, PDXI_EV_SHUTDOWN};

    (void)state;
    for_each_cause(i)
    {
        for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
            begin_with(PDX_LEVEL_LOCAL, 2, true);
            assert_int_equal(step(causes[i].event, causes[i].given), STOP | ARM_DRAIN);
            assert_int_equal(step(e % 2 ? PDXI_EV_LANE_LOST : PDXI_EV_LANE_BROKEN, 0), FENCE);
            assert_int_equal(walk.step.phase, PDXI_PHASE_FENCING);
            for (int late = PDXI_EV_START; late < PDXI_EV_DRAIN_TIMEOUT; late++)
                assert_int_equal(step((enum pdxi_transfer_event)late, PDX_EACCESS), 0);
            assert_int_equal(step(PDXI_EV_LANE_LOST, 0), 0); /* a newer one that did not come up */
            assert_int_equal(step(ends[e], PDX_EPEER), FINISH | RELEASE);
            assert_outcome(causes[i].code, causes[i].err);
        }
    }
}

/* A lane went under it, and its end comes while it waits for the next one. */
static void test_write_that_waits_for_a_new_lane_ends_behind_the_fence(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin_with(PDX_LEVEL_REMOTE, 2, false);
        assert_int_equal(step(PDXI_EV_LANE_BROKEN, 0), REQUEUE);
        assert_int_equal(step(causes[i].event, causes[i].given), FENCE);
        assert_int_equal(step(PDXI_EV_FENCED, 0), FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

/* With the new lane the old one is behind it: an end needs no fence any more. */
static void test_write_with_a_new_lane_ends_without_a_fence(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin_with(PDX_LEVEL_REMOTE, 2, false);
        assert_int_equal(step(PDXI_EV_LANE_LOST, 0), REQUEUE);
        assert_int_equal(step(PDXI_EV_START, 0), 0);
        assert_int_equal(step(causes[i].event, causes[i].given), STOP | FINISH | RELEASE);
        begin_with(PDX_LEVEL_REMOTE, 2, false);
        assert_int_equal(step(PDXI_EV_LANE_LOST, 0), REQUEUE);
        assert_int_equal(step(PDXI_EV_FENCED, 0), 0);
        assert_int_equal(step(causes[i].event, causes[i].given), FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

static void test_write_with_nothing_in_flight_needs_no_fence(void **state)
{
    (void)state;
    for_each_cause(i)
    {
        begin_with(PDX_LEVEL_REMOTE, 1, false);
        assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
        assert_int_equal(step(PDXI_EV_LANE_LOST, 0), REQUEUE);
        assert_int_equal(step(causes[i].event, causes[i].given), FINISH | RELEASE);
        assert_outcome(causes[i].code, causes[i].err);
    }
}

/* They do not touch the target's memory. */
static void test_reads_and_notifications_never_fence(void **state)
{
    static const enum pdx_op ops[] = {0, PDX_READ};

    (void)state;
    for (size_t op = 0; op < sizeof ops / sizeof ops[0]; op++) {
        for_each_cause(i)
        {
            transfer_walk_begin(&walk, ops[op], PDX_LEVEL_LOCAL, WALK_LOSSES);
            take(2, true);
            assert_int_equal(step(PDXI_EV_SENT, 0), 0); /* the level is for writes */
            assert_int_equal(step(causes[i].event, causes[i].given), STOP | ARM_DRAIN);
            assert_int_equal(step(PDXI_EV_DRAIN_TIMEOUT, 0), BREAK_LANE);
            assert_int_equal(step(PDXI_EV_LANE_BROKEN, 0), FINISH | RELEASE);
            assert_outcome(causes[i].code, causes[i].err);
            transfer_walk_begin(&walk, ops[op], PDX_LEVEL_REMOTE, WALK_LOSSES);
            take(2, false);
            assert_int_equal(step(PDXI_EV_LANE_BROKEN, 0), REQUEUE);
            assert_int_equal(step(causes[i].event, causes[i].given), FINISH | RELEASE);
            assert_outcome(causes[i].code, causes[i].err);
        }
    }
}

static void test_draining_transfer_keeps_its_cause_when_everything_is_lost(void **state)
{
    static const enum pdxi_transfer_event ends[] = {PDXI_EV_PEER_LOST, PDXI_EV_SHUTDOWN};

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        begin_with(PDX_LEVEL_REMOTE, 2, false);
        assert_int_equal(step(PDXI_EV_CANCEL, 0), STOP | ARM_DRAIN);
        assert_int_equal(step(ends[i], PDX_EPEER), FINISH | RELEASE);
        assert_outcome(PDX_CANCELLED, PDX_ECANCELLED);
    }
}

static void test_lost_lanes_are_replaced_a_bounded_number_of_times(void **state)
{
    (void)state;
    begin(PDX_LEVEL_REMOTE);
    for (uint32_t lost = 0; lost < WALK_LOSSES; lost++) {
        assert_int_equal(step(PDXI_EV_START, 0), 0);
        assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
        assert_int_equal(step(PDXI_EV_EXHAUSTED, 0), 0);
        assert_int_equal(step(PDXI_EV_LANE_LOST, 0), REQUEUE);
        assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0); /* of the old lane: counts no more */
        assert_int_equal(walk.step.retries, lost + 1);
    }
    assert_int_equal(step(PDXI_EV_START, 0), 0);
    assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
    assert_int_equal(step(PDXI_EV_LANE_LOST, 0), STOP | FENCE);
    assert_int_equal(step(PDXI_EV_FENCED, 0), FINISH | RELEASE);
    assert_outcome(PDX_FAILED, PDX_EPEER);
}

/* Exhausted on the lost lane is not exhausted on the next one. */
static void test_new_lane_has_to_be_exhausted_again(void **state)
{
    (void)state;
    begin_with(PDX_LEVEL_REMOTE, 1, true);
    assert_int_equal(step(PDXI_EV_LANE_LOST, 0), REQUEUE);
    assert_int_equal(step(PDXI_EV_START, 0), 0);
    assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
    assert_int_equal(step(PDXI_EV_ANSWERED, 0), 0);
    assert_int_equal(step(PDXI_EV_EXHAUSTED, 0), FINISH | RELEASE);
    assert_outcome(PDX_DONE, 0);
}

static void test_lanes_broken_for_others_are_not_counted(void **state)
{
    (void)state;
    begin(PDX_LEVEL_REMOTE);
    for (uint32_t i = 0; i < 10 * WALK_LOSSES; i++) {
        assert_int_equal(step(PDXI_EV_START, 0), 0);
        assert_int_equal(step(PDXI_EV_ISSUED, 0), 0);
        assert_int_equal(step(PDXI_EV_LANE_BROKEN, 0), REQUEUE);
    }
    assert_int_equal(walk.step.losses, 0);
    assert_int_equal(walk.step.retries, 10 * WALK_LOSSES);
    assert_int_equal(step(PDXI_EV_DEADLINE, 0), FENCE);
    assert_int_equal(step(PDXI_EV_DRAIN_TIMEOUT, 0), FINISH | RELEASE);
    assert_outcome(PDX_DEADLINE, PDX_EDEADLINE);
}

static void test_lost_peer_and_shutdown_end_everything(void **state)
{
    (void)state;
    for (int active = 0; active < 2; active++) {
        begin(PDX_LEVEL_REMOTE);
        if (active)
            begin_with(PDX_LEVEL_REMOTE, 2, false);
        assert_int_equal(step(PDXI_EV_PEER_LOST, PDX_EPEER), FINISH | RELEASE);
        assert_outcome(PDX_FAILED, PDX_EPEER);
        begin(PDX_LEVEL_REMOTE);
        if (active)
            begin_with(PDX_LEVEL_REMOTE, 2, true);
        assert_int_equal(step(PDXI_EV_PEER_LOST, PDX_ESTALE), FINISH | RELEASE);
        assert_outcome(PDX_STALE, PDX_ESTALE);
        begin(PDX_LEVEL_REMOTE);
        if (active)
            begin_with(PDX_LEVEL_REMOTE, 2, true);
        assert_int_equal(step(PDXI_EV_SHUTDOWN, 0), FINISH | RELEASE);
        assert_outcome(PDX_CANCELLED, PDX_ESHUTDOWN);
    }
}

/* Every event in every phase that it can reach there: those that come too late or too early change
 * nothing, which transfer_walk_step checks. */
static void test_events_of_any_kind_are_harmless_in_any_phase(void **state)
{
    (void)state;
    for (int phase = 0; phase < TRANSFER_PHASES; phase++) {
        for (int event = 0; event < TRANSFER_EVENTS; event++) {
            const char *broken;

            begin(PDX_LEVEL_REMOTE);
            if (phase != PDXI_PHASE_QUEUED)
                begin_with(PDX_LEVEL_REMOTE, 2, false);
            if (phase >= PDXI_PHASE_DRAINING)
                (void)step(PDXI_EV_CANCEL, 0);
            if (phase >= PDXI_PHASE_FENCING)
                (void)step(PDXI_EV_LANE_BROKEN, 0);
            if (phase == PDXI_PHASE_ENDED)
                (void)step(PDXI_EV_FENCED, 0);
            assert_int_equal(walk.step.phase, phase);
            (void)step((enum pdxi_transfer_event)event, PDX_EPEER);
            broken = transfer_walk_can_end(&walk);
            if (broken)
                fail_msg("event %d in phase %d: not true: %s", event, phase, broken);
        }
    }
}

/* ---- random walks ----------------------------------------------------- */

static uint32_t chance(uint64_t *rng)
{
    *rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*rng >> 33);
}

/* Frames and answers are common, ends are rare: walks get long. */
static enum pdxi_transfer_event pick_event(uint64_t *rng)
{
    static const enum pdxi_transfer_event common[] = {
        PDXI_EV_START,    PDXI_EV_ISSUED,   PDXI_EV_ISSUED, PDXI_EV_ISSUED,
        PDXI_EV_ANSWERED, PDXI_EV_ANSWERED, PDXI_EV_SENT,   PDXI_EV_LANE_BROKEN};

    if (chance(rng) % 8)
        return common[chance(rng) % 8];
    return (enum pdxi_transfer_event)(chance(rng) % TRANSFER_EVENTS);
}

static void begin_any(uint64_t *rng)
{
    static const enum pdx_op ops[] = {PDX_WRITE, PDX_WRITE, PDX_READ, 0};
    enum pdx_op op = ops[chance(rng) % 4];

    transfer_walk_begin(&walk, op, chance(rng) % 2 ? PDX_LEVEL_LOCAL : PDX_LEVEL_REMOTE,
                        WALK_LOSSES);
}

static void test_transfer_random_walks(void **state)
{
    static unsigned visits[TRANSFER_PHASES][TRANSFER_EVENTS];
    unsigned ends[PDX_STALE + 1] = {0};
    unsigned asked = 0;
    uint64_t rng = 1;

    (void)state;
    begin(PDX_LEVEL_REMOTE);
    for (unsigned i = 0; i < WALK_STEPS; i++) {
        enum pdxi_transfer_event event = pick_event(&rng);
        const char *broken;
        unsigned actions;

        visits[walk.step.phase][event]++;
        actions = step(event, chance(&rng) % 2 ? PDX_ESTALE : PDX_EACCESS);
        asked |= actions;
        if (actions & FINISH)
            ends[walk.step.code]++;
        broken = transfer_walk_can_end(&walk);
        if (broken)
            fail_msg("after step %u: not true: %s", i, broken);
        /* Events go on to arrive for a while after the end. */
        if (walk.releases && chance(&rng) % 16 == 0)
            begin_any(&rng);
    }
    for (int phase = 0; phase < TRANSFER_PHASES; phase++)
        for (int event = 0; event < TRANSFER_EVENTS; event++)
            assert_true(visits[phase][event] > 100);
    for (int code = PDX_DONE; code <= PDX_STALE; code++)
        assert_true(ends[code] > 100);
    assert_int_equal(asked, FINISH | RELEASE | STOP | ARM_DRAIN | BREAK_LANE | REQUEUE | FENCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer_is_done_when_all_is_issued_and_answered),
        cmocka_unit_test(test_transfer_whose_frames_are_answered_at_once_goes_on),
        cmocka_unit_test(test_local_transfer_is_done_before_it_is_released),
        cmocka_unit_test(test_local_transfer_is_released_by_a_quiet_lane),
        cmocka_unit_test(test_refusal_of_the_only_frame_ends_at_once),
        cmocka_unit_test(test_refusal_waits_for_the_other_answers),
        cmocka_unit_test(test_queued_transfer_ends_at_once),
        cmocka_unit_test(test_transfer_with_nothing_in_flight_stops_and_ends),
        cmocka_unit_test(test_transfer_in_flight_drains_before_it_ends),
        cmocka_unit_test(test_drain_that_takes_too_long_breaks_the_lane),
        cmocka_unit_test(test_fence_is_opened_by_a_new_lane_a_limit_or_loss),
        cmocka_unit_test(test_write_that_waits_for_a_new_lane_ends_behind_the_fence),
        cmocka_unit_test(test_write_with_a_new_lane_ends_without_a_fence),
        cmocka_unit_test(test_write_with_nothing_in_flight_needs_no_fence),
        cmocka_unit_test(test_reads_and_notifications_never_fence),
        cmocka_unit_test(test_draining_transfer_keeps_its_cause_when_everything_is_lost),
        cmocka_unit_test(test_lost_lanes_are_replaced_a_bounded_number_of_times),
        cmocka_unit_test(test_new_lane_has_to_be_exhausted_again),
        cmocka_unit_test(test_lanes_broken_for_others_are_not_counted),
        cmocka_unit_test(test_lost_peer_and_shutdown_end_everything),
        cmocka_unit_test(test_events_of_any_kind_are_harmless_in_any_phase),
        cmocka_unit_test(test_transfer_random_walks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
