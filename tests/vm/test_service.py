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
LOG = os.path.expanduser("~/kernd.log")
DROP_IN = ("[Service]\nExecStart=\nExecStart={kernd} serve --log-level debug {arguments}\n"
           f"StandardError=append:{LOG}\n")


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


def of_cgroup(box, name):
    with open(f"{cgroup()}/{box}/{name}", encoding="ascii") as file:
        return file.read().strip()


class UserService(unittest.TestCase):
    arguments = " ".join(harness.TEMPLATES)

    @classmethod
    def setUpClass(cls):
        os.makedirs(f"{UNITS}/kernd.service.d", exist_ok=True)
        for name in ("kernd.service", "kernd.socket"):
            shutil.copy(os.path.join(harness.ROOT, "systemd", name), UNITS)
        with open(f"{UNITS}/kernd.service.d/here.conf", "w", encoding="utf-8") as file:
            file.write(DROP_IN.format(kernd=harness.KERND, arguments=cls.arguments))
        systemctl("daemon-reload")
        systemctl("start", "kernd.socket")

    @classmethod
    def tearDownClass(cls):
        systemctl("stop", "kernd.socket", "kernd.service")


class Service(UserService):
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


class Forked(UserService):
    """Boxes that are forked of a template: each is born in a cgroup of its own, which bounds it."""

    arguments = "--templates 1 --spares 0"
    LIMITS = {"memoryMb": 200, "pids": 33, "cpus": 1.5}

    def setUp(self):
        self.has_memory = os.environ.get("KERND_TEST_ENFORCED") == "cgroup"
        census.wait_until(lambda: run_code("1", **self.LIMITS)["usage"]["source"] == "template",
                          harness.seconds(20), "a template")

    def placed(self):
        """Box by box of the service: pids of the host that are in its cgroup."""
        found = {}
        for box in boxes():
            with contextlib.suppress(OSError):
                found[box] = [int(pid) for pid in of_cgroup(box, "cgroup.procs").split()]
        return found

    def template(self):
        return next(box for box, pids in self.placed().items()
                    if any(census.is_interpreter_of_template(pid) for pid in pids))

    def test_a_cap_that_is_too_small_to_start_in(self):
        """Who asks for that takes no template from the others."""
        for _ in range(4):
            answer = call("POST", "/v1/runCode", {"code": "1", "language": "python", "memoryMb": 4})
            self.assertIn(answer.status, (200, 503), answer)
        self.assertEqual(run_code("1", **self.LIMITS)["usage"]["source"], "template")

    def test_each_has_its_own_cgroup(self):
        template, mark, answer = self.template(), harness.new_mark(), []
        code = ("import os, time\nopen('began', 'w').close()\n"
                "kept = b'x' * (40 << 20)\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
                "print(open('/proc/self/cgroup').read())")
        self.assertEqual(call("POST", "/v1/sessions", {"id": mark}).status, 201)
        census.wait_until(lambda: any(map(census.is_standby, self.placed()[template])),
                          harness.seconds(20), "a fork that waits for the call")
        caller = threading.Thread(target=lambda: answer.append(call(
            "POST", f"/v1/sessions/{mark}/runCode",
            {"code": code, "language": "python", **self.LIMITS})))
        caller.start()
        files = f"/v1/sessions/{mark}/files"
        census.wait_until(lambda: call("GET", f"{files}/began").status == 200, harness.seconds(20),
                          "the call")
        # Its program and its kernd-init, and nothing of it elsewhere.
        box, pids = next((box, pids) for box, pids in self.placed().items()
                         if box != template and len(pids) == 2)
        with open(f"/proc/{pids[0]}/cgroup", encoding="ascii") as file:
            self.assertTrue(file.read().strip().endswith(f"/kernd.service/{box}"))
        waiting = list(filter(census.is_standby, self.placed()[template]))
        self.assertEqual(len(self.placed()[template]) - len(waiting), 3,
                         "bwrap, kernd-init and the interpreter")
        if self.has_memory:
            self.assertEqual(of_cgroup(box, "memory.max"), str(200 << 20))
            # A part of what all boxes may have, which is little here.
            self.assertLess(int(of_cgroup(template, "memory.max")), 1 << 30)
            self.assertEqual(of_cgroup(box, "pids.max"), "34", "kernd-init is not the caller's")
            self.assertEqual(of_cgroup(box, "cpu.max"), "150000 100000")
            self.assertGreaterEqual(int(of_cgroup(box, "memory.current")), 40 << 20)
        call("POST", f"/v1/sessions/{mark}/run", {"command": ["touch", "go"]})
        caller.join()
        result = answer[0].json
        self.assertEqual(result["usage"]["source"], "template", result)
        self.assertEqual(result["stdout"].split("::")[-1].strip(), "/", "a cgroup namespace of its own")
        if self.has_memory:
            self.assertEqual(result["usage"]["peakPids"], 1)
            self.assertGreaterEqual(result["usage"]["peakMemoryBytes"], 40 << 20)
            # What a booted interpreter takes by itself is the template's here.
            self.assertLess(result["usage"]["peakMemoryBytes"], 60 << 20)
        self.assertFalse(os.path.exists(f"{cgroup()}/{box}"), "removed with its box")
        with open(LOG, encoding="utf-8", errors="replace") as file:
            log = file.read()
        self.assertIn("event=", log, "the control: there is a log")
        self.assertNotIn("forked_box_moved", log, "it was born there")
        self.assertNotIn("box_without_cgroup", log)
        self.assertEqual(call("DELETE", f"/v1/sessions/{mark}").status, 204)

    def test_out_of_memory_is_its_own_affair(self):
        template = self.template()
        result = run_code("b = bytearray(b'x') * (300 << 20)\nimport time; time.sleep(600)",
                          **{**self.LIMITS, "memoryMb": 64})
        self.assertEqual((result["fault"]["type"], result["usage"]["source"]), ("oom", "template"),
                         result)
        self.assertEqual(self.template(), template)
        if self.has_memory:
            self.assertIn("oom_kill 0", of_cgroup(template, "memory.events").splitlines())
        result = run_code("print(2)", **self.LIMITS)
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("2\n", "template"))


if __name__ == "__main__":
    unittest.main()
