/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_side.h. What a case does not tell, because the original did not
 * exchange it, is taken to be as it is in a deployment that works: the same
 * types and state item lengths on both sides, heads split over the decode ranks.
 * What a case tells is taken as told, also where it makes no sense.
 */
#include "vectors_side.h"

#include <stdlib.h>
#include <string.h>

#define SIDE_GAP        64
#define SIDE_MEMORY_MAX (16u << 20) /* bytes of aux buffers that get memory */

static void side_init(struct vec_side *s, struct vec_case *c, enum fake_side side)
{
    const json_t *local = c->local, *peer = c->peer;

    *s = (struct vec_side){.side = side, .desc = PDX_LAYOUT_DESC_INIT};
    if (!json_is_object(local) || !json_is_object(peer)) {
        vec_malformed(c, "in.local or in.peer is not an object");
        return;
    }
    s->desc.page_size = vec_u32(c, local, "page_size", 1);
    if (side == FAKE_LOCAL) {
        s->desc.engine_rank = vec_u32(c, local, "engine_rank", 0);
        s->desc.tp_size = vec_u32(c, local, "attn_tp_size", 1);
        s->desc.pp_size = vec_u32(c, local, "pp_size", 1);
        s->desc.pp_rank = vec_u32(c, local, "pp_rank", 0);
    } else {
        s->desc.engine_rank = vec_u32(c, peer, "decode_tp_rank", 0);
        s->desc.tp_size = vec_u32(c, peer, "decode_tp_size", 1);
    }
}

void vec_side_fini(struct vec_side *s)
{
    pdx_layout_destroy(s->layout);
    free(s->tensors);
    free(s->names);
    free(s->components);
    free(s->groups);
    *s = (struct vec_side){0};
}

static bool side_reserve(struct vec_side *s)
{
    size_t cap = s->cap ? 2 * s->cap : 16;
    struct pdx_tensor *tensors = realloc(s->tensors, cap * sizeof *tensors);
    struct vec_tensor *names;

    if (!tensors)
        return false;
    s->tensors = tensors;
    names = realloc(s->names, cap * sizeof *names);
    if (!names)
        return false;
    s->names = names;
    s->cap = cap;
    return true;
}

/* A tensor behind the others, of the whole items in `len` bytes. */
static struct pdx_tensor *side_add(struct vec_side *s, struct vec_case *c, struct vec_tensor name,
                                   uint64_t len, uint64_t item_len)
{
    struct pdx_tensor *t;
    uint64_t end;

    if (__builtin_add_overflow(s->end, len, &end) || __builtin_add_overflow(end, SIDE_GAP, &end)) {
        vec_malformed(c, "the tensors are longer than 64 bits");
        len = 0;
        end = s->end;
    }
    if (s->ntensors == s->cap && !side_reserve(s)) {
        vec_malformed(c, "no memory for %zu tensors", s->ntensors);
        return NULL;
    }
    s->names[s->ntensors] = name;
    t = &s->tensors[s->ntensors++];
    *t = (struct pdx_tensor){
        .off = s->end,
        .len = item_len ? len - len % item_len : len,
        .item_len = item_len,
        .layer = PDX_LAYER_NONE,
    };
    s->end = end;
    return t;
}

/* --- KV --- */

/* Bytes of a page of tensor `i` of the peer, which tells one length for all. MHA tensors have that.
 * An MLA list may have layers of several lengths (the case tells the first, and a real rank has the
 * same model); a layer that nobody writes may be shorter than a page of the others. */
static uint64_t side_peer_item(struct vec_case *c, size_t i, uint64_t len)
{
    const json_t *ours = vec_list(c, c->local, "kv_item_lens");
    uint64_t first = vec_len(c, json_array_get(ours, 0), "kv_item_lens[0]", 0);
    uint64_t told = vec_len(c, json_object_get(c->peer, "kv_item_len"), "kv_item_len", first);
    uint32_t start = vec_u32(c, c->local, "prefill_start_layer", 0);
    size_t n = json_array_size(vec_list(c, c->local, "kv_lens"));
    bool written = i >= start && i - start < n;

    if (!json_is_true(json_object_get(c->local, "is_mla")))
        return told;
    if (!written)
        return told <= len || len == 0 ? told : len;
    if (told != first)
        return told;
    return vec_len(c, json_array_get(ours, i - start), "kv_item_lens", 0);
}

