/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a layout from a description: counts what it holds, copies it into the
 * arrays of layout.h, exports each region once, and lets layout_check.c judge.
 */
#include "state/layout.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pdx_layout_destroy(struct pdx_layout *l)
{
    if (!l)
        return;
    free(l->regions);
    free(l->descs);
    free(l->tensors);
    free(l->groups);
    free(l->components);
    free(l);
}

/* An array that is never NULL, so that "none" and "no memory" differ. */
static void *layout_array(size_t n, size_t size)
{
    return calloc(n ? n : 1, size);
}

struct pdx_layout *pdxi_layout_alloc(size_t nregions, size_t descs_len, size_t ntensors,
                                     size_t ngroups, size_t ncomponents)
{
    struct pdx_layout *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->regions = layout_array(nregions, sizeof *l->regions);
    l->descs = layout_array(descs_len, 1);
    l->tensors = layout_array(ntensors, sizeof *l->tensors);
    l->groups = layout_array(ngroups, sizeof *l->groups);
    l->components = layout_array(ncomponents, sizeof *l->components);
    if (!l->regions || !l->descs || !l->tensors || !l->groups || !l->components) {
        pdx_layout_destroy(l);
        return NULL;
    }
    return l;
}

bool pdxi_layout_name_ok(const char *name, size_t len, size_t max)
{
    for (size_t i = 0; i < len && i <= max; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return len <= max;
}

/* How much a description holds. */
struct layout_size {
    size_t ntensors;
    size_t ngroups;
};

/* Counts one list; finds what keeps it from being copied. */
static void size_tensors(struct layout_size *s, const char *list, const struct pdx_tensor *t,
                         size_t n, struct pdxi_findings *f)
{
    if (n && !t) {
        pdxi_findings_add(f, "%s: there are %zu tensors, but their pointer is NULL.", list, n);
        return;
    }
    if (n > PDXI_LAYOUT_TENSORS_MAX - s->ntensors) {
        pdxi_findings_add(f, "%s: more than %d tensors in one layout.", list,
                          PDXI_LAYOUT_TENSORS_MAX);
        return;
    }
    s->ntensors += n;
    for (size_t i = 0; i < n; i++) {
        if (!t[i].region)
            pdxi_findings_add(f, "%s tensor %zu: region is NULL. Register its memory first.", list,
                              i);
        if (t[i].ngroups > PDXI_LAYOUT_GROUPS_MAX || (t[i].ngroups && !t[i].groups))
            pdxi_findings_add(f, "%s tensor %zu: %zu groups, but groups is NULL or more than %d.",
                              list, i, t[i].ngroups, PDXI_LAYOUT_GROUPS_MAX);
        else
            s->ngroups += t[i].ngroups;
    }
}

static void size_components(struct layout_size *s, const struct pdx_layout_desc *d,
                            struct pdxi_findings *f)
{
    char list[64];

    if (d->ncomponents > PDXI_LAYOUT_COMPONENTS_MAX) {
        pdxi_findings_add(f, "%zu components are more than %d.", d->ncomponents,
                          PDXI_LAYOUT_COMPONENTS_MAX);
        return;
    }
    if (d->ncomponents && !d->components) {
        pdxi_findings_add(f, "there are %zu components, but their pointer is NULL.",
                          d->ncomponents);
        return;
    }
    for (size_t i = 0; i < d->ncomponents; i++) {
        const struct pdx_component *c = &d->components[i];
        size_t len = c->type ? strnlen(c->type, PDX_STATE_TYPE_MAX + 1) : 0;

        (void)snprintf(list, sizeof list, "component %zu", i);
        if (len == 0 || !pdxi_layout_name_ok(c->type, len, PDX_STATE_TYPE_MAX))
            pdxi_findings_add(f, "%s: its type must be 1 to %d printable characters.", list,
                              PDX_STATE_TYPE_MAX);
        size_tensors(s, list, c->tensors, c->ntensors, f);
    }
}

static void size_desc(struct layout_size *s, const struct pdx_layout_desc *d,
                      struct pdxi_findings *f)
{
    size_t len = d->dtype ? strnlen(d->dtype, PDXI_LAYOUT_DTYPE_MAX + 1) : 0;

    if (len && !pdxi_layout_name_ok(d->dtype, len, PDXI_LAYOUT_DTYPE_MAX))
        pdxi_findings_add(f, "dtype must be at most %d printable characters.",
                          PDXI_LAYOUT_DTYPE_MAX);
    size_tensors(s, "kv", d->kv, d->nkv, f);
    size_tensors(s, "aux", d->aux, d->naux, f);
    size_components(s, d, f);
}

/* The region's number in the table; a new one is appended. Neighbours mostly share a region. */
static uint32_t layout_region(struct pdx_layout *l, struct pdx_region *region)
{
    for (uint32_t i = l->nregions; i-- > 0;)
        if (l->regions[i].region == region)
            return i;
    l->regions[l->nregions].region = region;
    return l->nregions++;
}

static void layout_copy_tensors(struct pdx_layout *l, const struct pdx_tensor *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t *groups = l->groups + l->ngroups;

        if (from[i].ngroups)
            memcpy(groups, from[i].groups, from[i].ngroups * sizeof *groups);
        l->ngroups += (uint32_t)from[i].ngroups;
        l->tensors[l->ntensors++] = (struct pdxi_tensor){
            .off = from[i].off,
            .len = from[i].len,
            .item_len = from[i].item_len,
            .stride = from[i].stride ? from[i].stride : from[i].item_len,
            .shard_dim = from[i].shard_dim,
            .outer = from[i].outer ? from[i].outer : 1,
            .groups = groups,
            .ngroups = (uint32_t)from[i].ngroups,
            .region = layout_region(l, from[i].region),
            .flags = from[i].flags,
            .told_part = from[i].part,
            .layer = from[i].layer,
        };
    }
}

