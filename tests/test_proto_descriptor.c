/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors: the documented vectors, every key missing or wrong, limits at
 * and one past, keys of later versions; and the forms of addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/proto/descriptor.h"
#include "wire_vectors.h"

/* A decoder that forgets its result, so that both kinds are tested alike. */
typedef int (*decode_fn)(const void *buf, size_t len, struct pdx_error *why);

/* Each decodes a copy of exactly its size and leaves the output alone on failure. */
static int engine_decode(const void *buf, size_t len, struct pdx_error *why)
{
    static struct pdxi_engine_desc d;
    static struct pdxi_engine_desc before;
    uint8_t *copy = malloc(len);
    int rc;

    assert_true(copy || len == 0);
    if (len > 0)
        memcpy(copy, buf, len);
    memset(&d, 0xa5, sizeof d);
    memset(&before, 0xa5, sizeof before);
    rc = pdxi_engine_desc_decode(copy, len, &d, why);
    if (rc < 0)
        assert_memory_equal(&d, &before, sizeof d);
    free(copy);
    return rc;
}

static int region_decode(const void *buf, size_t len, struct pdx_error *why)
{
    struct pdx_remote r;
    struct pdx_remote before;
    uint8_t *copy = malloc(len);
    int rc;

    assert_true(copy || len == 0);
    if (len > 0)
        memcpy(copy, buf, len);
    memset(&r, 0xa5, sizeof r);
    memset(&before, 0xa5, sizeof before);
    rc = pdx_remote_decode(copy, len, &r, why);
    if (rc < 0)
        assert_memory_equal(&r, &before, sizeof r);
    free(copy);
    return rc;
}

