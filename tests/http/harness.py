# SPDX-License-Identifier: Apache-2.0
"""Starts the real daemon, talks to it, checks every answer, and proves that nothing stays behind.

    class Something(harness.Case):
        def test_it(self):
            result = self.run_code("print(1)")
            self.assertEqual(result["stdout"], "1\\n")

Each test class gets a daemon of its own: a TCP port that the kernel chose, a Unix socket, private
state and runtime directories, an unprivileged user, the most verbose log. When the class is done,
the daemon must exit with 0 on SIGTERM, leave no process and no box directory, and must never have
logged its token or a value that a test called secret.

Environment: KERND (the program to test), KERND_TEST_SLOW (factor for every time limit, for emulated
or sanitized runs), MUST_WORK=1 (a skip is a failure), KERND_TEST_ENGINE=kern (daemons that are not
told otherwise use the engine kern, with the program KERN_BIN and an image of this host's programs),
KERND_TEST_TEMPLATES=0 (python boxes are booted in every test that does not say otherwise; else they
are forked once a daemon has a template, and booted before).
"""
import base64
import concurrent.futures
import contextlib
import ctypes
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import census
import check
import imagekit
import wire

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERND = os.path.abspath(os.environ.get("KERND", os.path.join(ROOT, "build", "kernd")))
SLOW = float(os.environ.get("KERND_TEST_SLOW", "1"))
ENGINE = os.environ.get("KERND_TEST_ENGINE", "")
KERN_BIN = os.environ.get("KERN_BIN", "")
OTHER_ENGINE = "bubblewrap" if ENGINE == "kern" else "kern"  # which daemons here don't have
# Who a program is: bubblewrap's boxes map the user to an account of their own, kern's to the root of
# their user namespace, which an image's /etc/passwd has in any case.
BOX_USER, BOX_UID = ("root", 0) if ENGINE == "kern" else ("sandbox", 1000)
USER = "nobody"
START_LIMIT_S = 20
STOP_LIMIT_S = 20


def seconds(value):
    """A time limit, stretched for slow machines."""
    return value * SLOW


def as_json(value):
    return json.dumps(value).encode()


def b64(data):
    """A value for fields that take text or {base64}."""
    return {"base64": base64.b64encode(data).decode()}


def new_mark():
    """A text that appears nowhere else on this machine."""
    return "mark-" + secrets.token_hex(12)


def parallel(count, function):
    """function(0) ... function(count - 1), each on its own thread at once; results in order."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, range(count)))


@contextlib.contextmanager
def as_user(name):
    """
    What is inside runs with the effective user id of that account, for this thread alone (the raw
    call, where the C library's function changes all threads): a peer of a Unix socket is who it is
    at connect(2). None changes nothing.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 117, "aarch64": 147}[os.uname().machine]  # setresuid

    def become(uid):
        if libc.syscall(number, ctypes.c_long(-1), ctypes.c_long(uid), ctypes.c_long(-1)) != 0:
            raise OSError(ctypes.get_errno(), "setresuid")

    if name is not None:
        become(pwd.getpwnam(name).pw_uid)
    try:
        yield
    finally:
        if name is not None:
            become(0)


def wait_for_none(find):
    """What is removed behind an answer must be gone soon."""
    try:
        census.wait_until(lambda: not find(), seconds(10), "")
    except AssertionError:
        raise AssertionError(f"left behind: {find()}") from None


# Boxes that wait would be seen by tests that look whether any is left: test_spares.py has its own,
# test_templates.py those with templates.
SPARES = "0"
TEMPLATES = ["--templates", os.environ["KERND_TEST_TEMPLATES"]] \
    if "KERND_TEST_TEMPLATES" in os.environ else []
BLANKS_MOST = 16  # directories of calls that nobody touched, kept for others (lib/work/blanks.c)
FORKS = ENGINE != "kern" and TEMPLATES[1:] != ["0"]  # what daemons do that are not told otherwise


