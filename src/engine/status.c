/* SPDX-License-Identifier: Apache-2.0
 *
 * What a TransferStatus tells its holder: names, sentences, figures.
 */
#include "base/error.h"
#include "engine/peer.h"
#include "engine/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pdx_transfer_code_name(enum pdx_transfer_code code)
{
    switch (code) {
    case PDX_QUEUED:
        return "queued";
    case PDX_WAITING:
        return "waiting";
    case PDX_IN_FLIGHT:
        return "in flight";
    case PDX_DONE:
        return "done";
    case PDX_FAILED:
        return "failed";
    case PDX_CANCELLED:
        return "cancelled";
    case PDX_DEADLINE:
        return "deadline";
    case PDX_STALE:
        return "stale";
    }
    return "?";
}

/* Bytes for people: "512 B", "1.50 MiB". */
static void status_size(uint64_t bytes, char *buf, size_t cap)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t u = 0;

    while (v >= 1024 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        u++;
    }
    (void)snprintf(buf, cap, u == 0 ? "%.0f %s" : "%.2f %s", v, units[u]);
}

void pdxi_transfer_describe(const struct pdx_transfer_status *t, char *buf, size_t cap)
{
    char size[32];

    if (t->op == 0) {
        (void)snprintf(buf, cap, "notification (id %llu)", (unsigned long long)t->id);
        return;
    }
    status_size(t->plan.bytes, size, sizeof size);
    (void)snprintf(buf, cap, "%s of %s (id %llu)", t->op == PDX_WRITE ? "write" : "read", size,
                   (unsigned long long)t->id);
}

/* Durations for people: "310 us", "12.5 ms", "5.00 s". */
static void status_duration(uint64_t ns, char *buf, size_t cap)
{
    if (ns < PDX_MSEC)
        (void)snprintf(buf, cap, "%.0f us", (double)ns / 1e3);
    else if (ns < PDX_SEC)
        (void)snprintf(buf, cap, "%.1f ms", (double)ns / 1e6);
    else
        (void)snprintf(buf, cap, "%.2f s", (double)ns / 1e9);
}

static char *status_make_text(const struct pdx_transfer_status *t, enum pdx_transfer_code code)
{
    const char *cause = atomic_load_explicit(&t->cause, memory_order_relaxed);
    struct pdx_peer_info peer;
    char took[32];
    char what[96];
    char done[32];
    char *text;

    pdxi_transfer_describe(t, what, sizeof what);
    status_size(atomic_load_explicit(&t->bytes_done, memory_order_relaxed), done, sizeof done);
    status_duration(atomic_load_explicit(&t->completed_ns, memory_order_relaxed) - t->submitted_ns,
                    took, sizeof took);
    pdx_peer_info(t->peer, &peer);
    if (asprintf(&text, "%s %s %s (%s) %s after %s%s%s%s%s", what,
                 t->op == PDX_READ ? "from" : "to", peer.name, peer.address,
                 pdx_transfer_code_name(code), took, code == PDX_DONE ? "" : ", ",
                 code == PDX_DONE ? "" : done, code == PDX_DONE ? "" : " confirmed: ",
                 code == PDX_DONE ? ""
                 : cause          ? cause
                                  : "no memory for the cause") < 0)
        return NULL;
    return text;
}

const char *pdx_transfer_text(const struct pdx_transfer_status *status)
{
    /* The text is a cache; the status stays logically constant. */
    struct pdx_transfer_status *t = (struct pdx_transfer_status *)(uintptr_t)status;
    enum pdx_transfer_code code = pdx_transfer_code(status);
    char *text = atomic_load_explicit(&t->text, memory_order_acquire);
    char *made;

    if (!pdx_transfer_is_terminal(code))
        return pdx_transfer_code_name(code);
    if (text)
        return text;
    made = status_make_text(t, code);
    if (!made)
        return pdx_transfer_code_name(code);
    if (atomic_compare_exchange_strong(&t->text, &text, made))
        return made;
    free(made);
    return text;
}

int pdx_transfer_error(const struct pdx_transfer_status *status, struct pdx_error *ret_error)
{
    enum pdx_transfer_code code = pdx_transfer_code(status);

    if (!pdx_transfer_is_terminal(code) || code == PDX_DONE) {
        if (ret_error)
            memset(ret_error, 0, sizeof *ret_error);
        return 0;
    }
    return pdxi_error_set(ret_error, status->err, PDX_COST_TRANSFER, "%s",
                          pdx_transfer_text(status));
}

void pdx_transfer_info(const struct pdx_transfer_status *status, struct pdx_transfer_info *ret_info)
{
    const char *lane = atomic_load_explicit(&status->lane_name, memory_order_relaxed);

    memset(ret_info, 0, sizeof *ret_info);
    ret_info->code = pdx_transfer_code(status);
    ret_info->id = status->id;
    ret_info->op = status->op;
    ret_info->bytes = status->plan.bytes;
    ret_info->bytes_done = atomic_load_explicit(&status->bytes_done, memory_order_relaxed);
    ret_info->segments = atomic_load_explicit(&status->segments, memory_order_relaxed);
    ret_info->frames = atomic_load_explicit(&status->frames, memory_order_relaxed);
    ret_info->retries = atomic_load_explicit(&status->retries, memory_order_relaxed);
    (void)snprintf(ret_info->lane, sizeof ret_info->lane, "%s", lane ? lane : "");
    ret_info->submitted_ns = status->submitted_ns;
    ret_info->first_post_ns = atomic_load_explicit(&status->first_post_ns, memory_order_relaxed);
    ret_info->last_post_ns = atomic_load_explicit(&status->last_post_ns, memory_order_relaxed);
    ret_info->completed_ns = atomic_load_explicit(&status->completed_ns, memory_order_relaxed);
}
