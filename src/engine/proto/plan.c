/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proto/plan.h"

#include "base/check.h"
#include "base/error.h"

#include <inttypes.h>

/* An item index is an int32_t. */
#define ITEMS_MAX (UINT64_C(1) << 31)

/* Items of a long run that are looked at together. */
#define BLOCK 16u

/* What the slices of a pair reach and move, within one item. */
struct plan_reach {
    uint64_t local; /* bytes from the item's start to the end of its last slice; at least 1 */
    uint64_t remote;
    size_t local_slice; /* the slice that reaches so far */
    size_t remote_slice;
    uint64_t bytes;
};

/* Checks a slice by itself; one whose rows touch on both sides becomes one row. */
static int plan_slice(const struct pdx_slice *s, size_t i, struct pdx_slice *ret,
                      struct pdx_error *why)
{
    uint64_t bytes;

    if (s->len == 0 || s->rows == 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "slice %zu: len %" PRIu64 ", rows %" PRIu64 "; both must be at least 1",
                           i, s->len, s->rows);
    if (s->rows > 1 && (s->local_pitch < s->len || s->remote_pitch < s->len))
        return pdxi_refuse(why, PDX_EINVAL,
                           "slice %zu: rows of %" PRIu64 " bytes overlap, the pitch is %" PRIu64
                           " local and %" PRIu64 " remote; it must be at least len",
                           i, s->len, s->local_pitch, s->remote_pitch);
    if (!pdxi_mul_u64(s->len, s->rows, &bytes))
        return pdxi_refuse(why, PDX_EOVERFLOW,
                           "slice %zu: %" PRIu64 " rows of %" PRIu64
                           " bytes need more than 64 bits",
                           i, s->rows, s->len);
    *ret = *s;
    if (s->local_pitch == s->len && s->remote_pitch == s->len) {
        ret->len = bytes;
        ret->rows = 1;
    }
    return 0;
}

/* Where the last row of a slice ends. */
static bool plan_slice_end(const struct pdx_slice *s, uint64_t off, uint64_t pitch,
                           uint64_t *ret_end)
{
    uint64_t last;

    return pdxi_mul_u64(s->rows - 1, pitch, &last) && pdxi_add_u64(last, off, &last) &&
           pdxi_add_u64(last, s->len, ret_end);
}

/* Over slices that plan_slice has passed. */
static int plan_reach(const struct pdx_slice *slices, size_t first, size_t n,
                      struct plan_reach *ret, struct pdx_error *why)
{
    struct plan_reach r = {0};

    for (size_t i = first; i < first + n; i++) {
        const struct pdx_slice *s = &slices[i];
        uint64_t local, remote;

        if (!plan_slice_end(s, s->local_off, s->local_pitch, &local) ||
            !plan_slice_end(s, s->remote_off, s->remote_pitch, &remote) ||
            !pdxi_add_u64(r.bytes, s->len * s->rows, &r.bytes))
            return pdxi_refuse(why, PDX_EOVERFLOW,
                               "slice %zu: offsets and pitches need more than 64 bits (len %" PRIu64
                               ", rows %" PRIu64 ", local offset %" PRIu64 ", pitch %" PRIu64
                               ", remote offset %" PRIu64 ", pitch %" PRIu64 ")",
                               i, s->len, s->rows, s->local_off, s->local_pitch, s->remote_off,
                               s->remote_pitch);
        if (local > r.local) {
            r.local = local;
            r.local_slice = i;
        }
        if (remote > r.remote) {
            r.remote = remote;
            r.remote_slice = i;
        }
    }
    *ret = r;
    return 0;
}

/* One side of a pair. */
struct plan_side {
    const char *name;
    uint64_t region_len;
    uint64_t base;
    uint64_t item_len;
    uint64_t len; /* of the tensor; 0: to the region's end */
    uint64_t reach;
    size_t reach_slice;
};

/* Checks it, and lowers *items to the number of its items. The last one need not be there beyond
 * what its slices reach: items of several tensors may take turns in one buffer. */
