#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs pdx decode and pdx prefill as two processes, at sizes that take a second or two.

    main_job.py PDX CASE

The cases that break things put a proxy between the two on their side channel: it sees what they
tell each other, so it knows when to kill one of them, and it can say nonsense in its place. The
data takes its own way.
"""
import json
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True  # job.py lies in the source tree
from job import IO, PATIENCE, PDX, Decode, Prefill, Process, Proxy, check_books, expect, run, small

ROOT = Path(__file__).resolve().parent.parent


def case_equal():
    p = run(*small("Llama-3.1-70B", 200, 6), "--tp", "2:2", components=["kv", "aux"])
    expect(p["requests"] == 6, "not all requests were sent")
    expect(p["components"][0]["transfers"] == 12, "one KV transfer for each request and rank")


def case_tp_down():
    # Two KV heads on four prefill ranks: two of them hold copies, and one of those sends.
    p = run(*small("Qwen3-Next-80B-A3B", 300, 3), "--tp", "4:2", components=["kv", "mamba", "aux"])
    transfers = {c["component"]: c["transfers"] for c in p["components"]}
    expect(transfers == {"kv": 6, "mamba": 12, "aux": 6}, transfers)


def case_tp_up():
    p = run(*small("Qwen3-Next-80B-A3B", 300, 3), "--tp", "2:4", components=["kv", "mamba", "aux"])
    transfers = {c["component"]: c["transfers"] for c in p["components"]}
    expect(transfers == {"kv": 12, "mamba": 12, "aux": 12}, transfers)


def case_mla_dsa():
    for tp in "1:1", "4:2", "1:2":
        run(*small("DeepSeek-V3.2", 400, 2), "--tp", tp, components=["kv", "dsa", "aux"])


def case_swa():
    for tp in "1:1", "4:2", "2:4":
        run(*small("gpt-oss-120b", 600, 4), "--tp", tp, components=["kv", "swa", "aux"])
    run(*small("Gemma-3-27B", 300, 1), "--tp", "4:8", components=["kv", "swa", "aux"])


def case_mamba():
    run(*small("Jamba-1.5-Mini", 500, 3), "--tp", "2:1", components=["kv", "mamba", "aux"])
    run(*small("Nemotron-H-8B", 300, 2), "--tp", "1:4", components=["kv", "mamba", "aux"])


def case_trace():
    """A trace file, cut by --max-tokens and by --mem, with the timestamps kept."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_text("".join(json.dumps({"timestamp": 100 + i * 30, "input_length": n,
                                             "output_length": 1}) + "\n"
                                 for i, n in enumerate([10, 5000, 64, 900, 1])))
        p = run("--model", "gpt-oss-120b", "--trace", str(trace), "--max-tokens", "2000",
                "--rate", "real", "--inflight", "3", decode_args=["--mem", "48MiB"],
                components=["kv", "swa", "aux"])
        notes = "\n".join(p["notes"])
        expect("1 of 5 requests cut to 2000 tokens (3000 tokens in all): --max-tokens" in notes,
               notes)
        expect("no more fits into the pools of decode" in notes, notes)
        expect(p["requests"] == 5 and p["seconds"] >= 0.12, "timestamps were not kept")
        p = run("--model", "gpt-oss-120b", "--trace", str(trace), "--requests", "2",
                components=["kv", "swa", "aux"])
        expect(p["requests"] == 2 and p["tokens"] == 5010, "--requests")


def case_corrupt():
    """A byte that changes on the way is found and named, by both sides."""
    for seed in "1", "2", "3":
        decode = Decode()
        prefill = Prefill(decode.address, *small("Jamba-1.5-Mini", 200, 3), "--tp", "2:1",
                          "--seed", seed, "--corrupt", "1").end(1)
        decode.end(1)
        for verdict in json.loads(prefill.out)["verdict"], json.loads(decode.out)["verdict"]:
            for part in ("FAILED: 2 good, 1 bad", "request 1: rank 0, component ", ", tensor ",
                         ", offset ", ": expected 0x", ", found 0x"):
                expect(part in verdict, f"{part!r} is not in {verdict!r}")
            expect((", layer " in verdict) == ("component aux" not in verdict), verdict)


def broken_by(what):
    """Runs a job that is too long and breaks it by what(line, prefill, decode) once a verdict has
    passed, so that both sides are busy. Returns both processes."""
    seen = queue.Queue()
    sides = {}
    ready = threading.Event()

    def watch(line):
        if b'"verdict"' in line and not seen.qsize():
            ready.wait(PATIENCE)
            seen.put(line)
            return what(line, **sides)
        return line

    sides["decode"] = Decode()
    proxy = Proxy(sides["decode"].address, watch)
    sides["prefill"] = Prefill(proxy.address, *small("gpt-oss-120b", 4000, 100000))
    ready.set()
    return sides["prefill"], sides["decode"]


def skimmed(change):
    """A short job whose summary is changed on the way."""
    def watch(line):
        if b'"summary"' not in line:
            return line
        return json.dumps(change(json.loads(line))).encode() + b"\n"

    decode = Decode()
    proxy = Proxy(decode.address, watch)
    return Prefill(proxy.address, *small("gpt-oss-120b", 100, 2)), decode


