/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine tests share: time, patterned memory, engines and connected
 * pairs of them, and checks that print the library's own sentence when they
 * fail. Knows the public API only. The checks (ts_ok, ts_done, ...) end a test
 * by a jump and belong on the test's own thread; callbacks and other threads
 * record what they saw.
 */
#ifndef PDX_TESTS_SUPPORT_H
#define PDX_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pdx/pdx.h>

#if defined(__has_feature)
#define TS_HAS_FEATURE(f) __has_feature(f)
#else
#define TS_HAS_FEATURE(f) 0
#endif
#if defined(__SANITIZE_THREAD__) || TS_HAS_FEATURE(thread_sanitizer)
#define TS_TSAN 1
#else
#define TS_TSAN 0
#endif
#if TS_TSAN || defined(__SANITIZE_ADDRESS__) || TS_HAS_FEATURE(address_sanitizer)
#define TS_SANITIZED 1
#else
#define TS_SANITIZED 0
#endif

/* A heavy parameter: as it is, and under sanitizers. */
#define TS_SCALE(normal, sanitized) (TS_SANITIZED ? (sanitized) : (normal))
/* Longer than anything that works takes; only failures wait this long. */
#define TS_LONG (TS_SCALE(20, 60) * PDX_SEC)

#define TS_DESC_MAX 8192

/* Time and chance. */
uint64_t ts_now(void);
uint64_t ts_rand(uint64_t *state);
/* For loops that wait for a state which announces itself by nothing: a short pause. */
void ts_pause(void);

