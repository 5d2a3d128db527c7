# SPDX-License-Identifier: Apache-2.0
"""`kernd doctor`: what is missing, why, and what to do about it."""
import json
import os
import socket
import subprocess
import tempfile
import unittest

import harness
import templatekit

STUB = """#!/bin/sh
case "$*" in *--version*) echo 'bubblewrap 0.8.0'; exit 0;; esac
echo 'bwrap: setting up uid map: Permission denied' >&2
exit 1
"""


class Doctor(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="kernd-test-")
        self.addCleanup(place.cleanup)
        self.place = place.name
        os.chmod(self.place, 0o755)

    def doctor(self, *arguments, **environment):
        """(exit status, findings by name, the report)."""
        state = os.path.join(self.place, "state")
        done = subprocess.run(
            [harness.KERND, "doctor", "--json", "--state", state, "--runtime",
             os.path.join(self.place, "run"), "--listen", "127.0.0.1:0", *arguments],
            capture_output=True, text=True, timeout=harness.seconds(60), check=False, cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": self.place,
                 **{name: value for name, value in os.environ.items()
                    if name.endswith("SAN_OPTIONS")}, **environment})
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(report["status"], ("ok", "warn", "fail")[done.returncode], report)
        worst = max(("ok", "warn", "fail").index(check["status"]) for check in report["checks"])
        self.assertEqual(worst, done.returncode)
        for check in report["checks"]:
            self.assertEqual(set(check), {"name", "status", "found", "fix"})
            self.assertTrue(check["found"])
            self.assertNotIn("\n", check["found"])
        self.assertFalse(os.path.exists(state), "it must not make the state directory")
        return done.returncode, {check["name"]: check for check in report["checks"]}, report

    def test_a_host_that_works(self):
        code, found, report = self.doctor()
        self.assertIn(code, (0, 1), report)
        self.assertRegex(found["box"]["found"], r"takes [\d.]+ ms, the first [\d.]+ ms")
        self.assertRegex(found["python"]["found"], r"^3\.\d+")
        self.assertRegex(found["engine"]["found"], r"^bubblewrap \d")
        self.assertRegex(found["templates"]["found"], r"python in a box that is forked takes [\d.]+ ms")
        for name in ("kernel", "clock", "descriptors", "state", "runtime", "disk", "account",
                     "library", "box", "python", "bash", "namespaces", "apparmor", "address"):
            self.assertEqual(found[name]["status"], "ok", found[name])

    def test_boxes_that_are_not_forked(self):
        _, found, _ = self.doctor("--templates", "0")
        self.assertEqual((found["templates"]["status"], found["templates"]["found"]),
                         ("ok", "each box is booted: the setting templates is 0"))
        _, found, _ = self.doctor("--library", templatekit.broken_library(self.place))
        self.assertEqual(found["templates"]["status"], "warn")
        self.assertRegex(found["templates"]["found"], "^boxes of python are booted: .+")

    def test_for_people(self):
        done = subprocess.run([harness.KERND, "doctor", "--workers", "none"], capture_output=True,
                              text=True, timeout=harness.seconds(60), check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout, r"(?m)^ok    kernel +Linux \d")
        self.assertRegex(done.stdout, r"(?m)^fail  settings +workers must be a number")

    def test_boxes_that_cannot_start(self):
        stub = os.path.join(self.place, "bwrap")
        with open(stub, "w", encoding="ascii") as file:
            file.write(STUB)
        os.chmod(stub, 0o755)
        code, found, _ = self.doctor("--launcher", stub)
        self.assertEqual((code, found["box"]["status"]), (2, "fail"))
        self.assertIn("uid map", found["box"]["found"])
        self.assertRegex(found["box"]["fix"], "user_namespaces|userns|seccomp")
        code, found, _ = self.doctor("--launcher", "/nonexistent/bwrap")
        self.assertEqual((code, found["engine"]["status"]), (2, "fail"))
        self.assertIn("/nonexistent/bwrap", found["engine"]["found"])

    def test_places_that_cannot_be_used(self):
        run = os.path.join(self.place, "run")
        os.mkdir(run)
        os.chmod(run, 0o755)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, found, report = self.doctor("--listen", f"127.0.0.1:{port}")
        self.assertEqual((code, found["runtime"]["status"]), (2, "fail"))
        addresses = [check for check in report["checks"] if check["name"] == "address"]
        self.assertEqual([check["status"] for check in addresses], ["ok", "fail"], addresses)
        self.assertIn("--listen", addresses[1]["fix"])

    def test_a_server_that_runs_is_left_alone(self):
        daemon = harness.Daemon().start()
        try:
            done = subprocess.run(
                [harness.KERND, "doctor", "--state", daemon.state, "--runtime", daemon.runtime,
                 "--listen", f"127.0.0.1:{daemon.port}"],
                capture_output=True, text=True, timeout=harness.seconds(60), check=False)
            self.assertIn(done.returncode, (0, 1), done.stdout)
            self.assertIn(f"runs already (process {daemon.pid})", done.stdout)
            self.assertEqual(daemon.get("/healthz").status, 200)
        finally:
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
