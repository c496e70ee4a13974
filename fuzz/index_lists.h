/* SPDX-License-Identifier: Apache-2.0
 *
 * Index lists for sends, read from an input: runs, steps, single values with
 * hostile ones among them, spans of rings, lists that are none, and lists whose
 * pointer or length lies. Each has memory of exactly its length.
 */
#ifndef PDX_FUZZ_INDEX_LISTS_H
#define PDX_FUZZ_INDEX_LISTS_H

#include "input.h"
#include <pdx/state.h>

#define INDEX_LIST_MAX 512

struct index_list {
    int32_t *idx; /* owned; NULL: none */
    size_t n;     /* of idx */
    size_t told;  /* n, unless the list lies */
};

/* Reads a list. `ring`: entries of a row where lists are spans, else 0. `like`: NULL, or the source
 * list for a destination list that may follow it. */
void index_list_read(struct index_list *l, struct fuzz_input *in, uint64_t ring,
                     const struct index_list *like);
void index_list_fini(struct index_list *l);

static inline struct pdx_index_list index_list_of(const struct index_list *l)
{
    return (struct pdx_index_list){l->idx, l->told};
}

#endif
