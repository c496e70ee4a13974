/* SPDX-License-Identifier: Apache-2.0
 *
 * See pairing.h. First what the ranks say of themselves, then each payload by
 * its planner; nothing stops at the first finding.
 */
#include "state/pairing.h"

#include "state/plan/head_slice.h"
#include "state/plan/planners.h"
#include "state/plan/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kv_kind_names[] = {
    [PDX_KV_NONE] = "none",
    [PDX_KV_MHA] = "MHA",
    [PDX_KV_MLA] = "MLA",
    [PDX_KV_MIXED] = "mixed",
};

/* Under which rules layouts are compared. */
struct pairing_rules {
    const struct pdxi_state_types *types;
    uint32_t flags; /* enum pdx_route_flags */
};

/* KV heads on a rank, however they were told; 0: not told. */
static uint64_t rank_heads(const struct pdx_layout *l)
{
    if (l->kv_head_num)
        return l->kv_head_num;
    return l->total_kv_head_num ? pdxi_units(l->total_kv_head_num, l->rank.tp_size) : 0;
}

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
            "dtype of the KV cache: local %s, remote %s. Start both sides with the same "
            "cache dtype.",
            l->dtype[0] ? l->dtype : "not told", r->dtype[0] ? r->dtype : "not told");
    if (l->total_kv_head_num && r->total_kv_head_num &&
        l->total_kv_head_num != r->total_kv_head_num)
        pdxi_findings_add(f,
                          "total_kv_head_num: local %u, remote %u. Serve the same model on both "
                          "sides.",
                          l->total_kv_head_num, r->total_kv_head_num);
    else if (l->rank.tp_size == r->rank.tp_size && rank_heads(l) && rank_heads(r) &&
             rank_heads(l) != rank_heads(r))
        pdxi_findings_add(
            f,
            "kv_head_num: local %llu, remote %llu at the same TP size. Serve the same "
            "model on both sides.",
            (unsigned long long)rank_heads(l), (unsigned long long)rank_heads(r));
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

/* The same type, perhaps under its old name on one side. */
static bool types_equal(const struct pairing_rules *rules, const char *local, const char *remote)
{
    const struct pdx_state_type *type = pdxi_state_types_find(rules->types, local);

    return strcmp(local, remote) == 0 ||
           (type && type == pdxi_state_types_find(rules->types, remote));
}

/* How often a type comes among the first n components. */
static uint32_t types_count(const struct pdx_layout *l, uint32_t n, const char *type,
                            const struct pairing_rules *rules)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += types_equal(rules, type, l->components[i].type);
    return count;
}

/* The first component that the remote side lacks, told by its place among those of its type. */
static void compare_missing(const struct pdx_layout *l, const struct pdx_layout *r,
                            const struct pairing_rules *rules, struct pdxi_findings *f)
{
    for (uint32_t i = 0; i < l->ncomponents; i++) {
        const char *type = l->components[i].type;
        uint32_t occurrence = types_count(l, i, type, rules);

        if (occurrence < types_count(r, r->ncomponents, type, rules))
            continue;
        pdxi_findings_add(f, "Decode peer is missing state component %s occurrence %u.", type,
                          occurrence);
        return;
    }
}

static void compare_types(const struct pdx_layout *l, const struct pdx_layout *r,
                          const struct pairing_rules *rules, struct pdxi_findings *f)
{
    char local[256], remote[256];
    bool same = l->ncomponents == r->ncomponents;

    for (uint32_t i = 0; same && i < l->ncomponents; i++)
        same = types_equal(rules, l->components[i].type, r->components[i].type);
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
    compare_missing(l, r, rules, f);
}

static void compare_slots(const char *what, const struct pdx_state_type *type, uint32_t local,
                          uint32_t remote, struct pdxi_findings *f)
{
    if (local != remote)
        pdxi_findings_add(f,
                          "%s: slots: local %u, remote %u. Configure the same number of state "
                          "slots per request on both sides.",
                          what, local, remote);
    else if (local > 1 && !(type->flags & PDX_STATE_SLOTS))
        pdxi_findings_add(f,
                          "%s: slots is %u, but the type's number of indices does not depend on "
                          "it. Leave it 0.",
                          what, local);
}

