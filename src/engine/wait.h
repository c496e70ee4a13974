/* SPDX-License-Identifier: Apache-2.0
 *
 * Publishing a transfer's code, and sleeping until one is terminal. The code's
 * word also says whether somebody sleeps on it, so that a completion that
 * nobody waits for costs no system call.
 */
#ifndef PDXI_WAIT_H
#define PDXI_WAIT_H

#include <pdx/transfer.h>
#include <stdatomic.h>

#define PDXI_CODE_MASK   0xffu
#define PDXI_CODE_WAITED 0x100u

/* Reactor thread: a change between codes that are not terminal. */
void pdxi_wait_change(_Atomic uint32_t *code, enum pdx_transfer_code to);
/* Reactor thread: a terminal code; wakes those who sleep. Releases. */
void pdxi_wait_publish(_Atomic uint32_t *code, enum pdx_transfer_code to);

#endif
