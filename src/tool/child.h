/* SPDX-License-Identifier: Apache-2.0
 *
 * A further run of this program as a child process, with its output in pipes.
 * The child dies with its parent.
 */
#ifndef PDX_TOOL_CHILD_H
#define PDX_TOOL_CHILD_H

#include <pdx/error.h>
#include <sys/types.h>

#define TOOL_CHILD_ARGS 64
#define TOOL_CHILD_TEXT (1u << 20) /* most output kept of a stream; more is dropped */

struct tool_stream {
    int fd;     /* owned; -1: at its end */
    char *text; /* owned; always terminated; NULL before the first byte */
    size_t len;
};

struct tool_child {
    pid_t pid; /* 0: none */
    struct tool_stream out;
    struct tool_stream err;
};

enum tool_child_pipes { TOOL_CHILD_OUT = 1, TOOL_CHILD_ERR = 2 };

/* Runs /proc/self/exe with NULL-terminated args (args[0] is the subcommand); streams without a pipe
 * stay the parent's. Errors: PDX_ESYS. */
int tool_child_start(struct tool_child *c, const char *const *args, unsigned pipes,
                     struct pdx_error *why);
/* Reads once from a stream that poll(2) found ready. */
void tool_stream_read(struct tool_stream *s);
/* Takes the next complete line out of the stream into buf: true, or false when there is none. */
bool tool_stream_line(struct tool_stream *s, char *buf, size_t cap);
/* Waits for the end. Returns the exit status, or 128 + the signal. */
int tool_child_wait(struct tool_child *c);
/* Whether the process has ended; *ret_status is then as of tool_child_wait. */
bool tool_child_ended(struct tool_child *c, int *ret_status);
void tool_child_kill(struct tool_child *c);
/* Ends it, if it still runs. */
void tool_child_fini(struct tool_child *c);

#endif
