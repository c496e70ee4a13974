/* SPDX-License-Identifier: Apache-2.0
 *
 * What the codecs of single frames share: the prefix, names and texts, error
 * codes, and the sentences about lengths.
 */
#ifndef PDXI_PROTO_FRAME_FIELD_H
#define PDXI_PROTO_FRAME_FIELD_H

#include "base/error.h"
#include "engine/proto/frame.h"

/* Writes the prefix of a frame with this body length; returns the frame's length. */
size_t pdxi_frame_prefix_encode(uint8_t *buf, enum pdxi_frame_type type, size_t body_len);

/* Returns 0, or PDX_EPROTO when the body is shorter than its fixed part. */
int pdxi_frame_fixed_check(enum pdxi_frame_type type, size_t body_len, size_t fixed,
                           struct pdx_error *why);

/* Returns 0, or PDX_EPROTO when the body has another length than `expected`. */
int pdxi_frame_len_check(enum pdxi_frame_type type, size_t body_len, size_t expected,
                         struct pdx_error *why);

/* Returns 0, or PDX_EPROTO unless `code` is 0 or an enum pdx_err. */
int pdxi_frame_code_check(enum pdxi_frame_type type, int32_t code, struct pdx_error *why);

/* Reads the `len` bytes of a name or text into ret_text, which has room for max + 1 bytes. The
 * caller has checked that they are there. Returns 0, or PDX_EPROTO when they are too many or not
 * printable UTF-8. */
int pdxi_frame_text_decode(enum pdxi_frame_type type, const char *field, const uint8_t *s,
                           size_t len, size_t max, char *ret_text, struct pdx_error *why);

#endif
