/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress line; see report.h.
 */
#include "tool/report.h"

#include <stdarg.h>
#include <unistd.h>

#define PROGRESS_TTY   (PDX_MSEC * 200)
#define PROGRESS_PLAIN (PDX_SEC * 5)

void tool_progress_init(struct tool_progress *p, bool off)
{
    *p = (struct tool_progress){.off = off, .tty = isatty(STDERR_FILENO) == 1};
}

bool tool_progress_due(struct tool_progress *p, uint64_t now_ns)
{
    uint64_t every = p->tty ? PROGRESS_TTY : PROGRESS_PLAIN;

    if (p->off || now_ns < p->next_ns)
        return false;
    if (p->next_ns == 0 && !p->tty) { /* a short run has no need of a plain line */
        p->next_ns = now_ns + every;
        return false;
    }
    p->next_ns = now_ns + every;
    return true;
}

void tool_progress_line(struct tool_progress *p, const char *fmt, ...)
{
    va_list ap;

    (void)fputs(p->tty ? "\r\033[K" : "", stderr);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputs(p->tty ? "" : "\n", stderr);
    (void)fflush(stderr);
    p->shown = p->tty;
}

void tool_progress_end(struct tool_progress *p)
{
    if (p->shown)
        (void)fputs("\r\033[K", stderr);
    p->shown = false;
}
