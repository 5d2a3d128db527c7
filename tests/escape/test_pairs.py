# SPDX-License-Identifier: Apache-2.0
"""Attack, then verify: hostile code runs, and afterwards the host itself is looked at.

An answer of a box proves nothing about the host; so each test here first shows that its way of
looking would notice (the control), lets the attack run, and then looks from outside.
"""
import ctypes
import os
import re
import stat
import subprocess
import tempfile
import unittest

from escape import EscapeCase, harness

import census  # noqa: E402  (escape.py made it reachable)


def box_child(daemon, mark):
    """Pids of the processes of the marked box, as the host sees them."""
    return census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")


class Signals(EscapeCase):
    """A box that signals everything it can name hits itself alone."""

    def victim(self):
        """A process of the daemon's own user, outside every box."""
        who = {"user": self.daemon.user, "extra_groups": []} if self.daemon.user else {}
        process = subprocess.Popen(["sleep", "300"], **who)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_kill_everybody(self):
        victim, control = self.victim(), self.victim()
        self.assertIsNone(victim.poll())
        control.terminate()
        self.assertEqual(control.wait(), -15, "the control: such a process can be ended")
        result = self.run_code(f"""
import os
for pid in list(range(2, 4000)) + [{victim.pid}, {self.daemon.pid}, {os.getpid()}]:
    if pid != os.getpid():
        for number in (9, 19):
            try: os.kill(pid, number); print("signalled", pid)
            except OSError: pass
print("done")
""")
        self.assertIn("done", result["stdout"])
        self.assertIsNone(victim.poll())
        self.assertTrue(self.daemon.alive())
        self.assertNotEqual(census.stat(victim.pid)[0], "T")
        result = self.run_code("kill -9 -1", "bash")
        self.assertIsNone(victim.poll())
        self.assertTrue(self.daemon.alive())

    INFLUENCE = """
import ctypes, os, resource
libc = ctypes.CDLL(None)
own = os.fork()
if own == 0: libc.pause()
touched = set()
for pid in {own, *range(3, 4000), *%r} - {os.getpid()}:
    for change in (lambda: os.setpriority(os.PRIO_PROCESS, pid, 15),
                   lambda: os.setpriority(os.PRIO_PGRP, pid, 15),
                   lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
                   lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                   lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)),
                   lambda: libc.syscall(%d, 1, pid, 3 << 13) == 0 or os.kill(-1 << 30, 0)):  # ioprio_set, idle
        try: change(); touched.add(pid)
        except OSError: pass
os.setpriority(os.PRIO_USER, os.getuid(), 15)
libc.syscall(%d, 3, os.getuid(), 3 << 13)
os.kill(own, 9)
print([pid == own for pid in touched])
"""

    def test_priorities_and_limits_of_others(self):
        """Whom the same user may slow down, pin or starve: nobody outside the box."""
        ioprio_set, ioprio_get = {"x86_64": (251, 252), "aarch64": (30, 31)}[os.uname().machine]
        libc = ctypes.CDLL(None)

        def state(pid):
            try:
                with open(f"/proc/{pid}/limits", encoding="ascii") as file:
                    return (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid),
                            os.sched_getscheduler(pid), libc.syscall(ioprio_get, 1, pid), file.read())
            except OSError:
                return None  # a thread that has ended meanwhile

        victim, control = self.victim(), self.victim()
        others = [victim.pid, *(number for number, _ in census.threads(self.daemon.pid))]
        before = {pid: state(pid) for pid in others}
        os.setpriority(os.PRIO_PROCESS, control.pid, 15)
        self.assertNotEqual(state(control.pid), before[victim.pid], "the control: a change is seen")
        result = self.run_code(self.INFLUENCE % (others, ioprio_set, ioprio_set))
        self.assert_success(result, "[True]\n")  # its own child alone
        self.assertIsNotNone(state(victim.pid))
        for pid in others:
            self.assertIn(state(pid), (before[pid], None), pid)

    def test_a_neighbouring_box_is_out_of_reach(self):
        mark = harness.new_mark()

        def attack():
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
            return self.run_code("kill -9 -1; for p in $(seq 2 3000); do kill -9 $p; done "
                                 "2>/dev/null; echo done", "bash")

        results = harness.parallel(2, lambda i: attack() if i else self.run_command(
            ["sh", "-c", "sleep 3; echo survived"], env={"MARK": mark}))
        self.assert_success(results[0], "survived\n")


