/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void pdxi_log(const struct pdxi_log *log, enum pdx_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (!log->fn || level > log->level)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log->fn(log->ctx, level, line);
}
