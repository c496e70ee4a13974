/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables and human numbers, as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/table.h"
#include <stdlib.h>
#include <string.h>

static void check_print(struct tool_table *t, unsigned indent, const char *expected)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    assert_non_null(f);
    assert_int_equal(tool_table_print(t, indent, f), 0);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void test_table_aligns_columns(void **state)
{
    struct tool_table t;

    (void)state;
    tool_table_init(&t, "component|>bytes|>p50|lane");
    tool_table_cell(&t, "kv");
    tool_table_cell(&t, "%d", 123456);
    tool_table_cell(&t, "%d us", 9);
    tool_table_cell(&t, "tcp");
    tool_table_cell(&t, "mamba with a long name");
    tool_table_cell(&t, "7");
    tool_table_cell(&t, "1000 us");
    tool_table_cell(&t, "tcp");
    check_print(&t, 2,
                "  component                bytes      p50  lane\n"
                "  ---------------------------------------------\n"
                "  kv                      123456     9 us  tcp\n"
                "  mamba with a long name       7  1000 us  tcp\n");
    tool_table_fini(&t);
}

static void test_table_has_rules_and_no_blanks_at_line_ends(void **state)
{
    struct tool_table t;

    (void)state;
    tool_table_init(&t, "a|b|>c");
    tool_table_cell(&t, "one");
    tool_table_cell(&t, "%s", "");
    tool_table_cell(&t, "%s", "");
    tool_table_rule(&t);
    tool_table_cell(&t, "x");
    tool_table_cell(&t, "yy");
    tool_table_cell(&t, "333");
    /* the last row is not complete */
    tool_table_cell(&t, "z");
    check_print(&t, 0,
                "a    b     c\n"
                "------------\n"
                "one\n"
                "------------\n"
                "x    yy  333\n"
                "z\n");
    tool_table_fini(&t);
}

static void test_table_without_rows_prints_its_head(void **state)
{
    struct tool_table t;

    (void)state;
    tool_table_init(&t, "only");
    check_print(&t, 0, "only\n----\n");
    tool_table_fini(&t);
    tool_table_fini(&t);
}

static void test_table_grows(void **state)
{
    struct tool_table t;
    char *text = NULL, *line;
    size_t len, lines = 0;
    FILE *f = open_memstream(&text, &len);

    (void)state;
    assert_non_null(f);
    tool_table_init(&t, "a|b|c|d|e|f|g|h|i|j|k|l|left out");
    assert_int_equal(t.ncols, TOOL_TABLE_COLS);
    for (int i = 0; i < 1000 * TOOL_TABLE_COLS; i++)
        tool_table_cell(&t, "%d", i);
    assert_int_equal(tool_table_print(&t, 0, f), 0);
    assert_int_equal(fclose(f), 0);
    tool_table_fini(&t);
    for (line = text; (line = strchr(line, '\n')) != NULL; line++)
        lines++;
    assert_int_equal(lines, 1002);
    assert_non_null(strstr(text, "11988  11989"));
    assert_non_null(strstr(text, "11999\n"));
    assert_null(strstr(text, "left out"));
    free(text);
}

static void test_size_is_binary(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1023 B"},
        {1024, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {10239, "10.0 KiB"},
        {102400, "100 KiB"},
        {1048575, "1.00 MiB"},
        {77266944, "73.7 MiB"},
        {UINT64_C(5) << 30, "5.00 GiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    char buf[TOOL_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(tool_text_size(buf, cases[i].bytes), cases[i].text);
}

static void test_rate_is_decimal(void **state)
{
    char buf[TOOL_TEXT_MAX];

    (void)state;
    assert_string_equal(tool_text_rate(buf, 0), "0.00 B/s");
    assert_string_equal(tool_text_rate(buf, 999.4), "999 B/s");
    assert_string_equal(tool_text_rate(buf, 999.6), "1.00 kB/s");
    assert_string_equal(tool_text_rate(buf, 12.34e9), "12.3 GB/s");
    assert_string_equal(tool_text_rate(buf, 9.995e6), "10.0 MB/s");
    assert_string_equal(tool_text_rate(buf, 5e15), "5000 TB/s");
}

static void test_duration_has_three_digits(void **state)
{
    char buf[TOOL_TEXT_MAX];

    (void)state;
    assert_string_equal(tool_text_duration(buf, 0), "0 ns");
    assert_string_equal(tool_text_duration(buf, 999), "999 ns");
    assert_string_equal(tool_text_duration(buf, 1000), "1.00 us");
    assert_string_equal(tool_text_duration(buf, 850000), "850 us");
    assert_string_equal(tool_text_duration(buf, 999600), "1.00 ms");
    assert_string_equal(tool_text_duration(buf, 12345678), "12.3 ms");
    assert_string_equal(tool_text_duration(buf, UINT64_C(3600000000000)), "3600 s");
}

static void test_count_is_grouped(void **state)
{
    char buf[TOOL_TEXT_MAX];

    (void)state;
    assert_string_equal(tool_text_count(buf, 0), "0");
    assert_string_equal(tool_text_count(buf, 999), "999");
    assert_string_equal(tool_text_count(buf, 1000), "1 000");
    assert_string_equal(tool_text_count(buf, 1234567), "1 234 567");
    assert_string_equal(tool_text_count(buf, UINT64_MAX), "18 446 744 073 709 551 615");
}

static void test_ranks_tell_stages_where_there_are_several(void **state)
{
    char buf[TOOL_TEXT_MAX];

    (void)state;
    assert_string_equal(tool_text_ranks(buf, 8, 1), "TP 8");
    assert_string_equal(tool_text_ranks(buf, UINT32_MAX, UINT32_MAX),
                        "TP 4294967295 x PP 4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_aligns_columns),
        cmocka_unit_test(test_table_has_rules_and_no_blanks_at_line_ends),
        cmocka_unit_test(test_table_without_rows_prints_its_head),
        cmocka_unit_test(test_table_grows),
        cmocka_unit_test(test_size_is_binary),
        cmocka_unit_test(test_rate_is_decimal),
        cmocka_unit_test(test_duration_has_three_digits),
        cmocka_unit_test(test_count_is_grouped),
        cmocka_unit_test(test_ranks_tell_stages_where_there_are_several),
    };

    return cmocka_run_group_tests_name("tool_table", tests, NULL, NULL);
}
