/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames: the documented vectors, then what must be refused - every length
 * but the right one, every field one past its limits - and what versions may
 * differ in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "any_frame.h"
#include "base/bytes.h"
#include "wire_vectors.h"

static const char *const vector_names[] = {
    "hello_control", "hello_data",  "hello_ack",      "hello_ack_refused",
    "ping",          "pong",        "ticket_req",     "ticket",
    "bye",           "write",       "write_table",    "read",
    "begin",         "notify_done", "notify_aborted", "read_data",
    "ack",           "err",
};

#define NVECTORS (sizeof vector_names / sizeof vector_names[0])

/* A vector as it arrived: the body in memory of exactly its size. */
struct arrived {
    struct pdxi_frame_prefix prefix;
    uint8_t *body; /* owned */
};

static uint8_t *body_copy(const uint8_t *body, size_t len)
{
    uint8_t *copy = malloc(len);

    assert_true(copy || len == 0);
    if (len > 0)
        memcpy(copy, body, len);
    return copy;
}

static struct arrived arrive(const char *name)
{
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    size_t len = wire_vector(name, buf, sizeof buf);
    struct arrived a;

    assert_int_equal(pdxi_frame_prefix_decode(buf, &a.prefix, NULL), 0);
    assert_int_equal(PDXI_FRAME_PREFIX_LEN + a.prefix.body_len, len);
    a.body = body_copy(buf + PDXI_FRAME_PREFIX_LEN, a.prefix.body_len);
    return a;
}

static union any_frame arrived_decode(const struct arrived *a)
{
    union any_frame f;
    struct pdx_error why = {0};

    memset(&f, 0, sizeof f);
    if (any_frame_decode(a->prefix.type, a->body, a->prefix.body_len, &f, &why) != 0)
        fail_msg("%s", why.text);
    return f;
}

static const uint8_t *table_of(const struct arrived *a)
{
    return a->body + PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN;
}

/* Decodes and must fail, with a sentence that has `part` in it, and leave the output alone. */
static void refuse(enum pdxi_frame_type type, const uint8_t *body, size_t len, const char *part)
{
    uint8_t *copy = body_copy(body, len);
    struct pdx_error why = {0};
    union any_frame f;
    union any_frame before;

    memset(&f, 0xa5, sizeof f);
    memset(&before, 0xa5, sizeof before);
    assert_int_equal(any_frame_decode(type, copy, len, &f, &why), PDX_EPROTO);
    assert_int_equal(any_frame_decode(type, copy, len, &f, NULL), PDX_EPROTO);
    assert_memory_equal(&f, &before, sizeof f);
    if (!strstr(why.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, why.text);
    free(copy);
}

static void test_vectors_encode_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < NVECTORS; i++) {
        struct arrived a = arrive(vector_names[i]);
        union any_frame f = arrived_decode(&a);
        uint8_t buf[PDXI_FRAME_HEAD_MAX];
        uint8_t expected[PDXI_FRAME_HEAD_MAX];
        size_t len = wire_vector(vector_names[i], expected, sizeof expected);

        assert_int_equal(any_frame_encode(buf, a.prefix.type, &f, table_of(&a)), len);
        assert_memory_equal(buf, expected, len);
        free(a.body);
    }
}

/* The vectors' identifiers are runs of bytes that count up. */
static void assert_counts_from(const uint8_t *id, uint8_t first)
{
    for (uint8_t i = 0; i < 16; i++)
        assert_int_equal(id[i], first + i);
}

