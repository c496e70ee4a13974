/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx version: of the command, and of the library that is loaded with it.
 */
#include "tool/args.h"
#include "tool/commands.h"

int tool_version_main(int argc, char **argv)
{
    const struct tool_command cmd = {
        .name = "version",
        .purpose = "Shows the versions of the command and of the library that it found.",
    };
    int status;

    if (!tool_args_begin(&cmd, argc, argv, NULL, &status))
        return status;
    (void)printf("pdx %s, libpdx %s\n", PDX_VERSION, pdx_version());
    return TOOL_EXIT_OK;
}
