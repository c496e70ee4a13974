/* SPDX-License-Identifier: Apache-2.0
 *
 * See pairing.h. First what the ranks say of themselves, then each payload by
 * its planner; nothing stops at the first finding.
 */
#include "state/pairing.h"

#include "state/plan/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kv_kind_names[] = {
    [PDX_KV_NONE] = "none",
    [PDX_KV_MHA] = "MHA",
    [PDX_KV_MLA] = "MLA",
};

static void compare_kv(const struct pdx_layout *l, const struct pdx_layout *r,
                       struct pdxi_findings *f)
{
    if (l->rank.kv_kind != r->rank.kv_kind) {
        pdxi_findings_add(f, "kv_kind: local %s, remote %s. Serve the same model on both sides.",
                          kv_kind_names[l->rank.kv_kind], kv_kind_names[r->rank.kv_kind]);
        return;
    }
    if (l->rank.kv_kind == PDX_KV_NONE)
        return;
    if (l->rank.page_size != r->rank.page_size)
        pdxi_findings_add(f,
                          "page_size: local %u, remote %u tokens. Start both sides with the same "
                          "page size.",
                          l->rank.page_size, r->rank.page_size);
    if (strcmp(l->dtype, r->dtype) != 0)
        pdxi_findings_add(
            f,
            "dtype of the KV cache: local \"%s\", remote \"%s\". Start both sides with "
            "the same cache dtype.",
            l->dtype, r->dtype);
    if (l->total_kv_head_num && r->total_kv_head_num &&
        l->total_kv_head_num != r->total_kv_head_num)
        pdxi_findings_add(f,
                          "total_kv_head_num: local %u, remote %u. Serve the same model on both "
                          "sides.",
                          l->total_kv_head_num, r->total_kv_head_num);
    else if (l->rank.tp_size == r->rank.tp_size && l->kv_head_num && r->kv_head_num &&
             l->kv_head_num != r->kv_head_num)
        pdxi_findings_add(f,
                          "kv_head_num: local %u, remote %u at the same TP size. Serve the same "
                          "model on both sides.",
                          l->kv_head_num, r->kv_head_num);
}

/* The types of a layout in order: "[mamba, swa]". */
static const char *types_text(const struct pdx_layout *l, char *buf, size_t cap)
{
    size_t len = pdxi_text_append(buf, cap, 0, "[");

    for (uint32_t i = 0; i < l->ncomponents; i++)
        len = pdxi_text_append(buf, cap, len, "%s%s", i ? ", " : "", l->components[i].type);
    (void)pdxi_text_append(buf, cap, len, "]");
    return buf;
}

static void compare_types(const struct pdx_layout *l, const struct pdx_layout *r,
                          struct pdxi_findings *f)
{
    char local[256], remote[256];
    bool same = l->ncomponents == r->ncomponents;

    for (uint32_t i = 0; same && i < l->ncomponents; i++)
        same = strcmp(l->components[i].type, r->components[i].type) == 0;
    if (same)
        return;
    (void)types_text(l, local, sizeof local);
    (void)types_text(r, remote, sizeof remote);
    if (l->ncomponents != r->ncomponents)
        pdxi_findings_add(f,
                          "state component count mismatch (local=%u, remote=%u): local %s, remote "
                          "%s. Give both sides the same state types in the same order.",
                          l->ncomponents, r->ncomponents, local, remote);
    else
        pdxi_findings_add(f,
                          "state types: local %s, remote %s. Give both sides the same state types "
                          "in the same order.",
                          local, remote);
}

/* Reserves what a planner may write. */
static int payload_reserve(struct pdxi_pairing_part *part)
{
    struct pdxi_payload *p = &part->payload;

    for (uint32_t i = 0; i < part->local.n; i++)
        p->slices_cap += part->local.at[i].ngroups ? part->local.at[i].ngroups : 1;
    p->matches = calloc(part->local.n + 1, sizeof *p->matches);
    p->slices = calloc(p->slices_cap + 1, sizeof *p->slices);
    p->used = calloc(part->remote.n + 1, 1);
    return p->matches && p->slices && p->used ? 0 : PDX_ENOMEM;
}

