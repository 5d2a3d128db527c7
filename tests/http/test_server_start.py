# SPDX-License-Identifier: Apache-2.0
"""How the daemon starts and what it says then: configuration, inherited sockets, users, stopping."""
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

import check
import harness
import wire

# Becomes the daemon after the descriptors that are named were moved to 3, 4, ... as systemd does.
ACTIVATE = """
import os, sys
count = int(sys.argv[1])
apart = [os.dup2(int(number), 100 + i) for i, number in enumerate(sys.argv[2:2 + count])]
for i, number in enumerate(apart):
    os.dup2(number, 3 + i)
    os.close(number)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(count)
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


def start(**options):
    return harness.Daemon(**options).start()


class Configuration(unittest.TestCase):
    def run_with(self, text, *arguments):
        """What a start with this configuration file ends with, when it must fail."""
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([harness.KERND, "serve", "--config", file.name, *arguments],
                                  capture_output=True, text=True, timeout=harness.seconds(20),
                                  check=False)
        self.assertEqual(done.stdout, "")
        return done

    def test_complaints_name_the_line(self):
        done = self.run_with("# fine\nlog_level = info\n\nno_such_key = 1\n")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\.conf:4: .*no_such_key")
        self.assertIn("kernd help", done.stderr)

    def test_values_are_checked(self):
        for line in ("workers = many", "engine = docker", "allow_root = perhaps", "state ="):
            done = self.run_with(line)
            self.assertEqual(done.returncode, 2, line)
            self.assertIn(":1: ", done.stderr)

    def test_a_file_is_heard_and_options_win(self):
        daemon = harness.Daemon()
        path = daemon.path("kernd.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write("listen = 127.0.0.1:1\nmax_timeout_s = 7\nlog_level = error\n"
                       "allow_host = tunnel.test:9000\n")
        daemon.arguments += ["--config", path]
        daemon.start()
        try:
            reply = daemon.post("/v1/run", {"command": ["true"], "timeoutS": 8})
            self.assertEqual((reply.status, reply.json["code"]), (422, "limit_exceeds_maximum"))
            reply = daemon.get("/healthz", headers={"Host": "tunnel.test:9000"})
            self.assertEqual(reply.status, 200)
            reply = daemon.get("/healthz", headers={"Host": "tunnel.test"})
            self.assertEqual(reply.status, 403)
        finally:
            daemon.stop()


class Announcement(unittest.TestCase):
    def test_one_line_and_a_hint_that_works(self):
        daemon = start(arguments=("--hint",))
        try:
            lines = daemon.output().splitlines()
            self.assertRegex(lines[0], r"^ready url=http://127\.0\.0\.1:\d+ socket=/\S+ token=/\S+$")
            self.assertTrue(lines[1].startswith("try: curl "), lines)
            command = "\n".join(lines[1:]).removeprefix("try: ")
            done = subprocess.run(["bash", "-c", command], capture_output=True,
                                  timeout=harness.seconds(30), check=True)
            self.assertEqual(wire.strict_json(done.stdout)["stdout"], "42\n")
        finally:
            daemon.stop()

    def test_no_hint_without_a_terminal(self):
        daemon = start()
        try:
            self.assertEqual(len(daemon.output().splitlines()), 1)
        finally:
            daemon.stop()


class Inherited(unittest.TestCase):
    def activated(self, sockets, **options):
        numbers = [sock.fileno() for sock in sockets]
        wrapper = ["/usr/bin/python3", "-c", ACTIVATE, str(len(numbers)), *map(str, numbers)]
        return harness.Daemon(wrapper=wrapper, descriptors=numbers, **options)

    def test_sockets(self):
        directory = tempfile.mkdtemp()
        path = os.path.join(directory, "inherited.sock")
        with socket.socket(socket.AF_UNIX) as local, socket.socket(socket.AF_INET) as tcp:
            local.bind(path)
            local.listen()
            tcp.bind(("127.0.0.1", 0))
            tcp.listen()
            port = tcp.getsockname()[1]
            daemon = self.activated([local, tcp]).start()
            try:
                line = daemon.output().splitlines()[0]
                self.assertIn(f"socket={path}", line)
                self.assertIn(f"url=http://127.0.0.1:{port}", line)
                for address in (path, ("127.0.0.1", port)):
                    with wire.Connection(address, host=f"localhost:{port}") as connection:
                        reply = check.reply(connection.exchange("GET", "/healthz"))
                    self.assertEqual(reply.status, 200)
                inside = daemon.run(["sh", "-c", "ls -l /proc/self/fd"])["stdout"]
                self.assertNotIn("socket:", inside)
                daemon.finish()
                # Who comes while nobody serves is served by the next one.
                waiting = [wire.Connection(address, harness.seconds(60), f"localhost:{port}")
                           for address in (path, ("127.0.0.1", port))]
                for connection in waiting:
                    connection.request("GET", "/healthz")
                os.unlink(daemon.path("out"))
                daemon.port = 0
                daemon.start()
                for connection in waiting:
                    self.assertEqual(check.reply(connection.reply()).status, 200)
                    connection.close()
            finally:
                daemon.port = port
                daemon.stop()
            self.assertTrue(os.path.exists(path), "it is not ours to remove")
        shutil.rmtree(directory)

    @unittest.skipIf(os.geteuid() != 0, "only root changes users")
    def test_the_socket_is_its_users_and_roots_alone(self):
        """However open the socket is that was inherited: who connects is asked of the kernel."""
        directory = tempfile.mkdtemp()
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "open.sock")
        with socket.socket(socket.AF_UNIX) as local, socket.socket(socket.AF_INET) as tcp:
            local.bind(path)
            os.chmod(path, 0o666)
            local.listen()
            tcp.bind(("127.0.0.1", 0))
            tcp.listen()
            daemon = self.activated([local, tcp])
            daemon.start()
            try:
                for user, status in ((None, 200), (harness.USER, 200), ("daemon", 403)):
                    with harness.as_user(user):
                        connection = wire.Connection(path, harness.seconds(30))
                    with self.subTest(user=user), connection:
                        if status == 200:
                            connection.request("GET", "/v1/version")  # others are not listened to
                        reply = check.reply(connection.reply())
                        self.assertEqual(reply.status, status, reply)
                        if status == 403:
                            self.assertEqual(reply.json["code"], "forbidden")
                            self.assertTrue(reply.closed and connection.at_end())
            finally:
                daemon.stop()
        shutil.rmtree(directory)

    def test_something_else(self):
        with socket.socket(socket.AF_INET) as not_listening:
            daemon = self.activated([not_listening]).spawn()
            try:
                self.assertEqual(daemon.process.wait(harness.seconds(20)), 1)
                self.assertIn("descriptor 3", daemon.log())
            finally:
                daemon.remove()

    def test_the_manager_is_told(self):
        directory = tempfile.mkdtemp()
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            os.chmod(path, 0o666)
            manager.settimeout(harness.seconds(20))
            daemon = start(environment={"NOTIFY_SOCKET": path})
            try:
                self.assertEqual(manager.recv(100), b"READY=1")
            finally:
                daemon.stop()
            self.assertEqual(manager.recv(100), b"STOPPING=1")
        shutil.rmtree(directory)


@unittest.skipIf(os.geteuid() != 0, "only root changes users")
class Users(unittest.TestCase):
    def test_a_program_in_a_directory_closed_to_the_account(self):
        """A build tree in root's home: kernd-init and the drivers are copied, nothing else."""
        closed = tempfile.mkdtemp(prefix="kernd-closed-")
        build = os.path.dirname(harness.KERND)
        for name in os.listdir(build):
            path = os.path.join(build, name)
            if os.path.isfile(path):
                shutil.copy2(path, closed)
        shutil.copytree(os.path.join(build, "__pycache__"), os.path.join(closed, "__pycache__"))
        original, harness.KERND = harness.KERND, os.path.join(closed, "kernd")
        try:
            daemon = start()
            try:
                self.assertEqual(daemon.run_code("print(1)")["stdout"], "1\n")
                self.assertEqual(daemon.run(["echo", "2"])["stdout"], "2\n")
                self.assertIn("copied kernd-init", daemon.log())
                copies = os.listdir(os.path.join(daemon.runtime, "library"))
                self.assertIn("kernd-init", copies)
                self.assertTrue(all(name.startswith("kernd-") or name == "__pycache__" or
                                    name.endswith((".py", ".js", ".mjs")) for name in copies),
                                copies)
                bytecode = os.listdir(os.path.join(daemon.runtime, "library", "__pycache__"))
                self.assertTrue(all(name.endswith(".pyc") for name in bytecode) and bytecode)
            finally:
                daemon.stop()
        finally:
            harness.KERND = original
            shutil.rmtree(closed)

    def test_directories_are_made_for_the_account(self):
        daemon = harness.Daemon()
        os.rmdir(daemon.state)
        os.rmdir(daemon.runtime)
        daemon.state = os.path.join(daemon.home, "a", "b", "state")
        daemon.start()
        try:
            for path in (daemon.state, daemon.runtime, os.path.dirname(daemon.state)):
                status = os.stat(path)
                self.assertEqual(stat.S_IMODE(status.st_mode), 0o700, path)
                self.assertEqual(status.st_uid, pwd.getpwnam(harness.USER).pw_uid, path)
        finally:
            daemon.stop()

    def test_a_directory_of_another_owner(self):
        daemon = harness.Daemon()
        os.chown(daemon.state, 0, 0)
        daemon.spawn()
        try:
            self.assertEqual(daemon.process.wait(harness.seconds(20)), 1)
            self.assertIn("belongs to user 0", daemon.log())
        finally:
            daemon.remove()

    def test_a_place_that_the_account_cannot_reach(self):
        daemon = harness.Daemon()
        os.chmod(daemon.home, 0o700)
        daemon.spawn()
        try:
            self.assertEqual(daemon.process.wait(harness.seconds(20)), 1)
            self.assertIn("can't use", daemon.log())
            self.assertIn("--state", daemon.log())
        finally:
            daemon.remove()

    def test_the_environment_of_root_stays_behind(self):
        daemon = start(environment={"HOME": "/root", "SUDO_USER": "somebody", "XDG_STATE_HOME": "/x"})
        try:
            with open(f"/proc/{daemon.pid}/status", encoding="ascii") as file:
                self.assertIn("Uid:\t65534", file.read())
            # What the process has now: the first page of the stack still shows what it was given.
            result = daemon.run_code("import os; print(sorted(os.environ))")
            self.assertNotIn("SUDO_USER", result["stdout"])
            self.assertNotIn("KERND_CANARY", result["stdout"])
        finally:
            daemon.stop()

    def test_root_only_when_asked(self):
        daemon = harness.Daemon(arguments=("--allow-root",), user=None)
        daemon.user = None
        for path in (daemon.state, daemon.runtime):
            os.chown(path, 0, 0)
        daemon.start()
        try:
            with open(f"/proc/{daemon.pid}/status", encoding="ascii") as file:
                self.assertRegex(file.read(), r"Uid:\t0\t0\t0\t0")
        finally:
            daemon.stop()


