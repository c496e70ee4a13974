/* SPDX-License-Identifier: Apache-2.0
 *
 * What a request costs the thread that sends it: pdx_send_kvcache from call to
 * return, which is all checks, the plan, the queue and the doorbell. The pages
 * then move over TCP on the loopback interface, outside of the measured time;
 * they are small, so that there is little to move, and large requests are
 * cancelled instead of awaited. Cases take turns in rounds.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_LEN    16
#define PIECES_MAX  ((uint64_t)1 << 19) /* of a request that is awaited */
#define ROUNDS      400
#define PAGES_MANY  10000 /* requests of more take part in every eighth round */
#define SELDOM      8
#define WAIT_NS     (60 * PDX_SEC)
#define SETTLE_NS   (100 * PDX_USEC)
#define TENSORS_MAX 5

enum order { CONTIGUOUS, SCATTERED };

struct plan_case {
    uint32_t n; /* pages */
    uint32_t ntensors;
    enum order order;
    struct bench_cache *cache;
    int32_t *src; /* owned: n indices each */
    int32_t *dst;
    struct bench_samples samples;
};

struct plan_bench {
    struct bench_link link;
    struct bench_cache caches[TENSORS_MAX];
    size_t ncaches;
    struct plan_case *cases; /* owned */
    size_t ncases;
    size_t rounds;
};

/* Lists of these lengths go to tensors[0]; other numbers of tensors get lists of `same`. */
struct plan_sizes {
    uint32_t lists[8];
    uint32_t tensors[TENSORS_MAX];
    uint32_t same;
};

static const struct plan_sizes plan_full = {
    .lists = {1, 16, 256, 4096, 65536, 1000000}, .tensors = {96, 2, 192, 960}, .same = 4096};
static const struct plan_sizes plan_smoke = {.lists = {1, 16, 100}, .tensors = {4, 2}, .same = 16};

