# SPDX-License-Identifier: Apache-2.0
"""Boxes forked of a warm interpreter: when there are some, and what is between two of them."""
import contextlib
import json
import os
import signal
import threading
import unittest

import census
import harness
import kernelkit
from templatekit import Templated, WITH_TEMPLATES, broken_library, interpreters, wait_for_standby, wait_for_template

RINGS_DISABLED = "/proc/sys/kernel/io_uring_disabled"

# What makes a box, told by a program in it: the same whether it was booted or forked.
PORTRAIT = """
import json, os, sys
def lines(path, keep=lambda line: True):
    with open(path) as file:
        return [line for line in file.read().splitlines() if keep(line)]
def mount(line):
    left, right = line.split(" - ")
    left = left.split()
    return [left[4], left[5], right.split()[0], right.split()[2]]
told = ("Cap", "NoNew", "Seccomp:", "Uid", "Gid", "Groups", "Sig", "Threads", "NStgid", "Umask")
print(json.dumps({
    "mounts": sorted(mount(line) for line in lines("/proc/self/mountinfo")),
    "status": lines("/proc/self/status", lambda l: l.startswith(told) and not l.startswith("SigQ")),
    "limits": lines("/proc/self/limits"),
    "oom": lines("/proc/self/oom_score_adj"),
    "maps of users": lines("/proc/self/uid_map")[0].split()[0::2],
    "pids": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
    # Both of a box; that of the thread which started it comes on top, and is of one or two parts.
    "filters": [int(line.split()[1]) >= 2 for line in
                lines("/proc/self/status", lambda l: l.startswith("Seccomp_filters"))],
    "first": lines("/proc/1/comm") + lines("/proc/1/status", lambda l: l.startswith(("SigBlk", "SigIgn", "Umask"))),
    "ids": [os.getpid(), os.getppid(), os.getsid(0) == os.getpid(), os.getuid(), os.getgid()],
    "descriptors": sorted(os.listdir("/proc/self/fd"), key=int),
    "environment": sorted(os.environ.items()), "cwd": os.getcwd(), "host": os.uname().nodename,
    "network": lines("/proc/net/dev", lambda l: ":" in l)[0].split(":")[0].strip(),
    "modules": sorted(set(sys.modules) - {"json"}), "path": sys.path, "flags": repr(sys.flags),
    "argv": sys.argv, "streams": [s.encoding + str(s.line_buffering) for s in (sys.stdin, sys.stdout)],
    "folders": {p: [oct(os.stat(p).st_mode), os.stat(p).st_uid, os.listdir(p)] for p in
                ("/tmp", "/dev/shm", "/home/sandbox", "/workspace", "/dev/pts")},
}))
"""