static int part_plan(struct pdxi_pairing_part *part, pdxi_plan_fn plan, const char *type,
                     const struct pdx_layout *l, const struct pdx_layout *r, bool trust,
                     struct pdxi_findings *f)
{
    struct pdxi_ask ask = {
        .what = part->what,
        .local = &l->rank,
        .remote = &r->rank,
        .local_tensors = part->local,
        .remote_tensors = part->remote,
        .type = type,
        .trust = trust,
    };
    uint32_t found = f->n;

    if (payload_reserve(part) < 0)
        return PDX_ENOMEM;
    plan(&ask, &part->payload, f);
    if (f->n != found)
        part->payload.nmatches = 0;
    return 0;
}

static int pairing_components(struct pdxi_pairing *p, const struct pdx_layout *l,
                              const struct pdx_layout *r, bool trust, struct pdxi_findings *f)
{
    for (uint32_t i = 0; i < l->ncomponents && i < r->ncomponents; i++) {
        struct pdxi_pairing_part *part = &p->parts[PDXI_PAIRING_COMPONENT + i];
        const char *type = l->components[i].type;

        (void)snprintf(part->what, sizeof part->what, "component %u (%s)", i, type);
        part->type = pdxi_state_type_find(type);
        if (!part->type || strcmp(type, r->components[i].type) != 0)
            continue;
        part->local = pdxi_layout_component(l, i);
        part->remote = pdxi_layout_component(r, i);
        if (part_plan(part, part->type->plan, type, l, r, trust, f) < 0)
            return PDX_ENOMEM;
    }
    return 0;
}

static int pairing_plan(struct pdxi_pairing *p, const struct pdx_layout *l,
                        const struct pdx_layout *r, bool trust, struct pdxi_findings *f)
{
    struct pdxi_pairing_part *kv = &p->parts[PDXI_PAIRING_KV];
    struct pdxi_pairing_part *aux = &p->parts[PDXI_PAIRING_AUX];

    pdxi_ranks_check(&l->rank, &r->rank, trust, f);
    compare_kv(l, r, f);
    compare_types(l, r, f);
    *kv = (struct pdxi_pairing_part){
        .what = "kv", .local = pdxi_layout_kv(l), .remote = pdxi_layout_kv(r)};
    *aux = (struct pdxi_pairing_part){
        .what = "aux", .local = pdxi_layout_aux(l), .remote = pdxi_layout_aux(r)};
    if (part_plan(kv, pdxi_plan_kv, NULL, l, r, trust, f) < 0 ||
        part_plan(aux, pdxi_plan_aux, NULL, l, r, trust, f) < 0)
        return PDX_ENOMEM;
    return pairing_components(p, l, r, trust, f);
}

int pdxi_pairing_init(struct pdxi_pairing *ret, const struct pdx_layout *local,
                      const struct pdx_layout *remote, bool trust, struct pdx_error *why)
{
    struct pdxi_pairing p = {.nparts = PDXI_PAIRING_COMPONENT + local->ncomponents};
    struct pdxi_findings f;
    char head[128];
    int rc;

    p.parts = calloc(p.nparts, sizeof *p.parts);
    pdxi_findings_init(&f);
    rc = p.parts ? pairing_plan(&p, local, remote, trust, &f) : PDX_ENOMEM;
    if (rc < 0) {
        (void)pdxi_refuse(why, rc, "no memory to pair two layouts of %u and %u tensors.",
                          local->ntensors, remote->ntensors);
    } else if (f.n) {
        (void)snprintf(head, sizeof head,
                       "the layouts of rank %u (local) and rank %u (remote) do not fit",
                       local->engine_rank, remote->engine_rank);
        rc = pdxi_findings_refuse(&f, why, PDX_EMISMATCH, head);
    }
    if (rc < 0)
        pdxi_pairing_fini(&p);
    else
        *ret = p;
    return rc;
}

void pdxi_pairing_fini(struct pdxi_pairing *p)
{
    for (uint32_t i = 0; p->parts && i < p->nparts; i++) {
        free(p->parts[i].payload.matches);
        free(p->parts[i].payload.slices);
        free(p->parts[i].payload.used);
    }
    free(p->parts);
    *p = (struct pdxi_pairing){0};
}
