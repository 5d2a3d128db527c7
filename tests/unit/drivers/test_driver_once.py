# SPDX-License-Identifier: Apache-2.0
"""A python cell in one-shot mode behaves as a script of the plain interpreter does."""
import os
import re
import sys
import tempfile
import textwrap
import unittest

from driver_harness import Driver, READY, run_once, run_plain

# Each is run both ways; exit code, stdout and stderr have to be the same to the byte.
SAME_AS_PLAIN = {
    "print": "print('hi')",
    "nothing": "",
    "only a comment": "# nothing",
    "error in a function": "def f(x):\n    return 1/x\n\ndef g():\n    f(0)\n\nprint('a')\ng()\n",
    "error in the last expression": "x = {}\nx['k']",
    "chained errors": "try:\n    1/0\nexcept Exception as e:\n    raise KeyError('k') from e\n",
    "error while handling": "try:\n    1/0\nexcept Exception:\n    [][1]\n",
    "group of errors": "raise ExceptionGroup('g', [ValueError(1), KeyError('a')])",
    "notes": "e = ValueError('x'); e.add_note('a note'); raise e",
    "syntax error": "a = 1\nb = = 2\nc = 3\n",
    "syntax error at the end": "a = 1\nprint(a\n",
    "indentation error": "if 1:\nprint(2)\n",
    "unterminated string": "a = 'x\n",
    "await outside of a function": "def f():\n    await g()\n",
    "return at top": "return 1",
    "exit with text": "import sys; sys.exit('bad input')",
    "exit with a float": "import sys; sys.exit(3.5)",
    "exit with 256": "import sys; sys.exit(256)",
    "exit with -1": "import sys; sys.exit(-1)",
    "exit with a large number": "import sys; sys.exit(2**70)",
    "exit with None": "import sys; sys.exit(None)",
    "exit with True": "import sys; sys.exit(True)",
    "exit with a tuple": "import sys; sys.exit((1, 2))",
    "raise SystemExit": "raise SystemExit",
    "exit builtin": "exit(4)",
    "quit builtin": "quit()",
    "os._exit": "import os; print('lost'); os._exit(7)",
    "killed by itself": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted by itself": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n",
    "interrupt handled": "import os, signal\ntry:\n    signal.raise_signal(2)\n"
                         "except KeyboardInterrupt:\n    print('caught')\n",
    "abort": "import os; os.abort()",
    "recursion": "def f(): f()\ntry:\n    f()\nexcept RecursionError as e:\n    print(e)\n",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('hi')\n1/0\n",
    "atexit after exit": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(5)\n",
    "error in atexit": "import atexit\natexit.register(lambda: 1/0)\n",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1/0\n",
    "broken excepthook": "import sys\nsys.excepthook = lambda *a: {}['x']\n1/0\n",
    "exit in the excepthook": "import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1/0\n",
    "destructor at the end": "class A:\n    def __del__(self): print('gone')\na = A()\n",
    "unclosed file is written": "f = open('x', 'w'); f.write('abc')\nimport atexit\n",
    "late thread": "import threading, time\ndef w():\n    time.sleep(0.2)\n    print('late')\n"
                   "threading.Thread(target=w).start()\nprint('first')\n",
    "error in a thread": "import threading\ndef w(): raise ValueError('in thread')\n"
                         "t = threading.Thread(target=w, name='T'); t.start(); t.join()\n",
    "byte order mark": "\ufeffprint(1)",
    "carriage returns": "x = 1\r\nprint(x)\r\nprint('''a\r\nb''')\r\n",
    "a long text": "x = 1  # " + "\u20ac" * 3000 + "\nprint(x)\n" + "#" * 4096,
    "a last statement that is no expression": "x = 1\nfor x in (2, 3): print(x)\n",
    "a last statement that ends nowhere": "x = 1\nwhile x: print(\n",
    "a last word that is a statement's in part": "passing = returned = 1\nprint(passing)\nreturned\n",
    "form feed": "\x0cprint(1)\n\x0cprint(2)\n",
    "future annotations": "from __future__ import annotations\ndef f(a: nope): pass\n"
                          "print(f.__annotations__)\n",
    "late future import": "x = 1\nfrom __future__ import annotations\n",
    "docstring": "'''the doc'''\nprint(__doc__)\n",
    "module names": "print(__name__, __file__, __spec__, __package__, __cached__, __doc__)\n"
                    "import sys\nprint(sys.argv, sys.modules['__main__'].__dict__ is globals())\n"
                    "print(type(__loader__).__name__, __builtins__.__name__, __annotations__)\n",
    "flags": "import sys, subprocess\nprint(subprocess._args_from_interpreter_flags())\n"
             "print(sys.flags.no_site, sys.flags.isolated, tuple(sys.flags)[:4])\n"
             "print(sys.flags)",
    "streams": "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n"
               "    print(s.encoding, s.errors, s.line_buffering, s.name, s.isatty())\n",
    "stdin": "import sys\nprint(input(), sys.stdin.read())\n",
    "signals": "import signal\nfor s in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM):\n"
               "    print(signal.getsignal(s))\n",
    "warnings": "import warnings\nwarnings.warn('careful')\n",
    "order of the streams": "import sys, os\nprint('a', flush=True)\nos.write(1, b'b\\n')\nprint('c')\n",
    "bytes that are not text": "import sys; w = sys.stdout.buffer.write\nw(b'ok\\xff\\xfe\\x80end\\n')\n",
    "surrogates": "print('\\udcff')",
    "threads and modules": "import threading\nprint(threading.main_thread() is "
                           "threading.current_thread(), threading.active_count())\n",
    "closed stdout": "import sys\nprint('x')\nsys.stdout.close()\n",
    "closed descriptor": "import os\nprint('x')\nos.close(1)\n",
    "None as stdout": "import sys\nsys.stdout = None\nprint('x')\n",
    "fork": "import os, sys\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
            "print('child' if pid == 0 else 'parent')\n",
    "inspect": "import inspect\ndef f():\n    return 1\nclass C:\n    x = 1\n"
               "print(inspect.getsource(f), inspect.getsource(C))\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)",
}


