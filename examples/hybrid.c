/* SPDX-License-Identifier: Apache-2.0
 *
 * One request of a hybrid model goes from prefill (TP 2) to decode (TP 1). Of the model's four
 * layers 0 and 2 are attention, 1 and 3 mamba. While "prefill" computes the prompt in two chunks,
 * each layer's KV pages leave as soon as they are there; the mamba state and the aux buffer follow
 * when the last token was computed. A rank whose transfers are all done notifies decode; decode has
 * the request when it counted one notification per prefill rank.
 *
 *     prefill rank 0: heads 0-3, half of each channel group --+
 *                                                             +--> decode: 8 heads, all channels
 *     prefill rank 1: heads 4-7, the other halves ------------+
 *
 * All ranks live in this process, on two engines; each would be a process of its own elsewhere.
 */
#include <pdx/pdx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The model, before tensor parallelism splits it. _LEN is bytes. */
#define LAYERS       4
#define KV_HEADS     8
#define HEAD_LEN     32
#define CONV_ROWS    3 /* kernel width - 1 */
#define CHANNEL_LEN  2
#define SSM_HEADS    8
#define SSM_HEAD_LEN 256
#define AUX_LEN      64

/* The servers. Pools may differ in size between the sides; these do not. */
#define PAGE_SIZE 16
#define PAGES     12
#define SLOTS     4
#define TP        2 /* of prefill; decode has 1 */

#define ROOM      UINT64_C(7) /* the request's number, agreed by both sides */
#define CHUNKS    2
#define MAX_SENDS (CHUNKS * LAYERS + 2) /* of one rank: KV, state and aux */
#define TIMEOUT   (10 * PDX_SEC)

static const int32_t attention_layers[2] = {0, 2};
static const int32_t mamba_layers[2] = {1, 3};
static const uint64_t kv_heads[1] = {KV_HEADS};
static const uint64_t ssm_heads[1] = {SSM_HEADS};
static const uint64_t conv_groups[3] = {32, 32, 64}; /* q, k, v: each is split for itself */

/* Where a side's allocators have put the request; page i here is page i there. */
static const struct place {
    int32_t pages[5];
    int32_t slot; /* mamba and aux */
} at_prefill = {{3, 4, 5, 9, 1}, 2}, at_decode = {{10, 11, 7, 2, 0}, 1};
static const size_t chunk_first[CHUNKS + 1] = {0, 3, 5}; /* pages 0-2, then 3-4 */

static struct pdx_error why;

static void must_be(bool truth, const char *text)
{
    if (!truth) {
        fprintf(stderr, "hybrid: %s\n", text);
        exit(1);
    }
}

static void must(int result)
{
    must_be(result >= 0, why.text);
}

/* --- A rank: its pools, and their description --- */

struct rank {
    uint32_t tp_size, tp_rank;
    uint8_t mem[256 * 1024]; /* all pools, one after the other */
    uint64_t used;
    struct pdx_region *region;
    struct pdx_tensor kv[4];    /* K of 0, K of 2, V of 0, V of 2 */
    struct pdx_tensor mamba[4]; /* conv of 1 and 3, ssm of 1 and 3 */
    struct pdx_tensor aux[1];
    struct pdx_layout *layout;
};

static struct pdx_tensor rank_pool(struct rank *r, uint64_t items, uint64_t item_len, int32_t layer)
{
    struct pdx_tensor pool = {r->region, r->used, items * item_len, item_len, .layer = layer};

    r->used += pool.len;
    must_be(r->used <= sizeof(r->mem), "the pools do not fit in a rank's memory");
    return pool;
}

/* Sets `layer` of every tensor: by it tensors pair, and by it sends of single layers find theirs. A
 * zeroed struct says layer 0, so a list that tells none says PDX_LAYER_NONE in each; aux always. */
