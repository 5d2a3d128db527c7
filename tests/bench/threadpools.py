#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Eight numpy calls at once, each with `cpus: 2`: the thread pools of its libraries as kernd sizes
them (they follow `cpus`), and as they size themselves, by the cores of the host.

    tests/bench/threadpools.py [--cpus 2] [--rounds 3] [--libraries FOLDER]

Prints, for each way, the wall time until all eight were done, the slowest and the median call, the
processor time of a call and its threads. The ways take turns, so that whatever disturbs the machine
disturbs both. With as many cores as --cpus both are the same. --libraries: where a libblas.so.3
with threads is (from Debian's libopenblas0-pthread, say), if numpy's own has none.
"""
import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402  (the path above has to come first)

CALLS = 8
POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
CODE = """
import numpy as np, os
a = np.random.default_rng(1).random((400, 400))
for _ in range(20):
    a = a @ a
    a /= a.max()
print(len(os.listdir('/proc/self/task')))
"""


def one_call(daemon, cpus, options):
    began = time.perf_counter()
    result = daemon.run_code(CODE, cpus=cpus, timeoutS=300, memoryMb=1024, **options)
    if not result["success"]:
        raise AssertionError(result)
    usage = result["usage"]
    return (time.perf_counter() - began, (usage["cpuUserMs"] + usage["cpuSystemMs"]) / 1000,
            int(result["stdout"]))


def one_round(daemon, cpus, options):
    began = time.perf_counter()
    calls = harness.parallel(CALLS, lambda _: one_call(daemon, cpus, options))
    return time.perf_counter() - began, calls


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cpus", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--libraries")
    wanted = parser.parse_args()
    usual, mounts = {}, {}
    if wanted.libraries:
        usual, mounts = {"LD_LIBRARY_PATH": "/libraries"}, {wanted.libraries: "/libraries"}
    many = {**usual, **dict.fromkeys(POOLS, str(os.cpu_count()))}
    ways = {"follow cpus": {"env": usual, "mounts": mounts},
            "by the host's cores": {"env": many, "mounts": mounts}}
    rounds = {name: [] for name in ways}
    daemon = harness.Daemon(["--log-level", "warning"]).start()
    try:
        means = daemon.get("/v1/capabilities").json["enforcement"]["cpu"]
        for _ in range(wanted.rounds):
            for name, options in ways.items():
                rounds[name].append(one_round(daemon, wanted.cpus, options))
        daemon.stop()
    finally:
        daemon.remove()
    print(f"{CALLS} numpy calls at once, cpus: {wanted.cpus:g} (enforced: {means}), {os.cpu_count()} CPUs, "
          f"{wanted.rounds} rounds; seconds\n")
    print("| thread pools | all done | slowest call | median call | CPU a call | threads |")
    print("|---|---|---|---|---|---|")
    for name, found in rounds.items():
        calls = [call for _, batch in found for call in batch]
        print(f"| {name} | {statistics.median(wall for wall, _ in found):.2f} | "
              f"{max(call[0] for call in calls):.2f} | "
              f"{statistics.median(call[0] for call in calls):.2f} | "
              f"{statistics.fmean(call[1] for call in calls):.2f} | "
              f"{max(call[2] for call in calls)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
