/* SPDX-License-Identifier: Apache-2.0
 *
 * See findings.h.
 */
#include "state/plan/findings.h"

size_t pdxi_findings_begin(struct pdxi_findings *f)
{
    return pdxi_text_append(f->text, sizeof f->text, f->len, " (%u) ", f->n + 1);
}

void pdxi_findings_end(struct pdxi_findings *f, size_t len)
{
    f->n++;
    /* A text that was cut fills the buffer up to the bytes of one character. */
    if (len + 4 >= sizeof f->text) {
        f->text[f->len] = '\0';
        f->left_out++;
        return;
    }
    f->len = len;
}

int pdxi_findings_refuse(const struct pdxi_findings *f, struct pdx_error *why, int code,
                         const char *head)
{
    if (f->left_out)
        return pdxi_refuse(why, code, "%s:%s and %u more", head, f->text, f->left_out);
    return pdxi_refuse(why, code, "%s:%s", head, f->text);
}
