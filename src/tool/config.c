/* SPDX-License-Identifier: Apache-2.0
 *
 * config.json through jansson. Its parser recurses at most 2048 levels deep
 * and the input is limited here, so a hostile file costs neither stack nor
 * much time.
 */
#include "tool/config.h"

#include "tool/refuse.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG_SHOWN 40 /* characters of a wrong value in a sentence */

int tool_config_open(struct tool_config *c, const char *json, size_t len, const char *name,
                     struct pdx_error *why)
{
    json_error_t e;
    json_t *root;

    if (len > TOOL_CONFIG_MAX)
        return tool_refuse(why, PDX_EINVAL, "%s is %zu bytes long; a config.json has at most %zu",
                           name, len, TOOL_CONFIG_MAX);
    root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &e);
    if (!root && json_error_code(&e) == json_error_out_of_memory)
        return tool_refuse(why, PDX_ENOMEM, "no memory to read %s", name);
    if (!root)
        return tool_refuse(why, PDX_EINVAL, "%s is not JSON: line %d, column %d: %s", name, e.line,
                           e.column, e.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return tool_refuse(why, PDX_EINVAL,
                           "%s must hold one JSON object {...}, as config.json does", name);
    }
    *c = (struct tool_config){.root = root, .section = root, .prefix = "", .name = name};
    return 0;
}

void tool_config_close(struct tool_config *c)
{
    json_decref(c->root);
    c->root = NULL;
}

bool tool_config_has(const struct tool_config *c, const char *key)
{
    json_t *v = json_object_get(c->section, key);

    return v && !json_is_null(v);
}

/* What stands at a key, for a sentence: "missing", "an array", "-3", "\"long string...". */
static const char *config_show(const json_t *v, char buf[CONFIG_SHOWN + 4])
{
    char *text;

    if (!v)
        return "missing";
    if (json_is_object(v))
        return "an object";
    if (json_is_array(v))
        return "an array";
    text = json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    if (!text)
        return "something else";
    (void)snprintf(buf, CONFIG_SHOWN + 4, "%.*s%s", CONFIG_SHOWN, text,
                   strlen(text) > CONFIG_SHOWN ? "..." : "");
    free(text);
    return buf;
}

int tool_config_refuse(const struct tool_config *c, const char *key, const char *need,
                       struct pdx_error *why)
{
    char buf[CONFIG_SHOWN + 4];

    return tool_refuse(why, PDX_EINVAL, "%s: key \"%s%s\" is %s; it must be %s", c->name, c->prefix,
                       key, config_show(json_object_get(c->section, key), buf), need);
}

int tool_config_refuse_at(const struct tool_config *c, const char *key, size_t i, const char *need,
                          struct pdx_error *why)
{
    const json_t *array = json_object_get(c->section, key);
    char buf[CONFIG_SHOWN + 4];

    return tool_refuse(why, PDX_EINVAL, "%s: entry %zu of key \"%s%s\" is %s; it must be %s",
                       c->name, i, c->prefix, key, config_show(json_array_get(array, i), buf),
                       need);
}

int tool_config_enter(struct tool_config *c, const char *key, const char *prefix,
                      struct pdx_error *why)
{
    json_t *v = json_object_get(c->section, key);

    if (!json_is_object(v))
        return tool_config_refuse(c, key, "an object with the language model's keys", why);
    c->section = v;
    c->prefix = prefix;
    return 0;
}

int tool_config_uint(const struct tool_config *c, const char *key, uint32_t min, uint32_t max,
                     uint32_t *ret, struct pdx_error *why)
{
    json_t *v = json_object_get(c->section, key);
    char need[64];

    if (json_is_integer(v) && json_integer_value(v) >= min && json_integer_value(v) <= max) {
        *ret = (uint32_t)json_integer_value(v);
        return 0;
    }
    (void)snprintf(need, sizeof need, "a whole number from %u to %u", min, max);
    return tool_config_refuse(c, key, need, why);
}

int tool_config_uint_or(const struct tool_config *c, const char *key, uint32_t min, uint32_t max,
                        uint32_t otherwise, uint32_t *ret, struct pdx_error *why)
{
    if (tool_config_has(c, key))
        return tool_config_uint(c, key, min, max, ret, why);
    *ret = otherwise;
    return 0;
}

int tool_config_string(const struct tool_config *c, const char *key, const char **ret,
                       struct pdx_error *why)
{
    json_t *v = json_object_get(c->section, key);

    if (!json_is_string(v))
        return tool_config_refuse(c, key, "a string", why);
    *ret = json_string_value(v);
    return 0;
}

int tool_config_strings(const struct tool_config *c, const char *key, size_t n,
                        struct pdx_error *why)
{
    json_t *v = json_object_get(c->section, key);

    if (!json_is_array(v))
        return tool_config_refuse(c, key, "an array of strings", why);
    if (json_array_size(v) != n)
        return tool_refuse(why, PDX_EINVAL, "%s: key \"%s%s\" has %zu entries; it must have %zu",
                           c->name, c->prefix, key, json_array_size(v), n);
    for (size_t i = 0; i < n; i++) {
        if (!json_is_string(json_array_get(v, i)))
            return tool_config_refuse_at(c, key, i, "a string", why);
    }
    return 0;
}

const char *tool_config_string_at(const struct tool_config *c, const char *key, size_t i)
{
    return json_string_value(json_array_get(json_object_get(c->section, key), i));
}
