/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/mem/mem.h"

#include "base/error.h"

int pdxi_mem_classify(const void *ptr, size_t len, enum pdx_mem_kind *kind, struct pdx_error *why)
{
    (void)ptr;
    (void)len;
    switch (*kind) {
    case PDX_MEM_AUTO:
        *kind = PDX_MEM_HOST;
        return 0;
    case PDX_MEM_HOST:
        return 0;
    case PDX_MEM_HIP:
        return pdxi_refuse(why, PDX_EUNSUPPORTED,
                           "this build of pdx has no GPU memory; register host memory");
    }
    return pdxi_refuse(why, PDX_EINVAL, "memory kind %d is not known", (int)*kind);
}
