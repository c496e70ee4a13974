/* SPDX-License-Identifier: Apache-2.0
 *
 * MessagePack, the writing half. msgpack-c picks the shortest form of every
 * value, so equal values give equal bytes.
 */
#include "base/pack.h"

#include <assert.h>
#include <msgpack.h>
#include <string.h>

/* Appends what still fits whole and counts everything. */
static int pack_write(void *data, const char *buf, size_t len)
{
    struct pdxi_packer *p = data;

    if (len > 0 && p->len <= p->cap && len <= p->cap - p->len)
        memcpy(p->buf + p->len, buf, len);
    p->len += len;
    return 0;
}

static msgpack_packer pack_open(struct pdxi_packer *p)
{
    msgpack_packer pk;

    msgpack_packer_init(&pk, p, pack_write);
    return pk;
}

void pdxi_pack_init(struct pdxi_packer *p, void *buf, size_t cap)
{
    *p = (struct pdxi_packer){.buf = buf, .cap = cap};
}

void pdxi_pack_map(struct pdxi_packer *p, size_t nentries)
{
    msgpack_packer pk = pack_open(p);

    assert(nentries <= PDXI_UNPACK_KEYS_MAX);
    (void)msgpack_pack_map(&pk, nentries);
}

void pdxi_pack_array(struct pdxi_packer *p, size_t n)
{
    msgpack_packer pk = pack_open(p);

    assert(n <= UINT32_MAX);
    (void)msgpack_pack_array(&pk, n);
}

void pdxi_pack_str(struct pdxi_packer *p, const char *s)
{
    msgpack_packer pk = pack_open(p);
    size_t len = strlen(s);

    assert(len <= UINT32_MAX);
    (void)msgpack_pack_str(&pk, len);
    (void)msgpack_pack_str_body(&pk, s, len);
}

void pdxi_pack_bin(struct pdxi_packer *p, const void *data, size_t len)
{
    msgpack_packer pk = pack_open(p);

    assert(len <= UINT32_MAX);
    (void)msgpack_pack_bin(&pk, len);
    if (len > 0)
        (void)msgpack_pack_bin_body(&pk, data, len);
}

void pdxi_pack_uint(struct pdxi_packer *p, uint64_t v)
{
    msgpack_packer pk = pack_open(p);

    (void)msgpack_pack_uint64(&pk, v);
}

void pdxi_pack_int(struct pdxi_packer *p, int64_t v)
{
    msgpack_packer pk = pack_open(p);

    (void)msgpack_pack_int64(&pk, v);
}
