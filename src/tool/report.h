/* SPDX-License-Identifier: Apache-2.0
 *
 * What prefill measured, and how it is told: a progress line while it runs, then
 * tables or one JSON object. Also the notes (what was made smaller) and the lanes.
 */
#ifndef PDX_TOOL_REPORT_H
#define PDX_TOOL_REPORT_H

#include "tool/group.h"

#include <jansson.h>
#include <pdx/pdx.h>

struct tool_sample {
    uint64_t submitted_ns;
    uint64_t began_ns; /* first byte posted */
    uint64_t ended_ns;
};

struct tool_tally { /* of one pool: the KV cache, a state component, aux */
    char name[PDX_STATE_TYPE_MAX + 1];
    uint64_t transfers;
    uint64_t failed;
    uint64_t bytes; /* confirmed by the peer */
    uint64_t segments;
    uint64_t retries;            /* times a transfer went on over a new connection */
    struct tool_sample *samples; /* owned; of transfers that are done */
    size_t nsamples;
    size_t cap;
};

struct tool_stage_tally { /* of one prefill stage */
    uint32_t first;       /* layer */
    uint32_t end;         /* one past the last */
    uint64_t bytes;       /* confirmed by the peer */
};

#define TOOL_NOTES_MAX 16

struct tool_report {
    struct tool_tally pools[TOOL_POOLS_MAX];
    size_t npools;
    struct tool_stage_tally stages[TOOL_PP_MAX];
    uint32_t nstages;
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t requests; /* whose bytes were sent */
    uint64_t tokens;
    struct pdx_lane_info lanes[8];
    size_t nlanes;
    char notes[TOOL_NOTES_MAX][256];
    size_t nnotes;
};

void tool_report_init(struct tool_report *r, const struct tool_model *m);
void tool_report_fini(struct tool_report *r);
/* The stages of prefill, whose bytes the caller of tool_report_add counts. */
void tool_report_stages(struct tool_report *r, const struct tool_group *prefill);
/* Adds a terminal transfer of pool `pool`. A sample that finds no memory is left out. */
void tool_report_add(struct tool_report *r, size_t pool, const struct pdx_transfer_info *info);
void tool_report_note(struct tool_report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void tool_report_lanes(struct tool_report *r, const struct pdx_peer *peer);

uint64_t tool_report_bytes(const struct tool_report *r);
/* ns during which at least one of the samples was between its first byte and its end. Sorts them.
 */
uint64_t tool_samples_busy(struct tool_sample *s, size_t n);
/* The q-quantile (0 .. 1) of submitted to ended: the smallest one that q of all do not exceed. 0
 * without samples. Sorts them. */
uint64_t tool_samples_latency(struct tool_sample *s, size_t n, double q);

/* Tables of pools and lanes, and the notes. */
void tool_report_print(struct tool_report *r, FILE *out);
/* The same as members of a new object; NULL for want of memory. */
json_t *tool_report_json(struct tool_report *r);

/* A line on stderr that is rewritten on a terminal, and repeated every few seconds elsewhere. */
struct tool_progress {
    bool off;
    bool tty;
    bool shown; /* a line without end is on the terminal */
    uint64_t next_ns;
};

void tool_progress_init(struct tool_progress *p, bool off);
/* Whether a line is due now; if so the caller makes one. */
bool tool_progress_due(struct tool_progress *p, uint64_t now_ns);
void tool_progress_line(struct tool_progress *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Removes the line before other output. */
void tool_progress_end(struct tool_progress *p);

#endif
