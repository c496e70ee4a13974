/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps over one MessagePack document by its first bytes, with nothing on the
 * heap and at most PDXI_UNPACK_DEPTH levels of recursion.
 */
#include "base/pack_walk.h"

#include "base/error.h"
#include "base/pack.h"

#include <string.h>

struct walk {
    const uint8_t *buf;
    size_t len;
    size_t pos;
    struct pdx_error *why;
};

enum walk_type { WALK_UNUSED = 0, WALK_SCALAR, WALK_STR, WALK_BIN, WALK_ARRAY, WALK_MAP };

/* What the first byte of a value tells. */
struct walk_format {
    enum walk_type type;
    uint8_t nbytes; /* behind it, with the scalar, the length or the count */
    uint8_t mask;   /* or the bits of the byte itself that hold it */
};

/* First bytes 0xc0 .. 0xdf. Left out, thus unused: nil, ext, float, fixext. */
static const struct walk_format walk_formats[0x20] = {
    [0x02] = {WALK_SCALAR, 0, 0}, /* false */
    [0x03] = {WALK_SCALAR, 0, 0}, /* true */
    [0x04] = {WALK_BIN, 1, 0},    [0x05] = {WALK_BIN, 2, 0},    [0x06] = {WALK_BIN, 4, 0},
    [0x0c] = {WALK_SCALAR, 1, 0}, /* uint */
    [0x0d] = {WALK_SCALAR, 2, 0}, [0x0e] = {WALK_SCALAR, 4, 0}, [0x0f] = {WALK_SCALAR, 8, 0},
    [0x10] = {WALK_SCALAR, 1, 0}, /* int */
    [0x11] = {WALK_SCALAR, 2, 0}, [0x12] = {WALK_SCALAR, 4, 0}, [0x13] = {WALK_SCALAR, 8, 0},
    [0x19] = {WALK_STR, 1, 0},    [0x1a] = {WALK_STR, 2, 0},    [0x1b] = {WALK_STR, 4, 0},
    [0x1c] = {WALK_ARRAY, 2, 0},  [0x1d] = {WALK_ARRAY, 4, 0},  [0x1e] = {WALK_MAP, 2, 0},
    [0x1f] = {WALK_MAP, 4, 0},
};

static struct walk_format walk_format(uint8_t lead)
{
    if (lead < 0x80 || lead >= 0xe0) /* small integers */
        return (struct walk_format){WALK_SCALAR, 0, 0};
    if (lead < 0x90)
        return (struct walk_format){WALK_MAP, 0, 0x0f};
    if (lead < 0xa0)
        return (struct walk_format){WALK_ARRAY, 0, 0x0f};
    if (lead < 0xc0)
        return (struct walk_format){WALK_STR, 0, 0x1f};
    return walk_formats[lead - 0xc0];
}

static int walk_truncated(const struct walk *w)
{
    return pdxi_refuse(w->why, PDX_EPROTO,
                       "MessagePack: the value at byte %zu is cut off by the end at %zu bytes",
                       w->pos, w->len);
}

/* Reads a lead byte and the number that belongs to it. */
static int walk_head(struct walk *w, enum walk_type *ret_type, uint64_t *ret_n)
{
    struct walk_format format;
    uint64_t n;
    size_t pos = w->pos;

    if (pos == w->len)
        return walk_truncated(w);
    format = walk_format(w->buf[pos]);
    if (format.type == WALK_UNUSED)
        return pdxi_refuse(w->why, PDX_EPROTO,
                           "MessagePack: byte %zu is 0x%02x, a type that is not used here (nil, "
                           "float or extension)",
                           pos, w->buf[pos]);
    n = w->buf[pos] & format.mask;
    if (format.nbytes > w->len - pos - 1)
        return walk_truncated(w);
    for (size_t i = 1; i <= format.nbytes; i++)
        n = n << 8 | w->buf[pos + i];
    w->pos = pos + 1 + format.nbytes;
    *ret_type = format.type;
    *ret_n = n;
    return 0;
}