# Programs that notice how their interpreter ends: what it does with what is left of them.
ENDS = {
    "destructor": "{A}a = A()\n",
    "in a cycle": "{A}a = A()\na.a = a\ndef f(): return a\n",
    "that sees globals": "b = 7\nclass A:\n    def __del__(self): print(b)\na = A()\n"
                         "def f(): return a\n",
    "of what a module keeps": "{A}import os\nos.kept = A()\n",
    "of what a hook keeps": "{A}a = A()\nimport sys\nsys.excepthook = lambda *_: a\n",
    "behind handlers": "{A}a = A()\nimport atexit\natexit.register(print, 'bye')\n",
    "handler that fails": "import atexit\natexit.register(print, 'bye')\natexit.register(int, 'x')\n",
    "handler that writes past buffers": "import atexit, os\natexit.register(os.write, 1, b'raw')\n"
                                        "print('first')\n",
    "handler of its own": "import atexit\n@atexit.register\ndef f(): atexit.register(print, 'more')\n",
    "without handlers": "{A}a = A()\nimport atexit\natexit._clear()\n",
    "unclosed file": "f = open('x', 'w'); f.write('abc')\n",
    "unclosed file of a module": "import os\nos.f = open('x', 'w'); os.f.write('abc')\n",
    "unclosed file of builtins": "import builtins as b\nb.f = open('x', 'w'); b.f.write('abc')\n",
    "standard output to a file": "import sys\nsys.stdout = open('x', 'w'); print('abc')\n",
    "standard output that is full": "import sys\nsys.stdout = open('/dev/full', 'w'); print(1)\n",
    "standard output that is closed": "import os\nprint(1); os.close(1)\n",
    "generator": "def g():\n    try: yield 1\n    finally: print('closed')\nx = g(); next(x)\n",
    "finalizer": "import weakref\nclass B: pass\nb = B(); weakref.finalize(b, print, 'fin')\n",
    "C library": "import ctypes\nctypes.CDLL(None).printf(b'c\\n'); print('python')\n",
    "thread": "import threading, time\n"
              "threading.Thread(target=lambda: (time.sleep(.1), print('t'))).start()\n",
    "thread that is no hindrance": "import threading, time\n"
                                   "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n",
    "threads that are kept": "import concurrent.futures as c\ne = c.ThreadPoolExecutor(2)\n"
                             "e.submit(lambda: (__import__('time').sleep(.1), print('t')))\n",
    "handler of threads": "import threading\nthreading._register_atexit(int, 'x')\n",
    "in what is searched": "{A}import sys\nsys.path.append(A()); sys.path_hooks.append(A())\n"
                           "sys.path_importer_cache['x'] = A()\n",
    "in the place of what is searched": "{A}import sys, weakref\nclass B: pass\nb = B()\n"
                                        "r = weakref.ref(b, lambda _: print('let go'))\n"
                                        "sys.path[0] = A(); sys.path_hooks[0] = b\ndel b\n",
    "in what takes the place of that": "{A}import sys\nsys.path = [A()]\n"
                                       "sys.path_importer_cache = {1: A()}\n",
    "of a kind with rules of its own": "import builtins\nclass M(type):\n"
                                       "    def __hash__(self): print('hashed', flush=True); return 1\n"
                                       "    def __getattr__(self, name): print(name, flush=True); raise KeyError\n"
                                       "class C(metaclass=M): pass\nbuiltins.kept = c = C()\nc.c = c\n",
    "fork": "import os\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')\n",
    "status": "{A}a = A()\nimport sys; sys.exit(5)\n",
    "large status": "import sys; sys.exit(-1)\n",
    "text for a status": "import sys; sys.exit('bye')\n",
    "error": "{A}a = A()\n1 / 0\n",
    "module made by hand": "{A}import sys\nm = type(sys)('m'); m.a = A()\ndef f(): return m\nm.f = f\n",
    "module that nobody lists": "{A}import sys\nm = type(sys)('m'); m.a = A(); m.m = m\ndel m\n",
    "module in the place of another": "{A}import sys\nm = type(sys)('posix'); m.a = A()\n"
                                      "sys.modules['posix'] = m\ndef f(): return m\nm.f = f\n",
    "module listed twice": "{A}import calendar, sys\nsys.modules['other'] = calendar\n"
                           "calendar.a = A()\n",
    "module that is gone": "{A}import sys\ndel sys.modules['posix']\nimport calendar\n"
                           "calendar.a = A()\n",
    "no modules": "import sys; sys.modules.clear(); print(1)\n",
}


