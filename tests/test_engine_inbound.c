/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of inbound records: one final code each, replacement, limits, age,
 * loss of an initiator, and those who wait for a record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/inbound.h"

#include <pdx/error.h>
#include <string.h>

#define MAX      4u
#define AGE      (10 * PDX_SEC)
#define LONG     (60 * PDX_SEC) /* only failures wait this long */
#define NRECORDS 200u
#define POOL_LEN 16

static const uint8_t alpha[PDX_INCARNATION_LEN] = "alpha";
static const uint8_t beta[PDX_INCARNATION_LEN] = "beta";

static struct pdxi_pool pool;
static struct pdxi_inbound in;
static uint64_t now_ns; /* given to the table; each test goes on from the real time */

static int setup(void **state)
{
    (void)state;
    now_ns = pdxi_now_ns();
    return pdxi_pool_init(&pool, POOL_LEN) || pdxi_inbound_init(&in, &pool, MAX, AGE);
}

/* The table gives all it took back to the pool. */
static int teardown(void **state)
{
    (void)state;
    pdxi_inbound_fini(&in);
    pdxi_inbound_fini(&in);
    for (unsigned i = 0; i < PDXI_POOL_CLASSES; i++)
        assert_int_equal(pdxi_slab_used(&pool.classes[i]), 0);
    pdxi_pool_fini(&pool);
    return 0;
}

static int begin(const uint8_t *who, uint64_t xfer, uint64_t id)
{
    return pdxi_inbound_begin(&in, who, who == alpha ? "alpha" : "beta", xfer, id, now_ns);
}

static bool end(const uint8_t *who, uint64_t id, enum pdx_inbound_code code)
{
    return pdxi_inbound_end(&in, who, id, code, 0, NULL, NULL, 0, now_ns, NULL);
}

static int look(const uint8_t *who, uint64_t id, bool forget, struct pdx_inbound *ret)
{
    memset(ret, 0xee, sizeof *ret);
    return pdxi_inbound_take(&in, who, id, 0, forget, ret);
}

static void assert_code(const uint8_t *who, uint64_t id, enum pdx_inbound_code code)
{
    struct pdx_inbound rec;

    assert_int_equal(look(who, id, false, &rec), 0);
    assert_int_equal(rec.code, code);
}

static void assert_absent(const uint8_t *who, uint64_t id)
{
    struct pdx_inbound rec;

    assert_int_equal(look(who, id, false, &rec), PDX_ENOENT);
}

static struct pdx_engine_counters counters(void)
{
    struct pdx_engine_counters c;

    pdxi_inbound_count(&in, &c);
    return c;
}

