#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what the parts of `./dev test` found.

  summary.py count LOG    one line "passed failed skipped" from a testlog.json of Meson
  summary.py table FILE   the table of all parts and the closing line "N passed, N failed"

FILE has a line per part: name, exit status, seconds, and the three counts unless the part runs no
tests of its own; then the part itself counts as one. The exit status is 1 when anything failed.
"""
import json
import sys

SKIPPED = ("SKIP",)
PASSED = ("OK", "EXPECTEDFAIL")


def count(path):
    results = []
    try:
        with open(path, encoding="utf-8") as log:
            results = [json.loads(line)["result"] for line in log if line.strip()]
    except FileNotFoundError:
        pass  # Meson writes no log when it stops before the first test
    passed = sum(result in PASSED for result in results)
    skipped = sum(result in SKIPPED for result in results)
    return passed, len(results) - passed - skipped, skipped


def part_counts(status, counts):
    """A part that failed counts at least one failure, and one that ran nothing has not passed."""
    if not counts:
        return (1, 0, 0) if status == 0 else (0, 1, 0)
    passed, failed, skipped = counts
    if failed == 0 and (status != 0 or passed == 0):
        failed = 1
    return passed, failed, skipped


def table(path):
    total = [0, 0, 0]
    print(f"{'part':<10} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    with open(path, encoding="utf-8") as parts:
        for line in parts:
            name, status, seconds, *counts = line.split()
            counts = part_counts(int(status), [int(n) for n in counts])
            total = [a + b for a, b in zip(total, counts)]
            verdict = "" if counts[1] == 0 else "  FAILED"
            print(f"{name:<10} {counts[0]:>7} {counts[1]:>7} {counts[2]:>8} {seconds:>8}{verdict}")
    skipped = f", {total[2]} skipped" if total[2] else ""
    print(f"\n{total[0]} passed, {total[1]} failed{skipped}")
    return 0 if total[1] == 0 else 1


def main(argv):
    if len(argv) != 3 or argv[1] not in ("count", "table"):
        print(__doc__, file=sys.stderr)
        return 2
    if argv[1] == "table":
        return table(argv[2])
    print(*count(argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
