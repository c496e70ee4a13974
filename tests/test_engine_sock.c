/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP sockets: addresses as text and back, listening, connecting, options, and
 * the reset that withdraws unread data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 20000 /* ms; only failures wait this long */

static struct pdxi_sockaddr literal(const char *addr)
{
    struct pdxi_sockaddr a;
    struct pdx_error why;

    if (pdxi_sock_lookup(addr, true, &a, 1, &why) != 1)
        fail_msg("%s: %s", addr, why.text);
    return a;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void await(int fd, short events)
{
    struct pollfd pfd = {.fd = fd, .events = events};

    assert_int_equal(poll(&pfd, 1, PATIENCE), 1);
}

static void test_sock_literals_come_back_as_text(void **state)
{
    static const struct {
        const char *addr;
        const char *text; /* the canonical form */
        uint16_t port;
        bool loopback;
        bool wildcard;
    } cases[] = {
        {"10.0.0.2:7000", "10.0.0.2:7000", 7000, false, false},
        {"127.0.0.1:1", "127.0.0.1:1", 1, true, false},
        {"127.255.3.4:65535", "127.255.3.4:65535", 65535, true, false},
        {"0.0.0.0:0", "0.0.0.0:0", 0, false, true},
        {"[::1]:80", "[::1]:80", 80, true, false},
        {"[::]:80", "[::]:80", 80, false, true},
        {"[2001:DB8:0:0::5]:443", "[2001:db8::5]:443", 443, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pdxi_sockaddr a = literal(cases[i].addr);
        char text[PDXI_SOCK_TEXT];

        pdxi_sock_text(&a, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(pdxi_sock_port(&a), cases[i].port);
        assert_int_equal(pdxi_sock_is_loopback(&a), cases[i].loopback);
        assert_int_equal(pdxi_sock_is_wildcard(&a), cases[i].wildcard);
    }
}

static void test_sock_text_names_the_scope(void **state)
{
    struct pdxi_sockaddr a = {.len = sizeof a.u.v6};
    char text[PDXI_SOCK_TEXT];
    char want[PDXI_SOCK_TEXT];
    char name[IF_NAMESIZE];

    (void)state;
    a.u.v6.sin6_family = AF_INET6;
    a.u.v6.sin6_port = htons(7000);
    assert_int_equal(inet_pton(AF_INET6, "fe80::1", &a.u.v6.sin6_addr), 1);
    pdxi_sock_text(&a, text);
    assert_string_equal(text, "[fe80::1]:7000");
    a.u.v6.sin6_scope_id = UINT32_MAX; /* no interface has this number */
    pdxi_sock_text(&a, text);
    assert_string_equal(text, "[fe80::1]:7000");
    a.u.v6.sin6_scope_id = 1;
    assert_non_null(if_indextoname(1, name)); /* the loopback interface */
    pdxi_sock_text(&a, text);
    (void)snprintf(want, sizeof want, "[fe80::1%%%s]:7000", name);
    assert_string_equal(text, want);
    a = literal(text);
    assert_int_equal(a.u.v6.sin6_scope_id, 1);
}

static void test_sock_lookup_of_a_name_waits_only_when_it_may(void **state)
{
    struct pdxi_sockaddr a[4];
    struct pdx_error why = {0};
    int n;

    (void)state;
    assert_int_equal(pdxi_sock_lookup("localhost:80", true, a, 4, &why), PDX_EINVAL);
    assert_int_equal(why.code, PDX_EINVAL);
    assert_has(why.text, "localhost:80");
    n = pdxi_sock_lookup("localhost:80", false, a, 4, &why);
    assert_in_range(n, 1, 4);
    for (int i = 0; i < n; i++) {
        assert_true(pdxi_sock_is_loopback(&a[i]));
        assert_int_equal(pdxi_sock_port(&a[i]), 80);
    }
    assert_int_equal(pdxi_sock_lookup("localhost:80", false, a, 1, &why), 1); /* never more */
}

static void test_sock_lookup_says_what_is_wrong(void **state)
{
    static const struct {
        const char *addr;
        bool numeric;
        int code;
        const char *text;
    } cases[] = {
        {"10.0.0.2", true, PDX_EINVAL, "no port"},
        {"10.0.0.2:70000", true, PDX_EINVAL, "70000"},
        {"", true, PDX_EINVAL, "host:port"},
        {"::1:80", true, PDX_EINVAL, "::1:80"},
        {"[::1:80", true, PDX_EINVAL, "bracket"},
        {"10.0.0.256:1", true, PDX_EINVAL, "10.0.0.256:1"},
        /* No name has an empty label; the name service need not be asked. */
        {"a..b:1", false, PDX_ESYS, "a..b:1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pdxi_sockaddr a;
        struct pdx_error why = {0};

        assert_int_equal(pdxi_sock_lookup(cases[i].addr, cases[i].numeric, &a, 1, &why),
                         cases[i].code);
        assert_int_equal(why.code, cases[i].code);
        assert_has(why.text, cases[i].text);
    }
}

/* A connected pair over the loopback interface. */
struct fixture {
    int listener;
    int client;
    int server;
};

static int setup(void **state)
{
    static struct fixture f;
    struct pdxi_sockaddr want = literal("127.0.0.1:0");
    struct pdxi_sockaddr bound;
    struct pdx_error why;

    f.listener = pdxi_sock_listen(&want, &bound, &why);
    assert_true(f.listener >= 0);
    assert_true(pdxi_sock_is_loopback(&bound));
    assert_int_not_equal(pdxi_sock_port(&bound), 0);
    f.client = pdxi_sock_connect(&bound, "", &why);
    assert_true(f.client >= 0);
    await(f.listener, POLLIN);
    f.server = accept(f.listener, NULL, NULL);
    assert_true(f.server >= 0);
    await(f.client, POLLOUT);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    (void)close(f->listener);
    if (f->client >= 0)
        (void)close(f->client);
    (void)close(f->server);
    return 0;
}

static void test_sock_neither_waits_nor_is_inherited(void **state)
{
    struct fixture *f = *state;
    int fds[] = {f->listener, f->client};
    int nodelay = 0;
    socklen_t len = sizeof nodelay;

    for (size_t i = 0; i < 2; i++) {
        assert_true(fcntl(fds[i], F_GETFL) & O_NONBLOCK);
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(getsockopt(f->client, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len), 0);
    assert_true(nodelay);
    assert_int_equal(pdxi_sock_error(f->client), 0);
}

static void test_sock_port_in_use_is_explained(void **state)
{
    struct fixture *f = *state;
    struct pdxi_sockaddr bound = {.len = sizeof bound.u};
    struct pdxi_sockaddr untouched = {0};
    struct pdx_error why = {0};
    char text[PDXI_SOCK_TEXT];

    assert_int_equal(getsockname(f->listener, &bound.u.any, &bound.len), 0);
    assert_int_equal(pdxi_sock_listen(&bound, &untouched, &why), PDX_ESYS);
    pdxi_sock_text(&bound, text);
    assert_has(why.text, text);
    assert_has(why.text, "in use");
    assert_int_equal(untouched.len, 0);
}

static void test_sock_refused_connection_is_a_pending_error(void **state)
{
    struct pdxi_sockaddr want = literal("127.0.0.1:0");
    struct pdxi_sockaddr bound;
    struct pdx_error why;
    int fd = pdxi_sock_listen(&want, &bound, &why);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    fd = pdxi_sock_connect(&bound, "", &why);
    if (fd < 0) { /* told at once */
        assert_int_equal(fd, PDX_ESYS);
        assert_has(why.text, "127.0.0.1");
        return;
    }
    await(fd, POLLOUT);
    assert_int_equal(pdxi_sock_error(fd), ECONNREFUSED);
    assert_int_equal(pdxi_sock_error(fd), 0); /* it was cleared */
    (void)close(fd);
}

static void congestion_of(int fd, char ret_name[16])
{
    socklen_t len = 15;

    memset(ret_name, 0, 16);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, ret_name, &len), 0);
}

static void test_sock_congestion_control_falls_back_to_reno(void **state)
{
    struct fixture *f = *state;
    char systems[16];
    char name[16];

    congestion_of(f->client, systems);
    pdxi_sock_tune(f->client, "");
    congestion_of(f->client, name);
    assert_string_equal(name, systems);
    pdxi_sock_tune(f->client, "there-is-none");
    congestion_of(f->client, name);
    assert_string_equal(name, "reno");
    pdxi_sock_tune(f->server, "reno");
    congestion_of(f->server, name);
    assert_string_equal(name, "reno");
}

/* TCP would still deliver what is unread; who asks for the error first learns that it is withdrawn.
 */
static void test_sock_reset_is_seen_before_unread_data(void **state)
{
    struct fixture *f = *state;
    char byte;

    assert_int_equal(send(f->client, "x", 1, MSG_NOSIGNAL), 1);
    await(f->server, POLLIN);
    assert_int_equal(pdxi_sock_error(f->server), 0);
    pdxi_sock_reset(f->client);
    f->client = -1;
    await(f->server, POLLHUP);
    assert_int_equal(pdxi_sock_error(f->server), ECONNRESET);
    while (recv(f->server, &byte, 1, MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(send(f->server, "y", 1, MSG_NOSIGNAL), -1);
}

static void test_sock_v6_wildcard_takes_v4_too(void **state)
{
    struct pdxi_sockaddr want = literal("[::]:0");
    struct pdxi_sockaddr to = literal("127.0.0.1:0");
    struct pdxi_sockaddr bound;
    struct pdx_error why;
    int fd = pdxi_sock_listen(&want, &bound, &why);
    int client;
    int server;

    (void)state;
    if (fd < 0)
        skip(); /* no IPv6 here */
    to.u.v4.sin_port = htons(pdxi_sock_port(&bound));
    client = pdxi_sock_connect(&to, "", &why);
    assert_true(client >= 0);
    await(fd, POLLIN);
    server = accept(fd, NULL, NULL);
    assert_true(server >= 0);
    (void)close(server);
    (void)close(client);
    (void)close(fd);
}

#define SOCK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sock_literals_come_back_as_text),
        cmocka_unit_test(test_sock_text_names_the_scope),
        cmocka_unit_test(test_sock_lookup_of_a_name_waits_only_when_it_may),
        cmocka_unit_test(test_sock_lookup_says_what_is_wrong),
        SOCK_TEST(test_sock_neither_waits_nor_is_inherited),
        SOCK_TEST(test_sock_port_in_use_is_explained),
        cmocka_unit_test(test_sock_refused_connection_is_a_pending_error),
        SOCK_TEST(test_sock_congestion_control_falls_back_to_reno),
        SOCK_TEST(test_sock_reset_is_seen_before_unread_data),
        cmocka_unit_test(test_sock_v6_wildcard_takes_v4_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
