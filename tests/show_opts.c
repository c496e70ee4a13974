/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what pdx_engine_opts_init sets, "member value" per line, so that the
 * test of the documents can compare it with what they say.
 */
#include <inttypes.h>
#include <pdx/engine.h>
#include <stdio.h>

static void show_number(const char *member, uint64_t value)
{
    printf("%s %" PRIu64 "\n", member, value);
}

static void show_string(const char *member, const char *value)
{
    if (value)
        printf("%s \"%s\"\n", member, value);
    else
        printf("%s NULL\n", member);
}

static void show_pointer(const char *member, bool set)
{
    printf("%s %s\n", member, set ? "set" : "NULL");
}

int main(void)
{
    struct pdx_engine_opts o;

    pdx_engine_opts_init(&o);
    printf("size %s\n", o.size == sizeof o ? "sizeof" : "wrong");
    show_string("name", o.name);
    show_string("bind", o.bind);
    show_string("advertise", o.advertise);
    printf("io %s\n", o.io == PDX_IO_AUTO ? "PDX_IO_AUTO" : "another");
    show_number("deadline_ns", o.deadline_ns);
    show_number("keepalive_ns", o.keepalive_ns);
    show_number("connect_timeout_ns", o.connect_timeout_ns);
    show_number("drain_ns", o.drain_ns);
    show_number("spin_ns", o.spin_ns);
    show_number("max_transfers", o.max_transfers);
    show_number("max_regions", o.max_regions);
    show_number("max_peers", o.max_peers);
    show_number("max_sessions", o.max_sessions);
    show_number("max_inbound", o.max_inbound);
    show_number("inbound_age_ns", o.inbound_age_ns);
    show_string("tcp_congestion", o.tcp_congestion);
    show_pointer("log", o.log != NULL);
    show_pointer("log_ctx", o.log_ctx != NULL);
    printf("log_level %s\n", o.log_level == PDX_LOG_INFO ? "PDX_LOG_INFO" : "another");
    show_pointer("on_inbound", o.on_inbound != NULL);
    show_pointer("on_inbound_ctx", o.on_inbound_ctx != NULL);
    return 0;
}
