# SPDX-License-Identifier: Apache-2.0
"""Cells of kernels: what the code of one may do to its output, to the next cells, to its kernel."""
import base64
import json
import os
import time
import unittest

import census
import harness
import kernelkit
from templatekit import Forked

PNG = "iVBORw0KGgo="


class Output(Forked, kernelkit.Case):
    def test_bytes_that_are_not_text(self):
        kernel = self.kernel()
        writes = ('w(b"ok\\xff\\xfe\\x80end\\n"); w(b"A\\xe2\\x82B\\n"); w(b"\\xed\\xa0\\x80x\\n"); '
                  'w(b"50%\\r100%\\rdone")')
        wanted = "ok\ufffd\ufffd\ufffdend\nA\ufffdB\n\ufffd\ufffd\ufffdx\n50%\r100%\rdone"
        for stream, write in (("stdout", "sys.stdout.buffer.write"),
                              ("stdout", "lambda b: os.write(1, b)"),
                              ("stderr", "lambda b: os.write(2, b)")):
            result = kernel.cell(f"import sys, os; w = {write}; {writes}; None")
            self.assert_success(result)
            self.assertEqual(result[stream], wanted)
        result = kernel.cell("import os; os.write(1, b'\\xff\\0') and None",
                             stdoutEncoding="base64")
        self.assertEqual(base64.b64decode(result["stdout"]), b"\xff\0")

    def test_a_character_in_pieces(self):
        kernel = self.kernel()
        reply = self.daemon.post(
            f"{kernel.path}/cells",
            {"code": "import os\nfor b in 'é☃😀'.encode(): os.write(1, bytes([b]))\n"},
            headers={"Accept": "application/x-ndjson"})
        events = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual("".join(e["data"] for e in events if e["type"] == "stdout"), "é☃😀")

    def test_a_child_in_the_background(self):
        mark = harness.new_mark()
        kernel = self.kernel(self.new_session(env={"MARK": mark}))
        with self.within(3):
            result = kernel.cell("import subprocess; p = subprocess.Popen(['sleep', '25']); "
                                 "print('done')")
        self.assert_success(result, "done\n")
        kernel.delete()
        self.assert_gone(mark)

    def test_too_much(self):
        kernel = self.kernel()
        result = kernel.cell("for i in range(200000): print(i)", maxOutputBytes=4096)
        self.assertEqual((result["exitCode"], result["fault"], result["truncated"]),
                         (0, None, True))
        self.assertEqual(len(result["stdout"]), 4096)
        self.assertTrue(result["stdout"].startswith("0\n1\n2\n"))
        self.assert_alive(kernel)
        result = kernel.cell("import os, time; os.write(1, b'kept\\n'); time.sleep(60)",
                             timeoutS=1)
        self.assert_fault(result, "timeout")
        self.assertEqual((result["stdout"], result["stateKept"]), ("kept\n", True))
        result = kernel.cell("os.write(2, b'e' * 300000); os.write(1, b'o' * 300000); None")
        self.assertEqual((len(result["stdout"]), len(result["stderr"])), (300000, 300000))
        self.assert_alive(kernel)

    def test_seventy_mebibytes(self):
        kernel = self.kernel()
        result = kernel.cell("print('x' * (70 << 20))")
        self.assertTrue(result["truncated"])
        self.assertEqual(len(result["stdout"]), 64 << 20)
        self.assertEqual(result["stdout"].strip("x"), "")
        self.assert_alive(kernel)

    def test_eight_mebibytes_of_raw_output(self):
        kernel = self.kernel()
        result = kernel.cell("import os; os.write(1, b'y' * (8 << 20)) and None\n"
                             "while False: pass")
        self.assert_success(result)
        self.assertLessEqual(len(result["stdout"]), 8 << 20)  # what one call of write took
        self.assertEqual(result["stdout"].strip("y"), "")
        result = kernel.cell("data = memoryview(b'z' * (8 << 20))\n"
                             "while data: data = data[os.write(1, data):]")
        self.assert_success(result)
        self.assertEqual(result["stdout"], "z" * (8 << 20))

    def test_what_a_cell_does_to_its_streams(self):
        for code in ("import sys, io; sys.stdout = io.StringIO()",
                     "import sys; sys.stdout.close()",
                     "import sys; sys.stdout = sys.stderr = None",
                     "import os; os.close(1)",
                     "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
                     "import os; os.close(0); os.close(1); os.close(2)",
                     "import sys; sys.stdout.detach()"):
            with self.subTest(code=code):
                kernel = self.kernel()
                kernel.cell(code)
                with self.within(2):
                    self.assert_success(kernel.cell('print("second")'), "second\n")
                self.assert_alive(kernel)

    def test_what_a_cell_does_to_the_driver(self):
        kernel = self.kernel()
        kernel.cell("import json; json.dumps = lambda *a, **k: '{}'\n"
                    "import builtins, sys\nbuiltins.print = print")
        self.assert_success(kernel.cell("print('hi')"), "hi\n")
        kernel = self.kernel()
        reply = kernel.post("import os; os.closerange(3, 1024)")
        if reply.json["stateKept"]:
            self.assert_alive(kernel)
        else:
            self.assert_fault(reply.json, "killed")
            self.assert_dead(kernel, "^(exit|signal|protocol)")
            self.assert_restarts(kernel)

    def test_threads_that_outlive_their_cell(self):
        kernel = self.kernel()
        result = kernel.cell(
            "import threading, os\n"
            "def w():\n"
            "    while not os.path.exists('go'): time.sleep(0.01)\n"
            "    print('late-1'); open('done', 'w').close()\n"
            "import time\nthreading.Thread(target=w).start()\nprint('c1')")
        self.assertEqual((result["stdout"], result["background"]), ("c1\n", None))
        self.daemon.request("PUT", f"/v1/sessions/{self.session}/files/go", b"",
                            media_type="application/octet-stream")
        kernel.wait_for_file("done")
        result = kernel.cell('print("c2")')
        self.assertEqual((result["stdout"], result["background"]),
                         ("c2\n", {"stdout": "late-1\n", "stderr": ""}))
        result = kernel.cell("1")
        self.assertEqual((result["stdout"], result["background"]), ("", None))
        self.assert_alive(kernel)

    def test_input(self):
        kernel = self.kernel()
        self.assertIn("EOFError", kernel.cell("input()")["stderr"])
        self.assertEqual(kernel.value("input()", stdin="line\nrest"), "'line'")
        self.assertEqual(kernel.value("import sys; sys.stdin.read()"), "''")
        self.assertEqual(kernel.value("import subprocess; subprocess.run(['cat'], "
                                      "capture_output=True).stdout", stdin="all"), "b'all'")

    def test_subprocesses_and_raw_writes(self):
        kernel = self.kernel()
        result = kernel.cell("import subprocess, os; print('a', flush=True); os.write(1, b'b\\n')\n"
                             "subprocess.run(['echo', 'c']); os.system('echo d'); None")
        self.assert_success(result, "a\nb\nc\nd\n")


