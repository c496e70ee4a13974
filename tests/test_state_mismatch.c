/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that does not fit between two layouts is in one text, each with
 * both values, or counted where there is no more room; draft models that one
 * side has; and a peer of another engine.
 */
#include "state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int check(struct pair *p, uint32_t flags)
{
    const struct pdx_route_opts opts = {.size = sizeof opts, .flags = flags};

    return pdx_route_check(p->local.layout, p->remote.layout, &opts, &p->why);
}

/* The numbers of the sentences, (1) to the last one, and how many are said to be missing. */
static void count_findings(const struct pair *p, unsigned *ret_shown, unsigned *ret_more)
{
    const char *more = strstr(p->why.text, " and ");
    char number[16];

    *ret_shown = *ret_more = 0;
    for (;; (*ret_shown)++) {
        (void)snprintf(number, sizeof number, " (%u) ", *ret_shown + 1);
        if (!strstr(p->why.text, number))
            break;
    }
    for (; more; more = strstr(more + 1, " and "))
        if (sscanf(more, " and %u more", ret_more) == 1)
            return;
}

/* TP sizes that do not meet, so that no item can be compared, and what else ranks say. */
static void test_all_that_ranks_say_is_in_one_text(void **state)
{
    static const char *const parts[] = {
        "the layouts of rank 1 (local) and rank 4 (remote) do not fit: (1) ",
        "tp_size: local 2, remote 3",
        "Decode pp size (2) should be equal to prefill pp size (1)",
        "page_size: local 4, remote 2",
        "local bfloat16, remote float16",
        "total_kv_head_num: local 8, remote 9",
        "state types: local [mamba, swa, dsa], remote [mamba, dsa, swa]",
        "Decode peer is missing a transfer entry for model layer 0 (local tensor 0; local has 2",
        ("Destination KV descriptors do not match prefill pp configuration (local start_layer 0, "
         "remote start_layer 1)"),
        "draft model tensors: local 2, remote 0",
        "component 0 (mamba): slots: local 2, remote 3",
    };
    struct pdx_tensor kv[PAIR_KV_MAX];
    unsigned shown, more;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.remote.desc.tp_size = 3;
    p.remote.desc.engine_rank = 4;
    p.remote.desc.pp_size = 2;
    p.remote.desc.page_size = 2;
    p.remote.desc.dtype = "float16";
    p.remote.desc.total_kv_head_num = 9;
    p.remote.desc.start_layer = 1;
    for (int i = 0; i < 4; i++)
        pair_item_len(&p.remote.kv[i], 96);
    p.remote.components[1].type = "dsa";
    p.remote.components[2].type = "swa";
    p.local.components[0].slots = 2;
    p.remote.components[0].slots = 3;
    pair_draft(&p.local, kv, 1);
    pair_layouts(&p);
    assert_int_equal(check(&p, 0), PDX_EMISMATCH);
    count_findings(&p, &shown, &more);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!more)
            pair_has(&p, parts[i]);
    assert_int_equal(shown + more, COUNT(parts));
    assert_int_equal(more, 0);
    pair_fini(&p);
}