static void test_inbound_record_from_begin_to_end(void **state)
{
    static const uint8_t payload[] = {1, 0, 2, 0};
    struct pdx_inbound rec;
    struct pdx_inbound copy;

    (void)state;
    assert_absent(alpha, 7);
    assert_int_equal(begin(alpha, 1, 7), 0);
    pdxi_inbound_add_bytes(&in, alpha, 7, 100);
    pdxi_inbound_add_bytes(&in, alpha, 7, 23);
    pdxi_inbound_add_bytes(&in, beta, 7, 1000); /* unknown: nobody's */
    assert_int_equal(look(alpha, 7, true, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_IN_PROGRESS);
    assert_int_equal(rec.bytes, 123);
    assert_true(rec.began_ns == now_ns && rec.ended_ns == 0);
    assert_int_equal(rec.payload_len, 0);
    assert_string_equal(rec.text, "");

    now_ns += 5;
    assert_true(pdxi_inbound_end(&in, alpha, 7, PDX_INBOUND_DONE, 0, "", payload, sizeof payload,
                                 now_ns, &copy));
    assert_int_equal(look(alpha, 7, false, &rec), 0); /* in progress it could not be forgotten */
    assert_int_equal(rec.code, PDX_INBOUND_DONE);
    assert_int_equal(rec.err, 0);
    assert_int_equal(rec.id, 7);
    assert_memory_equal(rec.incarnation, alpha, sizeof alpha);
    assert_string_equal(rec.peer, "alpha");
    assert_true(rec.began_ns == now_ns - 5 && rec.ended_ns == now_ns);
    assert_int_equal(rec.payload_len, sizeof payload);
    assert_memory_equal(rec.payload, payload, sizeof payload);
    assert_int_equal(copy.code, rec.code);
    assert_int_equal(copy.bytes, rec.bytes);
    assert_memory_equal(copy.payload, payload, sizeof payload);
    assert_int_equal(look(alpha, 7, true, &rec), 0);
    assert_absent(alpha, 7);
    assert_int_equal(counters().inbound_records, 0);
}

static void test_inbound_record_keeps_its_first_end(void **state)
{
    struct pdx_inbound rec;

    (void)state;
    assert_false(end(alpha, 7, PDX_INBOUND_DONE)); /* unknown */
    assert_int_equal(begin(alpha, 1, 7), 0);
    assert_true(pdxi_inbound_end(&in, alpha, 7, PDX_INBOUND_ABORTED, PDX_ECANCELLED,
                                 "cancelled by the caller", NULL, 0, now_ns, NULL));
    assert_false(end(alpha, 7, PDX_INBOUND_DONE));
    assert_false(pdxi_inbound_fail_next(&in, alpha, PDX_EPEER, "lost", now_ns, NULL));
    pdxi_inbound_add_bytes(&in, alpha, 7, 1); /* too late */
    assert_int_equal(look(alpha, 7, false, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_ABORTED);
    assert_int_equal(rec.err, PDX_ECANCELLED);
    assert_string_equal(rec.text, "cancelled by the caller");
    assert_int_equal(rec.bytes, 0);
}

static void test_inbound_takes_the_longest_payload_and_cuts_long_texts(void **state)
{
    uint8_t payload[PDX_NOTIFY_MAX];
    struct pdx_inbound rec;
    char text[1000];

    (void)state;
    memset(text, 't', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + sizeof rec.text - 2, "\xc3\xa9", 2); /* the cut must not halve it */
    memset(payload, 0x5a, sizeof payload);
    assert_int_equal(begin(alpha, 1, 7), 0);
    assert_true(pdxi_inbound_end(&in, alpha, 7, PDX_INBOUND_FAILED, PDX_EREMOTE, text, payload,
                                 sizeof payload, now_ns, &rec));
    assert_int_equal(rec.payload_len, sizeof payload);
    assert_memory_equal(rec.payload, payload, sizeof payload);
    assert_int_equal(strlen(rec.text), sizeof rec.text - 2);
    assert_memory_equal(rec.text, text, sizeof rec.text - 2);
}

static void test_inbound_key_used_again_is_a_new_record(void **state)
{
    struct pdx_inbound rec;

    (void)state;
    assert_int_equal(begin(alpha, 1, 7), 0);
    pdxi_inbound_add_bytes(&in, alpha, 7, 10);
    assert_true(end(alpha, 7, PDX_INBOUND_DONE));
    assert_int_equal(begin(alpha, 2, 7), 0); /* after its end */
    assert_int_equal(look(alpha, 7, false, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_IN_PROGRESS);
    assert_int_equal(rec.bytes, 0);
    assert_int_equal(begin(alpha, 3, 7), 0); /* before it */
    assert_int_equal(counters().inbound_records, 1);
    assert_int_equal(begin(alpha, 0, 7), 0); /* notifications have no number: always new */
    assert_true(end(alpha, 7, PDX_INBOUND_DONE));
    assert_int_equal(begin(alpha, 0, 7), 0);
    assert_code(alpha, 7, PDX_INBOUND_IN_PROGRESS);
    assert_int_equal(counters().inbound_evicted, 0);
}

/* BEGIN comes again over a new connection. */
static void test_inbound_same_transfer_goes_on(void **state)
{
    struct pdx_inbound rec;

    (void)state;
    assert_int_equal(begin(alpha, 5, 7), 0);
    pdxi_inbound_add_bytes(&in, alpha, 7, 10);
    now_ns += 100;
    assert_int_equal(begin(alpha, 5, 7), 0);
    assert_int_equal(look(alpha, 7, false, &rec), 0);
    assert_int_equal(rec.bytes, 10);
    assert_true(rec.began_ns == now_ns - 100);
    assert_true(end(alpha, 7, PDX_INBOUND_ABORTED));
    assert_int_equal(begin(alpha, 5, 7), 0); /* its end was heard already */
    assert_code(alpha, 7, PDX_INBOUND_ABORTED);
}

static void test_inbound_ids_of_two_initiators_are_apart(void **state)
{
    (void)state;
    assert_int_equal(begin(alpha, 1, 7), 0);
    assert_int_equal(begin(beta, 1, 7), 0);
    assert_true(end(alpha, 7, PDX_INBOUND_DONE));
    assert_code(beta, 7, PDX_INBOUND_IN_PROGRESS);
    assert_true(end(beta, 7, PDX_INBOUND_FAILED));
    assert_code(alpha, 7, PDX_INBOUND_DONE);
}

static void test_inbound_evicts_the_oldest_finished_record(void **state)
{
    (void)state;
    for (uint64_t id = 0; id < MAX; id++)
        assert_int_equal(begin(alpha, id + 1, id), 0);
    assert_int_equal(begin(alpha, 99, 99), PDX_EAGAIN); /* all are in progress */
    assert_absent(alpha, 99);
    assert_true(end(alpha, 2, PDX_INBOUND_DONE)); /* ended first, begun third */
    assert_true(end(alpha, 0, PDX_INBOUND_DONE));
    assert_int_equal(begin(alpha, 100, 100), 0);
    assert_absent(alpha, 2);
    assert_code(alpha, 0, PDX_INBOUND_DONE);
    assert_int_equal(counters().inbound_evicted, 1);
    assert_int_equal(begin(alpha, 101, 101), 0);
    assert_absent(alpha, 0);
    assert_int_equal(begin(alpha, 102, 102), PDX_EAGAIN);
    assert_int_equal(begin(alpha, 103, 101), 0); /* a replacement needs no further place */
    assert_int_equal(counters().inbound_records, MAX);
    assert_int_equal(counters().inbound_evicted, 2);
    assert_int_equal(counters().inbound_aged, 0);
}

static void test_inbound_finished_records_grow_old(void **state)
{
    uint64_t real_ns = now_ns;

    (void)state;
    now_ns = real_ns - AGE - 1;
    assert_int_equal(begin(alpha, 1, 1), 0);
    assert_int_equal(begin(alpha, 2, 2), 0);
    assert_int_equal(begin(alpha, 3, 3), 0);
    assert_true(end(alpha, 1, PDX_INBOUND_DONE));
    now_ns = real_ns;
    assert_true(end(alpha, 2, PDX_INBOUND_DONE));
    assert_int_equal(counters().inbound_aged, 1);
    assert_absent(alpha, 1);
    assert_code(alpha, 2, PDX_INBOUND_DONE);
    assert_code(alpha, 3, PDX_INBOUND_IN_PROGRESS); /* however old */
    assert_int_equal(counters().inbound_records, 2);
    assert_int_equal(counters().inbound_aged, 1);

    now_ns = real_ns + AGE - 1;
    assert_int_equal(begin(beta, 1, 1), 0);
    assert_int_equal(counters().inbound_aged, 1);
    now_ns = real_ns + AGE;
    assert_int_equal(begin(beta, 2, 2), 0); /* a begin drops them too */
    assert_int_equal(counters().inbound_aged, 2);
    assert_int_equal(counters().inbound_records, 3);
    assert_int_equal(counters().inbound_evicted, 0);
}

static void test_inbound_loss_fails_the_records_of_one_initiator(void **state)
{
    struct pdx_inbound rec;
    unsigned seen = 0;

    (void)state;
    assert_int_equal(begin(beta, 1, 1), 0);
    assert_int_equal(begin(alpha, 1, 1), 0);
    assert_int_equal(begin(beta, 2, 2), 0);
    assert_int_equal(begin(alpha, 2, 2), 0);
    assert_true(end(beta, 2, PDX_INBOUND_DONE));
    while (pdxi_inbound_fail_next(&in, alpha, PDX_EPEER, "the peer is lost", now_ns, &rec)) {
        assert_memory_equal(rec.incarnation, alpha, sizeof alpha);
        assert_int_equal(rec.code, PDX_INBOUND_FAILED);
        assert_int_equal(rec.err, PDX_EPEER);
        assert_string_equal(rec.text, "the peer is lost");
        assert_in_range(rec.id, 1, 2);
        seen |= 1u << rec.id;
    }
    assert_int_equal(seen, 1u << 1 | 1u << 2);
    assert_code(beta, 1, PDX_INBOUND_IN_PROGRESS);
    assert_code(beta, 2, PDX_INBOUND_DONE);
    assert_false(pdxi_inbound_fail_next(&in, alpha, PDX_EPEER, "again", now_ns, NULL));
    assert_true(pdxi_inbound_fail_next(&in, beta, PDX_EPEER, NULL, now_ns, NULL));
    assert_code(beta, 1, PDX_INBOUND_FAILED);
}

/* More records than buckets, each found by its key. */
static void test_inbound_finds_each_of_many(void **state)
{
    struct pdxi_inbound big;
    struct pdx_inbound rec;

    (void)state;
    assert_int_equal(pdxi_inbound_init(&big, &pool, NRECORDS, AGE), 0);
    for (uint64_t id = 0; id < NRECORDS; id++) {
        assert_int_equal(pdxi_inbound_begin(&big, alpha, "alpha", id + 1, id << 32, now_ns), 0);
        pdxi_inbound_add_bytes(&big, alpha, id << 32, id);
    }
    for (uint64_t id = 0; id < NRECORDS; id++) {
        assert_int_equal(pdxi_inbound_take(&big, alpha, id << 32, 0, false, &rec), 0);
        assert_int_equal(rec.bytes, id);
    }
    pdxi_inbound_fini(&big);
}

/* ---- waiting ---------------------------------------------------------- */

struct waiter {
    pthread_t thread;
    const uint8_t *who;
    uint64_t id;
    uint64_t until_ns;
    int rc;
    struct pdx_inbound rec;
};

static void *waiter_main(void *arg)
{
    struct waiter *w = arg;

    w->rc = pdxi_inbound_take(&in, w->who, w->id, w->until_ns, true, &w->rec);
    return NULL;
}

static void waiter_start(struct waiter *w, const uint8_t *who, uint64_t id, uint64_t until_ns)
{
    *w = (struct waiter){.who = who, .id = id, .until_ns = until_ns};
    assert_int_equal(pthread_create(&w->thread, NULL, waiter_main, w), 0);
}

static void waiter_expect(struct waiter *w, int rc)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_int_equal(w->rc, rc);
}

static void test_inbound_wait_is_over_at_the_end(void **state)
{
    struct waiter before;
    struct waiter during;

    (void)state;
    waiter_start(&before, alpha, 1, UINT64_MAX); /* the record may not even exist yet */
    assert_int_equal(begin(alpha, 1, 1), 0);
    assert_int_equal(begin(alpha, 2, 2), 0);
    waiter_start(&during, alpha, 2, now_ns + LONG);
    pdxi_inbound_add_bytes(&in, alpha, 1, 42);
    assert_true(end(alpha, 1, PDX_INBOUND_DONE));
    waiter_expect(&before, 0);
    assert_int_equal(before.rec.code, PDX_INBOUND_DONE);
    assert_int_equal(before.rec.bytes, 42);
    assert_absent(alpha, 1); /* it was forgotten */
    assert_true(pdxi_inbound_fail_next(&in, alpha, PDX_EPEER, "lost", now_ns, NULL));
    waiter_expect(&during, 0);
    assert_int_equal(during.rec.code, PDX_INBOUND_FAILED);
}

static void test_inbound_wait_runs_out(void **state)
{
    struct pdx_inbound rec;

    (void)state;
    assert_int_equal(begin(alpha, 1, 1), 0);
    assert_int_equal(pdxi_inbound_take(&in, alpha, 1, now_ns, true, &rec), PDX_ETIMEDOUT);
    assert_int_equal(pdxi_inbound_take(&in, alpha, 2, now_ns, true, &rec), PDX_ETIMEDOUT);
    assert_int_equal(pdxi_inbound_take(&in, alpha, 1, now_ns + 10 * PDX_MSEC, true, &rec),
                     PDX_ETIMEDOUT);
    assert_true(pdxi_now_ns() >= now_ns + 10 * PDX_MSEC);
    assert_code(alpha, 1, PDX_INBOUND_IN_PROGRESS);
}

static void test_inbound_close_wakes_all_and_keeps_what_is_final(void **state)
{
    struct pdx_inbound rec;
    struct waiter w[3];

    (void)state;
    assert_int_equal(begin(alpha, 1, 1), 0);
    assert_int_equal(begin(alpha, 2, 2), 0);
    assert_true(end(alpha, 2, PDX_INBOUND_DONE));
    waiter_start(&w[0], alpha, 1, UINT64_MAX);
    waiter_start(&w[1], alpha, 99, now_ns + LONG);
    pdxi_inbound_close(&in);
    waiter_start(&w[2], beta, 1, UINT64_MAX);
    for (int i = 0; i < 3; i++)
        waiter_expect(&w[i], PDX_ESHUTDOWN);
    assert_int_equal(pdxi_inbound_take(&in, alpha, 2, UINT64_MAX, false, &rec), 0);
    assert_int_equal(rec.code, PDX_INBOUND_DONE);
}

#define INBOUND_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        INBOUND_TEST(test_inbound_record_from_begin_to_end),
        INBOUND_TEST(test_inbound_record_keeps_its_first_end),
        INBOUND_TEST(test_inbound_takes_the_longest_payload_and_cuts_long_texts),
        INBOUND_TEST(test_inbound_key_used_again_is_a_new_record),
        INBOUND_TEST(test_inbound_same_transfer_goes_on),
        INBOUND_TEST(test_inbound_ids_of_two_initiators_are_apart),
        INBOUND_TEST(test_inbound_evicts_the_oldest_finished_record),
        INBOUND_TEST(test_inbound_finished_records_grow_old),
        INBOUND_TEST(test_inbound_loss_fails_the_records_of_one_initiator),
        INBOUND_TEST(test_inbound_finds_each_of_many),
        INBOUND_TEST(test_inbound_wait_is_over_at_the_end),
        INBOUND_TEST(test_inbound_wait_runs_out),
        INBOUND_TEST(test_inbound_close_wakes_all_and_keeps_what_is_final),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
