# SPDX-License-Identifier: Apache-2.0
"""What runs on the host: used to prove that something started, and that nothing is left."""
import os
import re
import time


def _read(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # it ended meanwhile, or is not ours to read
        return b""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def stat(pid):
    """(state letter, parent, start time in ticks) or None when there is no such process."""
    text = _read(pid, "stat")
    if not text:
        return None
    fields = text[text.rindex(b")") + 2:].split()
    return fields[0].decode(), int(fields[1]), int(fields[19])


def identity(pid):
    """A value that a recycled pid does not share, None when there is no such process."""
    known = stat(pid)
    return None if known is None else (pid, known[2])


def alive(who):
    """Is the process of that identity still there and not merely a zombie?"""
    known = stat(who[0])
    return known is not None and known[2] == who[1] and known[0] != "Z"


def descendants(root):
    """Identities of the children of a process, their children, and so on."""
    parents = {pid: stat(pid) for pid in pids()}
    found, frontier = [], {root}
    while frontier:
        frontier = {pid for pid, known in parents.items() if known and known[1] in frontier}
        found += [(pid, parents[pid][2]) for pid in sorted(frontier)]
    return found


def zombies(root):
    return [who for who in descendants(root) if (stat(who[0]) or "?")[0] == "Z"]


def threads(pid):
    """(number, name) of each thread of a process."""
    return {(int(name), _read(pid, f"task/{name}/comm").decode().strip())
            for name in os.listdir(f"/proc/{pid}/task")}


def with_environment(text):
    """Pids with these bytes in their environment."""
    wanted = text.encode()
    return [pid for pid in pids() if wanted in _read(pid, "environ")]


def with_argument(text):
    """Pids with these bytes in their command line."""
    wanted = text.encode()
    return [pid for pid in pids() if pid != os.getpid() and wanted in _read(pid, "cmdline")]


def in_boxes_of(directory):
    """
    Pids that live in a mount namespace with a mount made from below `directory` (a box mounts its
    workspace and its private directory from there), or whose arguments name such a private
    directory (its launcher). So this finds also what lost its parents.
    """
    mounted = os.path.basename(directory).encode() + b"/"
    named = mounted + b"runtime/boxes/"
    return [pid for pid in pids()
            if mounted in _read(pid, "mountinfo") or named in _read(pid, "cmdline")]


def _has_number_in_template(pid, wanted):
    """Is it forked of a warm interpreter, or that itself, and its number in its namespace so?"""
    numbers = re.search(rb"^NSpid:\s(.*)$", _read(pid, "status"), re.M)
    return (b"/run/kernd-lib/driver_template.py" in _read(pid, "cmdline") and numbers is not None
            and wanted(int(numbers.group(1).split()[-1])))


def is_interpreter_of_template(pid):
    """The program of a box has the arguments of the one it was forked of, but is number 2 there."""
    return _has_number_in_template(pid, lambda number: number == 3)


def is_standby(pid):
    """A fork that waits for its order. The first process of a box begins as one of these, too."""
    found = stat(pid)
    return (found is not None and is_interpreter_of_template(found[1])
            and _has_number_in_template(pid, lambda number: number > 3))


def is_template(pid):
    """Is it of a template (the launcher, its first process, the warm interpreter), not of a box?"""
    words = _read(pid, "cmdline").rstrip(b"\0").split(b"\0")
    init = [b"/run/kernd-lib/kernd-init", b"template"]
    return words[:2] == init or words[-2:] == init or is_interpreter_of_template(pid) or is_standby(pid)


def describe(found):
    return [(pid, _read(pid, "cmdline").replace(b"\0", b" ")[:200], stat(pid)) for pid in found]


def wait_until(condition, seconds, what):
    """Polls until the condition gives a true value, which is returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.1f} s: {what}")
        time.sleep(0.01)


def wait_gone(find, seconds, what):
    """Polls until find() gives an empty list."""
    deadline = time.monotonic() + seconds
    while True:
        found = find()
        if not found:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} still there after {seconds:.1f} s: {describe(found)}")
        time.sleep(0.01)


def descriptors(pid):
    """How many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def status_field(pid, name):
    """One line of /proc/PID/status, e.g. "Threads", "VmRSS", "Uid"."""
    for line in _read(pid, "status").decode().splitlines():
        if line.startswith(name + ":"):
            return line.split(":", 1)[1].strip()
    raise AssertionError(f"process {pid} has no {name}")
