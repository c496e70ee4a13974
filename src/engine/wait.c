/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/wait.h"

#include "base/clock.h"
#include "base/futex.h"
#include "engine/transfer.h"

/* Who waits for any of several transfers (perhaps of several engines) sleeps on one word of the
 * process. */
static _Atomic uint32_t wait_any_seq;
static _Atomic uint32_t wait_any_sleepers;

void pdxi_wait_change(_Atomic uint32_t *code, enum pdx_transfer_code to)
{
    uint32_t was = atomic_load_explicit(code, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(code, &was, (was & PDXI_CODE_WAITED) | to,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void pdxi_wait_publish(_Atomic uint32_t *code, enum pdx_transfer_code to)
{
    /* Sequentially consistent with the sleepers' count: either the sleeper sees the code, or it is
     * seen here. */
    if (atomic_exchange(code, to) & PDXI_CODE_WAITED)
        pdxi_futex_wake_all(code);
    if (atomic_load(&wait_any_sleepers) > 0) {
        atomic_fetch_add(&wait_any_seq, 1);
        pdxi_futex_wake_all(&wait_any_seq);
    }
}

bool pdx_transfer_is_terminal(enum pdx_transfer_code code)
{
    return code >= PDX_DONE;
}

enum pdx_transfer_code pdx_transfer_code(const struct pdx_transfer_status *status)
{
    return atomic_load_explicit(&status->code, memory_order_acquire) & PDXI_CODE_MASK;
}

static bool wait_is_over(const struct pdx_transfer_status *status)
{
    return pdx_transfer_is_terminal(pdx_transfer_code(status));
}

static int wait_until(struct pdx_transfer_status *status, uint64_t until_ns)
{
    for (;;) {
        uint32_t word = atomic_load_explicit(&status->code, memory_order_acquire);

        if (pdx_transfer_is_terminal(word & PDXI_CODE_MASK))
            return 0;
        if (pdxi_now_ns() >= until_ns)
            return PDX_ETIMEDOUT;
        if (!(word & PDXI_CODE_WAITED) &&
            !atomic_compare_exchange_strong(&status->code, &word, word | PDXI_CODE_WAITED))
            continue;
        pdxi_futex_wait(&status->code, word | PDXI_CODE_WAITED, until_ns);
    }
}

int pdx_transfer_wait(struct pdx_transfer_status *status, uint64_t timeout_ns)
{
    if (wait_is_over(status))
        return 0;
    if (pdxi_reactor_is_any())
        return PDX_EREACTOR;
    return wait_until(status, pdxi_after_ns(pdxi_now_ns(), timeout_ns));
}

int pdx_transfer_wait_all(struct pdx_transfer_status *const *statuses, size_t n,
                          uint64_t timeout_ns)
{
    uint64_t until_ns = pdxi_after_ns(pdxi_now_ns(), timeout_ns);

    for (size_t i = 0; i < n; i++) {
        int r;

        if (!statuses[i] || wait_is_over(statuses[i]))
            continue;
        if (pdxi_reactor_is_any())
            return PDX_EREACTOR;
        r = wait_until(statuses[i], until_ns);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Returns 0 and the first terminal one, PDX_ETIMEDOUT when none is, PDX_EINVAL when there is no
 * entry. */
static int wait_look(struct pdx_transfer_status *const *statuses, size_t n, size_t *ret_pos)
{
    int r = PDX_EINVAL;

    for (size_t i = 0; i < n; i++) {
        if (!statuses[i])
            continue;
        if (wait_is_over(statuses[i])) {
            *ret_pos = i;
            return 0;
        }
        r = PDX_ETIMEDOUT;
    }
    return r;
}

int pdx_transfer_wait_any(struct pdx_transfer_status *const *statuses, size_t n,
                          uint64_t timeout_ns, size_t *ret_pos)
{
    uint64_t until_ns = pdxi_after_ns(pdxi_now_ns(), timeout_ns);
    int r = wait_look(statuses, n, ret_pos);

    if (r != PDX_ETIMEDOUT)
        return r;
    if (pdxi_reactor_is_any())
        return PDX_EREACTOR;
    atomic_fetch_add(&wait_any_sleepers, 1);
    for (;;) {
        uint32_t seq = atomic_load(&wait_any_seq);

        r = wait_look(statuses, n, ret_pos);
        if (r == 0 || pdxi_now_ns() >= until_ns)
            break;
        pdxi_futex_wait(&wait_any_seq, seq, until_ns);
    }
    atomic_fetch_sub(&wait_any_sleepers, 1);
    return r;
}