class Results(Forked, kernelkit.Case):
    FIGURE = """
import sys, types
m = types.ModuleType("matplotlib.pyplot"); open_ = [1]
class F:
    def savefig(self, b, format="png", **k): b.write(b"\\x89PNG\\r\\n\\x1a\\n")
m.get_fignums = lambda: list(open_); m.figure = lambda n=None: F()
m.close = lambda *a: open_.clear()
sys.modules["matplotlib.pyplot"] = m
"""

    def test_a_figure_is_shown_once(self):
        kernel = self.kernel()
        result = kernel.cell(self.FIGURE)
        self.assertEqual([r["data"].get("image/png") for r in result["results"]], [PNG])
        result = kernel.cell("1")
        self.assertEqual([r["data"] for r in result["results"]], [{"text/plain": "1"}])

    def test_numbers_that_json_lacks(self):
        kernel = self.kernel()
        result = kernel.cell('class J:\n    def _repr_json_(self): return {"a": float("nan"), '
                             '"b": [float("inf"), -float("inf")], "c": 1.5}\nJ()')
        self.assertEqual(result["results"][0]["data"]["application/json"],
                         {"a": None, "b": [None, None], "c": 1.5})
        self.assertIn("text/plain", result["results"][0]["data"])

    def test_reprs_that_fail(self):
        kernel = self.kernel()
        result = kernel.cell('class R:\n    def __repr__(self): raise ValueError("boom-42")\nR()')
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))  # as without a kernel
        everything = json.dumps(result)
        self.assertTrue("ValueError" in everything and "boom-42" in everything, result)
        self.assertIn("digits", json.dumps(kernel.cell("10**5000")))
        result = kernel.cell("class E:\n    def __repr__(self):\n        while True: pass\nE()",
                             timeoutS=1)
        self.assert_fault(result, "timeout")
        self.assert_alive(kernel)
        reply = kernel.post('"x" * 3_000_000', maxOutputBytes=1 << 20)
        self.assertLess(len(reply.body), 2 << 20)
        self.assertTrue(reply.json["results"][0]["truncated"], reply.body[:500])
        self.assert_alive(kernel)

    def test_ten_thousand_results(self):
        kernel = self.kernel()
        result = kernel.cell("for i in range(10000): display(i)")
        self.assertEqual((result["exitCode"], result["fault"]), (0, None))
        self.assertTrue(len(result["results"]) == 10000 or result["resultsTruncated"])
        self.assertGreaterEqual(len(result["results"]), 100)
        self.assertEqual(result["results"][7]["data"]["text/plain"], "7")
        self.assert_alive(kernel)

    def test_bundles(self):
        kernel = self.kernel()
        result = kernel.cell("""
class M:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": "<i>x</i>", "application/vnd.vegalite.v5+json": {"a": 1},
                "image/png": b"\\x89PNG\\r\\n\\x1a\\n"}, {"image/png": {"width": 1}}
M()""")
        data = result["results"][0]["data"]
        self.assertEqual((data["text/html"], data["application/vnd.vegalite.v5+json"],
                          data["image/png"]), ("<i>x</i>", {"a": 1}, PNG))
        result = kernel.cell("""
class P:
    def _repr_png_(self): return b"\\x89PNG\\r\\n\\x1a\\n", {"width": 1}
P()""")
        self.assertEqual(result["results"][0]["data"]["image/png"], PNG)

    def test_an_import_that_was_interrupted_and_is_tried_again(self):
        kernel = self.kernel(self.new_session())
        kernel.cell("import os, sys; os.mkdir('matplotlib'); open('matplotlib/__init__.py', 'w')\n"
                    "sys.path.insert(0, os.getcwd())\n"
                    "with open('matplotlib/pyplot.py', 'w') as file:\n"
                    "    file.write('import sys\\nif not hasattr(sys, \"tried\"):\\n'\n"
                    "               '    sys.tried = 1\\n    raise KeyboardInterrupt\\n'\n"
                    "               'def get_fignums(): return []\\ndef show(): pass\\n')")
        result = kernel.cell("import matplotlib.pyplot")
        self.assertEqual(result["exitCode"], 130, result)
        self.assertIn("figures", kernel.value("import matplotlib.pyplot as p; p.show.__doc__"))


