/* SPDX-License-Identifier: Apache-2.0
 *
 * What both ends of the job need before they can meet: an engine that logs to
 * stderr, and the choice of how it waits.
 */
#ifndef PDX_TOOL_STATION_H
#define PDX_TOOL_STATION_H

#include <pdx/pdx.h>

struct tool_station_opts {
    const char *name;      /* prefix of the engine's name: "decode" */
    const char *bind;      /* NULL: the engine's default */
    const char *advertise; /* NULL: the engine's default */
    const char *io;        /* "auto", "uring", "epoll" */
    bool verbose;          /* log what the engine does, not only what goes wrong */
};

/* Errors: PDX_EINVAL for an unknown --io, and those of pdx_engine_create. */
int tool_station_open(const struct tool_station_opts *o, struct pdx_engine **ret_engine,
                      struct pdx_error *why);

#endif
