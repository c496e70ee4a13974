/* SPDX-License-Identifier: Apache-2.0
 *
 * See station.h.
 */
#include "tool/station.h"

#include "tool/refuse.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void station_log(void *ctx, enum pdx_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)fprintf(stderr, "pdx: %s\n", line);
}

static int station_io(const char *text, enum pdx_io *ret, struct pdx_error *why)
{
    static const char *const names[] = {
        [PDX_IO_AUTO] = "auto", [PDX_IO_URING] = "uring", [PDX_IO_EPOLL] = "epoll"};

    for (int i = PDX_IO_AUTO; i <= PDX_IO_EPOLL; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum pdx_io)i;
            return 0;
        }
    }
    return tool_refuse(why, PDX_EINVAL, "--io is auto, uring or epoll, not \"%.32s\"", text);
}

int tool_station_open(const struct tool_station_opts *o, struct pdx_engine **ret_engine,
                      struct pdx_error *why)
{
    struct pdx_engine_opts eo;
    char name[PDX_NAME_MAX];
    int err;

    (void)snprintf(name, sizeof name, "%s-%ld", o->name, (long)getpid());
    pdx_engine_opts_init(&eo);
    eo.name = name;
    eo.bind = o->bind;
    eo.advertise = o->advertise;
    eo.log = station_log;
    eo.log_level = o->verbose ? PDX_LOG_INFO : PDX_LOG_WARN;
    err = station_io(o->io, &eo.io, why);
    return err < 0 ? err : pdx_engine_create(&eo, ret_engine, why);
}
