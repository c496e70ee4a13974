/* SPDX-License-Identifier: Apache-2.0
 *
 * See judge.h.
 */
#include "judge.h"

#include "base/check.h"
#include "fuzz.h"

const struct pdx_state_type *judge_type(const struct judge *j, const char *name)
{
    const struct pdx_state_type *t;

    for (size_t i = 0; i < j->ntypes; i++)
        if (strcmp(j->types[i].name, name) == 0)
            return &j->types[i];
    for (size_t i = 0; (t = pdx_state_type_at(i)); i++)
        if (strcmp(t->name, name) == 0)
            return t;
    if (strcmp(name, "nsa") == 0 && !(j->flags & PDX_ROUTE_CURRENT_NAMES))
        return judge_type(j, "dsa");
    return NULL;
}

struct walk_part judge_part(const struct judge *j, int payload)
{
    struct walk_part p = {.local_layout = j->local,
                          .remote_layout = j->remote,
                          .kv = payload == JUDGE_KV,
                          .component = payload >= 0,
                          .trust = j->flags & PDX_ROUTE_TRUST_PAIRING,
                          .without_draft = j->flags & PDX_ROUTE_WITHOUT_DRAFT};

    if (payload == JUDGE_KV) {
        p.local = pdxi_layout_kv(j->local);
        p.remote = pdxi_layout_kv(j->remote);
    } else if (payload == JUDGE_AUX) {
        p.local = pdxi_layout_aux(j->local);
        p.remote = pdxi_layout_aux(j->remote);
    } else {
        p.local = pdxi_layout_component(j->local, (uint32_t)payload);
        p.remote = pdxi_layout_component(j->remote, (uint32_t)payload);
        p.type = judge_type(j, j->local->components[payload].type);
    }
    return p;
}

uint64_t judge_ring(const struct judge *j, int payload, bool remote)
{
    struct walk_part p = judge_part(j, payload);
    const struct pdxi_tensors *t = remote ? &p.remote : &p.local;

    return walk_is_ring(&p) && t->n ? t->at[0].outer : 0;
}

bool judge_layers(const struct pdx_layers *layers)
{
    if (!layers || layers->first < 0)
        return false;
    return layers->first < layers->end ||
           (layers->first == PDX_LAYERS_END && layers->end == PDX_LAYERS_END);
}

static const struct pdx_prepared *judge_prepared(const struct judge *j, int payload)
{
    enum pdx_payload kind = payload == JUDGE_KV    ? PDX_PAYLOAD_KV
                            : payload == JUDGE_AUX ? PDX_PAYLOAD_AUX
                                                   : PDX_PAYLOAD_STATE;
    const struct pdxi_route_part *part = kind == PDX_PAYLOAD_KV    ? &j->route->kv
                                         : kind == PDX_PAYLOAD_AUX ? &j->route->aux
                                                                   : &j->route->components[payload];

    FUZZ_CHECK(pdx_route_carries(j->route, kind, (size_t)payload) == (part->prepared != NULL));
    return part->prepared;
}

void judge_route(const struct judge *j)
{
    for (int payload = JUDGE_AUX; payload < (int)j->local->ncomponents; payload++) {
        const struct pdx_prepared *prepared = judge_prepared(j, payload);
        const struct walk_part p = judge_part(j, payload);

        if (payload < 0 || p.type)
            walk_check_job(&p, prepared ? &prepared->job : NULL);
        else
            FUZZ_CHECK(!prepared);
    }
}

static const struct pdxi_tensor *judge_tensor(const struct walk_part *p,
                                              const struct pdx_pair *pair)
{
    return walk_tensor_at(p->local_layout, &p->local, recorder_region_id(pair->local),
                          pair->local_base);
}

/* Bytes that one item moves in a pair. */
static uint64_t judge_bytes(const struct pdx_job *job, const struct pdx_pair *pair)
{
    size_t n = pair->nslices ? pair->nslices : job->nslices;
    uint64_t bytes = n ? 0 : pair->local_item_len;

    for (size_t i = 0; i < n; i++)
        bytes += job->slices[pair->first_slice + i].len * job->slices[pair->first_slice + i].rows;
    return bytes;
}

