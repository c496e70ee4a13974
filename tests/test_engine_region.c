/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions as objects: registration, export, deregistration.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct pdx_engine *engine;
    struct ts_mem mem;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct pdx_engine_opts opts;

    if (!f)
        return -1;
    ts_engine_opts(&opts, "alpha");
    opts.max_regions = 8;
    f->engine = ts_engine(&opts);
    ts_mem_open(&f->mem, 65536);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    (void)pdx_engine_destroy(f->engine);
    ts_mem_close(&f->mem);
    free(f);
    return 0;
}

static void test_region_tells_what_it_is(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *region = ts_region(f->engine, &f->mem, PDX_RIGHT_READ);
    struct pdx_remote remote = ts_remote(region);
    struct pdx_engine_info engine;
    struct pdx_region_info info;
    struct pdx_error why;

    pdx_region_info(region, &info);
    pdx_engine_info(f->engine, &engine);
    assert_ptr_equal(info.ptr, f->mem.p);
    assert_int_equal(info.len, f->mem.len);
    assert_int_equal(info.kind, PDX_MEM_HOST);
    assert_int_equal(info.rights, PDX_RIGHT_READ);
    assert_int_equal(info.users, 0);
    assert_int_equal(info.bytes_in + info.bytes_out, 0);
    assert_memory_equal(remote.incarnation, engine.incarnation, PDX_INCARNATION_LEN);
    assert_int_equal(remote.len, info.len);
    assert_int_equal(remote.id, info.id);
    assert_int_equal(remote.generation, info.generation);
    assert_int_equal(remote.rights, info.rights);
    assert_int_equal(remote.kind, info.kind);
    ts_ok(pdx_region_deregister(region, 0, &why), &why);
}

static void test_region_options_are_optional(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *region;
    struct pdx_region_info info;
    struct pdx_error why;

    ts_ok(pdx_region_register(f->engine, f->mem.p + 1, 1, NULL, &region, &why), &why);
    pdx_region_info(region, &info);
    assert_int_equal(info.rights, PDX_RIGHT_ALL);
    assert_int_equal(info.len, 1);
    ts_ok(pdx_region_deregister(region, 0, NULL), NULL);
    ts_ok(pdx_region_deregister(NULL, 0, NULL), NULL);
}

static void test_region_refuses_bad_arguments(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *const poison = (void *)(uintptr_t)0x10;
    struct pdx_region *region = poison;
    struct pdx_region_opts opts = PDX_REGION_OPTS_INIT;
    struct pdx_error why;
    static const struct {
        uint32_t rights;
        enum pdx_mem_kind kind;
        int code;
    } bad[] = {
        {8, PDX_MEM_HOST, PDX_EINVAL},
        {PDX_RIGHT_NONE | PDX_RIGHT_READ, PDX_MEM_HOST, PDX_EINVAL},
        {PDX_RIGHT_ALL, (enum pdx_mem_kind)9, PDX_EINVAL},
    };

    ts_refused(pdx_region_register(f->engine, NULL, 1, NULL, &region, &why), PDX_EINVAL, &why);
    ts_refused(pdx_region_register(f->engine, f->mem.p, 0, NULL, &region, &why), PDX_EINVAL, &why);
    ts_refused(pdx_region_register(f->engine, f->mem.p, SIZE_MAX, NULL, &region, &why), PDX_EINVAL,
               &why);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opts.rights = bad[i].rights;
        opts.kind = bad[i].kind;
        ts_refused(pdx_region_register(f->engine, f->mem.p, 1, &opts, &region, &why), bad[i].code,
                   &why);
    }
    assert_ptr_equal(region, poison);
}

static void test_region_count_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *regions[8];
    struct pdx_region *more;
    struct pdx_error why;

    for (int i = 0; i < 8; i++) /* overlapping ones are fine */
        regions[i] = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
    ts_refused(pdx_region_register(f->engine, f->mem.p, 1, NULL, &more, &why), PDX_EAGAIN, &why);
    ts_text_has(why.text, "8");
    ts_ok(pdx_region_deregister(regions[3], 0, &why), &why);
    regions[3] = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
    for (int i = 0; i < 8; i++)
        ts_ok(pdx_region_deregister(regions[i], 0, &why), &why);
}

/* The same memory, the same place in the table: still another region. */
static void test_region_generations_and_keys_differ(void **state)
{
    struct fixture *f = *state;
    struct pdx_remote last = {0};
    struct pdx_error why;

    for (int i = 0; i < 100; i++) {
        struct pdx_region *region = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
        struct pdx_remote now = ts_remote(region);

        assert_true(now.id != last.id || now.generation != last.generation);
        assert_memory_not_equal(now.key, last.key, PDX_KEY_LEN);
        last = now;
        ts_ok(pdx_region_deregister(region, 0, &why), &why);
    }
}

static void test_region_descriptor_fits_or_is_not_written(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *region = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
    uint8_t buf[TS_DESC_MAX];
    size_t len = pdx_region_export(region, NULL, 0);

    assert_in_range(len, 50, sizeof buf);
    memset(buf, 0x5a, sizeof buf);
    assert_int_equal(pdx_region_export(region, buf, len - 1), len);
    ts_assert_bytes(buf, 0x5a, sizeof buf);
    assert_int_equal(pdx_region_export(region, buf, len), len);
    ts_assert_bytes(buf + len, 0x5a, sizeof buf - len);
    ts_ok(pdx_region_deregister(region, 0, NULL), NULL);
}

static void test_remote_refuses_what_is_no_descriptor(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *region = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
    struct pdx_remote remote;
    struct pdx_remote untouched;
    struct pdx_error why;
    uint8_t buf[TS_DESC_MAX];
    size_t len = pdx_region_export(region, buf, sizeof buf);

    memset(&remote, 0x5a, sizeof remote);
    untouched = remote;
    for (size_t cut = 0; cut < len; cut++)
        ts_refused(pdx_remote_decode(buf, cut, &remote, &why), PDX_EPROTO, &why);
    ts_refused(pdx_remote_decode(buf, len + 1, &remote, &why), PDX_EPROTO, &why);
    len = pdx_engine_desc(f->engine, buf, sizeof buf);
    ts_refused(pdx_remote_decode(buf, len, &remote, &why), PDX_EPROTO, &why);
    ts_refused(pdx_remote_decode(NULL, 0, &remote, &why), PDX_EPROTO, &why);
    assert_memory_equal(&remote, &untouched, sizeof remote);
    ts_ok(pdx_region_deregister(region, 0, NULL), NULL);
}

static void test_region_outlives_its_engine(void **state)
{
    struct fixture *f = *state;
    struct pdx_region *region = ts_region(f->engine, &f->mem, PDX_RIGHT_ALL);
    struct pdx_region_info info;
    struct pdx_error why;

    assert_int_equal(pdx_engine_destroy(f->engine), 0);
    f->engine = NULL;
    pdx_region_info(region, &info);
    assert_int_equal(info.len, f->mem.len);
    ts_ok(pdx_region_deregister(region, PDX_SEC, &why), &why);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(test_region_tells_what_it_is),
    CASE(test_region_options_are_optional),
    CASE(test_region_refuses_bad_arguments),
    CASE(test_region_count_is_bounded),
    CASE(test_region_generations_and_keys_differ),
    CASE(test_region_descriptor_fits_or_is_not_written),
    CASE(test_remote_refuses_what_is_no_descriptor),
    CASE(test_region_outlives_its_engine),
};

int main(void)
{
    return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
