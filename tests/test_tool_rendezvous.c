/* SPDX-License-Identifier: Apache-2.0
 *
 * The side channel of the command over a socket pair, and its messages: what
 * goes in comes out, and nonsense ends in a sentence.
 */
#include "tool/link.h"
#include "tool/rendezvous.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct ends {
    struct tool_link link;
    int other;
};

static int setup(void **state)
{
    struct ends *e = calloc(1, sizeof *e);
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    tool_link_init(&e->link, fds[0], "decode", "the test");
    e->other = fds[1];
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    struct ends *e = *state;

    tool_link_fini(&e->link);
    if (e->other >= 0)
        (void)close(e->other);
    free(e);
    return 0;
}

static void say(struct ends *e, const char *text)
{
    assert_int_equal(write(e->other, text, strlen(text)), (ssize_t)strlen(text));
}

static void test_link_hands_out_whole_lines(void **state)
{
    struct ends *e = *state;
    json_t *msg;

    assert_int_equal(tool_link_receive(&e->link, &msg, NULL), 0);
    say(e, "{\"op\":\"b");
    assert_int_equal(tool_link_receive(&e->link, &msg, NULL), 0);
    say(e, "ye\"}\n{\"op\":\"sent\"}\n{");
    assert_int_equal(tool_link_receive(&e->link, &msg, NULL), 1);
    assert_int_equal(tool_message_op(msg, NULL), TOOL_OP_BYE);
    json_decref(msg);
    assert_int_equal(tool_link_receive(&e->link, &msg, NULL), 1);
    assert_int_equal(tool_message_op(msg, NULL), TOOL_OP_SENT);
    json_decref(msg);
    assert_int_equal(tool_link_receive(&e->link, &msg, NULL), 0);
}

static void test_link_ends_on_garbage(void **state)
{
    static const char *const garbage[] = {"GET / HTTP/1.1\r\n", "[1]\n", "\n",
                                          "{\"a\":1,\"a\":2}\n", "{\"a\":\"\xff\"}\n"};
    struct ends *e = *state;
    struct pdx_error why;
    json_t *msg;

    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        say(e, garbage[i]);
        assert_int_equal(tool_link_receive(&e->link, &msg, &why), PDX_EPROTO);
        assert_non_null(strstr(why.text, "decode at the test"));
    }
}

static void test_link_refuses_a_line_without_end(void **state)
{
    struct ends *e = *state;
    char chunk[4097];
    struct pdx_error why;
    json_t *msg;
    int got = 0;

    memset(chunk, 'x', sizeof chunk - 1);
    chunk[sizeof chunk - 1] = '\0';
    e->link.max_line = TOOL_LINK_GREETING;
    for (size_t sent = 0; sent <= TOOL_LINK_GREETING && got == 0; sent += sizeof chunk - 1) {
        say(e, chunk);
        got = tool_link_receive(&e->link, &msg, &why);
    }
    assert_int_equal(got, PDX_EPROTO);
    assert_true(e->link.in_cap <= 4 * TOOL_LINK_GREETING);
}

static void test_link_says_when_the_other_side_is_gone(void **state)
{
    struct ends *e = *state;
    struct pdx_error why;
    json_t *msg;
    int err = 0;

    say(e, "{\"op\":\"bye\"}\n{\"op\":");
    (void)close(e->other);
    e->other = -1;
    assert_int_equal(tool_link_receive(&e->link, &msg, &why), 1); /* what arrived still counts */
    json_decref(msg);
    assert_int_equal(tool_link_receive(&e->link, &msg, &why), PDX_EPEER);
    assert_non_null(strstr(why.text, "decode at the test closed the connection"));
    for (int i = 0; i < 2 && err == 0; i++)
        err = tool_link_send(&e->link, json_pack("{s:s}", "op", "bye"), &why);
    assert_int_equal(err, PDX_EPEER);
}

/* Nobody reads: the queue takes what it may hold, then refuses, and never blocks. */
static void test_link_queue_is_limited(void **state)
{
    struct ends *e = *state;
    size_t len = 8u << 20, sent = 0;
    char *text = malloc(len + 1);
    struct pdx_error why;
    int err = 0;

    memset(text, 'y', len);
    text[len] = '\0';
    while (err == 0 && sent < 20) {
        err = tool_link_send(&e->link, json_pack("{s:s}", "text", text), &why);
        sent += err == 0;
    }
    assert_int_equal(err, PDX_EAGAIN);
    assert_int_equal(sent, TOOL_LINK_QUEUE / len);
    free(text);
}

