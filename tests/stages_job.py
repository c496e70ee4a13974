#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs pdx decode and pdx prefill with models split over tensor-parallel ranks and pipeline stages:
every preset at every combination that is promised, and what is peculiar to stages.

    stages_job.py PDX CASE [ARG...]
"""
import json
import re
import sys

sys.dont_write_bytecode = True  # job.py lies in the source tree
from job import COMPONENTS, IO, Decode, Prefill, Process, Proxy, expect, run, tiny


def case_matrix(model):
    """One preset at every combination of sizes that is promised."""
    requests = 1 if "mamba" in COMPONENTS[model] else 2  # a state is tens of MiB
    moved = {}
    for tp, pp in (("1:1", "1:1"), ("2:4", "1:1"), ("4:2", "1:1"), ("8:1", "1:1"), ("1:1", "2:1"),
                   ("2:1", "2:1")):
        p = run(*tiny(model, requests=requests), "--tp", tp, "--pp", pp,
                components=COMPONENTS[model])
        print(f"{model}, TP {tp}, PP {pp}: {p['bytes']} bytes verified, {p['seconds']:.3f} s")
        expect(p["requests"] == requests and all(s["bytes"] > 0 for s in p["stages"]), p["stages"])
        moved[tp, pp] = p["bytes"]
    # However prefill splits it, one decode rank gets the whole of it.
    whole = {size for (tp, pp), size in moved.items() if tp.endswith(":1")}
    expect(len(whole) == 1 and min(moved.values()) == min(whole), moved)


def case_stages():
    """Stages on both sides, and layers that do not come out even."""
    p = run(*tiny("Jamba-1.5-Mini"), "--tp", "2:1", "--pp", "2:2",
            components=["kv", "mamba", "aux"], decode_args=["--tp", "1", "--pp", "2"])
    transfers = {c["component"]: c["transfers"] for c in p["components"]}
    # Each stage sends aux to its own, and one of its two ranks does.
    expect(transfers == {"kv": 8, "mamba": 8, "aux": 4}, transfers)
    p = run(*tiny("Qwen3-Next-80B-A3B", requests=1), "--tp", "1:2", "--pp", "3:3",
            components=["kv", "mamba", "aux"])
    p = run(*tiny("DeepSeek-V3.2"), "--tp", "4:2", "--pp", "4:1", components=["kv", "dsa", "aux"])
    expect([s["end_layer"] for s in p["stages"]] == [15, 30, 45, 61], p["stages"])
    # Of the four prefill ranks of a stage two send, and aux comes from the last stage only.
    transfers = {c["component"]: c["transfers"] for c in p["components"]}
    expect(transfers == {"kv": 16, "dsa": 16, "aux": 4}, transfers)
    Process("demo", "--model", "gpt-oss-120b", "--tp", "2:1", "--pp", "2:1", "--io", IO, "--",
            "--generate", "2", "--max-tokens", "100").end(0).said(
                "TP 2 x PP 2 to TP 1", "stage 0, layers 0 to 17: ", "stage 1, layers 18 to 35: ",
                "every byte verified", "both processes agree")


def case_stages_without():
    """Stages that have no layer with a KV cache, or none of a state, or nothing at all."""
    for model, tp, pp, empty in (
            ("Jamba-1.5-Mini", "2:1", "8:1", []), ("Jamba-1.5-Mini", "2:2", "8:8", []),
            ("Jamba-1.5-Mini", "2:4", "32:1", []), ("gpt-oss-120b", "2:1", "36:1", []),
            ("gpt-oss-120b", "1:2", "36:36", []),
            # A stage a layer; these are MLPs, and the last one sends aux.
            ("Nemotron-H-8B", "1:1", "52:1",
             [i for i, kind in enumerate("M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-")
              if kind == "-" and i != 51])):
        p = run(*tiny(model, requests=1), "--tp", tp, "--pp", pp, components=COMPONENTS[model])
        if pp.endswith(":1"):
            got = [i for i, s in enumerate(p["stages"]) if s["bytes"] == 0]
            expect(got == empty, f"{model} at PP {pp}: stages {got} sent nothing, not {empty}")


def retold(change):
    """A job of two stages whose "sent" messages are changed on the way."""
    def watch(line):
        message = json.loads(line)
        if message["op"] != "sent":
            return line
        return json.dumps(change(message)).encode() + b"\n"

    decode = Decode()
    proxy = Proxy(decode.address, watch)
    return Prefill(proxy.address, *tiny("gpt-oss-120b"), "--inflight", "1", "--pp", "2:1"), decode


def case_stages_missing():
    """Decode judges a request when each of its stages has told that it is done, not before."""
    prefill, decode = retold(lambda sent: {**sent, "stage": 1})
    prefill.end(1).said("sent stage 1 of request 0, which has 2 stages, twice")
    decode.end(1).said("sent stage 1 of request 0, which has 2 stages, twice", '"ok":false')
    prefill, decode = retold(lambda sent: {**sent, "stage": sent["stage"] + 1})
    prefill.end(1).said("sent stage ", " of request 0, which has 2 stages")
    decode.end(1)
    # One that could not send makes the request bad, and its place can be used again.
    for stage in 0, 1:
        prefill, decode = retold(lambda sent: {**sent, "ok": (sent["stage"], sent["room"]) !=
                                               (stage, 0), "text": "it is lost"})
        prefill.end(1)
        decode.end(1)
        for side in prefill, decode:
            verdict = json.loads(side.out)["verdict"]
            expect("1 good, 1 bad" in verdict and "request 0: it is lost" in verdict, verdict)
        sent, compared = json.loads(prefill.out)["bytes"], json.loads(decode.out)["verified_bytes"]
        expect(sent == 2 * compared > 0, f"{compared} of {sent} bytes compared, not half of them")


def case_stages_corrupt():
    """A changed byte is found whichever stage sends it."""
    # Of two stages either may be the one; what is changed is always something that is sent.
    stages = set()
    for seed in range(6):
        decode = Decode()
        prefill = Prefill(decode.address, *tiny("gpt-oss-120b"), "--tp", "2:1", "--pp", "2:1",
                          "--seed", str(seed), "--corrupt", "0").end(1)
        decode.end(1)
        verdict = json.loads(prefill.out)["verdict"]
        expect("request 0: rank 0, component " in verdict, verdict)
        layer = re.search(r", layer (\d+),", verdict)
        stages.add(int(layer.group(1)) // 18 if layer else 1)
    expect(stages == {0, 1}, f"stages {stages}")


def case_swapped():
    """Layers that prefill calls by each other's numbers arrive at the wrong places. All bytes are
    right but for that, and it is found."""
    for model, tp, pp in (("Llama-3.1-70B", "1:1", "1:1"), ("Qwen3-Next-80B-A3B", "2:1", "2:1"),
                          ("DeepSeek-V3.2", "2:4", "4:1"), ("gpt-oss-120b", "1:1", "2:2")):
        decode = Decode()
        prefill = Prefill(decode.address, *tiny(model, requests=1), "--tp", tp, "--pp", pp,
                          "--swap-layers").end(1)
        decode.end(1)
        for side in prefill, decode:
            verdict = json.loads(side.out)["verdict"]
            for part in ("FAILED: 0 good, 1 bad", "request 0: rank 0, component kv, tensor ",
                         ", layer ", ", offset 0: expected 0x"):
                expect(part in verdict, f"{part!r} is not in {verdict!r}")


if __name__ == "__main__":
    globals()["case_" + sys.argv[2]](*sys.argv[3:])
