/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_plan.h.
 */
#include "vectors_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAN_TOLD 6 /* pieces that are told when plans differ */

void vec_plan_fini(struct vec_plan *p)
{
    free(p->at);
    *p = (struct vec_plan){0};
}

void vec_plan_add(struct vec_plan *p, const struct vec_piece *piece)
{
    if (piece->len == 0 || p->full)
        return;
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 64;
        struct vec_piece *at = cap <= VEC_PIECES_MAX ? realloc(p->at, cap * sizeof *at) : NULL;

        if (!at) {
            p->full = true;
            return;
        }
        p->at = at;
        p->cap = cap;
    }
    p->at[p->n++] = *piece;
}

static int plan_order_int(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int plan_order_tensor(struct vec_tensor a, struct vec_tensor b)
{
    int order = plan_order_int(a.list, b.list);

    return order ? order : plan_order_int(a.pos, b.pos);
}

/* Wraps around with offsets that no tensor has, which only a file can name. */
static int64_t plan_distance(const struct vec_piece *p)
{
    return (int64_t)((uint64_t)p->dst - (uint64_t)p->src);
}

static int plan_order(const void *a, const void *b)
{
    const struct vec_piece *x = a, *y = b;
    int order = plan_order_tensor(x->from, y->from);

    if (!order)
        order = plan_order_tensor(x->to, y->to);
    if (!order)
        order = plan_order_int(plan_distance(x), plan_distance(y));
    if (!order)
        order = plan_order_int(x->src, y->src);
    return order ? order : plan_order_int(x->len, y->len);
}

static bool plan_touch(const struct vec_piece *a, const struct vec_piece *b)
{
    int64_t end;

    return plan_order_tensor(a->from, b->from) == 0 && plan_order_tensor(a->to, b->to) == 0 &&
           plan_distance(a) == plan_distance(b) && !__builtin_add_overflow(a->src, a->len, &end) &&
           end == b->src && !__builtin_add_overflow(a->len, b->len, &end);
}

void vec_plan_merge(struct vec_plan *p)
{
    size_t kept = 0;

    if (p->n)
        qsort(p->at, p->n, sizeof p->at[0], plan_order);
    for (size_t i = 0; i < p->n; i++) {
        if (kept && plan_touch(&p->at[kept - 1], &p->at[i]))
            p->at[kept - 1].len += p->at[i].len;
        else
            p->at[kept++] = p->at[i];
    }
    p->n = kept;
}

struct plan_text {
    char *at;
    size_t cap;
    size_t len;
    size_t told;
    size_t untold;
};

static void text_add(struct plan_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void text_add(struct plan_text *t, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(t->at + t->len, t->cap - t->len, format, args);
    va_end(args);
    if (n > 0)
        t->len = (size_t)n < t->cap - t->len ? t->len + (size_t)n : t->cap - 1;
}

static void text_tensor(struct plan_text *t, struct vec_tensor x)
{
    if (x.list == VEC_KV)
        text_add(t, "kv %u", x.pos);
    else if (x.list == VEC_AUX)
        text_add(t, "aux %u", x.pos);
    else
        text_add(t, "component %d tensor %u", x.list, x.pos);
}

static void text_piece(struct plan_text *t, const char *what, const struct vec_piece *p)
{
    if (t->told == PLAN_TOLD) {
        t->untold++;
        return;
    }
    t->told++;
    text_add(t, "\n    %s: ", what);
    text_tensor(t, p->from);
    text_add(t, " -> ");
    text_tensor(t, p->to);
    text_add(t, " [%lld, %lld, %lld]", (long long)p->src, (long long)p->dst, (long long)p->len);
}

bool vec_plan_differs(const struct vec_plan *want, const struct vec_plan *got, char *ret_text,
                      size_t cap)
{
    struct plan_text t = {.at = ret_text, .cap = cap};
    size_t w = 0, g = 0;

    text_add(&t, "pieces: %zu expected, %zu sent", want->n, got->n);
    while (w < want->n || g < got->n) {
        int order;

        if (w == want->n)
            order = 1;
        else if (g == got->n)
            order = -1;
        else
            order = plan_order(&want->at[w], &got->at[g]);
        if (order < 0)
            text_piece(&t, "expected", &want->at[w]);
        if (order > 0)
            text_piece(&t, "sent    ", &got->at[g]);
        w += order <= 0;
        g += order >= 0;
    }
    if (t.untold)
        text_add(&t, "\n    and %zu more", t.untold);
    return t.told > 0;
}
