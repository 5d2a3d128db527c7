# SPDX-License-Identifier: Apache-2.0
"""The directory of a call that no program touched is the next one's; any other is removed."""
import os
import subprocess
import time
import unittest

import census
import harness

# Which directory of the host it is, by the table of mounts (proc_pid_mountinfo(5)).
NAME = ("import os\n"
        "def name():\n"
        "    with open('/proc/self/mountinfo') as table:\n"
        "        rows = [line.split() for line in table]\n"
        "    return next(os.path.basename(row[3]) for row in rows if row[4] == '/workspace')\n")
# An interpreter may have listed where it started. File times come from a clock that ticks.
LOOK = NAME + ("status = os.stat('/workspace')\n"
               "print(name(), oct(status.st_mode), status.st_nlink, len(os.listdir('/workspace')),\n"
               "      status.st_mtime_ns == status.st_ctime_ns,\n"
               "      status.st_atime_ns == status.st_mtime_ns or status.st_atime_ns > began - 10**7)\n")
TOUCHES = {
    "file": "open('f', 'w').write('x')",
    "file removed": "open('f', 'w').write('x'); os.unlink('f')",
    "directory removed": "os.mkdir('d'); os.rmdir('d')",
    "link removed": "os.symlink('x', 'l'); os.unlink('l')",
    "many removed": "[open(str(i), 'w').close() for i in range(500)]; [os.unlink(str(i)) for i in range(500)]",
    "mode": "os.chmod('/workspace', 0o755); os.chmod('/workspace', 0o700)",
    "mode 0": "os.chmod('/workspace', 0)",
    "times": "os.utime('/workspace', (1, 1))",
    "attribute": "os.setxattr('/workspace', 'user.x', b'1')",
    # FS_IOC_SETFLAGS of FS_NODUMP_FL (ioctl_iflags(2))
    "flags": "import fcntl, struct; d = os.open('/workspace', 0)\n"
             "fcntl.ioctl(d, 0x40086602, struct.pack('l', 64))",
    # It is killed with its box.
    "left behind": "import time\n"
                   "if os.fork() == 0:\n"
                   "    os.setsid()\n"
                   "    while True:\n"
                   "        open('f', 'w').close(); os.unlink('f')\n"
                   "time.sleep(0.05)",
}


def is_trusted(path):
    """Has this file system change times that kernd goes by? (lib/work/blanks.c)"""
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], check=True, capture_output=True, text=True)
    return kind.stdout.strip() in ("ext2/ext3", "xfs", "btrfs", "f2fs", "tmpfs")


class Blanks(harness.Case):
    def look(self):
        """The name of the directory that this call had, which must be as a new one."""
        name, *seen = self.run_code(f"began = {time.time_ns()}\n{LOOK}")["stdout"].split()
        self.assertEqual(seen, ["0o40700", "2", "0", "True", "True"])
        return name

    def wait_for_reuse(self):
        """A directory that is used again: one that was made just before the program is not."""
        names = []
        if not is_trusted(self.daemon.state):
            return self.look()

        def again():
            names.append(self.look())
            return names[-1] in names[:-1]
        census.wait_until(again, harness.seconds(20), "a directory that is used again")
        return names[-1]

    def test_untouched_is_used_again(self):
        name = self.wait_for_reuse()
        self.assertTrue(name.startswith("call-box_"))
        # Programs that read it leave nothing to see either; look() lists it, too.
        for command in (["true"], ["ls", "-la"], ["sh", "-c", "cd /; echo x >/tmp/x"]):
            self.assertEqual(self.run_command(command)["exitCode"], 0)
            self.look()

    def test_touched_is_removed(self):
        parent = self.daemon.path("state/workspaces")
        for how, touch in TOUCHES.items():
            with self.subTest(how=how):
                self.wait_for_reuse()
                result = self.run_code(f"{NAME}print(name(), flush=True)\n{touch}\n")
                name = result["stdout"].strip()
                self.assertTrue(name.startswith("call-box_"), result)
                harness.wait_for_none(lambda: [at for at in os.listdir(parent) if at == name])
                self.assertNotIn(name, {self.look() for _ in range(3)})

    def test_files_of_the_call_are_told_and_removed(self):
        self.wait_for_reuse()
        result = self.run_code("open('made', 'w').write('x')", files={"put": "1"})
        self.assertEqual([row["path"] for row in result["files"]], ["made"])
        result = self.run_code("open('made', 'w').write('x')")
        self.assertEqual([row["path"] for row in result["files"]], ["made"])
        self.assertEqual(self.run_code("1")["files"], [])
        self.look()

    def test_two_at_once_have_two(self):
        self.wait_for_reuse()
        wait = NAME + "import time\nprint(name(), flush=True)\ntime.sleep(0.2)"
        names = harness.parallel(6, lambda _: self.run_code(wait)["stdout"].strip())
        self.assertEqual(len(set(names)), 6)


class Kept(harness.Case):
    """Looks into directories that are kept, which changes their access time: hence by itself."""

    def test_some_are_kept(self):
        """That none is left behind the server's end is looked at behind each class."""
        harness.parallel(30, lambda _: self.run_code("1"))
        self.daemon.wait_settled()
        kept = [path for path in self.daemon.box_directories() if "/call-box_" in path]
        self.assertLessEqual(len(kept), harness.BLANKS_MOST)
        self.assertEqual(len(kept) > 0, is_trusted(self.daemon.state))


if __name__ == "__main__":
    unittest.main()
