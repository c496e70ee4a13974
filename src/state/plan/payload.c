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

static bool payload_told(const struct pdxi_tensor *t, uint32_t n)
{
    return n > 0 && t[0].layer != PDX_LAYER_NONE; /* a layout tells all of a list or none */
}

static int64_t payload_layer(const struct pdxi_tensor *t, uint32_t i, const struct pdxi_rank *rank)
{
    return t[i].layer != PDX_LAYER_NONE ? t[i].layer : (int64_t)rank->start_layer + i;
}

static void payload_match(struct pdxi_payload *p, uint32_t local, uint32_t remote)
{
    p->matches[p->nmatches++] = (struct pdxi_match){.local = local, .remote = remote};
}

/* By position: neither side has numbers. */
static bool payload_pair_positions(struct pdxi_payload *p, const struct pdxi_ask *ask,
                                   uint32_t local, uint32_t nlocal, uint32_t remote,
                                   uint32_t nremote, struct pdxi_findings *f)
{
    if (ask->local->pp_size != ask->remote->pp_size) {
        pdxi_findings_add(f,
                          "%s: PP-heterogeneous transfer requires layer ids on both peers; got "
                          "src=%u dst=%u entries. Set pdx_tensor.layer on both sides.",
                          ask->what, nlocal, nremote);
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
    for (uint32_t i = 0; i < nlocal; i++)
        payload_match(p, local + i, remote + i);
    return true;
}

/* By layer number. `used` marks remote tensors that have their pair; all before `free_from` have.
 * Both lists are in the same order as a rule, so that a search ends where it begins. */
static uint32_t payload_pair_layers(struct pdxi_payload *p, const struct pdxi_ask *ask,
                                    uint32_t local, uint32_t nlocal, uint32_t remote,
                                    uint32_t nremote, struct pdxi_findings *f)
{
    const struct pdxi_tensor *lt = ask->local_tensors.at + local;
    const struct pdxi_tensor *rt = ask->remote_tensors.at + remote;
    uint32_t free_from = 0;
    uint32_t missing = 0;

    memset(p->used, 0, nremote);
    for (uint32_t i = 0; i < nlocal; i++) {
        int64_t layer = payload_layer(lt, i, ask->local);
        uint32_t j = free_from;

        while (j < nremote && (p->used[j] || payload_layer(rt, j, ask->remote) != layer))
            j++;
        if (j < nremote) {
            p->used[j] = 1;
            payload_match(p, local + i, remote + j);
        } else if (++missing <= PAYLOAD_TELL) {
            pdxi_findings_add(f,
                              "%s: Decode peer is missing a transfer entry for model layer %lld "
                              "(local tensor %u; local has %u entries, remote %u). Make the layer "
                              "ranges of both sides fit.",
                              ask->what, (long long)layer, local + i, nlocal, nremote);
        }
        while (free_from < nremote && p->used[free_from])
            free_from++;
    }
    if (missing > PAYLOAD_TELL)
        pdxi_findings_add(f, "%s: %u more layers are missing likewise.", ask->what,
                          missing - PAYLOAD_TELL);
    return missing;
}

bool pdxi_payload_pair(struct pdxi_payload *p, const struct pdxi_ask *ask, uint32_t local,
                       uint32_t nlocal, uint32_t remote, uint32_t nremote, bool counted,
                       struct pdxi_findings *f)
{
    bool local_told = payload_told(ask->local_tensors.at + local, nlocal);
    bool remote_told = payload_told(ask->remote_tensors.at + remote, nremote);

    if (nlocal && nremote && local_told != remote_told) {
        pdxi_findings_add(f,
                          "%s: Layer metadata must be provided by both PD peers or neither: local "
                          "tells layers: %s, remote: %s.",
                          ask->what, local_told ? "yes" : "no", remote_told ? "yes" : "no");
        return false;
    }
    if (!local_told && !remote_told && !counted)
        return payload_pair_positions(p, ask, local, nlocal, remote, nremote, f);
    if (payload_pair_layers(p, ask, local, nlocal, remote, nremote, f))
        return false;
    /* A stage of several feeds a part of the peer; otherwise what is left over is never written. */
    if (nlocal < nremote && ask->local->pp_size <= ask->remote->pp_size && !ask->trust) {
        pdxi_findings_add(f,
                          "%s: tensor count: local %u, remote %u: the remote side has layers that "
                          "nothing is sent to. Serve the same model on both sides.",
                          ask->what, nlocal, nremote);
        return false;
    }
    return true;
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
