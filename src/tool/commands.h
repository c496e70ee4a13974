/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands of pdx. Each one gets the arguments after and including its
 * own name and returns the exit status: 0 when all went well, 1 when the work
 * itself failed (a transfer, a comparison), 2 when it could not begin (a bad
 * argument, file or configuration). Each prints its own --help.
 */
#ifndef PDX_TOOL_COMMANDS_H
#define PDX_TOOL_COMMANDS_H

enum tool_exit { TOOL_EXIT_OK = 0, TOOL_EXIT_FAILED = 1, TOOL_EXIT_USAGE = 2 };

int tool_decode_main(int argc, char **argv);
int tool_prefill_main(int argc, char **argv);
int tool_demo_main(int argc, char **argv);
int tool_models_main(int argc, char **argv);
int tool_doctor_main(int argc, char **argv);
int tool_version_main(int argc, char **argv);

#endif
