/* SPDX-License-Identifier: Apache-2.0
 *
 * The pdx command: finds the subcommand and hands over. Also sees to it that
 * there are standard streams, and that lost output is no success.
 */
#include "tool/commands.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    const char *summary;
    int (*main)(int argc, char **argv);
};

static int help_main(int argc, char **argv);

static const struct command commands[] = {
    {"decode", "offer memory and verify what arrives", tool_decode_main},
    {"prefill", "make requests and send their state to a decode", tool_prefill_main},
    {"demo", "both of these on this machine", tool_demo_main},
    {"models", "what models keep per token and per request", tool_models_main},
    {"doctor", "what this machine offers for transfers", tool_doctor_main},
    {"version", "versions of the command and the library", tool_version_main},
    {"help", "this text, or that of a command", help_main},
};

#define NCOMMANDS (sizeof commands / sizeof commands[0])

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void command_list(FILE *out)
{
    (void)fputs("usage: pdx COMMAND [options]\n\n"
                "Moves KV cache and model state between prefill and decode workers.\n\n"
                "commands:\n",
                out);
    for (size_t i = 0; i < NCOMMANDS; i++)
        (void)fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    (void)fputs("\nThe quickest way to see it work: pdx demo\n"
                "pdx COMMAND --help tells the options of a command.\n",
                out);
}

static int command_unknown(const char *name)
{
    (void)fprintf(stderr, "pdx: there is no command \"%s\"; pdx help lists them\n", name);
    return TOOL_EXIT_USAGE;
}

static int help_main(int argc, char **argv)
{
    const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;
    char help[] = "--help";
    char *args[] = {NULL, help, NULL};

    if (argc > 1 && !c)
        return command_unknown(argv[1]);
    if (!c || c->main == help_main) {
        command_list(stdout);
        return TOOL_EXIT_OK;
    }
    args[0] = argv[1];
    return c->main(2, args);
}

/* The number of a stream that the caller closed would go to a socket, and what is printed into that
 * socket. */
static bool main_open_streams(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR); /* children have them too */
    while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

/* Tables that did not get onto a full disk must not look like success. */
static int main_close_output(int status)
{
    int err = fflush(stdout) == 0 ? 0 : errno;

    if (err == 0 && !ferror(stdout))
        return status;
    (void)fprintf(stderr, "pdx: cannot write to standard output%s%s\n", err ? ": " : "",
                  err ? strerror(err) : "");
    return status == TOOL_EXIT_OK ? TOOL_EXIT_FAILED : status;
}

static int main_command(int argc, char **argv)
{
    const struct command *c;

    if (argc < 2) {
        command_list(stderr);
        return TOOL_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help_main(1, argv);
    if (strcmp(argv[1], "--version") == 0)
        return tool_version_main(1, argv);
    c = command_find(argv[1]);
    return c ? c->main(argc - 1, argv + 1) : command_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    if (!main_open_streams())
        return TOOL_EXIT_FAILED;
    return main_close_output(main_command(argc, argv));
}
