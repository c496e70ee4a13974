/* SPDX-License-Identifier: Apache-2.0
 *
 * What every other public header needs: the export mark, the time units and
 * the rule by which public structs grow.
 *
 * Handles and result pointers (ret_...) must not be NULL unless a function says that it takes NULL.
 *
 * Structs whose first member is `size` may gain members at their end in later
 * versions. Their _init function (or _INIT macro) sets `size` and the
 * defaults; the library reads only the first `size` bytes and takes the
 * defaults for the rest, so a program built against an older header keeps
 * working. The _INIT macros name every member's value in order, so that C++17
 * takes them too.
 */
#ifndef PDX_API_H
#define PDX_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PDX_BEGIN_DECLS extern "C" {
#define PDX_END_DECLS   }
#else
#define PDX_BEGIN_DECLS
#define PDX_END_DECLS
#endif

#if defined(__GNUC__)
#define PDX_API __attribute__((visibility("default")))
#else
#define PDX_API
#endif

/* Durations are nanoseconds in uint64_t; points in time are CLOCK_MONOTONIC nanoseconds. */
#define PDX_USEC    UINT64_C(1000)
#define PDX_MSEC    UINT64_C(1000000)
#define PDX_SEC     UINT64_C(1000000000)
#define PDX_FOREVER UINT64_MAX

PDX_BEGIN_DECLS

/* The version of the library that is loaded, "major.minor.patch".
 * Thread: any. Lifetime: the string is static. Errors: none. */
PDX_API const char *pdx_version(void);

PDX_END_DECLS

#endif
