# SPDX-License-Identifier: Apache-2.0
"""How a run ended is told by evidence, never guessed from an exit code."""
import threading
import time
import unittest

import census
import harness


class LookAlikes(harness.Case):
    """Exit codes and messages that resemble what a sandbox does are the program's own."""

    def test_codes_chosen_by_the_program(self):
        for code in (1, 2, 124, 125, 126, 127, 137, 139, 143, 159, 255):
            with self.subTest(code=code):
                for result in (self.run_code(f"exit {code}", "bash"),
                               self.run_code(f"import os; os._exit({code})"),
                               self.run_command(["sh", "-c", f"exit {code}"])):
                    self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                                     (code, None, None))
                    self.assertFalse(result["success"])

    def test_messages_of_a_sandbox(self):
        for words in ("error: sandbox: cannot start", "bwrap: Can't mount proc",
                      "bwrap: setting up uid map: Permission denied", "Out of memory", "Killed"):
            with self.subTest(words=words):
                result = self.run_code(f'echo "{words}" >&2; exit 125', "bash")
                self.assertEqual((result["exitCode"], result["fault"]), (125, None))
                self.assertEqual(result["stderr"], words + "\n")

    def test_signals_to_itself(self):
        for name, number in (("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6), ("HUP", 1),
                             ("USR1", 10), ("INT", 2), ("PIPE", 13), ("XCPU", 24)):
            with self.subTest(signal=name):
                result = self.run_command(["sh", "-c", f"echo before; kill -{name} $$; sleep 5"])
                self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                                 (128 + number, name, None))
                self.assertEqual(result["stdout"], "before\n")

    def test_a_child_that_is_killed_is_the_programs_business(self):
        result = self.run_code("sh -c 'kill -9 $$'; echo $?", "bash")
        self.assert_success(result, "137\n")

    def test_a_program_that_is_not_there(self):
        result = self.run_command(["no-such-program-here"])
        self.assertEqual((result["exitCode"], result["fault"]), (127, None))
        self.assertIn("no-such-program-here", result["stderr"])
        result = self.run_command(["/etc/passwd"])
        self.assertEqual((result["exitCode"], result["fault"]), (126, None))
        result = self.run_command(["./missing"])
        self.assertEqual((result["exitCode"], result["fault"]), (127, None))
        result = self.run_command(["/workspace"])
        self.assertEqual((result["exitCode"], result["fault"]), (126, None))

    def test_a_broken_interpreter_line(self):
        result = self.run_command(["sh", "-c", "printf '#!/no/such\\n' > x; chmod +x x; ./x"])
        self.assertIn(result["exitCode"], (126, 127))
        self.assertIsNone(result["fault"])


class WaysToDie(harness.Case):
    """Each way to die gives its own true outcome."""

    def test_exit_without_cleanup(self):
        result = self.run_code("import os; print('lost in the buffer'); os._exit(3)")
        self.assertEqual((result["exitCode"], result["signal"], result["fault"]), (3, None, None))

    def test_segmentation_fault(self):
        with self.within(5):
            result = self.run_code("import ctypes; ctypes.string_at(0)")
        self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                         (139, "SEGV", None))

    def test_endless_recursion(self):
        result = self.run_code("def f(): return f()\nf()", memoryMb=256, timeoutS=10)
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIn("RecursionError", result["stderr"])

    def test_endless_recursion_without_a_limit(self):
        with self.within(15):
            result = self.run_code("import sys\nsys.setrecursionlimit(10**9)\n"
                                   "def f(): return f()\nf()", memoryMb=256, timeoutS=10)
        if result["fault"] is None:
            self.assertIn((result["exitCode"], result["signal"]),
                          ((139, "SEGV"), (1, None), (134, "ABRT")))
        else:
            self.assertIn(result["fault"]["type"], ("oom", "timeout"))

    def test_termination_by_itself(self):
        result = self.run_code("import os; os.kill(os.getpid(), 15)")
        self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                         (143, "TERM", None))

    def test_alarm(self):
        result = self.run_code("import signal, time; signal.alarm(1); time.sleep(20)")
        self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                         (142, "ALRM", None))

    def test_abort_of_node(self):
        result = self.run_code("process.abort()", "node")
        self.assertEqual((result["exitCode"], result["signal"], result["fault"]),
                         (134, "ABRT", None))

    def test_signal_to_everybody(self):
        mark = harness.new_mark()
        with self.within(8):
            result = self.run_code("sleep 30 & kill -9 -1; echo survived", "bash", timeoutS=5,
                                   env={"MARK": mark})
        self.assertNotEqual((result["fault"] or {}).get("type"), "startup_failed")
        self.assertNotEqual((result["fault"] or {}).get("type"), "oom")
        self.assert_gone(mark)

    def test_signal_to_the_first_process(self):
        for number in (9, 15, 19, 11):
            with self.subTest(signal=number):
                result = self.run_code(f"kill -{number} 1; echo still here", "bash", timeoutS=5)
                self.assert_success(result, "still here\n")

    def test_blocked_system_call(self):
        result = self.run_code("""
import ctypes
print("before", flush=True)
libc = ctypes.CDLL(None, use_errno=True)
result = libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)
print("after", result, ctypes.get_errno())
""")
        if result["fault"] is not None:
            self.assert_fault(result, "escape_blocked")
            self.assertEqual((result["signal"], result["stdout"]), ("SYS", "before\n"))
            self.assertTrue(result["fault"]["evidence"])
        else:
            self.assertIn("after -1", result["stdout"])


