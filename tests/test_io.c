/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of engine/io/io.h, held to each backend. io_uring is passed
 * over, with its reason, where the kernel refuses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "engine/io/io.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY     1000
#define PATIENCE UINT64_C(10000000000) /* ns until a test that waits for something gives up */

static const struct pdxi_io_ops *backend;

struct probe {
    struct pdxi_watch watch;
    unsigned calls;
    unsigned events; /* of all calls */
    struct pdxi_io *io;
    struct probe *other; /* for callbacks that do something to another one */
};

static struct pdxi_io *io_open(uint32_t max_watches)
{
    struct pdx_error why;
    struct pdxi_io *io = NULL;

    if (pdxi_io_create(backend, &io, max_watches, &why) < 0)
        fail_msg("%s", why.text);
    return io;
}

static void probe_count(struct pdxi_watch *w, unsigned events)
{
    struct probe *p = (struct probe *)(void *)w;

    p->calls++;
    p->events |= events;
}

static void probe_add(struct probe *p, struct pdxi_io *io, int fd, unsigned events,
                      pdxi_watch_fn fn)
{
    struct pdx_error why;

    *p = (struct probe){.watch = {.fd = fd, .events = events, .fn = fn}, .io = io};
    if (pdxi_io_add(io, &p->watch, &why) < 0)
        fail_msg("%s", why.text);
}

static int bell_open(void)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void bell_ring(int fd)
{
    assert_int_equal(eventfd_write(fd, 1), 0);
}

static void bell_drain(int fd)
{
    eventfd_t v;

    assert_int_equal(eventfd_read(fd, &v), 0);
}

static void sockets_open(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

/* Waits until `p` was called `calls` times or more. */
static void io_until(struct pdxi_io *io, const struct probe *p, unsigned calls)
{
    uint64_t end = pdxi_now_ns() + PATIENCE;

    while (p->calls < calls) {
        assert_true(pdxi_io_wait(io, PATIENCE) >= 0);
        assert_true(pdxi_now_ns() < end);
    }
}

/* Looks until nothing is told any more. */
static void io_settle(struct pdxi_io *io)
{
    int rc;

    while ((rc = pdxi_io_wait(io, 0)) > 0)
        ;
    assert_int_equal(rc, 0);
}

static void test_io_tells_each_read_edge(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fd = bell_open();

    (void)state;
    probe_add(&p, io, fd, PDXI_IO_READ, probe_count);
    io_settle(io);
    assert_int_equal(p.calls, 0);
    for (unsigned i = 1; i <= 100; i++) {
        unsigned calls = p.calls;

        bell_ring(fd);
        io_until(io, &p, calls + 1);
        assert_int_equal(p.events, PDXI_IO_READ);
        bell_drain(fd);
        io_settle(io);
    }
    pdxi_io_remove(io, &p.watch);
    pdxi_io_destroy(io);
    (void)close(fd);
}

/* An edge is told once: readiness that stays is no reason to wake again. */
static void test_io_is_silent_about_what_stays_ready(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fd = bell_open();
    unsigned calls;

    (void)state;
    probe_add(&p, io, fd, PDXI_IO_READ, probe_count);
    bell_ring(fd);
    io_until(io, &p, 1);
    io_settle(io);
    calls = p.calls;
    assert_int_equal(pdxi_io_wait(io, 2000000), 0);
    assert_int_equal(p.calls, calls);
    bell_ring(fd); /* not drained, but a new edge */
    io_until(io, &p, calls + 1);
    pdxi_io_destroy(io);
    (void)close(fd);
}

static void test_io_tells_the_state_at_add(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe r, w;
    int fds[2];

    (void)state;
    sockets_open(fds);
    assert_int_equal(write(fds[1], "x", 1), 1);
    probe_add(&r, io, fds[0], PDXI_IO_READ | PDXI_IO_WRITE, probe_count);
    probe_add(&w, io, fds[1], PDXI_IO_READ | PDXI_IO_WRITE, probe_count);
    io_until(io, &r, 1);
    io_until(io, &w, 1);
    assert_int_equal(r.events, PDXI_IO_READ | PDXI_IO_WRITE);
    assert_int_equal(w.events, PDXI_IO_WRITE);
    pdxi_io_remove(io, &r.watch);
    pdxi_io_remove(io, &w.watch);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void socket_fill(int fd)
{
    char buf[65536] = {0};
    ssize_t n;

    while ((n = write(fd, buf, sizeof buf)) > 0)
        ;
    assert_int_equal(errno, EAGAIN);
}

static void socket_empty(int fd)
{
    char buf[65536];
    ssize_t n;

    while ((n = read(fd, buf, sizeof buf)) > 0)
        ;
    assert_int_equal(errno, EAGAIN);
}

static void test_io_tells_when_writing_goes_on(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fds[2];

    (void)state;
    sockets_open(fds);
    socket_fill(fds[0]);
    probe_add(&p, io, fds[0], PDXI_IO_READ | PDXI_IO_WRITE, probe_count);
    io_settle(io);
    assert_int_equal(p.calls, 0);
    for (int round = 0; round < 3; round++) {
        io_settle(io);
        p.events = 0;
        p.calls = 0;
        socket_empty(fds[1]);
        while (!(p.events & PDXI_IO_WRITE))
            io_until(io, &p, p.calls + 1);
        socket_fill(fds[0]);
    }
    pdxi_io_remove(io, &p.watch);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void test_io_tells_hangup_as_error_and_read(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fds[2];

    (void)state;
    sockets_open(fds);
    probe_add(&p, io, fds[0], PDXI_IO_WRITE, probe_count); /* errors are told unasked */
    io_until(io, &p, 1);
    assert_int_equal(p.events, PDXI_IO_WRITE);
    (void)close(fds[1]);
    while (!(p.events & PDXI_IO_ERROR))
        io_until(io, &p, p.calls + 1);
    assert_true(p.events & PDXI_IO_READ);
    pdxi_io_remove(io, &p.watch);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
}

static void tcp_open(int fds[2])
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&addr, &len), 0);
    fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fds[0] >= 0);
    assert_int_equal(connect(fds[0], (struct sockaddr *)&addr, sizeof addr), 0);
    fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(fds[1] >= 0);
    (void)close(listener);
}

