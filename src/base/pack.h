/* SPDX-License-Identifier: Apache-2.0
 *
 * MessagePack through msgpack-c: writing into a buffer of fixed size, and
 * reading within limits. A document is walked once before msgpack-c sees it,
 * so that a short input can't ask for much memory: what is allocated is bounded
 * by a small multiple of the input's length, nesting by PDXI_UNPACK_DEPTH.
 */
#ifndef PDXI_BASE_PACK_H
#define PDXI_BASE_PACK_H

#include <pdx/error.h>

/* Writing. `len` counts on when the buffer is full, so that one pass with cap 0 measures. */
struct pdxi_packer {
    uint8_t *buf; /* borrowed; may be NULL with cap 0 */
    size_t cap;
    size_t len;
};

void pdxi_pack_init(struct pdxi_packer *p, void *buf, size_t cap);
void pdxi_pack_map(struct pdxi_packer *p, size_t nentries);
void pdxi_pack_array(struct pdxi_packer *p, size_t n);
void pdxi_pack_str(struct pdxi_packer *p, const char *s);
void pdxi_pack_bin(struct pdxi_packer *p, const void *data, size_t len);
void pdxi_pack_uint(struct pdxi_packer *p, uint64_t v);
void pdxi_pack_int(struct pdxi_packer *p, int64_t v);
/* Whether all of it fitted. */
static inline bool pdxi_pack_fits(const struct pdxi_packer *p)
{
    return p->len <= p->cap;
}

/* Reading. */
#define PDXI_UNPACK_DEPTH    8   /* maps and arrays inside each other */
#define PDXI_UNPACK_KEYS_MAX 128 /* in one map; keeps the search for duplicates short */

struct pdxi_value; /* a value inside a document; lives as long as it */

struct pdxi_unpacked {
    void *zone; /* owned */
    const struct pdxi_value *root;
};

/* Parses exactly one document. Returns 0; PDX_EPROTO (the text has the byte offset: truncated,
 * trailing bytes, too deep, too many keys, a duplicate or non-string key, a value type that is not
 * used: nil, float, extension); PDX_ENOMEM. Strings and binaries point into `buf` or the document:
 * keep both until close. */
int pdxi_unpack_open(struct pdxi_unpacked *u, const void *buf, size_t len, struct pdx_error *why);
/* Also for a zeroed struct, and twice. */
void pdxi_unpack_close(struct pdxi_unpacked *u);

/* The value of a key of a map, or NULL (also when `map` is NULL or no map). */
const struct pdxi_value *pdxi_value_get(const struct pdxi_value *map, const char *key);
/* Each returns false when `v` is NULL or of another type, or does not fit. */
bool pdxi_value_uint(const struct pdxi_value *v, uint64_t max, uint64_t *ret);
bool pdxi_value_int(const struct pdxi_value *v, int64_t *ret);
bool pdxi_value_str(const struct pdxi_value *v, const char **ret, size_t *ret_len);
bool pdxi_value_bin(const struct pdxi_value *v, const uint8_t **ret, size_t *ret_len);
bool pdxi_value_array(const struct pdxi_value *v, size_t *ret_n);
/* Element i < n of an array. */
const struct pdxi_value *pdxi_value_at(const struct pdxi_value *array, size_t i);

#endif
