/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/doorbell.h"

#include "base/error.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int pdxi_doorbell_init(struct pdxi_doorbell *d, struct pdx_error *why)
{
    atomic_init(&d->sleeping, 0);
    d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return d->fd < 0 ? pdxi_error_sys(why, errno, "eventfd") : 0;
}

void pdxi_doorbell_fini(struct pdxi_doorbell *d)
{
    if (d->fd >= 0)
        (void)close(d->fd);
    d->fd = -1;
}

bool pdxi_doorbell_ring(struct pdxi_doorbell *d)
{
    /* The load keeps the cache line shared while the reactor is awake. */
    if (!atomic_load_explicit(&d->sleeping, memory_order_seq_cst) ||
        !atomic_exchange_explicit(&d->sleeping, 0, memory_order_seq_cst))
        return false;
    /* Fails only when the counter is full, and then the eventfd is readable anyway. */
    (void)eventfd_write(d->fd, 1);
    return true;
}

void pdxi_doorbell_drain(struct pdxi_doorbell *d)
{
    eventfd_t count;

    (void)eventfd_read(d->fd, &count);
}
