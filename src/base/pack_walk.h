/* SPDX-License-Identifier: Apache-2.0
 *
 * The look at a MessagePack document before msgpack-c gets it. msgpack-c
 * allocates for an array or a map when it has read its header, on the word of
 * the sender; a document that passed has as many values as it claims, each of
 * one byte or more.
 */
#ifndef PDXI_BASE_PACK_WALK_H
#define PDXI_BASE_PACK_WALK_H

#include <pdx/error.h>

/* Returns 0 when buf[0..len) is exactly one document within the limits of base/pack.h, else
 * PDX_EPROTO with the byte offset. */
int pdxi_pack_walk(const void *buf, size_t len, struct pdx_error *why);

#endif
