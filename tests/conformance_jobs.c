/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: scatter lists and jobs of random shapes move exactly what their
 * description says, compared with a naive copy.
 */
#include "trial.h"

#define SCATTER_MAX 3000

/* Runs of both sides' memory in two random orders. */
static size_t scatter_make(struct pdx_seg *segs, uint64_t *rng, size_t len)
{
    size_t n = 1 + ts_rand(rng) % SCATTER_MAX;
    size_t room = len / n;

    for (size_t i = 0; i < n; i++) {
        uint64_t pad = ts_rand(rng) % 4 ? ts_rand(rng) % room : 0;

        segs[i] = (struct pdx_seg){i * room + pad, i * room + pad, room - pad};
    }
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = ts_rand(rng) % (i + 1);
        struct pdx_seg swap = segs[i];

        segs[i] = segs[j];
        segs[j] = swap;
    }
    for (size_t i = 0; i < n; i++) /* the other side lies elsewhere in its place */
        if (ts_rand(rng) % 2)
            segs[i].local_off -= segs[i].local_off % room % (room / 2 + 1);
    return n;
}

static void scatter_try(struct conf *c, enum pdx_op op, uint64_t seed)
{
    static struct pdx_seg segs[SCATTER_MAX];
    struct pdx_transfer_status *st;
    struct ts_pair *p = &c->pair;
    struct pdx_error why;
    struct trial t;
    uint64_t rng = seed;
    size_t n = scatter_make(segs, &rng, p->ma.len);

    if (op == PDX_READ)
        for (size_t i = 0; i < n; i++) { /* the side that receives keeps its places disjoint */
            uint64_t swap = segs[i].local_off;

            segs[i].local_off = segs[i].remote_off;
            segs[i].remote_off = swap;
        }
    trial_open(&t, c, op, seed);
    for (size_t i = 0; i < n; i++)
        trial_move(&t, segs[i].local_off, segs[i].remote_off, segs[i].len);
    ts_ok((op == PDX_READ ? pdx_read : pdx_write)(p->peer, p->ra, &p->remote, segs, n, NULL, &st,
                                                  &why),
          &why);
    memset(segs, 0, sizeof segs); /* copied by the submission */
    ts_finish(st);
    trial_close(&t, "scatter list", seed);
}

static void test_scatter_lists_match_a_naive_copy(void **state)
{
    struct conf *c = *state;

    for (uint64_t seed = 1; seed <= TS_SCALE(20, 4); seed++) {
        scatter_try(c, PDX_WRITE, seed);
        scatter_try(c, PDX_READ, seed);
    }
}

#define SHAPE_PAIRS  4
#define SHAPE_ITEMS  48
#define SHAPE_SLICES 4
#define SHAPE_ZONE   ((uint64_t)256) /* of an item; one slice lies in it */

/* A random job. Each pair has its own quarter of the regions; each slice its own zone of the items,
 * on the two sides in different order. */
struct shape {
    struct pdx_pair pairs[SHAPE_PAIRS];
    int32_t local[SHAPE_ITEMS];
    int32_t remote[SHAPE_ITEMS];
    struct pdx_slice slices[SHAPE_SLICES];
    struct pdx_job job;
};

/* n different numbers below `of`, in random order. */
static void shape_indices(int32_t *out, size_t n, size_t of, uint64_t *rng)
{
    int32_t all[4 * SHAPE_ITEMS];

    for (size_t i = 0; i < of; i++)
        all[i] = (int32_t)i;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + ts_rand(rng) % (of - i);
        int32_t swap = all[i];

        all[i] = all[j];
        all[j] = swap;
        out[i] = all[i];
    }
    if (ts_rand(rng) % 2 == 0) /* often in runs, as pages are */
        for (size_t i = 1; i < n; i++)
            out[i] = (int32_t)((size_t)(out[0] + (int32_t)i) % of);
}

static void shape_slices(struct shape *s, size_t n, uint64_t *rng)
{
    for (size_t i = 0; i < n; i++) {
        struct pdx_slice *slice = &s->slices[i];
        uint64_t rows = 1 + ts_rand(rng) % 5;
        uint64_t len = 1 + ts_rand(rng) % (SHAPE_ZONE / rows);
        uint64_t slack = rows > 1 ? (SHAPE_ZONE - len) / (rows - 1) - len : 0;

        *slice = (struct pdx_slice){.local_off = i * SHAPE_ZONE,
                                    .remote_off = (n - 1 - i) * SHAPE_ZONE,
                                    .len = len,
                                    .rows = rows,
                                    .local_pitch = len + ts_rand(rng) % (slack + 1),
                                    .remote_pitch = len + ts_rand(rng) % (slack + 1)};
        if (ts_rand(rng) % 3 == 0) /* rows without gaps */
            slice->local_pitch = slice->remote_pitch = len;
    }
}