class Memory(harness.Case):
    """Memory above the cap ends the box, and the fault says so."""

    def setUp(self):
        super().setUp()
        self.how = self.daemon.get("/v1/capabilities").json["enforcement"]["memory"]

    def test_out_of_memory(self):
        # It stays: who only looks now and then must have time to see it.
        result = self.run_code('import time; b = b"x"*(300<<20); time.sleep(20)', memoryMb=64)
        self.assert_fault(result, "oom")
        self.assertTrue(result["fault"]["evidence"])
        self.assertIn("64", result["fault"]["message"])
        self.assertEqual(result["limits"]["enforced"]["memory"], self.how)

    def test_slow_growth(self):
        result = self.run_code("""
import time
blocks = []
while True:
    blocks.append(bytearray(b"x" * (4 << 20))); time.sleep(0.01)
""", memoryMb=64, timeoutS=20)
        self.assert_fault(result, "oom")

    def test_many_processes_share_the_cap(self):
        result = self.run_code("""
for i in 1 2 3 4 5 6 7 8; do
  python3 -c "import time; b = bytearray(b'x' * (24 << 20)); time.sleep(15)" &
done
wait; echo all lived
""", "bash", memoryMb=96, timeoutS=20)
        self.assert_fault(result, "oom")

    def test_files_in_memory_count(self):
        result = self.run_code("head -c 400M /dev/zero > /dev/shm/x; echo wrote $?; sleep 2",
                               "bash", memoryMb=64, timeoutS=20)
        if result["fault"] is None:
            self.assertNotIn("wrote 0", result["stdout"])
            self.assertIn("No space left", result["stderr"])
        else:
            self.assert_fault(result, "oom")

    def test_below_the_cap_nothing_happens(self):
        result = self.run_code("import time\nb = bytearray(b'x' * (150 << 20))\ntime.sleep(0.5)\n"
                               "print(len(b))", memoryMb=400)
        self.assert_success(result, f"{150 << 20}\n")
        peak = result["usage"]["peakMemoryBytes"]
        self.assertTrue(peak is None or 140 << 20 < peak < 400 << 20, peak)

    def test_the_error_of_the_interpreter_is_not_a_fault(self):
        result = self.run_code("raise MemoryError('mine')")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))


class ForkBomb(harness.Case):
    """Processes that multiply stay within their cap and slow nobody else down much."""

    def test_bomb(self):
        mark = harness.new_mark()
        before = len(census.pids())
        seen, slow, stop = [], [], threading.Event()

        def watch():
            while not stop.is_set():
                seen.append(len(census.with_environment(mark)))
                time.sleep(0.02)

        def neighbour():
            while not stop.is_set():
                started = time.monotonic()
                self.assert_success(self.run_code("print(1)"), "1\n")
                slow.append(time.monotonic() - started)
                stop.wait(1)

        threads = [threading.Thread(target=job) for job in (watch, neighbour)]
        for thread in threads:
            thread.start()
        try:
            with self.within(8):
                result = self.run_code("b(){ b|b& }; b; sleep 9", "bash", pids=64, timeoutS=3,
                                       memoryMb=128, env={"MARK": mark})
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        if result["fault"] is None:
            self.assertNotEqual(result["exitCode"], 0)
        else:
            self.assert_fault(result, "timeout")
        self.assertGreater(max(seen), 10, "the bomb never went off")
        self.assertLessEqual(max(seen), 66)
        self.assertTrue(slow)
        self.assertLess(max(slow), harness.seconds(2))
        self.assert_gone(mark)
        self.assertLess(len(census.pids()), before + 64)
        self.assert_success(self.run_code("echo next", "bash"), "next\n")

    def test_the_cap_is_exact_enough(self):
        result = self.run_code("""
import os, time
children = 0
try:
    while children < 100:
        if os.fork() == 0:
            time.sleep(20); os._exit(0)
        children += 1
except BlockingIOError:
    pass
print(children)
""", pids=20, timeoutS=10)
        self.assert_success(result)
        self.assertTrue(15 <= int(result["stdout"]) <= 20, result["stdout"])

    def test_orphans_are_reaped(self):
        result = self.run_code("""
import subprocess
for _ in range(150): subprocess.run(["sh", "-c", "sleep 0.01 & exit 0"])
print(subprocess.run(["sh", "-c", "echo fine"], capture_output=True).stdout)
""", pids=64)
        self.assert_success(result, "b'fine\\n'\n")


class Usage(harness.Case):
    """What a run cost is measured from outside."""

    def test_processor_time(self):
        result = self.run_code("import time\nend = time.process_time() + 0.5\n"
                               "while time.process_time() < end: pass")
        usage = result["usage"]
        self.assertGreaterEqual(usage["cpuUserMs"] + usage["cpuSystemMs"], 450)
        self.assertGreaterEqual(usage["wallMs"], 450)
        self.assertGreaterEqual(result["durationMs"], 450)

    def test_time_of_children_counts(self):
        spin = "import time\nwhile time.process_time() < 0.3: pass"
        result = self.run_command(["sh", "-c", f"python3 -c '{spin}'; exit 0"])
        usage = result["usage"]
        self.assertGreaterEqual(usage["cpuUserMs"] + usage["cpuSystemMs"], 290)

    def test_sleeping_costs_little(self):
        result = self.run_command(["sleep", "0.5"])
        self.assertGreaterEqual(result["usage"]["wallMs"], 490)
        self.assertLess(result["usage"]["cpuUserMs"] + result["usage"]["cpuSystemMs"], 250)

    def test_the_program_does_not_report_for_itself(self):
        # Only the daemon's side measures: a program that says it used nothing is not believed.
        result = self.run_code("import resource\nresource.getrusage = lambda *a: None\n"
                               "b = bytearray(b'x' * (100 << 20))")
        peak = result["usage"]["peakMemoryBytes"]
        self.assertTrue(peak is None or peak > 90 << 20, peak)


if __name__ == "__main__":
    unittest.main()
