/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine is one reactor thread with everything it serves: a listener,
 * regions, peers, transfers. A process may have several; they share nothing.
 */
#ifndef PDX_ENGINE_H
#define PDX_ENGINE_H

#include <pdx/api.h>
#include <pdx/error.h>

PDX_BEGIN_DECLS

struct pdx_engine;
struct pdx_cq;

#define PDX_INCARNATION_LEN 16
#define PDX_NAME_MAX        128  /* longest engine name, without the terminator */
#define PDX_NOTIFY_MAX      1024 /* longest notification payload, bytes */

/* How the reactor waits. */
enum pdx_io {
    PDX_IO_AUTO = 0, /* io_uring when the kernel permits it, else epoll */
    PDX_IO_URING,
    PDX_IO_EPOLL
};

enum pdx_log_level { PDX_LOG_ERROR = 0, PDX_LOG_WARN, PDX_LOG_INFO, PDX_LOG_DEBUG };

/* Called with one complete line without newline. May run on any thread, several at once; must
 * not call into the engine. `line` is valid during the call only. */
typedef void (*pdx_log_fn)(void *ctx, enum pdx_log_level level, const char *line);

/* An inbound record: what this engine knows of a transfer that a peer directed at it.
 * Only transfers submitted with PDX_SUBMIT_TRACK or with a notification leave one. */
enum pdx_inbound_code {
    PDX_INBOUND_IN_PROGRESS = 1,
    PDX_INBOUND_DONE,   /* every byte is visible here, the notification (if any) is attached */
    PDX_INBOUND_FAILED, /* the initiator or its connection failed; `text` says why */
    PDX_INBOUND_ABORTED /* the initiator cancelled, or its deadline passed */
};

struct pdx_inbound {
    uint8_t incarnation[PDX_INCARNATION_LEN]; /* of the initiator */
    uint64_t id;                              /* the initiator's pdx_submit_opts.id */
    enum pdx_inbound_code code;
    int err;           /* enum pdx_err, 0 unless FAILED or ABORTED */
    uint64_t bytes;    /* written into (or read from) this engine so far */
    uint64_t began_ns; /* CLOCK_MONOTONIC, first frame */
    uint64_t ended_ns; /* 0 while in progress */
    char peer[PDX_NAME_MAX + 1];
    char text[256];     /* reason of FAILED and ABORTED */
    size_t payload_len; /* bytes in payload */
    uint8_t payload[PDX_NOTIFY_MAX];
};

/* Called once for each inbound record that reaches a final code. Runs on the reactor thread: it
 * may submit, cancel and put, and must not block. `rec` is valid during the call only. */
typedef void (*pdx_inbound_fn)(void *ctx, const struct pdx_inbound *rec);

struct pdx_engine_opts {
    size_t size;           /* set by pdx_engine_opts_init */
    const char *name;      /* "decode-0"; default "pdx-<pid>-<random>". Copied */
    const char *bind;      /* where to listen, "host:port", "[v6]:port" or "name:port"; port 0 lets
                              the kernel choose. Default "127.0.0.1:0". NULL: default. Copied */
    const char *advertise; /* addresses that peers shall use, comma-separated "host" or "host:port";
                              a missing port is the bound one. Default: the bound address; for a
                              wildcard bind every address of every interface that is up, loopback
                              last. A wildcard here is refused. Copied */
    enum pdx_io io;
    uint64_t deadline_ns;  /* of transfers that give none; default 30 s, at most 24 h */
    uint64_t keepalive_ns; /* peers are probed this often; one that is silent for twice as long is
                              lost. Default 2 s; 10 ms .. 1 h */
    uint64_t connect_timeout_ns; /* until the first lane is open, per address, at most 1 s for all
                                    but the last one; default 5 s */
    uint64_t drain_ns; /* how long a cancelled or overdue transfer waits for the peer to confirm
                          before its connection is broken; a write then waits up to twice as long
                          for the new connection. Default 10 ms; 1 ms .. 60 s */
    uint64_t spin_ns;  /* the reactor polls this long after activity before it sleeps;
                          default 0 (sleeps at once) */
    uint32_t max_transfers; /* unfinished or not yet put; default 65536 */
    uint32_t max_regions;   /* default 16384 */
    uint32_t max_peers;     /* outgoing; default 4096 */
    uint32_t max_sessions;  /* incoming; default 4096 */
    uint32_t
        max_inbound; /* inbound records kept; the oldest finished one goes first; default 65536 */
    uint64_t inbound_age_ns;      /* finished inbound records older than this go; default 300 s */
    const char *tcp_congestion;   /* of data connections; default "cubic", then "reno" if not
                                     permitted; "" keeps the system's. Copied */
    pdx_log_fn log;               /* NULL: nothing is logged */
    void *log_ctx;                /* borrowed until destroy returns */
    enum pdx_log_level log_level; /* default PDX_LOG_INFO */
    pdx_inbound_fn on_inbound;    /* NULL: records are looked up with pdx_inbound_get */
    void *on_inbound_ctx;         /* borrowed until destroy returns */
};

/* Fills in the defaults. Thread: any. Errors: none. Lifetime: borrows nothing. */
PDX_API void pdx_engine_opts_init(struct pdx_engine_opts *opts);

