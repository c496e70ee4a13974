/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine answers to a HELLO, and what the initiator makes of the
 * answer. Pure.
 */
#ifndef PDXI_PROTO_HELLO_H
#define PDXI_PROTO_HELLO_H

#include "engine/proto/frame.h"

/* What the answering engine knows of itself. */
struct pdxi_hello_own {
    uint8_t incarnation[PDX_INCARNATION_LEN];
    const char *name;
    uint64_t keepalive_ns;
    uint32_t max_frames;
    bool full; /* no room for one more session */
};

/* Judges a HELLO: version, incarnation meant, room. Fills *ret_ack without a ticket and returns its
 * code (0: accepted; the caller adds the ticket, or checks the one of a data connection). The text
 * of a refusal has both values (versions, incarnations). */
int pdxi_hello_judge(const struct pdxi_frame_hello *hello, const struct pdxi_hello_own *own,
                     struct pdxi_frame_hello_ack *ret_ack);

/* Judges the answer: version, then incarnation, then code. `peer` is the name of the engine that is
 * meant. Returns 0, or the error with a sentence that names it: PDX_ESTALE when another incarnation
 * of this name answered (both in the text), PDX_EPEER when an engine of another name did,
 * PDX_EVERSION, PDX_EACCESS, PDX_EAGAIN, PDX_EPROTO. */
int pdxi_hello_check(const struct pdxi_frame_hello_ack *ack,
                     const uint8_t expected[PDX_INCARNATION_LEN], const char *peer,
                     struct pdx_error *why);

/* Writes an incarnation as 32 hexadecimal digits and a terminator. */
#define PDXI_INCARNATION_TEXT 33
void pdxi_incarnation_text(const uint8_t incarnation[PDX_INCARNATION_LEN],
                           char ret_text[PDXI_INCARNATION_TEXT]);

#endif
