/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/proto/overlap.h"

#include <string.h>

/* Measured: clearing a map of so many bytes, and what a map misses in the caches, costs less than a
 * sort of the runs. */
#define MAP_LEN_ALWAYS  ((size_t)4 << 10)
#define MAP_LEN_PER_RUN ((size_t)32)
#define MAP_LEN_MAX     ((size_t)4 << 20)

/* Keys of the sort: where a run starts, from the least item on, then its length. */
#define KEY_SHIFT  32
#define DIGIT_BITS 11 /* of a sort of many runs */
#define DIGIT_FEW  8  /* of fewer than RUNS_FEW, for which counts per digit are a cost */
#define RUNS_FEW   8192

static inline uint32_t overlap_start(const struct pdxi_overlap *o, uint32_t i)
{
    return o->local ? o->runs[i].local : o->runs[i].remote;
}

static bool overlap_ascends(const struct pdxi_overlap *o)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < o->nruns; i++) {
        uint32_t start = overlap_start(o, i);

        if (start < next)
            return false;
        next = start + o->runs[i].count;
    }
    return true;
}

void pdxi_overlap_init(struct pdxi_overlap *o, const struct pdxi_plan_run *runs, uint32_t nruns,
                       bool local)
{
    uint32_t least = UINT32_MAX;
    uint32_t end = 0;
    size_t map_len, map_max;

    *o = (struct pdxi_overlap){.runs = runs, .nruns = nruns, .local = local};
    if (overlap_ascends(o))
        return;
    for (uint32_t i = 0; i < nruns; i++) {
        uint32_t start = overlap_start(o, i);

        least = start < least ? start : least;
        end = start + runs[i].count > end ? start + runs[i].count : end;
    }
    o->least = least;
    o->span = end - least;
    map_len = (o->span / 64 + 1) * sizeof(uint64_t);
    map_max = MAP_LEN_ALWAYS + nruns * MAP_LEN_PER_RUN;
    o->mapped = map_len <= (map_max < MAP_LEN_MAX ? map_max : MAP_LEN_MAX);
    o->scratch_len = o->mapped ? map_len : 2 * sizeof(uint64_t) * nruns;
}

/* Enters the items of a run, `at` counted from the least one. Returns whether one was there, and
 * which. */
static bool overlap_enter(uint64_t *map, uint32_t at, uint32_t count, uint32_t *ret_at)
{
    while (count > 0) {
        uint32_t bit = at % 64;
        uint32_t n = count < 64 - bit ? count : 64 - bit;
        uint64_t mask = UINT64_MAX >> (64 - n) << bit;
        uint64_t there = map[at / 64] & mask;

        if (there) {
            *ret_at = at - bit + (uint32_t)__builtin_ctzll(there);
            return true;
        }
        map[at / 64] |= mask;
        at += n;
        count -= n;
    }
    return false;
}

static bool overlap_map(const struct pdxi_overlap *o, uint64_t *map, uint32_t *ret_at)
{
    memset(map, 0, o->scratch_len);
    for (uint32_t i = 0; i < o->nruns; i++) {
        uint32_t at = overlap_start(o, i) - o->least;
        uint64_t bit = UINT64_C(1) << at % 64;

        if (o->runs[i].count > 1) {
            if (overlap_enter(map, at, o->runs[i].count, ret_at))
                return true;
            continue;
        }
        if (map[at / 64] & bit) {
            *ret_at = at;
            return true;
        }
        map[at / 64] |= bit;
    }
    return false;
}

/* Sorts by digits from the lowest on; each pass moves the keys from one half of the scratch memory
 * to the other. Returns the half that they are in. */
static const uint64_t *overlap_sort(uint64_t *from, uint64_t *to, uint32_t n, uint32_t span)
{
    const unsigned bits = n < RUNS_FEW ? DIGIT_FEW : DIGIT_BITS;
    const uint32_t digit = (1u << bits) - 1;
    uint32_t place[1u << DIGIT_BITS];

    for (unsigned shift = 0; shift < 32 && span >> shift; shift += bits) {
        uint64_t *swap = from;
        uint32_t sum = 0;

        memset(place, 0, (digit + 1) * sizeof *place);
        for (uint32_t i = 0; i < n; i++)
            place[from[i] >> (KEY_SHIFT + shift) & digit]++;
        for (uint32_t d = 0; d <= digit; d++) {
            uint32_t count = place[d];

            place[d] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++)
            to[place[from[i] >> (KEY_SHIFT + shift) & digit]++] = from[i];
        from = to;
        to = swap;
    }
    return from;
}

/* Of sorted runs, one that reaches into another reaches into the next. */
static bool overlap_sorted(const struct pdxi_overlap *o, uint64_t *keys, uint32_t *ret_at)
{
    const uint64_t *sorted;

    for (uint32_t i = 0; i < o->nruns; i++)
        keys[i] = (uint64_t)(overlap_start(o, i) - o->least) << KEY_SHIFT | o->runs[i].count;
    sorted = overlap_sort(keys, keys + o->nruns, o->nruns, o->span);
    for (uint32_t i = 1; i < o->nruns; i++) {
        uint32_t start = (uint32_t)(sorted[i] >> KEY_SHIFT);

        if (start - (uint32_t)(sorted[i - 1] >> KEY_SHIFT) < (uint32_t)sorted[i - 1]) {
            *ret_at = start;
            return true;
        }
    }
    return false;
}

/* Where the list names it. */
static void overlap_explain(const struct pdxi_overlap *o, uint32_t item,
                            struct pdxi_overlap_twice *ret)
{
    struct pdxi_overlap_twice twice = {.item = item};
    unsigned seen = 0;
    size_t place = 0;

    for (uint32_t i = 0; i < o->nruns && seen < 2; i++) {
        uint32_t into = item - overlap_start(o, i); /* huge where the run starts behind it */

        if (into < o->runs[i].count)
            *(seen++ == 0 ? &twice.first : &twice.second) = place + into;
        place += o->runs[i].count;
    }
    *ret = twice;
}

bool pdxi_overlap_find(const struct pdxi_overlap *o, void *scratch, struct pdxi_overlap_twice *ret)
{
    uint32_t at = 0;

    if (o->mapped ? !overlap_map(o, scratch, &at) : !overlap_sorted(o, scratch, &at))
        return false;
    overlap_explain(o, o->least + at, ret);
    return true;
}