class Templates(Templated, kernelkit.Case):
    daemon_arguments = WITH_TEMPLATES

    def forked(self, code, **options):
        result = self.run_code(code, **options)
        self.assertEqual(result["usage"]["source"], "template", result)
        return result

    def wait_for_template_with(self, module):
        census.wait_until(
            lambda: self.run_code("1", preload=[module])["usage"]["source"] == "template",
            harness.seconds(20), f"a template with {module}")

    def test_the_second_call_is_forked(self):
        result = self.forked("6 * 7")
        self.assertEqual(result["results"][0]["data"]["text/plain"], "42")

    def test_boot_is_an_option(self):
        self.assertEqual(self.run_code("1", isolation="boot")["usage"]["source"], "cold")
        self.assertEqual(self.run_code("1", isolation="auto")["usage"]["source"], "template")
        session = self.new_session(isolation="boot")
        result = self.daemon.result(f"/v1/sessions/{session}/runCode", {"code": "1"})
        self.assertEqual(result["usage"]["source"], "cold")
        reply = self.daemon.get(f"/v1/sessions/{session}")
        self.assertEqual(reply.json["options"]["isolation"], "boot")
        reply = self.daemon.post("/v1/runCode", {"code": "1", "isolation": "vm"})
        self.assert_problem(reply, 422, "bad_value", "/isolation")

    def test_it_is_told(self):
        told = self.daemon.get("/v1/capabilities").json["templates"]
        self.assertEqual((told["languages"], told["problem"]), (["python"], None))
        self.assertGreaterEqual(told["up"], 1)

    def test_it_has_most_of_the_filter_of_its_boxes(self):
        """On top of those that its first process was started with."""
        def filters(pid):
            return int(census.status_field(pid, "Seccomp_filters"))

        self.forked("1")
        found = interpreters(self.daemon)
        self.assertGreaterEqual(len(found), 1)
        for pid in found:
            first = census.stat(pid)[1]
            self.assertEqual(filters(pid), filters(first) + 1)

    def test_a_forked_box_is_like_a_booted_one(self):
        forked = json.loads(self.forked(PORTRAIT)["stdout"])
        booted = json.loads(self.run_code(PORTRAIT, isolation="boot")["stdout"])
        self.assertEqual(booted["pids"], [1, 2], "the control: a portrait tells something")
        for what, seen in booted.items():
            self.assertEqual(forked[what], seen, what)

    def test_it_ends_like_a_booted_one(self):
        def portrait(number):
            code = list(ENDS.values())[number].replace(
                "{A}", "class A:\n    def __del__(self): print('gone')\n")
            results = [self.forked(code), self.run_code(code, isolation="boot")]
            return [[r["exitCode"], r["stdout"], r["stderr"], r["fault"],
                     [(file["path"], file["size"]) for file in r["files"]]] for r in results]

        found = harness.parallel(4, lambda first: [portrait(number) for number in
                                                   range(first, len(ENDS), 4)])
        for first, portraits in enumerate(found):
            for what, (forked, booted) in zip(list(ENDS)[first::4], portraits):
                self.assertEqual(forked, booted, what)

    def test_a_forked_kernel_is_no_script(self):
        """What a template has made ahead for the one cell of a box is not there."""
        code = "import sys; (sys.argv, sorted(set(globals()) - {'sys'}), __loader__)"
        seen = [self.kernel(self.new_session(**options)).value(code) for options in ({}, {"isolation": "boot"})]
        self.assertEqual(seen[0], seen[1])
        self.assertIn("'display'", seen[0], "the control")

    def test_caps_of_one_call(self):
        result = self.forked("import time; b = b'x' * (300 << 20); time.sleep(20)", memoryMb=96)
        self.assertEqual(result["fault"]["type"], "oom")
        result = self.forked("import time; time.sleep(60)", timeoutS=0.5)
        self.assertEqual(result["fault"]["type"], "timeout")
        many = ("import threading, time\nt = [threading.Thread(target=time.sleep, args=(9,), "
                "daemon=True) for _ in range(60)]\n[x.start() for x in t]\nprint(len(t))")
        self.assertEqual(self.forked(many)["stdout"], "60\n")
        result = self.forked(many, pids=16)
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("RuntimeError", result["stderr"])
        for folder in ("/tmp", "/dev/shm", "/home/sandbox"):
            result = self.forked(f"import os; s = os.statvfs({folder!r}); "
                                 "print(s.f_blocks * s.f_frsize >> 20)", memoryMb=64)
            self.assertEqual(result["stdout"], "64\n")
        result = self.forked("open('f', 'wb').write(b'x' * (20 << 20))", diskMb=10)
        self.assertNotEqual(result["exitCode"], 0)

    def test_what_a_call_brings_along(self):
        result = self.forked(
            "import os, sys\nprint(os.environ['A'], sys.stdin.read(),"
            " open('in').read(), open('/run/secrets/s').read(), os.path.exists('/run/secrets/t'))",
            env={"A": "one"}, stdin="two", files={"in": "three"}, secrets={"s": "four"})
        self.assertEqual(result["stdout"], "one two three four False\n")
        result = self.forked("import os; print('A' in os.environ, os.path.exists('/run/secrets'))")
        self.assertEqual(result["stdout"], "False False\n")

    def test_what_no_template_can_give(self):
        for options in ({"env": {"PYTHONHASHSEED": "0"}}, {"network": True}, {"cwd": "/tmp"}):
            result = self.run_code("print(1)", **options)
            self.assertEqual((result["stdout"], result["usage"]["source"]), ("1\n", "cold"), options)

    def test_modules_that_are_imported_ahead(self):
        look = "import sys; print('calendar' in sys.modules, 'calendar' in globals())"
        self.assertEqual(self.forked(look)["stdout"], "False False\n")
        self.wait_for_template_with("calendar")
        self.assertEqual(self.forked(look, preload=["calendar"])["stdout"], "True False\n")
        self.assertEqual(self.forked(look)["stdout"], "False False\n")

    def test_a_library_with_threads_of_its_own(self):
        """numpy's OpenBLAS has some: they end before a fork, and come back in the box."""
        code = ("import sys; ready = 'numpy' in sys.modules\nimport numpy\n"
                "a = numpy.ones((300, 300))\nprint(ready, (a @ a)[0, 0], numpy.random.random())")
        if "No module named" in self.run_code(code)["stderr"]:
            self.skipTest("this host has no numpy")
        self.wait_for_template_with("numpy")
        seen = [self.forked(code, preload=["numpy"])["stdout"].split() for _ in range(2)]
        self.assertEqual([found[:2] for found in seen], [["True", "300.0"]] * 2)
        self.assertNotEqual(seen[0][2], seen[1][2], "the same random number")

    def test_a_burst(self):
        answers = harness.parallel(24, lambda n: self.forked(f"print({n})")["stdout"])
        self.assertEqual(answers, [f"{n}\n" for n in range(24)])


