/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells are kept as text until the table is printed, because a column is as
 * wide as its widest cell.
 */
#include "tool/table.h"

#include <pdx/error.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_GAP 2 /* spaces between columns */

/* Makes room for one more row, all NULL. */
static char **table_row(struct tool_table *t)
{
    if (t->nrows == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        char **cells = reallocarray(t->cells, cap * t->ncols, sizeof *cells);

        if (!cells) {
            t->failed = true;
            return NULL;
        }
        t->cells = cells;
        t->cap = cap;
    }
    t->nrows++;
    memset(&t->cells[(t->nrows - 1) * t->ncols], 0, t->ncols * sizeof *t->cells);
    return &t->cells[(t->nrows - 1) * t->ncols];
}

void tool_table_init(struct tool_table *t, const char *heads)
{
    *t = (struct tool_table){0};
    for (const char *head = heads;; head = strchr(head, '|') + 1) {
        t->right[t->ncols++] = *head == '>';
        if (t->ncols == TOOL_TABLE_COLS || !strchr(head, '|'))
            break;
    }
    for (size_t i = 0; i < t->ncols; i++) {
        const char *head = heads + t->right[i];
        size_t len = strcspn(head, "|");

        tool_table_cell(t, "%.*s", (int)len, head);
        heads = head + len + 1;
    }
}

void tool_table_fini(struct tool_table *t)
{
    for (size_t i = 0; i < t->nrows * t->ncols; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct tool_table){0};
}

void tool_table_cell(struct tool_table *t, const char *fmt, ...)
{
    char **row = t->fill ? &t->cells[(t->nrows - 1) * t->ncols] : table_row(t);
    va_list ap;

    if (!row)
        return;
    va_start(ap, fmt);
    if (vasprintf(&row[t->fill], fmt, ap) < 0) {
        row[t->fill] = NULL;
        t->failed = true;
    }
    va_end(ap);
    t->fill = (t->fill + 1) % t->ncols;
}

void tool_table_rule(struct tool_table *t)
{
    (void)table_row(t);
}

static void table_print_rule(const size_t *widths, size_t ncols, unsigned indent, FILE *out)
{
    size_t total = TABLE_GAP * (ncols - 1);

    for (size_t c = 0; c < ncols; c++)
        total += widths[c];
    (void)fprintf(out, "%*s", (int)indent, "");
    for (size_t i = 0; i < total; i++)
        (void)fputc('-', out);
    (void)fputc('\n', out);
}

/* No blanks at the end of a line: the last cell is not padded on its right. */
static void table_print_row(const struct tool_table *t, char *const *row, const size_t *widths,
                            unsigned indent, FILE *out)
{
    size_t pending = indent;

    for (size_t c = 0; c < t->ncols; c++) {
        const char *cell = row[c] ? row[c] : "";
        size_t len = strlen(cell), pad = widths[c] - len;

        if (t->right[c])
            pending += pad;
        if (len > 0) {
            (void)fprintf(out, "%*s%s", (int)pending, "", cell);
            pending = 0;
        }
        pending += TABLE_GAP + (t->right[c] ? 0 : pad);
    }
    (void)fputc('\n', out);
}

static bool table_is_rule(const struct tool_table *t, char *const *row)
{
    for (size_t c = 0; c < t->ncols; c++) {
        if (row[c])
            return false;
    }
    return true;
}

int tool_table_print(struct tool_table *t, unsigned indent, FILE *out)
{
    size_t widths[TOOL_TABLE_COLS] = {0}, ruled = t->ncols;

    t->fill = 0;
    if (t->nrows > 0 && t->cells[t->ncols - 1] && !t->cells[t->ncols - 1][0])
        ruled--; /* remarks, which have no head */
    for (size_t i = 0; i < t->nrows * t->ncols; i++) {
        size_t len = t->cells[i] ? strlen(t->cells[i]) : 0;

        if (len > widths[i % t->ncols])
            widths[i % t->ncols] = len;
    }
    for (size_t r = 0; r < t->nrows; r++) {
        char *const *row = &t->cells[r * t->ncols];

        if (table_is_rule(t, row))
            table_print_rule(widths, ruled, indent, out);
        else
            table_print_row(t, row, widths, indent, out);
        if (r == 0)
            table_print_rule(widths, ruled, indent, out);
    }
    return t->failed ? PDX_ENOMEM : 0;
}

/* ---- Numbers ---- */

/* The largest unit that leaves at least 1 in front of it; three significant digits. */
static const char *text_scaled(char buf[TOOL_TEXT_MAX], double v, double step,
                               const char *const *units, size_t nunits)
{
    size_t u = 0;

    /* 999.5 would print as 1000 of the smaller unit. */
    while (u + 1 < nunits && v >= (step == 1000 ? 999.5 : step - 0.05)) {
        v /= step;
        u++;
    }
    (void)snprintf(buf, TOOL_TEXT_MAX, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[u]);
    return buf;
}

const char *tool_text_size(char buf[TOOL_TEXT_MAX], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    if (bytes < 1024) {
        (void)snprintf(buf, TOOL_TEXT_MAX, "%u B", (unsigned)bytes);
        return buf;
    }
    return text_scaled(buf, (double)bytes, 1024, units, sizeof units / sizeof units[0]);
}

const char *tool_text_rate(char buf[TOOL_TEXT_MAX], double Bps)
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};

    return text_scaled(buf, Bps, 1000, units, sizeof units / sizeof units[0]);
}

const char *tool_text_duration(char buf[TOOL_TEXT_MAX], uint64_t ns)
{
    static const char *const units[] = {"us", "ms", "s"};

    if (ns < 1000) {
        (void)snprintf(buf, TOOL_TEXT_MAX, "%u ns", (unsigned)ns);
        return buf;
    }
    return text_scaled(buf, (double)ns / 1000, 1000, units, sizeof units / sizeof units[0]);
}

const char *tool_text_count(char buf[TOOL_TEXT_MAX], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf[at++] = ' ';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *tool_text_ranks(char buf[TOOL_TEXT_MAX], uint32_t tp, uint32_t pp)
{
    if (pp > 1)
        (void)snprintf(buf, TOOL_TEXT_MAX, "TP %u x PP %u", tp, pp);
    else
        (void)snprintf(buf, TOOL_TEXT_MAX, "TP %u", tp);
    return buf;
}