/* What the other side would refuse as a line too long is not sent, and nobody is blamed for it. */
static void test_link_sends_no_line_that_is_too_long(void **state)
{
    struct ends *e = *state;
    size_t len = TOOL_LINK_LINE;
    char *text = malloc(len + 1);
    struct pdx_error why;

    memset(text, 'y', len);
    text[len] = '\0';
    assert_int_equal(tool_link_send(&e->link, json_pack("{s:s}", "text", text), &why), PDX_ENOSPC);
    assert_non_null(strstr(why.text, "16777227 bytes"));
    assert_int_equal(e->link.out_len, 0);
    free(text);
}

static void test_link_drops_nothing_when_the_socket_is_full(void **state)
{
    struct ends *e = *state;
    char buf[65536];
    size_t expect = 0, got = 0;

    for (int i = 0; i < 2000; i++) {
        struct tool_message m = {.op = TOOL_OP_ERROR};

        memset(m.text, 'z', 1000);
        assert_int_equal(tool_link_send(&e->link, tool_message_encode(&m), NULL), 0);
        expect += strlen("{\"op\":\"error\",\"text\":\"\"}\n") + 1000;
    }
    assert_true(e->link.out_len > 0);
    while (got < expect) {
        ssize_t n = read(e->other, buf, sizeof buf);

        assert_true(n > 0);
        got += (size_t)n;
        assert_int_equal(tool_link_flush(&e->link, NULL), 0);
    }
    assert_int_equal(e->link.out_len, 0);
}

static void test_hello_survives_the_way(void **state)
{
    struct tool_hello a = {.model = "gpt-oss-120b",
                           .shape = UINT64_C(0xfedcba9876543210),
                           .page_size = 64,
                           .tp = {4, 2},
                           .pp = {3, 1},
                           .inflight = 4,
                           .max_tokens = 9999,
                           .seed = INT64_MAX};
    struct tool_hello b;
    json_t *v = tool_hello_encode(&a);

    (void)state;
    assert_int_equal(tool_hello_decode(v, &b, NULL), 0);
    assert_string_equal(a.model, b.model);
    assert_true(a.shape == b.shape && a.page_size == b.page_size && a.tp[0] == b.tp[0] &&
                a.tp[1] == b.tp[1] && a.pp[0] == b.pp[0] && a.pp[1] == b.pp[1] &&
                a.inflight == b.inflight && a.max_tokens == b.max_tokens && a.seed == b.seed);
    json_decref(v);
}

static void check_hello(const char *key, json_t *value, int err, const char *part)
{
    struct tool_hello a = {
        .model = "m", .page_size = 1, .tp = {1, 1}, .pp = {1, 1}, .inflight = 1, .max_tokens = 1};
    struct tool_hello b;
    struct pdx_error why;
    json_t *v = tool_hello_encode(&a);

    assert_int_equal(json_object_set_new(v, key, value), 0);
    assert_int_equal(tool_hello_decode(v, &b, &why), err);
    assert_non_null(strstr(why.text, part));
    json_decref(v);
}

static void test_hello_is_checked(void **state)
{
    (void)state;
    check_hello("protocol", json_integer(TOOL_RENDEZVOUS_VERSION + 1), PDX_EVERSION,
                "use the same pdx");
    check_hello("prefill_tp", json_integer(0), PDX_EPROTO, "prefill_tp");
    check_hello("decode_tp", json_integer(TOOL_TP_MAX + 1), PDX_EPROTO, "decode_tp");
    check_hello("prefill_pp", json_integer(TOOL_PP_MAX + 1), PDX_EPROTO, "prefill_pp");
    check_hello("decode_pp", json_null(), PDX_EPROTO, "decode_pp");
    check_hello("page_size", json_integer(-1), PDX_EPROTO, "page_size");
    check_hello("inflight", json_integer(INT64_MAX), PDX_EPROTO, "inflight");
    check_hello("max_tokens", json_string("7"), PDX_EPROTO, "max_tokens");
    check_hello("seed", json_real(1.5), PDX_EPROTO, "seed");
    check_hello("shape", json_string("xyz"), PDX_EPROTO, "shape");
    check_hello("model", json_null(), PDX_EPROTO, "model");
}