static void test_vectors_mean_what_the_document_says(void **state)
{
    struct arrived a = arrive("hello_data");
    struct pdxi_frame_hello hello = arrived_decode(&a).hello;

    (void)state;
    assert_int_equal(hello.major, 1);
    assert_int_equal(hello.minor, 0);
    assert_int_equal(hello.kind, PDXI_HELLO_DATA);
    assert_int_equal(hello.caps, 0);
    assert_int_equal(hello.keepalive_ns, 2000000000);
    assert_counts_from(hello.incarnation, 0x10);
    assert_counts_from(hello.target, 0x20);
    assert_counts_from(hello.ticket, 0x30);
    assert_string_equal(hello.name, "prefill-0");
    free(a.body);

    a = arrive("hello_ack");
    struct pdxi_frame_hello_ack ack = arrived_decode(&a).hello_ack;

    assert_int_equal(ack.code, PDX_OK);
    assert_int_equal(ack.max_frames, 256);
    assert_int_equal(ack.keepalive_ns, 2000000000);
    assert_counts_from(ack.incarnation, 0x20);
    assert_counts_from(ack.ticket, 0x30);
    assert_string_equal(ack.name, "d\xc3\xa9"
                                  "code-0");
    assert_string_equal(ack.text, "");
    free(a.body);

    a = arrive("hello_ack_refused");
    ack = arrived_decode(&a).hello_ack;
    assert_int_equal(ack.code, PDX_EAGAIN);
    assert_string_equal(ack.text, "no room");
    free(a.body);

    a = arrive("pong");
    assert_int_equal(a.prefix.type, PDXI_FRAME_PONG);
    assert_int_equal(arrived_decode(&a).ping.stamp, 0x0123456789abcdef);
    free(a.body);

    a = arrive("bye");
    union any_frame bye = arrived_decode(&a);

    assert_int_equal(bye.bye.code, PDX_ESHUTDOWN);
    assert_string_equal(bye.bye.text, "closing");
    free(a.body);
}

static void test_vectors_of_data_mean_what_the_document_says(void **state)
{
    struct arrived a = arrive("write");
    struct pdxi_frame_data data = arrived_decode(&a).data;

    (void)state;
    assert_int_equal(a.prefix.type, PDXI_FRAME_WRITE);
    assert_int_equal(data.xfer, 9);
    assert_int_equal(data.payload, 4096);
    assert_int_equal(data.off, 65536);
    assert_int_equal(data.region_id, 7);
    assert_int_equal(data.region_generation, 3);
    assert_int_equal(data.nsegs, 1);
    assert_counts_from(data.key, 0x40);
    free(a.body);

    a = arrive("write_table");
    data = arrived_decode(&a).data;
    assert_int_equal(data.nsegs, 2);
    assert_int_equal(pdxi_frame_seg_decode(table_of(&a), 1).off, UINT64_C(1) << 33);
    assert_int_equal(pdxi_frame_seg_decode(table_of(&a), 1).len, 256);
    assert_int_equal(pdxi_frame_table_check(&data, table_of(&a), UINT64_MAX, NULL), 0);
    free(a.body);

    a = arrive("notify_done");
    union any_frame f = arrived_decode(&a);

    assert_int_equal(f.notify.xfer, 9);
    assert_int_equal(f.notify.id, 77);
    assert_int_equal(f.notify.outcome, PDX_INBOUND_DONE);
    assert_int_equal(f.notify.err, PDX_OK);
    assert_int_equal(f.notify.payload_len, 5);
    assert_memory_equal(f.notify.payload, "ready", 5);
    free(a.body);

    a = arrive("notify_aborted");
    f = arrived_decode(&a);
    assert_int_equal(f.notify.outcome, PDX_INBOUND_ABORTED);
    assert_int_equal(f.notify.err, PDX_ECANCELLED);
    assert_string_equal(f.notify.text, "cancelled by the caller");
    free(a.body);

    a = arrive("read_data");
    f = arrived_decode(&a);
    assert_int_equal(f.read_data.seq, 2);
    assert_int_equal(f.read_data.payload, 512);
    free(a.body);

    a = arrive("err");
    f = arrived_decode(&a);
    assert_int_equal(f.err.seq, 4);
    assert_int_equal(f.err.code, PDX_EACCESS);
    assert_string_equal(f.err.text, "wrong key");
    free(a.body);
}

static void test_bodies_of_every_other_length_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < NVECTORS; i++) {
        struct arrived a = arrive(vector_names[i]);
        uint8_t longer[PDXI_FRAME_HEAD_MAX] = {0};

        if (a.prefix.type != PDXI_FRAME_TICKET_REQ) {
            for (size_t len = 0; len < a.prefix.body_len; len++)
                refuse(a.prefix.type, a.body, len, "");
            memcpy(longer, a.body, a.prefix.body_len);
            refuse(a.prefix.type, longer, a.prefix.body_len + 1, "");
        }
        free(a.body);
    }
}

