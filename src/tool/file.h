/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file in memory, up to a limit.
 */
#ifndef PDX_TOOL_FILE_H
#define PDX_TOOL_FILE_H

#include <pdx/error.h>

/* Reads `path` into *ret_text (to be freed; one zero byte follows the text). Errors: PDX_ESYS (the
 * reason), PDX_EINVAL (longer than `max` bytes), PDX_ENOMEM. */
int tool_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                   struct pdx_error *why);

#endif
