/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors_judge.h. The rules are those of the policies in
 * tests/vectors/README.md.
 */
#include "vectors_judge.h"

#include "vectors_run.h"
#include "vectors_want.h"

#include <stdio.h>
#include <string.h>

/* What the original said when it cut lists, and what follows it in the same words here. */
#define JUDGE_CUT "State index length mismatch for "

struct judge {
    struct vec_case *c;
    const struct vec_op *op;
    char *text; /* VEC_TEXT_MAX */
};

static bool judge_say(const struct judge *j, const char *head, const char *text)
{
    (void)snprintf(j->text, VEC_TEXT_MAX, "%s%s", head, text);
    return false;
}

/* Refused without a byte, which vec_op.run has looked at. */
static bool judge_is_refused(const struct judge *j, const struct vec_outcome *o)
{
    if (o->broken)
        return judge_say(j, "", o->text);
    return o->refused || judge_say(j, "a refusal was expected, but it was sent", "");
}

static bool judge_is_plan(const struct judge *j, const struct vec_outcome *o,
                          const struct vec_want *w)
{
    if (w->refused || o->broken)
        return judge_is_refused(j, o);
    if (o->refused)
        return judge_say(j, "refused: ", o->text);
    return !vec_plan_differs(&w->plan, &o->plan, j->text, VEC_TEXT_MAX);
}

/* The warnings of the case about lists that were cut came here too. */
static bool judge_is_warned(const struct judge *j, const struct vec_outcome *o)
{
    const json_t *log = vec_list(j->c, j->c->out, "log");
    const json_t *entry;
    size_t i;

    json_array_foreach(log, i, entry)
    {
        const char *line = json_string_value(json_array_get(entry, 1));

        if (line && strncmp(line, JUDGE_CUT, strlen(JUDGE_CUT)) == 0 && !strstr(o->log, line))
            return judge_say(j, "the log lacks: ", line);
    }
    return true;
}

/* --- Policies --- */

/* Runs once. Returns whether the outcome is what `result` has; where `may_refuse`, a refusal is as
 * good. */
static bool judge_once(const struct judge *j, uint32_t flags, const json_t *result, bool may_refuse)
{
    struct vec_outcome o = {.refused = false};
    struct vec_want w;
    bool good;

    vec_want_init(&w, j->c, result);
    j->op->run(j->c, flags, &o);
    good = (may_refuse && o.refused && !o.broken) || judge_is_plan(j, &o, &w);
    vec_outcome_fini(&o);
    vec_want_fini(&w);
    return good;
}

static bool judge_match(const struct judge *j)
{
    return judge_once(j, 0, j->c->out, false);
}

static bool judge_later(const struct judge *j)
{
    return judge_once(j, 0, j->c->later, false);
}

static bool judge_refused(const struct judge *j)
{
    struct vec_outcome o = {.refused = false};
    bool good;

    j->op->run(j->c, 0, &o);
    good = judge_is_refused(j, &o);
    vec_outcome_fini(&o);
    return good;
}

static bool judge_match_or_reject(const struct judge *j)
{
    return judge_once(j, 0, j->c->out, true);
}

/* Lists that the original cut: refused by default; cut alike, and said so, where that is wanted. */
static bool judge_cut(const struct judge *j)
{
    struct vec_outcome o = {.refused = false};
    struct vec_want w;
    bool good;

    if (!judge_refused(j))
        return false;
    vec_want_init(&w, j->c, j->c->out);
    j->op->run(j->c, PDX_ROUTE_TRUNCATE_PAGED, &o);
    good = judge_is_plan(j, &o, &w) && judge_is_warned(j, &o);
    vec_outcome_fini(&o);
    vec_want_fini(&w);
    return good;
}

static bool judge_match_or_strict(const struct judge *j)
{
    if (strcmp(j->c->class_name, "truncate_warn") == 0)
        return judge_cut(j);
    return judge_once(j, 0, j->c->out, true) &&
           judge_once(j, PDX_ROUTE_TRUNCATE_PAGED, j->c->out, true);
}

static const struct {
    const char *name;
    bool (*judge)(const struct judge *j);
} policies[] = {
    {"match", judge_match},
    {"match_error", judge_refused},
    {"reject", judge_refused},
    {"match_later", judge_later},
    {"match_or_strict", judge_match_or_strict},
    {"match_or_reject", judge_match_or_reject},
};

enum vec_verdict vec_judge(struct vec_case *c, char ret_text[VEC_TEXT_MAX])
{
    struct judge j = {.c = c, .op = vec_op_find(c->op), .text = ret_text};
    bool good = false;
    size_t i = 0;

    ret_text[0] = '\0';
    if (!c->malformed[0] && (!j.op || !j.op->run)) {
        (void)judge_say(&j, j.op ? j.op->reason : "an operation that is not known here", "");
        return VEC_SKIPPED;
    }
    while (i < sizeof policies / sizeof policies[0] && strcmp(policies[i].name, c->policy) != 0)
        i++;
    if (!c->malformed[0] && i == sizeof policies / sizeof policies[0]) {
        (void)judge_say(&j, "a policy that is not known here: ", c->policy);
        return VEC_SKIPPED;
    }
    if (!c->malformed[0] && policies[i].judge == judge_later && !json_is_object(c->later)) {
        (void)judge_say(&j, "what later versions do is told in words only", "");
        return VEC_SKIPPED;
    }
    if (!c->malformed[0])
        good = policies[i].judge(&j);
    if (c->malformed[0]) {
        (void)judge_say(&j, "the case is malformed: ", c->malformed);
        return VEC_FAILED;
    }
    return good ? VEC_PASSED : VEC_FAILED;
}