/* Steps over the n bytes of a string or binary that began at `start`. */
static int walk_bytes(struct walk *w, size_t start, uint64_t n)
{
    if (n > w->len - w->pos) {
        w->pos = start;
        return walk_truncated(w);
    }
    w->pos += (size_t)n;
    return 0;
}

struct walk_key {
    const uint8_t *s;
    size_t len;
};

/* Reads a map's key and compares it with the n keys before it. */
static int walk_key(struct walk *w, struct walk_key *keys, size_t n)
{
    size_t start = w->pos;
    enum walk_type type;
    uint64_t len;
    int rc = walk_head(w, &type, &len);

    if (rc < 0)
        return rc;
    if (type != WALK_STR)
        return pdxi_refuse(w->why, PDX_EPROTO, "MessagePack: the key at byte %zu is no string",
                           start);
    keys[n] = (struct walk_key){w->buf + w->pos, (size_t)len};
    rc = walk_bytes(w, start, len);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (keys[i].len == len && memcmp(keys[i].s, keys[n].s, keys[n].len) == 0)
            return pdxi_refuse(w->why, PDX_EPROTO,
                               "MessagePack: the key at byte %zu is in its map twice", start);
    return 0;
}

static int walk_value(struct walk *w, unsigned depth);

static int walk_map(struct walk *w, size_t start, uint64_t n, unsigned depth)
{
    struct walk_key keys[PDXI_UNPACK_KEYS_MAX];

    if (n > PDXI_UNPACK_KEYS_MAX)
        return pdxi_refuse(w->why, PDX_EPROTO,
                           "MessagePack: the map at byte %zu has %llu keys; the limit is %d", start,
                           (unsigned long long)n, PDXI_UNPACK_KEYS_MAX);
    for (size_t i = 0; i < n; i++) {
        int rc = walk_key(w, keys, i);

        if (rc == 0)
            rc = walk_value(w, depth + 1);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int walk_array(struct walk *w, size_t start, uint64_t n, unsigned depth)
{
    if (n > w->len - w->pos)
        return pdxi_refuse(w->why, PDX_EPROTO,
                           "MessagePack: the array at byte %zu claims %llu elements in %zu bytes",
                           start, (unsigned long long)n, w->len - w->pos);
    for (uint64_t i = 0; i < n; i++) {
        int rc = walk_value(w, depth + 1);

        if (rc < 0)
            return rc;
    }
    return 0;
}

static int walk_value(struct walk *w, unsigned depth)
{
    size_t start = w->pos;
    enum walk_type type = WALK_UNUSED;
    uint64_t n = 0;
    int rc = walk_head(w, &type, &n);

    if (rc < 0)
        return rc;
    if ((type == WALK_ARRAY || type == WALK_MAP) && depth > PDXI_UNPACK_DEPTH)
        return pdxi_refuse(w->why, PDX_EPROTO,
                           "MessagePack: nested deeper than %d levels at byte %zu",
                           PDXI_UNPACK_DEPTH, start);
    switch (type) {
    case WALK_STR:
    case WALK_BIN:
        return walk_bytes(w, start, n);
    case WALK_ARRAY:
        return walk_array(w, start, n, depth);
    case WALK_MAP:
        return walk_map(w, start, n, depth);
    case WALK_SCALAR:
    case WALK_UNUSED:
        break;
    }
    return 0;
}

int pdxi_pack_walk(const void *buf, size_t len, struct pdx_error *why)
{
    struct walk w = {.buf = buf, .len = len, .why = why};
    int rc = walk_value(&w, 1);

    if (rc == 0 && w.pos != len)
        rc = pdxi_refuse(why, PDX_EPROTO,
                         "MessagePack: %zu bytes follow the end of the document at byte %zu",
                         len - w.pos, w.pos);
    return rc;
}
