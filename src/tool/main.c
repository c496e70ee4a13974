/* SPDX-License-Identifier: Apache-2.0
 *
 * The pdx command: finds the subcommand and hands over.
 */
#include "tool/commands.h"
#include <stdio.h>
#include <string.h>

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

int main(int argc, char **argv)
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
