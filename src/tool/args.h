/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line options from a table: getopt_long does the splitting, this file
 * the values with their units, their limits and one sentence for whatever is
 * wrong. The same table prints --help.
 */
#ifndef PDX_TOOL_ARGS_H
#define PDX_TOOL_ARGS_H

#include <pdx/error.h>
#include <stdio.h>

enum tool_arg_kind {
    TOOL_ARG_FLAG = 1, /* bool; no value */
    TOOL_ARG_STRING,   /* const char *; points into argv */
    TOOL_ARG_UINT,     /* uint64_t */
    TOOL_ARG_REAL,     /* double, not negative */
    TOOL_ARG_SIZE,     /* uint64_t bytes: "512", "64KiB", "2GiB", "1.5GB" */
    TOOL_ARG_DURATION, /* uint64_t ns: "500ms", "2s", "10us", "1m" */
    TOOL_ARG_ADDRESS,  /* const char *: "host:port", "[v6]:port", "name:port" */
    TOOL_ARG_PAIR      /* uint32_t[2]: "4:2"; "4" means "4:4" */
};

struct tool_arg {
    const char *name; /* "page-size", without dashes */
    char letter;      /* or 0 */
    enum tool_arg_kind kind;
    void *value;       /* as the kind says; holds the default before */
    uint64_t min;      /* UINT, SIZE, DURATION, PAIR (each number) */
    uint64_t max;      /* 0: the kind's own limit (UINT, SIZE: 2^63 - 1; PAIR: 2^16) */
    const char *label; /* of the value in --help: "FILE"; NULL: by kind */
    const char *help;  /* one line or several, separated by '\n' */
};

struct tool_command {
    const char *name;            /* "decode" */
    const char *synopsis;        /* after "pdx decode "; "[options]" */
    const char *purpose;         /* one or more lines */
    const struct tool_arg *args; /* nargs entries */
    size_t nargs;
    const char *operand; /* what the operands are called; NULL: none are taken */
    size_t max_operands;
};

/* Returned by tool_args_parse when --help or -h was there and nothing wrong before it. */
#define TOOL_ARGS_HELP 1

/* Sets the values of the options in argv (argv[0] is the command's name). Operands are moved to the
 * end as getopt_long does it; *ret_first is the position of the first one (may be NULL).
 * Returns 0, TOOL_ARGS_HELP, or PDX_EINVAL with a sentence that names the option, what it takes and
 * what was given. Values set before the mistake stay set. Not reentrant (getopt_long). */
int tool_args_parse(const struct tool_command *cmd, int argc, char **argv, int *ret_first,
                    struct pdx_error *why);

void tool_args_help(const struct tool_command *cmd, FILE *out);

/* The frame of most commands: parses, prints --help to stdout or the sentence to stderr.
 * Returns true when the command shall run; else *ret_exit is its exit status. */
bool tool_args_begin(const struct tool_command *cmd, int argc, char **argv, int *ret_first,
                     int *ret_exit);

/* The values by themselves. Each returns 0 or PDX_EINVAL, with what it must be as the text: "a
 * whole number from 1 to 9". */
int tool_args_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                   struct pdx_error *why);
int tool_args_real(const char *text, double *ret, struct pdx_error *why);
int tool_args_size(const char *text, uint64_t *ret, struct pdx_error *why);
int tool_args_duration(const char *text, uint64_t *ret_ns, struct pdx_error *why);
int tool_args_address(const char *text, struct pdx_error *why);
int tool_args_pair(const char *text, uint64_t min, uint64_t max, uint32_t ret[2],
                   struct pdx_error *why);

#endif
