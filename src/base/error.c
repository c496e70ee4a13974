/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum pdx_error_class error_class;
} error_table[] = {
    [-PDX_OK] = {"PDX_OK", PDX_CLASS_NONE},
    [-PDX_EINVAL] = {"PDX_EINVAL", PDX_CLASS_CALLER},
    [-PDX_ENOMEM] = {"PDX_ENOMEM", PDX_CLASS_RETRY},
    [-PDX_ERANGE] = {"PDX_ERANGE", PDX_CLASS_CALLER},
    [-PDX_EOVERFLOW] = {"PDX_EOVERFLOW", PDX_CLASS_CALLER},
    [-PDX_EAGAIN] = {"PDX_EAGAIN", PDX_CLASS_RETRY},
    [-PDX_ETIMEDOUT] = {"PDX_ETIMEDOUT", PDX_CLASS_RETRY},
    [-PDX_EBUSY] = {"PDX_EBUSY", PDX_CLASS_RETRY},
    [-PDX_ENOENT] = {"PDX_ENOENT", PDX_CLASS_CALLER},
    [-PDX_ENOSPC] = {"PDX_ENOSPC", PDX_CLASS_CALLER},
    [-PDX_EACCESS] = {"PDX_EACCESS", PDX_CLASS_CALLER},
    [-PDX_EPROTO] = {"PDX_EPROTO", PDX_CLASS_CALLER},
    [-PDX_EVERSION] = {"PDX_EVERSION", PDX_CLASS_FATAL},
    [-PDX_EMISMATCH] = {"PDX_EMISMATCH", PDX_CLASS_CALLER},
    [-PDX_ESTATE_TYPE] = {"PDX_ESTATE_TYPE", PDX_CLASS_CALLER},
    [-PDX_ESTALE] = {"PDX_ESTALE", PDX_CLASS_RECONNECT},
    [-PDX_EPEER] = {"PDX_EPEER", PDX_CLASS_RECONNECT},
    [-PDX_ECANCELLED] = {"PDX_ECANCELLED", PDX_CLASS_RETRY},
    [-PDX_EDEADLINE] = {"PDX_EDEADLINE", PDX_CLASS_RETRY},
    [-PDX_ESHUTDOWN] = {"PDX_ESHUTDOWN", PDX_CLASS_FATAL},
    [-PDX_EUNSUPPORTED] = {"PDX_EUNSUPPORTED", PDX_CLASS_FATAL},
    [-PDX_EREACTOR] = {"PDX_EREACTOR", PDX_CLASS_CALLER},
    [-PDX_ESYS] = {"PDX_ESYS", PDX_CLASS_FATAL},
    [-PDX_EREMOTE] = {"PDX_EREMOTE", PDX_CLASS_RETRY},
};

#define NERRORS ((int)(sizeof error_table / sizeof error_table[0]))

const char *pdx_err_name(int code)
{
    if (code > 0 || code <= -NERRORS)
        return "PDX_E?";
    return error_table[-code].name;
}

enum pdx_error_class pdx_err_class(int code)
{
    if (code > 0 || code <= -NERRORS)
        return PDX_CLASS_NONE;
    return error_table[-code].error_class;
}

const char *pdx_error_class_name(enum pdx_error_class error_class)
{
    switch (error_class) {
    case PDX_CLASS_NONE:
        return "none";
    case PDX_CLASS_CALLER:
        return "caller";
    case PDX_CLASS_RETRY:
        return "retry";
    case PDX_CLASS_RECONNECT:
        return "reconnect";
    case PDX_CLASS_FATAL:
        return "fatal";
    }
    return "?";
}

/* Ends the text before a UTF-8 character that was cut in the middle. */
static size_t text_end(char *buf, size_t len)
{
    size_t lead = len;

    while (lead > 0 && len - lead < 4 && ((unsigned char)buf[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead > 0 && ((unsigned char)buf[lead - 1] & 0xc0) == 0xc0) {
        unsigned char c = (unsigned char)buf[lead - 1];
        size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

        if (len - (lead - 1) < need)
            len = lead - 1;
    }
    buf[len] = '\0';
    return len;
}

static size_t text_vappend(char *buf, size_t cap, size_t len, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));
void pdxi_text_upper(char *buf, size_t cap, const char *text)
{
    size_t i = 0;

    for (; i + 1 < cap && text[i]; i++)
        buf[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
    buf[i] = '\0';
}

static size_t error_fill(struct pdx_error *why, int code, enum pdx_error_cost cost, const char *fmt,
                         va_list ap) __attribute__((format(printf, 4, 0)));

static size_t text_vappend(char *buf, size_t cap, size_t len, const char *fmt, va_list ap)
{
    int n;

    if (len + 1 >= cap)
        return len;
    n = vsnprintf(buf + len, cap - len, fmt, ap);
    if (n < 0)
        return len;
    if ((size_t)n < cap - len)
        return len + (size_t)n;
    return text_end(buf, cap - 1);
}

size_t pdxi_text_append(char *buf, size_t cap, size_t len, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    len = text_vappend(buf, cap, len, fmt, ap);
    va_end(ap);
    return len;
}

static size_t error_fill(struct pdx_error *why, int code, enum pdx_error_cost cost, const char *fmt,
                         va_list ap)
{
    why->code = code;
    why->error_class = pdx_err_class(code);
    why->cost = cost;
    why->text[0] = '\0';
    return text_vappend(why->text, sizeof why->text, 0, fmt, ap);
}

int pdxi_error_set(struct pdx_error *why, int code, enum pdx_error_cost cost, const char *fmt, ...)
{
    va_list ap;

    if (!why)
        return code;
    va_start(ap, fmt);
    (void)error_fill(why, code, cost, fmt, ap);
    va_end(ap);
    return code;
}

int pdxi_error_sys(struct pdx_error *why, int err, const char *fmt, ...)
{
    char reason[128];
    va_list ap;
    size_t len;

    if (!why)
        return PDX_ESYS;
    va_start(ap, fmt);
    len = error_fill(why, PDX_ESYS, PDX_COST_NONE, fmt, ap);
    va_end(ap);
    /* The GNU variant returns a pointer; the buffer may stay unused. */
    (void)pdxi_text_append(why->text, sizeof why->text, len, ": %s",
                           strerror_r(err, reason, sizeof reason));
    return PDX_ESYS;
}
