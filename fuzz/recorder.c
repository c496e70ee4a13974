/* SPDX-License-Identifier: Apache-2.0
 *
 * See recorder.h. The checks stand in the order of engine/prepared.c and
 * engine/submit.c.
 */
#include "recorder.h"

#include "base/error.h"
#include "engine/proto/descriptor.h"
#include "engine/proto/overlap.h"
#include "fuzz.h"

#define REGIONS_MAX     64
#define SUBMISSIONS_MAX 64 /* of one call: components */
#define DEADLINE_MAX_NS (UINT64_C(24) * 3600 * PDX_SEC)

struct pdx_region {
    uint8_t incarnation;
    uint32_t rights;
    uint32_t id;
    uint64_t len;
};

struct pdx_transfer_status {
    struct recorder_submission s;
};

static struct {
    struct pdx_region regions[REGIONS_MAX];
    uint32_t nregions;
    struct pdx_transfer_status submissions[SUBMISSIONS_MAX];
    size_t n;
    size_t ncalls; /* to submit */
    size_t nprepared;
    bool other_peer;
    uint8_t peer[PDX_INCARNATION_LEN];
    int refuse;
} recorder;

static void *recorder_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);

    FUZZ_CHECK(p);
    return p;
}

static void *recorder_dup(const void *from, size_t n, size_t size)
{
    void *p = recorder_alloc(n, size);

    if (n)
        memcpy(p, from, n * size);
    return p;
}

struct pdx_region *recorder_region(uint8_t incarnation, uint64_t len, uint32_t rights)
{
    struct pdx_region *r = &recorder.regions[recorder.nregions];

    FUZZ_CHECK(recorder.nregions < REGIONS_MAX);
    *r = (struct pdx_region){incarnation, rights, recorder.nregions++, len};
    return r;
}

uint32_t recorder_region_id(const struct pdx_region *region)
{
    return region->id;
}

struct pdx_engine *recorder_engine(void)
{
    return (struct pdx_engine *)&recorder;
}

struct pdx_peer *recorder_peer(void)
{
    return (struct pdx_peer *)&recorder;
}

void recorder_peer_is(const uint8_t incarnation[PDX_INCARNATION_LEN])
{
    recorder.other_peer = true;
    memcpy(recorder.peer, incarnation, sizeof recorder.peer);
}

void recorder_refuse(int code)
{
    recorder.refuse = code;
}

size_t recorder_n(void)
{
    return recorder.n;
}

const struct recorder_submission *recorder_at(size_t i)
{
    FUZZ_CHECK(i < recorder.n);
    return &recorder.submissions[i].s;
}

const struct recorder_submission *recorder_of(const struct pdx_transfer_status *status)
{
    return &status->s;
}

void recorder_forget(void)
{
    FUZZ_CHECK(recorder.ncalls <= 1);
    for (size_t i = 0; i < recorder.n; i++) {
        struct recorder_submission *s = &recorder.submissions[i].s;

        pdx_prepared_put((struct pdx_prepared *)(uintptr_t)s->prepared);
        free((void *)(uintptr_t)s->items.local);
        free((void *)(uintptr_t)s->items.remote);
    }
    recorder.n = 0;
    recorder.ncalls = 0;
    recorder.refuse = 0;
}

void recorder_end(void)
{
    recorder_forget();
    FUZZ_CHECK(recorder.nprepared == 0);
    recorder.nregions = 0;
    recorder.other_peer = false;
}

/* What src/state calls. */

size_t pdx_region_export(const struct pdx_region *region, void *buf, size_t cap)
{
    struct pdx_remote r = {
        .len = region->len,
        .id = region->id,
        .generation = 1,
        .rights = region->rights,
        .kind = PDX_MEM_HOST,
    };

    memset(r.key, (int)region->id, sizeof r.key);
    memset(r.incarnation, region->incarnation, sizeof r.incarnation);
    return pdxi_remote_encode(&r, buf, cap);
}

