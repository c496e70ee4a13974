/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of connection set-up: what is answered to a HELLO, and what the
 * initiator makes of the answer. Answers travel through their encoding here,
 * because a text that does not fit its frame would be lost on the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "engine/proto/hello.h"

static struct pdxi_hello_own own_engine(void)
{
    struct pdxi_hello_own own = {.name = "decode-0", .keepalive_ns = 2000000000, .max_frames = 256};

    memset(own.incarnation, 0xb1, sizeof own.incarnation);
    return own;
}

static struct pdxi_frame_hello hello_to(const struct pdxi_hello_own *own)
{
    struct pdxi_frame_hello h = {.major = PDXI_PROTO_MAJOR,
                                 .minor = PDXI_PROTO_MINOR,
                                 .kind = PDXI_HELLO_CONTROL,
                                 .keepalive_ns = 1000000000,
                                 .name = "prefill-0"};

    memset(h.incarnation, 0xa1, sizeof h.incarnation);
    memcpy(h.target, own->incarnation, sizeof h.target);
    return h;
}

/* Judges, sends the answer through its frame and checks the returned code against it. */
static struct pdxi_frame_hello_ack answer(const struct pdxi_frame_hello *hello,
                                          const struct pdxi_hello_own *own)
{
    struct pdxi_frame_hello_ack ack;
    struct pdxi_frame_hello_ack back;
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    size_t len;
    int rc = pdxi_hello_judge(hello, own, &ack);

    assert_int_equal(rc, ack.code);
    assert_int_equal(rc == 0, ack.text[0] == '\0');
    len = pdxi_frame_hello_ack_encode(buf, &ack);
    assert_int_equal(pdxi_frame_hello_ack_decode(buf + PDXI_FRAME_PREFIX_LEN,
                                                 len - PDXI_FRAME_PREFIX_LEN, &back, NULL),
                     0);
    assert_memory_equal(&back, &ack, sizeof ack);
    return back;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void test_hello_that_fits_is_accepted(void **state)
{
    static const uint8_t no_ticket[PDXI_TICKET_LEN];
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);
    struct pdxi_frame_hello_ack ack = answer(&h, &own);

    (void)state;
    assert_int_equal(ack.code, 0);
    assert_int_equal(ack.major, PDXI_PROTO_MAJOR);
    assert_int_equal(ack.minor, PDXI_PROTO_MINOR);
    assert_int_equal(ack.max_frames, 256);
    assert_int_equal(ack.keepalive_ns, 2000000000);
    assert_memory_equal(ack.incarnation, own.incarnation, sizeof own.incarnation);
    assert_memory_equal(ack.ticket, no_ticket, sizeof no_ticket);
    assert_string_equal(ack.name, "decode-0");
    assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "decode-0 at 10.0.0.2:1", NULL), 0);
}

static void test_hello_of_a_higher_minor_is_accepted(void **state)
{
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);
    struct pdxi_frame_hello_ack ack;

    (void)state;
    h.minor = PDXI_PROTO_MINOR + 1;
    ack = answer(&h, &own);
    assert_int_equal(ack.code, 0);
    ack.minor = PDXI_PROTO_MINOR + 1;
    assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "p", NULL), 0);
}

static void test_hello_of_another_major_is_refused_with_both_versions(void **state)
{
    static const uint16_t majors[] = {0, PDXI_PROTO_MAJOR + 1, 65535};
    struct pdxi_hello_own own = own_engine();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        /* Nothing behind the version is known, not even whom it means to reach. */
        struct pdxi_frame_hello h = {.major = majors[i], .minor = 4};
        struct pdxi_frame_hello_ack ack = answer(&h, &own);
        char theirs[16];

        (void)snprintf(theirs, sizeof theirs, "not %u.4", majors[i]);
        assert_int_equal(ack.code, PDX_EVERSION);
        assert_has(ack.text, "1.0");
        assert_has(ack.text, theirs);
    }
}

static void test_hello_for_another_incarnation_is_stale(void **state)
{
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);

    (void)state;
    for (size_t i = 0; i < PDX_INCARNATION_LEN; i++) {
        struct pdxi_frame_hello_ack ack;

        memcpy(h.target, own.incarnation, sizeof h.target);
        h.target[i] ^= 1;
        ack = answer(&h, &own);
        assert_int_equal(ack.code, PDX_ESTALE);
        assert_has(ack.text, "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1");
        assert_has(ack.text, "b0");
    }
}

