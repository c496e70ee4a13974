/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences of the command. A text that is too long is cut at a whole UTF-8
 * character, as the library does it.
 */
#include "tool/refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Drops the beginning of a character whose end did not fit. */
static void refuse_cut(char *text, size_t len)
{
    size_t n = len;

    while (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    if (n > 0 && ((unsigned char)text[n - 1] & 0xc0) == 0xc0)
        text[n - 1] = '\0';
}

__attribute__((format(printf, 3, 0))) static size_t refuse_fill(struct pdx_error *why, int code,
                                                                const char *fmt, va_list ap)
{
    int n;

    why->code = code;
    why->error_class = pdx_err_class(code);
    why->cost = PDX_COST_NONE;
    n = vsnprintf(why->text, sizeof why->text, fmt, ap);
    if (n < 0) {
        why->text[0] = '\0';
        return 0;
    }
    if ((size_t)n < sizeof why->text)
        return (size_t)n;
    refuse_cut(why->text, sizeof why->text - 1);
    return strlen(why->text);
}

int tool_refuse(struct pdx_error *why, int code, const char *fmt, ...)
{
    va_list ap;

    if (!why)
        return code;
    va_start(ap, fmt);
    (void)refuse_fill(why, code, fmt, ap);
    va_end(ap);
    return code;
}

int tool_refuse_sys(struct pdx_error *why, int err, const char *fmt, ...)
{
    char reason[128];
    va_list ap;
    size_t len;

    if (!why)
        return PDX_ESYS;
    va_start(ap, fmt);
    len = refuse_fill(why, PDX_ESYS, fmt, ap);
    va_end(ap);
    /* The GNU variant returns a pointer; the buffer may stay unused. */
    (void)snprintf(why->text + len, sizeof why->text - len, ": %s",
                   strerror_r(err, reason, sizeof reason));
    return PDX_ESYS;
}
