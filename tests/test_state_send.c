/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a send: every text, and that a refused call has queued nothing,
 * whichever component is at fault; what the options of a call reach.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const int32_t numbers[] = {1, 2, 3, 4, 5, 10, -1};

static struct pdx_index_list list(size_t n)
{
    return (struct pdx_index_list){numbers, n};
}

static const struct pdx_index_list none = {NULL, 0};

/* Fails, with nothing queued and the outputs untouched. */
static void state_refused(struct pair *p, const struct pdx_index_list *src,
                          const struct pdx_index_list *dst, size_t n, int code, const char *text)
{
    struct pdx_transfer_status *const mark = (struct pdx_transfer_status *)numbers;
    struct pdx_transfer_status *st[4] = {mark, mark, mark, mark};
    struct pdx_route_counters before, after;
    size_t nst = 77;

    pdx_route_counters(p->route, &before);
    assert_int_equal(pdx_send_state(p->route, src, dst, n, NULL, st, COUNT(st), &nst, &p->why),
                     code);
    pair_has(p, text);
    assert_int_equal(p->why.code, code);
    assert_int_equal(p->why.cost, PDX_COST_NONE);
    assert_int_equal(fake_nsubmissions(), 0);
    assert_int_equal(nst, 77);
    for (size_t i = 0; i < COUNT(st); i++)
        assert_ptr_equal(st[i], mark);
    pdx_route_counters(p->route, &after);
    assert_int_equal(after.refused, before.refused + 1);
    assert_int_equal(after.state_sends, 0);
    /* Without a place for the error the outcome is the same. */
    assert_int_equal(pdx_send_state(p->route, src, dst, n, NULL, st, COUNT(st), NULL, NULL), code);
}

static void test_state_without_types_is_refused(void **state)
{
    struct pdx_index_list l = list(1);
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    pair_route(&p, 0);
    state_refused(&p, &l, &l, 1, PDX_EINVAL,
                  "PD state transfer failed: kv_args.state_types is empty but state_indices were "
                  "provided. Put ");
    pair_fini(&p);
}

static void test_state_component_count_must_match(void **state)
{
    struct pdx_index_list l[] = {list(1), list(1), list(1), list(1)};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    state_refused(&p, l, l, 2, PDX_EINVAL,
                  "PD state transfer failed: state component count mismatch (local=2, remote=3). "
                  "Pass ");
    state_refused(&p, l, l, 4, PDX_EINVAL, "(local=4, remote=3)");
    state_refused(&p, NULL, NULL, 0, PDX_EINVAL, "(local=0, remote=3)");
    state_refused(&p, l, NULL, 3, PDX_EINVAL, "src or dst is NULL");
    pair_fini(&p);
}

/* The unknown component is the last: the first two were in order and are not sent either. */
static void test_state_of_an_unknown_type_is_refused(void **state)
{
    struct pdx_index_list l[] = {list(1), list(2), list(2)};
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.components[2].type = p.remote.components[2].type = "weird";
    pair_route(&p, 0);
    state_refused(&p, l, l, 3, PDX_ESTATE_TYPE,
                  "PD state transfer failed: unknown state_type=weird. Component 2 ");
    pair_has(&p, "mamba, swa, dsa");
    /* Nor is it passed over when the request has none of it. */
    l[2] = none;
    state_refused(&p, l, l, 3, PDX_ESTATE_TYPE, "unknown state_type=weird");
    pair_fini(&p);
}