class Ends(Templated, kernelkit.Case):
    """Whatever becomes of a template, each call is answered once."""

    daemon_arguments = WITH_TEMPLATES

    def setUp(self):
        super().setUp()
        wait_for_template(self.daemon)

    def long_call(self):
        """A call under way: wait for it with the function that is returned."""
        session = self.new_session()
        call = threading.Thread(target=lambda: answers.append(self.daemon.post(
            f"/v1/sessions/{session}/runCode",
            {"code": "open('began', 'a').write('x')\nimport os, time\n"
                     "while not os.path.exists('go'): time.sleep(0.01)\nprint('done')"})))
        answers = []
        call.start()
        census.wait_until(lambda: self.daemon.find("began"), harness.seconds(20), "the call")

        def finish(go=True):
            if go:
                self.daemon.request("PUT", f"/v1/sessions/{session}/files/go", b"",
                                    media_type="application/octet-stream")
            call.join()
            began = self.daemon.get(f"/v1/sessions/{session}/files/began").body
            self.assertEqual(began, b"x", "it ran once")
            return answers[0].json
        return finish

    def test_an_interpreter_that_is_killed(self):
        """Calls of its boxes go on; the next one has another."""
        finish = self.long_call()
        victims = interpreters(self.daemon)
        self.assertEqual(len(victims), 1)
        os.kill(victims[0], signal.SIGKILL)
        census.wait_gone(lambda: interpreters(self.daemon), harness.seconds(10), "the template")
        self.assertEqual(self.run_code("print(1)")["stdout"], "1\n")
        result = finish()
        self.assertEqual((result["stdout"], result["fault"]), ("done\n", None))
        self.assertEqual(result["usage"]["source"], "template")

    def test_a_template_whose_first_process_is_killed(self):
        """Its boxes are in its pid namespace: they end, and their answers say so."""
        finish = self.long_call()
        os.kill(census.stat(interpreters(self.daemon)[0])[1], signal.SIGKILL)
        result = finish(go=False)
        self.assertEqual(result["fault"]["type"], "killed")
        self.assertEqual(self.run_code("print(1)")["stdout"], "1\n")

    def test_a_template_that_hangs(self):
        """The call boots a box of its own after a while."""
        for pid in wait_for_standby(self.daemon) + interpreters(self.daemon):
            os.kill(pid, signal.SIGSTOP)
        result = self.run_code("print(1)")
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("1\n", "cold"))
        census.wait_gone(lambda: interpreters(self.daemon), harness.seconds(20), "the template that hung")

    def test_in_the_middle_of_many_calls(self):
        """Orders that are under way when it dies: each call is answered, and ran once."""
        session = self.new_session()

        def one(number):
            if number == 10:
                for pid in interpreters(self.daemon):
                    os.kill(pid, signal.SIGKILL)
            code = f"open('ran', 'a').write('{number} ')\nprint({number})"
            return self.daemon.result(f"/v1/sessions/{session}/runCode", {"code": code})["stdout"]

        self.assertEqual(harness.parallel(20, one), [f"{n}\n" for n in range(20)])
        ran = self.daemon.get(f"/v1/sessions/{session}/files/ran").body.decode().split()
        self.assertEqual(sorted(ran, key=int), [str(n) for n in range(20)])