static int plan_side(const struct plan_side *s, size_t pair, uint64_t *items, struct pdx_error *why)
{
    uint64_t len = s->len;
    uint64_t n = 1;

    if (!pdxi_inside(s->base, len, s->region_len))
        return pdxi_refuse(why, PDX_ERANGE,
                           "pair %zu: %s_base %" PRIu64 " and %s_len %" PRIu64
                           " leave the %s region of %" PRIu64 " bytes",
                           pair, s->name, s->base, s->name, len, s->name, s->region_len);
    if (len == 0)
        len = s->region_len - s->base;
    if (s->reach > (s->item_len ? s->item_len : len))
        return pdxi_refuse(why, PDX_ERANGE,
                           "pair %zu: slice %zu ends at byte %" PRIu64 " of the %s %s of %" PRIu64
                           " bytes",
                           pair, s->reach_slice, s->reach, s->name, s->item_len ? "item" : "tensor",
                           s->item_len ? s->item_len : len);
    if (s->item_len)
        n = len < s->reach ? 0 : (len - s->reach) / s->item_len + 1;
    if (n < *items)
        *items = n;
    return 0;
}

/* The slices that hold for a pair of a job that has some. */
static int plan_pair_slices(const struct pdx_job *job, size_t i, struct pdxi_plan_pair *ret,
                            struct pdx_error *why)
{
    const struct pdx_pair *p = &job->pairs[i];

    if (p->nslices == 0 ? p->first_slice != 0
                        : !pdxi_inside(p->first_slice, p->nslices, job->nslices))
        return pdxi_refuse(why, PDX_EINVAL,
                           "pair %zu: first_slice %u and nslices %u leave the job's %zu slices", i,
                           p->first_slice, p->nslices, job->nslices);
    ret->first_slice = p->first_slice;
    ret->nslices = p->nslices ? p->nslices : (uint32_t)job->nslices;
    return 0;
}

/* The slice of a pair that moves whole items. */
static int plan_pair_whole(const struct pdx_job *job, size_t i, struct pdxi_plan_pair *ret,
                           struct pdx_slice *ret_slice, struct pdx_error *why)
{
    const struct pdx_pair *p = &job->pairs[i];
    uint64_t len = p->local_item_len;

    if (p->first_slice || p->nslices)
        return pdxi_refuse(why, PDX_EINVAL,
                           "pair %zu: first_slice %u and nslices %u, but the job has no slices", i,
                           p->first_slice, p->nslices);
    if (len == 0 || len != p->remote_item_len)
        return pdxi_refuse(
            why, PDX_EINVAL,
            "pair %zu: whole items need equal item lengths of at least 1 byte; local "
            "is %" PRIu64 ", remote %" PRIu64 "; give slices to move parts",
            i, len, p->remote_item_len);
    *ret_slice = (struct pdx_slice){.len = len, .rows = 1, .local_pitch = len, .remote_pitch = len};
    ret->first_slice = (uint32_t)i;
    ret->nslices = 1;
    return 0;
}

static int plan_pair_sides(const struct pdx_pair *p, size_t i, uint64_t region_len,
                           uint64_t remote_len, const struct plan_reach *reach,
                           struct pdxi_plan_limits *limits, struct pdx_error *why)
{
    const struct plan_side local = {.name = "local",
                                    .region_len = region_len,
                                    .base = p->local_base,
                                    .item_len = p->local_item_len,
                                    .len = p->local_len,
                                    .reach = reach->local,
                                    .reach_slice = reach->local_slice};
    const struct plan_side remote = {.name = "remote",
                                     .region_len = remote_len,
                                     .base = p->remote_base,
                                     .item_len = p->remote_item_len,
                                     .len = p->remote_len,
                                     .reach = reach->remote,
                                     .reach_slice = reach->remote_slice};
    int rc = plan_side(&local, i, &limits->local_items, why);

    return rc < 0 ? rc : plan_side(&remote, i, &limits->remote_items, why);
}

static int plan_counts(const struct pdx_job *job, struct pdx_error *why)
{
    if (job->npairs == 0 || !job->pairs)
        return pdxi_refuse(why, PDX_EINVAL, "the job has no pairs");
    if (job->nslices > 0 && !job->slices)
        return pdxi_refuse(why, PDX_EINVAL, "nslices is %zu, but slices is NULL", job->nslices);
    if (job->npairs > UINT32_MAX || job->nslices > UINT32_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "%zu pairs and %zu slices; at most %u of each",
                           job->npairs, job->nslices, UINT32_MAX);
    return 0;
}