static void shape_make(struct shape *s, struct conf *c, uint64_t *rng)
{
    size_t npairs = 1 + ts_rand(rng) % SHAPE_PAIRS;
    size_t n = 1 + ts_rand(rng) % SHAPE_ITEMS;
    size_t of = n + ts_rand(rng) % (2 * SHAPE_ITEMS);
    size_t nslices = ts_rand(rng) % (SHAPE_SLICES + 1);
    uint64_t local_item = SHAPE_ZONE * SHAPE_SLICES + ts_rand(rng) % 100;
    uint64_t remote_item = nslices ? SHAPE_ZONE * SHAPE_SLICES + ts_rand(rng) % 100 : local_item;
    uint64_t quarter = c->pair.ma.len / SHAPE_PAIRS;

    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < npairs; i++)
        s->pairs[i] = (struct pdx_pair){.local = c->pair.ra,
                                        .remote = &c->pair.remote,
                                        .local_base = (npairs - 1 - i) * quarter + 7,
                                        .remote_base = i * quarter + 11,
                                        .local_item_len = local_item,
                                        .remote_item_len = remote_item,
                                        .local_len = of * local_item,
                                        .remote_len = of * remote_item};
    shape_indices(s->local, n, of, rng);
    shape_indices(s->remote, n, of, rng);
    shape_slices(s, nslices, rng);
    s->job = (struct pdx_job){.pairs = s->pairs,
                              .npairs = npairs,
                              .items = {.local = s->local, .remote = s->remote, .n = n},
                              .slices = nslices ? s->slices : NULL,
                              .nslices = nslices};
}

static void shape_naive_item(struct trial *t, const struct pdx_job *job, uint64_t local,
                             uint64_t remote, uint64_t item_len)
{
    if (job->nslices == 0)
        trial_move(t, local, remote, item_len);
    for (size_t k = 0; k < job->nslices; k++) {
        const struct pdx_slice *s = &job->slices[k];

        for (uint64_t row = 0; row < s->rows; row++)
            trial_move(t, local + s->local_off + row * s->local_pitch,
                       remote + s->remote_off + row * s->remote_pitch, s->len);
    }
}

static void shape_naive(struct trial *t, const struct pdx_job *job, size_t first, size_t npairs)
{
    for (size_t i = first; i < first + npairs; i++) {
        const struct pdx_pair *p = &job->pairs[i];

        for (size_t k = 0; k < job->items.n; k++)
            shape_naive_item(t, job,
                             p->local_base + (uint64_t)job->items.local[k] * p->local_item_len,
                             p->remote_base + (uint64_t)job->items.remote[k] * p->remote_item_len,
                             p->local_item_len);
    }
}

static void shape_try(struct conf *c, enum pdx_op op, uint64_t seed)
{
    struct pdx_transfer_status *st;
    struct pdx_transfer_info info;
    struct pdx_error why;
    struct shape s;
    struct trial t;
    uint64_t rng = seed;

    shape_make(&s, c, &rng);
    trial_open(&t, c, op, seed);
    shape_naive(&t, &s.job, 0, s.job.npairs);
    ts_ok(pdx_submit(c->pair.peer, op, &s.job, NULL, &st, &why), &why);
    memset(&s, 0, sizeof s); /* copied by the submission */
    ts_done(st);
    pdx_transfer_info(st, &info);
    assert_int_equal(info.bytes, info.bytes_done);
    pdx_transfer_put(st);
    trial_close(&t, "job", seed);
}

static void test_jobs_match_a_naive_copy(void **state)
{
    struct conf *c = *state;

    for (uint64_t seed = 1; seed <= TS_SCALE(100, 20); seed++) {
        shape_try(c, PDX_WRITE, seed);
        shape_try(c, PDX_READ, seed);
    }
}

