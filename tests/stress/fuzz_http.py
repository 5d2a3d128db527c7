# SPDX-License-Identifier: Apache-2.0
"""make fuzz-http [N=100000] [S=seconds]: requests by the description against an ASan build.

Every answer must be as the description says, no 5xx but 503 and 507, every body strict JSON, no report
of a sanitizer, no leak at the end. Several clients at once, each with its own seed, which is printed.
"""
import argparse
import collections
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402  (the path above has to come first)
import httpfuzz  # noqa: E402


def client(daemon, seed, until, budget, results):
    fuzz = httpfuzz.Fuzz(daemon, seed)
    findings = []
    while time.monotonic() < until and budget.take(100) and len(findings) < 20 and daemon.alive():
        try:
            fuzz.run(100, findings)
        except Exception as error:  # pylint: disable=broad-except
            findings.append(repr(error))
    results.append((seed, fuzz.statuses, findings))


class Budget:
    def __init__(self, count):
        self.left, self.lock = count, threading.Lock()

    def take(self, count):
        with self.lock:
            self.left -= count
            return self.left >= 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"fuzz-http: {harness.KERND}, seed {options.seed}", flush=True)
    daemon = harness.Daemon(("--workers", "4", "--log-level", "info")).start()
    started, results = time.monotonic(), []
    budget = Budget(options.requests)
    threads = [threading.Thread(target=client, args=(
        daemon, options.seed + 7919 * number, started + options.seconds, budget, results))
        for number in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - started
    statuses = sum((row[1] for row in results), collections.Counter())
    findings = sorted({text for row in results for text in row[2]})
    print(f"fuzz-http: {sum(statuses.values())} requests in {took:.0f} s, "
          f"{dict(sorted(statuses.items()))}")
    for text in findings:
        print("FOUND", text[:3000])
    if daemon.alive():
        httpfuzz.Fuzz(daemon, 0).finish()
        daemon.stop()
    else:
        print("FOUND the daemon died:", daemon.log()[-6000:])
        findings.append("died")
        daemon.remove()
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