static void test_shape_tells_models_and_page_sizes_apart(void **state)
{
    uint64_t seen[64];
    size_t n = 0;

    (void)state;
    for (size_t i = 0; tool_preset_names[i]; i++) {
        for (uint32_t page = 16; page <= 64; page *= 4) {
            struct tool_model m;

            assert_int_equal(tool_model_load(tool_preset_names[i], page, &m, NULL), 0);
            seen[n] = tool_shape(&m);
            for (size_t k = 0; k < n; k++)
                assert_true(seen[k] != seen[n]);
            n++;
            tool_model_fini(&m);
        }
    }
}

static void test_offer_survives_the_way(void **state)
{
    uint8_t engine[] = {0, 1, 0xab, 0xff}, layout[] = {0x10, 0x20};
    struct tool_blob layouts[] = {{layout, 2}, {engine, 4}};
    struct tool_offer a = {.inflight = 3,
                           .max_tokens = 77,
                           .capacity = {5, 0, 9},
                           .npools = 3,
                           .engine = {engine, sizeof engine},
                           .layouts = layouts,
                           .nlayouts = 2};
    struct tool_offer b;
    json_t *v = tool_offer_encode(&a);

    (void)state;
    assert_int_equal(tool_offer_decode(v, &b, NULL), 0);
    assert_int_equal(b.inflight, 3);
    assert_int_equal(b.max_tokens, 77);
    assert_int_equal(b.npools, 3);
    assert_memory_equal(b.capacity, a.capacity, 3 * sizeof b.capacity[0]);
    assert_int_equal(b.engine.len, sizeof engine);
    assert_memory_equal(b.engine.data, engine, sizeof engine);
    assert_int_equal(b.nlayouts, 2);
    assert_int_equal(b.layouts[0].len, 2);
    assert_memory_equal(b.layouts[0].data, layout, 2);
    tool_offer_fini(&b);

    (void)json_array_set_new(json_object_get(v, "layouts"), 1, json_string("0g"));
    assert_int_equal(tool_offer_decode(v, &b, NULL), PDX_EPROTO);
    (void)json_array_set_new(json_object_get(v, "layouts"), 1, json_string("012"));
    assert_int_equal(tool_offer_decode(v, &b, NULL), PDX_EPROTO);
    (void)json_array_clear(json_object_get(v, "layouts"));
    assert_int_equal(tool_offer_decode(v, &b, NULL), PDX_EPROTO);
    json_decref(v);
}

static void test_messages_survive_the_way(void **state)
{
    static const enum tool_op ops[] = {TOOL_OP_ANNOUNCE, TOOL_OP_SENT,    TOOL_OP_VERDICT,
                                       TOOL_OP_BYE,      TOOL_OP_SUMMARY, TOOL_OP_ERROR};

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct tool_message a = {.op = ops[i],
                                 .room = 12,
                                 .tokens = 34,
                                 .stage = TOOL_PP_MAX - 1,
                                 .ok = true,
                                 .bytes = 56,
                                 .requests = 7,
                                 .failed = 8,
                                 .guards = 9,
                                 .text = "a\tb\x1b[31m\xff"};
        struct tool_message b;
        json_t *v = tool_message_encode(&a);

        assert_int_equal(tool_message_decode(v, &b, NULL), 0);
        assert_int_equal(b.op, ops[i]);
        if (ops[i] == TOOL_OP_ANNOUNCE)
            assert_true(b.room == 12 && b.tokens == 34);
        if (ops[i] == TOOL_OP_SENT)
            assert_true(b.room == 12 && b.stage == TOOL_PP_MAX - 1 && b.ok);
        if (ops[i] == TOOL_OP_SUMMARY)
            assert_true(b.requests == 7 && b.failed == 8 && b.guards == 9 && b.bytes == 56);
        if (ops[i] == TOOL_OP_VERDICT)
            assert_true(b.room == 12 && b.ok && b.bytes == 56);
        if (ops[i] == TOOL_OP_ERROR || ops[i] == TOOL_OP_SENT)
            assert_string_equal(b.text, "a?b?[31m?"); /* fit for a terminal */
        json_decref(v);
    }
}

static void check_message(const char *text, int err)
{
    struct tool_message m;
    struct pdx_error why;
    json_t *v = json_loads(text, 0, NULL);

    assert_non_null(v);
    assert_int_equal(tool_message_decode(v, &m, &why), err);
    json_decref(v);
}

