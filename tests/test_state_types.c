/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's state types: for every type each number of indices on both
 * sides, none and empty lists included, with the texts in full; always behind a
 * component that is in order, which must not be sent either. Old names and slots.
 */
#include "state_typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define NONE     ((size_t)-1)

/* How a type takes lists, told once more and apart from the library's table. */
enum rule {
    ONE,    /* exactly one each */
    PAGED,  /* one or more; lengths differ: refused, or cut where the route permits it */
    STRICT, /* one or more, as many on both sides */
    PERHAPS /* any number, as many on both sides; both empty: nothing to send */
};

struct type_case {
    const char *type;
    enum rule rule;
    const char *upper; /* in the text of types that are never cut */
};

static const struct type_case types[] = {
    {"mamba", ONE, NULL},
    {"swa", PAGED, NULL},
    {"dsa", PAGED, NULL},
    {"nsa", PAGED, NULL},
    {"minimax_index_k", PAGED, NULL},
    {"block_scale_swa", PAGED, NULL},
    {"swa_ring", STRICT, "SWA_RING"},
    {"block_scale", STRICT, "BLOCK_SCALE"},
    {"c128_state", PERHAPS, "C128_STATE"},
    {"qsa_pending", PERHAPS, "QSA_PENDING"},
    {"qsa_compressed", PERHAPS, "QSA_COMPRESSED"},
};

/* What a pair of lists comes to: the beginning of the text of a refusal, or how many are sent. */
struct verdict {
    char text[256];
    size_t sent;
};

static size_t number(size_t n)
{
    return n == NONE ? 0 : n;
}

static struct verdict one_sided(const struct type_case *t, size_t src, size_t dst)
{
    struct verdict v = {.sent = 0};

    (void)snprintf(v.text, sizeof v.text,
                   "PD state transfer failed: component 1 (%s) has indices on one side only, or on "
                   "none: src=%zu%s, dst=%zu%s. ",
                   t->type, number(src), src == NONE ? " (none)" : "", number(dst),
                   dst == NONE ? " (none)" : "");
    return v;
}

static struct verdict differ(const struct type_case *t, size_t src, size_t dst)
{
    struct verdict v = {.sent = 0};

    if (t->rule == PAGED)
        (void)snprintf(v.text, sizeof v.text,
                       "PD state transfer failed: State index length mismatch for %s: src=%zu "
                       "dst=%zu (component 1). ",
                       t->type, src, dst);
    else
        (void)snprintf(v.text, sizeof v.text,
                       "PD state transfer failed: %s state index length mismatch: src=%zu, dst=%zu "
                       "(component 1). ",
                       t->upper, src, dst);
    return v;
}

static struct verdict judge(const struct type_case *t, size_t src, size_t dst, bool cut)
{
    struct verdict v = {.sent = number(src < dst ? src : dst)};

    if (src == NONE && dst == NONE)
        return v;
    switch (t->rule) {
    case ONE:
        if (src != 1 || dst != 1)
            (void)snprintf(v.text, sizeof v.text,
                           "PD state transfer failed: %s requires single state index, got src=%zu, "
                           "dst=%zu. ",
                           t->type, number(src), number(dst));
        return v;
    case PAGED:
    case STRICT:
        if (number(src) == 0 || number(dst) == 0)
            return one_sided(t, src, dst);
        break;
    case PERHAPS:
        if (src == NONE || dst == NONE)
            return one_sided(t, src, dst);
        break;
    }
    return src == dst || (t->rule == PAGED && cut) ? v : differ(t, src, dst);
}

static struct pdx_index_list list(const int32_t *numbers, size_t n)
{
    return n == NONE ? (struct pdx_index_list){NULL, 0} : (struct pdx_index_list){numbers, n};
}

