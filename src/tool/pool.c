/* SPDX-License-Identifier: Apache-2.0
 *
 * See pool.h.
 */
#include "tool/pool.h"

#include "tool/refuse.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POOL_STRIP 4096 /* least bytes between tensors */
#define POOL_ALIGN UINT64_C(4096)

/* Bytes from one item of tensor t to the next. */
static uint64_t pool_item_len(const struct tool_pool *p, size_t t)
{
    return tool_slicing_item_len(&p->slicings[t]);
}

/* xorshift64*; a shuffle needs no more. */
static uint32_t pool_random(struct tool_pool *p, uint32_t below)
{
    p->random ^= p->random >> 12;
    p->random ^= p->random << 25;
    p->random ^= p->random >> 27;
    return (uint32_t)(((p->random * UINT64_C(0x2545F4914F6CDD1D)) >> 32) * below >> 32);
}

static void pool_swap(struct tool_pool *p, uint32_t a, uint32_t b)
{
    int32_t x = p->order[a];

    p->order[a] = p->order[b];
    p->order[b] = x;
}

static void pool_shuffle(struct tool_pool *p)
{
    for (uint32_t i = 0; i < p->nitems; i++)
        p->order[i] = (int32_t)i;
    for (uint32_t i = p->nitems; i > 1; i--)
        pool_swap(p, i - 1, pool_random(p, i));
    p->nfree = p->nitems - p->nguards;
}

static int pool_map(struct tool_pool *p, struct pdx_error *why)
{
    uint64_t off = POOL_STRIP;

    for (size_t t = 0; t < p->ntensors; t++) {
        p->offs[t] = off;
        off += p->nitems * pool_item_len(p, t) + POOL_STRIP;
        off = (off + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    }
    p->mem = mmap(NULL, off, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->mem == MAP_FAILED) {
        p->mem = NULL;
        return tool_refuse_sys(why, errno, "cannot map %llu bytes for the %s pool (lower --mem)",
                               (unsigned long long)off, p->name);
    }
    p->len = off;
    (void)madvise(p->mem, p->len, MADV_HUGEPAGE); /* only an advice */
    return 0;
}

int tool_pool_init(struct tool_pool *p, const struct tool_model *m, size_t pos, uint32_t tp,
                   uint32_t rank, const struct tool_sizing *sizing, uint64_t seed,
                   struct pdx_error *why)
{
    bool aux = pos == m->ncomponents + 1;

    *p = (struct tool_pool){.nitems = sizing->items[pos], .nguards = sizing->guards[pos]};
    (void)snprintf(p->name, sizeof p->name, "%s",
                   aux        ? "aux"
                   : pos == 0 ? "kv"
                              : m->components[pos - 1].type);
    p->number = aux ? TOOL_CONTENT_AUX : (uint32_t)pos;
    p->slots = aux || (pos > 0 && m->components[pos - 1].space == TOOL_INDEX_SLOT);
    p->poison = tool_poison_base(seed, rank, p->number);
    p->random = tool_content_base(seed, rank, p->number, tool_content_key("shuffle", 0), tp) | 1;
    p->tensors = tool_sizing_tensors(m, pos, &p->aux, &p->ntensors);
    if (p->ntensors == 0 || p->nitems == 0) {
        p->ntensors = 0;
        p->nitems = p->nguards = 0;
        return 0;
    }
    p->slicings = calloc(p->ntensors, sizeof *p->slicings);
    p->offs = calloc(p->ntensors, sizeof *p->offs);
    p->order = calloc(p->nitems, sizeof *p->order);
    p->taken = calloc(p->nitems, sizeof *p->taken);
    if (!p->slicings || !p->offs || !p->order || !p->taken)
        return tool_refuse(why, PDX_ENOMEM, "no memory for the tables of the %s pool", p->name);
    for (size_t t = 0; t < p->ntensors; t++)
        tool_slicing_init(&p->slicings[t], &p->tensors[t], tp, rank % tp);
    pool_shuffle(p);
    return pool_map(p, why);
}

int tool_pool_register(struct tool_pool *p, struct pdx_engine *engine, uint32_t rights,
                       struct pdx_error *why)
{
    struct pdx_region_opts opts = PDX_REGION_OPTS_INIT;

    opts.kind = PDX_MEM_HOST;
    opts.rights = rights;
    return p->mem ? pdx_region_register(engine, p->mem, p->len, &opts, &p->region, why) : 0;
}

void tool_pool_fini(struct tool_pool *p)
{
    /* Memory that transfers still use must stay mapped; it goes with the process. */
    if (pdx_region_deregister(p->region, PDX_SEC * 5, NULL) == 0 && p->mem)
        (void)munmap(p->mem, p->len);
    free(p->slicings);
    free(p->offs);
    free(p->order);
    free(p->taken);
    *p = (struct tool_pool){0};
}

bool tool_pool_take(struct tool_pool *p, uint32_t n, int32_t *ret_items)
{
    if (n > p->nfree)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        ret_items[i] = p->order[p->nguards + --p->nfree];
        p->taken[ret_items[i]] = true;
    }
    return true;
}

