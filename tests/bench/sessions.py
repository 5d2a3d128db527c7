#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions and files at size: many sessions, large files, many files, each beside a yardstick.

    tests/bench/sessions.py [--sessions 10000] [--bytes 1073741824] [--files 20000] [--json FILE]

Prints a Markdown table. Rows with a bound say whether it holds; the exit code is 1 if one does not.
A file of --bytes is sent and fetched beside a plain copy through loopback: a socket on one side, a
file of the same directory on the other, and nothing in between.
"""
import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402
import sessionkit  # noqa: E402

PIECE = 1 << 20


def took(function):
    started = time.perf_counter()
    value = function()
    return (time.perf_counter() - started) * 1000, value


def quantiles(samples):
    ordered = sorted(samples)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


class Bench:
    def __init__(self, options):
        self.options = options
        self.rows = []
        self.daemon = harness.Daemon().start()

    def row(self, name, value, unit, bound=None, holds=None):
        self.rows.append({"name": name, "value": value, "unit": unit, "bound": bound, "holds": holds})
        print(f"| {name} | {value:.2f} {unit} | {bound or ''} | "
              f"{'' if holds is None else 'yes' if holds else 'NO'} |", flush=True)

    def below(self, name, value, bound, unit="ms"):
        self.row(name, value, unit, f"< {bound} {unit}", value < bound)

    # ---- many sessions ----

    def make_sessions(self):
        def make(number):
            with self.daemon.connect() as connection:
                headers = {**self.daemon.authorization(), "Content-Type": "application/json"}
                for index in range(number, self.options.sessions, 4):
                    body = harness.as_json({"id": f"s{index}", "labels": {"tenth": str(index % 10)}})
                    reply = connection.exchange("POST", "/v1/sessions", headers, body)
                    assert reply.status == 201, reply
        spent, _ = took(lambda: harness.parallel(4, make))
        self.row("create a session, 4 callers", spent / self.options.sessions, "ms")

    def look_up(self):
        with self.daemon.connect() as connection:
            def get(target):
                reply = connection.exchange("GET", target, self.daemon.authorization())
                assert reply.status == 200, reply
                return reply

            def sample(target, count=50):
                get(target)
                return quantiles([took(lambda: get(target))[0] for _ in range(count)])
            for name, target in (("get a session", f"/v1/sessions/s{self.options.sessions // 2}"),
                                 ("first page of 100", "/v1/sessions"),
                                 ("first page of 1000", "/v1/sessions?limit=1000"),
                                 ("page by label", "/v1/sessions?label=tenth:3")):
                middle, late = sample(target)
                self.below(f"{name}, p50", middle, 50)
                self.row(f"{name}, p99", late, "ms")
            cursor = json.loads(get("/v1/sessions?limit=1000").body)["nextCursor"]
            for _ in range(self.options.sessions // 1000 - 2):
                cursor = json.loads(get(f"/v1/sessions?limit=1000&cursor={cursor}").body)["nextCursor"]
            if cursor:
                self.below("last page of 1000, p50", sample(f"/v1/sessions?limit=1000&cursor={cursor}")[0], 50)

    def start_up(self):
        empty = harness.Daemon()
        times = []
        for _ in range(5):
            times.append(took(empty.start)[0])
            empty.finish()
            os.truncate(empty.path("out"), 0)
        empty.remove()
        bare = statistics.median(times)
        self.row("start, no session", bare, "ms")
        for name, end in (("after SIGTERM", self.daemon.finish), ("after SIGKILL", self.daemon.kill)):
            times = []
            for _ in range(3):
                end()
                os.truncate(self.daemon.path("out"), 0)
                times.append(took(self.daemon.start)[0])
            self.below(f"start {name}, more than with none", statistics.median(times) - bare, 50)
        self.row("memory of the daemon", int(census.status_field(self.daemon.pid, "VmRSS").split()[0])
                 / 1024, "MiB")

    # ---- a large file ----

    def plain_copy(self, path, sending):
        """MB/s between a socket and a file, with a thread on each side as any server has. What is
        received promises what a PUT does: on the disk, and the old file there until the new one is."""
        listener = socket.create_server(("127.0.0.1", 0))
        size = self.options.bytes

        def serve():
            peer, _ = listener.accept()
            with peer, open(path if sending else path + ".new", "rb" if sending else "wb",
                            buffering=0) as file:
                if sending:
                    peer.sendfile(file)
                    return
                while piece := peer.recv(PIECE):
                    file.write(piece)
                os.fsync(file.fileno())
                os.rename(path + ".new", path)
        thread = threading.Thread(target=serve)
        thread.start()
        with socket.create_connection(listener.getsockname()) as client:
            started = time.perf_counter()
            if sending:
                left, room = size, bytearray(PIECE)
                while left:
                    left -= client.recv_into(room)
            else:
                with open(self.big, "rb") as file:
                    client.sendfile(file)
                client.shutdown(socket.SHUT_WR)
            thread.join()
        listener.close()
        return size / (time.perf_counter() - started) / 1e6

    def put(self, session):
        with self.daemon.connect() as connection, open(self.big, "rb") as file:
            started = time.perf_counter()
            head = (f"PUT {session.file('big')} HTTP/1.1\r\nHost: 127.0.0.1:{self.daemon.port}\r\n"
                    f"Authorization: Bearer {self.daemon.token}\r\n"
                    f"Content-Length: {self.options.bytes}\r\n\r\n")
            connection.send(head.encode())
            connection.socket.sendfile(file)
            reply = connection.reply()
            assert reply.status in (201, 204), reply
            return self.options.bytes / (time.perf_counter() - started) / 1e6

    def fetch(self, session):
        with self.daemon.connect() as connection:
            started = time.perf_counter()
            connection.request("GET", session.file("big"), self.daemon.authorization())
            room, left = bytearray(PIECE), self.options.bytes
            first = connection.socket.recv(PIECE)
            left -= len(first) - first.index(b"\r\n\r\n") - 4
            while left:
                left -= connection.socket.recv_into(room)
            return self.options.bytes / (time.perf_counter() - started) / 1e6

    def large_file(self):
        self.big = self.daemon.path("big")
        with open(self.big, "wb") as file:
            for _ in range(self.options.bytes // PIECE):
                file.write(os.urandom(1 << 12) * (PIECE >> 12))
        session = sessionkit.Session(self.daemon)
        before = int(census.status_field(self.daemon.pid, "VmRSS").split()[0])
        rates = {"put": [], "plain in": [], "get": [], "plain out": []}
        copy = self.daemon.state + "/plain"
        for _ in range(self.options.rounds):
            rates["plain in"].append(self.plain_copy(copy, False))
            rates["put"].append(self.put(session))
            rates["plain out"].append(self.plain_copy(copy, True))
            rates["get"].append(self.fetch(session))
        best = {name: max(values) for name, values in rates.items()}
        for name, plain in (("put", "plain in"), ("get", "plain out")):
            self.row(plain, best[plain], "MB/s")
            share = best[name] / best[plain] * 100
            self.row(f"{name} {self.options.bytes >> 20} MiB", best[name], "MB/s")
            self.row(f"{name}, of the plain copy", share, "%", ">= 80 %", share >= 80)
        peak = int(census.status_field(self.daemon.pid, "VmHWM").split()[0])
        self.row("memory more, at the most", (peak - before) / 1024, "MiB", "< 16 MiB",
                 peak - before < 16 * 1024)
        os.unlink(copy)
        session.delete()

    # ---- many files ----

    def many_files(self):
        session = sessionkit.Session(self.daemon)
        session.run_code(f"""
