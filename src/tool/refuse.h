/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills in struct pdx_error from the command's side of the public API: the
 * command has sentences of its own (a bad file, a bad option) and hands them
 * on the way the library does.
 */
#ifndef PDX_TOOL_REFUSE_H
#define PDX_TOOL_REFUSE_H

#include <pdx/error.h>
#include <stddef.h>

/* Sets *why (which may be NULL) with the class of `code` and cost none; returns `code`. */
int tool_refuse(struct pdx_error *why, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with PDX_ESYS, followed by ": " and the text of `err` (an errno value). */
int tool_refuse_sys(struct pdx_error *why, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies text that came from outside and goes to a terminal or into JSON: whole characters, '?' for
 * what is not printable or not UTF-8. The sentences of the two above are clean already. */
void tool_text_clean(char *to, size_t cap, const char *from);

#endif
