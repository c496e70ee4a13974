/* SPDX-License-Identifier: Apache-2.0
 *
 * See sizing.h.
 */
#include "tool/sizing.h"

#include "base/check.h"
#include "tool/memory.h"
#include "tool/refuse.h"
#include "tool/table.h"

#include <stdio.h>
#include <string.h>

#define SIZING_HUGE    (UINT64_MAX / 4) /* more than any machine has; sums of a few still fit */
#define SIZING_CAP     (UINT64_C(4) << 30)
#define SIZING_DEFAULT (UINT64_C(256) << 20) /* when the kernel does not tell */

static bool sizing_is_aux(const struct tool_model *m, size_t pool)
{
    return pool == m->ncomponents + 1;
}

bool tool_sizing_follows_kv(const struct tool_model *m, size_t pool)
{
    return pool > 0 && !sizing_is_aux(m, pool) &&
           m->components[pool - 1].space == TOOL_INDEX_KV_PAGES;
}

const struct tool_tensor *tool_sizing_tensors(const struct tool_model *m, size_t pool,
                                              struct tool_tensor *aux, size_t *ret_n)
{
    if (sizing_is_aux(m, pool)) {
        *aux = (struct tool_tensor){
            .name = "aux",
            .layer = PDX_LAYER_NONE,
            .rows = 1,
            .units = 1,
            .unit_len = m->aux_len,
            .replicated = true,
        };
        *ret_n = m->aux_len > 0;
        return aux;
    }
    *ret_n = pool == 0 ? m->nkv : m->components[pool - 1].ntensors;
    return pool == 0 ? m->kv : m->components[pool - 1].tensors;
}

static uint32_t sizing_pages(const struct tool_model *m, uint32_t tokens)
{
    return (uint32_t)(((uint64_t)tokens + m->page_size - 1) / m->page_size);
}

struct tool_span tool_sizing_span(const struct tool_model *m, size_t pool, uint32_t tokens)
{
    uint32_t pages = sizing_pages(m, tokens);

    if (sizing_is_aux(m, pool))
        return (struct tool_span){.n = m->aux_len > 0};
    if (pool == 0)
        return (struct tool_span){.n = m->nkv ? pages : 0};
    if (m->components[pool - 1].ntensors == 0)
        return (struct tool_span){0};
    switch (m->components[pool - 1].space) {
    case TOOL_INDEX_SLOT:
        return (struct tool_span){.n = 1};
    case TOOL_INDEX_KV_PAGES:
        return (struct tool_span){.n = pages};
    case TOOL_INDEX_WINDOW: {
        uint32_t window = m->components[pool - 1].window;
        uint32_t first = tokens > window ? (tokens - window) / m->page_size : 0;

        return (struct tool_span){.first = first, .n = pages - first};
    }
    }
    return (struct tool_span){0};
}

/* The product, or SIZING_HUGE: a config.json may say anything. */
static uint64_t sizing_times(uint64_t a, uint64_t b)
{
    uint64_t r;

    return pdxi_mul_u64(a, b, &r) && r < SIZING_HUGE ? r : SIZING_HUGE;
}

static uint64_t sizing_plus(uint64_t a, uint64_t b)
{
    return a < SIZING_HUGE && b < SIZING_HUGE - a ? a + b : SIZING_HUGE;
}

/* Bytes of one item of a pool on one rank. */
static uint64_t sizing_item_bytes(const struct tool_model *m, size_t pool, uint32_t tp)
{
    struct tool_tensor aux;
    size_t n;
    const struct tool_tensor *t = tool_sizing_tensors(m, pool, &aux, &n);
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = sizing_plus(sum, tool_tensor_item_len(&t[i], tp));
    return sum;
}

static uint64_t sizing_strips(const struct tool_model *m, uint64_t gap)
{
    uint64_t n = m->nkv + 1 + tool_sizing_npools(m);

    for (size_t c = 0; c < m->ncomponents; c++)
        n += m->components[c].ntensors;
    return n * gap;
}

/* Whether the number of items of a pool grows with the length of a request. */
static bool sizing_is_paged(const struct tool_model *m, size_t pool)
{
    return pool == 0 || tool_sizing_follows_kv(m, pool);
}

/* The most items that a request of up to max_tokens takes of a pool: a window that begins just
 * before a page's end touches one page more than its length says. */
static uint32_t sizing_most(const struct tool_model *m, size_t pool, uint32_t max_tokens)
{
    uint32_t all = tool_sizing_span(m, pool, max_tokens).n, most;

    if (pool == 0 || sizing_is_aux(m, pool) || m->components[pool - 1].space != TOOL_INDEX_WINDOW)
        return all;
    most = sizing_pages(m, m->components[pool - 1].window) + 1;
    all = sizing_pages(m, max_tokens);
    return all < most ? all : most;
}

static uint32_t sizing_guards(uint32_t items, bool guarded)
{
    return guarded && items > 0 ? 1 + items / 16 : 0;
}

