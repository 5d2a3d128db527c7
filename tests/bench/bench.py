#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kernd beside its peers, all measured in one run: latency, load, memory, growth.

    tests/bench/bench.py [--rounds 100] [--pause 0.05] [--seconds 3] [--silence 60] [--json FILE]

One caller over a keep-alive connection takes the rows in turn (A, B, C, A, B, C, ...), so that
whatever disturbs the machine disturbs all of them; then come the shapes of load (shapes.py), what
is kept in memory, and how costs grow (scale.py). Peers that are not installed, or do not work here,
are left out and named. Prints Markdown tables (milliseconds) and writes all samples as JSON, from
which report.py makes a page. The row `bare true` is the control: when it wanders, or the machine was
busy with something else, the verdict is "no verdict" and the exit code is 2; it is 1 when a budget
was missed on a quiet machine.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import cgroups  # noqa: E402  (the path above has to come first)
import found as findings  # noqa: E402
import harness  # noqa: E402
import kern_peers  # noqa: E402
import scale  # noqa: E402
import shapes  # noqa: E402
import streamkit  # noqa: E402
from found import quantile  # noqa: E402

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
IDLE_S = 5  # a server that nobody has called for so long is idle: it gives back what its start took
FLOOD_CALLS = 150
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


def hand_over(path):
    """The file that the run will write, which may be where only root can make one."""
    if path and os.geteuid() == 0:
        with open(path, "w", encoding="utf-8") as file:
            os.fchown(file.fileno(), pwd.getpwnam(harness.USER).pw_uid, -1)


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

    def __init__(self, command, environment=None):
        self.command = command
        self.environment = environment or {"PATH": "/usr/bin:/bin"}
        self.spent = 0

    def __call__(self):
        started = time.perf_counter_ns()
        child = os.posix_spawnp(self.command[0], self.command, self.environment,
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
        self.daemon, self.call = daemon, shapes.Caller(daemon, target, body)
        self.before = 0

    def __call__(self):
        self.before = self._total()
        return self.call()

    def _total(self):
        """CPU milliseconds of the daemon and of the children it has waited for."""
        with open(f"/proc/{self.daemon.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) * TICK_MS

    def cpu(self):
        return self._total() - self.before


# ---- crun ----

OCI = {"ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": True}, "hostname": "box",
       "mounts": [{"destination": "/usr", "source": "/usr", "type": "bind", "options": ["rbind", "ro"]},
                  {"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}],
       "linux": {"namespaces": [{"type": kind} for kind in
                                ("pid", "mount", "user", "ipc", "uts", "network")]}}


class Crun(Bare):
    """A container of the same namespaces, by crun without root and without cgroups."""

    def __init__(self, directory, command):
        self.bundle = tempfile.mkdtemp(dir=directory)
        for name in ("usr", "proc", "dev", "tmp"):
            os.makedirs(os.path.join(self.bundle, "rootfs", name))
        for name in ("bin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(self.bundle, "rootfs", name))
        ids = [{"containerID": 1000, "size": 1}]
        config = {**OCI, "process": {
            "user": {"uid": 1000, "gid": 1000}, "args": command, "env": ["PATH=/usr/bin:/bin"],
            "cwd": "/", "noNewPrivileges": True}}
        config["linux"] = {**OCI["linux"], "uidMappings": [{**ids[0], "hostID": os.getuid()}],
                           "gidMappings": [{**ids[0], "hostID": os.getgid()}]}
        with open(os.path.join(self.bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        super().__init__(["crun", "--root", directory, "--cgroup-manager=disabled", "run", "-b",
                          self.bundle, "none"])
        self.number = 0

    def __call__(self):
        self.number += 1
        self.command[-1] = f"{os.path.basename(self.bundle)}-{self.number}"
        return super().__call__()


def add_crun(rows, directory, notes):
    if shutil.which("crun") is None:
        notes.append("crun is not installed: its rows are left out")
        return
    row = Crun(directory, ["/usr/bin/true"])
    tried = subprocess.run(row.command, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        notes.append(f"crun can't run a container here ({tried.stderr.strip()}): its rows are left out")
        return
    rows["crun true"] = row
    rows["crun python"] = Crun(directory, INTERPRETERS["python"])


# ---- one caller ----

def rows_of(daemon, directory, notes):
    rows = {CONTROL: Bare(["/usr/bin/true"]), "bwrap true": Bare([*BWRAP, "/usr/bin/true"]),
            "kernd run [\"true\"]": Kernd(daemon, "/v1/run", {"command": ["true"]})}
    for language, command in INTERPRETERS.items():
        if os.path.exists(command[0]):
            rows[f"bare {language}"] = Bare(command)
            rows[f"bwrap {language}"] = Bare([*BWRAP, *command])
            rows[f"kernd runCode {language}"] = Kernd(
                daemon, "/v1/runCode", {"code": CELLS[language], "language": language})
    add_crun(rows, directory, notes)
    programs = {"true": ["/usr/bin/true"], "python": INTERPRETERS["python"]}
    kern_peers.add_bare(rows, Bare, programs, directory, notes)
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


def one_caller(daemon, found, wanted):
    with tempfile.TemporaryDirectory(prefix="kernd-bench-") as directory:
        samples = measure(rows_of(daemon, directory, found.notes), wanted.rounds, wanted.pause)
    for name, values in samples.items():
        found.times(f"one caller, {wanted.pause * 1e3:.0f} ms pauses", name,
                    [took for took, _ in values], cpu=findings.mean([cpu for _, cpu in values]))


# ---- load ----

def under_load(daemon, found, wanted, meanwhile):
    """meanwhile: what is measured elsewhere during the silence before the burst."""
    times, rate = shapes.offered(daemon, wanted.rate, wanted.seconds)
    found.times(f"{wanted.rate}/s offered", "kernd runCode python, offered", times, rate=rate)
    callers = []
    for count in (count for count in (1, 4, 16, 64, 256) if count <= wanted.callers):
        times, rate = shapes.saturation(daemon, count, wanted.seconds)
        found.times("saturation", f"kernd runCode python, {count} callers", times, rate=rate)
        callers.append((count, rate))
    found.curve("runCode python per second", "callers", "calls/s", callers)
    times, rate = shapes.saturation(daemon, 16, wanted.seconds, isolation="boot")
    found.times("saturation", "kernd runCode python, 16 callers, booted", times, rate=rate)
    launcher = [*BWRAP, *INTERPRETERS["python"]]
    times, rate = shapes.loops(lambda: Bare(launcher), os.cpu_count(), wanted.seconds)
    found.times("saturation", "bwrap python, as many as cores", times, rate=rate)
    found.times(f"burst of 50 after {wanted.silence:g} s of silence", "kernd runCode python, burst",
                shapes.burst(daemon, 50, wanted.silence, meanwhile))
    import streams  # it imports this module
    for name, how in (("alone", streams.one_caller), ("beside 64 others", streams.flooded)):
        found.times("a caller and a flood", f"kernd run [\"true\"], {name}",
                    [took for took, _, _ in how(daemon, FLOOD_CALLS)])


# ---- kernels, streams, memory ----

def kernels_and_streams(daemon, found):
    import kernels  # they import this module
    import streams
    ours = kernels.Kernd(daemon)
    found.times("one after the other", "kernd cell 1+1", [ours.cell() for _ in range(500)])
    kernel_mib = ours.kernel.get()["memoryBytes"] / (1 << 20)
    for session in ("bench", "cold"):
        assert daemon.request("DELETE", f"/v1/sessions/{session}").status == 204
    found.memory("idle python kernel", kernel_mib)
    if shutil.which("jupyter-server"):
        peer = kernels.Jupyter()
        try:
            found.times("one after the other", "jupyter cell 1+1", [peer.cell() for _ in range(50)])
            found.memory("idle jupyter kernel", peer.resident())
        finally:
            peer.stop()
    else:
        found.notes.append("jupyter-server is not installed: its rows are left out")
    found.times("stream", "bare pipe", streams.pipe(100))
    found.times("stream", "kernd first byte, NDJSON", streams.first_bytes(daemon, streamkit.NDJSON, 100))
    bare, boxed = streams.drain_rates(daemon)
    found.rate("stream", "bare 1 GiB of output", bare, "GB/s")
    found.rate("stream", "kernd 1 GiB of output", boxed, "GB/s")


def growth(daemon, found, wanted):
    cost, times = shapes.idle_sessions(daemon, wanted.idle)
    found.memory("idle session", cost)
    found.times(f"beside {wanted.idle} idle sessions", "kernd runCode python, idle sessions", times)
    scale.sessions(daemon, found, wanted.sessions)
    scale.files(daemon, found, wanted.files)
    scale.output(daemon, found, wanted.output)


def busy_share(before, after):
    """How much of the machine's time was used, by us or others."""
    return 1 - (after[3] - before[3]) / max(1, sum(after[:8]) - sum(before[:8]))


def machine_times():
    with open("/proc/stat", encoding="ascii") as file:
        return [int(field) for field in file.readline().split()[1:]]


def disturbed(control, load):
    """Reasons to give no verdict. control: the times of the control row."""
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
    parser.add_argument("--seconds", type=float, default=3, help="of each load row, 0: none")
    parser.add_argument("--rate", type=int, default=250, help="calls per second that are offered")
    parser.add_argument("--silence", type=float, default=60, help="seconds before the burst")
    parser.add_argument("--callers", type=int, default=64, help="most of the curve")
    parser.add_argument("--idle", type=int, default=1000, help="sessions beside a caller, 0: no growth")
    parser.add_argument("--sessions", type=int, default=1000, help="most of the curve")
    parser.add_argument("--files", type=int, default=10000, help="most of the curve")
    parser.add_argument("--output", type=int, default=64 << 20, help="most bytes of the curve")
    parser.add_argument("--spares", default="8", help="boxes that the daemon may keep ready")
    parser.add_argument("--json", metavar="FILE", help="write all samples there")
    return parser.parse_args()


@contextlib.contextmanager
def served(wanted):
    daemon = harness.Daemon(["--log-level", "warning", "--spares", wanted.spares, "--queue", "1000",
                             "--queue-per-caller", "1000"]).start()
    try:
        yield daemon
    finally:
        daemon.remove()


def run(found, wanted):
    with served(wanted) as daemon:
        time.sleep(IDLE_S)
        found.memory("idle daemon", shapes.resident_mib(daemon.pid))
        one_caller(daemon, found, wanted)

        def beside_kern():
            kern_peers.measure(found, wanted.spares, wanted.rounds // 5, wanted.seconds)
        if wanted.seconds:
            under_load(daemon, found, wanted, beside_kern)
        else:
            beside_kern()
        kernels_and_streams(daemon, found)
    if wanted.idle:
        with served(wanted) as daemon:
            growth(daemon, found, wanted)


def main():
    wanted = parse()
    cgroup = cgroup_row()
    os.environ[CGROUP_ROW] = json.dumps(cgroup)
    kern_peers.load_image()
    hand_over(wanted.json)
    as_ordinary_user()
    adopt_orphans()
    if shutil.which("bwrap") is None:
        sys.exit("bwrap is not installed")
    load, began, before = os.getloadavg()[0], time.time(), machine_times()
    found = findings.Found()
    found.notes.append(cgroups.describe(cgroup))
    run(found, wanted)
    busy = busy_share(before, machine_times())
    launcher = subprocess.run(["bwrap", "--version"], capture_output=True, text=True,
                              check=False).stdout.strip()
    facts = {"launcher": ", ".join([launcher, *kern_peers.versions()]), "rounds": wanted.rounds,
             "spares": wanted.spares, "load": load, "cgroup": cgroup, "busy": round(busy, 2),
             "seconds": round(time.time() - began),
             "disturbed": disturbed(found.row(CONTROL)["times"], load)}
    text = found.as_json(**facts)
    if wanted.json:
        with open(wanted.json, "w", encoding="utf-8") as file:
            file.write(text)
    print(findings.page(json.loads(text)))
    missed = [what for what, _, _, kept in found.budgets() if not kept]
    return 2 if facts["disturbed"] else 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
