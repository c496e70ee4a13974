/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a peer's advertised addresses into socket addresses. Literal ones are
 * read on the spot; names are looked up on a thread of their own, because the
 * name service may take its time and the reactor may not.
 */
#ifndef PDXI_NET_RESOLVE_H
#define PDXI_NET_RESOLVE_H

#include <stdint.h>

struct pdx_peer;

/* Reactor thread. Ends in pdxi_peer_resolved with this number, now or later. */
void pdxi_resolve_start(struct pdx_peer *peer, uint64_t lookup);

#endif
