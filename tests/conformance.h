/* SPDX-License-Identifier: Apache-2.0
 *
 * The completion-conformance suite: what every lane must do alike, written once
 * and run once per lane. A lane plugs in as one row of the table in
 * conformance.c. The cases are spread over programs by theme
 * (conformance_<theme>.c), so that they run side by side:
 *
 *     completion   the ways to learn of the end
 *     queue        completion queues
 *     data         the right bytes at the right place, and nowhere else
 *     jobs         random scatter lists and jobs
 *     items        ranges of pairs, items in turns, items named twice
 *     inbound      notifications, and what the target knows
 *     quiet        cancel, deadline, deregistration: silence after the end
 *     fence        no byte of a broken connection after the end
 *     faults       peers that die, stop and come back
 *     limits       counts, threads, allocations, idleness
 *     refusal      what is refused, by whom, with which code
 *     wire         strangers at the listener
 *
 * PDX_TEST_LANE and PDX_TEST_CASE (a pattern) narrow a run down.
 */
#ifndef PDX_TESTS_CONFORMANCE_H
#define PDX_TESTS_CONFORMANCE_H

#include "child.h"
#include "support.h"

#include <string.h>

struct conf_lane {
    const char *name; /* as in pdx_transfer_info.lane */
    /* Makes engines use this lane and no other. */
    void (*require)(struct pdx_engine_opts *opts);
    /* NULL when this machine has it; else what is missing. */
    const char *(*missing)(void);
};

extern const struct conf_lane *conf_lane; /* the one under test */

/* What a case may use; conf_teardown closes whatever is open. */
struct conf {
    struct ts_pair pair;
    struct ts_mute mute;
    struct ts_child child;
};

/* Setups: two engines of this process with regions of 1 MiB; the same and a mute peer of a; engine
 * a (pair.a, pair.ra) with a child as its peer (pair.peer, pair.remote); nothing yet. */
int conf_setup_pair(void **state);
int conf_setup_mute(void **state);
int conf_setup_child(void **state);
int conf_setup_none(void **state);
int conf_teardown(void **state);

#define CONF_PAIR(f)  cmocka_unit_test_setup_teardown(f, conf_setup_pair, conf_teardown)
#define CONF_MUTE(f)  cmocka_unit_test_setup_teardown(f, conf_setup_mute, conf_teardown)
#define CONF_CHILD(f) cmocka_unit_test_setup_teardown(f, conf_setup_child, conf_teardown)
#define CONF_NONE(f)  cmocka_unit_test_setup_teardown(f, conf_setup_none, conf_teardown)

/* ts_engine_opts for the lane under test. */
void conf_opts(struct pdx_engine_opts *opts, const char *name);
/* Other sizes than those of conf_setup_pair. */
void conf_open_pair(struct conf *c, size_t len);
/* Engine a, and a child with these options as its peer. */
void conf_open_child(struct conf *c, const struct ts_child_opts *opts);

/* A long write: nsegs times the first seg_len bytes to the same place. */
struct pdx_transfer_status *conf_long_write(struct conf *c, size_t nsegs, uint64_t seg_len,
                                            const struct pdx_submit_opts *opts);
/* An end that left the peer and its connections as they were: nothing lost, next write works. */
void conf_assert_peer_well(struct conf *c);

int conf_main(const struct CMUnitTest *cases, size_t n);

#define CONF_MAIN(cases)                                         \
    int main(void)                                               \
    {                                                            \
        return conf_main(cases, sizeof cases / sizeof cases[0]); \
    }

#endif
