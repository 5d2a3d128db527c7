# SPDX-License-Identifier: Apache-2.0
"""Every system call number, tried in a box and compared with the product's own table."""
import ctypes
import errno
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from escape import EscapeCase, HERE, harness

HIGHEST = 600  # above the last number of any architecture, and the x32 range of x86
HEADERS = ("/usr/include/asm/unistd_64.h", "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
           "/usr/include/asm-generic/unistd.h")
# Newer than the headers of some distributions; the same on all architectures (Linux 6.17).
NEWER = {"fchmodat2": 452, "map_shadow_stack": 453, "futex_wake": 454, "futex_wait": 455,
         "futex_requeue": 456, "statmount": 457, "listmount": 458, "lsm_get_self_attr": 459,
         "lsm_set_self_attr": 460, "lsm_list_modules": 461, "mseal": 462, "setxattrat": 463,
         "getxattrat": 464, "listxattrat": 465, "removexattrat": 466, "open_tree_attr": 467,
         "file_getattr": 468, "file_setattr": 469}
# x86: return paths of probes that the kernel itself plants. They pass every filter by the kernel's
# own rule (seccomp(2) never sees them since Linux 6.14) and fail outside such a probe.
UNFILTERED = {335, 336}


def numbers():
    """Name to number, from the kernel's own headers."""
    for path in HEADERS:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", file.read())
            return {**{name: int(number) for name, number in found}, **NEWER}
    raise AssertionError("the kernel's headers are not installed (linux-libc-dev)")


def nameable(name):
    """Does this machine's libseccomp, which builds the filter, know the call by name?"""
    library = ctypes.CDLL("libseccomp.so.2")
    return library.seccomp_syscall_resolve_name(name.encode()) >= 0


class Row:
    def __init__(self, line):
        (self.program, self.name, self.action, error, self.when, argument, first,
         last, nonzero) = line.split()
        self.error, self.argument = int(error), int(argument)
        self.first, self.last, self.nonzero = int(first), int(last), int(nonzero)

    def matches(self, arguments):
        """Does the row's condition hold for these arguments (missing ones are 0)?"""
        arguments = list(arguments) + [0] * 6
        value = arguments[self.argument] & ((1 << 64) - 1)
        if self.nonzero and not arguments[self.nonzero]:
            return False
        if self.when == "range":
            return self.first <= value <= self.last
        return self.when == "always" or value & self.first == self.last


