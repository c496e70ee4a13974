/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: a frame, prefix and body. Whatever decodes, encodes back to the same
 * bytes (a HELLO that was allowed to be longer, up to its known fields), so
 * each frame has one form. A table that passes its check stays in the region
 * and adds up.
 */
#include "../tests/any_frame.h"
#include "fuzz.h"

static bool frame_is_hello(enum pdxi_frame_type type)
{
    return type == PDXI_FRAME_HELLO || type == PDXI_FRAME_HELLO_ACK;
}

/* HELLOs of other versions may have bytes behind what is known, or nothing else that is known. */
static void check_form(const struct pdxi_frame_prefix *p, const union any_frame *f,
                       const uint8_t *body, size_t body_len)
{
    static uint8_t buf[PDXI_FRAME_HEAD_MAX];
    const uint8_t *table = body + PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN;
    size_t len = any_frame_encode(buf, p->type, f, table);
    bool ack = p->type == PDXI_FRAME_HELLO_ACK;
    uint16_t major = ack ? f->hello_ack.major : f->hello.major;
    uint16_t minor = ack ? f->hello_ack.minor : f->hello.minor;
    struct pdxi_frame_prefix back;

    FUZZ_CHECK(pdxi_frame_prefix_decode(buf, &back, NULL) == 0);
    FUZZ_CHECK(back.type == p->type && back.flags == 0);
    FUZZ_CHECK(back.body_len == len - PDXI_FRAME_PREFIX_LEN);
    if (frame_is_hello(p->type) && major != PDXI_PROTO_MAJOR) {
        len = PDXI_FRAME_PREFIX_LEN + (ack ? 8 : 4);
    } else if (frame_is_hello(p->type) && minor > PDXI_PROTO_MINOR) {
        FUZZ_CHECK(len <= PDXI_FRAME_PREFIX_LEN + body_len);
    } else {
        FUZZ_CHECK(len == PDXI_FRAME_PREFIX_LEN + body_len);
    }
    FUZZ_CHECK(len == PDXI_FRAME_PREFIX_LEN ||
               memcmp(buf + PDXI_FRAME_PREFIX_LEN, body, len - PDXI_FRAME_PREFIX_LEN) == 0);
}

static void check_table(const struct pdxi_frame_data *f, const uint8_t *table, uint64_t region_len)
{
    struct pdx_error why = {0};
    uint64_t sum = 0;
    int rc = pdxi_frame_table_check(f, table, region_len, &why);

    FUZZ_CHECK(rc == why.code);
    FUZZ_CHECK(rc == 0 || rc == PDX_ERANGE || rc == PDX_EPROTO);
    if (rc < 0)
        return;
    for (uint32_t i = 0; i < f->nsegs; i++) {
        struct pdxi_frame_seg seg = {f->off, f->payload};

        if (f->nsegs > 1)
            seg = pdxi_frame_seg_decode(table, i);
        FUZZ_CHECK(seg.len > 0 && seg.len <= region_len && seg.off <= region_len - seg.len);
        sum += seg.len; /* at most PDXI_FRAME_SEGS_MAX times the payload: fits */
    }
    FUZZ_CHECK(sum == f->payload);
}

static void check_body(const struct pdxi_frame_prefix *p, const uint8_t *body, size_t body_len)
{
    struct pdx_error why = {0};
    union any_frame f;
    int rc;

    memset(&f, 0, sizeof f);
    rc = any_frame_decode(p->type, body, body_len, &f, &why);
    FUZZ_CHECK(rc == 0 || rc == PDX_EPROTO);
    if (rc < 0) {
        FUZZ_CHECK(p->type == PDXI_FRAME_TICKET_REQ || (why.code == rc && why.text[0] != '\0'));
        return;
    }
    check_form(p, &f, body, body_len);
    if (p->type == PDXI_FRAME_WRITE || p->type == PDXI_FRAME_READ) {
        const uint8_t *table = body + PDXI_FRAME_DATA_LEN - PDXI_FRAME_PREFIX_LEN;

        check_table(&f.data, table, UINT64_MAX);
        check_table(&f.data, table, f.data.payload);
        check_table(&f.data, table, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pdxi_frame_prefix p;
    struct pdx_error why = {0};
    uint8_t *prefix;
    uint8_t *body;
    int rc;

    if (size < PDXI_FRAME_PREFIX_LEN)
        return 0;
    prefix = fuzz_copy(data, PDXI_FRAME_PREFIX_LEN);
    rc = pdxi_frame_prefix_decode(prefix, &p, &why);
    free(prefix);
    FUZZ_CHECK(rc == 0 || (rc == PDX_EPROTO && why.code == rc && why.text[0] != '\0'));
    if (rc < 0)
        return 0;
    FUZZ_CHECK(p.body_len <= PDXI_FRAME_BODY_MAX);
    /* Decoders are safe for every length, not only for the one that the prefix tells. */
    size -= PDXI_FRAME_PREFIX_LEN;
    body = fuzz_copy(data + PDXI_FRAME_PREFIX_LEN, size);
    check_body(&p, body, size);
    free(body);
    return 0;
}
