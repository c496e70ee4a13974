/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>

const struct conf_lane *conf_lane;

static void require_nothing(struct pdx_engine_opts *opts)
{
    (void)opts;
}

static const char *missing_nothing(void)
{
    return NULL;
}

/* TCP is what engines use when they have nothing better, and every machine has it. */
static const struct conf_lane lanes[] = {
    {"tcp", require_nothing, missing_nothing},
};

void conf_opts(struct pdx_engine_opts *opts, const char *name)
{
    ts_engine_opts(opts, name);
    conf_lane->require(opts);
}

int conf_setup_none(void **state)
{
    *state = calloc(1, sizeof(struct conf));
    return *state ? 0 : -1;
}

int conf_teardown(void **state)
{
    struct conf *c = *state;

    ts_mute_close(&c->mute);
    ts_pair_close(&c->pair);
    ts_child_close(&c->child);
    free(c);
    return 0;
}

void conf_open_pair(struct conf *c, size_t len)
{
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;

    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    ts_pair_open(&c->pair, &a, &b, len);
}

void conf_open_child(struct conf *c, const struct ts_child_opts *opts)
{
    struct pdx_engine_opts a;
    struct pdx_error why;

    conf_opts(&a, "alpha");
    if (opts->keepalive_ms)
        a.keepalive_ns = opts->keepalive_ms * PDX_MSEC;
    ts_child_open(&c->child, opts);
    ts_mem_open(&c->pair.ma, opts->len ? opts->len : (size_t)1 << 20);
    c->pair.a = ts_engine(&a);
    c->pair.ra = ts_region(c->pair.a, &c->pair.ma, PDX_RIGHT_ALL);
    c->pair.remote = c->child.remote;
    c->pair.peer = ts_child_peer(&c->child, c->pair.a);
    ts_ok(pdx_peer_wait_up(c->pair.peer, TS_LONG, &why), &why);
}

int conf_setup_pair(void **state)
{
    if (conf_setup_none(state) < 0)
        return -1;
    conf_open_pair(*state, 1 << 20);
    return 0;
}

int conf_setup_mute(void **state)
{
    struct conf *c;

    if (conf_setup_pair(state) < 0)
        return -1;
    c = *state;
    ts_mute_open(&c->mute, c->pair.a);
    return 0;
}

int conf_setup_child(void **state)
{
    const struct ts_child_opts opts = {.name = "child", .seed = 7};

    if (conf_setup_none(state) < 0)
        return -1;
    conf_open_child(*state, &opts);
    return 0;
}

struct pdx_transfer_status *conf_long_write(struct conf *c, size_t nsegs, uint64_t seg_len,
                                            const struct pdx_submit_opts *opts)
{
    struct pdx_seg *segs = calloc(nsegs, sizeof *segs);
    struct pdx_transfer_status *status = NULL;
    struct pdx_error why;
    int rc;

    assert_non_null(segs);
    for (size_t i = 0; i < nsegs; i++)
        segs[i].len = seg_len;
    rc = pdx_write(c->pair.peer, c->pair.ra, &c->pair.remote, segs, nsegs, opts, &status, &why);
    free(segs);
    ts_ok(rc, &why);
    return status;
}

void conf_assert_peer_well(struct conf *c)
{
    struct pdx_peer_counters pc;

    pdx_peer_counters(c->pair.peer, &pc);
    assert_int_equal(pc.losses, 0);
    assert_int_equal(pc.lane_breaks, 0);
    assert_int_equal(pdx_peer_state(c->pair.peer, NULL), PDX_PEER_UP);
    ts_finish(ts_write(&c->pair, 0, 0, 1, NULL));
}

/* Returns cmocka's count of failures, or -1 when the lane is not run. */
static int run_lane(const struct conf_lane *lane, const struct CMUnitTest *cases, size_t n)
{
    const char *only = getenv("PDX_TEST_LANE");
    const char *missing = lane->missing();

    if (only && strcmp(only, lane->name) != 0)
        return -1;
    if (missing) {
        (void)fprintf(stderr, "lane %s is skipped: %s\n", lane->name, missing);
        return -1;
    }
    conf_lane = lane;
    return _cmocka_run_group_tests(lane->name, cases, n, NULL, NULL);
}

/* Whether the way of waiting that PDX_TEST_IO asks for exists here. */
static bool io_permitted(void)
{
    struct pdx_engine_opts opts;
    struct pdx_engine *engine = NULL;
    struct pdx_error why;
    int rc;

    ts_engine_opts(&opts, "probe");
    rc = pdx_engine_create(&opts, &engine, &why);
    (void)pdx_engine_destroy(engine);
    if (rc == PDX_EUNSUPPORTED)
        (void)fprintf(stderr, "skipped: %s\n", why.text);
    return rc != PDX_EUNSUPPORTED;
}

int conf_main(const struct CMUnitTest *cases, size_t n)
{
    const char *filter = getenv("PDX_TEST_CASE");
    bool ran = false;
    int failed = 0;

    if (!io_permitted())
        return 77;
    if (filter)
        cmocka_set_test_filter(filter);
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
        int rc = run_lane(&lanes[i], cases, n);

        ran = ran || rc >= 0;
        failed += rc > 0 ? rc : 0;
    }
    return ran ? failed : 77;
}