void pdx_peer_info(const struct pdx_peer *peer, struct pdx_peer_info *ret_info)
{
    FUZZ_CHECK(peer == recorder_peer());
    *ret_info = (struct pdx_peer_info){
        .name = "decode-0", .state = PDX_PEER_UP, .engine = recorder_engine()};
    if (recorder.other_peer)
        memcpy(ret_info->incarnation, recorder.peer, sizeof recorder.peer);
    else
        memset(ret_info->incarnation, RECORDER_REMOTE, sizeof ret_info->incarnation);
}

static int prepare_check_remotes(const struct pdx_job *job, struct pdx_error *why)
{
    struct pdx_peer_info info;

    pdx_peer_info(recorder_peer(), &info);
    for (size_t i = 0; i < job->npairs; i++) {
        const struct pdx_pair *p = &job->pairs[i];

        FUZZ_CHECK(p->local && p->local->incarnation == RECORDER_LOCAL && p->remote);
        if (memcmp(p->remote->incarnation, info.incarnation, sizeof info.incarnation) != 0)
            return pdxi_refuse(why, PDX_ESTALE, "pair %zu is another peer's", i);
        if (!(p->remote->rights & PDX_RIGHT_WRITE))
            return pdxi_refuse(why, PDX_EACCESS, "pair %zu must not be written", i);
    }
    return 0;
}

/* Fills what the plan finds out. */
static int prepare_plan(struct pdx_prepared *p, struct pdx_error *why)
{
    size_t npairs = p->job.npairs;
    size_t nslices = p->job.nslices ? p->job.nslices : npairs;
    uint64_t *lens = recorder_alloc(2 * npairs, sizeof *lens);
    struct pdx_slice *slices = recorder_alloc(nslices, sizeof *slices);
    int rc;

    for (size_t i = 0; i < npairs; i++) {
        lens[i] = p->job.pairs[i].local->len;
        lens[npairs + i] = p->remotes[i].len;
    }
    p->plan_pairs = recorder_alloc(npairs, sizeof *p->plan_pairs);
    rc = pdxi_plan_shape(&p->job, lens, lens + npairs, p->plan_pairs, slices, &p->limits,
                         &p->item_bytes, why);
    free(lens);
    free(slices);
    return rc;
}

int pdx_prepare(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                struct pdx_prepared **ret_prepared, struct pdx_error *why)
{
    struct pdx_prepared *p;
    struct pdx_pair *pairs;
    int rc;

    FUZZ_CHECK(peer == recorder_peer() && op == PDX_WRITE && job->npairs && job->items.n == 0);
    rc = prepare_check_remotes(job, why);
    if (rc < 0)
        return rc;
    p = recorder_alloc(1, sizeof *p);
    pairs = recorder_dup(job->pairs, job->npairs, sizeof *pairs);
    p->remotes = recorder_alloc(job->npairs, sizeof *p->remotes);
    for (size_t i = 0; i < job->npairs; i++) {
        p->remotes[i] = *job->pairs[i].remote;
        pairs[i].remote = &p->remotes[i];
    }
    p->job = *job;
    p->job.pairs = pairs;
    p->job.slices = recorder_dup(job->slices, job->nslices, sizeof *job->slices);
    p->refs = 1;
    recorder.nprepared++;
    rc = prepare_plan(p, why);
    if (rc < 0)
        pdx_prepared_put(p);
    else
        *ret_prepared = p;
    return rc;
}

void pdx_prepared_put(struct pdx_prepared *p)
{
    if (!p || --p->refs)
        return;
    free((void *)(uintptr_t)p->job.pairs);
    free((void *)(uintptr_t)p->job.slices);
    free(p->plan_pairs);
    free(p->remotes);
    free(p);
    recorder.nprepared--;
}

