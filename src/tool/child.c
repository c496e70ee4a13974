/* SPDX-License-Identifier: Apache-2.0
 *
 * See child.h.
 */
#include "tool/child.h"

#include "tool/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child: never returns. */
static void child_exec(const char *const *args, pid_t parent, const int fds[2])
{
    char *argv[TOOL_CHILD_ARGS + 2] = {(char *)(uintptr_t) "pdx"};
    size_t n = 0;

    for (; args[n] && n < TOOL_CHILD_ARGS; n++)
        argv[n + 1] = (char *)(uintptr_t)args[n]; /* execv does not write to them */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(127);
    if ((fds[0] >= 0 && dup2(fds[0], STDOUT_FILENO) < 0) ||
        (fds[1] >= 0 && dup2(fds[1], STDERR_FILENO) < 0))
        _exit(127);
    (void)execv("/proc/self/exe", argv);
    _exit(127);
}

static int child_pipe(struct tool_stream *s, bool wanted, int *ret_write)
{
    int fds[2];

    *s = (struct tool_stream){.fd = -1};
    *ret_write = -1;
    if (!wanted)
        return 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    s->fd = fds[0];
    *ret_write = fds[1];
    return 0;
}

int tool_child_start(struct tool_child *c, const char *const *args, unsigned pipes,
                     struct pdx_error *why)
{
    pid_t parent = getpid();
    int write_fds[2] = {-1, -1}, err;

    *c = (struct tool_child){.out.fd = -1, .err.fd = -1};
    err = child_pipe(&c->out, pipes & TOOL_CHILD_OUT, &write_fds[0]);
    if (err == 0)
        err = child_pipe(&c->err, pipes & TOOL_CHILD_ERR, &write_fds[1]);
    if (err == 0) {
        c->pid = fork();
        if (c->pid == 0)
            child_exec(args, parent, write_fds);
        if (c->pid < 0) {
            err = -errno;
            c->pid = 0;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (write_fds[i] >= 0)
            (void)close(write_fds[i]);
    }
    if (err == 0)
        return 0;
    tool_child_fini(c);
    return tool_refuse_sys(why, -err, "cannot start pdx %s", args[0]);
}

void tool_stream_read(struct tool_stream *s)
{
    char buf[4096];
    ssize_t n = read(s->fd, buf, sizeof buf);
    char *p;

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        (void)close(s->fd);
        s->fd = -1;
        return;
    }
    p = s->len + (size_t)n < TOOL_CHILD_TEXT ? realloc(s->text, s->len + (size_t)n + 1) : NULL;
    if (!p)
        return;
    memcpy(p + s->len, buf, (size_t)n);
    s->len += (size_t)n;
    p[s->len] = '\0';
    s->text = p;
}

bool tool_stream_line(struct tool_stream *s, char *buf, size_t cap)
{
    char *end = s->len ? memchr(s->text, '\n', s->len) : NULL;
    size_t len, keep;

    if (!end)
        return false;
    len = (size_t)(end - s->text);
    keep = len < cap ? len : cap - 1;
    memcpy(buf, s->text, keep);
    buf[keep] = '\0';
    s->len -= len + 1;
    memmove(s->text, end + 1, s->len + 1);
    return true;
}

static int child_status(int wstatus)
{
    return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 128 + WTERMSIG(wstatus);
}

int tool_child_wait(struct tool_child *c)
{
    int wstatus = 0;

    while (waitpid(c->pid, &wstatus, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
    return child_status(wstatus);
}

bool tool_child_ended(struct tool_child *c, int *ret_status)
{
    int wstatus;

    if (c->pid == 0)
        return true;
    if (waitpid(c->pid, &wstatus, WNOHANG) != c->pid)
        return false;
    c->pid = 0;
    *ret_status = child_status(wstatus);
    return true;
}

void tool_child_kill(struct tool_child *c)
{
    if (c->pid > 0)
        (void)kill(c->pid, SIGTERM);
}

void tool_child_fini(struct tool_child *c)
{
    tool_child_kill(c);
    if (c->pid > 0)
        (void)tool_child_wait(c);
    if (c->out.fd >= 0)
        (void)close(c->out.fd);
    if (c->err.fd >= 0)
        (void)close(c->err.fd);
    free(c->out.text);
    free(c->err.text);
    *c = (struct tool_child){.out.fd = -1, .err.fd = -1};
}
