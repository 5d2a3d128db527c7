# SPDX-License-Identifier: Apache-2.0
"""Limits hold, and every answer says by what means: the kernel's cgroups, or what stands in.

The same tests run on any host; KERND_TEST_ENFORCED=cgroup (as tests/vm sets it) demands the kernel.
"""
import os
import pwd
import subprocess
import sys
import threading
import time
import unittest

import census
import harness
import sessionkit

# For a daemon that was started from a shell: the way to the user's systemd.
BUS = {name: os.environ.get(name) for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")}
EVIDENCE = {"cgroup": "memory.events: oom_kill", "watchdog": "memory watchdog"}
HOLD = "import time; time.sleep(600)"
GROW = "b = bytearray(b'x') * (300 << 20)"
SHELL_CHILD = f"python3 -c \"{GROW}; {HOLD}\"; echo \"went on with $?\""


class Case(sessionkit.Case):
    # The time of calls that give none is a limit, too: a slow machine must not meet it first.
    daemon_arguments = ("--default-timeout-s", str(harness.seconds(30)))
    daemon_environment = BUS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.means = cls.daemon.get("/v1/capabilities").json["enforcement"]

    def assert_oom(self, result, cap=64):
        self.assert_fault(result, "oom")
        self.assertIn(EVIDENCE[self.means["memory"]], result["fault"]["evidence"])
        self.assertIn(f"{cap} MiB", result["fault"]["evidence"])
        self.assertEqual((result["exitCode"], result["signal"]), (137, "KILL"))
        self.assertEqual(result["limits"]["enforced"]["memory"], self.means["memory"])


class Labels(Case):
    def test_what_this_host_can_do(self):
        self.assertIn(self.means["memory"], ("cgroup", "watchdog"))
        self.assertIn(self.means["pids"], ("cgroup", "rlimit"))
        self.assertIn(self.means["cpu"], ("cgroup", "none"))
        self.assertEqual(self.means["disk"], "measured")
        if os.environ.get("KERND_TEST_ENFORCED") == "cgroup":
            self.assertEqual([self.means[name] for name in ("memory", "pids", "cpu")],
                             ["cgroup"] * 3)

    def test_a_result_tells_of_the_caps_it_had(self):
        result = self.run_code("print(1)", memoryMb=64, pids=32, cpus=0.5, diskMb=50)
        self.assert_success(result, "1\n")
        self.assertEqual(result["limits"]["enforced"], self.means)
        result = self.run_code("print(1)")
        self.assertEqual((result["limits"]["enforced"]["cpu"], result["limits"]["enforced"]["disk"]),
                         ("none", "none"))

    def test_required_limits(self):
        asked = {"command": ["true"], "requireLimits": True, "memoryMb": 64, "cpus": 0.5}
        reply = self.daemon.post("/v1/run", asked)
        if self.means["memory"] == "cgroup":
            self.assertEqual(reply.status, 200, reply)
            self.assertEqual(reply.json["limits"]["enforced"]["memory"], "cgroup")
            return
        self.assert_problem(reply, 422, "limits_not_enforced", "/memoryMb")
        for word in ("watchdog", "systemctl --user", "enable-linger", "--cgroupns"):
            self.assertIn(word, reply.body.decode())
        reply = self.daemon.post("/v1/sessions", {"requireLimits": True})
        self.assert_problem(reply, 422, "limits_not_enforced", "/memoryMb")

    def test_usage(self):
        result = self.run_code("b = bytearray(b'x') * (40 << 20)\nfor i in range(3000000): pass")
        self.assert_success(result)
        usage = result["usage"]
        self.assertGreater(usage["cpuUserMs"], 10)
        self.assertGreater(usage["peakMemoryBytes"], 40 << 20)
        self.assertIn(type(usage["peakPids"]), (int, type(None)))


class Cgroups(Case):
    """Each box is in a cgroup of its own wherever kernd got one, and that goes with the box."""

    def directory(self):
        """The cgroup that holds the boxes, None: there is none on this host."""
        with open(f"/proc/{self.daemon.pid}/cgroup", encoding="ascii") as file:
            own = next((line[3:].strip() for line in file if line.startswith("0::")), "")
        with open("/proc/self/mountinfo", encoding="ascii") as file:
            point = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
        if point is None or not own.endswith("/main"):
            return None
        return point + own[:-len("/main")]

    def boxes(self):
        return sorted(name for name in os.listdir(self.directory()) if name.startswith("box_"))

    def test_comes_and_goes_with_the_box(self):
        if self.directory() is None:
            self.assertNotEqual(self.means["memory"], "cgroup")
            return
        before = set(self.boxes())
        mark = harness.new_mark()
        call = threading.Thread(target=self.run_command, args=(["sleep", "4"],),
                                kwargs={"env": {"MARK": mark}})
        call.start()
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "the box")
        new = set(self.boxes()) - before
        self.assertEqual(len(new), 1)
        with open(f"{self.directory()}/{new.pop()}/cgroup.procs", encoding="ascii") as file:
            inside = {int(pid) for pid in file.read().split()}
        for pid in census.with_environment(mark):
            self.assertIn(pid, inside)
        call.join()
        census.wait_until(lambda: not set(self.boxes()) - before, harness.seconds(5),
                          "the removal of the box's cgroup")


