/* SPDX-License-Identifier: Apache-2.0
 *
 * See own_types.h.
 */
#include "own_types.h"

#include "fuzz.h"
#include "sides.h"

/* A sound slice: a whole item, an equal part of it, or some columns of its rows. */
static struct pdx_slice slice_of(const struct pdx_slicer_ask *ask, uint8_t how, int i, int n)
{
    uint64_t len =
        ask->local.item_len < ask->remote.item_len ? ask->local.item_len : ask->remote.item_len;
    uint64_t rows = ask->local.outer, pitch = rows ? len / rows : 0;
    uint64_t part = n > 0 ? len / (uint64_t)n : 0;

    if ((how & 3) == 0)
        return (struct pdx_slice){.len = len, .rows = 1};
    if ((how & 3) == 1)
        return (struct pdx_slice){.local_off = (uint64_t)i * part,
                                  .remote_off = (uint64_t)i * part,
                                  .len = part,
                                  .rows = 1};
    return (struct pdx_slice){
        .len = pitch > 1 ? pitch / 2 : pitch,
        .rows = rows,
        .local_pitch = pitch,
        .remote_pitch = pitch,
    };
}

static int own_slice(void *ctx, const struct pdx_slicer_ask *ask, struct pdx_slice *ret_slices,
                     char *ret_text, size_t text_cap)
{
    const struct own_slicer *s = ctx;

    FUZZ_CHECK(ask->type && ask->type[0] && !ask->local.region && !ask->remote.region);
    FUZZ_CHECK(ask->local_tp_rank < ask->local_tp_size && ask->local.item_len > 0);
    FUZZ_CHECK(ask->remote_tp_rank < ask->remote_tp_size && ask->remote.item_len > 0);
    FUZZ_CHECK(text_cap > 0);
    if (s->n < 0) {
        memset(ret_text, 'x', text_cap); /* without an end */
        return s->n;
    }
    for (int i = 0; i < s->n && i < PDX_SLICES_MAX; i++) {
        uint8_t how = s->how[i % OWN_SLICES_MAX];

        ret_slices[i] = (how & 3) == 3 ? s->raw[i % OWN_SLICES_MAX] : slice_of(ask, how, i, s->n);
    }
    return s->n;
}

static void read_slicer(struct own_slicer *s, struct fuzz_input *in)
{
    static const int rare[] = {-1, PDX_SLICES_MAX, PDX_SLICES_MAX + 1, INT32_MIN};
    uint8_t n = fuzz_input_byte(in);

    s->n = n < 0xfc ? n % (OWN_SLICES_MAX + 1) : rare[n - 0xfc];
    for (int i = 0; i < s->n && i < OWN_SLICES_MAX; i++) {
        struct pdx_slice *raw = &s->raw[i];

        s->how[i] = fuzz_input_byte(in);
        if ((s->how[i] & 3) != 3)
            continue;
        raw->local_off = fuzz_input_number(in);
        raw->remote_off = fuzz_input_number(in);
        raw->len = fuzz_input_number(in);
        raw->rows = fuzz_input_number(in);
        raw->local_pitch = fuzz_input_number(in);
        raw->remote_pitch = fuzz_input_number(in);
    }
}

/* A name, the least and the largest number of indices, flags, and how: bit 0: it has a slicer, 1:
 * its size is wrong, 2: it has flags that none has. */
static void read_row(struct pdx_state_type *row, struct own_slicer *slicer, struct fuzz_input *in)
{
    uint8_t how;

    *row = (struct pdx_state_type)PDX_STATE_TYPE_INIT;
    row->name = sides_type_name(fuzz_input_byte(in));
    row->min_indices = fuzz_input_byte(in) % 8;
    row->max_indices = fuzz_input_byte(in);
    row->flags = fuzz_input_byte(in) & 0x3f;
    how = fuzz_input_byte(in);
    if (how & 1) {
        row->slicer = own_slice;
        row->slicer_ctx = slicer;
        read_slicer(slicer, in);
    }
    if (how & 2)
        row->size -= 4;
    if (how & 4)
        row->flags |= 1u << 20;
}

void own_types_read(struct own_types *t, struct fuzz_input *in)
{
    memset(t, 0, sizeof *t);
    t->n = fuzz_input_byte(in) % (OWN_TYPES_MAX + 1);
    for (size_t i = 0; i < t->n; i++)
        read_row(&t->rows[i], &t->slicers[i], in);
}
