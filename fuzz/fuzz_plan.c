/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and cursors: the input is a job, or a scatter list, with region
 * lengths and limits. Whatever is accepted has to move exactly its bytes, in
 * segments inside both regions and within the limits, and come to an end.
 *
 * Format: bytes are taken one after the other, zeroes behind the end. A number
 * is a byte that says how many bytes follow (0, 1, 2 or 8, by its low two
 * bits), and these, little-endian.
 */
#include "base/check.h"
#include "engine/proto/cursor.h"
#include "fuzz.h"

#define MAX_PAIRS  4
#define MAX_SLICES 8
#define MAX_ITEMS  64
#define MAX_SEGS   32
#define MAX_STEPS  4096 /* of one walk; a huge job under small limits stops here */

struct input {
    const uint8_t *data;
    size_t left;
};

static uint8_t input_byte(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->data++;
}

static uint64_t input_number(struct input *in)
{
    static const unsigned lens[] = {0, 1, 2, 8};
    unsigned len = lens[input_byte(in) & 3];
    uint64_t v = 0;

    for (unsigned i = 0; i < len; i++)
        v |= (uint64_t)input_byte(in) << 8 * i;
    return v;
}

/* The memory on both sides of each pair. */
struct lens {
    uint64_t local[MAX_PAIRS];
    uint64_t remote[MAX_PAIRS];
};

static void input_limits(struct input *in, struct pdxi_cursor_limits *limits)
{
    limits->max_segs = 1 + input_byte(in) % MAX_SEGS;
    limits->max_bytes = input_number(in);
    limits->max_seg = input_number(in);
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

static void fuzz_list(struct input *in)
{
    struct pdx_seg segs[MAX_ITEMS];
    struct pdxi_plan plan = {.segs = segs, .npairs = 1};
    struct pdxi_cursor_limits limits;
    struct lens lens = {{0}, {0}};
    struct pdx_error why;
    int rc;

    input_limits(in, &limits);
    lens.local[0] = input_number(in);
    lens.remote[0] = input_number(in);
    plan.nsegs = input_byte(in) % (MAX_ITEMS + 1);
    for (uint32_t i = 0; i < plan.nsegs; i++) {
        segs[i].local_off = input_number(in);
        segs[i].remote_off = input_number(in);
        segs[i].len = input_number(in);
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

static void input_job(struct input *in, struct job *j)
{
    memset(j, 0, sizeof *j);
    j->job = (struct pdx_job){.pairs = j->pairs,
                              .npairs = input_byte(in) % (MAX_PAIRS + 1),
                              .items = {j->local, j->remote, input_byte(in) % (MAX_ITEMS + 1)},
                              .slices = j->slices,
                              .nslices = input_byte(in) % (MAX_SLICES + 1)};
    for (size_t i = 0; i < j->job.npairs; i++) {
        struct pdx_pair *p = &j->pairs[i];

        j->lens.local[i] = input_number(in);
        j->lens.remote[i] = input_number(in);
        p->local_base = input_number(in);
        p->remote_base = input_number(in);
        p->local_item_len = input_number(in);
        p->remote_item_len = input_number(in);
        p->local_len = input_number(in);
        p->remote_len = input_number(in);
        p->first_slice = (uint32_t)input_number(in);
        p->nslices = (uint32_t)input_number(in);
    }
    for (size_t i = 0; i < j->job.nslices; i++)
        j->slices[i] = (struct pdx_slice){input_number(in), input_number(in), input_number(in),
                                          input_number(in), input_number(in), input_number(in)};
    for (size_t i = 0; i < j->job.items.n; i++) {
        j->local[i] = (int32_t)input_number(in);
        j->remote[i] = (int32_t)input_number(in);
    }
}

static void fuzz_job(struct input *in)
{
    struct job j;
    struct pdxi_plan_pair pairs[MAX_PAIRS];
    struct pdx_slice slices[MAX_SLICES];
    struct pdxi_plan_run runs[MAX_ITEMS];
    struct pdxi_plan_limits items;
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
        rc = pdxi_plan_runs(&j.job.items, &items, runs, &why);
    if (rc < 0) {
        check_refusal(rc, &why);
        return;
    }
    FUZZ_CHECK((uint64_t)rc <= j.job.items.n && (rc > 0) == (j.job.items.n > 0));
    plan.npairs = (uint32_t)j.job.npairs;
    plan.nruns = (uint32_t)rc;
    plan.nslices = (uint32_t)j.job.nslices;
    if (pdxi_mul_u64(item_bytes, j.job.items.n, &plan.bytes))
        check_walk(&plan, &j.lens, &limits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};

    if (input_byte(&in) & 1)
        fuzz_list(&in);
    else
        fuzz_job(&in);
    return 0;
}