static int32_t *list_make(uint32_t n, enum order order, uint64_t *rng)
{
    int32_t *list = malloc(n * sizeof *list);

    if (!list)
        bench_die("no memory for %u indices", n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = (int32_t)i;
    for (uint32_t i = n; order == SCATTERED && i > 1; i--) {
        uint32_t k = (uint32_t)(bench_rand(rng) % i);
        int32_t swap = list[i - 1];

        list[i - 1] = list[k];
        list[k] = swap;
    }
    return list;
}

static void plan_add(struct plan_bench *b, struct bench_cache *cache, uint32_t n, enum order order)
{
    struct plan_case *c;
    uint64_t rng = 88172645463325252 + n;

    b->cases = realloc(b->cases, (b->ncases + 1) * sizeof *b->cases);
    if (!b->cases)
        bench_die("no memory");
    c = &b->cases[b->ncases++];
    *c = (struct plan_case){.n = n, .ntensors = cache->ntensors, .order = order, .cache = cache};
    c->src = list_make(n, order, &rng);
    c->dst = list_make(n, order, &rng);
    bench_samples_open(&c->samples, b->rounds);
}

static void plan_open(struct plan_bench *b, const struct plan_sizes *sizes)
{
    uint32_t longest = sizes->same;

    bench_link_open(&b->link);
    for (size_t i = 0; sizes->lists[i]; i++)
        longest = sizes->lists[i] > longest ? sizes->lists[i] : longest;
    for (size_t t = 0; sizes->tensors[t]; t++) {
        struct bench_cache *cache = &b->caches[b->ncaches++];

        *cache = (struct bench_cache){.ntensors = sizes->tensors[t],
                                      .npages = t == 0 ? longest : sizes->same,
                                      .page_len = PAGE_LEN};
        bench_cache_open(cache, &b->link);
        for (enum order order = CONTIGUOUS; order <= SCATTERED; order++) {
            for (size_t i = 0; t == 0 && sizes->lists[i]; i++)
                plan_add(b, cache, sizes->lists[i], order);
            if (t > 0)
                plan_add(b, cache, sizes->same, order);
        }
    }
}

static void plan_close(struct plan_bench *b)
{
    for (size_t i = 0; i < b->ncases; i++) {
        free(b->cases[i].src);
        free(b->cases[i].dst);
        bench_samples_close(&b->cases[i].samples);
    }
    for (size_t i = 0; i < b->ncaches; i++)
        bench_cache_close(&b->caches[i]);
    free(b->cases);
    bench_link_close(&b->link);
}

static bool plan_is_large(const struct plan_case *c)
{
    return (uint64_t)c->n * c->ntensors > PIECES_MAX;
}

/* Until the reactors sleep again, so that each request has to ring the doorbell. */
static void plan_settle(void)
{
    const uint64_t until_ns = bench_now_ns() + SETTLE_NS;

    while (bench_now_ns() < until_ns)
        ;
}

static void plan_measure(struct plan_case *c)
{
    const struct pdx_index_list src = {c->src, c->n};
    const struct pdx_index_list dst = {c->dst, c->n};
    struct pdx_transfer_status *st;
    enum pdx_transfer_code code;
    struct pdx_error why;
    uint64_t began_ns, ended_ns;
    int rc;

    plan_settle();
    began_ns = bench_now_ns();
    rc = pdx_send_kvcache(c->cache->route, src, dst, NULL, &st, &why);
    ended_ns = bench_now_ns();
    bench_ok(rc, "sending", &why);
    bench_samples_add(&c->samples, ended_ns - began_ns);
    if (plan_is_large(c))
        pdx_transfer_cancel(st);
    if (pdx_transfer_wait(st, WAIT_NS) < 0)
        bench_die("a transfer does not end");
    code = pdx_transfer_code(st);
    if (code != PDX_DONE && !(code == PDX_CANCELLED && plan_is_large(c)))
        bench_die("%s", pdx_transfer_text(st));
    pdx_transfer_put(st);
}

static void plan_run(struct plan_bench *b)
{
    for (size_t round = 0; round < b->rounds; round++) {
        for (size_t i = 0; i < b->ncases; i++) {
            if (b->cases[i].n <= PAGES_MANY || round % SELDOM == 0)
                plan_measure(&b->cases[i]);
        }
    }
}

static const char *order_name(enum order order)
{
    return order == CONTIGUOUS ? "contiguous" : "scattered";
}

static void plan_print_table(struct plan_bench *b)
{
    (void)printf("pdx_send_kvcache from call to return, pdx %s (%s), %u bytes per page and tensor\n"
                 "%9s  %-10s  %7s  %6s  %11s  %9s  %12s\n",
                 pdx_version(), BENCH_BUILD, PAGE_LEN, "pages", "order", "tensors", "rounds",
                 "median us", "p99 us", "ns per index");
    for (size_t i = 0; i < b->ncases; i++) {
        struct plan_case *c = &b->cases[i];
        double median_ns = (double)bench_samples_at(&c->samples, 500);

        (void)printf("%9u  %-10s  %7u  %6zu  %11.2f  %9.2f  %12.2f\n", c->n, order_name(c->order),
                     c->ntensors, c->samples.n, median_ns / 1e3,
                     (double)bench_samples_at(&c->samples, 990) / 1e3, median_ns / c->n);
    }
}

static void plan_print_json(struct plan_bench *b)
{
    (void)printf("{\"bench\": \"plan\", \"pdx\": \"%s\", \"build\": \"%s\", \"page_len\": %u, "
                 "\"cases\": [",
                 pdx_version(), BENCH_BUILD, PAGE_LEN);
    for (size_t i = 0; i < b->ncases; i++) {
        struct plan_case *c = &b->cases[i];
        uint64_t median_ns = bench_samples_at(&c->samples, 500);

        (void)printf("%s\n  {\"pages\": %u, \"order\": \"%s\", \"tensors\": %u, \"rounds\": %zu, "
                     "\"median_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"ns_per_index\": %.3f}",
                     i ? "," : "", c->n, order_name(c->order), c->ntensors, c->samples.n, median_ns,
                     bench_samples_at(&c->samples, 990), (double)median_ns / c->n);
    }
    (void)printf("\n]}\n");
}

static _Noreturn void plan_usage(int status)
{
    (void)fprintf(status ? stderr : stdout,
                  "usage: bench plan [--json] [--rounds N] [--smoke]\n\n"
                  "Measures what pdx_send_kvcache costs its caller.\n"
                  "  --json      for machines\n"
                  "  --rounds N  each case so often, long lists an eighth of it (default %d)\n"
                  "  --smoke     tiny requests, three rounds: does it run?\n",
                  ROUNDS);
    exit(status);
}

int main(int argc, char **argv)
{
    struct plan_bench b = {.rounds = ROUNDS};
    const struct plan_sizes *sizes = &plan_full;
    bool json = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--smoke") == 0) {
            sizes = &plan_smoke;
            b.rounds = 3;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            b.rounds = strtoul(argv[++i], NULL, 10);
        } else {
            plan_usage(strcmp(argv[i], "--help") == 0 ? 0 : 2);
        }
    }
    if (b.rounds == 0 || b.rounds > 1000000)
        plan_usage(2);
    plan_open(&b, sizes);
    plan_run(&b);
    if (json)
        plan_print_json(&b);
    else
        plan_print_table(&b);
    plan_close(&b);
    return 0;
}