/* Sends one pair of lists and compares with the verdict. */
static void check_lists(struct typed *f, const struct type_case *t, size_t src, size_t dst,
                        bool cut)
{
    static const int32_t numbers[] = {7, 2, 5};
    const struct pdx_index_list s[] = {list(numbers, 1), list(numbers, src)};
    const struct pdx_index_list d[] = {list(numbers + 1, 1), list(numbers, dst)};
    struct pdx_transfer_status *const mark = (struct pdx_transfer_status *)f;
    struct pdx_transfer_status *st[2] = {mark, mark};
    struct verdict v = judge(t, src, dst, cut);
    size_t before = fake_nsubmissions(), nst = 77;
    int rc = pdx_send_state(f->route, s, d, 2, NULL, st, 2, &nst, &f->why);

    if ((rc < 0) != (v.text[0] != '\0') || (rc < 0 && rc != PDX_EINVAL))
        fail_msg("%s, %d and %d: %s", t->type, (int)src, (int)dst, pdx_err_name(rc));
    if (rc < 0) {
        typed_begins(f, v.text);
        assert_int_equal(fake_nsubmissions(), before);
        assert_int_equal(nst, 77);
        assert_true(st[0] == mark && st[1] == mark);
        return;
    }
    assert_int_equal(nst, 2);
    assert_int_equal(fake_nsubmissions(), before + 1 + (v.sent > 0));
    assert_non_null(st[0]);
    assert_true((st[1] != NULL) == (v.sent > 0));
    if (st[1])
        assert_int_equal(fake_submission_of(st[1])->items.n, v.sent);
}

static void check_type(const struct type_case *t, bool cut)
{
    static const size_t ns[] = {NONE, 0, 1, 2, 3};
    struct pdx_route_counters c;
    struct typed f;

    typed_init(&f, t->type);
    if (typed_route_flags(&f, cut ? PDX_ROUTE_TRUNCATE_PAGED : 0) < 0)
        fail_msg("%s", f.why.text);
    for (size_t i = 0; i < COUNT(ns); i++)
        for (size_t k = 0; k < COUNT(ns); k++)
            check_lists(&f, t, ns[i], ns[k], cut);
    pdx_route_counters(f.route, &c);
    assert_int_equal(c.truncated, t->rule == PAGED && cut ? 6 : 0);
    assert_int_equal(c.elsewhere, 0);
    typed_fini(&f);
}

static void test_every_type_judges_its_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        check_type(&types[i], false);
        check_type(&types[i], true);
    }
}

/* The table above is about all types but dsa_tail, whose lists are spans (test_state_ring.c). */
static void test_no_type_is_forgotten(void **state)
{
    const struct pdx_state_type *t;
    size_t n = 0;

    (void)state;
    for (; (t = pdx_state_type_at(n)) != NULL; n++) {
        size_t i = 0;

        while (i < COUNT(types) && strcmp(types[i].type, t->name) != 0)
            i++;
        if (i == COUNT(types) && strcmp(t->name, "dsa_tail") != 0)
            fail_msg("%s is not tested", t->name);
        assert_int_equal(t->size, sizeof *t);
        assert_null(t->slicer);
    }
    assert_int_equal(n, COUNT(types)); /* nsa is not one of them, dsa_tail is */
    assert_null(pdx_state_type_at(n));
    assert_null(pdx_state_type_at((size_t)-1));
}

/* --- Names --- */

/* nsa is dsa, on either side; the component keeps the name it was given in texts. */
static void test_an_old_name_stands_for_the_new_one(void **state)
{
    const int32_t numbers[] = {1, 2};
    const struct pdx_index_list one[] = {{numbers, 1}, {numbers, 2}};
    struct pdx_transfer_status *st[2];
    size_t n;

    (void)state;
    for (int which = 1; which < 4; which++)
        for (uint32_t flags = 0; flags <= PDX_ROUTE_CURRENT_NAMES;
             flags += PDX_ROUTE_CURRENT_NAMES) {
            struct typed f;
            int rc;

            typed_init(&f, "dsa");
            f.local.components[1].type = which & 1 ? "nsa" : "dsa";
            f.remote.components[1].type = which & 2 ? "nsa" : "dsa";
            rc = typed_route_flags(&f, flags);
            if (!flags) {
                assert_int_equal(rc, 0);
                assert_int_equal(pdx_send_state(f.route, one, one, 2, NULL, st, 2, &n, &f.why), 0);
            } else if (which == 3) { /* alike, but unknown: only its state is refused */
                assert_int_equal(rc, 0);
                assert_int_equal(pdx_send_state(f.route, one, one, 2, NULL, st, 2, &n, &f.why),
                                 PDX_ESTATE_TYPE);
                assert_non_null(strstr(
                    f.why.text, "PD state transfer failed: unknown state_type=nsa. Component 1 "));
                assert_int_equal(fake_nsubmissions(), 0);
            } else {
                assert_int_equal(rc, PDX_EMISMATCH);
                assert_non_null(strstr(f.why.text, "state types: local [mamba, "));
            }
            typed_fini(&f);
        }
}

