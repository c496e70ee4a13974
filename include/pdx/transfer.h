/* SPDX-License-Identifier: Apache-2.0
 *
 * A transfer moves bytes between a region of this engine and a region of a
 * peer. Submitting never blocks; it returns a TransferStatus handle, struct
 * pdx_transfer_status, to poll, wait on, or be called back from.
 *
 * A transfer is described by what it means, not by its list of segments:
 *
 *     pairs[]    which tensor goes to which tensor
 *     items      which items (pages, slots, rows) of each pair
 *     slices[]   which part of an item
 *
 *     for each pair, each item, each slice of the pair, each row: move `len` bytes
 *
 * so that a submission costs O(pairs + items + slices) while it may stand
 * for millions of segments, and memory in flight is bounded by the transport.
 *
 * The rules that hold on every lane:
 *  - Everything is checked before anything moves; a refused submission has
 *    moved nothing and calls nothing back.
 *  - A terminal code comes exactly once, never changes, and means quiet:
 *    nothing in pdx or a network card touches the memory for it any more.
 *    The reservation for a target that does not run, or cannot be reached, for
 *    longer than twice drain_ns, or that is given up as a peer, is in
 *    doc/semantics.md.
 *  - Every transfer has a deadline.
 */
#ifndef PDX_TRANSFER_H
#define PDX_TRANSFER_H

#include <pdx/api.h>
#include <pdx/error.h>
#include <pdx/peer.h>
#include <pdx/region.h>

PDX_BEGIN_DECLS

struct pdx_transfer_status;
struct pdx_prepared;
struct pdx_cq;

enum pdx_op {
    PDX_WRITE = 1, /* local -> remote */
    PDX_READ       /* remote -> local */
};

enum pdx_transfer_code {
    PDX_QUEUED = 1, /* accepted; waits for the peer or its turn */
    PDX_WAITING,    /* waits for a GPU event; not in this version */
    PDX_IN_FLIGHT,
    PDX_DONE, /* terminal from here on */
    PDX_FAILED,
    PDX_CANCELLED, /* also by the last put of the peer, and by the end of the engine */
    PDX_DEADLINE,
    PDX_STALE /* the peer restarted, or its region was deregistered meanwhile */
};

/* When a write counts as done. */
enum pdx_level {
    PDX_LEVEL_REMOTE = 0, /* visible at the target (default) */
    PDX_LEVEL_LOCAL /* the source may be reused; a later failure is not reported. Reads take it
                       for REMOTE */
};

/* One tensor on both sides. An item is what one index addresses: a page, a slot, a row. */
struct pdx_pair {
    struct pdx_region *local;        /* held (counted) until the transfer is terminal */
    const struct pdx_remote *remote; /* copied */
    uint64_t local_base;             /* bytes into the region where item 0 starts */
    uint64_t remote_base;
    uint64_t local_item_len; /* bytes from one item to the next */
    uint64_t remote_item_len;
    uint64_t local_len; /* bytes of the tensor, to the end of what its last item moves; 0: to the
                           region's end */
    uint64_t remote_len;
    uint32_t first_slice; /* the job's slices that hold for this pair: nslices of them from here */
    uint32_t nslices;     /* 0: all of the job's slices; first_slice is then 0 too */
};

/* Which items move: local[i] -> remote[i] (or back, for a read), the same ones for every pair. The
 * order is free; items that follow each other on both sides are merged. An item that would be
 * written twice (remote[] in a write, local[] in a read) is refused. */
struct pdx_items {
    const int32_t *local;
    const int32_t *remote;
    size_t n;
    uint32_t first_pair; /* of a prepared job: only npairs of its pairs from here move */
    uint32_t npairs;     /* 0: all of them; first_pair is then 0 too */
};

/* A part of an item: `rows` runs of `len` bytes, `pitch` bytes apart. Offsets are from the item's
 * start. All of it must lie inside the item unless the pair's item length is 0. */
struct pdx_slice {
    uint64_t local_off;
    uint64_t remote_off;
    uint64_t len;         /* at least 1 */
    uint64_t rows;        /* at least 1 */
    uint64_t local_pitch; /* at least len when rows > 1 */
    uint64_t remote_pitch;
};

struct pdx_job {
    const struct pdx_pair *pairs;
    size_t npairs;
    struct pdx_items items;
    const struct pdx_slice *slices; /* none: whole items; then both item lengths must be equal */
    size_t nslices;
};

/* One entry of a scatter list. Entries are not compared with each other: where two of them write
 * the same bytes, what stands there in the end is undefined. */
struct pdx_seg {
    uint64_t local_off; /* bytes into the region */
    uint64_t remote_off;
    uint64_t len; /* bytes, at least 1 */
};

/* Called once, when the transfer is terminal; never for a refused submission. Runs on the reactor
 * thread after the library has let go of the transfer: it may submit, cancel and put; it must not
 * block (waits return PDX_EREACTOR). */
