/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_run.h.
 */
#include "state_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RUN_PARTS_MAX 64

size_t sm_draw(uint64_t *seed, size_t below)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (size_t)((*seed * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % below;
}

/* Cuts [0, n) into parts of 1 to `longest`; writes where each ends. Returns how many. */
static size_t run_cut(uint64_t *seed, size_t n, size_t longest, size_t ends[RUN_PARTS_MAX])
{
    size_t nparts = 0;

    for (size_t at = 0; at < n;) {
        at += 1 + sm_draw(seed, longest);
        assert_true(nparts < RUN_PARTS_MAX);
        ends[nparts++] = at < n ? at : n;
    }
    return nparts;
}

static void run_shuffle(uint64_t *seed, size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = sm_draw(seed, i);
        size_t t = order[i - 1];

        order[i - 1] = order[j];
        order[j] = t;
    }
}

void sm_indices(uint64_t *seed, int32_t *idx, size_t n, size_t nitems)
{
    size_t ends[RUN_PARTS_MAX], order[RUN_PARTS_MAX];
    size_t nparts, got = 0;

    assert_true(n <= nitems && nitems <= SM_ITEMS_MAX);
    nparts = run_cut(seed, nitems, 4, ends);
    run_shuffle(seed, order, nparts);
    for (size_t p = 0; p < nparts && got < n; p++) {
        size_t first = order[p] ? ends[order[p] - 1] : 0;
        size_t len = ends[order[p]] - first;
        bool down = sm_draw(seed, 4) == 0;

        for (size_t i = 0; i < len && got < n; i++)
            idx[got++] = (int32_t)(down ? first + len - 1 - i : first + i);
    }
}

bool sm_sizes_meet(uint32_t a, uint32_t b)
{
    return a % b == 0 || b % a == 0;
}

/* One call for a range of layers (NULL: all) and a part of the lists, carried out at once. Returns
 * whether anything was sent. */
static bool run_call(const struct sm_plan *p, struct pdx_route *route,
                     const struct pdx_layers *layers, size_t first, size_t n)
{
    const struct pdx_index_list src = {p->src + first, n}, dst = {p->dst + first, n};
    struct pdx_transfer_status *st = NULL;
    struct pdx_error why;
    size_t nst = 1;
    int rc;

    if (p->list->type)
        rc = layers ? pdx_send_state_layers(route, layers, &src, &dst, 1, NULL, &st, 1, &nst, &why)
                    : pdx_send_state(route, &src, &dst, 1, NULL, &st, 1, &nst, &why);
    else
        rc = layers ? pdx_send_kvcache_layers(route, layers, src, dst, NULL, &st, &why)
                    : pdx_send_kvcache(route, src, dst, NULL, &st, &why);
    if (rc < 0)
        sm_fail("%s", why.text);
    assert_int_equal(nst, 1);
    if (st)
        fake_run(fake_submission_of(st));
    return st != NULL;
}

/* Where a payload's layers are cut: numbers 0 to the largest one, and one that stands for what is
 * behind it, the draft model. */
static size_t run_cut_layers(const struct sm_plan *p, uint64_t *seed, size_t ends[RUN_PARTS_MAX])
{
    int32_t largest = 0;

    for (size_t i = 0; i < p->list->n; i++)
        if (p->list->shapes[i].layer > largest)
            largest = p->list->shapes[i].layer;
    return run_cut(seed, (size_t)largest + 2, p->seed ? 3 : 1, ends);
}

static struct pdx_layers run_range(const size_t *ends, size_t nparts, size_t i)
{
    struct pdx_layers l = {.first = i ? (int32_t)ends[i - 1] : 0, .end = (int32_t)ends[i]};

    if (i + 1 == nparts) {
        if (l.first + 1 == l.end)
            l.first = PDX_LAYERS_END;
        l.end = PDX_LAYERS_END;
    }
    return l;
}

