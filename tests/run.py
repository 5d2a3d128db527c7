#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test programs that `make` hands over, shows what they print, and closes with one line:

    N passed, N failed            (", N skipped" follows when any was)

A program that crashes, hangs or says nothing counts as one failure. With MUST_WORK=1 in the
environment a skipped test fails the run too.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

UNIT_TIMEOUT_S = 300
HTTP_TIMEOUT_S = 3000
CMOCKA_LINE = re.compile(r"\[  (PASSED |FAILED |SKIPPED) \] (\d+) test\(s\)")
UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in ", re.M)
UNITTEST_END = re.compile(r"^(?:OK|FAILED)(?: \((.*)\))?$", re.M)


class Counts:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    def bad(self):
        must_work = os.environ.get("MUST_WORK") == "1"
        nothing = self.passed + self.failed + self.skipped == 0
        return self.failed > 0 or nothing or (must_work and self.skipped > 0)


def run_shown(command, timeout_s, env):
    """Runs a command, passing its output on as it comes. (exit code or None on timeout, output)"""
    child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
    late = threading.Event()

    def end():
        late.set()
        os.killpg(child.pid, signal.SIGKILL)

    timer = threading.Timer(timeout_s, end)
    timer.start()
    lines = []
    for raw in child.stdout:
        line = raw.decode("utf-8", "replace")
        lines.append(line)
        sys.stdout.write(line)
        sys.stdout.flush()
    code = child.wait()
    timer.cancel()
    return (None if late.is_set() else code), "".join(lines)


def failure(what):
    print(f"FAILED: {what}", flush=True)
    return Counts(failed=1)


def run_unit(program, env):
    code, output = run_shown([program], UNIT_TIMEOUT_S, env)
    print(flush=True)
    counts = Counts()
    for word, number in CMOCKA_LINE.findall(output):
        setattr(counts, word.strip().lower(), getattr(counts, word.strip().lower()) + int(number))
    if code is None:
        counts.add(failure(f"{program} did not end within {UNIT_TIMEOUT_S} s"))
    elif code != 0 and counts.failed == 0:
        counts.add(failure(f"{program} ended with {code}"))
    elif counts.passed + counts.failed + counts.skipped == 0:
        counts.add(failure(f"{program} ran no test"))
    return counts


def run_fuzz(program, env):
    """Replays the stored inputs of one fuzz target; counts as one test."""
    name = os.path.basename(program).removeprefix("fuzz_")
    places = [f"tests/fuzz/{kind}/{name}" for kind in ("corpus", "regress")]
    places = [place for place in places if os.path.isdir(place)]
    code, _ = run_shown([program, *places], UNIT_TIMEOUT_S, env)
    return Counts(passed=1) if code == 0 else failure(f"{program} ended with {code}")


def run_http(folder, only, env):
    """One unittest run over a folder of test_*.py."""
    pattern = f"test_{only}.py" if only else "test_*.py"
    command = [sys.executable, "-B", "-m", "unittest", "discover", "-v", "-s", folder,
               "-p", pattern]
    code, output = run_shown(command, HTTP_TIMEOUT_S, env)
    ran, end = UNITTEST_RAN.findall(output), UNITTEST_END.findall(output)
    if code is None:
        return failure(f"{folder} did not end within {HTTP_TIMEOUT_S} s")
    if not ran or not end:
        return failure(f"{folder} ended with {code} before its closing line")
    figures = dict(re.findall(r"([a-z ]+)=(\d+)", end[-1]))
    figure = {key.strip(): int(value) for key, value in figures.items()}
    failed = sum(figure.get(key, 0) for key in ("failures", "errors", "unexpected successes"))
    skipped = figure.get("skipped", 0)
    # A failing subTest counts in "failures" but not in "Ran".
    return Counts(max(0, int(ran[-1]) - failed - skipped), failed, skipped)


def run_lint(name, build, env):
    code, _ = run_shown(lint_command(name, build), UNIT_TIMEOUT_S, env)
    return Counts(passed=1) if code == 0 else failure(f"lint: {name}")


def lint_command(name, build):
    for suffix in (".py", ".sh"):
        path = f"tests/lint/{name}{suffix}"
        if os.path.exists(path):
            return [sys.executable if suffix == ".py" else "sh", path, "--build", build]
    return ["false"]


def sanitizer_environment(kind, reports):
    """Reports also go to files, so that one in a daemon whose exit nobody looked at is seen."""
    common = f"log_path={reports}/report:exitcode=99"
    return {
        "asan": {
            "ASAN_OPTIONS": f"{common}:detect_stack_use_after_return=1:strict_string_checks=1"
                            ":detect_leaks=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        "tsan": {"TSAN_OPTIONS": f"{common}:second_deadlock_stack=1"},
    }[kind]


def check_reports(reports):
    counts = Counts()
    for name in sorted(os.listdir(reports)):
        print(f"---- sanitizer report {name}")
        with open(os.path.join(reports, name), encoding="utf-8", errors="replace") as file:
            print(file.read())
        counts.add(failure("a sanitizer reported an error"))
    return counts


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", required=True, help="the folder that holds kernd")
    parser.add_argument("--unit", action="append", default=[], metavar="PROGRAM")
    parser.add_argument("--fuzz", action="append", default=[], metavar="PROGRAM")
    parser.add_argument("--http", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--lint", action="append", default=[], metavar="NAME")
    parser.add_argument("--only", metavar="NAME", help="only test_NAME.py of each folder")
    parser.add_argument("--sanitizer", choices=("asan", "tsan"))
    parser.add_argument("--tally", metavar="FILE", help="also append the counts to this file")
    return parser.parse_args()


def run_all(wanted, env):
    total = Counts()
    for name in wanted.lint:
        total.add(run_lint(name, wanted.build, env))
    for program in wanted.unit:
        total.add(run_unit(program, env))
    for program in wanted.fuzz:
        total.add(run_fuzz(program, env))
    for folder in wanted.http:
        pattern = f"test_{wanted.only or ''}"
        if any(name.startswith(pattern) and name.endswith(".py") for name in os.listdir(folder)):
            total.add(run_http(folder, wanted.only, env))
    return total


def main():
    wanted = arguments()
    env = dict(os.environ, KERND=os.path.abspath(os.path.join(wanted.build, "kernd")),
               PYTHONDONTWRITEBYTECODE="1")
    reports = tempfile.mkdtemp(prefix="kernd-reports-")
    os.chmod(reports, 0o1777)  # the daemon under test may run as another user
    try:
        if wanted.sanitizer:
            env.update(sanitizer_environment(wanted.sanitizer, reports))
        total = run_all(wanted, env)
        total.add(check_reports(reports))
    finally:
        shutil.rmtree(reports, ignore_errors=True)
    if wanted.tally:
        with open(wanted.tally, "a", encoding="utf-8") as file:
            file.write(f"{total.passed} {total.failed} {total.skipped}\n")
    print(total, flush=True)
    return 1 if total.bad() else 0


if __name__ == "__main__":
    sys.exit(main())
