/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine as an object: options, addresses, descriptors, creation that fails.
 */
#include "support.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pdx_engine *engine_bound(const char *bind)
{
    struct pdx_engine_opts opts;

    ts_engine_opts(&opts, "beta");
    opts.bind = bind;
    return ts_engine(&opts);
}

/* a moves a byte to b, however b is reached. */
static void check_reachable(struct pdx_engine *b)
{
    struct pdx_engine_opts opts;
    struct pdx_transfer_status *st;
    struct pdx_error why;
    struct ts_mem mem;
    struct pdx_engine *a;
    struct pdx_region *ra;
    struct pdx_region *rb;
    struct pdx_remote remote;
    struct pdx_peer *peer;
    struct pdx_seg seg = {0, 1, 1};

    ts_engine_opts(&opts, "alpha");
    a = ts_engine(&opts);
    ts_mem_open(&mem, 2);
    mem.p[0] = 42;
    mem.p[1] = 0;
    ra = ts_region(a, &mem, PDX_RIGHT_NONE);
    rb = ts_region(b, &mem, PDX_RIGHT_ALL);
    remote = ts_remote(rb);
    peer = ts_peer(a, b);
    ts_ok(pdx_peer_wait_up(peer, TS_LONG, &why), &why);
    ts_ok(pdx_write(peer, ra, &remote, &seg, 1, NULL, &st, &why), &why);
    ts_finish(st);
    assert_int_equal(mem.p[1], 42);
    pdx_peer_put(peer);
    ts_ok(pdx_region_deregister(rb, 0, &why), &why);
    assert_int_equal(pdx_engine_destroy(a), 0);
    ts_ok(pdx_region_deregister(ra, 0, &why), &why);
    ts_mem_close(&mem);
}

static void test_engine_needs_no_options(void **state)
{
    struct pdx_engine *engine = NULL;
    struct pdx_engine_info info;
    struct pdx_error why;
    char name[64];

    (void)state;
    ts_ok(pdx_engine_create(NULL, &engine, &why), &why);
    pdx_engine_info(engine, &info);
    (void)snprintf(name, sizeof name, "pdx-%d-", (int)getpid());
    assert_int_equal(strncmp(info.name, name, strlen(name)), 0);
    ts_text_has(info.address, "127.0.0.1:");
    assert_true(info.port > 0);
    assert_true(info.io_reason[0] != '\0');
    assert_int_equal(pdx_engine_destroy(engine), 0);
    assert_int_equal(pdx_engine_destroy(NULL), 0);
}

static void test_engine_options_have_their_defaults(void **state)
{
    struct pdx_engine_opts opts;

    (void)state;
    memset(&opts, 0xff, sizeof opts);
    pdx_engine_opts_init(&opts);
    assert_int_equal(opts.size, sizeof opts);
    assert_int_equal(opts.io, PDX_IO_AUTO);
    assert_int_equal(opts.deadline_ns, 30 * PDX_SEC);
    assert_int_equal(opts.keepalive_ns, 2 * PDX_SEC);
    assert_int_equal(opts.connect_timeout_ns, 5 * PDX_SEC);
    assert_int_equal(opts.drain_ns, 10 * PDX_MSEC);
    assert_int_equal(opts.max_transfers, 65536);
    assert_int_equal(opts.max_inbound, 65536);
    assert_int_equal(opts.log_level, PDX_LOG_INFO);
    assert_true(!opts.log && !opts.on_inbound);
}

/* A program that was built when the struct ended after `advertise`. */
static void test_engine_takes_options_of_an_older_header(void **state)
{
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *engine;

    (void)state;
    memset(&opts, 0xff, sizeof opts);
    opts.size = offsetof(struct pdx_engine_opts, io);
    opts.name = "old";
    opts.bind = NULL;
    opts.advertise = NULL;
    engine = ts_engine(&opts);
    pdx_engine_info(engine, &info);
    assert_string_equal(info.name, "old");
    assert_int_equal(pdx_engine_destroy(engine), 0);
}

static void test_engine_reports_how_it_waits(void **state)
{
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *engine = NULL;
    struct pdx_error why;
    int rc;

    (void)state;
    ts_engine_opts(&opts, "alpha");
    opts.io = PDX_IO_EPOLL;
    engine = ts_engine(&opts);
    pdx_engine_info(engine, &info);
    assert_string_equal(info.io, "epoll");
    assert_int_equal(pdx_engine_destroy(engine), 0);
    opts.io = PDX_IO_URING;
    rc = pdx_engine_create(&opts, &engine, &why);
    if (rc < 0) {
        ts_refused(rc, PDX_EUNSUPPORTED, &why);
        return;
    }
    pdx_engine_info(engine, &info);
    assert_string_equal(info.io, "io_uring");
    assert_int_equal(pdx_engine_destroy(engine), 0);
}

