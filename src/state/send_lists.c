/* SPDX-License-Identifier: Apache-2.0
 *
 * See send_lists.h. The sentences begin as operators know them from SGLang.
 */
#include "state/send_lists.h"

#include <stdio.h>

/* The lists at hand. */
struct lists {
    const struct pdx_route *route;
    const struct pdxi_route_part *part;
    size_t component;
    struct pdx_index_list src;
    struct pdx_index_list dst;
    char what[80]; /* "component 1 (swa)" */
};

/* One side has indices and the other none, or both lists are empty and must not be. */
static int lists_check_presence(const struct lists *l, struct pdx_error *why)
{
    if (l->src.idx && l->dst.idx && l->src.n && l->dst.n)
        return 0;
    return pdxi_refuse(
        why, PDX_EINVAL,
        PDXI_STATE_FAILED "%s has indices on one side only, or on none: src=%zu%s, "
                          "dst=%zu%s. Pass them on both, or idx NULL on both when the "
                          "request has no such state.",
        l->what, l->src.n, l->src.idx ? "" : " (none)", l->dst.n, l->dst.idx ? "" : " (none)");
}

/* How many indices the type and the layouts permit. */
static int lists_check_number(const struct lists *l, struct pdx_error *why)
{
    const struct pdxi_route_part *p = l->part;
    uint32_t min = p->min_indices, max = p->max_indices;
    size_t src = l->src.n, dst = l->dst.n;

    if (max == 1 && min == 1 && (src != 1 || dst != 1))
        return pdxi_refuse(why, PDX_EINVAL,
                           PDXI_STATE_FAILED
                           "%s requires single state index, got src=%zu, dst=%zu. Pass the "
                           "request's one slot on each side (component %zu).",
                           p->type_name, src, dst, l->component);
    if ((max && (src > max || dst > max)) || (src && src < min) || (dst && dst < min))
        return pdxi_refuse(why, PDX_EINVAL,
                           PDXI_STATE_FAILED
                           "%s takes at least %u and at most %u indices of a request, got "
                           "src=%zu, dst=%zu (component %zu). Pass that many%s.",
                           p->type_name, min, max ? max : INT32_MAX, src, dst, l->component,
                           p->type_flags & PDX_STATE_SLOTS ? ", or set slots in both layouts" : "");
    return 0;
}

static int lists_check_lengths(const struct lists *l, struct pdx_error *why)
{
    const struct pdxi_route_part *p = l->part;
    char upper[PDX_STATE_TYPE_MAX + 1];

    bool cut_to_nothing = l->src.n == 0 || l->dst.n == 0;

    if (l->src.n == l->dst.n)
        return 0;
    if (!(p->type_flags & PDX_STATE_MAY_TRUNCATE) || cut_to_nothing) {
        pdxi_text_upper(upper, sizeof upper, p->type_name); /* as operators know it */
        return pdxi_refuse(why, PDX_EINVAL,
                           PDXI_STATE_FAILED
                           "%s state index length mismatch: src=%zu, dst=%zu (component %zu). Pass "
                           "one destination for each source.",
                           upper, l->src.n, l->dst.n, l->component);
    }
    if (l->route->flags & PDX_ROUTE_TRUNCATE_PAGED)
        return 0;
    return pdxi_refuse(why, PDX_EINVAL,
                       PDXI_STATE_FAILED
                       "State index length mismatch for %s: src=%zu dst=%zu (component "
                       "%zu). Pass one destination for each source, or create the route with "
                       "PDX_ROUTE_TRUNCATE_PAGED.",
                       p->type_name, l->src.n, l->dst.n, l->component);
}

/* Judges the span of the side whose ring is known. */
static int lists_check_one_ring(const struct lists *l, struct pdxi_send_entries *entries,
                                struct pdx_error *why)
{
    bool is_local = l->part->local_ring.entries > 0;
    const struct pdxi_ring *ring = is_local ? &l->part->local_ring : &l->part->remote_ring;
    const struct pdx_index_list *list = is_local ? &l->src : &l->dst;
    const char *wrong = NULL;