class Memory(kernelkit.Case):
    """What templates hold of the memory of all boxes is there for calls that wait for it."""

    daemon_arguments = (*WITH_TEMPLATES, "--memory-budget-mb", "600", "--spares", "2")

    def check_up(self, templates):
        self.assertEqual(self.daemon.get("/v1/stats").json["templates"], templates)

    def test_one_gives_way(self):
        wait_for_template(self.daemon)
        self.assert_success(self.run_command(["true"], memoryMb=600, queueTimeoutS=20))
        self.check_up(0)
        result = self.run_code("print(1)", memoryMb=500)
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("1\n", "cold"))
        self.assertIsNone(self.daemon.get("/v1/capabilities").json["templates"]["problem"])


class MemoryBesideKernels(Memory):
    def test_one_gives_way(self):
        """Also with a box under way, once it is asked for no more: that goes on."""
        wait_for_template(self.daemon)
        session = self.new_session(memoryMb=200)
        kernel = self.daemon.post(f"/v1/sessions/{session}/kernels", {}).json["id"]
        cells = f"/v1/sessions/{session}/kernels/{kernel}/cells"
        self.assert_success(self.daemon.result(cells, {"code": "n = 6"}))
        self.check_up(1)
        self.assert_success(self.run_command(["true"], memoryMb=565, queueTimeoutS=40))
        self.check_up(0)
        self.assert_success(self.daemon.result(cells, {"code": "print(7 * n)"}), "42\n")


class SmallMemory(harness.Case):
    daemon_arguments = (*WITH_TEMPLATES, "--memory-budget-mb", "300")

    def test_there_are_none(self):
        told = self.daemon.get("/v1/capabilities").json["templates"]
        self.assertEqual((told["languages"], told["up"], told["problem"]),
                         ([], 0, "the memory of all boxes is too small to keep one"))
        for _ in range(3):
            self.assertEqual(self.run_code("1")["usage"]["source"], "cold")
        self.assertEqual(self.daemon.log().count("no_templates"), 1)


class Broken(harness.Case):
    daemon_arguments = WITH_TEMPLATES

    @classmethod
    def make_daemon(cls):
        daemon = super().make_daemon()
        daemon.arguments += ["--library", broken_library(daemon.home)]
        return daemon

    def test_boxes_are_booted(self):
        """Where no template comes up: each call is answered, and the reason is told, once in the log."""
        def tried():
            self.assertEqual(self.run_code("1")["usage"]["source"], "cold")
            return self.daemon.log().count("no_template") > 2
        census.wait_until(tried, harness.seconds(20), "three templates that failed")
        told = self.daemon.get("/v1/capabilities").json["templates"]
        self.assertEqual((told["languages"], told["up"]), (["python"], 0))
        lines = [line for line in self.daemon.log().splitlines() if "no_template" in line]
        self.assertIn(told["problem"], lines[0])
        self.assertEqual([line for line in lines if "level=warning" in line], lines[:1])
        self.assertEqual(self.run_code("1")["usage"]["source"], "cold")


