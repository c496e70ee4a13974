/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers as objects: adding, states and their reasons, counts, lanes.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    struct ts_pair pair;
    struct ts_mute mute;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    if (!f)
        return -1;
    ts_engine_opts(&a, "alpha");
    ts_engine_opts(&b, "beta");
    a.max_peers = 3;
    ts_pair_open(&f->pair, &a, &b, 65536);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    ts_mute_close(&f->mute);
    ts_pair_close(&f->pair);
    free(f);
    return 0;
}

static void test_peer_tells_who_it_is(void **state)
{
    struct fixture *f = *state;
    struct pdx_engine_info b;
    struct pdx_peer_info info;

    pdx_engine_info(f->pair.b, &b);
    pdx_peer_info(f->pair.peer, &info);
    assert_string_equal(info.name, "beta");
    assert_memory_equal(info.incarnation, b.incarnation, PDX_INCARNATION_LEN);
    ts_text_has(info.address, b.address);
    assert_int_equal(info.state, PDX_PEER_UP);
    assert_ptr_equal(info.engine, f->pair.a);
    assert_string_equal(pdx_peer_state_name(PDX_PEER_CONNECTING), "connecting");
    assert_string_equal(pdx_peer_state_name(PDX_PEER_UP), "up");
    assert_string_equal(pdx_peer_state_name(PDX_PEER_DOWN), "down");
    assert_string_equal(pdx_peer_state_name(PDX_PEER_STALE), "stale");
    assert_string_equal(pdx_peer_state_name(PDX_PEER_CLOSED), "closed");
}

static void test_peer_of_one_incarnation_is_one_peer(void **state)
{
    struct fixture *f = *state;
    struct pdx_peer *again = ts_peer(f->pair.a, f->pair.b);
    struct pdx_peer_counters pc;

    assert_ptr_equal(again, f->pair.peer);
    assert_int_equal(ts_counters(f->pair.a).peers, 1);
    pdx_peer_put(again);
    ts_finish(ts_write(&f->pair, 0, 0, 1, NULL));
    pdx_peer_counters(f->pair.peer, &pc);
    assert_int_equal(pc.connects, 1);
    assert_int_equal(pc.losses, 0);
    pdx_peer_put(f->pair.peer);
    f->pair.peer = NULL;
    ts_until(ts_counters(f->pair.b).sessions == 0);
    ts_until(ts_counters(f->pair.a).peers == 0);
    assert_int_equal(ts_counters(f->pair.b).sessions_lost, 0); /* it said goodbye */
    pdx_peer_put(NULL);
}

/* Put and added again: a new connection. */
static void test_peer_can_be_added_again(void **state)
{
    struct fixture *f = *state;
    struct pdx_error why;

    for (int i = 0; i < 10; i++) {
        pdx_peer_put(f->pair.peer);
        f->pair.peer = ts_peer(f->pair.a, f->pair.b);
        ts_ok(pdx_peer_wait_up(f->pair.peer, TS_LONG, &why), &why);
        ts_finish(ts_write(&f->pair, 0, 0, 1, NULL));
    }
}

static void test_peer_connects_while_it_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct pdx_error why;

    ts_mute_open(&f->mute, f->pair.a);
    assert_int_equal(pdx_peer_state(f->mute.peer, &why), PDX_PEER_CONNECTING);
    assert_int_equal(pdx_peer_wait_up(f->mute.peer, 10 * PDX_MSEC, &why), PDX_ETIMEDOUT);
    ts_text_has(why.text, "mute");
    assert_int_equal(pdx_peer_wait_up(f->mute.peer, 0, NULL), PDX_ETIMEDOUT);
    assert_int_equal(pdx_peer_state(f->mute.peer, NULL), PDX_PEER_CONNECTING);
}

/* Nobody listens: DOWN with who, where and why; submissions are refused meanwhile. Then the port is
 * somebody else's: STALE. */
