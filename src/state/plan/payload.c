/* SPDX-License-Identifier: Apache-2.0
 *
 * See payload.h.
 */
#include "state/plan/payload.h"

#include <assert.h>
#include <string.h>

/* How far back an equal list of slices is looked for. A layer has a few kinds of tensors, so the
 * same list comes again after that many matches or never. */
#define PAYLOAD_LOOK_BACK 8

/* A missing pair is told this often; the number of the others follows. */
#define PAYLOAD_TELL 3

static bool payload_selected(const struct pdxi_tensor *t, struct pdxi_select which)
{
    return t->part == which.part && (t->flags & PDX_TENSOR_DRAFT) == which.draft;
}

uint32_t pdxi_payload_count(const struct pdxi_tensors *t, struct pdxi_select which)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++)
        n += payload_selected(&t->at[i], which);
    return n;
}

/* The first selected tensor at or behind `i`; t->n when there is none. */
static uint32_t payload_next(const struct pdxi_tensors *t, struct pdxi_select which, uint32_t i)
{
    while (i < t->n && !payload_selected(&t->at[i], which))
        i++;
    return i;
}

static void payload_least(uint64_t *least, const struct pdxi_tensor *t)
{
    uint64_t items = pdxi_tensor_items(t);

    if (*least == 0 || items < *least)
        *least = items;
}

void pdxi_payload_match(struct pdxi_payload *p, const struct pdxi_ask *ask, uint32_t local,
                        uint32_t remote)
{
    payload_least(&p->local_items, &ask->local_tensors.at[local]);
    payload_least(&p->remote_items, &ask->remote_tensors.at[remote]);
    p->matches[p->nmatches++] = (struct pdxi_match){.local = local, .remote = remote};
}

static void payload_untold(const struct pdxi_ask *ask, uint32_t nlocal, uint32_t nremote,
                           struct pdxi_findings *f)
{
    pdxi_findings_add(f,
                      "%s: %s%sPP-heterogeneous transfer requires layer ids on both peers; got "
                      "src=%u dst=%u entries. Set pdx_tensor.layer on both sides.",
                      ask->what, ask->pp_text ? ask->pp_text : "", ask->pp_text ? ". " : "", nlocal,
                      nremote);
}

/* By position: neither side has numbers. */
static bool payload_pair_positions(struct pdxi_payload *p, const struct pdxi_ask *ask,
                                   struct pdxi_select which, uint32_t nlocal, uint32_t nremote,
                                   struct pdxi_findings *f)
{
    uint32_t l = 0, r = 0;

    if (ask->local->pp_size != ask->remote->pp_size) {
        payload_untold(ask, nlocal, nremote, f);
        return false;
    }
    if (nlocal != nremote) {
        pdxi_findings_add(
            f,
            "%s: tensor count: local %u, remote %u. Register the same tensors on both "
            "sides.",
            ask->what, nlocal, nremote);
        return false;
    }
    for (uint32_t i = 0; i < nlocal; i++, l++, r++) {
        l = payload_next(&ask->local_tensors, which, l);
        r = payload_next(&ask->remote_tensors, which, r);
        pdxi_payload_match(p, ask, l, r);
    }
    return true;
}

/* By layer number. `used` marks remote tensors that have their pair, or are of another part; all
 * before `free_from` are marked. Both lists are in the same order as a rule, so that a search ends
 * where it begins. */
static uint32_t payload_pair_layers(struct pdxi_payload *p, const struct pdxi_ask *ask,
                                    struct pdxi_select which, uint32_t nlocal, uint32_t nremote,
                                    struct pdxi_findings *f)
{
    const struct pdxi_tensors *local = &ask->local_tensors;
    const struct pdxi_tensors *remote = &ask->remote_tensors;
    uint32_t free_from = 0;
    uint32_t missing = 0;

    for (uint32_t j = 0; j < remote->n; j++)
        p->used[j] = !payload_selected(&remote->at[j], which);
    for (uint32_t i = payload_next(local, which, 0); i < local->n;
         i = payload_next(local, which, i + 1)) {
        uint32_t j;

        while (free_from < remote->n && p->used[free_from])
            free_from++;
        j = free_from;
        while (j < remote->n && (p->used[j] || remote->at[j].number != local->at[i].number))
            j++;
        if (j < remote->n) {
            p->used[j] = 1;
            pdxi_payload_match(p, ask, i, j);
        } else if (++missing <= PAYLOAD_TELL) {
            pdxi_findings_add(f,
                              "%s: Decode peer is missing a transfer entry for model layer %d "
                              "(local tensor %u; local has %u entries, remote %u). Make the layer "
                              "ranges of both sides fit.",
                              ask->what, local->at[i].number, i, nlocal, nremote);
        }
    }
    if (missing > PAYLOAD_TELL)
        pdxi_findings_add(f, "%s: %u more layers are missing likewise.", ask->what,
                          missing - PAYLOAD_TELL);
    return missing;
}

