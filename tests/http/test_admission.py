# SPDX-License-Identifier: Apache-2.0
"""Who may run and wait at the same time: callers, sessions, memory."""
import os
import subprocess
import sys
import threading
import unittest

import census
import harness
import kernelkit
import metricskit
import streamkit

# A caller of its own: over the Unix socket, each process is one.
OTHER = """
import sys
sys.path.insert(0, sys.argv[1])
import harness, wire
with harness.as_user(harness.USER if sys.argv[3] == "root" else None):
    connection = wire.Connection(sys.argv[2], timeout=60)
reply = connection.exchange("POST", "/v1/run", {"Content-Type": "application/json"},
                            harness.as_json({"command": ["echo", "other"]}))
print(reply.status, reply.json["usage"]["source"], reply.json["stdout"], end="")
"""
SLEEP = ["sleep", "60"]


class Case(streamkit.Case):
    def state(self, name):
        return self.execution(name)["state"]

    def wait_running(self, *names):
        for name in names:
            census.wait_until(lambda name=name: self.state(name) == "running",
                              harness.seconds(15), "a run")

    def cancel_all(self, *names):
        for name in names:
            self.cancel(name)
        self.idle()

    def other_caller(self, source="cold"):
        done = subprocess.run(
            [sys.executable, "-B", "-c", OTHER, os.path.dirname(os.path.abspath(__file__)),
             self.daemon.socket_path, "root" if self.daemon.user else ""],
            capture_output=True, text=True, timeout=harness.seconds(60), check=False)
        self.assertEqual((done.stdout, done.returncode), (f"200 {source} other\n", 0), done.stderr)


POLICY = '"running";q={};qu="concurrent-requests", "waiting";q={};qu="concurrent-requests"'


class Callers(Case):
    daemon_arguments = ("--workers", "4", "--workers-per-caller", "3", "--workers-per-session",
                        "2", "--queue", "8", "--queue-per-caller", "3")

    def test_the_caps_are_told(self):
        found = self.daemon.get("/v1/capabilities").json["capacity"]
        del found["memoryMb"]
        self.assertEqual(found, {"workers": 4, "workersPerCaller": 3, "workersPerSession": 2,
                                 "queue": 8, "queuePerCaller": 3})

    def assert_share(self, reply, running, waiting):
        self.assertEqual((reply.header("RateLimit-Policy"), reply.header("RateLimit")),
                         (POLICY.format(3, 3), f'"running";r={running}, "waiting";r={waiting}'))

    def test_answers_tell_what_else_the_caller_may_have(self):
        held = self.submit(SLEEP)
        self.wait_running(held)
        self.assert_share(self.daemon.post("/v1/run", {"command": ["true"]}), 1, 3)
        lines = {"Accept": "application/x-ndjson"}
        batch = self.daemon.post("/v1/batch", {"items": [{"command": ["true"]}]}, headers=lines)
        self.assertEqual(batch.header("RateLimit-Policy"), POLICY.format(3, 3))
        refused = self.daemon.post("/v1/run", {"command": ["true"], "timeoutS": 1e9})
        self.assertEqual(refused.status, 422, refused)
        self.assertEqual(refused.header("RateLimit-Policy"), POLICY.format(3, 3))
        for target in ("/v1/stats", f"/v1/executions/{held}"):
            self.assertIsNone(self.daemon.get(target).header("RateLimit"), target)
        self.assertEqual(metricskit.parse(self.daemon.get("/metrics").body.decode())[
            "kernd_callers"].value(), 1)
        self.cancel_all(held)

    def test_a_flood_leaves_a_worker_to_others(self):
        """One session, one caller, and what none of both may take."""
        self.daemon.post("/v1/sessions", {"id": "flooded"})

        def in_session():
            reply = self.daemon.post("/v1/sessions/flooded/run", {"command": SLEEP},
                                     headers={"Prefer": "respond-async"})
            self.assertEqual(reply.status, 202, reply)
            return reply.json["id"]

        first, second = in_session(), in_session()
        self.wait_running(first, second)
        third = in_session()  # its session has two
        outside = self.submit(SLEEP)
        self.wait_running(outside)
        self.assertEqual((self.state(third), self.daemon.get("/v1/stats").json["running"]),
                         ("queued", 3))
        fourth = self.submit(SLEEP)  # its caller has three
        self.other_caller()
        self.assertEqual((self.state(third), self.state(fourth)), ("queued", "queued"))
        self.cancel(first)
        census.wait_until(lambda: "running" in (self.state(third), self.state(fourth)),
                          harness.seconds(15), "the next turn")
        self.cancel_all(second, third, outside, fourth)
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/flooded").status, 204)

    def test_a_flood_leaves_places_in_the_queue(self):
        running = [self.submit(SLEEP) for _ in range(2)]
        self.wait_running(*running)
        waiting = []
        for _ in range(8):
            reply = self.daemon.post("/v1/run", {"command": SLEEP},
                                     headers={"Prefer": "respond-async"})
            if reply.status != 202:
                break
            waiting.append(reply.json["id"])
        self.assertGreaterEqual(len(waiting), 3)
        self.assert_problem(reply, 429, "too_many_requests")
        self.assertGreaterEqual(int(reply.header("Retry-After")), 1)
        self.assertEqual(reply.json["retryAfterS"], int(reply.header("Retry-After")))
        self.assert_share(reply, running=1, waiting=0)
        self.other_caller()
        self.cancel_all(*waiting, *running)


