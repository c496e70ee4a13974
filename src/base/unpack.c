/* SPDX-License-Identifier: Apache-2.0
 *
 * MessagePack, the reading half. A parsed document is msgpack-c's tree of
 * 24-byte objects in a zone; strings and binaries stay in the caller's buffer,
 * save that msgpack-c has NULL for empty ones, which nobody else gets to see.
 * struct pdxi_value is never defined: such a pointer is one to a
 * msgpack_object, and only this file knows.
 */
#include "base/error.h"
#include "base/pack.h"
#include "base/pack_walk.h"

#include <assert.h>
#include <msgpack.h>
#include <string.h>

int pdxi_unpack_open(struct pdxi_unpacked *u, const void *buf, size_t len, struct pdx_error *why)
{
    msgpack_unpacked doc;
    msgpack_object *root;
    size_t off = 0;
    int rc = pdxi_pack_walk(buf, len, why);

    if (rc < 0)
        return rc;
    msgpack_unpacked_init(&doc);
    switch (msgpack_unpack_next(&doc, buf, len, &off)) {
    case MSGPACK_UNPACK_SUCCESS:
        break;
    case MSGPACK_UNPACK_NOMEM_ERROR:
        goto out_nomem;
    case MSGPACK_UNPACK_EXTRA_BYTES:
    case MSGPACK_UNPACK_CONTINUE:
    case MSGPACK_UNPACK_PARSE_ERROR:
        msgpack_unpacked_destroy(&doc);
        return pdxi_refuse(why, PDX_EPROTO, "MessagePack: not understood near byte %zu", off);
    }
    /* A document that is one number or string has come without a zone. */
    if (!doc.zone)
        doc.zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE);
    if (!doc.zone)
        goto out_nomem;
    root = msgpack_zone_malloc(doc.zone, sizeof *root);
    if (!root)
        goto out_nomem;
    *root = doc.data;
    u->zone = msgpack_unpacked_release_zone(&doc);
    u->root = (const struct pdxi_value *)root;
    return 0;

out_nomem:
    msgpack_unpacked_destroy(&doc);
    return pdxi_refuse(why, PDX_ENOMEM, "no memory for a MessagePack document of %zu bytes", len);
}

void pdxi_unpack_close(struct pdxi_unpacked *u)
{
    if (u->zone)
        msgpack_zone_free(u->zone);
    *u = (struct pdxi_unpacked){0};
}

/* NULL unless `v` is a value of this type. */
static const msgpack_object *value_as(const struct pdxi_value *v, msgpack_object_type type)
{
    const msgpack_object *o = (const msgpack_object *)v;

    return o && o->type == type ? o : NULL;
}

const struct pdxi_value *pdxi_value_get(const struct pdxi_value *map, const char *key)
{
    const msgpack_object *o = value_as(map, MSGPACK_OBJECT_MAP);
    size_t len = strlen(key);

    for (uint32_t i = 0; o && i < o->via.map.size; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];

        if (kv->key.via.str.size == len && (len == 0 || memcmp(kv->key.via.str.ptr, key, len) == 0))
            return (const struct pdxi_value *)&kv->val;
    }
    return NULL;
}

bool pdxi_value_uint(const struct pdxi_value *v, uint64_t max, uint64_t *ret)
{
    const msgpack_object *o = value_as(v, MSGPACK_OBJECT_POSITIVE_INTEGER);

    if (!o || o->via.u64 > max)
        return false;
    *ret = o->via.u64;
    return true;
}

bool pdxi_value_int(const struct pdxi_value *v, int64_t *ret)
{
    const msgpack_object *o = value_as(v, MSGPACK_OBJECT_NEGATIVE_INTEGER);
    uint64_t positive;

    if (o) {
        *ret = o->via.i64;
        return true;
    }
    if (!pdxi_value_uint(v, INT64_MAX, &positive))
        return false;
    *ret = (int64_t)positive;
    return true;
}

bool pdxi_value_str(const struct pdxi_value *v, const char **ret, size_t *ret_len)
{
    const msgpack_object *o = value_as(v, MSGPACK_OBJECT_STR);

    if (!o)
        return false;
    *ret = o->via.str.size > 0 ? o->via.str.ptr : "";
    *ret_len = o->via.str.size;
    return true;
}

bool pdxi_value_bin(const struct pdxi_value *v, const uint8_t **ret, size_t *ret_len)
{
    const msgpack_object *o = value_as(v, MSGPACK_OBJECT_BIN);

    if (!o)
        return false;
    *ret = (const uint8_t *)(o->via.bin.size > 0 ? o->via.bin.ptr : "");
    *ret_len = o->via.bin.size;
    return true;
}

bool pdxi_value_array(const struct pdxi_value *v, size_t *ret_n)
{
    const msgpack_object *o = value_as(v, MSGPACK_OBJECT_ARRAY);

    if (!o)
        return false;
    *ret_n = o->via.array.size;
    return true;
}

const struct pdxi_value *pdxi_value_at(const struct pdxi_value *array, size_t i)
{
    const msgpack_object *o = value_as(array, MSGPACK_OBJECT_ARRAY);

    assert(o && i < o->via.array.size);
    return (const struct pdxi_value *)&o->via.array.ptr[i];
}