/* The least and the greatest body of each type, as doc/wire.md has them. */
static const struct {
    enum pdxi_frame_type type;
    uint32_t min;
    uint32_t max;
} body_limits[] = {
    {PDXI_FRAME_HELLO, 4, 1024}, {PDXI_FRAME_HELLO_ACK, 8, 1024}, {PDXI_FRAME_PING, 8, 8},
    {PDXI_FRAME_PONG, 8, 8},     {PDXI_FRAME_TICKET_REQ, 0, 0},   {PDXI_FRAME_TICKET, 16, 16},
    {PDXI_FRAME_BYE, 6, 261},    {PDXI_FRAME_WRITE, 56, 16056},   {PDXI_FRAME_READ, 56, 16056},
    {PDXI_FRAME_BEGIN, 16, 16},  {PDXI_FRAME_NOTIFY, 26, 1305},   {PDXI_FRAME_READ_DATA, 16, 16},
    {PDXI_FRAME_ACK, 8, 8},      {PDXI_FRAME_ERR, 14, 269},
};

#define NTYPES (sizeof body_limits / sizeof body_limits[0])

static int prefix_decode(uint16_t magic, unsigned type, unsigned flags, uint32_t body_len,
                         struct pdxi_frame_prefix *ret)
{
    uint8_t buf[PDXI_FRAME_PREFIX_LEN];
    struct pdx_error why = {0};
    int rc;

    pdxi_put_u16(buf, magic);
    buf[2] = (uint8_t)type;
    buf[3] = (uint8_t)flags;
    pdxi_put_u32(buf + 4, body_len);
    rc = pdxi_frame_prefix_decode(buf, ret, &why);
    assert_int_equal(why.code, rc);
    assert_int_equal(why.text[0] != '\0', rc != 0);
    return rc;
}

static void test_prefix_limits_hold_for_every_type(void **state)
{
    struct pdxi_frame_prefix p;

    (void)state;
    for (size_t i = 0; i < NTYPES; i++) {
        enum pdxi_frame_type type = body_limits[i].type;
        uint32_t min = body_limits[i].min;
        uint32_t max = body_limits[i].max;

        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0xff, min, &p), 0);
        assert_int_equal(p.type, type);
        assert_int_equal(p.flags, 0xff);
        assert_int_equal(p.body_len, min);
        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0, max, &p), 0);
        assert_int_equal(p.body_len, max);
        assert_true(max <= PDXI_FRAME_BODY_MAX);
        if (min > 0)
            assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0, min - 1, &p), PDX_EPROTO);
        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0, max + 1, &p), PDX_EPROTO);
        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0, UINT32_MAX, &p), PDX_EPROTO);
        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC ^ 0x100, type, 0, min, &p), PDX_EPROTO);
        assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC ^ 1, type, 0, min, &p), PDX_EPROTO);
    }
}

static void test_prefix_of_unknown_type_is_refused(void **state)
{
    struct pdxi_frame_prefix p;

    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        bool known = false;

        for (size_t i = 0; i < NTYPES; i++)
            known = known || body_limits[i].type == type;
        if (known) {
            assert_string_not_equal(pdxi_frame_type_name((enum pdxi_frame_type)type), "?");
        } else {
            assert_int_equal(prefix_decode(PDXI_FRAME_MAGIC, type, 0, 0, &p), PDX_EPROTO);
            assert_string_equal(pdxi_frame_type_name((enum pdxi_frame_type)type), "?");
        }
    }
}

/* A vector with one field of its body changed. */
struct bad_field {
    const char *vector;
    size_t off;
    size_t size;
    uint64_t value;
    const char *part; /* of the sentence; NULL: the value is accepted */
};