class Sweep(EscapeCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="kernd-sweep-")
        os.chmod(cls.folder, 0o755)
        cls.program = os.path.join(cls.folder, "sweep")
        subprocess.run(["gcc", "-O1", "-static", "-o", cls.program, os.path.join(HERE, "sweep.c")],
                       check=True)
        table = os.path.join(cls.folder, "table")
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-I", harness.ROOT, "-o", table,
                        os.path.join(HERE, "table.c"),
                        os.path.join(harness.ROOT, "lib/box/seccomp_table.c")], check=True)
        lines = subprocess.run([table], capture_output=True, text=True, check=True).stdout
        cls.rows = [Row(line) for line in lines.splitlines()]
        cls.numbers = numbers()
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.folder)

    def expected(self, name, *arguments):
        """What the table says of a call with these arguments."""
        verdicts = []
        for program, otherwise in (("list", ("enosys", 0)), ("walls", ("allow", 0))):
            rows = [row for row in self.rows if (row.program, row.name) == (program, name)]
            verdict = next(((row.action, row.error) for row in rows if row.matches(arguments)),
                           otherwise)
            verdicts.append(verdict)
        strictness = {"kill": 3, "error": 2, "enosys": 1, "allow": 0}
        action, error = max(verdicts, key=lambda verdict: strictness[verdict[0]])
        if action == "kill":
            return "killed"
        if action == "enosys" or (action, error) == ("error", errno.ENOSYS):
            return "enosys"
        if (action, error) == ("error", 0):
            return "ran"
        return f"errno {error}" if action == "error" else "allowed"

    def in_box_sweep(self, *arguments, **options):
        with open(self.program, "rb") as file:
            program = harness.b64(file.read())
        result = self.run_command(["sh", "-c", "chmod +x sweep; exec ./sweep \"$@\"", "sh",
                                   *map(str, arguments)], files={"sweep": program}, timeoutS=120,
                                  **options)
        self.assertIsNone(result["fault"], result)
        self.assertEqual(result["exitCode"], 0, result)
        return dict(line.split(" ", 1) for line in result["stdout"].splitlines() if " " in line), \
            result["stdout"]

    def on_host_sweep(self, *arguments):
        """The control: the same in bare namespaces without a filter, as an ordinary user."""
        command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs",
                   "/tmp", "--ro-bind", self.folder, "/tmp", "--unshare-all", "--die-with-parent",
                   "--new-session", "/tmp/sweep", *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
                       *command]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False,
                              timeout=harness.seconds(180))
        self.assertTrue(done.stdout, f"the control does not run: {done}")
        return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)

    def test_every_number(self):
        boxed, text = self.in_box_sweep("sweep", 0, HIGHEST)
        self.assertTrue(text.endswith("end\n"), text[-500:])
        host = self.on_host_sweep("sweep", 0, HIGHEST)
        self.assertEqual(len(boxed), HIGHEST + 1)
        self.assertGreater(list(host.values()).count("enosys"), 0)
        self.assertEqual(list(host.values()).count("killed"), 0, "the control is filtered itself")
        by_number = {number: name for name, number in self.numbers.items()}
        wrong = []
        for number in range(HIGHEST + 1):
            name, found = by_number.get(number), boxed[str(number)]
            # A row for a call newer than libseccomp has no effect: it stays an unknown call.
            known = name is not None and nameable(name)
            wanted = self.expected(name, *[-1] * 6) if known else "enosys"
            if number in UNFILTERED and os.uname().machine == "x86_64":
                fine = found == host[str(number)]
            elif wanted == "allowed":
                # Past the filter, the kernel decides: as on the host, unless it is a matter of
                # rights. A call that this kernel lacks is one there too.
                fine = found != "killed" and (found == "enosys") == (host[str(number)] == "enosys")
            else:
                fine = found == wanted
            if not fine:
                wrong.append((number, name, "table: " + wanted, "box: " + found,
                              "host: " + host[str(number)]))
        self.assertEqual(wrong, [])

    def test_numbers_of_the_other_abi(self):
        if os.uname().machine != "x86_64":
            self.skipTest("x32 is an ABI of x86")
        first = 0x40000000
        boxed, _ = self.in_box_sweep("sweep", first, first + 40)
        self.assertEqual(set(boxed.values()), {"killed"})
        for number in (0x7fffffff, 0x40000000 | 165):
            boxed, _ = self.in_box_sweep("call", number)
            self.assertEqual(boxed, {str(number): "killed"})

    def test_numbers_far_away(self):
        for number in (1000, 4095, 65535, 0x3fffffff):
            boxed, _ = self.in_box_sweep("call", number)
            self.assertEqual(boxed, {str(number): "enosys"})

    def test_conditions(self):
        """Calls that the table allows or refuses by an argument, with values of every kind."""
        values = {"socket": list(range(0, 46)) + [255, 0xffffffff],
                  "socketpair": list(range(0, 46)),
                  "personality": [0, 8, 0x20000, 0x40000, 0xffffffff, 0x0400000, 0x0004000, 4],
                  "ioctl": [0x5412, 0x541c, 0x5401, 0x5413, 0x100005412, 0x5423],
                  "shmget": [0, 4096, 65536, 65537, 1 << 20, -1], "clone": [], "prlimit64": [0, 1],
                  "setrlimit": [0, 4],
                  "unshare": [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
                              0x40000000, 0x80, 0x400, 0x200, 0, 0x10020000]}
        # Of them only those are done without a word whose new limit is somewhere.
        values["prlimit64"] += [(0, 4, 0), (0, 4, 8), (2, 4, 8), (0, 3, 8), (0, 4 | 1 << 32, 8)]
        values["setrlimit"] += [(4, 8), (5, 8), (4 | 1 << 32, 8)]
        values["socket"] += [(16, 1, 0), (16, 1, 4), (16, 1, 15), (16, 3, 9), (2, 1, 6), (10, 2, 17),
                             (2, 1, 132), (10, 5, 132), (2, 2, 115), (10, 1, 262), (2, 6, 33),
                             (2, 6, 0), (2, 0o2000006, 0), (2, 1, 33), (2, 1, 6 | 1 << 32),
                             (2, 1, 132 | 1 << 32), (2, 1, 33 | 1 << 32)]
        conditional = {row.name for row in self.rows if row.when != "always"}
        self.assertLessEqual(conditional, set(values), "a condition that this test does not know")
        for name, tried in values.items():
            argument = next(row.argument for row in self.rows
                            if row.name == name and row.when != "always")
            for value in tried:
                with self.subTest(call=name, value=value):
                    if isinstance(value, tuple):
                        arguments = list(value)
                    elif name.startswith("socket"):
                        arguments = [value, 1]
                    else:
                        arguments = [0] * argument + [value]
                    boxed, _ = self.in_box_sweep("call", self.numbers[name], *arguments)
                    found = boxed[str(self.numbers[name])]
                    wanted = self.expected(name, *arguments)
                    if wanted == "allowed":
                        self.assertNotIn(found, ("killed", "enosys"))
                    else:
                        self.assertEqual(found, wanted)

    def test_namespace_flags_of_clone(self):
        flags = {0x20000: "mount", 0x2000000: "cgroup", 0x4000000: "uts", 0x8000000: "ipc",
                 0x10000000: "user", 0x20000000: "pid", 0x40000000: "net"}
        for flag, name in flags.items():
            with self.subTest(namespace=name):
                self.assertEqual(self.expected("clone", flag | 17), "killed")
                boxed, _ = self.in_box_sweep("call", self.numbers["clone"], flag | 17)
                self.assertEqual(boxed[str(self.numbers["clone"])], "killed")

    def test_the_table_is_written_down(self):
        """No row twice with different actions, every killed call is one that leads out."""
        seen = {}
        for row in self.rows:
            if row.when == "always":
                self.assertEqual(seen.setdefault(row.name, row.action), row.action, row.name)
        for name in ("mount", "ptrace", "setns", "bpf", "process_vm_readv", "pivot_root"):
            self.assertEqual(seen[name], "kill")
        for name in ("io_uring_setup", "userfaultfd", "keyctl", "add_key", "perf_event_open"):
            self.assertEqual(seen[name], "error")
        unknown = [name for name in seen if name not in self.numbers]
        self.assertLessEqual(set(unknown), {"fstatat64"}, "rows that name no call of x86")


if __name__ == "__main__":
    unittest.main()