static void layout_copy(struct pdx_layout *l, const struct pdx_layout_desc *d)
{
    l->rank = (struct pdxi_rank){
        .tp_size = d->tp_size,
        .pp_size = d->pp_size,
        .pp_rank = d->pp_rank,
        .kv_kind = d->kv_kind,
        .page_size = d->page_size,
        .start_layer = d->start_layer,
    };
    l->engine_rank = d->engine_rank;
    l->kv_head_num = d->kv_head_num;
    l->total_kv_head_num = d->total_kv_head_num;
    if (d->dtype)
        memcpy(l->dtype, d->dtype, strlen(d->dtype));
    layout_copy_tensors(l, d->kv, d->nkv);
    layout_copy_tensors(l, d->aux, d->naux);
    l->nkv = (uint32_t)d->nkv;
    l->naux = (uint32_t)d->naux;
    for (size_t i = 0; i < d->ncomponents; i++) {
        struct pdxi_layout_component *c = &l->components[l->ncomponents++];

        memcpy(c->type, d->components[i].type, strlen(d->components[i].type));
        c->first = l->ntensors;
        c->n = (uint32_t)d->components[i].ntensors;
        c->slots = d->components[i].slots ? d->components[i].slots : 1;
        layout_copy_tensors(l, d->components[i].tensors, d->components[i].ntensors);
    }
}

/* Keeps every region's descriptor, to send along, and what it says, to check against. */
static int layout_export(struct pdx_layout *l, struct pdx_error *why)
{
    uint32_t off = 0;
    uint8_t *fit;
    int rc;

    free(l->descs);
    l->descs = layout_array(l->nregions, PDXI_LAYOUT_REGION_MAX);
    if (!l->descs)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a layout of %u regions.", l->nregions);
    for (uint32_t i = 0; i < l->nregions; i++) {
        struct pdxi_layout_region *r = &l->regions[i];
        size_t len = pdx_region_export(r->region, l->descs + off, PDXI_LAYOUT_REGION_MAX);

        assert(len <= PDXI_LAYOUT_REGION_MAX);
        rc = pdx_remote_decode(l->descs + off, len, &r->remote, why);
        if (rc < 0)
            return rc;
        if (memcmp(r->remote.incarnation, l->regions[0].remote.incarnation,
                   sizeof r->remote.incarnation) != 0)
            return pdxi_refuse(why, PDX_EINVAL,
                               "a layout's regions are of two engines. Register all of a rank's "
                               "memory with one.");
        r->desc_off = off;
        r->desc_len = (uint32_t)len;
        off += r->desc_len;
    }
    fit = realloc(l->descs, off ? off : 1);
    if (fit)
        l->descs = fit;
    return 0;
}

static int layout_build(const struct pdx_layout_desc *d, const struct layout_size *s,
                        struct pdx_layout **ret_layout, struct pdx_error *why)
{
    struct pdxi_findings f;
    struct pdx_layout *l =
        pdxi_layout_alloc(s->ntensors, 0, s->ntensors, s->ngroups, d->ncomponents);
    int rc;

    if (!l)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a layout of %zu tensors.", s->ntensors);
    layout_copy(l, d);
    rc = layout_export(l, why);
    if (rc < 0)
        goto out_layout;
    pdxi_findings_init(&f);
    rc = pdxi_layout_check(l, &f);
    if (rc < 0) {
        rc = f.n ? pdxi_findings_refuse(&f, why, rc, "the layout is wrong")
                 : pdxi_refuse(why, rc, "no memory to check a layout of %zu tensors.", s->ntensors);
        goto out_layout;
    }
    *ret_layout = l;
    return 0;

out_layout:
    pdx_layout_destroy(l);
    return rc;
}

int pdx_layout_create(const struct pdx_layout_desc *desc, struct pdx_layout **ret_layout,
                      struct pdx_error *why)
{
    struct pdx_layout_desc d = PDX_LAYOUT_DESC_INIT;
    struct layout_size s = {0};
    struct pdxi_findings f;

    if (!desc || !ret_layout || desc->size < sizeof desc->size)
        return pdxi_refuse(why, PDX_EINVAL,
                           "desc or ret_layout is NULL, or desc->size is 0. Start from "
                           "PDX_LAYOUT_DESC_INIT.");
    memcpy(&d, desc, desc->size < sizeof d ? desc->size : sizeof d);
    pdxi_findings_init(&f);
    size_desc(&s, &d, &f);
    if (f.n)
        return pdxi_findings_refuse(&f, why, PDX_EINVAL, "the layout is wrong");
    return layout_build(&d, &s, ret_layout, why);
}
