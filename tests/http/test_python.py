# SPDX-License-Identifier: Apache-2.0
"""Python code in a box behaves as the plain interpreter does with a script."""
import unittest

import harness
from templatekit import Forked


class Parity(Forked, harness.Case):
    """The same code, once in a box and once in the host's bare interpreter."""

    def assert_like_plain(self, code, **options):
        plain = self.plain(code)
        result = self.run_code(code, **options)
        wanted = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
        self.assertEqual((result["exitCode"], result["stdout"]), (wanted, plain.stdout),
                         (result, plain))
        self.assertIsNone(result["fault"])
        return result, plain


class Exits(Parity):
    """What sys.exit is given decides the code and is printed where Python prints it."""

    def test_every_form(self):
        cases = {"'bad input'": (1, "bad input\n"), "3.5": (1, "3.5\n"), "256": (0, ""),
                 "-1": (255, ""), "None": (0, ""), "True": (1, ""), "7": (7, ""),
                 "(1, 2)": (1, "(1, 2)\n"), "''": (1, "\n"), "10**30": (255, "")}
        for given, (code, stderr) in cases.items():
            with self.subTest(given=given):
                result, plain = self.assert_like_plain(f"import sys; sys.exit({given})")
                self.assertEqual(result["exitCode"], plain.returncode)
                if given != "10**30":
                    self.assertEqual((result["exitCode"], result["stderr"]), (code, stderr))

    def test_bare_system_exit(self):
        result, _ = self.assert_like_plain("raise SystemExit")
        self.assertEqual((result["exitCode"], result["stderr"]), (0, ""))

    def test_exit_value_that_cannot_be_printed(self):
        self.assert_like_plain(
            "class A:\n def __str__(self): raise ValueError('x')\nraise SystemExit(A())")

    def test_exit_keeps_what_was_shown(self):
        result = self.run_code("display(1)\nraise SystemExit(4)")
        self.assertEqual(result["exitCode"], 4)
        self.assertEqual([r["data"]["text/plain"] for r in result["results"]], ["1"])

    def test_exit_handlers_and_threads_end_first(self):
        self.assert_like_plain("""
import atexit, sys, threading, time
atexit.register(print, "handler")
def work(): time.sleep(0.2); print("thread")
threading.Thread(target=work).start()
print("main"); sys.exit(3)
""")

    def test_hooks_are_called(self):
        self.assert_like_plain("""
import sys
sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__, value)
raise ValueError(5)
""")


class Tracebacks(Parity):
    """Errors name the line and show the source."""

    def test_line_and_source(self):
        result = self.run_code("a = 1\ndef f():\n    return a / 0  # here\n\nf()\n")
        self.assertEqual(result["exitCode"], 1)
        lines = result["stderr"].splitlines()
        self.assertEqual(lines[0], "Traceback (most recent call last):")
        self.assertEqual(lines[-1], "ZeroDivisionError: division by zero")
        self.assertIn("line 5", lines[1])
        self.assertEqual(lines[2].strip(), "f()")
        self.assertIn("line 3, in f", result["stderr"])
        self.assertIn("return a / 0", result["stderr"])
        self.assertNotIn("driver", result["stderr"], "frames of the driver are shown")

    def test_without_descriptors(self):
        """None is left to read a file with, and what the code did wrong is told all the same."""
        result = self.run_code("import os\nkept = []\nwhile True:\n    kept.append(os.dup(0))\n")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        lines = result["stderr"].splitlines()
        self.assertEqual((lines[0], lines[-1]), ("Traceback (most recent call last):",
                                                 "OSError: [Errno 24] Too many open files"))
        self.assertIn("cell.py\", line 4", lines[1])
        self.assertNotIn("driver", result["stderr"])

    def test_in_the_last_expression(self):
        result = self.run_code("x = 1\n\n1 / 0")
        self.assertIn("line 3", result["stderr"])
        self.assertNotIn("driver", result["stderr"])

    def test_syntax_error(self):
        result = self.run_code("x = 1\nif x\n  pass")
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("SyntaxError", result["stderr"])
        self.assertIn("line 2", result["stderr"])
        self.assertIn("if x", result["stderr"])

    def test_chained(self):
        result = self.run_code("""
try:
    {}["k"]
except KeyError as error:
    raise RuntimeError("outer") from error
""")
        self.assertIn("KeyError: 'k'", result["stderr"])
        self.assertIn("direct cause", result["stderr"])
        self.assertIn("RuntimeError: outer", result["stderr"])
        self.assertNotIn("driver", result["stderr"])

    def test_notebook_dialect_is_an_error_not_a_silence(self):
        for code in ("!ls", "%pip install x", "await f()"):
            with self.subTest(code=code):
                result = self.run_code(code)
                self.assertEqual((result["exitCode"], result["fault"]), (1, None))
                self.assertIn("Error", result["stderr"])

    def test_byte_order_mark(self):
        self.assert_success(self.run_code("\ufeffprint(1)"), "1\n")

    def test_line_ends(self):
        self.assert_success(self.run_code("x = 1\r\nif x:\r\n    print('ok')\r\n"), "ok\n")

    def test_future_import_and_docstring(self):
        code = '"""doc"""\nfrom __future__ import annotations\ndef f(a: b): pass\nprint(__doc__)'
        self.assert_like_plain(code)

    def test_coding_comment(self):
        self.assert_success(self.run_code("# -*- coding: latin-1 -*-\nprint(len('é'))"))