static const struct bad_field bad_fields[] = {
    {"hello_control", 4, 2, 0, "kind is 0"},
    {"hello_control", 4, 2, 3, "kind is 3"},
    {"hello_control", 52, 1, 1, "ticket"},
    {"hello_control", 67, 1, 1, "ticket"},
    {"hello_control", 6, 2, 8, "fields need"},
    {"hello_control", 6, 2, 0xffff, "fields need"},
    {"hello_control", 8, 4, 0xffffffff, NULL},
    {"hello_control", 68, 1, 0, "name"},
    {"hello_control", 68, 1, '\n', "name"},
    {"hello_control", 68, 1, 0x7f, "name"},
    {"hello_control", 76, 1, 0xc3, "name"},
    {"hello_ack", 4, 4, 1, "code 1"},
    {"hello_ack", 4, 4, (uint32_t)PDX_EINVAL, "code -1"},
    {"hello_ack", 4, 4, (uint32_t)PDX_EACCESS, NULL},
    {"hello_ack", 12, 4, 0, "max_frames"},
    {"hello_ack", 12, 4, 1, NULL},
    {"hello_ack", 56, 2, 10, "fields need"},
    {"hello_ack", 58, 2, 1, "fields need"},
    {"hello_ack", 62, 1, 0x20, "name"}, /* a continuation byte on its own stays behind it */
    {"hello_ack_refused", 60, 1, 0x1b, "text"},
    {"hello_ack_refused", 12, 4, 0, NULL},
    {"bye", 0, 4, 0, NULL},
    {"bye", 0, 4, 1, "code 1"},
    {"bye", 0, 4, (uint32_t)PDX_EREMOTE, NULL},
    {"bye", 0, 4, (uint32_t)(PDX_EREMOTE - 1), "code -24"},
    {"bye", 4, 2, 6, "fields need"},
    {"bye", 6, 1, 0x80, "text"},
    {"write", 0, 8, 0, "xfer"},
    {"write", 8, 8, 0, "payload of 0"},
    {"write", 8, 8, 1, NULL},
    {"write", 8, 8, PDXI_FRAME_PAYLOAD_MAX, NULL},
    {"write", 8, 8, PDXI_FRAME_PAYLOAD_MAX + 1, "67108865 bytes"},
    {"write", 16, 8, UINT64_MAX, NULL},
    {"write", 32, 4, 0, "nsegs is 0"},
    {"write", 32, 4, 2, "nsegs 2 needs"},
    {"write", 36, 4, 1, "not 0"},
    {"write", 36, 4, 0x80000000, "not 0"},
    {"write_table", 16, 8, 1, "beside a table"},
    {"write_table", 32, 4, 1, "nsegs 1 needs"},
    {"write_table", 32, 4, 3, "nsegs 3 needs"},
    {"write_table", 32, 4, PDXI_FRAME_SEGS_MAX + 1, "nsegs is 1001"},
    {"write_table", 32, 4, 0xffffffff, "nsegs is 4294967295"},
    {"write_table", 8, 8, 1, "payload of 1 bytes for 2"},
    {"begin", 0, 8, 0, "xfer"},
    {"begin", 8, 8, 0, NULL},
    {"notify_done", 0, 8, 0, NULL},
    {"notify_done", 16, 4, (uint32_t)PDX_EPEER, "outcome 2 with"},
    {"notify_done", 20, 2, PDX_INBOUND_IN_PROGRESS, "outcome is 1"},
    {"notify_done", 20, 2, 5, "outcome is 5"},
    {"notify_done", 20, 2, 0x102, "outcome is 258"},
    {"notify_done", 20, 2, PDX_INBOUND_FAILED, "outcome 3 with"},
    {"notify_done", 22, 2, 4, "fields need"},
    {"notify_done", 24, 2, 1, "fields need"},
    {"notify_aborted", 0, 8, 0, "no transfer"},
    {"notify_aborted", 16, 4, 0, "outcome 4 with"},
    {"notify_aborted", 16, 4, 5, "code 5"},
    {"notify_aborted", 16, 4, (uint32_t)(PDX_EREMOTE - 1), "code -24"},
    {"notify_aborted", 20, 2, PDX_INBOUND_FAILED, NULL},
    {"notify_aborted", 26, 1, '\r', "text"},
    {"read_data", 0, 8, 0, "seq"},
    {"read_data", 8, 8, 0, "payload of 0"},
    {"read_data", 8, 8, PDXI_FRAME_PAYLOAD_MAX, NULL},
    {"read_data", 8, 8, PDXI_FRAME_PAYLOAD_MAX + 1, "67108865 bytes"},
    {"ack", 0, 8, 0, "seq"},
    {"ack", 0, 8, UINT64_MAX, NULL},
    {"err", 0, 8, 0, "seq"},
    {"err", 8, 4, 0, "code is 0"},
    {"err", 8, 4, 7, "code 7"},
    {"err", 12, 2, 8, "fields need"},
    {"err", 14, 1, 0xff, "text"},
};

