/* SPDX-License-Identifier: Apache-2.0
 *
 * Request traces: what is read, the sentence for a bad line, and a generator
 * that gives the same requests everywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tool/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 5}\n"

static void check_request(const struct tool_request *r, uint64_t timestamp_ms, uint32_t input,
                          uint32_t output)
{
    assert_int_equal(r->timestamp_ms, timestamp_ms);
    assert_int_equal(r->input_length, input);
    assert_int_equal(r->output_length, output);
}

static void test_trace_reads_one_object_a_line(void **state)
{
    static const char text[] =
        GOOD "\n \t\r\n"
             "{\"hash_ids\": [1, 2], \"output_length\": 0, \"input_length\": 134217728, "
             "\"timestamp\": 9007199254740992}\r\n"
             "{\"timestamp\": 12.75, \"input_length\": 1, \"output_length\": 2}";
    struct tool_trace t;

    (void)state;
    assert_int_equal(tool_trace_parse(text, sizeof text - 1, "t.jsonl", 0, &t, NULL), 0);
    assert_int_equal(t.n, 3);
    check_request(&t.requests[0], 0, 10, 5);
    check_request(&t.requests[1], UINT64_C(9007199254740992), 134217728, 0);
    check_request(&t.requests[2], 12, 1, 2);
    tool_trace_fini(&t);
    assert_null(t.requests);
}

static void test_trace_stops_at_max(void **state)
{
    static const char text[] = GOOD GOOD "this line is not looked at";
    struct tool_trace t;

    (void)state;
    assert_int_equal(tool_trace_parse(text, sizeof text - 1, "t.jsonl", 2, &t, NULL), 0);
    assert_int_equal(t.n, 2);
    tool_trace_fini(&t);
}

/* `expected` may end in "...": then more follows that is the JSON library's own. */
static void check_wrong(const char *text, const char *expected)
{
    size_t len = strlen(expected);
    struct tool_trace t = {.n = 77};
    struct pdx_error why = {0};

    assert_int_equal(tool_trace_parse(text, strlen(text), "t.jsonl", 0, &t, &why), PDX_EINVAL);
    if (len > 3 && strcmp(expected + len - 3, "...") == 0)
        assert_memory_equal(why.text, expected, len - 3);
    else
        assert_string_equal(why.text, expected);
    assert_int_equal(t.n, 77); /* untouched */
    assert_int_equal(tool_trace_parse(text, strlen(text), "t.jsonl", 0, &t, NULL), PDX_EINVAL);
}

static void test_bad_line_is_named_by_its_number(void **state)
{
    (void)state;
    check_wrong(GOOD "\nhello\n", "t.jsonl, line 3 is not JSON: column 5: ...");
    check_wrong(GOOD "{\"timestamp\": 0,\n", "t.jsonl, line 2 is not JSON: column 16: ...");
    check_wrong(GOOD "[1]\n", "t.jsonl, line 2 must be one JSON object {...}");
    check_wrong("{\"input_length\": 1, \"output_length\": 1}",
                "t.jsonl, line 1: key \"timestamp\" is missing; it must be a number from 0 to "
                "9007199254740992");
    check_wrong(GOOD "{\"timestamp\": 1, \"output_length\": 1}",
                "t.jsonl, line 2: key \"input_length\" is missing; it must be a number from 1 to "
                "134217728");
    check_wrong("{\"timestamp\": 1, \"input_length\": \"7\", \"output_length\": 1}",
                "t.jsonl, line 1: key \"input_length\" is not a number; it must be a number from "
                "1 to 134217728");
    check_wrong("{\"timestamp\": 1, \"input_length\": 0, \"output_length\": 1}",
                "t.jsonl, line 1: key \"input_length\" is out of range; it must be a number from "
                "1 to 134217728");
    check_wrong("{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1}",
                "t.jsonl, line 1: key \"timestamp\" is out of range; it must be a number from 0 "
                "to 9007199254740992");
}

static void test_huge_numbers_are_refused(void **state)
{
    (void)state;
    check_wrong("{\"timestamp\": 1, \"input_length\": 134217729, \"output_length\": 1}",
                "t.jsonl, line 1: key \"input_length\" is out of range; it must be a number from "
                "1 to 134217728");
    check_wrong("{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 9223372036854775807}",
                "t.jsonl, line 1: key \"output_length\" is out of range; it must be a number from "
                "0 to 134217728");
    check_wrong("{\"timestamp\": 1e300, \"input_length\": 1, \"output_length\": 1}",
                "t.jsonl, line 1: key \"timestamp\" is out of range; it must be a number from 0 "
                "to 9007199254740992");
    check_wrong("{\"timestamp\": 99999999999999999999, \"input_length\": 1, \"output_length\": 1}",
                "t.jsonl, line 1 is not JSON: column ...");
}

static void test_trace_without_requests_is_refused(void **state)
{
    static const char expected[] =
        "t.jsonl has no requests; it must have one JSON object a line with timestamp, "
        "input_length and output_length";

    (void)state;
    check_wrong("", expected);
    check_wrong("\n  \n\n", expected);
}

