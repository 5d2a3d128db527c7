# SPDX-License-Identifier: Apache-2.0
"""Where a token, an environment value or code may show: nowhere but where it belongs."""
import contextlib
import os
import stat
import unittest

import census
import harness
import sessionkit

LOOK_AROUND = r"""
import os
print(os.environ.get("API_KEY"))
seen = []
for pid in os.listdir("/proc"):
    if pid.isdigit():
        for name in ("cmdline", "environ", "maps", "mountinfo", "cgroup"):
            try: seen.append(f"{pid} {name} " + repr(open(f"/proc/{pid}/{name}", "rb").read()))
            except OSError as error: seen.append(f"{pid} {name} {error.strerror}")
print("\n".join(seen))
for top in ("/run", "/etc", "/tmp", "/workspace", "/home"):
    for folder, _, files in os.walk(top):
        for name in files:
            try: print(folder, name, open(os.path.join(folder, name), "rb").read(10000))
            except OSError: pass
"""


class Secrets(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.value = "s3cr3t-VALUE-" + harness.new_mark()
        cls.daemon.secrets.append(cls.value)  # looked for in the log when the class ends

    def test_the_box_sees_its_own_and_nothing_of_the_daemon(self):
        result = self.run_code(LOOK_AROUND, env={"API_KEY": self.value})
        self.assert_success(result)
        text = result["stdout"]
        self.assertTrue(text.startswith(self.value + "\n"), "the control: its own value")
        self.assertIn("1 cmdline", text, "the control: other processes were looked at")
        for hidden in (self.daemon.token, self.daemon.canary, self.daemon.token_path):
            self.assertNotIn(hidden, text)

    def test_not_in_any_command_line_on_the_host(self):
        mark = harness.new_mark()

        def look():
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
            return census.with_argument(self.value) + census.with_argument(self.daemon.token)

        def run():
            return self.run_command(["sleep", "1.5"], env={"API_KEY": self.value, "MARK": mark})

        result, found = harness.parallel(2, lambda i: look() if i else run())
        self.assert_success(result)
        self.assertEqual(found, [], census.describe(found))

    def test_arguments_are_not_in_command_lines_of_the_launcher(self):
        mark = harness.new_mark()

        def look():
            # The program itself shows its arguments; no process outside its box does.
            census.wait_until(lambda: len(census.with_environment(mark)) == 2,
                              harness.seconds(10), "the shell and its child")
            found = census.with_argument(self.value)
            return census.with_environment(mark), found, census.describe(found)

        def run():
            return self.run_command(["sh", "-c", "sleep 1.5; exit 0", "sh", self.value],
                                    env={"MARK": mark})

        result, (inside, found, words) = harness.parallel(2, lambda i: look() if i else run())
        self.assert_success(result)
        self.assertTrue(found, "the control: the program's own arguments are seen")
        self.assertLessEqual(set(found), set(inside), words)

    def test_failing_and_slow_runs(self):
        for options in ({"command": ["false"]}, {"command": ["no-such-thing"]},
                        {"command": ["sleep", "9"], "timeoutS": 0.5},
                        {"command": ["/etc/passwd"]}, {"command": ["pwd"], "cwd": "/nowhere"}):
            reply = self.daemon.post("/v1/run", {**options, "env": {"API_KEY": self.value}})
            self.assertNotIn(self.value.encode(), reply.body)

    def test_refused_requests(self):
        for body in ({"command": ["true"], "env": {"API_KEY": self.value}, "nope": 1},
                     {"command": ["true"], "env": {"BAD=KEY": self.value}},
                     {"command": ["true"], "env": {"API_KEY": self.value}, "timeoutS": -1},
                     {"command": 5, "stdin": self.value}, {"command": ["true"], "cwd": 5,
                                                           "files": {"a": self.value}}):
            reply = self.daemon.post("/v1/run", body)
            self.assertEqual(reply.status, 422, reply)
            self.assertNotIn(self.value.encode(), reply.body)
        reply = self.daemon.post("/v1/run", b'{"env":{"API_KEY":"%s"}' % self.value.encode())
        self.assertEqual(reply.status, 400)
        self.assertNotIn(self.value.encode(), reply.body)

    def test_code_and_output_are_not_logged(self):
        hidden = "logged-" + harness.new_mark()
        self.run_code(f"print('{hidden}')  # {hidden}", files={hidden: hidden}, stdin=hidden)
        self.run_command(["echo", hidden])
        self.daemon.post("/v1/run", {"command": ["true"], hidden: hidden})
        self.assertNotIn(hidden, self.daemon.log())

    def test_a_token_in_a_query_is_not_logged(self):
        self.daemon.post(f"/v1/run?token={self.daemon.token}&x={self.value}", {"command": ["true"]})
        self.daemon.get("/v1/version", headers={"Authorization": f"Bearer {self.value}"},
                        token=False)
        # The log itself is checked for token and value when the class ends.
        census.wait_until(lambda: "401" in self.daemon.log(), harness.seconds(10), "the log line")

    def test_another_call_sees_nothing(self):
        mark = harness.new_mark()

        def first():
            return self.run_command(["sleep", "2"], env={"API_KEY": self.value, "MARK": mark},
                                    files={"private": self.value})

        def second():
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
            return self.run_code(LOOK_AROUND)

        results = harness.parallel(2, lambda i: second() if i else first())
        self.assert_success(results[1])
        self.assertTrue(results[1]["stdout"].startswith("None\n"))
        self.assertNotIn(self.value, results[1]["stdout"])


class Modes(harness.Case):
    """Files of the daemon are for its user alone."""

    def test_files_and_directories(self):
        owner = os.stat(f"/proc/{self.daemon.pid}").st_uid
        mark = harness.new_mark()

        def walk():
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
            found = []
            for top in (self.daemon.state, self.daemon.runtime):
                for folder, folders, files in os.walk(top):
                    for path in [folder] + [os.path.join(folder, name) for name in files]:
                        with contextlib.suppress(FileNotFoundError):  # boxes come and go
                            status = os.lstat(path)
                            found.append((path, status.st_mode, status.st_uid))
            return found

        session = sessionkit.Session(self.daemon, env={"A": "1"})
        self.assertEqual(session.post("snapshots", {}).status, 201)
        results = harness.parallel(2, lambda i: walk() if i else self.run_command(
            ["sleep", "1.5"], env={"MARK": mark}, files={"a": "1"}, secrets={"B": "2"}))
        session.delete()
        self.assertGreater(len(results[1]), 10, results[1])
        # What boxes see of the system's /etc is everybody's, and what programs write is their own.
        # What an engine keeps for its boxes lies below a directory that is kernd's alone.
        others = (os.path.join(self.daemon.runtime, "etc"),
                  os.path.join(self.daemon.runtime, "engine", ""),
                  os.path.join(self.daemon.state, "workspaces", ""))
        for path, mode, uid in results[1]:
            self.assertEqual(uid, owner, path)
            if not path.startswith(others):
                self.assertEqual(stat.S_IMODE(mode) & 0o077, 0, f"{path} {mode:o}")
        tops = {os.path.dirname(path) for path, _, _ in results[1]}
        self.assertIn(self.daemon.runtime, tops)

    def test_token_is_long_and_random(self):
        self.assertGreaterEqual(len(self.daemon.token), 43)
        self.assertEqual(stat.S_IMODE(os.stat(self.daemon.token_path).st_mode), 0o600)
        self.assertGreater(len(set(self.daemon.token)), 10)

    def test_peers_of_another_user_are_refused_on_the_socket(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user here")
        # Root reaches the socket whatever its mode is; the peer's user id decides.
        with self.daemon.connect("unix") as connection:
            reply = connection.exchange("GET", "/v1/version")
            self.assertIn(reply.status, (200, 401, 403))

    def test_a_socket_nobody_else_can_connect_to(self):
        mode = os.stat(self.daemon.socket_path).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.daemon.runtime).st_mode), 0o700)


if __name__ == "__main__":
    unittest.main()
