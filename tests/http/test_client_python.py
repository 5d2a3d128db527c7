# SPDX-License-Identifier: Apache-2.0
"""The client for Python in api/clients/python: what a program that is written for kern-sandbox relies
on, against a daemon."""
import concurrent.futures
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import harness
import ondemandkit

CLIENT = os.path.join(harness.ROOT, "api", "clients", "python")
sys.path.insert(0, CLIENT)
import kernd  # pylint: disable=wrong-import-position


class Construction(unittest.TestCase):
    """What is refused before any server is asked."""

    def refused(self, kind=kernd.SandboxError, **options):
        with self.assertRaises(kind, msg=options):
            kernd.Sandbox(**options)

    def test_safe_by_default(self):
        sandbox = kernd.Sandbox()
        self.assertEqual((sandbox.network, sandbox.timeout_s, sandbox.memory_mb, sandbox.pids,
                          sandbox.cap_drop, sandbox.mounts, sandbox.require_limits),
                         (False, 30, 512, 256, ("ALL",), None, False))

    def test_limits(self):
        for bad in (None, 0, -5, "30", True, float("inf"), float("nan")):
            self.refused(timeout_s=bad)
        for bad in (0, -1, None):
            self.refused(max_output_bytes=bad)

    def test_names(self):
        for good in ("ALL", "SYS_ADMIN", "CAP_NET_BIND_SERVICE", "DAC_OVERRIDE", "MKNOD"):
            kernd.Sandbox(cap_drop=(good,))
        for bad in ("--net", "-v /etc:/etc", "net_admin", "NET ADMIN", "NET;rm", "NET\n", "", "CAP_",
                    "1NET", "A" * 40, "NET_", "_NET", "NET__RAW", "ALL "):
            self.refused(cap_drop=(bad,))
        self.refused(cap_drop="ALL")
        for good in ("unconfined", "docker-default", "a.b_c-1", "x" * 128, ".", ".."):
            kernd.Sandbox(apparmor=good)
        for bad in ("-net", "a b", "prof;rm", "prof\n", "", "a/b", "ns:prof", "x" * 129, "café"):
            self.refused(apparmor=bad)
        kernd.Sandbox(profiles=["vcpu:heavy", "vgpio:leds", "vdisk:scratch"])
        for bad in ("--net", "vgpu:x", "vcpu:", "vcpu:bad name", "vcpu:a;b", "vdisk:../x",
                    "vgpio:a/b", "vcpu:x=y", "vcpu:-lead", "", "profile", "vcpu:heavy\n"):
            self.refused(profiles=[bad])
        kernd.Sandbox(egress_allow=["pypi.org", "files.pythonhosted.org"])
        for bad in ("http://x.com", "x.com/p", "x.com:80", "*.x.com", "a,b.com", "localhost", "",
                    "-x.com", "no dom", "pypi.org\n", "pypi.org\r\n", "1.2.3.4"):
            self.refused(egress_allow=[bad])
        self.refused(egress_allow=["x.com"], network=True)

    def test_both_clients_have_the_same_rules(self):
        """Word for word: what one takes and the other refuses would be told by nothing else."""
        def rules(text, declared, names):
            return {name: "".join(re.findall(declared % name, text, re.M | re.S)[0].split())
                    for name in names}

        with open(os.path.join(CLIENT, "kernd", "checks.py"), encoding="utf-8") as file:
            ours = re.sub(r'"\s+r"', "", file.read()).replace("\\Z", "$")
        with open(os.path.join(CLIENT, "..", "javascript", "lib", "checks.js"), encoding="utf-8") as file:
            theirs = file.read()
        names = ("PROFILE", "DOMAIN", "CAPABILITY", "APPARMOR")
        self.assertEqual(rules(ours, r'^%s = re\.compile\(r"(.*?)"\)', names),
                         rules(theirs.replace("/^", "/"), r"^const %s = /(.*?)/;", names))
        names = ("PRIVATE_SOURCES", "ESSENTIAL_TARGETS")
        self.assertEqual(rules(ours, r"^%s = \{(.*?),?\s*\}", names),
                         rules(theirs, r"^const %s = new Set\(\[(.*?),?\s*\]\)", names))

    def test_mounts(self):
        for mounts in ({"/": "/host"}, {"/etc": "/x"}, {"/tmp": "/"}, {"/tmp": "/proc"},
                       {"/tmp": "/foo/../bar"}, {"/tmp": "relative"}, {"relative/x": "/x"},
                       {"/definitely-not-here": "/x"}, {os.path.expanduser("~"): "/home-x"},
                       {"/tmp": ("/x", "rwx")}, {"/tmp": 5}):
            self.refused(kernd.MountRefused, mounts=mounts)
        kernd.Sandbox(mounts={"/usr/share": ("/data", "ro"), "/tmp": "/x"})

    def test_success(self):
        fault = kernd.SandboxFault("timeout", "x")
        for code, given, success in ((0, None, True), (1, None, False), (0, fault, False)):
            result = kernd.ExecutionResult("", "", code, 1, fault=given)
            self.assertEqual((result.success, bool(result)), (success, success))

    def test_not_open(self):
        sandbox = kernd.Sandbox()
        for use in (lambda: sandbox.run_code("1"), lambda: sandbox.run(["true"]), sandbox.kernel,
                    lambda: sandbox.read_file("x"), sandbox.list_files):
            with self.assertRaisesRegex(kernd.SandboxError, "not open"):
                use()

    def test_version_is_that_of_the_package(self):
        with open(os.path.join(CLIENT, "pyproject.toml"), encoding="utf-8") as file:
            declared = re.search(r'^version = "(.+)"$', file.read(), re.M).group(1)
        self.assertEqual(kernd.__version__, declared)


