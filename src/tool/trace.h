/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to play: from a trace file (one JSON object a line with timestamp
 * in milliseconds, input_length and output_length in tokens; other keys are
 * ignored), or from a generator with a seed.
 */
#ifndef PDX_TOOL_TRACE_H
#define PDX_TOOL_TRACE_H

#include <pdx/error.h>

struct tool_request {
    uint64_t timestamp_ms;
    uint32_t input_length; /* tokens, at least 1 */
    uint32_t output_length;
};

struct tool_trace {
    struct tool_request *requests; /* owned */
    size_t n;
};

/* Reads at most `max` requests (0: all). Errors: PDX_EINVAL naming file, line and what is wrong
 * there; PDX_ESYS when the file cannot be read; PDX_ENOMEM. */
int tool_trace_load(const char *path, size_t max, struct tool_trace *ret, struct pdx_error *why);
/* The same from memory; `name` is for messages. */
int tool_trace_parse(const char *text, size_t len, const char *name, size_t max,
                     struct tool_trace *ret, struct pdx_error *why);
/* n requests with Poisson arrivals and log-normal lengths around mean_input tokens; the same seed
 * gives the same requests on every machine. Errors: PDX_EINVAL (a number outside its limits, which
 * the sentence has), PDX_ENOMEM. */
int tool_trace_generate(size_t n, uint64_t seed, uint32_t mean_input, double requests_per_s,
                        struct tool_trace *ret, struct pdx_error *why);
void tool_trace_fini(struct tool_trace *t);

#endif
