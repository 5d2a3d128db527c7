# SPDX-License-Identifier: Apache-2.0
"""Hosts on which a box cannot start: the daemon says so, says why, and says what to do."""
import os
import re
import shutil
import subprocess
import unittest

import census
import harness

SILENT = "#!/bin/sh\nexit 125\n"
NO_USERNS = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
NO_NAMESPACE = ("#!/bin/sh\necho 'bwrap: No permissions to create new namespace, likely because the "
                "kernel does not allow non-privileged user namespaces.' >&2\nexit 1\n")
HANGS = "#!/bin/sh\nexec sleep 3600.271828\n"
CHATTY = "#!/bin/sh\nwhile :; do echo 'launcher line that never ends' >&2; done\n"
LIES = "#!/bin/sh\necho hello\nexit 0\n"
CRASHES = "#!/bin/sh\nkill -SEGV $$\n"


def with_launcher(text):
    """A daemon whose launcher is this program."""
    daemon = harness.Daemon()
    path = daemon.path("launcher")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, 0o755)
    daemon.arguments = ["--launcher", path]
    return daemon


class StubCase(harness.Case):
    """A daemon whose launcher is a stub."""

    stub = SILENT

    @classmethod
    def make_daemon(cls):
        return with_launcher(cls.stub)

    def run_refused(self):
        with self.within(20):
            reply = self.daemon.post("/v1/run", {"command": ["echo", "x"], "timeoutS": 5})
        return self.check_refused(reply)

    def check_refused(self, reply):
        self.assertEqual(reply.status, 503, reply)
        self.assertIn(reply.json["code"], ("engine_unavailable", "box_start_failed"))
        return reply

    def check_refusals(self, *words):
        ready = self.daemon.get("/readyz")
        self.assertEqual(ready.status, 503)
        text = ready.body.decode() + self.run_refused().body.decode()
        for word in words:
            self.assertRegex(text, word)
        self.assertEqual(self.daemon.get("/healthz").status, 200)
        self.assertEqual(self.daemon.get("/v1/version").status, 200)


