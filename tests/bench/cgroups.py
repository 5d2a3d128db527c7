#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a cgroup of its own costs each box: made, limited, read twice, removed, as lib/box/cgroup.c
does it. Where this process may make cgroups: as root, or in a unit with Delegate=yes.

Fails above 0.3 ms (median). Controllers that are missing are not written to, and named.
"""
import json
import os
import sys
import time

ROUNDS = 500
PAUSE_S = 0.002
MUST_MS = 0.3
LIMITS = (("memory.max", "67108864"), ("memory.oom.group", "1"), ("memory.swap.max", "0"),
          ("pids.max", "66"), ("cpu.max", "50000 100000"), ("io.weight", "50"))
READ = ("cpu.stat", "cpu.stat", "memory.peak", "memory.current", "pids.peak", "memory.events")


def own_cgroup():
    """Its directory, None: there is no cgroup v2."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        own = next((line[3:].strip() for line in file if line.startswith("0::")), None)
    with open("/proc/self/mountinfo", encoding="ascii") as file:
        point = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
    return None if own is None or point is None else point + own.rstrip("/")


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def prepare(own):
    """A cgroup whose children have what controllers there are; this process is in another one."""
    base = f"{own}/bench-{os.getpid()}"
    os.mkdir(base)
    for parent in (own, base):
        for name in ("+memory", "+pids", "+cpu", "+io"):
            try:
                put(f"{parent}/cgroup.subtree_control", name)
            except OSError:
                continue  # told by what is missing
    return base


def one_box(base, number):
    """(milliseconds, files written and read)"""
    began = time.perf_counter_ns()
    path = f"{base}/box_{number}"
    os.mkdir(path, 0o755)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    done = []
    for name, value in LIMITS:
        try:
            fd = os.open(name, os.O_WRONLY, dir_fd=directory)
        except FileNotFoundError:
            continue
        os.write(fd, value.encode())
        os.close(fd)
        done.append(name)
    for name in READ:
        try:
            fd = os.open(name, os.O_RDONLY, dir_fd=directory)
        except FileNotFoundError:
            continue
        os.read(fd, 4096)
        os.close(fd)
        done.append(name)
    os.close(directory)
    os.rmdir(path)
    return (time.perf_counter_ns() - began) / 1e6, done


def measure(pause=PAUSE_S):
    """{"p50", "p95": milliseconds, "samples", "missing": names}, or {"why"}: it can't be done."""
    own = own_cgroup()
    if own is None:
        return {"why": "there is no cgroup v2 hierarchy"}
    try:
        base = prepare(own)
    except OSError as error:
        return {"why": f"no cgroup can be made in its own: {error.strerror}"}
    try:
        rounds = []
        for number in range(ROUNDS):
            spent, done = one_box(base, number)
            rounds.append(spent)
            time.sleep(pause)
    finally:
        os.rmdir(base)
    ordered = sorted(rounds)
    return {"p50": ordered[ROUNDS // 2], "p95": ordered[ROUNDS * 95 // 100], "samples": rounds,
            "missing": sorted({name for name, _ in LIMITS} - set(done))}


def describe(found):
    if "why" in found:
        return f"cgroup of a box: not here, {found['why']}"
    missing = ", ".join(found["missing"])
    return (f"cgroup of a box: p50 {found['p50']:.3f} ms, p95 {found['p95']:.3f} ms (at most "
            f"{MUST_MS} ms)" + (f"; without {missing}" if missing else ""))


def main():
    found = measure()
    print(json.dumps(found) if sys.argv[1:] == ["--json"] else describe(found))
    return 0 if found.get("p50", MUST_MS + 1) <= MUST_MS else 1


if __name__ == "__main__":
    sys.exit(main())
