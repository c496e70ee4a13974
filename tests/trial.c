/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <stdlib.h>

void trial_open(struct trial *t, struct conf *c, enum pdx_op op, uint64_t seed)
{
    struct ts_pair *p = &c->pair;

    t->c = c;
    t->op = op;
    t->want = malloc(p->ma.len);
    assert_non_null(t->want);
    ts_fill(p->ma.p, 0, p->ma.len, 2 * seed);
    ts_fill(p->mb.p, 0, p->mb.len, 2 * seed + 1);
    memcpy(t->want, op == PDX_WRITE ? p->mb.p : p->ma.p, p->ma.len);
}

void trial_move(struct trial *t, uint64_t local, uint64_t remote, uint64_t len)
{
    if (t->op == PDX_WRITE)
        memcpy(t->want + remote, t->c->pair.ma.p + local, len);
    else
        memcpy(t->want + local, t->c->pair.mb.p + remote, len);
}

void trial_close(struct trial *t, const char *what, uint64_t seed)
{
    struct ts_pair *p = &t->c->pair;
    const uint8_t *got = t->op == PDX_WRITE ? p->mb.p : p->ma.p;
    size_t i = 0;

    while (i < p->ma.len && got[i] == t->want[i])
        i++;
    free(t->want);
    if (i < p->ma.len)
        ts_fail(__FILE__, __LINE__, "%s, op %d, seed %llu: byte %zu is wrong", what, t->op,
                (unsigned long long)seed, i);
}
