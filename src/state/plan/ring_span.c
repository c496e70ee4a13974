/* SPDX-License-Identifier: Apache-2.0
 *
 * See ring_span.h.
 */
#include "state/plan/ring_span.h"

#include "state/plan/ranks.h"

/* Bytes of one entry, or 0 when the row is not made of entries. */
static uint64_t ring_entry(const struct pdxi_tensor *t)
{
    return t->item_len % t->outer == 0 ? t->item_len / t->outer : 0;
}

/* Rows must touch, for an entry to have a number; and all rings of a side are as large. */
static bool ring_fits(const struct pdxi_ask *ask, const char *side, const struct pdxi_tensors *t,
                      uint32_t i, struct pdxi_findings *f)
{
    const struct pdxi_tensor *at = &t->at[i];

    if (at->stride == at->item_len && !at->shard_dim && at->outer <= PDXI_RING_MAX &&
        at->outer == t->at[0].outer)
        return true;
    pdxi_findings_add(f,
                      "%s tensor %u (%s): outer %llu must be the entries of the ring, at most %d "
                      "and the same as in tensor 0 (%llu), without stride (%llu bytes, an item has "
                      "%llu) and shard_dim (%llu).",
                      ask->what, i, side, (unsigned long long)at->outer, PDXI_RING_MAX,
                      (unsigned long long)t->at[0].outer, (unsigned long long)at->stride,
                      (unsigned long long)at->item_len, (unsigned long long)at->shard_dim);
    return false;
}

enum pdxi_part pdxi_ring_span_tensor(const struct pdxi_match *m, const struct pdxi_ask *ask,
                                     struct pdxi_findings *f)
{
    const struct pdxi_tensor *lt = &ask->local_tensors.at[m->local];
    const struct pdxi_tensor *rt = &ask->remote_tensors.at[m->remote];

    if (!ring_fits(ask, "local", &ask->local_tensors, m->local, f) ||
        !ring_fits(ask, "remote", &ask->remote_tensors, m->remote, f))
        return PDXI_PART_WRONG;
    if ((lt->flags ^ rt->flags) & PDX_TENSOR_REPLICATED) {
        pdxi_findings_add(f,
                          "%s tensor %u: PDX_TENSOR_REPLICATED is told on one side only. Set it on "
                          "both or on none.",
                          ask->what, m->local);
        return PDXI_PART_WRONG;
    }
    if (!ring_entry(lt) || ring_entry(lt) != ring_entry(rt)) {
        pdxi_findings_add(
            f,
            "%s tensor %u: DSA tail descriptor metadata mismatch: local rows of %llu "
            "bytes are %llu entries, remote rows of %llu bytes %llu: an entry must be "
            "of the same length. Set outer to the entries of a ring.",
            ask->what, m->local, (unsigned long long)lt->item_len, (unsigned long long)lt->outer,
            (unsigned long long)rt->item_len, (unsigned long long)rt->outer);
        return PDXI_PART_WRONG;
    }
    return pdxi_ranks_first_copy(ask->local, ask->remote, ask->trust) ? PDXI_PART_HERE
                                                                      : PDXI_PART_ELSEWHERE;
}

/* Appends the entries first .. first + count - 1 of a row. */
static bool ring_run(const struct pdxi_ring *ring, int32_t row, int32_t first, int32_t count,
                     int32_t *ret, int *n)
{
    if (first < 0 || count < 0 || (uint32_t)first > ring->entries ||
        (uint32_t)count > ring->entries - (uint32_t)first ||
        (uint32_t)count > ring->entries - (uint32_t)*n)
        return false;
    for (int32_t i = 0; i < count; i++)
        ret[(*n)++] = (int32_t)((uint32_t)row * ring->entries + (uint32_t)(first + i));
    return true;
}

int pdxi_ring_span_expand(const struct pdxi_ring *ring, const int32_t *span, size_t n, int32_t *ret,
                          const char **ret_why)
{
    int count = 0;

    if (n != PDXI_RING_SPAN_LEN)
        *ret_why = "a span is six numbers: row, first, count, first2, count2, ring";
    else if (span[5] < 0 || (uint32_t)span[5] != ring->entries)
        *ret_why = "its ring is not as large as the layout says (outer)";
    else if (span[0] < 0 || (uint64_t)span[0] >= ring->rows)
        *ret_why = "its row is outside the tensor";
    else if (((uint64_t)span[0] + 1) * ring->entries > (uint64_t)INT32_MAX + 1)
        *ret_why = "its row's entries have numbers beyond 2^31; register rings in smaller tensors";
    else if (!ring_run(ring, span[0], span[1], span[2], ret, &count) ||
             !ring_run(ring, span[0], span[3], span[4], ret, &count))
        *ret_why = "its runs leave the ring, or are longer than it together";
    else if (span[2] && span[4] && span[1] < span[3] + span[4] && span[3] < span[1] + span[2])
        *ret_why = "its two runs overlap";
    else if (count == 0)
        *ret_why = "it has no live entry; pass an empty list on both sides for that";
    else
        return count;
    return -1;
}