static void test_io_tells_reset_as_error(void **state)
{
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fds[2];

    (void)state;
    tcp_open(fds);
    probe_add(&p, io, fds[0], PDXI_IO_READ, probe_count);
    io_settle(io);
    assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    (void)close(fds[1]);
    while (!(p.events & PDXI_IO_ERROR))
        io_until(io, &p, p.calls + 1);
    assert_true(p.events & PDXI_IO_READ);
    pdxi_io_remove(io, &p.watch);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
}

static void test_io_tells_half_close_as_end(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fds[2];

    (void)state;
    tcp_open(fds);
    probe_add(&p, io, fds[0], PDXI_IO_READ, probe_count);
    io_settle(io);
    assert_int_equal(p.calls, 0);
    assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
    io_until(io, &p, 1);
    assert_int_equal(p.events, PDXI_IO_READ | PDXI_IO_END);
    pdxi_io_remove(io, &p.watch);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void probe_remove_self(struct pdxi_watch *w, unsigned events)
{
    struct probe *p = (struct probe *)(void *)w;

    probe_count(w, events);
    pdxi_io_remove(p->io, w);
}

static void test_io_watch_may_remove_itself(void **state)
{
    struct pdxi_io *io = io_open(1);
    struct probe p;
    int fd = bell_open();

    (void)state;
    probe_add(&p, io, fd, PDXI_IO_READ, probe_remove_self);
    bell_ring(fd);
    io_until(io, &p, 1);
    assert_int_equal(p.watch.slot, 0);
    pdxi_io_remove(io, &p.watch); /* without effect */
    bell_ring(fd);
    io_settle(io);
    assert_int_equal(p.calls, 1);
    probe_add(&p, io, fd, PDXI_IO_READ, probe_count); /* the only slot is free again */
    io_until(io, &p, 1);
    pdxi_io_destroy(io);
    (void)close(fd);
}

static void probe_remove_other(struct pdxi_watch *w, unsigned events)
{
    struct probe *p = (struct probe *)(void *)w;

    probe_count(w, events);
    pdxi_io_remove(p->io, &p->other->watch);
}

/* Both are ready in one batch and each removes the other: exactly one is told. */
static void test_io_removed_watch_of_the_same_batch_is_silent(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p[2];
    int fds[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        fds[i] = bell_open();
        probe_add(&p[i], io, fds[i], PDXI_IO_READ, probe_remove_other);
    }
    p[0].other = &p[1];
    p[1].other = &p[0];
    io_settle(io);
    bell_ring(fds[0]);
    bell_ring(fds[1]);
    while (p[0].calls + p[1].calls == 0)
        assert_true(pdxi_io_wait(io, PATIENCE) >= 0);
    io_settle(io);
    assert_int_equal(p[0].calls + p[1].calls, 1);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* Puts a watch of a descriptor that is not ready into the other one's place. */
static void probe_replace_other(struct pdxi_watch *w, unsigned events)
{
    struct probe *p = (struct probe *)(void *)w;

    probe_count(w, events);
    if (!p->other)
        return;
    pdxi_io_remove(p->io, &p->other->watch);
    probe_add(p->other, p->io, (int)(intptr_t)p->other->other, PDXI_IO_READ, probe_count);
    p->other = NULL;
}

/* Events that the kernel had in hand for a watch don't reach the next one in its slot. */
static void test_io_reused_slot_gets_no_stale_event(void **state)
{
    struct pdxi_io *io = io_open(2);
    struct probe p[2];
    int fds[2], quiet = bell_open();

    (void)state;
    for (int i = 0; i < 2; i++) {
        fds[i] = bell_open();
        probe_add(&p[i], io, fds[i], PDXI_IO_READ, probe_count);
    }
    io_settle(io);
    p[0].watch.fn = probe_replace_other;
    p[0].other = &p[1];
    p[1].other = (struct probe *)(intptr_t)quiet;
    bell_ring(fds[0]);
    bell_ring(fds[1]);
    io_until(io, &p[0], 1);
    io_settle(io);
    assert_int_equal(p[1].watch.fd, quiet);
    assert_int_equal(p[1].calls, 0);
    bell_ring(quiet);
    io_until(io, &p[1], 1);
    /* And outside callbacks: the event is in the kernel's hands when the watch goes. */
    bell_ring(fds[0]);
    pdxi_io_remove(io, &p[0].watch);
    bell_drain(quiet);
    pdxi_io_remove(io, &p[1].watch);
    probe_add(&p[0], io, quiet, PDXI_IO_READ, probe_count);
    io_settle(io);
    assert_int_equal(p[0].calls, 0);
    pdxi_io_destroy(io);
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)close(quiet);
}

static void probe_add_other(struct pdxi_watch *w, unsigned events)
{
    struct probe *p = (struct probe *)(void *)w;

    probe_count(w, events);
    if (p->other && !p->other->watch.slot)
        probe_add(p->other, p->io, (int)(intptr_t)p->other->other, PDXI_IO_READ, probe_count);
}

static void test_io_watch_may_add_another(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe first, second = {0};
    int fd = bell_open(), other = bell_open();

    (void)state;
    probe_add(&first, io, fd, PDXI_IO_READ, probe_add_other);
    first.other = &second;
    second.other = (struct probe *)(intptr_t)other;
    bell_ring(other);
    bell_ring(fd);
    io_until(io, &second, 1);
    assert_int_equal(second.watch.fd, other);
    pdxi_io_destroy(io);
    (void)close(fd);
    (void)close(other);
}

static void test_io_wait_lasts_its_time(void **state)
{
    static const uint64_t times[] = {1, 1000, 50000, 300000, 1000000, 3456789, 20000000};
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fd = bell_open();

    (void)state;
    probe_add(&p, io, fd, PDXI_IO_READ, probe_count);
    io_settle(io);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        uint64_t start = pdxi_now_ns();

        assert_int_equal(pdxi_io_wait(io, times[i]), 0);
        assert_true(pdxi_now_ns() - start >= times[i]);
        pdxi_io_remove(io, &p.watch); /* leaves nothing that ends the next wait early */
        probe_add(&p, io, fd, PDXI_IO_READ, probe_count);
    }
    bell_ring(fd);
    assert_int_equal(pdxi_io_wait(io, UINT64_MAX), 1);
    pdxi_io_destroy(io);
    (void)close(fd);
}

