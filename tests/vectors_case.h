/* SPDX-License-Identifier: Apache-2.0
 *
 * One case of a vector file (tests/vectors/README.md), and how its values are
 * read. Files come from other hands, so every value may be missing or of
 * another sort. The first thing that is wrong stays in the case, and reading
 * goes on with zeros: who reads needs to look once, at the end.
 */
#ifndef PDX_VECTORS_CASE_H
#define PDX_VECTORS_CASE_H

#include <jansson.h>
#include <pdx/pdx.h>

struct vec_case {
    const json_t *json; /* borrowed, as everything that is taken out of it */
    char id[128];
    const char *kind;
    const char *op;
    const char *class_name;
    const char *policy;
    const json_t *in;
    const json_t *out;
    const json_t *later; /* out_later, or NULL */
    const json_t *local; /* of `in`; NULL where the op has none */
    const json_t *peer;
    char malformed[256]; /* empty: nothing was wrong so far */
};

/* `pos` is the place in the file, which stands for an id that is missing. */
void vec_case_init(struct vec_case *c, const json_t *json, size_t pos);

/* Notes what is wrong with the case, unless something else was before. */
void vec_malformed(struct vec_case *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A whole number of 64 bits; `what` names it in a complaint. */
int64_t vec_int(struct vec_case *c, const json_t *v, const char *what);
/* A size or a count. NULL and null give `missing`. */
uint64_t vec_len(struct vec_case *c, const json_t *v, const char *what, uint64_t missing);
uint32_t vec_u32(struct vec_case *c, const json_t *object, const char *key, uint32_t missing);

/* The list at a key, or at a place of a list; NULL when it is missing or null. The other functions
 * of jansson take NULL for an empty list. */
const json_t *vec_list(struct vec_case *c, const json_t *object, const char *key);
const json_t *vec_list_at(struct vec_case *c, const json_t *list, size_t i, const char *what);

/* Page, slot or row numbers, in the library's terms. */
struct vec_indices {
    int32_t *idx; /* owned; NULL: none */
    size_t n;
    bool unheld; /* one of them is beyond what an index can be */
};

/* `list` NULL or null: none. */
void vec_indices_init(struct vec_indices *x, struct vec_case *c, const json_t *list,
                      const char *what);
void vec_indices_fini(struct vec_indices *x);

#endif