/* mamba comes last here, behind two components that are in order. */
static void test_mamba_takes_exactly_one_index(void **state)
{
    static const struct {
        size_t src, dst;
        const char *text;
    } counts[] = {
        {2, 1, "PD state transfer failed: mamba requires single state index, got src=2, dst=1. P"},
        {1, 3, "PD state transfer failed: mamba requires single state index, got src=1, dst=3. P"},
        {2, 2, "PD state transfer failed: mamba requires single state index, got src=2, dst=2. P"},
        {0, 1, "PD state transfer failed: mamba requires single state index, got src=0, dst=1. P"},
        {1, 0, "PD state transfer failed: mamba requires single state index, got src=1, dst=0. P"},
        {0, 0, "PD state transfer failed: mamba requires single state index, got src=0, dst=0. P"},
    };
    struct pair p;

    (void)state;
    pair_init(&p);
    for (struct pair_side *s = &p.local;; s = &p.remote) {
        s->components[0] = (struct pdx_component){.type = "swa", .tensors = s->swa, .ntensors = 2};
        s->components[1] = (struct pdx_component){.type = "dsa", .tensors = s->dsa, .ntensors = 1};
        s->components[2] =
            (struct pdx_component){.type = "mamba", .tensors = s->mamba, .ntensors = 2};
        if (s == &p.remote)
            break;
    }
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED); /* which does not concern mamba */
    for (size_t i = 0; i < COUNT(counts); i++) {
        const struct pdx_index_list src[] = {list(2), list(2), list(counts[i].src)};
        const struct pdx_index_list dst[] = {list(2), list(2), list(counts[i].dst)};

        state_refused(&p, src, dst, 3, PDX_EINVAL, counts[i].text);
        pair_has(&p, "component 2");
    }
    {
        const struct pdx_index_list src[] = {list(2), list(2), none};
        const struct pdx_index_list dst[] = {list(2), list(2), list(1)};

        state_refused(&p, src, dst, 3, PDX_EINVAL, counts[3].text);
        state_refused(&p, dst, src, 3, PDX_EINVAL, counts[4].text);
    }
    pair_fini(&p);
}

/* "none" on one side, or an empty list, is not a reason to pass a component over. */
static void test_state_on_one_side_only_is_refused(void **state)
{
    const struct pdx_index_list full[] = {list(1), list(2), list(2)};
    const struct pdx_index_list without[] = {list(1), none, list(2)};
    const struct pdx_index_list empty[] = {list(1), list(0), list(2)};
    const struct pdx_index_list broken[] = {list(1), {NULL, 2}, list(2)};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED);
    state_refused(
        &p, full, without, 3, PDX_EINVAL,
        "component 1 (swa) has indices on one side only, or on none: src=2, dst=0 (none)");
    state_refused(&p, without, full, 3, PDX_EINVAL, "src=0 (none), dst=2");
    state_refused(&p, full, empty, 3, PDX_EINVAL, "src=2, dst=0.");
    state_refused(&p, empty, full, 3, PDX_EINVAL, "src=0, dst=2.");
    state_refused(&p, empty, empty, 3, PDX_EINVAL, "src=0, dst=0.");
    state_refused(&p, without, empty, 3, PDX_EINVAL, "src=0 (none), dst=0.");
    state_refused(&p, broken, full, 3, PDX_EINVAL,
                  "component 1 (swa): the src list has 2 indices, but idx is NULL");
    state_refused(&p, full, broken, 3, PDX_EINVAL, "the dst list has 2 indices");
    pair_fini(&p);
}

static void test_state_missing_on_both_sides_is_passed_over(void **state)
{
    const struct pdx_index_list l[] = {list(1), none, list(2)};
    struct pdx_transfer_status *st[3];
    struct pdx_route_counters c;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state(p.route, l, l, 3, NULL, st, 3, &n, &p.why), 0);
    assert_int_equal(n, 3);
    assert_int_equal(fake_nsubmissions(), 2);
    assert_ptr_equal(fake_submission_of(st[0]), fake_submission_at(0));
    assert_null(st[1]);
    assert_ptr_equal(fake_submission_of(st[2]), fake_submission_at(1));
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.state_sends, 2);
    assert_int_equal(c.elsewhere, 0);
    pair_fini(&p);
}

/* No component at all for this request, and a layout that has none. */
static void test_state_of_nothing_is_no_error(void **state)
{
    const struct pdx_index_list l[] = {none, none, none};
    struct pdx_transfer_status *st[3] = {(struct pdx_transfer_status *)numbers};
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state(p.route, l, l, 3, NULL, st, 3, &n, &p.why), 0);
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++)
        assert_null(st[i]);
    pair_fini(&p);
    pair_init(&p);
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state(p.route, NULL, NULL, 0, NULL, NULL, 0, &n, &p.why), 0);
    assert_int_equal(n, 0);
    assert_int_equal(fake_nsubmissions(), 0);
    pair_fini(&p);
}

static void test_paged_lists_of_different_length_are_refused(void **state)
{
    struct pdx_index_list src[] = {list(1), list(3), list(2)};
    struct pdx_index_list dst[] = {list(1), list(2), list(2)};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    state_refused(&p, src, dst, 3, PDX_EINVAL,
                  "PD state transfer failed: State index length mismatch for swa: src=3 dst=2");
    pair_has(&p, "PDX_ROUTE_TRUNCATE_PAGED");
    src[1] = list(2);
    dst[2] = list(4);
    state_refused(&p, src, dst, 3, PDX_EINVAL,
                  "State index length mismatch for dsa: src=2 dst=4 (component 2)");
    pair_fini(&p);
}

