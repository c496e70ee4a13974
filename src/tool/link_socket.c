/* SPDX-License-Identifier: Apache-2.0
 *
 * How the side channel's connection comes about: resolve, listen, connect.
 */
#include "base/clock.h"
#include "tool/link.h"
#include "tool/refuse.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LINK_ADDRESS 160
#define LINK_RETRY   100 /* ms between attempts to connect */

/* Resolves "host:port", "[v6]:port". Errors: PDX_EINVAL. */
static int link_resolve(const char *address, bool passive, struct addrinfo **ret,
                        struct pdx_error *why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
    const char *colon = strrchr(address, ':'), *from = address;
    char host[LINK_ADDRESS];
    size_t len;
    int err;

    if (!colon || colon == address || (size_t)(colon - address) >= sizeof host)
        return tool_refuse(why, PDX_EINVAL, "\"%s\" is no address; expected host:port", address);
    len = (size_t)(colon - address);
    if (*from == '[' && from[len - 1] == ']') {
        from++;
        len -= 2;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)len, from);
    err = getaddrinfo(host, colon + 1, &hints, ret);
    if (err != 0)
        return tool_refuse(why, PDX_EINVAL, "cannot resolve %s: %s", address, gai_strerror(err));
    return 0;
}

static void link_address_text(const struct sockaddr_storage *sa, socklen_t len, char *text)
{
    char host[80], port[8];

    if (getnameinfo((const struct sockaddr *)sa, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        (void)snprintf(text, LINK_ADDRESS, "an unknown address");
    else
        (void)snprintf(text, LINK_ADDRESS, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* Small messages at once, and a host that vanished is noticed within half a minute. */
static void link_tune(int fd)
{
    int on = 1, idle = 10, interval = 5, probes = 4;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static int link_listen_at(const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, err;

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, 8) == 0)
        return fd;
    err = -errno;
    (void)close(fd);
    return err;
}

int tool_link_listen(const char *address, char *ret_text, struct pdx_error *why)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    struct addrinfo *list;
    int fd = -EADDRNOTAVAIL, err = link_resolve(address, true, &list, why);

    if (err < 0)
        return err;
    for (struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next)
        fd = link_listen_at(ai);
    freeaddrinfo(list);
    if (fd < 0)
        return tool_refuse_sys(why, -fd, "cannot listen at %s", address);
    (void)getsockname(fd, (struct sockaddr *)&sa, &len);
    link_address_text(&sa, len, ret_text);
    return fd;
}

int tool_link_accept(int listener, const char *role, struct tool_link *ret, struct pdx_error *why)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    char text[LINK_ADDRESS];
    int fd = accept4(listener, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC);

    if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
        return 0;
    if (fd < 0)
        return tool_refuse_sys(why, errno, "cannot accept a connection");
    link_tune(fd);
    link_address_text(&sa, len, text);
    tool_link_init(ret, fd, role, text);
    ret->max_line = TOOL_LINK_GREETING;
    return 1;
}

/* Connects to the first address that answers, each within timeout_ns. */
static int link_connect_once(const struct addrinfo *list, uint64_t timeout_ns)
{
    /* Linux applies it to connect(2) too, which would else wait two minutes for a silent host. */
    struct timeval limit = {.tv_sec = (time_t)(timeout_ns / PDX_SEC),
                            .tv_usec = (suseconds_t)(timeout_ns % PDX_SEC / PDX_USEC)};
    int err = EADDRNOTAVAIL;

    for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
        int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);

        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
            connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
            return fd;
        err = errno == EINPROGRESS ? ETIMEDOUT : errno;
        if (fd >= 0)
            (void)close(fd);
    }
    return -err;
}

int tool_link_connect(struct tool_link *l, const char *address, const char *role,
                      uint64_t timeout_ns, struct pdx_error *why)
{
    uint64_t end = pdxi_after_ns(pdxi_now_ns(), timeout_ns);
    struct addrinfo *list;
    int fd, err = link_resolve(address, false, &list, why);

    if (err < 0)
        return err;
    fd = link_connect_once(list, timeout_ns);
    while (fd == -ECONNREFUSED && pdxi_now_ns() < end) {
        (void)poll(NULL, 0, LINK_RETRY); /* the other process may still be starting */
        fd = link_connect_once(list, timeout_ns);
    }
    freeaddrinfo(list);
    if (fd < 0)
        return tool_refuse(why, PDX_EPEER, "no %s answers at %s (%s); start pdx %s there first",
                           role, address, strerror(-fd), role);
    link_tune(fd);
    tool_link_init(l, fd, role, address);
    return 0;
}
