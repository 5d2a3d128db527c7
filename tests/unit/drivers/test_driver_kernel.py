# SPDX-License-Identifier: Apache-2.0
"""Cells of one kernel: what stays, what does not, and whose output is whose."""
import textwrap
import time
import unittest

from driver_harness import Kernel

STAND_IN = """
import sys, types
m = types.ModuleType("matplotlib.pyplot"); open_ = [1]
class F:
    def savefig(self, b, format="png", **k): b.write(b"\\x89PNG\\r\\n\\x1a\\n")
m.get_fignums = lambda: list(open_); m.figure = lambda n=None: F()
m.close = lambda *a: open_.clear()
sys.modules["matplotlib.pyplot"] = m
"""


class InAKernel(unittest.TestCase):
    def setUp(self):
        self.kernel = Kernel()
        self.addCleanup(lambda: self.kernel.close())

    def cell(self, code, **options):
        return self.kernel.cell(textwrap.dedent(code), **options)

    def good(self, code, **options):
        """stdout and texts of the results of a cell that has to go well."""
        done = self.cell(code, **options)
        self.assertEqual((done.code, done.stderr, done.interrupted), (0, "", False), done)
        return done.stdout, [result.text for result in done.results]

    def alive(self):
        self.assertEqual(self.good("1+1"), ("", ["2"]))

    def fresh(self):
        self.kernel.close()
        self.kernel = Kernel()


class State(InAKernel):
    def test_variables_stay(self):
        self.assertEqual(self.good("x = 1"), ("", []))
        self.assertEqual(self.good("x += 1\nx"), ("", ["2"]))
        self.assertEqual(self.good("__name__, '__file__' in globals()"),
                         ("", ["('__main__', False)"]))

    def test_state_survives_an_error(self):
        self.good("x = 5")
        self.assertEqual(self.cell("y = 6\n1/0").code, 1)
        self.assertEqual(self.good("x + y"), ("", ["11"]))

    def test_tracebacks_show_sources_of_earlier_cells(self):
        self.good("def f():\n    return 1/0\n")
        done = self.cell("# one\nf()")
        # Python 3.13 underlines more than 3.11.
        lines = [line for line in done.stderr.splitlines() if line.strip(" ~^")]
        self.assertEqual("\n".join(lines), textwrap.dedent("""\
            Traceback (most recent call last):
              File "cell 2", line 2, in <module>
                f()
              File "cell 1", line 2, in f
                return 1/0
            ZeroDivisionError: division by zero"""))
        self.assertRegex(done.stderr, r"\n {11}~\^~\nZero")

    def test_inspect_finds_sources(self):
        self.good("def f():\n    return 1\n")
        self.assertEqual(self.good("import inspect\nprint(inspect.getsource(f))"),
                         ("def f():\n    return 1\n\n", []))
        self.good("def g():\n    return 2\n")
        self.good("import linecache; linecache.checkcache()")
        self.assertEqual(self.good("print(inspect.getsource(g))"),
                         ("def g():\n    return 2\n\n", []))

    def test_sources_are_bounded(self):
        filler = "#" * 1000000
        for _ in range(12):
            self.good("import linecache\n" + filler)
        self.assertEqual(self.good("sum(1 for name in linecache.cache if name[:4] == 'cell') < 6"),
                         ("", ["True"]))

    def test_pickling_classes_of_earlier_cells(self):
        self.good("class A: pass")
        self.assertEqual(self.good("import pickle\ntype(pickle.loads(pickle.dumps(A()))).__name__"),
                         ("", ["'A'"]))

    def test_a_process_pool_with_a_function_of_an_earlier_cell(self):
        self.good("def sq(x): return x*x")
        self.assertEqual(self.good("""
            import multiprocessing as mp
            with mp.get_context("fork").Pool(2) as p:
                print(p.map_async(sq, [1, 2, 3]).get(timeout=30))
            """), ("[1, 4, 9]\n", []))
        self.alive()

    def test_awaiting(self):
        self.assertEqual(self.good("import asyncio\nawait asyncio.sleep(0)\n'ok'"), ("", ["'ok'"]))
        self.assertEqual(self.good("async def m(): return 7\nasyncio.run(m())"), ("", ["7"]))
        self.good("t = asyncio.get_event_loop_policy() and None\n"
                  "async def start():\n    return asyncio.create_task(asyncio.sleep(0, 'later'))\n"
                  "t = await start()")
        self.assertEqual(self.good("await t"), ("", ["'later'"]))

    def test_figures_are_shown_once(self):
        done = self.cell(STAND_IN)
        self.assertEqual([result.data for result in done.results], [{"image/png": "iVBORw0KGgo="}])
        self.assertEqual(self.good("1"), ("", ["1"]))

    def test_environment_directory_and_text_limit_of_a_cell(self):
        self.assertEqual(self.good("import os; print(os.environ['A'], os.getcwd())",
                                   environment=b"A=b\0", directory=b"/"), ("b /\n", []))
        done = self.cell("'x' * 100", text_max=50)
        self.assertTrue(done.results[0].shortened)


