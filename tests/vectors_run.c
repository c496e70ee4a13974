/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_run.h.
 *
 * The flags of every route: the cases pair ranks that never meet and have every
 * rank send its copy, so the pairing is trusted; and the version that was
 * captured knows current names of types only.
 */
#include "vectors_run.h"

#include "vectors_side.h"
#include "vectors_want.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_FLAGS   (PDX_ROUTE_TRUST_PAIRING | PDX_ROUTE_CURRENT_NAMES)
#define RUN_OPS_MAX (1u << 22) /* rows of all items of all pairs that are walked */

struct run {
    struct vec_case *c;
    struct vec_outcome *out;
    struct vec_side local, remote;
    struct pdx_route *route;
    struct pdx_transfer_status **statuses; /* owned; NULL entries: nothing was sent */
    size_t nstatuses;
};

typedef int (*run_send_fn)(struct run *r, struct pdx_error *why);

static void run_broken(struct vec_outcome *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void run_broken(struct vec_outcome *out, const char *format, ...)
{
    va_list args;

    if (out->broken)
        return;
    out->broken = true;
    va_start(args, format);
    (void)vsnprintf(out->text, sizeof out->text, format, args);
    va_end(args);
}

static void run_log(void *ctx, enum pdx_log_level level, const char *line)
{
    struct vec_outcome *out = ctx;
    int n = snprintf(out->log + out->log_len, sizeof out->log - out->log_len, "%s\n", line);

    (void)level;
    if (n > 0 && (size_t)n < sizeof out->log - out->log_len)
        out->log_len += (size_t)n;
}

/* --- What was sent --- */

struct run_walk {
    struct run *r;
    const struct fake_submission *s;
};

static void run_piece(void *ctx, size_t pair, uint64_t src, uint64_t dst, uint64_t len)
{
    const struct run_walk *w = ctx;
    const struct pdx_pair *p = &w->s->job->pairs[pair];
    const struct pdx_tensor *from = vec_side_tensor(&w->r->local, p->local_base);
    const struct pdx_tensor *to = vec_side_tensor(&w->r->remote, p->remote_base);
    struct vec_piece piece = {.src = (int64_t)src, .dst = (int64_t)dst, .len = (int64_t)len};

    if (!from || !to || p->local != w->r->local.region) {
        run_broken(w->r->out, "pair %zu of a submission names no tensor of the layouts", pair);
        return;
    }
    if (src > from->len || len > from->len - src || dst > to->len || len > to->len - dst)
        run_broken(w->r->out, "pair %zu: [%llu, %llu, %llu] leaves its tensors", pair,
                   (unsigned long long)src, (unsigned long long)dst, (unsigned long long)len);
    piece.from = vec_side_name(&w->r->local, from);
    piece.to = vec_side_name(&w->r->remote, to);
    vec_plan_add(&w->r->out->plan, &piece);
}

/* How many pieces a walk would give. */
static uint64_t run_nops(const struct fake_submission *s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < s->job->npairs; i++) {
        const struct pdx_pair *p = &s->job->pairs[i];
        size_t nslices = p->nslices ? p->nslices : s->job->nslices;
        uint64_t rows = nslices == 0;

        for (size_t k = 0; k < nslices; k++)
            rows += s->job->slices[p->first_slice + k].rows;
        if (rows > RUN_OPS_MAX || s->items.n > RUN_OPS_MAX)
            return UINT64_MAX;
        n += rows * s->items.n;
    }
    return n;
}

/* One transfer stands for one payload, and a status for what it sent. */
static void run_collect(struct run *r)
{
    size_t sent = 0;

    for (size_t i = 0; i < r->nstatuses; i++) {
        struct run_walk w = {.r = r};
        size_t before = r->out->plan.n;

        if (!r->statuses[i])
            continue;
        sent++;
        w.s = fake_submission_of(r->statuses[i]);
        if (run_nops(w.s) > RUN_OPS_MAX) {
            run_broken(r->out, "the plan is too long to be compared");
            return;
        }
        fake_walk(w.s, run_piece, &w);
        if (r->out->plan.n == before)
            run_broken(r->out, "status %zu stands for a transfer of nothing", i);
        for (size_t k = before; r->local.desc.ncomponents && k < r->out->plan.n; k++)
            if (r->out->plan.at[k].from.list != (int32_t)i)
                run_broken(r->out, "status %zu is of component %d", i,
                           r->out->plan.at[k].from.list);
    }
    if (sent != fake_nsubmissions())
        run_broken(r->out, "%zu transfers were submitted, %zu statuses returned",
                   fake_nsubmissions(), sent);
    if (r->out->plan.full)
        run_broken(r->out, "the plan has more than %u pieces", VEC_PIECES_MAX);
    vec_plan_merge(&r->out->plan);
}

/* --- The way of every operation --- */

