#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the shared library offers: every function that a public header declares, and nothing else.

    check_exports.py LIBPDX_SO INCLUDE_FOLDER

Exit status 77 (skip) when there is no nm.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path


def declared(folder):
    """Names marked PDX_API in the headers."""
    names = set()
    for header in sorted(Path(folder).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        names.update(re.findall(r"\bPDX_API\b[^;(]*?\b(\w+)\s*[(;\[]", text))
    return names


def main(library, folder):
    nm = shutil.which("nm") or shutil.which("llvm-nm-14")
    if not nm:
        print("skipped: there is no nm (package binutils)")
        return 77
    command = [nm, "-D", "--defined-only", library]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.strip()}
    promised = declared(folder)
    problems = [f"exported, but in no public header: {name}" for name in sorted(exported - promised)]
    problems += [f"declared, but not exported: {name}" for name in sorted(promised - exported)]
    problems += [f"public name without the prefix: {name}"
                 for name in sorted(promised) if not name.startswith("pdx_")]
    for problem in problems:
        print(problem)
    print(f"{len(exported)} names exported, {len(problems)} problems")
    return 1 if problems or not promised else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
