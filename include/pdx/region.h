/* SPDX-License-Identifier: Apache-2.0
 *
 * A region is memory that its owner offers for transfers. The owner keeps the
 * memory; the region has a generation, a set of rights and a 128-bit key that
 * cannot be guessed. Its export is a short byte string that any channel can
 * carry; a peer turns it into a struct pdx_remote.
 */
#ifndef PDX_REGION_H
#define PDX_REGION_H

#include <pdx/api.h>
#include <pdx/engine.h>
#include <pdx/error.h>

PDX_BEGIN_DECLS

struct pdx_region;

#define PDX_KEY_LEN 16

enum pdx_mem_kind {
    PDX_MEM_AUTO = 0, /* found from the pointer; this version takes every pointer for host memory */
    PDX_MEM_HOST,
    PDX_MEM_HIP
};

enum pdx_rights {
    PDX_RIGHT_READ = 1,  /* peers may read */
    PDX_RIGHT_WRITE = 2, /* peers may write */
    PDX_RIGHT_ALL = 3,
    PDX_RIGHT_NONE = 4 /* for this engine's own transfers only; excludes the others */
};

struct pdx_region_opts {
    size_t size; /* set by PDX_REGION_OPTS_INIT */
    enum pdx_mem_kind kind;
    uint32_t rights; /* enum pdx_rights; 0 means PDX_RIGHT_ALL */
};

#define PDX_REGION_OPTS_INIT                                        \
    {                                                               \
        sizeof(struct pdx_region_opts), PDX_MEM_AUTO, PDX_RIGHT_ALL \
    }

/* Registers [ptr, ptr + len).
 * Units: bytes; any alignment, any length from 1.
 * Errors:
 * - PDX_EINVAL: NULL, 0, wraps around, unknown rights or memory kind
 * - PDX_EUNSUPPORTED: a memory kind that this build or machine does not have
 * - PDX_EAGAIN: max_regions
 * - PDX_ESHUTDOWN
 * - PDX_ESYS: no random bytes for the key
 * Thread: any; never blocks.
 * Lifetime: the memory must stay mapped until pdx_region_deregister has returned 0. */
PDX_API int pdx_region_register(struct pdx_engine *engine, void *ptr, size_t len,
                                const struct pdx_region_opts *opts, struct pdx_region **ret_region,
                                struct pdx_error *why);

/* Revokes the region: peers' requests that arrive from now on are refused, those under way end
 * PDX_STALE at the peer (PDX_DONE only if all was in place before), and no byte is written or read
 * after the call returned 0. Waits for the reactor to do that, and then up to timeout_ns for
 * transfers of this engine that use the region; 0 does not wait for those. NULL is permitted.
 * Errors:
 * - PDX_EBUSY: still used by transfers, prepared jobs or routes of this engine. The memory must
 * stay mapped until a later call succeeds; peers and new submissions are refused already
 * - PDX_EREACTOR: a callback may only pass timeout 0, and only a region of its own engine
 * Thread: any. Lifetime: `region` is invalid after 0 was returned. */
PDX_API int pdx_region_deregister(struct pdx_region *region, uint64_t timeout_ns,
                                  struct pdx_error *why);

/* Writes the region's descriptor, the bytes that pdx_remote_decode reads. Format: doc/wire.md.
 * Returns: the length in bytes, also when `cap` is smaller (then nothing is written).
 * Thread: any. Errors: none. Lifetime: the bytes are the caller's; the rights they convey end with
 * the region. */
PDX_API size_t pdx_region_export(const struct pdx_region *region, void *buf, size_t cap);

struct pdx_region_info {
    void *ptr;
    uint64_t len;
    enum pdx_mem_kind kind;
    uint32_t rights;
    uint32_t id;
    uint32_t generation;
    uint64_t users;     /* transfers and prepared transfers of this engine that hold it, now */
    uint64_t bytes_out; /* left this region: own writes, peers' reads */
    uint64_t bytes_in;  /* came into it: own reads, peers' writes */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_region_info(const struct pdx_region *region, struct pdx_region_info *ret_info);

/* A peer's region as its initiator knows it: a plain value that can be copied and kept. Everything
 * in it is checked again by the owner. */
struct pdx_remote {
    uint8_t incarnation[PDX_INCARNATION_LEN]; /* of the owning engine */
    uint8_t key[PDX_KEY_LEN];
    uint64_t len;
    uint32_t id;
    uint32_t generation;
    uint32_t rights; /* enum pdx_rights */
    uint32_t kind;   /* enum pdx_mem_kind */
};

/* Reads a region descriptor.
 * Errors:
 * - PDX_EPROTO: not a region descriptor; the text says at which byte or key
 * - PDX_EVERSION
 * - PDX_ENOMEM
 * Thread: any. Lifetime: the value borrows nothing. */
PDX_API int pdx_remote_decode(const void *buf, size_t len, struct pdx_remote *ret_remote,
                              struct pdx_error *why);

PDX_END_DECLS

#endif
