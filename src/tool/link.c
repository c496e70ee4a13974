/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of JSON in both directions over a non-blocking socket; see link.h.
 */
#include "tool/link.h"

#include "base/clock.h"
#include "tool/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_CHUNK 65536

void tool_link_init(struct tool_link *l, int fd, const char *role, const char *address)
{
    *l = (struct tool_link){.fd = fd, .max_line = TOOL_LINK_LINE};
    (void)snprintf(l->peer, sizeof l->peer, "%s at %s", role, address);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void tool_link_fini(struct tool_link *l)
{
    if (l->fd >= 0)
        (void)close(l->fd);
    free(l->in);
    free(l->out);
    *l = (struct tool_link){.fd = -1};
}

/* Makes room for `more` bytes behind `len`. */
static int link_reserve(char **buf, size_t *cap, size_t len, size_t more, struct pdx_error *why)
{
    size_t want = *cap ? *cap : LINK_CHUNK;
    char *p;

    while (want < len + more)
        want *= 2;
    if (want == *cap)
        return 0;
    p = realloc(*buf, want);
    if (!p)
        return tool_refuse(why, PDX_ENOMEM, "no memory for a message of %zu bytes", len + more);
    *buf = p;
    *cap = want;
    return 0;
}

int tool_link_flush(struct tool_link *l, struct pdx_error *why)
{
    size_t done = 0;

    while (done < l->out_len) {
        ssize_t n = send(l->fd, l->out + done, l->out_len - done, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return tool_refuse(why, PDX_EPEER, "lost the connection to %s: %s", l->peer,
                               strerror(errno));
        done += (size_t)n;
    }
    memmove(l->out, l->out + done, l->out_len - done);
    l->out_len -= done;
    return 0;
}

int tool_link_send(struct tool_link *l, json_t *msg, struct pdx_error *why)
{
    size_t len = msg ? json_dumpb(msg, NULL, 0, JSON_COMPACT) : 0;
    int err = 0;

    if (len == 0)
        err = tool_refuse(why, PDX_ENOMEM, "no memory for a message to %s", l->peer);
    else if (len > TOOL_LINK_LINE)
        err =
            tool_refuse(why, PDX_ENOSPC,
                        "a message of %zu bytes to %s is longer than %u bytes; use larger pages or "
                        "shorter requests",
                        len, l->peer, TOOL_LINK_LINE);
    else if (l->out_len + len >= TOOL_LINK_QUEUE)
        err = tool_refuse(why, PDX_EAGAIN, "%s does not take its messages: %zu bytes wait", l->peer,
                          l->out_len);
    else
        err = link_reserve(&l->out, &l->out_cap, l->out_len, len + 1, why);
    if (err == 0) {
        (void)json_dumpb(msg, l->out + l->out_len, len, JSON_COMPACT);
        l->out[l->out_len + len] = '\n';
        l->out_len += len + 1;
    }
    json_decref(msg);
    return err < 0 ? err : tool_link_flush(l, why);
}

void tool_link_drain(struct tool_link *l, uint64_t timeout_ns)
{
    uint64_t now = pdxi_now_ns(), end = pdxi_after_ns(now, timeout_ns);

    while (l->fd >= 0 && l->out_len > 0 && now < end) {
        struct pollfd p = {.fd = l->fd, .events = POLLOUT};

        (void)poll(&p, 1, (int)((end - now) / PDX_MSEC) + 1);
        if (tool_link_flush(l, NULL) < 0)
            return;
        now = pdxi_now_ns();
    }
}

short tool_link_events(const struct tool_link *l)
{
    return l->out_len ? POLLIN | POLLOUT : POLLIN;
}

/* Takes the first complete line out of the buffer: 1, 0, or PDX_EPROTO. */
static int link_take_line(struct tool_link *l, json_t **ret_msg, struct pdx_error *why)
{
    char *end =
        l->in_len > l->in_seen ? memchr(l->in + l->in_seen, '\n', l->in_len - l->in_seen) : NULL;
    size_t len = end ? (size_t)(end - l->in) : l->in_len;
    json_error_t at;
    json_t *msg;

    if (len > l->max_line)
        return tool_refuse(why, PDX_EPROTO, "%s sent a line of more than %zu bytes; is that a pdx?",
                           l->peer, l->max_line);
    l->in_seen = len;
    if (!end)
        return 0;
    msg = json_loadb(l->in, len, JSON_REJECT_DUPLICATES, &at);
    l->in_len -= len + 1;
    memmove(l->in, end + 1, l->in_len);
    l->in_seen = 0;
    if (!msg && (!at.text[0] || json_error_code(&at) == json_error_out_of_memory))
        return tool_refuse(why, PDX_ENOMEM, "no memory for a message of %zu bytes from %s", len,
                           l->peer);
    if (!msg)
        return tool_refuse(why, PDX_EPROTO, "%s sent a line that is no JSON (%s); is that a pdx?",
                           l->peer, at.text);
    if (!json_is_object(msg)) {
        json_decref(msg);
        return tool_refuse(why, PDX_EPROTO, "%s sent JSON that is no object; is that a pdx?",
                           l->peer);
    }
    *ret_msg = msg;
    return 1;
}

/* Reads once: 1 when something came, 0, or PDX_EPEER, PDX_ENOMEM. */
static int link_read(struct tool_link *l, struct pdx_error *why)
{
    int err = link_reserve(&l->in, &l->in_cap, l->in_len, LINK_CHUNK, why);
    ssize_t n;

    if (err < 0)
        return err;
    do
        n = recv(l->fd, l->in + l->in_len, LINK_CHUNK, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return tool_refuse(why, PDX_EPEER, "lost the connection to %s: %s", l->peer,
                           strerror(errno));
    if (n == 0)
        return tool_refuse(why, PDX_EPEER, "%s closed the connection before the work was done",
                           l->peer);
    l->in_len += (size_t)n;
    return 1;
}

int tool_link_receive(struct tool_link *l, json_t **ret_msg, struct pdx_error *why)
{
    for (;;) {
        int got = link_take_line(l, ret_msg, why);

        if (got != 0)
            return got;
        got = link_read(l, why);
        if (got <= 0)
            return got;
    }
}
