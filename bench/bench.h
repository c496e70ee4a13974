/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmarks share: time, samples, and a prefill and a decode engine of
 * this process with KV caches and a route between them. Benchmarks are
 * programs of the public API, as callers write them; what cannot be set up
 * ends the program with a sentence.
 */
#ifndef PDX_BENCH_H
#define PDX_BENCH_H

#include <pdx/pdx.h>
#include <stdint.h>

_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program unless `rc` says success. */
void bench_ok(int rc, const char *what, const struct pdx_error *why);

uint64_t bench_now_ns(void);
uint64_t bench_rand(uint64_t *state);

/* Times of one case, one per round. */
struct bench_samples {
    uint64_t *ns; /* owned */
    size_t n;
    size_t cap;
};

void bench_samples_open(struct bench_samples *s, size_t cap);
void bench_samples_add(struct bench_samples *s, uint64_t ns);
/* The sample below which `permille` of them lie; sorts them. There is at least one. */
uint64_t bench_samples_at(struct bench_samples *s, unsigned permille);
void bench_samples_close(struct bench_samples *s);

/* Two engines over TCP on the loopback interface. */
struct bench_link {
    struct pdx_engine *prefill;
    struct pdx_engine *decode;
    struct pdx_peer *peer; /* decode, as prefill knows it; up */
};

void bench_link_open(struct bench_link *l);
void bench_link_close(struct bench_link *l);

/* A KV cache of equal shape on both sides: ntensors (K and V of half as many layers), each of
 * npages pages of page_len bytes. Memory that no transfer touches costs address space only. */
struct bench_cache {
    uint32_t ntensors;
    uint32_t npages;
    uint64_t page_len;
    void *mem[2]; /* owned */
    struct pdx_region *region[2];
    struct pdx_route *route;
};

/* The members up to page_len are set. */
void bench_cache_open(struct bench_cache *c, struct bench_link *l);
void bench_cache_close(struct bench_cache *c);

#endif
