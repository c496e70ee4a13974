/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine does where io_uring is refused. Runs under deny_uring, which
 * refuses it as container runtimes do. That everything else works there is
 * shown by the whole suite under the same program (./dev nouring).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pdx/pdx.h>
#include <string.h>

static void test_engine_takes_epoll_and_says_why(void **state)
{
    struct pdx_engine *engine = NULL;
    struct pdx_engine_info info;
    struct pdx_error why;

    (void)state;
    if (pdx_engine_create(NULL, &engine, &why) < 0)
        fail_msg("%s", why.text);
    pdx_engine_info(engine, &info);
    assert_string_equal(info.io, "epoll");
    assert_non_null(strstr(info.io_reason, "io_uring"));
    assert_int_equal(pdx_engine_destroy(engine), 0);
}

static void test_engine_that_must_have_uring_is_refused(void **state)
{
    struct pdx_engine *engine = NULL;
    struct pdx_engine_opts opts;
    struct pdx_error why;

    (void)state;
    pdx_engine_opts_init(&opts);
    opts.io = PDX_IO_URING;
    assert_int_equal(pdx_engine_create(&opts, &engine, &why), PDX_EUNSUPPORTED);
    assert_null(engine);
    assert_int_equal(why.code, PDX_EUNSUPPORTED);
    assert_int_not_equal(strlen(why.text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_takes_epoll_and_says_why),
        cmocka_unit_test(test_engine_that_must_have_uring_is_refused),
    };

    return cmocka_run_group_tests_name("io_refused", tests, NULL, NULL);
}