/* The peer has the heads of the same model. Where its ranks hold copies, their own number does not
 * say how many those are, so that a peer tells the model's. */
static void side_kv_heads(struct vec_side *s, struct vec_case *c)
{
    uint32_t heads = vec_u32(c, c->local, "kv_head_num", 0);
    uint32_t total = vec_u32(c, c->local, "total_kv_head_num", 0);
    uint64_t model = total ? total : (uint64_t)heads * vec_u32(c, c->local, "attn_tp_size", 1);
    uint32_t tp = s->desc.tp_size;

    s->desc.total_kv_head_num = total;
    s->desc.kv_head_num = heads;
    if (s->side == FAKE_LOCAL || model == 0 || model > UINT32_MAX || tp == 0)
        return;
    s->desc.kv_head_num = model < tp ? 1 : (uint32_t)(model / tp);
    if (model < tp)
        s->desc.total_kv_head_num = (uint32_t)model;
}

static void side_kv_list(struct vec_side *s, struct vec_case *c)
{
    bool ours = s->side == FAKE_LOCAL;
    const json_t *lens = vec_list(c, ours ? c->local : c->peer, "kv_lens");
    const json_t *items = vec_list(c, c->local, "kv_item_lens");

    s->desc.kv_kind = json_is_true(json_object_get(c->local, "is_mla")) ? PDX_KV_MLA : PDX_KV_MHA;
    s->desc.nkv = json_array_size(lens);
    for (size_t i = 0; i < s->desc.nkv; i++) {
        uint64_t len = vec_len(c, json_array_get(lens, i), "kv_lens", 0);
        uint64_t item = ours ? vec_len(c, json_array_get(items, i), "kv_item_lens", 0)
                             : side_peer_item(c, i, len);

        (void)side_add(s, c, (struct vec_tensor){VEC_KV, (uint32_t)i}, len, item);
    }
}

/* A decode side is not split into stages, except where its list is as long as that of a stage. */
static void side_kv_stage(struct vec_side *s, struct vec_case *c)
{
    uint32_t stages = vec_u32(c, c->local, "pp_size", 1);
    bool same_split = stages > 1 && json_array_size(vec_list(c, c->local, "kv_lens")) ==
                                        json_array_size(vec_list(c, c->peer, "kv_lens"));

    if (s->side != FAKE_LOCAL && !same_split)
        return;
    s->desc.start_layer = vec_u32(c, c->local, "prefill_start_layer", 0);
    s->desc.pp_size = stages;
    s->desc.pp_rank = vec_u32(c, c->local, "pp_rank", 0);
}

void vec_side_kv(struct vec_side *s, struct vec_case *c, enum fake_side side)
{
    side_init(s, c, side);
    side_kv_list(s, c);
    side_kv_heads(s, c);
    side_kv_stage(s, c);
}

/* --- State --- */

/* The name of component `i`. The peer's are not told; they are taken to be ours, and one that we
 * lack has some name there. */
static const char *side_type(const struct vec_side *s, struct vec_case *c, size_t i)
{
    const json_t *v = json_array_get(vec_list(c, c->local, "state_types"), i);

    if (!v)
        return s->side == FAKE_LOCAL ? NULL : "untold";
    if (!json_is_string(v))
        vec_malformed(c, "state_types has something that is not a string");
    return json_string_value(v);
}

static void side_component(struct vec_side *s, struct vec_case *c, size_t i)
{
    const json_t *from = s->side == FAKE_LOCAL ? c->local : c->peer;
    const json_t *lens = vec_list_at(c, vec_list(c, from, "state_lens"), i, "state_lens");
    const json_t *dims = vec_list_at(c, vec_list(c, from, "state_dims"), i, "state_dims");
    const json_t *items =
        vec_list_at(c, vec_list(c, from, "state_item_lens"), i, "state_item_lens");
    const json_t *ours =
        vec_list_at(c, vec_list(c, c->local, "state_item_lens"), i, "state_item_lens");

    s->components[i] =
        (struct pdx_component){.type = side_type(s, c, i), .ntensors = json_array_size(lens)};
    for (size_t t = 0; t < s->components[i].ntensors; t++) {
        uint64_t item = vec_len(c, json_array_get(ours, t), "state_item_lens", 0);
        struct pdx_tensor *tensor;

        if (s->side != FAKE_LOCAL)
            item = vec_len(c, json_array_get(items, t), "state_item_lens", item);
        tensor = side_add(s, c, (struct vec_tensor){(int32_t)i, (uint32_t)t},
                          vec_len(c, json_array_get(lens, t), "state_lens", 0), item);
        if (tensor)
            tensor->shard_dim = vec_len(c, json_array_get(dims, t), "state_dims", 0);
    }
}

