# SPDX-License-Identifier: Apache-2.0
"""`kernd start`, `stop`, `status`, `restart`, and the units that `kernd service` writes."""
import os
import re
import signal
import subprocess
import unittest

import census
import check
import harness
import wire

RUNNING = re.compile(r"running pid=(\d+) socket=(\S+) url=(\S+) token=(\S+) log=(\S+)\n")


def ended(pid):
    """Gone, or waiting for its new parent to notice."""
    return (census.stat(pid) or "Z")[0] == "Z"


class Control(unittest.TestCase):
    def setUp(self):
        self.daemon = harness.Daemon()  # for its directories and its user alone
        self.addCleanup(self.daemon.remove)
        self.addCleanup(self.kernd, "stop")

    def spawn(self, *arguments, listens=None):
        """The command about a server of this test; by the way of the directories: listens=()."""
        daemon = self.daemon
        user = {"user": daemon.user, "group": "nogroup", "extra_groups": []} if daemon.user else {}
        listens = (f"unix:{daemon.socket_path}", "127.0.0.1:0") if listens is None else listens
        options = ["--state", daemon.state, "--runtime", daemon.runtime, "--spares", "0",
                   *(word for address in listens for word in ("--listen", address))]
        return subprocess.Popen(
            [harness.KERND, *arguments, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, cwd="/", text=True,
            env={"PATH": os.environ["PATH"], "HOME": daemon.home,
                 **{name: value for name, value in os.environ.items()
                    if name.endswith("SAN_OPTIONS")}}, **user)

    def end(self, process):
        out, error = process.communicate(timeout=harness.seconds(60))
        return process.returncode, out, error

    def kernd(self, *arguments, listens=None):
        return self.end(self.spawn(*arguments, listens=listens))

    def running(self, *arguments):
        """What the command says of a server that runs: (pid, url)."""
        code, out, error = self.kernd(*arguments)
        self.assertEqual((code, error), (0, ""), out)
        found = RUNNING.fullmatch(out.splitlines(True)[-1])
        self.assertIsNotNone(found, out)
        self.assertEqual((found[2], found[4]),
                         (self.daemon.socket_path, os.path.join(self.daemon.runtime, "token")))
        return int(found[1]), found[3]

    def call(self, method, target, body=None, headers=None):
        headers = {**({"Content-Type": "application/json"} if body is not None else {}),
                   **(headers or {})}
        with wire.Connection(self.daemon.socket_path, harness.seconds(30)) as connection:
            return check.reply(connection.exchange(method, target, headers, body), method)

    def test_tokens_of_a_server_that_is_started_for_them(self):
        code, out, error = self.kernd("token", "new", "--scope", "run", "--name", "agent")
        self.assertEqual(code, 0, error)
        self.assertRegex(out, r"\Akernd_[0-9a-f]{64}\n\Z")
        self.assertNotIn(out.strip(), error)
        pid, _ = self.running("status")
        shown = {"Authorization": f"Bearer {out.strip()}"}
        self.assertEqual(self.call("GET", "/v1/tokens", headers=shown).status, 403)
        self.assertNotEqual(self.running("restart")[0], pid)
        self.assertEqual(self.call("GET", "/v1/version", headers=shown).status, 200)
        self.assertEqual(self.kernd("stop")[0], 0)
        code, out, error = self.kernd("token", "list")
        self.assertEqual((code, out.split()[-1]), (0, "agent"), error)
        self.assertEqual(self.kernd("token", "revoke", out.splitlines()[-1].split()[0])[0], 0)
        self.assertEqual(self.call("GET", "/v1/version", headers=shown).status, 401)

    def test_a_life(self):
        self.assertEqual(self.kernd("status"), (3, "not running\n", ""))
        self.assertEqual(self.kernd("stop"), (0, "not running\n", ""))
        pid, url = self.running("start")
        self.assertRegex(url, r"http://127\.0\.0\.1:\d+")
        self.assertEqual(self.running("status"), (pid, url))
        self.assertEqual(self.running("start"), (pid, url), "it runs already")
        self.assertEqual(os.getsid(pid), pid, "it must outlive the terminal")
        self.assertEqual(self.call("POST", "/v1/sessions", b'{"id":"s"}').status, 201)
        again, _ = self.running("restart")
        self.assertNotEqual(again, pid)
        self.assertEqual(self.call("GET", "/v1/sessions/s").status, 200)
        self.assertEqual(self.kernd("stop"), (0, f"stopped pid={again}\n", ""))
        self.assertEqual(ended(again), True)
        self.assertEqual(self.kernd("status"), (3, "not running\n", ""))

    def test_many_starts_at_once_give_one_server(self):
        ends = [self.end(process) for process in [self.spawn("start") for _ in range(4)]]
        self.assertEqual([end[0] for end in ends], [0] * 4, ends)
        self.assertEqual(len({end[1] for end in ends}), 1, ends)

    def test_no_server_waits_to_take_over(self):
        """Of servers that were started at once: with the one that serves all have ended."""
        for _ in range(5):
            for process in [self.spawn("start") for _ in range(4)]:
                self.assertEqual(self.end(process)[0], 0)
            self.assertEqual(self.kernd("stop")[0], 0)
            census.wait_gone(lambda: census.with_argument(self.daemon.state), harness.seconds(5),
                             "servers")
            self.assertEqual(self.kernd("status"), (3, "not running\n", ""))

    def test_a_server_that_listens_elsewhere(self):
        """It holds the directories: who asks for their server is led to it."""
        other = os.path.join(self.daemon.runtime, "other.sock")
        for listens, tells in ((("127.0.0.1:0",), r"url=http://\S+ token="),
                               ((f"unix:{other}",), rf"socket={other} token=")):
            server = self.spawn("serve", listens=listens)
            self.assertRegex(server.stdout.readline(), rf"^ready {tells}")
            for command in ("status", "start"):
                code, out, error = self.kernd(command, listens=())
                self.assertEqual((code, error), (0, ""))
                self.assertRegex(out, rf"^running pid={server.pid} {tells}")
            code, out, error = self.kernd("token", "list", listens=())
            self.assertEqual((code, error), (0, ""), out)
            said = self.kernd("stop", listens=())
            self.assertEqual(said, (0, f"stopped pid={server.pid}\n", ""))
            self.end(server)
        self.assertEqual(self.kernd("status", listens=()), (3, "not running\n", ""))

    def test_a_server_for_a_client_has_its_socket(self):
        """Also where the settings name addresses of TCP alone."""
        code, out, error = self.kernd("start", listens=("127.0.0.1:0",))
        self.assertEqual((code, error), (0, ""))
        self.assertRegex(out, rf" url=http://127\.0\.0\.1:\d+ socket={self.daemon.socket_path} ")
        self.assertEqual(self.call("GET", "/v1/version").status, 200)

    def test_after_a_crash(self):
        pid, _ = self.running("start")
        os.kill(pid, signal.SIGKILL)
        # The lock is free when the last of its threads has ended.
        census.wait_until(lambda: self.kernd("status") == (3, "not running\n", ""),
                          harness.seconds(10), "its end")
        self.assertNotEqual(self.running("start")[0], pid)

    def test_a_start_that_fails(self):
        code, out, error = self.kernd("start", "--engine", "kern", "--launcher", "/nonexistent")
        self.assertEqual((code, out), (1, ""), error)
        self.assertIn("kernd.log", error)
        code, _, error = self.kernd("start", "--wrokers", "1")
        self.assertEqual(code, 2)
        self.assertIn("is --workers meant?", error)


class Units(unittest.TestCase):
    def kernd(self, *arguments):
        return subprocess.run([harness.KERND, "service", *arguments], capture_output=True, text=True,
                              timeout=harness.seconds(30), check=False,
                              env={"PATH": os.environ["PATH"], "HOME": "/home/some one"})

    def test_print(self):
        done = self.kernd("install", "--print", "--tcp", "127.0.0.1:5377")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("# /home/some one/.config/systemd/user/kernd.service\n", done.stdout)
        self.assertIn(f'\nExecStart="{harness.KERND}" serve\n', done.stdout)
        self.assertIn("\nListenStream=%t/kernd/kernd.sock\n", done.stdout)
        self.assertIn("\nListenStream=127.0.0.1:5377\n", done.stdout)
        self.assertNotIn("\nListenStream=127", self.kernd("install", "--print").stdout)

    def test_every_setting_is_explained(self):
        for name in ("kernd.service", "kernd.socket"):
            with open(os.path.join(harness.ROOT, "systemd", name), encoding="ascii") as file:
                lines = file.read().splitlines()
            for before, line in zip(lines, lines[1:]):
                if re.match(r"(Description|WantedBy)=", line) or not re.match(r"\w+=", line):
                    continue
                self.assertRegex(before, r"^# |^\w+=", f"{name}: {line}")

    def test_wrong_usage(self):
        for arguments in ((), ("what",), ("install", "--tcp"), ("install", "--tcp", "a\nb"),
                          ("status", "now")):
            self.assertEqual(self.kernd(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
