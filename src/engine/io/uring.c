/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting with io_uring: one ring, and per watch one multishot poll, which
 * stays armed and posts a completion at each edge. A loop of the reactor is
 * one system call, whatever number of watches were added or re-armed since.
 *
 *   add ----> to arm ----wait----> armed ----completion----> ready --> fn
 *                ^                   |
 *                +--- the kernel ended the poll (no F_MORE)
 *
 * Completions are first moved from the ring to their slots and then told, so
 * that the ring is never full because of a slow callback and several edges
 * of one watch are one call.
 */
#include "base/error.h"
#include "engine/io/watches.h"

#if PDX_HAVE_URING

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define URING_SQ_LEN     256
#define URING_CQ_LEN_MIN 512
#define URING_CQ_LEN_MAX 16384
#define URING_TOKEN_NONE UINT64_C(0) /* of completions that nobody waits for */

/* Beside the watch's slot of the same number. A watch can leave while its slot is linked: the links
 * stay, and whoever takes the slot from the list finds nothing to do, or its new watch. */
struct uring_slot {
    uint32_t next_ready;
    uint32_t next_arm;
    uint16_t events; /* enum pdxi_io_events, not told yet */
    bool in_ready;
    bool in_arm;
    bool armed;
};

struct uring {
    struct pdxi_io io;
    struct io_uring ring;
    struct pdxi_watches watches;
    struct uring_slot *slots; /* owned; max + 1 */
    uint32_t arm;             /* the slots to arm, last in first out; 0: none */
    uint32_t ready_first;     /* the slots with events, oldest first; 0: none */
    uint32_t ready_last;
};

static struct uring *uring_of(struct pdxi_io *io)
{
    return (struct uring *)(void *)io;
}

static void uring_want_arm(struct uring *u, uint32_t slot)
{
    struct uring_slot *s = &u->slots[slot];

    s->armed = false;
    if (s->in_arm)
        return;
    s->in_arm = true;
    s->next_arm = u->arm;
    u->arm = slot;
}

static void uring_want_tell(struct uring *u, uint32_t slot, unsigned events)
{
    struct uring_slot *s = &u->slots[slot];

    s->events = (uint16_t)(s->events | events);
    if (s->in_ready)
        return;
    s->in_ready = true;
    s->next_ready = 0;
    if (u->ready_first)
        u->slots[u->ready_last].next_ready = slot;
    else
        u->ready_first = slot;
    u->ready_last = slot;
}

static unsigned uring_told(int32_t res)
{
    unsigned mask = (unsigned)res;
    unsigned events = 0;

    if (res < 0)
        return PDXI_IO_ERROR | PDXI_IO_READ;
    if (mask & (POLLIN | POLLRDHUP))
        events |= PDXI_IO_READ;
    if (mask & POLLRDHUP)
        events |= PDXI_IO_END;
    if (mask & POLLOUT)
        events |= PDXI_IO_WRITE;
    if (mask & (POLLERR | POLLHUP))
        events |= PDXI_IO_ERROR | PDXI_IO_READ;
    return events;
}

static void uring_on_cqe(struct uring *u, const struct io_uring_cqe *cqe)
{
    struct pdxi_watch *w = pdxi_watches_find(&u->watches, cqe->user_data);
    int32_t res = cqe->res;

    if (!w)
        return;
    if (!(cqe->flags & IORING_CQE_F_MORE)) {
        u->slots[w->slot].armed = false;
        /* A poll that the kernel ended in passing, or had no memory for, is armed again. Arming
         * tells the state at that moment, so nothing is missed in between. Other errors are of the
         * file descriptor and final. */
        if (res >= 0 || res == -ECANCELED || res == -ENOMEM || res == -EAGAIN) {
            uring_want_arm(u, w->slot);
            if (res < 0)
                return;
        }
    }
    uring_want_tell(u, w->slot, uring_told(res));
}

/* Moves all completions to their slots. Returns how many there were. */
static unsigned uring_reap(struct uring *u)
{
    struct io_uring_cqe *cqes[64];
    unsigned total = 0;
    unsigned n;

    while ((n = io_uring_peek_batch_cqe(&u->ring, cqes, 64)) > 0) {
        for (unsigned i = 0; i < n; i++)
            uring_on_cqe(u, cqes[i]);
        io_uring_cq_advance(&u->ring, n);
        total += n;
    }
    return total;
}

/* Hands the kernel what is queued, and lets it finish what it has put off. Kernels before 5.18 take
 * nothing while completions that did not fit into the ring wait (EBUSY). */
static int uring_submit(struct uring *u)
{
    int rc;

    do {
        u->io.syscalls++;
        rc = io_uring_submit_and_get_events(&u->ring);
    } while (rc == -EBUSY && uring_reap(u) > 0);
    return rc;
}

/* A free submission entry; NULL when the kernel takes none at the moment. */
static struct io_uring_sqe *uring_sqe(struct uring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

    if (sqe)
        return sqe;
    (void)uring_submit(u);
    return io_uring_get_sqe(&u->ring);
}

