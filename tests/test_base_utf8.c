/* SPDX-License-Identifier: Apache-2.0
 *
 * What counts as printable UTF-8: the borders of every row of the Unicode
 * Standard's table of well-formed sequences, and the control characters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Judges a copy of exactly its size. */
static bool printable(const char *s, size_t len)
{
    char *copy = malloc(len);
    bool ok;

    assert_true(copy || len == 0);
    if (len > 0)
        memcpy(copy, s, len);
    ok = pdxi_utf8_printable(copy, len);
    free(copy);
    return ok;
}

static void test_printable_characters_pass(void **state)
{
    static const char *const good[] = {
        "",
        "~",
        " a Z 09",
        "\xc2\xa0",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "d\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(printable(good[i], strlen(good[i])));
}

static void test_malformed_characters_are_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2 ",
        "\xc2\xc2",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xe2\x82 ",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x98",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "a\x80",
        "\xe2\x82\xac\xac",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (printable(bad[i], strlen(bad[i])))
            fail_msg("number %zu passed", i);
}

static void test_control_characters_are_refused(void **state)
{
    (void)state;
    for (int c = 0; c < 0x80; c++) {
        char s = (char)c;

        assert_int_equal(printable(&s, 1), c >= 0x20 && c != 0x7f);
    }
    for (int c = 0x80; c < 0xa0; c++) { /* C1 */
        char s[2] = {'\xc2', (char)c};

        assert_false(printable(s, 2));
    }
}

static void test_clean_replaces_bytes_and_keeps_characters_whole(void **state)
{
    static const struct {
        const char *in;
        size_t cap;
        const char *out;
    } cases[] = {
        {"plain", 5, "plain"},
        {"plain", 4, "plai"},
        {"plain", 0, ""},
        {"a\tb\x7f\xc2\x85z", 16, "a?b???z"},
        {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
        {"x\xe2\x82\xac", 3, "x"},
        {"\xf0\x9f\x98", 16, "???"},
        {"\xf0\x9f\x98", 2, "??"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *out = malloc(cases[i].cap + 1);
        size_t len;

        assert_non_null(out);
        len = pdxi_utf8_clean(out, cases[i].cap, cases[i].in);
        assert_int_equal(len, strlen(cases[i].out));
        assert_memory_equal(out, cases[i].out, len);
        assert_true(pdxi_utf8_printable(out, len));
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable_characters_pass),
        cmocka_unit_test(test_malformed_characters_are_refused),
        cmocka_unit_test(test_control_characters_are_refused),
        cmocka_unit_test(test_clean_replaces_bytes_and_keeps_characters_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
