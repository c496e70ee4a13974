/* SPDX-License-Identifier: Apache-2.0
 *
 * MessagePack: what is written comes back; what lies about its size, nests too
 * deep or uses other types is refused with the byte it was found at, before
 * anything is allocated for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/pack.h"
#include "support.h"

/* Opens a copy of exactly its size; *ret_copy is freed after close. */
static int open_copy(struct pdxi_unpacked *u, const void *buf, size_t len, uint8_t **ret_copy,
                     struct pdx_error *why)
{
    uint8_t *copy = malloc(len);
    int rc;

    assert_true(copy || len == 0);
    if (len > 0)
        memcpy(copy, buf, len);
    rc = pdxi_unpack_open(u, copy, len, why);
    *ret_copy = copy;
    return rc;
}

/* Must fail, with a sentence that has `part` in it, and without touching the output. */
static void refuse(const void *buf, size_t len, const char *part)
{
    struct pdxi_unpacked u = {.zone = &u, .root = NULL};
    struct pdx_error why = {0};
    uint8_t *copy;

    assert_int_equal(open_copy(&u, buf, len, &copy, &why), PDX_EPROTO);
    free(copy);
    assert_ptr_equal(u.zone, &u);
    assert_null(u.root);
    if (!strstr(why.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, why.text);
}

static void accept(const void *buf, size_t len)
{
    struct pdxi_unpacked u;
    struct pdx_error why = {0};
    uint8_t *copy;

    if (open_copy(&u, buf, len, &copy, &why) < 0)
        fail_msg("%s", why.text);
    pdxi_unpack_close(&u);
    free(copy);
}

static const uint64_t uints[] = {
    0, 127, 128, 255, 256, 65535, 65536, UINT32_MAX, UINT64_C(1) << 32, INT64_MAX, UINT64_MAX,
};
static const int64_t ints[] = {0,
                               1,
                               -1,
                               -32,
                               -33,
                               -128,
                               -129,
                               -32768,
                               -32769,
                               INT32_MIN,
                               (int64_t)INT32_MIN - 1,
                               INT64_MIN,
                               INT64_MAX};

#define NUINTS (sizeof uints / sizeof uints[0])
#define NINTS  (sizeof ints / sizeof ints[0])

static void write_document(struct pdxi_packer *p)
{
    static const uint8_t bin[300] = {1, 2, 3};

    pdxi_pack_map(p, 5);
    pdxi_pack_str(p, "uints");
    pdxi_pack_array(p, NUINTS);
    for (size_t i = 0; i < NUINTS; i++)
        pdxi_pack_uint(p, uints[i]);
    pdxi_pack_str(p, "ints");
    pdxi_pack_array(p, NINTS);
    for (size_t i = 0; i < NINTS; i++)
        pdxi_pack_int(p, ints[i]);
    pdxi_pack_str(p, "str");
    pdxi_pack_str(p, "thirty-two characters and a few more");
    pdxi_pack_str(p, "");
    pdxi_pack_str(p, "");
    pdxi_pack_str(p, "bin");
    pdxi_pack_array(p, 2);
    pdxi_pack_bin(p, bin, sizeof bin);
    pdxi_pack_bin(p, NULL, 0);
}

static void test_values_come_back(void **state)
{
    uint8_t buf[1024];
    struct pdxi_packer p;
    struct pdxi_unpacked u;
    const struct pdxi_value *v;
    const uint8_t *bin;
    const char *s;
    uint64_t u64;
    int64_t i64;
    size_t n;

    (void)state;
    pdxi_pack_init(&p, buf, sizeof buf);
    write_document(&p);
    assert_true(pdxi_pack_fits(&p));
    assert_int_equal(pdxi_unpack_open(&u, buf, p.len, NULL), 0);
    v = pdxi_value_get(u.root, "uints");
    assert_true(pdxi_value_array(v, &n));
    assert_int_equal(n, NUINTS);
    for (size_t i = 0; i < n; i++) {
        assert_true(pdxi_value_uint(pdxi_value_at(v, i), uints[i], &u64));
        assert_int_equal(u64, uints[i]);
        if (uints[i] > 0)
            assert_false(pdxi_value_uint(pdxi_value_at(v, i), uints[i] - 1, &u64));
    }
    v = pdxi_value_get(u.root, "ints");
    assert_true(pdxi_value_array(v, &n));
    assert_int_equal(n, NINTS);
    for (size_t i = 0; i < n; i++) {
        assert_true(pdxi_value_int(pdxi_value_at(v, i), &i64));
        assert_int_equal(i64, ints[i]);
        assert_int_equal(pdxi_value_uint(pdxi_value_at(v, i), UINT64_MAX, &u64), ints[i] >= 0);
    }
    assert_true(pdxi_value_str(pdxi_value_get(u.root, "str"), &s, &n));
    assert_int_equal(n, 36);
    assert_memory_equal(s, "thirty-two characters and a few more", n);
    assert_true(pdxi_value_str(pdxi_value_get(u.root, ""), &s, &n));
    assert_int_equal(n, 0);
    assert_non_null(s);
    v = pdxi_value_get(u.root, "bin");
    assert_true(pdxi_value_bin(pdxi_value_at(v, 0), &bin, &n));
    assert_int_equal(n, 300);
    assert_int_equal(bin[2], 3);
    assert_true(pdxi_value_bin(pdxi_value_at(v, 1), &bin, &n));
    assert_int_equal(n, 0);
    assert_non_null(bin); /* msgpack-c has NULL for empty ones, which memcpy may not be given */
    pdxi_unpack_close(&u);
    pdxi_unpack_close(&u);
}

static void test_other_types_are_no_match(void **state)
{
    /* {"a": true, "b": 2^63} */
    static const uint8_t doc[] = {0x82, 0xa1, 'a', 0xc3, 0xa1, 'b', 0xcf, 0x80,
                                  0,    0,    0,   0,    0,    0,   0};
    struct pdxi_unpacked u;
    const struct pdxi_value *values[4];
    const uint8_t *bin;
    const char *s;
    uint64_t u64 = 1;
    int64_t i64 = 1;
    size_t n = 1;

    (void)state;
    assert_int_equal(pdxi_unpack_open(&u, doc, sizeof doc, NULL), 0);
    values[0] = NULL;
    values[1] = u.root;
    values[2] = pdxi_value_get(u.root, "a");
    values[3] = pdxi_value_get(u.root, "b");
    assert_non_null(values[2]);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pdxi_value_uint(values[i], UINT64_MAX, &u64), i == 3);
        assert_false(pdxi_value_int(values[i], &i64)); /* 2^63 does not fit */
        assert_false(pdxi_value_str(values[i], &s, &n));
        assert_false(pdxi_value_bin(values[i], &bin, &n));
        assert_false(pdxi_value_array(values[i], &n));
    }
    assert_int_equal(i64, 1);
    assert_int_equal(n, 1);
    assert_null(pdxi_value_get(u.root, "c"));
    assert_null(pdxi_value_get(u.root, "aa"));
    assert_null(pdxi_value_get(u.root, ""));
    assert_null(pdxi_value_get(NULL, "a"));
    assert_null(pdxi_value_get(values[2], "a"));
    pdxi_unpack_close(&u);
}

