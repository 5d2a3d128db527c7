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
DROP_IN = "[Service]\nExecStart=\nExecStart={kernd} serve --log-level debug --templates {templates}\n"


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
            file.write(DROP_IN.format(kernd=harness.KERND, templates=harness.TEMPLATES))
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

    def start_long(self, mark, target="/v1/run"):
        """A call that goes on until something ends it; returns when its box is there."""
        def work():
            with contextlib.suppress(OSError, AssertionError, ValueError):
                call("POST", target, {"command": ["sleep", "600"], "env": {"MARK": mark},
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

    def test_required_limits(self):
        reply = call("POST", "/v1/sessions", {"id": "strict", "requireLimits": True})
        if os.environ.get("KERND_TEST_ENFORCED") == "cgroup":
            self.assertEqual(reply.status, 201, reply)
        elif reply.status != 201:
            self.assertEqual((reply.status, reply.json["code"]), (422, "limits_not_enforced"), reply)
        if reply.status == 201:
            self.assertEqual(call("DELETE", "/v1/sessions/strict").status, 204)

    def test_a_crash_leaves_nothing_and_loses_nothing(self):
        mark = harness.new_mark()
        for name in ("with-kernel", "with-call"):
            self.assertEqual(call("POST", "/v1/sessions", {"id": name}).status, 201)
            kept = call("POST", f"/v1/sessions/{name}/run", {"command": ["sh", "-c", "echo kept >f"]})
            self.assertEqual(kept.json["exitCode"], 0, kept)
        kernels = "/v1/sessions/with-kernel/kernels"
        self.assertEqual(call("POST", kernels, {"id": "k"}).status, 201)
        self.assertEqual(call("POST", f"{kernels}/k/cells", {"code": "x = 1"}).status, 200)
        self.start_long(mark, "/v1/sessions/with-call/run")
        os.kill(int(show("MainPID")), signal.SIGKILL)
        # The next client starts it again, at once; nobody has to mend the units.
        sessions = call("GET", "/v1/sessions").json["items"]
        census.wait_gone(lambda: census.with_environment(mark), harness.seconds(10), "the box")
        self.assertLessEqual({"with-kernel", "with-call"}, {row["id"] for row in sessions})
        for name in ("with-kernel", "with-call"):
            reply = call("POST", f"/v1/sessions/{name}/run", {"command": ["cat", "f"]})
            self.assertEqual(reply.json["stdout"], "kept\n", reply)
        lost = call("POST", f"{kernels}/k/cells", {"code": "x"})
        self.assertIn(lost.status, (404, 409, 410), lost)
        self.assertEqual(call("POST", kernels, {"id": "k2"}).status, 201)
        cell = call("POST", f"{kernels}/k2/cells", {"code": "6 * 7"})
        self.assertEqual(cell.json["results"][0]["data"]["text/plain"], "42", cell)
        # The database too is in order.
        census.wait_until(lambda: call("GET", "/readyz").status == 200, harness.seconds(10), "ready")
        for name in ("with-kernel", "with-call"):
            self.assertEqual(call("DELETE", f"/v1/sessions/{name}").status, 204)
        # Of boxes in the runtime directory and of cgroups: what runs, and a few started ahead.
        for found in (boxes, lambda: os.listdir(f"{RUNTIME}/kernd/boxes")):
            census.wait_until(lambda: len(found()) <= call("GET", "/v1/stats").json["boxes"] + 4,
                              harness.seconds(10), "the sweep")


if __name__ == "__main__":
    unittest.main()
