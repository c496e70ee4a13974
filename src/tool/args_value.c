/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of options, read strictly: no sign, no blanks, no rest behind the
 * number, nothing that does not fit.
 */
#include "tool/args.h"

#include "tool/refuse.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_HOST_MAX 255

struct args_unit {
    const char *name;
    uint64_t factor;
};

/* Digits only, to *end. Returns false for none and for more than 64 bits. */
static bool args_digits(const char *text, char **end, uint64_t *ret)
{
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret = strtoull(text, end, 10);
    return errno == 0;
}

int tool_args_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
                   struct pdx_error *why)
{
    uint64_t v;
    char *end;

    if (!args_digits(text, &end, &v) || *end || v < min || v > max)
        return tool_refuse(why, PDX_EINVAL, "a whole number from %llu to %llu",
                           (unsigned long long)min, (unsigned long long)max);
    *ret = v;
    return 0;
}

int tool_args_real(const char *text, double *ret, struct pdx_error *why)
{
    char *end = NULL;
    double v = -1;

    /* No blanks, signs, hexadecimal floats, "inf" or "nan". */
    if (*text >= '0' && *text <= '9' && !strpbrk(text, "xXpP")) {
        errno = 0;
        v = strtod(text, &end);
    }
    if (!end || *end || errno == ERANGE || v < 0)
        return tool_refuse(why, PDX_EINVAL, "a number that is not negative, as 12 or 0.5");
    *ret = v;
    return 0;
}

/* A decimal number and one of the units; fractions are rounded down. */
static bool args_scaled(const char *text, const struct args_unit *units, size_t nunits,
                        uint64_t *ret)
{
    uint64_t whole, scaled, part = 0, place = 1;
    char *end;

    if (!args_digits(text, &end, &whole))
        return false;
    if (*end == '.') {
        const char *digit = end + 1;

        for (; *digit >= '0' && *digit <= '9'; digit++) {
            if (place >= 1000000) /* finer than a millionth of the unit is not kept */
                continue;
            part = part * 10 + (uint64_t)(*digit - '0');
            place *= 10;
        }
        if (digit == end + 1)
            return false;
        end += digit - end; /* past the fraction */
    }
    for (size_t i = 0; i < nunits; i++) {
        if (strcmp(end, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(whole, units[i].factor, &scaled) || scaled > (uint64_t)INT64_MAX)
            return false;
        /* part < place <= 10^6 and factor < 2^42: neither product nor sum overflows. */
        scaled += units[i].factor * part / place;
        if (scaled > (uint64_t)INT64_MAX)
            return false;
        *ret = scaled;
        return true;
    }
    return false;
}

int tool_args_size(const char *text, uint64_t *ret, struct pdx_error *why)
{
    static const struct args_unit units[] = {
        {"", 1},
        {"B", 1},
        {"kB", 1000},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
    };

    if (!args_scaled(text, units, sizeof units / sizeof units[0], ret))
        return tool_refuse(why, PDX_EINVAL,
                           "a size, as 4096, 64KiB, 512M, 2GiB (K, M, G, T are binary; kB, MB, GB, "
                           "TB decimal)");
    return 0;
}

int tool_args_duration(const char *text, uint64_t *ret_ns, struct pdx_error *why)
{
    static const struct args_unit units[] = {
        {"ns", 1},
        {"us", UINT64_C(1000)},
        {"ms", UINT64_C(1000000)},
        {"s", UINT64_C(1000000000)},
        {"m", UINT64_C(60000000000)},
        {"min", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
    };

    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    if (!args_scaled(text, units, sizeof units / sizeof units[0], ret_ns))
        return tool_refuse(why, PDX_EINVAL,
                           "a duration with its unit, as 500ms, 1.5s or 10m (ns, us, ms, s, m, h)");
    return 0;
}

int tool_args_address(const char *text, struct pdx_error *why)
{
    const char *colon = strrchr(text, ':');
    size_t host_len = colon ? (size_t)(colon - text) : 0;
    bool v6 = *text == '[';
    uint64_t port;
    char *end;

    if (!colon || host_len == 0 || host_len > ARGS_HOST_MAX ||
        !args_digits(colon + 1, &end, &port) || *end || port > 65535 ||
        (v6 ? host_len < 4 || colon[-1] != ']' : memchr(text, ':', host_len) != NULL))
        return tool_refuse(why, PDX_EINVAL,
                           "an address, as 10.0.0.2:7000, name:7000 or [fd00::2]:7000 (port 0 to "
                           "65535)");
    return 0;
}

int tool_args_pair(const char *text, uint64_t min, uint64_t max, uint32_t ret[2],
                   struct pdx_error *why)
{
    uint64_t a = 0, b;
    char *end;
    bool good = args_digits(text, &end, &a);

    b = a;
    if (good && *end == ':')
        good = args_digits(end + 1, &end, &b);
    if (!good || *end || a < min || a > max || b < min || b > max)
        return tool_refuse(why, PDX_EINVAL,
                           "two whole numbers from %llu to %llu, as 4:2 (prefill:decode), or one "
                           "for both",
                           (unsigned long long)min, (unsigned long long)max);
    ret[0] = (uint32_t)a;
    ret[1] = (uint32_t)b;
    return 0;
}
