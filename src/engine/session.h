/* SPDX-License-Identifier: Apache-2.0
 *
 * The target's side: a session is one initiator's control connection together
 * with the lanes that joined it by ticket. When the control connection ends,
 * everything of the session ends.
 */
#ifndef PDXI_SESSION_H
#define PDXI_SESSION_H

#include "engine/net/stream.h"
#include "engine/proto/hello.h"

/* Ends of transfers that a session remembers: more than may be unanswered on a data connection. */
#define PDXI_SESSION_HEARD 2048u

struct pdx_region;
struct pdxi_served; /* a transport's target side of one lane */
struct pdxi_session;

/* Hooks of the target side of a lane. */
struct pdxi_served_ops {
    /* Takes over an accepted stream whose HELLO carried the session's ticket, and answers it. */
    int (*join)(struct pdxi_session *session, struct pdxi_stream *stream, struct pdx_error *why);
    /* Ends it at once: no memory is touched after return. */
    void (*close)(struct pdxi_served *served);
    /* The region is being deregistered: writes into it are discarded from now on, reads of it end.
     */
    void (*revoke)(struct pdxi_served *served, const struct pdx_region *region);
};

/* First member of a transport's own struct. */
struct pdxi_served {
    const struct pdxi_served_ops *ops;
    struct pdxi_session *session;
};

extern const struct pdxi_served_ops pdxi_served_tcp;

struct pdxi_session {
    struct pdxi_list link; /* of the engine */
    struct pdx_engine *engine;
    struct pdxi_stream *stream; /* owned: the control connection */
    uint8_t incarnation[PDX_INCARNATION_LEN];
    char name[PDX_NAME_MAX + 1];
    uint8_t ticket[PDXI_TICKET_LEN];
    bool ticket_valid;
    struct pdxi_served *served;         /* owned, or NULL */
    uint64_t heard[PDXI_SESSION_HEARD]; /* numbers of transfers that ended, the last ones */
    uint32_t nheard;                    /* ever; wraps */
    uint64_t heard_max;                 /* the highest of them */
    uint64_t replay_max;                /* of earlier data connections: what may be sent again */
    struct pdxi_timer timer;            /* keepalive */
    uint64_t keepalive_ns;              /* the initiator's */
    struct pdxi_frame_hello_ack ack;    /* waits to be sent while send_ack */
    uint64_t pong_stamp;
    bool send_ack;
    bool send_pong;
    bool send_ticket;
    bool ended;
};

/* Judges a HELLO on an accepted stream and answers it: a new session, a lane that joins one, or a
 * refusal. The stream is taken over, or closed. Returns 0, or the error for the log. */
int pdxi_session_greet(struct pdx_engine *engine, struct pdxi_stream *stream,
                       const struct pdxi_frame_hello *hello, struct pdx_error *why);

/* The initiator told the end of its transfer `xfer`. */
void pdxi_session_hear(struct pdxi_session *session, uint64_t xfer);

/* Whether it did so on an earlier data connection and, not having got the answer, tells it again:
 * then nothing of the transfer may be carried out a second time. */
bool pdxi_session_heard(const struct pdxi_session *session, uint64_t xfer);

/* A tracked transfer of this session ended; tells the engine's hook. */
void pdxi_session_inbound_end(struct pdxi_session *session, uint64_t id, enum pdx_inbound_code code,
                              int err, const char *text, const void *payload, size_t payload_len);

/* The lane is gone by itself. */
void pdxi_session_served_lost(struct pdxi_session *session, struct pdxi_served *served,
                              const struct pdx_error *why);

/* All sessions. */
void pdxi_sessions_close(struct pdx_engine *engine);
void pdxi_sessions_revoke(struct pdx_engine *engine, const struct pdx_region *region);

#endif