class Ends(InAKernel):
    def test_exit_keeps_the_kernel(self):
        for value, code, stderr in (("'bad input'", 1, "bad input\n"), ("3.5", 1, "3.5\n"),
                                    ("256", 0, ""), ("-1", 255, ""), ("None", 0, ""),
                                    ("2**70", 255, ""), ("True", 1, "")):
            done = self.cell(f"import sys; sys.exit({value})")
            self.assertEqual((done.code, done.stderr), (code, stderr), value)
        self.assertEqual(self.cell("raise SystemExit").code, 0)
        self.assertEqual(self.cell("exit(3)").code, 3)
        self.alive()

    def test_errors(self):
        self.assertEqual(self.cell("def f(): f()\nf()").code, 1)
        self.assertEqual(self.cell("x = = 1").code, 1)
        done = self.cell("class R:\n    def __repr__(self): raise ValueError('boom-42')\nR()")
        self.assertEqual(done.code, 1)
        self.assertIn("ValueError: boom-42", done.stderr)
        done = self.cell("!ls")
        self.assertIn("a shell line of notebooks, not Python", done.stderr)
        done = self.cell("import sys\nsys.excepthook = lambda *a: sys.exit(7)\n1/0")
        self.assertEqual(done.code, 7)
        self.cell("sys.excepthook = sys.__excepthook__")
        self.assertEqual(self.cell("class E(Exception):\n    def __len__(self): return 0\n"
                                   "raise E").code, 1)
        self.alive()

    def test_a_forked_child_leaves_at_the_end_of_the_cell(self):
        done = self.cell("import os, sys\npid = os.fork()\nif pid: os.waitid(os.P_PID, pid, "
                         "os.WEXITED | os.WNOWAIT)\nprint('in', 'child' if pid == 0 else 'parent')")
        self.assertEqual((done.code, done.stdout), (0, "in child\nin parent\n"))
        self.assertEqual(self.good("os.waitpid(-1, 0)[1]"), ("", ["0"]))
        done = self.cell("if os.fork() == 0: sys.exit(3)\nos.waitstatus_to_exitcode(os.wait()[1])")
        self.assertEqual((done.code, done.results[0].text), (0, "3"))
        done = self.cell("import ctypes\npid = ctypes.CDLL(None).fork()\n"
                         "if pid == 0: 1/0\nos.waitstatus_to_exitcode(os.wait()[1])")
        self.assertEqual((done.code, [r.text for r in done.results]), (0, ["1"]))
        self.assertIn("ZeroDivisionError", done.stderr)
        self.alive()

    def test_deaths_are_seen(self):
        for code, status in (("import os; os._exit(3)", 3),
                             ("import os; os.kill(os.getpid(), 15)", -15),
                             ("import ctypes; ctypes.string_at(0)", -11)):
            self.fresh()
            self.assertIsNone(self.cell(code).code)
            self.assertEqual(self.kernel.process.wait(30), status)

    def test_the_end_of_the_connection_ends_the_interpreter_politely(self):
        self.good("import atexit; atexit.register(print, 'bye')")
        self.kernel.connection.close()
        self.assertEqual(self.kernel.process.wait(30), 0)
        self.assertEqual(self.kernel.process.stdout.read(), b"bye\n")


