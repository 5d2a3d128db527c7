#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Snapshots and restores of kernd beside GNU tar, all measured in one run, in turn.

    tests/bench/archives.py [--rounds 3] [--large MIB] [--small FILES] [--full] [--json FILE]

Two trees: ten files of the same size, half of them noise and half of them text (--large: MiB in
all, 64), and many files of 1 KiB (--small: 2000). --full is 1024 MiB and 20,000 files. kernd packs
with gzip level 1, on a second thread, and syncs the archive to disk; tar is measured with `gzip -1`
(the same level, a second process) and as plain `tar czf` (level 6). Prints a Markdown table of seconds
(median) and the daemon's peak memory before and after.
"""
import argparse
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402
import sessionkit  # noqa: E402

MIB = 1 << 20
WORDS = [str(number).encode() * 2 for number in range(2000)]
ROWS = ("kernd snapshot", "tar, gzip -1", "tar czf", "kernd restore", "tar xzf")


def text(dice, size):
    """Half of it words, which shrink, and half noise, which does not."""
    words = b" ".join(dice.choices(WORDS, k=size // 8))[:size // 2]
    return words + dice.randbytes(size - len(words))


def trees(arguments):
    yield f"10 files, {arguments.large} MiB", 10, arguments.large * MIB // 10
    yield f"{arguments.small} files of 1 KiB", arguments.small, 1024


def make_tree(folder, count, size):
    dice = random.Random(1)
    for number in range(count):
        parent = os.path.join(folder, f"d{number // 100}")
        os.makedirs(parent, exist_ok=True)
        with open(os.path.join(parent, f"f{number}"), "wb") as file:
            file.write(text(dice, size))


def upload(session, folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(folder, arcname=".")
    reply = session.daemon.request("PUT", session.path + "/archive", data.getvalue(),
                                   media_type="application/x-tar")
    assert reply.status == 200, reply


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
        make_tree(self.folder, count, size)
        self.session = sessionkit.Session(daemon)
        upload(self.session, self.folder)
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

    def round(self):
        path = os.path.join(self.place, "x.tar.gz")
        return {
            "kernd snapshot": self.take(),
            "tar, gzip -1": timed(lambda: run(f"tar -c -C {self.folder} . | gzip -1 >{path}")),
            "tar czf": timed(lambda: run(f"tar -czf {path} -C {self.folder} .")),
            "kernd restore": timed(lambda: self.post("restore", {"snapshotId": self.snapshot})),
            "tar xzf": unpack(path, os.path.join(self.place, "out")),
        }

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
        rounds = [tree.round() for _ in range(arguments.rounds)]
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
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.full:
        arguments.large, arguments.small = 1024, 20000
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
