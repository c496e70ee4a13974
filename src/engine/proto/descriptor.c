/* SPDX-License-Identifier: Apache-2.0
 *
 * Field by field: a descriptor is refused for the first key that is missing or
 * wrong, and the sentence names it.
 */
#include "engine/proto/descriptor.h"

#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

static void engine_desc_pack(struct pdxi_packer *p, const struct pdxi_engine_desc *d)
{
    pdxi_pack_map(p, 6);
    pdxi_pack_str(p, "pdx");
    pdxi_pack_str(p, "engine");
    pdxi_pack_str(p, "v");
    pdxi_pack_uint(p, PDXI_DESC_VERSION);
    pdxi_pack_str(p, "name");
    pdxi_pack_str(p, d->name);
    pdxi_pack_str(p, "inc");
    pdxi_pack_bin(p, d->incarnation, PDX_INCARNATION_LEN);
    pdxi_pack_str(p, "host");
    pdxi_pack_bin(p, d->host, PDXI_HOST_LEN);
    pdxi_pack_str(p, "addrs");
    pdxi_pack_array(p, d->naddrs);
    for (uint32_t i = 0; i < d->naddrs; i++)
        pdxi_pack_str(p, d->addrs[i]);
}

size_t pdxi_engine_desc_encode(const struct pdxi_engine_desc *d, void *buf, size_t cap)
{
    struct pdxi_packer p;

    /* Measured first, so that nothing is written to a buffer that is too small. */
    pdxi_pack_init(&p, NULL, 0);
    engine_desc_pack(&p, d);
    if (p.len <= cap) {
        pdxi_pack_init(&p, buf, cap);
        engine_desc_pack(&p, d);
    }
    return p.len;
}

/* Checks that `v` is a descriptor of this type and of our version. */
static int desc_head_check(const struct pdxi_value *v, const char *type, struct pdx_error *why)
{
    const char *found;
    size_t len;
    uint64_t version;

    if (!pdxi_value_str(pdxi_value_get(v, "pdx"), &found, &len))
        return pdxi_refuse(why, PDX_EPROTO,
                           "%s descriptor: expected a map with the key \"pdx\": these bytes are "
                           "no descriptor",
                           type);
    if (len != strlen(type) || memcmp(found, type, len) != 0) {
        bool clean = len <= PDX_NAME_MAX && pdxi_utf8_printable(found, len);

        return pdxi_refuse(why, PDX_EPROTO,
                           "%s descriptor: these bytes are a descriptor of type \"%.*s\"", type,
                           clean ? (int)len : 1, clean ? found : "?");
    }
    if (!pdxi_value_uint(pdxi_value_get(v, "v"), UINT64_MAX, &version) || version == 0)
        return pdxi_refuse(why, PDX_EPROTO, "%s descriptor: \"v\" is missing or no version number",
                           type);
    if (version != PDXI_DESC_VERSION)
        return pdxi_refuse(why, PDX_EVERSION,
                           "%s descriptor: version %llu, this library reads version %d: run the "
                           "same version of pdx on both sides",
                           type, (unsigned long long)version, PDXI_DESC_VERSION);
    return 0;
}

/* A binary of exactly `len` bytes. */
static int desc_bin(const struct pdxi_value *map, const char *type, const char *key, uint8_t *ret,
                    size_t len, struct pdx_error *why)
{
    const uint8_t *data;
    size_t data_len;

    if (!pdxi_value_bin(pdxi_value_get(map, key), &data, &data_len) || data_len != len)
        return pdxi_refuse(why, PDX_EPROTO,
                           "%s descriptor: \"%s\" is missing or no binary of %zu bytes", type, key,
                           len);
    memcpy(ret, data, len);
    return 0;
}

/* Printable text of at most `max` bytes; ret has room for one more. */
static bool desc_text(const struct pdxi_value *v, size_t min, size_t max, char *ret)
{
    const char *s;
    size_t len;

    if (!pdxi_value_str(v, &s, &len) || len < min || len > max || !pdxi_utf8_printable(s, len))
        return false;
    memcpy(ret, s, len);
    ret[len] = '\0';
    return true;
}

static int engine_desc_addrs(const struct pdxi_value *v, struct pdxi_engine_desc *d,
                             struct pdx_error *why)
{
    char host[PDXI_ADDR_MAX + 1];
    size_t n;

    if (!pdxi_value_array(v, &n) || n < 1 || n > PDXI_ADDRS_MAX)
        return pdxi_refuse(why, PDX_EPROTO,
                           "engine descriptor: \"addrs\" is missing or no array of 1 to %d "
                           "addresses",
                           PDXI_ADDRS_MAX);
    for (size_t i = 0; i < n; i++) {
        int port;

        if (!desc_text(pdxi_value_at(v, i), 1, PDXI_ADDR_MAX, d->addrs[i]))
            return pdxi_refuse(why, PDX_EPROTO,
                               "engine descriptor: address %zu is no text of 1 to %d characters", i,
                               PDXI_ADDR_MAX);
        if (pdxi_addr_split(d->addrs[i], host, &port, NULL) < 0 || port < 1)
            return pdxi_refuse(why, PDX_EPROTO,
                               "engine descriptor: address %zu, \"%s\", is not host:port or "
                               "[IPv6 address]:port with a port from 1",
                               i, d->addrs[i]);
    }
    d->naddrs = (uint32_t)n;
    return 0;
}

static int engine_desc_fields(const struct pdxi_value *v, struct pdxi_engine_desc *d,
                              struct pdx_error *why)
{
    int rc = desc_head_check(v, "engine", why);

