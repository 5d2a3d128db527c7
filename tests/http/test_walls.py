# SPDX-License-Identifier: Apache-2.0
"""The walls behind the walls: Landlock in boxes, the filter of kernd's own threads, who dies first
when the host is out of memory, and the ceiling of files in a workspace.

KERND_TEST_LANDLOCK is the least ABI that the kernel must have (tests/vm knows its machine's).
"""
import os
import secrets
import shutil
import socket

import census
import harness
import sessionkit

# The threads that start boxes. Launchers inherit the filter of their thread, so theirs is a wider one.
# What starts processes, and of these what starts templates, which may make rings of io_uring.
STARTERS = ("run-", "background-", "spare-", "starter-", "template-")
OF_TEMPLATES = ("starter-", "template-")
# Shows one directory of the host more than kernd asks for: a mount gone wrong.
LEAKY = """#!/bin/bash
arguments=()
for argument; do
    if [ "$argument" = --bind ] && [ "${#arguments[@]}" -gt 0 ] && [ -z "$done" ]; then
        arguments+=(--bind %s /leak)
        done=1
    fi
    arguments+=("$argument")
done
exec %s "${arguments[@]}"
"""


class WrongMount(harness.Case):
    """What is mounted by mistake can be seen, and not be had."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon()
        cls.secret = secrets.token_hex(8)
        leak = daemon.path("leak")
        os.mkdir(leak)
        os.chmod(leak, 0o777)
        with open(os.path.join(leak, "secret"), "w", encoding="ascii") as file:
            file.write(cls.secret)
        shutil.copy("/bin/true", leak)
        launcher = daemon.path("launcher")
        with open(launcher, "w", encoding="ascii") as file:
            file.write(LEAKY % (leak, shutil.which("bwrap")))
        os.chmod(launcher, 0o755)
        daemon.arguments = ["--launcher", launcher]
        return daemon

    def test_it_is_out_of_reach(self):
        script = ("grep -c ' /leak ' /proc/mounts; cat /leak/secret; /leak/true && echo ran; "
                  "echo x >>/leak/secret && echo wrote; touch /leak/new && echo made; "
                  "ln /leak/secret /leak/other && echo linked; rm /leak/secret && echo removed")
        capabilities = self.daemon.get("/v1/capabilities").json
        abi = capabilities["landlockAbi"] or 0
        result = self.run_code(script, "bash")
        self.assertGreaterEqual(abi, int(os.environ.get("KERND_TEST_LANDLOCK", "0")))
        self.assertEqual(capabilities["landlock"], abi >= 2)
        if capabilities["landlock"]:
            self.assertEqual(result["stdout"], "1\n")
            self.assertIn("Permission denied", result["stderr"])
            with open(self.daemon.path("leak/secret"), encoding="ascii") as file:
                self.assertEqual(file.read(), self.secret)
        else:
            # The control: without the second wall the mistake shows.
            self.assertIn(self.secret, result["stdout"])

    def test_of_what_a_spare_and_a_kernel_start_too(self):
        if not self.daemon.get("/v1/capabilities").json["landlock"]:
            return
        code = "print(open('/leak/secret').read())"
        for _ in range(3):
            result = self.run_code(code)
            self.assertEqual((result["exitCode"], result["stdout"]), (1, ""))
            self.assertIn("PermissionError", result["stderr"])


class BehindLandlock(sessionkit.Case):
    """What programs do all the time goes on working."""

    def test_files(self):
        self.assert_success(self.run_code(
            "set -e; for d in /workspace /tmp ~ /dev/shm; do cd $d; mkdir -p a/b c; echo x >a/f; "
            "mv a/f c/g; ln c/g a/h; ln -s c l; mv a c/; echo y >>c/g; : >c/g; mkfifo p; "
            "cp /bin/true t; ./t; rm -r c l p t; done; ls / >/dev/null; echo z >/dev/null; "
            "cat <(echo sub); echo out >/dev/stdout; head -c 1 /dev/urandom | wc -c", "bash"),
            "sub\nout\n1\n")

    def test_special_files(self):
        self.assert_success(self.run_code(
            "import ctypes, os, pty, socket, tempfile\n"
            "from multiprocessing import shared_memory\n"
            "memory = os.memfd_create('m', 0)\n"
            "os.write(memory, b'#!/bin/sh\\nexit 3\\n')\n"
            "os.set_inheritable(memory, True)\n"
            "child = os.posix_spawn(f'/proc/self/fd/{memory}', ['m'], {})\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3\n"
            "with tempfile.TemporaryFile() as file:\n"
            "    file.write(b'1'); file.flush(); open(f'/proc/self/fd/{file.fileno()}', 'r+b')\n"
            "shared = shared_memory.SharedMemory(create=True, size=10)\n"
            "shared.close(); shared.unlink()\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            f"if {harness.ENGINE != 'kern'}:\n"  # whose boxes have neither /dev/pts nor /dev/mqueue
            "    one, two = pty.openpty(); assert os.isatty(two); os.ttyname(two)\n"
            "    queue = libc.mq_open(b'/q', os.O_CREAT | os.O_RDWR, 0o600, None)\n"
            "    assert queue >= 0, ctypes.get_errno()\n"
            "for name in ('/tmp/s', '\\0mine'):\n"
            "    listener = socket.socket(socket.AF_UNIX); listener.bind(name)\n"
            "    listener.listen(); socket.socket(socket.AF_UNIX).connect(name)\n"
            "open('/proc/self/comm', 'w').write('renamed')\n"
            "print(open('/proc/self/comm').read().strip())"), "renamed\n")

    def test_mounts_keep_their_rights(self):
        given, other = self.daemon.path("given"), self.daemon.path("other")
        for path in (given, other):
            os.mkdir(path)
            os.chmod(path, 0o777)
            with open(os.path.join(path, "file"), "w", encoding="ascii") as file:
                file.write(os.path.basename(path) + "\n")
        shutil.copy("/bin/true", given)
        result = self.run_code(
            "cat /a/file /b; /a/true && echo ran; touch /a/new && echo made; "
            "touch /w/new && mkdir /w/d && mv /w/new /w/d/old; ls /w /w/d",
            "bash", mounts={given: "/a", other: ["/w", "rw"], os.path.join(other, "file"): "/b"})
        self.assertEqual(result["stdout"],
                         "given\nother\nran\n/w:\nd\nfile\n\n/w/d:\nold\n", result)

    def test_abstract_sockets_of_the_host(self):
        """Names without a path are the network's: a box that shares it could reach them."""
        abi = self.daemon.get("/v1/capabilities").json["landlockAbi"] or 0
        name = "kernd-test-" + secrets.token_hex(8)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("\0" + name)
            listener.listen()
            result = self.run_code(
                "import socket\n"
                f"try: socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('reached')\n"
                "except PermissionError: print('refused')", network=True)
        self.assert_success(result, "refused\n" if abi >= 6 else "reached\n")


