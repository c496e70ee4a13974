/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills in struct pdx_error. Every place that fails says its code and its
 * sentence in one call, so that returning and explaining cannot part.
 */
#ifndef PDXI_BASE_ERROR_H
#define PDXI_BASE_ERROR_H

#include <pdx/error.h>

/* Sets *why (which may be NULL) with the default class of `code`, and returns `code`. */
int pdxi_error_set(struct pdx_error *why, int code, enum pdx_error_cost cost, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a call that has started nothing. */
#define pdxi_refuse(why, code, ...) pdxi_error_set(why, code, PDX_COST_NONE, __VA_ARGS__)

/* As pdxi_refuse(why, PDX_ESYS, ...), followed by ": " and the text of `err` (an errno value). */
int pdxi_error_sys(struct pdx_error *why, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Appends to a text, cutting at a whole character; `len` is the text's length so far.
 * Returns the new length. */
size_t pdxi_text_append(char *buf, size_t cap, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Copies a text with ASCII letters in capitals, cut to what fits. */
void pdxi_text_upper(char *buf, size_t cap, const char *text);

#endif