static void test_messages_are_checked(void **state)
{
    (void)state;
    check_message("{}", PDX_EPROTO);
    check_message("{\"op\":7}", PDX_EPROTO);
    check_message("{\"op\":\"dance\"}", PDX_EPROTO);
    check_message("{\"op\":\"announce\",\"room\":1}", PDX_EPROTO);
    check_message("{\"op\":\"announce\",\"room\":-1,\"tokens\":1}", PDX_EPROTO);
    check_message("{\"op\":\"announce\",\"room\":1,\"tokens\":4294967297}", PDX_EPROTO);
    check_message("{\"op\":\"announce\",\"room\":1,\"tokens\":1.0}", PDX_EPROTO);
    check_message("{\"op\":\"sent\",\"room\":1,\"stage\":0,\"ok\":1,\"text\":\"\"}", PDX_EPROTO);
    check_message("{\"op\":\"sent\",\"room\":1,\"ok\":true,\"text\":\"\"}", PDX_EPROTO);
    check_message("{\"op\":\"sent\",\"room\":1,\"stage\":-1,\"ok\":true,\"text\":\"\"}",
                  PDX_EPROTO);
    check_message("{\"op\":\"sent\",\"room\":1,\"stage\":64,\"ok\":true,\"text\":\"\"}",
                  PDX_EPROTO);
    check_message("{\"op\":\"sent\",\"room\":1,\"stage\":63,\"ok\":true,\"text\":\"\"}", 0);
    check_message("{\"op\":\"announce\",\"room\":1,\"tokens\":1}", 0);
}

static void test_place_survives_the_way_and_is_checked(void **state)
{
    int32_t pages[] = {7, 3, 9}, slot[] = {4};
    struct tool_placement a[2] = {0}, b[2] = {0};
    struct tool_model m;
    struct tool_group g, half;
    struct pdx_error why;
    uint64_t room = 0;
    json_t *v;

    (void)state;
    assert_int_equal(tool_model_load("DeepSeek-V3.2", 64, &m, NULL), 0); /* kv, dsa, aux */
    assert_int_equal(tool_group_init(&g, &m, 2, 1, NULL), 0);
    assert_int_equal(tool_group_init(&half, &m, 1, 1, NULL), 0);
    for (int i = 0; i < 2; i++) {
        a[i].items[0] = pages;
        a[i].spans[0].n = a[i].spans[1].n = 3;
        a[i].items[2] = slot;
        a[i].spans[2].n = 1;
    }
    v = tool_place_encode(5, a, 2, 3);
    assert_int_equal(tool_place_room(v, &room, NULL), 0);
    assert_int_equal(room, 5);
    assert_int_equal(tool_place_decode(v, &g, 150, b, &why), 0);
    assert_memory_equal(b[1].items[0], pages, sizeof pages);
    assert_null(b[1].items[1]);
    assert_int_equal(b[1].items[2][0], 4);
    tool_placement_fini(&b[0]);
    tool_placement_fini(&b[1]);

    assert_int_equal(tool_place_decode(v, &g, 193, b, &why), PDX_EPROTO); /* 4 pages */
    assert_int_equal(tool_place_decode(v, &half, 150, b, &why), PDX_EPROTO);
    tool_placement_fini(&b[0]);
    pages[1] = -1;
    json_decref(v);
    v = tool_place_encode(5, a, 2, 3);
    assert_int_equal(tool_place_decode(v, &g, 150, b, &why), PDX_EPROTO);
    tool_placement_fini(&b[0]);
    tool_placement_fini(&b[1]);
    json_decref(v);
    tool_group_fini(&g);
    tool_group_fini(&half);
    tool_model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_link_hands_out_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_ends_on_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_refuses_a_line_without_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_says_when_the_other_side_is_gone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_link_queue_is_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_sends_no_line_that_is_too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_drops_nothing_when_the_socket_is_full, setup,
                                        teardown),
        cmocka_unit_test(test_hello_survives_the_way),
        cmocka_unit_test(test_hello_is_checked),
        cmocka_unit_test(test_shape_tells_models_and_page_sizes_apart),
        cmocka_unit_test(test_offer_survives_the_way),
        cmocka_unit_test(test_messages_survive_the_way),
        cmocka_unit_test(test_messages_are_checked),
        cmocka_unit_test(test_place_survives_the_way_and_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
