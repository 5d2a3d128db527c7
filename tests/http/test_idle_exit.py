# SPDX-License-Identifier: Apache-2.0
"""The daemon leaves when it has nothing to do, and no request is lost on the way."""
import os
import random
import select
import socket
import subprocess
import threading
import time
import unittest

import census
import check
import harness
import test_control
import test_mcp_bridge
import wire

# Becomes the daemon with the descriptor of that number as the one that it inherits.
ACTIVATE = 'exec 3<&"$0"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
ROUNDS = int(os.environ.get("KERND_TEST_ROUNDS", "40"))
PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'


class Manager(threading.Thread):
    """What systemd does for a socket unit: starts the daemon whenever a client waits."""

    def __init__(self, daemon, *arguments):
        super().__init__(daemon=True)
        self.kernd = daemon
        self.arguments = arguments
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(daemon.path("door"))
        os.chmod(daemon.path("door"), 0o666)
        self.listener.listen(64)
        self.over = False
        self.codes = []

    def run(self):
        number = self.listener.fileno()
        user = ["--user", self.kernd.user] if self.kernd.user else []
        while not self.over:
            if not select.select([number], [], [], 0.1)[0]:
                continue
            with open(self.kernd.path("log"), "ab") as log:
                process = subprocess.Popen(
                    ["sh", "-c", ACTIVATE, str(number), harness.KERND, "serve", "--state",
                     self.kernd.state, "--runtime", self.kernd.runtime, "--spares", "0", *user,
                     *self.arguments],
                    pass_fds=[number], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                    env={"PATH": os.environ["PATH"],
                         **{name: value for name, value in os.environ.items()
                            if name.endswith("SAN_OPTIONS")}})
            self.codes.append(process.wait())

    def finish(self):
        """Waits until the last daemon has left."""
        self.over = True
        self.join(harness.seconds(30))
        assert not self.is_alive(), "the daemon does not leave"
        self.listener.close()


class Idle(unittest.TestCase):
    def make(self, *arguments):
        daemon = harness.Daemon(arguments)
        self.addCleanup(daemon.remove)
        return daemon

    def assert_leaves(self, daemon, limit=15):
        self.assertEqual(daemon.process.wait(harness.seconds(limit)), 0, daemon.log()[-2000:])
        self.assertIn("nothing to do", daemon.log())
        self.assertFalse(os.path.exists(daemon.socket_path))
        census.wait_gone(daemon.box_processes, harness.seconds(5), "processes of boxes")
        os.unlink(daemon.path("out"))  # where the next start's line is looked for

    def test_it_leaves_and_keeps_what_it_keeps(self):
        daemon = self.make("--idle-exit", "0.3").start()
        self.assertEqual(daemon.post("/v1/sessions", {"id": "s"}).status, 201)
        put = daemon.request("PUT", "/v1/sessions/s/files/a", b"1",
                             media_type="application/octet-stream")
        self.assertEqual(put.status, 201)
        self.assert_leaves(daemon)
        daemon.start()
        self.assertEqual(daemon.get("/v1/sessions/s/files/a").body, b"1")
        self.assert_leaves(daemon)

    def test_without_a_manager_it_stays(self):
        daemon = self.make().start()
        shown = subprocess.run([harness.KERND, "config", "show"], capture_output=True, text=True,
                               check=True).stdout
        self.assertRegex(shown, r"# idle_exit = +; not set")
        with self.assertRaises(subprocess.TimeoutExpired):
            daemon.process.wait(1)
        daemon.finish()

    def test_a_connection_keeps_it(self):
        daemon = self.make("--idle-exit", "0.2").start()
        with daemon.connect("tcp") as connection:
            with self.assertRaises(subprocess.TimeoutExpired):
                daemon.process.wait(1)
            reply = connection.exchange("GET", "/healthz")
            self.assertEqual(check.reply(reply).status, 200)
        self.assert_leaves(daemon)

    def test_an_execution_keeps_it_that_nobody_waits_for(self):
        daemon = self.make("--idle-exit", "0.2").start()
        body = {"id": "job", "command": ["sh", "-c", "sleep 1.5; echo done"]}
        reply = daemon.post("/v1/run", body, headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202)
        self.assert_leaves(daemon)
        daemon.start()
        record = daemon.get("/v1/executions/job").json
        self.assertEqual((record["state"], record["stdout"]), ("done", "done\n"))
        self.assert_leaves(daemon)

    def test_the_build_of_an_environment_keeps_it(self):
        daemon = self.make("--idle-exit", "0.2").start()
        body = {"name": "slow", "setup": "sleep 1.5; echo made > made"}
        reply = daemon.post("/v1/environments", body, headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202)
        self.assert_leaves(daemon)
        daemon.start()
        self.assertEqual(daemon.get("/v1/environments/slow").json["state"], "ready")
        self.assert_leaves(daemon)

    def test_a_kernel_keeps_it(self):
        daemon = self.make("--idle-exit", "0.2").start()
        daemon.post("/v1/sessions", {"id": "s"})
        self.assertEqual(daemon.post("/v1/sessions/s/kernels", {"id": "k"}).status, 201)
        with self.assertRaises(subprocess.TimeoutExpired):
            daemon.process.wait(1.5)
        cells = "/v1/sessions/s/kernels/k"
        self.assertEqual(daemon.post(cells + "/cells", {"code": "print(1)"}).json["stdout"], "1\n")
        self.assertEqual(daemon.request("DELETE", cells).status, 204)
        self.assert_leaves(daemon)

    def test_a_signal_while_it_is_idle(self):
        daemon = self.make("--idle-exit", "600").start()
        daemon.finish()
        self.assertNotIn("nothing to do", daemon.log())


