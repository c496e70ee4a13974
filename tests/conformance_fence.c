/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: a target that is held up in the middle of receiving. Its reactor
 * thread is stopped by a signal wherever it happens to be, for example between
 * the receive call and the copy of what it returned into the region. Meanwhile
 * the initiator cancels, loses patience and breaks the connection. When the
 * target is let go it finishes what it was about to do, and nothing of that may
 * show in memory of a write that was reported before.
 *
 *     writes sent | target held | cancel | drain_ns | lane broken | let go
 *                                                   |<- 2 drain_ns at most ->|
 */
#include "conformance.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define OLD_BYTE 0x11 /* what is sent */
#define NEW_BYTE 0x99 /* what the slots are used for when their writes have ended */

#define NWRITES    512
#define WRITE_LEN  ((size_t)24 << 10) /* received through the staging buffer, several at once */
#define REGION_LEN (NWRITES * WRITE_LEN)
/* The first moments of the writes, during which the target is held. */
#define SPREAD_NS (6 * PDX_MSEC)
#define DRAIN_NS  (200 * PDX_MSEC)
/* Ends up to here were not brought about by the limit of the fence, which is at 3. */
#define SURE_NS (5 * DRAIN_NS / 2)

#define HOLD_SIGNAL SIGUSR1

/* Of the one target; a signal handler has no other way to it. */
static atomic_bool hold;
static atomic_bool held;

static void hold_still(int signal)
{
    const struct timespec pause = {.tv_nsec = 50000};
    int saved = errno;

    (void)signal;
    atomic_store(&held, true);
    while (atomic_load(&hold))
        (void)nanosleep(&pause, NULL);
    atomic_store(&held, false);
    errno = saved;
}

struct fence {
    struct conf *c;
    pthread_t target; /* the reactor thread of engine b */
    atomic_bool target_known;
    uint8_t *mem;  /* owned: the target's memory, registered */
    uint8_t *view; /* owned: the same memory, as its application sees it */
    struct pdx_region *region;
    struct pdx_remote remote;
    struct pdx_transfer_status *st[NWRITES];
    bool reused[NWRITES]; /* the slot has been filled with NEW_BYTE */
};

/* On the target's reactor thread, which takes no signals by itself. */
static void note_thread(void *ctx, const struct pdx_inbound *rec)
{
    struct fence *f = ctx;
    sigset_t set;

    (void)rec;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, HOLD_SIGNAL);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    f->target = pthread_self();
    atomic_store(&f->target_known, true);
}

/* Two mappings of the same memory: what the target's thread does in one is no data race with what
 * the test does in the other. */
