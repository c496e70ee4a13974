/* SPDX-License-Identifier: Apache-2.0
 *
 * See memory.h. MemAvailable is the machine's; in a container the kernel kills
 * for less, by the lowest limit from the process' control group up to the root.
 */
#include "tool/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define MEMORY_PATH   512
#define MEMORY_V2     "/sys/fs/cgroup"
#define MEMORY_V1     "/sys/fs/cgroup/memory"
#define MEMORY_NOBODY UINT64_MAX

static uint64_t memory_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The machine's. */
static uint64_t memory_free(const char *root)
{
    char path[MEMORY_PATH], line[128];
    uint64_t kib, bytes = MEMORY_NOBODY;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
            bytes = kib * 1024;
    }
    if (f)
        (void)fclose(f);
    return bytes;
}

/* A file with one number; others ("max") set no limit. */
static uint64_t memory_file(const char *folder, const char *name)
{
    char path[3 * MEMORY_PATH];
    uint64_t bytes = MEMORY_NOBODY;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &bytes) != 1)
        bytes = MEMORY_NOBODY;
    if (f)
        (void)fclose(f);
    return bytes;
}

/* The lowest limit of a group and of those that it is in. `group` is cut on the way. */
static uint64_t memory_groups(const char *root, const char *mount, char *group, const char *name)
{
    uint64_t bytes = MEMORY_NOBODY;
    char folder[2 * MEMORY_PATH];
    char *slash = group;

    while (slash) {
        (void)snprintf(folder, sizeof folder, "%s%s%s", root, mount, group);
        bytes = memory_least(bytes, memory_file(folder, name));
        slash = strrchr(group, '/');
        if (slash)
            *slash = '\0';
    }
    return bytes;
}

/* "0::/a/b" for version 2, "4:memory:/a/b" for version 1. */
static uint64_t memory_group(const char *root)
{
    char line[MEMORY_PATH];
    uint64_t bytes = MEMORY_NOBODY;
    FILE *f;

    (void)snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    f = fopen(line, "re");
    while (f && fgets(line, sizeof line, f)) {
        char *group = strchr(line, '/');

        line[strcspn(line, "\n")] = '\0';
        if (!group)
            continue;
        if (strncmp(line, "0::/", 4) == 0)
            bytes = memory_least(bytes, memory_groups(root, MEMORY_V2, group, "memory.max"));
        else if (strstr(line, ":memory:/"))
            bytes =
                memory_least(bytes, memory_groups(root, MEMORY_V1, group, "memory.limit_in_bytes"));
    }
    if (f)
        (void)fclose(f);
    return bytes;
}

uint64_t tool_memory_available(const char *root)
{
    uint64_t bytes = memory_least(memory_free(root), memory_group(root));
    struct rlimit l;

    if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY)
        bytes = memory_least(bytes, l.rlim_cur);
    return bytes == MEMORY_NOBODY ? 0 : bytes;
}
