/* SPDX-License-Identifier: Apache-2.0
 *
 * See fake_engine.h.
 */
#include "fake_engine.h"

#include "base/error.h"
#include "engine/proto/descriptor.h"
#include "engine/proto/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FAKE_REGIONS_MAX     20000
#define FAKE_SUBMISSIONS_MAX 4096

struct pdx_region {
    enum fake_side side;
    uint32_t id;
    size_t len;
    uint8_t *mem;
    uint8_t *hits;
};

struct pdx_prepared {
    struct pdx_job job;
    struct pdx_remote *remotes;
    struct pdxi_plan_limits limits;
    uint32_t refs;
};

struct pdx_transfer_status {
    struct fake_submission s;
    struct pdx_prepared *prepared;
};

static struct {
    struct pdx_region *regions[FAKE_REGIONS_MAX];
    uint32_t nregions;
    struct pdx_transfer_status *submissions[FAKE_SUBMISSIONS_MAX];
    size_t nsubmissions;
    size_t nprepared;
    uint8_t peer_incarnation;
    size_t refuse_prepare_after;
    int refuse_prepare;
    int refuse_submit;
} fake = {.peer_incarnation = FAKE_REMOTE};

static void *fake_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    assert_non_null(p);
    return p;
}

static void *fake_dup(const void *from, size_t n, size_t size)
{
    void *p = fake_alloc(n, size);

    if (n)
        memcpy(p, from, n * size);
    return p;
}

struct pdx_engine *fake_engine(void)
{
    return (struct pdx_engine *)&fake;
}

struct pdx_peer *fake_peer(void)
{
    return (struct pdx_peer *)&fake;
}

void fake_peer_restart(void)
{
    fake.peer_incarnation++;
}

void fake_refuse_prepare(size_t after, int code)
{
    fake.refuse_prepare_after = after;
    fake.refuse_prepare = code;
}

void fake_refuse_submit(int code)
{
    fake.refuse_submit = code;
}

struct pdx_region *fake_region(enum fake_side side, size_t len)
{
    struct pdx_region *r = fake_alloc(1, sizeof *r);

    assert_true(fake.nregions < FAKE_REGIONS_MAX);
    *r = (struct pdx_region){
        .side = side,
        .id = fake.nregions,
        .len = len,
        .mem = fake_alloc(len, 1),
        .hits = fake_alloc(len, 1),
    };
    fake.regions[fake.nregions++] = r;
    return r;
}

uint8_t *fake_mem(const struct pdx_region *region)
{
    return region->mem;
}

const uint8_t *fake_hits(const struct pdx_region *region)
{
    return region->hits;
}

static void fake_forget_submissions(void)
{
    for (size_t i = 0; i < fake.nsubmissions; i++) {
        pdx_prepared_put(fake.submissions[i]->prepared);
        free((void *)fake.submissions[i]->s.items.local);
        free((void *)fake.submissions[i]->s.items.remote);
        free(fake.submissions[i]);
    }
    fake.nsubmissions = 0;
}

void fake_reset(void)
{
    size_t nprepared;

    fake_forget_submissions();
    for (uint32_t i = 0; i < fake.nregions; i++) {
        free(fake.regions[i]->mem);
        free(fake.regions[i]->hits);
        free(fake.regions[i]);
    }
    fake.nregions = 0;
    fake.peer_incarnation = FAKE_REMOTE;
    fake.refuse_prepare = 0;
    fake.refuse_submit = 0;
    nprepared = fake.nprepared; /* of a test that failed: the next one shall not fail for it */
    fake.nprepared = 0;
    assert_int_equal(nprepared, 0);
}

size_t fake_nsubmissions(void)
{
    return fake.nsubmissions;
}

size_t fake_nprepared(void)
{
    return fake.nprepared;
}

const struct fake_submission *fake_submission_at(size_t i)
{
    assert_true(i < fake.nsubmissions);
    return &fake.submissions[i]->s;
}

const struct fake_submission *fake_submission_of(const struct pdx_transfer_status *status)
{
    return &status->s;
}

/* What src/state calls. */

size_t pdx_region_export(const struct pdx_region *region, void *buf, size_t cap)
{
    struct pdx_remote r = {
        .key = {(uint8_t)region->id},
        .len = region->len,
        .id = region->id,
        .generation = 1,
        .rights = PDX_RIGHT_ALL,
        .kind = PDX_MEM_HOST,
    };

    memset(r.incarnation, region->side, sizeof r.incarnation);
    return pdxi_remote_encode(&r, buf, cap);
}