/* Without types there are no components, whatever was registered: there is no name to give them. */
static size_t side_ncomponents(const struct vec_side *s, struct vec_case *c)
{
    size_t types = json_array_size(vec_list(c, c->local, "state_types"));
    size_t ours = json_array_size(vec_list(c, c->local, "state_lens"));
    size_t theirs = json_array_size(vec_list(c, c->peer, "state_lens"));

    if (types == 0)
        return 0;
    if (s->side != FAKE_LOCAL)
        return theirs;
    return types > ours ? types : ours;
}

/* Besides its state a rank has aux buffers, and with MLA, on which the rules for state depend, a KV
 * cache. The lists of KV in state cases are placeholders, so their layers are not compared. */
void vec_side_state(struct vec_side *s, struct vec_case *c, enum fake_side side)
{
    side_init(s, c, side);
    if (json_is_true(json_object_get(c->local, "is_mla")))
        side_kv_list(s, c);
    (void)side_add(s, c, (struct vec_tensor){VEC_AUX, 0}, 1, 1);
    s->desc.naux = 1;
    s->desc.ncomponents = side_ncomponents(s, c);
    s->components = calloc(s->desc.ncomponents + 1, sizeof *s->components);
    if (!s->components) {
        vec_malformed(c, "no memory for %zu components", s->desc.ncomponents);
        s->desc.ncomponents = 0;
    }
    for (size_t i = 0; i < s->desc.ncomponents; i++)
        side_component(s, c, i);
}

/* --- Aux --- */

bool vec_side_aux_by_message(struct vec_case *c)
{
    size_t ours = json_array_size(vec_list(c, c->local, "aux_lens"));
    size_t theirs = json_array_size(vec_list(c, c->peer, "aux_lens"));

    return !json_is_true(json_object_get(c->local, "aux_rdma")) || ours == 0 || ours != theirs;
}

/* Buffers of the receiver of messages, of which the case tells nothing that counts: as ours, with
 * room for the slot. */
static uint64_t side_aux_receiver_len(struct vec_case *c, uint64_t len, uint64_t item_len)
{
    int64_t slot = vec_int(c, json_object_get(c->in, "dst_aux"), "dst_aux");
    uint64_t need = 0;

    if (slot >= 0 && __builtin_mul_overflow((uint64_t)slot + 1, item_len, &need))
        vec_malformed(c, "dst_aux lies beyond 64 bits");
    return need > len ? need : len;
}

void vec_side_aux(struct vec_side *s, struct vec_case *c, enum fake_side side)
{
    const json_t *ours = vec_list(c, c->local, "aux_lens");
    const json_t *items = vec_list(c, c->local, "aux_item_lens");
    bool by_message = vec_side_aux_by_message(c);
    const json_t *lens = side == FAKE_LOCAL || by_message ? ours : vec_list(c, c->peer, "aux_lens");

    side_init(s, c, side);
    s->desc.naux = json_array_size(lens);
    for (size_t i = 0; i < s->desc.naux; i++) {
        uint64_t item = vec_len(c, json_array_get(items, i), "aux_item_lens", 0);
        uint64_t len = vec_len(c, json_array_get(lens, i), "aux_lens", 0);

        if (side != FAKE_LOCAL && by_message)
            len = side_aux_receiver_len(c, len, item);
        (void)side_add(s, c, (struct vec_tensor){VEC_AUX, (uint32_t)i}, len, item);
    }
}

/* --- Blocks of a convolution state --- */

