# SPDX-License-Identifier: Apache-2.0
"""Boxes started ahead: the same answers as without them, each box used once, none left behind."""
import base64
import os
import signal
import sys
import unittest

import census
import harness
import sessionkit
import test_output
import test_python
import test_results
import test_run
from againkit import again

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "escape"))
import test_escape  # noqa: E402

WITH_SPARES = ("--spares", "8")

# Every test that tells what a program sees and does, once more where its box was started before it.
AGAIN = [test_python.Exits, test_python.Tracebacks, test_python.MainModule, test_python.Streams,
         test_python.Environment, test_results.Values, test_results.NotANumber,
         test_results.BadRepresentations, test_results.MimeBundles, test_results.Figures,
         test_results.HostileDriverPeer, test_run.Hello, test_run.Input, test_run.FreshBox,
         test_run.Limits, test_output.InvalidUtf8, test_output.Caps, test_output.Deadline,
         test_escape.Namespaces, test_escape.Processes, test_escape.Kernel, test_escape.Devices,
         test_escape.HostFiles]


again(globals(), AGAIN, WITH_SPARES)


class Ahead(harness.Case):
    daemon_arguments = WITH_SPARES

    def wait_for_spare(self):
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["spares"] > 0,
                          harness.seconds(20), "a spare")

    def from_spare(self, code, **options):
        self.wait_for_spare()
        return self.daemon.run_code(code, **options)


class Spares(Ahead):
    def from_own_spare(self, session, code):
        """The spares of a session are counted with all others: calls until one has come from them."""
        results = []

        def called():
            results.append(session.run_code(code))
            return results[-1]["usage"]["source"] == "spare"
        census.wait_until(called, harness.seconds(20), "a spare of the session")
        return results[-1]

    def test_the_second_call_finds_its_box_ready(self):
        self.daemon.run_code("1")
        result = self.from_spare("6 * 7")
        self.assertEqual(result["usage"]["source"], "spare")
        self.assertEqual(result["results"][0]["data"]["text/plain"], "42")

    def test_nothing_of_one_call_is_seen_by_the_next(self):
        leave = ("import os\n"
                 "for place in ('/tmp/mark', '/dev/shm/mark', os.path.expanduser('~/mark'), 'mark'):\n"
                 "    open(place, 'w').write('x')\n"
                 "os.environ['MARK'] = 'x'\nimport builtins; builtins.MARK = 1\n")
        look = ("import os, builtins\n"
                "print([os.path.exists(p) for p in ('/tmp/mark', '/dev/shm/mark', "
                "os.path.expanduser('~/mark'), 'mark')], 'MARK' in os.environ, "
                "hasattr(builtins, 'MARK'), len([p for p in os.listdir('/proc') if p.isdigit()]))")
        self.daemon.run_code("1")
        for _ in range(3):
            self.assertEqual(self.from_spare(leave)["exitCode"], 0)
            seen = self.from_spare(look)
            self.assertEqual(seen["usage"]["source"], "spare")
            self.assertEqual(seen["stdout"], "[False, False, False, False] False False 2\n")

    def test_variables_of_one_call(self):
        self.daemon.run_code("1")
        result = self.from_spare("import os; print(os.environ['A'], os.environ.get('B'))",
                                 env={"A": "one"})
        self.assertEqual(result["stdout"], "one None\n")
        result = self.from_spare("import os; print(os.environ.get('A'), os.environ['PYTHONHASHSEED'])",
                                 env={"PYTHONHASHSEED": "0"})
        self.assertEqual(result["stdout"], "None 0\n")
        self.assertEqual(result["usage"]["source"], "cold")

    def test_caps_of_one_call(self):
        self.daemon.run_code("1")
        result = self.from_spare("import time; b = b'x' * (300 << 20); time.sleep(20)", memoryMb=96)
        self.assertEqual(result["fault"]["type"], "oom")
        result = self.from_spare("import time; time.sleep(60)", timeoutS=0.5)
        self.assertEqual(result["fault"]["type"], "timeout")
        result = self.from_spare("import threading, time\n"
                                 "t = [threading.Thread(target=time.sleep, args=(9,), daemon=True) "
                                 "for _ in range(60)]\n[x.start() for x in t]", pids=16)
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("RuntimeError", result["stderr"])

    def test_files_and_standard_input(self):
        self.daemon.run_code("1")
        result = self.from_spare("import sys\nopen('out', 'w').write(open('in').read() + "
                                 "sys.stdin.read())", files={"in": "a"}, stdin="b",
                                 fetchFiles=["out"])
        self.assertEqual(base64.b64decode(result["fetched"]["out"]["base64"]), b"ab")
        self.assertEqual([row["path"] for row in result["files"]], ["out"])

    def test_secrets_of_one_call(self):
        self.daemon.run_code("1")
        look = "import os; print(os.path.exists('/run/secrets'), sorted(os.listdir('/run/secrets')))"
        result = self.from_spare("print(open('/run/secrets/KEY').read())", secrets={"KEY": "s3cret"})
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("s3cret\n", "spare"))
        result = self.from_spare(look, secrets={"OTHER": "x"})
        self.assertEqual((result["stdout"], result["usage"]["source"]), ("True ['OTHER']\n", "spare"))
        result = self.from_spare("import os; print(os.path.exists('/run/secrets'))")
        # In a box of kern it is a mount, which is there from the start.
        self.assertEqual((result["stdout"], result["usage"]["source"]),
                         ("True\n" if harness.ENGINE == "kern" else "False\n", "spare"))

    def test_packages_of_a_session(self):
        """Those of a setup are found by what was booted ahead, also when it was booted before it."""
        session = sessionkit.Session(self.daemon)
        self.addCleanup(session.delete)
        self.from_own_spare(session, "1")
        for value in ("1", "22"):
            reply = session.post("setup", {"command": "mkdir -p .deps; "
                                           f"echo value = {value} > .deps/kernd_probe.py"})
            self.assertEqual(reply.status, 200, reply)
            code = "import kernd_probe; print(kernd_probe.value)"
            self.assertEqual(session.run_code(code)["stdout"], f"{value}\n")
            self.assertEqual(self.from_own_spare(session, code)["stdout"], f"{value}\n")

    def test_a_spare_that_died_is_not_noticed(self):
        self.daemon.run_code("1")
        self.wait_for_spare()
        killed = self.daemon.box_processes()
        for process in killed:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it went with the one before
        census.wait_gone(lambda: set(killed) & set(self.daemon.box_processes()),
                         harness.seconds(10), "killed spares")
        result = self.daemon.run_code("6 * 7")
        self.assertEqual(result["results"][0]["data"]["text/plain"], "42")

    def test_sessions_have_their_own(self):
        self.daemon.post("/v1/sessions", {"id": "spared"})
        self.daemon.result("/v1/sessions/spared/runCode", {"code": "open('f', 'w').write('x')"})
        self.wait_for_spare()
        result = self.daemon.result("/v1/sessions/spared/runCode", {"code": "print(open('f').read())"})
        self.assertEqual(result["stdout"], "x\n")
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/spared").status, 204)

    def test_a_burst(self):
        self.daemon.run_code("1")
        answers = harness.parallel(40, lambda n: self.daemon.run_code(f"print({n})")["stdout"])
        self.assertEqual(answers, [f"{n}\n" for n in range(40)])