/* Looking again costs nothing with io_uring, and one call with epoll; sleeping costs one. */
static void test_io_counts_its_system_calls(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p;
    int fd = bell_open();
    uint64_t before;

    (void)state;
    probe_add(&p, io, fd, PDXI_IO_READ, probe_count);
    io_settle(io);
    before = io->syscalls;
    assert_int_equal(pdxi_io_wait(io, 1000), 0);
    assert_int_equal(io->syscalls, before + 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(pdxi_io_wait(io, 0), 0);
    assert_true(io->syscalls <= before + 11);
    pdxi_io_destroy(io);
    (void)close(fd);
}

static void files_permit(size_t n)
{
    struct rlimit lim;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &lim), 0);
    if (lim.rlim_cur >= n)
        return;
    lim.rlim_cur = lim.rlim_max < n ? lim.rlim_max : n;
    assert_true(lim.rlim_cur >= n);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
}

static void test_io_serves_many_watches(void **state)
{
    struct pdxi_io *io = io_open(MANY);
    struct probe *p = calloc(MANY, sizeof *p), extra = {0};
    int *fds = calloc(MANY, sizeof *fds);
    struct pdx_error why;

    (void)state;
    files_permit(MANY + 64);
    for (int i = 0; i < MANY; i++) {
        fds[i] = bell_open();
        probe_add(&p[i], io, fds[i], PDXI_IO_READ, probe_count);
    }
    extra.watch = (struct pdxi_watch){.fd = fds[0], .events = PDXI_IO_READ, .fn = probe_count};
    assert_int_equal(pdxi_io_add(io, &extra.watch, &why), PDX_EAGAIN);
    assert_int_equal(extra.watch.slot, 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            p[i].calls = 0;
            bell_ring(fds[i]);
        }
        for (int i = 0; i < MANY; i++)
            io_until(io, &p[i], 1);
        io_settle(io);
        for (int i = 0; i < MANY; i++)
            bell_drain(fds[i]);
    }
    for (int i = 0; i < MANY; i++) {
        pdxi_io_remove(io, &p[i].watch);
        (void)close(fds[i]);
    }
    pdxi_io_destroy(io);
    free(p);
    free(fds);
}