typedef void (*pdx_transfer_fn)(void *ctx, struct pdx_transfer_status *status);

enum pdx_submit_flags {
    PDX_SUBMIT_TRACK =
        1 /* the target keeps an inbound record of this transfer (see pdx_inbound_get) */
};

struct pdx_submit_opts {
    size_t size;          /* set by PDX_SUBMIT_OPTS_INIT */
    uint64_t id;          /* the caller's; reported everywhere, and the key at the target: tracked
                             transfers that are under way together need different ones */
    uint64_t deadline_ns; /* from now, at most 24 h; 0: the engine's default. PDX_FOREVER and other
                             larger values are refused with PDX_EINVAL */
    enum pdx_level level;
    uint32_t flags;     /* enum pdx_submit_flags */
    const void *notify; /* payload delivered to the target after the data; copied. Implies TRACK */
    size_t notify_len;  /* at most PDX_NOTIFY_MAX */
    pdx_transfer_fn callback; /* or NULL */
    void *callback_ctx;       /* borrowed until the callback returned */
    struct pdx_cq *cq;        /* or NULL; a place in it is reserved by the submission */
    void *cq_ctx;             /* comes back in struct pdx_completion */
};

#define PDX_SUBMIT_OPTS_INIT                                                                       \
    {                                                                                              \
        sizeof(struct pdx_submit_opts), 0, 0, PDX_LEVEL_REMOTE, 0, NULL, 0, NULL, NULL, NULL, NULL \
    }

/* Submits a scatter list between one region and one remote region.
 * Shape: `segs` is nsegs entries, copied. Units: bytes.
 * Returns: 0 and *ret_status, which the caller gives back with pdx_transfer_put. ret_status may be
 *   NULL: the outcome then comes by callback or queue only. It is set before a callback can run.
 * Errors, on each of which nothing was started:
 * - PDX_EINVAL: an option, an entry of length 0, a region of another engine, a peer that was put,
 * an item that would be written twice, a range of pairs that leaves the job
 * - PDX_ERANGE: the entry's number is in the text
 * - PDX_EOVERFLOW: all lengths together
 * - PDX_EACCESS: the remote region grants no such right
 * - PDX_ESTALE: the peer is stale, or another incarnation than the remote region's owner; or the
 *   local region is being deregistered
 * - PDX_EPEER: the peer is down
 * - PDX_EAGAIN: max_transfers, or the queue is full
 * - PDX_ENOMEM, PDX_ESHUTDOWN
 * Thread: any; never blocks. Lifetime: the memory of the segments belongs to the transfer until it
 * is terminal. */
PDX_API int pdx_write(struct pdx_peer *peer, struct pdx_region *local,
                      const struct pdx_remote *remote, const struct pdx_seg *segs, size_t nsegs,
                      const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                      struct pdx_error *why);

/* As pdx_write, in the other direction. */
PDX_API int pdx_read(struct pdx_peer *peer, struct pdx_region *local,
                     const struct pdx_remote *remote, const struct pdx_seg *segs, size_t nsegs,
                     const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                     struct pdx_error *why);

/* Submits a job of pairs, items and slices.
 * Shape: see struct pdx_job; all arrays are copied. Errors, thread, lifetime: as pdx_write. */
PDX_API int pdx_submit(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                       const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                       struct pdx_error *why);

/* Checks and keeps a job so that it can be submitted many times. `job->items.n` may be 0: then
 * every submission gives its own items. The peer may be down. Errors: as pdx_submit. Thread: any.
 * Lifetime: until pdx_prepared_put; holds its regions and its peer. */
PDX_API int pdx_prepare(struct pdx_peer *peer, enum pdx_op op, const struct pdx_job *job,
                        struct pdx_prepared **ret_prepared, struct pdx_error *why);

/* Gives the reference back; transfers under way keep what they need. NULL is permitted.
 * Thread: any. Errors: none. */
PDX_API void pdx_prepared_put(struct pdx_prepared *prepared);

/* Submits a prepared job; costs O(items), whatever the number of pairs and slices. `items` NULL
 * uses those given to pdx_prepare. Errors: as pdx_submit. Thread: any, several at once. */
PDX_API int pdx_submit_prepared(struct pdx_prepared *prepared, const struct pdx_items *items,
                                const struct pdx_submit_opts *opts,
                                struct pdx_transfer_status **ret_status, struct pdx_error *why);

/* One entry of pdx_submit_many. */
struct pdx_submission {
    struct pdx_prepared *prepared;      /* NULL: this entry is left out, its status is NULL */
    struct pdx_items items;             /* n 0: those of the prepared job */
    const struct pdx_submit_opts *opts; /* NULL: defaults */
};

/* Submits all or none: when one is refused, nothing was started and the text names its position.
 * Shape: n entries, all of one engine; n statuses (ret_statuses may be NULL).
 * Errors, thread: as pdx_submit_prepared. */
