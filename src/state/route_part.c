/* SPDX-License-Identifier: Apache-2.0
 *
 * One payload of a route: its pairs in the order of their layers, which the
 * engine checks and keeps as one job, and what index lists are judged by. A
 * range of layers is a range of pairs.
 */
#include "state/route.h"

#include <stdlib.h>
#include <string.h>

/* A job in the engine's terms; both arrays owned. */
struct route_job {
    struct pdx_pair *pairs;
    struct pdx_slice *slices;
    size_t nslices;
};

/* Where a match stands in the order of sending. */
struct route_place {
    struct pdxi_match match;
    int32_t layer; /* PDX_LAYERS_END for a draft tensor */
    uint32_t at;   /* place among the matches, for an order that is stable */
};

static int route_place_order(const void *a, const void *b)
{
    const struct route_place *x = a;
    const struct route_place *y = b;

    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Sorts the matches and lists where layers begin. Without layer numbers the order stays. */
static int route_part_sort(struct pdxi_route_part *ret, struct pdxi_pairing_part *part)
{
    struct pdxi_payload *p = &part->payload;
    struct route_place *places = calloc(p->nmatches, sizeof *places);

    ret->layers = calloc(p->nmatches + 1, sizeof *ret->layers);
    if (!places || !ret->layers) {
        free(places);
        return PDX_ENOMEM;
    }
    for (uint32_t i = 0; i < p->nmatches; i++) {
        const struct pdxi_tensor *t = &part->local.at[p->matches[i].local];
        int32_t layer = t->flags & PDX_TENSOR_DRAFT ? PDX_LAYERS_END : t->number;

        places[i] = (struct route_place){p->matches[i], layer, i};
    }
    qsort(places, p->nmatches, sizeof *places, route_place_order);
    for (uint32_t i = 0; i < p->nmatches; i++) {
        p->matches[i] = places[i].match;
        if (places[i].layer == PDX_LAYER_NONE)
            continue;
        if (ret->nlayers == 0 || ret->layers[ret->nlayers - 1].layer != places[i].layer)
            ret->layers[ret->nlayers++] = (struct pdxi_route_layer){places[i].layer, i};
    }
    if (ret->nlayers && ret->layers[ret->nlayers - 1].layer != PDX_LAYERS_END)
        ret->layers[ret->nlayers++] = (struct pdxi_route_layer){PDX_LAYERS_END, p->nmatches};
    ret->npairs = p->nmatches;
    free(places);
    return 0;
}

/* Which of the slices hold for which pair. In a job that has any, a pair of whole items has one
 * too, and a pair that has all of them need not say so. */
static void route_slices(struct route_job *j, const struct pdxi_pairing_part *part)
{
    const struct pdxi_payload *p = &part->payload;

    memcpy(j->slices, p->slices, p->nslices * sizeof *j->slices);
    j->nslices = p->nslices;
    for (uint32_t i = 0; i < p->nmatches; i++) {
        uint64_t len = part->local.at[p->matches[i].local].item_len;

        j->pairs[i].first_slice = p->matches[i].first_slice;
        j->pairs[i].nslices = p->matches[i].nslices;
        if (p->matches[i].nslices)
            continue;
        /* Neighbours mostly have items of one length. */
        if (i == 0 || p->matches[i - 1].nslices || j->slices[j->nslices - 1].len != len)
            j->slices[j->nslices++] = (struct pdx_slice){.len = len, .rows = 1};
        j->pairs[i].first_slice = (uint32_t)j->nslices - 1;
        j->pairs[i].nslices = 1;
    }
    for (uint32_t i = 0; i < p->nmatches; i++)
        if (j->pairs[i].nslices == j->nslices)
            j->pairs[i].nslices = 0;
}

/* Whether items move whole and touch each other in every pair, so that no slice is needed. */
static bool route_whole(const struct pdxi_pairing_part *part)
{
    const struct pdxi_payload *p = &part->payload;

    if (p->nslices)
        return false;
    for (uint32_t i = 0; i < p->nmatches; i++) {
        const struct pdxi_tensor *lt = &part->local.at[p->matches[i].local];
        const struct pdxi_tensor *rt = &part->remote.at[p->matches[i].remote];

        if (lt->stride != lt->item_len || rt->stride != rt->item_len)
            return false;
    }
    return true;
}

static bool route_is_ring(const struct pdxi_pairing_part *part)
{
    return part->type && (part->type->flags & PDX_STATE_RING_SPAN);
}

/* The bytes of the first `items` items. What pairs somewhere else may have fewer than this tensor,
 * and no rank takes an index that another one refuses. */
static uint64_t route_len(const struct pdxi_tensor *t, uint64_t items)
{
    return (items - 1) * t->stride + t->item_len;
}

static int route_job_init(struct route_job *j, const struct pdxi_pairing_part *part,
                          const struct pdx_layout *local, const struct pdx_layout *remote)
{
    const struct pdxi_payload *p = &part->payload;
    bool ring = route_is_ring(part);

    *j = (struct route_job){
        .pairs = calloc(p->nmatches, sizeof *j->pairs),
        .slices = calloc((size_t)p->nslices + p->nmatches, sizeof *j->slices),
    };
    if (!j->pairs || !j->slices)
        return PDX_ENOMEM;
    for (uint32_t i = 0; i < p->nmatches; i++) {
        const struct pdxi_tensor *lt = &part->local.at[p->matches[i].local];
        const struct pdxi_tensor *rt = &part->remote.at[p->matches[i].remote];

        /* The items of a ring are its entries. */
        j->pairs[i] = (struct pdx_pair){
            .local = local->regions[lt->region].region,
            .remote = &remote->regions[rt->region].remote,
            .local_base = lt->off,
            .remote_base = rt->off,
            .local_item_len = ring ? lt->item_len / lt->outer : lt->stride,
            .remote_item_len = ring ? rt->item_len / rt->outer : rt->stride,
            .local_len = route_len(lt, p->local_items),
            .remote_len = route_len(rt, p->remote_items),
        };
    }
    if (!route_whole(part))
        route_slices(j, part);
    return 0;
}

static int route_prepare(struct pdx_peer *peer, const struct pdxi_pairing_part *part,
                         const struct pdx_layout *local, const struct pdx_layout *remote,
                         struct pdxi_route_part *ret, struct pdx_error *why)
{
    struct pdx_error engine_why;
    struct route_job j;
    struct pdx_job job;
    int rc;

    rc = route_job_init(&j, part, local, remote);
    if (rc < 0) {
        (void)pdxi_refuse(why, rc, "%s: no memory for %u pairs.", part->what,
                          part->payload.nmatches);
        goto out_job;
    }
    job = (struct pdx_job){
        .pairs = j.pairs,
        .npairs = part->payload.nmatches,
        .slices = j.nslices ? j.slices : NULL,
        .nslices = j.nslices,
    };
    rc = pdx_prepare(peer, PDX_WRITE, &job, &ret->prepared, &engine_why);
    if (rc < 0)
        (void)pdxi_route_refuse(why, part->what, &engine_why);

out_job:
    free(j.pairs);
    free(j.slices);
    return rc;
}

/* How many items a side has for a send: those of the tensors that pair, or of the largest one where
 * none does, so that no rank refuses what another one sends. And the ring that they are. */
static uint64_t route_items(const struct pdxi_tensors *t, uint64_t paired,
                            struct pdxi_ring *ret_ring)
{
    uint64_t items = paired;

    for (uint32_t i = 0; !paired && i < t->n; i++)
        if (pdxi_tensor_items(&t->at[i]) > items)
            items = pdxi_tensor_items(&t->at[i]);
    *ret_ring = (struct pdxi_ring){.rows = items};
    /* Where the other side has no tensors, nobody has looked at this one's rows. */
    if (t->n)
        ret_ring->entries = t->at[0].outer < UINT32_MAX ? (uint32_t)t->at[0].outer : UINT32_MAX;
    return items;
}

static bool route_told(const struct pdxi_tensors *t)
{
    return t->n == 0 || t->at[0].number != PDX_LAYER_NONE;
}

int pdxi_route_part_init(struct pdxi_route_part *ret, struct pdx_peer *peer,
                         struct pdxi_pairing_part *part, const struct pdx_layout *local,
                         const struct pdx_layout *remote, struct pdx_error *why)
{
    ret->local_items = route_items(&part->local, part->payload.local_items, &ret->local_ring);
    ret->remote_items = route_items(&part->remote, part->payload.remote_items, &ret->remote_ring);
    ret->told = route_told(&part->local) && route_told(&part->remote);
    if (part->type) {
        ret->known = true;
        ret->min_indices = part->type->min_indices;
        ret->max_indices = part->type->max_indices;
        ret->type_flags = part->type->flags;
        if (part->slots > ret->max_indices && (ret->type_flags & PDX_STATE_SLOTS))
            ret->max_indices = part->slots;
    }
    if (part->payload.nmatches == 0)
        return 0;
    if (route_part_sort(ret, part) < 0)
        return pdxi_refuse(why, PDX_ENOMEM, "%s: no memory for %u pairs.", part->what,
                           part->payload.nmatches);
    return route_prepare(peer, part, local, remote, ret, why);
}

void pdxi_route_part_fini(struct pdxi_route_part *part)
{
    pdx_prepared_put(part->prepared);
    free(part->layers);
}

int pdxi_route_check_layers(const struct pdx_layers *layers, struct pdx_error *why)
{
    bool draft_alone = layers && layers->first == PDX_LAYERS_END && layers->end == PDX_LAYERS_END;

    if (layers && layers->first >= 0 && (layers->first < layers->end || draft_alone))
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       "layers %d to %d are not a range. Pass first >= 0 and end > first, or "
                       "PDX_LAYERS_END.",
                       layers ? layers->first : 0, layers ? layers->end : 0);
}

