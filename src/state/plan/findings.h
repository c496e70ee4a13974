/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects what is wrong with a layout, or between two of them, so that all of
 * it reaches the user in one text. A sentence that no longer fits is left out
 * whole and counted.
 */
#ifndef PDXI_STATE_PLAN_FINDINGS_H
#define PDXI_STATE_PLAN_FINDINGS_H

#include "base/error.h"

#define PDXI_FINDINGS_TEXT_MAX (PDX_ERROR_TEXT_MAX - 256) /* leaves room for what stands around */

struct pdxi_findings {
    char text[PDXI_FINDINGS_TEXT_MAX]; /* " (1) sentence (2) sentence" */
    size_t len;
    uint32_t n;
    uint32_t left_out;
};

static inline void pdxi_findings_init(struct pdxi_findings *f)
{
    f->text[0] = '\0';
    f->len = 0;
    f->n = 0;
    f->left_out = 0;
}

/* Adds one sentence, printf-like. */
#define pdxi_findings_add(f, ...) \
    pdxi_findings_end(            \
        f, pdxi_text_append((f)->text, sizeof(f)->text, pdxi_findings_begin(f), __VA_ARGS__))

/* The two halves of pdxi_findings_add: the number in front; then keeping the sentence or not. */
size_t pdxi_findings_begin(struct pdxi_findings *f);
void pdxi_findings_end(struct pdxi_findings *f, size_t len);

/* Returns `code` with *why set to `head`, the findings and, where some were left out, how many. */
int pdxi_findings_refuse(const struct pdxi_findings *f, struct pdx_error *why, int code,
                         const char *head);

#endif