    if (rc < 0)
        return rc;
    if (!desc_text(pdxi_value_get(v, "name"), 0, PDX_NAME_MAX, d->name))
        return pdxi_refuse(why, PDX_EPROTO,
                           "engine descriptor: \"name\" is missing or no text of at most %d bytes "
                           "without control characters",
                           PDX_NAME_MAX);
    rc = desc_bin(v, "engine", "inc", d->incarnation, PDX_INCARNATION_LEN, why);
    if (rc == 0)
        rc = desc_bin(v, "engine", "host", d->host, PDXI_HOST_LEN, why);
    if (rc == 0)
        rc = engine_desc_addrs(pdxi_value_get(v, "addrs"), d, why);
    return rc;
}

int pdxi_engine_desc_decode(const void *buf, size_t len, struct pdxi_engine_desc *ret,
                            struct pdx_error *why)
{
    struct pdxi_engine_desc d = {0};
    struct pdxi_unpacked doc;
    int rc;

    if (len > PDXI_ENGINE_DESC_MAX)
        return pdxi_refuse(why, PDX_EPROTO, "engine descriptor: %zu bytes, the limit is %d", len,
                           PDXI_ENGINE_DESC_MAX);
    rc = pdxi_unpack_open(&doc, buf, len, why);
    if (rc < 0)
        return rc;
    rc = engine_desc_fields(doc.root, &d, why);
    pdxi_unpack_close(&doc);
    if (rc == 0)
        *ret = d;
    return rc;
}

void pdxi_remote_pack(struct pdxi_packer *p, const struct pdx_remote *r)
{
    pdxi_pack_map(p, 9);
    pdxi_pack_str(p, "pdx");
    pdxi_pack_str(p, "region");
    pdxi_pack_str(p, "v");
    pdxi_pack_uint(p, PDXI_DESC_VERSION);
    pdxi_pack_str(p, "inc");
    pdxi_pack_bin(p, r->incarnation, PDX_INCARNATION_LEN);
    pdxi_pack_str(p, "id");
    pdxi_pack_uint(p, r->id);
    pdxi_pack_str(p, "gen");
    pdxi_pack_uint(p, r->generation);
    pdxi_pack_str(p, "key");
    pdxi_pack_bin(p, r->key, PDX_KEY_LEN);
    pdxi_pack_str(p, "len");
    pdxi_pack_uint(p, r->len);
    pdxi_pack_str(p, "rights");
    pdxi_pack_uint(p, r->rights);
    pdxi_pack_str(p, "kind");
    pdxi_pack_uint(p, r->kind);
}

size_t pdxi_remote_encode(const struct pdx_remote *r, void *buf, size_t cap)
{
    struct pdxi_packer p;

    pdxi_pack_init(&p, NULL, 0);
    pdxi_remote_pack(&p, r);
    if (p.len <= cap) {
        pdxi_pack_init(&p, buf, cap);
        pdxi_remote_pack(&p, r);
    }
    return p.len;
}

/* A number of min .. max. */
static int remote_uint(const struct pdxi_value *map, const char *key, uint64_t min, uint64_t max,
                       uint64_t *ret, struct pdx_error *why)
{
    uint64_t v;

    if (!pdxi_value_uint(pdxi_value_get(map, key), max, &v) || v < min)
        return pdxi_refuse(why, PDX_EPROTO,
                           "region descriptor: \"%s\" is missing or no number from %llu to %llu",
                           key, (unsigned long long)min, (unsigned long long)max);
    *ret = v;
    return 0;
}

static int remote_u32(const struct pdxi_value *map, const char *key, uint32_t min, uint32_t max,
                      uint32_t *ret, struct pdx_error *why)
{
    uint64_t v = 0;
    int rc = remote_uint(map, key, min, max, &v, why);

    if (rc == 0)
        *ret = (uint32_t)v;
    return rc;
}

int pdxi_remote_unpack(const struct pdxi_value *v, struct pdx_remote *ret, struct pdx_error *why)
{
    struct pdx_remote r = {0};
    int rc = desc_head_check(v, "region", why);

    if (rc == 0)
        rc = desc_bin(v, "region", "inc", r.incarnation, PDX_INCARNATION_LEN, why);
    if (rc == 0)
        rc = remote_u32(v, "id", 0, UINT32_MAX, &r.id, why);
    if (rc == 0)
        rc = remote_u32(v, "gen", 0, UINT32_MAX, &r.generation, why);
    if (rc == 0)
        rc = desc_bin(v, "region", "key", r.key, PDX_KEY_LEN, why);
    if (rc == 0)
        rc = remote_uint(v, "len", 1, UINT64_MAX, &r.len, why);
    /* READ, WRITE, both, or NONE: 1 to 4. */
    if (rc == 0)
        rc = remote_u32(v, "rights", PDX_RIGHT_READ, PDX_RIGHT_NONE, &r.rights, why);
    if (rc == 0)
        rc = remote_u32(v, "kind", PDX_MEM_HOST, PDX_MEM_HIP, &r.kind, why);
    if (rc == 0)
        *ret = r;
    return rc;
}

int pdx_remote_decode(const void *buf, size_t len, struct pdx_remote *ret_remote,
                      struct pdx_error *why)
{
    struct pdxi_unpacked doc;
    int rc;

    if (len > PDXI_REGION_DESC_MAX)
        return pdxi_refuse(why, PDX_EPROTO, "region descriptor: %zu bytes, the limit is %d", len,
                           PDXI_REGION_DESC_MAX);
    rc = pdxi_unpack_open(&doc, buf, len, why);
    if (rc < 0)
        return rc;
    rc = pdxi_remote_unpack(doc.root, ret_remote, why);
    pdxi_unpack_close(&doc);
    return rc;
}