/* Waits until `cond` holds. */
#define ts_until(cond)                                                          \
    do {                                                                        \
        uint64_t ts_end_ = ts_now() + TS_LONG;                                  \
                                                                                \
        while (!(cond)) {                                                       \
            if (ts_now() > ts_end_)                                             \
                ts_fail(__FILE__, __LINE__, "this never came true: %s", #cond); \
            ts_pause();                                                         \
        }                                                                       \
    } while (0)

void ts_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The pattern of a seed is an endless string of bytes; these put its part from `off` on at `p`, and
 * return the position of the first byte that differs (len when none does). */
void ts_fill(void *p, uint64_t off, size_t len, uint64_t seed);
size_t ts_mismatch(const void *p, uint64_t off, size_t len, uint64_t seed);
/* The first byte that is not `value` (len when all are). */
size_t ts_not_byte(const void *p, int value, size_t len);
uint64_t ts_sum(const void *p, size_t len);

#define ts_assert_pattern(p, off, len, seed)                                                      \
    do {                                                                                          \
        size_t ts_len_ = (len);                                                                   \
        size_t ts_at_ = ts_mismatch(p, off, ts_len_, seed);                                       \
                                                                                                  \
        if (ts_at_ != ts_len_)                                                                    \
            ts_fail(__FILE__, __LINE__, "byte %zu of %zu is not the pattern's", ts_at_, ts_len_); \
    } while (0)

#define ts_assert_bytes(p, value, len)                                                   \
    do {                                                                                 \
        size_t ts_len_ = (len);                                                          \
        size_t ts_at_ = ts_not_byte(p, value, ts_len_);                                  \
                                                                                         \
        if (ts_at_ != ts_len_)                                                           \
            ts_fail(__FILE__, __LINE__, "byte %zu of %zu was changed", ts_at_, ts_len_); \
    } while (0)

/* Memory between two canaries. */
struct ts_mem {
    uint8_t *p; /* owned: a mapping that begins one canary earlier */
    size_t len;
};

#define TS_CANARY_LEN ((size_t)65536)

void ts_mem_open(struct ts_mem *m, size_t len);
void ts_mem_close(struct ts_mem *m); /* fails the test when a canary was hit */

/* Options for tests: defaults, a long connect timeout, the waiting that PDX_TEST_IO asks for (auto,
 * uring, epoll), the log on stderr when PDX_TEST_LOG is set. */
void ts_engine_opts(struct pdx_engine_opts *opts, const char *name);
struct pdx_engine *ts_engine(const struct pdx_engine_opts *opts);
struct pdx_region *ts_region(struct pdx_engine *engine, struct ts_mem *m, uint32_t rights);
struct pdx_remote ts_remote(const struct pdx_region *region);
struct pdx_peer *ts_peer(struct pdx_engine *engine, const struct pdx_engine *of);
struct pdx_engine_counters ts_counters(const struct pdx_engine *engine);
/* A round trip through the reactor. What a peer's message or a counter says about this engine's
 * memory is true without it; ThreadSanitizer sees an order only with it. */
void ts_sync(struct pdx_engine *engine);

/* Two engines of this process: a submits, b is the target. Each has one region. */
struct ts_pair {
    struct pdx_engine *a;
    struct pdx_engine *b;
    struct pdx_peer *peer; /* b, as a knows it; up */
    struct ts_mem ma;
    struct ts_mem mb;
    struct pdx_region *ra;
    struct pdx_region *rb;
    struct pdx_remote remote; /* rb, as a knows it */
};

void ts_pair_open(struct ts_pair *p, const struct pdx_engine_opts *a,
                  const struct pdx_engine_opts *b, size_t len);
/* Closes whatever the test has left; what it took away itself it has set to NULL. */
void ts_pair_close(struct ts_pair *p);

/* A peer that accepts connections and never says a word: what is submitted to it stays QUEUED. */
struct ts_mute {
    int fd; /* listens */
    struct pdx_peer *peer;
    struct pdx_remote remote;
};

void ts_mute_open(struct ts_mute *m, struct pdx_engine *a);
void ts_mute_close(struct ts_mute *m);

/* A listening or connected TCP socket on 127.0.0.1. */
int ts_listen(uint16_t port);
int ts_connect(uint16_t port);
/* A port that nobody listens at, and that connections do not get by themselves. */
uint16_t ts_quiet_port(void);
bool ts_connect_fd(int fd, uint16_t port);

/* One segment of a pair, or of any other two regions; the deadline is the engine's default unless
 * `opts` says another. */
struct pdx_transfer_status *ts_write(struct ts_pair *p, uint64_t local_off, uint64_t remote_off,
                                     uint64_t len, const struct pdx_submit_opts *opts);
struct pdx_transfer_status *ts_read(struct ts_pair *p, uint64_t local_off, uint64_t remote_off,
                                    uint64_t len, const struct pdx_submit_opts *opts);
struct pdx_transfer_status *ts_mute_write(struct ts_mute *m, struct pdx_region *local,
                                          const struct pdx_submit_opts *opts);

/* Checks. ts_ok: a call succeeded. ts_refused: it was refused with this code, explained itself and
 * cost nothing. ts_done and ts_ended wait for the end and look at it; ts_finish also puts the
 * handle. */
#define ts_ok(rc, why)              ts_ok_at(rc, why, __FILE__, __LINE__)
#define ts_refused(rc, code, why)   ts_refused_at(rc, code, why, __FILE__, __LINE__)
#define ts_done(status)             ts_ended_at(status, PDX_DONE, 0, __FILE__, __LINE__)
#define ts_ended(status, code, err) ts_ended_at(status, code, err, __FILE__, __LINE__)
#define ts_finish(status)           ts_finish_at(status, __FILE__, __LINE__)
#define ts_text_has(text, part)     ts_text_has_at(text, part, __FILE__, __LINE__)

void ts_ok_at(int rc, const struct pdx_error *why, const char *file, int line);
void ts_refused_at(int rc, int code, const struct pdx_error *why, const char *file, int line);
void ts_ended_at(struct pdx_transfer_status *status, enum pdx_transfer_code code, int err,
                 const char *file, int line);
void ts_finish_at(struct pdx_transfer_status *status, const char *file, int line);
void ts_text_has_at(const char *text, const char *part, const char *file, int line);

/* Counts of malloc and its relatives in this process, all threads; see malloc_count.c. */
struct ts_mallocs {
    uint64_t calls; /* that allocate */
    uint64_t live;  /* bytes allocated and not freed */
    uint64_t peak;  /* of live, since ts_mallocs_mark */
};

/* Resident memory of this process, bytes; also what does not come from malloc. */
uint64_t ts_resident(void);

bool ts_mallocs_counted(void); /* false under sanitizers, which have an allocator of their own */
void ts_mallocs_mark(void);
struct ts_mallocs ts_mallocs_now(void);

#endif
