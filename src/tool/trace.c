/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace files line by line through jansson, each line parsed for itself so
 * that a sentence can name it.
 */
#include "tool/trace.h"

#include "tool/file.h"
#include "tool/refuse.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_FILE_MAX   ((size_t)256 << 20)
#define TRACE_LINE_MAX   ((size_t)64 << 10)
#define TRACE_TOKENS_MAX (1u << 27)
#define TRACE_TIME_MAX   (UINT64_C(1) << 53) /* whole numbers that a JSON double can carry */

/* Where a line comes from, for its sentences. */
struct trace_line {
    const char *name;
    size_t number; /* from 1 */
};

static int trace_key(const json_t *line, const struct trace_line *at, const char *key, uint64_t min,
                     uint64_t max, uint64_t *ret, struct pdx_error *why)
{
    const json_t *v = json_object_get(line, key);
    json_int_t n = json_is_integer(v) ? json_integer_value(v) : -1;

    /* Some traces carry milliseconds with a fraction. */
    if (json_is_real(v) && json_real_value(v) >= 0 && json_real_value(v) <= (double)TRACE_TIME_MAX)
        n = (json_int_t)json_real_value(v);
    if (n >= 0 && (uint64_t)n >= min && (uint64_t)n <= max) {
        *ret = (uint64_t)n;
        return 0;
    }
    return tool_refuse(why, PDX_EINVAL,
                       "%s, line %zu: key \"%s\" %s; it must be a number from %llu to %llu",
                       at->name, at->number, key,
                       !v                  ? "is missing"
                       : json_is_number(v) ? "is out of range"
                                           : "is not a number",
                       (unsigned long long)min, (unsigned long long)max);
}

static int trace_request(const json_t *line, const struct trace_line *at, struct tool_request *ret,
                         struct pdx_error *why)
{
    uint64_t input, output;
    int r = trace_key(line, at, "timestamp", 0, TRACE_TIME_MAX, &ret->timestamp_ms, why);

    if (r == 0)
        r = trace_key(line, at, "input_length", 1, TRACE_TOKENS_MAX, &input, why);
    if (r == 0)
        r = trace_key(line, at, "output_length", 0, TRACE_TOKENS_MAX, &output, why);
    if (r < 0)
        return r;
    ret->input_length = (uint32_t)input;
    ret->output_length = (uint32_t)output;
    return 0;
}

static int trace_line(const char *text, size_t len, const struct trace_line *at,
                      struct tool_request *ret, struct pdx_error *why)
{
    json_error_t e;
    json_t *line;
    int r;

    if (len > TRACE_LINE_MAX)
        return tool_refuse(why, PDX_EINVAL, "%s, line %zu is %zu bytes long; it may have %zu",
                           at->name, at->number, len, TRACE_LINE_MAX);
    line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!line && json_error_code(&e) == json_error_out_of_memory)
        return tool_refuse(why, PDX_ENOMEM, "no memory to read %s", at->name);
    if (!line)
        return tool_refuse(why, PDX_EINVAL, "%s, line %zu is not JSON: column %d: %s", at->name,
                           at->number, e.column, e.text);
    if (json_is_object(line))
        r = trace_request(line, at, ret, why);
    else
        r = tool_refuse(why, PDX_EINVAL, "%s, line %zu must be one JSON object {...}", at->name,
                        at->number);
    json_decref(line);
    return r;
}

static int trace_add(struct tool_trace *t, size_t *cap, const struct tool_request *request)
{
    if (t->n == *cap) {
        size_t want = *cap ? 2 * *cap : 256;
        struct tool_request *grown = reallocarray(t->requests, want, sizeof *grown);

        if (!grown)
            return PDX_ENOMEM;
        t->requests = grown;
        *cap = want;
    }
    t->requests[t->n++] = *request;
    return 0;
}

static bool trace_is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!strchr(" \t\r", text[i]) || text[i] == '\0')
            return false;
    }
    return true;
}

static int trace_lines(const char *text, size_t len, const char *name, size_t max,
                       struct tool_trace *t, struct pdx_error *why)
{
    struct trace_line at = {.name = name, .number = 1};
    const char *end = text + len;
    size_t cap = 0;

    for (; text < end && (max == 0 || t->n < max); at.number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line_len = (size_t)((newline ? newline : end) - text);
        struct tool_request request;
        int r;

        if (!trace_is_blank(text, line_len)) {
            r = trace_line(text, line_len, &at, &request, why);
            if (r < 0)
                return r;
            if (trace_add(t, &cap, &request) < 0)
                return tool_refuse(why, PDX_ENOMEM, "no memory for the requests of %s", name);
        }
        text += line_len + (newline ? 1 : 0);
    }
    if (t->n == 0)
        return tool_refuse(
            why, PDX_EINVAL,
            "%s has no requests; it must have one JSON object a line with timestamp, "
            "input_length and output_length",
            name);
    return 0;
}

int tool_trace_parse(const char *text, size_t len, const char *name, size_t max,
                     struct tool_trace *ret, struct pdx_error *why)
{
    struct tool_trace t = {0};
    int r = trace_lines(text, len, name, max, &t, why);

    if (r < 0) {
        tool_trace_fini(&t);
        return r;
    }
    *ret = t;
    return 0;
}

int tool_trace_load(const char *path, size_t max, struct tool_trace *ret, struct pdx_error *why)
{
    char *text;
    size_t len;
    int r = tool_file_read(path, TRACE_FILE_MAX, &text, &len, why);

    if (r < 0)
        return r;
    r = tool_trace_parse(text, len, path, max, ret, why);
    free(text);
    return r;
}

void tool_trace_fini(struct tool_trace *t)
{
    free(t->requests);
    *t = (struct tool_trace){0};
}
