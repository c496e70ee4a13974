/* SPDX-License-Identifier: Apache-2.0
 *
 * See index_lists.h. The first byte says which form a list has.
 */
#include "index_lists.h"

#include "fuzz.h"

static void list_alloc(struct index_list *l, size_t n)
{
    l->n = l->told = n;
    l->idx = malloc((n ? n : 1) * sizeof *l->idx);
    FUZZ_CHECK(l->idx);
}

static void list_run(struct index_list *l, int32_t start, size_t n)
{
    list_alloc(l, n);
    for (size_t i = 0; i < l->n; i++)
        l->idx[i] = start + (int32_t)i;
}

static void input_run(struct index_list *l, struct fuzz_input *in)
{
    int32_t start = fuzz_input_byte(in);

    list_run(l, start, fuzz_input_byte(in));
}

/* Longer than it is; only of the source, as the shorter list says how far both are read. */
static void input_lie(struct index_list *l, struct fuzz_input *in, const struct index_list *like)
{
    list_run(l, fuzz_input_byte(in), INDEX_LIST_MAX);
    if (!like)
        l->told = (size_t)1 << 40;
}

/* Small numbers as they are, then some that no pool has. */
static int32_t input_index(struct fuzz_input *in)
{
    static const int32_t hostile[] = {
        -1,    INT32_MIN,     INT32_MAX, INT32_MAX - 1, 1 << 30, (1 << 30) + 1, 1 << 24,
        65536, INT32_MIN + 1, -2};
    uint8_t b = fuzz_input_byte(in);

    if (b < 0xf0)
        return b;
    if (b < 0xfa)
        return hostile[b - 0xf0];
    return (int32_t)(uint32_t)fuzz_input_number(in);
}

static void list_values(struct index_list *l, struct fuzz_input *in, size_t n)
{
    list_alloc(l, n);
    for (size_t i = 0; i < n; i++)
        l->idx[i] = input_index(in);
}

/* Ascending or descending, with gaps. */
static void list_steps(struct index_list *l, struct fuzz_input *in)
{
    uint32_t start = (uint32_t)fuzz_input_count(in);
    uint32_t step;

    list_alloc(l, fuzz_input_count(in) % (INDEX_LIST_MAX + 1));
    step = fuzz_input_byte(in);
    step = step & 0x80 ? 0u - (step & 0x7f) : step;
    for (size_t i = 0; i < l->n; i++)
        l->idx[i] = (int32_t)(start + (uint32_t)i * step);
}

/* Live entries of a row, wrapped around where they leave it. */
static void list_span(struct index_list *l, struct fuzz_input *in, uint64_t ring)
{
    uint64_t entries = ring && ring <= INT32_MAX ? ring : 8;
    int32_t row = input_index(in);
    uint64_t first = fuzz_input_byte(in) % entries;
    uint64_t count = fuzz_input_byte(in) % (entries + 1);
    uint64_t wrapped = first + count > entries ? first + count - entries : 0;

    list_alloc(l, 6);
    l->idx[0] = row;
    l->idx[1] = (int32_t)first;
    l->idx[2] = (int32_t)(count - wrapped);
    l->idx[3] = 0;
    l->idx[4] = (int32_t)wrapped;
    l->idx[5] = (int32_t)entries;
}

/* As long as the other one, from another place on, in another order. */
static void list_like(struct index_list *l, struct fuzz_input *in, const struct index_list *like)
{
    uint8_t start = fuzz_input_byte(in);
    uint8_t turn = fuzz_input_byte(in);

    list_alloc(l, like->n);
    for (size_t i = 0; i < l->n; i++)
        l->idx[i] = start + (int32_t)((i + turn) % l->n);
}

void index_list_read(struct index_list *l, struct fuzz_input *in, uint64_t ring,
                     const struct index_list *like)
{
    *l = (struct index_list){0};
    switch (fuzz_input_byte(in) % 10) {
    case 0:
        input_run(l, in);
        break;
    case 1:
        list_values(l, in, fuzz_input_byte(in) % 64);
        break;
    case 2:
        list_steps(l, in);
        break;
    case 3:
        break;
    case 4:
        l->told = (size_t)fuzz_input_number(in);
        break;
    case 5:
        list_alloc(l, 0);
        break;
    case 6:
        list_span(l, in, ring);
        break;
    case 7:
        list_values(l, in, 6);
        break;
    case 8:
        input_lie(l, in, like);
        break;
    default:
        if (like)
            list_like(l, in, like);
        else
            input_run(l, in);
    }
}

void index_list_fini(struct index_list *l)
{
    free(l->idx);
}
