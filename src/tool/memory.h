/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory this process may count on: what the machine has left, or what
 * its container or its shell allow if that is less.
 */
#ifndef PDX_TOOL_MEMORY_H
#define PDX_TOOL_MEMORY_H

#include <stdint.h>

/* Bytes, from the files below `root` ("" but for tests) and RLIMIT_AS. 0: nobody tells. */
uint64_t tool_memory_available(const char *root);

#endif
