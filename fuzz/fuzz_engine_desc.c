/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: an engine descriptor. Whatever decodes has only printable names and
 * addresses that can be split, encodes within the limit and decodes to the same
 * value again.
 */
#include "base/utf8.h"
#include "engine/proto/descriptor.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pdxi_engine_desc d;
    static struct pdxi_engine_desc back;
    static uint8_t buf[PDXI_ENGINE_DESC_MAX];
    uint8_t *copy = fuzz_copy(data, size);
    struct pdx_error why = {0};
    int rc = pdxi_engine_desc_decode(copy, size, &d, &why);
    size_t len;

    free(copy);
    FUZZ_CHECK(rc == 0 || rc == PDX_EPROTO || rc == PDX_EVERSION);
    FUZZ_CHECK(rc == why.code && (rc == 0) == (why.text[0] == '\0'));
    if (rc < 0)
        return 0;
    FUZZ_CHECK(pdxi_utf8_printable(d.name, strlen(d.name)));
    FUZZ_CHECK(d.naddrs >= 1 && d.naddrs <= PDXI_ADDRS_MAX);
    for (uint32_t i = 0; i < d.naddrs; i++) {
        char host[PDXI_ADDR_MAX + 1];
        int port;

        FUZZ_CHECK(pdxi_addr_split(d.addrs[i], host, &port, NULL) == 0);
        FUZZ_CHECK(host[0] != '\0' && port >= 1 && port <= 65535);
    }
    len = pdxi_engine_desc_encode(&d, buf, sizeof buf);
    FUZZ_CHECK(len <= sizeof buf);
    FUZZ_CHECK(pdxi_engine_desc_decode(buf, len, &back, NULL) == 0);
    FUZZ_CHECK(memcmp(&back, &d, sizeof d) == 0);
    return 0;
}