static void test_peer_is_down_and_says_why(void **state)
{
    struct fixture *f = *state;
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *gone;
    struct pdx_peer *peer;
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_remote remote;
    struct pdx_region *region;
    struct pdx_error why;
    char address[128];

    ts_engine_opts(&opts, "gone");
    gone = ts_engine(&opts);
    pdx_engine_info(gone, &info);
    (void)snprintf(address, sizeof address, "%s", info.address);
    region = ts_region(gone, &f->pair.mb, PDX_RIGHT_ALL);
    remote = ts_remote(region);
    peer = ts_peer(f->pair.a, gone);
    ts_ok(pdx_peer_wait_up(peer, TS_LONG, &why), &why);
    assert_int_equal(pdx_engine_destroy(gone), 0);
    ts_ok(pdx_region_deregister(region, 0, &why), &why);
    ts_until(pdx_peer_state(peer, &why) == PDX_PEER_DOWN);
    assert_int_equal(why.code, PDX_EPEER);
    assert_int_equal(why.error_class, PDX_CLASS_RECONNECT);
    ts_text_has(why.text, "gone");
    ts_text_has(why.text, address);
    ts_refused(pdx_write(peer, f->pair.ra, &remote, &seg, 1, NULL, NULL, &why), PDX_EPEER, &why);
    ts_text_has(why.text, "gone");
    assert_int_equal(pdx_peer_wait_up(peer, 10 * PDX_MSEC, &why), PDX_ETIMEDOUT);
    ts_text_has(why.text, address);
    opts.bind = address;
    gone = ts_engine(&opts);
    ts_until(pdx_peer_state(peer, &why) == PDX_PEER_STALE);
    assert_int_equal(why.code, PDX_ESTALE);
    assert_int_equal(pdx_peer_wait_up(peer, TS_LONG, &why), PDX_ESTALE);
    pdx_peer_put(peer);
    assert_int_equal(pdx_engine_destroy(gone), 0);
}

static void test_peer_count_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct pdx_engine_opts opts;
    struct pdx_engine *others[3];
    struct pdx_peer *peers[3] = {NULL};
    uint8_t desc[TS_DESC_MAX];
    struct pdx_error why;
    char name[16];

    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "other-%d", i);
        ts_engine_opts(&opts, name);
        others[i] = ts_engine(&opts);
        if (i < 2)
            peers[i] = ts_peer(f->pair.a, others[i]);
    }
    ts_refused(pdx_peer_add(f->pair.a, desc, pdx_engine_desc(others[2], desc, sizeof desc),
                            &peers[2], &why),
               PDX_EAGAIN, &why);
    ts_text_has(why.text, "3");
    pdx_peer_put(peers[0]);
    ts_until(pdx_peer_add(f->pair.a, desc, pdx_engine_desc(others[2], desc, sizeof desc), &peers[2],
                          &why) == 0);
    pdx_peer_put(peers[1]);
    pdx_peer_put(peers[2]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pdx_engine_destroy(others[i]), 0);
}

/* A newer incarnation of a known name takes over. */
static void test_peer_is_superseded_by_its_successor(void **state)
{
    struct fixture *f = *state;
    struct pdx_engine_opts opts;
    struct pdx_engine *successor;
    struct pdx_peer *peer;
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_error why;

    ts_engine_opts(&opts, "beta");
    successor = ts_engine(&opts);
    peer = ts_peer(f->pair.a, successor);
    assert_ptr_not_equal(peer, f->pair.peer);
    ts_until(pdx_peer_state(f->pair.peer, &why) == PDX_PEER_STALE);
    ts_text_has(why.text, "beta");
    ts_refused(pdx_write(f->pair.peer, f->pair.ra, &f->pair.remote, &seg, 1, NULL, NULL, &why),
               PDX_ESTALE, &why);
    ts_ok(pdx_peer_wait_up(peer, TS_LONG, &why), &why);
    pdx_peer_put(peer);
    assert_int_equal(pdx_engine_destroy(successor), 0);
}

