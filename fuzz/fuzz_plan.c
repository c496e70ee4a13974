/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and cursors: the input is a job, or a scatter list, with region
 * lengths and limits. Whatever is accepted has to move exactly its bytes, in
 * segments inside both regions and within the limits, and come to an end; an
 * item that a list names twice is found.
 *
 * Format: values one after the other, as input.h takes them.
 */
#include "base/check.h"
#include "engine/proto/cursor.h"
#include "engine/proto/overlap.h"
#include "fuzz.h"
#include "input.h"

#define MAX_PAIRS  4
#define MAX_SLICES 8
#define MAX_ITEMS  64
#define MAX_SEGS   32
#define MAX_STEPS  4096 /* of one walk; a huge job under small limits stops here */

/* The memory on both sides of each pair. */
struct lens {
    uint64_t local[MAX_PAIRS];
    uint64_t remote[MAX_PAIRS];
};

static void input_limits(struct fuzz_input *in, struct pdxi_cursor_limits *limits)
{
    limits->max_segs = 1 + fuzz_input_byte(in) % MAX_SEGS;
    limits->max_bytes = fuzz_input_number(in);
    limits->max_seg = fuzz_input_number(in);
    limits->max_bytes += limits->max_bytes == 0;
    limits->max_seg += limits->max_seg == 0;
}

static void check_step(const struct lens *lens, const struct pdxi_cursor_limits *limits,
                       uint32_t pair, const struct pdx_seg *segs, uint32_t n, uint64_t bytes)
{
    uint64_t sum = 0;

    FUZZ_CHECK(n >= 1 && n <= limits->max_segs && pair < MAX_PAIRS);
    for (uint32_t i = 0; i < n; i++) {
        FUZZ_CHECK(segs[i].len >= 1 && segs[i].len <= limits->max_seg);
        FUZZ_CHECK(pdxi_inside(segs[i].local_off, segs[i].len, lens->local[pair]));
        FUZZ_CHECK(pdxi_inside(segs[i].remote_off, segs[i].len, lens->remote[pair]));
        FUZZ_CHECK(pdxi_add_u64(sum, segs[i].len, &sum));
    }
    FUZZ_CHECK(sum == bytes && bytes <= limits->max_bytes);
}

static void check_walk(const struct pdxi_plan *plan, const struct lens *lens,
                       const struct pdxi_cursor_limits *limits)
{
    struct pdx_seg segs[MAX_SEGS];
    struct pdxi_cursor c;
    uint64_t total = 0, bytes;
    uint32_t pair;

    pdxi_cursor_init(&c);
    for (unsigned step = 0; !pdxi_cursor_at_end(plan, &c); step++) {
        uint32_t n = pdxi_cursor_next(plan, &c, limits, segs, &pair, &bytes);

        check_step(lens, limits, pair, segs, n, bytes);
        FUZZ_CHECK(pdxi_add_u64(total, bytes, &total) && total <= plan->bytes);
        if (step == MAX_STEPS)
            return;
    }
    FUZZ_CHECK(total == plan->bytes);
    FUZZ_CHECK(pdxi_cursor_next(plan, &c, limits, segs, &pair, &bytes) == 0 && bytes == 0);
}

static void check_refusal(int64_t code, const struct pdx_error *why)
{
    FUZZ_CHECK(code == PDX_EINVAL || code == PDX_ERANGE || code == PDX_EOVERFLOW);
    FUZZ_CHECK(why->code == code && why->text[0] != '\0');
}

static void fuzz_list(struct fuzz_input *in)
{
    struct pdx_seg segs[MAX_ITEMS];
    struct pdxi_plan plan = {.segs = segs, .npairs = 1};
    struct pdxi_cursor_limits limits;
    struct lens lens = {{0}, {0}};
    struct pdx_error why;
    int rc;

    input_limits(in, &limits);
    lens.local[0] = fuzz_input_number(in);
    lens.remote[0] = fuzz_input_number(in);
    plan.nsegs = fuzz_input_byte(in) % (MAX_ITEMS + 1);
    for (uint32_t i = 0; i < plan.nsegs; i++) {
        segs[i].local_off = fuzz_input_number(in);
        segs[i].remote_off = fuzz_input_number(in);
        segs[i].len = fuzz_input_number(in);
    }
    rc = pdxi_plan_segs(segs, plan.nsegs, lens.local[0], lens.remote[0], &plan.bytes, &why);
    if (rc == 0)
        check_walk(&plan, &lens, &limits);
    else
        check_refusal(rc, &why);
}

struct job {
    struct pdx_pair pairs[MAX_PAIRS];
    struct pdx_slice slices[MAX_SLICES];
    int32_t local[MAX_ITEMS];
    int32_t remote[MAX_ITEMS];
    struct lens lens;
    struct pdx_job job;
};

