/* SPDX-License-Identifier: Apache-2.0
 *
 * Splitting is left to getopt_long; the values are read by args_value.c.
 */
#include "tool/args.h"

#include "tool/commands.h"
#include "tool/refuse.h"
#include <assert.h>
#include <getopt.h>
#include <string.h>

#define ARGS_MAX      64
#define ARGS_FIRST    1000 /* getopt's value of table entry 0: above every letter */
#define ARGS_HELP     999
#define ARGS_UINT_MAX ((uint64_t)INT64_MAX)
#define ARGS_PAIR_MAX 65536

/* Checks the limits of a size or a duration. */
static int args_limit(const struct tool_arg *arg, uint64_t v, struct pdx_error *why)
{
    uint64_t max = arg->max ? arg->max : ARGS_UINT_MAX;
    const char *unit = arg->kind == TOOL_ARG_SIZE ? "bytes" : "ns";

    if (v < arg->min || v > max)
        return tool_refuse(why, PDX_EINVAL, "from %llu to %llu %s", (unsigned long long)arg->min,
                           (unsigned long long)max, unit);
    *(uint64_t *)arg->value = v;
    return 0;
}

static int args_set(const struct tool_arg *arg, const char *text, struct pdx_error *why)
{
    uint64_t v;
    int r;

    switch (arg->kind) {
    case TOOL_ARG_FLAG:
        *(bool *)arg->value = true;
        return 0;
    case TOOL_ARG_STRING:
        *(const char **)arg->value = text;
        return 0;
    case TOOL_ARG_UINT:
        return tool_args_uint(text, arg->min, arg->max ? arg->max : ARGS_UINT_MAX, arg->value, why);
    case TOOL_ARG_REAL:
        return tool_args_real(text, arg->value, why);
    case TOOL_ARG_SIZE:
        r = tool_args_size(text, &v, why);
        return r < 0 ? r : args_limit(arg, v, why);
    case TOOL_ARG_DURATION:
        r = tool_args_duration(text, &v, why);
        return r < 0 ? r : args_limit(arg, v, why);
    case TOOL_ARG_ADDRESS:
        r = tool_args_address(text, why);
        if (r == 0)
            *(const char **)arg->value = text;
        return r;
    case TOOL_ARG_PAIR:
        return tool_args_pair(text, arg->min, arg->max ? arg->max : ARGS_PAIR_MAX, arg->value, why);
    }
    return PDX_EINVAL;
}

/* ---- The command line ---- */

/* getopt's two tables from ours. */
static void args_tables(const struct tool_command *cmd, struct option longs[ARGS_MAX + 2],
                        char shorts[2 * ARGS_MAX + 3])
{
    size_t n = cmd->nargs, at = 0;

    shorts[at++] = ':'; /* a missing value is told apart from an unknown option */
    shorts[at++] = 'h';
    longs[n] = (struct option){"help", no_argument, NULL, ARGS_HELP};
    longs[n + 1] = (struct option){0};
    for (size_t i = 0; i < n; i++) {
        const struct tool_arg *arg = &cmd->args[i];
        bool valued = arg->kind != TOOL_ARG_FLAG;

        longs[i] = (struct option){arg->name, valued ? required_argument : no_argument, NULL,
                                   (int)(ARGS_FIRST + i)};
        if (!arg->letter)
            continue;
        shorts[at++] = arg->letter;
        if (valued)
            shorts[at++] = ':';
    }
    shorts[at] = '\0';
}

static const struct tool_arg *args_find(const struct tool_command *cmd, int c)
{
    for (size_t i = 0; i < cmd->nargs; i++) {
        if (c == (int)(ARGS_FIRST + i) || (cmd->args[i].letter && c == cmd->args[i].letter))
            return &cmd->args[i];
    }
    return NULL;
}

/* What getopt_long stumbled over. */
static int args_refuse(const struct tool_command *cmd, int c, char **argv, struct pdx_error *why)
{
    const struct tool_arg *arg = args_find(cmd, optopt);

    if (c == ':' && arg)
        return tool_refuse(why, PDX_EINVAL, "option --%s needs a value; see pdx %s --help",
                           arg->name, cmd->name);
    if (arg || optopt == ARGS_HELP)
        return tool_refuse(why, PDX_EINVAL, "option --%s takes no value; see pdx %s --help",
                           arg ? arg->name : "help", cmd->name);
    if (optopt)
        return tool_refuse(why, PDX_EINVAL, "there is no option -%c; see pdx %s --help", optopt,
                           cmd->name);
    return tool_refuse(why, PDX_EINVAL, "there is no option %s; see pdx %s --help",
                       argv[optind - 1], cmd->name);
}

