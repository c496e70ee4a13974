/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes one character at a time after the table of well-formed byte
 * sequences (Unicode Standard, table 3-7).
 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the printable character at the start of s[0..len), or 0 when there is none. */
static size_t utf8_char_len(const uint8_t *s, size_t len)
{
    uint32_t c;
    size_t n;

    if (len == 0 || s[0] < 0x20 || s[0] == 0x7f)
        return 0;
    if (s[0] < 0x7f)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (n > len)
        return 0;
    c = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    /* A lead byte from 0xc2 on already excludes overlong forms of two bytes. */
    if ((n == 3 && c < 0x800) || (n == 4 && c < 0x10000) || c > 0x10ffff)
        return 0;
    if ((c >= 0xd800 && c <= 0xdfff) || c < 0xa0)
        return 0;
    return n;
}

bool pdxi_utf8_printable(const void *s, size_t len)
{
    const uint8_t *p = s;

    while (len > 0) {
        size_t n = utf8_char_len(p, len);

        if (n == 0)
            return false;
        p += n;
        len -= n;
    }
    return true;
}

size_t pdxi_utf8_clean(void *dst, size_t cap, const char *s)
{
    uint8_t *out = dst;
    const uint8_t *p = (const uint8_t *)s;
    size_t left = strlen(s);
    size_t len = 0;

    while (left > 0) {
        size_t n = utf8_char_len(p, left);
        size_t step = n > 0 ? n : 1;

        if (len + step > cap)
            break;
        if (n > 0)
            memcpy(out + len, p, n);
        else
            out[len] = '?';
        len += step;
        p += step;
        left -= step;
    }
    return len;
}