class Memory(Case):
    def test_the_program_itself(self):
        self.assert_oom(self.run_code(f"{GROW}; {HOLD}", memoryMb=64))

    def test_a_child_of_a_shell(self):
        self.assert_oom(self.run_code(SHELL_CHILD, "bash", memoryMb=64))

    def test_a_thread(self):
        self.assert_oom(self.run_code(
            f"import threading\ndef grow():\n    {GROW}\n    {HOLD}\n"
            "t = threading.Thread(target=grow); t.start(); t.join()", memoryMb=64))

    def test_files_in_tmp_and_shared_memory(self):
        self.assert_oom(self.run_code(
            "head -c 40M /dev/zero >/tmp/a; head -c 40M /dev/zero >/dev/shm/b; sleep 600", "bash",
            memoryMb=64))

    def test_below_the_cap_nothing_happens(self):
        result = self.run_code("b = bytearray(b'x') * (30 << 20); print(len(b) >> 20)",
                               memoryMb=64)
        self.assert_success(result, "30\n")

    def test_what_only_looks_like_a_kill_for_memory(self):
        for script, code in (("exit 137", 137), ("exit 143", 143), ("kill -9 $$", 137),
                             ("kill -TERM $$", 143), ("bash -c 'kill -9 $$'; exit 9", 9)):
            with self.subTest(script=script):
                result = self.run_code(script, "bash", memoryMb=64)
                self.assertEqual((result["exitCode"], result["fault"]), (code, None), result)

    def test_side_by_side_each_has_its_own(self):
        code = "b = bytearray(b'x') * (120 << 20); import time; time.sleep(1); print('done')"
        small, large = harness.parallel(
            2, lambda i: self.run_code(code, memoryMb=(64, 256)[i]))
        self.assert_oom(small)
        self.assert_success(large, "done\n")

    def test_a_kernel_that_grows(self):
        session = self.session(memoryMb=64)
        reply = session.post("kernels", {"language": "python"})
        self.assertIn(reply.status, (200, 201), reply)
        path = f"kernels/{reply.json['id']}/cells"
        reply = session.post(path, {"code": f"{GROW}; {HOLD}"})
        self.assertEqual(reply.status, 200, reply)
        self.assert_fault(reply.json, "oom")
        self.assertIn(EVIDENCE[self.means["memory"]], reply.json["fault"]["evidence"])


