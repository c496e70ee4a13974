/* SPDX-License-Identifier: Apache-2.0
 *
 * See content.h. The streams are written and compared in blocks of eight words
 * held in a compiler vector: both compilers turn that into whatever the machine
 * has, without a flag or an intrinsic.
 */
#include "tool/content.h"

#include "base/bytes.h"

#define CONTENT_STEP  UINT64_C(0x9E3779B97F4A7C15)
#define CONTENT_BLOCK 64   /* bytes of a vector */
#define CONTENT_PROBE 4096 /* bytes compared before looking at the result */

typedef uint64_t content_words __attribute__((vector_size(CONTENT_BLOCK)));

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit moves every output bit. */
static uint64_t content_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 27;
    x *= UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Order matters: join(join(h, a), b) differs from join(join(h, b), a). */
static uint64_t content_join(uint64_t h, uint64_t v)
{
    return content_mix(h * UINT64_C(5) + v + CONTENT_STEP);
}

uint64_t tool_content_key(const char *tensor_name, int32_t layer)
{
    uint64_t h = 1;

    for (const char *p = tensor_name; *p; p++)
        h = content_join(h, (uint8_t)*p);
    return content_join(h, (uint32_t)layer);
}

uint64_t tool_content_base(uint64_t seed, uint64_t request, uint32_t pool, uint64_t key,
                           uint64_t item)
{
    uint64_t h = content_join(2, seed);

    h = content_join(h, request);
    h = content_join(h, pool);
    h = content_join(h, key);
    return content_join(h, item);
}

uint64_t tool_poison_base(uint64_t seed, uint32_t rank, uint32_t pool)
{
    uint64_t h = content_join(3, seed);

    h = content_join(h, rank);
    return content_join(h, pool);
}

static uint64_t content_word(uint64_t base, uint64_t pos)
{
    return base + pos / 8 * CONTENT_STEP;
}

uint8_t tool_content_byte(uint64_t base, uint64_t pos)
{
    return (uint8_t)(content_word(base, pos) >> (pos % 8 * 8));
}

/* Bytes up to the next word of the stream, at most len. */
static size_t content_head(uint64_t pos, size_t len)
{
    size_t n = (size_t)(-pos % 8);

    return n < len ? n : len;
}

/* The eight words from `pos` on, as they lie in memory. */
static void content_start(content_words *x, uint64_t base, uint64_t pos)
{
    for (unsigned i = 0; i < 8; i++)
        (*x)[i] = content_word(base, pos) + i * CONTENT_STEP;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define CONTENT_LE(x) (x)
#else
static inline content_words content_swap(content_words x)
{
    for (unsigned i = 0; i < 8; i++)
        x[i] = PDXI_LE64(x[i]);
    return x;
}
#define CONTENT_LE(x) content_swap(x)
#endif

static void content_fill_bytes(uint8_t *dst, size_t len, uint64_t base, uint64_t pos)
{
    for (size_t i = 0; i < len; i++)
        dst[i] = tool_content_byte(base, pos + i);
}

void tool_content_fill(void *dst, size_t len, uint64_t base, uint64_t pos)
{
    uint8_t *p = dst;
    size_t head = content_head(pos, len);
    content_words x;

    content_fill_bytes(p, head, base, pos);
    p += head;
    pos += head;
    len -= head;
    content_start(&x, base, pos);
    for (; len >= CONTENT_BLOCK; len -= CONTENT_BLOCK) {
        content_words le = CONTENT_LE(x);

        memcpy(p, &le, sizeof le);
        x += CONTENT_STEP * 8;
        p += CONTENT_BLOCK;
        pos += CONTENT_BLOCK;
    }
    content_fill_bytes(p, len, base, pos);
}

static size_t content_check_bytes(const uint8_t *src, size_t len, uint64_t base, uint64_t pos)
{
    size_t i = 0;

    while (i < len && src[i] == tool_content_byte(base, pos + i))
        i++;
    return i;
}

/* Whether n blocks from a word's beginning on are as they should be. */
static bool content_equal(const uint8_t *src, size_t n, uint64_t base, uint64_t pos)
{
    content_words x, diff = {0};
    uint64_t any = 0;

    content_start(&x, base, pos);
    for (size_t i = 0; i < n; i++) {
        content_words got;

        memcpy(&got, src + i * CONTENT_BLOCK, sizeof got);
        diff |= got ^ CONTENT_LE(x);
        x += CONTENT_STEP * 8;
    }
    for (unsigned i = 0; i < 8; i++)
        any |= diff[i];
    return any == 0;
}

size_t tool_content_check(const void *src, size_t len, uint64_t base, uint64_t pos)
{
    const uint8_t *p = src;
    size_t done = content_head(pos, len), bad;

    bad = content_check_bytes(p, done, base, pos);
    if (bad < done)
        return bad;
    while (len - done >= CONTENT_BLOCK) {
        size_t n = len - done < CONTENT_PROBE ? (len - done) / CONTENT_BLOCK
                                              : CONTENT_PROBE / CONTENT_BLOCK;

        if (!content_equal(p + done, n, base, pos + done))
            break;
        done += n * CONTENT_BLOCK;
    }
    return done + content_check_bytes(p + done, len - done, base, pos + done);
}

void tool_item_fill(uint8_t *dst, const struct tool_slicing *s, uint64_t base)
{
    for (uint64_t row = 0; row < s->rows; row++) {
        for (uint32_t i = 0; i < s->nblocks; i++) {
            const struct tool_block *b = &s->blocks[i];

            tool_content_fill(dst + row * s->row_len + b->off, b->len, base,
                              row * s->full_row_len + b->pos);
        }
    }
}

uint64_t tool_item_check(const uint8_t *src, const struct tool_slicing *s, uint64_t base,
                         uint8_t *ret_want)
{
    for (uint64_t row = 0; row < s->rows; row++) {
        for (uint32_t i = 0; i < s->nblocks; i++) {
            const struct tool_block *b = &s->blocks[i];
            uint64_t off = row * s->row_len + b->off, pos = row * s->full_row_len + b->pos;
            size_t ok = tool_content_check(src + off, b->len, base, pos);

            if (ok == b->len)
                continue;
            if (ret_want)
                *ret_want = tool_content_byte(base, pos + ok);
            return off + ok;
        }
    }
    return tool_slicing_item_len(s);
}