static void uring_arm_all(struct uring *u)
{
    while (u->arm) {
        uint32_t slot = u->arm;
        struct uring_slot *s = &u->slots[slot];
        const struct pdxi_watch *w = u->watches.slots[slot].watch;
        struct io_uring_sqe *sqe;

        u->arm = s->next_arm;
        s->in_arm = false;
        if (!w || s->armed)
            continue;
        sqe = uring_sqe(u);
        if (!sqe) { /* the rest goes with the next wait */
            uring_want_arm(u, slot);
            return;
        }
        io_uring_prep_poll_multishot(sqe, w->fd,
                                     (w->events & PDXI_IO_READ ? POLLIN | POLLRDHUP : 0) |
                                         (w->events & PDXI_IO_WRITE ? POLLOUT : 0));
        sqe->user_data = pdxi_watch_token(w);
        s->armed = true;
    }
}

static int uring_add(struct pdxi_io *io, struct pdxi_watch *w, struct pdx_error *why)
{
    struct uring *u = uring_of(io);

    if (!pdxi_watches_add(&u->watches, w))
        return pdxi_refuse(why, PDX_EAGAIN, "all %u watches of the engine are taken",
                           u->watches.max);
    uring_want_arm(u, w->slot);
    return 0;
}

/* Bits of the kernel that ask for a call: completions it has no room for, work it has put off. */
static unsigned uring_kernel_wants(const struct uring *u)
{
    return IO_URING_READ_ONCE(*u->ring.sq.kflags) & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN);
}

/* A pending poll holds a reference to its file, so that closing the descriptor would close nothing:
 * the poll has to be gone on return. Its end may queue behind other work, of which Linux 6.13 does
 * 20 pieces per call; there is one piece per watch at most. */
static void uring_cancel(struct uring *u, uint64_t token)
{
    struct io_uring_sqe *sqe = uring_sqe(u);
    uint32_t ncalls = 0;

    if (!sqe)
        return;
    /* Not poll_remove: it gives up (EALREADY) when an event of the poll was not delivered yet. */
    io_uring_prep_cancel64(sqe, token, 0);
    sqe->user_data = URING_TOKEN_NONE;
    do {
        if (uring_submit(u) < 0)
            return;
    } while (uring_kernel_wants(u) & IORING_SQ_TASKRUN && ncalls++ < u->watches.used);
}

static void uring_remove(struct pdxi_io *io, struct pdxi_watch *w)
{
    struct uring *u = uring_of(io);
    uint64_t token = pdxi_watch_token(w);
    struct uring_slot *s = &u->slots[w->slot];
    bool armed = s->armed;

    if (!w->slot)
        return;
    s->events = 0;
    s->armed = false;
    pdxi_watches_remove(&u->watches, w);
    if (armed)
        uring_cancel(u, token);
}

/* Submits, and sleeps if there is nothing to tell yet. Returns 0 or a negative errno. */
static int uring_enter(struct uring *u, uint64_t timeout_ns)
{
    struct __kernel_timespec ts = {.tv_sec = (long long)(timeout_ns / 1000000000),
                                   .tv_nsec = (long long)(timeout_ns % 1000000000)};
    struct io_uring_cqe *cqe;
    int rc;

    if (timeout_ns == 0 || u->ready_first || u->arm) {
        rc = io_uring_sq_ready(&u->ring) || uring_kernel_wants(u) ? uring_submit(u) : 0;
    } else {
        u->io.syscalls++;
        rc = io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1,
                                              timeout_ns == UINT64_MAX ? NULL : &ts, NULL);
    }
    /* EAGAIN, EBUSY: the kernel is short of something; what was not submitted still is queued. */
    if (rc == -ETIME || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY)
        return 0;
    return rc < 0 ? rc : 0;
}

static int uring_tell(struct uring *u)
{
    int ncalled = 0;

    while (u->ready_first) {
        uint32_t slot = u->ready_first;
        struct uring_slot *s = &u->slots[slot];
        struct pdxi_watch *w = u->watches.slots[slot].watch;
        unsigned events = s->events;

        u->ready_first = s->next_ready;
        s->in_ready = false;
        s->events = 0;
        if (w && events) {
            w->fn(w, events);
            ncalled++;
        }
    }
    return ncalled;
}

static int uring_await(struct pdxi_io *io, uint64_t timeout_ns)
{
    struct uring *u = uring_of(io);

    (void)uring_reap(u); /* what cancelled polls left must not cut the sleep short */
    uring_arm_all(u);
    /* EBADR, a completion that the kernel had no memory to keep, ends here: its edge is lost. */
    if (uring_enter(u, timeout_ns) < 0)
        return PDX_ESYS;
    (void)uring_reap(u);
    return uring_tell(u);
}

