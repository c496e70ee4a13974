/* SPDX-License-Identifier: Apache-2.0
 *
 * Two layouts as peers might send them: three bytes with the length of the
 * first and, as top bit, whether the pairing is trusted; the first; the second
 * (or none, then the first is paired with itself). What is accepted encodes to
 * bytes that decode to the same; what pairs moves only bytes inside the items,
 * within 64 bits.
 */
#include "fuzz.h"

#include "base/check.h"
#include "state/pairing.h"

/* Decodes exactly these bytes; checks that the encoded form is a fixed point. */
static struct pdx_layout *layout_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = fuzz_copy(data, size);
    struct pdx_layout *l = NULL, *again = NULL;
    struct pdx_error why;
    int rc = pdx_layout_decode(copy ? copy : data, size, &l, &why);
    size_t len;
    uint8_t *once, *twice;

    free(copy);
    FUZZ_CHECK((rc == 0) == (l != NULL));
    if (rc < 0) {
        FUZZ_CHECK(why.code == rc && why.text[0]);
        return NULL;
    }
    len = pdx_layout_encode(l, NULL, 0);
    once = malloc(len);
    twice = malloc(len);
    FUZZ_CHECK(once && twice);
    FUZZ_CHECK(pdx_layout_encode(l, once, len) == len);
    FUZZ_CHECK(pdx_layout_decode(once, len, &again, NULL) == 0);
    FUZZ_CHECK(pdx_layout_encode(again, twice, len) == len);
    FUZZ_CHECK(memcmp(once, twice, len) == 0);
    pdx_layout_destroy(again);
    free(once);
    free(twice);
    return l;
}

/* The last row of a slice ends inside the item. */
static bool inside(uint64_t off, uint64_t len, uint64_t rows, uint64_t pitch, uint64_t item_len)
{
    uint64_t last;

    return rows > 0 && pdxi_mul_u64(rows - 1, pitch, &last) && pdxi_add_u64(last, off, &last) &&
           pdxi_inside(last, len, item_len);
}

static void check_part(const struct pdxi_pairing_part *part)
{
    for (uint32_t i = 0; i < part->payload.nmatches; i++) {
        const struct pdxi_match *m = &part->payload.matches[i];
        uint64_t local = part->local.at[m->local].item_len;
        uint64_t remote = part->remote.at[m->remote].item_len;

        FUZZ_CHECK(m->nslices || local == remote);
        FUZZ_CHECK(pdxi_inside(m->first_slice, m->nslices, part->payload.nslices));
        for (uint32_t k = 0; k < m->nslices; k++) {
            const struct pdx_slice *s = &part->payload.slices[m->first_slice + k];

            FUZZ_CHECK(s->len > 0);
            FUZZ_CHECK(inside(s->local_off, s->len, s->rows, s->local_pitch, local));
            FUZZ_CHECK(inside(s->remote_off, s->len, s->rows, s->remote_pitch, remote));
        }
    }
}

static void check_pairing(const struct pdx_layout *local, const struct pdx_layout *remote,
                          bool trust)
{
    struct pdxi_pairing p;
    struct pdx_error why;
    const struct pdxi_state_types types = {.nown = 0};
    int rc =
        pdxi_pairing_init(&p, local, remote, &types, trust ? PDX_ROUTE_TRUST_PAIRING : 0, &why);

    FUZZ_CHECK(rc == 0 || (rc == PDX_EMISMATCH && why.text[0]));
    if (rc < 0)
        return;
    for (uint32_t i = 0; i < p.nparts; i++)
        check_part(&p.parts[i]);
    pdxi_pairing_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pdx_layout *first, *second = NULL;
    size_t len;
    bool trust;

    if (size < 3)
        return 0;
    len = (size_t)data[0] | (size_t)data[1] << 8 | (size_t)(data[2] & 0x7f) << 16;
    trust = data[2] & 0x80;
    data += 3;
    size -= 3;
    if (len > size)
        len = size;
    first = layout_of(data, len);
    if (len < size)
        second = layout_of(data + len, size - len);
    if (first)
        check_pairing(first, second ? second : first, trust);
    pdx_layout_destroy(first);
    pdx_layout_destroy(second);
    return 0;
}
