/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes as hexadecimal digits, for texts.
 */
#ifndef PDXI_BASE_HEX_H
#define PDXI_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

#define PDXI_HEX_LEN(nbytes) (2 * (nbytes) + 1)

/* `ret_text` gets PDXI_HEX_LEN(len) characters, the terminator included. */
static inline void pdxi_hex(const uint8_t *bytes, size_t len, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * len] = '\0';
}

#endif
