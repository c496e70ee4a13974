/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/error.h"
#include "engine/cq.h"
#include "engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CQ_DEPTH_MAX (1u << 20)

struct pdx_cq {
    struct pdx_engine *engine;   /* counted */
    struct pdx_completion *ring; /* owned: depth entries */
    uint32_t depth;
    uint32_t head; /* next to take */
    uint32_t count;
    _Atomic uint32_t reserved; /* places given out and not polled yet */
    _Atomic uint32_t refs;     /* the caller's, and one per reserved place that is not filled */
    int fd;
    bool abandoned; /* destroyed by the caller: completions are dropped */
    pthread_mutex_t lock;
};

int pdx_cq_create(struct pdx_engine *engine, size_t depth, struct pdx_cq **ret_cq,
                  struct pdx_error *why)
{
    struct pdx_cq *cq;
    uint32_t n = 1;
    int err;

    if (depth < 1 || depth > CQ_DEPTH_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "queue depth %zu is not within 1 .. %u", depth,
                           CQ_DEPTH_MAX);
    while (n < depth)
        n *= 2;
    cq = calloc(1, sizeof *cq);
    if (!cq)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a completion queue");
    cq->ring = malloc(n * sizeof *cq->ring);
    if (!cq->ring) {
        free(cq);
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for a queue of %u completions", n);
    }
    cq->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (cq->fd < 0) {
        err = errno;
        free(cq->ring);
        free(cq);
        return pdxi_error_sys(why, err, "no eventfd for a completion queue");
    }
    cq->depth = n;
    atomic_init(&cq->refs, 1);
    (void)pthread_mutex_init(&cq->lock, NULL);
    pdxi_engine_get(engine);
    cq->engine = engine;
    *ret_cq = cq;
    return 0;
}

static void cq_drop(struct pdx_cq *cq)
{
    if (atomic_fetch_sub_explicit(&cq->refs, 1, memory_order_acq_rel) != 1)
        return;
    (void)close(cq->fd);
    (void)pthread_mutex_destroy(&cq->lock);
    pdxi_engine_drop(cq->engine);
    free(cq->ring);
    free(cq);
}

void pdx_cq_destroy(struct pdx_cq *cq)
{
    if (!cq)
        return;
    (void)pthread_mutex_lock(&cq->lock);
    cq->abandoned = true;
    (void)pthread_mutex_unlock(&cq->lock);
    cq_drop(cq);
}

int pdx_cq_fd(const struct pdx_cq *cq)
{
    return cq->fd;
}

int pdxi_cq_reserve(struct pdx_cq *cq, const struct pdx_engine *engine, struct pdx_error *why)
{
    uint32_t reserved = atomic_load_explicit(&cq->reserved, memory_order_relaxed);

    if (cq->engine != engine)
        return pdxi_refuse(why, PDX_EINVAL,
                           "the completion queue belongs to engine %s, the peer to engine %s",
                           cq->engine->name, engine->name);
    do {
        if (reserved >= cq->depth)
            return pdxi_refuse(why, PDX_EAGAIN,
                               "the completion queue has no place left: %u transfers are under way "
                               "or not polled yet; poll it, or make it deeper",
                               reserved);
    } while (!atomic_compare_exchange_weak_explicit(&cq->reserved, &reserved, reserved + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    atomic_fetch_add_explicit(&cq->refs, 1, memory_order_relaxed);
    return 0;
}

void pdxi_cq_unreserve(struct pdx_cq *cq)
{
    atomic_fetch_sub_explicit(&cq->reserved, 1, memory_order_relaxed);
    cq_drop(cq);
}

void pdxi_cq_push(struct pdx_cq *cq, const struct pdx_completion *completion)
{
    (void)pthread_mutex_lock(&cq->lock);
    if (!cq->abandoned) {
        cq->ring[(cq->head + cq->count) % cq->depth] = *completion;
        if (cq->count++ == 0)
            (void)eventfd_write(cq->fd, 1);
    }
    (void)pthread_mutex_unlock(&cq->lock);
    cq_drop(cq);
}

int pdx_cq_poll(struct pdx_cq *cq, struct pdx_completion *completions, int cap)
{
    eventfd_t ignored;
    int n = 0;

    (void)pthread_mutex_lock(&cq->lock);
    while (n < cap && cq->count > 0) {
        completions[n++] = cq->ring[cq->head];
        cq->head = (cq->head + 1) % cq->depth;
        cq->count--;
    }
    if (n > 0 && cq->count == 0)
        (void)eventfd_read(cq->fd, &ignored);
    (void)pthread_mutex_unlock(&cq->lock);
    atomic_fetch_sub_explicit(&cq->reserved, (uint32_t)n, memory_order_relaxed);
    return n;
}

int pdx_cq_wait(struct pdx_cq *cq, struct pdx_completion *completions, int cap, uint64_t timeout_ns)
{
    uint64_t until_ns = pdxi_after_ns(pdxi_now_ns(), timeout_ns);
    struct pollfd pfd = {.fd = cq->fd, .events = POLLIN};

    if (pdxi_reactor_is_any())
        return PDX_EREACTOR;
    if (cap < 1)
        return PDX_EINVAL;
    for (;;) {
        uint64_t now_ns;
        struct timespec left;
        int n = pdx_cq_poll(cq, completions, cap);

        if (n > 0)
            return n;
        now_ns = pdxi_now_ns();
        if (now_ns >= until_ns)
            return PDX_ETIMEDOUT;
        left.tv_sec = (time_t)((until_ns - now_ns) / PDX_SEC);
        left.tv_nsec = (long)((until_ns - now_ns) % PDX_SEC);
        (void)ppoll(&pfd, 1, until_ns == UINT64_MAX ? NULL : &left, NULL);
    }
}
