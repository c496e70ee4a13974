/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up requests. The arithmetic is in integers with 32 bits behind the
 * point: a logarithm of doubles may differ in its last bit from one machine to
 * the next, and a request's length with it.
 */
#include "tool/trace.h"

#include "tool/refuse.h"
#include <stdlib.h>

#define REQUESTS_MAX ((size_t)1 << 20)
#define INPUT_MAX    (1u << 20)

#define MEAN_OUTPUT  256 /* tokens */
#define LENGTH_RATIO 16  /* no length above this many times the mean */

#define FIX_ONE   (INT64_C(1) << 32)
#define FIX_LN2   INT64_C(2977044472)
#define FIX_LOG2E INT64_C(6196328019)
/* The spread of lengths, sigma of the underlying normal distribution: 0.8. */
#define FIX_SIGMA INT64_C(3435973837)

__extension__ typedef __int128 fix_wide;

static int64_t fix_mul(int64_t a, int64_t b)
{
    return (int64_t)(((fix_wide)a * b) >> 32);
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* log2(v / 2^32) for v > 0, one bit at a time: squaring a number in [1, 2) doubles its logarithm.
 */
static int64_t fix_log2(uint64_t v)
{
    int shift = 63 - __builtin_clzll(v);
    uint64_t x = shift > 31 ? v >> (shift - 31) : v << (31 - shift); /* [2^31, 2^32) */
    int64_t log = (int64_t)(shift - 32) * FIX_ONE;

    for (int64_t bit = FIX_ONE / 2; bit > 0; bit /= 2) {
        x = x * x >> 31;
        if (x >> 32) {
            x >>= 1;
            log += bit;
        }
    }
    return log;
}

/* 2^v for v below 31, by the series of e^(f ln 2) for the fraction f. */
static int64_t fix_exp2(int64_t v)
{
    int64_t whole = v >> 32, x = fix_mul(v & (FIX_ONE - 1), FIX_LN2);
    int64_t sum = FIX_ONE, term = FIX_ONE;

    for (int k = 1; k <= 12; k++) {
        term = fix_mul(term, x) / k;
        sum += term;
    }
    if (whole <= -34)
        return 0;
    return whole < 0 ? sum >> -whole : sum << whole;
}

/* Of mean 0 and variance 1: the sum of twelve even ones, at most 6 from the middle. */
static int64_t random_normal(uint64_t *state)
{
    int64_t sum = -6 * FIX_ONE;

    for (int i = 0; i < 12; i++)
        sum += (int64_t)(random_next(state) >> 32);
    return sum;
}

/* Log-normal around `mean`: mean * exp(sigma z - sigma^2 / 2). */
static uint32_t random_length(uint64_t *state, uint32_t mean)
{
    int64_t e = fix_mul(FIX_SIGMA, random_normal(state)) - fix_mul(FIX_SIGMA, FIX_SIGMA) / 2;
    int64_t factor = fix_exp2(fix_mul(e, FIX_LOG2E));
    uint64_t len = (uint64_t)fix_mul(factor, mean);

    if (len < 1)
        return 1;
    return len > (uint64_t)LENGTH_RATIO * mean ? LENGTH_RATIO * mean : (uint32_t)len;
}

/* Exponential: -ln(u) times the mean. */
static uint64_t random_gap(uint64_t *state, int64_t mean_ns)
{
    uint64_t u = (random_next(state) >> 32) + 1; /* (0, 1] */
    int64_t ln = fix_mul(-fix_log2(u), FIX_LN2);

    return (uint64_t)fix_mul(ln, mean_ns);
}

int tool_trace_generate(size_t n, uint64_t seed, uint32_t mean_input, double requests_per_s,
                        struct tool_trace *ret, struct pdx_error *why)
{
    uint64_t state = seed, now_ns = 0;
    int64_t mean_ns;
    struct tool_request *requests;

    if (n == 0 || n > REQUESTS_MAX)
        return tool_refuse(why, PDX_EINVAL, "%zu requests cannot be made; from 1 to %zu can", n,
                           REQUESTS_MAX);
    if (mean_input == 0 || mean_input > INPUT_MAX)
        return tool_refuse(why, PDX_EINVAL,
                           "the mean input length is %u tokens; it must be from 1 to %u",
                           mean_input, INPUT_MAX);
    if (!(requests_per_s >= 0.001 && requests_per_s <= 1e6))
        return tool_refuse(why, PDX_EINVAL,
                           "the rate is %g requests a second; it must be from 0.001 to 1000000",
                           requests_per_s);
    requests = calloc(n, sizeof *requests);
    if (!requests)
        return tool_refuse(why, PDX_ENOMEM, "no memory for %zu requests", n);
    mean_ns = (int64_t)(1e9 / requests_per_s);
    for (size_t i = 0; i < n; i++) {
        requests[i].timestamp_ms = now_ns / 1000000;
        requests[i].input_length = random_length(&state, mean_input);
        requests[i].output_length = random_length(&state, MEAN_OUTPUT);
        now_ns += random_gap(&state, mean_ns);
    }
    *ret = (struct tool_trace){.requests = requests, .n = n};
    return 0;
}