ADDRESS = re.compile("0x[0-9a-f]+")


class SameAsPlain(unittest.TestCase):
    def test_every_case(self):
        for name, code in SAME_AS_PLAIN.items():
            with self.subTest(name):
                ours, plain = run_once(code, b"one\ntwo\n"), run_plain(code, b"one\ntwo\n")
                self.assertEqual((ours.code, ours.stdout, ADDRESS.sub("0x", ours.stderr)),
                                 (plain.code, plain.stdout, ADDRESS.sub("0x", plain.stderr)))


def run_text(code, **options):
    return run_once(textwrap.dedent(code), **options)


class Results(unittest.TestCase):
    def texts(self, code, **options):
        done = run_text(code, **options)
        self.assertEqual((done.code, done.stderr), (0, ""))
        return [(result.is_main, result.text) for result in done.results]

    def test_last_expression(self):
        for code, text in {
            "42": "42", "x = 1\nx + 1": "2", "x = 1; x": "1", "[1,\n 2,\n]": "[1, 2]",
            "def f():\n    return 5\nf()": "5", "'a'\n\n# the end\n": "'a'", "3;": "3",
            "'''a\nb'''": "'a\\nb'", "elsewhere = 1\nelsewhere": "1", "case = 2\ncase": "2",
            "x = '''\na\n'''\nx": "'\\na\\n'", "(\n1\n)": "1", "f\"{1+1}\"": "'2'",
            "from __future__ import annotations\n1": "1", "lambda: 1": None, "\x0c7": "7",
        }.items():
            with self.subTest(code):
                done = run_once(code)
                self.assertEqual((done.code, done.stderr, len(done.results)), (0, "", 1))
                self.assertTrue(done.results[0].is_main)
                if text is not None:
                    self.assertEqual(done.results[0].text, text)

    def test_no_result(self):
        for code in ("x = 1", "None", "print(1)", "", "if 1:\n    2\n", "for i in (1,):\n    i",
                     "x = [\n1\n]", "s = '''\nx\n'''", "def f(): pass", "if 0:\n  1\nelse:\n  2\n",
                     "@staticmethod\ndef f(): pass", "x: int = 1", "x = 1;", "import os"):
            with self.subTest(code):
                done = run_once(code)
                self.assertEqual((done.code, done.stderr, done.results), (0, "", []))

    def test_the_last_expression_runs_once(self):
        self.assertEqual(run_once("print('x') or 1").stdout, "x\n")
        self.assertEqual(run_once("print('x');").stdout, "x\n")

    def test_display(self):
        self.assertEqual(
            self.texts("display(1)\ndisplay(None)\nimport builtins\nbuiltins.display('b', 3)\n4"),
            [(False, "1"), (False, "'b'"), (False, "3"), (True, "4")])

    def test_display_from_a_thread_and_at_exit(self):
        self.assertEqual(
            self.texts("import threading, atexit\natexit.register(display, 'end')\n"
                       "t = threading.Thread(target=display, args=('t',))\nt.start(); t.join()"),
            [(False, "'t'"), (False, "'end'")])

    def test_results_before_an_error_are_kept(self):
        done = run_once("display(1)\n1/0")
        self.assertEqual((done.code, [result.text for result in done.results]), (1, ["1"]))

    def test_many_displays_arrive_in_order(self):
        texts = self.texts("for i in range(3000): display(i)")
        self.assertEqual(texts, [(False, str(i)) for i in range(3000)])

    def test_parallel_displays_do_not_mix(self):
        texts = self.texts("""
            import threading
            def work(letter):
                for _ in range(100): display(letter * 5000)
            threads = [threading.Thread(target=work, args=(c,)) for c in "abcd"]
            [t.start() for t in threads]
            [t.join() for t in threads][0]
            """)
        self.assertEqual(len(texts), 400)
        for _, text in texts:
            self.assertIn(text, [repr(letter * 5000) for letter in "abcd"])

    def test_signal_handlers_do_not_break_frames(self):
        done = run_text("""
            import signal
            class Tick(Exception): pass
            def tick(*_):
                global inside
                if inside:
                    inside = False
                    raise Tick
            ticks, inside = 0, False
            signal.signal(signal.SIGALRM, tick)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            while ticks < 200:
                try:
                    inside = True
                    while True:
                        display("x" * 300000)
                except Tick:
                    ticks += 1
            signal.setitimer(signal.ITIMER_REAL, 0, 0)
            print("done")
            """)
        self.assertEqual((done.code, done.stdout), (0, "done\n"), done.stderr)
        for result in done.results:
            self.assertEqual(len(result.text), 300002)

    def test_a_long_text_is_shortened_and_says_so(self):
        result, = run_once("'x' * 3000000", text_max=1000).results
        self.assertTrue(result.shortened)
        self.assertEqual(result.text, "'" + "x" * 999 + "... (3000002 bytes in all)")
        result, = run_once("'é' * 3000", text_max=1000).results
        self.assertTrue(result.text.startswith("'" + "é" * 499 + "..."))
        result, = run_once("'x' * 10", text_max=12).results
        self.assertFalse(result.shortened)

    def test_top_level_await(self):
        self.assertEqual(self.texts("import asyncio\nawait asyncio.sleep(0)\n'ok'"),
                         [(True, "'ok'")])
        self.assertEqual(self.texts("async def f(): return 3\nawait f()"), [(True, "3")])
        done = run_once("import asyncio\nasync def m(): return 7\nawait m()\nasyncio.run(m())")
        self.assertEqual((done.code, done.results[0].text), (0, "7"))
        done = run_once("async def f():\n    1/0\nawait f()")
        self.assertEqual(done.code, 1)
        self.assertEqual(done.stderr, 'Traceback (most recent call last):\n'
                         '  File "HOME/cell.py", line 3, in <module>\n    await f()\n'
                         '  File "HOME/cell.py", line 2, in f\n    1/0\n    ~^~\n'
                         'ZeroDivisionError: division by zero\n')

    def test_notebook_lines_are_explained(self):
        for code, words in {"!ls": "a shell line", "x = 1\n%pip install x": "a magic line",
                            "%%bash\nls": "a magic line"}.items():
            done = run_once(code)
            self.assertEqual(done.code, 1)
            self.assertIn("SyntaxError", done.stderr)
            self.assertIn(words + " of notebooks, not Python", done.stderr)


