/* SPDX-License-Identifier: Apache-2.0
 *
 * What pdx prefill and pdx decode say to each other over the link:
 *
 *     prefill                                      decode
 *     hello  model, shapes, TP, PP, seed     -->
 *                                            <--   offer  engine, layouts, capacity (or error)
 *     announce  room, tokens                 -->
 *                                            <--   place  room, items per rank and pool
 *     (the library moves the bytes)
 *     sent  room, stage, ok                  -->     (one for each prefill stage)
 *                                            <--   verdict  room, ok, bytes compared
 *     bye                                    -->
 *                                            <--   summary
 *
 * Everything here is pure: JSON to values and back, every value checked.
 */
#ifndef PDX_TOOL_RENDEZVOUS_H
#define PDX_TOOL_RENDEZVOUS_H

#include "tool/rank.h"

#include <jansson.h>

#define TOOL_RENDEZVOUS_VERSION 2
#define TOOL_INFLIGHT_MAX       1024

enum tool_op {
    TOOL_OP_HELLO = 1,
    TOOL_OP_OFFER,
    TOOL_OP_ANNOUNCE,
    TOOL_OP_PLACE,
    TOOL_OP_SENT,
    TOOL_OP_VERDICT,
    TOOL_OP_BYE,
    TOOL_OP_SUMMARY,
    TOOL_OP_ERROR
};

struct tool_hello {
    char model[64];
    uint64_t shape; /* tool_shape of the model */
    uint32_t page_size;
    uint32_t tp[2]; /* prefill, decode */
    uint32_t pp[2];
    uint32_t inflight;
    uint32_t max_tokens;
    uint64_t seed;
};

struct tool_blob {
    uint8_t *data; /* owned */
    size_t len;
};

struct tool_offer {
    uint32_t inflight;
    uint32_t max_tokens;
    uint32_t capacity[TOOL_POOLS_MAX]; /* items that can be handed out, of every rank */
    size_t npools;
    struct tool_blob engine;
    struct tool_blob *layouts; /* owned; one per decode rank */
    size_t nlayouts;
};

/* The short messages; the fields that the op has. */
struct tool_message {
    enum tool_op op;
    uint64_t room;
    uint32_t tokens;
    uint32_t stage; /* SENT: which prefill stage has sent its part */
    bool ok;
    uint64_t bytes;    /* VERDICT: compared; SUMMARY: of all requests */
    uint64_t requests; /* SUMMARY: found good */
    uint64_t failed;   /* SUMMARY */
    uint64_t guards;   /* SUMMARY: items that nobody may write to, found unchanged */
    char text[1024];   /* printable */
};

/* A hash of everything that decides where bytes lie. Both sides must have the same. */
uint64_t tool_shape(const struct tool_model *m);

/* What kind of message it is, or PDX_EPROTO. */
int tool_message_op(const json_t *msg, struct pdx_error *why);

/* Each encode returns a new reference, or NULL for want of memory; each decode 0, or PDX_EPROTO
 * with the member that is wrong (PDX_EVERSION for a hello of another protocol), PDX_ENOMEM. */
json_t *tool_hello_encode(const struct tool_hello *h);
int tool_hello_decode(const json_t *msg, struct tool_hello *ret, struct pdx_error *why);

json_t *tool_offer_encode(const struct tool_offer *o);
int tool_offer_decode(const json_t *msg, struct tool_offer *ret, struct pdx_error *why);
void tool_offer_fini(struct tool_offer *o);

json_t *tool_message_encode(const struct tool_message *m);
int tool_message_decode(const json_t *msg, struct tool_message *ret, struct pdx_error *why);

/* The items of a request on each of n ranks. Decoding needs to know what the request must have: the
 * spans of `tokens` tokens on each rank of the group; the lists are the caller's
 * (tool_placement_fini), also after an error. */
json_t *tool_place_encode(uint64_t room, const struct tool_placement *ranks, size_t n,
                          size_t npools);
int tool_place_room(const json_t *msg, uint64_t *ret_room, struct pdx_error *why);
int tool_place_decode(const json_t *msg, const struct tool_group *g, uint32_t tokens,
                      struct tool_placement *ranks, struct pdx_error *why);
void tool_placement_fini(struct tool_placement *pl);

#endif