class Python(Forked, kernelkit.Case):
    def test_state(self):
        kernel = self.kernel()
        self.assertEqual(kernel.cell("x = 20")["results"], [])
        result = kernel.cell("1/0")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertEqual(kernel.value("x + 22"), "42")

    def test_without_descriptors(self):
        """None is left to read a file with, and what the code did wrong is told all the same."""
        kernel = self.kernel()
        result = kernel.cell("import os\nkept = []\nwhile True: kept.append(os.dup(0))")
        self.assertEqual((result["exitCode"], result["stderr"].splitlines()[-1]),
                         (1, "OSError: [Errno 24] Too many open files"))
        self.assertNotIn("driver", result["stderr"])
        self.assertEqual(kernel.value("[os.close(each) for each in kept][0]; 42"), "42")

    def test_pickling_and_pools(self):
        kernel = self.kernel()
        kernel.cell("class A: pass\ndef sq(x): return x*x")
        self.assertEqual(kernel.value(
            "import pickle; type(pickle.loads(pickle.dumps(A()))).__name__"), "'A'")
        result = kernel.cell(
            'import multiprocessing as mp\nif __name__ == "__main__":\n'
            '    with mp.get_context("fork").Pool(2) as p: '
            'print(p.map_async(sq,[1,2,3]).get(timeout=8))')
        self.assert_success(result, "[1, 4, 9]\n")
        self.assert_alive(kernel)

    def test_exits(self):
        kernel = self.kernel()
        for value, code, stderr in (('"bad input"', 1, "bad input\n"), ("3.5", 1, "3.5\n"),
                                    ("256", 0, ""), ("-1", 255, ""), ("None", 0, "")):
            result = kernel.cell(f"import sys; sys.exit({value})")
            self.assertEqual((result["exitCode"], result["stderr"], result["fault"]),
                             (code, stderr, None))
            self.assert_alive(kernel)
        self.assertEqual(kernel.cell("raise SystemExit")["exitCode"], 0)

    def test_notebook_dialect(self):
        kernel = self.kernel()
        self.assertEqual(kernel.value('import asyncio\nawait asyncio.sleep(0)\n"ok"'), "'ok'")
        self.assertEqual(kernel.value("async def m(): return 7\nasyncio.run(m())"), "7")
        for code in ("!ls", "%pip install x"):
            result = kernel.cell(code)
            self.assertEqual(result["exitCode"], 1)
            self.assertRegex(result["stderr"], "(?i)python")
        self.assert_alive(kernel)

    def test_forks(self):
        kernel = self.kernel()
        result = kernel.cell('import os\npid = os.fork()\nprint("in", "child" if pid == 0 else '
                             '"parent", flush=True)\nif pid: os.waitpid(pid, 0)')
        self.assertEqual(sorted(result["stdout"].splitlines()), ["in child", "in parent"])
        for _ in range(15):
            kernel.cell("pid = os.fork()")
        self.assertEqual(kernel.value("os.waitpid(pid, 0)[1]"), "0")
        self.assert_alive(kernel)

    def test_tracebacks_know_earlier_cells(self):
        kernel = self.kernel()
        kernel.cell("def f():\n    return 1 / 0  # here")
        result = kernel.cell("f()")
        self.assertIn("1 / 0  # here", result["stderr"])
        self.assertIn("def f()", kernel.value("import inspect; inspect.getsource(f)"))

    def test_threads_beyond_the_limit(self):
        kernel = self.kernel(self.new_session(pids=16))
        result = kernel.cell("import threading, time\nfor i in range(200):\n"
                             "    threading.Thread(target=time.sleep, args=(600,), "
                             "daemon=True).start()")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIn("RuntimeError", result["stderr"])
        self.assertIn("thread", result["stderr"])
        self.assert_alive(kernel)

    def test_orphans_are_collected(self):
        kernel = self.kernel(self.new_session(pids=64))
        result = kernel.cell("import subprocess\nfor i in range(300):\n"
                             "    subprocess.run(['sh', '-c', 'sleep 0.01 & exit 0'])\n"
                             "print('ok')", timeoutS=120)
        self.assert_success(result, "ok\n")
        self.assert_success(kernel.cell("subprocess.run(['echo', 'more']) and None"), "more\n")

    def test_modules_of_the_workspace_do_not_shadow(self):
        session = self.new_session()
        self.daemon.request("PUT", f"/v1/sessions/{session}/files/json.py", b"raise SystemError",
                            media_type="application/octet-stream")
        kernel = self.kernel(session)
        self.assertIn("SystemError", kernel.cell("import json")["stderr"])
        self.assert_alive(kernel)


