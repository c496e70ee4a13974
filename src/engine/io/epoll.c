/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting with epoll, for kernels and containers that refuse io_uring. Events
 * are taken in batches; each carries the token of its watch, which is looked
 * up at the moment of the call, so that a watch removed by an earlier callback
 * of the same batch is passed over.
 */
#include "base/error.h"
#include "engine/io/watches.h"

#include <errno.h>
#include <linux/time_types.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EPOLL_BATCH 256
#define NS_PER_MS   UINT64_C(1000000)

struct epoll {
    struct pdxi_io io;
    struct pdxi_watches watches;
    int fd;
    bool coarse; /* the kernel has no epoll_pwait2 */
    struct epoll_event events[EPOLL_BATCH];
};

static struct epoll *epoll_of(struct pdxi_io *io)
{
    return (struct epoll *)(void *)io;
}

static void epoll_destroy(struct pdxi_io *io)
{
    struct epoll *e = epoll_of(io);

    (void)close(e->fd);
    pdxi_watches_fini(&e->watches);
    free(e);
}

static int epoll_open(struct pdxi_io **ret_io, uint32_t max_watches, struct pdx_error *why)
{
    struct epoll *e = calloc(1, sizeof *e);

    if (!e)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an epoll instance");
    e->io.ops = &pdxi_io_epoll;
    if (pdxi_watches_init(&e->watches, max_watches) < 0) {
        free(e);
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for %u watches", max_watches);
    }
    e->fd = epoll_create1(EPOLL_CLOEXEC);
    if (e->fd < 0) {
        int err = errno;

        pdxi_watches_fini(&e->watches);
        free(e);
        return pdxi_error_sys(why, err, "epoll_create1");
    }
    *ret_io = &e->io;
    return 0;
}

static int epoll_add(struct pdxi_io *io, struct pdxi_watch *w, struct pdx_error *why)
{
    struct epoll *e = epoll_of(io);
    struct epoll_event ev = {.events = EPOLLET};

    if (!pdxi_watches_add(&e->watches, w))
        return pdxi_refuse(why, PDX_EAGAIN, "all %u watches of the engine are taken",
                           e->watches.max);
    if (w->events & PDXI_IO_READ)
        ev.events |= EPOLLIN | EPOLLRDHUP;
    if (w->events & PDXI_IO_WRITE)
        ev.events |= EPOLLOUT;
    ev.data.u64 = pdxi_watch_token(w);
    io->syscalls++;
    if (epoll_ctl(e->fd, EPOLL_CTL_ADD, w->fd, &ev) < 0) {
        int err = errno;

        pdxi_watches_remove(&e->watches, w);
        return pdxi_error_sys(why, err, "watching file descriptor %d", w->fd);
    }
    return 0;
}

static void epoll_remove(struct pdxi_io *io, struct pdxi_watch *w)
{
    struct epoll *e = epoll_of(io);

    if (!w->slot)
        return;
    io->syscalls++;
    (void)epoll_ctl(e->fd, EPOLL_CTL_DEL, w->fd, NULL);
    pdxi_watches_remove(&e->watches, w);
}

/* Milliseconds rounded up, so that a wait never ends early. */
static int epoll_wait_coarse(struct epoll *e, uint64_t timeout_ns)
{
    uint64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);

    if (timeout_ns == UINT64_MAX)
        return epoll_wait(e->fd, e->events, EPOLL_BATCH, -1);
    return epoll_wait(e->fd, e->events, EPOLL_BATCH, ms < INT32_MAX ? (int)ms : INT32_MAX);
}

static int epoll_wait_fine(struct epoll *e, uint64_t timeout_ns)
{
    struct __kernel_timespec ts = {.tv_sec = (long long)(timeout_ns / 1000000000),
                                   .tv_nsec = (long long)(timeout_ns % 1000000000)};

    /* Not through the C library, which may be older than the kernel. */
    return (int)syscall(SYS_epoll_pwait2, e->fd, e->events, EPOLL_BATCH,
                        timeout_ns == UINT64_MAX ? NULL : &ts, NULL, (size_t)0);
}

static int epoll_take(struct epoll *e, uint64_t timeout_ns)
{
    int n;

    e->io.syscalls++;
    if (!e->coarse) {
        n = epoll_wait_fine(e, timeout_ns);
        /* EPERM: seccomp filters that don't know the call. */
        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        e->coarse = true;
        e->io.syscalls++;
    }
    return epoll_wait_coarse(e, timeout_ns);
}

static unsigned epoll_told(uint32_t mask)
{
    unsigned events = 0;

    if (mask & (EPOLLIN | EPOLLRDHUP))
        events |= PDXI_IO_READ;
    if (mask & EPOLLRDHUP)
        events |= PDXI_IO_END;
    if (mask & EPOLLOUT)
        events |= PDXI_IO_WRITE;
    if (mask & (EPOLLERR | EPOLLHUP))
        events |= PDXI_IO_ERROR | PDXI_IO_READ;
    return events;
}

static int epoll_await(struct pdxi_io *io, uint64_t timeout_ns)
{
    struct epoll *e = epoll_of(io);
    int n = epoll_take(e, timeout_ns);
    int ncalled = 0;

    if (n < 0)
        return errno == EINTR ? 0 : PDX_ESYS;
    for (int i = 0; i < n; i++) {
        struct pdxi_watch *w = pdxi_watches_find(&e->watches, e->events[i].data.u64);

        if (w) {
            w->fn(w, epoll_told(e->events[i].events));
            ncalled++;
        }
    }
    return ncalled;
}

const struct pdxi_io_ops pdxi_io_epoll = {
    .name = "epoll",
    .create = epoll_open,
    .destroy = epoll_destroy,
    .add = epoll_add,
    .remove = epoll_remove,
    .wait = epoll_await,
};
