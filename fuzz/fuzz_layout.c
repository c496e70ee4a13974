/* SPDX-License-Identifier: Apache-2.0
 *
 * Two layouts as peers might send them: three bytes with the length of the
 * first (19 bits) and the flags of a route, top bit first: trust the pairing,
 * without draft, current names, truncate; the first; the second (or none, then
 * the first is paired with itself). Decoding costs no more than a multiple of
 * the input. What is accepted obeys the rules of a layout, and encodes to bytes
 * that decode to the same; what pairs moves only bytes inside the items, within
 * 64 bits.
 */
#include "fuzz.h"

#include "base/check.h"
#include "heap.h"
#include "state/pairing.h"

#define BYTES_PER_BYTE 128 /* as tests/test_state_layout.c has it */
#define BYTES_FIXED    65536
#define NAIVE_MAX      64 /* tensors and items that are compared one with the other */

static void check_same_tensor(const struct pdxi_tensor *a, const struct pdxi_tensor *b)
{
    FUZZ_CHECK(a->off == b->off && a->len == b->len && a->item_len == b->item_len);
    FUZZ_CHECK(a->stride == b->stride && a->shard_dim == b->shard_dim && a->outer == b->outer);
    FUZZ_CHECK(a->region == b->region && a->flags == b->flags && a->told_part == b->told_part);
    FUZZ_CHECK(a->part == b->part && a->layer == b->layer && a->number == b->number);
    FUZZ_CHECK(a->ngroups == b->ngroups);
    for (uint32_t i = 0; i < a->ngroups; i++)
        FUZZ_CHECK(a->groups[i] == b->groups[i]);
}

static void check_same_rank(const struct pdxi_rank *a, const struct pdxi_rank *b)
{
    FUZZ_CHECK(a->tp_size == b->tp_size && a->tp_rank == b->tp_rank);
    FUZZ_CHECK(a->pp_size == b->pp_size && a->pp_rank == b->pp_rank);
    FUZZ_CHECK(a->kv_kind == b->kv_kind && a->page_size == b->page_size);
    FUZZ_CHECK(a->kv_heads == b->kv_heads && a->start_layer == b->start_layer);
}

static void check_same(const struct pdx_layout *a, const struct pdx_layout *b)
{
    check_same_rank(&a->rank, &b->rank);
    FUZZ_CHECK(a->engine_rank == b->engine_rank && a->kv_head_num == b->kv_head_num);
    FUZZ_CHECK(a->total_kv_head_num == b->total_kv_head_num && strcmp(a->dtype, b->dtype) == 0);
    FUZZ_CHECK(a->nkv == b->nkv && a->naux == b->naux && a->ntensors == b->ntensors);
    for (uint32_t i = 0; i < a->ntensors; i++)
        check_same_tensor(&a->tensors[i], &b->tensors[i]);
    FUZZ_CHECK(a->ncomponents == b->ncomponents);
    for (uint32_t i = 0; i < a->ncomponents; i++) {
        const struct pdxi_layout_component *x = &a->components[i], *y = &b->components[i];

        FUZZ_CHECK(strcmp(x->type, y->type) == 0 && x->slots == y->slots);
        FUZZ_CHECK(x->first == y->first && x->n == y->n);
    }
    FUZZ_CHECK(a->nregions == b->nregions);
    for (uint32_t i = 0; i < a->nregions; i++)
        FUZZ_CHECK(
            memcmp(&a->regions[i].remote, &b->regions[i].remote, sizeof a->regions[i].remote) == 0);
}

/* Whether an item of one tensor has a byte of an item of the other. */
static bool share_bytes(const struct pdxi_tensor *a, const struct pdxi_tensor *b)
{
    for (uint64_t i = 0; i < pdxi_tensor_items(a) && i < NAIVE_MAX; i++)
        for (uint64_t j = 0; j < pdxi_tensor_items(b) && j < NAIVE_MAX; j++) {
            uint64_t x = a->off + i * a->stride, y = b->off + j * b->stride;

            if (x < y + b->item_len && y < x + a->item_len)
                return true;
        }
    return false;
}

