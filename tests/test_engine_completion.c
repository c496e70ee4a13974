/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion queues as objects. What they do with transfers is in
 * conformance_queue.c.
 */
#include "support.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static int setup(void **state)
{
    struct pdx_engine_opts opts;

    ts_engine_opts(&opts, "alpha");
    *state = ts_engine(&opts);
    return 0;
}

static int teardown(void **state)
{
    (void)pdx_engine_destroy(*state);
    return 0;
}

static void test_queue_depth_has_limits(void **state)
{
    struct pdx_cq *const poison = (void *)(uintptr_t)0x10;
    struct pdx_cq *cq = poison;
    struct pdx_error why;

    ts_refused(pdx_cq_create(*state, 0, &cq, &why), PDX_EINVAL, &why);
    ts_text_has(why.text, "depth");
    ts_refused(pdx_cq_create(*state, ((size_t)1 << 20) + 1, &cq, &why), PDX_EINVAL, &why);
    ts_refused(pdx_cq_create(*state, SIZE_MAX, &cq, &why), PDX_EINVAL, &why);
    assert_ptr_equal(cq, poison);
    ts_ok(pdx_cq_create(*state, 1, &cq, &why), &why);
    pdx_cq_destroy(cq);
    ts_ok(pdx_cq_create(*state, (size_t)1 << 20, &cq, &why), &why);
    pdx_cq_destroy(cq);
    pdx_cq_destroy(NULL);
}

static void test_queue_is_empty_at_first(void **state)
{
    struct pdx_completion done[4];
    struct pdx_cq *cq;
    struct pdx_error why;
    struct pollfd pfd;
    uint64_t before;

    ts_ok(pdx_cq_create(*state, 3, &cq, &why), &why);
    pfd = (struct pollfd){.fd = pdx_cq_fd(cq), .events = POLLIN};
    assert_true(pfd.fd >= 0);
    assert_true(fcntl(pfd.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_int_equal(pdx_cq_poll(cq, done, 4), 0);
    assert_int_equal(pdx_cq_wait(cq, done, 4, 0), PDX_ETIMEDOUT);
    before = ts_now();
    assert_int_equal(pdx_cq_wait(cq, done, 4, 10 * PDX_MSEC), PDX_ETIMEDOUT);
    assert_true(ts_now() - before >= 10 * PDX_MSEC);
    pdx_cq_destroy(cq);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_queue_depth_has_limits),
    CASE(test_queue_is_empty_at_first),
};

int main(void)
{
    return cmocka_run_group_tests_name("completion", tests, NULL, NULL);
}