def case_prefill_killed():
    def kill(line, prefill, decode):
        prefill.process.kill()
        return line

    prefill, decode = broken_by(kill)
    prefill.end(-signal.SIGKILL)
    decode.end(1).said("prefill at 127.0.0.1:", "the connection", '"ok":false')


def case_decode_killed():
    def kill(line, prefill, decode):
        decode.process.kill()
        return line

    prefill, decode = broken_by(kill)
    decode.end(-signal.SIGKILL)
    prefill.end(1).said("decode at 127.0.0.1:", '"ok": false')


def case_nonsense():
    """Either side answers with something that is not the protocol."""
    prefill, decode = broken_by(lambda line, **sides: b"220 mail ready\n")
    prefill.end(1).said("decode at 127.0.0.1:", "is that a pdx?")
    decode.end(1).said("prefill at 127.0.0.1:", "closed the connection")
    prefill, decode = broken_by(lambda line, **sides: b'{"op":"verdict","room":987654,"ok":true,'
                                                      b'"bytes":1,"text":""}\n')
    prefill.end(1).said("a message that is not due")
    decode.end(1)
    # A decode that counts less than was sent.
    prefill, decode = skimmed(lambda summary: {**summary, "bytes": summary["bytes"] - 1})
    prefill.end(1).said("but 2 requests and")
    decode.end(0)
    prefill, decode = skimmed(lambda summary: {**summary, "requests": 1})
    prefill.end(1).said("decode compared 1 request and")
    decode.end(0)
    # A decode that is none.
    server = socket.create_server(("127.0.0.1", 0))
    prefill = Prefill("127.0.0.1:%d" % server.getsockname()[1], *small("gpt-oss-120b", 10, 1))
    stranger = server.accept()[0]
    stranger.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    prefill.end(1).said("is that a pdx?")


def say(address, data):
    """Connects, says something, and reads to the end."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), PATIENCE) as s:
        s.settimeout(PATIENCE)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass


def case_strangers():
    """Whoever does not speak the protocol is turned away and does not end a decode --once."""
    decode = Decode()
    say(decode.address, b"GET / HTTP/1.0\r\n\r\n")
    say(decode.address, b"")
    say(decode.address, b"x" * 100000)
    say(decode.address, b'{"op":"announce","room":1,"tokens":1}\n')
    say(decode.address, b'{"op":"hello","protocol":999}\n')
    say(decode.address, b'{"op":"\\u001b[2J"}\n')
    say(decode.address, b'\x1b[2J\n')
    Prefill(decode.address, *small("gpt-oss-120b", 100, 1)).end(0)
    decode.end(0).said("is that a pdx?", "did not begin with a hello", "use the same pdx")
    expect("\x1b" not in decode.err, f"a stranger moves the cursor: {decode.err!r}")


def case_streams():
    """Closed standard streams: the numbers go to no socket, and nothing is printed into one."""
    port = socket.create_server(("127.0.0.1", 0))
    address = "127.0.0.1:%d" % port.getsockname()[1]
    port.close()
    decode = subprocess.Popen(f'exec "{PDX}" decode --listen {address} --once --io {IO} '
                              "<&- >&- 2>&-", shell=True)
    Prefill(address, *small("gpt-oss-120b", 100, 2)).end(0)
    expect(decode.wait(PATIENCE) == 0, f"decode ends with {decode.returncode}")


def case_silent_host():
    """A host that answers no SYN costs seconds, not the two minutes of connect(2)."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    address = server.getsockname()
    waiting = [socket.socket() for _ in range(4)]  # its queue is full with these
    for s in waiting:
        s.setblocking(False)
        s.connect_ex(address)
    Prefill("127.0.0.1:%d" % address[1], *small("gpt-oss-120b", 10, 1)).end(1).said(
        "no decode answers at 127.0.0.1:", "timed out")


def case_sessions():
    """A decode without --once serves one prefill after the other, of different models."""
    decode = Decode(once=False)
    for model, tp in ("gpt-oss-120b", "1:1"), ("Llama-3.1-70B", "2:1"), ("gpt-oss-120b", "1:2"):
        Prefill(decode.address, *small(model, 100, 2), "--tp", tp).end(0)
    Prefill(decode.address, *small("gpt-oss-120b", 100, 2), "--corrupt", "0").end(1)
    Prefill(decode.address, *small("gpt-oss-120b", 100, 2)).end(0)
    decode.process.terminate()
    decode.end(-signal.SIGTERM)
    verdicts = [json.loads(line)["ok"] for line in decode.out.splitlines()]
    expect(verdicts[:4] == [True, True, True, False], verdicts)


def refused(*args, say=()):
    process = Process(*args).end(2)
    process.said(*say)
    expect(process.err.count("\n") == 1, f"not one sentence: {process.err}")