/* More edges than the completion ring has room for, taken from the kernel by nobody while removals
 * make it post them: none is lost, and later edges are told too. */
static void test_io_loses_nothing_when_the_kernel_has_no_room(void **state)
{
    enum { N = 300, ROUNDS = 64 };
    struct pdxi_io *io = io_open(N + ROUNDS);
    struct probe p[N], victims[ROUNDS];
    int fds[N], vfds[ROUNDS];

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        vfds[i] = bell_open();
        probe_add(&victims[i], io, vfds[i], PDXI_IO_READ, probe_count);
    }
    for (int i = 0; i < N; i++) {
        fds[i] = bell_open();
        probe_add(&p[i], io, fds[i], PDXI_IO_READ, probe_count);
    }
    io_settle(io);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++)
            bell_ring(fds[i]);
        pdxi_io_remove(io, &victims[round].watch);
    }
    for (int i = 0; i < N; i++)
        io_until(io, &p[i], 1);
    io_settle(io);
    for (int i = 0; i < N; i++) {
        bell_drain(fds[i]);
        p[i].calls = 0;
        bell_ring(fds[i]);
        io_until(io, &p[i], 1);
    }
    pdxi_io_destroy(io);
    for (int i = 0; i < N; i++)
        (void)close(fds[i]);
    for (int i = 0; i < ROUNDS; i++)
        (void)close(vfds[i]);
}