void tool_pool_give(struct tool_pool *p, const int32_t *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t end = p->nguards + p->nfree++;

        assert(p->taken[items[i]]);
        p->taken[items[i]] = false;
        p->order[end] = items[i];
        pool_swap(p, end, p->nguards + pool_random(p, p->nfree));
    }
}

uint8_t *tool_pool_at(const struct tool_pool *p, size_t tensor, int32_t item)
{
    return p->mem + p->offs[tensor] + (uint64_t)item * pool_item_len(p, tensor);
}

void tool_pool_poison(struct tool_pool *p)
{
    if (p->mem)
        tool_content_fill(p->mem, p->len, p->poison, 0);
}

static void pool_poison_item(struct tool_pool *p, size_t t, int32_t item)
{
    uint8_t *at = tool_pool_at(p, t, item);

    tool_content_fill(at, pool_item_len(p, t), p->poison, (uint64_t)(at - p->mem));
}

void tool_pool_poison_items(struct tool_pool *p, const int32_t *items, uint32_t n)
{
    for (size_t t = 0; t < p->ntensors; t++) {
        for (uint32_t i = 0; i < n; i++)
            pool_poison_item(p, t, items[i]);
    }
}

/* Compares [off, off + len) of the memory with its poison. */
static bool pool_is_poison(const struct tool_pool *p, uint64_t off, uint64_t len,
                           struct tool_fault *ret)
{
    size_t ok = tool_content_check(p->mem + off, len, p->poison, off);

    if (ok == len)
        return true;
    *ret = (struct tool_fault){
        .item = -1,
        .off = off + ok,
        .want = tool_content_byte(p->poison, off + ok),
        .got = p->mem[off + ok],
    };
    return false;
}

static bool pool_item_is_poison(const struct tool_pool *p, size_t t, int32_t item,
                                struct tool_fault *ret)
{
    uint64_t off = (uint64_t)(tool_pool_at(p, t, item) - p->mem);

    if (pool_is_poison(p, off, pool_item_len(p, t), ret))
        return true;
    ret->tensor = &p->tensors[t];
    ret->item = item;
    ret->off -= off;
    return false;
}

bool tool_pool_check_poison(const struct tool_pool *p, const int32_t *items, uint32_t n,
                            struct tool_fault *ret)
{
    for (size_t t = 0; t < p->ntensors; t++) {
        for (uint32_t i = 0; i < n; i++) {
            if (!pool_item_is_poison(p, t, items[i], ret))
                return false;
        }
    }
    return true;
}