class Processes(Case):
    def test_the_cap_is_an_ordinary_error(self):
        result = self.run_code(
            "import threading, time\nfor i in range(200):\n"
            "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", pids=16)
        self.assertEqual((result["exitCode"], result["fault"]), (1, None), result)
        self.assertIn("can't start new thread", result["stderr"])

    def test_as_many_as_were_asked_for(self):
        result = self.run_code(
            "import threading, time\n"
            "t = [threading.Thread(target=time.sleep, args=(1,)) for i in range(7)]\n"
            "[x.start() for x in t]; [x.join() for x in t]; print('all')", pids=8)
        self.assert_success(result, "all\n")

    def test_pools_and_shared_memory_with_the_defaults(self):
        result = self.run_code(
            "import multiprocessing as mp, threading, time\n"
            "from multiprocessing import shared_memory as sm\n"
            "mp.Lock(); mp.Queue().put(1)\n"
            "s = sm.SharedMemory(create=True, size=64<<20); s.buf[:] = bytes(64<<20)\n"
            "s.close(); s.unlink()\n"
            "t = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(64)]\n"
            "[x.start() for x in t]; [x.join() for x in t]; print('ok')")
        self.assert_success(result, "ok\n")


class Bombs(Case):
    """What one caller does to its box, others don't feel."""

    def others(self, stop, times):
        while not stop.is_set():
            began = time.monotonic()
            result = self.run_code("print(1)")
            times.append(time.monotonic() - began)
            self.assert_success(result, "1\n")

    def blow(self, code, language, **limits):
        """Runs it while somebody else's calls go on: its result; the others' are checked."""
        stop, times, failures = threading.Event(), [], []

        def work():
            try:
                self.others(stop, times)
            except BaseException as error:  # told below, in the test's own thread
                failures.append(error)

        pid = self.daemon.pid
        other = threading.Thread(target=work)
        other.start()
        try:
            result = self.run_code(code, language, **limits)
        finally:
            stop.set()
            other.join()
        self.assertEqual(failures, [])
        self.assertTrue(times)
        self.assertLess(max(times), harness.seconds(2), times)
        self.assertTrue(self.daemon.alive())
        self.assertEqual(self.daemon.pid, pid)
        self.assert_success(self.run_code("print(2)"), "2\n")
        return result

    def test_fork_bomb(self):
        with self.within(8):
            result = self.blow("b(){ b|b& }; b; sleep 100", "bash", pids=64, timeoutS=3,
                               memoryMb=128)
        if result["fault"] is not None:
            self.assertIn(result["fault"]["type"], ("timeout", "oom"), result["fault"])
        if result["usage"]["peakPids"] is not None:
            self.assertLessEqual(result["usage"]["peakPids"], 64 + 1)
        census.wait_gone(self.daemon.box_processes, harness.seconds(5), "the bomb's processes")

    def test_memory_bomb(self):
        self.assert_oom(self.blow(
            "import os\nfor i in range(6): os.fork()\nkeep = []\n"
            "while True: keep.append(bytearray(b'x') * (1 << 20))", "python", memoryMb=128,
            pids=100, timeoutS=harness.seconds(20)), 128)
        census.wait_gone(self.daemon.box_processes, harness.seconds(5), "the bomb's processes")


class Processors(Case):
    def test_a_part_of_one(self):
        result = self.run_code(
            "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass",
            cpus=0.2, timeoutS=harness.seconds(60))
        self.assert_success(result)
        used = result["usage"]["cpuUserMs"] + result["usage"]["cpuSystemMs"]
        if result["limits"]["enforced"]["cpu"] == "cgroup":
            self.assertLess(used, 0.4 * result["usage"]["wallMs"])
        else:
            self.assertEqual(result["limits"]["enforced"]["cpu"], "none")


FILL = "for i in $(seq 100); do head -c 1M /dev/zero >f$i; sleep 0.05; done; sleep 600"


