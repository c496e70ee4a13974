/* SPDX-License-Identifier: Apache-2.0 */
#include <pdx/api.h>

const char *pdx_version(void)
{
    return PDX_VERSION;
}