/* --- Slots --- */

static void set_slots(struct typed *f, uint32_t local, uint32_t remote)
{
    f->local.components[1].slots = local;
    f->remote.components[1].slots = remote;
}

/* One to as many as both layouts say; as many on both sides. */
static void test_mamba_takes_as_many_as_there_are_slots(void **state)
{
    static const int32_t numbers[] = {4, 1, 7, 2, 9};
    struct typed f;

    (void)state;
    for (uint32_t slots = 1; slots <= 4; slots++) {
        typed_init(&f, "mamba");
        set_slots(&f, slots, slots);
        assert_int_equal(typed_route_flags(&f, 0), 0);
        for (size_t src = 0; src <= 5; src++)
            for (size_t dst = 0; dst <= 5; dst++) {
                const struct pdx_index_list s[] = {{numbers, 1}, {numbers, src}};
                const struct pdx_index_list d[] = {{numbers, 1}, {numbers, dst}};
                struct pdx_transfer_status *st[2];
                const char *text = slots == 1 ? "mamba requires single state index, got "
                                   : src > slots || dst > slots
                                       ? "mamba takes at least 1 and at most "
                                   : src == 0 || dst == 0 ? "component 1 (mamba) has indices on one"
                                                          : "MAMBA state index length mismatch: ";
                size_t n, before = fake_nsubmissions();
                int rc = pdx_send_state(f.route, s, d, 2, NULL, st, 2, &n, &f.why);

                assert_int_equal(rc, src == dst && src && src <= slots ? 0 : PDX_EINVAL);
                if (rc == 0) {
                    assert_int_equal(fake_submission_of(st[1])->items.n, src);
                    continue;
                }
                assert_int_equal(fake_nsubmissions(), before);
                if (!strstr(f.why.text, text))
                    fail_msg("%u slots, %zu and %zu: %s", slots, src, dst, f.why.text);
            }
        typed_fini(&f);
    }
}

static void test_slots_that_differ_or_mean_nothing_are_refused(void **state)
{
    static const struct {
        const char *type;
        uint32_t local, remote;
        const char *text; /* NULL: in order */
    } cases[] = {
        {"mamba", 0, 1, NULL},
        {"mamba", 3, 3, NULL},
        {"mamba", 3, 2, "component 1 (mamba): slots: local 3, remote 2"},
        {"mamba", 0, 2, "component 1 (mamba): slots: local 1, remote 2"},
        {"swa", 1, 1, NULL},
        {"swa", 2, 2, "component 1 (swa): slots is 2, but the type's number of indices does not"},
        {"dsa_tail", 2, 2, "component 1 (dsa_tail): slots is 2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct typed f;
        int rc;

        typed_init(&f, cases[i].type);
        set_slots(&f, cases[i].local, cases[i].remote);
        rc = typed_route_flags(&f, 0);
        if (rc != (cases[i].text ? PDX_EMISMATCH : 0) ||
            (cases[i].text && !strstr(f.why.text, cases[i].text)))
            fail_msg("%zu: %s", i, rc < 0 ? f.why.text : "taken");
        typed_fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_judges_its_lists),
        cmocka_unit_test(test_no_type_is_forgotten),
        cmocka_unit_test(test_an_old_name_stands_for_the_new_one),
        cmocka_unit_test(test_mamba_takes_as_many_as_there_are_slots),
        cmocka_unit_test(test_slots_that_differ_or_mean_nothing_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
