/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program lies beside the test that starts it. */
static void child_path(char *buf, size_t cap)
{
    ssize_t n = readlink("/proc/self/exe", buf, cap - 1);
    char *slash;

    assert_true(n > 0);
    buf[n] = '\0';
    slash = strrchr(buf, '/');
    (void)snprintf(slash + 1, cap - (size_t)(slash + 1 - buf), "conformance_target");
}

/* Between fork and exec only what is safe in the child of a program with threads. */
static void child_exec(const char *path, char *const *argv, int in, int out)
{
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        _exit(126);
    (void)execv(path, argv);
    _exit(127);
}

/* Reads one line into `buf`; the child speaks only when asked, so nothing follows it. */
static void child_line(struct ts_child *c, char *buf, size_t cap)
{
    uint64_t end = ts_now() + TS_LONG;
    size_t len = 0;

    for (;;) {
        struct pollfd pfd = {.fd = c->out, .events = POLLIN};
        ssize_t n;

        if (ts_now() > end)
            ts_fail(__FILE__, __LINE__, "child %d does not answer", c->pid);
        if (poll(&pfd, 1, 100) <= 0)
            continue;
        n = read(c->out, buf + len, cap - 1 - len);
        if (n <= 0)
            ts_fail(__FILE__, __LINE__, "child %d has closed its output", c->pid);
        len += (size_t)n;
        buf[len] = '\0';
        if (buf[len - 1] == '\n')
            break;
        if (len == cap - 1)
            ts_fail(__FILE__, __LINE__, "child %d talks too much", c->pid);
    }
    buf[len - 1] = '\0';
}

/* "ready <port> <engine> <region>" */
static void child_greet(struct ts_child *c)
{
    char line[2 * TS_DESC_MAX + 4096];
    uint8_t region[TS_DESC_MAX];
    struct pdx_error why;
    char *rest = NULL;
    char *word;
    size_t len;

    child_line(c, line, sizeof line);
    word = strtok_r(line, " ", &rest);
    if (!word || strcmp(word, "ready") != 0)
        ts_fail(__FILE__, __LINE__, "the child says: %s %s", word ? word : "", rest);
    c->port = (uint16_t)strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
    c->desc_len = ts_unhex(strtok_r(NULL, " ", &rest), c->desc, sizeof c->desc);
    len = ts_unhex(strtok_r(NULL, " ", &rest), region, sizeof region);
    assert_true(c->desc_len > 0 && len > 0);
    ts_ok(pdx_remote_decode(region, len, &c->remote, &why), &why);
}

void ts_child_open(struct ts_child *c, const struct ts_child_opts *opts)
{
    char path[4096];
    char len[32];
    char seed[32];
    char keepalive[32];
    char *argv[] = {path,
                    (char *)(uintptr_t)opts->name,
                    (char *)(uintptr_t)(opts->bind ? opts->bind : "127.0.0.1:0"),
                    len,
                    seed,
                    keepalive,
                    NULL};
    int in[2];
    int out[2];

    memset(c, 0, sizeof *c);
    (void)signal(SIGPIPE, SIG_IGN);
    child_path(path, sizeof path);
    (void)snprintf(len, sizeof len, "%zu", opts->len ? opts->len : (size_t)1 << 20);
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)opts->seed);
    (void)snprintf(keepalive, sizeof keepalive, "%llu", (unsigned long long)opts->keepalive_ms);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    c->seed = opts->seed;
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0)
        child_exec(path, argv, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    c->in = in[1];
    c->out = out[0];
    child_greet(c);
}

static void child_reap(struct ts_child *c)
{
    int status;

    (void)waitpid(c->pid, &status, 0);
    c->pid = 0;
    (void)close(c->in);
    (void)close(c->out);
}

void ts_child_kill(struct ts_child *c)
{
    (void)kill(c->pid, SIGKILL);
    child_reap(c);
}

void ts_child_close(struct ts_child *c)
{
    if (c->pid > 0)
        ts_child_kill(c);
}

const char *ts_child_ask(struct ts_child *c, const char *fmt, ...)
{
    char line[3 * TS_DESC_MAX];
    va_list ap;
    size_t len;

    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    len = strlen(line);
    line[len++] = '\n';
    if (write(c->in, line, len) != (ssize_t)len)
        ts_fail(__FILE__, __LINE__, "child %d takes no commands", c->pid);
    child_line(c, c->reply, sizeof c->reply);
    return c->reply;
}

void ts_child_stop(struct ts_child *c)
{
    int status;

    (void)kill(c->pid, SIGSTOP);
    assert_int_equal(waitpid(c->pid, &status, WUNTRACED), c->pid);
    assert_true(WIFSTOPPED(status));
}

void ts_child_continue(struct ts_child *c)
{
    (void)kill(c->pid, SIGCONT);
}

struct pdx_peer *ts_child_peer(struct ts_child *c, struct pdx_engine *engine)
{
    struct pdx_peer *peer = NULL;
    struct pdx_error why;

    ts_ok(pdx_peer_add(engine, c->desc, c->desc_len, &peer, &why), &why);
    return peer;
}
