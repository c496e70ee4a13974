/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer in a process of its own (target.c), so that tests can kill, stop,
 * continue and restart it. It has one engine and one region filled with the
 * pattern of its seed, and obeys commands: a line in, a line out.
 */
#ifndef PDX_TESTS_CHILD_H
#define PDX_TESTS_CHILD_H

#include "support.h"

#include <sys/types.h>

struct ts_child_opts {
    const char *name;
    const char *bind;      /* NULL: 127.0.0.1:0 */
    size_t len;            /* of its region; 0: 1 MiB */
    uint64_t seed;         /* of the region's pattern */
    uint64_t keepalive_ms; /* 0: the engine's default */
};

struct ts_child {
    pid_t pid; /* 0: none */
    int in;    /* owned: its standard input */
    int out;   /* owned: its standard output */
    size_t desc_len;
    uint8_t desc[TS_DESC_MAX]; /* of its engine */
    struct pdx_remote remote;
    uint16_t port;
    uint64_t seed;
    char reply[2048]; /* to the last command */
};

void ts_child_open(struct ts_child *c, const struct ts_child_opts *opts);
/* Ends it, by force if need be. */
void ts_child_close(struct ts_child *c);

/* Sends a command and waits for the reply, without its newline. */
const char *ts_child_ask(struct ts_child *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Asks, and fails unless the reply is `want`. */
#define ts_child_expect(c, want, ...)                                                    \
    do {                                                                                 \
        const char *ts_reply_ = ts_child_ask(c, __VA_ARGS__);                            \
                                                                                         \
        if (strcmp(ts_reply_, want) != 0)                                                \
            ts_fail(__FILE__, __LINE__, "\"%s\" where \"%s\" was due", ts_reply_, want); \
    } while (0)

void ts_child_stop(struct ts_child *c); /* returns when it stands still */
void ts_child_continue(struct ts_child *c);
void ts_child_kill(struct ts_child *c); /* kill -9; returns when it is gone */

struct pdx_peer *ts_child_peer(struct ts_child *c, struct pdx_engine *engine);

/* Hexadecimal text. ret_text has room for 2 * len + 1. */
void ts_hex(const void *data, size_t len, char *ret_text);
/* Returns the number of bytes, 0 when the text is not hexadecimal or does not fit. */
size_t ts_unhex(const char *text, void *buf, size_t cap);

#endif