static void check_list(const struct pdx_layout *l, struct pdxi_tensors t)
{
    for (uint32_t i = 0; i < t.n; i++) {
        const struct pdxi_tensor *a = &t.at[i];

        FUZZ_CHECK(a->region < l->nregions && a->item_len > 0 && a->stride >= a->item_len);
        FUZZ_CHECK(pdxi_inside(a->off, a->len, l->regions[a->region].remote.len));
        FUZZ_CHECK(pdxi_tensor_items(a) >= 1 && pdxi_tensor_items(a) <= (uint64_t)INT32_MAX + 1);
        FUZZ_CHECK((pdxi_tensor_items(a) - 1) * a->stride + a->item_len == a->len);
        FUZZ_CHECK(a->outer > 0 && a->item_len % a->outer == 0 && a->layer >= PDX_LAYER_NONE);
        FUZZ_CHECK(a->layer < PDX_LAYERS_END && a->number < PDX_LAYERS_END);
        FUZZ_CHECK(!a->shard_dim || a->item_len / a->outer % a->shard_dim == 0);
        FUZZ_CHECK(i == 0 || a->flags != a[-1].flags ||
                   (a->layer == PDX_LAYER_NONE) == (a[-1].layer == PDX_LAYER_NONE));
        for (uint32_t j = 0; j < i && i < NAIVE_MAX; j++)
            FUZZ_CHECK(l->regions[a->region].remote.id != l->regions[t.at[j].region].remote.id ||
                       !share_bytes(a, &t.at[j]));
    }
}

/* A layer has its keys and its values once, unless layers of both kinds are told one by one. */
static void check_repeats(const struct pdx_layout *l, struct pdxi_tensors kv)
{
    for (uint32_t i = 0; i < kv.n && i < NAIVE_MAX && l->rank.kv_kind != PDX_KV_MIXED; i++)
        for (uint32_t j = 0; j < i && kv.at[i].part != PDX_KV_PART_LATENT; j++)
            FUZZ_CHECK(kv.at[i].part != kv.at[j].part || kv.at[i].flags != kv.at[j].flags ||
                       kv.at[i].number != kv.at[j].number);
}

static void check_rules(const struct pdx_layout *l)
{
    struct pdxi_tensors kv = pdxi_layout_kv(l);

    FUZZ_CHECK(l->rank.tp_size > 0 && l->rank.tp_rank < l->rank.tp_size);
    FUZZ_CHECK(l->rank.pp_rank < l->rank.pp_size);
    FUZZ_CHECK(l->rank.page_size > 0 || l->rank.kv_kind == PDX_KV_NONE);
    FUZZ_CHECK(l->rank.kv_kind <= PDX_KV_MIXED);
    check_list(l, pdxi_layout_aux(l));
    check_list(l, kv);
    check_repeats(l, kv);
    for (uint32_t i = 0; i < kv.n; i++) {
        FUZZ_CHECK(kv.at[i].part >= PDX_KV_PART_K && kv.at[i].part <= PDX_KV_PART_LATENT);
        FUZZ_CHECK(kv.at[i].number >= 0 && !(kv.at[i].flags & ~(uint32_t)PDX_TENSOR_DRAFT));
        FUZZ_CHECK(i == 0 || kv.at[i].flags >= kv.at[i - 1].flags);
    }
    for (uint32_t i = 0; i < l->ncomponents; i++) {
        FUZZ_CHECK(l->components[i].type[0] && l->components[i].slots > 0);
        check_list(l, pdxi_layout_component(l, i));
    }
}

/* Decodes exactly these bytes; checks that the encoded form is a fixed point. */
static struct pdx_layout *layout_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct pdx_layout *l = NULL, *again = NULL;
    struct pdx_error why;
    size_t len;
    uint8_t *once, *twice;
    int rc;

    fuzz_heap_mark();
    rc = pdx_layout_decode(copy ? copy : data, size, &l, &why);
    FUZZ_CHECK(fuzz_heap_peak() <= BYTES_PER_BYTE * size + BYTES_FIXED);
    FUZZ_CHECK((rc == 0) == (l != NULL));
    if (rc < 0) {
        FUZZ_CHECK(fuzz_heap_kept() == 0);
        FUZZ_CHECK(why.code == rc && why.text[0]);
        free(copy);
        return NULL;
    }
    free(copy);
    check_rules(l);
    len = pdx_layout_encode(l, NULL, 0);
    once = malloc(len);
    twice = malloc(len);
    FUZZ_CHECK(once && twice);
    FUZZ_CHECK(pdx_layout_encode(l, once, len) == len);
    FUZZ_CHECK(pdx_layout_decode(once, len, &again, NULL) == 0);
    check_same(l, again);
    FUZZ_CHECK(pdx_layout_encode(again, twice, len) == len);
    FUZZ_CHECK(memcmp(once, twice, len) == 0);
    pdx_layout_destroy(again);
    free(once);
    free(twice);
    return l;
}

