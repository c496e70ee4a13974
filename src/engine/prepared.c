/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/prepared.h"

#include "base/error.h"
#include "base/hex.h"
#include "engine/engine.h"
#include "engine/peer.h"
#include "engine/proto/overlap.h"
#include "engine/region.h"

#include <string.h>

#define PAIRS_MAX  (1u << 20)
#define SLICES_MAX (1u << 24)

/* The block: the struct, then the arrays in the order of their alignment. */
struct prepared_shape {
    size_t npairs;
    size_t nslices;
    size_t nsegs;
    size_t nruns;
};

static struct pdx_prepared *prepared_alloc(struct pdx_peer *peer, enum pdx_op op,
                                           const struct prepared_shape *n)
{
    size_t len = sizeof(struct pdx_prepared) +
                 n->npairs * (sizeof(struct pdxi_plan_pair) + sizeof(struct pdx_region *) +
                              sizeof(struct pdx_remote)) +
                 n->nslices * sizeof(struct pdx_slice) + n->nsegs * sizeof(struct pdx_seg) +
                 n->nruns * sizeof(struct pdxi_plan_run);
    struct pdx_prepared *p = pdxi_pool_get(&peer->engine->pool, len);
    char *at = (char *)(p + 1);

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    atomic_init(&p->refs, 1);
    p->op = op;
    p->plan.pairs = (void *)at;
    at += n->npairs * sizeof(struct pdxi_plan_pair);
    p->remotes = (void *)at;
    at += n->npairs * sizeof(struct pdx_remote);
    p->locals = (void *)at;
    at += n->npairs * sizeof(struct pdx_region *);
    p->plan.slices = (void *)at;
    at += n->nslices * sizeof(struct pdx_slice);
    if (n->nsegs)
        p->plan.segs = (void *)at;
    at += n->nsegs * sizeof(struct pdx_seg);
    p->plan.runs = (void *)at;
    pdxi_peer_get(peer);
    p->peer = peer;
    return p;
}

/* The arrays of a plan that is being made are writable; the cursor sees them const. */
#define WRITABLE(type, array) ((type *)(uintptr_t)(array))

/* Names who owns the memory and who was meant. */
static int prepared_check_remote(const struct pdx_peer *peer, enum pdx_op op, size_t i,
                                 const struct pdx_remote *remote, struct pdx_error *why)
{
    uint32_t right = op == PDX_WRITE ? PDX_RIGHT_WRITE : PDX_RIGHT_READ;
    char theirs[PDXI_HEX_LEN(PDX_INCARNATION_LEN)];
    char ours[PDXI_HEX_LEN(PDX_INCARNATION_LEN)];

    if (!remote)
        return pdxi_refuse(why, PDX_EINVAL, "pair %zu has no remote region", i);
    if (memcmp(remote->incarnation, peer->desc.incarnation, PDX_INCARNATION_LEN) != 0) {
        pdxi_hex(remote->incarnation, PDX_INCARNATION_LEN, theirs);
        pdxi_hex(peer->desc.incarnation, PDX_INCARNATION_LEN, ours);
        return pdxi_refuse(
            why, PDX_ESTALE,
            "the remote region of pair %zu belongs to incarnation %s, but peer %s is "
            "%s; get the region's descriptor from that peer again",
            i, theirs, peer->desc.name, ours);
    }
    if (!(remote->rights & right))
        return pdxi_refuse(why, PDX_EACCESS, "peer %s does not let us %s its region %u (pair %zu)",
                           peer->desc.name, op == PDX_WRITE ? "write" : "read", remote->id, i);
    return 0;
}