static int run_prepare(struct run *r, uint32_t flags, struct pdx_error *why)
{
    struct pdx_route_opts opts = PDX_ROUTE_OPTS_INIT;
    int rc;

    if ((rc = vec_side_layout(&r->local, why)) < 0 || (rc = vec_side_layout(&r->remote, why)) < 0)
        return rc;
    opts.flags = RUN_FLAGS | flags;
    opts.log = run_log;
    opts.log_ctx = r->out;
    return pdx_route_create(fake_engine(), r->local.layout, fake_peer(), r->remote.layout, &opts,
                            &r->route, why);
}

/* Both sides are described. `nstatuses` is how many transfers the send may be. */
static void run_send(struct run *r, uint32_t flags, size_t nstatuses, run_send_fn send)
{
    struct pdx_error why = {.code = 0};
    int rc;

    r->statuses = calloc(nstatuses + 1, sizeof(struct pdx_transfer_status *));
    r->nstatuses = nstatuses;
    if (!r->statuses)
        vec_malformed(r->c, "no memory for %zu statuses", nstatuses);
    if (r->c->malformed[0])
        return;
    rc = run_prepare(r, flags, &why);
    if (rc == 0)
        rc = send(r, &why);
    if (rc == 0) {
        run_collect(r);
        return;
    }
    r->out->refused = true;
    (void)snprintf(r->out->text, sizeof r->out->text, "%s", why.text);
    if (fake_nsubmissions() > 0)
        run_broken(r->out, "refused after %zu transfers were submitted: %s", fake_nsubmissions(),
                   why.text);
    else if (rc > 0 || why.code != rc || !why.text[0])
        run_broken(r->out, "code %d was returned, but %s explained: %s", rc, pdx_err_name(why.code),
                   why.text);
}

static void run_fini(struct run *r)
{
    pdx_route_destroy(r->route);
    vec_side_fini(&r->local);
    vec_side_fini(&r->remote);
    free(r->statuses);
    fake_reset();
}

void vec_outcome_fini(struct vec_outcome *o)
{
    vec_plan_fini(&o->plan);
    *o = (struct vec_outcome){0};
}

/* An index that no caller could pass. */
static int run_unheld(struct pdx_error *why)
{
    *why = (struct pdx_error){.code = PDX_ERANGE, .text = "an index is beyond 32 bits"};
    return PDX_ERANGE;
}

/* --- send_kvcache --- */

static int kvcache_send(struct run *r, struct pdx_error *why)
{
    struct vec_indices src, dst;
    int rc;

    vec_indices_init(&src, r->c, json_object_get(r->c->in, "src_idx"), "src_idx");
    vec_indices_init(&dst, r->c, json_object_get(r->c->in, "dst_idx"), "dst_idx");
    if (src.unheld || dst.unheld)
        rc = run_unheld(why);
    else
        rc = pdx_send_kvcache(r->route, (struct pdx_index_list){src.idx, src.n},
                              (struct pdx_index_list){dst.idx, dst.n}, NULL, &r->statuses[0], why);
    vec_indices_fini(&src);
    vec_indices_fini(&dst);
    return rc;
}

static void kvcache_run(struct vec_case *c, uint32_t flags, struct vec_outcome *ret)
{
    struct run r = {.c = c, .out = ret};

    vec_side_kv(&r.local, c, FAKE_LOCAL);
    vec_side_kv(&r.remote, c, FAKE_REMOTE);
    run_send(&r, flags, 1, kvcache_send);
    run_fini(&r);
}

/* --- send_state --- */

/* The lists of one side. As many are passed as the longer side of the case has; what the other
 * lacks is none, as is null. The original could not tell null from empty at the receiver; this API
 * can, so there null stays none and an empty list stays empty. */
static bool state_lists(struct run *r, const char *key, struct vec_indices *lists,
                        struct pdx_index_list *ret)
{
    const json_t *from = vec_list(r->c, r->c->in, key);
    bool held = true;

    for (size_t i = 0; i < r->nstatuses; i++) {
        vec_indices_init(&lists[i], r->c, json_array_get(from, i), key);
        ret[i] = (struct pdx_index_list){lists[i].idx, lists[i].n};
        held = held && !lists[i].unheld;
    }
    return held;
}

static int state_send(struct run *r, struct pdx_error *why)
{
    size_t n = r->nstatuses;
    struct vec_indices *lists = calloc(2 * n + 1, sizeof *lists);
    struct pdx_index_list *passed = calloc(2 * n + 1, sizeof *passed);
    size_t returned = n;
    int rc = PDX_ENOMEM;

    if (!lists || !passed) {
        vec_malformed(r->c, "no memory for %zu lists", 2 * n);
        goto out_lists;
    }
    rc = 0;
    if (!state_lists(r, "src_state", lists, passed) ||
        !state_lists(r, "dst_state", lists + n, passed + n))
        rc = run_unheld(why);
    if (rc == 0)
        rc = pdx_send_state(r->route, passed, passed + n, n, NULL, r->statuses, n, &returned, why);
    if (rc == 0 && returned != n)
        run_broken(r->out, "%zu statuses were returned for %zu components", returned, n);
    for (size_t i = 0; i < 2 * n; i++)
        vec_indices_fini(&lists[i]);

out_lists:
    free(lists);
    free(passed);
    return rc;
}

