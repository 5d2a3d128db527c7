# SPDX-License-Identifier: Apache-2.0
"""kernd as its users run it: a socket-activated service of an unprivileged user's own systemd."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import unittest

import census
import check
import harness
import wire

RUNTIME = os.environ["XDG_RUNTIME_DIR"]
UNITS = os.path.expanduser("~/.config/systemd/user")
DROP_IN = "[Service]\nExecStart=\nExecStart={kernd} serve --log-level debug\n"


def systemctl(*words):
    done = subprocess.run(["systemctl", "--user", *words], capture_output=True, text=True,
                          timeout=harness.seconds(60), check=False)
    if done.returncode != 0:
        raise AssertionError(f"systemctl {words}: {done.stdout}{done.stderr}")
    return done.stdout


def show(name):
    return systemctl("show", "--value", "--property", name, "kernd.service").strip()


def call(method, target, body=None, timeout=120):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    data = None if body is None else json.dumps(body).encode()
    with wire.Connection(f"{RUNTIME}/kernd/kernd.sock", timeout=harness.seconds(timeout)) as peer:
        return check.reply(peer.exchange(method, target, headers, data), method)


def run_code(code, language="python", **options):
    reply = call("POST", "/v1/runCode", {"code": code, "language": language, **options})
    assert reply.status == 200, reply
    return reply.json


def cgroup():
    return "/sys/fs/cgroup" + show("ControlGroup")


def boxes():
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(cgroup()) if name.startswith("box_")]
    return []


class Service(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.makedirs(f"{UNITS}/kernd.service.d", exist_ok=True)
        for name in ("kernd.service", "kernd.socket"):
            shutil.copy(os.path.join(harness.ROOT, "systemd", name), UNITS)
        with open(f"{UNITS}/kernd.service.d/here.conf", "w", encoding="utf-8") as file:
            file.write(DROP_IN.format(kernd=harness.KERND))
        systemctl("daemon-reload")
        systemctl("start", "kernd.socket")

    @classmethod
    def tearDownClass(cls):
        systemctl("stop", "kernd.socket", "kernd.service")

    def test_runs_in_a_leaf_of_its_unit(self):
        self.assertEqual(run_code("print(1)")["stdout"], "1\n")
        with open(f"/proc/{show('MainPID')}/cgroup", encoding="ascii") as file:
            self.assertTrue(file.read().strip().endswith("/kernd.service/main"))
        if os.environ["KERND_TEST_ENFORCED"] == "cgroup":
            with open(f"{cgroup()}/main/memory.min", encoding="ascii") as file:
                self.assertEqual(file.read(), f"{64 << 20}\n")
        means = call("GET", "/v1/capabilities").json["enforcement"]
        if os.environ.get("KERND_TEST_ENFORCED") == "cgroup":
            self.assertEqual([means[name] for name in ("memory", "pids", "cpu")], ["cgroup"] * 3)

    def test_a_box_out_of_memory_is_the_boxs_affair(self):
        call("GET", "/v1/capabilities")
        before = show("MainPID")
        result = run_code("b = bytearray(b'x') * (300 << 20)\nimport time; time.sleep(600)",
                          memoryMb=64)
        self.assertEqual(result["fault"]["type"], "oom", result)
        self.assertEqual((show("MainPID"), show("ActiveState"), show("NRestarts")),
                         (before, "active", "0"))
        self.assertEqual(run_code("print(2)")["stdout"], "2\n")

    def start_long(self, mark):
        """A call that goes on until something ends it; returns when its box is there."""
        def work():
            with contextlib.suppress(OSError, AssertionError, ValueError):
                call("POST", "/v1/run", {"command": ["sleep", "600"], "env": {"MARK": mark},
                                         "timeoutS": 600})

        threading.Thread(target=work, daemon=True).start()
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "the box")

    def test_stopping_takes_boxes_along(self):
        mark = harness.new_mark()
        self.start_long(mark)
        self.assertTrue(boxes())
        path = cgroup()
        systemctl("stop", "kernd.service")
        self.assertEqual(census.with_environment(mark), [])
        self.assertFalse(os.path.exists(path))
        self.assertEqual(run_code("print(3)")["stdout"], "3\n")  # the socket starts it again

    def test_a_crash_leaves_nothing(self):
        mark = harness.new_mark()
        self.start_long(mark)
        os.kill(int(show("MainPID")), signal.SIGKILL)
        census.wait_gone(lambda: census.with_environment(mark), harness.seconds(5), "the box")
        census.wait_until(lambda: show("ActiveState") in ("failed", "inactive"),
                          harness.seconds(10), "systemd to see the crash")
        systemctl("reset-failed", "kernd.service", "kernd.socket")
        systemctl("start", "kernd.socket")
        self.assertEqual(run_code("print(4)")["stdout"], "4\n")
        running = call("GET", "/v1/stats").json["boxes"]
        census.wait_until(lambda: len(boxes()) <= running + 4, harness.seconds(10), "the sweep")


if __name__ == "__main__":
    unittest.main()
