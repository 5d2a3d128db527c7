# SPDX-License-Identifier: Apache-2.0
"""Commands and code of every language: what goes in arrives, what comes out comes back."""
import base64
import hashlib
import os
import unittest

import census
import harness
from harness import b64
from templatekit import Forked


class Hello(Forked, harness.Case):
    """The shortest useful calls."""

    def test_command(self):
        result = self.run_command(["echo", "hello", "a b"])
        self.assert_success(result, "hello a b\n")
        self.assertEqual((result["kind"], result["sessionId"], result["kernelId"]),
                         ("run", None, None))
        self.assertEqual((result["stderr"], result["files"], result["results"],
                          result["fetched"]), ("", [], [], {}))

    def test_python(self):
        result = self.run_code("print('hello')")
        self.assert_success(result, "hello\n")
        self.assertEqual(result["kind"], "runCode")

    def test_bash_is_bash(self):
        self.assert_success(self.run_code("[[ a == a ]] && echo ${BASH_VERSION:+bash}; "
                                          "a=(1 2 3); echo ${#a[@]}", "bash"), "bash\n3\n")

    def test_node(self):
        self.assert_success(self.run_code("console.log('hello', 6 * 7)", "node"), "hello 42\n")

    def test_language_is_python_unless_told(self):
        reply = self.daemon.post("/v1/runCode", {"code": "print(1)"})
        self.assert_success(reply.json, "1\n")

    def test_over_the_unix_socket_without_a_token(self):
        result = self.daemon.result("/v1/run", {"command": ["id", "-u"]}, via="unix")
        self.assert_success(result, f"{harness.BOX_UID}\n")

    def test_exit_codes(self):
        for language, code in (("python", "raise SystemExit(7)"), ("bash", "exit 7"),
                               ("node", "process.exit(7)")):
            with self.subTest(language=language):
                result = self.run_code(code, language)
                self.assertEqual((result["exitCode"], result["success"], result["fault"]),
                                 (7, False, None))

    def test_errors_of_the_interpreters(self):
        for language, code, word in (("python", "1/0", "ZeroDivisionError"),
                                     ("bash", "no_such_command", "not found"),
                                     ("bash", "if", "syntax error"),
                                     ("node", "null.x", "TypeError"),
                                     ("node", "{", "SyntaxError")):
            with self.subTest(code=code):
                result = self.run_code(code, language)
                self.assertNotEqual(result["exitCode"], 0)
                self.assertIn(word, result["stderr"])
                self.assertIsNone(result["fault"])

    def test_node_details(self):
        self.assert_success(self.run_code("const fs = require('fs'); const {join} = require('path');"
                                          "console.log(join('a', 'b'), fs.existsSync('/workspace'))",
                                          "node"), "a/b true\n")
        self.assert_success(self.run_code("Promise.resolve().then(() => console.log('later'));"
                                          "setTimeout(() => console.log('last'), 20)", "node"),
                            "later\nlast\n")
        result = self.run_code("Promise.reject(new Error('unhandled-1'))", "node")
        self.assertEqual(result["exitCode"], 1)
        self.assertIn("unhandled-1", result["stderr"])

    def test_long_code(self):
        for language, comment, show in (("python", "#", "print(1)"), ("bash", "#", "echo 1"),
                                        ("node", "//", "console.log(1)")):
            with self.subTest(language=language):
                code = f"{comment} {'x' * 400000}\n{show}\n"
                self.assert_success(self.run_code(code, language), "1\n")

    def test_many_arguments(self):
        arguments = [str(i) * 100 for i in range(1000)]
        result = self.run_command(["sh", "-c", "echo $#", "sh", *arguments])
        self.assert_success(result, "1000\n")

    def test_many_arguments_of_what_the_kernel_cannot_execute(self):
        """Some C libraries hand it to sh, with a copy of the arguments; others say why not."""
        session = f"/v1/sessions/{self.daemon.post('/v1/sessions', {}).json['id']}"
        self.addCleanup(self.daemon.request, "DELETE", session)
        made = self.daemon.post(f"{session}/run", {
            "command": ["sh", "-c", "echo 'echo $#' > script && chmod 755 script"]}).json
        self.assertEqual(made["exitCode"], 0)
        for count in (1, 60000):
            with self.subTest(count=count):
                result = self.daemon.post(f"{session}/run", {
                    "command": ["./script", *["a"] * count]}).json
                self.assertIn((result["exitCode"], result["stdout"]),
                              ((0, f"{count}\n"), (126, "")))

    def test_arguments_are_never_a_shell_line(self):
        odd = ["$HOME", "`id`", "a;b", "*", "", "two\nlines", "--help", "é☃", "%s", "'\""]
        result = self.run_command(["printf", "[%s]", *odd])
        self.assert_success(result, "".join(f"[{text}]" for text in odd))


