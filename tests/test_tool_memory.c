/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process may count on: the machine's memory, its control groups and its
 * address space limit, on a made-up /proc and /sys.
 */
#include "tool/memory.h"
#include "tool/refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static char root[] = "/tmp/test_tool_memory.XXXXXX";

/* Writes a file below the root, with its folders. */
static void put(const char *path, const char *text)
{
    char full[256];
    FILE *f;

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(full, 0700);
        *p = '/';
    }
    f = fopen(full, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    struct rlimit l;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &l), 0);
    if (l.rlim_cur != RLIM_INFINITY)
        exit(77); /* the limit of this shell would hide the others */
    (void)strcpy(root + strlen(root) - 6, "XXXXXX");
    assert_non_null(mkdtemp(root));
    return 0;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void test_memory_is_what_the_machine_has_left(void **state)
{
    (void)state;
    assert_int_equal(tool_memory_available(root), 0);
    put("/proc/meminfo", "MemTotal:  9999999 kB\nMemFree: 1 kB\nMemAvailable:    8192000 kB\n");
    assert_int_equal(tool_memory_available(root), 8000 * MIB);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(tool_memory_available(root), 8000 * MIB);
}

static void test_memory_is_no_more_than_a_group_allows(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemAvailable:    8192000 kB\n");
    put("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "1073741824\n");
    assert_int_equal(tool_memory_available(root), 1024 * MIB);
    put("/sys/fs/cgroup/a/memory.max", "536870912\n"); /* what the group is in */
    assert_int_equal(tool_memory_available(root), 512 * MIB);
    put("/proc/self/cgroup", "0::/\n"); /* a container that sees its own group as the root */
    put("/sys/fs/cgroup/memory.max", "268435456\n");
    assert_int_equal(tool_memory_available(root), 256 * MIB);
}

static void test_memory_groups_of_version_1_count(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemAvailable:    8192000 kB\n");
    put("/proc/self/cgroup", "5:cpu:/j\n4:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    assert_int_equal(tool_memory_available(root), 128 * MIB);
    put("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "67108864\n");
    assert_int_equal(tool_memory_available(root), 64 * MIB);
}

/* The sentences that such limits end up in: what comes from outside does no harm there. */
static void test_sentences_are_printable_text(void **state)
{
    struct pdx_error why;
    char text[9];

    (void)state;
    assert_int_equal(tool_refuse(&why, PDX_EPROTO, "peer said \"%s\"", "\x1b[2J\n\xff\xc3\xa9"),
                     PDX_EPROTO);
    assert_string_equal(why.text, "peer said \"?[2J??\xc3\xa9\"");
    tool_text_clean(text, sizeof text, "1234567\xc3\xa9"); /* half a character does not stay */
    assert_string_equal(text, "1234567");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_memory_is_what_the_machine_has_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_no_more_than_a_group_allows, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_memory_groups_of_version_1_count, setup, teardown),
        cmocka_unit_test(test_sentences_are_printable_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