class Ahead(Case):
    daemon_arguments = ("--workers", "4", "--workers-per-caller", "3", "--spares", "4")

    def test_a_flood_leaves_boxes_started_ahead_to_others(self):
        """What is ready when one caller keeps others of its own waiting is not for its calls."""
        flood = [self.submit(SLEEP) for _ in range(8)]
        for _ in range(3):
            census.wait_until(lambda: self.daemon.get("/v1/stats").json["spares"] > 0,
                              harness.seconds(20), "a box ahead")
            self.other_caller("spare")
        self.cancel_all(*flood)


class Measured(Case):
    daemon_arguments = ("--workers", "1", "--queue", "2")

    def test_the_time_to_come_back_is_measured(self):
        self.run_command(["sleep", "1.5"])
        running = self.submit(SLEEP)
        self.wait_running(running)
        waiting = [self.submit(SLEEP) for _ in range(2)]
        reply = self.daemon.post("/v1/run", {"command": ["true"]})
        self.assert_problem(reply, 503, "queue_full")
        # Three are to end before there is a turn, 1.5 s each as far as is known.
        self.assertGreaterEqual(reply.json["retryAfterS"], 5)
        self.assertLessEqual(reply.json["retryAfterS"], 60)
        self.assertGreaterEqual(self.daemon.get("/v1/stats").json["serviceMs"], 1500)
        self.cancel(waiting[0])
        reply = self.daemon.post("/v1/run", {"command": ["true"], "queueTimeoutS": 0.2})
        self.assert_problem(reply, 503, "queue_timeout")
        self.assertGreaterEqual(reply.json["retryAfterS"], 3)
        self.cancel_all(waiting[1], running)


class Memory(Case):
    daemon_arguments = ("--memory-budget-mb", "300", "--spares", "2")

    def claimed(self):
        return self.daemon.get("/v1/stats").json["memoryMb"]

    def test_what_never_fits_is_refused(self):
        found = self.daemon.get("/v1/capabilities").json
        self.assertEqual((found["capacity"]["memoryMb"], found["maxima"]["memoryMb"],
                          found["defaults"]["memoryMb"]), (300, 300, 300))
        reply = self.daemon.post("/v1/run", {"command": ["true"], "memoryMb": 301})
        self.assert_problem(reply, 422, "limit_exceeds_maximum")
        self.assert_success(self.run_command(["true"]))

    def test_what_does_not_fit_waits_and_lets_others_pass(self):
        first = self.submit(SLEEP, memoryMb=200)
        self.wait_running(first)
        large = self.submit(["echo", "large"], memoryMb=200)
        self.assert_success(self.run_command(["echo", "small"], memoryMb=64), "small\n")
        self.assertEqual(self.execution(large)["queuePosition"], 0)
        reply = self.daemon.post("/v1/run", {"command": ["true"], "memoryMb": 150,
                                             "queueTimeoutS": 0.3})
        self.assert_problem(reply, 503, "queue_timeout")
        self.cancel(first)
        self.assertEqual(self.ended(large)["stdout"], "large\n")
        self.idle()

    def test_a_large_one_gets_its_turn_among_small_ones(self):
        """Others never leave enough for it at once, until what ends is kept for it."""
        stop, failures = threading.Event(), []

        def small():
            try:
                while not stop.is_set():
                    self.run_command(["sleep", "0.05"], memoryMb=100, trackFiles=False)
            except AssertionError as error:
                failures.append(error)

        threads = [threading.Thread(target=small) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            with self.within(30):
                self.assert_success(self.run_command(["echo", "large"], memoryMb=300), "large\n")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_spares_give_way(self):
        self.run_code("1", memoryMb=100)
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["spares"] > 0,
                          harness.seconds(20), "a spare")
        self.assertGreater(self.claimed(), 0)
        with self.within(15):
            self.assert_success(self.run_command(["echo", "all"], memoryMb=300), "all\n")

    def test_an_idle_kernel_counts_with_what_it_uses(self):
        self.daemon.post("/v1/sessions", {"id": "idle", "memoryMb": 250})
        kernel = kernelkit.Kernel(self.daemon, "idle")
        kernel.cell("x = 41")
        self.assertGreaterEqual(self.claimed(), 250)
        with self.within(20):  # as soon as it was idle for a second
            self.assert_success(self.run_command(["echo", "beside"], memoryMb=200), "beside\n")
        self.assertLess(self.claimed(), 250)
        # It gets back what it may use before it runs its next cell.
        beside = self.submit(SLEEP, memoryMb=200)
        self.wait_running(beside)
        self.assert_problem(kernel.post("x", queueTimeoutS=0.3), 503, "queue_timeout")
        self.cancel(beside)
        self.assertEqual(kernel.value("x + 1"), "42")
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/idle").status, 204)
        census.wait_until(lambda: self.claimed() < 100, harness.seconds(10), "its memory")

    def test_background_programs_count(self):
        self.daemon.post("/v1/sessions", {"id": "back", "memoryMb": 200})
        reply = self.daemon.post("/v1/sessions/back/run", {"command": SLEEP, "detach": True})
        self.assertEqual(reply.status, 202)
        self.wait_running(reply.json["id"])
        self.assertGreaterEqual(self.claimed(), 200)
        large = self.submit(["echo", "large"], memoryMb=250)
        # It may never fit, so it holds up nobody.
        for number in range(20):
            self.assert_success(self.run_command(["echo", str(number)], memoryMb=64,
                                                 trackFiles=False), f"{number}\n")
        self.assertEqual(self.state(large), "queued")
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/back").status, 204)
        self.assertEqual(self.ended(large)["stdout"], "large\n")


if __name__ == "__main__":
    unittest.main()