class Neighbours(Templated, kernelkit.Case):
    """
    Two boxes of one template at the same time, calls without a session and calls of two sessions:
    what one makes, the other does not find. In a box of its own the same look finds it: the control.
    """

    daemon_arguments = WITH_TEMPLATES

    def call(self, code, session):
        where = f"/v1/sessions/{session}/runCode" if session else "/v1/runCode"
        result = self.daemon.result(where, {"code": code})
        self.assertEqual(result["usage"]["source"], "template", result)
        self.assertEqual((result["exitCode"], result["fault"]), (0, None), result["stderr"])
        return result["stdout"]

    def pair(self, make, look):
        """What `look` prints beside `make`, and what that printed; without sessions, and of two."""
        for sessions in ((None, None), (self.new_session(), self.new_session())):
            name = harness.new_mark()
            held = (make + f"\nimport os, time\nopen({name!r}, 'w').close()\n"
                    "while not os.path.exists('go'): time.sleep(0.01)\nprint('held')")

            def beside(sessions=sessions, name=name):
                place = census.wait_until(lambda: self.daemon.find(name), harness.seconds(20),
                                          "the other box")[0]
                try:
                    return self.call(look, sessions[1])
                finally:
                    open(os.path.join(os.path.dirname(place), "go"), "w", encoding="ascii").close()

            maker, looker = harness.parallel(
                2, lambda i: beside() if i else self.call(held, sessions[0]))
            self.assertTrue(maker.endswith("held\n"), maker)
            yield looker, maker

    def check(self, make, look, nothing="[]\n"):
        control = self.call(make + "\n" + look, None)
        self.assertNotEqual(control, nothing, "the control finds nothing")
        for found, _ in self.pair(make, look):
            self.assertEqual(found, nothing)

    def test_processes(self):
        self.check("import subprocess; p = subprocess.Popen(['sleep', '77'])\n"
                   "while b'77' not in open(f'/proc/{p.pid}/cmdline', 'rb').read(): pass",
                   "import os\nprint([n for n in os.listdir('/proc') if n.isdigit() and b'77' in "
                   "open(f'/proc/{n}/cmdline', 'rb').read()])")

    def test_signals(self):
        """Whatever number the other box's process has: 0 asks whether a signal could be sent."""
        self.check("import subprocess; p = subprocess.Popen(['sleep', '77'])",
                   "import os\nhit = []\n"
                   "for p in [-1, *range(2, 3000)]:\n"
                   "    if p != os.getpid():\n"
                   "        try: os.kill(p, 0); hit.append(p)\n"
                   "        except OSError: pass\nprint(hit)")

    def test_descriptors(self):
        self.check("import os, subprocess; file = open('/tmp/left', 'w')\n"
                   "p = subprocess.Popen(['sleep', '77'], pass_fds=[file.fileno()])",
                   "import os\nfound = []\n"
                   "for pid in [n for n in os.listdir('/proc') if n.isdigit()]:\n"
                   "    try: found += [fd for fd in os.listdir(f'/proc/{pid}/fd') if 'left' in "
                   "os.readlink(f'/proc/{pid}/fd/{fd}')]\n"
                   "    except OSError: pass\n"
                   "print(found)")

    def test_files(self):
        self.check("import os\nfor p in ('/tmp', '/dev/shm', os.path.expanduser('~'), '/workspace'):\n"
                   "    open(p + '/left', 'w').close()",
                   "import os\nprint([p for p in ('/tmp', '/dev/shm', os.path.expanduser('~'), "
                   "'/workspace', '/var/tmp', '/run/kernd-private', '/run', '/proc/1/root/tmp') "
                   "if os.access(p, os.R_OK) and 'left' in os.listdir(p)])")

    def test_sockets(self):
        self.check("import socket\na = socket.socket(socket.AF_UNIX); a.bind('\\0left'); a.listen()\n"
                   "t = socket.socket(); t.bind(('127.0.0.1', 45455)); t.listen()",
                   "import socket\nfound = []\n"
                   "for family, name in ((socket.AF_UNIX, '\\0left'), (socket.AF_INET, "
                   "('127.0.0.1', 45455))):\n"
                   "    try: socket.socket(family).connect(name); found.append(name)\n"
                   "    except OSError: pass\nprint(found)")

    def test_networks(self):
        """
        Of boxes that come at once, and after a while: none is where another is, or the template. Each
        finds a loopback that is up and was never used; after one connection it was: the control.
        """
        count = 4
        code = ("import os, socket, time\n"
                "def used(): return [line.split()[:2] for line in open('/proc/net/dev') if ':' in line]\n"
                "before = used()\n"
                "server = socket.create_server(('127.0.0.1', 0))\n"
                "client = socket.create_connection(server.getsockname())\n"
                "open(NAME, 'w').close()\n"
                "while not os.path.exists('go'): time.sleep(0.01)\n"
                "print([os.readlink('/proc/self/ns/net'), before, used() != before])")
        for _ in range(2):
            session, mark = self.new_session(), harness.new_mark()

            def hold(number, session=session, mark=mark):
                if number < count:
                    return eval(self.call(code.replace("NAME", repr(f"{mark}-{number}")), session))
                names = [f"{mark}-{number}" for number in range(count)]
                places = census.wait_until(lambda: all(map(self.daemon.find, names)) and self.daemon.find(names[0]),
                                           harness.seconds(20), "the boxes")
                try:
                    here = {os.readlink(f"/proc/{pid}/ns/net") for pid in self.daemon.box_processes()}
                    for pid in interpreters(self.daemon):
                        census.wait_until(lambda pid=pid: os.readlink(f"/proc/{pid}/ns/net") not in here,
                                          harness.seconds(20), "a namespace for the next box")
                finally:
                    open(os.path.join(os.path.dirname(places[0]), "go"), "w", encoding="ascii").close()
                return here

            *seen, here = harness.parallel(count + 1, hold)
            self.assertEqual(len({network for network, _, _ in seen}), count)
            self.assertLessEqual({network for network, _, _ in seen}, here)
            self.assertNotIn(os.readlink("/proc/self/ns/net"), here)
            for _, before, was_used in seen:
                self.assertEqual((before, was_used), ([["lo:", "0"]], True))

    def test_interprocess_objects(self):
        make = ("import ctypes\nlibc = ctypes.CDLL(None)\n"
                "libc.shmget(0x4b45, 4096, 0o1666); libc.msgget(0x4b45, 0o1666)\n"
                "libc.semget(0x4b45, 1, 0o1666)\n"
                "import os; libc.mq_open(b'/left', os.O_CREAT | os.O_RDWR, 0o666, None)")
        self.check(make, "import ctypes\nlibc = ctypes.CDLL(None)\n"
                         "print([n for n, r in enumerate((libc.shmget(0x4b45, 4096, 0), "
                         "libc.msgget(0x4b45, 0), libc.semget(0x4b45, 1, 0), "
                         "libc.mq_open(b'/left', 0))) if r >= 0])")

    def test_terminals(self):
        self.check("import os; pair = os.openpty()",
                   "import os; print([n for n in os.listdir('/dev/pts') if n != 'ptmx'])")

    def test_namespaces(self):
        look = ("import os; print([os.readlink('/proc/self/ns/' + n) for n in "
                "('user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'cgroup')])")
        control = self.call(look + "\n" + look, None).splitlines()
        self.assertEqual(control[0], control[1])
        for found, made in self.pair(look, look):
            for one, other in zip(eval(found), eval(made.splitlines()[0])):
                self.assertNotEqual(one, other)

    def test_host_names(self):
        """Nobody may set one, so that one set beside is what could be seen, or the host's: the control."""
        self.assertNotEqual(os.uname().nodename, "sandbox")
        look = "import os; print(os.uname().nodename, os.readlink('/proc/self/ns/uts'))"
        for found, made in self.pair("import ctypes; ctypes.CDLL(None).sethostname(b'other', 5)\n" + look,
                                     look):
            (name, place), (other_name, other_place) = found.split(), made.split()[:2]
            self.assertEqual((name, other_name), ("sandbox", "sandbox"))
            self.assertNotEqual(place, other_place, "one namespace of names")

    def test_memory(self):
        """
        A box is a copy of the template, and the template learns nothing of the boxes: their code,
        names and variables are in nobody else's memory.
        """
        mark = harness.new_mark()
        # No box has a word that it looks for whole, but in what it finds.
        look = ("def seek(first, rest):\n"
                "    found = set()\n"
                "    with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb', 0) as memory:\n"
                "        for line in maps.read().splitlines():\n"
                "            if ' r' not in line or '[v' in line: continue\n"
                "            start, end = (int(n, 16) for n in line.split()[0].split('-'))\n"
                "            memory.seek(start)\n"
                "            data = memory.read(end - start)\n"
                "            at = data.find(first)\n"
                "            while at >= 0:\n"
                "                if data.startswith(rest, at + len(first)): found.add(at)\n"
                "                at = data.find(first, at + 1)\n"
                "    return len(found) > 0\n"
                f"print([seek({mark[:12]!r}.encode(), {mark[12:]!r}.encode()), "
                "seek(b'call-b', b'ox_'), seek(b'bo', b'x_')])\n")
        own = self.call(f"kept = '{mark}' + ' call-box_'\n" + look, None)
        self.assertEqual(own, "[True, True, True]\n", "the control")
        for found, _ in self.pair(f"kept = '{mark}'", look):
            self.assertEqual(found, "[False, False, False]\n")

    def test_random_numbers(self):
        """Also where the modules were there before the fork, with all that they had drawn."""
        code = ("import random, uuid, secrets, tempfile, os, ssl\n"
                "print([random.random(), str(uuid.uuid4()), str(uuid.uuid1()), secrets.token_hex(8), "
                "tempfile.mktemp(), ssl.RAND_bytes(8), os.urandom(8)])")
        drawn = ["random", "uuid", "secrets", "tempfile", "ssl"]
        census.wait_until(
            lambda: self.run_code("1", preload=drawn)["usage"]["source"] == "template",
            harness.seconds(20), "a template with these modules")
        ahead = self.new_session(preload=drawn)
        for sessions in ((None, None, None), (ahead, ahead, self.new_session(preload=drawn))):
            seen = [eval(self.call(code, session)) for session in sessions]
            for values in zip(*seen):
                self.assertEqual(len(set(values)), 3, values)
        # The control: what is the same in all that were forked of one, and in no other.
        look = "print(hash('a'))"
        seeds = {self.call(look, session) for session in (None, None, self.new_session())}
        self.assertEqual(len(seeds), 1)
        self.assertNotIn(self.run_code(look, isolation="boot")["stdout"], seeds)


