/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: a region descriptor. Whatever decodes has known rights and a known
 * kind, encodes within the limit and decodes to the same value again.
 */
#include "engine/proto/descriptor.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    uint8_t buf[PDXI_REGION_DESC_MAX];
    struct pdx_error why = {0};
    struct pdx_remote r;
    struct pdx_remote back;
    int rc = pdx_remote_decode(copy, size, &r, &why);
    size_t len;

    free(copy);
    FUZZ_CHECK(rc == 0 || rc == PDX_EPROTO || rc == PDX_EVERSION);
    FUZZ_CHECK(rc == why.code && (rc == 0) == (why.text[0] == '\0'));
    if (rc < 0)
        return 0;
    FUZZ_CHECK(r.len > 0);
    FUZZ_CHECK(r.rights == PDX_RIGHT_NONE || (r.rights != 0 && (r.rights & ~3u) == 0));
    FUZZ_CHECK(r.kind == PDX_MEM_HOST || r.kind == PDX_MEM_HIP);
    len = pdxi_remote_encode(&r, buf, sizeof buf);
    FUZZ_CHECK(len <= sizeof buf);
    FUZZ_CHECK(pdx_remote_decode(buf, len, &back, NULL) == 0);
    FUZZ_CHECK(memcmp(&back, &r, sizeof r) == 0);
    return 0;
}
