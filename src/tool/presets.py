#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes presets.c: the config.json files of presets/ as C strings, sorted by name.

usage: presets.py OUTPUT PRESET.json...
"""
import json
import os
import sys


def quoted(text):
    """A C string literal a line, so that a compiler error points at the right one."""
    lines = []
    for line in text.splitlines(keepends=True):
        line = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append('    "%s"' % line)
    return "\n".join(lines)


def main(output, paths):
    paths = sorted(paths, key=lambda p: os.path.basename(p).lower())
    names = [os.path.basename(p)[: -len(".json")] for p in paths]
    texts = []
    for path in paths:
        with open(path, encoding="ascii") as f:
            texts.append(f.read())
        json.loads(texts[-1])  # a broken preset fails the build, not the user

    with open(output, "w", encoding="ascii") as out:
        out.write("/* Made by src/tool/presets.py from presets/; not to be edited. */\n")
        out.write('#include "tool/model.h"\n#include "tool/preset.h"\n\n')
        out.write("const char *const tool_preset_names[] = {\n")
        out.write("".join('    "%s",\n' % n for n in names) + "    NULL,\n};\n\n")
        out.write("const char *const tool_preset_texts[] = {\n")
        out.write("".join("%s,\n" % quoted(t) for t in texts) + "    NULL,\n};\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
