/* SPDX-License-Identifier: Apache-2.0
 *
 * State types of the caller's own: "token_counts", which every rank holds and
 * one sends, is told by a row; "round_robin", whose heads are dealt out to the
 * ranks in turn (head h lies on rank h mod tp_size), needs a slicer, for pdx
 * itself splits an axis into consecutive blocks. Two prefill ranks send to one
 * decode rank; all three live in this process.
 */
#include <pdx/pdx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS    8
#define HEAD_LEN 64 /* bytes */
#define COUNTS   16 /* bytes */
#define SLOTS    4
#define TP       2 /* of prefill; decode has 1 */

static struct pdx_error why;

static void must(int result)
{
    if (result < 0) {
        fprintf(stderr, "own_type: %s\n", why.text);
        exit(1);
    }
}

/* Where the heads of one prefill rank stand among those of the decode rank: every tp-th one. */
static int round_robin_slices(void *ctx, const struct pdx_slicer_ask *ask,
                              struct pdx_slice *ret_slices, char *ret_text, size_t text_cap)
{
    (void)ctx;
    if (ask->remote_tp_size != 1 || ask->local.shard_dim * ask->local_tp_size != HEADS) {
        snprintf(ret_text, text_cap, "%llu heads on %u ranks to %u: only to one rank.",
                 (unsigned long long)ask->local.shard_dim, ask->local_tp_size, ask->remote_tp_size);
        return PDX_EMISMATCH;
    }
    ret_slices[0] = (struct pdx_slice){
        .remote_off = ask->local_tp_rank * HEAD_LEN,
        .len = HEAD_LEN,
        .rows = ask->local.shard_dim,
        .local_pitch = HEAD_LEN,
        .remote_pitch = (uint64_t)ask->local_tp_size * HEAD_LEN,
    };
    return 1;
}

/* One rank: a buffer with SLOTS items of both tensors, one after the other. */
struct rank {
    uint8_t mem[SLOTS * (HEADS * HEAD_LEN + COUNTS)];
    struct pdx_region *region;
    struct pdx_layout *layout;
};

static void rank_describe(struct rank *r, struct pdx_engine *engine, uint32_t tp_size,
                          uint32_t tp_rank)
{
    uint64_t heads = HEADS / tp_size;
    struct pdx_tensor state, counts;
    struct pdx_component components[2] = {
        {.type = "round_robin", .tensors = &state, .ntensors = 1},
        {.type = "token_counts", .tensors = &counts, .ntensors = 1},
    };
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;

    must(pdx_region_register(engine, r->mem, sizeof(r->mem), NULL, &r->region, &why));
    state = (struct pdx_tensor){.region = r->region,
                                .len = SLOTS * heads * HEAD_LEN,
                                .item_len = heads * HEAD_LEN,
                                .layer = PDX_LAYER_NONE,
                                .shard_dim = heads};
    counts = (struct pdx_tensor){.region = r->region,
                                 .off = state.len,
                                 .len = SLOTS * COUNTS,
                                 .item_len = COUNTS,
                                 .layer = PDX_LAYER_NONE};
    desc.tp_size = tp_size;
    desc.engine_rank = tp_rank;
    desc.components = components;
    desc.ncomponents = 2;
    must(pdx_layout_create(&desc, &r->layout, &why));
}

/* Sends slot 1 of a prefill rank to slot 2 of the decode rank, both components at once. */
static void send_slot(struct pdx_engine *engine, struct pdx_peer *peer, const struct rank *from,
                      const struct pdx_layout *to)
{
    struct pdx_state_type types[2] = {PDX_STATE_TYPE_INIT, PDX_STATE_TYPE_INIT};
    struct pdx_route_opts opts = PDX_ROUTE_OPTS_INIT;
    const int32_t src = 1, dst = 2;
    const struct pdx_index_list srcs[2] = {{&src, 1}, {&src, 1}};
    const struct pdx_index_list dsts[2] = {{&dst, 1}, {&dst, 1}};
    struct pdx_transfer_status *status[2];
    struct pdx_route *route;
    size_t n;

    types[0].name = "round_robin";
    types[0].max_indices = 1;
    types[0].slicer = round_robin_slices;
    types[1].name = "token_counts";
    types[1].max_indices = 1;
    types[1].flags = PDX_STATE_REPLICATED;
    opts.types = types;
    opts.ntypes = 2;
    must(pdx_route_create(engine, from->layout, peer, to, &opts, &route, &why));
    must(pdx_send_state(route, srcs, dsts, 2, NULL, status, 2, &n, &why));
    (void)pdx_transfer_wait_all(status, n, PDX_FOREVER); /* ends: transfers have deadlines */
    for (size_t i = 0; i < n; i++) {
        printf("%s\n", status[i] ? pdx_transfer_text(status[i]) : "sent by another rank");
        if (status[i] && pdx_transfer_code(status[i]) != PDX_DONE)
            exit(1);
        pdx_transfer_put(status[i]);
    }
    pdx_route_destroy(route);
}

static void check(const struct rank *decode)
{
    const uint8_t *heads = decode->mem + 2 * HEADS * HEAD_LEN;
    const uint8_t *counts = decode->mem + SLOTS * HEADS * HEAD_LEN + 2 * COUNTS;

    for (int h = 0; h < HEADS; h++)
        for (int i = 0; i < HEAD_LEN; i++)
            if (heads[h * HEAD_LEN + i] != h + 1) {
                fprintf(stderr, "own_type: head %d, byte %d is wrong\n", h, i);
                exit(1);
            }
    for (int i = 0; i < COUNTS; i++)
        if (counts[i] != 'c') {
            fprintf(stderr, "own_type: count byte %d is wrong\n", i);
            exit(1);
        }
}

int main(void)
{
    static struct rank decode, prefill[TP];
    struct pdx_engine *offering, *sending;
    struct pdx_layout *offered;
    struct pdx_peer *peer;
    char desc[8192], layout[8192];
    size_t len;

    must(pdx_engine_create(NULL, &offering, &why));
    must(pdx_engine_create(NULL, &sending, &why));
    rank_describe(&decode, offering, 1, 0);
    len = pdx_engine_desc(offering, desc, sizeof(desc));
    must(pdx_peer_add(sending, desc, len, &peer, &why));
    len = pdx_layout_encode(decode.layout, layout, sizeof(layout));
    must(pdx_layout_decode(layout, len, &offered, &why));
    for (uint32_t r = 0; r < TP; r++) {
        rank_describe(&prefill[r], sending, TP, r);
        for (uint32_t h = 0; h < HEADS / TP; h++)
            memset(prefill[r].mem + (HEADS / TP + h) * HEAD_LEN, (int)(h * TP + r + 1), HEAD_LEN);
        memset(prefill[r].mem + SLOTS * HEADS / TP * HEAD_LEN + COUNTS, 'c', COUNTS);
        send_slot(sending, peer, &prefill[r], offered);
    }
    check(&decode);

    pdx_layout_destroy(offered);
    pdx_peer_put(peer);
    for (uint32_t r = 0; r < TP; r++) {
        pdx_layout_destroy(prefill[r].layout);
        must(pdx_region_deregister(prefill[r].region, PDX_SEC, &why));
    }
    pdx_layout_destroy(decode.layout);
    must(pdx_region_deregister(decode.region, PDX_SEC, &why));
    pdx_engine_destroy(sending);
    pdx_engine_destroy(offering);
    return 0;
}