static int prepared_hold(struct pdx_prepared *p, struct pdx_region *local,
                         const struct pdx_remote *remote, struct pdx_error *why)
{
    uint32_t i = p->plan.npairs;
    int r;

    if (!local)
        return pdxi_refuse(why, PDX_EINVAL, "pair %u has no local region", i);
    if (local->engine != p->peer->engine)
        return pdxi_refuse(why, PDX_EINVAL,
                           "the local region of pair %u is registered with engine %s, but the peer "
                           "was added to engine %s",
                           i, local->engine->name, p->peer->engine->name);
    r = prepared_check_remote(p->peer, p->op, i, remote, why);
    if (r < 0)
        return r;
    if (!pdxi_region_hold(local))
        return pdxi_refuse(why, PDX_ESTALE, "the local region of pair %u is being deregistered", i);
    p->locals[i] = local;
    p->remotes[i] = *remote;
    p->plan.npairs++;
    return 0;
}

static int prepared_check_items(const struct pdx_items *items, struct pdx_error *why)
{
    if (items->n && (!items->local || !items->remote))
        return pdxi_refuse(why, PDX_EINVAL, "items.n is %zu but a list is NULL", items->n);
    if (items->n > INT32_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "%zu items are too many (at most 2^31 - 1)", items->n);
    return 0;
}

static int prepared_check_job(enum pdx_op op, const struct pdx_job *job, struct pdx_error *why)
{
    if (op != PDX_WRITE && op != PDX_READ)
        return pdxi_refuse(why, PDX_EINVAL, "operation %d is neither PDX_WRITE nor PDX_READ",
                           (int)op);
    if (!job || !job->pairs || job->npairs == 0)
        return pdxi_refuse(why, PDX_EINVAL, "a job needs at least one pair");
    if (job->npairs > PAIRS_MAX || job->nslices > SLICES_MAX)
        return pdxi_refuse(why, PDX_EINVAL,
                           "a job of %zu pairs and %zu slices is too large (at most %u and %u)",
                           job->npairs, job->nslices, PAIRS_MAX, SLICES_MAX);
    if (job->nslices && !job->slices)
        return pdxi_refuse(why, PDX_EINVAL, "nslices is %zu but slices is NULL", job->nslices);
    return prepared_check_items(&job->items, why);
}

/* That no item is written twice: what it held in the end would be chance. */
static int prepared_check_overlap(const struct pdx_prepared *p, const struct pdxi_plan_run *runs,
                                  uint32_t nruns, struct pdx_error *why)
{
    struct pdxi_pool *pool = &p->peer->engine->pool;
    const bool local = p->op == PDX_READ;
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;
    void *scratch;
    bool found;

    pdxi_overlap_init(&o, runs, nruns, local);
    if (o.scratch_len == 0)
        return 0;
    scratch = pdxi_pool_get(pool, o.scratch_len);
    if (!scratch)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory to check %u runs of items", nruns);
    found = pdxi_overlap_find(&o, scratch, &twice);
    pdxi_pool_put(pool, scratch);
    if (!found)
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       "%s item %u would be written twice: it is at positions %zu and %zu of the "
                       "list (from 0); name each item once",
                       local ? "local" : "remote", twice.item, twice.first, twice.second);
}

int64_t pdxi_prepared_runs(const struct pdx_prepared *p, const struct pdx_items *items,
                           struct pdxi_plan_run *ret_runs, struct pdx_error *why)
{
    int64_t nruns = prepared_check_items(items, why);

    if (nruns == 0)
        nruns = pdxi_plan_runs(items, &p->limits, ret_runs, why);
    if (nruns > 0) {
        int r = prepared_check_overlap(p, ret_runs, (uint32_t)nruns, why);

        if (r < 0)
            return r;
    }
    return nruns;
}

/* The job's own items. */
static int prepared_fill_items(struct pdx_prepared *p, const struct pdx_items *items,
                               struct pdx_error *why)
{
    struct pdxi_plan plan = p->plan;
    int64_t nruns;
    int r = pdxi_plan_range(items, p->plan.npairs, &p->range, why);

    if (r < 0)
        return r;
    nruns = pdxi_prepared_runs(p, items, WRITABLE(struct pdxi_plan_run, p->plan.runs), why);
    if (nruns < 0)
        return (int)nruns;
    p->plan.nruns = (uint32_t)nruns;
    p->nitems = (uint32_t)items->n;
    return pdxi_plan_narrow(&plan, &p->range, p->item_bytes, p->nitems, why); /* as a submission */
}