class MainModule(Parity):
    """The code is __main__, with all that follows from it."""

    def test_names(self):
        self.assert_like_plain("import sys\nprint(__name__, __package__, __spec__, len(sys.argv),"
                               " sys.modules['__main__'].__dict__ is globals())")

    def test_file_is_readable(self):
        code = "print(open(__file__).read() == open(__file__).read() and 'print' in" \
               " open(__file__).read())"
        self.assert_success(self.run_code(code), "True\n")

    def test_pickle_of_own_class(self):
        result = self.run_code("import pickle\nclass A: pass\n"
                               "type(pickle.loads(pickle.dumps(A()))).__name__")
        self.assert_success(result)
        self.assertEqual(result["results"][0]["data"]["text/plain"], "'A'")

    def test_pools(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                result = self.run_code(f"""
import multiprocessing as mp
def sq(x): return x*x
if __name__ == "__main__":
    with mp.get_context("{method}").Pool(2) as p: print(p.map_async(sq,[1,2,3]).get(timeout=20))
""")
                self.assert_success(result, "[1, 4, 9]\n")
                self.assertEqual(result["results"], [])

    def test_executor(self):
        self.assert_success(self.run_code("""
from concurrent.futures import ProcessPoolExecutor
def double(x): return 2 * x
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool: print(list(pool.map(double, range(4))))
"""), "[0, 2, 4, 6]\n")

    def test_shared_memory_locks_and_threads(self):
        self.assert_success(self.run_code("""
import multiprocessing as mp, threading, time
from multiprocessing import shared_memory as sm
mp.Lock(); mp.Queue().put(1)
s = sm.SharedMemory(create=True, size=64<<20); s.buf[:] = bytes(64<<20); s.close(); s.unlink()
t = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(64)]
[x.start() for x in t]; [x.join() for x in t]; print("ok")
"""), "ok\n")

    def test_more_threads_than_allowed(self):
        result = self.run_code("""
import threading, time
for _ in range(200): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
""", pids=16, timeoutS=10)
        self.assertEqual((result["exitCode"], result["fault"]), (1, None), result)
        self.assertIn("RuntimeError: can't start new thread", result["stderr"])

    def test_asyncio(self):
        self.assert_success(self.run_code(
            "import asyncio\nasync def m(): return 7\nprint(asyncio.run(m()))"), "7\n")

    def test_source_is_found_by_inspect(self):
        self.assert_like_plain("import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))")

    def test_signals_are_the_interpreters_own(self):
        self.assert_like_plain("import signal\nprint(signal.getsignal(signal.SIGINT),"
                               " signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGTERM))")


class Streams(Parity):
    """Code that replaces, closes or nulls its own streams harms itself alone."""

    def test_replaced(self):
        self.assert_like_plain("import io, sys\nsys.stdout = io.StringIO()\nprint('hidden')")

    def test_closed(self):
        self.assert_like_plain("import sys\nprint('seen')\nsys.stdout.close()")

    def test_printing_after_closing(self):
        self.assert_like_plain("import sys\nprint('seen')\nsys.stdout.close()\nprint('no')")

    def test_none(self):
        self.assert_like_plain("import sys\nprint('seen')\nsys.stdout = sys.stderr = None\nprint(1)")

    def test_descriptor_closed(self):
        self.assert_like_plain("import os\nos.write(1, b'seen')\nos.close(1)\nprint('lost')")

    def test_descriptor_replaced(self):
        self.assert_like_plain("import os\nos.write(1, b'seen\\n')\n"
                               "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)\nprint('lost')")

    def test_descriptors_swapped(self):
        result = self.run_code("import os\nos.dup2(2, 1)\nprint('to stderr', flush=True)")
        self.assert_success(result, "")
        self.assertEqual(result["stderr"], "to stderr\n")

    def test_all_descriptors_closed(self):
        with self.within(10):
            result = self.run_code("import os\nos.write(1, b'seen\\n')\nos.closerange(3, 4096)\n"
                                   "print('still')\n5", timeoutS=8)
        self.assertEqual((result["stdout"], result["exitCode"]), ("seen\nstill\n", 0), result)
        self.assertIsNone(result["fault"])

    def test_tampered_modules(self):
        for tampering in ("import json; json.dumps = lambda *a, **k: '{}'",
                          "import socket; socket.socket = None",
                          "import os; os.write = os.read = os._exit = None",
                          "import builtins; builtins.print = builtins.repr",
                          "import builtins; builtins.isinstance = builtins.len = None",
                          "import sys; sys.modules.clear()",
                          "import sys; sys.settrace(lambda *a: None)",
                          "import gc; [o.clear() for o in gc.get_objects()"
                          " if type(o) is dict and o.get('__name__') == 'struct']"):
            with self.subTest(tampering=tampering):
                result = self.run_code(f"import os as o; w = o.write\n{tampering}\nw(1, b'hi')",
                                       timeoutS=8)
                self.assertEqual(result["stdout"], "hi", result)
                self.assertIsNone(result["fault"], result)

    def test_stdin_is_the_callers(self):
        self.assert_success(self.run_code("print(input() + '|' + input())", stdin="a\nb\n"),
                            "a|b\n")
        result = self.run_code("input()")
        self.assertIn("EOFError", result["stderr"])
        self.assertEqual(result["exitCode"], 1)


class Environment(Parity):
    """Text, directories and time are set up as programs expect."""

    def test_encoding_home_temp_and_zone(self):
        result = self.run_code('''
import sys, os, locale, tempfile, time
print(sys.stdout.encoding.lower(), locale.getpreferredencoding(False).lower())
open("u.txt","w").write("é☃"); print(open("u.txt","rb").read().hex())
p = os.path.expanduser("~/.config/x"); os.makedirs(p); open(p+"/y","w").write("1")
tempfile.NamedTemporaryFile().write(b"1"); print(time.tzname[0])
''')
        self.assert_success(result, "utf-8 utf-8\nc3a9e29883\nUTC\n")
        self.assertEqual([entry["path"] for entry in result["files"]], ["u.txt"])

    def test_who_and_where(self):
        self.assert_success(self.run_code("""
import getpass, os, pwd, socket
print(os.getuid(), os.getgid(), getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name, os.getcwd())
print(os.environ["HOME"], os.path.expanduser("~"), socket.gethostname(), os.environ["LANG"])
"""), f"{harness.BOX_UID} {harness.BOX_UID} sandbox {harness.BOX_USER} /workspace\n"
           "/home/sandbox /home/sandbox sandbox C.UTF-8\n")

    def test_a_missing_zone_is_told(self):
        result = self.run_code("import zoneinfo; zoneinfo.ZoneInfo('Mars/Base')")
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("ZoneInfoNotFoundError", result["stderr"])

    def test_random_is_not_repeated(self):
        code = "import os, random; print(random.random(), os.urandom(8).hex(), hash('a'))"
        self.assertEqual(len({self.run_code(code)["stdout"] for _ in range(4)}), 4)

    def test_output_is_not_delayed_to_the_end(self):
        # A pipe is block-buffered in plain Python too; what counts is that all of it arrives.
        result = self.run_code("print('a', end=''); import sys; sys.stderr.write('b')")
        self.assertEqual((result["stdout"], result["stderr"]), ("a", "b"))


if __name__ == "__main__":
    unittest.main()