class Deaths(Forked, kernelkit.Case):
    def setUp(self):
        super().setUp()
        self.small = self.new_session(memoryMb=256, timeoutS=10)

    def die(self, code, limit=5):
        kernel = self.kernel(self.small)
        kernel.cell("open('kept', 'w').write('1')")
        with self.within(limit):
            result = kernel.cell(code)
        return kernel, result

    def assert_died(self, code, exit_code, reason):
        kernel, result = self.die(code)
        self.assert_fault(result, "killed")
        self.assertEqual((result["exitCode"], result["stateKept"]), (exit_code, False))
        self.assertIn(reason, result["fault"]["message"])
        self.assert_dead(kernel, "^" + reason.replace("(", r"\(").replace(")", r"\)"))
        other = self.kernel(self.small)
        self.assertEqual(other.value("open('kept').read()"), "'1'")
        other.delete()
        self.assert_restarts(kernel)

    def test_exit_status(self):
        self.assert_died("print('last words', flush=True)\nimport os; os._exit(3)", 3,
                         "exit status 3")
        self.assert_died("import os; os._exit(0)", 0, "exit status 0")

    def test_last_words_are_kept(self):
        _, result = self.die("import os; os.write(1, b'x' * 50000); os._exit(3)")
        self.assertEqual(result["stdout"], "x" * 50000)

    def test_signals(self):
        self.assert_died("import ctypes; ctypes.string_at(0)", 139, "signal 11 (SEGV)")
        self.assert_died("import os; os.kill(os.getpid(), 15)", 143, "signal 15 (TERM)")
        self.assert_died("import os; os.kill(os.getpid(), 9)", 137, "signal 9 (KILL)")

    def test_recursion(self):
        kernel, result = self.die("def f(): f()\nf()")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIn("RecursionError", result["stderr"])
        self.assert_alive(kernel)
        kernel, result = self.die("import sys; sys.setrecursionlimit(10**9)\n"
                                  "def f(): f()\nf()", limit=15)
        self.assertNotEqual((result["fault"] or {}).get("type"), "startup_failed")

    def test_death_between_cells(self):
        kernel, result = self.die("import signal; signal.alarm(1)")
        self.assert_success(result)
        kernel.wait_for("dead")
        self.assert_dead(kernel, r"^signal 14 \(ALRM\)")
        self.assert_restarts(kernel)

    def test_death_seen_by_the_next_cell(self):
        kernel, _ = self.die("import threading, os, time\n"
                             "def end(): time.sleep(0.2); open('dying', 'w').close(); os._exit(4)\n"
                             "threading.Thread(target=end).start()")
        kernel.wait_for_file("dying")
        time.sleep(0.05)
        reply = kernel.post("1")
        if reply.status == 200:  # it had just begun
            self.assert_fault(reply.json, "killed")
        else:
            self.assert_problem(reply, 409, "kernel_dead")
        self.assert_dead(kernel, "^exit status 4")

    def test_memory(self):
        # Where no cgroup counts it, who looks at it may come a while later.
        kernel, result = self.die("import time\nb = b'x' * (600 << 20)\ntime.sleep(15)", limit=20)
        self.assert_fault(result, "oom")
        self.assertTrue(result["fault"]["evidence"], result)
        self.assertIs(result["stateKept"], False)
        self.assert_dead(kernel, "^oom: .+")

    def test_memory_of_an_idle_one(self):
        kernel, result = self.die(
            "import threading, time\nkept = []\n"
            "def grow():\n    time.sleep(0.3)\n    while True: kept.append(b'x' * (8 << 20)); "
            "time.sleep(0.01)\nthreading.Thread(target=grow, daemon=True).start()")
        self.assert_success(result)
        kernel.wait_for("dead", limit=20)
        self.assert_dead(kernel, "^oom: .+")

    def test_system_calls_that_kill(self):
        kernel, result = self.die("import ctypes; ctypes.CDLL(None).syscall(165, 0, 0, 0, 0, 0)")
        self.assertTrue(result["fault"] is None or
                        result["fault"]["type"] in ("escape_blocked", "killed"), result)

    def test_cells_that_wait_for_a_dying_kernel(self):
        kernel = self.kernel()
        first = kernel.start("import time, os; open('begun', 'w').close()\n"
                             "while not os.path.exists('go'): time.sleep(0.01)\nos._exit(7)")
        kernel.wait_for_file("begun")
        rest = [kernel.start("print(1)") for _ in range(3)]
        census.wait_until(lambda: kernel.get()["queued"] == 3, harness.seconds(5), "the queue")
        self.daemon.request("PUT", f"/v1/sessions/{self.session}/files/go", b"",
                            media_type="application/octet-stream")
        self.assert_fault(first().json, "killed")
        for wait in rest:
            reply = wait()
            self.assert_problem(reply, 409, "kernel_dead")
            self.assertIn("exit status 7", reply.json["detail"])