class Timing(harness.Case):
    """Where the time of a call went."""

    STEPS = ["accept", "guard", "parse", "admit", "queue", "take", "send", "run", "reap", "diff",
             "record", "reply"]

    def steps_of(self, reply):
        steps = dict(part.split(";dur=") for part in reply.header("Server-Timing").split(", "))
        return {name: float(spent) for name, spent in steps.items()}

    def test_every_step_is_told_in_order(self):
        reply = self.daemon.post("/v1/runCode", {"code": "import time; time.sleep(0.2)"})
        steps = self.steps_of(reply)
        self.assertEqual(list(steps), self.STEPS)
        self.assertGreaterEqual(steps["run"], 200)
        self.assertLess(steps["reply"], steps["run"])

    def test_a_call_without_an_execution_has_none(self):
        for target in ("/v1/version", "/v1/executions"):
            self.assertIsNone(self.daemon.get(target).header("Server-Timing"))

    def test_neither_has_a_refusal_or_a_stream(self):
        refused = self.daemon.post("/v1/runCode", {"code": 1})
        self.assertEqual((refused.status, refused.header("Server-Timing")), (422, None))
        stream = self.daemon.post("/v1/runCode", {"code": "1"},
                                  headers={"Accept": "application/x-ndjson"})
        self.assertEqual((stream.status, stream.header("Server-Timing")), (200, None))


