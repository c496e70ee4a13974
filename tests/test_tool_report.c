/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of the report, on samples whose answers are plain.
 */
#include "tool/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_samples_busy_time_counts_overlaps_once(void **state)
{
    struct tool_sample s[] = {
        {0, 500, 600}, {0, 100, 200}, {0, 150, 180}, {0, 190, 300}, {0, 600, 650},
    };

    (void)state;
    assert_int_equal(tool_samples_busy(s, 5), 200 + 150);
    assert_int_equal(tool_samples_busy(s, 0), 0);
}

static void test_samples_latency_is_the_nearest_rank(void **state)
{
    struct tool_sample s[100];

    (void)state;
    for (unsigned i = 0; i < 100; i++)
        s[i] = (struct tool_sample){1000, 1000, 1000 + (i * 37 % 100) + 1};
    assert_int_equal(tool_samples_latency(s, 100, 0.5), 50);
    assert_int_equal(tool_samples_latency(s, 100, 0.99), 99);
    assert_int_equal(tool_samples_latency(s, 100, 1), 100);
    assert_int_equal(tool_samples_latency(s, 1, 0.99), 1);
    assert_int_equal(tool_samples_latency(s, 0, 0.5), 0);
}

static void test_report_books_transfers_by_component(void **state)
{
    struct pdx_transfer_info done = {.code = PDX_DONE,
                                     .bytes_done = 1 << 20,
                                     .segments = 3,
                                     .submitted_ns = 10,
                                     .first_post_ns = 20,
                                     .completed_ns = 30};
    struct pdx_transfer_info failed = {.code = PDX_FAILED, .bytes = 100, .bytes_done = 7};
    struct tool_model m;
    struct tool_report r;
    char *text = NULL;
    size_t len = 0;
    FILE *f;
    json_t *v, *kv;

    (void)state;
    assert_int_equal(tool_model_load("Qwen3-Next-80B-A3B", 0, &m, NULL), 0);
    tool_report_init(&r, &m);
    for (int i = 0; i < 100; i++)
        tool_report_add(&r, 0, &done);
    tool_report_add(&r, 1, &failed);
    tool_report_note(&r, "%d requests cut", 5);
    assert_int_equal(tool_report_bytes(&r), (100 << 20) + 7);
    r.ended_ns = 1000;

    v = tool_report_json(&r);
    kv = json_array_get(json_object_get(v, "components"), 0);
    assert_string_equal(json_string_value(json_object_get(kv, "component")), "kv");
    assert_int_equal(json_integer_value(json_object_get(kv, "transfers")), 100);
    assert_int_equal(json_integer_value(json_object_get(kv, "segments")), 300);
    assert_int_equal(json_integer_value(json_object_get(kv, "failed")), 0);
    assert_int_equal(json_array_size(json_object_get(v, "components")), 2);
    json_decref(v);

    f = open_memstream(&text, &len);
    tool_report_print(&r, f);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "100 MiB"));
    assert_non_null(strstr(text, "mamba"));
    assert_non_null(strstr(text, "note: 5 requests cut"));
    assert_null(strstr(text, "aux")); /* it moved nothing */
    assert_null(strstr(text, " 0 ns"));
    assert_null(strstr(text, "0.00 B/s"));
    free(text);
    tool_report_fini(&r);
    tool_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_busy_time_counts_overlaps_once),
        cmocka_unit_test(test_samples_latency_is_the_nearest_rank),
        cmocka_unit_test(test_report_books_transfers_by_component),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
