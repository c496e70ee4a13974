/* SPDX-License-Identifier: Apache-2.0
 *
 * The side channel between pdx prefill and pdx decode: one TCP connection that
 * carries one JSON object a line. It exists because placing requests is no
 * business of the library; a server has its own RPC for it. Lines are limited in
 * length, and whatever the other side does (garbage, silence, death) ends in a
 * sentence.
 */
#ifndef PDX_TOOL_LINK_H
#define PDX_TOOL_LINK_H

#include <jansson.h>
#include <pdx/error.h>

#define TOOL_LINK_GREETING (64u << 10) /* longest line before the other side has said hello */
#define TOOL_LINK_LINE     (16u << 20) /* longest line after that */
#define TOOL_LINK_QUEUE    (64u << 20) /* most bytes waiting to be sent */

struct tool_link {
    int fd;         /* owned; -1: closed */
    char peer[160]; /* "prefill at 10.0.0.1:4711", for sentences */
    size_t max_line;
    char *in; /* owned */
    size_t in_len;
    size_t in_cap;
    size_t in_seen; /* bytes of `in` known to hold no line end */
    char *out;      /* owned */
    size_t out_len;
    size_t out_cap;
};

/* Takes over a connected socket and makes it non-blocking. `role` is what the other side is. */
void tool_link_init(struct tool_link *l, int fd, const char *role, const char *address);
void tool_link_fini(struct tool_link *l);

/* Connects to "host:port"; tries again for timeout_ns while nobody listens there, and waits as long
 * for a host that does not answer. Errors: PDX_EINVAL (the address), PDX_EPEER (nobody answers).
 * Blocks. */
int tool_link_connect(struct tool_link *l, const char *address, const char *role,
                      uint64_t timeout_ns, struct pdx_error *why);

/* Listens at "host:port"; port 0 lets the kernel choose. *ret_text (160 bytes) is the address with
 * the port. Returns the socket, or PDX_EINVAL, PDX_ESYS. */
int tool_link_listen(const char *address, char *ret_text, struct pdx_error *why);
/* Takes one connection, if there is one: 1 and the link, 0, or PDX_ESYS. */
int tool_link_accept(int listener, const char *role, struct tool_link *ret, struct pdx_error *why);

/* Queues a message and sends as much as the socket takes. Consumes the reference to msg, which may
 * be NULL (for want of memory). Errors: PDX_ENOMEM, PDX_ENOSPC (longer than a line may be),
 * PDX_EAGAIN (queue full), PDX_EPEER. */
int tool_link_send(struct tool_link *l, json_t *msg, struct pdx_error *why);
/* Sends what waits. Errors: PDX_EPEER. */
int tool_link_flush(struct tool_link *l, struct pdx_error *why);
/* Flushes until nothing waits or the time is over. Blocks. */
void tool_link_drain(struct tool_link *l, uint64_t timeout_ns);

/* What to poll for: POLLIN, and POLLOUT while something waits. */
short tool_link_events(const struct tool_link *l);

/* Reads what has arrived. Returns 1 and a message (the caller's reference), 0 when no complete one
 * is there yet, PDX_EPEER (closed or lost), PDX_EPROTO (no JSON object, or a line too long). */
int tool_link_receive(struct tool_link *l, json_t **ret_msg, struct pdx_error *why);

#endif
