/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"

#include <errno.h>
#include <string.h>

#define EXPECT(code, class)            \
    {                                  \
        code, #code, PDX_CLASS_##class \
    }

static const struct {
    int code;
    const char *name;
    enum pdx_error_class error_class;
} expected[] = {
    EXPECT(PDX_OK, NONE),          EXPECT(PDX_EINVAL, CALLER),    EXPECT(PDX_ENOMEM, RETRY),
    EXPECT(PDX_ERANGE, CALLER),    EXPECT(PDX_EOVERFLOW, CALLER), EXPECT(PDX_EAGAIN, RETRY),
    EXPECT(PDX_ETIMEDOUT, RETRY),  EXPECT(PDX_EBUSY, RETRY),      EXPECT(PDX_ENOENT, CALLER),
    EXPECT(PDX_ENOSPC, CALLER),    EXPECT(PDX_EACCESS, CALLER),   EXPECT(PDX_EPROTO, CALLER),
    EXPECT(PDX_EVERSION, FATAL),   EXPECT(PDX_EMISMATCH, CALLER), EXPECT(PDX_ESTATE_TYPE, CALLER),
    EXPECT(PDX_ESTALE, RECONNECT), EXPECT(PDX_EPEER, RECONNECT),  EXPECT(PDX_ECANCELLED, RETRY),
    EXPECT(PDX_EDEADLINE, RETRY),  EXPECT(PDX_ESHUTDOWN, FATAL),  EXPECT(PDX_EUNSUPPORTED, FATAL),
    EXPECT(PDX_EREACTOR, CALLER),  EXPECT(PDX_ESYS, FATAL),       EXPECT(PDX_EREMOTE, RETRY),
};

#define NEXPECTED ((int)(sizeof expected / sizeof expected[0]))

static void test_error_every_code_has_a_name_and_a_class(void **state)
{
    (void)state;
    for (int i = 0; i < NEXPECTED; i++) {
        assert_int_equal(expected[i].code, -i); /* none is left out */
        assert_string_equal(pdx_err_name(-i), expected[i].name);
        assert_int_equal(pdx_err_class(-i), expected[i].error_class);
    }
}

static void test_error_unknown_codes_are_harmless(void **state)
{
    static const int codes[] = {1, INT32_MAX, -NEXPECTED, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        assert_string_equal(pdx_err_name(codes[i]), "PDX_E?");
        assert_int_equal(pdx_err_class(codes[i]), PDX_CLASS_NONE);
    }
}

static void test_error_class_names(void **state)
{
    static const char *const names[] = {"none", "caller", "retry", "reconnect", "fatal"};

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_string_equal(pdx_error_class_name((enum pdx_error_class)i), names[i]);
    assert_string_equal(pdx_error_class_name((enum pdx_error_class)77), "?");
}

static void test_error_set_fills_everything_in(void **state)
{
    struct pdx_error why;

    (void)state;
    memset(&why, 0xee, sizeof why);
    assert_int_equal(pdxi_error_set(&why, PDX_EPEER, PDX_COST_PEER, "peer %s, %d", "decode-0", 7),
                     PDX_EPEER);
    assert_int_equal(why.code, PDX_EPEER);
    assert_int_equal(why.error_class, PDX_CLASS_RECONNECT);
    assert_int_equal(why.cost, PDX_COST_PEER);
    assert_string_equal(why.text, "peer decode-0, 7");
    assert_int_equal(pdxi_refuse(&why, PDX_ERANGE, "x"), PDX_ERANGE);
    assert_int_equal(why.cost, PDX_COST_NONE);
    assert_string_equal(why.text, "x");
}

static void test_error_may_be_unwanted(void **state)
{
    (void)state;
    assert_int_equal(pdxi_refuse(NULL, PDX_ERANGE, "%d", 1), PDX_ERANGE);
    assert_int_equal(pdxi_error_sys(NULL, ENOENT, "%d", 1), PDX_ESYS);
}

static void test_error_sys_ends_with_the_systems_reason(void **state)
{
    struct pdx_error why;

    (void)state;
    assert_int_equal(pdxi_error_sys(&why, ENOENT, "opening %s", "/x"), PDX_ESYS);
    assert_string_equal(why.text, "opening /x: No such file or directory");
    assert_int_equal(why.code, PDX_ESYS);
}

static void test_error_long_text_is_cut_and_terminated(void **state)
{
    char longer[PDX_ERROR_TEXT_MAX + 100];
    struct pdx_error why;

    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)pdxi_refuse(&why, PDX_EINVAL, "%s", longer);
    assert_int_equal(strlen(why.text), PDX_ERROR_TEXT_MAX - 1);
    (void)pdxi_error_sys(&why, ENOENT, "%s", longer);
    assert_int_equal(strlen(why.text), PDX_ERROR_TEXT_MAX - 1);
}

/* Characters of 1 to 4 bytes, cut at every length: what is left are whole characters. */
static void test_text_is_cut_at_a_whole_character(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
    char buf[sizeof text + 2];

    (void)state;
    for (size_t cap = 1; cap <= sizeof text; cap++) {
        memset(buf, 'X', sizeof buf);
        assert_int_equal(pdxi_text_append(buf, cap, 0, "%s", text), whole[cap - 1]);
        if (cap > 1) {
            assert_int_equal(strlen(buf), whole[cap - 1]);
            assert_memory_equal(buf, text, whole[cap - 1]);
        }
        assert_int_equal(buf[cap], 'X'); /* not a byte beyond */
    }
}

static void test_text_append_goes_on_until_full(void **state)
{
    char buf[8] = "";
    size_t len = 0;

    (void)state;
    len = pdxi_text_append(buf, sizeof buf, len, "%s", "abc");
    assert_int_equal(len, 3);
    len = pdxi_text_append(buf, sizeof buf, len, "%d", 45);
    assert_int_equal(len, 5);
    assert_string_equal(buf, "abc45");
    len = pdxi_text_append(buf, sizeof buf, len, "6789");
    assert_int_equal(len, 7);
    assert_string_equal(buf, "abc4567");
    len = pdxi_text_append(buf, sizeof buf, len, "more");
    assert_int_equal(len, 7);
    assert_string_equal(buf, "abc4567");
}

static void test_text_upper_touches_letters_only_and_cuts(void **state)
{
    char buf[8];

    (void)state;
    pdxi_text_upper(buf, sizeof buf, "c128_Xz");
    assert_string_equal(buf, "C128_XZ");
    pdxi_text_upper(buf, 4, "swa_ring");
    assert_string_equal(buf, "SWA");
    pdxi_text_upper(buf, 1, "a");
    assert_string_equal(buf, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_every_code_has_a_name_and_a_class),
        cmocka_unit_test(test_error_unknown_codes_are_harmless),
        cmocka_unit_test(test_error_class_names),
        cmocka_unit_test(test_error_set_fills_everything_in),
        cmocka_unit_test(test_error_may_be_unwanted),
        cmocka_unit_test(test_error_sys_ends_with_the_systems_reason),
        cmocka_unit_test(test_error_long_text_is_cut_and_terminated),
        cmocka_unit_test(test_text_is_cut_at_a_whole_character),
        cmocka_unit_test(test_text_append_goes_on_until_full),
        cmocka_unit_test(test_text_upper_touches_letters_only_and_cuts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
