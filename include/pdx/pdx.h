/* SPDX-License-Identifier: Apache-2.0
 *
 * pdx: moves KV cache pages and per-request model state between prefill and
 * decode workers without ever blocking the caller. This header includes the
 * whole public API.
 */
#ifndef PDX_PDX_H
#define PDX_PDX_H

#include <pdx/api.h>
#include <pdx/completion.h>
#include <pdx/engine.h>
#include <pdx/error.h>
#include <pdx/layout.h>
#include <pdx/peer.h>
#include <pdx/region.h>
#include <pdx/state.h>
#include <pdx/transfer.h>

#endif