/* Pairs of the layers, and the bytes that one item moves in them. */
static size_t judge_pairs(const struct walk_part *p, const struct pdx_prepared *prepared,
                          const struct pdx_layers *layers, uint64_t *ret_bytes)
{
    size_t n = 0;

    *ret_bytes = 0;
    for (size_t i = 0; prepared && i < prepared->job.npairs; i++) {
        const struct pdxi_tensor *t = judge_tensor(p, &prepared->job.pairs[i]);

        FUZZ_CHECK(t);
        if (!layers ||
            (t->flags & PDX_TENSOR_DRAFT ? layers->end == PDX_LAYERS_END
                                         : t->number >= layers->first && t->number < layers->end)) {
            *ret_bytes += judge_bytes(&prepared->job, &prepared->job.pairs[i]);
            n++;
        }
    }
    return n;
}

/* Whether both sides tell the layers of a list. */
static bool judge_told(const struct walk_part *p)
{
    return (p->local.n == 0 || p->local.at[0].number != PDX_LAYER_NONE) &&
           (p->remote.n == 0 || p->remote.at[0].number != PDX_LAYER_NONE);
}

static void judge_least(uint64_t *least, const struct pdxi_tensor *t)
{
    if (*least == 0 || pdxi_tensor_items(t) < *least)
        *least = pdxi_tensor_items(t);
}

/* Items of the side's largest tensor, or all that there can be. */
static uint64_t judge_largest(const struct pdxi_tensors *t)
{
    uint64_t items = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (pdxi_tensor_items(&t->at[i]) > items)
            items = pdxi_tensor_items(&t->at[i]);
    return items ? items : (uint64_t)INT32_MAX + 1;
}

/* How many items each side has: of the tensors that pair, whoever sends them; where none pairs, of
 * the largest. */
static void judge_limits(const struct walk_part *p, uint64_t *ret_local, uint64_t *ret_remote)
{
    uint64_t local = 0, remote = 0;

    for (uint32_t i = 0; i < p->local.n; i++) {
        const struct pdxi_tensor *t = &p->local.at[i];
        const struct pdxi_tensor *other = walk_counterpart(p, &p->local, t, &p->remote);

        if (other) {
            judge_least(&local, t);
            judge_least(&remote, other);
        }
    }
    *ret_local = local ? local : judge_largest(&p->local);
    *ret_remote = remote ? remote : judge_largest(&p->remote);
}

static int key_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static bool items_twice(const struct walk_item *items, size_t n)
{
    static uint64_t keys[JUDGE_ITEMS_MAX];

    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)(uint32_t)items[i].item << 32 | items[i].entry;
    qsort(keys, n, sizeof *keys, key_order);
    for (size_t i = 1; i < n; i++)
        if (keys[i] == keys[i - 1])
            return true;
    return false;
}

static void judge_take(struct judge_items *ret, struct pdx_index_list src,
                       struct pdx_index_list dst)
{
    ret->n = src.n < dst.n ? src.n : dst.n;
    ret->cut = src.n != dst.n;
    FUZZ_CHECK(ret->n <= JUDGE_ITEMS_MAX);
    for (size_t i = 0; i < ret->n; i++) {
        ret->local[i] = (struct walk_item){.item = src.idx[i]};
        ret->remote[i] = (struct walk_item){.item = dst.idx[i]};
    }
}

/* Writes the live entries of a span; returns how many, or -1. */
static int64_t judge_span(struct pdx_index_list list, const struct pdxi_tensors *t, uint64_t rows,
                          struct walk_item *ret)
{
    uint64_t ring = t->at[0].outer;
    const int32_t *s = list.idx;
    size_t n = 0;

    if (list.n != 6 || s[5] < 0 || (uint64_t)s[5] != ring || s[0] < 0 || (uint64_t)s[0] >= rows)
        return -1;
    if (((uint64_t)s[0] + 1) * ring > UINT64_C(1) << 31)
        return -1; /* an entry's number is an index */
    for (int run = 1; run <= 3; run += 2) {
        if (s[run] < 0 || s[run + 1] < 0 || (uint64_t)s[run] + (uint64_t)s[run + 1] > ring ||
            n + (uint64_t)s[run + 1] > ring)
            return -1;
        for (int32_t i = 0; i < s[run + 1]; i++)
            ret[n++] = (struct walk_item){s[0], (uint32_t)(s[run] + i)};
    }
    return n > 0 && !items_twice(ret, n) ? (int64_t)n : -1;
}