class OwnThreads(harness.Case):
    def threads(self):
        """
        Of the daemon: name -> (the mode of its filter, no_new_privs, how many filters). A second one with the main
        thread's name is that of a sanitizer, from before there was anything to confine.
        """
        found = {}
        folder = f"/proc/{self.daemon.pid}/task"
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/status", encoding="ascii") as file:
                lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            if lines["Name"] == "kernd" and int(task) != self.daemon.pid:
                continue
            found[lines["Name"]] = (int(lines["Seccomp"]), int(lines["NoNewPrivs"]),
                                    int(lines["Seccomp_filters"]))
        return found

    def test_each_has_its_filters(self):
        """One on top of the other: three, those that start boxes two, and those that start templates one."""
        self.assert_success(self.run_code("print(1)"), "1\n")
        threads = self.threads()
        self.assertEqual({name: state for name, state in threads.items() if state[:2] != (2, 1)}, {})
        expected = {name: 1 if name.startswith(OF_TEMPLATES) else 2 if name.startswith(STARTERS) else 3
                    for name in threads}
        self.assertEqual({name: state[2] for name, state in threads.items()}, expected)
        for name in ("kernd", "kernd-event-0", "kernd-event-1", "kernd-quick-0", "kernd-quick-1", "files-0", "store", "journal",
                     "janitor", "reserve-0", "run-0", "background-0", "spare-0", "template-0", "starter-0"):
            self.assertIn(name, expected)

    def test_confined_threads_still_find_out_about_boxes(self):
        """Readiness, versions and capabilities take processes, which others start for them."""
        census.wait_until(lambda: self.daemon.get("/readyz").status == 200, harness.seconds(30),
                          "readiness: a probe has a deadline of its own, and is made again")
        self.assertTrue(self.daemon.get("/v1/version").json["engines"][0]["version"])
        versions = {entry["name"]: entry["version"]
                    for entry in self.daemon.get("/v1/capabilities").json["languages"]}
        self.assertTrue(versions["python"] and versions["bash"], versions)


class OutOfMemory(harness.Case):
    def test_boxes_go_before_the_server(self):
        def score(pid):
            with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as file:
                return int(file.read())

        result = self.run_code("cat /proc/self/oom_score_adj; cat /proc/1/oom_score_adj", "bash")
        self.assert_success(result, "800\n800\n")
        self.assertLess(score(self.daemon.pid), 800)


class Files(sessionkit.Case):
    daemon_arguments = ("--workspace-files", "300")
    MAKE = "mkdir -p d && cd d && for i in $(seq %d); do : >f$i; done; sleep %d"

    def test_the_ceiling(self):
        self.assertEqual(self.daemon.get("/v1/capabilities").json["workspaceFiles"], 300)
        self.assert_success(self.run_code(self.MAKE % (200, 0), "bash"))
        for limits in ({}, {"diskMb": 50}):
            result = self.run_code(self.MAKE % (600, 600), "bash", timeoutS=100, **limits)
            self.assert_fault(result, "disk_full")
            self.assertIn("inodes", result["fault"]["evidence"])
            self.assertIn("ceiling of 300", result["fault"]["evidence"])

    def test_it_is_of_the_workspace_alone(self):
        result = self.run_code("cd /tmp; for i in $(seq 600); do : >f$i; done; sleep 2; ls | wc -l",
                               "bash")
        self.assert_success(result, "600\n")