    if (ring->entries == 0 ||
        pdxi_ring_span_expand(ring, list->idx, list->n, entries->local + entries->n, &wrong) >= 0)
        return 0;
    return pdxi_refuse(why, PDX_EINVAL, PDXI_STATE_FAILED "%s, %s: %s.", l->what,
                       is_local ? "src" : "dst", wrong);
}

/* Writes the live entries of both spans behind those of earlier components. */
static int lists_expand(const struct lists *l, struct pdxi_send_entries *entries,
                        struct pdx_items *ret, struct pdx_error *why)
{
    const struct pdxi_ring *local = &l->part->local_ring;
    const struct pdxi_ring *remote = &l->part->remote_ring;
    size_t room = PDXI_RING_MAX - entries->n;
    const char *wrong = NULL;
    const char *side = "src";
    int n, m = 0;

    if (local->entries > room || remote->entries > room)
        return pdxi_refuse(why, PDX_EINVAL,
                           PDXI_STATE_FAILED
                           "%s: the rings of one send have more than %d entries. Send the "
                           "components in several calls; idx NULL leaves one out.",
                           l->what, PDXI_RING_MAX);
    /* A pipeline stage without its layers knows the other side's ring only. */
    if (local->entries == 0 || remote->entries == 0)
        return lists_check_one_ring(l, entries, why);
    n = pdxi_ring_span_expand(local, l->src.idx, l->src.n, entries->local + entries->n, &wrong);
    if (n >= 0) {
        side = "dst";
        m = pdxi_ring_span_expand(remote, l->dst.idx, l->dst.n, entries->remote + entries->n,
                                  &wrong);
    }
    if (n < 0 || m < 0)
        return pdxi_refuse(why, PDX_EINVAL, PDXI_STATE_FAILED "%s, %s: %s.", l->what, side, wrong);
    if (n != m)
        return pdxi_refuse(why, PDX_EINVAL,
                           PDXI_STATE_FAILED
                           "%s: the span of src has %d live entries, that of dst %d. Offer as many "
                           "as are sent.",
                           l->what, n, m);
    *ret = (struct pdx_items){.local = entries->local + entries->n,
                              .remote = entries->remote + entries->n,
                              .n = (size_t)n};
    entries->n += (size_t)n;
    return 0;
}

static int lists_judge(const struct lists *l, struct pdxi_send_entries *entries,
                       struct pdx_items *ret, struct pdx_error *why)
{
    bool ring = l->part->type_flags & PDX_STATE_RING_SPAN;
    int rc;

    if ((rc = lists_check_number(l, why)) < 0)
        return rc;
    /* A type that may have no index has its own words for one empty list. */
    if ((l->part->min_indices > 0 || ring || !l->src.idx || !l->dst.idx) &&
        (rc = lists_check_presence(l, why)) < 0)
        return rc;
    if (ring)
        return lists_expand(l, entries, ret, why);
    if ((rc = lists_check_lengths(l, why)) < 0)
        return rc;
    *ret = (struct pdx_items){
        .local = l->src.idx, .remote = l->dst.idx, .n = l->src.n < l->dst.n ? l->src.n : l->dst.n};
    return 0;
}

int pdxi_send_lists(const struct pdx_route *route, size_t component, struct pdx_index_list src,
                    struct pdx_index_list dst, struct pdxi_send_entries *entries,
                    struct pdx_items *ret, struct pdx_error *why)
{
    struct lists l = {.route = route,
                      .part = &route->components[component],
                      .component = component,
                      .src = src,
                      .dst = dst};
    int rc;

    (void)snprintf(l.what, sizeof l.what, "component %zu (%s)", component, l.part->type_name);
    if ((rc = pdxi_route_check_list(l.what, "src", src, why)) < 0 ||
        (rc = pdxi_route_check_list(l.what, "dst", dst, why)) < 0)
        return rc;
    *ret = (struct pdx_items){.n = 0};
    if ((!src.idx && !dst.idx) ||
        (l.part->min_indices == 0 && src.idx && dst.idx && src.n == 0 && dst.n == 0))
        return 0;
    return lists_judge(&l, entries, ret, why);
}