/* Each pair with slices of its own, and a pair whose item length is 0: a scatter list. */
static void test_pairs_may_have_their_own_slices(void **state)
{
    struct conf *c = *state;
    struct ts_pair *p = &c->pair;
    const int32_t zero = 0;
    const struct pdx_slice slices[] = {
        {0, 100, 10, 1, 0, 0}, {50000, 300, 20, 2, 40, 30}, {7, 70000, 5, 1, 0, 0}};
    const struct pdx_pair pairs[] = {
        {.local = p->ra, .remote = &p->remote, .first_slice = 0, .nslices = 2},
        {.local = p->ra, .remote = &p->remote, .first_slice = 2, .nslices = 1},
    };
    const struct pdx_job job = {.pairs = pairs,
                                .npairs = 2,
                                .items = {.local = &zero, .remote = &zero, .n = 1},
                                .slices = slices,
                                .nslices = 3};
    struct pdx_transfer_status *st;
    struct pdx_error why;
    struct trial t;

    trial_open(&t, c, PDX_WRITE, 5);
    trial_move(&t, 0, 100, 10);
    trial_move(&t, 50000, 300, 20);
    trial_move(&t, 50040, 330, 20);
    trial_move(&t, 7, 70000, 5);
    ts_ok(pdx_submit(p->peer, PDX_WRITE, &job, NULL, &st, &why), &why);
    ts_finish(st);
    trial_close(&t, "slices per pair", 0);
}

/* An index times an item length that needs more than 32 bits. */
static void test_items_beyond_4_gib(void **state)
{
    struct conf *c = *state;
    const uint64_t page = UINT64_C(1) << 20;
    const int32_t local[] = {6000, 1};
    const int32_t remote[] = {2, 5999};
    const struct pdx_slice slice = {100, 200, 3000, 1, 0, 0};
    struct pdx_transfer_status *st;
    struct pdx_error why;

    conf_open_pair(c, (size_t)6 << 30);
    const struct pdx_pair pair = {.local = c->pair.ra,
                                  .remote = &c->pair.remote,
                                  .local_item_len = page,
                                  .remote_item_len = page};
    const struct pdx_job job = {.pairs = &pair,
                                .npairs = 1,
                                .items = {.local = local, .remote = remote, .n = 2},
                                .slices = &slice,
                                .nslices = 1};
    for (uint64_t i = 0; i < 2; i++)
        ts_fill(c->pair.ma.p + (uint64_t)local[i] * page + 100, 0, 3000, i);
    ts_ok(pdx_submit(c->pair.peer, PDX_WRITE, &job, NULL, &st, &why), &why);
    ts_finish(st);
    for (uint64_t i = 0; i < 2; i++)
        ts_assert_pattern(c->pair.mb.p + (uint64_t)remote[i] * page + 200, 0, 3000, i);
}

/* A job prepared without items goes in random ranges of its pairs, all under way together. */
static void ranges_try(struct conf *c, enum pdx_op op, uint64_t seed)
{
    struct pdx_submission subs[SHAPE_PAIRS] = {0};
    struct pdx_transfer_status *st[SHAPE_PAIRS];
    struct pdx_prepared *prepared;
    struct pdx_error why;
    struct shape s;
    struct trial t;
    uint64_t rng = seed;
    uint32_t at = 0;
    size_t n = 0;

    shape_make(&s, c, &rng);
    trial_open(&t, c, op, seed);
    shape_naive(&t, &s.job, 0, s.job.npairs);
    for (; at < s.job.npairs; n++) {
        subs[n].items = s.job.items;
        subs[n].items.first_pair = at;
        subs[n].items.npairs = 1 + (uint32_t)(ts_rand(&rng) % (s.job.npairs - at));
        at += subs[n].items.npairs;
    }
    s.job.items = (struct pdx_items){0};
    ts_ok(pdx_prepare(c->pair.peer, op, &s.job, &prepared, &why), &why);
    for (size_t i = 0; i < n; i++)
        subs[i].prepared = prepared;
    ts_ok(pdx_submit_many(subs, n, st, &why), &why);
    pdx_prepared_put(prepared);
    for (size_t i = 0; i < n; i++)
        ts_finish(st[i]);
    trial_close(&t, "ranges of pairs", seed);
}

static void test_ranges_of_pairs_match_a_naive_copy(void **state)
{
    struct conf *c = *state;

    for (uint64_t seed = 1; seed <= TS_SCALE(50, 10); seed++) {
        ranges_try(c, PDX_WRITE, seed);
        ranges_try(c, PDX_READ, seed);
    }
}

static const struct CMUnitTest cases[] = {
    CONF_PAIR(test_scatter_lists_match_a_naive_copy),
    CONF_PAIR(test_jobs_match_a_naive_copy),
    CONF_PAIR(test_pairs_may_have_their_own_slices),
    CONF_PAIR(test_ranges_of_pairs_match_a_naive_copy),
    CONF_NONE(test_items_beyond_4_gib),
};

CONF_MAIN(cases)
