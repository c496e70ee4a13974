/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_case.h.
 */
#include "vectors_case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CASE_REAL_MAX 9007199254740992.0 /* 2^53: whole numbers up to here are exact */

void vec_malformed(struct vec_case *c, const char *format, ...)
{
    va_list args;

    if (c->malformed[0])
        return;
    va_start(args, format);
    (void)vsnprintf(c->malformed, sizeof c->malformed, format, args);
    va_end(args);
}

static const char *case_string(struct vec_case *c, const char *key)
{
    const char *s = json_string_value(json_object_get(c->json, key));

    if (!s)
        vec_malformed(c, "%s is not a string", key);
    return s ? s : "";
}

static const json_t *case_object(struct vec_case *c, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_object(v))
        vec_malformed(c, "%s is not an object", key);
    return json_is_object(v) ? v : NULL;
}

void vec_case_init(struct vec_case *c, const json_t *json, size_t pos)
{
    const char *id = json_string_value(json_object_get(json, "id"));

    *c = (struct vec_case){.json = json};
    if (id)
        (void)snprintf(c->id, sizeof c->id, "%s", id);
    else
        (void)snprintf(c->id, sizeof c->id, "case %zu", pos);
    c->op = case_string(c, "op");
    c->kind = case_string(c, "kind");
    c->policy = case_string(c, "policy");
    c->class_name = case_string(c, "class");
    c->in = case_object(c, json, "in");
    c->out = case_object(c, json, "out");
    c->later = json_object_get(json, "out_later");
    c->local = json_object_get(c->in, "local");
    c->peer = json_object_get(c->in, "peer");
}

int64_t vec_int(struct vec_case *c, const json_t *v, const char *what)
{
    if (json_is_integer(v))
        return json_integer_value(v);
    if (json_is_real(v)) {
        double d = json_real_value(v);

        if (d >= -CASE_REAL_MAX && d <= CASE_REAL_MAX && d == (double)(int64_t)d)
            return (int64_t)d;
    }
    vec_malformed(c, "%s is not a whole number of 64 bits", what);
    return 0;
}

uint64_t vec_len(struct vec_case *c, const json_t *v, const char *what, uint64_t missing)
{
    int64_t n;

    if (!v || json_is_null(v))
        return missing;
    n = vec_int(c, v, what);
    if (n < 0)
        vec_malformed(c, "%s is negative", what);
    return n < 0 ? 0 : (uint64_t)n;
}

uint32_t vec_u32(struct vec_case *c, const json_t *object, const char *key, uint32_t missing)
{
    uint64_t n = vec_len(c, json_object_get(object, key), key, missing);

    if (n > UINT32_MAX)
        vec_malformed(c, "%s is beyond 32 bits", key);
    return n > UINT32_MAX ? 0 : (uint32_t)n;
}

static const json_t *case_as_list(struct vec_case *c, const json_t *v, const char *what)
{
    if (!v || json_is_null(v))
        return NULL;
    if (!json_is_array(v))
        vec_malformed(c, "%s is not a list", what);
    return json_is_array(v) ? v : NULL;
}

const json_t *vec_list(struct vec_case *c, const json_t *object, const char *key)
{
    return case_as_list(c, json_object_get(object, key), key);
}

const json_t *vec_list_at(struct vec_case *c, const json_t *list, size_t i, const char *what)
{
    return case_as_list(c, json_array_get(list, i), what);
}

void vec_indices_init(struct vec_indices *x, struct vec_case *c, const json_t *list,
                      const char *what)
{
    const json_t *from = case_as_list(c, list, what);

    *x = (struct vec_indices){.n = json_array_size(from)};
    if (!from)
        return;
    x->idx = calloc(x->n + 1, sizeof *x->idx);
    if (!x->idx) {
        x->n = 0;
        vec_malformed(c, "%s: no memory for %zu indices", what, json_array_size(from));
    }
    for (size_t i = 0; i < x->n; i++) {
        int64_t v = vec_int(c, json_array_get(from, i), what);

        if (v < INT32_MIN || v > INT32_MAX)
            x->unheld = true;
        else
            x->idx[i] = (int32_t)v;
    }
}

void vec_indices_fini(struct vec_indices *x)
{
    free(x->idx);
    *x = (struct vec_indices){0};
}