/* Ranks that meet: then every item is compared as well. */
static void test_all_that_tensors_say_is_in_one_text(void **state)
{
    static const char *const parts[] = {
        "TP ranks: local 1 of 2, remote 0 of 2",
        "page_size: local 4, remote 8",
        "local bfloat16, remote not told",
        "kv tensor 1: item_len: local 128, remote 64",
        "kv tensor 3: item_len: local 128, remote 64",
        "aux buffer 0: item_len: local 16, remote 24",
        "component 0 (mamba): slots: local 1, remote 2",
        "component 0 (mamba) tensor 0: shard_dim: local 8, remote 4",
        "component 0 (mamba) tensor 1: item_len: local 96, remote 48",
        "component 1 (swa): Decode peer is missing a transfer entry for model layer 5",
        ("component 2 (dsa): Layer metadata must be provided by both PD peers or neither: local "
         "tells layers: no, remote: yes"),
    };
    unsigned shown, more;
    struct pair p;

    (void)state;
    pair_init(&p);
    p.remote.desc.engine_rank = 0;
    p.remote.desc.page_size = 8;
    p.remote.desc.dtype = NULL;
    p.local.desc.total_kv_head_num = p.remote.desc.total_kv_head_num = 0;
    pair_item_len(&p.remote.kv[1], 64);
    pair_item_len(&p.remote.kv[3], 64);
    pair_item_len(&p.remote.aux[0], 24);
    p.remote.components[0].slots = 2;
    p.remote.mamba[0].shard_dim = 4;
    pair_item_len(&p.remote.mamba[1], 48);
    p.local.swa[0].layer = p.remote.swa[0].layer = 4;
    p.local.swa[1].layer = 5;
    p.remote.swa[1].layer = 6;
    p.remote.dsa[0].layer = 2;
    pair_layouts(&p);
    assert_int_equal(check(&p, 0), PDX_EMISMATCH);
    for (size_t i = 0; i < COUNT(parts); i++)
        pair_has(&p, parts[i]);
    count_findings(&p, &shown, &more);
    assert_int_equal(shown, COUNT(parts));
    assert_int_equal(more, 0);
    /* The same from the call that would make it. */
    assert_int_equal(pdx_route_create(fake_engine(), p.local.layout, fake_peer(), p.remote.layout,
                                      NULL, &p.route, &p.why),
                     PDX_EMISMATCH);
    for (size_t i = 0; i < COUNT(parts); i++)
        pair_has(&p, parts[i]);
    pair_fini(&p);
}

/* 64 components that differ: whole sentences, the rest is counted. */
static void test_what_has_no_room_is_counted(void **state)
{
    struct pdx_component components[2][64];
    struct pdx_tensor tensors[2][64];
    unsigned shown, more;
    struct pair p;

    (void)state;
    pair_init(&p);
    for (size_t i = 0; i < 64; i++) {
        tensors[0][i] = p.local.swa[0];
        tensors[1][i] = p.remote.swa[0];
        pair_item_len(&tensors[1][i], 32 + i % 2);
        components[0][i] =
            (struct pdx_component){.type = "swa", .tensors = &tensors[0][i], .ntensors = 1};
        components[1][i] =
            (struct pdx_component){.type = "swa", .tensors = &tensors[1][i], .ntensors = 1};
    }
    p.local.desc.components = components[0];
    p.remote.desc.components = components[1];
    p.local.desc.ncomponents = p.remote.desc.ncomponents = 64;
    pair_layouts(&p);
    assert_int_equal(check(&p, 0), PDX_EMISMATCH);
    count_findings(&p, &shown, &more);
    assert_true(shown > 4 && more > 0);
    assert_int_equal(shown + more, 64);
    pair_has(&p, "component 0 (swa) tensor 0: item_len: local 64, remote 32");
    assert_true(strlen(p.why.text) < PDX_ERROR_TEXT_MAX);
    pair_fini(&p);
}

/* --- Draft models --- */

/* Stages of prefill and decode, and which one of prefill. */
struct stages {
    uint32_t prefill, decode, stage;
};

/* Whether so many draft layers of either side may meet. */
static bool drafts_meet(const struct stages *s, size_t local, size_t remote, uint32_t flags)
{
    bool early = s->prefill > s->decode && s->stage + 1 < s->prefill;

    if (local == remote)
        return true;
    if (local == 0 || remote == 0)
        return (flags & PDX_ROUTE_WITHOUT_DRAFT) ||
               (local == 0 && (early || (flags & PDX_ROUTE_TRUST_PAIRING)));
    return local < remote && (flags & PDX_ROUTE_TRUST_PAIRING);
}