/* Reserves what a planner may write. */
static int payload_reserve(struct pdxi_pairing_part *part)
{
    struct pdxi_payload *p = &part->payload;

    for (uint32_t i = 0; i < part->local.n; i++)
        p->slices_cap += part->type && part->type->slicer ? PDX_SLICES_MAX
                         : part->local.at[i].ngroups      ? part->local.at[i].ngroups
                                                          : 1;
    p->matches = calloc(part->local.n + 1, sizeof *p->matches);
    p->slices = calloc(p->slices_cap + 1, sizeof *p->slices);
    p->used = calloc(part->remote.n + 1, 1);
    return p->matches && p->slices && p->used ? 0 : PDX_ENOMEM;
}

static int part_plan(struct pdxi_pairing_part *part, pdxi_plan_fn plan, const struct pdx_layout *l,
                     const struct pdx_layout *r, const struct pairing_rules *rules,
                     struct pdxi_findings *f)
{
    struct pdxi_ask ask = {
        .what = part->what,
        .local = &l->rank,
        .remote = &r->rank,
        .local_tensors = part->local,
        .remote_tensors = part->remote,
        .type = part->type,
        .tp_text = part->type ? pdxi_state_type_tp_text(part->type) : NULL,
        .pp_text = part->type ? pdxi_state_type_pp_text(part->type) : NULL,
        .trust = rules->flags & PDX_ROUTE_TRUST_PAIRING,
        .without_draft = rules->flags & PDX_ROUTE_WITHOUT_DRAFT,
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
                              const struct pdx_layout *r, const struct pairing_rules *rules,
                              struct pdxi_findings *f)
{
    for (uint32_t i = 0; i < l->ncomponents && i < r->ncomponents; i++) {
        struct pdxi_pairing_part *part = &p->parts[PDXI_PAIRING_COMPONENT + i];
        const struct pdxi_layout_component *lc = &l->components[i];
        const struct pdxi_layout_component *rc = &r->components[i];

        (void)snprintf(part->what, sizeof part->what, "component %u (%s)", i, lc->type);
        part->type = pdxi_state_types_find(rules->types, lc->type);
        part->local = pdxi_layout_component(l, i);
        part->remote = pdxi_layout_component(r, i);
        part->slots = lc->slots;
        if (!part->type || !types_equal(rules, lc->type, rc->type))
            continue;
        compare_slots(part->what, part->type, lc->slots, rc->slots, f);
        if (part_plan(part, pdxi_plan_state, l, r, rules, f) < 0)
            return PDX_ENOMEM;
    }
    return 0;
}

static int pairing_plan(struct pdxi_pairing *p, const struct pdx_layout *l,
                        const struct pdx_layout *r, const struct pairing_rules *rules,
                        struct pdxi_findings *f)
{
    struct pdxi_pairing_part *kv = &p->parts[PDXI_PAIRING_KV];
    struct pdxi_pairing_part *aux = &p->parts[PDXI_PAIRING_AUX];

    pdxi_ranks_check(&l->rank, &r->rank, rules->flags & PDX_ROUTE_TRUST_PAIRING, f);
    compare_kv(l, r, f);
    compare_types(l, r, rules, f);
    *kv = (struct pdxi_pairing_part){
        .what = "kv", .local = pdxi_layout_kv(l), .remote = pdxi_layout_kv(r)};
    *aux = (struct pdxi_pairing_part){
        .what = "aux", .local = pdxi_layout_aux(l), .remote = pdxi_layout_aux(r)};
    if (part_plan(kv, pdxi_plan_kv, l, r, rules, f) < 0 ||
        part_plan(aux, pdxi_plan_aux, l, r, rules, f) < 0)
        return PDX_ENOMEM;
    return pairing_components(p, l, r, rules, f);
}

int pdxi_pairing_init(struct pdxi_pairing *ret, const struct pdx_layout *local,
                      const struct pdx_layout *remote, const struct pdxi_state_types *types,
                      uint32_t flags, struct pdx_error *why)
{
    const struct pairing_rules rules = {types, flags};
    struct pdxi_pairing p = {.nparts = PDXI_PAIRING_COMPONENT + local->ncomponents};
    struct pdxi_findings f;
    char head[128];
    int rc;

    p.parts = calloc(p.nparts, sizeof *p.parts);
    pdxi_findings_init(&f);
    rc = p.parts ? pairing_plan(&p, local, remote, &rules, &f) : PDX_ENOMEM;
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
