/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: peers that die, stand still and come back, played by a process
 * of its own.
 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>

#define REGION_LEN ((uint64_t)1 << 20)
#define CHILD_SEED 7
#define OTHER_SEED 8

/* A sentence about a lost transfer says who, where and which. */
static void check_sentence(struct conf *c, struct pdx_transfer_status *st, uint64_t id)
{
    char port[16];
    char number[24];

    (void)snprintf(port, sizeof port, ":%u", c->child.port);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)id);
    ts_text_has(pdx_transfer_text(st), "child");
    ts_text_has(pdx_transfer_text(st), port);
    ts_text_has(pdx_transfer_text(st), number);
}

static void test_child_takes_and_gives_bytes(void **state)
{
    struct conf *c = *state;

    ts_finish(ts_read(&c->pair, 0, 0, REGION_LEN, NULL));
    ts_assert_pattern(c->pair.ma.p, 0, REGION_LEN, CHILD_SEED);
    ts_fill(c->pair.ma.p, 0, REGION_LEN, OTHER_SEED);
    ts_finish(ts_write(&c->pair, 0, 0, REGION_LEN, NULL));
    ts_child_expect(&c->child, "ok", "check 0 %llu %d", (unsigned long long)REGION_LEN, OTHER_SEED);
}

/* Programs that the caller's process starts inherit nothing of an engine. */
static void test_engine_leaks_no_socket_into_children(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts opts = {.name = "heir"};

    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    ts_child_open(&c->child, &opts);
    ts_child_expect(&c->child, "0", "sockets");
}

static void test_stopped_peer_does_not_defeat_the_deadline(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[5];
    struct pdx_transfer_info info;
    uint64_t before;

    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
    ts_child_stop(&c->child);
    before = ts_now();
    opts.deadline_ns = 300 * PDX_MSEC;
    opts.id = 424242;
    for (int i = 0; i < 4; i++)
        st[i] = i % 2 ? ts_read(&c->pair, 0, 0, REGION_LEN, &opts)
                      : ts_write(&c->pair, 0, 0, REGION_LEN, &opts);
    st[4] = conf_long_write(c, 5000, REGION_LEN, &opts);
    for (int i = 0; i < 5; i++) {
        ts_ended(st[i], PDX_DEADLINE, PDX_EDEADLINE);
        check_sentence(c, st[i], 424242);
        pdx_transfer_info(st[i], &info);
        assert_true(info.completed_ns - info.submitted_ns >= opts.deadline_ns);
        pdx_transfer_put(st[i]);
    }
    /* In time: long before anything but the deadline could have ended them. */
    assert_true(ts_now() - before < TS_LONG / 2);
    ts_child_continue(&c->child);
    ts_finish(ts_write(&c->pair, 0, 0, REGION_LEN, NULL));
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
}

/* After the terminal code the source is the caller's: it is rewritten, and when the frozen peer
 * thaws, none of that may arrive. What was in the kernel's hands before may. */
static void test_stopped_peer_gets_nothing_after_the_end(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[8];

    ts_fill(c->pair.ma.p, 0, REGION_LEN, OTHER_SEED);
    ts_child_stop(&c->child);
    opts.deadline_ns = 100 * PDX_MSEC;
    for (int i = 0; i < 8; i++)
        st[i] = ts_write(&c->pair, 0, 0, REGION_LEN, &opts);
    for (int i = 0; i < 8; i++) {
        ts_ended(st[i], PDX_DEADLINE, PDX_EDEADLINE);
        pdx_transfer_put(st[i]);
    }
    memset(c->pair.ma.p, 0xee, REGION_LEN);
    ts_child_continue(&c->child);
    /* Once a later transfer is done, nothing of the earlier ones is under way any more. */
    ts_finish(ts_read(&c->pair, 0, REGION_LEN - 1, 1, NULL));
    ts_child_expect(&c->child, "ok", "blend 0 %llu %d %d", (unsigned long long)REGION_LEN - 1,
                    CHILD_SEED, OTHER_SEED);
}

