/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP sockets as pdx wants them: non-blocking, close-on-exec, no Nagle delay,
 * and a congestion control that does not pace a local network. Nothing here
 * waits, except pdxi_sock_lookup.
 */
#ifndef PDXI_NET_SOCK_H
#define PDXI_NET_SOCK_H

#include <netinet/in.h>
#include <pdx/error.h>
#include <sys/socket.h>

struct pdxi_sockaddr {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } u;
    socklen_t len;
};

#define PDXI_SOCK_TEXT 128

/* "10.0.0.2:7000", "[fe80::1%eth0]:7000" */
void pdxi_sock_text(const struct pdxi_sockaddr *a, char ret_text[PDXI_SOCK_TEXT]);
uint16_t pdxi_sock_port(const struct pdxi_sockaddr *a);
bool pdxi_sock_is_loopback(const struct pdxi_sockaddr *a);
bool pdxi_sock_is_wildcard(const struct pdxi_sockaddr *a);

/* The addresses of "host:port", at most `cap`. With `numeric` only literal addresses are accepted
 * and the call does not block; else it may, on the name service. Returns how many (at least 1),
 * PDX_EINVAL (not an address), PDX_ESYS (the name cannot be resolved; with the resolver's reason).
 */
int pdxi_sock_lookup(const char *addr, bool numeric, struct pdxi_sockaddr *ret_addrs, int cap,
                     struct pdx_error *why);

/* A bound and listening socket; *ret_addr gets the address with its real port. Returns the
 * descriptor or PDX_ESYS. */
int pdxi_sock_listen(const struct pdxi_sockaddr *a, struct pdxi_sockaddr *ret_addr,
                     struct pdx_error *why);

/* A connection that is on its way. Returns the descriptor or PDX_ESYS. */
int pdxi_sock_connect(const struct pdxi_sockaddr *a, const char *congestion, struct pdx_error *why);

/* Options of an accepted or connecting socket. `congestion`: a name, "" for the system's own; when
 * it is not permitted, "reno" is tried. */
void pdxi_sock_tune(int fd, const char *congestion);

/* The pending error of a socket, an errno value; clears it. */
int pdxi_sock_error(int fd);

/* Closes by a reset: what the other side has not read yet is withdrawn. Its TCP may deliver it all
 * the same; its pdxi_sock_error tells first. */
void pdxi_sock_reset(int fd);

#endif
