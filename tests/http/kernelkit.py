# SPDX-License-Identifier: Apache-2.0
"""Kernels of a daemon under test: each test gets a session of its own, closed at its end."""
import threading

import census
import check
import harness


class Kernel:
    """One kernel of a session; cells are run on a connection of their own each."""

    def __init__(self, daemon, session, **options):
        self.daemon, self.session = daemon, session
        self.base = f"/v1/sessions/{session}/kernels"
        reply = daemon.post(self.base, options)
        assert reply.status == 201, reply
        self.opened = check_kernel(reply.json)
        assert self.opened["state"] == "idle", reply
        self.id = self.opened["id"]
        self.path = f"{self.base}/{self.id}"
        assert reply.header("Location") == self.path, reply

    def post(self, code, **options):
        return self.daemon.post(f"{self.path}/cells", {"code": code, **options})

    def cell(self, code, **options):
        """A cell that the server must be able to run: its checked result."""
        reply = self.post(code, **options)
        assert reply.status == 200, reply
        result = check.result(reply.json)
        assert (result["kind"], result["kernelId"], result["sessionId"]) == \
            ("cell", self.id, self.session), result
        assert result["stateKept"] in (True, False, None), result
        return result

    def value(self, code, **options):
        """text/plain of the one result."""
        result = self.cell(code, **options)
        assert result["exitCode"] == 0 and result["fault"] is None, result
        assert len(result["results"]) == 1, result["results"]
        return result["results"][0]["data"]["text/plain"]

    def start(self, code, **options):
        """Runs a cell on a thread. Call the answer to wait for the reply."""
        box = []
        thread = threading.Thread(target=lambda: box.append(self.post(code, **options)))
        thread.start()

        def wait():
            thread.join()
            return box[0]
        return wait

    def get(self):
        reply = self.daemon.get(self.path)
        assert reply.status == 200, reply
        return check_kernel(reply.json)

    def wait_for(self, state, limit=10):
        census.wait_until(lambda: self.get()["state"] == state, harness.seconds(limit),
                          f"the kernel to be {state}")

    def wait_for_file(self, name, limit=10):
        """A cell tells by a file of the workspace how far it is."""
        target = f"/v1/sessions/{self.session}/files/{name}"
        census.wait_until(lambda: self.daemon.get(target).status == 200, harness.seconds(limit),
                          name)

    def interrupt(self):
        reply = self.daemon.request("POST", f"{self.path}/interrupt")
        assert reply.status == 200, reply
        assert set(reply.json) == {"interrupted", "killed", "executionId"}, reply
        return reply.json

    def restart(self):
        return self.daemon.request("POST", f"{self.path}/restart")

    def delete(self):
        reply = self.daemon.request("DELETE", self.path)
        assert (reply.status, reply.body) == (204, b""), reply


def check_kernel(value):
    members = ("id sessionId language interpreter state reason cells queued memoryBytes timeoutS "
               "idleTimeoutS ttlS createdAt usedAt endedAt").split()
    assert list(value) == members, value
    assert value["state"] in ("starting", "idle", "busy", "frozen", "dead"), value
    assert (value["reason"] is not None) == (value["state"] == "dead"), value
    return value


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.session = self.new_session()

    def new_session(self, **options):
        reply = self.daemon.post("/v1/sessions", options)
        self.assertEqual(reply.status, 201, reply)
        path = f"/v1/sessions/{reply.json['id']}"
        self.addCleanup(lambda: self.assertEqual(self.daemon.request("DELETE", path).status, 204))
        return reply.json["id"]

    def kernel(self, session=None, **options):
        return Kernel(self.daemon, session or self.session, **options)

    def assert_alive(self, kernel):
        """It answers at once, and nothing of earlier cells is in the answer."""
        with self.within(5):
            result = kernel.cell("1+1" if kernel.opened["language"] != "bash" else "echo 2")
        self.assert_success(result)
        self.assertEqual((result["stderr"], result["background"]), ("", None))
        if kernel.opened["language"] == "bash":
            self.assertEqual(result["stdout"], "2\n")
        else:
            self.assertEqual(result["stdout"], "")
            self.assertEqual([r["data"]["text/plain"] for r in result["results"]], ["2"])

    def assert_dead(self, kernel, reason):
        """It says why it died, refuses cells, and is as new after a restart."""
        state = kernel.get()
        self.assertEqual(state["state"], "dead", state)
        self.assertRegex(state["reason"], reason)
        self.assertIsNotNone(state["endedAt"])
        with self.within(5):
            reply = kernel.post("1")
        self.assert_problem(reply, 409, "kernel_dead")
        self.assertIn(state["reason"], reply.json["detail"])
        self.assertIn("restart", reply.json["remediation"])

    def assert_restarts(self, kernel):
        reply = kernel.restart()
        self.assertEqual((reply.status, reply.json["state"], reply.json["id"]),
                         (200, "idle", kernel.id), reply)
        self.assert_alive(kernel)
