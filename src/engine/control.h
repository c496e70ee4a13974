/* SPDX-License-Identifier: Apache-2.0
 *
 * The initiator's end of a control connection: greeting, keepalive, tickets.
 */
#ifndef PDXI_CONTROL_H
#define PDXI_CONTROL_H

#include "engine/net/stream.h"
#include "engine/peer.h"

/* Starts to connect. Reports to the peer by pdxi_peer_event: CONNECTED, GREETED, FAILED, LOST. */
int pdxi_control_open(struct pdx_peer *peer, const struct pdxi_sockaddr *addr,
                      struct pdxi_control **ret, struct pdx_error *why);
void pdxi_control_greet(struct pdxi_control *c);
/* Asks for a ticket; the answer comes as pdxi_peer_ticket. */
void pdxi_control_ask_ticket(struct pdxi_control *c);
/* What the greeting brought. */
const uint8_t *pdxi_control_ticket(const struct pdxi_control *c);
uint32_t pdxi_control_max_frames(const struct pdxi_control *c);
/* Closes; frees itself later. NULL is permitted. */
void pdxi_control_close(struct pdxi_control *c);

#endif
