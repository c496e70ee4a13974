/* SPDX-License-Identifier: Apache-2.0
 *
 * How the reactor waits. Everything it waits for is a file descriptor that
 * becomes ready: sockets, the doorbell, and later verbs completion channels
 * and GPU events. Two backends do the same: one io_uring with a multishot poll
 * per descriptor, and epoll where io_uring is refused.
 *
 * Readiness is edge-triggered: after on_ready told READ, the owner reads until
 * EAGAIN (or remembers that it has not) before it waits again.
 */
#ifndef PDXI_IO_H
#define PDXI_IO_H

#include <pdx/error.h>

struct pdxi_io;
struct pdxi_watch;

enum pdxi_io_events {
    PDXI_IO_READ = 1,
    PDXI_IO_WRITE = 2,
    PDXI_IO_ERROR = 4, /* error or hang-up; READ is set too, so that a read finds out more */
    PDXI_IO_END = 8    /* the other side sends nothing more (told to readers); READ is set too */
};

/* Called on the reactor thread inside pdxi_io_wait. May add and remove watches, this one too. */
typedef void (*pdxi_watch_fn)(struct pdxi_watch *watch, unsigned events);

/* Part of the owner's object. The owner sets fd, events and fn before add. */
struct pdxi_watch {
    int fd;          /* borrowed; close it only after remove */
    unsigned events; /* PDXI_IO_READ | PDXI_IO_WRITE; errors are always told */
    pdxi_watch_fn fn;
    uint32_t slot;       /* of the backend; 0 when not added */
    uint32_t generation; /* of the backend */
};

struct pdxi_io_ops {
    const char *name; /* "io_uring", "epoll" */
    int (*create)(struct pdxi_io **ret_io, uint32_t max_watches, struct pdx_error *why);
    void (*destroy)(struct pdxi_io *io);
    int (*add)(struct pdxi_io *io, struct pdxi_watch *watch, struct pdx_error *why);
    void (*remove)(struct pdxi_io *io, struct pdxi_watch *watch);
    int (*wait)(struct pdxi_io *io, uint64_t timeout_ns);
};

/* First member of a backend's own struct. */
struct pdxi_io {
    const struct pdxi_io_ops *ops;
    uint64_t syscalls; /* made so far */
};

extern const struct pdxi_io_ops
    pdxi_io_uring; /* also built without liburing: create then refuses */
extern const struct pdxi_io_ops pdxi_io_epoll;

/* Creates the backend. Everything is called by the thread that created it, up to destroy.
 * Returns 0; PDX_EUNSUPPORTED with the kernel's reason; PDX_ENOMEM; PDX_ESYS. */
static inline int pdxi_io_create(const struct pdxi_io_ops *ops, struct pdxi_io **ret_io,
                                 uint32_t max_watches, struct pdx_error *why)
{
    return ops->create(ret_io, max_watches, why);
}

/* NULL is permitted. Watches that are still added are forgotten. */
static inline void pdxi_io_destroy(struct pdxi_io *io)
{
    if (io)
        io->ops->destroy(io);
}

/* Returns 0, PDX_EAGAIN (max_watches reached), PDX_ESYS. The first on_ready tells the state at this
 * moment. */
static inline int pdxi_io_add(struct pdxi_io *io, struct pdxi_watch *watch, struct pdx_error *why)
{
    return io->ops->add(io, watch, why);
}

/* After return the watch's fn is not called any more, also not for events that were already taken
 * from the kernel in the same wait. A watch that is not added is ignored. */
static inline void pdxi_io_remove(struct pdxi_io *io, struct pdxi_watch *watch)
{
    io->ops->remove(io, watch);
}

/* Sleeps until something is ready or timeout_ns has passed (0: only looks; UINT64_MAX: no limit),
 * and calls the watches' fn. Returns how many were called, 0 at the timeout and after a signal,
 * PDX_ESYS when the backend is broken for good. */
static inline int pdxi_io_wait(struct pdxi_io *io, uint64_t timeout_ns)
{
    return io->ops->wait(io, timeout_ns);
}

#endif
