/* SPDX-License-Identifier: Apache-2.0
 *
 * Input: one byte per event: the event in its low four bits, and in the high
 * ones how many addresses there are, or the cause. Each step, and the way up
 * after it, are held against tests/peer_walk.h.
 */
#include "../tests/peer_walk.h"
#include "fuzz.h"

static void must_be_null(const char *broken)
{
    if (broken) {
        (void)fprintf(stderr, "not true: %s\n", broken);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer_walk w;

    peer_walk_begin(&w);
    for (size_t i = 0; i < size; i++) {
        unsigned event = data[i] & 15;
        int high = data[i] >> 4;
        unsigned actions;

        if (event >= PEER_EVENTS)
            continue;
        must_be_null(peer_walk_step(&w, (enum pdxi_peer_event)event,
                                    event == PDXI_PEV_RESOLVED ? high : PDX_ESTALE - high,
                                    &actions));
        must_be_null(peer_walk_can_go_on(&w));
    }
    return 0;
}
