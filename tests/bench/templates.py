#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python boxes that are forked of a warm interpreter, beside booted ones (`--templates 0`).

    tests/bench/templates.py [--rounds 200] [--seconds 3] [--silence 3] [--rate 250]

As root, CPU is that of the daemon and all its boxes (a cgroup of its own counts it); else it is left
out. Prints a Markdown table; a row with a bound says whether it holds, and the exit code is 1 if one
does not. Takes a minute at most.
"""
import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import cgroups  # noqa: E402
import harness  # noqa: E402
import shapes  # noqa: E402
from found import number, quantile  # noqa: E402
from templatekit import WITH_TEMPLATES, wait_for_template  # noqa: E402

# Sixteen modules of the standard library that programs import.
MODULES = ["argparse", "asyncio", "collections", "csv", "dataclasses", "datetime", "decimal", "hashlib",
           "itertools", "json", "logging", "pathlib", "random", "re", "statistics", "urllib.request"]
PAUSE_S = 0.01


class Meter:
    """CPU milliseconds of what is started with its wrapper, and of all that comes of it."""

    def __init__(self):
        own = cgroups.own_cgroup() if os.geteuid() == 0 else None
        self.path = own and f"{own}/bench-templates-{os.getpid()}"
        if self.path:
            os.mkdir(self.path)
        self.wrapper = ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs; exec "$@"', "sh"] \
            if self.path else []

    def read(self):
        if not self.path:
            return None
        with open(f"{self.path}/cpu.stat", encoding="ascii") as file:
            return int(file.readline().split()[1]) / 1e3  # usage_usec

    def close(self):
        if self.path:
            os.rmdir(self.path)


@contextlib.contextmanager
def served(meter, *arguments):
    """Its runtime directory is where systemd has those of users: in memory."""
    daemon = harness.Daemon(["--log-level", "warning", *arguments], wrapper=meter.wrapper)
    memory = tempfile.mkdtemp(prefix="kernd-bench-", dir="/dev/shm")
    os.chmod(memory, 0o755)
    daemon.runtime = os.path.join(memory, "runtime")
    daemon.socket_path = os.path.join(daemon.runtime, "kernd.sock")
    try:
        yield daemon.start()
        daemon.finish()
    finally:
        daemon.remove()
        shutil.rmtree(memory, ignore_errors=True)


class Table:
    def __init__(self):
        self.missed = 0
        print("| row | p50 ms | p99 ms | CPU ms a call | per second | bound |\n|---|---|---|---|---|---|")

    def row(self, name, times=(), cpu=None, rate=None, bounds=()):
        """bounds: of (found, at most or at least, value, of what)."""
        told = []
        for found, order, bound, what in bounds:
            if found is not None:
                kept = found <= bound if order == "<=" else found >= bound
                self.missed += 0 if kept else 1
                told.append(f"{what} {order} {bound}: {'yes' if kept else 'NO'}")
        cells = [name, number(quantile(times, .5)) if times else "",
                 number(quantile(times, .99)) if len(times) >= 100 else "", number(cpu), number(rate),
                 ", ".join(told)]
        print("| " + " | ".join(cells) + " |", flush=True)


def one_caller(daemon, meter, rounds, **options):
    """Latencies and CPU per call of calls with pauses."""
    call = shapes.python(daemon, **options)
    for _ in range(5):
        call()
    time.sleep(0.3)
    before = meter.read()
    times = shapes.paused(daemon, PAUSE_S, rounds, **options)
    return times, spent(meter, before, rounds)


def spent(meter, before, calls):
    time.sleep(0.3)  # what is done behind the last answer
    return None if before is None else (meter.read() - before) / calls


def without_spares(daemon, meter, table, wanted):
    times, cpu = one_caller(daemon, meter, wanted.rounds // 4, isolation="boot")
    table.row("booted, no spare", times, cpu)
    wait_for_template(daemon)
    times, cpu = one_caller(daemon, meter, wanted.rounds)
    table.row("forked, no spare", times, cpu, bounds=[(quantile(times, .5), "<=", 6, "p50"),
                                                      (cpu, "<=", 5, "CPU")])
    preloaded(daemon, meter, table, wanted, "16 modules preloaded", MODULES, 4)
    if os.path.exists("/usr/lib/python3/dist-packages/numpy"):
        preloaded(daemon, meter, table, wanted, "numpy preloaded", ["numpy"], 6)
    for callers in (2, 8):
        before = meter.read()
        times, rate = shapes.saturation(daemon, callers, wanted.seconds)
        table.row(f"forked, no spare, {callers} callers", times, spent(meter, before, len(times)), rate,
                  [(rate, ">=", 150 * os.cpu_count(), "rate")] if callers == 8 else ())


def preloaded(daemon, meter, table, wanted, name, modules, bound):
    census.wait_until(lambda: daemon.run_code("1", preload=modules)["usage"]["source"] == "template",
                      harness.seconds(20), name)
    times, cpu = one_caller(daemon, meter, wanted.rounds // 2, preload=modules)
    table.row(f"forked, {name}", times, cpu, bounds=[(quantile(times, .5), "<=", bound, "p50")])


def proportional_mib(pids):
    """PSS: each page divided by the number of processes that share it (proc_pid_smaps_rollup(5))."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


def with_spares(daemon, meter, table, wanted):
    call = shapes.python(daemon)
    wait_for_template(daemon)
    for _ in range(20):
        call()
        time.sleep(0.05)
    waiting = census.wait_until(lambda: daemon.get("/v1/stats").json["spares"], harness.seconds(10),
                                "spares")
    mib = proportional_mib(daemon.box_processes()) / waiting
    before = meter.read()
    times, rate = shapes.offered(daemon, wanted.rate, wanted.seconds)
    table.row(f"forked, spares, {wanted.rate}/s offered", times, spent(meter, before, len(times)), rate,
              [(quantile(times, .5), "<=", 1.4, "p50"), (quantile(times, .99), "<=", 3.4, "p99")])
    times = shapes.burst(daemon, 50, wanted.silence)
    table.row(f"burst of 50 after {wanted.silence:g} s", times)
    print(f"\n{waiting} spares waited, {mib:.2f} MiB of memory each (PSS)")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3, help="of each load row")
    parser.add_argument("--silence", type=float, default=3, help="seconds before the burst")
    parser.add_argument("--rate", type=int, default=250, help="calls per second that are offered")
    return parser.parse_args()


def main():
    wanted, table, meter = parse(), Table(), Meter()
    try:
        with served(meter, *WITH_TEMPLATES) as daemon:
            without_spares(daemon, meter, table, wanted)
        with served(meter, *WITH_TEMPLATES, "--spares", "8") as daemon:
            with_spares(daemon, meter, table, wanted)
    finally:
        meter.close()
    print(f"load before and after: {os.getloadavg()[1]:.1f}, {os.getloadavg()[0]:.1f}")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