class Hostile(Forked, kernelkit.Case):
    """The code of a cell lives in the driver's process, so it can send what it likes."""

    FORGE = """
import os, socket, struct
def frame(kind, payload): return bytes([kind]) + struct.pack(">I", len(payload)) + payload
link = None
for fd in range(3, 1024):
    try:
        with socket.socket(fileno=os.dup(fd)) as s:
            s.getpeername()
            link = fd
    except OSError: pass
assert link is not None
def send(data): os.write(link, data)
"""

    def setUp(self):
        super().setUp()
        self.neighbour = self.kernel(id="neighbour")
        self.neighbour.cell("x = 'safe'")

    def forge(self, code):
        kernel = self.kernel()
        reply = kernel.post(self.FORGE + code, timeoutS=5)
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.neighbour.value("x"), "'safe'")
        return kernel, reply.json

    def assert_protocol(self, code):
        kernel, result = self.forge(code)
        self.assert_fault(result, "killed")
        self.assertIs(result["stateKept"], False)
        self.assert_dead(kernel, "^protocol")
        self.assert_restarts(kernel)

    def test_broken_frames(self):
        for code in ("send(frame(19, b''))", "send(frame(99, b'x'))", "send(b'\\xff' * 64)",
                     "send(bytes([18]) + b'\\xff\\xff\\xff\\xff')",
                     "send(frame(18, b'\\xff' * 40))",
                     "send(frame(19, struct.pack('>IiB', 77, 0, 0)))",
                     "send(frame(19, struct.pack('>IiB', 1, 4096, 0)))",
                     "send(frame(17, b'\\x01python 9'))",
                     "os.set_blocking(link, True)\nsend(frame(1, b'x' * 100))"):
            with self.subTest(code=code):
                self.assert_protocol(code)

    def test_a_forged_end(self):
        """It ends its own cell early; its own kernel is out of step, and pays for it."""
        kernel, result = self.forge("send(frame(19, struct.pack('>IiB', 1, 0, 0)))")
        self.assertEqual(result["exitCode"], 0)
        reply = kernel.post("2")
        self.assertIn(reply.status, (200, 409), reply)
        self.assertEqual(self.neighbour.value("x"), "'safe'")

    def test_a_closed_connection(self):
        self.assert_protocol("os.close(link)\nimport time\nwhile True: time.sleep(1)")

    def test_half_a_frame(self):
        kernel, result = self.forge("send(bytes([18]) + struct.pack('>I', 1000))\n"
                                    "import time\nwhile True: time.sleep(1)")
        self.assert_fault(result, "timeout")
        reply = kernel.post("1", timeoutS=3)
        self.assertIn(reply.status, (200, 409))
        self.assertEqual(self.neighbour.value("x"), "'safe'")

    def test_text_that_is_not_text(self):
        kernel = self.kernel()
        for code in ("'\\ud800'", "display({'text/html': '\\ud800'}, raw=True)",
                     "class H:\n    def _repr_html_(self): return '\\udfff'\nH()"):
            result = kernel.cell(code)
            self.assertEqual(result["fault"], None, result)
        self.assert_alive(kernel)

    def test_floods_of_results(self):
        kernel = self.kernel()
        result = kernel.cell("for i in range(200): display('x' * (1 << 20))", timeoutS=60)
        self.assertIsNone(result["fault"])
        self.assertTrue(result["resultsTruncated"] or
                        sum(len(json.dumps(r)) for r in result["results"]) <= 256 << 20)
        self.assert_alive(kernel)


