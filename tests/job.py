# SPDX-License-Identifier: Apache-2.0
"""What the tests of the main job have in common: pdx decode and pdx prefill as processes, and one
session of the two whose books must be in order.

A test program that imports this is called with the path of pdx as its first argument.
"""
import json
import os
import socket
import subprocess
import sys
import threading

PATIENCE = 100  # seconds; generous, for machines that do other things as well
IO = os.environ.get("PDX_TEST_IO", "auto")
PDX = sys.argv[1]


class Process:
    def __init__(self, *args):
        self.args = args
        self.process = subprocess.Popen([PDX, *args], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def end(self, status):
        """Waits for the end and expects an exit status; keeps the output."""
        try:
            self.out, self.err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.out, self.err = self.process.communicate()
            raise AssertionError(f"pdx {self.args} does not end\n{self.out}{self.err}")
        got = self.process.returncode
        expect(got == status, f"pdx {' '.join(self.args)}: status {got}, expected {status}\n"
                              f"{self.out}{self.err}")
        return self

    def said(self, *parts):
        for part in parts:
            expect(part in self.out + self.err,
                   f"pdx {' '.join(self.args)} did not say {part!r}:\n{self.out}{self.err}")


class Decode(Process):
    def __init__(self, *args, once=True):
        super().__init__("decode", "--listen", "127.0.0.1:0", "--io", IO, "--json",
                         *(["--once"] if once else []), *args)
        line = self.process.stderr.readline()
        expect(line.startswith("listening on "), line + self.process.stderr.read()
               if not line else line)
        self.address = line.split()[-1]


class Prefill(Process):
    def __init__(self, address, *args):
        super().__init__("prefill", "--connect", address, "--io", IO, "--json", *args)


class Proxy:
    """Passes lines between one prefill and one decode; `watch` sees each one and may change it."""

    def __init__(self, decode_address, watch):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.decode_address = decode_address
        self.watch = watch
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        host, port = self.decode_address.rsplit(":", 1)
        decode = socket.create_connection((host, int(port)))
        prefill = self.listener.accept()[0]
        back = threading.Thread(target=self.copy, args=(decode, prefill), daemon=True)
        back.start()
        self.copy(prefill, decode)
        back.join()

    def copy(self, source, sink):
        try:
            for line in source.makefile("rb"):
                line = self.watch(line)
                if line:
                    sink.sendall(line)
        except OSError:
            pass
        try:
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def expect(truth, text):
    if not truth:
        raise AssertionError(text)


def check_books(prefill, decode):
    """Every byte that decode compared was sent by exactly one transfer."""
    sent = sum(c["bytes"] for c in prefill["components"])
    expect(sent == prefill["bytes"] == prefill["verified_bytes"] == decode["verified_bytes"] > 0,
           f"bytes: sent {sent}, compared {decode['verified_bytes']}")
    expect(prefill["guard_items"] == decode["guard_items"] > 0, "no guards")
    for size in "prefill_tp", "decode_tp", "prefill_pp", "decode_pp":
        expect(prefill[size] == decode[size] > 0, f"{size}: {prefill[size]}, {decode[size]}")
    stages = prefill["stages"]
    expect(len(stages) == prefill["prefill_pp"] and sum(s["bytes"] for s in stages) == sent,
           f"stages {stages}")
    expect([0] + [s["end_layer"] for s in stages[:-1]] == [s["first_layer"] for s in stages],
           f"layers of stages {stages}")
    lanes = {lane["name"]: lane for lane in prefill["lanes"]}
    expect(lanes["tcp"]["usable"] and lanes["tcp"]["bytes_out"] >= sent, f"lanes {lanes}")


def run(*args, decode_args=(), components):
    """One session that must succeed; returns what prefill printed."""
    decode = Decode(*decode_args)
    prefill = Prefill(decode.address, *args).end(0)
    decode.end(0)
    p, d = json.loads(prefill.out), json.loads(decode.out)
    check_books(p, d)
    expect(p["ok"] and d["ok"] and p["verdict"].startswith("OK: "), p["verdict"])
    names = [c["component"] for c in p["components"]]
    expect(names == components, f"components {names}, expected {components}")
    expect(all(c["segments"] > 0 and c["p50_us"] > 0 and c["failed"] == 0
               for c in p["components"]), p["components"])
    if IO != "auto":
        expect(IO in p["io"] and IO in d["io"], f"io {p['io']} {d['io']}")
    return p


def small(model, tokens, requests):
    return ["--model", model, "--generate", str(requests), "--max-tokens", str(tokens)]


COMPONENTS = {
    "DeepSeek-V3.2": ["kv", "dsa", "aux"],
    "Gemma-3-27B": ["kv", "swa", "aux"],
    "Jamba-1.5-Mini": ["kv", "mamba", "aux"],
    "Llama-3.1-70B": ["kv", "aux"],
    "Nemotron-H-8B": ["kv", "mamba", "aux"],
    "Qwen3-Next-80B-A3B": ["kv", "mamba", "aux"],
    "gpt-oss-120b": ["kv", "swa", "aux"],
}


def tiny(model, tokens=100, requests=2):
    return [*small(model, tokens, requests), "--page-size", "16", "--inflight", str(requests)]