def pinned_kib(daemon):
    """Memory that the templates of a daemon have pinned (VmPin, proc_pid_status(5))."""
    total = 0
    for pid in filter(census.is_template, daemon.box_processes(templates=True)):
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("VmPin:"))
    return total


class Crowded(Templated, kernelkit.Case):
    """What the kernel counts by user, and one box uses up. With a user whom no other test has."""

    @classmethod
    def make_daemon(cls):
        return harness.Daemon(WITH_TEMPLATES, user="games")

    def test_descriptors_under_way(self):
        """In sockets: the template is handed three with each order."""
        session = self.new_session()
        flood = ("import array, errno, os, resource, socket, time\n"
                 "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                 "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
                 "pairs, sent, ended = [], 0, None\n"
                 "rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 253))]\n"
                 "while ended is None:\n"
                 "    pairs.append(socket.socketpair())\n"
                 "    pairs[-1][0].setblocking(False)\n"
                 "    try:\n"
                 "        while True: sent += 253 * pairs[-1][0].sendmsg([b'x'], rights)\n"
                 "    except BlockingIOError: pass\n"
                 "    except OSError as error: ended = errno.errorcode[error.errno]\n"
                 "open('began', 'w').close()\n"
                 "while not os.path.exists('go'): time.sleep(0.01)\n"
                 "print(ended, sent > 1000, end='')")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.daemon.result(
            f"/v1/sessions/{session}/runCode", {"code": flood})))
        thread.start()
        began = census.wait_until(lambda: self.daemon.find("began"), harness.seconds(20), "the flood")
        try:
            for _ in range(3):
                self.assertEqual(self.run_code("1")["usage"]["source"], "template")
        finally:
            open(os.path.join(os.path.dirname(began[0]), "go"), "w", encoding="ascii").close()
            thread.join()
        self.assertEqual(answers[0]["stdout"], "ETOOMANYREFS True", answers)

    def test_pages_that_forks_copy_themselves(self):
        """Where rings of io_uring are to be had: since Linux 6.6 they can be turned off."""
        with contextlib.suppress(FileNotFoundError), open(RINGS_DISABLED, encoding="ascii") as file:
            if int(file.read()) == 2:
                return
        self.assertGreater(pinned_kib(self.daemon), 0)