static void state_run(struct vec_case *c, uint32_t flags, struct vec_outcome *ret)
{
    size_t src = json_array_size(vec_list(c, c->in, "src_state"));
    size_t dst = json_array_size(vec_list(c, c->in, "dst_state"));
    struct run r = {.c = c, .out = ret};

    vec_side_state(&r.local, c, FAKE_LOCAL);
    vec_side_state(&r.remote, c, FAKE_REMOTE);
    run_send(&r, flags, src > dst ? src : dst, state_send);
    run_fini(&r);
}

/* --- send_aux --- */

/* What the cases fill aux buffer `i` with. */
static void aux_fill(const struct vec_side *s)
{
    uint8_t *mem = fake_mem(s->region);

    for (size_t i = 0; mem && i < s->ntensors; i++)
        for (uint64_t k = 0; k < s->tensors[i].len; k++)
            mem[s->tensors[i].off + k] = (uint8_t)(37 * i + 7 * k + 1);
}

static int aux_send(struct run *r, struct pdx_error *why)
{
    int64_t src = vec_int(r->c, json_object_get(r->c->in, "src_aux"), "src_aux");
    int64_t dst = vec_int(r->c, json_object_get(r->c->in, "dst_aux"), "dst_aux");

    if (src < INT32_MIN || src > INT32_MAX || dst < INT32_MIN || dst > INT32_MAX)
        return run_unheld(why);
    aux_fill(&r->local);
    return pdx_send_aux(r->route, (int32_t)src, (int32_t)dst, NULL, &r->statuses[0], why);
}

/* The bytes that a message carried are now in the buffer and slot that it named. */
static void aux_check_message(struct run *r, size_t i)
{
    const uint8_t *mem = fake_mem(r->remote.region);
    const struct pdx_tensor *t;
    struct vec_message m;
    uint64_t at;

    vec_message_init(&m, r->c, i);
    t = m.buffer < r->remote.ntensors ? &r->remote.tensors[m.buffer] : NULL;
    if (!t || __builtin_mul_overflow((uint64_t)m.slot, t->item_len, &at) || at > t->len ||
        m.len > t->len - at)
        run_broken(r->out, "aux message %zu does not fit in the buffers", i);
    else if (!mem)
        run_broken(r->out, "the aux buffers are too long to be filled");
    else if (m.payload && memcmp(mem + t->off + at, m.payload, m.len) != 0)
        run_broken(r->out, "aux buffer %u: slot %d has other bytes than the message", m.buffer,
                   m.slot);
    vec_message_fini(&m);
}

static void aux_run(struct vec_case *c, uint32_t flags, struct vec_outcome *ret)
{
    struct run r = {.c = c, .out = ret};

    /* A rank without such buffers has nothing to make the call with. */
    if (json_array_size(vec_list(c, c->local, "aux_lens")) == 0)
        return;
    vec_side_aux(&r.local, c, FAKE_LOCAL);
    vec_side_aux(&r.remote, c, FAKE_REMOTE);
    run_send(&r, flags, 1, aux_send);
    if (!c->malformed[0] && !ret->refused && !ret->broken && vec_nmessages(c) > 0 &&
        fake_mem(r.local.region) && fake_mem(r.remote.region))
        fake_run_all();
    for (size_t i = 0; !c->malformed[0] && !ret->refused && i < vec_nmessages(c); i++)
        aux_check_message(&r, i);
    run_fini(&r);
}

/* --- mamba_blocks --- */

static int blocks_send(struct run *r, struct pdx_error *why)
{
    const int32_t slot = 0;
    const struct pdx_index_list list = {&slot, 1};
    size_t returned;

    return pdx_send_state(r->route, &list, &list, 1, NULL, r->statuses, 1, &returned, why);
}

static void blocks_run(struct vec_case *c, uint32_t flags, struct vec_outcome *ret)
{
    struct run r = {.c = c, .out = ret};

    vec_side_blocks(&r.local, c, FAKE_LOCAL);
    vec_side_blocks(&r.remote, c, FAKE_REMOTE);
    run_send(&r, flags, 1, blocks_send);
    run_fini(&r);
}

/* --- The table --- */

static const struct vec_op ops[] = {
    {"send_kvcache", kvcache_run, NULL},
    {"send_state", state_run, NULL},
    {"send_aux", aux_run, NULL},
    {"mamba_blocks", blocks_run, NULL},
    {"aux_recv", NULL, "the receiving side of aux messages, which is no planning"},
    {"submit", NULL, "chunks and rooms, which are no planning"},
    {"meta_parse", NULL, "messages of the original, which the library does not speak"},
    {"pack_lists", NULL, "messages of the original, which the library does not speak"},
    {"rank_map", NULL, "which ranks a request involves, which is no planning"},
    {"unique_rank", NULL, "the number of a rank in status messages, which is no planning"},
    {"status_seq", NULL, "states of a room, which are no planning"},
    {"decode_seq", NULL, "states of a room, which are no planning"},
    {"sender_flow", NULL, "states of a room, which are no planning"},
};

const struct vec_op *vec_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}
