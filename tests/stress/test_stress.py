# SPDX-License-Identifier: Apache-2.0
"""Thousands of calls of every kind against one daemon; its descriptors, threads, memory and files
must stay where they were.

Every hundredth call ends by its deadline, every hundredth by its client hanging up, every
hundredth is refused. Prints one line a thousand calls. Environment: STRESS_CALLS (10000).
"""
import os
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import census  # noqa: E402  (the path above has to come first)
import harness  # noqa: E402

CALLS = int(os.environ.get("STRESS_CALLS", "10000"))
CLIENTS = 3
WARM_UP = 300
MOST_DESCRIPTORS, MOST_THREADS, MOST_KILOBYTES = 20, 2, 32 << 10


class Sample:
    def __init__(self, daemon):
        self.descriptors = census.descriptors(daemon.pid)
        self.threads = int(census.status_field(daemon.pid, "Threads"))
        self.kilobytes = int(census.status_field(daemon.pid, "VmRSS").split()[0])

    def __str__(self):
        return f"{self.descriptors} descriptors, {self.threads} threads, {self.kilobytes} kB"


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def one_call(daemon, number):
    """A call whose kind follows from its number; its outcome is checked."""
    kind = number % 100
    if kind == 7:
        result = daemon.run(["sleep", "60"], timeoutS=0.2)
        check(result["fault"]["type"] == "timeout", result)
    elif kind == 23:
        with daemon.connect() as connection:
            connection.request("POST", "/v1/run", {**daemon.authorization(),
                                                   "Content-Type": "application/json"},
                               harness.as_json({"command": ["sleep", "60"]}))
            connection.reset()
    elif kind == 41:
        check(daemon.post("/v1/run", {"command": "x"}).status == 422, "not refused")
    elif kind == 59:
        result = daemon.run(["sh", "-c", "for i in 1 2 3 4; do sleep 60 & done; kill -9 $$"])
        check(result["exitCode"] == 137, result)
    elif kind == 71:
        result = daemon.run_code("head -c 300000 /dev/zero; exit 3", "bash", maxOutputBytes=1000)
        check(result["exitCode"] == 3 and result["truncated"], result)
    elif kind % 10 == 0:
        result = daemon.run_code(f"open('n','w').write('{number}'); {number}", fetchFiles=["n"])
        check(result["results"][0]["data"]["text/plain"] == str(number), result)
    elif kind == 77:
        result = daemon.run_code(f"console.log({number})", "node")
        check(result["stdout"] == f"{number}\n", result)
    elif kind % 2:
        result = daemon.run_code(f"echo {number}", "bash", files={"a": "b"})
        check(result["stdout"] == f"{number}\n", result)
    else:
        result = daemon.run(["echo", str(number)])
        check(result["stdout"] == f"{number}\n", result)


class Load:
    """Numbers handed out to client threads; the first failure stops all of them."""

    def __init__(self, daemon, calls, clients):
        self.daemon, self.calls, self.clients = daemon, calls, clients
        self.lock = threading.Lock()
        self.next = 0
        self.failure = None

    def client(self):
        while True:
            with self.lock:
                number = self.next
                if number >= self.calls or self.failure:
                    return
                self.next += 1
            try:
                one_call(self.daemon, number)
            except BaseException as failure:  # told by run, on the main thread
                self.failure = failure
                return

    def run(self):
        threads = [threading.Thread(target=self.client) for _ in range(self.clients)]
        for thread in threads:
            thread.start()
        started, told = time.monotonic(), 0
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.2)
            if self.next // 1000 > told:
                told = self.next // 1000
                rate = self.next / (time.monotonic() - started)
                print(f"{self.next} calls, {rate:.0f}/s, {Sample(self.daemon)}", flush=True)
        if self.failure:
            raise self.failure


def settled(daemon):
    """What the daemon holds once all calls are over and boxes for the next ones stand ready."""
    daemon.wait_settled(30)
    return Sample(daemon)


class Steady(unittest.TestCase):
    """One daemon, one load; each number that must stay flat is a test of its own."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = harness.Daemon(["--log-level", "info", "--spares", "8"]).start()
        cls.addClassCleanup(cls.daemon.remove)
        Load(cls.daemon, WARM_UP, CLIENTS).run()
        cls.before = settled(cls.daemon)
        print(f"after {WARM_UP} calls of warm-up: {cls.before}", flush=True)
        Load(cls.daemon, CALLS, CLIENTS).run()
        cls.after = settled(cls.daemon)
        print(f"after {CALLS} calls: {cls.after}", flush=True)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()

    def grown(self, what):
        return getattr(self.after, what) - getattr(self.before, what)

    def test_descriptors(self):
        self.assertLessEqual(self.grown("descriptors"), MOST_DESCRIPTORS)

    def test_threads(self):
        self.assertLessEqual(self.grown("threads"), MOST_THREADS)

    def test_memory(self):
        self.assertLessEqual(self.grown("kilobytes"), MOST_KILOBYTES)

    def test_no_zombies(self):
        self.assertEqual(census.zombies(self.daemon.pid), [])

    def test_the_daemon_still_works(self):
        self.assertEqual(self.daemon.run(["echo", "x"])["stdout"], "x\n")


if __name__ == "__main__":
    unittest.main()
