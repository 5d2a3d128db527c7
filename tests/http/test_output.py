# SPDX-License-Identifier: Apache-2.0
"""Standard output and error: any bytes, any amount, whoever holds the pipe."""
import base64
import unittest

import census
import harness
from templatekit import Forked

UGLY = r'''
import sys; w = sys.stdout.buffer.write
w(b"ok\xff\xfe\x80end\n"); w(b"A\xe2\x82B\n"); w(b"\xed\xa0\x80x\n"); w(b"50%\r100%\rdone")
'''
UGLY_BYTES = b"ok\xff\xfe\x80end\nA\xe2\x82B\n\xed\xa0\x80x\n50%\r100%\rdone"
REPAIRED = "ok\ufffd\ufffd\ufffdend\nA\ufffdB\n\ufffd\ufffd\ufffdx\n50%\r100%\rdone"


class InvalidUtf8(Forked, harness.Case):
    """Bytes that are not UTF-8 become one U+FFFD per maximal bad part; nothing else changes."""

    def test_stdout_of_python(self):
        self.assert_success(self.run_code(UGLY), REPAIRED)

    def test_stderr(self):
        result = self.run_code(UGLY.replace("stdout", "stderr"))
        self.assert_success(result, "")
        self.assertEqual(result["stderr"], REPAIRED)

    def test_bytes_written_below_python(self):
        result = self.run_code(f"import os; os.write(1, {UGLY_BYTES!r}); os.write(2, b'\\xc0\\xaf')")
        self.assert_success(result, REPAIRED)
        self.assertEqual(result["stderr"], "\ufffd\ufffd")

    def test_bash_and_command(self):
        script = "printf 'A\\xe2\\x82B\\n\\xff'"
        for result in (self.run_code(script, "bash"), self.run_command(["bash", "-c", script])):
            self.assert_success(result, "A\ufffdB\n\ufffd")

    def test_every_single_byte(self):
        result = self.run_code("import os; os.write(1, bytes(range(256)))")
        self.assert_success(result, bytes(range(256)).decode("utf-8", "replace"))

    def test_good_characters_in_single_bytes(self):
        code = """
import os
for byte in "é☃😀".encode():
    os.write(1, bytes([byte]))
"""
        self.assert_success(self.run_code(code), "é☃😀")

    def test_raw_bytes_on_request(self):
        result = self.run_code(UGLY, stdoutEncoding="base64")
        self.assert_success(result)
        self.assertEqual(base64.b64decode(result["stdout"], validate=True), UGLY_BYTES)

    def test_control_characters_survive_json(self):
        result = self.run_code("print('a\\x00b\\x1b[1m\\x7f\"\\\\', end='')")
        self.assert_success(result, 'a\0b\x1b[1m\x7f"\\')