class Input(Forked, harness.Case):
    """stdin, environment and working directory."""

    def test_stdin_text_and_bytes(self):
        self.assert_success(self.run_command(["cat"], stdin="é\n☃"), "é\n☃")
        data = bytes(range(256)) * 300
        result = self.run_command(["sha256sum"], stdin=b64(data))
        self.assert_success(result, hashlib.sha256(data).hexdigest() + "  -\n")

    def test_no_stdin_is_an_end_of_file(self):
        self.assert_success(self.run_command(["wc", "-c"]), "0\n")
        self.assert_success(self.run_command(["wc", "-c"], stdin=""), "0\n")
        self.assert_success(self.run_command(["wc", "-c"], stdin=None), "0\n")

    def test_stdin_nobody_reads(self):
        with self.within(15):
            self.assert_success(self.run_command(["true"], stdin="x" * 3_000_000), "")

    def test_large_stdin_comes_back(self):
        text = "0123456789abcdef" * 200000
        self.assert_success(self.run_command(["cat"], stdin=text), text)

    def test_stdin_of_each_language(self):
        self.assert_success(self.run_code("read line; echo got $line; cat", "bash", stdin="a\nb\n"),
                            "got a\nb\n")
        self.assert_success(self.run_code("process.stdin.on('data', d => console.log('got', "
                                          "d.toString().trim()))", "node", stdin="a\n"), "got a\n")

    def test_environment(self):
        env = {"GREETING": "hello é", "EMPTY": "", "LINES_": "a\nb", "EQUALS": "x=y=z",
               "SPACES": "  padded  "}
        code = "import os; print([os.environ[k] for k in %r])" % list(env)
        self.assert_success(self.run_code(code, env=env), f"{list(env.values())}\n")

    def test_base_environment_is_small_and_fixed(self):
        result = self.run_command(["env"])
        self.assert_success(result)
        found = dict(line.split("=", 1) for line in result["stdout"].splitlines())
        self.assertEqual((found["HOME"], found["LANG"]), ("/home/sandbox", "C.UTF-8"))
        if harness.ENGINE != "kern":  # there these two are the image's
            self.assertEqual(found["PATH"], "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
                                            "/sbin:/bin")
            self.assertEqual(found["TZ"], "UTC")
        self.assertNotIn("KERND_CANARY", found)
        self.assertLess(len(found), 16, found)

    def test_caller_may_replace_the_base(self):
        result = self.run_command(["sh", "-c", "echo $HOME $LANG $TZ $PATH"],
                                  env={"HOME": "/tmp", "LANG": "C", "TZ": "Asia/Tokyo",
                                       "PATH": "/usr/bin:/bin"})
        self.assert_success(result, "/tmp C Asia/Tokyo /usr/bin:/bin\n")

    def test_working_directory(self):
        self.assert_success(self.run_command(["pwd"]), "/workspace\n")
        self.assert_success(self.run_command(["pwd"], cwd="/tmp"), "/tmp\n")
        self.assert_success(self.run_command(["pwd"], cwd="/workspace/a",
                                             files={"a/x": "1"}), "/workspace/a\n")
        for language, code in (("python", "import os; print(os.getcwd())"), ("bash", "pwd"),
                               ("node", "console.log(process.cwd())")):
            with self.subTest(language=language):
                self.assert_success(self.run_code(code, language, cwd="/tmp"), "/tmp\n")

    def test_working_directory_that_is_not_there(self):
        reply = self.daemon.post("/v1/run", {"command": ["pwd"], "cwd": "/no/such/place"})
        if reply.status == 200:
            self.assertNotEqual(reply.json["exitCode"], 0)
            self.assertIn("/no/such/place", reply.json["stderr"])
        else:
            self.assert_problem(reply, 422, "bad_path", "/cwd")

    def test_terminal_is_not_there(self):
        self.assert_success(self.run_command(["sh", "-c", "test -t 0 || test -t 1 || test -t 2 ||"
                                              " echo none; (: </dev/tty) 2>/dev/null || echo no"]),
                            "none\nno\n")