/* The first pair of a layer that is at least `layer`. */
static uint32_t route_part_pair(const struct pdxi_route_part *part, int32_t layer)
{
    uint32_t low = 0, high = part->nlayers - 1; /* the last one is PDX_LAYERS_END */

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (part->layers[mid].layer < layer)
            low = mid + 1;
        else
            high = mid;
    }
    return part->layers[low].first_pair;
}

bool pdxi_route_part_select(const struct pdxi_route_part *part, const struct pdx_layers *layers,
                            struct pdx_items *items)
{
    uint32_t first, end;

    if (!part->prepared)
        return false;
    if (!layers)
        return true;
    first = route_part_pair(part, layers->first);
    end = layers->end == PDX_LAYERS_END ? part->npairs : route_part_pair(part, layers->end);
    items->first_pair = first;
    items->npairs = end - first;
    return end > first;
}

/* `items` 0: this side has no tensors that could tell. */
static int route_check_index(const char *what, const char *side, int32_t index, uint64_t items,
                             size_t position, struct pdx_error *why)
{
    if (index >= 0 && (items == 0 || (uint64_t)index < items))
        return 0;
    return pdxi_refuse(why, PDX_ERANGE,
                       "%s: %s index %d at position %zu of its list is outside of the %s tensors, "
                       "which have items 0 to %llu.",
                       what, side, index, position, side,
                       (unsigned long long)(items ? items - 1 : 0));
}