class Disk(Case):
    def test_a_run_above_the_quota_is_stopped(self):
        session = self.session(diskMb=10)
        result = session.run_code(FILL, "bash", timeoutS=harness.seconds(60))
        self.assert_fault(result, "disk_full")
        self.assertIn("above its quota of 10 MiB", result["fault"]["evidence"])
        self.assertEqual(result["limits"]["enforced"]["disk"], "measured")

    def test_a_full_workspace_takes_nothing_until_it_shrinks(self):
        session = self.session(diskMb=10)
        self.assert_fault(session.run_code(FILL, "bash", timeoutS=harness.seconds(60)), "disk_full")
        self.assert_problem(session.put("more", b"x"), 507, "workspace_full")
        reply = session.post("run", {"command": ["true"]})
        self.assert_problem(reply, 507, "workspace_full")
        self.assertIn("diskMb", reply.body.decode())
        for name in session.names():
            self.assertEqual(session.raw("DELETE", name).status, 204)
        self.assertIn(session.put("more", b"x").status, (200, 201))
        self.assert_success(session.run(["true"]))

    def test_one_large_file_is_its_writers_error(self):
        result = self.run_code(
            "trap '' XFSZ; head -c 30M /dev/zero >big; stat -c %s big", "bash", diskMb=10)
        self.assertEqual(result["stdout"], f"{10 << 20}\n")

    def test_no_quota_no_measuring(self):
        result = self.run_code("head -c 30M /dev/zero >big; stat -c %s big", "bash")
        self.assert_success(result, f"{30 << 20}\n")


INTEGRITY = ("import sqlite3, sys; print(sqlite3.connect(sys.argv[1])"
             ".execute('pragma integrity_check').fetchone())")
MOUNT = 'mount -t tmpfs -o size=160m,mode=700,uid=$0 tmpfs "$1" && shift && exec "$@"'


class FullDisk(sessionkit.Case if os.geteuid() == 0 else object):
    """The disk of the server's own state fills up. Root only, who can mount a small one."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon()
        uid = str(pwd.getpwnam(daemon.user).pw_uid)
        daemon.wrapper = ["unshare", "--mount", "sh", "-c", MOUNT, uid, daemon.state]
        return daemon

    def clean_or_done(self, reply):
        """Done, or refused in a clean way."""
        if reply.status not in (200, 201, 204):
            self.assertIn(reply.status, (503, 507), reply)
            self.assertIn(reply.json["code"], ("store_full", "workspace_full", "not_ready"), reply)
            return False
        return True

    def try_all(self, session):
        """What others do meanwhile."""
        answers = [session.post("runCode", {"code": "print(1)", "language": "python"}),
                   session.put("x", b"data")]
        made = self.create()
        if made.status in (200, 201):
            self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{made.json['id']}")
        return [self.clean_or_done(reply) for reply in [*answers, made]]

    def test_the_server_lives_through_it(self):
        hog = sessionkit.Session(self.daemon)
        other = self.session()
        result = hog.run(["dd", "if=/dev/zero", "of=big", "bs=1M"], timeoutS=harness.seconds(60))
        self.assertNotEqual(result["exitCode"], 0)
        self.assertIn("No space left", result["stderr"])
        self.try_all(other)
        self.assertTrue(self.daemon.alive())
        hog.delete()
        self.daemon.wait_settled()
        census.wait_until(lambda: self.daemon.get("/readyz").status == 200, harness.seconds(15),
                          "readiness after the disk was freed")
        self.assertEqual(self.try_all(other), [True] * 3)
        found = subprocess.run(
            ["nsenter", "--mount", f"--target={self.daemon.pid}", sys.executable, "-c", INTEGRITY,
             os.path.join(self.daemon.state, "kernd.db")],
            capture_output=True, text=True, timeout=harness.seconds(60), check=True)
        self.assertEqual(found.stdout, "('ok',)\n")


if __name__ == "__main__":
    unittest.main()
