/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that submit transfers. Everything a caller can get wrong is found
 * here, on the caller's thread, before anything is queued.
 */
#include "base/clock.h"
#include "base/error.h"
#include "engine/cq.h"
#include "engine/engine.h"
#include "engine/peer.h"
#include "engine/region.h"
#include "engine/transfer.h"

#include <string.h>

static int submit_read_opts(const struct pdx_submit_opts *opts, struct pdx_submit_opts *ret,
                            struct pdx_error *why)
{
    memset(ret, 0, sizeof *ret);
    if (!opts)
        return 0;
    if (opts->size < sizeof opts->size)
        return pdxi_refuse(why, PDX_EINVAL,
                           "submit options have size %zu; start from PDX_SUBMIT_OPTS_INIT",
                           opts->size);
    memcpy(ret, opts, opts->size < sizeof *ret ? opts->size : sizeof *ret);
    if (ret->deadline_ns > PDXI_DEADLINE_MAX_NS)
        return pdxi_refuse(why, PDX_EINVAL,
                           "a transfer needs a deadline: at most %llu s; 0 is the engine's default",
                           (unsigned long long)(PDXI_DEADLINE_MAX_NS / PDX_SEC));
    if (ret->level != PDX_LEVEL_REMOTE && ret->level != PDX_LEVEL_LOCAL)
        return pdxi_refuse(why, PDX_EINVAL, "completion level %d is not known", (int)ret->level);
    if (ret->flags & ~(uint32_t)PDX_SUBMIT_TRACK)
        return pdxi_refuse(why, PDX_EINVAL, "submit flags 0x%x are not known", ret->flags);
    if (ret->notify_len > PDX_NOTIFY_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "a notification of %zu bytes is too long (at most %d)",
                           ret->notify_len, PDX_NOTIFY_MAX);
    if (ret->notify_len && !ret->notify)
        return pdxi_refuse(why, PDX_EINVAL, "notify_len is %zu but notify is NULL",
                           ret->notify_len);
    return 0;
}

static int submit_copy_notify(struct pdx_transfer_status *t, const struct pdx_submit_opts *o,
                              struct pdx_error *why)
{
    t->tracked = (o->flags & PDX_SUBMIT_TRACK) || o->notify;
    if (o->notify_len == 0)
        return 0;
    t->notify = pdxi_pool_get(&t->peer->engine->pool, o->notify_len);
    if (!t->notify)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a notification");
    memcpy(t->notify, o->notify, o->notify_len);
    t->notify_len = (uint32_t)o->notify_len;
    return 0;
}

/* What is common to all: a transfer with its options, without work. */
static int submit_begin(struct pdx_peer *peer, enum pdx_op op, const struct pdx_submit_opts *opts,
                        struct pdx_transfer_status **ret, struct pdx_error *why)
{
    struct pdx_transfer_status *t;
    struct pdx_submit_opts o;
    uint64_t deadline_ns;
    int r;

    r = submit_read_opts(opts, &o, why);
    if (r == 0)
        r = pdxi_peer_accepts(peer, why);
    if (r == 0)
        r = pdxi_transfer_new(peer, &t, why);
    if (r < 0)
        return r;
    deadline_ns = o.deadline_ns ? o.deadline_ns : peer->engine->deadline_ns;
    t->op = op;
    t->id = o.id;
    t->deadline_ns = pdxi_after_ns(t->submitted_ns, deadline_ns);
    t->callback = o.callback;
    t->callback_ctx = o.callback_ctx;
    t->cq_ctx = o.cq_ctx;
    pdxi_transfer_step_init(&t->step, op, o.level, PDXI_TRANSFER_LOSSES);
    r = submit_copy_notify(t, &o, why);
    if (r == 0 && o.cq) {
        r = pdxi_cq_reserve(o.cq, peer->engine, why);
        if (r == 0)
            t->cq = o.cq;
    }
    if (r < 0) {
        pdxi_transfer_drop(t);
        return r;
    }
    *ret = t;
    return 0;
}

/* The submission's own items instead of those of the prepared job. */
static int submit_set_runs(struct pdx_transfer_status *t, const struct pdx_prepared *p,
                           const struct pdx_items *items, struct pdx_error *why)
{
    int64_t nruns;

    t->runs = pdxi_pool_get(&p->peer->engine->pool, items->n * sizeof *t->plan.runs);
    if (!t->runs)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for %zu items", items->n);
    nruns = pdxi_prepared_runs(p, items, t->runs, why);
    if (nruns < 0)
        return (int)nruns;
    t->plan.runs = t->runs;
    t->plan.nruns = (uint32_t)nruns;
    return 0;
}