class Surroundings(unittest.TestCase):
    def test_ready_names_the_interpreter(self):
        with Driver() as driver:
            kind, payload = driver.ready
            self.assertEqual(kind, READY)
            self.assertRegex(payload, rb"^\x01python 3\.\d+\.\d+$")

    def test_the_path_is_that_of_a_script_in_the_workspace(self):
        code = "import sys; print([p.replace('HOME', '') for p in sys.path])"
        with Driver() as driver:
            workspace = driver.workspace
        self.assertTrue(workspace.endswith("/ws"))
        ours = run_once(code, env={"PYTHONPATH": "/x:/y"}).stdout
        plain = run_plain(code).stdout
        self.assertEqual(ours.replace("HOME/ws', '/x', '/y'", "HOME'"), plain)

    def test_modules_of_the_workspace_come_first_and_break_nothing(self):
        names = ["json", "traceback", "os", "re", "asyncio", "ast", "io", "socket", "_socket",
                 "base64", "binascii", "linecache", "site", "_sitebuiltins", "driver_wire",
                 "driver_cell", "threading", "types", "enum", "posix", "builtins"]
        files = {name + ".py": "raise SystemError('shadow')" for name in names}
        files["helper.py"] = "answer = 42"
        done = run_once("import helper\nclass J:\n    def _repr_json_(self): return {'a': 1}\n"
                        "    def _repr_png_(self): return b'x'\ndisplay(J())\nhelper.answer\n1/0",
                        files=files)
        self.assertEqual(done.code, 1)
        self.assertIn("ZeroDivisionError", done.stderr)
        self.assertEqual(done.results[0].data["application/json"], '{"a":1}')
        done = run_once("import json", files=files)
        self.assertIn("SystemError: shadow", done.stderr)

    def test_path_files(self):
        """Paths in .pth files count from the start, code in them from the first foreign import."""
        with tempfile.TemporaryDirectory() as home:
            version = "python%d.%d" % sys.version_info[:2]
            site = f"{home}/.local/lib/{version}/site-packages"
            os.makedirs(site + "/extra")
            os.makedirs(site + "/space/inner")
            for name, text in {
                "a.pth": "# note\n\nextra\nabsent\nimport sys; sys.first = getattr(sys, 'first', 0) + 1\n",
                "b.pth": "import no_such_module\nimport sys, types; "
                         "sys.modules['space'] = m = types.ModuleType('space'); "
                         "m.__path__ = [sys._getframe(1).f_locals['sitedir'] + '/space']\n",
                "extra/other.py": "import sys\nfirst = sys.first\n",
                "space/__init__.py": "raise SystemError('not to be run')\n",
                "space/inner/leaf.py": "value = 7\n",
            }.items():
                with open(os.path.join(site, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = run_once("import sys, json\nprint(hasattr(sys, 'first'))\n"
                            "import space\nprint(sys.first, space.__spec__)\n"
                            "from space.inner import leaf\nimport other\n"
                            "print(leaf.value, other.first, sys.first)", env={"HOME": home})
        self.assertEqual((done.code, done.stdout), (0, "False\n1 None\n7 1 1\n"), done.stderr)
        self.assertIn("b.pth: ModuleNotFoundError", done.stderr)

    def test_replaced_builtins_break_nothing(self):
        done = run_text("""
            import builtins, sys
            for name in ("repr", "len", "compile", "eval", "isinstance", "type", "str"):
                setattr(builtins, name, None)
            sys.modules.pop("sys"); sys.meta_path.clear()
            5
            """)
        self.assertEqual((done.code, done.results[0].text), (0, "5"))

    def test_descriptors_of_a_child(self):
        done = run_text("""
            import subprocess
            print(subprocess.run(["ls", "/proc/self/fd"], close_fds=False,
                                 stdout=subprocess.PIPE, text=True).stdout.split())
            """)
        self.assertEqual(done.stdout, "['0', '1', '2', '3']\n")

    def test_a_forked_child_sends_nothing(self):
        done = run_text("""
            import os, ctypes
            for fork in (os.fork, ctypes.CDLL(None).fork):
                if fork() == 0:
                    display("child")
                    os._exit(0)
                os.wait()
            "parent"
            """)
        self.assertEqual([result.text for result in done.results], ["'parent'"])

    def test_closed_descriptors_cost_only_the_results(self):
        done = run_once("import os\nos.closerange(3, 4096)\ndisplay(1)\nprint('on')\n2")
        self.assertEqual((done.code, done.stdout, done.stderr), (0, "on\n", ""))
        done = run_once("import os\nos.closerange(3, 64)\n2")
        self.assertEqual(done.results[0].text, "2")

    def test_few_descriptors_are_enough(self):
        done = run_once("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n1")
        self.assertEqual(done.results[0].text, "1")

    def test_a_pool_of_each_start_method(self):
        for method in ("fork", "spawn", "forkserver"):
            done = run_text(f"""
                import multiprocessing as mp
                def sq(x): return x*x
                if __name__ == "__main__":
                    with mp.get_context("{method}").Pool(2) as p:
                        print(p.map_async(sq, [1, 2, 3]).get(timeout=30))
                """)
            self.assertEqual((done.code, done.stdout), (0, "[1, 4, 9]\n"), done.stderr)

    def test_a_spawned_child_has_its_site_packages(self):
        done = run_text("""
            import multiprocessing as mp, sys
            def look(_): return sys.flags.no_site, exit is not None
            if __name__ == "__main__":
                with mp.get_context("spawn").Pool(1) as p: print(p.map(look, [1]))
            """)
        self.assertEqual(done.stdout, "[(0, True)]\n")

    def test_environment_and_directory_of_the_request(self):
        done = run_once("import os\nprint(os.environ['A'], os.getcwd())\n"
                        "os.system('echo $A')", env={"A": "old"},
                        environment=b"A=new\0B=\0", directory=b"/tmp")
        self.assertEqual(done.stdout, "new\nnew /tmp\n")

    def test_live_output_leaves_at_each_line(self):
        code = "import os\nprint('kept')\nos.kill(os.getpid(), 9)"
        self.assertEqual(run_once(code).stdout, "")
        self.assertEqual(run_once(code, live=True).stdout, "kept\n")

    def test_a_driver_whose_server_goes_away_ends(self):
        with Driver() as driver:
            driver.connection.close()
            self.assertEqual(driver.process.wait(30), 0)


class Preload(unittest.TestCase):
    def test_modules_are_there_and_nothing_else_is_different(self):
        code = ("import sys\nprint('wave' in sys.modules, 'xml.dom' in sys.modules, 'wave' in dir())\n"
                "print(sys.argv, __name__, sys.path[0])")
        preloaded = run_once(code, preload=["wave", "xml.dom"])
        plain = run_once(code)
        self.assertEqual(preloaded.stdout, plain.stdout.replace("False False False", "True True False"))
        self.assertEqual((preloaded.code, preloaded.stderr), (0, ""))

    def test_what_can_not_be_imported_is_passed_over(self):
        files = {"own.py": "value = 1"}
        outcome = run_once("import sys\nprint('own' in sys.modules, 'wave' in sys.modules)\nimport own",
                           files=files, preload=["no_such_module", "own", "wave"])
        self.assertEqual((outcome.code, outcome.stdout, outcome.stderr), (0, "False True\n", ""))

    def test_output_of_imports_is_lost(self):
        outcome = run_once("print(1)", preload=["this"])  # which prints
        self.assertEqual((outcome.stdout, outcome.stderr), ("1\n", ""))


if __name__ == "__main__":
    unittest.main()
