/* SPDX-License-Identifier: Apache-2.0
 *
 * A layout as bytes, a MessagePack map (doc/state.md explains the values):
 *
 *     {"pdx": "layout", "v": 1, "rank", "tp", "pp", "pp_rank", "kv_kind", "page",
 *      "dtype", "heads", "total_heads", "start_layer",
 *      "regions": [descriptor, ...],
 *      "kv": [tensor, ...], "aux": [tensor, ...],
 *      "state": [{"type": str, "tensors": [tensor, ...], "slots"}, ...]}
 *     tensor: [region, off, len, item_len, layer, shard_dim, outer, [group, ...], stride, flags,
 *              part]
 *
 * Keys and elements may be added at the end; readers skip what they do not know.
 */
#include "base/pack.h"
#include "state/layout.h"

static void pack_uint(struct pdxi_packer *p, const char *key, uint64_t v)
{
    pdxi_pack_str(p, key);
    pdxi_pack_uint(p, v);
}

/* A tensor ends behind the last element that says something. */
static void pack_tensor(struct pdxi_packer *p, const struct pdxi_tensor *t)
{
    bool place = t->stride != t->item_len || t->flags || t->told_part;
    bool axis = place || t->shard_dim || t->outer != 1 || t->ngroups;

    pdxi_pack_array(p, place ? 11 : axis ? 8 : 5);
    pdxi_pack_uint(p, t->region);
    pdxi_pack_uint(p, t->off);
    pdxi_pack_uint(p, t->len);
    pdxi_pack_uint(p, t->item_len);
    pdxi_pack_int(p, t->layer);
    if (!axis)
        return;
    pdxi_pack_uint(p, t->shard_dim);
    pdxi_pack_uint(p, t->outer);
    pdxi_pack_array(p, t->ngroups);
    for (uint32_t i = 0; i < t->ngroups; i++)
        pdxi_pack_uint(p, t->groups[i]);
    if (!place)
        return;
    pdxi_pack_uint(p, t->stride);
    pdxi_pack_uint(p, t->flags);
    pdxi_pack_uint(p, t->told_part);
}

static void pack_tensors(struct pdxi_packer *p, const char *key, struct pdxi_tensors t)
{
    pdxi_pack_str(p, key);
    pdxi_pack_array(p, t.n);
    for (uint32_t i = 0; i < t.n; i++)
        pack_tensor(p, &t.at[i]);
}

static void pack_layout(struct pdxi_packer *p, const struct pdx_layout *l)
{
    pdxi_pack_map(p, 16);
    pdxi_pack_str(p, "pdx");
    pdxi_pack_str(p, "layout");
    pack_uint(p, "v", PDXI_LAYOUT_VERSION);
    pack_uint(p, "rank", l->engine_rank);
    pack_uint(p, "tp", l->rank.tp_size);
    pack_uint(p, "pp", l->rank.pp_size);
    pack_uint(p, "pp_rank", l->rank.pp_rank);
    pack_uint(p, "kv_kind", l->rank.kv_kind);
    pack_uint(p, "page", l->rank.page_size);
    pdxi_pack_str(p, "dtype");
    pdxi_pack_str(p, l->dtype);
    pack_uint(p, "heads", l->kv_head_num);
    pack_uint(p, "total_heads", l->total_kv_head_num);
    pack_uint(p, "start_layer", l->rank.start_layer);
    pdxi_pack_str(p, "regions");
    pdxi_pack_array(p, l->nregions);
    for (uint32_t i = 0; i < l->nregions; i++)
        pdxi_pack_bin(p, l->descs + l->regions[i].desc_off, l->regions[i].desc_len);
    pack_tensors(p, "kv", pdxi_layout_kv(l));
    pack_tensors(p, "aux", pdxi_layout_aux(l));
    pdxi_pack_str(p, "state");
    pdxi_pack_array(p, l->ncomponents);
    for (uint32_t i = 0; i < l->ncomponents; i++) {
        pdxi_pack_map(p, 3);
        pdxi_pack_str(p, "type");
        pdxi_pack_str(p, l->components[i].type);
        pack_tensors(p, "tensors", pdxi_layout_component(l, i));
        pack_uint(p, "slots", l->components[i].slots);
    }
}

size_t pdx_layout_encode(const struct pdx_layout *layout, void *buf, size_t cap)
{
    struct pdxi_packer p;

    pdxi_pack_init(&p, NULL, 0);
    pack_layout(&p, layout);
    if (p.len > cap)
        return p.len;
    pdxi_pack_init(&p, buf, cap);
    pack_layout(&p, layout);
    return p.len;
}
