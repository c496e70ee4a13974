#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runner of the vectors finds what is wrong, and nothing else.

In broken.json the cases of kind "right" hold, those of the kinds below are skipped, and every other
one is wrong on purpose (its note says how). Files that are no vector files end with status 2.

    check_vectors.py VECTORS BROKEN_JSON
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = ["no_op", "no_policy", "words"]
# What the difference must name, besides the case.
SAID = {
    "own/offset/00": ["expected: kv 1 -> kv 1 [64, 256, 128]",
                      "sent    : kv 1 -> kv 1 [64, 192, 128]"],
    "own/pair/00": ["sent    : kv 1 -> kv 1 [64, 192, 128]"],
    "own/nothing/00": ["pieces: 0 expected, 2 sent"],
    "own/refused/00": ["refused: ", "src=2, dst=1"],
    "own/accepted/00": ["a refusal was expected"],
    "own/strict/02": ["the log lacks: State index length mismatch for swa"],
    "own/strict/03": ["component 0 tensor 0 -> component 0 tensor 0 [64, 320, 192]"],
    "own/payload/00": ["aux buffer 1: slot 5"],
    "own/malformed/00": ["malformed: kv_lens is not a list"],
    "own/malformed/02": ["malformed: decode_tp_size is negative"],
}
GARBAGE = {
    "empty": b"",
    "half": b'{"cases": [{"id": "a"',
    "binary": bytes(range(256)),
    "list": b"[]",
    "no cases": b'{"count": 3}',
    "cases that are none": b'{"cases": {"id": "a"}}',
}


def run(vectors, *files):
    done = subprocess.run([vectors, *map(str, files)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def expect(what, true, output):
    if not true:
        sys.exit(f"{what}\n{output}")


def check_broken(vectors, path):
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    ids = [c["id"] if isinstance(c, dict) else f"case {i}" for i, c in enumerate(cases)]
    kinds = [c["kind"] if isinstance(c, dict) else "" for c in cases]
    wrong = [i for i, kind in zip(ids, kinds) if kind != "right" and kind not in SKIPPED]
    status, out, _ = run(vectors, path)
    told = dict(re.findall(r"^(own/\S+|case \d+): (.*(?:\n    .*)*)", out, re.M))

    expect(f"exit status {status}", status == 1, out)
    expect(f"passed although wrong: {sorted(set(wrong) - set(told))}, failed although right: "
           f"{sorted(set(told) - set(wrong))}", sorted(told) == sorted(wrong), out)
    for name, parts in SAID.items():
        for part in parts:
            expect(f"{name} lacks {part!r}", part in told[name], out)
    skips = re.findall(r"^skipped (\w+) \(1\): \S", out, re.M)
    expect(f"skipped are {skips}", skips == SKIPPED, out)
    last = f"{kinds.count('right')} passed, {len(wrong)} failed, {len(SKIPPED)} skipped"
    expect(f"the last line is not {last!r}", out.splitlines()[-1] == last, out)


def check_garbage(vectors, folder):
    good = folder / "good"
    good.write_text('{"cases": [], "big": 99999999999999999999}', encoding="utf-8")
    expect("a file without cases", run(vectors, good) == (0, "0 passed, 0 failed, 0 skipped\n", ""),
           run(vectors, good))
    for name, content in GARBAGE.items():
        path = folder / name
        path.write_bytes(content)
        status, out, err = run(vectors, good, path)
        expect(f"{name}: status {status}", status == 2 and name in err, out + err)
        expect(f"{name}: no sum", out == "0 passed, 0 failed, 0 skipped\n", out)
    expect("a missing file", run(vectors, folder / "missing")[0] == 2, "")
    expect("no file", run(vectors)[0] == 2, "")


def main(vectors, broken):
    check_broken(vectors, Path(broken))
    with tempfile.TemporaryDirectory() as folder:
        check_garbage(vectors, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
