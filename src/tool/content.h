/* SPDX-License-Identifier: Apache-2.0
 *
 * What every byte must be. An item of the unsplit model is a stream of 64-bit
 * little-endian words, word w being base + w * K with an odd K, so that no two
 * words of an item are alike; the base is a hash of seed, request, pool, tensor
 * and the item's place in the request. A rank's part of the item is a cut-out of
 * that stream (slicing.h). So any byte can be told from its place in the model
 * alone, by either side, at the speed of memory.
 *
 * Pages that must not change hold poison: the same kind of stream, one for the
 * whole of a pool's memory, so that a byte depends on pool, page and offset.
 */
#ifndef PDX_TOOL_CONTENT_H
#define PDX_TOOL_CONTENT_H

#include "tool/slicing.h"

/* The pool number of content bases: 0 the KV cache, 1 + c component c, this one aux. */
#define TOOL_CONTENT_AUX UINT32_C(0xffff)

uint64_t tool_content_key(const char *tensor_name, int32_t layer);
uint64_t tool_content_base(uint64_t seed, uint64_t request, uint32_t pool, uint64_t key,
                           uint64_t item);
uint64_t tool_poison_base(uint64_t seed, uint32_t rank, uint32_t pool);

/* The byte at `pos` of a stream. */
uint8_t tool_content_byte(uint64_t base, uint64_t pos);
/* Writes bytes [pos, pos + len) of a stream. */
void tool_content_fill(void *dst, size_t len, uint64_t base, uint64_t pos);
/* Returns the offset of the first byte that differs, or `len`. */
size_t tool_content_check(const void *src, size_t len, uint64_t base, uint64_t pos);

/* A rank's part of one item. */
void tool_item_fill(uint8_t *dst, const struct tool_slicing *s, uint64_t base);
/* Returns the offset in the item of the first byte that differs, or the item's length; *ret_want
 * (may be NULL) is what that byte should be. */
uint64_t tool_item_check(const uint8_t *src, const struct tool_slicing *s, uint64_t base,
                         uint8_t *ret_want);

#endif
