/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes values from an input, one after the other; zeroes behind its end. A
 * number is a byte that says how many bytes follow (0, 1, 2 or 8, by its low
 * two bits), and these, little-endian; so that small inputs can hold huge
 * values, and a change of one byte does not move all that follows.
 */
#ifndef PDX_FUZZ_INPUT_H
#define PDX_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_input {
    const uint8_t *data; /* borrowed */
    size_t left;
};

static inline uint8_t fuzz_input_byte(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->data++;
}

static inline uint64_t fuzz_input_number(struct fuzz_input *in)
{
    static const unsigned lens[] = {0, 1, 2, 8};
    unsigned len = lens[fuzz_input_byte(in) & 3];
    uint64_t v = 0;

    for (unsigned i = 0; i < len; i++)
        v |= (uint64_t)fuzz_input_byte(in) << 8 * i;
    return v;
}

/* A count: small ones as they are, then powers of two up to 2^31. */
static inline uint64_t fuzz_input_count(struct fuzz_input *in)
{
    uint8_t b = fuzz_input_byte(in);

    return b < 0xe0 ? b : UINT64_C(1) << (b - 0xe0);
}

#endif
