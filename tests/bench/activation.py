#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The first request of all: how long it waits for a server that it starts itself.

    tests/bench/activation.py [--rounds 31] [--bound 30]

A socket waits with nobody behind it, as systemd holds it. The first client's connection starts
`kernd serve` with the socket inherited, and is answered by it; then the same request is asked of the
server that runs. Once with a fresh state directory a round is not counted: later ones find what a
stopped server left, as after an idle exit. GET /v1/version needs no box; `run ["true"]` waits for
one too. CPU is of all threads until the answer, and hardly depends on what else the machine does.
The exit code is 1 when the bound (ms above a warm answer) was missed by the median of the first.
"""
import argparse
import json
import os
import select
import signal
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import bench  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402
import wire  # noqa: E402

REQUESTS = {
    "GET /v1/version": ("GET", "/v1/version", None),
    'run ["true"]': ("POST", "/v1/run", {"command": ["true"]}),
}
WARM = 5


def cpu_ms(pid):
    """On a processor until now, all threads (/proc/PID/task/*/schedstat: nanoseconds)."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e6


def become_server(listener, place):
    """The child: waits for the first client, then is the server (sd_listen_fds(3))."""
    waiting = select.poll()
    waiting.register(listener, select.POLLIN)
    waiting.poll()
    log = os.open(f"{place}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)  # also when it was number 3 already
    with open(f"{place}/before", "w", encoding="ascii") as file:
        file.write(str(cpu_ms(os.getpid())))
    os.execve(harness.KERND, [harness.KERND, "serve", "--state", f"{place}/state", "--runtime",
                              f"{place}/run"],
              {"PATH": "/usr/bin:/bin", "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"})


def ask(path, request):
    method, target, body = request
    data = None if body is None else json.dumps(body).encode()
    began = time.perf_counter()
    with wire.Connection(path, timeout=60) as peer:
        reply = peer.exchange(method, target, {"Content-Type": "application/json"} if data else {},
                              data)
    assert reply.status == 200, reply
    return (time.perf_counter() - began) * 1000


def one_round(place, request):
    """(first, warm, CPU until the first answer), in milliseconds."""
    path = f"{place}/socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        pid = os.fork()
        if pid == 0:
            try:
                become_server(listener, place)
            finally:
                os._exit(127)
        first = ask(path, request)
        with open(f"{place}/before", encoding="ascii") as file:
            cpu = cpu_ms(pid) - float(file.read())
        warm = statistics.median(ask(path, request) for _ in range(WARM))
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    os.unlink(path)
    return first, warm, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--bound", type=float, default=30)
    wanted = parser.parse_args()
    bench.as_ordinary_user(__file__)
    missed = False
    print("| first request of all | median | best | warm | above warm | CPU |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="kernd-bench-") as place:
        for name, request in REQUESTS.items():
            rounds = [one_round(place, request) for _ in range(wanted.rounds + 1)][1:]
            first, warm, cpu = (statistics.median(values) for values in zip(*rounds))
            missed = missed or (request[2] is None and first - warm > wanted.bound)
            print(f"| {name} | {first:.1f} | {min(row[0] for row in rounds):.1f} | {warm:.2f} | "
                  f"{first - warm:.1f} | {cpu:.1f} |", flush=True)
    print(f"\n{wanted.rounds} rounds, milliseconds; load {os.getloadavg()[0]:.1f} of "
          f"{os.cpu_count()} CPUs")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