void pdx_peer_info(const struct pdx_peer *peer, struct pdx_peer_info *ret_info)
{
    (void)peer;
    *ret_info =
        (struct pdx_peer_info){.name = "decode-0", .state = PDX_PEER_UP, .engine = fake_engine()};
    memset(ret_info->incarnation, fake.peer_incarnation, sizeof ret_info->incarnation);
}

/* The engine's own rules, with results that only its cursor needs. */
static int fake_check(const struct pdx_job *job, struct pdxi_plan_limits *ret_limits,
                      struct pdx_error *why)
{
    size_t nslices = job->nslices ? job->nslices : job->npairs;
    uint64_t *local = fake_alloc(job->npairs, sizeof *local);
    uint64_t *remote = fake_alloc(job->npairs, sizeof *remote);
    struct pdxi_plan_pair *pairs = fake_alloc(job->npairs, sizeof *pairs);
    struct pdx_slice *slices = fake_alloc(nslices, sizeof *slices);
    uint64_t bytes;
    int rc;

    for (size_t i = 0; i < job->npairs; i++) {
        assert_int_equal(job->pairs[i].local->side, FAKE_LOCAL);
        local[i] = job->pairs[i].local->len;
        remote[i] = job->pairs[i].remote->len;
    }
    rc = pdxi_plan_shape(job, local, remote, pairs, slices, ret_limits, &bytes, why);
    free(local);
    free(remote);
    free(pairs);
    free(slices);
    return rc;
}

int pdx_prepare(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                struct pdx_prepared **ret_prepared, struct pdx_error *why)
{
    struct pdx_prepared *p;
    struct pdx_pair *pairs;
    struct pdxi_plan_limits limits;
    int rc;

    assert_ptr_equal(peer, fake_peer());
    assert_int_equal(op, PDX_WRITE);
    if (fake.refuse_prepare && fake.refuse_prepare_after-- == 0)
        return pdxi_error_set(why, fake.refuse_prepare, PDX_COST_NONE, "prepare was refused");
    rc = fake_check(job, &limits, why);
    if (rc < 0)
        return rc;
    p = fake_alloc(1, sizeof *p);
    pairs = fake_dup(job->pairs, job->npairs, sizeof *pairs);
    p->remotes = fake_alloc(job->npairs, sizeof *p->remotes);
    for (size_t i = 0; i < job->npairs; i++) {
        p->remotes[i] = *job->pairs[i].remote;
        pairs[i].remote = &p->remotes[i];
    }
    p->job = *job;
    p->job.pairs = pairs;
    p->job.slices = fake_dup(job->slices, job->nslices, sizeof *job->slices);
    p->limits = limits;
    p->refs = 1;
    fake.nprepared++;
    *ret_prepared = p;
    return 0;
}

void pdx_prepared_put(struct pdx_prepared *p)
{
    if (!p || --p->refs)
        return;
    free((void *)p->job.pairs);
    free((void *)p->job.slices);
    free(p->remotes);
    free(p);
    fake.nprepared--;
}

/* Items that would be written twice, looked for in the plainest way. */
static bool fake_twice(const struct pdx_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        for (size_t j = 0; j < i; j++)
            if (items->remote[i] == items->remote[j])
                return true;
    return false;
}

static int fake_check_items(const struct pdx_submission *s, size_t entry, struct pdx_error *why)
{
    const struct pdx_items *items = &s->items;
    struct pdx_error items_why;
    struct pdxi_plan_run *runs = fake_alloc(items->n, sizeof *runs);
    int64_t n = pdxi_plan_runs(items, &s->prepared->limits, runs, &items_why);

    free(runs);
    assert_true(items->first_pair + (uint64_t)items->npairs <= s->prepared->job.npairs);
    assert_true(items->npairs || !items->first_pair);
    if (n >= 0 && fake_twice(items))
        n = pdxi_error_set(&items_why, PDX_EINVAL, PDX_COST_NONE, "an item comes twice");
    if (n >= 0)
        return 0;
    return pdxi_error_set(why, (int)n, PDX_COST_NONE, "submission %zu: %s", entry, items_why.text);
}

