#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of kernd beside the bare launcher and the bare interpreters, all measured in one run.

    tests/bench/bench.py [--rounds 100] [--pause 0.05] [--seconds 5] [--json FILE]

One caller over a keep-alive connection takes the rows in turn (A, B, C, A, B, C, ...), so that
whatever disturbs the machine disturbs all of them. Prints a Markdown table (milliseconds) and
writes all samples as JSON. The row `bare true` is the control: when it wanders, or the machine was
busy with something else, the verdict is "no verdict" and the exit code is 2.
"""
import argparse
import ctypes
import json
import os
import platform
import pwd
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import cgroups  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
# The bare launcher line: the namespaces and mounts of a box, and nothing of kernd.
BWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
         "--setenv", "PATH", "/usr/bin:/bin", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin",
         "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc",
         "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm", "--dir", "/workspace",
         "--chdir", "/workspace", "--cap-drop", "ALL", "--"]
INTERPRETERS = {"python": ["/usr/bin/python3", "-c", "pass"], "bash": ["/usr/bin/bash", "-c", ":"],
                "node": ["/usr/bin/node", "-e", "0"]}
CELLS = {"python": "pass", "bash": ":", "node": "0"}
CONTROL = "bare true"
CGROUP_ROW = "KERND_BENCH_CGROUP"  # in the environment: measured before root was given up
WARM_UP = 3  # rounds that fill the page cache and are not counted
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def as_ordinary_user(script=__file__):
    """Started by root: again as nobody, so that launcher and daemon run with the same rights."""
    if os.geteuid() == 0:
        account = pwd.getpwnam(harness.USER)
        os.execvp("setpriv", ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}",
                              "--clear-groups", sys.executable, "-B", os.path.abspath(script),
                              *sys.argv[1:]])


def cgroup_row():
    """What a cgroup of its own costs a box, in the place that this process has for one."""
    told = os.environ.get(CGROUP_ROW)
    return json.loads(told) if told else cgroups.measure()


def milliseconds(usage):
    return (usage.ru_utime + usage.ru_stime) * 1000


def adopt_orphans():
    """bwrap does not wait for the first process of its box: as its subreaper we inherit that one."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")


def orphans_cpu():
    """CPU milliseconds of the orphans that ended since the last call."""
    spent = 0
    while True:
        try:
            child, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return spent
        if child == 0:
            return spent
        spent += milliseconds(usage)