/* Groups that are not the whole axis tell nothing about it, and the original does without them. */
static void side_groups(struct vec_side *s, struct vec_case *c, struct pdx_tensor *t)
{
    const json_t *groups = vec_list(c, c->in, "groups");
    size_t n = json_array_size(groups);
    uint64_t sum = 0;
    uint64_t width = (uint64_t)vec_u32(c, c->in, "src_dim", 0) * vec_u32(c, c->in, "src_tp", 1);

    s->groups = calloc(n + 1, sizeof *s->groups);
    for (size_t i = 0; s->groups && i < n; i++) {
        s->groups[i] = vec_len(c, json_array_get(groups, i), "groups", 0);
        if (__builtin_add_overflow(sum, s->groups[i], &sum))
            vec_malformed(c, "groups add up to more than 64 bits");
    }
    if (!s->groups || sum != width)
        return;
    t->groups = s->groups;
    t->ngroups = n;
}

/* One slot of one tensor with units of one byte. */
void vec_side_blocks(struct vec_side *s, struct vec_case *c, enum fake_side side)
{
    bool ours = side == FAKE_LOCAL;
    uint32_t dim = vec_u32(c, c->in, ours ? "src_dim" : "dst_dim", 0);
    struct pdx_tensor *t;

    *s = (struct vec_side){.side = side, .desc = PDX_LAYOUT_DESC_INIT};
    s->desc.engine_rank = vec_u32(c, c->in, ours ? "local_rank" : "dst_rank", 0);
    s->desc.tp_size = vec_u32(c, c->in, ours ? "src_tp" : "dst_tp", 1);
    s->components = calloc(1, sizeof *s->components);
    t = side_add(s, c, (struct vec_tensor){0, 0}, dim, dim);
    if (!s->components || !t) {
        vec_malformed(c, "no memory for a tensor");
        return;
    }
    t->shard_dim = dim;
    side_groups(s, c, t);
    s->components[0] = (struct pdx_component){.type = "mamba", .ntensors = 1};
    s->desc.ncomponents = 1;
}

/* --- The layout --- */

/* Now that the tensors no longer move. Aux buffers get memory where that is not much. */
static void side_bind(struct vec_side *s)
{
    struct pdx_tensor *t = s->tensors;

    s->region = s->desc.ncomponents == 0 && s->desc.nkv == 0 && s->end <= SIDE_MEMORY_MAX
                    ? fake_region(s->side, s->end)
                    : fake_region_bare(s->side, s->end);
    for (size_t i = 0; i < s->ntensors; i++)
        s->tensors[i].region = s->region;
    s->desc.kv = t;
    t += s->desc.nkv;
    s->desc.aux = t;
    t += s->desc.naux;
    for (size_t i = 0; i < s->desc.ncomponents; i++) {
        s->components[i].tensors = t;
        t += s->components[i].ntensors;
    }
    s->desc.components = s->components;
}

int vec_side_layout(struct vec_side *s, struct pdx_error *why)
{
    struct pdx_layout *made;
    size_t len;
    void *buf;
    int rc;

    side_bind(s);
    if (s->side == FAKE_LOCAL)
        return pdx_layout_create(&s->desc, &s->layout, why);
    rc = pdx_layout_create(&s->desc, &made, why);
    if (rc < 0)
        return rc;
    len = pdx_layout_encode(made, NULL, 0);
    buf = malloc(len);
    if (buf && pdx_layout_encode(made, buf, len) == len) {
        rc = pdx_layout_decode(buf, len, &s->layout, why);
    } else {
        *why = (struct pdx_error){.code = PDX_ENOMEM, .text = "no memory for an encoded layout"};
        rc = PDX_ENOMEM;
    }
    free(buf);
    pdx_layout_destroy(made);
    return rc;
}

static int side_order_base(const void *base, const void *tensor)
{
    const uint64_t *a = base;
    const struct pdx_tensor *b = tensor;

    return *a < b->off ? -1 : *a > b->off;
}

const struct pdx_tensor *vec_side_tensor(const struct vec_side *s, uint64_t base)
{
    if (s->ntensors == 0)
        return NULL;
    return bsearch(&base, s->tensors, s->ntensors, sizeof s->tensors[0], side_order_base);
}

struct vec_tensor vec_side_name(const struct vec_side *s, const struct pdx_tensor *t)
{
    return s->names[t - s->tensors];
}