static void input_pair(struct fuzz_input *in, struct job *j, size_t i)
{
    struct pdx_pair *p = &j->pairs[i];

    j->lens.local[i] = fuzz_input_number(in);
    j->lens.remote[i] = fuzz_input_number(in);
    p->local_base = fuzz_input_number(in);
    p->remote_base = fuzz_input_number(in);
    p->local_item_len = fuzz_input_number(in);
    p->remote_item_len = fuzz_input_number(in);
    p->local_len = fuzz_input_number(in);
    p->remote_len = fuzz_input_number(in);
    p->first_slice = (uint32_t)fuzz_input_number(in);
    p->nslices = (uint32_t)fuzz_input_number(in);
}

static void input_slice(struct fuzz_input *in, struct pdx_slice *s)
{
    s->local_off = fuzz_input_number(in);
    s->remote_off = fuzz_input_number(in);
    s->len = fuzz_input_number(in);
    s->rows = fuzz_input_number(in);
    s->local_pitch = fuzz_input_number(in);
    s->remote_pitch = fuzz_input_number(in);
}

static void input_job(struct fuzz_input *in, struct job *j)
{
    struct pdx_job *job = &j->job;

    memset(j, 0, sizeof *j);
    job->pairs = j->pairs;
    job->npairs = fuzz_input_byte(in) % (MAX_PAIRS + 1);
    job->items.local = j->local;
    job->items.remote = j->remote;
    job->items.n = fuzz_input_byte(in) % (MAX_ITEMS + 1);
    job->slices = j->slices;
    job->nslices = fuzz_input_byte(in) % (MAX_SLICES + 1);
    for (size_t i = 0; i < job->npairs; i++)
        input_pair(in, j, i);
    for (size_t i = 0; i < job->nslices; i++)
        input_slice(in, &j->slices[i]);
    for (size_t i = 0; i < job->items.n; i++) {
        j->local[i] = (int32_t)fuzz_input_number(in);
        j->remote[i] = (int32_t)fuzz_input_number(in);
    }
    job->items.first_pair = (uint32_t)fuzz_input_number(in);
    job->items.npairs = (uint32_t)fuzz_input_number(in);
}

/* An item that comes twice is found, and where, and none else is. */
static void check_twice(const struct pdx_items *items, const struct pdxi_plan_run *runs,
                        uint32_t nruns, bool local)
{
    const int32_t *list = local ? items->local : items->remote;
    uint64_t scratch[MAX_ITEMS * 2 + 4096];
    struct pdxi_overlap_twice twice;
    struct pdxi_overlap o;
    bool found = false;

    pdxi_overlap_init(&o, runs, nruns, local);
    FUZZ_CHECK(o.scratch_len <= sizeof scratch);
    if (o.scratch_len && pdxi_overlap_find(&o, scratch, &twice)) {
        FUZZ_CHECK(twice.first < twice.second && twice.second < items->n);
        FUZZ_CHECK(list[twice.first] == list[twice.second]);
        FUZZ_CHECK((uint32_t)list[twice.first] == twice.item);
        return;
    }
    for (size_t i = 0; i < items->n; i++)
        for (size_t k = 0; k < i; k++)
            found = found || list[i] == list[k];
    FUZZ_CHECK(!found);
}

static void fuzz_job(struct fuzz_input *in)
{
    struct job j;
    struct pdxi_plan_pair pairs[MAX_PAIRS];
    struct pdx_slice slices[MAX_SLICES];
    struct pdxi_plan_run runs[MAX_ITEMS];
    struct pdxi_plan_limits items;
    struct pdxi_plan_range range;
    struct pdxi_cursor_limits limits;
    struct pdxi_plan plan = {.pairs = pairs, .runs = runs, .slices = slices};
    struct pdx_error why;
    uint64_t item_bytes;
    int64_t rc;

    input_limits(in, &limits);
    input_job(in, &j);
    rc = pdxi_plan_shape(&j.job, j.lens.local, j.lens.remote, pairs, slices, &items, &item_bytes,
                         &why);
    if (rc == 0)
        rc = pdxi_plan_range(&j.job.items, (uint32_t)j.job.npairs, &range, &why);
    if (rc == 0)
        rc = pdxi_plan_runs(&j.job.items, &items, runs, &why);
    if (rc < 0) {
        check_refusal(rc, &why);
        return;
    }
    FUZZ_CHECK((uint64_t)rc <= j.job.items.n && (rc > 0) == (j.job.items.n > 0));
    check_twice(&j.job.items, runs, (uint32_t)rc, true);
    check_twice(&j.job.items, runs, (uint32_t)rc, false);
    plan.npairs = (uint32_t)j.job.npairs;
    plan.nruns = (uint32_t)rc;
    plan.nslices = (uint32_t)j.job.nslices;
    rc = pdxi_plan_narrow(&plan, &range, item_bytes, j.job.items.n, &why);
    if (rc < 0) {
        check_refusal(rc, &why);
        return;
    }
    memmove(j.lens.local, j.lens.local + range.first, range.npairs * sizeof *j.lens.local);
    memmove(j.lens.remote, j.lens.remote + range.first, range.npairs * sizeof *j.lens.remote);
    check_walk(&plan, &j.lens, &limits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    if (fuzz_input_byte(&in) & 1)
        fuzz_list(&in);
    else
        fuzz_job(&in);
    return 0;
}