class Caps(Forked, harness.Case):
    """Too much output is no failure: the first bytes are kept, the rest is drained."""

    def test_first_bytes_are_kept(self):
        result = self.run_code("for i in range(200000): print(i)", maxOutputBytes=4096)
        self.assert_success(result)
        whole = "".join(f"{i}\n" for i in range(200000))
        self.assertEqual(result["stdout"], whole[:4096])
        self.assertEqual((result["truncated"], result["truncatedStreams"]), (True, ["stdout"]))

    def test_exactly_the_cap_is_not_truncated(self):
        result = self.run_code("print('x' * 99)", maxOutputBytes=100)
        self.assert_success(result, "x" * 99 + "\n")
        self.assertEqual((result["truncated"], result["truncatedStreams"]), (False, []))
        result = self.run_code("print('x' * 100)", maxOutputBytes=100)
        self.assert_success(result, "x" * 100)
        self.assertTrue(result["truncated"])

    def test_the_cap_never_splits_a_character(self):
        for cap in range(1, 9):
            with self.subTest(cap=cap):
                result = self.run_code("print('é☃😀' * 100)", "python", maxOutputBytes=cap)
                self.assert_success(result)
                self.assertTrue(("é☃😀" * 100).startswith(result["stdout"]), result["stdout"])
                self.assertLessEqual(len(result["stdout"].encode()), cap)
                self.assertGreater(len(result["stdout"].encode()), cap - 4)

    def test_each_stream_has_its_own_cap(self):
        result = self.run_code("import os; os.write(1, b'o' * 10); os.write(2, b'e' * 5000)",
                               maxOutputBytes=100)
        self.assertEqual((result["stdout"], result["stderr"]), ("o" * 10, "e" * 100))
        self.assertEqual(result["truncatedStreams"], ["stderr"])

    def test_a_cap_of_nothing_or_of_too_much_is_refused_or_exact(self):
        maximum = self.daemon.get("/v1/capabilities").json["maxima"]["maxOutputBytes"]
        reply = self.daemon.post("/v1/runCode", {"code": "1", "language": "python",
                                                 "maxOutputBytes": maximum + 1})
        self.assert_problem(reply, 422, "limit_exceeds_maximum", "/maxOutputBytes")

    def test_both_streams_flooded_at_once(self):
        code = "import os; os.write(2, b'e' * 300000); os.write(1, b'o' * 300000)"
        with self.within(20):
            result = self.run_code(code)
        self.assert_success(result, "o" * 300000)
        self.assertEqual(result["stderr"], "e" * 300000)
        self.assertFalse(result["truncated"])

    def test_flood_in_small_pieces_from_two_writers(self):
        code = """
import os, threading
def fill(fd, byte):
    for _ in range(3000): os.write(fd, byte * 97)
writers = [threading.Thread(target=fill, args=a) for a in ((1, b"o"), (2, b"e"))]
[w.start() for w in writers]; [w.join() for w in writers]
"""
        result = self.run_code(code)
        self.assert_success(result, "o" * 97 * 3000)
        self.assertEqual(result["stderr"], "e" * 97 * 3000)

    def test_a_flood_far_above_the_cap_costs_no_memory(self):
        before = int(census.status_field(self.daemon.pid, "VmHWM").split()[0])
        result = self.run_code("head -c 400000000 /dev/zero", "bash", maxOutputBytes=1000)
        self.assert_success(result, "\0" * 1000)
        after = int(census.status_field(self.daemon.pid, "VmHWM").split()[0])
        self.assertLess(after - before, 64 << 10, "kB more at the peak")


class Deadline(Forked, harness.Case):
    """What was written before the time limit is kept."""

    def test_partial_output(self):
        code = 'import os,time; os.write(1,b"kept\\n"); os.write(2,b"too\\n"); time.sleep(60)'
        with self.within(5):
            result = self.run_code(code, timeoutS=2)
        self.assert_fault(result, "timeout")
        self.assertEqual((result["stdout"], result["stderr"]), ("kept\n", "too\n"))
        # Of the program alone, whose limit began before it: with its box, by a machine with much to do.
        self.assertGreaterEqual(result["durationMs"], 1500)

    def test_partial_output_of_each_language(self):
        for language, code in (("bash", "echo kept; sleep 60"),
                               ("node", "console.log('kept'); setTimeout(() => {}, 60000)")):
            with self.subTest(language=language), self.within(8):
                result = self.run_code(code, language, timeoutS=2)
                self.assert_fault(result, "timeout")
                self.assertEqual(result["stdout"], "kept\n")

    def test_a_flood_does_not_outlive_the_limit(self):
        with self.within(6):
            result = self.run_command(["yes"], timeoutS=1, maxOutputBytes=2000)
        self.assert_fault(result, "timeout")
        self.assertEqual(result["stdout"], "y\n" * 1000)
        self.assertTrue(result["truncated"])

    def test_a_fraction_of_a_second(self):
        with self.within(4):
            result = self.run_command(["sleep", "60"], timeoutS=0.25)
        self.assert_fault(result, "timeout")
        self.assertEqual(result["limits"]["timeoutS"], 0.25)

    def test_ignored_signals_and_open_stdin_do_not_help(self):
        mark = harness.new_mark()
        code = "trap '' TERM INT HUP; (trap '' TERM; sleep 50) & cat; wait; sleep 60"
        with self.within(6):
            result = self.run_code(code, "bash", timeoutS=1, env={"MARK": mark}, stdin="x")
        self.assert_fault(result, "timeout")
        self.assert_gone(mark)

    def test_a_stopped_process(self):
        mark = harness.new_mark()
        with self.within(6):
            result = self.run_code("kill -STOP $$", "bash", timeoutS=1, env={"MARK": mark})
        self.assert_fault(result, "timeout")
        self.assert_gone(mark)


