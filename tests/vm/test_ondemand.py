# SPDX-License-Identifier: Apache-2.0
"""`kernd service`: installed by its user, started by the first client, gone when it is idle."""
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
import unittest

import census
import check
import harness
import wire
from test_service import RUNTIME, UNITS, show, systemctl

SOCKET = f"{RUNTIME}/kernd/kernd.sock"
DROP_IN = f"{UNITS}/kernd.service.d/idle.conf"
LOGOUT = "/run/kernd-vm/root.log"
COLD_ROUNDS = 7
HAMMER_ROUNDS = 30


def kernd(*arguments, environment=None):
    done = subprocess.run([harness.KERND, *arguments], capture_output=True, text=True,
                          env=environment, timeout=harness.seconds(60), check=False)
    return done.returncode, done.stdout + done.stderr


def call(method, target, body=None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    data = None if body is None else json.dumps(body).encode()
    with wire.Connection(SOCKET, timeout=harness.seconds(60)) as peer:
        return check.reply(peer.exchange(method, target, headers, data), method)


def took_ms():
    """One request on a connection of its own, as curl makes it."""
    begin = time.monotonic()
    with wire.Connection(SOCKET, timeout=harness.seconds(60)) as peer:
        assert peer.exchange("GET", "/v1/version").status == 200
    return (time.monotonic() - begin) * 1000


def set_idle_exit(seconds):
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="ascii") as file:
        file.write(f"[Service]\nEnvironment=KERND_IDLE_EXIT={seconds} KERND_SPARES=0\n")
    systemctl("daemon-reload")
    systemctl("stop", "kernd.service")


def wait_idle():
    census.wait_until(lambda: show("ActiveState") == "inactive", harness.seconds(30), "idle exit")


