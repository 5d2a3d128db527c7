# SPDX-License-Identifier: Apache-2.0
"""A box inherits its three streams and nothing else, whatever the daemon has open."""
import contextlib
import os
import resource
import unittest

import harness
import kernelkit

HIGH = 2048
LIST = """
import os
print([(int(f), os.readlink("/proc/self/fd/" + f)) for f in os.listdir("/proc/self/fd")
       if os.path.exists("/proc/self/fd/" + f) or f in "012"])
"""
SOCKETS = """
import os, socket
for f in os.listdir("/proc/self/fd"):
    try: kind = os.readlink("/proc/self/fd/" + f)
    except OSError: continue
    if kind.startswith("socket:"):
        s = socket.socket(fileno=os.dup(int(f)))
        print(s.family == socket.AF_UNIX, s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
"""
NODE_LIST = """
const fs = require("fs");
for (const f of fs.readdirSync("/proc/self/fd")) {
  try { console.log(fs.readlinkSync("/proc/self/fd/" + f)) } catch {}
}"""
OF_NODE = ("pipe:", "socket:", "anon_inode:", "/proc/", "/dev/null", "/run/kernd-lib/", "/run/kernd/cell")


class Inherited(harness.Case):
    @classmethod
    def make_daemon(cls):
        """A daemon that itself inherited descriptors: a host file, far above the usual numbers."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft <= HIGH:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
        file = os.open("/etc/passwd", os.O_RDONLY)
        directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        cls.opened = [HIGH, HIGH + 1, 7]
        for number, source in zip(cls.opened, (file, directory, directory)):
            os.dup2(source, number, inheritable=True)
        return harness.Daemon(descriptors=cls.opened)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for number in cls.opened:
            os.close(number)
        cls.idle = [cls.daemon.connect() for _ in range(40)]
        for connection in cls.idle:
            connection.exchange("GET", "/healthz")
        cls.session = cls.daemon.post("/v1/sessions", {}).json["id"]
        cls.kernels = [kernelkit.Kernel(cls.daemon, cls.session, language=language)
                       for language in ("python", "python", "bash", "node")]

    @classmethod
    def tearDownClass(cls):
        for connection in cls.idle:
            connection.close()
        cls.daemon.request("DELETE", f"/v1/sessions/{cls.session}")
        super().tearDownClass()

    def descriptors(self, result):
        self.assert_success(result)
        return dict(eval(result["stdout"]))

    def test_the_control_the_daemon_holds_them(self):
        folder = f"/proc/{self.daemon.pid}/fd"
        there = []
        for number in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # the daemon works meanwhile
                there.append(os.readlink(f"{folder}/{number}"))
        self.assertGreater(sum(target.startswith("socket:") for target in there), 40)
        for name in ("state/kernd.db", "state/workspaces"):
            self.assertIn(self.daemon.path(name), there)
        # What it has inherited itself it has closed.
        self.assertNotIn("/etc/passwd", there)

    def test_command(self):
        found = self.descriptors(self.run_command(["python3", "-c", LIST]))
        self.assertLessEqual(set(found), {0, 1, 2, 3}, found)  # 3: the listing's own
        for number in (0, 1, 2):
            self.assertTrue(found[number].startswith("pipe:") or found[number] == "/dev/null",
                            found)

    def test_shell(self):
        result = self.run_code("find /proc/$$/fd -type l -printf '%f %l\\n'; exit 0", "bash")
        self.assert_success(result)
        lines = result["stdout"].splitlines()
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            number, target = line.split(" ", 1)
            self.assertTrue(int(number) < 3 or target.startswith("/run/kernd/cell"), line)

    def test_python_code(self):
        found = self.descriptors(self.run_code(LIST))
        extra = {n: t for n, t in found.items() if n > 2 and not t.startswith("/proc/")}
        # The driver's own connection, and nothing that leads elsewhere.
        self.assertLessEqual(len(extra), 1, extra)
        for target in extra.values():
            self.assertTrue(target.startswith("socket:"), extra)
        result = self.run_code(SOCKETS)
        self.assert_success(result)
        self.assertLessEqual(len(result["stdout"].splitlines()), 1)
        self.assertIn(result["stdout"], ("", "True 0\n"))

    def test_cells(self):
        """Each kernel has its streams, the driver's connection, and nothing of another one."""
        seen = []
        for kernel in self.kernels[:2]:
            found = self.descriptors(kernel.cell(LIST))
            extra = [target for number, target in found.items()
                     if number > 2 and not target.startswith("/proc/")
                     and target not in (found[1], found[2])]
            self.assertLessEqual(len(extra), 1, found)
            self.assertIn(kernel.cell(SOCKETS)["stdout"], ("", "True 0\n"))
            seen += {target for target in found.values() if target.startswith(("pipe:", "socket:"))}
        result = self.kernels[2].cell("find /proc/$$/fd -type l -printf '%l\\n'")
        self.assert_success(result)
        own = {target for target in result["stdout"].split("\n") if target.startswith("pipe:")}
        self.assertTrue(own)
        seen += own
        self.assertEqual(len(seen), len(set(seen)), seen)
        targets = [*result["stdout"].split(), *self.kernels[3].cell(NODE_LIST)["stdout"].split()]
        for target in targets:
            self.assertTrue(target.startswith(OF_NODE), targets)

    def test_children_of_python_code(self):
        result = self.run_code(f"import subprocess\nprint(subprocess.run(['python3', '-c', {LIST!r}],"
                               " close_fds=False, capture_output=True, text=True).stdout, end='')")
        found = self.descriptors(result)
        self.assertLessEqual(set(found), {0, 1, 2, 3}, found)

    def test_node_code(self):
        result = self.run_code(NODE_LIST, "node")
        self.assert_success(result)
        for line in result["stdout"].splitlines():
            self.assertTrue(line.startswith(OF_NODE), line)

    def test_no_descriptor_number_is_inherited_anywhere(self):
        for command in (["sh", "-c", "cat <&7"], ["sh", "-c", "cat /dev/fd/7"],
                        ["bash", "-c", "cat /proc/1/fd/7 /proc/1/fd/2048"],
                        ["python3", "-c", f"import os; os.read({HIGH}, 10)"]):
            with self.subTest(command=command):
                result = self.run_command(command)
                self.assertNotEqual(result["exitCode"], 0)
                self.assertNotIn("root:", result["stdout"])

    def test_limits_of_the_box_are_usual(self):
        """Core files of 1 byte: the one limit at which a crash starts no handler outside the box."""
        code = ("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1024, "
                "resource.getrlimit(resource.RLIMIT_CORE))")
        most = 0 if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0 else 1  # 0 can't be raised
        for isolation in ("auto", "boot"):
            self.assert_success(self.run_code(code, isolation=isolation), f"True {most, most}\n")
        self.assert_success(self.run_command(["python3", "-c", code]), f"True {most, most}\n")
        with open(f"/proc/{self.daemon.pid}/limits", encoding="ascii") as file:
            self.assertRegex(file.read(), rf"Max core file size +{most} +{most} ")

    def test_no_program_has_another_limit_of_core_files(self):
        """It is told that it has; but in boxes of kern, whose filter is kern's."""
        code = ("import resource as r, subprocess as s\n"
                "r.setrlimit(r.RLIMIT_CORE, (0, 0)); r.prlimit(0, r.RLIMIT_CORE, (0, 0))\n"
                "print(r.getrlimit(r.RLIMIT_CORE), r.prlimit(0, r.RLIMIT_CORE), flush=True)\n"
                "s.run(['bash', '-c', 'ulimit -c 0 && grep -o \"core.*bytes\" /proc/self/limits'])")
        can_be_kept = harness.ENGINE != "kern" and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0
        kept = 1 if can_be_kept else 0
        for isolation in ("auto", "boot"):
            result = self.run_code(code, isolation=isolation)
            self.assert_success(result)
            lines = result["stdout"].splitlines()
            self.assertEqual(lines[0], f"{kept, kept} {kept, kept}")
            self.assertRegex(lines[1], rf" {kept} +{kept} +bytes")


if __name__ == "__main__":
    unittest.main()