static int submit_check_opts(const struct pdx_submit_opts *o, struct pdx_error *why)
{
    if (!o)
        return 0;
    if (o->size != sizeof *o || o->deadline_ns > DEADLINE_MAX_NS ||
        o->flags & ~(uint32_t)PDX_SUBMIT_TRACK || o->notify_len > PDX_NOTIFY_MAX ||
        (o->notify_len && !o->notify))
        return pdxi_refuse(why, PDX_EINVAL, "an option is wrong");
    return 0;
}

static int submit_check_twice(const struct pdxi_plan_run *runs, uint32_t nruns,
                              struct pdx_error *why)
{
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;
    void *scratch;
    bool found;

    pdxi_overlap_init(&o, runs, nruns, false);
    if (o.scratch_len == 0)
        return 0;
    scratch = malloc(o.scratch_len);
    FUZZ_CHECK(scratch);
    found = pdxi_overlap_find(&o, scratch, &twice);
    free(scratch);
    return found ? pdxi_refuse(why, PDX_EINVAL, "item %u comes twice", twice.item) : 0;
}

/* Lists, and the range of pairs. */
static int submit_check_items(const struct pdx_submission *s, uint64_t *ret_bytes,
                              struct pdx_error *why)
{
    const struct pdx_prepared *p = s->prepared;
    const struct pdx_items *items = &s->items;
    struct pdxi_plan plan = {.pairs = p->plan_pairs, .npairs = (uint32_t)p->job.npairs};
    struct pdxi_plan_range range;
    struct pdxi_plan_run *runs;
    int64_t n;
    int rc;

    FUZZ_CHECK(items->n > 0 && items->n <= INT32_MAX && items->local && items->remote);
    rc = pdxi_plan_range(items, plan.npairs, &range, why);
    if (rc < 0)
        return rc;
    runs = recorder_alloc(items->n, sizeof *runs);
    n = pdxi_plan_runs(items, &p->limits, runs, why);
    rc = n < 0 ? (int)n : submit_check_twice(runs, (uint32_t)n, why);
    free(runs);
    if (rc == 0)
        rc = pdxi_plan_narrow(&plan, &range, p->item_bytes, items->n, why);
    *ret_bytes = plan.bytes;
    return rc;
}

static struct pdx_transfer_status *submit_record(const struct pdx_submission *from, uint64_t bytes)
{
    struct pdx_transfer_status *st = &recorder.submissions[recorder.n];
    struct recorder_submission *s = &st->s;

    FUZZ_CHECK(recorder.n < SUBMISSIONS_MAX);
    recorder.n++;
    from->prepared->refs++;
    s->prepared = from->prepared;
    s->items = from->items;
    s->items.local = recorder_dup(from->items.local, from->items.n, sizeof(int32_t));
    s->items.remote = recorder_dup(from->items.remote, from->items.n, sizeof(int32_t));
    s->bytes = bytes;
    s->opts = from->opts ? *from->opts : (struct pdx_submit_opts)PDX_SUBMIT_OPTS_INIT;
    return st;
}

int pdx_submit_many(const struct pdx_submission *submissions, size_t n,
                    struct pdx_transfer_status **ret_statuses, struct pdx_error *why)
{
    uint64_t bytes[SUBMISSIONS_MAX];

    FUZZ_CHECK(n <= SUBMISSIONS_MAX && recorder.ncalls++ == 0 && why);
    for (size_t i = 0; i < n; i++) {
        int rc = 0;

        if (submissions[i].prepared)
            rc = submit_check_opts(submissions[i].opts, why);
        if (rc == 0 && submissions[i].prepared)
            rc = submit_check_items(&submissions[i], &bytes[i], why);
        if (rc < 0)
            return rc;
    }
    if (recorder.refuse)
        return pdxi_refuse(why, recorder.refuse, "told to refuse");
    for (size_t i = 0; i < n; i++) {
        struct pdx_transfer_status *st =
            submissions[i].prepared ? submit_record(&submissions[i], bytes[i]) : NULL;

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

    FUZZ_CHECK(prepared);
    return pdx_submit_many(&s, 1, ret_status, why);
}
