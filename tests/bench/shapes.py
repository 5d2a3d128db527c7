# SPDX-License-Identifier: Apache-2.0
"""Shapes of load: an offered rate, saturation, a burst after silence, many idle sessions."""
import threading
import time

import census
import harness


class Caller:
    """One kept connection; called, it gives the milliseconds of one call."""

    def __init__(self, daemon, target, body):
        self.connection = daemon.connect()
        self.target, self.body = target, harness.as_json(body)
        self.headers = {**daemon.authorization(), "Content-Type": "application/json"}

    def __call__(self):
        started = time.perf_counter()
        reply = self.connection.exchange("POST", self.target, self.headers, self.body)
        took = (time.perf_counter() - started) * 1e3
        if reply.status != 200 or not reply.json["success"]:
            raise AssertionError(reply)
        return took


def python(daemon, **options):
    return Caller(daemon, "/v1/runCode", {"code": "pass", "language": "python", **options})


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


def offered(daemon, rate, seconds, callers=32):
    """
    Calls that are due at fixed times, whether or not earlier ones have come back. A latency counts
    from the time its call was due: waiting for one's turn is the caller's loss too.
    """
    lock, due, times = threading.Lock(), iter(range(int(rate * seconds))), []
    ready = [python(daemon) for _ in range(callers)]
    began = time.perf_counter() + 0.1

    def work(number):
        while True:
            with lock:
                turn = next(due, None)
            if turn is None:
                return
            at = began + turn / rate
            time.sleep(max(0, at - time.perf_counter()))
            ready[number]()
            times.append((time.perf_counter() - at) * 1e3)
    together(callers, work)
    return times, len(times) / (time.perf_counter() - began)


def saturation(make, count, seconds):
    """Latencies and calls per second of so many callers that never pause."""
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
    ready, times = [python(daemon) for _ in range(count)], [0] * count
    gate = threading.Barrier(count)

    def work(number):
        gate.wait()
        times[number] = ready[number]()
    together(count, work)
    return times


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
    call = python(daemon)
    times = []
    for _ in range(20):
        times.append(call())
        time.sleep(0.05)
    return cost, times
