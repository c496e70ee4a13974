/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to a peer: an example of each edge, then long random walks
 * held against what must be true of every peer (peer_walk.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "peer_walk.h"

#define RESOLVE     PDXI_PACT_RESOLVE
#define CONNECT     PDXI_PACT_CONNECT
#define GREET       PDXI_PACT_GREET
#define OPEN_LANE   PDXI_PACT_OPEN_LANE
#define DRAIN_QUEUE PDXI_PACT_DRAIN_QUEUE
#define DISCONNECT  PDXI_PACT_DISCONNECT
#define FAIL_ALL    PDXI_PACT_FAIL_ALL
#define PAUSE       PDXI_PACT_PAUSE
#define WALK_STEPS  1000000

static struct peer_walk walk;

/* One step, checked like those of the random walks; returns what it asks for. */
static unsigned step(enum pdxi_peer_event event, int arg)
{
    unsigned actions;
    const char *broken = peer_walk_step(&walk, event, arg, &actions);

    if (broken)
        fail_msg("event %d: not true: %s", (int)event, broken);
    return actions;
}

/* On the way up until it is in `phase`, with `naddrs` addresses; PAUSED and GONE by way of a
 * failure. */
static void begin_in(enum pdxi_peer_phase phase, int naddrs)
{
    peer_walk_begin(&walk);
    if (phase >= PDXI_PEER_RESOLVING)
        assert_int_equal(step(PDXI_PEV_BEGIN, 0), RESOLVE);
    if (phase == PDXI_PEER_PAUSED)
        assert_int_equal(step(PDXI_PEV_FAILED, PDX_EPEER), FAIL_ALL | PAUSE);
    else if (phase == PDXI_PEER_GONE)
        assert_int_equal(step(PDXI_PEV_CLOSE, 0), FAIL_ALL | DISCONNECT);
    else if (phase >= PDXI_PEER_CONNECTING)
        assert_int_equal(step(PDXI_PEV_RESOLVED, naddrs), CONNECT);
    if (phase >= PDXI_PEER_GREETING && phase <= PDXI_PEER_READY)
        assert_int_equal(step(PDXI_PEV_CONNECTED, 0), GREET);
    if (phase >= PDXI_PEER_OPENING && phase <= PDXI_PEER_READY)
        assert_int_equal(step(PDXI_PEV_GREETED, 0), OPEN_LANE);
    if (phase == PDXI_PEER_READY)
        assert_int_equal(step(PDXI_PEV_LANE_UP, 0), DRAIN_QUEUE);
    assert_int_equal(walk.step.phase, phase);
}

static void assert_peer(enum pdxi_peer_phase phase, enum pdx_peer_state state)
{
    assert_int_equal(walk.step.phase, phase);
    assert_int_equal(walk.step.state, state);
}

static void test_peer_comes_up_step_by_step(void **state)
{
    (void)state;
    for (int phase = PDXI_PEER_IDLE; phase < PDXI_PEER_READY; phase++) {
        begin_in((enum pdxi_peer_phase)phase, 1);
        assert_int_equal(walk.step.state, PDX_PEER_CONNECTING);
    }
    begin_in(PDXI_PEER_READY, 1);
    assert_int_equal(walk.step.state, PDX_PEER_UP);
}

/* A lane that is opened again takes what has waited for it. */
static void test_peer_that_is_up_gets_further_lanes(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_READY, 1);
    assert_int_equal(step(PDXI_PEV_LANE_UP, 0), DRAIN_QUEUE);
    assert_peer(PDXI_PEER_READY, PDX_PEER_UP);
}

static void test_peer_tries_its_addresses_in_order(void **state)
{
    (void)state;
    for (int phase = PDXI_PEER_CONNECTING; phase <= PDXI_PEER_OPENING; phase++) {
        enum pdxi_peer_event bad = phase % 2 ? PDXI_PEV_LOST : PDXI_PEV_FAILED;

        begin_in((enum pdxi_peer_phase)phase, 3);
        assert_int_equal(walk.step.addr, 0);
        assert_int_equal(step(bad, PDX_EPEER), DISCONNECT | CONNECT);
        assert_int_equal(walk.step.addr, 1);
        assert_peer(PDXI_PEER_CONNECTING, PDX_PEER_CONNECTING);
        assert_int_equal(step(PDXI_PEV_FAILED, PDX_EPEER), DISCONNECT | CONNECT);
        assert_int_equal(walk.step.addr, 2);
        assert_int_equal(step(bad, PDX_EVERSION), FAIL_ALL | PAUSE | DISCONNECT);
        assert_peer(PDXI_PEER_PAUSED, PDX_PEER_DOWN);
    }
}