static void test_stopped_peer_takes_a_cancel(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[8];

    ts_child_stop(&c->child);
    for (int i = 0; i < 8; i++)
        st[i] = ts_write(&c->pair, 0, 0, REGION_LEN, NULL);
    for (int i = 0; i < 8; i++)
        pdx_transfer_cancel(st[i]);
    for (int i = 0; i < 8; i++) {
        ts_ended(st[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(st[i]);
    }
    ts_child_continue(&c->child);
    ts_finish(ts_write(&c->pair, 0, 0, REGION_LEN, NULL));
}

/* The connection is broken for the sake of what was cancelled; what was not goes on later. */
static void test_stopped_peer_finishes_what_was_not_cancelled(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *keep[4];
    struct pdx_transfer_status *drop[4];

    ts_fill(c->pair.ma.p, 0, REGION_LEN, OTHER_SEED);
    ts_child_stop(&c->child);
    for (uint64_t i = 0; i < 4; i++) {
        keep[i] = ts_write(&c->pair, i * 100000, i * 100000, 100000, NULL);
        drop[i] = ts_write(&c->pair, 400000, 400000, 600000, NULL);
    }
    for (int i = 0; i < 4; i++) {
        pdx_transfer_cancel(drop[i]);
        ts_ended(drop[i], PDX_CANCELLED, PDX_ECANCELLED);
        pdx_transfer_put(drop[i]);
        assert_false(pdx_transfer_is_terminal(pdx_transfer_code(keep[i])));
    }
    ts_child_continue(&c->child);
    for (int i = 0; i < 4; i++)
        ts_finish(keep[i]);
    ts_child_expect(&c->child, "ok", "check 0 400000 %d", OTHER_SEED);
}

#define LOAD_N 200

static void test_killed_peer_ends_every_transfer(void **state)
{
    struct conf *c = *state;
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[LOAD_N];
    struct pdx_transfer_info info;
    struct pdx_error why;
    int failed = 0;

    for (int i = 0; i < LOAD_N; i++) {
        opts.id = 1000000 + (uint64_t)i;
        st[i] = i % 2 ? ts_read(&c->pair, 0, 0, REGION_LEN, &opts)
                      : conf_long_write(c, 100, REGION_LEN, &opts);
    }
    ts_until((pdx_transfer_info(st[0], &info), info.bytes_done > 0));
    ts_child_kill(&c->child);
    assert_int_equal(pdx_transfer_wait_all(st, LOAD_N, TS_LONG), 0);
    for (int i = 0; i < LOAD_N; i++) {
        if (pdx_transfer_code(st[i]) != PDX_DONE) {
            failed++;
            ts_ended(st[i], PDX_FAILED, PDX_EPEER);
            (void)pdx_transfer_error(st[i], &why);
            assert_int_equal(why.error_class, PDX_CLASS_RECONNECT);
            check_sentence(c, st[i], 1000000 + (uint64_t)i);
        }
        pdx_transfer_put(st[i]);
    }
    assert_true(failed > 0);
    ts_until(pdx_peer_state(c->pair.peer, &why) == PDX_PEER_DOWN);
    ts_text_has(why.text, "child");
    assert_int_equal(ts_counters(c->pair.a).transfers_inflight, 0);
    assert_true(ts_counters(c->pair.a).peers_lost >= 1);
}

/* With nothing to do, a death is seen as well. */
static void test_killed_idle_peer_is_noticed(void **state)
{
    struct conf *c = *state;
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_error why;

    ts_child_kill(&c->child);
    ts_until(pdx_peer_state(c->pair.peer, &why) == PDX_PEER_DOWN);
    ts_text_has(why.text, "child");
    ts_refused(pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, &seg, 1, NULL, NULL, &why),
               PDX_EPEER, &why);
    ts_text_has(why.text, "child");
}

/* A peer that is silent for twice the keepalive is lost, though its connections are open. */
static void test_silent_peer_is_lost_by_keepalive(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts child = {
        .name = "child", .seed = CHILD_SEED, .keepalive_ms = TS_SCALE(50, 200)};
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_peer_counters pc;

    conf_open_child(c, &child);
    ts_child_stop(&c->child);
    opts.deadline_ns = 2 * PDX_SEC;
    st = ts_write(&c->pair, 0, 0, REGION_LEN, &opts);
    ts_until(pdx_peer_state(c->pair.peer, NULL) != PDX_PEER_UP);
    pdx_peer_counters(c->pair.peer, &pc);
    assert_true(pc.losses >= 1);
    assert_int_equal(pdx_transfer_wait(st, TS_LONG), 0);
    assert_int_not_equal(pdx_transfer_code(st), PDX_DONE);
    pdx_transfer_put(st);
    ts_child_continue(&c->child);
    ts_until(pdx_peer_state(c->pair.peer, NULL) == PDX_PEER_UP);
    ts_finish(ts_write(&c->pair, 0, 0, REGION_LEN, NULL));
}

/* The code of the child's record of a's transfer `id`; 0 when there is none. */
static int record_at_child(struct conf *c, uint64_t id)
{
    char inc[2 * PDX_INCARNATION_LEN + 1];
    struct pdx_engine_info info;

    pdx_engine_info(c->pair.a, &info);
    ts_hex(info.incarnation, PDX_INCARNATION_LEN, inc);
    return atoi(ts_child_ask(&c->child, "inbound %s %llu", inc, (unsigned long long)id));
}

/* The target was frozen for so long that the connection was given up, and the transfer ended
 * meanwhile. When it thaws, its record does not stay in progress for ever. */
static void test_frozen_target_learns_of_the_end(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts child = {
        .name = "child", .seed = CHILD_SEED, .keepalive_ms = TS_SCALE(50, 200)};
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st;
    struct pdx_peer_counters pc;

    conf_open_child(c, &child);
    opts.id = 33;
    opts.flags = PDX_SUBMIT_TRACK;
    st = conf_long_write(c, 60000, REGION_LEN, &opts);
    ts_until(record_at_child(c, 33) == PDX_INBOUND_IN_PROGRESS);
    ts_child_stop(&c->child);
    ts_until((pdx_peer_counters(c->pair.peer, &pc), pc.losses >= 1));
    pdx_transfer_cancel(st);
    assert_int_equal(pdx_transfer_wait(st, TS_LONG), 0);
    assert_int_not_equal(pdx_transfer_code(st), PDX_DONE);
    pdx_transfer_put(st);
    ts_child_continue(&c->child);
    ts_until(pdx_peer_state(c->pair.peer, NULL) == PDX_PEER_UP);
    ts_until(record_at_child(c, 33) == PDX_INBOUND_FAILED ||
             record_at_child(c, 33) == PDX_INBOUND_ABORTED);
}

/* An idle connection is kept alive by both ends' probes. */
static void test_idle_peer_is_kept(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts child = {
        .name = "child", .seed = CHILD_SEED, .keepalive_ms = TS_SCALE(250, 500)};
    struct pdx_peer_counters pc;
    uint64_t heard;

    conf_open_child(c, &child);
    heard = ts_counters(c->pair.a).frames_received;
    ts_until(ts_counters(c->pair.a).frames_received >= heard + 5);
    pdx_peer_counters(c->pair.peer, &pc);
    assert_true(pc.rtt_ns > 0);
    conf_assert_peer_well(c);
    ts_child_expect(&c->child, "1 0 1", "counters");
}

/* `bind` NULL: at another port. */
static void restart(struct conf *c, const char *bind)
{
    const struct ts_child_opts opts = {.name = "child", .bind = bind, .seed = OTHER_SEED};

    ts_child_kill(&c->child);
    ts_child_open(&c->child, &opts);
}

/* What is left of the old incarnation is STALE; the new descriptor works at once. */
static void check_restarted(struct conf *c, struct pdx_transfer_status *const *st, int n)
{
    struct pdx_peer *old = c->pair.peer;
    struct pdx_remote old_remote = c->pair.remote;
    struct pdx_seg seg = {0, 0, 100};
    struct pdx_error why;

    c->pair.peer = ts_child_peer(&c->child, c->pair.a);
    c->pair.remote = c->child.remote;
    assert_ptr_not_equal(c->pair.peer, old);
    ts_ok(pdx_peer_wait_up(c->pair.peer, TS_LONG, &why), &why);
    ts_finish(ts_read(&c->pair, 0, 0, REGION_LEN, NULL));
    ts_assert_pattern(c->pair.ma.p, 0, REGION_LEN, OTHER_SEED);
    ts_until(pdx_peer_state(old, &why) == PDX_PEER_STALE);
    ts_text_has(why.text, "child");
    ts_refused(pdx_write(old, c->pair.ra, &old_remote, &seg, 1, NULL, NULL, &why), PDX_ESTALE,
               &why);
    ts_refused(pdx_write(c->pair.peer, c->pair.ra, &old_remote, &seg, 1, NULL, NULL, &why),
               PDX_ESTALE, &why);
    assert_int_equal(pdx_peer_wait_up(old, 0, &why), PDX_ESTALE);
    assert_int_equal(pdx_transfer_wait_all(st, (size_t)n, TS_LONG), 0);
    for (int i = 0; i < n; i++) {
        enum pdx_transfer_code code = pdx_transfer_code(st[i]);

        assert_true(code == PDX_STALE || code == PDX_FAILED);
        ts_text_has(pdx_transfer_text(st[i]), "child");
        pdx_transfer_put(st[i]);
    }
    pdx_peer_put(old);
    ts_finish(ts_write(&c->pair, 0, 0, 100, NULL));
}

static void test_restarted_peer_is_usable_at_once(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[4];

    for (int i = 0; i < 4; i++)
        st[i] = conf_long_write(c, 60000, REGION_LEN, NULL);
    restart(c, NULL);
    check_restarted(c, st, 4);
}

/* On the same port the old peer finds out by itself. The port is one that the kernel gives to
 * nobody else meanwhile. */
static void test_restart_on_the_same_port_is_seen_as_stale(void **state)
{
    struct conf *c = *state;
    char bind[32];
    const struct ts_child_opts child = {.name = "child", .bind = bind, .seed = CHILD_SEED};
    struct pdx_transfer_status *st[4];
    struct pdx_error why;

    (void)snprintf(bind, sizeof bind, "127.0.0.1:%u", ts_quiet_port());
    conf_open_child(c, &child);
    for (int i = 0; i < 4; i++)
        st[i] = conf_long_write(c, 60000, REGION_LEN, NULL);
    restart(c, bind);
    ts_until(pdx_peer_state(c->pair.peer, &why) == PDX_PEER_STALE);
    assert_int_equal(why.code, PDX_ESTALE);
    check_restarted(c, st, 4);
}

/* The old process was only frozen; its name is taken by a new one while transfers run. */
static void test_new_incarnation_supersedes_a_frozen_one(void **state)
{
    struct conf *c = *state;
    const struct ts_child_opts opts = {.name = "child", .seed = OTHER_SEED};
    struct ts_child frozen = c->child;
    struct pdx_transfer_status *st[4];

    for (int i = 0; i < 4; i++)
        st[i] = conf_long_write(c, 60000, REGION_LEN, NULL);
    ts_child_stop(&frozen);
    ts_child_open(&c->child, &opts);
    check_restarted(c, st, 4);
    ts_child_close(&frozen);
}

/* Records are told apart by incarnation: the restarted initiator's id 5 is not the old one's. */
static void test_restarted_initiator_has_records_of_its_own(void **state)
{
    struct conf *c = *state;
    static uint8_t desc[TS_DESC_MAX];
    static char engine[2 * TS_DESC_MAX + 1];
    static char region[2 * TS_DESC_MAX + 1];
    const struct ts_child_opts opts = {.name = "child"};
    uint8_t old[PDX_INCARNATION_LEN];
    struct pdx_inbound rec;

    ts_hex(desc, pdx_engine_desc(c->pair.a, desc, sizeof desc), engine);
    ts_hex(desc, pdx_region_export(c->pair.ra, desc, sizeof desc), region);
    ts_child_expect(&c->child, "ok", "connect %s %s", engine, region);
    ts_child_expect(&c->child, "ok", "drive w 1 1 100 5");
    memcpy(old, c->child.remote.incarnation, sizeof old);
    assert_int_equal(pdx_inbound_wait(c->pair.a, old, 5, TS_LONG, false, &rec), 0);
    assert_int_equal(rec.bytes, 100);
    ts_child_kill(&c->child);
    ts_child_open(&c->child, &opts);
    assert_memory_not_equal(old, c->child.remote.incarnation, sizeof old);
    assert_int_equal(pdx_inbound_get(c->pair.a, c->child.remote.incarnation, 5, false, &rec),
                     PDX_ENOENT);
    ts_child_expect(&c->child, "ok", "connect %s %s", engine, region);
    ts_child_expect(&c->child, "ok", "drive r 1 1 200 5");
    assert_int_equal(
        pdx_inbound_wait(c->pair.a, c->child.remote.incarnation, 5, TS_LONG, false, &rec), 0);
    assert_int_equal(rec.bytes, 200);
    assert_int_equal(pdx_inbound_get(c->pair.a, old, 5, false, &rec), 0);
    assert_int_equal(rec.bytes, 100);
}

/* Readers die in the middle, one after the other; the owner serves the next one. */
static void test_owner_survives_dying_readers(void **state)
{
    struct conf *c = *state;
    static uint8_t desc[TS_DESC_MAX];
    static char engine[2 * TS_DESC_MAX + 1];
    static char region[2 * TS_DESC_MAX + 1];
    const struct ts_child_opts opts = {.name = "reader"};
    const int n = TS_SCALE(10, 3);

    conf_open_pair(c, REGION_LEN);
    ts_hex(desc, pdx_engine_desc(c->pair.b, desc, sizeof desc), engine);
    ts_hex(desc, pdx_region_export(c->pair.rb, desc, sizeof desc), region);
    for (int i = 0; i < n; i++) {
        uint64_t before = ts_counters(c->pair.b).bytes_in_read;

        ts_child_open(&c->child, &opts);
        ts_child_expect(&c->child, "ok", "connect %s %s", engine, region);
        ts_child_expect(&c->child, "ok", "drive r 1 65536 1048576 1");
        ts_until(ts_counters(c->pair.b).bytes_in_read > before);
        ts_child_kill(&c->child);
    }
    ts_until(ts_counters(c->pair.b).sessions == 1);
    assert_int_equal(ts_counters(c->pair.b).sessions_lost, n);
    conf_assert_peer_well(c);
}

static void test_target_deregisters_in_another_process(void **state)
{
    struct conf *c = *state;
    struct pdx_transfer_status *st[4];
    char sum[64];

    for (int i = 0; i < 4; i++)
        st[i] = conf_long_write(c, 60000, REGION_LEN, NULL);
    ts_child_expect(&c->child, "ok", "deregister");
    (void)snprintf(sum, sizeof sum, "%s",
                   ts_child_ask(&c->child, "sum 0 %llu", (unsigned long long)REGION_LEN));
    for (int i = 0; i < 4; i++) {
        ts_ended(st[i], PDX_STALE, PDX_ESTALE);
        pdx_transfer_put(st[i]);
    }
    ts_child_expect(&c->child, sum, "sum 0 %llu", (unsigned long long)REGION_LEN);
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
}

static const struct CMUnitTest cases[] = {
    CONF_CHILD(test_child_takes_and_gives_bytes),
    CONF_PAIR(test_engine_leaks_no_socket_into_children),
    CONF_CHILD(test_stopped_peer_does_not_defeat_the_deadline),
    CONF_CHILD(test_stopped_peer_gets_nothing_after_the_end),
    CONF_CHILD(test_stopped_peer_takes_a_cancel),
    CONF_CHILD(test_stopped_peer_finishes_what_was_not_cancelled),
    CONF_CHILD(test_killed_peer_ends_every_transfer),
    CONF_CHILD(test_killed_idle_peer_is_noticed),
    CONF_NONE(test_silent_peer_is_lost_by_keepalive),
    CONF_NONE(test_frozen_target_learns_of_the_end),
    CONF_NONE(test_idle_peer_is_kept),
    CONF_CHILD(test_restarted_peer_is_usable_at_once),
    CONF_NONE(test_restart_on_the_same_port_is_seen_as_stale),
    CONF_CHILD(test_new_incarnation_supersedes_a_frozen_one),
    CONF_CHILD(test_restarted_initiator_has_records_of_its_own),
    CONF_NONE(test_owner_survives_dying_readers),
    CONF_CHILD(test_target_deregisters_in_another_process),
};

CONF_MAIN(cases)