class Output(InAKernel):
    def test_input_is_the_cells_own(self):
        self.assertIn("EOFError", self.cell("input()").stderr)
        self.assertEqual(self.good("import sys; sys.stdin.read()"), ("", ["''"]))
        self.assertEqual(self.good("input(), sys.stdin.read()", stdin=b"one\ntwo\n"),
                         ("", ["('one', 'two\\n')"]))
        self.assertEqual(self.good("import os; os.read(0, 10)", stdin=b"raw"), ("", ["b'raw'"]))
        self.assertEqual(self.good("sys.stdin.read(), os.read(0, 10)"), ("", ["('', b'')"]))
        self.good("sys.stdin.close()")
        self.assertEqual(self.good("sys.stdin.read()", stdin=b"x"), ("", ["'x'"]))
        self.assertEqual(self.good("import subprocess; subprocess.check_output(['cat'])",
                                   stdin=b"for the child"), ("", ["b'for the child'"]))

    def test_raw_and_child_output_is_the_cells(self):
        self.assertEqual(self.good("import os, subprocess\nos.write(1, b'raw\\n')\n"
                                   "subprocess.run(['echo', 'child'])\nprint('text')\n0"),
                         ("raw\nchild\ntext\n", ["0"]))
        done = self.cell("os.write(2, b'e' * 300000); os.write(1, b'o' * 300000); None")
        self.assertEqual((len(done.stdout), len(done.stderr)), (300000, 300000))
        self.alive()

    def test_output_without_a_line_end_is_complete(self):
        self.assertEqual(self.good("print('a', end='')"), ("a", []))
        self.assertEqual(self.good("import sys; sys.stdout.buffer.write(b'b'); None"), ("b", []))

    def test_whatever_a_cell_does_to_its_streams(self):
        for code in ("import io, sys; sys.stdout = io.StringIO()",
                     "import sys; sys.stdout.close()",
                     "import sys; sys.stderr.close(); sys.stdin.close()",
                     "import sys; sys.stdout = sys.stderr = sys.stdin = None",
                     "import sys; sys.stdout.detach()",
                     "import sys; sys.stdout.buffer.close()",
                     "import os; os.close(1)",
                     "import os; os.closerange(0, 64)",
                     "import os; os.dup2(os.open('/dev/null', os.O_RDWR), 1)",
                     "import sys; del sys.stdout, sys.stderr, sys.stdin",
                     "import sys; sys.stdout = object()",
                     "import json; json.dumps = lambda *a, **k: '{}'",
                     "import os; os.closerange(3, 64)",
                     "import os; os.set_blocking(0, False)",
                     "import io; io.open = None"):
            with self.subTest(code):
                self.fresh()
                done = self.cell(code)
                self.assertEqual(done.code, 0, done)
                self.assertEqual(self.good("print('second')"), ("second\n", []))
                done = self.cell("import sys; print('e', file=sys.stderr); 1/0")
                self.assertEqual(done.code, 1)
                self.assertIn("ZeroDivisionError", done.stderr)
                self.alive()

    def test_a_closed_connection_is_a_death(self):
        self.assertIsNone(self.cell("import os; os.closerange(3, 1024)").code)
        self.kernel.process.wait(30)

    def test_a_thread_that_outlives_its_cell(self):
        first = self.cell("""
            import threading
            go = threading.Event()
            def work():
                go.wait(30)
                print("late-1")
            thread = threading.Thread(target=work)
            thread.start()
            print("c1")
            """)
        self.assertEqual(first.stdout, "c1\n")
        self.assertEqual(self.good("go.set(); thread.join()\nprint('c2')"), ("late-1\nc2\n", []))
        self.assertEqual(self.good("1"), ("", ["1"]))

    def test_a_background_child_does_not_hold_the_cell(self):
        begun = time.monotonic()
        self.assertEqual(self.good("import subprocess\nc = subprocess.Popen(['sleep', '25'])\n"
                                   "print('done')"), ("done\n", []))
        self.assertLess(time.monotonic() - begun, 10)

    def test_logging_keeps_its_stream(self):
        self.good("import logging, sys\nlogging.basicConfig(stream=sys.stdout, format='%(message)s')")
        self.assertEqual(self.good("logging.warning('w')"), ("w\n", []))

    def test_output_is_live(self):
        self.kernel.start("print('now')\nimport time\ntime.sleep(60)")
        data = b""
        deadline = time.monotonic() + 30
        while b"now\n" not in data and time.monotonic() < deadline:
            data += self.kernel.process.stdout.read() or b""
        self.assertEqual(data, b"now\n")


