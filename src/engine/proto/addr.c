/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses as users and descriptors write them. Only the form is checked;
 * whether a host exists is the resolver's to say.
 */
#include "engine/proto/descriptor.h"

#include "base/error.h"

#include <string.h>

/* Letters, digits, '.', '-' and '_'; with `v6` also ':' and the '%' of a zone. */
static bool addr_char(char c, bool v6)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c == '.' || c == '-' || c == '_' || (v6 && (c == ':' || c == '%'));
}

static bool addr_host_ok(const char *host, size_t len, bool v6)
{
    for (size_t i = 0; i < len; i++)
        if (!addr_char(host[i], v6))
            return false;
    return len > 0 && (!v6 || memchr(host, ':', len));
}

/* Up to five digits, at most 65535; -1 for anything else. */
static int addr_port(const char *s)
{
    int port = 0;
    size_t n = 0;

    for (; s[n] >= '0' && s[n] <= '9' && n < 5; n++)
        port = port * 10 + (s[n] - '0');
    return n > 0 && s[n] == '\0' && port <= 65535 ? port : -1;
}

int pdxi_addr_split(const char *addr, char *ret_host, int *ret_port, struct pdx_error *why)
{
    bool v6 = addr[0] == '[';
    const char *host = v6 ? addr + 1 : addr;
    const char *end = v6 ? strchr(host, ']') : strchr(host, ':');
    const char *rest; /* ":port" or nothing */
    int port = -1;

    if (strlen(addr) > PDXI_ADDR_MAX)
        return pdxi_refuse(why, PDX_EINVAL, "address of %zu characters, the limit is %d",
                           strlen(addr), PDXI_ADDR_MAX);
    if (v6 && !end)
        return pdxi_refuse(why, PDX_EINVAL, "address \"%s\": the bracket is not closed", addr);
    if (!end)
        end = host + strlen(host);
    rest = v6 ? end + 1 : end;
    if (!addr_host_ok(host, (size_t)(end - host), v6))
        return pdxi_refuse(why, PDX_EINVAL,
                           "address \"%s\": expected host:port, [IPv6 address]:port or a host "
                           "alone",
                           addr);
    if (rest[0] == ':')
        port = addr_port(rest + 1);
    if (rest[0] != '\0' && port < 0)
        return pdxi_refuse(why, PDX_EINVAL,
                           "address \"%s\": \"%s\" is no port from 0 to 65535 (an IPv6 address "
                           "needs brackets)",
                           addr, rest[0] == ':' ? rest + 1 : rest);
    memcpy(ret_host, host, (size_t)(end - host));
    ret_host[end - host] = '\0';
    *ret_port = port;
    return 0;
}