static void refuse(decode_fn decode, const void *buf, size_t len, int code, const char *part)
{
    struct pdx_error why = {0};

    assert_int_equal(decode(buf, len, &why), code);
    assert_int_equal(why.code, code);
    if (!strstr(why.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, why.text);
}

static void accept(decode_fn decode, const void *buf, size_t len)
{
    struct pdx_error why = {0};

    if (decode(buf, len, &why) < 0)
        fail_msg("%s", why.text);
}

static void assert_counts_from(const uint8_t *id, uint8_t first)
{
    for (uint8_t i = 0; i < 16; i++)
        assert_int_equal(id[i], first + i);
}

static void test_vector_of_an_engine_decodes_and_encodes_back(void **state)
{
    uint8_t buf[1024];
    uint8_t back[1024];
    size_t len = wire_vector("engine_desc", buf, sizeof buf);
    struct pdxi_engine_desc d;

    (void)state;
    assert_int_equal(pdxi_engine_desc_decode(buf, len, &d, NULL), 0);
    assert_string_equal(d.name, "decode-0");
    assert_counts_from(d.incarnation, 0x20);
    assert_counts_from(d.host, 0x50);
    assert_int_equal(d.naddrs, 2);
    assert_string_equal(d.addrs[0], "10.0.0.2:7000");
    assert_string_equal(d.addrs[1], "[fe80::1%eth0]:7000");
    assert_int_equal(pdxi_engine_desc_encode(&d, back, sizeof back), len);
    assert_memory_equal(back, buf, len);
}

static void test_vector_of_a_region_decodes_and_encodes_back(void **state)
{
    uint8_t buf[1024];
    uint8_t back[1024];
    size_t len = wire_vector("region_desc", buf, sizeof buf);
    struct pdx_remote r;

    (void)state;
    assert_int_equal(pdx_remote_decode(buf, len, &r, NULL), 0);
    assert_counts_from(r.incarnation, 0x20);
    assert_counts_from(r.key, 0x40);
    assert_int_equal(r.id, 7);
    assert_int_equal(r.generation, 3);
    assert_int_equal(r.len, 8589938688);
    assert_int_equal(r.rights, PDX_RIGHT_ALL);
    assert_int_equal(r.kind, PDX_MEM_HOST);
    assert_int_equal(pdxi_remote_encode(&r, back, sizeof back), len);
    assert_memory_equal(back, buf, len);
}

static void test_every_truncation_and_extension_is_refused(void **state)
{
    static const struct {
        const char *vector;
        decode_fn decode;
        decode_fn other;
        const char *found;
    } kinds[] = {
        {"engine_desc", engine_decode, region_decode, "of type \"engine\""},
        {"region_desc", region_decode, engine_decode, "of type \"region\""},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t buf[1024] = {0};
        size_t len = wire_vector(kinds[i].vector, buf, sizeof buf);

        for (size_t n = 0; n < len; n++)
            refuse(kinds[i].decode, buf, n, PDX_EPROTO, "byte");
        refuse(kinds[i].decode, buf, len + 1, PDX_EPROTO, "1 bytes follow");
        refuse(kinds[i].other, buf, len, PDX_EPROTO, kinds[i].found);
    }
}

/* A descriptor with one key changed. */
enum change_kind {
    CHANGE_NONE,
    CHANGE_OMIT,
    CHANGE_UINT,
    CHANGE_STR,
    CHANGE_BIN,
    CHANGE_ADDRS,
    CHANGE_ADD
};

struct change {
    const char *key;
    enum change_kind kind;
    uint64_t n;    /* the number, the binary's length, how many addresses or added keys */
    const char *s; /* the string, or each of the addresses */
    int code;      /* what decoding returns */
    const char *part;
};

/* Writes a key with its changed value, or leaves both out. Returns false when the key is written
 * and its usual value is to follow. */
static bool change_key(struct pdxi_packer *p, const struct change *c, const char *key)
{
    static const uint8_t bytes[64] = {1};
    bool changed = c->key && strcmp(c->key, key) == 0;

    if (changed && c->kind == CHANGE_OMIT)
        return true;
    pdxi_pack_str(p, key);
    if (!changed)
        return false;
    switch (c->kind) {
    case CHANGE_UINT:
        pdxi_pack_uint(p, c->n);
        break;
    case CHANGE_STR:
        pdxi_pack_str(p, c->s);
        break;
    case CHANGE_BIN:
        pdxi_pack_bin(p, bytes, c->n);
        break;
    case CHANGE_ADDRS:
        pdxi_pack_array(p, c->n);
        for (uint64_t i = 0; i < c->n; i++)
            pdxi_pack_str(p, c->s);
        break;
    case CHANGE_NONE:
    case CHANGE_OMIT:
    case CHANGE_ADD:
        break;
    }
    return true;
}

static void change_str(struct pdxi_packer *p, const struct change *c, const char *key,
                       const char *usual)
{
    if (!change_key(p, c, key))
        pdxi_pack_str(p, usual);
}

static void change_uint(struct pdxi_packer *p, const struct change *c, const char *key,
                        uint64_t usual)
{
    if (!change_key(p, c, key))
        pdxi_pack_uint(p, usual);
}

static void change_id(struct pdxi_packer *p, const struct change *c, const char *key)
{
    static const uint8_t id[16] = {7};

    if (!change_key(p, c, key))
        pdxi_pack_bin(p, id, sizeof id);
}

/* The map's head, and the keys that no version has yet in front of all others. */
static void change_map(struct pdxi_packer *p, const struct change *c, size_t nkeys)
{
    size_t nadded = c->kind == CHANGE_ADD ? c->n : 0;

    pdxi_pack_map(p, nkeys + nadded - (c->kind == CHANGE_OMIT ? 1 : 0));
    for (size_t i = 0; i < nadded; i++) {
        char key[2] = {(char)('A' + i), '\0'};

        pdxi_pack_str(p, key);
        pdxi_pack_array(p, 1);
        pdxi_pack_str(p, "of a later version");
    }
}

static size_t changed_engine(const struct change *c, uint8_t *buf, size_t cap)
{
    struct pdxi_packer p;

    pdxi_pack_init(&p, buf, cap);
    change_map(&p, c, 6);
    change_str(&p, c, "pdx", "engine");
    change_uint(&p, c, "v", 1);
    change_str(&p, c, "name", "n");
    change_id(&p, c, "inc");
    change_id(&p, c, "host");
    if (!change_key(&p, c, "addrs")) {
        pdxi_pack_array(&p, 1);
        pdxi_pack_str(&p, "h:1");
    }
    assert_true(pdxi_pack_fits(&p));
    return p.len;
}

static size_t changed_region(const struct change *c, uint8_t *buf, size_t cap)
{
    struct pdxi_packer p;

    pdxi_pack_init(&p, buf, cap);
    change_map(&p, c, 9);
    change_uint(&p, c, "kind", 1);
    change_uint(&p, c, "rights", 3);
    change_uint(&p, c, "len", 1);
    change_id(&p, c, "key");
    change_uint(&p, c, "gen", 1);
    change_uint(&p, c, "id", 1);
    change_id(&p, c, "inc");
    change_uint(&p, c, "v", 1);
    change_str(&p, c, "pdx", "region");
    assert_true(pdxi_pack_fits(&p));
    return p.len;
}

#define TEXT_128                                                                                   \
    "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012" \
    "345678901234567890123456789012345678"
#define TEXT_252                                                                                   \
    TEXT_128                                                                                       \
    "12345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012" \
    "34"                                                                                           \
    "567890123456789012345678901234"

static void test_engine_keys_are_checked(void **state)
{
    static const struct change cases[] = {
        {NULL, CHANGE_NONE, 0, NULL, 0, ""},
        {NULL, CHANGE_ADD, 20, NULL, 0, ""},
        {"pdx", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"pdx\""},
        {"v", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"v\""},
        {"name", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"name\""},
        {"inc", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"inc\""},
        {"host", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"host\""},
        {"addrs", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"addrs\""},
        {"pdx", CHANGE_STR, 0, "layout", PDX_EPROTO, "of type \"layout\""},
        {"pdx", CHANGE_STR, 0, "eng", PDX_EPROTO, "of type \"eng\""},
        {"pdx", CHANGE_STR, 0, "en\ngine", PDX_EPROTO, "of type \"?\""},
        {"v", CHANGE_UINT, 0, NULL, PDX_EPROTO, "\"v\""},
        {"v", CHANGE_UINT, 2, NULL, PDX_EVERSION, "version 2, this library reads version 1"},
        {"v", CHANGE_UINT, UINT64_MAX, NULL, PDX_EVERSION, "18446744073709551615"},
        {"pdx", CHANGE_UINT, 1, NULL, PDX_EPROTO, "\"pdx\""},
        {"v", CHANGE_STR, 0, "1", PDX_EPROTO, "\"v\""},
        {"inc", CHANGE_STR, 0, "sixteen letters!", PDX_EPROTO, "\"inc\""},
        {"addrs", CHANGE_STR, 0, "h:1", PDX_EPROTO, "\"addrs\""},
        {"name", CHANGE_BIN, 5, NULL, PDX_EPROTO, "\"name\""},
        {"name", CHANGE_STR, 0, "", 0, ""},
        {"name", CHANGE_STR, 0, TEXT_128, 0, ""},
        {"name", CHANGE_STR, 0, TEXT_128 "9", PDX_EPROTO, "\"name\""},
        {"name", CHANGE_STR, 0, "tab\t", PDX_EPROTO, "\"name\""},
        {"name", CHANGE_STR, 0, "cut\xe2\x82", PDX_EPROTO, "\"name\""},
        {"inc", CHANGE_BIN, 15, NULL, PDX_EPROTO, "\"inc\""},
        {"inc", CHANGE_BIN, 17, NULL, PDX_EPROTO, "\"inc\""},
        {"host", CHANGE_BIN, 0, NULL, PDX_EPROTO, "\"host\""},
        {"host", CHANGE_BIN, 17, NULL, PDX_EPROTO, "\"host\""},
        {"addrs", CHANGE_ADDRS, 0, "h:1", PDX_EPROTO, "\"addrs\""},
        {"addrs", CHANGE_ADDRS, PDXI_ADDRS_MAX, "h:1", 0, ""},
        {"addrs", CHANGE_ADDRS, PDXI_ADDRS_MAX + 1, "h:1", PDX_EPROTO, "\"addrs\""},
        {"addrs", CHANGE_ADDRS, 1, "", PDX_EPROTO, "address 0"},
        {"addrs", CHANGE_ADDRS, 1, "h", PDX_EPROTO, "\"h\", is not host:port"},
        {"addrs", CHANGE_ADDRS, 1, "h:0", PDX_EPROTO, "\"h:0\", is not host:port"},
        {"addrs", CHANGE_ADDRS, 1, "h:65535", 0, ""},
        {"addrs", CHANGE_ADDRS, 1, "h:65536", PDX_EPROTO, "\"h:65536\""},
        {"addrs", CHANGE_ADDRS, 1, "::1:5", PDX_EPROTO, "\"::1:5\""},
        {"addrs", CHANGE_ADDRS, 1, "h\x1b:5", PDX_EPROTO, "address 0 is no text"},
        {"addrs", CHANGE_ADDRS, 1, TEXT_252 ":1", 0, ""},
        {"addrs", CHANGE_ADDRS, 1, TEXT_252 ":12", 0, ""},
        {"addrs", CHANGE_ADDRS, 1, TEXT_252 ":123", PDX_EPROTO, "address 0 is no text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t buf[PDXI_ENGINE_DESC_MAX];
        size_t len = changed_engine(&cases[i], buf, sizeof buf);

        if (cases[i].code)
            refuse(engine_decode, buf, len, cases[i].code, cases[i].part);
        else
            accept(engine_decode, buf, len);
    }
}

static void test_region_keys_are_checked(void **state)
{
    static const struct change cases[] = {
        {NULL, CHANGE_NONE, 0, NULL, 0, ""},
        {NULL, CHANGE_ADD, 20, NULL, 0, ""},
        {"pdx", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"pdx\""},
        {"v", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"v\""},
        {"inc", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"inc\""},
        {"id", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"id\""},
        {"gen", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"gen\""},
        {"key", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"key\""},
        {"len", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"len\""},
        {"rights", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"rights\""},
        {"kind", CHANGE_OMIT, 0, NULL, PDX_EPROTO, "\"kind\""},
        {"v", CHANGE_UINT, 2, NULL, PDX_EVERSION, "version 2"},
        {"inc", CHANGE_BIN, 17, NULL, PDX_EPROTO, "\"inc\""},
        {"key", CHANGE_BIN, 15, NULL, PDX_EPROTO, "\"key\""},
        {"key", CHANGE_BIN, 17, NULL, PDX_EPROTO, "\"key\""},
        {"id", CHANGE_STR, 0, "1", PDX_EPROTO, "\"id\""},
        {"id", CHANGE_UINT, UINT32_MAX, NULL, 0, ""},
        {"id", CHANGE_UINT, UINT64_C(1) << 32, NULL, PDX_EPROTO, "\"id\""},
        {"gen", CHANGE_UINT, UINT32_MAX, NULL, 0, ""},
        {"gen", CHANGE_UINT, UINT64_C(1) << 32, NULL, PDX_EPROTO, "\"gen\""},
        {"len", CHANGE_UINT, 0, NULL, PDX_EPROTO, "\"len\""},
        {"len", CHANGE_UINT, UINT64_MAX, NULL, 0, ""},
        {"rights", CHANGE_UINT, 0, NULL, PDX_EPROTO, "\"rights\""},
        {"rights", CHANGE_UINT, PDX_RIGHT_READ, NULL, 0, ""},
        {"rights", CHANGE_UINT, PDX_RIGHT_WRITE, NULL, 0, ""},
        {"rights", CHANGE_UINT, PDX_RIGHT_NONE, NULL, 0, ""},
        {"rights", CHANGE_UINT, PDX_RIGHT_NONE | PDX_RIGHT_READ, NULL, PDX_EPROTO, "\"rights\""},
        {"rights", CHANGE_UINT, 8, NULL, PDX_EPROTO, "\"rights\""},
        {"kind", CHANGE_UINT, PDX_MEM_AUTO, NULL, PDX_EPROTO, "\"kind\""},
        {"kind", CHANGE_UINT, PDX_MEM_HIP, NULL, 0, ""},
        {"kind", CHANGE_UINT, PDX_MEM_HIP + 1, NULL, PDX_EPROTO, "\"kind\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t buf[PDXI_REGION_DESC_MAX];
        size_t len = changed_region(&cases[i], buf, sizeof buf);

        if (cases[i].code)
            refuse(region_decode, buf, len, cases[i].code, cases[i].part);
        else
            accept(region_decode, buf, len);
    }
}

static void test_documents_that_are_no_descriptor_are_refused(void **state)
{
    (void)state;
    refuse(engine_decode, "\x01", 1, PDX_EPROTO, "no descriptor");
    refuse(engine_decode, "\x80", 1, PDX_EPROTO, "no descriptor");
    refuse(region_decode, "\x90", 1, PDX_EPROTO, "no descriptor");
    refuse(region_decode, "\x81\xa3pdx\x01", 6, PDX_EPROTO, "no descriptor");
    assert_int_equal(pdxi_remote_unpack(NULL, NULL, NULL), PDX_EPROTO);
}

/* A descriptor of the greatest length that is read, by a key of a later version, and one more. */
static void test_length_has_a_limit(void **state)
{
    static const struct {
        decode_fn decode;
        const char *vector;
        size_t max;
    } kinds[] = {
        {engine_decode, "engine_desc", PDXI_ENGINE_DESC_MAX},
        {region_decode, "region_desc", PDXI_REGION_DESC_MAX},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t over = 0; over < 2; over++) {
            uint8_t buf[PDXI_ENGINE_DESC_MAX + 1] = {0};
            size_t len = wire_vector(kinds[i].vector, buf, sizeof buf);
            size_t bin_len = kinds[i].max + over - len - 5;

            buf[0]++; /* one more entry: "x", a binary with a length of 16 bits */
            memcpy(buf + len, "\xa1x\xc5", 3);
            buf[len + 3] = (uint8_t)(bin_len >> 8);
            buf[len + 4] = (uint8_t)bin_len;
            if (over)
                refuse(kinds[i].decode, buf, kinds[i].max + 1, PDX_EPROTO, "the limit is");
            else
                accept(kinds[i].decode, buf, kinds[i].max);
        }
    }
}

static void test_greatest_engine_descriptor_fits_its_limit(void **state)
{
    static struct pdxi_engine_desc d = {.naddrs = PDXI_ADDRS_MAX};
    static struct pdxi_engine_desc back;
    uint8_t buf[PDXI_ENGINE_DESC_MAX];
    size_t len;

    (void)state;
    memset(d.name, 'n', PDX_NAME_MAX);
    for (size_t i = 0; i < PDXI_ADDRS_MAX; i++)
        strcpy(d.addrs[i], TEXT_252 ":12");
    len = pdxi_engine_desc_encode(&d, buf, sizeof buf);
    assert_true(len <= sizeof buf);
    assert_int_equal(pdxi_engine_desc_decode(buf, len, &back, NULL), 0);
    assert_memory_equal(&back, &d, sizeof d);
}

static void test_short_buffer_is_left_alone(void **state)
{
    uint8_t vector[1024];
    uint8_t buf[1024];
    struct pdxi_engine_desc d;
    struct pdx_remote r;
    size_t len = wire_vector("engine_desc", vector, sizeof vector);

    (void)state;
    memset(buf, 0xa5, sizeof buf);
    assert_int_equal(pdxi_engine_desc_decode(vector, len, &d, NULL), 0);
    assert_int_equal(pdxi_engine_desc_encode(&d, NULL, 0), len);
    assert_int_equal(pdxi_engine_desc_encode(&d, buf, len - 1), len);
    len = wire_vector("region_desc", vector, sizeof vector);
    assert_int_equal(pdx_remote_decode(vector, len, &r, NULL), 0);
    assert_int_equal(pdxi_remote_encode(&r, NULL, 0), len);
    assert_int_equal(pdxi_remote_encode(&r, buf, len - 1), len);
    for (size_t i = 0; i < sizeof buf; i++)
        assert_int_equal(buf[i], 0xa5);
    assert_int_equal(pdxi_remote_encode(&r, buf, len), len);
    assert_memory_equal(buf, vector, len);
}

static void test_addresses_are_split(void **state)
{
    static const struct {
        const char *addr;
        const char *host;
        int port;
    } cases[] = {
        {"10.0.0.2:7000", "10.0.0.2", 7000},
        {"h:0", "h", 0},
        {"h:00080", "h", 80},
        {"node-1.a_b.example:65535", "node-1.a_b.example", 65535},
        {"h", "h", -1},
        {"127.0.0.1", "127.0.0.1", -1},
        {"[::1]:80", "::1", 80},
        {"[::]", "::", -1},
        {"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
        {"[::ffff:10.0.0.1]:9", "::ffff:10.0.0.1", 9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char host[PDXI_ADDR_MAX + 1];
        int port = -7;

        assert_int_equal(pdxi_addr_split(cases[i].addr, host, &port, NULL), 0);
        assert_string_equal(host, cases[i].host);
        assert_int_equal(port, cases[i].port);
    }
}

static void test_addresses_of_other_forms_are_refused(void **state)
{
    static const char *const cases[] = {
        "",        ":80",      "h:",        "h:x",    "h:-1",   "h:+1",       "h: 1",  "h:65536",
        "h:99999", "h:000080", "h:1:2",     "::1",    "::1:80", "[::1",       "[]",    "[]:80",
        "[::1]80", "[::1]:",   "[::1]:x",   "[h]:80", "[::1]]", "a b:80",     "h/x:1", "h\n:1",
        "h:1\n",   "[::1 ]:1", "[[::1]]:1", "h]:1",   "[:1",    "\xc3\xa9:1",
    };
    static const char long_one[] = TEXT_252 ":123";

    (void)state;
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        const char *addr = i < sizeof cases / sizeof cases[0] ? cases[i] : long_one;
        char host[PDXI_ADDR_MAX + 1] = "before";
        int port = -7;
        struct pdx_error why = {0};

        if (pdxi_addr_split(addr, host, &port, &why) != PDX_EINVAL)
            fail_msg("\"%s\" passed", addr);
        assert_string_equal(host, "before");
        assert_int_equal(port, -7);
        assert_non_null(strstr(why.text, "address"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_of_an_engine_decodes_and_encodes_back),
        cmocka_unit_test(test_vector_of_a_region_decodes_and_encodes_back),
        cmocka_unit_test(test_every_truncation_and_extension_is_refused),
        cmocka_unit_test(test_engine_keys_are_checked),
        cmocka_unit_test(test_region_keys_are_checked),
        cmocka_unit_test(test_documents_that_are_no_descriptor_are_refused),
        cmocka_unit_test(test_length_has_a_limit),
        cmocka_unit_test(test_greatest_engine_descriptor_fits_its_limit),
        cmocka_unit_test(test_short_buffer_is_left_alone),
        cmocka_unit_test(test_addresses_are_split),
        cmocka_unit_test(test_addresses_of_other_forms_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
