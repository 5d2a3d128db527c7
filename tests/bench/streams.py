#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a stream tells what a program wrote, how fast output is drained, who waits for whom.

    tests/bench/streams.py [--samples 200] [--calls 100] [--json FILE]

First byte: a program writes the time (CLOCK_MONOTONIC, the same in boxes) every few milliseconds,
the client compares it with the time at which it reads it; a pipe to the same program without a box
is the control row. Drain: 1 GiB of output, of which 64 MiB are kept, beside the bare program. Flood:
the latency of one caller alone, and while another one keeps 64 calls going; where the time of the
slowest ones went, by their Server-Timing. Journal: the two steps of a call that begin its log and
queue it, and that log, record and render its result: what the journal costs before the answer is
within them. Prints a Markdown table and writes the samples as JSON; exit code 2 when the machine was
too loaded to count.
"""
import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import bench  # quantiles, the caller, the change of user

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402
import shapes  # noqa: E402
import streamkit  # noqa: E402

PAUSE_S = 0.02
WRITER = "import os, sys, time\n" \
         "for _ in range(int(sys.argv[1])):\n" \
         f"    time.sleep({PAUSE_S})\n" \
         "    os.write(1, b't=%d;\\n' % time.monotonic_ns())\n"
TIME = re.compile(rb"t=(\d+);")
GIB = 1 << 30


def ages_of(receive):
    """Milliseconds between each time that was written and when it could be read."""
    ages, buffer = [], b""
    while piece := receive():
        now = time.monotonic_ns()
        buffer += piece
        found = list(TIME.finditer(buffer))
        ages += [(now - int(match.group(1))) / 1e6 for match in found]
        if found:
            buffer = buffer[found[-1].end():]
        if b'"exit"' in buffer:
            break
    return ages


def first_bytes(daemon, accept, samples):
    stream = streamkit.Stream(daemon, "POST", "/v1/run", {
        "command": ["python3", "-c", WRITER, str(samples)], "timeoutS": 300}, accept=accept)
    with stream:
        return ages_of(lambda: stream.connection.socket.recv(65536))


def pipe(samples):
    child = subprocess.Popen(["python3", "-c", WRITER, str(samples)], stdout=subprocess.PIPE)
    try:
        return ages_of(lambda: os.read(child.stdout.fileno(), 65536))
    finally:
        child.wait()


def drain_rates(daemon):
    """GB/s of a program that writes a GiB: bare, and in a box."""
    command = ["head", "-c", str(GIB), "/dev/zero"]
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    while os.read(child.stdout.fileno(), 65536):
        pass
    child.wait()
    bare = GIB / (time.monotonic() - started) / 1e9
    result = daemon.run(command, trackFiles=False, maxOutputBytes=1 << 20)
    return bare, GIB / (result["usage"]["wallMs"] / 1e3) / 1e9


def steps_of(reply):
    return {name: float(value) for name, value in
            re.findall(r"(\w+);dur=([\d.]+)", reply.header("Server-Timing") or "")}


def one_caller(daemon, calls, via="unix"):
    """Of each call: how long it took, the steps of that, and where its box came from."""
    found, call = [], shapes.Caller(daemon, "/v1/run", {"command": ["true"]}, via)
    with call.connection:
        for _ in range(calls):
            time.sleep(PAUSE_S)
            took = call()
            found.append((took, steps_of(call.reply), call.reply.json["usage"]["source"]))
    return found


def flood(daemon):
    """A process that keeps 16 calls going until it is ended."""
    def caller():
        with daemon.connect() as connection:
            headers = {**daemon.authorization(), "Content-Type": "application/json"}
            while True:
                connection.exchange("POST", "/v1/run", headers,
                                    harness.as_json({"command": ["true"]}))

    threads = [threading.Thread(target=caller, daemon=True) for _ in range(16)]
    for thread in threads:
        thread.start()
    threads[0].join()


def flooded(daemon, calls):
    """The same caller while another one, by its token, has 64 calls under way all the time."""
    processes = [multiprocessing.Process(target=flood, args=(daemon,)) for _ in range(4)]
    for process in processes:
        process.start()
    try:
        time.sleep(2)
        return one_caller(daemon, calls)
    finally:
        for process in processes:
            process.kill()
            process.join()


def tell_slowest(name, found):
    """Which steps make the slowest twentieth, and how many calls had to start a box."""
    slowest = sorted(found, key=lambda call: call[0])[-max(1, len(found) // 20):]
    spent = {}
    for _, steps, _ in slowest:
        for step, took in steps.items():
            spent[step] = spent.get(step, 0) + took / len(slowest)
    largest = sorted(spent.items(), key=lambda step: -step[1])[:5]
    print(f"\n{name}: {sum(call[2] == 'cold' for call in found)} of {len(found)} calls started a box; "
          "the slowest twentieth: " + ", ".join(f"{step} {took:.2f}" for step, took in largest))


def row(name, times):
    p99 = f"{bench.quantile(times, .99):.2f}" if len(times) >= 100 else "too few"
    return f"| {name} | {bench.quantile(times, .5):.3f} | {bench.quantile(times, .95):.3f} | {p99} |"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    return parser.parse_args()


def main():
    wanted = parse()
    bench.as_ordinary_user(__file__)
    if shutil.which("bwrap") is None:
        sys.exit("bwrap is not installed")
    load = os.getloadavg()[0]
    daemon = harness.Daemon(["--log-level", "warning", "--spares", "8"]).start()
    samples = {}
    try:
        first_bytes(daemon, streamkit.NDJSON, 5)
        for accept, name in ((None, "bare pipe"), (streamkit.NDJSON, "NDJSON"),
                             (streamkit.SSE, "SSE"), (None, "bare pipe")):
            found = pipe(wanted.samples) if accept is None else \
                first_bytes(daemon, accept, wanted.samples)
            samples.setdefault(f"first byte, {name}", []).extend(found)
        rates = drain_rates(daemon)
        callers = {"run true, alone": one_caller(daemon, wanted.calls),
                   "run true, beside 64 others": flooded(daemon, wanted.calls)}
        daemon.stop()
    finally:
        daemon.remove()
    samples.update({name: [call[0] for call in found] for name, found in callers.items()})
    samples["journal, in admit and record"] = [
        steps["admit"] + steps["record"] for _, steps, _ in callers["run true, alone"]]
    print(f"{os.cpu_count()} CPUs; milliseconds\n\n| row | p50 | p95 | p99 |\n|---|---|---|---|")
    for name, times in samples.items():
        print(row(name, times))
    for name, found in callers.items():
        tell_slowest(name, found)
    quiet, beside = (bench.quantile(samples[f"run true, {how}"], .99)
                     for how in ("alone", "beside 64 others"))
    print(f"\nquiet caller's p99 beside a flood: {beside / quiet:.1f} times that alone (bound 3)")
    journal = bench.quantile(samples["journal, in admit and record"], .5)
    print(f"\njournal: at most {journal:.3f} ms of a call's latency (p50, bound 0.1)")
    print(f"\n1 GiB of output: {rates[0]:.2f} GB/s bare, {rates[1]:.2f} GB/s in a box")
    control = samples["first byte, bare pipe"]
    disturbed = load > os.cpu_count() * 0.75 or bench.quantile(control, .95) > 1
    print("\n" + ("no verdict: the machine was busy" if disturbed else "quiet enough to count"))
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            json.dump({"samples": samples, "drain": rates, "load": load}, file)
    return 2 if disturbed else 0


if __name__ == "__main__":
    sys.exit(main())
