#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Warm kernels beside Debian's Jupyter server, both measured over HTTP in one run.

    tests/bench/kernels.py [--rounds 300] [--pause 0.01] [--json FILE]

One caller over a keep-alive connection takes the rows in turn. The rows of Jupyter are left out
where it is not installed (apt-get install jupyter-server python3-ipykernel). Exit code 2 and "no
verdict" when the machine was disturbed; 1 when a budget of ours was missed on a quiet one.
"""
import argparse
import base64
import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

import bench
import harness
import kernelkit

ROW = "{} cell 1+1, one after the other"
BUDGETS = {ROW.format("kernd"): 0.5, "kernd cell, 8 MiB of raw output": 50,
           "kernd wake a frozen one": 5}
# What a cold open can't be without: the box, and in it an interpreter that spares itself site.
BOX, BOXED = "bwrap true", "bwrap python -S"
CELL, RAW = "1+1", "data = memoryview(b'z' * (8 << 20))\nwhile data: data = data[os.write(1, data):]"


def timed(function):
    started = time.perf_counter_ns()
    value = function()
    return (time.perf_counter_ns() - started) / 1e6, value


class Kernd:
    """One kernel of the daemon, and a kept connection to it."""

    def __init__(self, daemon):
        self.daemon = daemon
        for session in ("bench", "cold"):
            assert daemon.post("/v1/sessions", {"id": session}).status == 201
        self.kernel = kernelkit.Kernel(daemon, "bench")
        self.connection = daemon.connect()
        self.headers = {**daemon.authorization(), "Content-Type": "application/json"}
        self.kernel.cell("import os")

    def exchange(self, code):
        return self.connection.exchange("POST", f"{self.kernel.path}/cells", self.headers,
                                        harness.as_json({"code": code}))

    def cell(self, code=CELL):
        took, reply = timed(lambda: self.exchange(code))
        assert reply.status == 200 and reply.json["success"], reply
        return took

    def open(self, session="cold"):
        """No call of the session `cold` ever left a box behind that was started ahead."""
        took, kernel = timed(lambda: kernelkit.Kernel(self.daemon, session))
        kernel.delete()
        return took

    def open_spare(self):
        """From a box that the session's calls had started ahead."""
        waiting = self.daemon.result("/v1/sessions/bench/runCode", {"code": "", "language": "python"})
        assert waiting["success"], waiting
        time.sleep(0.5)
        return self.open("bench")

    def wake(self):
        kernel = kernelkit.Kernel(self.daemon, "bench", idleTimeoutS=0.05)
        kernel.wait_for("frozen")
        took, _ = timed(lambda: kernel.cell(CELL))
        kernel.delete()
        return took