class NoLauncher(StubCase):
    """A host without the package: its program is hidden in a mount namespace of the daemon."""

    @classmethod
    def make_daemon(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can hide the launcher")
        hide = "mount --bind /dev/null \"$(command -v bwrap)\" && exec \"$@\""
        return harness.Daemon(wrapper=["unshare", "--mount", "sh", "-c", hide, "sh"])

    def test_refusals_name_the_package(self):
        self.check_refusals("bubblewrap", "apt|install")


class MissingInterpreter(harness.Case):
    """A host without node: an ordinary failure of the call, and the capabilities say so."""

    @classmethod
    def make_daemon(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can hide the interpreter")
        daemon = harness.Daemon()
        empty = daemon.path("empty")
        open(empty, "w", encoding="ascii").close()
        hide = f"mount --bind {empty} \"$(readlink -f \"$(command -v node)\")\" && exec \"$@\""
        daemon.wrapper = ["unshare", "--mount", "sh", "-c", hide, "sh"]
        return daemon

    def test_told_as_a_programs_failure(self):
        result = self.run_code("console.log(1)", "node")
        self.assertIn(result["exitCode"], (126, 127))
        self.assertIsNone(result["fault"])
        self.assertIn("node", result["stderr"])
        self.assert_success(self.run_code("print(1)"), "1\n")

    def test_told_beforehand(self):
        rows = {row["name"]: row for row in self.daemon.get("/v1/capabilities").json["languages"]}
        self.assertEqual((rows["node"]["available"], rows["node"]["version"]), (False, None))
        self.assertTrue(rows["python"]["available"])


class NoUserNamespaces(StubCase):
    """A host whose administrator set their number to 0, with the real launcher."""

    @classmethod
    def make_daemon(cls):
        forbid = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""
        return harness.Daemon(["--allow-root"], user=None, wrapper=[
            "unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"])

    def test_refusals_name_the_setting(self):
        self.check_refusals("max_user_namespaces")


class UserNamespacesOff(StubCase):
    stub = NO_NAMESPACE

    def test_refusals_name_the_setting(self):
        self.check_refusals(r"unprivileged_userns|sysctl|max_user_namespaces|security-opt")


class ApparmorInTheWay(StubCase):
    stub = NO_USERNS

    def test_refusals_name_the_profile(self):
        self.check_refusals("(?i)apparmor", "uid map")


class SilentLauncher(StubCase):
    stub = SILENT

    def test_never_an_empty_success(self):
        self.check_refusals("125")


class LyingLauncher(StubCase):
    stub = LIES

    def test_an_exit_code_of_zero_is_no_box(self):
        self.check_refusals()


class CrashingLauncher(StubCase):
    stub = CRASHES

    def test_told_as_such(self):
        self.check_refusals()


class EndlessLaunchers(StubCase):
    """One that says nothing, and, beside it, since each takes its time, one that never stops talking."""

    stub = HANGS

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.chatty = with_launcher(CHATTY)
        cls.addClassCleanup(cls.chatty.remove)
        cls.chatty.start()

    @classmethod
    def tearDownClass(cls):
        cls.chatty.stop()
        super().tearDownClass()

    def test_they_end_at_a_deadline(self):
        with self.within(20):
            replies = harness.parallel(2, lambda number: (self.daemon, self.chatty)[number].post(
                "/v1/run", {"command": ["echo", "x"], "timeoutS": 5}))
        for reply in replies:
            self.check_refused(reply)
        census.wait_gone(lambda: census.with_argument("3600.271828"), harness.seconds(5),
                         "the stub")
        self.assertLess(len(replies[1].body), 10000)  # its words are bounded


class MendedHost(StubCase):
    """A host that is put right is noticed without a restart."""

    stub = SILENT

    def test_works_after_the_repair(self):
        self.run_refused()
        os.unlink(self.daemon.path("launcher"))
        os.symlink(shutil.which("bwrap"), self.daemon.path("launcher"))
        census.wait_until(lambda: self.daemon.get("/readyz").status == 200, harness.seconds(10),
                          "ready again")
        self.assert_success(self.run_command(["echo", "x"]), "x\n")


class BareEnvironment(harness.Case):
    """Started as cron or a container would: next to no environment."""

    @classmethod
    def make_daemon(cls):
        return harness.Daemon(environment={"LANG": None, "XDG_RUNTIME_DIR": None,
                                           "DBUS_SESSION_BUS_ADDRESS": None, "HOME": None,
                                           "PATH": "/usr/bin:/bin"})

    def test_works_and_says_what_is_enforced(self):
        self.assert_success(self.run_code("print('é')"), "é\n")
        found = self.daemon.get("/v1/capabilities").json["enforcement"]
        for name in ("memory", "pids"):
            self.assertIn(found[name], ("cgroup", "watchdog", "rlimit", "none"))


class Refusals(unittest.TestCase):
    """Command lines and places that cannot work: one line, no start."""

    def refused(self, *arguments, environment=None, words=()):
        daemon = harness.Daemon(arguments, environment)
        try:
            daemon.spawn()
            code = daemon.process.wait(harness.seconds(20))
            text = daemon.log() + daemon.output()
            self.assertNotEqual(code, 0, text)
            self.assertGreater(code, 0, f"ended by a signal: {text}")
            for word in words:
                self.assertRegex(text, word)
            return text
        finally:
            daemon.remove()

    def test_options(self):
        self.refused("--no-such-option", words=["no-such-option"])
        self.refused("--log-level", "shouting", words=["log.level"])
        self.refused("--engine", "docker", words=["docker|engine"])
        self.refused("--config", "/no/such/file", words=["/no/such/file"])
        self.refused("--library", "/no/such/folder", words=["/no/such/folder"])

    def test_launcher(self):
        self.refused("--launcher", "/no/such/launcher", words=["/no/such/launcher"])
        self.refused("--launcher", "/etc/passwd", words=["/etc/passwd"])

    def test_addresses(self):
        for address in ("192.0.2.1:80", "localhost", "127.0.0.1:99999",
                        "127.0.0.1:x", "unix:", "unix:relative", "unix:/" + "x" * 200, ""):
            with self.subTest(address=address):
                self.refused("--listen", address)

    def test_directories(self):
        self.refused("--state", "/proc/nope")
        self.refused("--state", "/etc/passwd")

    def test_unknown_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root chooses a user")
        self.refused("--user", "no-such-user-here", words=["no-such-user-here"])
        self.refused("--user", "root", words=["root"])

    def test_a_second_daemon_on_the_same_state(self):
        first = harness.Daemon().start()
        try:
            self.refused("--state", first.state, words=["(?i)lock|already|in use|another"])
            self.assertEqual(first.get("/healthz").status, 200)
        finally:
            first.stop()

    def test_a_port_that_is_taken(self):
        first = harness.Daemon().start()
        try:
            text = self.refused("--listen", f"127.0.0.1:{first.port}")
            self.assertRegex(text, re.escape(str(first.port)))
        finally:
            first.stop()

    def test_version_and_help(self):
        for arguments in (["--version"], ["version"], ["--help"], ["serve", "--help"]):
            done = subprocess.run([harness.KERND, *arguments], capture_output=True, text=True,
                                  timeout=harness.seconds(20), check=False)
            self.assertEqual(done.returncode, 0, (arguments, done))
            self.assertTrue(done.stdout)
            self.assertEqual(done.stderr, "")


# Hidden programs of the host mean nothing to an engine that starts without bwrap and takes programs from an image.
if harness.ENGINE == "kern":
    del NoLauncher, MissingInterpreter


if __name__ == "__main__":
    unittest.main()