static void rank_pools(struct rank *r)
{
    uint64_t page_len = PAGE_SIZE * (KV_HEADS / r->tp_size) * HEAD_LEN;
    uint64_t channels = (conv_groups[0] + conv_groups[1] + conv_groups[2]) / r->tp_size;
    uint64_t heads = SSM_HEADS / r->tp_size;

    for (size_t i = 0; i < 4; i++) /* MHA: K of all layers, then V of all layers */
        r->kv[i] = rank_pool(r, PAGES, page_len, attention_layers[i % 2]);
    for (size_t i = 0; i < 2; i++) {
        /* A slot is CONV_ROWS rows of this rank's channels [q | k | v]. Without the groups the
         * channels of a rank would be taken for one block, and land between others'. */
        r->mamba[i] = rank_pool(r, SLOTS, CONV_ROWS * channels * CHANNEL_LEN, mamba_layers[i]);
        r->mamba[i].shard_dim = channels;
        r->mamba[i].outer = CONV_ROWS;
        r->mamba[i].groups = conv_groups;
        r->mamba[i].ngroups = 3;
    }
    for (size_t i = 0; i < 2; i++) { /* a slot is one row of heads: outer stays 0, which means 1 */
        r->mamba[2 + i] = rank_pool(r, SLOTS, heads * SSM_HEAD_LEN, mamba_layers[i]);
        r->mamba[2 + i].shard_dim = heads;
    }
    r->aux[0] = rank_pool(r, SLOTS, AUX_LEN, PDX_LAYER_NONE);
}

static void rank_describe(struct rank *r, struct pdx_engine *engine, uint32_t tp_size,
                          uint32_t tp_rank)
{
    struct pdx_component mamba = {.type = "mamba", .tensors = r->mamba, .ntensors = 4};
    struct pdx_layout_desc desc = PDX_LAYOUT_DESC_INIT;

    r->tp_size = tp_size;
    r->tp_rank = tp_rank;
    must(pdx_region_register(engine, r->mem, sizeof(r->mem), NULL, &r->region, &why));
    rank_pools(r);
    desc.engine_rank = tp_rank; /* two ranks that say the same send the same heads */
    desc.tp_size = tp_size;
    desc.kv_kind = PDX_KV_MHA;
    desc.page_size = PAGE_SIZE;
    desc.dtype = "bfloat16";
    desc.kv_head_num = KV_HEADS / tp_size; /* of this rank */
    desc.total_kv_head_num = KV_HEADS;     /* of the model, the same on all ranks and both sides */
    desc.kv = r->kv;
    desc.nkv = 4;
    desc.aux = r->aux;
    desc.naux = 1;
    desc.components = &mamba;
    desc.ncomponents = 1;
    must(pdx_layout_create(&desc, &r->layout, &why));
}

static void rank_fini(struct rank *r)
{
    pdx_layout_destroy(r->layout);
    must(pdx_region_deregister(r->region, PDX_SEC, &why));
}

/* --- What stands in for the model: each byte follows from its place in the unsplit model --- */

/* Fills one item with `rows` rows of the units that `r` has of an axis made of `groups`. */
static void item_compute(struct rank *r, const struct pdx_tensor *t, int32_t item, uint32_t seed,
                         uint64_t rows, const uint64_t *groups, size_t ngroups, uint64_t unit_len)
{
    uint8_t *at = r->mem + t->off + (uint64_t)item * t->item_len;

    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t g = 0, base = 0; g < ngroups; base += groups[g++])
            for (uint64_t u = 0, share = groups[g] / r->tp_size; u < share; u++)
                for (uint64_t i = 0; i < unit_len; i++) {
                    uint64_t unit = base + r->tp_rank * share + u;
                    uint64_t x = ((seed * 64 + row) * 256 + unit) * 1024 + i;
                    *at++ = (uint8_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 56);
                }
}

/* The pages of one chunk, in K and V of one layer. */
static void kv_compute(struct rank *r, const struct place *place, size_t chunk, int32_t layer)
{
    for (uint32_t i = 0; i < 4; i++)
        for (size_t p = chunk_first[chunk]; p < chunk_first[chunk + 1]; p++)
            if (r->kv[i].layer == layer)
                item_compute(r, &r->kv[i], place->pages[p], 100 + 10 * i + (uint32_t)p, PAGE_SIZE,
                             kv_heads, 1, HEAD_LEN);
}