class NothingLocked(Templated, harness.Case):
    """Where no memory may be locked all is as elsewhere, and a page is copied when it is written."""

    @classmethod
    def make_daemon(cls):
        return harness.Daemon(WITH_TEMPLATES, wrapper=["prlimit", "--memlock=0"])

    def test_forks_all_the_same(self):
        result = self.run_code("print(6 * 7)")
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("42\n", "template"))
        self.assertEqual(pinned_kib(self.daemon), 0)

    def test_tables_of_what_programs_use(self):
        """Code that has a page of its own, by which a fork copies its page tables."""
        census.wait_until(
            lambda: self.run_code("1", preload=["hashlib"])["usage"]["source"] == "template",
            harness.seconds(20), "a template with hashlib")
        code = ("for line in open('/proc/self/smaps'):\n"
                "    words = line.split()\n"
                "    if '-' in words[0]: is_code, path = words[1] == 'r-xp', words[-1]\n"
                "    elif is_code and words[0] == 'Anonymous:' and words[1] != '0': print(path)")
        owners = self.run_code(code, preload=["hashlib"])["stdout"]
        self.assertIn("/libc.so", owners)
        self.assertNotIn("/libcrypto.so", owners)
        everything = self.run_code("print(open('/proc/self/maps').read())", preload=["hashlib"])
        self.assertIn("/libcrypto.so", everything["stdout"])


if __name__ == "__main__":
    unittest.main()