class Bash(kernelkit.Case):
    def test_a_shell_that_remembers(self):
        kernel = self.kernel(language="bash")
        self.assert_success(kernel.cell("cd /tmp; v=1; f() { echo f$1; }; export E=2"))
        self.assert_success(kernel.cell('pwd; echo $v; f 3; sh -c "echo $E"'),
                            "/tmp\n1\nf3\n2\n")
        result = kernel.cell("echo out; echo err >&2; false")
        self.assertEqual((result["exitCode"], result["stdout"], result["stderr"],
                          result["fault"]), (1, "out\n", "err\n", None))
        self.assertEqual(kernel.cell("(exit 7)")["exitCode"], 7)
        self.assertNotEqual(kernel.cell("if then")["exitCode"], 0)
        self.assert_alive(kernel)

    def test_exit_ends_it(self):
        kernel = self.kernel(language="bash")
        result = kernel.cell("exit 3")
        self.assertEqual(result["exitCode"], 3)
        if not result["stateKept"]:
            self.assert_dead(kernel, "^exit status 3")
        self.assert_restarts(kernel)

    def test_input(self):
        kernel = self.kernel(language="bash")
        self.assert_success(kernel.cell("read a; echo got $a", stdin="line\n"), "got line\n")
        self.assertEqual(kernel.cell("read a")["exitCode"], 1)


