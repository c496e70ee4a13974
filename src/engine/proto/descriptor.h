/* SPDX-License-Identifier: Apache-2.0
 *
 * Engine and region descriptors: MessagePack maps with a type, a version and
 * strict limits. Unknown keys are skipped, so that later versions can add some.
 *
 *   engine: {"pdx": "engine", "v": 1, "name": str, "inc": bin16, "host": bin16,
 *            "addrs": [str, ...]}
 *   region: {"pdx": "region", "v": 1, "inc": bin16, "id": uint, "gen": uint,
 *            "key": bin16, "len": uint, "rights": uint, "kind": uint}
 *
 * "host" tells machines apart (boot id); addresses are "a.b.c.d:port",
 * "[v6]:port" or "name:port" with a port from 1, best first. The name is
 * printable UTF-8. "rights" and "kind" are enum pdx_rights and enum
 * pdx_mem_kind, where NONE excludes the other rights and AUTO is no kind.
 */
#ifndef PDXI_PROTO_DESCRIPTOR_H
#define PDXI_PROTO_DESCRIPTOR_H

#include "base/pack.h"
#include <pdx/engine.h>
#include <pdx/region.h>

#define PDXI_HOST_LEN        16
#define PDXI_ADDRS_MAX       16
#define PDXI_ADDR_MAX        255  /* characters of one address */
#define PDXI_ENGINE_DESC_MAX 8192 /* longer input is refused unread */
#define PDXI_REGION_DESC_MAX 1024
#define PDXI_DESC_VERSION    1

struct pdxi_engine_desc {
    char name[PDX_NAME_MAX + 1];
    uint8_t incarnation[PDX_INCARNATION_LEN];
    uint8_t host[PDXI_HOST_LEN];
    uint32_t naddrs; /* 1 .. PDXI_ADDRS_MAX */
    char addrs[PDXI_ADDRS_MAX][PDXI_ADDR_MAX + 1];
};

/* Returns the length in bytes, also when `cap` is smaller (then nothing is written). */
size_t pdxi_engine_desc_encode(const struct pdxi_engine_desc *d, void *buf, size_t cap);
/* Returns 0, PDX_EPROTO, PDX_EVERSION, PDX_ENOMEM; the sentence says what was expected and found.
 */
int pdxi_engine_desc_decode(const void *buf, size_t len, struct pdxi_engine_desc *ret,
                            struct pdx_error *why);

/* Writes a region's map as part of a larger document (layouts use it). */
void pdxi_remote_pack(struct pdxi_packer *p, const struct pdx_remote *r);
/* Reads it from a parsed document; NULL and values that are no map are refused. Returns 0,
 * PDX_EPROTO, PDX_EVERSION. */
int pdxi_remote_unpack(const struct pdxi_value *v, struct pdx_remote *ret, struct pdx_error *why);

/* As pdxi_engine_desc_encode. */
size_t pdxi_remote_encode(const struct pdx_remote *r, void *buf, size_t cap);
/* pdx_remote_decode is the public way to read one. */

/* Splits "host:port", "[v6]:port", "host" or "[v6]" into its parts; the brackets are left out of
 * the host. host gets room for PDXI_ADDR_MAX + 1 bytes. *ret_port is -1 when none is given. Returns
 * 0 or PDX_EINVAL. */
int pdxi_addr_split(const char *addr, char *ret_host, int *ret_port, struct pdx_error *why);

#endif
