#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the pure folders, src/engine/proto and src/state/plan, stay pure.

Their objects may call the memory and string functions of the C library, each other and the leaf
helpers of src/base; nothing that allocates, reads a clock, makes a system call or keeps state.

    check_pure.py LIBPDX_A

Objects are recognised by the name that Meson gives them: engine_proto_frame.c.o is
src/engine/proto/frame.c. Exit status 77 (skip) when there is no nm.
"""
import re
import shutil
import subprocess
import sys

PURE = re.compile(r"(engine_proto|state_plan)_\w+\.c\.o")
BASE = re.compile(r"base_\w+\.c\.o")

# What a pure object may take from outside the library.
OUTSIDE = re.compile("|".join([
    r"(__)?(mem|str)[a-z]+(_chk)?", r"bcmp",  # memcpy, strlen and their checked forms
    r"__assert_fail", r"__stack_chk_fail", r"_GLOBAL_OFFSET_TABLE_",
    r"__(asan|ubsan|tsan|sanitizer|sancov|llvm|gcov|start___sancov|stop___sancov)\w*",
    r"__\w+(di|ti|si)[0-9]",  # arithmetic of the compiler's runtime
]))
# mem* and str* that allocate or depend on the locale or on hidden state.
IMPURE = re.compile(r"(__)?(strn?dup|strn?dupa|strtok|strerror\w*|strcoll|strxfrm|strsignal|strftime|memalign)")


def members(nm_output):
    """{object: (defined names, undefined names)} from the output of nm."""
    objects = {}
    current = None
    for line in nm_output.splitlines():
        head = re.fullmatch(r"(?:.*[/(])?([\w.+-]+\.o)\)?:", line.strip())
        if head:
            current = objects.setdefault(head.group(1), (set(), set()))
            continue
        fields = line.split()
        if current is None or len(fields) < 2:
            continue
        kind, name = fields[-2], fields[-1]
        if kind in "Uvw":
            current[1].add(name)
        elif kind.isupper():
            current[0].add(name)
    return objects


def problems_of(objects):
    definer = {name: obj for obj, (defined, _) in objects.items() for name in defined}
    for obj, (_, undefined) in sorted(objects.items()):
        if not PURE.fullmatch(obj):
            continue
        for name in sorted(undefined):
            home = definer.get(name)
            if home:
                allowed = PURE.fullmatch(home) or BASE.fullmatch(home)
            else:
                allowed = OUTSIDE.fullmatch(name) and not IMPURE.fullmatch(name)
            if not allowed:
                yield f"{obj} calls {name}" + (f" of {home}" if home else "")


def check_judgement():
    """The judgement itself: one object for each thing that it must find or let pass."""
    def found(text):
        return len(list(problems_of(members(text))))

    pure = "engine_proto_x.c.o:\n                 U "
    for name in ("malloc", "clock_gettime", "write", "printf", "strdup", "strtok", "snprintf", "getenv"):
        assert found(pure + name) == 1, name
    for name in ("memcpy", "strnlen", "bcmp", "__memcpy_chk", "__asan_report_load8", "__stack_chk_fail"):
        assert found(pure + name) == 0, name
    assert found("engine_engine.c.o:\n0 T pdxi_a\n\n" + pure + "pdxi_a") == 1
    assert found("base_error.c.o:\n0 T pdxi_a\n\n" + pure + "pdxi_a") == 0
    assert found("engine_engine.c.o:\n                 U malloc") == 0


def main(archive):
    check_judgement()
    nm = shutil.which("nm") or shutil.which("llvm-nm-14")
    if not nm:
        print("skipped: there is no nm (package binutils)")
        return 77
    out = subprocess.run([nm, archive], check=True, capture_output=True, text=True).stdout
    objects = members(out)
    problems = list(problems_of(objects))
    for problem in problems:
        print(problem)
    npure = sum(1 for obj in objects if PURE.fullmatch(obj))
    print(f"{npure} pure objects of {len(objects)}, {len(problems)} problems")
    return 1 if problems or npure == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
