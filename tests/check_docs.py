#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the documents show is what the tree has.

A program in a document stands behind a line `<!-- examples/NAME.c -->` and must be, character for
character, what lies between the lines `/* shown */` and `/* end */` of that file, which the tests
build and run. A C block without such a line is an error. Links to files of the tree must lead
somewhere, and each `./dev VERB` must exist. The tables of error codes, counters and engine options
must name exactly what the headers have, with the values and defaults that the library has; the
architectures must be those that the command knows.

    check_docs.py SOURCE_ROOT SHOW_OPTS
"""
import re
import subprocess
import sys
import textwrap
from pathlib import Path

BLOCK = re.compile(r"^(?:<!-- (\S+) -->\n)?```c\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
VERB = re.compile(r"\./dev ([a-z]+)")
ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.M)
COUNTERS = ("pdx_engine_counters", "pdx_peer_counters", "pdx_lane_info", "pdx_region_info",
            "pdx_route_counters")


def shown_part(text):
    """What an example shows, or None."""
    match = re.search(r"^[ \t]*/\* shown \*/\n(.*?)^[ \t]*/\* end \*/$", text, re.M | re.S)
    return textwrap.dedent(match.group(1)).strip("\n") if match else None


def problems_of(name, text, root, verbs):
    for match in BLOCK.finditer(text):
        source, block = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        if not source:
            yield f"{name}:{line}: a C block that names no example"
        elif not (root / source).is_file():
            yield f"{name}:{line}: there is no {source}"
        elif shown_part((root / source).read_text(encoding="utf-8")) != block.strip("\n"):
            yield f"{name}:{line}: differs from what {source} shows"
    for match in LINK.finditer(text):
        if not ((root / name).parent / match.group(1)).exists():
            yield f"{name}: link to {match.group(1)}, which does not exist"
    for verb in sorted(set(VERB.findall(text)) - verbs):
        yield f"{name}: there is no ./dev {verb}"


def rows(text, heading):
    """The rows of the section's tables that begin with a name: (name, the other cells)."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    return [(name, [cell.strip() for cell in rest.split("|")])
            for name, rest in ROW.findall(section.group(1) if section else "")]


def members_of(struct, header):
    """The names of a struct's members, in order."""
    body = re.search(rf"^struct {struct} {{$(.*?)^}};$", header, re.M | re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [re.search(r"(\w+)(?:\[\w+\])?\s*$", part).group(1)
            for part in body.split(";") if part.strip()]


def differences(what, documented, actual):
    for name in actual:
        if documented.count(name) != 1:
            yield f"{what}: {name} stands there {documented.count(name)} times"
    for name in documented:
        if name not in actual:
            yield f"{what}: {name} does not exist"


def error_problems(root):
    header = (root / "include/pdx/error.h").read_text(encoding="utf-8")
    enum = re.search(r"^enum pdx_err {$(.*?)^};$", header, re.M | re.S).group(1)
    values = dict(re.findall(r"\b(PDX_\w+) = (-?\d+)", enum))
    table = (root / "src/base/error.c").read_text(encoding="utf-8")
    classes = dict(re.findall(r"\[-(PDX_\w+)\] = {\"PDX_\w+\", PDX_CLASS_(\w+)}", table))
    documented = rows((root / "doc/errors.md").read_text(encoding="utf-8"), "Codes")
    yield from differences("doc/errors.md", [name for name, _ in documented], list(values))
    for name, cells in documented:
        if name in values and cells[:2] != [values[name], classes[name].lower()]:
            yield f"doc/errors.md: {name} is {values[name]} and {classes[name].lower()}"


def architecture_problems(root):
    table = (root / "src/tool/model_arch.c").read_text(encoding="utf-8")
    documented = rows((root / "doc/command.md").read_text(encoding="utf-8"), "Models")
    yield from differences("doc/command.md", [name for name, _ in documented],
                           re.findall(r'^    {"(\w+)", layers_', table, re.M))


def counter_problems(root):
    headers = "".join(path.read_text(encoding="utf-8")
                      for path in sorted((root / "include/pdx").glob("*.h")))
    text = (root / "doc/counters.md").read_text(encoding="utf-8")
    for struct in COUNTERS:
        heading = re.search(rf"^## (\w+)\n(?:(?!^## ).*\n)*?.*`struct {struct}`", text, re.M)
        if not heading:
            yield f"doc/counters.md: no section for struct {struct}"
            continue
        documented = [name for name, _ in rows(text, heading.group(1))]
        yield from differences(f"doc/counters.md, {struct}", documented,
                               members_of(struct, headers))


def duration(ns):
    """Nanoseconds as the documents write them."""
    for length, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if ns and ns % length == 0:
            return f"{ns // length} {unit}"
    return f"{ns} ns" if ns else "0"


def option_problems(root, show_opts):
    header = (root / "include/pdx/engine.h").read_text(encoding="utf-8")
    output = subprocess.run([show_opts], check=True, stdout=subprocess.PIPE, text=True).stdout
    defaults = dict(line.split(" ", 1) for line in output.splitlines())
    documented = rows((root / "doc/semantics.md").read_text(encoding="utf-8"),
                      r"\d+\. Options of an engine")
    members = members_of("pdx_engine_opts", header)
    yield from differences("tests/show_opts.c", list(defaults), members)
    yield from differences("doc/semantics.md", [name for name, _ in documented], members)
    for name, cells in documented:
        default = defaults.get(name, "")
        if name.endswith("_ns") and default:
            default = duration(int(default))
        if cells[0] != default:
            yield f"doc/semantics.md: the default of {name} is {default}, not {cells[0]}"


def main(root, show_opts):
    verbs = set(re.findall(r"^verb_(\w+)\(\)", (root / "dev").read_text(encoding="utf-8"), re.M))
    documents = [*root.glob("*.md"), *(root / "doc").glob("*.md")]
    problems = []
    for path in sorted(documents):
        text = path.read_text(encoding="utf-8")
        problems += problems_of(path.relative_to(root).as_posix(), text, root, verbs)
    if "<!-- examples/" not in (root / "README.md").read_text(encoding="utf-8"):
        problems.append("README.md: shows no example")
    problems += [*error_problems(root), *counter_problems(root), *architecture_problems(root),
                 *option_problems(root, show_opts)]
    for problem in problems:
        print(problem)
    print(f"{len(documents)} documents, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
