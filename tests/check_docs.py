#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the documents show is what the tree has.

A program in a document stands behind a line `<!-- examples/NAME.c -->` and must be, character for
character, what lies between the lines `/* shown */` and `/* end */` of that file, which the tests
build and run. A C block without such a line is an error. Links to files of the tree must lead
somewhere, and each `./dev VERB` must exist.

    check_docs.py SOURCE_ROOT
"""
import re
import sys
import textwrap
from pathlib import Path

BLOCK = re.compile(r"^(?:<!-- (\S+) -->\n)?```c\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
VERB = re.compile(r"\./dev ([a-z]+)")


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


def main(root):
    verbs = set(re.findall(r"^verb_(\w+)\(\)", (root / "dev").read_text(encoding="utf-8"), re.M))
    documents = [*root.glob("*.md"), *(root / "doc").glob("*.md")]
    problems = []
    for path in sorted(documents):
        text = path.read_text(encoding="utf-8")
        problems += problems_of(path.relative_to(root).as_posix(), text, root, verbs)
    if "<!-- examples/" not in (root / "README.md").read_text(encoding="utf-8"):
        problems.append("README.md: shows no example")
    for problem in problems:
        print(problem)
    print(f"{len(documents)} documents, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
