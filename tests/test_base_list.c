/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/list.h"

struct member {
    int number;
    struct pdxi_list link;
};

static void expect_numbers(const struct pdxi_list *head, const int *want, size_t n)
{
    const struct pdxi_list *pos;
    size_t i = 0;

    pdxi_list_for_each (pos, head) {
        const struct member *m = pdxi_container_of(pos, const struct member, link);

        assert_true(i < n);
        assert_int_equal(m->number, want[i++]);
        assert_ptr_equal(pos->next->prev, pos);
        assert_ptr_equal(pos->prev->next, pos);
    }
    assert_int_equal(i, n);
    assert_int_equal(pdxi_list_empty(head), n == 0);
}

static void members_add(struct pdxi_list *head, struct member *m, int n, int first)
{
    for (int i = 0; i < n; i++) {
        m[i].number = first + i;
        pdxi_list_add_tail(head, &m[i].link);
    }
}

static void test_list_keeps_the_order_of_adding(void **state)
{
    struct pdxi_list head;
    struct member m[3];

    (void)state;
    pdxi_list_init(&head);
    expect_numbers(&head, NULL, 0);
    assert_null(pdxi_list_first(&head));
    members_add(&head, m, 3, 1);
    expect_numbers(&head, (const int[]){1, 2, 3}, 3);
    assert_ptr_equal(pdxi_list_first(&head), &m[0].link);
}

static void test_list_removes_any_member_and_twice(void **state)
{
    struct pdxi_list head;
    struct member m[3];

    (void)state;
    pdxi_list_init(&head);
    members_add(&head, m, 3, 1);
    pdxi_list_remove(&m[1].link);
    expect_numbers(&head, (const int[]){1, 3}, 2);
    pdxi_list_remove(&m[1].link); /* in no list: without effect */
    expect_numbers(&head, (const int[]){1, 3}, 2);
    pdxi_list_remove(&m[0].link);
    pdxi_list_add_tail(&head, &m[1].link);
    expect_numbers(&head, (const int[]){3, 2}, 2);
    pdxi_list_remove(&m[2].link);
    pdxi_list_remove(&m[1].link);
    expect_numbers(&head, NULL, 0);
}

static void test_list_member_may_leave_while_walked(void **state)
{
    struct pdxi_list head, *pos, *tmp;
    struct member m[5];

    (void)state;
    pdxi_list_init(&head);
    members_add(&head, m, 5, 0);
    pdxi_list_for_each_safe (pos, tmp, &head) {
        if (pdxi_container_of(pos, struct member, link)->number % 2 == 0)
            pdxi_list_remove(pos);
    }
    expect_numbers(&head, (const int[]){1, 3}, 2);
}

static void test_list_splice_moves_all(void **state)
{
    struct pdxi_list to, from;
    struct member a[2], b[2];

    (void)state;
    pdxi_list_init(&to);
    pdxi_list_init(&from);
    pdxi_list_splice_tail(&to, &from);
    expect_numbers(&to, NULL, 0);
    members_add(&from, a, 2, 1);
    pdxi_list_splice_tail(&to, &from);
    expect_numbers(&to, (const int[]){1, 2}, 2);
    expect_numbers(&from, NULL, 0);
    members_add(&from, b, 2, 3);
    pdxi_list_splice_tail(&to, &from);
    expect_numbers(&to, (const int[]){1, 2, 3, 4}, 4);
    expect_numbers(&from, NULL, 0);
    pdxi_list_splice_tail(&to, &from);
    expect_numbers(&to, (const int[]){1, 2, 3, 4}, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_keeps_the_order_of_adding),
        cmocka_unit_test(test_list_removes_any_member_and_twice),
        cmocka_unit_test(test_list_member_may_leave_while_walked),
        cmocka_unit_test(test_list_splice_moves_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