static uint32_t uring_cq_len(uint32_t max_watches)
{
    uint32_t len = URING_CQ_LEN_MIN;

    while (len < max_watches && len < URING_CQ_LEN_MAX)
        len *= 2;
    return len;
}

/* Returns 0 or a negative errno. */
static int uring_setup(struct uring *u, uint32_t max_watches)
{
    static const unsigned flag_sets[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
    int rc = -EINVAL;

    for (size_t i = 0; i < 2 && rc == -EINVAL; i++) {
        struct io_uring_params p = {.flags = flag_sets[i] | IORING_SETUP_CQSIZE,
                                    .cq_entries = uring_cq_len(max_watches)};

        rc = io_uring_queue_init_params(URING_SQ_LEN, &u->ring, &p);
    }
    return rc;
}

static int uring_refuse(struct pdx_error *why, int err)
{
    const char *reason = NULL;

    if (err == EMFILE || err == ENFILE)
        return pdxi_error_sys(why, err, "io_uring_setup");
    if (err == ENOSYS)
        reason = "this kernel has no io_uring, or a seccomp filter hides it";
    else if (err == EPERM || err == EACCES)
        reason = "forbidden here (sysctl kernel.io_uring_disabled, or a seccomp filter)";
    else if (err == EINVAL)
        reason = "the kernel is too old";
    else if (err == ENOMEM)
        reason = "the kernel gives it no memory (before 5.12 it counts towards RLIMIT_MEMLOCK)";
    if (reason)
        return pdxi_refuse(why, PDX_EUNSUPPORTED, "io_uring: %s", reason);
    return pdxi_refuse(why, PDX_EUNSUPPORTED, "io_uring: io_uring_setup gave errno %d", err);
}

/* Whether a multishot poll stays armed after its first event (Linux 5.13). */
static int uring_probe(struct uring *u, struct pdx_error *why)
{
    const uint64_t token = UINT64_C(1) << 32; /* of no slot */
    struct __kernel_timespec ts = {.tv_sec = 1};
    struct io_uring_cqe *cqe = NULL;
    struct io_uring_sqe *sqe;
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    bool works = false;

    if (fd < 0)
        return pdxi_error_sys(why, errno, "eventfd");
    sqe = io_uring_get_sqe(&u->ring); /* never NULL: it is the first one */
    io_uring_prep_poll_multishot(sqe, fd, POLLIN);
    sqe->user_data = token;
    if (io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &ts, NULL) >= 0 && cqe)
        works = cqe->res > 0 && (cqe->res & POLLIN) && (cqe->flags & IORING_CQE_F_MORE);
    uring_cancel(u, token);
    (void)uring_reap(u);
    (void)close(fd);
    if (!works)
        return pdxi_refuse(why, PDX_EUNSUPPORTED,
                           "io_uring: this kernel has no multishot poll (Linux 5.13)");
    return 0;
}

static int uring_open(struct pdxi_io **ret_io, uint32_t max_watches, struct pdx_error *why)
{
    struct uring *u = calloc(1, sizeof *u);
    int rc;

    if (!u)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for an io_uring");
    u->io.ops = &pdxi_io_uring;
    u->slots = calloc((size_t)max_watches + 1, sizeof *u->slots);
    if (!u->slots || pdxi_watches_init(&u->watches, max_watches) < 0) {
        rc = pdxi_refuse(why, PDX_ENOMEM, "no memory for %u watches", max_watches);
        goto out_free;
    }
    rc = uring_setup(u, max_watches);
    if (rc < 0) {
        rc = uring_refuse(why, -rc);
        goto out_watches;
    }
    if (!(u->ring.features & IORING_FEAT_EXT_ARG) || !(u->ring.features & IORING_FEAT_NODROP))
        rc = uring_refuse(why, EINVAL);
    else
        rc = uring_probe(u, why);
    if (rc < 0)
        goto out_ring;
    *ret_io = &u->io;
    return 0;

out_ring:
    io_uring_queue_exit(&u->ring);
out_watches:
    pdxi_watches_fini(&u->watches);
out_free:
    free(u->slots);
    free(u);
    return rc;
}

static void uring_destroy(struct pdxi_io *io)
{
    struct uring *u = uring_of(io);

    io_uring_queue_exit(&u->ring);
    pdxi_watches_fini(&u->watches);
    free(u->slots);
    free(u);
}

#else

static int uring_open(struct pdxi_io **ret_io, uint32_t max_watches, struct pdx_error *why)
{
    (void)ret_io;
    (void)max_watches;
    return pdxi_refuse(why, PDX_EUNSUPPORTED, "io_uring: built without liburing");
}

/* Nobody holds a backend whose creation refuses. */
#define uring_destroy NULL
#define uring_add     NULL
#define uring_remove  NULL
#define uring_await   NULL

#endif

const struct pdxi_io_ops pdxi_io_uring = {
    .name = "io_uring",
    .create = uring_open,
    .destroy = uring_destroy,
    .add = uring_add,
    .remove = uring_remove,
    .wait = uring_await,
};