class ClosedPipes(harness.Case):
    """The end of a program is its exit, not the end of its output."""

    def test_output_closed_early(self):
        with self.within(6):
            result = self.run_command(["sh", "-c", "echo first; exec >&- 2>&-; sleep 1; exit 5"])
        self.assertEqual((result["exitCode"], result["stdout"], result["fault"]),
                         (5, "first\n", None))
        self.assertGreaterEqual(result["durationMs"], 900)

    def test_everything_closed_until_the_deadline(self):
        with self.within(5):
            result = self.run_command(["sh", "-c", "exec <&- >&- 2>&-; sleep 60"], timeoutS=1)
        self.assert_fault(result, "timeout")

    def test_input_closed_early(self):
        result = self.run_command(["sh", "-c", "exec <&-; sleep 0.3; echo fine"],
                                  stdin="x" * 500000)
        self.assert_success(result, "fine\n")

    def test_a_reader_that_takes_only_the_first_bytes(self):
        result = self.run_command(["sh", "-c", "head -c 3; exit 0"], stdin="abcdef" * 100000)
        self.assert_success(result, "abc")

    def test_one_stream_closed_while_the_other_flows(self):
        result = self.run_code("import os, sys\nos.close(2)\n"
                               "for i in range(20000): print(i)\nsys.stdout.flush()")
        self.assertEqual(result["stdout"], "".join(f"{i}\n" for i in range(20000)))
        self.assertIsNone(result["fault"])

    def test_pipe_full_at_the_end(self):
        code = "import os\nos.set_blocking(1, False)\nwrote = 0\ntry:\n" \
               "  while wrote < 10_000_000: wrote += os.write(1, b'x' * 65536)\n" \
               "except BlockingIOError: pass\nos.write(2, str(wrote).encode())\nos._exit(0)"
        result = self.run_code(code)
        self.assert_success(result)
        self.assertEqual(len(result["stdout"]), int(result["stderr"]))


class BackgroundChildren(harness.Case):
    """A child that keeps the pipe open neither delays the answer nor outlives the box."""

    def check(self, result, mark):
        self.assert_success(result, "done\n")
        self.assert_gone(mark)

    def test_from_python(self):
        mark = harness.new_mark()
        code = 'import subprocess; subprocess.Popen(["sleep", "25"]); print("done")'
        with self.within(3):
            result = self.run_code(code, timeoutS=10, env={"MARK": mark})
        self.check(result, mark)

    def test_from_bash(self):
        mark = harness.new_mark()
        with self.within(3):
            result = self.run_code("sleep 25 & echo done", "bash", timeoutS=10, env={"MARK": mark})
        self.check(result, mark)

    def test_from_node(self):
        mark = harness.new_mark()
        code = """
const child = require("child_process").spawn("sleep", ["25"], {stdio: "inherit", detached: true});
child.unref(); console.log("done")
"""
        with self.within(5):
            result = self.run_code(code, "node", timeoutS=10, env={"MARK": mark})
        self.check(result, mark)

    def test_daemonised_twice(self):
        mark = harness.new_mark()
        script = "setsid sh -c 'sleep 25 & sleep 26 & wait' & sleep 0.2; echo done"
        with self.within(3):
            result = self.run_command(["sh", "-c", script], timeoutS=10, env={"MARK": mark})
        self.check(result, mark)

    def test_what_a_child_wrote_before_the_end_is_kept(self):
        result = self.run_code("(echo child) & wait; echo parent", "bash")
        self.assert_success(result, "child\nparent\n")

    def test_a_thread_that_outlives_the_cell(self):
        code = """
import threading, time
def w(): time.sleep(0.3); print("late-1")
threading.Thread(target=w).start()
print("c1")
"""
        self.assert_success(self.run_code(code), "c1\nlate-1\n")

    def test_a_forked_copy_of_the_program(self):
        code = """
import os
pid = os.fork()
print("in", "child" if pid == 0 else "parent", flush=True)
if pid: os.waitpid(pid, 0)
7
"""
        result = self.run_code(code)
        self.assert_success(result)
        self.assertEqual(sorted(result["stdout"].splitlines()), ["in child", "in parent"])
        self.assertEqual([r["data"]["text/plain"] for r in result["results"]], ["7"])


if __name__ == "__main__":
    unittest.main()
