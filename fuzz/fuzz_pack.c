/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: a MessagePack document. What is refused costs no memory, what is
 * accepted no more than a multiple of its length. An accepted document answers
 * every accessor as its types say, and written out by msgpack-c in the shortest
 * form it is accepted again and is equal.
 */
#include "base/pack.h"
#include "fuzz.h"

#include <malloc.h>
#include <msgpack.h>

#define FUZZ_BYTES_PER_BYTE 96 /* as tests/test_base_pack.c has it */
#define FUZZ_BYTES_FIXED    16384

/* AddressSanitizer's count, where it is linked. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t heap_bytes(void)
{
    struct mallinfo2 info;

    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void check_scalar(const msgpack_object *o, const struct pdxi_value *v)
{
    const uint8_t *bin = NULL;
    const char *s = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    size_t len = 0;
    bool natural = o->type == MSGPACK_OBJECT_POSITIVE_INTEGER;
    bool negative = o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER;

    FUZZ_CHECK(pdxi_value_uint(v, UINT64_MAX, &u) == natural);
    FUZZ_CHECK(pdxi_value_int(v, &i) == (negative || (natural && u <= INT64_MAX)));
    FUZZ_CHECK(!natural || u == o->via.u64);
    FUZZ_CHECK(!negative || i == o->via.i64);
    FUZZ_CHECK(pdxi_value_str(v, &s, &len) == (o->type == MSGPACK_OBJECT_STR));
    FUZZ_CHECK(o->type != MSGPACK_OBJECT_STR || (s && len == o->via.str.size));
    FUZZ_CHECK(pdxi_value_bin(v, &bin, &len) == (o->type == MSGPACK_OBJECT_BIN));
    FUZZ_CHECK(o->type != MSGPACK_OBJECT_BIN || (bin && len == o->via.bin.size));
}

static void check_value(const msgpack_object *o, unsigned depth)
{
    const struct pdxi_value *v = (const struct pdxi_value *)o;
    size_t n = 0;

    check_scalar(o, v);
    FUZZ_CHECK(pdxi_value_array(v, &n) == (o->type == MSGPACK_OBJECT_ARRAY));
    if (o->type == MSGPACK_OBJECT_ARRAY) {
        FUZZ_CHECK(n == o->via.array.size && depth <= PDXI_UNPACK_DEPTH);
        for (size_t i = 0; i < n; i++)
            check_value((const msgpack_object *)pdxi_value_at(v, i), depth + 1);
    }
    if (o->type != MSGPACK_OBJECT_MAP)
        return;
    FUZZ_CHECK(o->via.map.size <= PDXI_UNPACK_KEYS_MAX && depth <= PDXI_UNPACK_DEPTH);
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];
        char *key;

        FUZZ_CHECK(kv->key.type == MSGPACK_OBJECT_STR);
        key = calloc(1, (size_t)kv->key.via.str.size + 1);
        FUZZ_CHECK(key);
        if (kv->key.via.str.size > 0)
            memcpy(key, kv->key.via.str.ptr, kv->key.via.str.size);
        /* A key with a zero byte can't be asked for; every other one finds its own value. */
        if (strlen(key) == kv->key.via.str.size)
            FUZZ_CHECK((const msgpack_object *)pdxi_value_get(v, key) == &kv->val);
        free(key);
        check_value(&kv->val, depth + 1);
    }
}

static void check_again(const msgpack_object *root, size_t size)
{
    struct pdxi_unpacked again;
    msgpack_sbuffer out;
    msgpack_packer pk;

    msgpack_sbuffer_init(&out);
    msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
    FUZZ_CHECK(msgpack_pack_object(&pk, *root) == 0);
    FUZZ_CHECK(out.size <= size);
    FUZZ_CHECK(pdxi_unpack_open(&again, out.data, out.size, NULL) == 0);
    FUZZ_CHECK(msgpack_object_equal(*root, *(const msgpack_object *)again.root));
    pdxi_unpack_close(&again);
    msgpack_sbuffer_destroy(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct pdx_error why = {0};
    struct pdxi_unpacked u;
    size_t before = heap_bytes();
    int rc = pdxi_unpack_open(&u, copy, size, &why);
    size_t cost = heap_bytes() - before;

    FUZZ_CHECK(rc == 0 || rc == PDX_EPROTO);
    FUZZ_CHECK(rc == why.code && (rc == 0) == (why.text[0] == '\0'));
    FUZZ_CHECK(cost <= (rc < 0 ? 0 : FUZZ_BYTES_PER_BYTE * size + FUZZ_BYTES_FIXED));
    if (rc == 0) {
        check_value((const msgpack_object *)u.root, 1);
        check_again((const msgpack_object *)u.root, size);
        pdxi_unpack_close(&u);
    }
    free(copy);
    return 0;
}
