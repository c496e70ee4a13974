/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/advertise.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The boot id: equal for processes under one kernel. Zeroes when it cannot be read, which only
 * means that a loopback address is refused to peers elsewhere later than it could be. */
static void advertise_host(uint8_t host[PDXI_HOST_LEN])
{
    char text[64] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    size_t nibbles = 0;

    memset(host, 0, PDXI_HOST_LEN);
    if (fd >= 0)
        (void)close(fd);
    for (ssize_t i = 0; i < n && nibbles < 2 * PDXI_HOST_LEN; i++) {
        const char *digits = "0123456789abcdef";
        const char *at = text[i] ? strchr(digits, text[i]) : NULL;

        if (!at)
            continue;
        host[nibbles / 2] |= (uint8_t)((at - digits) << (nibbles % 2 ? 0 : 4));
        nibbles++;
    }
}

static int advertise_add(struct pdxi_engine_desc *d, const char *addr, struct pdx_error *why)
{
    if (d->naddrs == PDXI_ADDRS_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "more than %d addresses to advertise", PDXI_ADDRS_MAX);
    (void)snprintf(d->addrs[d->naddrs++], sizeof d->addrs[0], "%s", addr);
    return 0;
}

/* One entry of the option: "host" gets the bound port. */
static int advertise_entry(struct pdxi_engine_desc *d, const char *entry, uint16_t port,
                           struct pdx_error *why)
{
    char host[PDXI_ADDR_MAX + 1];
    char addr[PDXI_ADDR_MAX + 16];
    struct pdxi_sockaddr a;
    int given;
    int r = pdxi_addr_split(entry, host, &given, why);

    if (r < 0)
        return r;
    (void)snprintf(addr, sizeof addr, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host,
                   given > 0 ? given : port);
    if (strlen(addr) > PDXI_ADDR_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "the address to advertise \"%s\" is too long", entry);
    if (pdxi_sock_lookup(addr, true, &a, 1, NULL) == 1 && pdxi_sock_is_wildcard(&a))
        return pdxi_refuse(why, PDX_EINVAL,
                           "cannot advertise %s: peers cannot connect to a wildcard address; give "
                           "an address or a name of this host",
                           entry);
    return advertise_add(d, addr, why);
}

static int advertise_option(struct pdxi_engine_desc *d, const char *option, uint16_t port,
                            struct pdx_error *why)
{
    char *copy = strdup(option);
    char *rest = copy;
    char *entry;
    int r = 0;

    if (!copy)
        return pdxi_refuse(why, PDX_ENOMEM, "no memory for the addresses to advertise");
    while (r == 0 && (entry = strsep(&rest, ",")))
        r = advertise_entry(d, entry, port, why);
    free(copy);
    return r;
}

static bool advertise_wants(const struct ifaddrs *ifa, const struct pdxi_sockaddr *bound,
                            bool loopback)
{
    int family = ifa->ifa_addr ? ifa->ifa_addr->sa_family : AF_UNSPEC;

    if (!(ifa->ifa_flags & IFF_UP) || (family != AF_INET && family != AF_INET6))
        return false;
    if (family == AF_INET6 && bound->u.any.sa_family == AF_INET)
        return false;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)ifa->ifa_addr)->sin6_addr))
        return false; /* its scope means nothing on another host */
    return ((ifa->ifa_flags & IFF_LOOPBACK) != 0) == loopback;
}

/* Every address of every interface that is up; loopback last, for peers on this host. */
static int advertise_interfaces(struct pdxi_engine_desc *d, const struct pdxi_sockaddr *bound,
                                struct pdx_error *why)
{
    uint16_t port = pdxi_sock_port(bound);
    struct ifaddrs *list;

    if (getifaddrs(&list) < 0)
        return pdxi_error_sys(why, errno, "cannot list the addresses of this host");
    for (int loopback = 0; loopback < 2; loopback++) {
        for (struct ifaddrs *ifa = list; ifa && d->naddrs < PDXI_ADDRS_MAX; ifa = ifa->ifa_next) {
            struct pdxi_sockaddr a;
            char text[PDXI_SOCK_TEXT];

            if (!advertise_wants(ifa, bound, loopback))
                continue;
            memset(&a, 0, sizeof a);
            if (ifa->ifa_addr->sa_family == AF_INET) {
                memcpy(&a.u.v4, ifa->ifa_addr, sizeof a.u.v4);
                a.u.v4.sin_port = htons(port);
            } else {
                memcpy(&a.u.v6, ifa->ifa_addr, sizeof a.u.v6);
                a.u.v6.sin6_port = htons(port);
            }
            pdxi_sock_text(&a, text);
            (void)advertise_add(d, text, NULL);
        }
    }
    freeifaddrs(list);
    if (d->naddrs == 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "no interface of this host is up; set pdx_engine_opts.advertise");
    return 0;
}

int pdxi_advertise(const char *advertise, const struct pdxi_sockaddr *bound,
                   struct pdxi_engine_desc *d, struct pdx_error *why)
{
    char text[PDXI_SOCK_TEXT];

    advertise_host(d->host);
    d->naddrs = 0;
    if (advertise)
        return advertise_option(d, advertise, pdxi_sock_port(bound), why);
    if (pdxi_sock_is_wildcard(bound))
        return advertise_interfaces(d, bound, why);
    pdxi_sock_text(bound, text);
    return advertise_add(d, text, why);
}

char *pdxi_advertise_text(const struct pdxi_engine_desc *d)
{
    char *text = malloc(d->naddrs * (PDXI_ADDR_MAX + 1) + 1);
    char *at = text;

    if (!text)
        return NULL;
    *at = '\0';
    for (uint32_t i = 0; i < d->naddrs; i++)
        at = stpcpy(stpcpy(at, i ? "," : ""), d->addrs[i]);
    return text;
}
