#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the test programs that `make` hands over, shows what they print, and closes with one line:

    N passed, N failed            (", N skipped" follows when any was)

A program that crashes, hangs or says nothing counts as one failure. With MUST_WORK=1 in the
environment a skipped test fails the run too.

Unit tests run beside each other, since half of what they do is wait. A program that failed then, and
did not crash, is looked at again as tests/http/run.py does: by itself, and it must pass three times.
"""
import argparse
import concurrent.futures
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
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
# Sanitized programs are slower; the HTTP tests stretch their limits by KERND_TEST_SLOW.
SLOWNESS = {"asan": "3", "tsan": "6"}
AGAIN_IN_A_ROW = 3


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


def run_watched(command, timeout_s, env, show=lambda line: None):
    """Runs a command; show gets each line as it comes. (exit code or None on timeout, output)"""
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
        show(line)
    code = child.wait()
    timer.cancel()
    return (None if late.is_set() else code), "".join(lines)


def run_shown(command, timeout_s, env):
    """The same, passing its output on."""
    def show(line):
        sys.stdout.write(line)
        sys.stdout.flush()
    return run_watched(command, timeout_s, env, show)


def failure(what):
    print(f"FAILED: {what}", flush=True)
    return Counts(failed=1)


def run_unit(program, env):
    """(its counts, whether it came to its end with tests that failed)"""
    code, output = run_watched([program], UNIT_TIMEOUT_S, env)
    sys.stdout.write(output + "\n")
    sys.stdout.flush()
    counts = Counts()
    for word, number in CMOCKA_LINE.findall(output):
        setattr(counts, word.strip().lower(), getattr(counts, word.strip().lower()) + int(number))
    if code is None:
        counts.add(failure(f"{program} did not end within {UNIT_TIMEOUT_S} s"))
    elif code != 0 and counts.failed == 0:
        counts.add(failure(f"{program} ended with {code}"))
    elif counts.passed + counts.failed + counts.skipped == 0:
        counts.add(failure(f"{program} ran no test"))
    return counts, code is not None and code > 0 and "[  FAILED  ]" in output


def run_units(programs, env):
    total = Counts()
    with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
        results = list(pool.map(lambda program: run_unit(program, env), programs))
    for program, (counts, ended) in zip(programs, results):
        if ended and all(run_unit(program, env)[0].failed == 0 for _ in range(AGAIN_IN_A_ROW)):
            print(f"UNSTEADY: {program} failed once, then passed {AGAIN_IN_A_ROW} times by itself")
            counts = Counts(counts.passed + counts.failed, 0, counts.skipped)
        total.add(counts)
    return total


def run_fuzz(program, env):
    """Replays the stored inputs of one fuzz target; counts as one test."""
    name = os.path.basename(program).removeprefix("fuzz_")
    places = [f"tests/fuzz/{kind}/{name}" for kind in ("corpus", "regress")]
    places = [place for place in places if os.path.isdir(place)]
    code, _ = run_shown([program, *places], UNIT_TIMEOUT_S, env)
    return Counts(passed=1) if code == 0 else failure(f"{program} ended with {code}")


def run_http(folders, only, skipped, env):
    """The tests that talk to a real daemon; their runner closes with counts of its own."""
    command = [sys.executable, "-B", "tests/http/run.py", *(["--only", only] if only else []),
               *(word for name in skipped for word in ("--skip", name)),
               *folders]
    code, output = run_shown(command, HTTP_TIMEOUT_S, env)
    closing = CLOSING_LINE.findall(output)
    if code is None:
        return failure(f"{command[2]} did not end within {HTTP_TIMEOUT_S} s")
    if not closing:
        return failure(f"{command[2]} ended with {code} before its closing line")
    return Counts(*(int(number or 0) for number in closing[-1]))


def run_lint(name, env):
    """One program of tests/lint; counts as one test."""
    command = [sys.executable, "-B", f"tests/lint/{name}.py"]
    if name in ("exports", "syscalls"):
        command += ["--build", os.path.dirname(env["KERND"])]
    code, _ = run_shown(command, UNIT_TIMEOUT_S, env)
    return Counts(passed=1) if code == 0 else failure(f"lint: {name}")


def sanitizer_environment(kind, reports):
    """Reports also go to files, so that one in a daemon whose exit nobody looked at is seen."""
    common = f"log_path={reports}/report:exitcode=99"
    return {
        "asan": {
            "ASAN_OPTIONS": f"{common}:detect_stack_use_after_return=1:strict_string_checks=1"
                            ":detect_leaks=1",
            "LSAN_OPTIONS": f"suppressions={os.path.abspath('tests/leaks.txt')}:print_suppressions=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        "tsan": {"TSAN_OPTIONS": f"{common}:second_deadlock_stack=1"},
    }[kind]


# All that LeakSanitizer has to say of a process that a test kills while it looks for leaks at its end.
KILLED_AT_ITS_END = re.compile(r"(==\d+==Unable to get registers from thread \d+\.\n)+")


def check_reports(reports):
    counts = Counts()
    for name in sorted(os.listdir(reports)):
        print(f"---- sanitizer report {name}")
        with open(os.path.join(reports, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        print(text)
        if KILLED_AT_ITS_END.fullmatch(text) is None:
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
    parser.add_argument("--skip", action="append", default=[], metavar="NAME",
                        help="not test_NAME.py of the folders")
    parser.add_argument("--sanitizer", choices=("asan", "tsan"))
    parser.add_argument("--tally", metavar="FILE", help="also append the counts to this file")
    return parser.parse_args()


def run_all(wanted, env):
    total = Counts()
    for name in wanted.lint:
        total.add(run_lint(name, env))
    total.add(run_units(wanted.unit, env))
    for program in wanted.fuzz:
        total.add(run_fuzz(program, env))
    if wanted.http:
        total.add(run_http(wanted.http, wanted.only, wanted.skip, env))
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
            env.setdefault("KERND_TEST_SLOW", SLOWNESS[wanted.sanitizer])
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