class Files(EscapeCase):
    def digest(self, folder):
        """Every entry of a directory of the host with its metadata, but without access times."""
        found = {}
        for parent, folders, files in os.walk(folder):
            for name in folders + files:
                status = os.lstat(os.path.join(parent, name))
                found[os.path.join(parent, name)] = (status.st_mode, status.st_size,
                                                     status.st_mtime_ns, status.st_uid)
        return found

    def test_nothing_outside_the_workspace_changes(self):
        watched = ["/etc", "/usr/local", "/usr/bin", "/home", "/root", "/opt", "/srv"]
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            os.chmod(folder, 0o777)
            open(os.path.join(folder, "bait"), "w", encoding="ascii").close()
            os.chmod(os.path.join(folder, "bait"), 0o666)
            watched.append(folder)
            before = [self.digest(path) for path in watched]
            os.utime(os.path.join(folder, "bait"), (1, 1))
            self.assertNotEqual(before[-1], self.digest(folder), "the control: a change is seen")
            before[-1] = self.digest(folder)
            self.run_code(f"""
for d in {' '.join(watched)} / /var/tmp /tmp /proc/1/root{folder} ../../../..{folder}; do
  touch $d/planted; echo x >> $d/bait; chmod 777 $d; rm -rf $d/bait; ln -s / $d/link; mkdir $d/dir
done 2>/dev/null
rm -rf /usr/bin /etc /home/* /var/tmp/* 2>/dev/null
find / -xdev -writable -type f -not -path '/proc/*' -exec sh -c 'echo x >> "$1"' sh {{}} \\; 2>/dev/null
""", "bash", timeoutS=25)
            for path, wanted in zip(watched, before):
                self.assertEqual(self.digest(path), wanted, path)

    def test_set_user_id_files_of_a_workspace(self):
        """They belong to the unprivileged user and lie behind a directory that is his alone."""
        mark = harness.new_mark()

        def look():
            box_child(self.daemon, mark)
            path = census.wait_until(lambda: [
                os.path.join(parent, "rooted") for parent, _, files in os.walk(self.daemon.state)
                if "rooted" in files], harness.seconds(10), "the file in the workspace")[0]
            status, attributes, modes, parent = os.lstat(path), os.listxattr(path), [], path
            while parent != self.daemon.home:
                parent = os.path.dirname(parent)
                modes.append(stat.S_IMODE(os.stat(parent).st_mode))
            return status, attributes, modes

        code = ("cp /usr/bin/id rooted; chmod 6777 rooted; stat -c %a rooted; "
                "chown 0:0 rooted && echo owned; setcap cap_setuid+ep rooted && echo capable; "
                "sleep 1.5; exit 0")
        results = harness.parallel(2, lambda i: look() if i else self.run_code(
            code, "bash", env={"MARK": mark}))
        self.assert_success(results[0])
        if harness.BOX_UID != 0:  # else it owns them as what it is: outside, the user
            self.assertNotIn("owned", results[0]["stdout"])
        self.assertNotIn("capable", results[0]["stdout"])
        owner = os.stat(f"/proc/{self.daemon.pid}").st_uid
        status, attributes, modes = results[1]
        self.assertEqual(status.st_uid, owner)
        self.assertNotIn("security.capability", attributes)
        self.assertIn(0o700, modes, "others can reach it")
        self.assertNotEqual(owner, 0)

    def test_the_workspace_is_gone(self):
        name = "trace-" + harness.new_mark()
        self.run_code(f"touch {name}; mkdir -p a/b; chmod 000 a; ln -s / up", "bash")
        census.wait_until(lambda: not self.daemon.find(name), harness.seconds(10), "removal")
        self.daemon.wait_settled()

    def test_links_planted_for_the_daemon(self):
        """What the daemon removes after a run is the workspace, not what links in it point to."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
            os.chmod(folder, 0o777)
            kept = os.path.join(folder, "kept")
            with open(kept, "w", encoding="ascii") as file:
                file.write("kept")
            os.chmod(kept, 0o666)
            self.run_code(f"""
