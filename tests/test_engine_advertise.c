/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses an engine's descriptor names: those of the option, the bound
 * one, or for a wildcard those of the interfaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/advertise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pdxi_sockaddr literal(const char *addr)
{
    struct pdxi_sockaddr a;

    assert_int_equal(pdxi_sock_lookup(addr, true, &a, 1, NULL), 1);
    return a;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void assert_advertised(const char *option, const char *bound, const char *want)
{
    struct pdxi_sockaddr a = literal(bound);
    struct pdxi_engine_desc d = {.naddrs = 7}; /* of an earlier use */
    struct pdx_error why;
    char *text;

    if (pdxi_advertise(option, &a, &d, &why) != 0)
        fail_msg("\"%s\": %s", option, why.text);
    text = pdxi_advertise_text(&d);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
}

static void assert_refused(const char *option, const char *part)
{
    struct pdxi_sockaddr a = literal("10.0.0.2:7000");
    struct pdxi_engine_desc d;
    struct pdx_error why = {0};

    assert_int_equal(pdxi_advertise(option, &a, &d, &why), PDX_EINVAL);
    assert_int_equal(why.code, PDX_EINVAL);
    assert_has(why.text, part);
}

static void test_advertise_takes_the_bound_address(void **state)
{
    (void)state;
    assert_advertised(NULL, "127.0.0.1:7000", "127.0.0.1:7000");
    assert_advertised(NULL, "[2001:db8::1]:7000", "[2001:db8::1]:7000");
}

static void test_advertise_takes_the_option_in_its_order(void **state)
{
    (void)state;
    assert_advertised("node7", "10.0.0.2:7000", "node7:7000");
    assert_advertised("node7:0", "10.0.0.2:7000", "node7:7000");
    assert_advertised("node7:9000,10.0.0.3,[2001:db8::1],[::1]:5,n-8.rack_2", "10.0.0.2:7000",
                      "node7:9000,10.0.0.3:7000,[2001:db8::1]:7000,[::1]:5,n-8.rack_2:7000");
    assert_advertised("a,a", "0.0.0.0:1", "a:1,a:1");
}

static void test_advertise_refuses_wildcards(void **state)
{
    (void)state;
    assert_refused("0.0.0.0", "wildcard");
    assert_refused("node7,0.0.0.0:80", "0.0.0.0:80");
    assert_refused("[::]", "wildcard");
    assert_refused("[::]:7000", "wildcard");
}

static void test_advertise_refuses_what_is_no_address(void **state)
{
    (void)state;
    assert_refused("", "expected host:port");
    assert_refused("node7,", "expected host:port");
    assert_refused("node 7", "node 7");
    assert_refused("node7:70000", "70000");
    assert_refused("[::1", "bracket");
    assert_refused("::1", "::1");
}

/* A list of as many addresses as a descriptor holds, and of one more. */
static void test_advertise_has_a_limit(void **state)
{
    char option[8 * (PDXI_ADDRS_MAX + 1)] = "n0";
    struct pdxi_sockaddr a = literal("10.0.0.2:7000");
    struct pdxi_engine_desc d;

    (void)state;
    for (int i = 1; i < PDXI_ADDRS_MAX; i++)
        (void)snprintf(option + strlen(option), sizeof option - strlen(option), ",n%d", i);
    assert_int_equal(pdxi_advertise(option, &a, &d, NULL), 0);
    assert_int_equal(d.naddrs, PDXI_ADDRS_MAX);
    assert_string_equal(d.addrs[PDXI_ADDRS_MAX - 1], "n15:7000");
    (void)strcat(option, ",more");
    assert_refused(option, "more than 16");
}

/* The longest name that fits with its port, and one character more. */
static void test_advertise_limits_each_address(void **state)
{
    char name[PDXI_ADDR_MAX + 2];
    char want[PDXI_ADDR_MAX + 8];
    size_t longest = PDXI_ADDR_MAX - strlen(":7000");

    (void)state;
    memset(name, 'n', sizeof name);
    name[longest] = '\0';
    (void)snprintf(want, sizeof want, "%s:7000", name);
    assert_advertised(name, "10.0.0.2:7000", want);
    name[longest] = 'n';
    name[longest + 1] = '\0';
    assert_refused(name, "too long");
    name[longest + 1] = 'n';
    name[PDXI_ADDR_MAX + 1] = '\0';
    assert_refused(name, "limit");
}

/* Every address is a literal with the bound port, no wildcard, and reachable from elsewhere before
 * it is loopback. Returns how many are IPv6. */
static unsigned check_interfaces(const struct pdxi_engine_desc *d, uint16_t port)
{
    bool loopback = false;
    unsigned n6 = 0;

    assert_in_range(d->naddrs, 1, PDXI_ADDRS_MAX);
    for (uint32_t i = 0; i < d->naddrs; i++) {
        struct pdxi_sockaddr a = literal(d->addrs[i]);

        assert_int_equal(pdxi_sock_port(&a), port);
        assert_false(pdxi_sock_is_wildcard(&a));
        assert_true(pdxi_sock_is_loopback(&a) || !loopback);
        loopback = pdxi_sock_is_loopback(&a);
        n6 += a.u.any.sa_family == AF_INET6;
        assert_false(a.u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.u.v6.sin6_addr));
    }
    return n6;
}

static void test_advertise_lists_the_interfaces_of_a_wildcard(void **state)
{
    struct pdxi_sockaddr v4 = literal("0.0.0.0:7000");
    struct pdxi_sockaddr v6 = literal("[::]:7001");
    struct pdxi_engine_desc d4;
    struct pdxi_engine_desc d6;

    (void)state;
    assert_int_equal(pdxi_advertise(NULL, &v4, &d4, NULL), 0);
    assert_int_equal(check_interfaces(&d4, 7000), 0); /* a v4 socket is not reached by v6 */
    assert_int_equal(pdxi_advertise(NULL, &v6, &d6, NULL), 0);
    assert_int_equal(d6.naddrs - check_interfaces(&d6, 7001), d4.naddrs);
}

/* The host's identity is that of the kernel that runs: the same each time, and the one it says. */
static void test_advertise_says_which_host_it_is(void **state)
{
    struct pdxi_sockaddr a = literal("10.0.0.2:7000");
    struct pdxi_engine_desc d[2];
    char boot_id[64] = "";
    char text[64] = "";
    size_t len = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pdxi_advertise(NULL, &a, &d[i], NULL), 0);
    assert_memory_equal(d[0].host, d[1].host, PDXI_HOST_LEN);
    if (!f)
        return;
    assert_non_null(fgets(boot_id, sizeof boot_id, f));
    (void)fclose(f);
    for (size_t i = 0; i < PDXI_HOST_LEN; i++) {
        if (len == 8 || len == 13 || len == 18 || len == 23)
            text[len++] = '-';
        len += (size_t)snprintf(text + len, sizeof text - len, "%02x", d[0].host[i]);
    }
    assert_memory_equal(boot_id, text, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advertise_takes_the_bound_address),
        cmocka_unit_test(test_advertise_takes_the_option_in_its_order),
        cmocka_unit_test(test_advertise_refuses_wildcards),
        cmocka_unit_test(test_advertise_refuses_what_is_no_address),
        cmocka_unit_test(test_advertise_has_a_limit),
        cmocka_unit_test(test_advertise_limits_each_address),
        cmocka_unit_test(test_advertise_lists_the_interfaces_of_a_wildcard),
        cmocka_unit_test(test_advertise_says_which_host_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