static void test_peer_that_cannot_be_resolved_is_down(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_RESOLVING, 1);
    assert_int_equal(step(PDXI_PEV_FAILED, PDX_EPEER), FAIL_ALL | PAUSE);
    assert_peer(PDXI_PEER_PAUSED, PDX_PEER_DOWN);
    assert_int_equal(step(PDXI_PEV_PAUSE_OVER, 0), RESOLVE);
    assert_peer(PDXI_PEER_RESOLVING, PDX_PEER_DOWN); /* until it is up */
}

static void test_peer_begins_with_the_first_address_after_a_pause(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_CONNECTING, 2);
    (void)step(PDXI_PEV_FAILED, PDX_EPEER);
    (void)step(PDXI_PEV_FAILED, PDX_EPEER);
    assert_int_equal(step(PDXI_PEV_PAUSE_OVER, 0), RESOLVE);
    assert_int_equal(step(PDXI_PEV_RESOLVED, 2), CONNECT);
    assert_int_equal(walk.step.addr, 0);
}

static unsigned fail_once(void)
{
    if (walk.step.phase == PDXI_PEER_PAUSED)
        (void)step(PDXI_PEV_PAUSE_OVER, 0);
    return step(PDXI_PEV_FAILED, PDX_EPEER);
}

static void test_pauses_grow_from_the_shortest_to_the_longest(void **state)
{
    uint64_t before = 0;

    (void)state;
    begin_in(PDXI_PEER_RESOLVING, 1);
    for (int i = 0; i < 20; i++) {
        assert_true(fail_once() & PAUSE);
        if (i == 0)
            assert_true(walk.step.pause_ns == PDXI_PEER_PAUSE_MIN);
        assert_true(walk.step.pause_ns > before || before == PDXI_PEER_PAUSE_MAX);
        before = walk.step.pause_ns;
    }
    assert_true(before == PDXI_PEER_PAUSE_MAX);
}

static void come_up(void)
{
    (void)step(PDXI_PEV_RESOLVED, 1);
    (void)step(PDXI_PEV_CONNECTED, 0);
    (void)step(PDXI_PEV_GREETED, 0);
    (void)step(PDXI_PEV_LANE_UP, 0);
}

/* Up and down again without ever being stable: every attempt after the first one waits longer. */
static void test_flapping_peer_is_not_stormed(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_READY, 1);
    assert_true(step(PDXI_PEV_LOST, PDX_EPEER) & RESOLVE);
    for (int i = 0; i < 10; i++) {
        uint64_t before = walk.step.pause_ns;

        come_up();
        assert_peer(PDXI_PEER_READY, PDX_PEER_UP);
        assert_int_equal(step(PDXI_PEV_LOST, PDX_EPEER), DISCONNECT | FAIL_ALL | PAUSE);
        assert_true(walk.step.pause_ns > before || before == PDXI_PEER_PAUSE_MAX);
        (void)step(PDXI_PEV_PAUSE_OVER, 0);
    }
    come_up();
    (void)step(PDXI_PEV_STABLE, 0);
    assert_true(step(PDXI_PEV_LOST, PDX_EPEER) & RESOLVE);
}

static void test_lost_peer_is_sought_at_once(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_READY, 3);
    assert_int_equal(step(PDXI_PEV_LOST, PDX_EPEER), DISCONNECT | FAIL_ALL | RESOLVE);
    assert_peer(PDXI_PEER_RESOLVING, PDX_PEER_CONNECTING);
}

static void test_another_incarnation_is_final(void **state)
{
    (void)state;
    for (int phase = PDXI_PEER_CONNECTING; phase <= PDXI_PEER_READY; phase++) {
        if (phase != PDXI_PEER_READY) {
            begin_in((enum pdxi_peer_phase)phase, 3);
            assert_int_equal(step(PDXI_PEV_FAILED, PDX_ESTALE), DISCONNECT | FAIL_ALL);
            assert_peer(PDXI_PEER_GONE, PDX_PEER_STALE);
        }
        begin_in((enum pdxi_peer_phase)phase, 3);
        assert_int_equal(step(PDXI_PEV_LOST, PDX_ESTALE), DISCONNECT | FAIL_ALL);
        assert_peer(PDXI_PEER_GONE, PDX_PEER_STALE);
    }
}