class Bare:
    """A row that runs a command. Called: its milliseconds; then cpu(): its CPU milliseconds."""

    def __init__(self, command):
        self.command = command
        self.spent = 0

    def __call__(self):
        started = time.perf_counter_ns()
        child = os.posix_spawnp(self.command[0], self.command, {"PATH": "/usr/bin:/bin"},
                                file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        _, status, usage = os.wait4(child, 0)
        took = (time.perf_counter_ns() - started) / 1e6
        if status != 0:
            raise AssertionError(f"{self.command} ended with {status}")
        self.spent = milliseconds(usage)
        return took

    def cpu(self):
        return self.spent + orphans_cpu()


class Kernd:
    """A row that asks the daemon over one keep-alive connection."""

    def __init__(self, daemon, target, body):
        self.daemon, self.target, self.body = daemon, target, harness.as_json(body)
        self.connection = daemon.connect()
        self.headers = {**daemon.authorization(), "Content-Type": "application/json"}
        self.before = 0

    def __call__(self):
        self.before = self._total()
        started = time.perf_counter_ns()
        reply = self.connection.exchange("POST", self.target, self.headers, self.body)
        took = (time.perf_counter_ns() - started) / 1e6
        if reply.status != 200 or not reply.json["success"]:
            raise AssertionError(reply)
        return took

    def _total(self):
        """CPU milliseconds of the daemon and of the children it has waited for."""
        with open(f"/proc/{self.daemon.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) * TICK_MS

    def cpu(self):
        return self._total() - self.before


def rows_of(daemon):
    rows = {CONTROL: Bare(["/usr/bin/true"]), "bwrap true": Bare([*BWRAP, "/usr/bin/true"]),
            "kernd run [\"true\"]": Kernd(daemon, "/v1/run", {"command": ["true"]})}
    for language, command in INTERPRETERS.items():
        if os.path.exists(command[0]):
            rows[f"bare {language}"] = Bare(command)
            rows[f"bwrap {language}"] = Bare([*BWRAP, *command])
            rows[f"kernd runCode {language}"] = Kernd(
                daemon, "/v1/runCode", {"code": CELLS[language], "language": language})
    return rows


def measure(rows, rounds, pause):
    samples = {name: [] for name in rows}
    for number in range(rounds + WARM_UP):
        for name, row in rows.items():
            took = row()
            time.sleep(pause)  # also lets the daemon finish what it does behind the answer
            cpu = row.cpu()
            if number >= WARM_UP:
                samples[name].append((took, cpu))
    return samples


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def saturation(daemon, seconds):
    """Calls per second: kernd with many clients, and as many bare launchers as there are cores."""
    def many(count, function):
        stop, counts = time.monotonic() + seconds, [0] * count

        def work(index):
            call = function()
            while time.monotonic() < stop:
                call()
                counts[index] += 1
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / seconds

    def client():
        return Kernd(daemon, "/v1/runCode", {"code": "pass", "language": "python"})

    def launcher():
        return Bare([*BWRAP, *INTERPRETERS["python"]])

    found = {"kernd runCode python, 8 clients": many(8, client),
             f"bwrap python, {os.cpu_count()} at once": many(os.cpu_count(), launcher)}
    return found


def busy_share(before, after):
    """How much of the machine's time was used, by us or others."""
    return 1 - (after[3] - before[3]) / max(1, sum(after[:8]) - sum(before[:8]))


def machine_times():
    with open("/proc/stat", encoding="ascii") as file:
        return [int(field) for field in file.readline().split()[1:]]


def table(samples):
    lines = ["| row | p50 | p95 | p99 | CPU per call |", "|---|---|---|---|---|"]
    for name, values in samples.items():
        times = [took for took, _ in values]
        p99 = f"{quantile(times, .99):.2f}" if len(times) >= 100 else "too few"
        lines.append(f"| {name} | {quantile(times, .5):.2f} | {quantile(times, .95):.2f} | {p99} | "
                     f"{statistics.fmean(cpu for _, cpu in values):.1f} |")
    return "\n".join(lines)


def disturbed(samples, load):
    """Reasons to give no verdict."""
    control = [took for took, _ in samples[CONTROL]]
    reasons = []
    if quantile(control, .95) > 3 * quantile(control, .5) + 1:
        reasons.append("the control row wandered")
    if load > os.cpu_count() * 0.75:
        reasons.append(f"the machine was loaded ({load:.1f}) before the run")
    return reasons


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=5, help="of each saturation row, 0: none")
    parser.add_argument("--spares", default="8", help="boxes that the daemon may keep ready")
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    return parser.parse_args()


def main():
    wanted = parse()
    cgroup = cgroup_row()
    os.environ[CGROUP_ROW] = json.dumps(cgroup)
    as_ordinary_user()
    adopt_orphans()
    if shutil.which("bwrap") is None:
        sys.exit("bwrap is not installed")
    load = os.getloadavg()[0]
    daemon = harness.Daemon(["--log-level", "warning", "--spares", wanted.spares]).start()
    try:
        before = machine_times()
        samples = measure(rows_of(daemon), wanted.rounds, wanted.pause)
        busy = busy_share(before, machine_times())
        rates = saturation(daemon, wanted.seconds) if wanted.seconds else {}
        daemon.stop()
    finally:
        daemon.remove()
    launcher = subprocess.run(["bwrap", "--version"], capture_output=True, text=True,
                              check=False).stdout.strip()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, {launcher}; "
          f"{wanted.rounds} rounds, {wanted.pause * 1000:.0f} ms between calls; milliseconds; "
          f"{wanted.spares} spares; "
          f"processors {busy:.0%} busy\n")
    print(table(samples))
    print("\n" + cgroups.describe(cgroup))
    for name, rate in rates.items():
        print(f"\n{name}: {rate:.1f} calls/s", end="")
    reasons = disturbed(samples, load)
    print("\n\n" + ("no verdict: " + ", ".join(reasons) if reasons else "quiet enough to count"))
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            json.dump({"samples": samples, "rates": rates, "cgroup": cgroup, "load": load, "disturbed": reasons,
                       "machine": platform.uname()._asdict(), "launcher": launcher}, file)
    return 2 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