/* False: refused. A stage without its layers knows one side's ring, or none. */
static bool judge_spans(struct judge *j, const struct walk_part *p, struct pdx_index_list src,
                        struct pdx_index_list dst, struct judge_items *ret)
{
    uint64_t local, remote;
    int64_t n = 0, m = 0;

    if ((p->local.n && j->ring_entries + p->local.at[0].outer > PDXI_RING_MAX) ||
        (p->remote.n && j->ring_entries + p->remote.at[0].outer > PDXI_RING_MAX))
        return false;
    judge_limits(p, &local, &remote);
    if (p->local.n)
        n = judge_span(src, &p->local, local, ret->local);
    if (p->remote.n)
        m = judge_span(dst, &p->remote, remote, ret->remote);
    if (n < 0 || m < 0)
        return false;
    if (p->local.n == 0 || p->remote.n == 0)
        return true;
    ret->n = (size_t)n;
    j->ring_entries += (size_t)n;
    return n == m;
}

/* The rules of a component's type. False: refused; without items there is nothing to send. */
static bool judge_state_lists(struct judge *j, int payload, const struct walk_part *p,
                              struct pdx_index_list src, struct pdx_index_list dst,
                              struct judge_items *ret)
{
    const struct pdx_state_type *t = p->type;
    uint32_t slots = j->local->components[payload].slots;
    uint32_t max = t->max_indices;

    if ((!src.idx && !dst.idx) ||
        (t->min_indices == 0 && src.idx && dst.idx && src.n == 0 && dst.n == 0))
        return true;
    if ((t->flags & PDX_STATE_SLOTS) && slots > max)
        max = slots;
    if (!src.idx || !dst.idx || (max && (src.n > max || dst.n > max)) ||
        (src.n && src.n < t->min_indices) || (dst.n && dst.n < t->min_indices))
        return false;
    if ((t->min_indices || walk_is_ring(p)) && (src.n == 0 || dst.n == 0))
        return false;
    if (walk_is_ring(p))
        return judge_spans(j, p, src, dst, ret);
    if (src.n != dst.n && (src.n == 0 || dst.n == 0 || !(t->flags & PDX_STATE_MAY_TRUNCATE) ||
                           !(j->flags & PDX_ROUTE_TRUNCATE_PAGED)))
        return false;
    judge_take(ret, src, dst);
    return true;
}

static bool judge_in_range(const struct walk_part *p, const struct judge_items *items)
{
    uint64_t local, remote;

    judge_limits(p, &local, &remote);
    for (size_t i = 0; i < items->n; i++)
        if (items->local[i].item < 0 || (uint64_t)items->local[i].item >= local ||
            items->remote[i].item < 0 || (uint64_t)items->remote[i].item >= remote)
            return false;
    return true;
}

enum verdict judge_lists(struct judge *j, int payload, const struct pdx_layers *layers,
                         struct pdx_index_list src, struct pdx_index_list dst,
                         struct judge_items *ret)
{
    const struct pdx_prepared *prepared = judge_prepared(j, payload);
    struct walk_part p = judge_part(j, payload);
    uint64_t bytes;
    size_t npairs;

    ret->n = 0;
    ret->cut = false;
    if ((!src.idx && src.n) || (!dst.idx && dst.n))
        return VERDICT_REFUSED;
    if (payload >= 0) {
        if (!judge_state_lists(j, payload, &p, src, dst, ret))
            return VERDICT_REFUSED;
    } else {
        if (src.n != dst.n)
            return VERDICT_REFUSED;
        judge_take(ret, src, dst);
    }
    if (ret->n == 0)
        return VERDICT_NOTHING;
    if ((payload >= 0 && layers && !judge_told(&p)) || !judge_in_range(&p, ret) ||
        items_twice(ret->remote, ret->n))
        return VERDICT_REFUSED;
    npairs = judge_pairs(&p, prepared, layers, &bytes);
    if (!pdxi_mul_u64(bytes, ret->n, &bytes))
        return VERDICT_REFUSED;
    return npairs ? VERDICT_SENT : prepared ? VERDICT_NOTHING : VERDICT_ELSEWHERE;
}