static void test_peer_refuses_what_is_no_descriptor(void **state)
{
    struct fixture *f = *state;
    struct pdx_peer *const poison = (void *)(uintptr_t)0x10;
    struct pdx_peer *peer = poison;
    uint8_t desc[TS_DESC_MAX];
    struct pdx_error why;
    size_t len = pdx_engine_desc(f->pair.b, desc, sizeof desc);

    for (size_t cut = 0; cut < len; cut++)
        ts_refused(pdx_peer_add(f->pair.a, desc, cut, &peer, &why), PDX_EPROTO, &why);
    len = pdx_region_export(f->pair.rb, desc, sizeof desc);
    ts_refused(pdx_peer_add(f->pair.a, desc, len, &peer, &why), PDX_EPROTO, &why);
    ts_refused(pdx_peer_add(f->pair.a, NULL, 0, &peer, &why), PDX_EPROTO, &why);
    assert_ptr_equal(peer, poison);
}

/* A descriptor from another machine that names loopback addresses only leads back here. */
static void test_peer_refuses_loopback_of_another_host(void **state)
{
    struct fixture *f = *state;
    static const uint8_t key[] = {0xa4, 'h', 'o', 's', 't', 0xc4, 16};
    struct pdx_peer *peer;
    uint8_t desc[TS_DESC_MAX];
    struct pdx_error why;
    size_t len = pdx_engine_desc(f->pair.b, desc, sizeof desc);
    uint8_t *host = memmem(desc, len, key, sizeof key);

    assert_non_null(host);
    host[sizeof key] ^= 1;
    ts_refused(pdx_peer_add(f->pair.a, desc, len, &peer, &why), PDX_EINVAL, &why);
    ts_text_has(why.text, "127.0.0.1");
    ts_text_has(why.text, "advertise");
}

static void test_peer_explains_its_lanes(void **state)
{
    struct fixture *f = *state;
    struct pdx_lane_info lanes[8];
    size_t n;
    bool usable = false;

    ts_finish(ts_write(&f->pair, 0, 0, 1000, NULL));
    n = pdx_peer_lanes(f->pair.peer, lanes, 8);
    assert_in_range(n, 1, 8);
    assert_int_equal(pdx_peer_lanes(f->pair.peer, NULL, 0), n);
    for (size_t i = 0; i < n; i++) {
        assert_true(lanes[i].name[0] != '\0');
        assert_true(lanes[i].reason[0] != '\0');
        usable = usable || lanes[i].usable;
    }
    assert_true(usable);
}

static void test_peer_is_closed_with_its_engine(void **state)
{
    struct fixture *f = *state;
    struct pdx_seg seg = {0, 0, 1};
    struct pdx_error why;
    struct pdx_peer_info info;

    ts_mute_open(&f->mute, f->pair.a);
    assert_int_equal(pdx_engine_destroy(f->pair.a), 0);
    f->pair.a = NULL;
    assert_int_equal(pdx_peer_state(f->pair.peer, &why), PDX_PEER_CLOSED);
    assert_int_equal(pdx_peer_wait_up(f->mute.peer, TS_LONG, &why), PDX_ESHUTDOWN);
    pdx_peer_info(f->pair.peer, &info);
    assert_string_equal(info.name, "beta");
    ts_refused(pdx_write(f->pair.peer, f->pair.ra, &f->pair.remote, &seg, 1, NULL, NULL, &why),
               PDX_ESHUTDOWN, &why);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_peer_tells_who_it_is),
    CASE(test_peer_of_one_incarnation_is_one_peer),
    CASE(test_peer_can_be_added_again),
    CASE(test_peer_connects_while_it_is_waited_for),
    CASE(test_peer_is_down_and_says_why),
    CASE(test_peer_count_is_bounded),
    CASE(test_peer_is_superseded_by_its_successor),
    CASE(test_peer_refuses_what_is_no_descriptor),
    CASE(test_peer_refuses_loopback_of_another_host),
    CASE(test_peer_explains_its_lanes),
    CASE(test_peer_is_closed_with_its_engine),
};

int main(void)
{
    return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
