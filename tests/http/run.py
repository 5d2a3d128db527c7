#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of some folders, one process per test file, two at a time, and closes with

    N passed, N failed, N skipped

A file that crashes or hangs counts as a failure. With MUST_WORK=1 in the environment a skipped test
fails the run too.

A test that failed while others ran beside it is run again by itself when all are done. One that then
passes three times in a row is told as unsteady, by name and with its first output, and not as failed:
what fails for a reason of its own, or whenever one looks, does not get through. What a sanitizer
reported, and a run in which many failed, get no second look.

    tests/http/run.py [--jobs N] [--only NAME] [FOLDER...]
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

import recordkit

HERE = os.path.dirname(os.path.abspath(__file__))
FILE_LIMIT_S = 3000
# These take longest (the last line tells), so they begin first; then the larger files.
LONG = ("forked", "spares", "kernels", "streams_clients", "protocol", "kernel_cells", "kernel_load", "edge",
        "batch", "lifecycle", "sessions", "session_setup", "archives", "executions", "streams")
AGAIN_IN_A_ROW = 3
AGAIN_AT_MOST = 3  # tests; more have a cause in common
REPORTS = ("Sanitizer", "runtime error:")


class Tally(unittest.TextTestResult):
    """Counts each test once, whatever happens to its parts; class set-up and ends count too."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.outcome = {}
        self.times = {}

    def startTest(self, test):
        super().startTest(test)
        self.outcome[test.id()] = "passed"
        self.times[test.id()] = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.times[test.id()] = time.monotonic() - self.times[test.id()]

    def _note(self, test, kind):
        if self.outcome.get(test.id()) != "failed":
            self.outcome[test.id()] = kind

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failed")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._note(test, "failed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped")


def run_file(path, report, only):
    """In the child: one test file, or some tests of it; counts and slow tests as JSON."""
    sys.path[:0] = [os.path.dirname(path), HERE]
    name = os.path.basename(path)[:-3]
    suite = unittest.defaultTestLoader.loadTestsFromNames(only or [name])
    with recordkit.recording(name):
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Tally).run(suite)
    outcomes = list(result.outcome.values())
    slow = sorted(((spent, test) for test, spent in result.times.items()), reverse=True)[:3]
    with open(report, "w", encoding="utf-8") as file:
        json.dump({kind: outcomes.count(kind) for kind in ("passed", "failed", "skipped")}
                  | {"slow": slow, "which": [test for test, kind in result.outcome.items()
                                             if kind == "failed"]}, file)


def run_apart(path, only=()):
    """In the parent: one child for one file or for some tests of it. (path, counts, its output)"""
    started = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-B", os.path.abspath(__file__), "--file", path, report.name,
                   *only]
        try:
            child = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, timeout=FILE_LIMIT_S, check=False)
            text, code = child.stdout.decode("utf-8", "replace"), child.returncode
        except subprocess.TimeoutExpired as late:
            text, code = (late.stdout or b"").decode("utf-8", "replace"), "a time-out"
        try:
            counts = json.load(report)
        except ValueError:
            text += f"\nFAILED: {path} ended with {code} before its report\n"
            counts = {"passed": 0, "failed": 1, "skipped": 0, "slow": [], "which": []}
    counts["took"] = time.monotonic() - started
    return path, counts, text


def is_steady(path, test):
    """Whether a test, or the class of a set-up, that failed once now passes as often as is asked."""
    name = test.split("(")[-1].rstrip(")")  # "setUpClass (file.Class)"
    for _ in range(AGAIN_IN_A_ROW):
        _, counts, text = run_apart(path, [name])
        if counts["failed"] or counts["skipped"] or not counts["passed"]:
            print(f"---- {test}, again\n{text}", flush=True)
            return False
    return True


def look_again(failures):
    """Of (path, counts, output) of files that failed: the tests that pass by themselves."""
    if sum(counts["failed"] for _, counts, _ in failures) > AGAIN_AT_MOST:
        return []
    return [test for path, counts, text in failures for test in counts["which"]
            if not any(report in text for report in REPORTS) and is_steady(path, test)]


def test_files(folders, only, skipped):
    pattern = f"test_{only}.py" if only else None
    files = [os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
             if name.startswith("test_") and name.endswith(".py") and pattern in (None, name)
             and name[5:-3] not in skipped]
    order = {f"test_{name}.py": place for place, name in enumerate(LONG)}
    return sorted(files, key=lambda path: (order.get(os.path.basename(path), len(LONG)),
                                           -os.path.getsize(path), path))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    # Half of what tests do is wait.
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count())
    parser.add_argument("--only", metavar="NAME", help="only test_NAME.py of each folder")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME",
                        help="not test_NAME.py of the folders")
    parser.add_argument("--quiet", action="store_true", help="show only what failed")
    parser.add_argument("--file", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("folders", nargs="*",
                        default=[HERE, os.path.join(os.path.dirname(HERE), "escape")])
    wanted = parser.parse_args()
    if wanted.file:
        return run_file(*wanted.file[:2], wanted.file[2:])
    total, slowest, files, failures = {"passed": 0, "failed": 0, "skipped": 0}, [], [], []
    with concurrent.futures.ThreadPoolExecutor(wanted.jobs) as pool:
        for path, counts, text in pool.map(run_apart, test_files(wanted.folders, wanted.only, wanted.skip)):
            if counts["failed"] or not wanted.quiet:
                print(f"---- {os.path.relpath(path)}\n{text}", flush=True)
            for kind in total:
                total[kind] += counts[kind]
            slowest += counts["slow"]
            files.append((counts["took"], os.path.basename(path)))
            if counts["failed"]:
                failures.append((path, counts, text))
    print("slowest files: " + ", ".join(f"{name} {took:.0f} s" for took, name in
                                        sorted(files, reverse=True)[:12]))
    print("slowest: " + ", ".join(f"{test.split('.')[-1]} {spent:.1f} s" for spent, test in
                                  sorted(slowest, reverse=True)[:8]))
    for test in look_again(failures):
        print(f"UNSTEADY: {test} failed once, then passed {AGAIN_IN_A_ROW} times by itself")
        total["failed"] -= 1
        total["passed"] += 1
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    must_work = os.environ.get("MUST_WORK") == "1"
    bad = total["failed"] or not total["passed"] or (must_work and total["skipped"])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
