/* SPDX-License-Identifier: Apache-2.0
 *
 * Two descriptions of one model, as a prefill and a decode rank would give
 * them, read from an input. The input tells the model and where each rank
 * stands; both descriptions follow, and fit. Then it bends them: single values
 * of either side become others. So most descriptions are nearly right, which is
 * where checks are thin.
 *
 * Format, bytes unless said otherwise, as sides.c and sides_lists.c read them:
 *
 *     ranks     tp, tp_rank, partner, pp, pp_rank
 *     model     kind, page_size, heads, layers, numbers, draft, aux, components
 *     kv        a shape per layer and per draft layer; two bytes for the place
 *               of the list on either side
 *     aux       an item length per buffer; places
 *     component type, slots, tensors; a shape (4) per tensor; places
 *     bends     how many; what (2), how, a number
 */
#ifndef PDX_FUZZ_SIDES_H
#define PDX_FUZZ_SIDES_H

#include "input.h"
#include <pdx/layout.h>

#define SIDES_TENSORS_MAX    48
#define SIDES_COMPONENTS_MAX 5
#define SIDES_GROUPS_MAX     64 /* of one tensor, so that any permitted count is readable */
#define SIDES_REGIONS        2  /* of one side */

struct side {
    bool remote;
    uint32_t tp, tp_rank, pp, pp_rank;
    struct pdx_tensor tensors[SIDES_TENSORS_MAX]; /* kv, aux, components, one after the other */
    uint8_t region_of[SIDES_TENSORS_MAX];         /* SIDES_REGIONS: none */
    uint64_t groups[SIDES_TENSORS_MAX][SIDES_GROUPS_MAX];
    size_t n;
    struct pdx_component components[SIDES_COMPONENTS_MAX];
    uint64_t region_len[SIDES_REGIONS];
    uint32_t region_rights[SIDES_REGIONS];
    struct pdx_layout_desc desc;
};

struct sides {
    struct side local;
    struct side remote;
};

/* Makes both, regions included (see recorder.h). */
void sides_read(struct sides *s, struct fuzz_input *in);

/* A type's name by number: the library's, old and unknown ones, and some that are none. */
const char *sides_type_name(uint8_t i);

/* The lists of tensors: what sides.c leaves to sides_lists.c. */
struct sides_model {
    uint32_t page_size;
    uint32_t heads;   /* of the unsplit model */
    uint32_t nlayers; /* of the model itself */
    uint32_t ndraft;
    uint8_t kind;    /* enum pdx_kv_kind; bits above are sides.c's */
    uint8_t numbers; /* bit 0: layers are told; high bits: the first one's number */
    uint8_t draft; /* bits: 4 not on the local side, 5 not on the remote one, 6 heads of its own */
    uint8_t naux;
    uint8_t ncomponents; /* bit 7: in another order on the remote side */
};

void sides_read_kv(struct sides *s, const struct sides_model *m, struct fuzz_input *in);
void sides_read_aux(struct sides *s, const struct sides_model *m, struct fuzz_input *in);
void sides_read_component(struct sides *s, size_t c, struct fuzz_input *in);

#endif