/* A layer lives on one stage as a whole: a remote tensor that is left over must not be of a layer
 * that this rank has. Layers that nobody set are all 0, and are found by this. */
static bool payload_whole_layers(const struct pdxi_payload *p, const struct pdxi_ask *ask,
                                 struct pdxi_select which, struct pdxi_findings *f)
{
    const struct pdxi_tensors *local = &ask->local_tensors;
    const struct pdxi_tensors *remote = &ask->remote_tensors;

    for (uint32_t j = 0; j < remote->n && !ask->trust; j++) {
        uint32_t i = p->used[j] ? local->n : payload_next(local, which, 0);

        while (i < local->n && local->at[i].number != remote->at[j].number)
            i = payload_next(local, which, i + 1);
        if (i == local->n)
            continue;
        pdxi_findings_add(f,
                          "%s: the remote side has more tensors of layer %d than the local one, "
                          "which has that layer (remote tensor %u is left over). Set "
                          "pdx_tensor.layer of every tensor on both sides, or PDX_LAYER_NONE.",
                          ask->what, remote->at[j].number, j);
        return false;
    }
    return true;
}

/* Whether the selected tensors of a list tell their layers; all do or none. */
static bool payload_told(const struct pdxi_tensors *t, struct pdxi_select which)
{
    uint32_t i = payload_next(t, which, 0);

    return i < t->n && t->at[i].layer != PDX_LAYER_NONE;
}

/* A stage of several feeds a part of the peer; otherwise what is left over is never written. */
static bool payload_covered(const struct pdxi_ask *ask, uint32_t nlocal, uint32_t nremote,
                            struct pdxi_findings *f)
{
    if (nlocal >= nremote || ask->local->pp_size > ask->remote->pp_size || ask->trust)
        return true;
    pdxi_findings_add(f,
                      "%s: tensor count: local %u, remote %u: the remote side has layers that "
                      "nothing is sent to. Serve the same model on both sides.",
                      ask->what, nlocal, nremote);
    return false;
}

bool pdxi_payload_pair(struct pdxi_payload *p, const struct pdxi_ask *ask, struct pdxi_select which,
                       struct pdxi_findings *f)
{
    uint32_t nlocal = pdxi_payload_count(&ask->local_tensors, which);
    uint32_t nremote = pdxi_payload_count(&ask->remote_tensors, which);
    bool local_told = payload_told(&ask->local_tensors, which);
    bool remote_told = payload_told(&ask->remote_tensors, which);
    uint32_t first;

    if (nlocal == 0)
        return payload_covered(ask, 0, nremote, f);
    if (nremote && local_told != remote_told) {
        pdxi_findings_add(f,
                          "%s: Layer metadata must be provided by both PD peers or neither: local "
                          "tells layers: %s, remote: %s.",
                          ask->what, local_told ? "yes" : "no", remote_told ? "yes" : "no");
        return false;
    }
    first = payload_next(&ask->local_tensors, which, 0);
    if (ask->local_tensors.at[first].number == PDX_LAYER_NONE)
        return payload_pair_positions(p, ask, which, nlocal, nremote, f);
    if (payload_pair_layers(p, ask, which, nlocal, nremote, f))
        return false;
    return payload_covered(ask, nlocal, nremote, f) &&
           (nlocal == nremote || payload_whole_layers(p, ask, which, f));
}

void pdxi_payload_add(struct pdxi_payload *p, const struct pdx_slice *slice)
{
    assert(p->nslices < p->slices_cap);
    p->slices[p->nslices++] = *slice;
}

static bool payload_same_slices(const struct pdx_slice *a, const struct pdx_slice *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].local_off != b[i].local_off || a[i].remote_off != b[i].remote_off ||
            a[i].len != b[i].len || a[i].rows != b[i].rows ||
            a[i].local_pitch != b[i].local_pitch || a[i].remote_pitch != b[i].remote_pitch)
            return false;
    return true;
}

void pdxi_payload_close(struct pdxi_payload *p, uint32_t first, struct pdxi_match *m)
{
    uint32_t n = p->nslices - first;

    m->first_slice = first;
    m->nslices = n;
    for (const struct pdxi_match *o = m; n && o > p->matches && m - o < PAYLOAD_LOOK_BACK;) {
        o--;
        if (o->nslices == n &&
            payload_same_slices(p->slices + o->first_slice, p->slices + first, n)) {
            m->first_slice = o->first_slice;
            p->nslices = first;
            return;
        }
    }
}