static void test_full_engine_refuses_sessions_but_not_their_data_connections(void **state)
{
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);
    struct pdxi_frame_hello_ack ack;
    struct pdx_error why = {0};

    (void)state;
    own.full = true;
    ack = answer(&h, &own);
    assert_int_equal(ack.code, PDX_EAGAIN);
    assert_has(ack.text, "max_sessions");
    assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "decode-0", &why), PDX_EAGAIN);
    assert_int_equal(why.code, PDX_EAGAIN);
    assert_has(why.text, "decode-0");
    assert_has(why.text, "max_sessions");
    h.kind = PDXI_HELLO_DATA;
    assert_int_equal(answer(&h, &own).code, 0);
}

static void test_answer_of_another_major_is_a_version_error(void **state)
{
    struct pdxi_frame_hello_ack ack = {.major = 3, .minor = 1, .code = PDX_EVERSION};
    struct pdxi_hello_own own = own_engine();
    struct pdx_error why = {0};

    (void)state;
    assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "decode-0", &why), PDX_EVERSION);
    assert_has(why.text, "decode-0");
    assert_has(why.text, "3.1");
    assert_has(why.text, "1.0");
    ack.code = 0;
    assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "decode-0", NULL), PDX_EVERSION);
}

/* Whatever the answer's code, one from another process is about that process. */
static void test_answer_of_another_incarnation_is_stale(void **state)
{
    static const int codes[] = {0, PDX_ESTALE, PDX_EAGAIN, PDX_EACCESS, PDX_EPROTO};
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);
    uint8_t expected[PDX_INCARNATION_LEN];

    (void)state;
    memset(expected, 0xc7, sizeof expected);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct pdxi_frame_hello_ack ack = answer(&h, &own);
        struct pdx_error why = {0};

        ack.code = codes[i];
        assert_int_equal(pdxi_hello_check(&ack, expected, own.name, &why), PDX_ESTALE);
        assert_int_equal(why.error_class, PDX_CLASS_RECONNECT);
        assert_has(why.text, own.name);
        assert_has(why.text, "b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1");
        assert_has(why.text, "c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7c7");
    }
}

/* An advertised address may lead to somebody else: that says nothing about the engine that is
 * meant. */
static void test_answer_of_another_engine_is_not_stale(void **state)
{
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);
    struct pdxi_frame_hello_ack ack = answer(&h, &own);
    uint8_t expected[PDX_INCARNATION_LEN];
    struct pdx_error why = {0};

    (void)state;
    memset(expected, 0xc7, sizeof expected);
    assert_int_equal(pdxi_hello_check(&ack, expected, "somebody-else", &why), PDX_EPEER);
    assert_has(why.text, "somebody-else");
    assert_has(why.text, own.name);
}

static void test_refusals_come_through_with_their_text(void **state)
{
    static const int codes[] = {PDX_EVERSION, PDX_ESTALE, PDX_EAGAIN, PDX_EACCESS, PDX_EPROTO};
    struct pdxi_hello_own own = own_engine();
    struct pdxi_frame_hello h = hello_to(&own);

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct pdxi_frame_hello_ack ack = answer(&h, &own);
        struct pdx_error why = {0};

        ack.code = codes[i];
        strcpy(ack.text, "the reason");
        assert_int_equal(pdxi_hello_check(&ack, own.incarnation, "decode-0", &why), codes[i]);
        assert_int_equal(why.code, codes[i]);
        assert_has(why.text, "decode-0");
        assert_has(why.text, pdx_err_name(codes[i]));
        assert_has(why.text, "the reason");
    }
}

static void test_incarnation_text_is_hexadecimal(void **state)
{
    const uint8_t incarnation[PDX_INCARNATION_LEN] = {0x00, 0x01, 0x0f, 0x10, 0xab, 0xcd,
                                                      0xef, 0xff, 0x7f, 0x80, 0x99, 0x9a,
                                                      0xa9, 0x12, 0x34, 0x56};
    char text[PDXI_INCARNATION_TEXT];

    (void)state;
    pdxi_incarnation_text(incarnation, text);
    assert_string_equal(text, "00010f10abcdefff7f80999aa9123456");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello_that_fits_is_accepted),
        cmocka_unit_test(test_hello_of_a_higher_minor_is_accepted),
        cmocka_unit_test(test_hello_of_another_major_is_refused_with_both_versions),
        cmocka_unit_test(test_hello_for_another_incarnation_is_stale),
        cmocka_unit_test(test_full_engine_refuses_sessions_but_not_their_data_connections),
        cmocka_unit_test(test_answer_of_another_major_is_a_version_error),
        cmocka_unit_test(test_answer_of_another_incarnation_is_stale),
        cmocka_unit_test(test_answer_of_another_engine_is_not_stale),
        cmocka_unit_test(test_refusals_come_through_with_their_text),
        cmocka_unit_test(test_incarnation_text_is_hexadecimal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