static void test_peer_is_superseded_or_closed_in_any_phase(void **state)
{
    (void)state;
    for (int phase = PDXI_PEER_IDLE; phase < PDXI_PEER_GONE; phase++) {
        begin_in((enum pdxi_peer_phase)phase, 2);
        assert_int_equal(step(PDXI_PEV_SUPERSEDED, 0), DISCONNECT | FAIL_ALL);
        assert_peer(PDXI_PEER_GONE, PDX_PEER_STALE);
        begin_in((enum pdxi_peer_phase)phase, 2);
        assert_int_equal(step(PDXI_PEV_CLOSE, 0), DISCONNECT | FAIL_ALL);
        assert_peer(PDXI_PEER_GONE, PDX_PEER_CLOSED);
        assert_int_equal(step(PDXI_PEV_SUPERSEDED, 0), 0); /* the first end stays */
        assert_peer(PDXI_PEER_GONE, PDX_PEER_CLOSED);
    }
}

static void test_resolving_to_no_address_is_ignored(void **state)
{
    (void)state;
    begin_in(PDXI_PEER_RESOLVING, 1);
    assert_int_equal(step(PDXI_PEV_RESOLVED, 0), 0);
    assert_int_equal(step(PDXI_PEV_RESOLVED, -1), 0);
    assert_peer(PDXI_PEER_RESOLVING, PDX_PEER_CONNECTING);
}

/* Every event in every phase: those that come too late or too early change nothing, which
 * peer_walk_step checks. */
static void test_events_of_any_kind_are_harmless_in_any_phase(void **state)
{
    (void)state;
    for (int phase = 0; phase < PEER_PHASES; phase++) {
        for (int event = 0; event < PEER_EVENTS; event++) {
            const char *broken;

            begin_in((enum pdxi_peer_phase)phase, 2);
            (void)step((enum pdxi_peer_event)event, event == PDXI_PEV_RESOLVED ? 2 : PDX_EPEER);
            broken = peer_walk_can_go_on(&walk);
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

/* Ends are rare: walks get long. */
static enum pdxi_peer_event pick_event(uint64_t *rng)
{
    uint32_t event = chance(rng) % PEER_EVENTS;

    if ((event == PDXI_PEV_CLOSE || event == PDXI_PEV_SUPERSEDED) && chance(rng) % 16)
        event = PDXI_PEV_PAUSE_OVER;
    return (enum pdxi_peer_event)event;
}

static int pick_arg(uint64_t *rng, enum pdxi_peer_event event)
{
    if (event == PDXI_PEV_RESOLVED)
        return (int)(chance(rng) % 5);
    return chance(rng) % 32 ? PDX_EPEER : PDX_ESTALE;
}

static void test_peer_random_walks(void **state)
{
    static unsigned visits[PEER_PHASES][PEER_EVENTS];
    unsigned asked = 0;
    uint64_t rng = 1;

    (void)state;
    peer_walk_begin(&walk);
    for (unsigned i = 0; i < WALK_STEPS; i++) {
        enum pdxi_peer_event event = pick_event(&rng);
        const char *broken;

        visits[walk.step.phase][event]++;
        asked |= step(event, pick_arg(&rng, event));
        broken = peer_walk_can_go_on(&walk);
        if (broken)
            fail_msg("after step %u: not true: %s", i, broken);
        /* Events go on to arrive for a while after the end. */
        if (walk.step.phase == PDXI_PEER_GONE && chance(&rng) % 16 == 0)
            peer_walk_begin(&walk);
    }
    for (int phase = 0; phase < PEER_PHASES; phase++)
        for (int event = 0; event < PEER_EVENTS; event++)
            assert_true(visits[phase][event] > 10);
    assert_int_equal(asked, RESOLVE | CONNECT | GREET | OPEN_LANE | DRAIN_QUEUE | DISCONNECT |
                                FAIL_ALL | PAUSE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_comes_up_step_by_step),
        cmocka_unit_test(test_peer_that_is_up_gets_further_lanes),
        cmocka_unit_test(test_peer_tries_its_addresses_in_order),
        cmocka_unit_test(test_peer_that_cannot_be_resolved_is_down),
        cmocka_unit_test(test_peer_begins_with_the_first_address_after_a_pause),
        cmocka_unit_test(test_pauses_grow_from_the_shortest_to_the_longest),
        cmocka_unit_test(test_flapping_peer_is_not_stormed),
        cmocka_unit_test(test_lost_peer_is_sought_at_once),
        cmocka_unit_test(test_another_incarnation_is_final),
        cmocka_unit_test(test_peer_is_superseded_or_closed_in_any_phase),
        cmocka_unit_test(test_resolving_to_no_address_is_ignored),
        cmocka_unit_test(test_events_of_any_kind_are_harmless_in_any_phase),
        cmocka_unit_test(test_peer_random_walks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
