/* SPDX-License-Identifier: Apache-2.0
 *
 * Text tables with aligned columns, and numbers as people read them: 1.50 MiB,
 * 12.3 GB/s, 850 us. Plain ASCII, so that a log file or a serial console shows
 * what a terminal shows.
 */
#ifndef PDX_TOOL_TABLE_H
#define PDX_TOOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TOOL_TABLE_COLS 12

struct tool_table {
    size_t ncols;
    bool right[TOOL_TABLE_COLS]; /* alignment of the column */
    char **cells;                /* owned: nrows x ncols, each owned; NULL row: a rule */
    size_t nrows;
    size_t cap;
    size_t fill; /* cells of the row under construction */
    bool failed; /* memory ran out; printing says so */
};

/* Columns are separated by '|' in `heads`; a head that begins with '>' is right-aligned:
 * "component|>bytes|>segments". At most TOOL_TABLE_COLS. Rules do not reach under a last column
 * whose head is empty. */
void tool_table_init(struct tool_table *t, const char *heads);
void tool_table_fini(struct tool_table *t);

/* Appends one cell; a row is complete after as many cells as there are columns. */
void tool_table_cell(struct tool_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A line between the rows before and after. Only between complete rows. */
void tool_table_rule(struct tool_table *t);
/* Prints head, rule and rows, each line indented by `indent` spaces. An incomplete last row is
 * filled with empty cells. Returns 0, or PDX_ENOMEM when a cell was lost to lack of memory. */
int tool_table_print(struct tool_table *t, unsigned indent, FILE *out);

#define TOOL_TEXT_MAX 32

/* "1 request", "2 requests". */
static inline const char *tool_text_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* Each writes to buf (TOOL_TEXT_MAX bytes) and returns it. Three significant digits at least. */
const char *tool_text_size(char buf[TOOL_TEXT_MAX], uint64_t bytes);  /* "12.0 KiB", binary */
const char *tool_text_rate(char buf[TOOL_TEXT_MAX], double Bps);      /* "12.3 GB/s", decimal */
const char *tool_text_duration(char buf[TOOL_TEXT_MAX], uint64_t ns); /* "850 us" */
const char *tool_text_count(char buf[TOOL_TEXT_MAX], uint64_t n);     /* "1 234 567" */
/* "TP 2", or with stages "TP 2 x PP 4" */
const char *tool_text_ranks(char buf[TOOL_TEXT_MAX], uint32_t tp, uint32_t pp);

#endif
