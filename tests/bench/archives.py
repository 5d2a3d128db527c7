#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots and restores of kernd beside GNU tar, all measured in one run, in turn.

    tests/bench/archives.py [--rounds 3] [--large MIB] [--small FILES] [--json FILE]

Two trees: ten files of the same size, half of them noise and half of them text (--large: MiB in all,
64; 0: not this tree), and many files of 1 KiB (--small: 2000; 0: not this tree). kernd packs with gzip
level 1 on one thread while another reads, and syncs the archive to disk; it unpacks on one thread. tar is
measured with `gzip -1` (the same level) and as plain `tar czf` (level 6); gzip is a process beside it, in
both directions. A restore also vets the archive and puts the new tree in the old one's place. Trees and
archives are where TMPDIR points. Prints a Markdown table of seconds (median) and the daemon's peak memory
before and after.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402
import sessionkit  # noqa: E402

MIB = 1 << 20
ROWS = ("kernd snapshot", "tar, gzip -1", "tar czf", "kernd restore", "tar xzf")
# Run in a session and in a folder beside it: the same files in both. Half of each is words, which shrink,
# and half noise, which does not. gzip looks 32 KiB back, so words that come again after 1 MiB, in another
# order of halves, are new to it.
MAKE = """
import os, random
count, size = {count}, {size}
dice = random.Random(1)
words = [str(number).encode() * 2 for number in range(2000)]
line = b" ".join(dice.choices(words, k=1 << 17))
for number in range(count):
    os.makedirs(f"d{{number // 100}}", exist_ok=True)
    with open(f"d{{number // 100}}/f{{number}}", "wb") as file:
        for at in range(0, size, 1 << 20):
            half = min(size - at, 1 << 20) // 2
            cut = dice.randrange(len(line) - half)
            file.write(line[cut:cut + half])
            file.write(dice.randbytes(min(size - at, 1 << 20) - half))
"""


def trees(arguments):
    if arguments.large:
        yield f"10 files, {arguments.large} MiB", 10, arguments.large * MIB // 10
    if arguments.small:
        yield f"{arguments.small} files of 1 KiB", arguments.small, 1024


def timed(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def run(command):
    subprocess.run(["sh", "-c", command], check=True, stdin=subprocess.DEVNULL)


def unpack(path, folder):
    os.mkdir(folder)
    try:
        return timed(lambda: run(f"tar -xz --no-same-owner -f {path} -C {folder}"))
    finally:
        shutil.rmtree(folder)


class Tree:
    """One tree in a session and in a folder beside it."""

    def __init__(self, daemon, place, count, size):
        self.daemon, self.place = daemon, place
        self.folder = os.path.join(place, "tree")
        self.session = sessionkit.Session(daemon)
        code = MAKE.format(count=count, size=size)
        made = self.session.run_code(code, trackFiles=False, timeoutS=120)
        assert made["success"], made
        os.mkdir(self.folder)
        subprocess.run([sys.executable, "-c", code], cwd=self.folder, check=True)
        self.snapshot = None

    def post(self, what, body):
        reply = self.session.post(what, body, timeout=600)
        assert reply.status in (200, 201), reply
        return reply.json

    def take(self):
        if self.snapshot is not None:
            self.daemon.request("DELETE", f"/v1/snapshots/{self.snapshot}")
        made = {}
        took = timed(lambda: made.update(self.post("snapshots", {})))
        self.snapshot = made["id"]
        return took

    def restore(self):
        return timed(lambda: self.post("restore", {"snapshotId": self.snapshot}))

    def rows(self):
        path, out = (os.path.join(self.place, name) for name in ("x.tar.gz", "out"))
        return dict(zip(ROWS, (
            self.take, lambda: timed(lambda: run(f"tar -c -C {self.folder} . | gzip -1 >{path}")),
            lambda: timed(lambda: run(f"tar -czf {path} -C {self.folder} .")),
            self.restore, lambda: unpack(path, out))))

    def settle(self):
        """Removing what went before slows down who writes next: nobody does it beside a row."""
        trash = self.daemon.path("state/workspaces/.trash")
        census.wait_until(lambda: not os.path.exists(trash) or not os.listdir(trash), 120,
                          "the removal of the old tree")

    def round(self, backwards):
        """In turn, every other time from the last to the first: who comes later has no advantage."""
        found = {}
        for name, row in reversed(self.rows().items()) if backwards else self.rows().items():
            self.settle()
            found[name] = row()
        return found

    def close(self):
        self.daemon.request("DELETE", f"/v1/snapshots/{self.snapshot}")
        self.session.delete()
        shutil.rmtree(self.folder)


def peak_mib(daemon):
    return int(census.status_field(daemon.pid, "VmHWM").split()[0]) / 1024


def measure(daemon, place, arguments):
    found = {}
    for name, count, size in trees(arguments):
        tree = Tree(daemon, place, count, size)
        before = peak_mib(daemon)
        rounds = [tree.round(number % 2 == 1) for number in range(arguments.rounds)]
        found[name] = {"seconds": {row: [one[row] for one in rounds] for row in ROWS},
                       "peakMiB": [before, peak_mib(daemon)]}
        tree.close()
    return found


def report(found):
    print("| tree | " + " | ".join(ROWS) + " | daemon's peak MiB |")
    print("|---" * (len(ROWS) + 2) + "|")
    for name, row in found.items():
        medians = [f"{statistics.median(row['seconds'][one]):.3f}" for one in ROWS]
        peaks = " to ".join(f"{one:.1f}" for one in row["peakMiB"])
        print(f"| {name} | " + " | ".join(medians) + f" | {peaks} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=64)
    parser.add_argument("--small", type=int, default=2000)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    daemon = harness.Daemon().start()
    place = tempfile.mkdtemp(prefix="kernd-bench-", dir=os.path.dirname(daemon.home))
    try:
        found = measure(daemon, place, arguments)
    finally:
        shutil.rmtree(place)
        daemon.stop()
    report(found)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