static void test_short_buffer_is_measured_and_not_overrun(void **state)
{
    struct pdxi_packer p;
    size_t full;

    (void)state;
    pdxi_pack_init(&p, NULL, 0);
    write_document(&p);
    full = p.len;
    assert_false(pdxi_pack_fits(&p));
    for (size_t cap = 0; cap <= full; cap++) {
        uint8_t *buf = malloc(cap);

        assert_true(buf || cap == 0);
        pdxi_pack_init(&p, buf, cap);
        write_document(&p);
        assert_int_equal(p.len, full);
        assert_int_equal(pdxi_pack_fits(&p), cap == full);
        if (cap == full)
            accept(buf, cap);
        free(buf);
    }
}

static void test_every_truncation_and_extension_is_refused(void **state)
{
    uint8_t buf[1024] = {0};
    struct pdxi_packer p;

    (void)state;
    pdxi_pack_init(&p, buf, sizeof buf);
    write_document(&p);
    for (size_t len = 0; len < p.len; len++)
        refuse(buf, len, "byte");
    refuse(buf, p.len + 1, "1 bytes follow");
}

/* The first byte of every type, alone or with a body that makes the document whole. */
static void test_types_that_are_not_used_are_refused(void **state)
{
    static const uint8_t unused[] = {0xc0, 0xc1, 0xc7, 0xc8, 0xc9, 0xca,
                                     0xcb, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8};
    uint8_t doc[32] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof unused; i++) {
        doc[0] = unused[i];
        for (size_t len = 1; len < sizeof doc; len++)
            refuse(doc, len, "byte 0 is");
    }
    accept("\xc2", 1); /* false */
    accept("\xc3", 1); /* true */
    refuse("\x92\x01\xc0", 3, "byte 2 is 0xc0");
}