class Daemon:
    """One kernd process and its directories."""

    def __init__(self, arguments=(), environment=None, descriptors=(), user=USER, wrapper=()):
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.descriptors = descriptors  # numbers that the daemon is to inherit
        self.user = user if os.geteuid() == 0 else None
        self.wrapper = list(wrapper)
        self.canary = "canary-" + secrets.token_hex(12)  # in the daemon's own environment
        self.secrets = []
        self.process = None
        self.home = tempfile.mkdtemp(prefix="kernd-test-")
        os.chmod(self.home, 0o755)
        self.state = os.path.join(self.home, "state")
        self.runtime = os.path.join(self.home, "runtime")
        self.socket_path = os.path.join(self.runtime, "kernd.sock")
        for directory in (self.state, self.runtime):
            os.mkdir(directory, 0o700)
            if self.user:
                account = pwd.getpwnam(self.user)
                os.chown(directory, account.pw_uid, account.pw_gid)
        self.port = 0

    # ---- life ----

    def engine(self):
        if ENGINE != "kern" or {"--engine", "--launcher"} & set(self.arguments):
            return []
        return ["--engine", "kern", "--kern", KERN_BIN,
                "--image-cache", imagekit.cache(KERN_BIN, self.user)]

    def command(self):
        user = ["--user", self.user] if self.user else []
        return [*self.wrapper, KERND, "serve", "--listen", f"127.0.0.1:{self.port}",
                "--listen", f"unix:{self.socket_path}", "--state", self.state,
                "--runtime", self.runtime, "--log-level", "debug", "--spares", SPARES,
                *TEMPLATES, *user, *self.engine(), *self.arguments]

    def spawn(self):
        """Starts the process without waiting for it to be ready."""
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERND_CANARY": self.canary,
                       **{name: value for name, value in os.environ.items()
                          if name.endswith("SAN_OPTIONS")}, **self.environment}
        environment = {key: value for key, value in environment.items() if value is not None}
        with open(self.path("out"), "ab") as out, open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=log, cwd="/",
                env=environment, pass_fds=self.descriptors, close_fds=True)
        return self

    def start(self):
        self.spawn()
        line = census.wait_until(self._ready_line, seconds(START_LIMIT_S), "the ready line")
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", line).group(1))
        assert self.socket_path in line, f"the ready line names no socket: {line}"
        self.token_path = re.search(r"[^\s=\"']*/[^\s\"']*token[^\s\"',]*", line).group(0)
        with open(self.token_path, encoding="ascii") as file:
            self.token = file.read().strip()
        self.pid = self.process.pid
        self._check_privileges()
        return self

    def _ready_line(self):
        if self.process.poll() is not None:
            raise AssertionError(f"kernd ended with {self.process.returncode}: {self.output()} "
                                 f"{self.log()}")
        return next((line for line in self.output().splitlines(True)
                     if "http://" in line and line.endswith("\n")), None)

    def _check_privileges(self):
        """A daemon that root started runs as the unprivileged user, with nothing kept."""
        if not self.user:
            return
        account = pwd.getpwnam(self.user)
        for name, wanted in (("Uid", account.pw_uid), ("Gid", account.pw_gid)):
            found = set(census.status_field(self.pid, name).split())
            assert found == {str(wanted)}, f"{name} of the daemon: {found}"
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            assert int(census.status_field(self.pid, name), 16) == 0, f"{name} kept by the daemon"
        groups = census.status_field(self.pid, "Groups").split()
        assert set(groups) <= {str(account.pw_gid)}, f"groups kept by the daemon: {groups}"

    def path(self, name):
        return os.path.join(self.home, name)

    def output(self):
        with open(self.path("out"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL: what a crash or the kernel would do."""
        self.process.kill()
        self.process.wait()

    def finish(self):
        """SIGTERM, exit code 0. The files stay for inspection until remove()."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds(STOP_LIMIT_S))
        assert code == 0, f"kernd ended with {code} on SIGTERM: {self.log()[-4000:]}"

    def box_processes(self, templates=False):
        """Pids. Templates are no boxes: they outlive those that were forked of them."""
        return [pid for pid in census.in_boxes_of(self.home)
                if templates or not census.is_template(pid)]

    def box_directories(self):
        """Directories of boxes and calls, also those that wait in the trash for removal."""
        found = []
        for parent in ("runtime/boxes", "state/workspaces", "state/workspaces/.trash"):
            with contextlib.suppress(FileNotFoundError):
                found += [os.path.join(parent, name) for name in os.listdir(self.path(parent))
                          if name != ".trash"]
        return sorted(found)

    def settled(self):
        """
        Nothing runs, and what is there belongs to boxes that were started ahead of calls: a private
        directory each, at most a workspace each, beside these a few empty ones that wait for calls,
        and nothing that waits for removal.
        """
        stats = self.get("/v1/stats").json
        found = self.box_directories()
        boxes = [path for path in found if path.startswith("runtime/")]
        places = [path for path in found if path.startswith("state/workspaces/call-")]
        empty = [path for path in places if self.is_empty(path)]
        trash = [path for path in found if "/.trash/" in path]
        return (stats["running"] == stats["queued"] == 0 and len(boxes) == stats["boxes"]
                and len(places) - min(len(empty), BLANKS_MOST) <= len(boxes) and not trash)

    def is_empty(self, directory):
        with contextlib.suppress(FileNotFoundError):
            return not os.listdir(self.path(directory))
        return False

    def wait_settled(self, limit=15):
        census.wait_until(self.settled, seconds(limit), "removal of what calls left behind")

    def find(self, name):
        """Where something of this name is in the daemon's directories (and can be seen)."""
        return [os.path.join(parent, name) for parent, folders, files in os.walk(self.home)
                if name in folders or name in files]

    def check_nothing_left(self):
        census.wait_gone(lambda: self.box_processes(templates=True), seconds(5), "processes of boxes")
        wait_for_none(self.box_directories)

    def check_log(self):
        everything = self.log() + self.output()
        for secret in [self.token, *self.secrets]:
            assert secret not in everything, f"a secret is in the log: {secret}"
        for word in ("AddressSanitizer", "ThreadSanitizer", "runtime error:", "LeakSanitizer"):
            assert word not in everything, f"{word} in the log: {everything[-8000:]}"

    def remove(self):
        if self.alive():
            self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def stop(self):
        """The full end of a test class."""
        children = census.descendants(self.pid)
        try:
            assert self.alive(), f"kernd died with {self.process.returncode}: {self.log()[-4000:]}"
            self.finish()
            census.wait_gone(lambda: [who[0] for who in children if census.alive(who)],
                             seconds(5), "children of kernd")
            self.check_nothing_left()
            self.check_log()
        finally:
            self.remove()

    # ---- talk ----

    def address(self, via="tcp"):
        return self.socket_path if via == "unix" else ("127.0.0.1", self.port)

    def connect(self, via="tcp", timeout=120):
        with as_user(self.user if via == "unix" else None):
            return wire.Connection(self.address(via), timeout=seconds(timeout))

    def authorization(self):
        return {"Authorization": f"Bearer {self.token}"}

    def request(self, method, target, body=None, headers=None, *, token=True, via="tcp",
                media_type="application/json", timeout=120):
        """One exchange on its own connection; body may be bytes or a JSON value."""
        sent = {}
        if token and via == "tcp":
            sent.update(self.authorization())
        if body is not None and not isinstance(body, bytes):
            body = as_json(body)
        if body is not None and media_type:
            sent["Content-Type"] = media_type
        sent.update(headers or {})
        with self.connect(via, timeout) as connection:
            reply = connection.exchange(method, target, sent, body)
        return check.reply(reply, method)

    def get(self, target, **options):
        return self.request("GET", target, **options)

    def post(self, target, body, **options):
        return self.request("POST", target, body, **options)

    def result(self, target, body, **options):
        """A run that the server must be able to do: the checked result."""
        reply = self.post(target, body, **options)
        assert reply.status == 200, f"{target} gave {reply}"
        return check.result(reply.json)

    def run(self, command, **options):
        return self.result("/v1/run", {"command": command, **options})

    def run_code(self, code, language="python", **options):
        return self.result("/v1/runCode", {"code": code, "language": language, **options})


class Case(unittest.TestCase):
    """A test class with a daemon; `daemon_arguments` and `daemon_environment` adapt it."""

    daemon_arguments = ()
    daemon_environment = None
    maxDiff = 4000

    @classmethod
    def make_daemon(cls):
        return Daemon(cls.daemon_arguments, cls.daemon_environment)

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.make_daemon()
        try:
            cls.daemon.start()
        except BaseException:
            cls.daemon.remove()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def setUp(self):
        self.assertTrue(self.daemon.alive(), "the daemon died in an earlier test")

    def run_code(self, code, language="python", **options):
        return self.daemon.run_code(code, language, **options)

    def run_command(self, command, **options):
        return self.daemon.run(command, **options)

    @contextlib.contextmanager
    def within(self, limit):
        """What is inside must not take longer than `limit` seconds."""
        started = time.monotonic()
        yield
        took = time.monotonic() - started
        self.assertLess(took, seconds(limit), "too slow")

    def assert_success(self, result, stdout=None):
        self.assertEqual((result["exitCode"], result["fault"]), (0, None),
                         (result["stderr"], result["stdout"][:2000]))
        self.assertTrue(result["success"])
        if stdout is not None:
            self.assertEqual(result["stdout"], stdout)

    def assert_fault(self, result, kind):
        self.assertIsNotNone(result["fault"], result)
        self.assertEqual(result["fault"]["type"], kind, result["fault"])
        self.assertFalse(result["success"])

    def assert_problem(self, reply, status, code, pointer=None):
        """A refusal with its stable code, and the field at fault."""
        self.assertEqual((reply.status, reply.json.get("code")), (status, code), reply)
        if pointer is not None:
            pointers = [entry["pointer"] for entry in reply.json.get("errors", [])]
            self.assertIn(pointer, pointers, reply.json)

    def assert_gone(self, mark, limit=3):
        census.wait_gone(lambda: census.with_environment(mark), seconds(limit),
                         "processes of the box")

    def plain(self, code, language="python", **options):
        """What the bare interpreter of the host does with the same code: the yardstick."""
        directory = tempfile.mkdtemp(prefix="kernd-plain-")
        try:
            path = os.path.join(directory, "cell")
            with open(path, "w", encoding="utf-8") as file:
                file.write(code)
            program = {"python": "/usr/bin/python3", "bash": "bash", "node": "node"}[language]
            return subprocess.run([program, path], cwd=directory, capture_output=True, text=True,
                                  timeout=seconds(60), check=False,
                                  env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}, **options)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
