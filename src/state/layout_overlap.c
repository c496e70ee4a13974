/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether tensors of one list share bytes. Two tensors may lie in the same
 * range when their items take turns: then both have the same stride, and their
 * items occupy different parts of it,
 *
 *     | A0 | B0 |      | A1 | B1 |      | A2 | B2 |      |
 *     |<---- stride --->|
 *
 * Tensors of different strides in one range are refused even where no byte is
 * shared: nobody lays out memory like that on purpose.
 *
 * Different lists may share memory, as pools do whose pages belong to one kind
 * of layer or another.
 */
#include "base/error.h"
#include "state/layout.h"

#include <stdlib.h>

/* Pairs of tensors in each other's range that are looked at. 1024 tensors may take turns in one
 * pool. */
#define OVERLAP_LOOKS_MAX (1u << 20)

struct overlap_range {
    uint32_t region;
    uint32_t tensor;
    uint64_t off;
    uint64_t end;
};

static int overlap_order(const void *a, const void *b)
{
    const struct overlap_range *x = a;
    const struct overlap_range *y = b;

    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    return x->off < y->off ? -1 : x->off > y->off;
}

/* Whether the items of both take turns; `b` begins inside the range of `a`. */
static bool overlap_turns(const struct pdxi_tensor *a, const struct pdxi_tensor *b)
{
    uint64_t phase = (b->off - a->off) % a->stride;

    return a->stride == b->stride && phase >= a->item_len && a->stride - phase >= b->item_len;
}

static void overlap_refuse(const char *list, const struct pdxi_tensors *t, uint32_t a, uint32_t b,
                           struct pdxi_findings *f)
{
    const struct pdxi_tensor *x = &t->at[a];
    const struct pdxi_tensor *y = &t->at[b];

    pdxi_findings_add(f,
                      "%s tensors %u and %u share bytes of their region, or mix without taking "
                      "turns: off %llu, len %llu, "
                      "item_len %llu, stride %llu, and off %llu, len %llu, item_len %llu, stride "
                      "%llu. Give each tensor memory of its own, or items that take turns.",
                      list, a, b, (unsigned long long)x->off, (unsigned long long)x->len,
                      (unsigned long long)x->item_len, (unsigned long long)x->stride,
                      (unsigned long long)y->off, (unsigned long long)y->len,
                      (unsigned long long)y->item_len, (unsigned long long)y->stride);
}

/* Looks at every pair of ranges that meet; stops at the first that share bytes. */
static void overlap_find(const char *list, const struct pdxi_tensors *t,
                         const struct overlap_range *r, struct pdxi_findings *f)
{
    uint32_t looks = 0;

    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t j = i + 1; j < t->n && r[j].region == r[i].region && r[j].off < r[i].end;
             j++) {
            if (!overlap_turns(&t->at[r[i].tensor], &t->at[r[j].tensor])) {
                overlap_refuse(list, t, r[i].tensor, r[j].tensor, f);
                return;
            }
            if (++looks > OVERLAP_LOOKS_MAX) {
                pdxi_findings_add(f,
                                  "%s: more than a thousand tensors take turns in one region. Use "
                                  "more regions.",
                                  list);
                return;
            }
        }
}

int pdxi_layout_overlap(const struct pdx_layout *l, const char *list, struct pdxi_tensors t,
                        struct pdxi_findings *f)
{
    struct overlap_range *ranges;

    if (t.n < 2)
        return 0;
    ranges = malloc(t.n * sizeof *ranges);
    if (!ranges)
        return PDX_ENOMEM;
    for (uint32_t i = 0; i < t.n; i++)
        ranges[i] = (struct overlap_range){.region = l->regions[t.at[i].region].remote.id,
                                           .tensor = i,
                                           .off = t.at[i].off,
                                           .end = t.at[i].off + t.at[i].len};
    qsort(ranges, t.n, sizeof *ranges, overlap_order);
    overlap_find(list, &t, ranges, f);
    free(ranges);
    return 0;
}