class Stopping(unittest.TestCase):
    def busy(self, *arguments):
        daemon = start(arguments=arguments)
        connection = daemon.connect()
        connection.request("POST", "/v1/run", {**daemon.authorization(),
                                               "Content-Type": "application/json"},
                           harness.as_json({"command": ["sleep", "60"]}))
        harness.census.wait_until(daemon.box_processes, harness.seconds(10), "the box")
        return daemon, connection

    def test_a_second_signal_ends_the_grace(self):
        daemon, connection = self.busy("--grace-s", "600")
        try:
            daemon.process.send_signal(signal.SIGTERM)
            harness.census.wait_until(lambda: "event=stopping" in daemon.log(),
                                      harness.seconds(10), "the stop")
            self.assertIsNone(daemon.process.poll())
            daemon.process.send_signal(signal.SIGTERM)
            reply = check.reply(connection.reply())
            self.assertEqual(reply.json["fault"]["type"], "cancelled")
            self.assertEqual(daemon.process.wait(harness.seconds(15)), 0)
        finally:
            daemon.remove()

    def test_no_grace(self):
        daemon, connection = self.busy("--grace-s", "0")
        try:
            started = time.monotonic()
            daemon.process.send_signal(signal.SIGINT)
            self.assertEqual(check.reply(connection.reply()).json["fault"]["type"], "cancelled")
            self.assertEqual(daemon.process.wait(harness.seconds(15)), 0)
            self.assertLess(time.monotonic() - started, harness.seconds(5))
        finally:
            daemon.remove()

    def test_the_socket_is_gone_and_the_token_stays(self):
        daemon = start()
        daemon.finish()
        try:
            self.assertFalse(os.path.exists(daemon.socket_path))
            first = daemon.token
            os.unlink(daemon.path("out"))
            daemon.start()
            self.assertEqual(daemon.token, first)
        finally:
            daemon.stop()

    def test_a_log_that_nobody_reads(self):
        """Its standard error is a pipe whose reader is gone: it works on, and says nothing."""
        daemon = start(wrapper=["bash", "-c", 'exec 2> >(exec 2>/dev/null); wait $!; exec "$@"', "bash"])
        try:
            self.assertTrue(os.readlink(f"/proc/{daemon.pid}/fd/2").startswith("pipe:"))
            self.assertEqual(daemon.run(["echo", "there"])["stdout"], "there\n")
            self.assertEqual((daemon.get("/no/such/path").status, daemon.log()), (404, ""))
        finally:
            daemon.stop()

    def test_the_log_is_json_when_asked(self):
        daemon = start(arguments=("--log-format", "json"))
        try:
            self.assertEqual(daemon.get("/healthz").status, 200)
            # The line is written when the client already has its answer.
            harness.census.wait_until(lambda: '"request"' in daemon.log(), harness.seconds(10),
                                      "the line of the request")
            lines = [wire.strict_json(line.encode()) for line in daemon.log().splitlines()]
            request = next(line for line in lines if line["event"] == "request")
            self.assertEqual((request["method"], request["route"], request["status"]),
                             ("GET", "/healthz", 200))
            self.assertIs(type(request["ms"]), float)
        finally:
            daemon.stop()


if __name__ == "__main__":
    unittest.main()
