# SPDX-License-Identifier: Apache-2.0
"""Kernels under many hands: every answer is its own cell's, none is lost, nothing leaks."""
import os
import random
import subprocess
import threading
import time
import unittest

import census
import harness
import kernelkit

CLIENTS, KERNELS, CELLS = 8, 4, 1000


class Crowd(kernelkit.Case):
    """Random cells, interrupts, deadlines, deaths, restarts from eight clients over four kernels."""

    KINDS = ("print", "value", "error", "sleep", "loop", "die", "exit")
    WEIGHTS = (50, 20, 8, 8, 3, 2, 4)

    def code_of(self, kind, mark):
        return {
            "print": f"print('{mark}')",
            "value": f"'{mark}'",
            "error": f"raise ValueError('{mark}')",
            "sleep": f"import time; time.sleep(0.02); print('{mark}')",
            "loop": f"print('{mark}', flush=True)\nwhile True: pass",
            "die": f"print('{mark}', flush=True)\nimport os; os._exit(3)",
            "exit": f"import sys; print('{mark}'); sys.exit(4)",
        }[kind]

    def check(self, kind, mark, reply):
        """What this cell alone can have said, or why it could not run."""
        if reply.status in (409, 503):
            self.assertIn(reply.json["code"], ("kernel_dead", "queue_full"), reply)
            return reply.json["code"]
        self.assertEqual(reply.status, 200, reply)
        result = reply.json
        said = result["stdout"] + result["stderr"] + "".join(
            str(r["data"].get("text/plain")) for r in result["results"])
        marks = {word for word in said.replace("'", " ").split() if word.startswith("mark-")}
        self.assertLessEqual(marks, {mark}, result)
        fault = (result["fault"] or {}).get("type")
        if fault is None:
            self.assertEqual(marks, {mark}, result)
            self.assertNotIn(kind, ("loop", "die"), result)
            self.assertEqual(result["exitCode"], {"error": 1, "exit": 4}.get(kind, 0), result)
        elif kind == "die":
            self.assertIn(fault, ("killed", "cancelled"), result)
        else:
            self.assertIn(fault, ("cancelled", "timeout"), result)
        return fault or "done"

    def client(self, index, kernels, tally, stop):
        dice = random.Random(index)
        for number in range(CELLS // CLIENTS):
            kernel = dice.choice(kernels)
            kind = dice.choices(self.KINDS, self.WEIGHTS)[0]
            mark = f"mark-{index}-{number}"
            options = {"timeoutS": 0.5} if kind == "loop" and dice.random() < 0.5 else {}
            if dice.random() < 0.1:
                options["queueTimeoutS"] = 5
            outcome = self.check(kind, mark, kernel.post(self.code_of(kind, mark), **options))
            with self.lock:
                tally[outcome] = tally.get(outcome, 0) + 1
            if outcome == "kernel_dead":
                self.assertIn(kernel.restart().status, (200, 409))
        stop.release()

    def disturb(self, kernels, stop):
        dice = random.Random(99)
        while stop._value < CLIENTS:  # pylint: disable=protected-access
            kernel = dice.choice(kernels)
            if dice.random() < 0.9:
                kernel.interrupt()
            elif dice.random() < 0.5:
                self.assertEqual(kernel.restart().status, 200)
            else:
                kernel.get()
            time.sleep(0.05)

    def test_a_thousand_cells(self):
        kernels = [self.kernel() for _ in range(KERNELS)]
        self.lock, tally, failures = threading.Lock(), {}, []
        stop = threading.Semaphore(0)

        def guarded(function, *arguments):
            try:
                function(*arguments)
            except BaseException as failure:  # pylint: disable=broad-except
                failures.append(failure)
                stop.release()
        threads = [threading.Thread(target=guarded, args=(self.client, i, kernels, tally, stop))
                   for i in range(CLIENTS)]
        threads.append(threading.Thread(target=guarded, args=(self.disturb, kernels, stop)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(sum(tally.values()), CELLS, tally)
        self.assertGreater(tally["done"], CELLS / 2, tally)
        for kernel in kernels:
            if kernel.get()["state"] == "dead":
                self.assertEqual(kernel.restart().status, 200)
            self.assert_alive(kernel)


class Leaks(kernelkit.Case):
    ROUNDS = 300

    def measure(self):
        status = {name: census.status_field(self.daemon.pid, name) for name in ("VmRSS", "Threads")}
        return {"descriptors": len(os.listdir(f"/proc/{self.daemon.pid}/fd")),
                "threads": int(status["Threads"]), "rss": int(status["VmRSS"].split()[0]) >> 10}

    def round(self, number):
        reply = self.daemon.post("/v1/sessions", {})
        session = reply.json["id"]
        if number % 10 == 3:
            connection = self.daemon.connect()
            connection.request("POST", f"/v1/sessions/{session}/kernels",
                               {**self.daemon.authorization(),
                                "Content-Type": "application/json"}, b"{}")
            connection.reset()
        kernel = kernelkit.Kernel(self.daemon, session)
        if number % 10 == 5:
            kernel.cell("while True: pass", timeoutS=0.05)
        elif number % 10 == 7:
            kernel.cell("import os; os._exit(1)")
        else:
            self.assertEqual(kernel.value("1+1"), "2")
        if number % 2:
            kernel.delete()
        self.assertEqual(self.daemon.request("DELETE", f"/v1/sessions/{session}").status, 204)

    def test_many_short_lives(self):
        for number in range(20):
            self.round(number)
        before = self.measure()
        done = 20
        until = time.monotonic() + harness.seconds(60)
        while done < self.ROUNDS and time.monotonic() < until:
            self.round(done)
            done += 1
        self.assertGreaterEqual(done, 60, "too slow to tell anything")
        census.wait_until(lambda: not self.daemon.box_processes(), harness.seconds(10),
                          "the last boxes to go")
        after = self.measure()
        self.assertLessEqual(after["descriptors"], before["descriptors"] + 5, (before, after))
        self.assertLessEqual(after["threads"], before["threads"] + 2, (before, after))
        if "asan" not in harness.KERND and "tsan" not in harness.KERND:
            self.assertLess(after["rss"], before["rss"] + 32, (before, after))
        self.assertEqual(census.zombies(self.daemon.pid), [])
        directories = [d for d in self.daemon.box_directories() if "boxes" in d]
        # That of a template, which outlives those that are forked of it, has its filters.
        self.assertEqual([d for d in directories
                          if "filter" not in os.listdir(self.daemon.path(d))], [])


class Idle(kernelkit.Case):
    def test_what_an_idle_kernel_costs(self):
        """An interpreter's memory and a little; and no processor time to speak of."""
        kernel = self.kernel()
        kernel.cell("1")
        plain = subprocess.run(["/usr/bin/python3", "-c",
                                "print(open('/proc/self/status').read())"],
                               capture_output=True, text=True, check=True).stdout
        rss = next(int(line.split()[1]) for line in plain.splitlines() if line.startswith("VmRSS"))
        self.assertLess(kernel.get()["memoryBytes"], (rss + 4096) * 1024)


if __name__ == "__main__":
    unittest.main()
