/* SPDX-License-Identifier: Apache-2.0
 *
 * vectors FILE... - runs the planning cases of vector files
 * (tests/vectors/README.md) and tells those that fail. The last line is
 * "N passed, N failed, N skipped"; the exit status is 1 when a case failed, 2
 * when a file cannot be read, else 0.
 */
#include "vectors_case.h"
#include "vectors_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_STATUS 2
#define KINDS_MAX    64 /* kinds of skipped cases that are told apart */

/* Kinds of cases that are skipped. */
struct skipped {
    struct {
        char kind[64];
        char reason[128];
        size_t n;
    } kinds[KINDS_MAX];
    size_t nkinds;
    size_t others;
};

struct tally {
    size_t passed;
    size_t failed;
    size_t skipped;
    struct skipped skips;
};

static void skipped_add(struct skipped *s, const char *kind, const char *reason)
{
    size_t i = 0;

    while (i < s->nkinds && strncmp(s->kinds[i].kind, kind, sizeof s->kinds[i].kind - 1) != 0)
        i++;
    if (i == KINDS_MAX) {
        s->others++;
        return;
    }
    if (i == s->nkinds) {
        s->nkinds++;
        (void)snprintf(s->kinds[i].kind, sizeof s->kinds[i].kind, "%s", kind);
        (void)snprintf(s->kinds[i].reason, sizeof s->kinds[i].reason, "%.*s",
                       (int)sizeof s->kinds[i].reason - 1, reason);
    }
    s->kinds[i].n++;
}

static void tally_case(struct tally *t, const json_t *json, size_t pos)
{
    char text[VEC_TEXT_MAX];
    struct vec_case c;

    vec_case_init(&c, json, pos);
    switch (vec_judge(&c, text)) {
    case VEC_PASSED:
        t->passed++;
        break;
    case VEC_FAILED:
        t->failed++;
        printf("%s: %s\n", c.id, text);
        break;
    case VEC_SKIPPED:
        t->skipped++;
        skipped_add(&t->skips, c.kind, text);
        break;
    }
}

/* Whole numbers beyond 64 bits, which may stand in cases that are not run, become reals. */
static json_t *file_parse(const char *path, json_error_t *why)
{
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, why);

    if (!root && json_error_code(why) == json_error_numeric_overflow)
        root = json_load_file(path, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, why);
    return root;
}

static bool tally_file(struct tally *t, const char *path)
{
    json_error_t why;
    json_t *root = file_parse(path, &why);
    const json_t *cases = json_object_get(root, "cases");
    bool good = json_is_array(cases);
    const json_t *json;
    size_t i;

    if (!root)
        fprintf(stderr, "%s:%d: %s\n", path, why.line, why.text);
    else if (!good)
        fprintf(stderr, "%s: there is no list \"cases\"\n", path);
    json_array_foreach(cases, i, json) tally_case(t, json, i);
    json_decref(root);
    return good;
}

static void tally_print(const struct tally *t)
{
    for (size_t i = 0; i < t->skips.nkinds; i++)
        printf("skipped %s (%zu): %s\n", t->skips.kinds[i].kind, t->skips.kinds[i].n,
               t->skips.kinds[i].reason);
    if (t->skips.others)
        printf("skipped other kinds (%zu)\n", t->skips.others);
    printf("%zu passed, %zu failed, %zu skipped\n", t->passed, t->failed, t->skipped);
}

int main(int argc, char **argv)
{
    struct tally t = {.passed = 0};
    bool read = true;

    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE...\n", argv[0]);
        return USAGE_STATUS;
    }
    for (int i = 1; i < argc; i++)
        read = tally_file(&t, argv[i]) && read;
    tally_print(&t);
    if (!read)
        return USAGE_STATUS;
    return t.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