static void refuse(const struct pdx_engine_opts *opts, int code, const char *text)
{
    struct pdx_engine *const poison = (void *)(uintptr_t)0x10;
    struct pdx_engine *engine = poison;
    struct pdx_error why;

    if (pdx_engine_create(opts, &engine, &why) == 0)
        ts_fail(__FILE__, __LINE__, "accepted, though \"%s\" is wrong", text);
    ts_refused(why.code, code, &why);
    ts_text_has(why.text, text);
    assert_ptr_equal(engine, poison);
}

static void test_engine_refuses_bad_options_by_name(void **state)
{
    struct pdx_engine_opts opts;
    char name[PDX_NAME_MAX + 2];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
#define REFUSE(member, value, text)      \
    do {                                 \
        ts_engine_opts(&opts, "alpha");  \
        opts.member = (value);           \
        refuse(&opts, PDX_EINVAL, text); \
    } while (0)
    REFUSE(size, 1, "size");
    REFUSE(name, name, "128");
    REFUSE(name, "", "name");
    REFUSE(name, "a\nb", "name");
    REFUSE(io, (enum pdx_io)9, "io");
    REFUSE(deadline_ns, PDX_FOREVER, "deadline");
    REFUSE(deadline_ns, 0, "deadline");
    REFUSE(keepalive_ns, PDX_MSEC, "keepalive");
    REFUSE(connect_timeout_ns, 0, "connect_timeout");
    REFUSE(max_transfers, 0, "max_transfers");
    REFUSE(max_regions, 0, "max_regions");
    REFUSE(max_peers, 0, "max_peers");
    REFUSE(max_sessions, 0, "max_sessions");
    REFUSE(max_inbound, 0, "max_inbound");
    REFUSE(bind, "", "bind");
    REFUSE(bind, "127.0.0.1:70000", "70000");
    REFUSE(bind, "127.0.0.1:x", "127.0.0.1:x");
    REFUSE(bind, "[::1:0", "[::1:0");
    REFUSE(advertise, "0.0.0.0", "0.0.0.0");
    REFUSE(advertise, "[::]:7", "::");
    REFUSE(advertise, "127.0.0.1,,127.0.0.2", "advertise");
#undef REFUSE
}

static void test_engine_is_reached_by_ipv6_and_by_name(void **state)
{
    const char *const binds[] = {"[::1]:0", "localhost:0", "127.0.0.2:0"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct pdx_engine *b = engine_bound(binds[i]);
        struct pdx_engine_info info;

        pdx_engine_info(b, &info);
        assert_true(info.port > 0);
        if (i == 0)
            ts_text_has(info.address, "[::1]:");
        check_reachable(b);
        assert_int_equal(pdx_engine_destroy(b), 0);
    }
}

static void test_engine_says_which_port_is_in_use(void **state)
{
    struct pdx_engine *first = engine_bound("127.0.0.1:0");
    struct pdx_engine_info info;
    struct pdx_engine_opts opts;
    char address[128];

    (void)state;
    pdx_engine_info(first, &info);
    (void)snprintf(address, sizeof address, "%s", info.address);
    ts_engine_opts(&opts, "second");
    opts.bind = address;
    refuse(&opts, PDX_ESYS, address);
    refuse(&opts, PDX_ESYS, "in use");
    assert_int_equal(pdx_engine_destroy(first), 0);
    /* And the port is free at once. */
    check_reachable(first = ts_engine(&opts));
    assert_int_equal(pdx_engine_destroy(first), 0);
}

static void test_engine_says_which_name_is_unknown(void **state)
{
    struct pdx_engine_opts opts;

    (void)state;
    ts_engine_opts(&opts, "alpha");
    opts.bind = "no-such-host.invalid:0";
    refuse(&opts, PDX_ESYS, "no-such-host.invalid");
    opts.bind = "192.0.2.1:0"; /* TEST-NET-1: of no interface */
    refuse(&opts, PDX_ESYS, "192.0.2.1");
}