class Case(harness.Case):
    """With an open sandbox of the daemon's, over TCP and its token."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = kernd.Server(f"http://127.0.0.1:{cls.daemon.port}",
                                  token_file=cls.daemon.token_path)
        cls.folder = tempfile.TemporaryDirectory(prefix="kernd-test-client-")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def sandbox(self, **options):
        sandbox = kernd.Sandbox(**{"server": self.server, **options}).open()
        self.addCleanup(sandbox.close)
        return sandbox

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def assert_error(self, code, use):
        with self.assertRaises(kernd.SandboxError) as caught:
            use()
        self.assertEqual(caught.exception.code, code, caught.exception)


class Execution(Case):
    def test_languages_and_exit_codes(self):
        sandbox = self.sandbox()
        for language, code, out in (("python", "print('py')", "py\n"), ("bash", "echo sh", "sh\n"),
                                    ("node", "console.log('js')", "js\n")):
            result = sandbox.run_code(code, language=language)
            self.assertEqual((result.stdout, result.exit_code, result.fault), (out, 0, None))
        self.assert_error("bad_value", lambda: sandbox.run_code("1", language="ruby"))
        result = sandbox.run_code("import sys; sys.exit(3)")
        self.assertEqual((result.exit_code, result.success, result.fault), (3, False, None))
        result = sandbox.run_code("def f():\n    raise ValueError('kaboom')\nf()")
        self.assertEqual((result.success, result.fault), (False, None))
        self.assertIn("ValueError: kaboom", result.stderr)
        for code in (137, 143, 159, 125):  # a program's own exit code is never a fault
            result = sandbox.run(["sh", "-c", f"echo 'kern: sandbox setup failed' >&2; exit {code}"])
            self.assertEqual((result.exit_code, result.fault), (code, None))
        self.assertTrue(sandbox.run_code("x = 1\n" * 30000 + "print('long')"))

    def test_one_shot(self):
        result = kernd.run_code("print(1); 6 * 7", server=self.server)
        self.assertEqual((result.stdout, result.results[0].text), ("1\n", "42"))
        self.assertEqual(kernd.run_code("echo $V", language="bash", env={"V": "w"},
                                        server=self.server).stdout, "w\n")
        self.assertEqual(kernd.run_code("print(open('s').read())", setup="echo set-up >s",
                                        server=self.server).stdout, "set-up\n\n")
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])

    def test_faults(self):
        sandbox = self.sandbox(memory_mb=64)
        blocked = sandbox.run_code("import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)")
        self.assertEqual((blocked.fault.type, blocked.success), ("escape_blocked", False))
        for result in (sandbox.run_code("print(1, flush=True)\nwhile True: pass", timeout_s=1),
                       sandbox.run(["sh", "-c", "echo 1; sleep 30"], timeout_s=1)):
            self.assertEqual((result.fault.type, result.stdout), ("timeout", "1\n"))
            self.assertIn("1s", result.fault.message)
        grown = sandbox.run_code("x = bytearray(900 << 20)\nimport time; time.sleep(30)")
        self.assertEqual((grown.fault.type, grown.success), ("oom", False))
        for bad in (0, -1, "1", True):
            self.assert_error("bad_value", lambda bad=bad: sandbox.run(["true"], timeout_s=bad))

    def test_what_run_takes(self):
        sandbox = self.sandbox()
        for bad in ("echo hi", [], ["a\0b"], [1], None):
            self.assert_error("bad_value", lambda bad=bad: sandbox.run(bad))
        self.assertEqual(sandbox.run(["echo", "a b", "$HOME"]).stdout, "a b $HOME\n")
        self.assertEqual(sandbox.run(["cat"]).stdout, "")

    def test_isolation(self):
        mark = harness.new_mark()
        secret = self.path("secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write(mark)
        os.environ["KERND_TEST_MARK"] = mark
        self.addCleanup(os.environ.pop, "KERND_TEST_MARK")
        sandbox = self.sandbox(env={"GIVEN": "value"}, pids=32)
        seen = sandbox.run_code("import os; print(dict(os.environ))").stdout
        self.assertIn("value", seen)
        self.assertNotIn(mark, seen)
        self.assertFalse(sandbox.run_code(f"open({secret!r}).read()"))
        result = sandbox.run_code("open('/usr/evil', 'w')")
        self.assertEqual((result.success, result.fault), (False, None))
        self.assertIn("Read-only", result.stderr)
        self.assertFalse(sandbox.run_code("import socket; socket.create_connection(('192.0.2.1', 9), 2)"))
        shown = self.sandbox(mounts={"/usr/share/dpkg": ("/data", "ro")})
        self.assertTrue(shown.run(["test", "-e", "/data/cputable"]))

    def test_output_live_and_whole(self):
        heard = []
        sandbox = self.sandbox(on_stdout=heard.append)
        result = sandbox.run_code("for i in range(3): print(i, flush=True)\n6 * 7")
        self.assertEqual((b"".join(heard), result.stdout), (b"0\n1\n2\n", "0\n1\n2\n"))
        self.assertEqual((result.results[0].text, result.success), ("42", True))
        heard.clear()
        sandbox.run(["echo", "quiet"], on_stdout=None)
        self.assertEqual(heard, [])
        own = []
        every_byte = "import os; os.write(1, bytes(range(256))); os.write(2, b'e')"
        result = sandbox.run_code(every_byte, on_stdout=own.append,
                                  on_stderr=lambda _: 1 / 0)  # a listener's own failure is its own
        self.assertEqual((b"".join(own), heard, result.stderr), (bytes(range(256)), [], "e"))
        self.assertEqual(result.stdout, bytes(range(256)).decode("utf-8", "replace"))
        # More than the log of events holds.
        result = sandbox.run(["head", "-c", "20000000", "/dev/zero"], on_stdout=own.append)
        self.assertEqual((len(result.stdout), len(b"".join(own))), (20000000, 20000256))
        self.assertFalse(result.truncated)

    def test_cut_output(self):
        sandbox = self.sandbox(max_output_bytes=1024)
        for callback in (None, lambda _: None):
            result = sandbox.run(["head", "-c", "5000", "/dev/zero"], on_stdout=callback)
            self.assertEqual((len(result.stdout), result.truncated, result.exit_code),
                             (1024, True, 0))

    def test_many_threads(self):
        sandbox = self.sandbox()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(lambda n: sandbox.run(["echo", str(n)]).stdout, range(16)))
        self.assertEqual(results, [f"{n}\n" for n in range(16)])

    def test_what_the_server_refuses(self):
        self.assert_error("image_not_found" if harness.ENGINE == "kern" else "not_supported_here",
                          lambda: kernd.run_code("1", image="no/such:1", server=self.server))
        with self.assertRaises(kernd.MountRefused):
            self.sandbox(workspace="/etc")
        self.assert_error("setup_failed", lambda: self.sandbox(setup="echo why >&2; exit 4"))
        self.assert_error("setup_failed", lambda: self.sandbox(setup="exit 4", on_stderr=print))
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])
        wrong = kernd.Server(f"http://127.0.0.1:{self.daemon.port}", token="x" * 43)
        self.assert_error("unauthorized", lambda: kernd.run_code("1", server=wrong))


class Files(Case):
    def test_round_trip(self):
        sandbox = self.sandbox()
        sandbox.write_file("n.txt", "40")
        sandbox.write_file("a/b/ü %.bin", bytes(range(256)))
        self.assertEqual(sandbox.run_code("print(int(open('n.txt').read()) + 2)").stdout, "42\n")
        self.assertEqual(sandbox.read_file("a/b/ü %.bin"), bytes(range(256)))
        self.assertEqual(sandbox.read_file("/workspace/a/../n.txt"), b"40")
        self.assertFalse(sandbox.run_code("n"))  # files persist, variables do not
        self.assertEqual({(file.path, file.size) for file in sandbox.list_files()},
                         {("n.txt", 2), ("a/b/ü %.bin", 256)})
        self.assertEqual([file.path for file in sandbox.list_files("a")], ["a/b/ü %.bin"])
        self.assertEqual(sandbox.read_file("n.txt", max_bytes=2), b"40")
        self.assert_error("too_large", lambda: sandbox.read_file("n.txt", max_bytes=1))
        self.assert_error("file_not_found", lambda: sandbox.read_file("none"))

    def test_changes_are_told(self):
        sandbox = self.sandbox()
        changes = [[(file.path, file.change) for file in result.files] for result in (
            sandbox.run_code("open('f', 'w').write('a')"),
            sandbox.run_code("open('f', 'w').write('bb')"))]
        self.assertEqual(changes, [[("f", "created")], [("f", "modified")]])
        result = sandbox.run(["rm", "f"])
        self.assertEqual((result.files, result.deleted), ([], ["f"]))
        result = self.sandbox(track_files=False).run_code("open('f', 'w').write('a'); 6 * 7")
        self.assertEqual((result.files, result.results[-1].text), ([], "42"))

    def test_nothing_outside_is_reached(self):
        outside = self.path("outside")
        os.mkdir(outside)
        sandbox = self.sandbox()
        self.assertTrue(sandbox.run_code(
            "import os; os.symlink('/etc/passwd', 'link'); os.makedirs('d')\n"
            f"os.symlink('/etc', 'd/esc'); os.symlink({outside!r}, 'out')"))
        for path in ("link", "../../../etc/passwd", "/etc/passwd", "d/esc/hostname", "", "."):
            with self.assertRaises(kernd.SandboxError, msg=path):
                sandbox.read_file(path)
        for path in ("out/x", "d/esc/x", "../x"):
            with self.assertRaises(kernd.SandboxError, msg=path):
                sandbox.write_file(path, b"x")
        with self.assertRaises(kernd.SandboxError):
            sandbox.list_files("d/esc")
        self.assertEqual(os.listdir(outside), [])

    def test_the_workspace_goes_with_the_sandbox(self):
        with kernd.Sandbox(server=self.server) as sandbox:
            sandbox.write_file("x", "1")
            found = self.daemon.get("/v1/sessions").json["items"]
        self.assertEqual(len(found), 1)
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])
        with self.assertRaises(kernd.SandboxError):
            sandbox.read_file("x")
        sandbox.close()

    def test_snapshots(self):
        archive = self.path("s.tgz")
        sandbox = self.sandbox()
        sandbox.write_file("a.txt", "hi")
        sandbox.write_file("sub/b.txt", "deep")
        sandbox.snapshot(archive)
        other = self.sandbox()
        other.write_file("kept", "1")
        other.restore(archive)
        self.assertEqual([other.read_file(name) for name in ("a.txt", "sub/b.txt", "kept")],
                         [b"hi", b"deep", b"1"])
        with tarfile.open(archive) as tar:  # what other readers of such snapshots can take
            self.assertEqual([member.pax_headers for member in tar if member.pax_headers], [])
        with self.assertRaises(kernd.SandboxError):
            other.restore(self.path("none"))

    def test_hostile_archives(self):
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        sandbox = self.sandbox()
        self.assertTrue(sandbox.run(["ln", "-s", "/tmp", "planted"]))
        for number, member in enumerate((tarfile.TarInfo("/etc/evil"), tarfile.TarInfo("../escape"),
                                         link, tarfile.TarInfo("planted/evil"))):
            path = self.path(f"bad{number}.tar")
            with tarfile.open(path, "w") as tar:
                tar.addfile(tarfile.TarInfo("first.txt"), io.BytesIO(b""))
                tar.addfile(member, io.BytesIO(b""))
            with self.assertRaises(kernd.SandboxError, msg=member.name):
                sandbox.restore(path)
        self.assertEqual(sandbox.list_files(), [])


class Readme(Case):
    def run_example(self, path):
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            code = re.search(r"^```python\n(.*?)^```$", file.read(), re.M | re.S).group(1)
        done = subprocess.run(["/usr/bin/python3", "-B", "-c", code], cwd=self.folder.name, text=True,
                              capture_output=True, check=False, timeout=harness.seconds(60),
                              env={"PYTHONPATH": path, "KERND_TOKEN_FILE": self.daemon.token_path,
                                   "KERND_URL": f"http://127.0.0.1:{self.daemon.port}"})
        self.assertEqual((done.stdout, done.stderr), ("8 True\nb'42\\n'\n42\n", ""))
        self.assertTrue(os.path.exists(self.path("files.tgz")))

    def test_its_example(self):
        self.run_example(CLIENT)

    def test_its_example_after_pip_install(self):
        """... which needs no package index."""
        shutil.copytree(CLIENT, self.path("source"))
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-cache-dir",
                        "--root-user-action", "ignore", "--target", self.path("installed"),
                        self.path("source")], check=True, timeout=harness.seconds(120))
        installed = os.listdir(self.path("installed"))
        self.assertIn("kernd", installed)
        self.assertTrue(any(name.endswith(".dist-info") for name in installed), installed)
        self.assertEqual(sorted(set(os.listdir(self.path("installed/kernd"))) - {"__pycache__"}),
                         sorted(set(os.listdir(os.path.join(CLIENT, "kernd"))) - {"__pycache__"}))
        self.run_example(self.path("installed"))


class RichResults(Case):
    def test_values(self):
        sandbox = self.sandbox()
        result = sandbox.run_code("display(1); display(2); print('done')")
        self.assertEqual(([entry.text for entry in result.results], result.stdout),
                         (["1", "2"], "done\n"))
        self.assertEqual(sandbox.run_code("print('x')").results, [])
        rich = sandbox.run_code(
            "class R:\n"
            "    def _repr_html_(self): return '<b>hi</b>'\n"
            "    def _repr_markdown_(self): return '**hi**'\n"
            "    def _repr_svg_(self): return '<svg/>'\n"
            "    def _repr_json_(self): return {'a': [1]}\n"
            "    def _repr_png_(self): return b'\\x89PNG'\n"
            "R()", on_stdout=lambda _: None).results[0]
        self.assertEqual((rich.html, rich.markdown, rich.svg, rich.png, rich.jpeg),
                         ("<b>hi</b>", "**hi**", "<svg/>", b"\x89PNG", None))
        self.assertEqual(rich.json.replace(" ", ""), '{"a":[1]}')
        self.assertTrue(rich.text)
        self.assertIn("text/html", rich.formats())

    def test_nothing_internal_shows(self):
        result = self.sandbox().run_code("open('user.txt', 'w').write('hi')\n'done'")
        self.assertEqual([file.path for file in result.files], ["user.txt"])
        self.assertEqual(result.results[0].text, "'done'")


class Kernels(Case):
    def test_variables_stay(self):
        with self.sandbox().kernel() as kernel:
            self.assertIsInstance(kernel, kernd.Kernel)
            self.assertEqual(kernel.run_code("x = 40").results, [])
            result = kernel.run_code("y = x + 2\nprint('y', y)\ny")
            self.assertEqual((result.stdout, result.results[0].text), ("y 42\n", "42"))
            result = kernel.run_code("1 / 0")
            self.assertEqual((result.exit_code, result.fault), (1, None))
            self.assertIn("ZeroDivisionError", result.stderr)
            self.assertEqual(kernel.run_code("import sys; repr(sys.stdin.read()), y")
                             .results[0].text, repr(("''", 42)))
        self.assert_error("not_open", lambda: kernel.run_code("1"))

    def test_output_of_every_kind(self):
        with kernd.Kernel(self.sandbox(pids=128), timeout_s=30) as kernel:
            result = kernel.run_code("import os, subprocess; os.write(1, b'raw\\n')\n"
                                     "subprocess.run(['printf', 'sub'])\nprint('p')")
            for word in ("raw", "sub", "p"):
                self.assertIn(word, result.stdout)
            result = kernel.run_code("for _ in range(15):\n"
                                     "    pid = os.fork()\n"
                                     "    if pid == 0: os._exit(0)\n"
                                     "    os.waitpid(pid, 0)\n"
                                     "from concurrent.futures import ProcessPoolExecutor as P\n"
                                     "with P(2) as e: print(sum(e.map(abs, [-1, -2, -3])))")
            self.assertEqual((result.stdout, result.fault), ("6\n", None), result.stderr)
            self.assertEqual(kernel.run_code("print(7 * 7)").stdout, "49\n")

    def test_deadlines(self):
        sandbox = self.sandbox()
        with sandbox.kernel(timeout_s=1) as kernel:
            self.assertEqual(kernel.run_code("while True: pass").fault.type, "timeout")
            self.assert_error("kernel_dead", lambda: kernel.run_code("1"))
        with sandbox.kernel(on_timeout="interrupt") as kernel:
            kernel.run_code("x = 1")
            result = kernel.run_code("while True: pass", timeout_s=0.5)
            self.assertEqual(result.fault.type, "timeout")
            self.assertEqual(kernel.run_code("x").results[0].text, "1")

    def test_much_output_is_cut_and_the_kernel_lives(self):
        with self.sandbox(max_output_bytes=1 << 20).kernel() as kernel:
            result = kernel.run_code("print('A' * 5_000_000)")
            self.assertEqual((len(result.stdout), result.truncated), (1 << 20, True))
            self.assertTrue(kernel.run_code("1 + 1"))

    def test_a_death_is_told(self):
        with self.sandbox().kernel() as kernel:
            result = kernel.run_code("import os; os._exit(5)")
            self.assertFalse(result.success)
            self.assert_error("kernel_dead", lambda: kernel.run_code("1"))

    def test_a_warm_cell_is_quick(self):
        sandbox = self.sandbox()
        began = time.monotonic()
        sandbox.run_code("1 + 1")
        cold = time.monotonic() - began
        with sandbox.kernel() as kernel:
            kernel.run_code("1 + 1")
            took = []
            for _ in range(20):
                began = time.monotonic()
                kernel.run_code("sum(range(1000))")
                took.append(time.monotonic() - began)
        self.assertLess(min(took), cold)


class OnDemand(ondemandkit.Case):
    PROGRAM = ("import sys; sys.path.insert(0, sys.argv[1])\n"
               "import kernd\n"
               "with kernd.Sandbox() as sandbox:\n"
               "    print(sandbox.run(['echo', 'hello']).stdout, end='')\n")
    command = ("/usr/bin/python3", "-B", "-c", PROGRAM, CLIENT)

    def test_leaving_cancels(self):
        mark = harness.new_mark()
        options = self.options(MARK=mark)
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "import kernd, os\n"
                "kernd.run_code('import time; print(1, flush=True); time.sleep(300)',\n"
                "               env={'MARK': os.environ['MARK']}, timeout_s=300,\n"
                "               on_stdout=lambda _: print('runs', flush=True))\n")
        process = subprocess.Popen(["/usr/bin/python3", "-B", "-c", code, CLIENT],
                                   stdout=subprocess.PIPE, **options)
        self.addCleanup(self.forget, process)
        self.assertEqual(process.stdout.readline(), b"runs\n")
        process.send_signal(signal.SIGKILL)
        self.assert_gone(mark, limit=10)


if __name__ == "__main__":
    unittest.main()
