/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences of the command. A text that is too long is cut at a whole UTF-8
 * character, as the library does it. What a peer or a file name puts into a
 * sentence can neither move a terminal's cursor nor break JSON.
 */
#include "tool/refuse.h"

#include "base/utf8.h"

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

void tool_text_clean(char *to, size_t cap, const char *from)
{
    to[pdxi_utf8_clean(to, cap - 1, from)] = '\0';
}

__attribute__((format(printf, 3, 0))) static size_t refuse_fill(struct pdx_error *why, int code,
                                                                const char *fmt, va_list ap)
{
    char text[sizeof why->text];
    int n;

    why->code = code;
    why->error_class = pdx_err_class(code);
    why->cost = PDX_COST_NONE;
    n = vsnprintf(text, sizeof text, fmt, ap);
    if (n < 0)
        text[0] = '\0';
    else if ((size_t)n >= sizeof text)
        refuse_cut(text, sizeof text - 1);
    tool_text_clean(why->text, sizeof why->text, text);
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