class OnDemand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # What another file's tests installed.
        with contextlib.suppress(AssertionError):
            systemctl("stop", "kernd.socket", "kernd.service")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{UNITS}/kernd.service.d/here.conf")
        code, said = kernd("service", "install")
        assert code == 0, said

    @classmethod
    def tearDownClass(cls):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(DROP_IN)
        code, said = kernd("service", "uninstall")
        assert code == 0, said
        for name in ("kernd.service", "kernd.socket"):
            assert not os.path.exists(f"{UNITS}/{name}")
        assert not os.path.exists(SOCKET), "the socket's path stays behind"
        assert kernd("service", "status")[0] == 3

    def test_units_are_in_order(self):
        with open(f"{UNITS}/kernd.service", encoding="ascii") as file:
            self.assertIn(f'\nExecStart="{harness.KERND}" serve\n', file.read())
        for name in ("kernd.socket", "kernd.service"):
            done = subprocess.run(["systemd-analyze", "--user", "verify", f"{UNITS}/{name}"],
                                  capture_output=True, text=True, timeout=harness.seconds(60),
                                  check=False)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        done = subprocess.run(["systemd-analyze", "--user", "--no-pager", "security",
                               "kernd.service"], capture_output=True, text=True,
                              timeout=harness.seconds(60), check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for kept in ("KeyringMode", "Delegate", "UMask"):
            self.assertRegex(done.stdout, rf"(?m)^. {kept}=")
        self.assertEqual(kernd("service", "status")[0], 0)
        self.assertEqual(show("Result"), "success")

    def test_the_first_request_starts_it(self):
        set_idle_exit(300)
        cold = []
        for _ in range(COLD_ROUNDS):
            systemctl("stop", "kernd.service")
            cold.append(took_ms())
        warm = [took_ms() for _ in range(21)]
        added = statistics.median(cold) - statistics.median(warm)
        print(f"first request: {statistics.median(cold):.1f} ms (best {min(cold):.1f}), warm "
              f"{statistics.median(warm):.1f} ms, {added:.1f} ms more", file=sys.stderr)
        self.assertLess(added, harness.seconds(1000))
        code, said = kernd("status")
        self.assertEqual(code, 0, said)
        self.assertIn(f"pid={show('MainPID')} socket={SOCKET} ", said)
        self.assertIn("unit=kernd.service", said)

    def test_it_leaves_and_comes_again(self):
        set_idle_exit(0.5)
        self.assertEqual(call("POST", "/v1/sessions", {"id": "kept"}).status, 201)
        before = show("MainPID")
        wait_idle()
        self.assertEqual((show("Result"), show("NRestarts")), ("success", "0"))
        self.assertEqual(call("GET", "/v1/sessions/kept").status, 200)
        self.assertNotIn(show("MainPID"), ("0", before))
        self.assertEqual(call("DELETE", "/v1/sessions/kept").status, 204)
        wait_idle()

    def test_a_kernel_keeps_it(self):
        set_idle_exit(0.5)
        call("POST", "/v1/sessions", {"id": "s"})
        self.assertEqual(call("POST", "/v1/sessions/s/kernels", {"id": "k"}).status, 201)
        before = show("MainPID")
        time.sleep(2)
        cell = call("POST", "/v1/sessions/s/kernels/k/cells", {"code": "6 * 7"})
        self.assertEqual((cell.status, show("MainPID")), (200, before))
        self.assertEqual(call("DELETE", "/v1/sessions/s").status, 204)
        wait_idle()

    def test_no_request_is_lost(self):
        set_idle_exit(0.05)
        random.seed(5)
        pids = set()
        for _ in range(HAMMER_ROUNDS):
            self.assertEqual(call("GET", "/healthz").status, 200)
            pids.add(show("MainPID"))
            time.sleep(random.uniform(0.03, 0.09))
        self.assertGreater(len(pids), 2)
        wait_idle()

    def test_stopping_leaves_nothing(self):
        set_idle_exit(300)
        mark = harness.new_mark()
        call("POST", "/v1/sessions", {"id": "t", "env": {"MARK": mark}})
        self.assertEqual(call("POST", "/v1/sessions/t/kernels", {"id": "k"}).status, 201)
        self.assertTrue(census.with_environment(mark))
        systemctl("stop", "kernd.socket", "kernd.service")
        self.assertEqual(census.with_environment(mark), [])
        with self.assertRaises(OSError):
            took_ms()
        systemctl("start", "kernd.socket")
        self.assertEqual(call("GET", "/v1/sessions/t").status, 200)
        gone = call("GET", "/v1/sessions/t/kernels/k")
        self.assertIn(gone.json.get("state", gone.json.get("code")), ("dead", "kernel_lost"), gone)
        self.assertEqual(call("DELETE", "/v1/sessions/t").status, 204)

    def test_logging_out(self):
        """What root's logout.sh saw; in the container alone."""
        if not os.path.exists(LOGOUT):
            self.assertEqual(os.environ.get("KERND_TEST_ENFORCED"), "cgroup")
            return
        with open(LOGOUT, encoding="utf-8") as file:
            seen = file.read()
        self.assertEqual(seen.splitlines()[-2:], ["without linger: gone", "with linger: stays"],
                         seen)

    def test_doctor(self):
        code, said = kernd("doctor", "--json")
        self.assertIn(code, (0, 1), said)
        found = {check["name"]: check for check in json.loads(said)["checks"]}
        self.assertEqual((found["box"]["status"], found["linger"]["status"]), ("ok", "ok"), said)
        if os.environ.get("KERND_TEST_ENFORCED") == "cgroup":
            self.assertEqual(found["limits"]["status"], "ok", found["limits"])

    def test_doctor_with_next_to_no_environment(self):
        """As cron starts it: nobody tells where the user's runtime directory and bus are."""
        code, said = kernd("doctor", "--json", environment={"HOME": os.path.expanduser("~")})
        found = {check["name"]: check for check in json.loads(said)["checks"]}
        self.assertIn(code, (0, 1), said)
        self.assertEqual(found["box"]["status"], "ok", said)
        self.assertIn(found["limits"]["status"], ("ok", "warn"), said)


if __name__ == "__main__":
    unittest.main()
