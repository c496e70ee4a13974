/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: a byte of switches, then the body of a HELLO. Whatever decodes is
 * judged; the answer survives its own encoding, says what the fields call for,
 * and the initiator comes to the same conclusion. The same bytes are also read
 * as the body of a HELLO_ACK and checked.
 */
#include "engine/proto/hello.h"
#include "fuzz.h"

enum hello_switches { SWITCH_FULL = 1, SWITCH_MEANT = 2 /* the HELLO means this engine */ };

static int expected_code(const struct pdxi_frame_hello *h, const struct pdxi_hello_own *own)
{
    if (h->major != PDXI_PROTO_MAJOR)
        return PDX_EVERSION;
    if (memcmp(h->target, own->incarnation, PDX_INCARNATION_LEN) != 0)
        return PDX_ESTALE;
    return own->full && h->kind == PDXI_HELLO_CONTROL ? PDX_EAGAIN : 0;
}

static void judge(const struct pdxi_frame_hello *h, unsigned switches)
{
    struct pdxi_hello_own own = {
        .name = "own", .keepalive_ns = 1, .max_frames = 1, .full = switches & SWITCH_FULL};
    struct pdxi_frame_hello_ack ack;
    struct pdxi_frame_hello_ack back;
    uint8_t buf[PDXI_FRAME_HEAD_MAX];
    size_t len;
    int rc;

    memset(own.incarnation, 0x5a, sizeof own.incarnation);
    if (switches & SWITCH_MEANT)
        memcpy(own.incarnation, h->target, sizeof own.incarnation);
    rc = pdxi_hello_judge(h, &own, &ack);
    FUZZ_CHECK(rc == ack.code && rc == expected_code(h, &own));
    FUZZ_CHECK((rc == 0) == (ack.text[0] == '\0'));
    len = pdxi_frame_hello_ack_encode(buf, &ack);
    FUZZ_CHECK(pdxi_frame_hello_ack_decode(buf + PDXI_FRAME_PREFIX_LEN, len - PDXI_FRAME_PREFIX_LEN,
                                           &back, NULL) == 0);
    FUZZ_CHECK(memcmp(&back, &ack, sizeof ack) == 0);
    FUZZ_CHECK(pdxi_hello_check(&back, own.incarnation, "peer", NULL) == rc);
}

static void check_answer(const uint8_t *body, size_t len)
{
    static const uint8_t other[PDX_INCARNATION_LEN] = {1, 2, 3};
    struct pdxi_frame_hello_ack ack;
    struct pdx_error why = {0};
    bool ours;
    int rc;

    if (pdxi_frame_hello_ack_decode(body, len, &ack, NULL) < 0)
        return;
    ours = ack.major == PDXI_PROTO_MAJOR;
    rc = pdxi_hello_check(&ack, ack.incarnation, "peer", &why);
    FUZZ_CHECK(rc == why.code);
    FUZZ_CHECK(rc == (ours ? ack.code : PDX_EVERSION));
    if (memcmp(other, ack.incarnation, sizeof other) != 0) {
        FUZZ_CHECK(pdxi_hello_check(&ack, other, ack.name, NULL) ==
                   (ours ? PDX_ESTALE : PDX_EVERSION));
        FUZZ_CHECK(pdxi_hello_check(&ack, other, "no\nname", NULL) ==
                   (ours ? PDX_EPEER : PDX_EVERSION));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pdxi_frame_hello h;
    uint8_t *body;

    if (size < 1)
        return 0;
    body = fuzz_copy(data + 1, size - 1);
    if (pdxi_frame_hello_decode(body, size - 1, &h, NULL) == 0)
        judge(&h, data[0]);
    check_answer(body, size - 1);
    free(body);
    return 0;
}
