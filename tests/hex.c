/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors as text, for the pipes between a test and its child.
 */
#include "child.h"

static const char hex_digits[] = "0123456789abcdef";

void ts_hex(const void *data, size_t len, char *ret_text)
{
    const uint8_t *in = data;

    for (size_t i = 0; i < len; i++) {
        *ret_text++ = hex_digits[in[i] >> 4];
        *ret_text++ = hex_digits[in[i] & 15];
    }
    *ret_text = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

size_t ts_unhex(const char *text, void *buf, size_t cap)
{
    uint8_t *out = buf;
    size_t n = 0;

    for (; text[0] != '\0'; text += 2) {
        int hi = hex_value(text[0]);
        int lo = hex_value(text[1]);

        if (hi < 0 || lo < 0 || n == cap)
            return 0;
        out[n++] = (uint8_t)(hi << 4 | lo);
    }
    return n;
}