static void test_draft_models_meet_or_are_left_alone(void **state)
{
    static const struct stages stages[] = {{1, 1, 0}, {2, 1, 0}, {2, 1, 1}, {2, 2, 1}};
    static const uint32_t flags[] = {0, PDX_ROUTE_WITHOUT_DRAFT, PDX_ROUTE_TRUST_PAIRING};

    (void)state;
    for (size_t i = 0; i < COUNT(stages) * COUNT(flags) * 9; i++) {
        const struct stages *s = &stages[i / 9 / COUNT(flags)];
        uint32_t f = flags[i / 9 % COUNT(flags)];
        size_t local = i % 3, remote = i / 3 % 3;
        bool last = s->stage + 1 == s->prefill; /* which has the draft model */
        struct pdx_tensor kv[2][PAIR_KV_MAX];
        struct pair p;
        int rc;

        if (local && !last)
            continue;

        pair_init(&p);
        p.local.desc.ncomponents = p.remote.desc.ncomponents = 0;
        p.local.desc.pp_size = s->prefill;
        p.remote.desc.pp_size = s->decode;
        p.local.desc.pp_rank = s->stage;
        p.remote.desc.pp_rank = s->decode > 1 ? s->stage : 0;
        for (int k = 0; k < 4; k++)
            p.local.kv[k].layer = p.remote.kv[k].layer = k % 2;
        pair_draft(&p.local, kv[0], local);
        pair_draft(&p.remote, kv[1], remote);
        pair_layouts(&p);
        rc = check(&p, f);
        if (rc != (drafts_meet(s, local, remote, f) ? 0 : PDX_EMISMATCH))
            fail_msg("stage %u of %u, decode %u, %zu and %zu draft layers, flags %u: %s", s->stage,
                     s->prefill, s->decode, local, remote, f, rc < 0 ? p.why.text : "taken");
        if (rc < 0 && (local == 0 || remote == 0))
            pair_has(&p, "PDX_ROUTE_WITHOUT_DRAFT");
        else if (rc < 0 && local > remote)
            pair_has(&p, "model layer 1");
        else if (rc < 0)
            pair_has(&p, s->prefill > s->decode ? "draft model tensors: local 2, remote 4"
                                                : "tensor count: local 1, remote 2");
        pair_fini(&p);
    }
}

/* Left alone means that the model's own layers go, and nothing of the draft. */
static void test_draft_of_one_side_is_not_sent(void **state)
{
    const int32_t page = 3;
    const struct pdx_index_list one = {&page, 1};

    (void)state;
    for (int which = 0; which < 2; which++) {
        struct pdx_transfer_status *st;
        struct pdx_tensor kv[PAIR_KV_MAX];
        struct pair p;

        pair_init(&p);
        pair_draft(which ? &p.remote : &p.local, kv, 1);
        pair_route(&p, PDX_ROUTE_WITHOUT_DRAFT);
        assert_int_equal(pdx_send_kvcache(p.route, one, one, NULL, &st, &p.why), 0);
        assert_int_equal(fake_submission_of(st)->job->npairs, 4);
        /* Nor is there anything behind the last layer. */
        assert_int_equal(
            pdx_send_kvcache_layers(p.route, &(struct pdx_layers){PDX_LAYERS_END, PDX_LAYERS_END},
                                    one, one, NULL, &st, &p.why),
            0);
        assert_null(st);
        pair_fini(&p);
    }
}

/* --- Whose peer --- */

static void test_peer_of_another_engine_is_refused(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    pair_layouts(&p);
    assert_int_equal(pdx_route_create((struct pdx_engine *)&p, p.local.layout, fake_peer(),
                                      p.remote.layout, NULL, &p.route, &p.why),
                     PDX_EINVAL);
    pair_has(&p, "peer decode-0 was added to another engine");
    assert_null(p.route);
    assert_int_equal(fake_nprepared(), 0);
    pair_fini(&p);
}

/* pdx_route_check goes by the options, as pdx_route_create does. */
static void test_check_goes_by_the_options(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p);
    p.remote.desc.engine_rank = 0;
    pair_layouts(&p);
    assert_int_equal(check(&p, 0), PDX_EMISMATCH);
    assert_int_equal(check(&p, PDX_ROUTE_TRUST_PAIRING), 0);
    assert_int_equal(check(&p, 16), PDX_EINVAL);
    pair_has(&p, "opts->flags 0x10: known are 0xf");
    assert_int_equal(pdx_route_check(p.local.layout, p.remote.layout,
                                     &(struct pdx_route_opts){.size = 0}, &p.why),
                     PDX_EINVAL);
    assert_int_equal(pdx_route_check(NULL, p.remote.layout, NULL, &p.why), PDX_EINVAL);
    pair_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_ranks_say_is_in_one_text),
        cmocka_unit_test(test_all_that_tensors_say_is_in_one_text),
        cmocka_unit_test(test_what_has_no_room_is_counted),
        cmocka_unit_test(test_draft_models_meet_or_are_left_alone),
        cmocka_unit_test(test_draft_of_one_side_is_not_sent),
        cmocka_unit_test(test_peer_of_another_engine_is_refused),
        cmocka_unit_test(test_check_goes_by_the_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