/* Creates an engine, binds its listener and starts its reactor thread.
 * Returns: 0, and *ret_engine. `opts` may be NULL for the defaults.
 * Errors:
 * - PDX_EINVAL: an option; the text names it and its limits
 * - PDX_ESYS: bind, socket, thread; the text has the address and the reason
 * - PDX_EUNSUPPORTED: PDX_IO_URING where the kernel refuses it
 * - PDX_ENOMEM
 * Thread: any. May block while a host name in `bind` is resolved.
 * Lifetime: until pdx_engine_destroy. */
PDX_API int pdx_engine_create(const struct pdx_engine_opts *opts, struct pdx_engine **ret_engine,
                              struct pdx_error *why);

/* Stops the engine: every unfinished transfer ends PDX_CANCELLED with PDX_ESHUTDOWN, connections
 * close, the thread is joined. Handles of transfers, peers, regions, prepared jobs and queues stay
 * valid until they are put or destroyed. NULL is permitted. After return nothing of the engine
 * touches memory.
 * Thread: any but the reactor (from a callback the call does nothing and returns PDX_EREACTOR).
 * Errors: PDX_EREACTOR. Lifetime: `engine` is invalid afterwards. */
PDX_API int pdx_engine_destroy(struct pdx_engine *engine);

/* Writes the engine's descriptor, the bytes that a peer gives to pdx_peer_add: name, incarnation,
 * addresses, protocol version. Format: doc/wire.md.
 * Returns: the descriptor's length in bytes, also when `cap` is smaller (then nothing is written);
 *   `buf` may be NULL with `cap` 0.
 * Thread: any. Errors: none. Lifetime: the bytes are the caller's. */
PDX_API size_t pdx_engine_desc(const struct pdx_engine *engine, void *buf, size_t cap);

struct pdx_engine_info {
    const char *name;       /* lives as long as the engine */
    const char *io;         /* "io_uring" or "epoll" */
    const char *io_reason;  /* why that one, one clause */
    const char *address;    /* the bound address with its real port, "127.0.0.1:40113" */
    const char *advertised; /* comma-separated, as in the descriptor */
    uint16_t port;          /* the bound port */
    uint8_t incarnation[PDX_INCARNATION_LEN];
};

/* Thread: any. Errors: none. Lifetime: the strings live as long as the engine. */
PDX_API void pdx_engine_info(const struct pdx_engine *engine, struct pdx_engine_info *ret_info);

/* A snapshot; each value is exact, the set of them is not taken at one instant. */
struct pdx_engine_counters {
    uint64_t transfers_submitted;
    uint64_t transfers_done;
    uint64_t transfers_failed;
    uint64_t transfers_cancelled;
    uint64_t transfers_deadline;
    uint64_t transfers_stale;
    uint64_t transfers_refused;  /* calls that submit and returned an error */
    uint64_t transfers_inflight; /* submitted and not terminal */
    uint64_t bytes_written;      /* payload of our writes, confirmed by the peers */
    uint64_t bytes_read;         /* payload of our reads */
    uint64_t bytes_in_written;   /* payload that peers wrote here */
    uint64_t bytes_in_read;      /* payload that peers read from here */
    uint64_t segments;           /* table entries of our writes and reads */
    uint64_t frames_sent;        /* of own transfers */
    uint64_t frames_received;    /* of every kind */
    uint64_t retries;            /* transfers that went on over a new connection */
    uint64_t peers;              /* outgoing, now */
    uint64_t sessions;           /* incoming, now */
    uint64_t peers_lost;
    uint64_t sessions_lost;
    uint64_t garbage;         /* connections closed because of bytes that are not the protocol */
    uint64_t refused_frames;  /* well-formed requests refused: rights, key, bounds, generation */
    uint64_t inbound_records; /* now */
    uint64_t inbound_evicted; /* finished records dropped because of max_inbound */
    uint64_t inbound_aged;    /* finished records dropped because of inbound_age_ns */
    uint64_t again;           /* those of transfers_refused that returned PDX_EAGAIN */
    uint64_t wakeups;         /* times the reactor slept and woke */
    uint64_t syscalls;        /* made by the reactor: waits, sends, receives, looks for errors */
};

/* Thread: any. Errors: none. */
PDX_API void pdx_engine_counters(const struct pdx_engine *engine,
                                 struct pdx_engine_counters *ret_counters);

/* The inbound record of transfer `id` of the initiator `incarnation`.
 * Returns: 0 and a copy in *ret_rec. With `forget`, a finished record is removed.
 * Errors:
 * - PDX_ENOENT: nothing arrived yet, or the record was dropped
 * - PDX_ESHUTDOWN: the engine ends, and there is no such record
 * Thread: any. Lifetime: the copy is the caller's. */
PDX_API int pdx_inbound_get(struct pdx_engine *engine,
                            const uint8_t incarnation[PDX_INCARNATION_LEN], uint64_t id,
                            bool forget, struct pdx_inbound *ret_rec);

/* As pdx_inbound_get, but waits until the record has a final code.
 * Errors: PDX_ETIMEDOUT, PDX_ESHUTDOWN (the engine ends), PDX_EREACTOR.
 * Thread: any but a reactor; blocks. */
PDX_API int pdx_inbound_wait(struct pdx_engine *engine,
                             const uint8_t incarnation[PDX_INCARNATION_LEN], uint64_t id,
                             uint64_t timeout_ns, bool forget, struct pdx_inbound *ret_rec);

PDX_END_DECLS

#endif
