/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's config.json as a checked source of values: each getter either
 * delivers a value within its limits or says in one sentence which file, which
 * key, what is there and what is needed.
 */
#ifndef PDX_TOOL_CONFIG_H
#define PDX_TOOL_CONFIG_H

#include <pdx/error.h>

#define TOOL_CONFIG_MAX ((size_t)1 << 20) /* bytes of a config.json */

struct json_t;

struct tool_config {
    struct json_t *root;    /* owned */
    struct json_t *section; /* the object that keys are looked up in; inside root */
    const char *prefix;     /* "" or "text_config."; for messages */
    const char *name;       /* of the file, for messages; borrowed */
};

/* Parses. Errors: PDX_EINVAL (too long, no JSON: line and column, no object), PDX_ENOMEM. */
int tool_config_open(struct tool_config *c, const char *json, size_t len, const char *name,
                     struct pdx_error *why);
void tool_config_close(struct tool_config *c);

/* Continues in the object at `key`; prefix is `key` with a dot behind it. */
int tool_config_enter(struct tool_config *c, const char *key, const char *prefix,
                      struct pdx_error *why);

/* Whether there is such a key with a value other than null. */
bool tool_config_has(const struct tool_config *c, const char *key);

/* A whole number in [min, max]. */
int tool_config_uint(const struct tool_config *c, const char *key, uint32_t min, uint32_t max,
                     uint32_t *ret, struct pdx_error *why);
/* The same, or `otherwise` when the key is not there. */
int tool_config_uint_or(const struct tool_config *c, const char *key, uint32_t min, uint32_t max,
                        uint32_t otherwise, uint32_t *ret, struct pdx_error *why);
/* A string; lives as long as the configuration. */
int tool_config_string(const struct tool_config *c, const char *key, const char **ret,
                       struct pdx_error *why);
/* Checks that there is an array of n strings at `key`. */
int tool_config_strings(const struct tool_config *c, const char *key, size_t n,
                        struct pdx_error *why);
/* String i of an array that tool_config_strings accepted. */
const char *tool_config_string_at(const struct tool_config *c, const char *key, size_t i);
/* Says that the value at `key`, or entry i of the array there, must be `need`; returns PDX_EINVAL.
 */
int tool_config_refuse(const struct tool_config *c, const char *key, const char *need,
                       struct pdx_error *why);
int tool_config_refuse_at(const struct tool_config *c, const char *key, size_t i, const char *need,
                          struct pdx_error *why);

#endif