int pdx_submit_many(const struct pdx_submission *submissions, size_t n,
                    struct pdx_transfer_status **ret_statuses, struct pdx_error *why)
{
    for (size_t i = 0; i < n; i++) {
        int rc = submissions[i].prepared ? fake_check_items(&submissions[i], i, why) : 0;

        if (rc < 0)
            return rc;
    }
    if (fake.refuse_submit) {
        (void)pdxi_error_set(why, fake.refuse_submit, PDX_COST_NONE, "submission was refused");
        return fake.refuse_submit;
    }
    for (size_t i = 0; i < n; i++) {
        const struct pdx_submission *from = &submissions[i];
        struct pdx_transfer_status *st = NULL;

        if (from->prepared) {
            assert_true(from->items.n > 0);
            assert_true(fake.nsubmissions < FAKE_SUBMISSIONS_MAX);
            st = fake_alloc(1, sizeof *st);
            st->prepared = from->prepared;
            st->prepared->refs++;
            st->s.job = &st->prepared->job;
            st->s.items = from->items;
            st->s.items.local = fake_dup(from->items.local, from->items.n, sizeof(int32_t));
            st->s.items.remote = fake_dup(from->items.remote, from->items.n, sizeof(int32_t));
            st->s.opts = (struct pdx_submit_opts)PDX_SUBMIT_OPTS_INIT;
            if (from->opts)
                memcpy(&st->s.opts, from->opts,
                       from->opts->size < sizeof st->s.opts ? from->opts->size : sizeof st->s.opts);
            fake.submissions[fake.nsubmissions++] = st;
        }
        if (ret_statuses)
            ret_statuses[i] = st;
    }
    return 0;
}

int pdx_submit_prepared(struct pdx_prepared *prepared, const struct pdx_items *items,
                        const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                        struct pdx_error *why)
{
    struct pdx_submission s = {.prepared = prepared, .items = *items, .opts = opts};

    return pdx_submit_many(&s, 1, ret_status, why);
}

/* Walking and carrying out. */

static void fake_walk_item(const struct fake_submission *s, size_t pair, size_t item, fake_op_fn op,
                           void *ctx)
{
    const struct pdx_pair *p = &s->job->pairs[pair];
    uint64_t src = (uint64_t)s->items.local[item] * p->local_item_len;
    uint64_t dst = (uint64_t)s->items.remote[item] * p->remote_item_len;
    size_t nslices = p->nslices ? p->nslices : s->job->nslices;

    if (nslices == 0) {
        assert_int_equal(p->local_item_len, p->remote_item_len);
        op(ctx, pair, src, dst, p->local_item_len);
    }
    for (size_t i = 0; i < nslices; i++) {
        const struct pdx_slice *sl = &s->job->slices[p->first_slice + i];

        for (uint64_t row = 0; row < sl->rows; row++) {
            uint64_t from = sl->local_off + row * sl->local_pitch;
            uint64_t to = sl->remote_off + row * sl->remote_pitch;

            assert_true(from + sl->len <= p->local_item_len);
            assert_true(to + sl->len <= p->remote_item_len);
            op(ctx, pair, src + from, dst + to, sl->len);
        }
    }
}

void fake_walk(const struct fake_submission *s, fake_op_fn op, void *ctx)
{
    size_t first = s->items.first_pair;
    size_t end = s->items.npairs ? first + s->items.npairs : s->job->npairs;

    for (size_t pair = first; pair < end; pair++)
        for (size_t item = 0; item < s->items.n; item++)
            fake_walk_item(s, pair, item, op, ctx);
}

static void fake_copy(void *ctx, size_t pair, uint64_t src, uint64_t dst, uint64_t len)
{
    const struct fake_submission *s = ctx;
    const struct pdx_pair *p = &s->job->pairs[pair];
    struct pdx_region *to = fake.regions[p->remote->id];

    assert_int_equal(to->side, FAKE_REMOTE);
    assert_true(src + len <= p->local_len && dst + len <= p->remote_len);
    assert_true(p->local_base + src + len <= p->local->len);
    assert_true(p->remote_base + dst + len <= to->len);
    memcpy(to->mem + p->remote_base + dst, p->local->mem + p->local_base + src, len);
    for (uint64_t i = 0; i < len; i++)
        to->hits[p->remote_base + dst + i]++;
}

void fake_run(const struct fake_submission *s)
{
    fake_walk(s, fake_copy, (void *)s);
}

void fake_run_all(void)
{
    for (size_t i = 0; i < fake.nsubmissions; i++)
        fake_run(&fake.submissions[i]->s);
}

struct pdx_region *fake_region_bare(enum fake_side side, size_t len)
{
    struct pdx_region *r = fake_alloc(1, sizeof *r);

    assert_true(fake.nregions < FAKE_REGIONS_MAX);
    *r = (struct pdx_region){.side = side, .id = fake.nregions, .len = len};
    fake.regions[fake.nregions++] = r;
    return r;
}