static void test_paged_lists_are_cut_where_permitted_and_counted(void **state)
{
    const struct pdx_index_list src[] = {list(1), list(3), list(2)};
    const struct pdx_index_list dst[] = {list(1), list(2), list(4)};
    struct pdx_transfer_status *st[3];
    struct pdx_route_counters c;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED);
    assert_int_equal(pdx_send_state(p.route, src, dst, 3, NULL, st, 3, &n, &p.why), 0);
    assert_int_equal(fake_submission_of(st[1])->items.n, 2);
    assert_int_equal(fake_submission_of(st[2])->items.n, 2);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.truncated, 2);
    assert_int_equal(c.state_sends, 3);
    /* Not counted when the engine refuses. */
    fake_refuse_submit(PDX_EAGAIN);
    assert_int_equal(pdx_send_state(p.route, src, dst, 3, NULL, st, 3, &n, &p.why), PDX_EAGAIN);
    assert_int_equal(p.why.error_class, PDX_CLASS_RETRY);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.truncated, 2);
    assert_int_equal(c.refused, 1);
    pair_fini(&p);
}

/* A page outside the pool of the last component: the others stay where they are too. */
static void test_state_is_sent_whole_or_not_at_all(void **state)
{
    const struct pdx_index_list in[] = {list(1), list(2), list(2)};
    const struct pdx_index_list out[] = {list(1), list(2), {numbers + 4, 2}};
    const struct pdx_index_list negative[] = {{numbers + 6, 1}, list(2), list(2)};
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    state_refused(&p, in, out, 3, PDX_ERANGE, "component 2 (dsa): dst index 10");
    state_refused(&p, out, in, 3, PDX_ERANGE, "component 2 (dsa): src index");
    state_refused(&p, negative, in, 3, PDX_ERANGE, "component 0 (mamba): src index -1");
    state_refused(&p, in, negative, 3, PDX_ERANGE, "component 0 (mamba): dst index -1");
    fake_refuse_submit(PDX_EPEER);
    state_refused(&p, in, in, 3, PDX_EPEER, "submission was refused");
    pair_fini(&p);
}

static void test_state_needs_room_for_all_handles(void **state)
{
    const struct pdx_index_list l[] = {list(1), list(2), list(2)};
    struct pdx_transfer_status *st[3];
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(pdx_send_state(p.route, l, l, 3, NULL, st, 2, &n, &p.why), PDX_ENOSPC);
    pair_has(&p, "room for 2 statuses, but there are 3 components");
    assert_int_equal(fake_nsubmissions(), 0);
    /* Without an array the outcomes come by callback or queue. */
    assert_int_equal(pdx_send_state(p.route, l, l, 3, NULL, NULL, 0, NULL, &p.why), 0);
    assert_int_equal(fake_nsubmissions(), 3);
    pair_fini(&p);
}

/* The components share the id, so a record at the target would speak for one of them only. */
static void test_state_notifies_only_for_one_component(void **state)
{
    const struct pdx_index_list l[] = {list(1), list(2), list(2)};
    const struct pdx_index_list one[] = {list(1), {NULL, 0}, {NULL, 0}};
    struct pdx_submit_opts o = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[3];
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    o.flags = PDX_SUBMIT_TRACK;
    assert_int_equal(pdx_send_state(p.route, l, l, 3, &o, st, 3, &n, &p.why), PDX_EINVAL);
    pair_has(&p, "3 components");
    pair_has(&p, "pdx_notify");
    o.flags = 0;
    o.notify = "go";
    o.notify_len = 2;
    assert_int_equal(pdx_send_state(p.route, l, l, 3, &o, st, 3, &n, &p.why), PDX_EINVAL);
    assert_int_equal(fake_nsubmissions(), 0);
    assert_int_equal(pdx_send_state(p.route, one, one, 3, &o, st, 3, &n, &p.why), 0);
    assert_int_equal(fake_nsubmissions(), 1);
    pair_fini(&p);
}

static void callback(void *ctx, struct pdx_transfer_status *status)
{
    (void)ctx;
    (void)status;
}

