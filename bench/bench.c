/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void bench_die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("bench: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void bench_ok(int rc, const char *what, const struct pdx_error *why)
{
    if (rc < 0)
        bench_die("%s: %s", what, why->text);
}

uint64_t bench_now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * PDX_SEC + (uint64_t)t.tv_nsec;
}

uint64_t bench_rand(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void bench_samples_open(struct bench_samples *s, size_t cap)
{
    *s = (struct bench_samples){.ns = malloc(cap * sizeof *s->ns), .cap = cap};
    if (!s->ns)
        bench_die("no memory for %zu samples", cap);
}

void bench_samples_add(struct bench_samples *s, uint64_t ns)
{
    if (s->n < s->cap)
        s->ns[s->n++] = ns;
}

static int samples_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

uint64_t bench_samples_at(struct bench_samples *s, unsigned permille)
{
    qsort(s->ns, s->n, sizeof *s->ns, samples_compare);
    return s->ns[(s->n - 1) * permille / 1000];
}

void bench_samples_close(struct bench_samples *s)
{
    free(s->ns);
    *s = (struct bench_samples){0};
}