class Hammer(unittest.TestCase):
    """Clients that come exactly when the daemon goes."""

    def setUp(self):
        self.daemon = harness.Daemon()
        self.addCleanup(self.daemon.remove)
        random.seed(12)

    def pause(self):
        time.sleep(random.uniform(0.02, 0.06))

    def test_by_an_inherited_socket(self):
        manager = Manager(self.daemon, "--idle-exit", "0.04")
        manager.start()
        for _ in range(ROUNDS):
            with wire.Connection(self.daemon.path("door"), harness.seconds(60)) as connection:
                self.assertEqual(connection.exchange("GET", "/healthz").status, 200)
            self.pause()
        manager.finish()
        self.assertEqual(set(manager.codes), {0}, self.daemon.log()[-4000:])
        self.assertGreater(len(manager.codes), 2)

    def bridge(self, limit):
        arguments = ["--idle-exit", limit, "--spares", "0", "--log-level", "debug", "--state",
                     self.daemon.state, "--runtime", self.daemon.runtime, "--listen",
                     f"unix:{self.daemon.socket_path}"]
        return test_mcp_bridge.Bridge(self.daemon, *arguments)

    def ping(self, bridge, number):
        bridge.write(PING % number)
        self.assertEqual(bridge.read(), {"jsonrpc": "2.0", "id": number, "result": {}})

    def test_by_clients_that_start_it(self):
        with self.bridge("0.04") as bridge:
            for number in range(ROUNDS):
                self.ping(bridge, number)
                self.pause()
        with open(os.path.join(self.daemon.state, "kernd.log"), encoding="utf-8") as file:
            log = file.read()
        self.assertGreater(log.count("nothing to do"), 2)
        with open(os.path.join(self.daemon.state, "lock"), encoding="ascii") as file:
            last = int(file.read())
        census.wait_until(lambda: test_control.ended(last), harness.seconds(20),
                          "the last daemon to leave")

    def test_by_clients_that_look_when_it_could_have_left(self):
        with self.bridge("0.001") as bridge:
            for number in range(5):
                self.ping(bridge, number)

    def test_by_another_client_that_is_faster(self):
        """The server has served that one, and left, before who started it looks."""
        def come_and_go():
            for _ in range(3):
                found = False
                while not found:
                    with socket.socket(socket.AF_UNIX) as client:
                        found = client.connect_ex(self.daemon.socket_path) == 0
                while os.path.exists(self.daemon.socket_path):
                    time.sleep(0.001)

        faster = threading.Thread(target=come_and_go, daemon=True)
        with self.bridge("0.001") as bridge:
            faster.start()
            for number in range(100):
                if faster.is_alive():
                    self.ping(bridge, number)
                    self.pause()
        self.assertFalse(faster.is_alive())


if __name__ == "__main__":
    unittest.main()
