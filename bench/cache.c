/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines, caches and routes of benchmarks; see bench.h.
 */
#include "bench.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct pdx_engine *link_engine(const char *name)
{
    struct pdx_engine_opts opts;
    struct pdx_engine *engine;
    struct pdx_error why;

    pdx_engine_opts_init(&opts);
    opts.name = name;
    bench_ok(pdx_engine_create(&opts, &engine, &why), name, &why);
    return engine;
}

void bench_link_open(struct bench_link *l)
{
    struct pdx_error why;
    size_t len;
    void *desc;

    l->prefill = link_engine("bench-prefill");
    l->decode = link_engine("bench-decode");
    len = pdx_engine_desc(l->decode, NULL, 0);
    desc = malloc(len);
    if (!desc)
        bench_die("no memory for an engine's descriptor");
    (void)pdx_engine_desc(l->decode, desc, len);
    bench_ok(pdx_peer_add(l->prefill, desc, len, &l->peer, &why), "adding the peer", &why);
    bench_ok(pdx_peer_wait_up(l->peer, 10 * PDX_SEC, &why), "waiting for the peer", &why);
    free(desc);
}

void bench_link_close(struct bench_link *l)
{
    pdx_peer_put(l->peer);
    (void)pdx_engine_destroy(l->prefill);
    (void)pdx_engine_destroy(l->decode);
}

static struct pdx_layout *cache_layout(const struct bench_cache *c, struct pdx_region *region)
{
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;
    struct pdx_tensor *kv = calloc(c->ntensors, sizeof *kv);
    struct pdx_layout *layout;
    struct pdx_error why;

    if (!kv)
        bench_die("no memory for %u tensors", c->ntensors);
    for (uint32_t i = 0; i < c->ntensors; i++)
        kv[i] = (struct pdx_tensor){.region = region,
                                    .off = i * c->npages * c->page_len,
                                    .len = c->npages * c->page_len,
                                    .item_len = c->page_len,
                                    .layer = PDX_LAYER_NONE};
    desc.kv_kind = PDX_KV_MHA;
    desc.page_size = 1;
    desc.kv_head_num = 1;
    desc.kv = kv;
    desc.nkv = c->ntensors;
    bench_ok(pdx_layout_create(&desc, &layout, &why), "layout", &why);
    free(kv);
    return layout;
}

/* As it comes to the other side. */
static struct pdx_layout *cache_received(const struct pdx_layout *sent)
{
    size_t len = pdx_layout_encode(sent, NULL, 0);
    struct pdx_layout *layout;
    struct pdx_error why;
    void *buf = malloc(len);

    if (!buf)
        bench_die("no memory for a layout");
    (void)pdx_layout_encode(sent, buf, len);
    bench_ok(pdx_layout_decode(buf, len, &layout, &why), "layout of the peer", &why);
    free(buf);
    return layout;
}

void bench_cache_open(struct bench_cache *c, struct bench_link *l)
{
    struct pdx_engine *const engines[2] = {l->prefill, l->decode};
    const size_t len = c->ntensors * c->npages * c->page_len;
    struct pdx_layout *layouts[2];
    struct pdx_layout *received;
    struct pdx_error why;

    for (unsigned i = 0; i < 2; i++) {
        c->mem[i] = mmap(NULL, len, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (c->mem[i] == MAP_FAILED)
            bench_die("no address space of %zu bytes", len);
        bench_ok(pdx_region_register(engines[i], c->mem[i], len, NULL, &c->region[i], &why),
                 "region", &why);
        layouts[i] = cache_layout(c, c->region[i]);
    }
    received = cache_received(layouts[1]);
    bench_ok(pdx_route_create(l->prefill, layouts[0], l->peer, received, NULL, &c->route, &why),
             "route", &why);
    pdx_layout_destroy(received);
    pdx_layout_destroy(layouts[0]);
    pdx_layout_destroy(layouts[1]);
}

void bench_cache_close(struct bench_cache *c)
{
    const size_t len = c->ntensors * c->npages * c->page_len;
    struct pdx_error why;

    pdx_route_destroy(c->route);
    for (unsigned i = 0; i < 2; i++) {
        bench_ok(pdx_region_deregister(c->region[i], 10 * PDX_SEC, &why), "region", &why);
        (void)munmap(c->mem[i], len);
    }
}