static void test_fields_are_refused_one_past_their_limits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_fields / sizeof bad_fields[0]; i++) {
        const struct bad_field *bad = &bad_fields[i];
        struct arrived a = arrive(bad->vector);
        uint64_t value = PDXI_LE64(bad->value);

        memcpy(a.body + bad->off, &value, bad->size);
        if (bad->part)
            refuse(a.prefix.type, a.body, a.prefix.body_len, bad->part);
        else
            (void)arrived_decode(&a);
        free(a.body);
    }
}

static void test_hello_of_another_major_is_read_up_to_its_version(void **state)
{
    const uint8_t hello[5] = {2, 0, 7, 0, 0xff};
    const uint8_t ack[9] = {0, 0, 9, 0, 0xf4, 0xff, 0xff, 0xff, 0xff};
    struct pdxi_frame_hello h;
    struct pdxi_frame_hello_ack k;

    (void)state;
    for (size_t len = 0; len <= sizeof hello; len++) {
        uint8_t *copy = body_copy(hello, len);

        assert_int_equal(pdxi_frame_hello_decode(copy, len, &h, NULL), len < 4 ? PDX_EPROTO : 0);
        free(copy);
    }
    assert_int_equal(h.major, 2);
    assert_int_equal(h.minor, 7);
    assert_string_equal(h.name, "");
    for (size_t len = 0; len <= sizeof ack; len++) {
        uint8_t *copy = body_copy(ack, len);

        assert_int_equal(pdxi_frame_hello_ack_decode(copy, len, &k, NULL),
                         len < 8 ? PDX_EPROTO : 0);
        free(copy);
    }
    assert_int_equal(k.major, 0);
    assert_int_equal(k.minor, 9);
    assert_int_equal(k.code, PDX_EVERSION);
    assert_int_equal(k.max_frames, 0);
}

static void test_hello_of_a_higher_minor_may_be_longer(void **state)
{
    static const char *const names[] = {"hello_control", "hello_ack"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct arrived a = arrive(names[i]);
        uint8_t body[PDXI_FRAME_HELLO_MAX + 1];
        union any_frame f;
        size_t lens[] = {a.prefix.body_len, a.prefix.body_len + 1, PDXI_FRAME_HELLO_MAX};

        memset(body, 0xee, sizeof body);
        memcpy(body, a.body, a.prefix.body_len);
        pdxi_put_u16(body + 2, PDXI_PROTO_MINOR + 1);
        for (size_t j = 0; j < 3; j++) {
            assert_int_equal(any_frame_decode(a.prefix.type, body, lens[j], &f, NULL), 0);
            assert_string_equal(i == 0 ? f.hello.name : f.hello_ack.name, i == 0 ? "prefill-0"
                                                                                 : "d\xc3\xa9"
                                                                                   "code-0");
        }
        refuse(a.prefix.type, body, a.prefix.body_len - 1, "fields need");
        refuse(a.prefix.type, body, PDXI_FRAME_HELLO_MAX + 1, "fields need");
        pdxi_put_u16(body + 2, PDXI_PROTO_MINOR);
        refuse(a.prefix.type, body, a.prefix.body_len + 1, "fields need");
        free(a.body);
    }
}