import os
for n in range({self.options.files} // 100):
    os.mkdir(f"d{{n}}")
    for f in range(100):
        open(f"d{{n}}/f{{f}}", "w").close()
""", trackFiles=False)
        times = {True: [], False: []}
        for _ in range(10):
            for track in times:
                times[track].append(took(lambda track=track: session.run(["true"], trackFiles=track))[0])
        plain, tracked = (statistics.median(times[track]) for track in (False, True))
        self.row("run [\"true\"], no trackFiles", plain, "ms")
        self.below(f"trackFiles over {self.options.files} files", tracked - plain, 250)
        spent, rows = took(lambda: session.list(recursive=True, limit=10000))
        self.row(f"list all {len(rows)}, pages of 10000", spent, "ms")
        session.delete()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sessions", type=int, default=10000, help="0: leaves these rows out")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="0: leaves these rows out")
    parser.add_argument("--rounds", type=int, default=3, help="of the large file")
    parser.add_argument("--files", type=int, default=20000, help="0: leaves these rows out")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    return parser.parse_args()


def main():
    options = parse()
    subprocess.run(["sync"], check=False)
    bench = Bench(options)
    print("| what | measured | bound | holds |\n|---|---|---|---|")
    try:
        if options.sessions:
            bench.make_sessions()
            bench.look_up()
            bench.start_up()
        if options.bytes:
            bench.large_file()
        if options.files:
            bench.many_files()
    finally:
        bench.daemon.remove()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.rows, file, indent=1)
    return 0 if all(row["holds"] is not False for row in bench.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