/* Sets the counts of pools that have a fixed number of items per request; returns their bytes. */
static uint64_t sizing_fixed(const struct tool_model *m, uint32_t tp, uint32_t inflight,
                             uint32_t max_tokens, bool guarded, struct tool_sizing *s)
{
    uint64_t bytes = 0;

    for (size_t pool = 0; pool < s->npools; pool++) {
        uint64_t wanted = (uint64_t)inflight * sizing_most(m, pool, max_tokens);
        uint32_t items = (uint32_t)(wanted < TOOL_ITEMS_MAX ? wanted : TOOL_ITEMS_MAX);

        if (sizing_is_paged(m, pool))
            continue;
        if (wanted > TOOL_ITEMS_MAX)
            bytes = SIZING_HUGE;
        s->guards[pool] = sizing_guards(items, guarded);
        s->items[pool] = items + s->guards[pool];
        bytes = sizing_plus(bytes, sizing_times(s->items[pool], sizing_item_bytes(m, pool, tp)));
    }
    return bytes;
}

static void sizing_set_paged(const struct tool_model *m, uint32_t pages, bool guarded,
                             struct tool_sizing *s)
{
    for (size_t pool = 0; pool < s->npools; pool++) {
        if (!sizing_is_paged(m, pool) || tool_sizing_span(m, pool, 1).n == 0)
            continue;
        s->guards[pool] = sizing_guards(pages, guarded);
        s->items[pool] = pages + s->guards[pool];
    }
}

/* Bytes of one page in all pools that are indexed by KV pages. */
static uint64_t sizing_page_bytes(const struct tool_model *m, uint32_t tp)
{
    uint64_t sum = 0;

    for (size_t pool = 0; pool < tool_sizing_npools(m); pool++)
        sum = sizing_plus(sum, sizing_is_paged(m, pool) ? sizing_item_bytes(m, pool, tp) : 0);
    return sum;
}

/* Pages that fit into `room` bytes together with their guards; at least 0, at most `wanted`. */
static uint32_t sizing_fit_pages(uint64_t room, uint64_t page_bytes, uint64_t wanted, bool guarded)
{
    uint64_t fit;

    if (page_bytes == 0)
        return (uint32_t)(wanted < TOOL_ITEMS_MAX ? wanted : TOOL_ITEMS_MAX);
    fit = room / page_bytes;
    if (guarded)
        fit = fit < 2 ? 0 : (fit - 1) * 16 / 17;
    if (fit > TOOL_ITEMS_MAX / 2)
        fit = TOOL_ITEMS_MAX / 2;
    return (uint32_t)(fit < wanted ? fit : wanted);
}

static int sizing_refuse(const struct tool_model *m, uint32_t tp, uint64_t limit, uint64_t need,
                         struct pdx_error *why)
{
    char a[TOOL_TEXT_MAX], b[TOOL_TEXT_MAX];

    return tool_refuse(why, PDX_ENOMEM,
                       "%s at TP %u: one request needs %s on each rank (its state, one page of %u "
                       "tokens, guard items), but only %s per rank may be used; raise --mem, or "
                       "raise the TP size",
                       m->name, tp, tool_text_size(a, need), m->page_size,
                       tool_text_size(b, limit));
}

int tool_sizing_plan(const struct tool_model *m, uint32_t tp, uint64_t limit, uint64_t gap,
                     uint32_t inflight, uint32_t max_tokens, bool guarded, struct tool_sizing *ret,
                     struct pdx_error *why)
{
    struct tool_sizing s = {.npools = tool_sizing_npools(m), .inflight = inflight};
    uint64_t strips = sizing_strips(m, gap), page_bytes = sizing_page_bytes(m, tp), fixed, wanted;
    uint32_t pages;

    if (s.npools > TOOL_POOLS_MAX)
        return tool_refuse(why, PDX_EINVAL, "%s has %zu state components; at most %d are supported",
                           m->name, m->ncomponents, TOOL_COMPONENTS_MAX);
    fixed = sizing_fixed(m, tp, s.inflight, max_tokens, guarded, &s) + strips;
    /* Slots may take half of the memory while more than one request has one. */
    while (s.inflight > 1 && fixed > limit / 2) {
        s.inflight /= 2;
        fixed = sizing_fixed(m, tp, s.inflight, max_tokens, guarded, &s) + strips;
    }
    wanted = (uint64_t)s.inflight * sizing_pages(m, max_tokens);
    pages = fixed > limit ? 0 : sizing_fit_pages(limit - fixed, page_bytes, wanted, guarded);
    if (pages == 0)
        return sizing_refuse(m, tp, limit,
                             sizing_plus(fixed, sizing_times(page_bytes, guarded ? 3 : 1)), why);
    sizing_set_paged(m, pages, guarded, &s);
    s.max_tokens = (uint64_t)pages * m->page_size < max_tokens ? pages * m->page_size : max_tokens;
    s.bytes = strips;
    for (size_t pool = 0; pool < s.npools; pool++)
        s.bytes += s.items[pool] * sizing_item_bytes(m, pool, tp);
    *ret = s;
    return 0;
}

uint64_t tool_sizing_default_limit(void)
{
    uint64_t available = tool_memory_available("");
    uint64_t limit = available ? available / 4 : SIZING_DEFAULT;

    return limit < SIZING_CAP ? limit : SIZING_CAP;
}
