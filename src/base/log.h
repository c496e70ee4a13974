/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines for the engine's log hook. The library itself never prints.
 */
#ifndef PDXI_BASE_LOG_H
#define PDXI_BASE_LOG_H

#include <pdx/engine.h>

struct pdxi_log {
    pdx_log_fn fn; /* NULL: nothing is logged */
    void *ctx;     /* borrowed from the engine's creator */
    enum pdx_log_level level;
};

void pdxi_log(const struct pdxi_log *log, enum pdx_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
