/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses that an engine's descriptor names: where it can be reached,
 * which is not always where it is bound.
 */
#ifndef PDXI_ADVERTISE_H
#define PDXI_ADVERTISE_H

#include "engine/net/sock.h"
#include "engine/proto/descriptor.h"

/* Fills host, naddrs and addrs of *d. `advertise` is the engine option (NULL: from the bound
 * address). Returns 0; PDX_EINVAL for a wildcard, an empty or an unreadable address. */
int pdxi_advertise(const char *advertise, const struct pdxi_sockaddr *bound,
                   struct pdxi_engine_desc *d, struct pdx_error *why);

/* All of them, comma-separated; the caller frees it. NULL without memory. */
char *pdxi_advertise_text(const struct pdxi_engine_desc *d);

#endif
