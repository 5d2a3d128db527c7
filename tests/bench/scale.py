# SPDX-License-Identifier: Apache-2.0
"""How the cost of a call grows: with sessions, with files in the workspace, with its output."""
import statistics
import time

import sessionkit
import shapes

PAUSE_S = 0.02


def median_of(call, rounds):
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e3)
        time.sleep(PAUSE_S)
    return statistics.median(times)


def steps(most, first=1):
    """first, ten times that, ... and the most itself."""
    found = []
    while first * 2 <= most:
        found.append(first)
        first *= 10
    return [*found, most]


def sessions(daemon, found, most):
    page, run, made = [], [], 0
    for count in steps(most):
        shapes.make_sessions(daemon, 100000 + made, 100000 + count)
        made = count
        page.append((count, median_of(lambda: daemon.get("/v1/sessions?limit=100"), 10)))
        run.append((count, statistics.median(shapes.paused(daemon, PAUSE_S, 10))))
    found.curve("first page of sessions", "sessions", "ms, p50", page)
    found.curve("runCode python beside sessions", "sessions", "ms, p50", run)


MAKE = """
import os
for n in range({have}, {want}):
    if n % 100 == 0:
        os.mkdir(f"d{{n // 100}}")
    open(f"d{{n // 100}}/f{{n}}", "w").close()
"""


def files(daemon, found, most):
    session = sessionkit.Session(daemon)
    tracked, plain, have = [], [], 0
    for want in steps(most):
        done = session.run_code(MAKE.format(have=have, want=want), trackFiles=False)
        assert done["success"], done
        have = want
        for points, track in ((tracked, True), (plain, False)):
            points.append((want, median_of(lambda track=track: session.run(["true"], trackFiles=track), 7)))
    session.delete()
    found.curve("run [\"true\"] with trackFiles", "files in the workspace", "ms, p50", tracked)
    found.curve("run [\"true\"] without trackFiles", "files in the workspace", "ms, p50", plain)


def output(daemon, found, most):
    def one(size):
        result = daemon.run(["bash", "-c", f"yes | head -c {size}"], maxOutputBytes=1 << 20)
        assert result["exitCode"] == 0, result
    points = [(size, median_of(lambda size=size: one(size), 5)) for size in steps(most)]
    found.curve("run yes | head -c", "bytes of output, 1 MiB kept", "ms, p50", points)
