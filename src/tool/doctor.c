/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx doctor: what this machine offers for transfers, and what stands in their
 * way, one line each. It looks and changes nothing; the engine it starts for
 * the purpose is gone when it ends.
 */
#include "tool/args.h"
#include "tool/commands.h"
#include "tool/table.h"
#include <dirent.h>
#include <pdx/engine.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define DOCTOR_TEXT 256
#define SYS_RDMA    "/sys/class/infiniband"
#define SYS_TCP     "/proc/sys/net/ipv4/tcp_"

/* First line of a small file; empty when it cannot be read. */
static const char *doctor_line(const char *path, char buf[DOCTOR_TEXT])
{
    FILE *f = fopen(path, "re");

    buf[0] = '\0';
    if (!f)
        return buf;
    if (!fgets(buf, DOCTOR_TEXT, f))
        buf[0] = '\0';
    (void)fclose(f);
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

static void doctor_row(struct tool_table *t, const char *what, const char *found,
                       const char *remark)
{
    tool_table_cell(t, "%s", what);
    tool_table_cell(t, "%s", found);
    tool_table_cell(t, "%s", remark);
}

static void doctor_machine(struct tool_table *t)
{
    char text[DOCTOR_TEXT];
    struct utsname u;
    cpu_set_t cpus;

    if (uname(&u) == 0) {
        (void)snprintf(text, sizeof text, "%s %s %s", u.sysname, u.release, u.machine);
        doctor_row(t, "kernel", text, "");
    }
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
        (void)snprintf(text, sizeof text, "%d of %ld", CPU_COUNT(&cpus),
                       sysconf(_SC_NPROCESSORS_ONLN));
        doctor_row(t, "CPUs", text,
                   CPU_COUNT(&cpus) == 1 ? "the reactor shares it with the caller" : "");
    }
}

static void doctor_memlock(struct tool_table *t)
{
    char text[TOOL_TEXT_MAX];
    struct rlimit l;

    if (getrlimit(RLIMIT_MEMLOCK, &l) != 0)
        return;
    if (l.rlim_cur == RLIM_INFINITY)
        doctor_row(t, "memlock limit", "unlimited", "");
    else
        doctor_row(t, "memlock limit", tool_text_size(text, l.rlim_cur),
                   "RDMA registers no more than this; TCP does not need it");
}

static void doctor_tcp(struct tool_table *t)
{
    char now[DOCTOR_TEXT], all[DOCTOR_TEXT], remark[DOCTOR_TEXT + 32];

    doctor_line(SYS_TCP "congestion_control", now);
    doctor_line(SYS_TCP "available_congestion_control", all);
    (void)snprintf(remark, sizeof remark, "available: %s", *all ? all : "not told");
    doctor_row(t, "congestion control", *now ? now : "not told", remark);
}

/* Each RDMA device with the state of its first port: "mlx5_0 (4: ACTIVE)". */
static void doctor_rdma(struct tool_table *t)
{
    DIR *d = opendir(SYS_RDMA);
    struct dirent *e;
    size_t n = 0;

    while (d && (e = readdir(d)) != NULL) {
        char path[sizeof SYS_RDMA + sizeof e->d_name + 32], state[DOCTOR_TEXT];

        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, SYS_RDMA "/%s/ports/1/state", e->d_name);
        doctor_line(path, state);
        doctor_row(t, n++ == 0 ? "RDMA devices" : "", e->d_name, state);
    }
    if (d)
        (void)closedir(d);
    if (n == 0)
        doctor_row(t, "RDMA devices", "none", "nothing in " SYS_RDMA);
}

/* The advertised addresses, one a row. */
static void doctor_addresses(struct tool_table *t, const char *advertised)
{
    const char *what = "advertised";

    while (*advertised) {
        size_t len = strcspn(advertised, ",");

        tool_table_cell(t, "%s", what);
        tool_table_cell(t, "%.*s", (int)len, advertised);
        tool_table_cell(t, "%s", "");
        what = "";
        advertised += len + (advertised[len] == ',');
    }
}

/* Starts an engine and tells how it waits and where it can be reached. */
static int doctor_engine(struct tool_table *t, const char *bind, const char *advertise)
{
    struct pdx_engine_opts opts;
    struct pdx_engine_info info;
    struct pdx_engine *engine;
    struct pdx_error why;
    int r;

    pdx_engine_opts_init(&opts);
    opts.name = "doctor";
    opts.bind = bind;
    opts.advertise = advertise;
    r = pdx_engine_create(&opts, &engine, &why);
    if (r < 0) {
        doctor_row(t, "engine", "does not start", why.text);
        return r;
    }
    pdx_engine_info(engine, &info);
    doctor_row(t, "waits with", info.io, info.io_reason);
    doctor_row(t, "bound", info.address, "");
    doctor_addresses(t, info.advertised);
    (void)pdx_engine_destroy(engine);
    return 0;
}

int tool_doctor_main(int argc, char **argv)
{
    const char *bind = "0.0.0.0:0", *advertise = NULL;
    const struct tool_arg args[] = {
        {.name = "bind",
         .kind = TOOL_ARG_ADDRESS,
         .value = &bind,
         .help = "where the engine would listen (default 0.0.0.0:0: every IPv4 address, any port)"},
        {.name = "advertise",
         .kind = TOOL_ARG_STRING,
         .value = &advertise,
         .label = "HOST[:PORT],...",
         .help = "addresses that peers shall use (default: those it is bound to)"},
    };
    const struct tool_command cmd = {
        .name = "doctor",
        .synopsis = "[options]",
        .purpose = "Shows what this machine offers for transfers and what stands in their way.\n"
                   "An engine is started and stopped again to see how it would wait and listen.",
        .args = args,
        .nargs = sizeof args / sizeof args[0],
    };
    struct tool_table t;
    int status, r, printed;

    if (!tool_args_begin(&cmd, argc, argv, NULL, &status))
        return status;
    tool_table_init(&t, "what|found|remark");
    doctor_row(&t, "libpdx", pdx_version(), "");
    doctor_machine(&t);
    doctor_memlock(&t);
    doctor_tcp(&t);
    doctor_rdma(&t);
    r = doctor_engine(&t, bind, advertise);
    printed = tool_table_print(&t, 0, stdout);
    tool_table_fini(&t);
    return r < 0 || printed < 0 ? TOOL_EXIT_FAILED : TOOL_EXIT_OK;
}
