/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what layout_encode.c writes, from a peer that is not trusted: counts
 * first, reserves once, fills in, then applies the rules of layout_check.c.
 * What is reserved is bounded by the length of the input.
 */
#include "base/pack.h"
#include "state/layout.h"

#include <string.h>

#define TENSOR_MIN 4 /* elements that every tensor has; the others have defaults */

/* Reads a value of the map, or says which key is at fault. */
struct layout_reader {
    const struct pdxi_value *root;
    struct pdx_error *why;
};

static int read_wrong(const struct layout_reader *r, const char *what)
{
    return pdxi_refuse(
        r->why, PDX_EPROTO,
        "not a layout: %s is missing, of another type or out of range. Pass the bytes "
        "that pdx_layout_encode wrote on the other side.",
        what);
}

static int read_u32(const struct layout_reader *r, const char *key, uint32_t max, uint32_t *ret)
{
    uint64_t v;

    if (!pdxi_value_uint(pdxi_value_get(r->root, key), max, &v))
        return read_wrong(r, key);
    *ret = (uint32_t)v;
    return 0;
}

/* A name of at most `max` characters into a buffer of max + 1 zero bytes. */
static int read_name(const struct layout_reader *r, const struct pdxi_value *map, const char *key,
                     size_t max, char *ret)
{
    const char *s;
    size_t len;

    if (!pdxi_value_str(pdxi_value_get(map, key), &s, &len) || !pdxi_layout_name_ok(s, len, max))
        return read_wrong(r, key);
    memcpy(ret, s, len);
    return 0;
}

/* Checks that this is a layout of a version that is understood. */
static int read_head(const struct layout_reader *r)
{
    const char *s;
    size_t len;
    uint64_t version;

    if (!pdxi_value_str(pdxi_value_get(r->root, "pdx"), &s, &len) || len != strlen("layout") ||
        memcmp(s, "layout", len) != 0)
        return read_wrong(r, "\"pdx\": \"layout\"");
    if (!pdxi_value_uint(pdxi_value_get(r->root, "v"), UINT64_MAX, &version))
        return read_wrong(r, "v");
    if (version != PDXI_LAYOUT_VERSION)
        return pdxi_refuse(r->why, PDX_EVERSION,
                           "the layout has version %llu, this library reads %d. Run the same pdx "
                           "version on both sides.",
                           (unsigned long long)version, PDXI_LAYOUT_VERSION);
    return 0;
}

static int read_scalars(const struct layout_reader *r, struct pdx_layout *l)
{
    uint32_t kind = 0;
    int rc;

    if ((rc = read_u32(r, "rank", UINT32_MAX, &l->engine_rank)) < 0 ||
        (rc = read_u32(r, "tp", UINT32_MAX, &l->rank.tp_size)) < 0 ||
        (rc = read_u32(r, "pp", UINT32_MAX, &l->rank.pp_size)) < 0 ||
        (rc = read_u32(r, "pp_rank", UINT32_MAX, &l->rank.pp_rank)) < 0 ||
        (rc = read_u32(r, "kv_kind", PDX_KV_MIXED, &kind)) < 0 ||
        (rc = read_u32(r, "page", UINT32_MAX, &l->rank.page_size)) < 0 ||
        (rc = read_u32(r, "heads", UINT32_MAX, &l->kv_head_num)) < 0 ||
        (rc = read_u32(r, "total_heads", UINT32_MAX, &l->total_kv_head_num)) < 0 ||
        (rc = read_u32(r, "start_layer", UINT32_MAX, &l->rank.start_layer)) < 0)
        return rc;
    l->rank.kv_kind = (enum pdx_kv_kind)kind;
    return read_name(r, r->root, "dtype", PDXI_LAYOUT_DTYPE_MAX, l->dtype);
}

/* What the document holds, counted before anything is reserved. */
struct layout_counts {
    size_t nregions;
    size_t descs_len;
    size_t ntensors;
    size_t ngroups;
    size_t ncomponents;
};

static int count_tensors(const struct layout_reader *r, const struct pdxi_value *list,
                         const char *what, struct layout_counts *c)
{
    size_t n, elements, ngroups;

    if (!pdxi_value_array(list, &n) || n > PDXI_LAYOUT_TENSORS_MAX - c->ntensors)
        return read_wrong(r, what);
    c->ntensors += n;
    for (size_t i = 0; i < n; i++) {
        const struct pdxi_value *t = pdxi_value_at(list, i);

        if (!pdxi_value_array(t, &elements) || elements < TENSOR_MIN)
            return read_wrong(r, what);
        if (elements < 8)
            continue;
        if (!pdxi_value_array(pdxi_value_at(t, 7), &ngroups) || ngroups > PDXI_LAYOUT_GROUPS_MAX)
            return read_wrong(r, what);
        c->ngroups += ngroups;
    }
    return 0;
}

