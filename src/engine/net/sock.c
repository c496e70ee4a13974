/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/net/sock.h"

#include "base/error.h"
#include "engine/proto/descriptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LISTEN_BACKLOG 1024

void pdxi_sock_text(const struct pdxi_sockaddr *a, char ret_text[PDXI_SOCK_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    char scope[IF_NAMESIZE + 1] = "";

    if (a->u.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &a->u.v4.sin_addr, host, sizeof host);
        (void)snprintf(ret_text, PDXI_SOCK_TEXT, "%s:%u", host, pdxi_sock_port(a));
        return;
    }
    (void)inet_ntop(AF_INET6, &a->u.v6.sin6_addr, host, sizeof host);
    if (a->u.v6.sin6_scope_id && if_indextoname(a->u.v6.sin6_scope_id, scope + 1))
        scope[0] = '%';
    (void)snprintf(ret_text, PDXI_SOCK_TEXT, "[%s%s]:%u", host, scope, pdxi_sock_port(a));
}

uint16_t pdxi_sock_port(const struct pdxi_sockaddr *a)
{
    return ntohs(a->u.any.sa_family == AF_INET ? a->u.v4.sin_port : a->u.v6.sin6_port);
}

bool pdxi_sock_is_loopback(const struct pdxi_sockaddr *a)
{
    if (a->u.any.sa_family == AF_INET)
        return ntohl(a->u.v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&a->u.v6.sin6_addr);
}

bool pdxi_sock_is_wildcard(const struct pdxi_sockaddr *a)
{
    if (a->u.any.sa_family == AF_INET)
        return a->u.v4.sin_addr.s_addr == htonl(INADDR_ANY);
    return IN6_IS_ADDR_UNSPECIFIED(&a->u.v6.sin6_addr);
}

int pdxi_sock_lookup(const char *addr, bool numeric, struct pdxi_sockaddr *ret_addrs, int cap,
                     struct pdx_error *why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[PDXI_ADDR_MAX + 1];
    struct addrinfo *list;
    char service[16];
    int port;
    int n = 0;
    int r;

    r = pdxi_addr_split(addr, host, &port, why);
    if (r < 0)
        return r;
    if (port < 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "address \"%s\" has no port; write host:port or [v6]:port", addr);
    (void)snprintf(service, sizeof service, "%d", port);
    hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
    r = getaddrinfo(host, service, &hints, &list);
    if (r == EAI_NONAME && numeric)
        return pdxi_refuse(why, PDX_EINVAL, "\"%s\" is not a literal address", addr);
    if (r != 0)
        return pdxi_refuse(why, PDX_ESYS, "address \"%s\" cannot be resolved: %s", addr,
                           r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
    for (struct addrinfo *ai = list; ai && n < cap; ai = ai->ai_next) {
        if (ai->ai_addrlen > sizeof ret_addrs[n].u)
            continue;
        memset(&ret_addrs[n], 0, sizeof ret_addrs[n]);
        memcpy(&ret_addrs[n].u, ai->ai_addr, ai->ai_addrlen);
        ret_addrs[n++].len = ai->ai_addrlen;
    }
    freeaddrinfo(list);
    return n > 0 ? n : pdxi_refuse(why, PDX_ESYS, "address \"%s\" has no TCP address", addr);
}

static int sock_open(const struct pdxi_sockaddr *a, struct pdx_error *why)
{
    char text[PDXI_SOCK_TEXT];
    int fd = socket(a->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        return fd;
    pdxi_sock_text(a, text);
    return pdxi_error_sys(why, errno, "no socket for %s%s", text,
                          errno == EMFILE ? " (raise the limit of open files, ulimit -n)" : "");
}

int pdxi_sock_listen(const struct pdxi_sockaddr *a, struct pdxi_sockaddr *ret_addr,
                     struct pdx_error *why)
{
    struct pdxi_sockaddr bound = {.len = sizeof bound.u};
    char text[PDXI_SOCK_TEXT];
    int one = 1;
    int zero = 0;
    int err;
    int fd;

    pdxi_sock_text(a, text);
    fd = sock_open(a, why);
    if (fd < 0)
        return fd;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->u.any.sa_family == AF_INET6 && pdxi_sock_is_wildcard(a))
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (bind(fd, &a->u.any, a->len) < 0) {
        err = errno;
        (void)close(fd);
        return pdxi_error_sys(why, err, "cannot bind %s%s", text,
                              err == EADDRNOTAVAIL ? " (no interface of this host has the address)"
                              : err == EACCES      ? " (ports below 1024 need a privilege)"
                                                   : " (choose another port, or 0)");
    }
    if (listen(fd, LISTEN_BACKLOG) < 0 || getsockname(fd, &bound.u.any, &bound.len) < 0) {
        err = errno;
        (void)close(fd);
        return pdxi_error_sys(why, err, "cannot listen on %s", text);
    }
    *ret_addr = bound;
    return fd;
}

int pdxi_sock_connect(const struct pdxi_sockaddr *a, const char *congestion, struct pdx_error *why)
{
    char text[PDXI_SOCK_TEXT];
    int fd = sock_open(a, why);
    int err;

    if (fd < 0)
        return fd;
    pdxi_sock_tune(fd, congestion);
    if (connect(fd, &a->u.any, a->len) < 0 && errno != EINPROGRESS) {
        err = errno;
        (void)close(fd);
        pdxi_sock_text(a, text);
        return pdxi_error_sys(why, err, "cannot connect to %s", text);
    }
    return fd;
}

/* Loopback and veth measured: bbr paces and costs a fifth to a half of the bandwidth; cubic and
 * reno do not. An unprivileged process may be limited to the kernel's list, which always has reno.
 */
void pdxi_sock_tune(int fd, const char *congestion)
{
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (congestion[0] == '\0')
        return;
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) < 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

int pdxi_sock_error(int fd)
{
    socklen_t len = sizeof(int);
    int err = 0;

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 ? errno : err;
}

void pdxi_sock_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(fd);
}