static void check_opts(size_t i, const struct pdx_submit_opts *want)
{
    const struct pdx_submit_opts *got = &fake_submission_at(i)->opts;

    assert_int_equal(got->id, want->id);
    assert_int_equal(got->deadline_ns, want->deadline_ns);
    assert_ptr_equal(got->callback, want->callback);
    assert_ptr_equal(got->callback_ctx, want->callback_ctx);
    assert_ptr_equal(got->cq, want->cq);
    assert_ptr_equal(got->cq_ctx, want->cq_ctx);
}

static void test_options_reach_every_transfer(void **state)
{
    const struct pdx_index_list l[] = {list(1), list(2), list(2)};
    struct pdx_submit_opts o = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *st[3];
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    o.id = 42;
    o.deadline_ns = 7 * PDX_SEC;
    o.callback = callback;
    o.callback_ctx = &p;
    o.cq = (struct pdx_cq *)&o;
    o.cq_ctx = &n;
    assert_int_equal(pdx_send_state(p.route, l, l, 3, &o, st, 3, &n, &p.why), 0);
    assert_int_equal(pdx_send_kvcache(p.route, l[1], l[1], &o, st, &p.why), 0);
    assert_int_equal(pdx_send_aux(p.route, 1, 2, &o, st, &p.why), 0);
    assert_int_equal(fake_nsubmissions(), 5);
    for (size_t i = 0; i < 5; i++)
        check_opts(i, &o);
    pair_fini(&p);
}

static void kv_refused(struct pair *p, struct pdx_index_list src, struct pdx_index_list dst,
                       int code, const char *text)
{
    struct pdx_transfer_status *st = (struct pdx_transfer_status *)numbers;
    struct pdx_route_counters before, after;

    pdx_route_counters(p->route, &before);
    assert_int_equal(pdx_send_kvcache(p->route, src, dst, NULL, &st, &p->why), code);
    pair_has(p, text);
    assert_ptr_equal(st, (void *)numbers);
    assert_int_equal(fake_nsubmissions(), 0);
    pdx_route_counters(p->route, &after);
    assert_int_equal(after.refused, before.refused + 1);
    assert_int_equal(after.kv_sends, 0);
}

static void test_kv_lists_are_judged_before_anything_moves(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, PDX_ROUTE_TRUNCATE_PAGED); /* which does not concern the KV cache */
    kv_refused(&p, list(3), list(2), PDX_EINVAL,
               "kv: page lists differ in length, src=3, dst=2. P");
    kv_refused(&p, list(2), list(3), PDX_EINVAL, "src=2, dst=3");
    kv_refused(&p, list(1), none, PDX_EINVAL, "src=1, dst=0");
    kv_refused(&p, none, list(1), PDX_EINVAL, "src=0, dst=1");
    kv_refused(&p, (struct pdx_index_list){NULL, 1}, list(1), PDX_EINVAL, "idx is NULL");
    kv_refused(&p, list(6), list(6), PDX_ERANGE,
               "kv: src index 10 at position 5 of its list is outside of the src tensors, "
               "which have items 0 to 9");
    kv_refused(&p, (struct pdx_index_list){numbers + 6, 1}, list(1), PDX_ERANGE, "-1");
    pair_fini(&p);
}

/* A last chunk without pages: there is nothing to wait for. */
static void test_kv_of_no_pages_is_done_at_once(void **state)
{
    const struct pdx_index_list empty[] = {list(0), none};
    struct pdx_route_counters c;
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    for (size_t i = 0; i < 4; i++) {
        struct pdx_transfer_status *st = (struct pdx_transfer_status *)numbers;

        assert_int_equal(pdx_send_kvcache(p.route, empty[i % 2], empty[i / 2], NULL, &st, &p.why),
                         0);
        assert_null(st);
    }
    assert_int_equal(pdx_send_kvcache(p.route, none, none, NULL, NULL, NULL), 0);
    assert_int_equal(fake_nsubmissions(), 0);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.kv_sends + c.refused + c.elsewhere, 0);
    pair_fini(&p);
}

static void test_kv_without_a_cache_is_refused(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.local.desc.kv_kind = p.remote.desc.kv_kind = PDX_KV_NONE;
    p.local.desc.nkv = p.remote.desc.nkv = 0;
    pair_route(&p, 0);
    kv_refused(&p, list(1), list(1), PDX_EINVAL, "KV memory descriptors are empty on prefill side");
    pair_fini(&p);
}