static int route_order(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

/* A destination that comes twice, where no job will find it. */
static int route_check_twice(const char *what, const struct pdx_items *items, struct pdx_error *why)
{
    int32_t *sorted;
    size_t i = 1;

    while (i < items->n && items->remote[i - 1] < items->remote[i])
        i++;
    if (i >= items->n)
        return 0;
    sorted = malloc(items->n * sizeof *sorted);
    if (!sorted)
        return pdxi_refuse(why, PDX_ENOMEM, "%s: no memory to check %zu indices.", what, items->n);
    memcpy(sorted, items->remote, items->n * sizeof *sorted);
    qsort(sorted, items->n, sizeof *sorted, route_order);
    for (i = 1; i < items->n && sorted[i - 1] != sorted[i];)
        i++;
    if (i < items->n)
        (void)pdxi_refuse(why, PDX_EINVAL,
                          "%s: dst index %d would be written twice; name each item once.", what,
                          sorted[i]);
    free(sorted);
    return i < items->n ? PDX_EINVAL : 0;
}

int pdxi_route_part_check_unsent(const struct pdxi_route_part *part, const char *what,
                                 const struct pdx_items *items, struct pdx_error *why)
{
    int rc = pdxi_route_part_check_items(part, what, items, why);

    return rc < 0 ? rc : route_check_twice(what, items, why);
}

int pdxi_route_part_check_items(const struct pdxi_route_part *part, const char *what,
                                const struct pdx_items *items, struct pdx_error *why)
{
    for (size_t i = 0; i < items->n; i++) {
        int rc = route_check_index(what, "src", items->local[i], part->local_items, i, why);

        if (rc == 0)
            rc = route_check_index(what, "dst", items->remote[i], part->remote_items, i, why);
        if (rc < 0)
            return rc;
    }
    return 0;
}