PDX_API int pdx_submit_many(const struct pdx_submission *submissions, size_t n,
                            struct pdx_transfer_status **ret_statuses, struct pdx_error *why);

/* Sends a notification alone: the target gets an inbound record with code DONE and this payload.
 * It is not ordered against transfers that are not terminal yet; a notification that must follow
 * its data goes with the transfer (pdx_submit_opts.notify). Units: len bytes, at most
 * PDX_NOTIFY_MAX. opts->notify and opts->level are ignored; opts->id is the key. Errors, thread: as
 * pdx_write. */
PDX_API int pdx_notify(struct pdx_peer *peer, const void *payload, size_t len,
                       const struct pdx_submit_opts *opts, struct pdx_transfer_status **ret_status,
                       struct pdx_error *why);

/* The code now. Acquires: after PDX_DONE of a read the bytes are visible to the caller.
 * Thread: any; never blocks. Errors: none. */
PDX_API enum pdx_transfer_code pdx_transfer_code(const struct pdx_transfer_status *status);

/* Whether a code is terminal. Thread: any. Errors: none. */
PDX_API bool pdx_transfer_is_terminal(enum pdx_transfer_code code);

/* The name of a code, for example "done". Thread: any. Lifetime: static. Errors: none. */
PDX_API const char *pdx_transfer_code_name(enum pdx_transfer_code code);

/* One sentence about the transfer: what it was, with whom, how it stands or why it ended.
 * Thread: any. Errors: none.
 * Lifetime: until the handle is put; while the transfer is not terminal a short fixed text. */
PDX_API const char *pdx_transfer_text(const struct pdx_transfer_status *status);

/* The error of a terminal transfer that is not DONE, its text that of pdx_transfer_text; code 0
 * otherwise.
 * Returns: the same code. Thread: any. Errors: none of its own. */
PDX_API int pdx_transfer_error(const struct pdx_transfer_status *status,
                               struct pdx_error *ret_error);

struct pdx_transfer_info {
    uint64_t id;
    enum pdx_op op; /* 0: a notification alone */
    enum pdx_transfer_code code;
    uint64_t bytes;         /* of the whole transfer */
    uint64_t bytes_done;    /* confirmed by the peer */
    uint64_t segments;      /* table entries sent so far, after merging; repeats count */
    uint64_t frames;        /* frames sent so far */
    uint32_t retries;       /* times it went on over a new connection */
    char lane[16];          /* "tcp"; "" before the first frame */
    uint64_t submitted_ns;  /* CLOCK_MONOTONIC */
    uint64_t first_post_ns; /* first frame handed to the transport; 0 before */
    uint64_t last_post_ns;
    uint64_t completed_ns; /* terminal; 0 before */
};

/* Thread: any. Errors: none. Values may be one step old while the transfer is not terminal. */
PDX_API void pdx_transfer_info(const struct pdx_transfer_status *status,
                               struct pdx_transfer_info *ret_info);

/* Waits until the transfer is terminal.
 * Returns: 0 when it is, whatever its code. timeout_ns 0 polls; PDX_FOREVER waits (transfers have
 *   deadlines).
 * Errors: PDX_ETIMEDOUT, PDX_EREACTOR (on a reactor thread, while it is not terminal).
 * Thread: any, several at once; blocks. */
PDX_API int pdx_transfer_wait(struct pdx_transfer_status *status, uint64_t timeout_ns);

/* Waits until all are terminal; a NULL entry counts as terminal.
 * Returns: 0, or PDX_ETIMEDOUT when at least one is not. Errors, thread: as pdx_transfer_wait. */
PDX_API int pdx_transfer_wait_all(struct pdx_transfer_status *const *statuses, size_t n,
                                  uint64_t timeout_ns);

/* Waits until at least one is terminal; NULL entries are passed over.
 * Returns: 0 and the position of a terminal one in *ret_pos (the first of them in array order).
 * Errors: PDX_ETIMEDOUT, PDX_EINVAL (no entry), PDX_EREACTOR. Thread: as pdx_transfer_wait. */
PDX_API int pdx_transfer_wait_any(struct pdx_transfer_status *const *statuses, size_t n,
                                  uint64_t timeout_ns, size_t *ret_pos);

/* Asks for the end of the transfer. Asynchronous and idempotent: the code becomes terminal soon
 * after, CANCELLED, or what it became before the request took effect. Terminal transfers: no
 * effect. Thread: any; never blocks. Errors: none. */
PDX_API void pdx_transfer_cancel(struct pdx_transfer_status *status);

/* One more reference. Returns: `status`. Thread: any. Errors: none. */
PDX_API struct pdx_transfer_status *pdx_transfer_get(struct pdx_transfer_status *status);

/* Gives a reference back. Does not cancel: a transfer whose handle is put goes on. NULL is
 * permitted. Thread: any. Errors: none. Lifetime: `status` is invalid for this holder afterwards.
 */
PDX_API void pdx_transfer_put(struct pdx_transfer_status *status);

PDX_END_DECLS

#endif