static void test_names_and_texts_fit_up_to_their_limits(void **state)
{
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    struct pdxi_frame_hello_ack k = {.major = 1, .max_frames = 1};
    struct pdxi_frame_hello_ack back;
    size_t len;

    (void)state;
    memset(k.name, 'n', PDX_NAME_MAX);
    memset(k.text, 't', PDXI_FRAME_TEXT_MAX);
    len = pdxi_frame_hello_ack_encode(buf, &k);
    assert_int_equal(len, 8 + 60 + 128 + 255);
    assert_int_equal(pdxi_frame_hello_ack_decode(buf + 8, len - 8, &back, NULL), 0);
    assert_string_equal(back.name, k.name);
    assert_string_equal(back.text, k.text);
    pdxi_put_u16(buf + 8 + 56, PDX_NAME_MAX + 1);
    pdxi_put_u16(buf + 8 + 58, PDXI_FRAME_TEXT_MAX - 1);
    refuse(PDXI_FRAME_HELLO_ACK, buf + 8, len - 8, "name is 129 bytes");
    pdxi_put_u16(buf + 8 + 56, PDX_NAME_MAX - 1);
    pdxi_put_u16(buf + 8 + 58, PDXI_FRAME_TEXT_MAX + 1);
    refuse(PDXI_FRAME_HELLO_ACK, buf + 8, len - 8, "text is 256 bytes");
}

static void test_texts_that_would_be_refused_are_cleaned(void **state)
{
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    struct pdxi_frame_err e = {.seq = 1, .code = PDX_ESYS};
    struct pdxi_frame_err back;
    size_t len;

    (void)state;
    /* A newline, a lone continuation byte, an overlong '/', a surrogate, a cut character. */
    strcpy(e.text, "a\nb\x80 \xc0\xaf \xed\xa0\x80 \xe2\x82\xac \xf0\x9f");
    len = pdxi_frame_err_encode(buf, &e);
    assert_int_equal(pdxi_frame_err_decode(buf + 8, len - 8, &back, NULL), 0);
    assert_string_equal(back.text, "a?b? ?? ??? \xe2\x82\xac ??");
}

static void test_notify_payload_has_a_limit(void **state)
{
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    uint8_t payload[PDX_NOTIFY_MAX];
    struct pdxi_frame_notify n = {
        .id = 1, .outcome = PDX_INBOUND_DONE, .payload_len = PDX_NOTIFY_MAX, .payload = payload};
    struct pdxi_frame_notify back;
    size_t len;

    (void)state;
    memset(payload, 0x5a, sizeof payload);
    memset(n.text, 't', PDXI_FRAME_TEXT_MAX);
    len = pdxi_frame_notify_encode(buf, &n);
    assert_int_equal(pdxi_frame_notify_decode(buf + 8, len - 8, &back, NULL), 0);
    assert_int_equal(back.payload_len, PDX_NOTIFY_MAX);
    assert_memory_equal(back.payload, payload, PDX_NOTIFY_MAX);
    assert_string_equal(back.text, n.text);
    pdxi_put_u16(buf + 8 + 22, PDX_NOTIFY_MAX + 1);
    pdxi_put_u16(buf + 8 + 24, PDXI_FRAME_TEXT_MAX - 1);
    refuse(PDXI_FRAME_NOTIFY, buf + 8, len - 8, "payload of 1025");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_encode_back),
        cmocka_unit_test(test_vectors_mean_what_the_document_says),
        cmocka_unit_test(test_vectors_of_data_mean_what_the_document_says),
        cmocka_unit_test(test_bodies_of_every_other_length_are_refused),
        cmocka_unit_test(test_prefix_limits_hold_for_every_type),
        cmocka_unit_test(test_prefix_of_unknown_type_is_refused),
        cmocka_unit_test(test_fields_are_refused_one_past_their_limits),
        cmocka_unit_test(test_hello_of_another_major_is_read_up_to_its_version),
        cmocka_unit_test(test_hello_of_a_higher_minor_may_be_longer),
        cmocka_unit_test(test_names_and_texts_fit_up_to_their_limits),
        cmocka_unit_test(test_texts_that_would_be_refused_are_cleaned),
        cmocka_unit_test(test_notify_payload_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