int pdxi_plan_shape(const struct pdx_job *job, const uint64_t *region_lens,
                    const uint64_t *remote_lens, struct pdxi_plan_pair *ret_pairs,
                    struct pdx_slice *ret_slices, struct pdxi_plan_limits *ret_limits,
                    uint64_t *ret_item_bytes, struct pdx_error *why)
{
    struct pdxi_plan_limits limits = {ITEMS_MAX, ITEMS_MAX};
    struct plan_reach reach = {0};
    uint64_t item_bytes = 0;
    int rc = plan_counts(job, why);

    for (size_t i = 0; i < job->nslices && rc == 0; i++)
        rc = plan_slice(&job->slices[i], i, &ret_slices[i], why);
    for (size_t i = 0; i < job->npairs && rc == 0; i++) {
        const struct pdx_pair *p = &job->pairs[i];
        struct pdxi_plan_pair *r = &ret_pairs[i];

        *r = (struct pdxi_plan_pair){.local_base = p->local_base,
                                     .remote_base = p->remote_base,
                                     .local_item_len = p->local_item_len,
                                     .remote_item_len = p->remote_item_len,
                                     .bytes_before = item_bytes};
        rc = job->nslices ? plan_pair_slices(job, i, r, why)
                          : plan_pair_whole(job, i, r, &ret_slices[i], why);
        /* Most pairs use the slices of the pair before them. */
        if (rc == 0 &&
            (i == 0 || r->first_slice != r[-1].first_slice || r->nslices != r[-1].nslices))
            rc = plan_reach(ret_slices, r->first_slice, r->nslices, &reach, why);
        if (rc == 0)
            rc = plan_pair_sides(p, i, region_lens[i], remote_lens[i], &reach, &limits, why);
        if (rc == 0 && !pdxi_add_u64(item_bytes, reach.bytes, &item_bytes))
            rc = pdxi_refuse(why, PDX_EOVERFLOW,
                             "pair %zu: the pairs up to here move more than 64 bits of bytes", i);
    }
    if (rc < 0)
        return rc;
    *ret_limits = limits;
    *ret_item_bytes = item_bytes;
    return 0;
}

int pdxi_plan_range(const struct pdx_items *items, uint32_t npairs, struct pdxi_plan_range *ret,
                    struct pdx_error *why)
{
    const uint32_t first = items->first_pair;
    const uint32_t n = items->npairs;

    if (n == 0 ? first != 0 : !pdxi_inside(first, n, npairs))
        return pdxi_refuse(why, PDX_EINVAL,
                           "items: first_pair %u and npairs %u leave the job's %u pairs (npairs 0 "
                           "is all of them, from first_pair 0)",
                           first, n, npairs);
    *ret = (struct pdxi_plan_range){first, n ? n : npairs};
    return 0;
}

int pdxi_plan_narrow(struct pdxi_plan *plan, const struct pdxi_plan_range *range,
                     uint64_t item_bytes, uint64_t nitems, struct pdx_error *why)
{
    const struct pdxi_plan_pair *first = &plan->pairs[range->first];
    const bool to_end = range->first + range->npairs == plan->npairs;
    uint64_t each = (to_end ? item_bytes : first[range->npairs].bytes_before) - first->bytes_before;

    if (!pdxi_mul_u64(each, nitems, &plan->bytes))
        return pdxi_refuse(why, PDX_EOVERFLOW,
                           "%" PRIu64 " items of %" PRIu64 " bytes do not fit in 64 bits", nitems,
                           each);
    plan->pairs = first;
    plan->npairs = range->npairs;
    return 0;
}

static int64_t plan_item_refuse(const struct pdx_items *items, size_t i,
                                const struct pdxi_plan_limits *limits, struct pdx_error *why)
{
    return pdxi_refuse(
        why, PDX_ERANGE,
        "item %zu of %zu: local %d must be in [0, %" PRIu64 "), remote %d in [0, %" PRIu64 ")", i,
        items->n, items->local[i], limits->local_items, items->remote[i], limits->remote_items);
}