static int count_regions(const struct layout_reader *r, const struct pdxi_value *list,
                         struct layout_counts *c)
{
    const uint8_t *desc;
    size_t len;

    if (!pdxi_value_array(list, &c->nregions) || c->nregions > PDXI_LAYOUT_TENSORS_MAX)
        return read_wrong(r, "regions");
    for (size_t i = 0; i < c->nregions; i++) {
        if (!pdxi_value_bin(pdxi_value_at(list, i), &desc, &len) || len > PDXI_LAYOUT_REGION_MAX)
            return read_wrong(r, "regions");
        c->descs_len += len;
    }
    return 0;
}

static int count_layout(const struct layout_reader *r, struct layout_counts *c)
{
    const struct pdxi_value *state = pdxi_value_get(r->root, "state");
    int rc;

    if ((rc = count_regions(r, pdxi_value_get(r->root, "regions"), c)) < 0 ||
        (rc = count_tensors(r, pdxi_value_get(r->root, "kv"), "kv", c)) < 0 ||
        (rc = count_tensors(r, pdxi_value_get(r->root, "aux"), "aux", c)) < 0)
        return rc;
    if (!pdxi_value_array(state, &c->ncomponents) || c->ncomponents > PDXI_LAYOUT_COMPONENTS_MAX)
        return read_wrong(r, "state");
    for (size_t i = 0; i < c->ncomponents; i++) {
        rc = count_tensors(r, pdxi_value_get(pdxi_value_at(state, i), "tensors"), "state tensors",
                           c);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_regions(const struct layout_reader *r, const struct pdxi_value *list, size_t n,
                        struct pdx_layout *l)
{
    uint32_t off = 0;
    int rc;

    for (size_t i = 0; i < n; i++) {
        struct pdxi_layout_region *to = &l->regions[l->nregions++];
        const uint8_t *desc = NULL;
        size_t len = 0;

        (void)pdxi_value_bin(pdxi_value_at(list, i), &desc, &len); /* counted before */
        rc = pdx_remote_decode(desc, len, &to->remote, r->why);
        if (rc < 0)
            return rc;
        if (memcmp(to->remote.incarnation, l->regions[0].remote.incarnation,
                   sizeof to->remote.incarnation) != 0)
            return pdxi_refuse(r->why, PDX_EPROTO,
                               "not a layout: region %zu is of another engine than region 0.", i);
        memcpy(l->descs + off, desc, len);
        to->desc_off = off;
        to->desc_len = (uint32_t)len;
        off += to->desc_len;
    }
    return 0;
}

/* The elements behind item_len, each with a default when the tensor ends before it. */
static bool read_tensor_axis(const struct pdxi_value *v, size_t elements, struct pdx_layout *l,
                             struct pdxi_tensor *t)
{
    int64_t layer = PDX_LAYER_NONE;
    uint64_t outer = 1;
    size_t ngroups = 0;

    if (elements > 4 && (!pdxi_value_int(pdxi_value_at(v, 4), &layer) || layer < PDX_LAYER_NONE ||
                         layer > INT32_MAX))
        return false;
    if (elements > 5 && !pdxi_value_uint(pdxi_value_at(v, 5), UINT64_MAX, &t->shard_dim))
        return false;
    if (elements > 6 && !pdxi_value_uint(pdxi_value_at(v, 6), UINT64_MAX, &outer))
        return false;
    if (elements > 7)
        (void)pdxi_value_array(pdxi_value_at(v, 7), &ngroups); /* counted before */
    for (size_t i = 0; i < ngroups; i++)
        if (!pdxi_value_uint(pdxi_value_at(pdxi_value_at(v, 7), i), UINT64_MAX,
                             &l->groups[l->ngroups + i]))
            return false;
    t->layer = (int32_t)layer;
    t->outer = outer ? outer : 1;
    t->groups = l->groups + l->ngroups;
    t->ngroups = (uint32_t)ngroups;
    l->ngroups += t->ngroups;
    return true;
}

/* The elements behind the groups. */
static bool read_tensor_place(const struct pdxi_value *v, size_t elements, struct pdxi_tensor *t)
{
    uint64_t stride = 0, flags = 0, part = 0;

    if ((elements > 8 && !pdxi_value_uint(pdxi_value_at(v, 8), UINT64_MAX, &stride)) ||
        (elements > 9 && !pdxi_value_uint(pdxi_value_at(v, 9), UINT32_MAX, &flags)) ||
        (elements > 10 && !pdxi_value_uint(pdxi_value_at(v, 10), PDX_KV_PART_LATENT, &part)))
        return false;
    t->stride = stride ? stride : t->item_len;
    t->flags = (uint32_t)flags;
    t->told_part = (enum pdx_kv_part)part;
    return true;
}

static int read_tensors(const struct layout_reader *r, const struct pdxi_value *list,
                        const char *what, struct pdx_layout *l, uint32_t *ret_n)
{
    size_t n = 0, elements = 0;

    (void)pdxi_value_array(list, &n); /* counted before */
    for (size_t i = 0; i < n; i++) {
        const struct pdxi_value *v = pdxi_value_at(list, i);
        struct pdxi_tensor *t = &l->tensors[l->ntensors++];
        uint64_t region;

        (void)pdxi_value_array(v, &elements);
        if (!pdxi_value_uint(pdxi_value_at(v, 0), UINT32_MAX, &region) || region >= l->nregions ||
            !pdxi_value_uint(pdxi_value_at(v, 1), UINT64_MAX, &t->off) ||
            !pdxi_value_uint(pdxi_value_at(v, 2), UINT64_MAX, &t->len) ||
            !pdxi_value_uint(pdxi_value_at(v, 3), UINT64_MAX, &t->item_len) ||
            !read_tensor_axis(v, elements, l, t) || !read_tensor_place(v, elements, t))
            return read_wrong(r, what);
        t->region = (uint32_t)region;
    }
    *ret_n = (uint32_t)n;
    return 0;
}

static int read_components(const struct layout_reader *r, size_t n, struct pdx_layout *l)
{
    const struct pdxi_value *state = pdxi_value_get(r->root, "state");
    int rc;

    for (size_t i = 0; i < n; i++) {
        const struct pdxi_value *map = pdxi_value_at(state, i);
        struct pdxi_layout_component *c = &l->components[l->ncomponents++];

        rc = read_name(r, map, "type", PDX_STATE_TYPE_MAX, c->type);
        if (rc < 0)
            return rc;
        if (!c->type[0])
            return read_wrong(r, "type");
        c->first = l->ntensors;
        c->slots = 1;
        if (pdxi_value_get(map, "slots")) {
            struct layout_reader component = {.root = map, .why = r->why};

            rc = read_u32(&component, "slots", UINT32_MAX, &c->slots);
            if (rc < 0)
                return rc;
            c->slots = c->slots ? c->slots : 1;
        }
        rc = read_tensors(r, pdxi_value_get(map, "tensors"), "state tensors", l, &c->n);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Fills a layout that has room for all that was counted. */
static int read_layout(const struct layout_reader *r, const struct layout_counts *c,
                       struct pdx_layout *l)
{
    struct pdxi_findings f;
    int rc;

    l->decoded = true;
    if ((rc = read_scalars(r, l)) < 0 ||
        (rc = read_regions(r, pdxi_value_get(r->root, "regions"), c->nregions, l)) < 0 ||
        (rc = read_tensors(r, pdxi_value_get(r->root, "kv"), "kv", l, &l->nkv)) < 0 ||
        (rc = read_tensors(r, pdxi_value_get(r->root, "aux"), "aux", l, &l->naux)) < 0 ||
        (rc = read_components(r, c->ncomponents, l)) < 0)
        return rc;
    pdxi_findings_init(&f);
    rc = pdxi_layout_check(l, &f);
    if (f.n)
        return pdxi_findings_refuse(&f, r->why, PDX_EPROTO, "the peer's layout is wrong");
    if (rc < 0)
        return pdxi_refuse(r->why, rc, "no memory to check a layout of %zu tensors.", c->ntensors);
    return 0;
}

static int decode_root(const struct layout_reader *r, struct pdx_layout **ret_layout)
{
    struct layout_counts c = {0};
    struct pdx_layout *l;
    int rc;

    if ((rc = read_head(r)) < 0 || (rc = count_layout(r, &c)) < 0)
        return rc;
    l = pdxi_layout_alloc(c.nregions, c.descs_len, c.ntensors, c.ngroups, c.ncomponents);
    if (!l)
        return pdxi_refuse(r->why, PDX_ENOMEM, "no memory for a layout of %zu tensors.",
                           c.ntensors);
    rc = read_layout(r, &c, l);
    if (rc < 0)
        pdx_layout_destroy(l);
    else
        *ret_layout = l;
    return rc;
}

int pdx_layout_decode(const void *buf, size_t len, struct pdx_layout **ret_layout,
                      struct pdx_error *why)
{
    struct layout_reader r = {.why = why};
    struct pdxi_unpacked u;
    int rc;

    if (!buf || !ret_layout)
        return pdxi_refuse(why, PDX_EINVAL, "buf or ret_layout is NULL.");
    if (len > PDXI_LAYOUT_ENCODED_MAX)
        return pdxi_refuse(why, PDX_EPROTO, "not a layout: %zu bytes are more than %u.", len,
                           PDXI_LAYOUT_ENCODED_MAX);
    rc = pdxi_unpack_open(&u, buf, len, why);
    if (rc < 0)
        return rc;
    r.root = u.root;
    rc = decode_root(&r, ret_layout);
    pdxi_unpack_close(&u);
    return rc;
}