static void test_long_line_is_refused(void **state)
{
    size_t len = (64 << 10) + 1;
    char *text = malloc(len + 1);

    (void)state;
    assert_non_null(text);
    memset(text, '[', len);
    text[len] = '\0';
    check_wrong(text, "t.jsonl, line 1 is 65537 bytes long; it may have 65536");
    free(text);
}

static void test_trace_file_is_read_or_explained(void **state)
{
    struct tool_trace t;
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_trace_load("/nowhere/t.jsonl", 0, &t, &why), PDX_ESYS);
    assert_string_equal(why.text, "cannot open /nowhere/t.jsonl: No such file or directory");
}

/* ---- The generator ---- */

/* These values must never change: they are what every machine makes of the seed. */
static void test_generator_gives_the_same_requests_everywhere(void **state)
{
    struct tool_trace t;

    (void)state;
    assert_int_equal(tool_trace_generate(3, 1, 2048, 4, &t, NULL), 0);
    assert_int_equal(t.n, 3);
    check_request(&t.requests[0], 0, 4647, 113);
    check_request(&t.requests[1], 312, 1138, 774);
    check_request(&t.requests[2], 334, 899, 144);
    tool_trace_fini(&t);
}

/* Means within 5 %, a spread, and the limits: 20 000 requests of one seed are always the same. */
static void test_generator_keeps_its_means(void **state)
{
    const size_t n = 20000;
    uint64_t sum = 0;
    uint32_t least = UINT32_MAX, most = 0;
    struct tool_trace t;

    (void)state;
    assert_int_equal(tool_trace_generate(n, 42, 1000, 10, &t, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t len = t.requests[i].input_length;

        sum += len;
        least = len < least ? len : least;
        most = len > most ? len : most;
        assert_true(t.requests[i].output_length >= 1);
        assert_true(i == 0 || t.requests[i].timestamp_ms >= t.requests[i - 1].timestamp_ms);
    }
    assert_in_range(sum / n, 950, 1050);
    assert_in_range(least, 1, 100);
    assert_in_range(most, 8000, 16000);
    /* 10 requests a second: 2000 s */
    assert_in_range(t.requests[n - 1].timestamp_ms, 1900000, 2100000);
    tool_trace_fini(&t);
}

static void test_generator_depends_on_its_seed(void **state)
{
    struct tool_trace a, b;

    (void)state;
    assert_int_equal(tool_trace_generate(50, 1, 1000, 1, &a, NULL), 0);
    assert_int_equal(tool_trace_generate(50, 2, 1000, 1, &b, NULL), 0);
    assert_true(memcmp(a.requests, b.requests, 50 * sizeof *a.requests) != 0);
    tool_trace_fini(&a);
    tool_trace_fini(&b);
}

static void test_generator_names_its_limits(void **state)
{
    struct tool_trace t;
    struct pdx_error why;

    (void)state;
    assert_int_equal(tool_trace_generate(0, 1, 10, 1, &t, &why), PDX_EINVAL);
    assert_string_equal(why.text, "0 requests cannot be made; from 1 to 1048576 can");
    assert_int_equal(tool_trace_generate(1, 1, 0, 1, &t, &why), PDX_EINVAL);
    assert_string_equal(why.text,
                        "the mean input length is 0 tokens; it must be from 1 to 1048576");
    assert_int_equal(tool_trace_generate(1, 1, 1, 0, &t, &why), PDX_EINVAL);
    assert_string_equal(why.text, "the rate is 0 requests a second; it must be from 0.001 to "
                                  "1000000");
    assert_int_equal(tool_trace_generate(1, 1, 1, 1e300, &t, NULL), PDX_EINVAL);
}

/* The project's own trace is what the generator makes of seed 1. */
static void test_example_trace_is_generated(void **state)
{
    struct tool_trace file, made;
    struct pdx_error why = {0};

    (void)state;
    if (tool_trace_load(PDX_SOURCE_DIR "/examples/trace.jsonl", 0, &file, &why) != 0)
        fail_msg("%s", why.text);
    assert_int_equal(tool_trace_generate(200, 1, 2048, 4, &made, NULL), 0);
    assert_int_equal(file.n, made.n);
    for (size_t i = 0; i < made.n; i++)
        check_request(&file.requests[i], made.requests[i].timestamp_ms,
                      made.requests[i].input_length, made.requests[i].output_length);
    tool_trace_fini(&file);
    tool_trace_fini(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_reads_one_object_a_line),
        cmocka_unit_test(test_trace_stops_at_max),
        cmocka_unit_test(test_bad_line_is_named_by_its_number),
        cmocka_unit_test(test_huge_numbers_are_refused),
        cmocka_unit_test(test_trace_without_requests_is_refused),
        cmocka_unit_test(test_long_line_is_refused),
        cmocka_unit_test(test_trace_file_is_read_or_explained),
        cmocka_unit_test(test_generator_gives_the_same_requests_everywhere),
        cmocka_unit_test(test_generator_keeps_its_means),
        cmocka_unit_test(test_generator_depends_on_its_seed),
        cmocka_unit_test(test_generator_names_its_limits),
        cmocka_unit_test(test_example_trace_is_generated),
    };

    return cmocka_run_group_tests_name("tool_trace", tests, NULL, NULL);
}