/* Whether the next BLOCK items go on with a run. The last one tells most that do not; the loop has
 * no exit, so that it becomes a few vector instructions. */
static bool plan_run_goes_on(const int32_t *local, const int32_t *remote, uint32_t next_local,
                             uint32_t next_remote)
{
    uint32_t differ = 0;

    if ((uint32_t)local[BLOCK - 1] != next_local + BLOCK - 1 ||
        (uint32_t)remote[BLOCK - 1] != next_remote + BLOCK - 1)
        return false;
    for (uint32_t k = 0; k < BLOCK; k++)
        differ |=
            ((uint32_t)local[k] ^ (next_local + k)) | ((uint32_t)remote[k] ^ (next_remote + k));
    return differ == 0;
}

int64_t pdxi_plan_runs(const struct pdx_items *items, const struct pdxi_plan_limits *limits,
                       struct pdxi_plan_run *ret_runs, struct pdx_error *why)
{
    /* Negative items are large ones when unsigned. */
    const uint32_t local_end =
        (uint32_t)(limits->local_items < ITEMS_MAX ? limits->local_items : ITEMS_MAX);
    const uint32_t remote_end =
        (uint32_t)(limits->remote_items < ITEMS_MAX ? limits->remote_items : ITEMS_MAX);
    struct pdxi_plan_run run = {0};
    int64_t nruns = 0;
    size_t i = 0;

    if (items->n > ITEMS_MAX)
        return pdxi_refuse(why, PDX_ERANGE, "%zu items; at most %" PRIu64, items->n, ITEMS_MAX);
    while (i < items->n) {
        size_t end = items->n - i < BLOCK ? items->n : i + BLOCK;

        if (run.count >= BLOCK && end - i == BLOCK && run.local + run.count + BLOCK <= local_end &&
            run.remote + run.count + BLOCK <= remote_end &&
            plan_run_goes_on(&items->local[i], &items->remote[i], run.local + run.count,
                             run.remote + run.count)) {
            run.count += BLOCK;
            i = end;
        }
        for (; i < end; i++) {
            uint32_t local = (uint32_t)items->local[i];
            uint32_t remote = (uint32_t)items->remote[i];

            if (local >= local_end || remote >= remote_end)
                return plan_item_refuse(items, i, limits, why);
            if (local == run.local + run.count && remote == run.remote + run.count) {
                run.count++;
                continue;
            }
            if (run.count)
                ret_runs[nruns++] = run;
            run = (struct pdxi_plan_run){local, remote, 1};
        }
    }
    if (run.count)
        ret_runs[nruns++] = run;
    return nruns;
}

int pdxi_plan_segs(const struct pdx_seg *segs, size_t nsegs, uint64_t local_len,
                   uint64_t remote_len, uint64_t *ret_bytes, struct pdx_error *why)
{
    uint64_t bytes = 0;

    if (nsegs > UINT32_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "%zu segments; at most %u", nsegs, UINT32_MAX);
    for (size_t i = 0; i < nsegs; i++) {
        const struct pdx_seg *s = &segs[i];

        if (s->len == 0)
            return pdxi_refuse(why, PDX_EINVAL, "segment %zu: len is 0", i);
        if (!pdxi_inside(s->local_off, s->len, local_len) ||
            !pdxi_inside(s->remote_off, s->len, remote_len))
            return pdxi_refuse(why, PDX_ERANGE,
                               "segment %zu: %" PRIu64 " bytes at local offset %" PRIu64
                               " (region of %" PRIu64 " bytes) and remote offset %" PRIu64
                               " (region of %" PRIu64 " bytes)",
                               i, s->len, s->local_off, local_len, s->remote_off, remote_len);
        if (!pdxi_add_u64(bytes, s->len, &bytes))
            return pdxi_refuse(
                why, PDX_EOVERFLOW,
                "segment %zu: the segments up to here have more than 64 bits of bytes", i);
    }
    *ret_bytes = bytes;
    return 0;
}
