/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's listening socket. What connects has a limited time to say
 * HELLO; anything else closes that connection, is counted, and disturbs
 * nobody.
 */
#ifndef PDXI_LISTENER_H
#define PDXI_LISTENER_H

#include "engine/net/sock.h"
#include "engine/reactor.h"

struct pdxi_listener;

/* Binds; any thread, before the reactor runs. *ret_addr gets the bound address. */
int pdxi_listener_open(const char *bind, struct pdxi_listener **ret, struct pdxi_sockaddr *ret_addr,
                       struct pdx_error *why);
/* Begins to accept; reactor thread. */
int pdxi_listener_start(struct pdxi_listener *l, struct pdxi_reactor *r, struct pdx_error *why);
/* Reactor thread: closes the socket, so that the port is free, and what has not said HELLO yet. */
void pdxi_listener_stop(struct pdxi_listener *l);
/* After the reactor has ended (or never ran). NULL is permitted. */
void pdxi_listener_free(struct pdxi_listener *l);

#endif
