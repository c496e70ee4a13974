/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CANARY 0xc5

#if TS_TSAN
/* ThreadSanitizer notes what send() has read when the call returns. By then the bytes may have
 * arrived at another engine of this process, and their memory may rightly be in use again. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "intercept_send=0";
}
#endif

uint64_t ts_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * PDX_SEC + (uint64_t)ts.tv_nsec;
}

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t ts_rand(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*state);
}

void ts_pause(void)
{
    struct timespec ts = {.tv_nsec = 200000};

    (void)nanosleep(&ts, NULL);
}

uint64_t ts_resident(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages = 0;

    assert_non_null(f);
    if (fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    (void)fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void ts_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprint_error(fmt, ap);
    va_end(ap);
    print_error("\n");
    _fail(file, line);
}

static uint64_t pattern_word(uint64_t off, uint64_t seed)
{
    return mix((off / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed * UINT64_C(0xd1342543de82ef95));
}

/* The pattern's bytes [off, off + *ret_len) that share one word, *ret_len at most `max`. */
static uint64_t pattern_piece(uint64_t off, size_t max, uint64_t seed, size_t *ret_len)
{
    size_t skip_bytes = off % 8;
    size_t n = 8 - skip_bytes;

    *ret_len = n < max ? n : max;
    return pattern_word(off, seed) >> (8 * skip_bytes);
}

void ts_fill(void *p, uint64_t off, size_t len, uint64_t seed)
{
    uint8_t *out = p;

    for (size_t i = 0, n; i < len; i += n) {
        uint64_t w = pattern_piece(off + i, len - i, seed, &n);

        if (n == 8)
            memcpy(out + i, &w, 8);
        else
            memcpy(out + i, &w, n);
    }
}

size_t ts_mismatch(const void *p, uint64_t off, size_t len, uint64_t seed)
{
    const uint8_t *in = p;

    for (size_t i = 0, n; i < len; i += n) {
        uint64_t w = pattern_piece(off + i, len - i, seed, &n);
        const uint8_t *want = (const uint8_t *)&w;

        if (memcmp(in + i, want, n) == 0)
            continue;
        while (*want == in[i])
            want++, i++;
        return i;
    }
    return len;
}

size_t ts_not_byte(const void *p, int value, size_t len)
{
    const uint8_t *in = p;
    size_t i = 0;

    if (len == 0 || (in[0] == value && memcmp(in, in + 1, len - 1) == 0))
        return len;
    while (in[i] == value)
        i++;
    return i;
}

uint64_t ts_sum(const void *p, size_t len)
{
    const uint8_t *in = p;
    uint64_t sum = len;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = 0;

        memcpy(&w, in + i, len - i < 8 ? len - i : 8);
        sum = mix(sum ^ w);
    }
    return sum;
}

void ts_mem_open(struct ts_mem *m, size_t len)
{
    uint8_t *map = mmap(NULL, len + 2 * TS_CANARY_LEN, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        ts_fail(__FILE__, __LINE__, "mmap of %zu bytes failed", len);
    memset(map, CANARY, TS_CANARY_LEN);
    memset(map + TS_CANARY_LEN + len, CANARY, TS_CANARY_LEN);
    m->p = map + TS_CANARY_LEN;
    m->len = len;
}

void ts_mem_close(struct ts_mem *m)
{
    if (!m->p)
        return;
    bool intact = ts_not_byte(m->p - TS_CANARY_LEN, CANARY, TS_CANARY_LEN) == TS_CANARY_LEN &&
                  ts_not_byte(m->p + m->len, CANARY, TS_CANARY_LEN) == TS_CANARY_LEN;
    (void)munmap(m->p - TS_CANARY_LEN, m->len + 2 * TS_CANARY_LEN);
    m->p = NULL;
    if (!intact)
        ts_fail(__FILE__, __LINE__, "bytes outside of a region were written");
}

void ts_ok_at(int rc, const struct pdx_error *why, const char *file, int line)
{
    if (rc < 0)
        ts_fail(file, line, "%s: %s", pdx_err_name(rc), why ? why->text : "");
}

void ts_refused_at(int rc, int code, const struct pdx_error *why, const char *file, int line)
{
    if (rc != code)
        ts_fail(file, line, "%s where %s was due: %s", pdx_err_name(rc), pdx_err_name(code),
                rc < 0 ? why->text : "accepted");
    if (why->code != rc || why->text[0] == '\0' || why->cost != PDX_COST_NONE ||
        why->error_class == PDX_CLASS_NONE)
        ts_fail(file, line, "a refusal with code %d, cost %d, class %d, text \"%s\"", why->code,
                why->cost, why->error_class, why->text);
}

void ts_ended_at(struct pdx_transfer_status *status, enum pdx_transfer_code code, int err,
                 const char *file, int line)
{
    struct pdx_error why;
    enum pdx_transfer_code now;

    if (pdx_transfer_wait(status, TS_LONG) < 0)
        ts_fail(file, line, "still %s: %s", pdx_transfer_code_name(pdx_transfer_code(status)),
                pdx_transfer_text(status));
    now = pdx_transfer_code(status);
    if (now != code || pdx_transfer_error(status, &why) != err)
        ts_fail(file, line, "%s (%s) where %s (%s) was due: %s", pdx_transfer_code_name(now),
                pdx_err_name(pdx_transfer_error(status, NULL)), pdx_transfer_code_name(code),
                pdx_err_name(err), pdx_transfer_text(status));
    if (pdx_transfer_text(status)[0] == '\0')
        ts_fail(file, line, "a terminal transfer without a sentence");
}

void ts_finish_at(struct pdx_transfer_status *status, const char *file, int line)
{
    ts_ended_at(status, PDX_DONE, 0, file, line);
    pdx_transfer_put(status);
}

void ts_text_has_at(const char *text, const char *part, const char *file, int line)
{
    if (!strstr(text, part))
        ts_fail(file, line, "\"%s\" does not say \"%s\"", text, part);
}
