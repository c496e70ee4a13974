/* SPDX-License-Identifier: Apache-2.0
 *
 * See head_slice.h.
 *
 * The rank pair (p of P, d of D) is taken to belong together, which the route
 * has checked; so positions are relative to the larger of both shares. Which
 * unit a rank holds is found by division, never by remainder: with copies,
 * ranks next to each other hold the same unit.
 */
#include "state/plan/head_slice.h"

#define HEAD_SLICE_TELL 3 /* tensors of one list that are complained of one by one */

/* Units of one block that go from p to d: where in each rank's block, and how many; 0 when another
 * copy sends them. */
struct head_share {
    uint64_t local;
    uint64_t remote;
    uint64_t n;
};

static struct head_share head_share(uint64_t total, const struct pdxi_rank *l,
                                    const struct pdxi_rank *r, bool trust)
{
    uint64_t local_units = pdxi_units(total, l->tp_size);
    uint64_t remote_units = pdxi_units(total, r->tp_size);
    uint64_t copies = total < l->tp_size ? l->tp_size / total : 1;
    struct head_share s = {0};

    if (l->tp_size >= r->tp_size) {
        /* Copies that feed the same remote rank, of which the first is the one that sends. */
        uint64_t feeding = l->tp_size / r->tp_size < copies ? l->tp_size / r->tp_size : copies;

        if (!trust && l->tp_rank % feeding)
            return s;
        s.n = local_units;
        s.remote = l->tp_rank / copies * local_units % remote_units;
    } else {
        copies = total < r->tp_size ? r->tp_size / total : 1;
        s.n = remote_units;
        s.local = r->tp_rank / copies * remote_units % local_units;
    }
    return s;
}

/* Bytes of one unit, or 0 when the item does not divide. */
static uint64_t head_unit_len(const struct pdxi_tensor *t)
{
    uint64_t row = t->item_len / t->outer;

    if (t->item_len % t->outer || row % t->shard_dim)
        return 0;
    return row / t->shard_dim;
}

static enum pdxi_part head_units_differ(const struct pdxi_ask *ask, const struct pdxi_match *m,
                                        const struct pdxi_tensor *lt, const struct pdxi_tensor *rt,
                                        struct pdxi_findings *f)
{
    pdxi_findings_add(f,
                      "%s tensor %u: local has %llu bytes = %llu rows of %llu units, remote %llu "
                      "bytes = %llu rows of %llu units: the bytes of one unit or the rows differ. "
                      "Give both sides the same dtype, page size and head size.",
                      ask->what, m->local, (unsigned long long)lt->item_len,
                      (unsigned long long)lt->outer, (unsigned long long)lt->shard_dim,
                      (unsigned long long)rt->item_len, (unsigned long long)rt->outer,
                      (unsigned long long)rt->shard_dim);
    return PDXI_PART_WRONG;
}

enum pdxi_part pdxi_head_slice(struct pdxi_payload *p, struct pdxi_match *m,
                               const struct pdxi_ask *ask, const struct pdxi_tensor *lt,
                               const struct pdxi_tensor *rt, const uint64_t *totals,
                               uint32_t ntotals, struct pdxi_findings *f)
{
    uint64_t unit_len = head_unit_len(lt);
    uint64_t local = 0, remote = 0; /* where the block begins in either row, units */
    uint32_t first = p->nslices;
    bool whole = true;

    if (unit_len == 0 || unit_len != head_unit_len(rt) || lt->outer != rt->outer)
        return head_units_differ(ask, m, lt, rt, f);
    for (uint32_t i = 0; i < ntotals; i++) {
        struct head_share s = head_share(totals[i], ask->local, ask->remote, ask->trust);
        uint64_t local_units = pdxi_units(totals[i], ask->local->tp_size);
        uint64_t remote_units = pdxi_units(totals[i], ask->remote->tp_size);
        struct pdx_slice slice = {
            .local_off = (local + s.local) * unit_len,
            .remote_off = (remote + s.remote) * unit_len,
            .len = s.n * unit_len,
            .rows = lt->outer,
            .local_pitch = lt->shard_dim * unit_len,
            .remote_pitch = rt->shard_dim * unit_len,
        };

        whole = whole && s.n == local_units && s.n == remote_units;
        local += local_units;
        remote += remote_units;
        if (s.n)
            pdxi_payload_add(p, &slice);
    }
    if (p->nslices == first)
        return PDXI_PART_ELSEWHERE;
    if (whole)
        p->nslices = first;
    pdxi_payload_close(p, first, m);
    return PDXI_PART_HERE;
}

void pdxi_head_slice_each(struct pdxi_payload *p, const struct pdxi_ask *ask, pdxi_part_fn one,
                          struct pdxi_findings *f)
{
    uint32_t kept = 0;
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < p->nmatches; i++) {
        p->matches[kept] = p->matches[i];
        switch (one(p, &p->matches[kept], ask, f)) {
        case PDXI_PART_HERE:
            kept++;
            break;
        case PDXI_PART_ELSEWHERE:
            break;
        case PDXI_PART_WRONG:
            if (++wrong < HEAD_SLICE_TELL)
                break;
            if (i + 1 < p->nmatches)
                pdxi_findings_add(f, "%s: %u more of its tensors were not compared.", ask->what,
                                  p->nmatches - i - 1);
            return;
        }
    }
    p->nmatches = kept;
}