/* All ranges of all chunks, in any order. Returns whether anything was sent. */
static bool run_parts(const struct sm_plan *p, struct pdx_route *route)
{
    uint64_t seed = p->seed ? p->seed : 1;
    size_t layer_ends[RUN_PARTS_MAX], chunk_ends[RUN_PARTS_MAX] = {p->n};
    size_t order[RUN_PARTS_MAX * 4];
    size_t nranges = p->layers ? run_cut_layers(p, &seed, layer_ends) : 1;
    size_t nchunks = p->chunks ? run_cut(&seed, p->n, 3, chunk_ends) : 1;
    bool sent = false;

    assert_true(nranges * nchunks <= sizeof order / sizeof order[0]);
    run_shuffle(&seed, order, nranges * nchunks);
    for (size_t i = 0; i < nranges * nchunks; i++) {
        size_t range = order[i] / nchunks, chunk = order[i] % nchunks;
        size_t first = chunk ? chunk_ends[chunk - 1] : 0;
        size_t n = chunk_ends[chunk] - first;

        if (p->layers) {
            struct pdx_layers l = run_range(layer_ends, nranges, range);

            sent = run_call(p, route, &l, first, n) || sent;
        } else {
            sent = run_call(p, route, NULL, first, n) || sent;
        }
    }
    return sent;
}

static bool run_route(const struct sm_plan *p, const struct sm_rank *from, const struct sm_rank *to)
{
    enum pdx_payload payload = p->list->type ? PDX_PAYLOAD_STATE : PDX_PAYLOAD_KV;
    struct pdx_route_counters c;
    struct pdx_route *route;
    struct pdx_error why;
    bool carries;

    if (pdx_route_create(fake_engine(), from->layout, fake_peer(), to->layout, p->opts, &route,
                         &why) < 0)
        sm_fail("%s", why.text);
    carries = pdx_route_carries(route, payload, 0);
    sm_expect(run_parts(p, route) == carries);
    pdx_route_counters(route, &c);
    sm_expect((c.kv_sends + c.state_sends > 0) == carries);
    sm_expect((c.elsewhere > 0) == !carries);
    sm_expect(c.refused == 0);
    pdx_route_destroy(route);
    return carries;
}

/* Everything that one decode rank gets. Returns how many routes had nothing to send. */
static size_t run_decode_rank(const struct sm_plan *p, uint32_t rank, uint32_t stage)
{
    uint32_t ptp = p->prefill.tp, dtp = p->decode.tp;
    uint32_t feeding = ptp >= dtp ? ptp / dtp : 1;
    uint32_t first = ptp >= dtp ? rank * feeding : rank / (dtp / ptp);
    uint32_t stages = p->prefill.pp ? p->prefill.pp : 1;
    bool same_split = (p->decode.pp ? p->decode.pp : 1) == stages;
    size_t silent = 0;
    struct sm_rank to;

    sm_rank_init(&to, p->list, FAKE_REMOTE, &p->decode, rank, stage, p->nitems);
    for (uint32_t s = same_split ? stage : 0; s < (same_split ? stage + 1 : stages); s++)
        for (uint32_t r = first; r < first + feeding; r++) {
            struct sm_rank from;

            sm_note("%s, TP %u -> %u, rank %u (stage %u) -> %u (stage %u), seed %llu",
                    p->list->type ? p->list->type : "kv", ptp, dtp, r, s, rank, stage,
                    (unsigned long long)p->seed);
            sm_rank_init(&from, p->list, FAKE_LOCAL, &p->prefill, r, s, p->nitems);
            sm_fill(&from, p->src, p->n);
            silent += !run_route(p, &from, &to);
            sm_rank_fini(&from);
        }
    sm_check(&to, p->dst, p->n);
    sm_rank_fini(&to);
    fake_reset();
    return silent;
}

size_t sm_run(const struct sm_plan *p)
{
    size_t silent = 0;

    assert_true(sm_sizes_meet(p->prefill.tp, p->decode.tp));
    for (uint32_t stage = 0; stage < (p->decode.pp ? p->decode.pp : 1); stage++)
        for (uint32_t rank = 0; rank < p->decode.tp; rank++)
            silent += run_decode_rank(p, rank, stage);
    return silent;
}

size_t sm_transfer(const struct sm_list *l, uint32_t prefill_tp, uint32_t decode_tp,
                   const int32_t *src, const int32_t *dst, size_t n, size_t nitems)
{
    const struct sm_plan p = {.list = l,
                              .prefill = {.tp = prefill_tp},
                              .decode = {.tp = decode_tp},
                              .src = src,
                              .dst = dst,
                              .n = n,
                              .nitems = nitems};

    return sm_run(&p);
}