bool tool_pool_check_rest(const struct tool_pool *p, uint64_t *count, struct tool_fault *ret)
{
    const bool *taken = p->leader ? p->leader->taken : p->taken;
    uint64_t end = 0; /* of the tensor before */

    if (!p->mem)
        return true;
    for (size_t t = 0; t < p->ntensors; t++) {
        if (!pool_is_poison(p, end, p->offs[t] - end, ret))
            return false;
        for (uint32_t i = 0; i < p->nitems; i++) {
            if (!taken[i] && !pool_item_is_poison(p, t, (int32_t)i, ret))
                return false;
        }
        end = p->offs[t] + p->nitems * pool_item_len(p, t);
    }
    if (!pool_is_poison(p, end, p->len - end, ret))
        return false;
    for (uint32_t i = 0; i < p->nitems; i++)
        *count += !taken[i];
    return true;
}

static uint64_t pool_base(const struct tool_pool *p, uint64_t seed, uint64_t request, size_t t,
                          uint64_t ordinal)
{
    return tool_content_base(seed, request, p->number, p->slicings[t].key, ordinal);
}

void tool_pool_fill(struct tool_pool *p, uint64_t seed, uint64_t request, struct tool_span span,
                    const int32_t *items)
{
    for (size_t t = 0; t < p->ntensors; t++) {
        for (uint32_t i = 0; i < span.n; i++)
            tool_item_fill(tool_pool_at(p, t, items[i]), &p->slicings[t],
                           pool_base(p, seed, request, t, span.first + i));
    }
}

/* Describes a byte of an item that is not the request's. */
static void pool_blame(const struct tool_pool *p, size_t t, int32_t item, uint64_t ordinal,
                       uint64_t off, uint8_t want, struct tool_fault *ret)
{
    const uint8_t *at = tool_pool_at(p, t, item);
    uint64_t left = pool_item_len(p, t) - off;
    size_t probe = left < 8 ? left : 8;

    *ret = (struct tool_fault){
        .tensor = &p->tensors[t],
        .item = item,
        .ordinal = ordinal,
        .off = off,
        .want = want,
        .got = at[off],
        .poison =
            tool_content_check(at + off, probe, p->poison, (uint64_t)(at - p->mem) + off) == probe,
    };
}

bool tool_pool_verify(struct tool_pool *p, uint64_t seed, uint64_t request, struct tool_span span,
                      const int32_t *items, uint64_t *bytes, struct tool_fault *ret)
{
    bool good = true;

    for (size_t t = 0; t < p->ntensors; t++) {
        uint64_t item_len = pool_item_len(p, t);

        for (uint32_t i = 0; i < span.n; i++) {
            uint64_t base = pool_base(p, seed, request, t, span.first + i);
            uint8_t want = 0;
            uint64_t ok =
                tool_item_check(tool_pool_at(p, t, items[i]), &p->slicings[t], base, &want);

            if (ok < item_len && good) {
                pool_blame(p, t, items[i], span.first + i, ok, want, ret);
                good = false;
            }
            *bytes += item_len;
            pool_poison_item(p, t, items[i]);
        }
    }
    return good;
}

void tool_fault_text(const struct tool_pool *p, const struct tool_fault *f, char *buf, size_t cap)
{
    char layer[24] = "";

    if (!f->tensor) {
        (void)snprintf(buf, cap,
                       "%s pool, between two tensors, offset %llu: expected 0x%02x, found 0x%02x",
                       p->name, (unsigned long long)f->off, f->want, f->got);
        return;
    }
    if (f->tensor->layer >= 0) /* aux has none */
        (void)snprintf(layer, sizeof layer, ", layer %d", (int)f->tensor->layer);
    (void)snprintf(buf, cap,
                   "component %s, tensor %s%s, %s %lld (number %llu of the request), "
                   "offset %llu: expected 0x%02x, found 0x%02x%s",
                   p->name, f->tensor->name, layer, p->slots ? "slot" : "page", (long long)f->item,
                   (unsigned long long)f->ordinal, (unsigned long long)f->off, f->want, f->got,
                   f->poison ? " (nothing was written there)" : "");
}