class NodeSpares(Ahead):
    def from_spare(self, code, **options):
        """The first call of all finds none; a daemon of this class keeps no others."""
        if self.daemon.get("/v1/stats").json["executionsTotal"] == 0:
            self.daemon.run_code("0", "node")
        self.wait_for_spare()
        result = self.daemon.run_code(code, "node", **options)
        self.assertEqual(result["usage"]["source"], "spare")
        return result

    def test_node_is_up_before_its_code(self):
        result = self.from_spare("console.log(__filename, process.cwd(), 6 * 7, typeof fs.open)")
        self.assert_success(result, "[eval] /workspace 42 function\n")
        result = self.from_spare("process.exitCode = 3; setTimeout(() => console.log('late'), 5)")
        self.assertEqual((result["exitCode"], result["stdout"]), (3, "late\n"))
        result = self.from_spare("throw new TypeError('mine')")
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("TypeError: mine", result["stderr"])
        self.assertNotIn("kernd-lib", result["stderr"].split("\n    at ")[0])

    def test_nothing_of_one_node_is_seen_by_the_next(self):
        look = ("console.log(globalThis.MARK, process.env.MARK, ['/tmp/mark', '/dev/shm/mark', "
                "os.homedir() + '/mark', 'mark'].map((path) => fs.existsSync(path)).join(), "
                "fs.readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length); ")
        leave = ("globalThis.MARK = process.env.MARK = 1; for (const path of ['/tmp/mark', "
                 "'/dev/shm/mark', os.homedir() + '/mark', 'mark']) fs.writeFileSync(path, 'x'); "
                 "child_process.spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }).unref()")
        for _ in range(3):
            self.assert_success(self.from_spare(look + leave),
                                "undefined undefined false,false,false,false 2\n")

    def test_node_gets_the_variables_input_and_files_of_its_call(self):
        result = self.from_spare(
            "fs.writeFileSync('out', fs.readFileSync('in') + fs.readFileSync(0) + process.env.A)",
            env={"A": "c"}, files={"in": "a"}, stdin="b", fetchFiles=["out"])
        self.assertEqual(base64.b64decode(result["fetched"]["out"]["base64"]), b"abc")
        self.wait_for_spare()
        result = self.daemon.run_code("console.log(process.execArgv, process.env.NODE_OPTIONS)", "node",
                                      env={"NODE_OPTIONS": "--stack-trace-limit=3"})
        self.assertEqual(result["usage"]["source"], "cold")
        self.assert_success(result, "[] --stack-trace-limit=3\n")

    def test_caps_of_one_call_of_node(self):
        result = self.from_spare("setInterval(() => {}, 1000)", timeoutS=0.5)
        self.assertEqual(result["fault"]["type"], "timeout")
        result = self.from_spare("const b = Buffer.alloc(400 << 20, 1); setTimeout(() => b, 2e4)",
                                      memoryMb=160)
        self.assertEqual(result["fault"]["type"], "oom")


if __name__ == "__main__":
    unittest.main()
