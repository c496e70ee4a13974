#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom, and that every source file begins with its licence.

A layer may include what its rule lists and nothing else, so that no layer reaches upwards, no
transport another, and a foreign library is touched in the one place that is made for it.

    check_layers.py SOURCE_ROOT
"""
import re
import sys
from pathlib import Path

PURE_SYSTEM = r"(std(arg|bool|def|int|noreturn)|assert|inttypes|limits|string)\.h"
ANY_SYSTEM = r"[\w./-]+\.h"

# The first rule whose folder matches a file holds: folder, headers of the project, headers in <>.
RULES = [
    ("include/pdx/", r"pdx/\w+\.h", r"std(bool|def|int)\.h"),
    ("src/base/", r"base/\w+\.h|pdx/(api|engine|error)\.h", ANY_SYSTEM),
    ("src/engine/proto/", r"base/\w+\.h|engine/proto/\w+\.h|pdx/\w+\.h", PURE_SYSTEM),
    ("src/engine/io/", r"base/\w+\.h|engine/io/\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    ("src/engine/tcp/", r"base/\w+\.h|engine/((io|mem|net|proto|tcp)/)?\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    ("src/engine/verbs/", r"base/\w+\.h|engine/((io|mem|net|proto|verbs)/)?\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    ("src/engine/local/", r"base/\w+\.h|engine/((io|mem|net|proto|local)/)?\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    # The core, its sockets and the memory kinds reach a transport through its table of hooks only.
    ("src/engine/", r"base/\w+\.h|engine/((io|mem|net|proto)/)?\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    ("src/state/plan/", r"base/\w+\.h|state/plan/\w+\.h|pdx/\w+\.h", PURE_SYSTEM),
    ("src/state/", r"base/\w+\.h|state/(plan/)?\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
    ("src/tool/", r"base/\w+\.h|tool/\w+\.h|pdx/\w+\.h", ANY_SYSTEM),
]

# Headers of other projects, and the one place that includes each.
FOREIGN = [
    (r"liburing(/.*|\.h)", r"src/engine/io/uring\.c"),
    (r"(infiniband|rdma)/.*", r"src/engine/verbs/.*"),
    (r"hip/.*", r"src/engine/mem/.*"),
    (r"msgpack(/.*|\.h)", r"src/base/(un)?pack\.c"),
    (r"jansson\.h", r"src/tool/.*"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
LICENSED = ("*.c", "*.h", "*.py", "*.sh")
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def objection(path, quoted, bracketed):
    """Why `path` must not have this include, or None. Exactly one of the two names is given."""
    name = quoted or bracketed
    for pattern, home in FOREIGN:
        if re.fullmatch(pattern, name) and not re.fullmatch(home, path):
            return f"only {home} includes <{name}>"
    for folder, project, system in RULES:
        if not path.startswith(folder):
            continue
        ours = quoted is not None or name.startswith("pdx/")
        if re.fullmatch(project if ours else system, name):
            return None
        return f"{folder} must not include {name}"
    return f"{path} is in no layer"


def check_rules():
    """The rules themselves: what each line exists for is refused, and the permitted is not."""
    wrong = [
        ("include/pdx/peer.h", None, "sys/socket.h"),
        ("include/pdx/peer.h", "base/list.h", None),
        ("src/base/list.h", "engine/engine.h", None),
        ("src/engine/proto/frame.c", None, "unistd.h"),
        ("src/engine/proto/frame.c", "engine/engine.h", None),
        ("src/engine/engine.c", "engine/tcp/conn.h", None),
        ("src/engine/engine.c", "state/route.h", None),
        ("src/engine/engine.c", None, "liburing.h"),
        ("src/engine/tcp/conn.c", "engine/verbs/qp.h", None),
        ("src/engine/tcp/conn.c", None, "infiniband/verbs.h"),
        ("src/engine/verbs/qp.c", None, "hip/hip_runtime_api.h"),
        ("src/state/route.c", "engine/engine.h", None),
        ("src/state/route.c", None, "jansson.h"),
        ("src/state/plan/kv.c", "state/route.h", None),
        ("src/tool/main.c", "engine/engine.h", None),
        ("src/base/bytes.h", None, "msgpack.h"),
        ("src/other/x.c", None, "stdio.h"),
    ]
    right = [
        ("include/pdx/peer.h", None, "pdx/api.h"),
        ("src/base/pack.c", None, "msgpack.h"),
        ("src/engine/io/uring.c", None, "liburing.h"),
        ("src/engine/tcp/conn.c", "engine/engine.h", None),
        ("src/engine/verbs/qp.c", None, "infiniband/verbs.h"),
        ("src/state/route.c", "state/plan/kv.h", None),
        ("src/tool/model.c", None, "jansson.h"),
    ]
    assert all(objection(*case) for case in wrong)
    assert not any(objection(*case) for case in right)


def main(root):
    check_rules()
    problems = []
    includes = 0
    for folder in ("include", "src"):
        for file in sorted((root / folder).rglob("*.[ch]")):
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                includes += 1
                why = objection(path, *match.groups())
                if why:
                    problems.append(f"{path}:{number}: {why}")
    for folder in ("include", "src", "tests", "fuzz", "examples", "bench"):
        for pattern in LICENSED:
            for file in sorted((root / folder).rglob(pattern)):
                head = file.read_text(encoding="utf-8").splitlines()[:2]
                if not any(LICENCE in line for line in head):
                    problems.append(f"{file.relative_to(root)}:1: no line '{LICENCE}'")
    for problem in problems:
        print(problem)
    if includes == 0:
        problems.append("no include was found: wrong folder?")
    print(f"{includes} includes, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
