# SPDX-License-Identifier: Apache-2.0
"""Many calls at once: each gets its own answer, and none waits for more than its turn."""
import time
import unittest

import check
import harness


class Many(harness.Case):
    def test_sixty_four_parallel_calls(self):
        alone = min(self.timed(lambda: self.run_code("print('alone')"))[0] for _ in range(3))

        def call(i):
            return self.timed(lambda: self.run_code(f"import os; print({i}, os.getcwd())",
                                                    files={"own": str(i)}, fetchFiles=["own"]))

        started = time.monotonic()
        answers = harness.parallel(64, call)
        total = time.monotonic() - started
        for i, (took, result) in enumerate(answers):
            self.assert_success(result, f"{i} /workspace\n")
            usage = result["usage"]
            # What it took is its turn in the queue, its own work, and little else.
            unexplained = took - (usage["queueMs"] + usage["startMs"] + usage["wallMs"]) / 1000
            self.assertLess(unexplained, harness.seconds(2) + 2 * alone, (i, took, usage))
        self.assertLess(total, harness.seconds(64 * max(alone, 0.05) * 3 + 5))
        self.assertEqual(len({result["id"] for _, result in answers}), 64)

    @staticmethod
    def timed(function):
        started = time.monotonic()
        value = function()
        return time.monotonic() - started, value

    def test_mixed_outcomes_do_not_cross(self):
        def call(i):
            kind = i % 5
            if kind == 0:
                return self.run_code(f"print({i}); raise SystemExit({i})")
            if kind == 1:
                return self.run_code(f"echo {i}; kill -9 $$", "bash")
            if kind == 2:
                return self.run_command(["sh", "-c", f"echo {i}; sleep 60"], timeoutS=1.5)
            if kind == 3:
                return self.run_command(["cat"], stdin=f"{i}\n")
            return self.run_code(f"print({i}); {i}")

        for i, result in enumerate(harness.parallel(30, call)):
            self.assertEqual(result["stdout"], f"{i}\n")
            kind, fault = i % 5, (result["fault"] or {}).get("type")
            self.assertEqual(fault, "timeout" if kind == 2 else None)
            if kind != 2:
                self.assertEqual(result["exitCode"], (i, 137, None, 0, 0)[kind])
            self.assertEqual(bool(result["results"]), kind == 4)

    def test_a_full_queue_is_told_at_once(self):
        """More calls than queue and workers hold: 429 or 503 with a time to come back, never a hang."""
        def call(_):
            with self.daemon.connect() as connection:
                started = time.monotonic()
                reply = check.reply(connection.exchange("POST", "/v1/run", {
                    **self.daemon.authorization(), "Content-Type": "application/json"},
                    harness.as_json({"command": ["sleep", "0.05"]})), "POST")
                return reply, time.monotonic() - started

        answers = harness.parallel(400, call)
        statuses = [reply.status for reply, _ in answers]
        self.assertLessEqual(set(statuses), {200, 503, 429})
        capacity = self.daemon.get("/v1/capabilities").json["capacity"]
        self.assertGreaterEqual(statuses.count(200), capacity["queuePerCaller"])
        for reply, took in answers:
            if reply.status != 200:
                self.assertIn(reply.json["code"], ("queue_full", "too_many_requests"))
                self.assertGreaterEqual(int(reply.header("Retry-After")), 1)
                self.assertTrue(reply.json["retryable"])
                self.assertLess(took, harness.seconds(5))
        self.assert_success(self.run_code("print(1)"), "1\n")

    def test_waiting_does_not_eat_the_deadline(self):
        def call(i):
            return self.run_command(["sleep", "1"], timeoutS=1.8)

        for result in harness.parallel(12, call):
            self.assert_success(result)

    def test_quick_routes_answer_while_all_workers_are_busy(self):
        def call(i):
            if i < 16:
                return self.run_command(["sleep", "2"])
            time.sleep(0.5)  # the others are running or queued by now; that they are is not needed
            started = time.monotonic()
            for target in ("/healthz", "/v1/version", "/v1/capabilities", "/v1/stats"):
                self.assertEqual(self.daemon.get(target).status, 200)
            return time.monotonic() - started

        self.assertLess(harness.parallel(17, call)[-1], harness.seconds(1))


if __name__ == "__main__":
    unittest.main()