static void fence_map(struct fence *f)
{
    int fd = memfd_create("fence", MFD_CLOEXEC);

    assert_true(fd >= 0 && ftruncate(fd, (off_t)REGION_LEN) == 0);
    f->mem = mmap(NULL, REGION_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    f->view = mmap(NULL, REGION_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    assert_true(f->mem != MAP_FAILED && f->view != MAP_FAILED);
}

static void fence_open(struct fence *f)
{
    const struct sigaction action = {.sa_handler = hold_still, .sa_flags = SA_RESTART};
    struct pdx_engine_opts a;
    struct pdx_engine_opts b;
    struct pdx_transfer_status *st;
    struct pdx_error why;

    assert_int_equal(sigaction(HOLD_SIGNAL, &action, NULL), 0);
    conf_opts(&a, "alpha");
    conf_opts(&b, "beta");
    a.drain_ns = DRAIN_NS;
    a.keepalive_ns = 60 * PDX_SEC; /* the target is held, not lost */
    b.on_inbound = note_thread;
    b.on_inbound_ctx = f;
    ts_pair_open(&f->c->pair, &a, &b, REGION_LEN);
    memset(f->c->pair.ma.p, OLD_BYTE, REGION_LEN);
    fence_map(f);
    f->region =
        ts_region(f->c->pair.b, &(struct ts_mem){.p = f->mem, .len = REGION_LEN}, PDX_RIGHT_ALL);
    f->remote = ts_remote(f->region);
    ts_ok(pdx_notify(f->c->pair.peer, "x", 1, NULL, &st, &why), &why);
    ts_finish(st);
    ts_until(atomic_load(&f->target_known));
}

static void fence_submit(struct fence *f)
{
    struct pdx_error why;

    for (size_t i = 0; i < NWRITES; i++) {
        const struct pdx_seg seg = {i * WRITE_LEN, i * WRITE_LEN, WRITE_LEN};

        f->reused[i] = false;
        ts_ok(pdx_write(f->c->pair.peer, f->c->pair.ra, &f->remote, &seg, 1, NULL, &f->st[i], &why),
              &why);
    }
}

static uint64_t fence_breaks(struct fence *f)
{
    struct pdx_peer_counters pc;

    pdx_peer_counters(f->c->pair.peer, &pc);
    return pc.lane_breaks;
}

/* The application takes the slots of ended writes for something else. Returns how many writes have
 * not ended yet. */
static int fence_reuse(struct fence *f)
{
    int open = 0;

    for (size_t i = 0; i < NWRITES; i++) {
        if (!pdx_transfer_is_terminal(pdx_transfer_code(f->st[i]))) {
            open++;
        } else if (!f->reused[i]) {
            memset(f->view + i * WRITE_LEN, NEW_BYTE, WRITE_LEN);
            f->reused[i] = true;
        }
    }
    return open;
}

static void fence_check(struct fence *f, uint64_t cancelled_ns)
{
    for (size_t i = 0; i < NWRITES; i++) {
        struct pdx_transfer_info info;

        pdx_transfer_info(f->st[i], &info);
        if (info.completed_ns < cancelled_ns + SURE_NS)
            ts_assert_bytes(f->view + i * WRITE_LEN, NEW_BYTE, WRITE_LEN);
        pdx_transfer_put(f->st[i]);
    }
}

/* Returns whether writes had to wait for the target, and did not wait in vain. */
static bool fence_round(struct fence *f, uint64_t *rng)
{
    uint64_t breaks = fence_breaks(f);
    uint64_t cancelled_ns;
    bool waited;

    memset(f->view, 0, REGION_LEN);
    fence_submit(f);
    for (uint64_t end = ts_now() + ts_rand(rng) % SPREAD_NS; ts_now() < end;)
        ;
    atomic_store(&hold, true);
    assert_int_equal(pthread_kill(f->target, HOLD_SIGNAL), 0);
    ts_until(atomic_load(&held));
    cancelled_ns = ts_now();
    for (size_t i = 0; i < NWRITES; i++)
        pdx_transfer_cancel(f->st[i]);
    ts_until(fence_breaks(f) > breaks || fence_reuse(f) == 0);
    waited = fence_reuse(f) > 0;
    atomic_store(&hold, false);
    ts_until(fence_reuse(f) == 0);
    ts_until(!atomic_load(&held));
    /* The target has done all that it was about to do when it has done this. */
    ts_finish(ts_write(&f->c->pair, 0, 0, 1, NULL));
    ts_sync(f->c->pair.b);
    waited = waited && ts_now() - cancelled_ns < SURE_NS;
    fence_check(f, cancelled_ns);
    return waited;
}

static void test_held_target_places_nothing_late(void **state)
{
    struct fence *f = *state;
    uint64_t rng = 5;
    int sure = 0;

    fence_open(f);
    for (int round = 0; round < 30 && sure < 8; round++)
        sure += fence_round(f, &rng);
}

static int fence_setup(void **state)
{
    struct fence *f = calloc(1, sizeof *f);

    if (!f || conf_setup_none(state) < 0)
        return -1;
    f->c = *state;
    *state = f;
    return 0;
}

static int fence_teardown(void **state)
{
    struct fence *f = *state;
    void *conf = f->c;

    atomic_store(&hold, false);
    (void)conf_teardown(&conf);
    (void)pdx_region_deregister(f->region, 0, NULL);
    if (f->mem && f->mem != MAP_FAILED)
        (void)munmap(f->mem, REGION_LEN);
    if (f->view && f->view != MAP_FAILED)
        (void)munmap(f->view, REGION_LEN);
    free(f);
    return 0;
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test_setup_teardown(test_held_target_places_nothing_late, fence_setup,
                                    fence_teardown),
};

CONF_MAIN(cases)