static void state_compute(struct rank *r, const struct place *place)
{
    for (uint32_t i = 0; i < 2; i++) {
        item_compute(r, &r->mamba[i], place->slot, 200 + i, CONV_ROWS, conv_groups, 3, CHANNEL_LEN);
        item_compute(r, &r->mamba[2 + i], place->slot, 300 + i, 1, ssm_heads, 1, SSM_HEAD_LEN);
    }
    memset(r->mem + r->aux[0].off + (uint64_t)place->slot * AUX_LEN, 'a', AUX_LEN);
}

/* --- Prefill --- */

/* What a rank tells decode. Its number at decode is DONE_ID, which no other send may have. */
struct done {
    uint64_t room;
    uint64_t tp_rank;
};
#define SEND_ID(rank, n) (ROOM << 16 | (uint64_t)(rank) << 8 | (n))
#define DONE_ID(rank)    SEND_ID(rank, 255)

struct sender {
    struct rank rank;
    struct pdx_route *route;
    struct pdx_cq *cq;
    struct pdx_transfer_status *pending[MAX_SENDS]; /* owned, by the last byte of their id */
    size_t npending;
};

static struct pdx_submit_opts sender_opts(const struct sender *s)
{
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;

    opts.id = SEND_ID(s->rank.tp_rank, s->npending);
    opts.deadline_ns = TIMEOUT;
    opts.cq = s->cq;
    return opts;
}

/* Keeps the handle of a send. NULL is no error but nothing to wait for, and no completion will
 * come: this rank has no such layer, or another one sends these bytes (aux: TP rank 0). */
static void sender_keep(struct sender *s, struct pdx_transfer_status *status)
{
    if (status)
        s->pending[s->npending++] = status;
}

/* Every mismatch between the two layouts is found, and told, when the route is made. */
static void sender_init(struct sender *s, struct pdx_engine *engine, uint32_t tp_rank,
                        struct pdx_peer *peer, const void *layout, size_t layout_len)
{
    struct pdx_layout *remote;

    rank_describe(&s->rank, engine, TP, tp_rank);
    must(pdx_layout_decode(layout, layout_len, &remote, &why));
    must(pdx_route_create(engine, s->rank.layout, peer, remote, NULL, &s->route, &why));
    pdx_layout_destroy(remote); /* the route keeps what it needs */
    must(pdx_cq_create(engine, MAX_SENDS, &s->cq, &why));
}

/* The ranges of layers leave no gap and the last one has no end: so each tensor goes once. */
static void sender_prefill(struct sender *s)
{
    const struct pdx_index_list src = {&at_prefill.slot, 1}, dst = {&at_decode.slot, 1};
    struct pdx_transfer_status *status;
    struct pdx_submit_opts opts;
    size_t n;

    for (size_t c = 0; c < CHUNKS; c++) {
        size_t first = chunk_first[c], npages = chunk_first[c + 1] - first;
        for (int32_t l = 0; l < LAYERS; l++) {
            struct pdx_layers layers = {l, l == LAYERS - 1 ? PDX_LAYERS_END : l + 1};
            kv_compute(&s->rank, &at_prefill, c, l);
            opts = sender_opts(s);
            must(pdx_send_kvcache_layers(
                s->route, &layers, (struct pdx_index_list){at_prefill.pages + first, npages},
                (struct pdx_index_list){at_decode.pages + first, npages}, &opts, &status, &why));
            sender_keep(s, status);
        }
    }
    state_compute(&s->rank, &at_prefill);
    opts = sender_opts(s);
    must(pdx_send_state(s->route, &src, &dst, 1, &opts, &status, 1, &n, &why));
    sender_keep(s, status); /* one per component, and there is one */
    opts = sender_opts(s);
    must(pdx_send_aux(s->route, at_prefill.slot, at_decode.slot, &opts, &status, &why));
    sender_keep(s, status);
}

/* Waits for every send, then notifies. DONE means that the bytes are visible at decode, so the
 * notification cannot overtake them. pdx_cq_fd does the waiting in an event loop. */