static void test_aux_slots_are_judged(void **state)
{
    struct pdx_transfer_status *st;
    struct pdx_route_counters c;
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_route(&p, 0);
    assert_int_equal(pdx_send_aux(p.route, 10, 0, NULL, &st, &p.why), PDX_ERANGE);
    pair_has(&p, "aux: ");
    assert_int_equal(pdx_send_aux(p.route, 0, -1, NULL, &st, &p.why), PDX_ERANGE);
    assert_int_equal(fake_nsubmissions(), 0);
    fake_mem(p.local.region)[p.local.aux[1].off + 3 * 16 + 5] = 0x5a;
    assert_int_equal(pdx_send_aux(p.route, 3, 9, NULL, &st, &p.why), 0);
    fake_run_all();
    assert_int_equal(fake_mem(p.remote.region)[p.remote.aux[1].off + 9 * 16 + 5], 0x5a);
    assert_int_equal(fake_hits(p.remote.region)[p.remote.aux[0].off + 9 * 16], 1);
    assert_int_equal(fake_hits(p.remote.region)[p.remote.aux[0].off + 8 * 16], 0);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.aux_sends, 1);
    assert_int_equal(c.refused, 2);
    pair_fini(&p);
    pair_init(&p);
    p.local.desc.naux = p.remote.desc.naux = 0;
    pair_route(&p, 0);
    assert_int_equal(pdx_send_aux(p.route, 0, 0, NULL, &st, &p.why), PDX_EINVAL);
    pair_has(&p, "no aux buffers");
    pair_fini(&p);
}

/* The second of two MLA ranks: everything is checked, nothing is sent, nothing is an error. */
static void test_sends_of_a_copy_are_left_to_the_first_rank(void **state)
{
    const struct pdx_index_list l = list(2), longer = list(3);
    struct pdx_transfer_status *st;
    struct pdx_route_counters c;
    struct pair p;
    size_t n;

    (void)state;
    pair_init(&p);
    for (struct pair_side *s = &p.local;; s = &p.remote) {
        s->desc.kv_kind = PDX_KV_MLA;
        s->desc.components = &s->components[2];
        s->desc.ncomponents = 1;
        if (s == &p.remote)
            break;
    }
    p.remote.desc.tp_size = 1;
    p.remote.desc.engine_rank = 0;
    pair_route(&p, 0);
    st = (struct pdx_transfer_status *)numbers;
    assert_int_equal(pdx_send_kvcache(p.route, l, l, NULL, &st, &p.why), 0);
    assert_null(st);
    st = (struct pdx_transfer_status *)numbers;
    assert_int_equal(pdx_send_aux(p.route, 1, 1, NULL, &st, &p.why), 0);
    assert_null(st);
    st = (struct pdx_transfer_status *)numbers;
    assert_int_equal(pdx_send_state(p.route, &l, &l, 1, NULL, &st, 1, &n, &p.why), 0);
    assert_null(st);
    assert_int_equal(pdx_send_kvcache(p.route, l, longer, NULL, &st, &p.why), PDX_EINVAL);
    assert_int_equal(pdx_send_state(p.route, &l, &longer, 1, NULL, &st, 1, &n, &p.why), PDX_EINVAL);
    assert_int_equal(fake_nsubmissions(), 0);
    pdx_route_counters(p.route, &c);
    assert_int_equal(c.elsewhere, 3);
    assert_int_equal(c.kv_sends + c.aux_sends + c.state_sends, 0);
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_without_types_is_refused),
        cmocka_unit_test(test_state_component_count_must_match),
        cmocka_unit_test(test_state_of_an_unknown_type_is_refused),
        cmocka_unit_test(test_mamba_takes_exactly_one_index),
        cmocka_unit_test(test_state_on_one_side_only_is_refused),
        cmocka_unit_test(test_state_missing_on_both_sides_is_passed_over),
        cmocka_unit_test(test_state_of_nothing_is_no_error),
        cmocka_unit_test(test_paged_lists_of_different_length_are_refused),
        cmocka_unit_test(test_paged_lists_are_cut_where_permitted_and_counted),
        cmocka_unit_test(test_state_is_sent_whole_or_not_at_all),
        cmocka_unit_test(test_state_needs_room_for_all_handles),
        cmocka_unit_test(test_state_notifies_only_for_one_component),
        cmocka_unit_test(test_options_reach_every_transfer),
        cmocka_unit_test(test_kv_lists_are_judged_before_anything_moves),
        cmocka_unit_test(test_kv_of_no_pages_is_done_at_once),
        cmocka_unit_test(test_kv_without_a_cache_is_refused),
        cmocka_unit_test(test_aux_slots_are_judged),
        cmocka_unit_test(test_sends_of_a_copy_are_left_to_the_first_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