static void test_forms_of_every_length_are_read(void **state)
{
    static const struct {
        const char *doc;
        size_t len;
    } docs[] = {
        {"\x00", 1},
        {"\x7f", 1},
        {"\xe0", 1},
        {"\xff", 1},
        {"\xcc\x01", 2},
        {"\xcd\x00\x01", 3},
        {"\xce\0\0\0\1", 5},
        {"\xcf\0\0\0\0\0\0\0\1", 9},
        {"\xd0\x80", 2},
        {"\xd1\x80\x00", 3},
        {"\xd2\x80\0\0\0", 5},
        {"\xd3\x80\0\0\0\0\0\0\0", 9},
        {"\xa0", 1},
        {"\xa1x", 2},
        {"\xd9\1x", 3},
        {"\xda\0\1x", 4},
        {"\xdb\0\0\0\1x", 6},
        {"\xc4\1x", 3},
        {"\xc5\0\1x", 4},
        {"\xc6\0\0\0\1x", 6},
        {"\x90", 1},
        {"\x91\x01", 2},
        {"\xdc\0\1\1", 4},
        {"\xdd\0\0\0\1\1", 6},
        {"\x80", 1},
        {"\x81\xa1x\x01", 4},
        {"\xde\0\1\xa1x\1", 6},
        {"\xdf\0\0\0\1\xa1x\1", 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        accept(docs[i].doc, docs[i].len);
        for (size_t len = 0; len < docs[i].len; len++)
            refuse(docs[i].doc, len, "byte");
    }
}

static void test_nesting_has_a_limit(void **state)
{
    uint8_t doc[64];
    size_t len;

    (void)state;
    memset(doc, 0x91, sizeof doc);
    doc[PDXI_UNPACK_DEPTH] = 0x01;
    accept(doc, PDXI_UNPACK_DEPTH + 1);
    doc[PDXI_UNPACK_DEPTH] = 0x90;
    refuse(doc, PDXI_UNPACK_DEPTH + 1, "deeper than 8 levels at byte 8");
    len = 0;
    for (int i = 0; i < PDXI_UNPACK_DEPTH + 1; i++) {
        memcpy(doc + len, "\x81\xa1k", 3);
        len += 3;
    }
    doc[len] = 0x01;
    refuse(doc, len + 1, "deeper than 8 levels at byte 24");
    accept(doc + 3, len + 1 - 3);
}

static void test_keys_are_different_strings(void **state)
{
    (void)state;
    refuse("\x81\x01\x01", 3, "key at byte 1 is no string");
    refuse("\x81\xc4\x01k\x01", 5, "key at byte 1 is no string");
    refuse("\x82\xa1k\x01\xa1k\x02", 7, "key at byte 4 is in its map twice");
    refuse("\x82\xa1k\x01\xd9\x01k\x02", 8, "key at byte 4 is in its map twice");
    refuse("\x82\xa0\x01\xa0\x02", 5, "key at byte 3 is in its map twice");
    refuse("\x91\x82\xa1k\x80\xa1k\x80", 8, "key at byte 5 is in its map twice");
    accept("\x82\xa1k\x01\xa2kk\x02", 8);
    accept("\x81\xa1k\x81\xa1k\x01", 7); /* the same key in another map */
}

static void test_number_of_keys_has_a_limit(void **state)
{
    uint8_t doc[3 + 4 * (PDXI_UNPACK_KEYS_MAX + 1)] = {0xde, 0};

    (void)state;
    for (uint8_t i = 0; i <= PDXI_UNPACK_KEYS_MAX; i++)
        memcpy(doc + 3 + 4 * i,
               (uint8_t[]){0xa2, (uint8_t)('a' + i / 16), (uint8_t)('a' + i % 16), 1}, 4);
    doc[2] = PDXI_UNPACK_KEYS_MAX;
    accept(doc, sizeof doc - 4);
    doc[2] = PDXI_UNPACK_KEYS_MAX + 1;
    refuse(doc, sizeof doc, "has 129 keys");
}

/* Headers that promise the world: refused before anything is allocated. */
static void test_claims_beyond_the_input_allocate_nothing(void **state)
{
    static const struct {
        const char *doc;
        size_t len;
        const char *part;
    } docs[] = {
        {"\xdd\xff\xff\xff\xff\x01\x01\x01\x01\x01", 10, "4294967295 elements in 5 bytes"},
        {"\xdf\xff\xff\xff\xff\xa1k\x01\xa0\x01", 10, "4294967295 keys"},
        {"\xdc\xff\xff\x01\x01", 5, "65535 elements in 2 bytes"},
        {"\xde\x00\x40\xa1k\x01", 6, "cut off"},
        {"\xdb\xff\xff\xff\xffxxxxx", 10, "byte 0 is cut off"},
        {"\xc6\xff\xff\xff\xffxxxxx", 10, "byte 0 is cut off"},
        {"\x92\xdc\x00\x03\x01\x01\x01", 7, "byte 7 is cut off"},
        {"\x81\xdb\xff\xff\xff\xfek\x01", 8, "byte 1 is cut off"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof docs / sizeof docs[0]; i++) {
        struct pdxi_unpacked u;
        uint64_t calls = ts_mallocs_now().calls;

        assert_int_equal(pdxi_unpack_open(&u, docs[i].doc, docs[i].len, NULL), PDX_EPROTO);
        assert_int_equal(ts_mallocs_now().calls, calls);
        refuse(docs[i].doc, docs[i].len, docs[i].part);
    }
}

#define MEMORY_LEN ((size_t)1 << 20)

/* Fills 1 MiB with the shapes that cost most per byte. */
static size_t greedy_document(uint8_t *doc, int shape)
{
    size_t n = 0;
    uint8_t *p = doc + 5;

    for (; p + 64 < doc + MEMORY_LEN; n++) {
        if (shape == 0) { /* numbers */
            *p++ = 0x01;
        } else if (shape == 1) { /* arrays of one */
            *p++ = 0x91;
            *p++ = 0x90;
        } else if (shape == 2) { /* maps of one */
            memcpy(p, "\x81\xa0\x01", 3);
            p += 3;
        } else { /* maps of ten */
            *p++ = 0x8a;
            for (uint8_t i = 0; i < 10; i++) {
                memcpy(p, (uint8_t[]){0xa1, (uint8_t)('a' + i), 0x01}, 3);
                p += 3;
            }
        }
    }
    doc[0] = 0xdd;
    for (int i = 0; i < 4; i++)
        doc[1 + i] = (uint8_t)(n >> (24 - 8 * i));
    return (size_t)(p - doc);
}

static void test_memory_is_bounded_by_the_input(void **state)
{
    uint8_t *doc = malloc(MEMORY_LEN);

    (void)state;
    assert_non_null(doc);
    for (int shape = 0; shape < 4; shape++) {
        size_t len = greedy_document(doc, shape);
        struct pdxi_unpacked u;
        struct ts_mallocs before;
        struct ts_mallocs after;

        ts_mallocs_mark();
        before = ts_mallocs_now();
        assert_int_equal(pdxi_unpack_open(&u, doc, len, NULL), 0);
        after = ts_mallocs_now();
        if (ts_mallocs_counted()) {
            assert_true(after.peak - before.live > len); /* it was counted */
            assert_true(after.peak - before.live <= 96 * len + 16384);
        }
        pdxi_unpack_close(&u);
        assert_int_equal(ts_mallocs_now().live, before.live);
    }
    free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_back),
        cmocka_unit_test(test_other_types_are_no_match),
        cmocka_unit_test(test_short_buffer_is_measured_and_not_overrun),
        cmocka_unit_test(test_every_truncation_and_extension_is_refused),
        cmocka_unit_test(test_types_that_are_not_used_are_refused),
        cmocka_unit_test(test_forms_of_every_length_are_read),
        cmocka_unit_test(test_nesting_has_a_limit),
        cmocka_unit_test(test_keys_are_different_strings),
        cmocka_unit_test(test_number_of_keys_has_a_limit),
        cmocka_unit_test(test_claims_beyond_the_input_allocate_nothing),
        cmocka_unit_test(test_memory_is_bounded_by_the_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