/* The last row of a slice ends inside the item. */
static bool inside(uint64_t off, uint64_t len, uint64_t rows, uint64_t pitch, uint64_t item_len)
{
    uint64_t last;

    return rows > 0 && pdxi_mul_u64(rows - 1, pitch, &last) && pdxi_add_u64(last, off, &last) &&
           pdxi_inside(last, len, item_len);
}

static bool is_ring(const struct pdxi_pairing_part *part)
{
    return part->type && (part->type->flags & PDX_STATE_RING_SPAN);
}

static void check_part(const struct pdxi_pairing_part *part)
{
    for (uint32_t i = 0; i < part->payload.nmatches; i++) {
        const struct pdxi_match *m = &part->payload.matches[i];
        const struct pdxi_tensor *lt = &part->local.at[m->local];
        const struct pdxi_tensor *rt = &part->remote.at[m->remote];

        FUZZ_CHECK(m->local < part->local.n && m->remote < part->remote.n);
        FUZZ_CHECK(lt->part == rt->part && lt->flags == rt->flags && lt->number == rt->number);
        if (is_ring(part))
            FUZZ_CHECK(lt->item_len / lt->outer == rt->item_len / rt->outer && !m->nslices);
        else
            FUZZ_CHECK(m->nslices || lt->item_len == rt->item_len);
        FUZZ_CHECK(pdxi_inside(m->first_slice, m->nslices, part->payload.nslices));
        for (uint32_t k = 0; k < m->nslices; k++) {
            const struct pdx_slice *s = &part->payload.slices[m->first_slice + k];

            FUZZ_CHECK(s->len > 0);
            FUZZ_CHECK(inside(s->local_off, s->len, s->rows, s->local_pitch, lt->item_len));
            FUZZ_CHECK(inside(s->remote_off, s->len, s->rows, s->remote_pitch, rt->item_len));
        }
    }
}

static void check_pairing(const struct pdx_layout *local, const struct pdx_layout *remote,
                          uint32_t flags)
{
    const struct pdxi_state_types types = {.current_names = flags & PDX_ROUTE_CURRENT_NAMES};
    struct pdxi_pairing p;
    struct pdx_error why;
    int rc = pdxi_pairing_init(&p, local, remote, &types, flags, &why);

    FUZZ_CHECK(rc == 0 || (rc == PDX_EMISMATCH && why.text[0]));
    if (rc < 0)
        return;
    for (uint32_t i = 0; i < p.nparts; i++)
        check_part(&p.parts[i]);
    pdxi_pairing_fini(&p);
}

/* Of the third byte. */
static uint32_t route_flags(uint8_t byte)
{
    return (byte & 0x80 ? (uint32_t)PDX_ROUTE_TRUST_PAIRING : 0) |
           (byte & 0x40 ? (uint32_t)PDX_ROUTE_WITHOUT_DRAFT : 0) |
           (byte & 0x20 ? (uint32_t)PDX_ROUTE_CURRENT_NAMES : 0) |
           (byte & 0x10 ? (uint32_t)PDX_ROUTE_TRUNCATE_PAGED : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pdx_layout *first, *second = NULL;
    uint32_t flags;
    size_t len;

    if (size < 3)
        return 0;
    len = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)(data[2] & 7) << 16;
    flags = route_flags(data[2]);
    data += 3;
    size -= 3;
    if (len > size)
        len = size;
    first = layout_of(data, len);
    if (len < size)
        second = layout_of(data + len, size - len);
    if (first)
        check_pairing(first, second ? second : first, flags);
    pdx_layout_destroy(first);
    pdx_layout_destroy(second);
    return 0;
}