class Interrupts(InAKernel):
    def until(self, text):
        """Waits until the running cell has printed text."""
        data = b""
        deadline = time.monotonic() + 30
        while text.encode() not in data and time.monotonic() < deadline:
            data += self.kernel.process.stdout.read() or b""
        self.assertIn(text.encode(), data)

    def test_a_loop_and_a_sleep_are_interrupted(self):
        # Imported before: Python leaves half of a module behind whose import is interrupted.
        self.good("import asyncio, subprocess, threading, time")
        for code in ("while True: pass", "import time; time.sleep(60)",
                     "import threading; threading.Event().wait()",
                     "import subprocess; subprocess.run(['sleep', '60'])",
                     "import asyncio\nawait asyncio.sleep(60)",
                     "import asyncio\nasyncio.run(asyncio.sleep(60))"):
            with self.subTest(code):
                self.kernel.start("x = 1\nprint('begun')\n" + code)
                self.until("begun")
                self.kernel.interrupt()
                done = self.kernel.finish()
                self.assertEqual((done.code, done.interrupted), (130, True), done)
                self.assertIn("KeyboardInterrupt", done.stderr)
                self.assertNotIn("driver", done.stderr)
                self.assertEqual(self.good("x"), ("", ["1"]))
        self.assertEqual(self.good("import asyncio\nawait asyncio.sleep(0, 5)"), ("", ["5"]))

    def test_one_that_comes_before_a_wait_begins(self):
        for place, name in (("asyncio.Runner", "get_loop"), ("asyncio.BaseEventLoop", "create_task")):
            with self.subTest(name):
                self.good(f"import asyncio, signal\nkept = {place}.{name}\n"
                          "def interrupted(*arguments, **options):\n"
                          f"    {place}.{name} = kept\n"
                          "    signal.raise_signal(signal.SIGINT)\n"
                          "    return kept(*arguments, **options)\n"
                          f"{place}.{name} = interrupted")
                done = self.kernel.cell("await asyncio.sleep(0)")
                self.assertEqual((done.code, done.interrupted), (130, True), done)
                self.assertIn("KeyboardInterrupt", done.stderr)
                self.assertNotIn("never awaited", done.stderr)
                self.assertEqual(self.good("await asyncio.sleep(0, 5)"), ("", ["5"]))

    def test_code_may_handle_it(self):
        self.kernel.start("import time\nprint('begun')\ntry:\n    time.sleep(60)\n"
                          "except KeyboardInterrupt:\n    print('caught')\n")
        self.until("begun")
        self.kernel.interrupt()
        done = self.kernel.finish()
        self.assertEqual((done.code, done.interrupted, done.stdout), (0, False, "caught\n"))

    def test_it_never_reaches_an_idle_kernel_or_the_next_cell(self):
        self.good("x = 1")
        for frame in (True, False):
            self.kernel.interrupt(frame=frame)
            self.alive()
        # The frame came while the cell ran or after it, the signal only in the next one.
        self.kernel.connection.sendall(b"\2\0\0\0\4" + self.kernel.number.to_bytes(4, "big"))
        self.kernel.start("import time\nprint('begun')\ntime.sleep(0.5)\n'whole'")
        self.until("begun")
        self.kernel.interrupt(frame=False)
        done = self.kernel.finish()
        self.assertEqual((done.code, [r.text for r in done.results]), (0, ["'whole'"]), done)
        self.kernel.start("import time\nprint('begun')\ntime.sleep(60)")
        self.until("begun")
        self.kernel.interrupt()
        self.assertEqual(self.kernel.finish().code, 130)

    def test_many_at_any_moment(self):
        self.good("n = 0")
        for round_number in range(150):
            self.kernel.start("n += 1\n[i for i in range(%d)][-1:]" % (round_number * 40))
            self.kernel.interrupt()
            done = self.kernel.finish()
            self.assertIn((done.code, done.interrupted), ((0, False), (130, True)), done)
        self.alive()

    def test_the_codes_own_interrupt(self):
        done = self.cell("import signal; signal.raise_signal(signal.SIGINT)")
        self.assertEqual((done.code, done.interrupted), (130, True))
        self.alive()

    def test_a_cell_can_not_make_the_kernel_deaf(self):
        for handler in ("signal.SIG_IGN", "signal.SIG_DFL"):
            self.good(f"import signal; signal.signal(signal.SIGINT, {handler}); None")
            self.kernel.interrupt()
            self.kernel.start("print('begun')\nwhile True: pass")
            self.until("begun")
            self.kernel.interrupt()
            self.assertEqual(self.kernel.finish().code, 130)


if __name__ == "__main__":
    unittest.main()
