/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects samples and prints them; see report.h.
 */
#include "tool/report.h"

#include "tool/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void tool_report_init(struct tool_report *r, const struct tool_model *m)
{
    *r = (struct tool_report){.npools = tool_sizing_npools(m)};
    for (size_t i = 0; i < r->npools; i++)
        (void)snprintf(r->pools[i].name, sizeof r->pools[i].name, "%s",
                       i == 0              ? "kv"
                       : i < r->npools - 1 ? m->components[i - 1].type
                                           : "aux");
}

void tool_report_stages(struct tool_report *r, const struct tool_group *prefill)
{
    r->nstages = prefill->pp;
    for (uint32_t k = 0; k < prefill->pp; k++)
        r->stages[k] = (struct tool_stage_tally){.first = prefill->stages[k].first,
                                                 .end = prefill->stages[k].end};
}

void tool_report_fini(struct tool_report *r)
{
    for (size_t i = 0; i < r->npools; i++)
        free(r->pools[i].samples);
    *r = (struct tool_report){0};
}

static void tally_sample(struct tool_tally *t, const struct pdx_transfer_info *info)
{
    if (t->nsamples == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct tool_sample *p = realloc(t->samples, cap * sizeof *p);

        if (!p)
            return;
        t->samples = p;
        t->cap = cap;
    }
    t->samples[t->nsamples++] = (struct tool_sample){
        .submitted_ns = info->submitted_ns,
        .began_ns = info->first_post_ns ? info->first_post_ns : info->submitted_ns,
        .ended_ns = info->completed_ns,
    };
}

void tool_report_add(struct tool_report *r, size_t pool, const struct pdx_transfer_info *info)
{
    struct tool_tally *t = &r->pools[pool];

    t->transfers++;
    t->failed += info->code != PDX_DONE;
    t->bytes += info->bytes_done;
    t->segments += info->segments;
    t->retries += info->retries;
    if (info->code == PDX_DONE)
        tally_sample(t, info);
}

void tool_report_note(struct tool_report *r, const char *fmt, ...)
{
    va_list ap;

    if (r->nnotes == TOOL_NOTES_MAX)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(r->notes[r->nnotes], sizeof r->notes[0], fmt, ap);
    va_end(ap);
    r->nnotes++;
}

void tool_report_lanes(struct tool_report *r, const struct pdx_peer *peer)
{
    size_t cap = sizeof r->lanes / sizeof r->lanes[0];
    size_t n = pdx_peer_lanes(peer, r->lanes, cap);

    r->nlanes = n < cap ? n : cap;
}

uint64_t tool_report_bytes(const struct tool_report *r)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < r->npools; i++)
        sum += r->pools[i].bytes;
    return sum;
}

static int sample_by_begin(const void *a, const void *b)
{
    uint64_t x = ((const struct tool_sample *)a)->began_ns;
    uint64_t y = ((const struct tool_sample *)b)->began_ns;

    return (x > y) - (x < y);
}

static int sample_by_latency(const void *a, const void *b)
{
    const struct tool_sample *p = a, *q = b;
    uint64_t x = p->ended_ns - p->submitted_ns, y = q->ended_ns - q->submitted_ns;

    return (x > y) - (x < y);
}

uint64_t tool_samples_busy(struct tool_sample *s, size_t n)
{
    uint64_t busy = 0, until = 0;

    if (n > 1)
        qsort(s, n, sizeof *s, sample_by_begin);
    for (size_t i = 0; i < n; i++) {
        uint64_t from = s[i].began_ns > until ? s[i].began_ns : until;

        if (s[i].ended_ns <= from)
            continue;
        busy += s[i].ended_ns - from;
        until = s[i].ended_ns;
    }
    return busy;
}

uint64_t tool_samples_latency(struct tool_sample *s, size_t n, double q)
{
    size_t pos;

    if (n == 0)
        return 0;
    qsort(s, n, sizeof *s, sample_by_latency);
    pos = (size_t)(q * (double)n);
    if ((double)pos == q * (double)n && pos > 0)
        pos--;
    if (pos >= n)
        pos = n - 1;
    return s[pos].ended_ns - s[pos].submitted_ns;
}

/* Busy time of all pools together; 0 for want of memory. */
static uint64_t report_busy(const struct tool_report *r)
{
    struct tool_sample *all;
    size_t n = 0;
    uint64_t busy;

    for (size_t i = 0; i < r->npools; i++)
        n += r->pools[i].nsamples;
    all = calloc(n ? n : 1, sizeof *all);
    if (!all)
        return 0;
    n = 0;
    for (size_t i = 0; i < r->npools; i++) {
        for (size_t k = 0; k < r->pools[i].nsamples; k++)
            all[n++] = r->pools[i].samples[k];
    }
    busy = tool_samples_busy(all, n);
    free(all);
    return busy;
}

static double report_rate(uint64_t bytes, uint64_t ns)
{
    return ns ? (double)bytes * 1e9 / (double)ns : 0;
}

/* Where nothing has finished there is no number. */
static const char *report_text_rate(char *buf, uint64_t bytes, uint64_t ns)
{
    return bytes && ns ? tool_text_rate(buf, report_rate(bytes, ns)) : "-";
}

static void report_latency_cell(struct tool_table *t, struct tool_tally *p, double q)
{
    char text[TOOL_TEXT_MAX];

    tool_table_cell(t, "%s",
                    p->nsamples
                        ? tool_text_duration(text, tool_samples_latency(p->samples, p->nsamples, q))
                        : "-");
}