static int args_apply(const struct tool_arg *arg, const char *text, struct pdx_error *why)
{
    struct pdx_error need;

    if (args_set(arg, text, &need) == 0)
        return 0;
    return tool_refuse(why, PDX_EINVAL, "option --%s must be %s; it is \"%s\"", arg->name,
                       need.text, text);
}

int tool_args_parse(const struct tool_command *cmd, int argc, char **argv, int *ret_first,
                    struct pdx_error *why)
{
    struct option longs[ARGS_MAX + 2];
    char shorts[2 * ARGS_MAX + 3];
    int c, noperands;

    assert(cmd->nargs <= ARGS_MAX);
    args_tables(cmd, longs, shorts);
    opterr = 0;
    optind = 0; /* GNU: begin anew, also after another command line */
    while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct tool_arg *arg = args_find(cmd, c);
        int r;

        if (c == 'h' || c == ARGS_HELP)
            return TOOL_ARGS_HELP;
        r = arg ? args_apply(arg, optarg, why) : args_refuse(cmd, c, argv, why);
        if (r < 0)
            return r;
    }
    noperands = argc - optind;
    if (noperands > 0 && (size_t)noperands > (cmd->operand ? cmd->max_operands : 0))
        return tool_refuse(why, PDX_EINVAL, "argument \"%s\" is one too many; see pdx %s --help",
                           argv[optind + (cmd->operand ? (int)cmd->max_operands : 0)], cmd->name);
    if (ret_first)
        *ret_first = optind;
    return 0;
}

/* ---- Help ---- */

static const char *args_label(const struct tool_arg *arg)
{
    if (arg->label)
        return arg->label;
    switch (arg->kind) {
    case TOOL_ARG_FLAG:
        return "";
    case TOOL_ARG_STRING:
        return "TEXT";
    case TOOL_ARG_UINT:
    case TOOL_ARG_REAL:
        return "N";
    case TOOL_ARG_SIZE:
        return "SIZE";
    case TOOL_ARG_DURATION:
        return "TIME";
    case TOOL_ARG_ADDRESS:
        return "HOST:PORT";
    case TOOL_ARG_PAIR:
        return "P:D";
    }
    return "";
}

/* One option: its left side, then its help text, whose further lines are indented. */
static void args_help_line(const char *left, const char *help, int width, FILE *out)
{
    const char *line = help;

    (void)fprintf(out, "  %-*s  ", width, left);
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        (void)fprintf(out, "%.*s\n  %-*s  ", (int)(end - line), line, width, "");
    (void)fprintf(out, "%s\n", line);
}

static void args_left(const struct tool_arg *arg, char *buf, size_t cap)
{
    const char *label = args_label(arg);

    if (arg->letter)
        (void)snprintf(buf, cap, "-%c, --%s%s%s", arg->letter, arg->name, *label ? " " : "", label);
    else
        (void)snprintf(buf, cap, "    --%s%s%s", arg->name, *label ? " " : "", label);
}

void tool_args_help(const struct tool_command *cmd, FILE *out)
{
    char left[80];
    int width = (int)strlen("-h, --help");

    for (size_t i = 0; i < cmd->nargs; i++) {
        args_left(&cmd->args[i], left, sizeof left);
        if ((int)strlen(left) > width)
            width = (int)strlen(left);
    }
    (void)fprintf(out, "usage: pdx %s%s%s\n\n%s\n\noptions:\n", cmd->name, cmd->synopsis ? " " : "",
                  cmd->synopsis ? cmd->synopsis : "", cmd->purpose);
    for (size_t i = 0; i < cmd->nargs; i++) {
        args_left(&cmd->args[i], left, sizeof left);
        args_help_line(left, cmd->args[i].help, width, out);
    }
    args_help_line("-h, --help", "show this text", width, out);
}

bool tool_args_begin(const struct tool_command *cmd, int argc, char **argv, int *ret_first,
                     int *ret_exit)
{
    struct pdx_error why;
    int r = tool_args_parse(cmd, argc, argv, ret_first, &why);

    if (r == 0)
        return true;
    if (r == TOOL_ARGS_HELP) {
        tool_args_help(cmd, stdout);
        *ret_exit = TOOL_EXIT_OK;
    } else {
        (void)fprintf(stderr, "pdx %s: %s\n", cmd->name, why.text);
        *ret_exit = TOOL_EXIT_USAGE;
    }
    return false;
}