class WebSocket:
    """As much of RFC 6455 as a client of Jupyter needs."""

    def __init__(self, port, path, token):
        self.socket = socket.create_connection(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Authorization: token {token}\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def _more(self):
        piece = self.socket.recv(1 << 20)
        assert piece, "the websocket ended"
        self.buffer += piece

    def _exactly(self, size):
        while len(self.buffer) < size:
            self._more()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def send(self, text):
        data = text.encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else \
            b"\xfe" + len(data).to_bytes(2, "big")
        mask = os.urandom(4)
        self.socket.sendall(b"\x81" + size + mask +
                            bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        data, last = b"", False
        while not last:
            first, size = self._exactly(2)
            last, kind = first & 0x80, first & 0x0F
            if size > 125:
                size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
            piece = self._exactly(size)
            if kind in (9, 10):
                last = False
                continue
            data += piece
        return json.loads(data)


class Jupyter:
    """A server of its own, one kernel in it, a websocket to that."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="kernd-bench-jupyter-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.token = uuid.uuid4().hex
        root = ["--allow-root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            ["jupyter-server", *root, f"--ServerApp.port={self.port}", "--ServerApp.port_retries=0",
             f"--ServerApp.token={self.token}", f"--ServerApp.root_dir={self.home}"],
            env={"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until(lambda: self.call("GET", "/api"))
        self.kernel = self.call("POST", "/api/kernels")["id"]
        self.socket = WebSocket(self.port, f"/api/kernels/{self.kernel}/channels", self.token)
        self.execute("import os")

    def until(self, attempt):
        end = time.monotonic() + 60
        while True:
            try:
                return attempt()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def call(self, method, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            body = reply.read()
        return json.loads(body) if body else None

    def execute(self, code, channel=None):
        """Until the kernel has said all: its reply, its result, and that it is idle again."""
        channel = channel or self.socket
        ident = uuid.uuid4().hex
        channel.send(json.dumps({
            "channel": "shell", "parent_header": {}, "metadata": {}, "buffers": [],
            "header": {"msg_id": ident, "msg_type": "execute_request", "username": "", "session":
                       "bench", "date": "", "version": "5.3"},
            "content": {"code": code, "silent": False, "store_history": False,
                        "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}}))
        replied = idle = False
        while not (replied and idle):
            message = channel.receive()
            if message["parent_header"].get("msg_id") == ident:
                kind = message["header"]["msg_type"]
                replied = replied or kind == "execute_reply"
                idle = idle or (kind == "status" and
                                message["content"]["execution_state"] == "idle")

    def cell(self, code=CELL):
        return timed(lambda: self.execute(code))[0]

    def open(self):
        """To the answer of the first cell: before that a kernel of Jupyter only promises."""
        def whole():
            kernel = self.call("POST", "/api/kernels")["id"]
            self.execute("0", WebSocket(self.port, f"/api/kernels/{kernel}/channels", self.token))
            return kernel
        took, kernel = timed(whole)
        self.call("DELETE", f"/api/kernels/{kernel}")
        return took

    def resident(self):
        """MiB of the kernel's process."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            children = file.read().split()
        return max(resident(pid) for pid in children)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def resident(pid):
    """MiB."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def rows_of(ours, peer):
    """{name: (function that gives milliseconds, rounds are divided by this)}"""
    rows = {bench.CONTROL: (bench.Bare(["/usr/bin/true"]), 1),
            "kernd GET /healthz": (lambda: timed(lambda: ours.connection.exchange(
                "GET", "/healthz", ours.headers))[0], 1),
            "kernd cell 1+1": (ours.cell, 1),
            "kernd cell, 8 MiB of raw output": (lambda: ours.cell(RAW), 10),
            "bare python": (bench.Bare(bench.INTERPRETERS["python"]), 5),
            BOX: (bench.Bare([*bench.BWRAP, "/usr/bin/true"]), 5),
            BOXED: (bench.Bare([*bench.BWRAP, *bench.INTERPRETERS["python"][:1], "-S", "-c", "pass"]), 5),
            "kernd kernel open": (ours.open, 5),
            "kernd kernel open, from a spare": (ours.open_spare, 20),
            "kernd wake a frozen one": (ours.wake, 60)}
    if peer is not None:
        rows["jupyter cell 1+1"] = (peer.cell, 3)
        rows["jupyter kernel open, first cell"] = (peer.open, 60)
    return rows


def measure(rows, rounds, pause):
    samples = {name: [] for name in rows}
    for number in range(rounds + bench.WARM_UP):
        for name, (row, part) in rows.items():
            if number % part == 0:
                took = row()
                time.sleep(pause)
                if number >= bench.WARM_UP or part > bench.WARM_UP:
                    samples[name].append(took)
    return samples


def in_a_row(samples, ours, peer, rounds):
    """Without pauses: what the server and the kernel cost, less of how fast idle processors wake."""
    samples[ROW.format("kernd")] = [ours.cell() for _ in range(rounds * 5)]
    if peer is not None:
        samples[ROW.format("jupyter")] = [peer.cell() for _ in range(rounds)]


def table(samples):
    lines = ["| row | p50 | p95 | p99 | samples |", "|---|---|---|---|---|"]
    for name, times in samples.items():
        p99 = f"{bench.quantile(times, .99):.2f}" if len(times) >= 100 else "too few"
        lines.append(f"| {name} | {bench.quantile(times, .5):.3f} | "
                     f"{bench.quantile(times, .95):.3f} | {p99} | {len(times)} |")
    return "\n".join(lines)


def opening(samples):
    """Where the time of a cold open goes."""
    half = {name: bench.quantile(samples[name], .5)
            for name in ("bare python", "kernd kernel open", BOX, BOXED, bench.CONTROL)}
    return (f"a cold open: {half['kernd kernel open'] - half['bare python']:+.2f} ms beside bare python, "
            f"{half['kernd kernel open'] - half[BOXED]:+.2f} ms beside the same box and interpreter "
            f"without a server; the box alone is {half[BOX] - half[bench.CONTROL]:.2f} ms")


def missed(samples):
    """Budgets that were not kept."""
    found = [f"{name}: {bench.quantile(samples[name], .5):.2f} ms, budget {limit}"
             for name, limit in BUDGETS.items() if bench.quantile(samples[name], .5) > limit]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.01)
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    wanted = parser.parse_args()
    bench.as_ordinary_user(__file__)
    load = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        daemon = harness.Daemon(["--log-level", "warning", "--spares", "4"]).start()
        stack.callback(daemon.remove)
        peer = None
        if shutil.which("jupyter-server"):
            peer = Jupyter()
            stack.callback(peer.stop)
        ours = Kernd(daemon)
        memory = {"kernd kernel": ours.kernel.get()["memoryBytes"] / (1 << 20)}
        if peer is not None:
            memory["jupyter kernel"] = peer.resident()
        before = bench.machine_times()
        samples = measure(rows_of(ours, peer), wanted.rounds, wanted.pause)
        in_a_row(samples, ours, peer, wanted.rounds)
        busy = bench.busy_share(before, bench.machine_times())
        for session in ("bench", "cold"):
            assert daemon.request("DELETE", f"/v1/sessions/{session}").status == 204
        daemon.stop()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}; "
          f"{wanted.rounds} rounds, {wanted.pause * 1000:.0f} ms between calls; milliseconds; "
          f"processors {busy:.0%} busy\n")
    print(table(samples))
    print("\nresident after one cell: " + ", ".join(f"{name} {size:.1f} MiB" for name, size in memory.items()))
    print(opening(samples))
    if peer is None:
        print("jupyter-server is not installed: its rows are left out")
    reasons, late = bench.disturbed(samples[bench.CONTROL], load), missed(samples)
    print("\n" + ("no verdict: " + ", ".join(reasons) if reasons else "quiet enough to count"))
    if late:
        print("above budget: " + "; ".join(late))
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            json.dump({"samples": samples, "memory": memory, "load": load, "disturbed": reasons,
                       "machine": platform.uname()._asdict()}, file)
    return 2 if reasons else 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
