/* SPDX-License-Identifier: Apache-2.0
 *
 * See state_type.h.
 */
#include "state/state_type.h"

#include <string.h>

static const struct pdxi_state_type state_type_table[] = {
    {.name = "mamba", .single = true, .lengths = PDXI_LENGTHS_EQUAL, .plan = pdxi_plan_mamba},
    {.name = "swa", .lengths = PDXI_LENGTHS_MAY_CUT, .plan = pdxi_plan_paged},
    {.name = "dsa", .lengths = PDXI_LENGTHS_MAY_CUT, .plan = pdxi_plan_paged},
};

#define NTYPES (sizeof state_type_table / sizeof state_type_table[0])

const struct pdxi_state_type *pdxi_state_type_find(const char *name)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (strcmp(state_type_table[i].name, name) == 0)
            return &state_type_table[i];
    return NULL;
}

const char *pdxi_state_type_names(char *buf, size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < NTYPES; i++)
        len = pdxi_text_append(buf, cap, len, "%s%s", i ? ", " : "", state_type_table[i].name);
    return buf;
}
