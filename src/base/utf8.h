/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that came from outside and will end in a log line or on a terminal:
 * UTF-8 without control characters, so that a name can't break a line, hide
 * what follows or end a string early.
 */
#ifndef PDXI_BASE_UTF8_H
#define PDXI_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether `s` is valid UTF-8 (no overlong forms, surrogates or values past U+10FFFF) without
 * control characters (C0, DEL, C1; so no terminator either). Empty text is fine. */
bool pdxi_utf8_printable(const void *s, size_t len);

/* Copies as much of the string `s` as fits `cap` bytes, in whole characters, with '?' for every
 * byte that is not part of a printable character. Adds no terminator. Returns the bytes written. */
size_t pdxi_utf8_clean(void *dst, size_t cap, const char *s);

#endif