def case_bad_input():
    nobody = "127.0.0.1:1"
    prefill = ["prefill", "--connect", nobody, "--model", "gpt-oss-120b"]
    refused("prefill", "--model", "no-such-model", say=["no-such-model"])
    refused("prefill", "--tp", "3:1", say=["TP size 3"])
    refused("prefill", "--model", "Llama-3.1-70B", "--tp", "1:5", say=["TP size 5"])
    refused("prefill", "--model", "DeepSeek-V3.2", "--tp", "3:2", say=["prefill TP 3", "multiple"])
    refused("prefill", "--tp", "x", say=["--tp"])
    refused("prefill", "--pp", "x", say=["--pp"])
    refused("prefill", "--pp", "65", say=["--pp"])
    refused("prefill", "--pp", "2:3", say=["prefill PP 2", "decode PP 3", "as many stages"])
    refused("prefill", "--model", "Jamba-1.5-Mini", "--pp", "33:1", say=["PP size 33", "1 to 32"])
    refused("prefill", "--tp", "32:1", "--pp", "33:1", "--model", "DeepSeek-V3.2",
            say=["makes 1056 ranks"])
    refused(*prefill, "--pp", "36:1", "--swap-layers", say=["--swap-layers", "two layers"])
    refused("prefill", "--model", "Qwen3-Next-80B-A3B", "--mem", "1MiB", say=["--mem", "1.00 MiB"])
    refused(*prefill, "--trace", "/nonexistent", say=["/nonexistent"])
    refused(*prefill, "--rate", "slow", say=["--rate"])
    refused(*prefill, "--io", "select", say=["--io"])
    refused(*prefill, "--corrupt", "16", say=["--corrupt 16"])
    refused(*prefill, "--trace", "a", "--generate", "3", say=["--trace and --generate"])
    refused("decode", "--listen", "127.0.0.1:0", "--io", "select", say=["--io"])
    refused("decode", "--listen", "256.0.0.1:0", say=["256.0.0.1"])
    refused("decode", "--listen", "127.0.0.1:0", "--bind", "203.0.113.1:0", say=["203.0.113.1"])
    # --json stays JSON whatever bytes the file's name has.
    trace = subprocess.run([PDX, *prefill, "--json", "--trace", b"/nonexistent/\xff\n"],
                           capture_output=True)
    expect(trace.returncode == 2 and "/nonexistent/??" in json.loads(trace.stdout)["verdict"],
           trace)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.jsonl"
        file.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1}\nnot json\n')
        refused(*prefill, "--trace", str(file), say=[str(file), "2"])
        file.write_text("")
        refused(*prefill, "--trace", str(file), say=[str(file)])
        config = Path(folder) / "config.json"
        config.write_text('{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2}')
        refused("prefill", "--connect", nobody, "--model", str(config), say=[str(config)])


def case_refused_by_decode():
    """What only decode can see: it says so to prefill, and both end with 2."""
    for args, decode_args, part in (
            ([], ["--model", "Llama-3.1-70B"], "their tensors differ"),
            (["--tp", "1:2"], ["--tp", "4"], "runs with --tp 4"),
            (["--pp", "2:1"], ["--pp", "2"], "at PP 1, but it runs with --pp 2"),
            ([], ["--mem", "1MiB"], "raise --mem")):
        decode = Decode(*decode_args)
        Prefill(decode.address, *small("gpt-oss-120b", 100, 1), *args).end(2).said(part)
        decode.end(2).said(part)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "own-model.json"
        config.write_text((ROOT / "presets/gpt-oss-120b.json").read_text())
        for args, status in ([], 2), (["--model", str(config)], 0):
            decode = Decode(*args)
            prefill = Prefill(decode.address, *small(str(config), 100, 1)).end(status)
            decode.end(status)
            if status:
                prefill.said('does not know prefill\'s model "own-model"', "--model and the same")
    # The engine's port in place of the rendezvous.
    server = socket.create_server(("127.0.0.1", 0))
    prefill = Prefill("127.0.0.1:%d" % server.getsockname()[1], *small("gpt-oss-120b", 100, 1))
    server.accept()[0].close()
    prefill.end(1).said("may be the port of decode's engine", "listening on")


def case_demo():
    args = ["--requests", "3", "--io", IO]
    Process("demo", *args, "--", "--max-tokens", "300").end(0).said(
        "kv", "mamba", "aux", "OK: 3 requests", "every byte verified", "both processes agree")
    demo = json.loads(Process("demo", *args, "--json", "--model", "gpt-oss-120b", "--tp", "2:1",
                              "--", "--max-tokens", "300").end(0).out)
    check_books(demo["prefill"], demo["decode"])
    Process("demo", *args, "--model", "gpt-oss-120b", "--", "--max-tokens", "300", "--corrupt",
            "2").end(1).said("demo FAILED", "request 2: rank 0, component ")
    Process("demo", *args, "--model", "gpt-oss-120b", "--", "--generate", "2", "--max-tokens",
            "100").end(0).said("OK: 2 requests")
    Process("demo", "--model", "no-such-model").end(2).said("no-such-model")
    Process("demo", "--tp", "3:1").end(2).said("TP size 3")


if __name__ == "__main__":
    globals()["case_" + sys.argv[2]]()