static void sender_finish(struct sender *s, struct pdx_peer *peer)
{
    struct done done = {.room = ROOM, .tp_rank = s->rank.tp_rank};
    struct pdx_submit_opts opts = PDX_SUBMIT_OPTS_INIT;
    struct pdx_transfer_status *status;
    struct pdx_completion c;
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->npending; i++, bytes += c.bytes) {
        must_be(pdx_cq_wait(s->cq, &c, 1, 2 * TIMEOUT) == 1, "a transfer outlived its deadline");
        must_be(c.code == PDX_DONE, pdx_transfer_text(s->pending[c.id & 255]));
    }
    printf("prefill rank %u: %zu transfers, %llu bytes\n", s->rank.tp_rank, s->npending,
           (unsigned long long)bytes);
    for (size_t i = 0; i < s->npending; i++)
        pdx_transfer_put(s->pending[i]);
    opts.id = DONE_ID(s->rank.tp_rank);
    must(pdx_notify(peer, &done, sizeof(done), &opts, &status, &why));
    (void)pdx_transfer_wait(status, PDX_FOREVER); /* ends: transfers have deadlines */
    must_be(pdx_transfer_code(status) == PDX_DONE, pdx_transfer_text(status));
    pdx_transfer_put(status);
}

/* --- Decode --- */

/* Returns when each prefill rank has notified. A server that must not block here counts in
 * pdx_engine_opts.on_inbound instead. The prefill engine's incarnation came with the request. */
static void decode_wait(struct pdx_engine *engine, const uint8_t *incarnation)
{
    static struct pdx_inbound rec;
    struct done done;

    for (uint32_t r = 0; r < TP; r++) {
        must_be(pdx_inbound_wait(engine, incarnation, DONE_ID(r), TIMEOUT, true, &rec) == 0,
                "a prefill rank did not notify in time");
        must_be(rec.code == PDX_INBOUND_DONE && rec.payload_len == sizeof(done), rec.text);
        memcpy(&done, rec.payload, sizeof(done));
        must_be(done.room == ROOM && done.tp_rank == r, "a notification of another request");
    }
    printf("decode: request %llu complete, %d of %d ranks\n", (unsigned long long)ROOM, TP, TP);
}

/* Decode's memory must be what one rank would have computed there, and untouched elsewhere. */
static void decode_check(const struct rank *decode)
{
    static struct rank expected;

    expected = *decode;
    memset(expected.mem, 0, sizeof(expected.mem));
    for (size_t c = 0; c < CHUNKS; c++)
        for (int32_t l = 0; l < LAYERS; l++)
            kv_compute(&expected, &at_decode, c, l);
    state_compute(&expected, &at_decode);
    must_be(memcmp(decode->mem, expected.mem, sizeof(expected.mem)) == 0,
            "decode holds other bytes than one rank would have computed");
    puts("decode: every byte is right");
}

int main(void)
{
    static struct rank decode;
    static struct sender senders[TP];
    struct pdx_engine *decoding, *prefilling;
    struct pdx_engine_info info;
    struct pdx_peer *peer;
    char desc[1024], layout[4096]; /* what decode sends to prefill, by any channel */
    size_t desc_len, layout_len;

    must(pdx_engine_create(NULL, &decoding, &why));
    must(pdx_engine_create(NULL, &prefilling, &why));
    rank_describe(&decode, decoding, 1, 0);
    desc_len = pdx_engine_desc(decoding, desc, sizeof(desc));
    layout_len = pdx_layout_encode(decode.layout, layout, sizeof(layout));
    must_be(desc_len <= sizeof(desc) && layout_len <= sizeof(layout), "a descriptor is too long");

    must(pdx_peer_add(prefilling, desc, desc_len, &peer, &why));
    for (uint32_t r = 0; r < TP; r++)
        sender_init(&senders[r], prefilling, r, peer, layout, layout_len);
    for (uint32_t r = 0; r < TP; r++)
        sender_prefill(&senders[r]);
    for (uint32_t r = 0; r < TP; r++)
        sender_finish(&senders[r], peer);
    pdx_engine_info(prefilling, &info);
    decode_wait(decoding, info.incarnation);
    decode_check(&decode);

    for (uint32_t r = 0; r < TP; r++) {
        pdx_cq_destroy(senders[r].cq);
        pdx_route_destroy(senders[r].route); /* before the region, which it holds */
        rank_fini(&senders[r].rank);
    }
    pdx_peer_put(peer);
    rank_fini(&decode);
    pdx_engine_destroy(prefilling);
    pdx_engine_destroy(decoding);
    return 0;
}
