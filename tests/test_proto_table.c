/* SPDX-License-Identifier: Apache-2.0
 *
 * The segment tables of WRITE and READ: the greatest one, and what the check
 * against a region finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "engine/proto/frame.h"

static void test_table_of_the_greatest_size_is_read(void **state)
{
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    struct pdxi_frame_data d = {.xfer = 1, .payload = 1000 * 3, .off = 5, .nsegs = 1000};
    struct pdxi_frame_data back;
    uint8_t *body;

    (void)state;
    assert_int_equal(pdxi_frame_data_encode(buf, PDXI_FRAME_READ, &d), PDXI_FRAME_DATA_LEN);
    for (uint32_t i = 0; i < 1000; i++)
        pdxi_frame_seg_encode(buf + 64 + (size_t)i * 16, (uint64_t)i * 7, 3);
    assert_int_equal(pdxi_get_u32(buf + 4), 56 + 16000);
    body = malloc(56 + 16000); /* of exactly its size */
    assert_non_null(body);
    memcpy(body, buf + 8, 56 + 16000);
    assert_int_equal(pdxi_frame_data_decode(body, 56 + 16000, &back, NULL), 0);
    assert_int_equal(back.off, 0);
    assert_int_equal(pdxi_frame_table_check(&back, body + 56, 999 * 7 + 3, NULL), 0);
    assert_int_equal(pdxi_frame_table_check(&back, body + 56, 999 * 7 + 2, NULL), PDX_ERANGE);
    free(body);
}

static void test_table_check_names_the_segment(void **state)
{
    static const struct {
        struct pdxi_frame_seg segs[2];
        uint64_t payload;
        int code;
        const char *part;
    } cases[] = {
        {{{0, 10}, {90, 10}}, 20, 0, ""},
        {{{0, 10}, {91, 10}}, 20, PDX_ERANGE, "segment 1 of 2, 10 bytes at offset 91"},
        {{{101, 1}, {0, 19}}, 20, PDX_ERANGE, "segment 0 of 2"},
        {{{UINT64_MAX, 10}, {0, 10}}, 20, PDX_ERANGE, "segment 0 of 2"},
        {{{10, UINT64_MAX}, {0, 10}}, 20, PDX_ERANGE, "segment 0 of 2"},
        {{{0, 0}, {0, 20}}, 20, PDX_EPROTO, "segment 0 of 2 is empty"},
        {{{0, 20}, {0, 0}}, 20, PDX_EPROTO, "segment 1 of 2 is empty"},
        {{{0, 10}, {0, 9}}, 20, PDX_EPROTO, "have 19 bytes, the payload has 20"},
        {{{0, 10}, {0, 11}}, 20, PDX_EPROTO, "first 2 of 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pdxi_frame_data d = {.xfer = 1, .payload = cases[i].payload, .nsegs = 2};
        struct pdx_error why = {0};
        uint8_t table[32];

        for (size_t j = 0; j < 2; j++)
            pdxi_frame_seg_encode(table + 16 * j, cases[i].segs[j].off, cases[i].segs[j].len);
        assert_int_equal(pdxi_frame_table_check(&d, table, 100, &why), cases[i].code);
        if (!strstr(why.text, cases[i].part))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].part, why.text);
    }
}

static void test_table_check_of_one_segment_uses_the_header(void **state)
{
    struct pdxi_frame_data d = {.xfer = 1, .payload = 10, .off = 90, .nsegs = 1};

    (void)state;
    assert_int_equal(pdxi_frame_table_check(&d, NULL, 100, NULL), 0);
    assert_int_equal(pdxi_frame_table_check(&d, NULL, 99, NULL), PDX_ERANGE);
    d.off = UINT64_MAX - 5;
    assert_int_equal(pdxi_frame_table_check(&d, NULL, 100, NULL), PDX_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_of_the_greatest_size_is_read),
        cmocka_unit_test(test_table_check_names_the_segment),
        cmocka_unit_test(test_table_check_of_one_segment_uses_the_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
