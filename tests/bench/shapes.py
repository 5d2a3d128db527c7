# SPDX-License-Identifier: Apache-2.0
"""Shapes of load: an offered rate, saturation, a burst after silence, many idle sessions.

What is told of a server under load is offered and measured by tests/bench/load.c, since thirty python
threads on the server's own processors measure themselves. Caller is for single calls between others,
and where the answer must be looked at.
"""
import json
import os
import pwd
import re
import subprocess
import sys
import threading
import time

import census
import harness

LOAD = os.path.join(harness.ROOT, "build", "tests", "bench", "load")
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


def request(daemon, target, value, via="tcp"):
    """The bytes of one call."""
    body = harness.as_json(value)
    own = daemon.authorization() if via == "tcp" else {}
    headers = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(body), **own}
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def load(daemon, target, value, *shape, via="tcp"):
    """Latencies, and calls a second, of a shape of load.c."""
    if not os.path.exists(LOAD):
        sys.exit(f"{LOAD} is not there: make bench makes it")
    who = {}
    if via == "unix" and daemon.user:  # whose socket it is
        account = pwd.getpwnam(daemon.user)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    done = subprocess.run([LOAD, str(daemon.port) if via == "tcp" else daemon.socket_path, *map(str, shape)],
                          input=request(daemon, target, value, via), capture_output=True, check=False, **who)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode("utf-8", "replace"))
    found = json.loads(done.stdout)
    return found["ms"], len(found["ms"]) / found["seconds"]


def _python(options):
    return "/v1/runCode", {"code": "pass", "language": "python", **options}


class Caller:
    """
    One kept connection; called, it gives the milliseconds of one call, from its first byte's sending to
    its last one's coming. The request was made before, the answer is looked at (strictly) afterwards.
    """

    def __init__(self, daemon, target, value, via="tcp"):
        self.connection = daemon.connect(via)
        self.sent = request(daemon, target, value, via)
        self.reply = None

    def __call__(self):
        started = time.perf_counter()
        self.connection.send(self.sent)
        while not self._is_there() and self.connection.more():
            pass
        took = (time.perf_counter() - started) * 1e3
        self.reply = self.connection.reply("POST")
        if self.reply.status != 200 or not self.reply.json["success"]:
            raise AssertionError(self.reply)
        return took

    def _is_there(self):
        head, end, body = self.connection.buffer.partition(b"\r\n\r\n")
        length = LENGTH.search(head) if end else None
        return length is not None and len(body) >= int(length[1])


def python(daemon, **options):
    return Caller(daemon, *_python(options))


def together(count, work):
    """Runs work(number) on so many threads; what failed in one of them fails here."""
    failures = []

    def guarded(number):
        try:
            work(number)
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)
    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def offered(daemon, rate, seconds, connections=32):
    """
    Calls that are due at fixed times, whether or not earlier ones have come back. A latency counts
    from the time its call was due: waiting for a free connection is the caller's loss too.
    """
    return load(daemon, *_python({}), "offered", rate, seconds, connections)


def saturation(daemon, count, seconds, **options):
    """Latencies and calls per second of so many callers that never pause."""
    return load(daemon, *_python(options), "callers", count, seconds)


def paused(daemon, pause, rounds, **options):
    """Latencies of one caller, with so many seconds behind each answer."""
    return load(daemon, *_python(options), "paused", pause * 1e3, rounds)[0]


def loops(make, count, seconds):
    """The same as saturation of so many threads here, each with a row of its own that runs a command."""
    ready, times = [make() for _ in range(count)], []
    began = time.perf_counter()

    def work(number):
        while time.perf_counter() - began < seconds:
            times.append(ready[number]())
    together(count, work)
    return times, len(times) / (time.perf_counter() - began)


def burst(daemon, count, silence, meanwhile=lambda: None):
    """
    So many calls at one moment, after a silence in which what was ready may have aged. meanwhile: done
    within it, and asks nothing of this daemon.
    """
    python(daemon)()
    over = time.monotonic() + silence
    meanwhile()
    time.sleep(max(0, over - time.monotonic()))
    # Only now: the server closes connections that are silent for so long.
    return load(daemon, *_python({}), "burst", count)[0]


def resident_mib(pid):
    return int(census.status_field(pid, "VmRSS").split()[0]) / 1024


def make_sessions(daemon, first, last):
    def work(number):
        with daemon.connect() as connection:
            headers = {**daemon.authorization(), "Content-Type": "application/json"}
            for index in range(first + number, last, 4):
                reply = connection.exchange("POST", "/v1/sessions", headers,
                                            harness.as_json({"id": f"idle-{index}"}))
                if reply.status != 201:
                    raise AssertionError(reply)
    together(4, work)


def idle_sessions(daemon, count):
    """MiB that one idle session costs, and the latencies of a caller beside them."""
    before = resident_mib(daemon.pid)
    make_sessions(daemon, 0, count)
    cost = max(0, resident_mib(daemon.pid) - before) / count
    return cost, paused(daemon, 0.05, 20)