/* `items`: the submission's, or NULL. Without a list they may still name pairs. */
static int submit_set_items(struct pdx_transfer_status *t, const struct pdx_prepared *p,
                            const struct pdx_items *items, struct pdx_error *why)
{
    struct pdxi_plan_range range = p->range;
    uint64_t nitems = p->nitems;
    int r = 0;

    if (items && (items->n > 0 || items->npairs > 0 || items->first_pair > 0))
        r = pdxi_plan_range(items, p->plan.npairs, &range, why);
    if (r < 0)
        return r;
    if (items && items->n > 0) {
        nitems = items->n;
        r = submit_set_runs(t, p, items, why);
    } else if (nitems == 0) {
        r = pdxi_refuse(why, PDX_EINVAL,
                        "no items: neither the prepared job nor the submission has any");
    }
    if (r < 0)
        return r;
    t->first_pair = range.first;
    return pdxi_plan_narrow(&t->plan, &range, p->item_bytes, nitems, why);
}

/* A prepared job holds its regions, but one that is being deregistered takes no new transfers. */
static int submit_check_regions(const struct pdx_prepared *p, struct pdx_error *why)
{
    if (atomic_load(&p->peer->engine->nrevoked) == 0)
        return 0;
    for (uint32_t i = 0; i < p->plan.npairs; i++)
        if (atomic_load(&p->locals[i]->revoked))
            return pdxi_refuse(why, PDX_ESTALE, "the local region of pair %u is being deregistered",
                               i);
    return 0;
}

static int submit_set_plan(struct pdx_transfer_status *t, struct pdx_prepared *p,
                           const struct pdx_items *items, struct pdx_error *why)
{
    int r = submit_check_regions(p, why);

    t->plan = p->plan;
    if (r == 0 && !p->plan.segs)
        r = submit_set_items(t, p, items, why);
    if (r < 0)
        return r;
    pdxi_prepared_get(p);
    t->prepared = p;
    return 0;
}

static int submit_make(struct pdx_prepared *p, const struct pdx_items *items,
                       const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret,
                       struct pdx_error *why)
{
    struct pdx_transfer_status *t;
    int r = submit_begin(p->peer, p->op, opts, &t, why);

    if (r < 0)
        return r;
    r = submit_set_plan(t, p, items, why);
    if (r < 0) {
        pdxi_transfer_drop(t);
        return r;
    }
    *ret = t;
    return 0;
}

static int submit_refused(struct pdx_engine *engine, int r)
{
    pdxi_stat_add(&engine->stats, PDXI_STAT_REFUSED, 1);
    if (r == PDX_EAGAIN)
        pdxi_stat_add(&engine->stats, PDXI_STAT_AGAIN, 1);
    return r;
}

/* Queues one transfer, or gives it up. */
static int submit_post(struct pdx_transfer_status *t, struct pdx_transfer_status **ret_status,
                       struct pdx_error *why)
{
    bool keep = ret_status != NULL;
    int r;

    if (keep)
        *ret_status = t; /* before anything can end it: a callback may look at it */
    r = pdxi_transfer_post(&t, 1, why);
    if (r < 0) {
        if (keep)
            *ret_status = NULL;
        pdxi_transfer_drop(t);
        return r;
    }
    if (!keep)
        pdx_transfer_put(t);
    return 0;
}

/* Submits a job that was made for this one submission, and gives it back. */
static int submit_once(struct pdx_prepared *p, const struct pdx_submit_opts *opts,
                       struct pdx_transfer_status **ret_status, struct pdx_error *why)
{
    struct pdx_transfer_status *t;
    int r = submit_make(p, NULL, opts, &t, why);

    if (r == 0)
        r = submit_post(t, ret_status, why);
    pdxi_prepared_drop(p);
    return r;
}

static int submit_segs(struct pdx_peer *peer, enum pdx_op op, struct pdx_region *local,
                       const struct pdx_remote *remote, const struct pdx_seg *segs, size_t nsegs,
                       const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                       struct pdx_error *why)
{
    struct pdx_prepared *p;
    int r = pdxi_prepared_make_segs(peer, op, local, remote, segs, nsegs, &p, why);

    if (r == 0)
        r = submit_once(p, opts, ret_status, why);
    return r < 0 ? submit_refused(peer->engine, r) : 0;
}

int pdx_write(struct pdx_peer *peer, struct pdx_region *local, const struct pdx_remote *remote,
              const struct pdx_seg *segs, size_t nsegs, const struct pdx_submit_opts *opts,
              struct pdx_transfer_status **ret_status, struct pdx_error *why)
{
    return submit_segs(peer, PDX_WRITE, local, remote, segs, nsegs, opts, ret_status, why);
}

int pdx_read(struct pdx_peer *peer, struct pdx_region *local, const struct pdx_remote *remote,
             const struct pdx_seg *segs, size_t nsegs, const struct pdx_submit_opts *opts,
             struct pdx_transfer_status **ret_status, struct pdx_error *why)
{
    return submit_segs(peer, PDX_READ, local, remote, segs, nsegs, opts, ret_status, why);
}

