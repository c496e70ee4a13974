/* SPDX-License-Identifier: Apache-2.0
 *
 * base/check.h, base/bytes.h and the arithmetic of base/clock.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"

static void test_add_refuses_more_than_64_bits(void **state)
{
    uint64_t r = 7;

    (void)state;
    assert_true(pdxi_add_u64(UINT64_MAX - 1, 1, &r));
    assert_int_equal(r, UINT64_MAX);
    assert_true(pdxi_add_u64(0, 0, &r));
    assert_int_equal(r, 0);
    r = 7;
    assert_false(pdxi_add_u64(UINT64_MAX, 1, &r));
    assert_false(pdxi_add_u64(UINT64_MAX, UINT64_MAX, &r));
    assert_int_equal(r, 7);
}

static void test_mul_refuses_more_than_64_bits(void **state)
{
    const uint64_t half = UINT64_C(1) << 32;
    uint64_t r = 7;

    (void)state;
    assert_true(pdxi_mul_u64(half, half - 1, &r));
    assert_int_equal(r, half * (half - 1));
    assert_true(pdxi_mul_u64(0, UINT64_MAX, &r));
    assert_int_equal(r, 0);
    r = 7;
    assert_false(pdxi_mul_u64(half, half, &r));
    assert_false(pdxi_mul_u64(3, UINT64_MAX / 3 + 1, &r));
    assert_int_equal(r, 7);
}

static void test_inside_never_wraps(void **state)
{
    (void)state;
    assert_true(pdxi_inside(0, 10, 10));
    assert_true(pdxi_inside(3, 7, 10));
    assert_true(pdxi_inside(10, 0, 10));
    assert_true(pdxi_inside(0, UINT64_MAX, UINT64_MAX));
    assert_false(pdxi_inside(4, 7, 10));
    assert_false(pdxi_inside(11, 0, 10));
    assert_false(pdxi_inside(0, 11, 10));
    assert_false(pdxi_inside(UINT64_MAX, 2, 10));
    assert_false(pdxi_inside(2, UINT64_MAX, 10));
    assert_false(pdxi_inside(UINT64_MAX, UINT64_MAX, UINT64_MAX));
}

static void test_bytes_are_little_endian_at_any_alignment(void **state)
{
    static const uint8_t want[8] = {0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01};
    uint8_t buf[16];

    (void)state;
    for (size_t at = 0; at < 8; at++) {
        pdxi_put_u64(buf + at, 0x0102030405060708);
        assert_memory_equal(buf + at, want, 8);
        assert_int_equal(pdxi_get_u64(buf + at), 0x0102030405060708);
        pdxi_put_u32(buf + at, 0x05060708);
        assert_memory_equal(buf + at, want, 4);
        assert_int_equal(pdxi_get_u32(buf + at), 0x05060708);
        pdxi_put_u16(buf + at, 0x0708);
        assert_memory_equal(buf + at, want, 2);
        assert_int_equal(pdxi_get_u16(buf + at), 0x0708);
    }
}

static void test_clock_of_too_long_a_delay_is_never(void **state)
{
    uint64_t a = pdxi_now_ns();
    uint64_t b = pdxi_now_ns();

    (void)state;
    assert_true(a > 0 && b >= a);
    assert_int_equal(pdxi_after_ns(5, 6), 11);
    assert_int_equal(pdxi_after_ns(5, UINT64_MAX), UINT64_MAX);
    assert_int_equal(pdxi_after_ns(5, UINT64_MAX - 5), UINT64_MAX);
    assert_int_equal(pdxi_after_ns(5, UINT64_MAX - 6), UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_refuses_more_than_64_bits),
        cmocka_unit_test(test_mul_refuses_more_than_64_bits),
        cmocka_unit_test(test_inside_never_wraps),
        cmocka_unit_test(test_bytes_are_little_endian_at_any_alignment),
        cmocka_unit_test(test_clock_of_too_long_a_delay_is_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