static const char *last_of(const char *list)
{
    const char *comma = strrchr(list, ',');

    return comma ? comma + 1 : list;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static void test_engine_wildcard_advertises_real_addresses(void **state)
{
    const char *const binds[] = {"0.0.0.0:0", "[::]:0"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pdx_engine *b = engine_bound(binds[i]);
        struct pdx_engine_info info;
        char port[16];

        pdx_engine_info(b, &info);
        (void)snprintf(port, sizeof port, ":%u", info.port);
        ts_text_has(info.advertised, port);
        assert_null(strstr(info.advertised, "0.0.0.0"));
        assert_null(strstr(info.advertised, "[::]"));
        assert_true(is_loopback(last_of(info.advertised)));
        check_reachable(b);
        assert_int_equal(pdx_engine_destroy(b), 0);
    }
}

static void test_engine_advertises_what_it_is_told(void **state)
{
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *b;
    char want[128];

    (void)state;
    ts_engine_opts(&opts, "beta");
    opts.bind = "0.0.0.0:0";
    opts.advertise = "localhost,[::1]:4567,127.0.0.1";
    b = ts_engine(&opts);
    pdx_engine_info(b, &info);
    (void)snprintf(want, sizeof want, "localhost:%u,[::1]:4567,127.0.0.1:%u", info.port, info.port);
    assert_string_equal(info.advertised, want);
    check_reachable(b); /* though nobody listens on the second */
    assert_int_equal(pdx_engine_destroy(b), 0);
}

static void test_engine_descriptor_fits_or_is_not_written(void **state)
{
    struct pdx_engine *engine = engine_bound("127.0.0.1:0");
    uint8_t buf[TS_DESC_MAX];
    size_t len = pdx_engine_desc(engine, NULL, 0);

    (void)state;
    assert_in_range(len, 40, sizeof buf);
    memset(buf, 0x5a, sizeof buf);
    assert_int_equal(pdx_engine_desc(engine, buf, len - 1), len);
    ts_assert_bytes(buf, 0x5a, sizeof buf);
    assert_int_equal(pdx_engine_desc(engine, buf, len), len);
    ts_assert_bytes(buf + len, 0x5a, sizeof buf - len);
    assert_int_equal(pdx_engine_destroy(engine), 0);
}

static void test_engines_of_one_name_are_told_apart(void **state)
{
    struct pdx_engine *one = engine_bound("127.0.0.1:0");
    struct pdx_engine *two = engine_bound("127.0.0.1:0");
    struct pdx_engine_info info_one;
    struct pdx_engine_info info_two;

    (void)state;
    pdx_engine_info(one, &info_one);
    pdx_engine_info(two, &info_two);
    assert_string_equal(info_one.name, info_two.name);
    assert_memory_not_equal(info_one.incarnation, info_two.incarnation, PDX_INCARNATION_LEN);
    assert_int_not_equal(info_one.port, info_two.port);
    assert_int_equal(pdx_engine_destroy(one), 0);
    assert_int_equal(pdx_engine_destroy(two), 0);
}

struct log_seen {
    atomic_int lines;
    atomic_int bad;
};

static void log_look(void *ctx, enum pdx_log_level level, const char *line)
{
    struct log_seen *seen = ctx;

    if (strchr(line, '\n') || line[0] == '\0' || level < PDX_LOG_ERROR || level > PDX_LOG_INFO)
        atomic_fetch_add(&seen->bad, 1);
    atomic_fetch_add(&seen->lines, 1);
}

static void test_engine_logs_whole_lines_up_to_its_level(void **state)
{
    static struct log_seen seen;
    struct pdx_engine_opts opts;
    struct pdx_engine *b;

    (void)state;
    ts_engine_opts(&opts, "beta");
    opts.log = log_look;
    opts.log_ctx = &seen;
    opts.log_level = PDX_LOG_INFO;
    b = ts_engine(&opts);
    check_reachable(b);
    assert_int_equal(pdx_engine_destroy(b), 0);
    assert_true(atomic_load(&seen.lines) > 0);
    assert_int_equal(atomic_load(&seen.bad), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_engine_needs_no_options),
    cmocka_unit_test(test_engine_options_have_their_defaults),
    cmocka_unit_test(test_engine_takes_options_of_an_older_header),
    cmocka_unit_test(test_engine_reports_how_it_waits),
    cmocka_unit_test(test_engine_refuses_bad_options_by_name),
    cmocka_unit_test(test_engine_is_reached_by_ipv6_and_by_name),
    cmocka_unit_test(test_engine_says_which_port_is_in_use),
    cmocka_unit_test(test_engine_says_which_name_is_unknown),
    cmocka_unit_test(test_engine_wildcard_advertises_real_addresses),
    cmocka_unit_test(test_engine_advertises_what_it_is_told),
    cmocka_unit_test(test_engine_descriptor_fits_or_is_not_written),
    cmocka_unit_test(test_engines_of_one_name_are_told_apart),
    cmocka_unit_test(test_engine_logs_whole_lines_up_to_its_level),
};

int main(void)
{
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
