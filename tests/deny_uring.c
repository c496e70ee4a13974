/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program in which io_uring does not exist: a seccomp filter answers
 * its three system calls with EPERM, as the default profiles of container
 * runtimes do. Used as `meson test --wrapper`, so that the suite proves that
 * the library starts and works where io_uring is refused.
 *
 *   deny_uring PROGRAM [ARG...]
 *
 * Exit status: the program's; 77 (skip) where the kernel has no seccomp
 * filters; 99 when the filter does not do its work.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers are the same on every architecture. */
#define NR_URING_SETUP    425
#define NR_URING_REGISTER 427

static int deny(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NR_URING_SETUP, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NR_URING_REGISTER, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {
        .len = sizeof(code) / sizeof(code[0]),
        .filter = code,
    };

    /* Without privileges a filter is permitted only to a process that can't gain any. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
        return -errno;
    return 0;
}

int main(int argc, char **argv)
{
    int err;

    if (argc < 2) {
        fprintf(stderr, "usage: deny_uring PROGRAM [ARG...]\n");
        return 99;
    }
    err = deny();
    if (err < 0) {
        fprintf(stderr, "deny_uring: the kernel takes no seccomp filter: %s\n", strerror(-err));
        return 77;
    }
    if (syscall(NR_URING_SETUP, 1, NULL) != -1 || errno != EPERM) {
        fprintf(stderr, "deny_uring: io_uring_setup is not refused\n");
        return 99;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "deny_uring: %s: %s\n", argv[1], strerror(errno));
    return 99;
}