class Node(kernelkit.Case):
    def test_a_node_that_remembers(self):
        kernel = self.kernel(language="node")
        self.assert_success(kernel.cell("const a = 1; let b = 2; class C {}"))
        self.assert_success(kernel.cell("const a = 3; console.log(a + b, typeof C)"),
                            "5 function\n")
        result = kernel.cell("await Promise.resolve({x: [1]})")
        data = result["results"][0]["data"]
        self.assertEqual(data["application/json"], {"x": [1]})
        result = kernel.cell("throw new Error('boom')")
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIn("boom", result["stderr"])
        self.assert_alive(kernel)


@unittest.skipUnless(os.path.isdir("/usr/lib/python3/dist-packages/matplotlib"),
                     "numpy, pandas and matplotlib are not installed")
class Packages(kernelkit.Case):
    def plots(self, kernel, code):
        result = kernel.cell(code, timeoutS=120)
        self.assert_success(result)
        return [r["data"]["image/png"] for r in result["results"] if "image/png" in r["data"]]

    def test_arrays_and_frames(self):
        kernel = self.kernel(timeoutS=120)
        self.assert_success(kernel.cell("import numpy as np\na = np.arange(6).reshape(2, 3)"))
        self.assertEqual(kernel.value("int(a.sum())"), "15")
        result = kernel.cell("import pandas as pd\npd.DataFrame({'n': [1, 2]})")
        data = result["results"][0]["data"]
        self.assertIn("<table", data["text/html"])
        self.assertIn("n", data["text/plain"])

    def test_one_picture_for_each_plotting_cell(self):
        kernel = self.kernel(timeoutS=120)
        for code in ("import matplotlib.pyplot as plt\nplt.plot([1, 2])",
                     'plt.plot([1]); plt.savefig("a.png"); plt.show()',
                     "fig, ax = plt.subplots(); ax.plot([1]); fig"):
            pictures = self.plots(kernel, code)
            self.assertEqual(len(pictures), 1, code)
            self.assertTrue(base64.b64decode(pictures[0]).startswith(b"\x89PNG"))
            self.assertEqual(self.plots(kernel, "1"), [])


if __name__ == "__main__":
    unittest.main()
