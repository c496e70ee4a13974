/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: a byte that gives the level (bit 0), the operation (bits 1 and 2: 1 write,
 * 2 read, else a notification) and how many lanes may be lost (the rest), then
 * one byte per event: the event in its low four bits, the cause in the high
 * ones. Each step, and the ways out after it, are held against
 * tests/transfer_walk.h.
 */
#include "../tests/transfer_walk.h"
#include "fuzz.h"

#include <pdx/error.h>

static void must_be_null(const char *broken)
{
    if (broken) {
        (void)fprintf(stderr, "not true: %s\n", broken);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum pdx_op ops[4] = {0, PDX_WRITE, PDX_READ, 0};
    struct transfer_walk w;

    if (size < 1)
        return 0;
    transfer_walk_begin(&w, ops[data[0] >> 1 & 3], data[0] & 1 ? PDX_LEVEL_LOCAL : PDX_LEVEL_REMOTE,
                        data[0] >> 3);
    for (size_t i = 1; i < size; i++) {
        unsigned event = data[i] & 15;
        unsigned actions;

        if (event >= TRANSFER_EVENTS)
            continue;
        must_be_null(transfer_walk_step(&w, (enum pdxi_transfer_event)event,
                                        PDX_EINVAL - (data[i] >> 4), &actions));
        must_be_null(transfer_walk_can_end(&w));
    }
    return 0;
}