import os
os.symlink({folder!r}, "link"); os.symlink({kept!r}, "file"); os.symlink("/proc/self/cwd", "loop")
os.mkdir("d"); os.symlink({folder!r}, "d/deep"); os.rename("d", "e")
os.chmod(".", 0o000)
""")
            self.assertEqual(os.listdir(folder), ["kept"])
            with open(kept, encoding="ascii") as file:
                self.assertEqual(file.read(), "kept")
        self.daemon.wait_settled()


class Processes(EscapeCase):
    """How a box looks from outside while it runs."""

    def test_namespaces_and_rights(self):
        mark = harness.new_mark()

        def look():
            pid = box_child(self.daemon, mark)[0]
            names = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")
            inside = {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in names}
            outside = {name: os.readlink(f"/proc/{self.daemon.pid}/ns/{name}") for name in names}
            fields = {name: census.status_field(pid, name) for name in
                      ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                       "Seccomp_filters", "Uid", "NSpid")}
            return inside, outside, fields

        results = harness.parallel(2, lambda i: look() if i else self.run_command(
            ["sleep", "1.5"], env={"MARK": mark}))
        self.assert_success(results[0])
        inside, outside, fields = results[1]
        for name in inside:
            self.assertNotEqual(inside[name], outside[name], f"{name} namespace is shared")
        for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"):
            self.assertEqual(int(fields[name], 16), 0, f"{name}: {fields[name]}")
        self.assertEqual((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"))
        self.assertGreaterEqual(int(fields["Seccomp_filters"]), 1)
        owner = str(os.stat(f"/proc/{self.daemon.pid}").st_uid)
        self.assertEqual(set(fields["Uid"].split()), {owner})
        self.assertGreaterEqual(len(fields["NSpid"].split()), 2)

    def test_two_boxes_share_nothing(self):
        """What has a name, and what a program was given, of one box looked for in another beside it."""
        mark, word = harness.new_mark(), "word" + harness.new_mark()[5:15]
        make = f"""
import os, socket, ctypes, time, sys
from multiprocessing import shared_memory
libc = ctypes.CDLL(None)
s = socket.socket(socket.AF_UNIX); s.bind("\\0{word}"); s.listen()
t = socket.socket(); t.bind(("127.0.0.1", 45454)); t.listen()
m = shared_memory.SharedMemory("{word}", create=True, size=4096)
libc.msgget(0x4b45524e, 0o1666); libc.semget(0x4b45524e, 1, 0o1666)
libc.mq_open(b"/{word}", os.O_CREAT | os.O_RDWR, 0o666, None)
print(libc.shmget(0x4b45524e, 4096, 0o1666), flush=True)
open("/tmp/{word}", "w").close(); open("/dev/shm/{word}2", "w").close()
open("/workspace/{word}", "w").close(); open(os.path.expanduser("~/{word}"), "w").close()
"""
        seek = f"""
import os, socket, ctypes
libc = ctypes.CDLL(None)
found = []
try: socket.socket(socket.AF_UNIX).connect("\\0{word}"); found.append("abstract socket")
except OSError: pass
try: socket.create_connection(("127.0.0.1", 45454), 2); found.append("port")
except OSError: pass
if libc.shmget(0x4b45524e, 4096, 0) >= 0: found.append("shared memory segment")
if libc.msgget(0x4b45524e, 0) >= 0: found.append("messages")
if libc.semget(0x4b45524e, 1, 0) >= 0: found.append("semaphores")
if libc.mq_open(b"/{word}", 0) >= 0: found.append("queue")
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("cmdline", "environ"):
        try:
            if b"{mark[:9]}" + b"{mark[9:]}" in open("/proc/" + pid + "/" + name, "rb").read(): found.append(name)
        except OSError: pass
for p in ("/tmp", "/dev/shm", "/workspace", os.path.expanduser("~")):
    found += [p for n in os.listdir(p) if n.startswith("{word}")]