static void socket_expect_eof(int fd)
{
    struct timeval patience = {.tv_sec = (time_t)(PATIENCE / 1000000000)};
    char c;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(recv(fd, &c, 1, 0), 0);
    (void)close(fd);
}

/* A backend that still holds the file after remove would keep the connection open: before it ever
 * waited, when all is quiet, and when the kernel has many events in hand. */
static void test_io_removed_descriptor_really_closes(void **state)
{
    enum { BUSY = 200 };
    struct pdxi_io *io = io_open(BUSY + 1);
    struct probe p, busy[BUSY];
    int fds[2], bells[BUSY];

    (void)state;
    for (int i = 0; i < BUSY; i++) {
        bells[i] = bell_open();
        probe_add(&busy[i], io, bells[i], PDXI_IO_READ, probe_count);
    }
    for (int round = 0; round < 3; round++) {
        tcp_open(fds);
        probe_add(&p, io, fds[0], PDXI_IO_READ, probe_count);
        if (round > 0)
            io_settle(io);
        for (int i = 0; i < BUSY && round == 2; i++)
            bell_ring(bells[i]);
        pdxi_io_remove(io, &p.watch);
        (void)close(fds[0]);
        socket_expect_eof(fds[1]);
    }
    pdxi_io_destroy(io);
    for (int i = 0; i < BUSY; i++)
        (void)close(bells[i]);
}

static void test_io_bad_descriptor_is_an_error(void **state)
{
    struct pdxi_io *io = io_open(4);
    struct probe p = {.watch = {.fd = -1, .events = PDXI_IO_READ, .fn = probe_count}};
    struct pdx_error why;

    (void)state;
    /* Either at once, or by the first call. */
    if (pdxi_io_add(io, &p.watch, &why) < 0) {
        assert_int_equal(why.code, PDX_ESYS);
        assert_int_equal(p.watch.slot, 0);
    } else {
        io_until(io, &p, 1);
        assert_true(p.events & PDXI_IO_ERROR);
        io_settle(io);
        assert_int_equal(p.calls, 1);
    }
    pdxi_io_destroy(io);
}

int main(void)
{
    static const struct pdxi_io_ops *const backends[] = {&pdxi_io_epoll, &pdxi_io_uring};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_io_tells_each_read_edge),
        cmocka_unit_test(test_io_is_silent_about_what_stays_ready),
        cmocka_unit_test(test_io_tells_the_state_at_add),
        cmocka_unit_test(test_io_tells_when_writing_goes_on),
        cmocka_unit_test(test_io_tells_hangup_as_error_and_read),
        cmocka_unit_test(test_io_tells_reset_as_error),
        cmocka_unit_test(test_io_tells_half_close_as_end),
        cmocka_unit_test(test_io_watch_may_remove_itself),
        cmocka_unit_test(test_io_removed_watch_of_the_same_batch_is_silent),
        cmocka_unit_test(test_io_reused_slot_gets_no_stale_event),
        cmocka_unit_test(test_io_watch_may_add_another),
        cmocka_unit_test(test_io_wait_lasts_its_time),
        cmocka_unit_test(test_io_counts_its_system_calls),
        cmocka_unit_test(test_io_serves_many_watches),
        cmocka_unit_test(test_io_loses_nothing_when_the_kernel_has_no_room),
        cmocka_unit_test(test_io_removed_descriptor_really_closes),
        cmocka_unit_test(test_io_bad_descriptor_is_an_error),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        struct pdxi_io *io;
        struct pdx_error why;

        backend = backends[i];
        if (pdxi_io_create(backend, &io, 1, &why) == PDX_EUNSUPPORTED) {
            (void)fprintf(stderr, "%s passed over: %s\n", backend->name, why.text);
            continue;
        }
        pdxi_io_destroy(io);
        failed += cmocka_run_group_tests_name(backend->name, tests, NULL, NULL);
    }
    return failed;
}
