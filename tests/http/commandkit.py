# SPDX-License-Identifier: Apache-2.0
"""What tests of the command line share: kernd's commands as processes of a user, and at a terminal."""
import fcntl
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import termios
import time

import harness


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, arguments, **options):
        controller, terminal = pty.openpty()
        self.fd = controller
        self.seen = b""
        self.process = subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=terminal,
                                        start_new_session=True, preexec_fn=take_terminal, **options)
        os.close(terminal)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        """Reads until the text since the last match has the pattern; what came until then."""
        deadline = time.monotonic() + harness.seconds(30)
        while not (found := re.search(pattern.encode(), self.seen)):
            ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
            try:
                more = os.read(self.fd, 65536) if ready else b""
            except OSError:  # EIO: the other side is closed
                more = b""
            if not more:
                raise AssertionError(f"no {pattern!r} in {self.seen[-2000:]!r}")
            self.seen += more
        before, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return before.decode(errors="replace")

    def end(self):
        return self.process.wait(harness.seconds(30))


def take_terminal():
    """The terminal becomes the one whose Ctrl-C reaches this process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Case(harness.Case):
    """Commands run as the daemon's user, in a directory of their own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = tempfile.mkdtemp(prefix="kernd-test-place-")
        if cls.daemon.user:
            shutil.chown(cls.place, cls.daemon.user)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.place, ignore_errors=True)
        super().tearDownClass()

    def options(self, **environment):
        user = {}
        if self.daemon.user:
            user = {"user": self.daemon.user, "group": "nogroup", "extra_groups": []}
        kept = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}
        return {"cwd": self.place, **user,
                "env": {"PATH": os.environ["PATH"], "HOME": self.place, "LANG": "C.UTF-8",
                        "KERND_SOCKET": self.daemon.socket_path, **kept, **environment}}

    def start(self, *arguments, environment=None, **streams):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, **streams}
        process = subprocess.Popen([harness.KERND, *arguments], **streams,
                                   **self.options(**(environment or {})))
        self.addCleanup(self.forget, process)
        return process

    @staticmethod
    def forget(process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def kernd(self, *arguments, given=b"", code=0, environment=None):
        """A command to its end: what it wrote to standard output; its exit code is checked."""
        process = self.start(*arguments, stdin=subprocess.PIPE, environment=environment)
        out, self.error = process.communicate(given, timeout=harness.seconds(60))
        self.assertEqual(process.returncode, code, (arguments, out[-2000:], self.error[-2000:]))
        for word in (b"AddressSanitizer", b"ThreadSanitizer", b"runtime error:", b"LeakSanitizer"):
            self.assertNotIn(word, self.error)
        return out

    def terminal(self, *arguments, **environment):
        return Terminal([harness.KERND, *arguments],
                        **self.options(**{"TERM": "xterm", **environment}))

    def write(self, name, data):
        path = os.path.join(self.place, name)
        with open(path, "wb") as file:
            file.write(data)
        if self.daemon.user:
            shutil.chown(path, self.daemon.user)
        return path

    def read(self, name):
        with open(os.path.join(self.place, name), "rb") as file:
            return file.read()