int pdx_submit(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
               const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
               struct pdx_error *why)
{
    struct pdx_prepared *p;
    int r = pdxi_prepared_make(peer, op, job, &p, why);

    if (r == 0)
        r = submit_once(p, opts, ret_status, why);
    return r < 0 ? submit_refused(peer->engine, r) : 0;
}

int pdx_prepare(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                struct pdx_prepared **ret_prepared, struct pdx_error *why)
{
    struct pdx_prepared *p;
    int r = pdxi_prepared_make(peer, op, job, &p, why);

    if (r < 0)
        return r;
    p->owned_by_caller = true;
    atomic_fetch_add_explicit(&peer->users, 1, memory_order_relaxed);
    *ret_prepared = p;
    return 0;
}

void pdx_prepared_put(struct pdx_prepared *prepared)
{
    struct pdx_peer *peer;

    if (!prepared)
        return;
    peer = prepared->peer;
    pdxi_peer_get(peer);
    pdxi_prepared_drop(prepared);
    pdx_peer_put(peer); /* its use by the caller's prepared job */
    pdxi_peer_drop(peer);
}

int pdx_submit_prepared(struct pdx_prepared *prepared, const struct pdx_items *items,
                        const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                        struct pdx_error *why)
{
    struct pdx_transfer_status *t;
    int r = submit_make(prepared, items, opts, &t, why);

    if (r == 0)
        r = submit_post(t, ret_status, why);
    return r < 0 ? submit_refused(prepared->peer->engine, r) : 0;
}

/* Says which entry of a group was refused. */
static int submit_at(int r, size_t i, struct pdx_error *why)
{
    char text[sizeof why->text];

    if (!why)
        return r;
    memcpy(text, why->text, sizeof text);
    (void)pdxi_text_append(why->text, sizeof why->text, 0, "submission %zu: %s", i, text);
    return r;
}

/* The reactor is shared by a group only if all its peers belong to one engine. */
static int submit_check_many(const struct pdx_submission *subs, size_t n,
                             struct pdx_engine **ret_engine, struct pdx_error *why)
{
    struct pdx_engine *engine = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!subs[i].prepared)
            continue;
        if (!engine)
            *ret_engine = engine = subs[i].prepared->peer->engine;
        if (subs[i].prepared->peer->engine != engine)
            return pdxi_refuse(why, PDX_EINVAL,
                               "submission %zu belongs to engine %s, an earlier one to %s", i,
                               subs[i].prepared->peer->engine->name, engine->name);
    }
    return 0;
}

int pdx_submit_many(const struct pdx_submission *submissions, size_t n,
                    struct pdx_transfer_status **ret_statuses, struct pdx_error *why)
{
    struct pdx_transfer_status **ts;
    struct pdx_engine *engine = NULL;
    size_t nts = 0;
    int r = submit_check_many(submissions, n, &engine, why);

    if (r < 0)
        return submit_refused(engine, r);
    if (!engine) {
        if (ret_statuses && n)
            memset(ret_statuses, 0, n * sizeof *ret_statuses);
        return 0;
    }
    ts = pdxi_pool_get(&engine->pool, n * sizeof *ts);
    if (!ts)
        return submit_refused(engine, pdxi_refuse(why, PDX_ENOMEM, "no memory for %zu handles", n));
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct pdx_submission *s = &submissions[i];

        if (!s->prepared)
            continue;
        r = submit_make(s->prepared, &s->items, s->opts, &ts[nts], why);
        if (r < 0)
            (void)submit_at(r, i, why);
        else
            nts++;
    }
    if (r == 0) {
        size_t next = 0;

        for (size_t i = 0; ret_statuses && i < n; i++)
            ret_statuses[i] = submissions[i].prepared ? ts[next++] : NULL;
        r = pdxi_transfer_post(ts, nts, why);
        if (r < 0 && ret_statuses)
            memset(ret_statuses, 0, n * sizeof *ret_statuses);
    }
    for (size_t i = 0; i < nts; i++) {
        if (r < 0)
            pdxi_transfer_drop(ts[i]);
        else if (!ret_statuses)
            pdx_transfer_put(ts[i]);
    }
    pdxi_pool_put(&engine->pool, ts);
    return r < 0 ? submit_refused(engine, r) : 0;
}

int pdx_notify(struct pdx_peer *peer, const void *payload, size_t len,
               const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
               struct pdx_error *why)
{
    struct pdx_submit_opts o;
    struct pdx_transfer_status *t;
    int r = submit_read_opts(opts, &o, why);

    if (r == 0) {
        o.size = sizeof o;
        o.flags |= PDX_SUBMIT_TRACK;
        o.notify = payload;
        o.notify_len = len;
        o.level = PDX_LEVEL_REMOTE;
        r = submit_begin(peer, 0, &o, &t, why);
    }
    if (r == 0)
        r = submit_post(t, ret_status, why);
    return r < 0 ? submit_refused(peer->engine, r) : 0;
}
