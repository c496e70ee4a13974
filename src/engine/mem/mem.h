/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of memory. Host memory is reached by plain pointers; other kinds get
 * a file of their own here.
 */
#ifndef PDXI_MEM_H
#define PDXI_MEM_H

#include <pdx/region.h>

/* Finds the kind of [ptr, ptr + len) when *kind is PDX_MEM_AUTO, else checks that this build has
 * it. Returns 0 or PDX_EUNSUPPORTED. */
int pdxi_mem_classify(const void *ptr, size_t len, enum pdx_mem_kind *kind, struct pdx_error *why);

#endif