print(sorted(set(found)))
"""
        control = self.run_command(["python3", "-c", make + seek, mark], env={"MARK": mark})
        self.assert_success(control)
        self.assertEqual(eval(control["stdout"].splitlines()[1]),
                         ["/dev/shm", "/home/sandbox", "/tmp", "/workspace",
                          "abstract socket", "cmdline", "environ", "messages", "port",
                          *(["queue"] if harness.ENGINE != "kern" else []), "semaphores",
                          "shared memory segment"], "the control")

        def second():
            box_child(self.daemon, mark)
            return self.run_code(seek)

        # As a command: a marked environment shows only in programs that were started with it.
        held = make + "time.sleep(2.5); sys.stdout.flush(); os._exit(0)"
        results = harness.parallel(2, lambda i: second() if i else self.run_command(
            ["python3", "-c", held, mark], env={"MARK": mark}))
        self.assertEqual(results[0]["exitCode"], 0)
        self.assert_success(results[1], "[]\n")

    def test_nothing_stays_of_what_a_box_hid(self):
        mark = harness.new_mark()
        code = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import ctypes, signal
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: hides from its own user
            ctypes.CDLL(None).prctl(15, b"kworker/0:1", 0, 0, 0)
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            for fd in range(256):
                try: os.close(fd)
                except OSError: pass
            while True: signal.pause()
        os._exit(0)
    os.wait()
print("hidden", flush=True)
sys.stdin.read()
"""
        result = self.run_command(["python3", "-c", code], env={"MARK": mark})
        self.assert_success(result, "hidden\n")
        self.assert_gone(mark)
        self.daemon.wait_settled()


class ThirtyTwoBit(EscapeCase):
    """System calls by another door: the 32-bit gate and the x32 numbers must not pass the filter."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp(prefix="kernd-probe-")
        cls.program = os.path.join(cls.folder, "gate")
        here = os.path.dirname(os.path.abspath(__file__))
        if os.uname().machine == "x86_64":
            subprocess.run(["gcc", "-O1", "-static", "-o", cls.program,
                            os.path.join(here, "gate.c")], check=True)

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["rm", "-rf", cls.folder], check=False)
        super().tearDownClass()

    def boxed(self, *arguments):
        with open(self.program, "rb") as file:
            program = harness.b64(file.read())
        return self.run_command(["sh", "-c", "chmod +x gate; exec ./gate \"$@\"", "sh", *arguments],
                                files={"gate": program})

    def test_gates(self):
        if os.uname().machine != "x86_64":
            self.skipTest("this door is one of x86")
        result = self.boxed("native")
        self.assert_success(result)
        self.assertRegex(result["stdout"], r"^begin\npid \d+\n$")  # the program itself works
        for gate in ("int80", "x32"):
            with self.subTest(gate=gate):
                host = subprocess.run([self.program, gate], capture_output=True, text=True,
                                      check=False)
                result = self.boxed(gate)
                self.assertTrue(result["stdout"].startswith("begin\n"))
                self.assertNotIn("pid", result["stdout"])
                if re.search(r"pid \d+", host.stdout):  # the control: this kernel has the door
                    self.assert_fault(result, "escape_blocked")
                    self.assertEqual(result["signal"], "SYS")

    def test_compiled_inside_the_box(self):
        if harness.ENGINE == "kern":
            self.skipTest("its image has no compiler")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "gate.c"),
                  encoding="utf-8") as file:
            source = file.read()
        result = self.run_command(["sh", "-c", "gcc -o gate gate.c && exec ./gate mount"],
                                  files={"gate.c": source})
        self.assertTrue(result["stdout"].startswith("begin\n"), result)
        self.assertNotIn("mounted", result["stdout"])
        self.assert_fault(result, "escape_blocked")


class Disguises(EscapeCase):
    """The answer tells of an escape only when there was one."""

    def test_killed_child_of_a_shell(self):
        """The program itself went on: its own exit code counts, and no fault is made up."""
        result = self.run_command(["sh", "-c", "mount -t tmpfs none /mnt; echo status $?"])
        self.assertIsNone(result["fault"])
        self.assertRegex(result["stdout"], r"^status (1|32|126|127|159)\n$")

    def test_the_signal_sent_by_the_program_itself(self):
        """SIGSYS by kill is no blocked call; kernd-init sees only the signal, so it is named."""
        result = self.run_command(["sh", "-c", "kill -SYS $$"])
        self.assertEqual((result["exitCode"], result["signal"]), (159, "SYS"))


if __name__ == "__main__":
    unittest.main()
