/* SPDX-License-Identifier: Apache-2.0
 *
 * Both judgements look at the version first, because nothing else is known of
 * another major version; then at the incarnation, because an answer from
 * another process says nothing about the one that was meant; then at the rest.
 */
#include "engine/proto/hello.h"

#include "base/error.h"

#include <string.h>

void pdxi_incarnation_text(const uint8_t incarnation[PDX_INCARNATION_LEN],
                           char ret_text[PDXI_INCARNATION_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < PDX_INCARNATION_LEN; i++) {
        ret_text[2 * i] = digits[incarnation[i] >> 4];
        ret_text[2 * i + 1] = digits[incarnation[i] & 0xf];
    }
    ret_text[2 * PDX_INCARNATION_LEN] = '\0';
}

/* The code, and for a refusal the text, of the answer. */
static int hello_verdict(const struct pdxi_frame_hello *hello, const struct pdxi_hello_own *own,
                         char *text, size_t cap)
{
    if (hello->major != PDXI_PROTO_MAJOR) {
        (void)pdxi_text_append(text, cap, 0,
                               "this engine speaks protocol %d.%d, not %u.%u: run the same version "
                               "of pdx on both sides",
                               PDXI_PROTO_MAJOR, PDXI_PROTO_MINOR, hello->major, hello->minor);
        return PDX_EVERSION;
    }
    if (memcmp(hello->target, own->incarnation, PDX_INCARNATION_LEN) != 0) {
        char meant[PDXI_INCARNATION_TEXT];
        char is[PDXI_INCARNATION_TEXT];

        pdxi_incarnation_text(hello->target, meant);
        pdxi_incarnation_text(own->incarnation, is);
        (void)pdxi_text_append(text, cap, 0,
                               "incarnation %s was meant, this is %s: use this engine's new "
                               "descriptor",
                               meant, is);
        return PDX_ESTALE;
    }
    /* A data connection joins a session that has its place already. */
    if (hello->kind == PDXI_HELLO_CONTROL && own->full) {
        (void)pdxi_text_append(text, cap, 0,
                               "no room for one more session: try again later, or raise "
                               "max_sessions");
        return PDX_EAGAIN;
    }
    return PDX_OK;
}

int pdxi_hello_judge(const struct pdxi_frame_hello *hello, const struct pdxi_hello_own *own,
                     struct pdxi_frame_hello_ack *ret_ack)
{
    struct pdxi_frame_hello_ack ack = {
        .major = PDXI_PROTO_MAJOR,
        .minor = PDXI_PROTO_MINOR,
        .max_frames = own->max_frames,
        .keepalive_ns = own->keepalive_ns,
    };

    memcpy(ack.incarnation, own->incarnation, PDX_INCARNATION_LEN);
    (void)pdxi_text_append(ack.name, sizeof ack.name, 0, "%s", own->name);
    ack.code = hello_verdict(hello, own, ack.text, sizeof ack.text);
    *ret_ack = ack;
    return ack.code;
}

int pdxi_hello_check(const struct pdxi_frame_hello_ack *ack,
                     const uint8_t expected[PDX_INCARNATION_LEN], const char *peer,
                     struct pdx_error *why)
{
    char meant[PDXI_INCARNATION_TEXT];
    char is[PDXI_INCARNATION_TEXT];

    if (ack->major != PDXI_PROTO_MAJOR)
        return pdxi_error_set(why, PDX_EVERSION, PDX_COST_PEER,
                              "%s speaks protocol %u.%u, this engine %d.%d: run the same version "
                              "of pdx on both sides",
                              peer, ack->major, ack->minor, PDXI_PROTO_MAJOR, PDXI_PROTO_MINOR);
    if (memcmp(ack->incarnation, expected, PDX_INCARNATION_LEN) != 0) {
        pdxi_incarnation_text(expected, meant);
        pdxi_incarnation_text(ack->incarnation, is);
        if (strcmp(ack->name, peer) != 0)
            return pdxi_error_set(
                why, PDX_EPEER, PDX_COST_PEER,
                "another engine, \"%s\", answers where %s should: an address that "
                "it advertises leads elsewhere, or it was replaced",
                ack->name, peer);
        return pdxi_error_set(why, PDX_ESTALE, PDX_COST_PEER,
                              "%s has incarnation %s now, not %s: it was restarted, add its new "
                              "descriptor",
                              peer, is, meant);
    }
    /* Decoding lets only codes through that can answer a HELLO. */
    if (ack->code != PDX_OK)
        return pdxi_error_set(why, ack->code, PDX_COST_PEER, "%s refused the connection (%s): %s",
                              peer, pdx_err_name(ack->code), ack->text);
    return 0;
}