class FreshBox(Forked, harness.Case):
    """Nothing of one call is there for the next."""

    def test_files_processes_and_memory_do_not_stay(self):
        self.assert_success(self.run_code("touch left /tmp/left ~/left /dev/shm/left; ls", "bash"),
                            "left\n")
        result = self.run_code("ls -A . /tmp ~ /dev/shm | grep left; ls /workspace; echo end",
                               "bash")
        self.assert_success(result, "end\n")

    def test_processes_are_only_its_own(self):
        code = "import os; print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))"
        result = self.run_code(code)
        self.assert_success(result)
        self.assertLessEqual(len(eval(result["stdout"])), 3, result["stdout"])

    def test_with_the_answer_nothing_runs_or_writes_any_more(self):
        mark = f"left-{os.urandom(6).hex()}"
        code = f"""
rm -f grows-*
for i in 1 2 3 4 5 6; do
    setsid bash -c 'while echo $0; do :; done >>grows-'$i {mark} &
done
while [ "$(cat grows-* 2>/dev/null | wc -l)" -lt 100 ]; do :; done
(trap '' TERM; exec -a {mark} sleep 300) &
"""
        self.daemon.post("/v1/sessions", {"id": "final"})
        for _ in range(3):
            result = self.daemon.result("/v1/sessions/final/runCode",
                                        {"code": code, "language": "bash"})
            self.assertEqual(census.with_argument(mark), [])
            self.assert_success(result)
            told = {row["path"]: row["size"] for row in result["files"]
                    if row["change"] != "deleted"}
            listed = self.daemon.get("/v1/sessions/final/files").json["items"]
            self.assertEqual(told, {row["path"]: row["size"] for row in listed})
        self.daemon.request("DELETE", "/v1/sessions/final")

    def test_read_only_system(self):
        result = self.run_code("for d in /usr /etc /bin /lib / /run/kernd /run/kernd-lib /proc/sys;"
                               " do touch $d/x 2>/dev/null && echo wrote $d; done; echo end",
                               "bash")
        self.assert_success(result, "end\n")

    def test_writable_places(self):
        result = self.run_code("for d in /workspace /tmp ~ /dev/shm /var/tmp; do touch $d/x && "
                               "echo $d; done", "bash")
        self.assertEqual(result["stdout"].split()[:4],
                         ["/workspace", "/tmp", "/home/sandbox", "/dev/shm"])

    def test_network_is_a_loopback_of_its_own(self):
        code = f"""
import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
c = socket.create_connection(s.getsockname()); print("own loopback works")
try: socket.create_connection(("127.0.0.1", {self.daemon.port}), 2); print("reached the daemon")
except OSError as error: print(type(error).__name__)
try: socket.create_connection(("192.0.2.1", 80), 2); print("reached the world")
except OSError as error: print(type(error).__name__)
"""
        result = self.run_code(code)
        self.assert_success(result)
        self.assertEqual(result["stdout"].splitlines()[0:2],
                         ["own loopback works", "ConnectionRefusedError"])
        self.assertNotIn("reached", result["stdout"])

    def test_network_on_request(self):
        code = (f"import socket; socket.create_connection(('127.0.0.1', {self.daemon.port}), 5); "
                "print('reached')")
        self.assert_success(self.run_code(code, network=True), "reached\n")
        self.assertNotEqual(self.run_code(code, network=False)["exitCode"], 0)

    def test_host_names_and_hardware_are_hidden(self):
        import socket
        result = self.run_code("hostname; cat /etc/hostname 2>/dev/null; ls /sys /boot /root /home",
                               "bash")
        self.assertTrue(result["stdout"].startswith("sandbox\n"))
        self.assertNotIn(socket.gethostname() + "\n", result["stdout"])

    def test_every_call_has_its_own_record_id(self):
        ids = {self.run_command(["true"])["id"] for _ in range(5)}
        self.assertEqual(len(ids), 5)

    def test_code_is_not_in_any_command_line(self):
        mark = harness.new_mark()

        def look(result_of):
            census.wait_until(lambda: census.with_environment(mark), harness.seconds(10),
                              "the program's start")
            return census.with_argument(result_of)

        for language, code in (("python", "import subprocess as s; s.run(['sleep', '1.5'])  # {}"),
                               ("bash", "sleep 1.5; : {}"),
                               ("node", "require('child_process').execSync('sleep 1.5') // {}")):
            with self.subTest(language=language):
                secret = harness.new_mark()
                found = harness.parallel(2, lambda i: look(secret) if i else self.run_code(
                    code.format(secret), language, env={"MARK": mark}))
                self.assert_success(found[0])
                self.assertEqual(found[1], [], census.describe(found[1]))
                self.assert_gone(mark)


class Limits(harness.Case):
    """What was asked for is what the answer tells."""

    def test_defaults(self):
        limits = self.run_command(["true"])["limits"]
        self.assertEqual((limits["timeoutS"], limits["memoryMb"], limits["pids"]), (30, 512, 256))
        self.assertLessEqual({"memory", "pids"}, set(limits["enforced"]))
        for how in limits["enforced"].values():
            self.assertIn(how, ("cgroup", "watchdog", "rlimit", "measured", "none"))

    def test_asked_for(self):
        limits = self.run_command(["true"], timeoutS=2.5, memoryMb=128, pids=32, cpus=0.5)["limits"]
        self.assertEqual((limits["timeoutS"], limits["memoryMb"], limits["pids"], limits["cpus"]),
                         (2.5, 128, 32, 0.5))

    def test_null_is_the_default(self):
        limits = self.run_command(["true"], timeoutS=None, memoryMb=None)["limits"]
        self.assertEqual((limits["timeoutS"], limits["memoryMb"]), (30, 512))


class Encoded(harness.Case):
    def test_base64_of_both_streams(self):
        result = self.run_code("import os; os.write(1, b'\\xff\\x00'); os.write(2, b'\\xfe')",
                               stdoutEncoding="base64")
        self.assertEqual(base64.b64decode(result["stdout"]), b"\xff\0")


if __name__ == "__main__":
    unittest.main()