static void report_row(struct tool_table *t, struct tool_tally *p)
{
    char text[TOOL_TEXT_MAX];

    tool_table_cell(t, "%s", p->name);
    tool_table_cell(t, "%s", tool_text_count(text, p->transfers));
    tool_table_cell(t, "%s", tool_text_size(text, p->bytes));
    tool_table_cell(t, "%s", tool_text_count(text, p->segments));
    tool_table_cell(t, "%s",
                    report_text_rate(text, p->bytes, tool_samples_busy(p->samples, p->nsamples)));
    report_latency_cell(t, p, 0.5);
    report_latency_cell(t, p, 0.99);
}

static void report_print_pools(struct tool_report *r, FILE *out)
{
    struct tool_table t;
    char text[TOOL_TEXT_MAX];
    uint64_t transfers = 0, segments = 0, bytes = tool_report_bytes(r);

    tool_table_init(&t, "component|>transfers|>bytes|>segments|>rate|>p50|>p99");
    for (size_t i = 0; i < r->npools; i++) {
        if (r->pools[i].transfers == 0)
            continue;
        report_row(&t, &r->pools[i]);
        transfers += r->pools[i].transfers;
        segments += r->pools[i].segments;
    }
    tool_table_rule(&t);
    tool_table_cell(&t, "total");
    tool_table_cell(&t, "%s", tool_text_count(text, transfers));
    tool_table_cell(&t, "%s", tool_text_size(text, bytes));
    tool_table_cell(&t, "%s", tool_text_count(text, segments));
    tool_table_cell(&t, "%s", report_text_rate(text, bytes, report_busy(r)));
    tool_table_cell(&t, "%s", "");
    tool_table_cell(&t, "%s", "");
    (void)tool_table_print(&t, 2, out);
    tool_table_fini(&t);
}

void tool_report_print(struct tool_report *r, FILE *out)
{
    char a[TOOL_TEXT_MAX], b[TOOL_TEXT_MAX], c[TOOL_TEXT_MAX];

    report_print_pools(r, out);
    (void)fprintf(out,
                  "\n  %llu request%s, %s tokens in %s; with filling and comparing %s\n"
                  "  rate: bytes over the time in which at least one of these transfers was under "
                  "way\n",
                  (unsigned long long)r->requests, tool_text_plural(r->requests),
                  tool_text_count(c, r->tokens), tool_text_duration(a, r->ended_ns - r->began_ns),
                  report_text_rate(b, tool_report_bytes(r), r->ended_ns - r->began_ns));
    for (uint32_t k = 0; r->nstages > 1 && k < r->nstages; k++)
        (void)fprintf(out, "  stage %u, layers %u to %u: %s\n", k, r->stages[k].first,
                      r->stages[k].end - 1, tool_text_size(a, r->stages[k].bytes));
    for (size_t i = 0; i < r->nlanes; i++)
        (void)fprintf(out, "  lane %s: %s, %s\n", r->lanes[i].name,
                      r->lanes[i].bytes_out ? tool_text_size(a, r->lanes[i].bytes_out) : "not used",
                      r->lanes[i].reason);
    for (size_t i = 0; i < r->nnotes; i++)
        (void)fprintf(out, "  note: %s\n", r->notes[i]);
}

static json_t *report_json_pool(struct tool_tally *p)
{
    double rate = report_rate(p->bytes, tool_samples_busy(p->samples, p->nsamples));

    return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:f}", "component", p->name, "transfers",
                     (json_int_t)p->transfers, "failed", (json_int_t)p->failed, "bytes",
                     (json_int_t)p->bytes, "segments", (json_int_t)p->segments, "retries",
                     (json_int_t)p->retries, "GBps", rate / 1e9, "p50_us",
                     (double)tool_samples_latency(p->samples, p->nsamples, 0.5) / 1e3, "p99_us",
                     (double)tool_samples_latency(p->samples, p->nsamples, 0.99) / 1e3);
}

json_t *tool_report_json(struct tool_report *r)
{
    json_t *pools = json_array(), *stages = json_array(), *lanes = json_array();
    json_t *notes = json_array();
    uint64_t bytes = tool_report_bytes(r), wall = r->ended_ns - r->began_ns;

    for (size_t i = 0; i < r->npools; i++) {
        if (r->pools[i].transfers)
            (void)json_array_append_new(pools, report_json_pool(&r->pools[i]));
    }
    for (uint32_t k = 0; k < r->nstages; k++)
        (void)json_array_append_new(stages, json_pack("{s:I,s:I,s:I}", "first_layer",
                                                      (json_int_t)r->stages[k].first, "end_layer",
                                                      (json_int_t)r->stages[k].end, "bytes",
                                                      (json_int_t)r->stages[k].bytes));
    for (size_t i = 0; i < r->nlanes; i++)
        (void)json_array_append_new(lanes, json_pack("{s:s,s:b,s:s,s:I,s:I}", "name",
                                                     r->lanes[i].name, "usable", r->lanes[i].usable,
                                                     "reason", r->lanes[i].reason, "bytes_out",
                                                     (json_int_t)r->lanes[i].bytes_out, "segments",
                                                     (json_int_t)r->lanes[i].segments));
    for (size_t i = 0; i < r->nnotes; i++)
        (void)json_array_append_new(notes, json_string(r->notes[i]));
    return json_pack("{s:I,s:I,s:I,s:f,s:f,s:f,s:o,s:o,s:o,s:o}", "requests",
                     (json_int_t)r->requests, "tokens", (json_int_t)r->tokens, "bytes",
                     (json_int_t)bytes, "seconds", (double)wall / 1e9, "GBps",
                     report_rate(bytes, report_busy(r)) / 1e9, "GBps_with_fill_and_compare",
                     report_rate(bytes, wall) / 1e9, "components", pools, "stages", stages, "lanes",
                     lanes, "notes", notes);
}