/* Lengths of the regions behind each pair, then the plan's own check. */
static int prepared_fill(struct pdx_prepared *p, const struct pdx_job *job, struct pdx_error *why)
{
    struct pdxi_pool *pool = &p->peer->engine->pool;
    uint64_t *lens = pdxi_pool_get(pool, 2 * job->npairs * sizeof *lens);
    int r;

    if (!lens)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory to check %zu pairs", job->npairs);
    for (size_t i = 0; i < job->npairs; i++) {
        lens[i] = p->locals[i]->len;
        lens[job->npairs + i] = p->remotes[i].len;
    }
    r = pdxi_plan_shape(
        job, lens, lens + job->npairs, WRITABLE(struct pdxi_plan_pair, p->plan.pairs),
        WRITABLE(struct pdx_slice, p->plan.slices), &p->limits, &p->item_bytes, why);
    pdxi_pool_put(pool, lens);
    if (r < 0)
        return r;
    p->plan.nslices = (uint32_t)(job->nslices ? job->nslices : job->npairs);
    return prepared_fill_items(p, &job->items, why);
}

int pdxi_prepared_make(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                       struct pdx_prepared **ret, struct pdx_error *why)
{
    struct prepared_shape n;
    struct pdx_prepared *p;
    int r;

    r = prepared_check_job(op, job, why);
    if (r < 0)
        return r;
    /* Without slices the plan makes one per pair: its whole item. */
    n = (struct prepared_shape){.npairs = job->npairs,
                                .nslices = job->nslices ? job->nslices : job->npairs,
                                .nruns = job->items.n};
    p = prepared_alloc(peer, op, &n);
    if (!p)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a job of %zu pairs", job->npairs);
    for (size_t i = 0; i < job->npairs && r == 0; i++)
        r = prepared_hold(p, job->pairs[i].local, job->pairs[i].remote, why);
    if (r == 0)
        r = prepared_fill(p, job, why);
    if (r < 0) {
        pdxi_prepared_drop(p);
        return r;
    }
    *ret = p;
    return 0;
}

int pdxi_prepared_make_segs(struct pdx_peer *peer, enum pdx_op op, struct pdx_region *local,
                            const struct pdx_remote *remote, const struct pdx_seg *segs,
                            size_t nsegs, struct pdx_prepared **ret, struct pdx_error *why)
{
    struct prepared_shape n = {.npairs = 1, .nsegs = nsegs};
    struct pdx_prepared *p;
    int r;

    if (!segs || nsegs == 0)
        return pdxi_refuse(why, PDX_EINVAL, "a scatter list needs at least one entry");
    if (nsegs > INT32_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "%zu entries are too many (at most 2^31 - 1)", nsegs);
    p = prepared_alloc(peer, op, &n);
    if (!p)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a scatter list of %zu entries", nsegs);
    r = prepared_hold(p, local, remote, why);
    if (r == 0)
        r = pdxi_plan_segs(segs, nsegs, local->len, remote->len, &p->plan.bytes, why);
    if (r < 0) {
        pdxi_prepared_drop(p);
        return r;
    }
    memset(WRITABLE(struct pdxi_plan_pair, p->plan.pairs), 0, sizeof *p->plan.pairs);
    memcpy(WRITABLE(struct pdx_seg, p->plan.segs), segs, nsegs * sizeof *segs);
    p->plan.nsegs = (uint32_t)nsegs;
    *ret = p;
    return 0;
}

void pdxi_prepared_get(struct pdx_prepared *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

void pdxi_prepared_drop(struct pdx_prepared *p)
{
    struct pdx_peer *peer;

    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    peer = p->peer;
    for (uint32_t i = 0; i < p->plan.npairs; i++)
        pdxi_region_drop(p->locals[i]);
    pdxi_pool_put(&peer->engine->pool, p);
    pdxi_peer_drop(peer);
}
