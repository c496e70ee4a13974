/* SPDX-License-Identifier: Apache-2.0
 *
 * The config.json texts of presets/, compiled in by presets.py.
 */
#ifndef PDX_TOOL_PRESET_H
#define PDX_TOOL_PRESET_H

/* In the order of tool_preset_names (model.h), NULL-terminated. */
extern const char *const tool_preset_texts[];

#endif
