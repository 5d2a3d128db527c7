# SPDX-License-Identifier: Apache-2.0
"""kernd's commands: run, code, sessions, files, logs, snapshots, and how they fail."""
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import census
import commandkit
import harness

EVERY_BYTE = bytes(range(256)) * 1200


class Programs(commandkit.Case):
    def test_exit_status(self):
        for line, code in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)):
            self.kernd("run", "--", "sh", "-c", line, code=code)
        self.kernd("run", "no-such-program", code=127)
        self.assertIn(b"no-such-program", self.error)

    def test_options_end_at_the_program(self):
        self.assertEqual(self.kernd("run", "echo", "--json", "-h", "--"), b"--json -h --\n")
        self.assertEqual(self.kernd("run", "-e", "A=b", "--env=C=d e", "-w/tmp", "--", "sh", "-c",
                                    "echo $A $C; pwd"), b"b d e\n/tmp\n")

    def test_output_is_exact_and_apart(self):
        path = self.write("bytes", EVERY_BYTE)
        out = self.kernd("run", "--file", path + ":in", "--", "sh", "-c", "cat in; cat in >&2")
        self.assertEqual((out, self.error), (EVERY_BYTE, EVERY_BYTE))

    def test_output_above_what_events_hold(self):
        out = self.kernd("run", "--", "head", "-c", "20000000", "/dev/zero")
        self.assertEqual(out, bytes(20000000))
        self.assertEqual(len(self.kernd("run", "--max-output", "1000", "head", "-c", "5000",
                                        "/dev/zero")), 1000)
        self.assertIn(b"cut", self.error)

    def test_standard_input(self):
        self.assertEqual(self.kernd("run", "cat", given=EVERY_BYTE), EVERY_BYTE)
        self.assertEqual(self.kernd("run", "cat", given=EVERY_BYTE * 10), EVERY_BYTE * 10)
        self.assertEqual(self.kernd("run", "-n", "cat", given=b"x"), b"")
        process = self.start("run", "--", "sh", "-c", "echo ready; cat", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.stdin.write(b"late\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"late\n")
        process.stdin.close()
        self.assertEqual(process.wait(harness.seconds(20)), 0)

    def test_output_is_live(self):
        process = self.start("run", "--", "sh", "-c", "echo one; read x; echo two",
                             stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"one\n")
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"two\n")

    def test_interrupts(self):
        python = "import time\nprint(1, flush=True)\ntime.sleep(300)"
        deaf = "trap '' INT; echo 1; while :; do sleep 0.05; done"
        for arguments, presses, code in (
                (("run", "--", "python3", "-c", python), 1, 130),
                # The shell waits for its child: the child must be reached, too.
                (("run", "--", "sh", "-c", f"python3 -c '{python}'; echo 2"), 1, 130),
                (("code", "-c", python), 1, 130),
                (("run", "--", "sh", "-c", deaf), 2, 137)):
            mark = harness.new_mark()
            process = self.start(arguments[0], "-e", f"MARK={mark}", *arguments[1:])
            self.assertEqual(process.stdout.readline(), b"1\n")
            for _ in range(presses):
                process.send_signal(signal.SIGINT)
                # The second press must not come while the first is not taken yet: one signal is kept.
                census.wait_until(lambda p=process: not pending_interrupt(p.pid),
                                  harness.seconds(20), "the press to be taken")
            self.assertEqual(process.wait(harness.seconds(20)), code, arguments)
            census.wait_until(lambda m=mark: not census.with_environment(m), harness.seconds(10),
                              "the end of the box")

    def test_terminated_and_killed(self):
        trap = "trap 'echo term; exit 9' TERM; echo 1; while :; do sleep 0.05; done"
        process = self.start("run", "--", "sh", "-c", trap)
        self.assertEqual(process.stdout.readline(), b"1\n")
        process.terminate()
        self.assertEqual(process.communicate(timeout=harness.seconds(20))[0], b"term\n")
        self.assertEqual(process.returncode, 9)
        mark = harness.new_mark()
        process = self.start("run", "-e", f"MARK={mark}", "--", "sh", "-c", "echo 1; sleep 300")
        self.assertEqual(process.stdout.readline(), b"1\n")
        process.kill()
        census.wait_until(lambda: not census.with_environment(mark), harness.seconds(10),
                          "the end of the box")

    def test_faults(self):
        self.kernd("run", "-t", "0.3", "sleep", "30", code=137)
        self.assertRegex(self.error, rb"^kernd: .*0\.3s")

    def test_files_in_and_out(self):
        self.write("in.txt", b"\x00in\xff")
        self.write("key", b"s3cret\n")
        out = self.kernd("run", "-f", "in.txt", "--fetch", "out.bin:got", "--secret", "K=key", "--",
                         "sh", "-c", "cat in.txt in.txt >out.bin; cat /run/secrets/K; pwd")
        self.assertEqual(out, b"s3cret\n/workspace\n")
        self.assertEqual(self.read("got"), b"\x00in\xff" * 2)
        self.kernd("run", "--fetch", "none", "true", code=125)
        self.assertIn(b"none", self.error)

    def test_json(self):
        result = json.loads(self.kernd("run", "--json", "--", "sh", "-c", "cat; exit 3",
                                       given=b"x", code=3))
        self.assertEqual((result["stdout"], result["exitCode"]), ("x", 3))
        problem = json.loads(self.kernd("run", "--json", "-s", "none", "true", code=125))
        self.assertEqual(problem["code"], "session_not_found")
        self.assertEqual(self.error, b"")

    def test_code(self):
        self.assertEqual(self.kernd("code", "-c", "print(1)\n6 * 7"), b"1\n42\n")
        self.assertEqual(self.kernd("code", given=b"print('in')"), b"in\n")
        self.assertEqual(self.kernd("code", "-l", "bash", "-", given=b"echo $((1+1))"), b"2\n")
        self.write("a.js", b"console.log(require('fs').readFileSync(0, 'utf8'))")
        self.assertEqual(self.kernd("code", "a.js", given=b"typed"), b"typed\n")
        self.kernd("code", "-c", "1/0", code=1)
        self.assertIn(b"ZeroDivisionError", self.error)
        self.kernd("code", "no-such-file.py", code=125)
        self.assertIn(b"no-such-file.py: No such file", self.error)

    def test_images_are_saved(self):
        png = b"\x89PNG\r\n\x1a\n"
        code = f"class I:\n    def _repr_png_(self): return {png!r}\nI()"
        self.kernd("code", "--images", "pictures", "-c", code)
        self.assertIn(b"pictures/figure-1.png", self.error)
        self.assertEqual(self.read("pictures/figure-1.png"), png)
        with self.terminal("code", "-c", code, TERM="xterm-kitty") as terminal:
            terminal.expect(re.escape("\033_Ga=T,f=100,m=0;" + base64.b64encode(png).decode()))

    def test_failures_are_a_line_with_a_remedy(self):
        for arguments in (("run", "-m", "99999999", "true"), ("run", "-s", "none", "true"),
                          ("run", "-t", "soon", "true"), ("run", "--mount", "/etc", "true"),
                          ("run", "--file", "none", "true"), ("run", "--secret", "x", "true"),
                          ("run",), ("run", "--frob"), ("run", "-t"), ("run", "--json=1", "true"),
                          ("cp", "a", "b"), ("logs", "none"), ("image", "pull", "debian"),
                          ("api", "get", "x"), ("ps", "extra"), ("repl", "--kernel", "k")):
            self.kernd(*arguments, code=125)
            self.assertRegex(self.error, rb"\Akernd: [^\n]+\n\Z", arguments)
        self.kernd("frob", code=2)
        self.assertIn(b"kernd help", self.error)

    def test_no_server(self):
        for name, value in (("KERND_SOCKET", self.daemon.path("none")),
                            ("KERND_URL", "http://127.0.0.1:1"), ("KERND_URL", "ftp://x")):
            self.kernd("ps", code=125, environment={name: value, "KERND_TOKEN_FILE": "/dev/null"})
            self.assertRegex(self.error, rb"\Akernd: [^\n]+; [^\n]+\n\Z")

    def test_tcp(self):
        token = self.write("token", self.daemon.token.encode() + b"\n")
        os.chmod(token, 0o600)
        options = ("--url", f"http://127.0.0.1:{self.daemon.port}/", "--token-file", token)
        self.assertEqual(self.kernd("run", *options, "--", "cat", given=EVERY_BYTE), EVERY_BYTE)
        self.kernd("run", *options[:2], "true", code=125)
        self.assertIn(b"--token-file", self.error)
        self.write("token", b"0" * 64)
        self.kernd("run", *options, "true", code=125)
        self.assertIn(b"token", self.error)

    def test_colours(self):
        with self.terminal("run", "-s", "none", "true") as terminal:
            self.assertIn("\033[", terminal.expect("no session"))
        for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with self.terminal("run", "-s", "none", "true", **plain) as terminal:
                self.assertNotIn("\033[", terminal.expect("no session"))

    def test_terminal_input(self):
        with self.terminal("run", "cat") as terminal:  # nothing is read from a terminal unasked
            self.assertEqual(terminal.end(), 0)
        with self.terminal("run", "--", "sh", "-c", "echo ready; exec sleep 600") as terminal:
            terminal.expect("ready")
            terminal.type("\x03")
            terminal.expect(r"\^C\r\n")  # the prompt of the shell begins a line of its own
            self.assertEqual(terminal.end(), 130)
        with self.terminal("run", "-i", "--", "sh", "-c", "echo ready; cat") as terminal:
            terminal.expect("ready\r\n")
            terminal.type("typed\n")
            terminal.expect("typed\r\ntyped\r\n")
            terminal.type("\x04")
            self.assertEqual(terminal.end(), 0)


def pending_interrupt(pid):
    """Whether a SIGINT waits to be read by the process (it blocks the signal)."""
    try:
        return int(census.status_field(pid, "ShdPnd"), 16) & 1 << (signal.SIGINT - 1)
    except (OSError, KeyError):
        return False


class Sessions(commandkit.Case):
    def session(self):
        name = "s" + os.urandom(4).hex()
        self.addCleanup(lambda: self.kernd("session", "rm", name, name + "2"))
        self.assertEqual(self.kernd("session", "create", "--id", name, "--label", "a=b", "-t", "9"),
                         name.encode() + b"\n")
        return name

    def test_life(self):
        name = self.session()
        self.kernd("run", "-s", name, "--", "sh", "-c", "echo kept >f")
        self.assertEqual(self.kernd("run", "-s", name, "cat", "f"), b"kept\n")
        self.assertIn(name.encode(), self.kernd("session", "list", "-q").split(b"\n"))
        self.assertRegex(self.kernd("session", "list"), rb"\ASESSION +STATE")
        shown = json.loads(self.kernd("session", "show", "--json", name))
        self.assertEqual((shown["labels"], shown["options"]["timeoutS"]), ({"a": "b"}, 9))
        self.assertRegex(self.kernd("session", "show", name), rb"(?m)^options.timeoutS +9$")
        self.assertEqual(self.kernd("session", "fork", name, "--id", name + "2"),
                         name.encode() + b"2\n")
        self.assertEqual(self.kernd("run", "-s", name + "2", "cat", "f"), b"kept\n")
        self.kernd("session", "rm", name, name + "2")
        items = json.loads(self.kernd("session", "list", "--json"))["items"]
        self.assertNotIn(name, [item["id"] for item in items])

    def test_copies(self):
        name = self.session()
        os.makedirs(os.path.join(self.place, "tree/sub/empty"))
        names = ["a", "sub/-f", "sub/ö $x%41", "sub/new\nline:\"'", os.fsdecode(b"sub/\xff\xfe")]
        for each in names:
            self.write(os.path.join("tree", each), each.encode(errors="surrogateescape"))
        os.chmod(os.path.join(self.place, "tree/a"), 0o755)
        os.symlink("a", os.path.join(self.place, "tree/link"))
        for root, folders, _ in os.walk(self.place):
            for folder in folders:
                os.chmod(os.path.join(root, folder), 0o755)
        self.kernd("cp", "tree", f"{name}:copy")
        self.kernd("cp", f"{name}:copy", "back")
        self.compare("tree", "back")
        self.kernd("cp", f"{name}:copy", "back")  # it is there now: into it
        self.compare("tree", "back/copy")
        self.kernd("cp", "tree/.", f"{name}:copy")
        self.kernd("cp", "tree", f"{name}:copy/")
        self.kernd("cp", f"{name}:copy/tree", "third")
        self.compare("tree", "third")
        for each in names:
            self.kernd("cp", os.path.join("tree", each), f"{name}:one/{each}")
            self.kernd("cp", f"{name}:one/{each}", "one")
            self.assertEqual(self.read("one"), each.encode(errors="surrogateescape"))

    def compare(self, one, other):
        self.assertEqual(*(sorted(
            (os.path.relpath(os.path.join(root, each), os.path.join(self.place, top)),
             os.lstat(os.path.join(root, each)).st_mode)
            for root, folders, files in os.walk(os.path.join(self.place, top))
            for each in folders + files) for top in (one, other)))

    def test_copies_of_streams(self):
        name = self.session()
        self.kernd("cp", "-", f"{name}:in", given=EVERY_BYTE)
        self.assertEqual(self.kernd("cp", f"{name}:in", "-"), EVERY_BYTE)
        self.write("in", b"old and longer than the new one" * 20000)
        self.kernd("cp", f"{name}:in", ".")
        self.assertEqual(self.read("in"), EVERY_BYTE)
        self.assertEqual(self.kernd("cp", f"{name}:.", "-")[:2], b"in")  # tar
        before = sorted(os.listdir(self.place))
        for arguments in ((f"{name}:none", "x"), ("none", f"{name}:x"), ("-", f"{name}:"),
                          (f"{name}:in", "no/such/directory"), ("in", f"{name}:in/x"),
                          (f"{name}:../x", "y")):
            self.kernd("cp", *arguments, code=125)
        self.assertEqual(sorted(os.listdir(self.place)), before)

    def test_detached_and_its_logs(self):
        name = self.session()
        script = "echo err >&2; echo one; while ! test -e go; do sleep 0.02; done; echo two; exit 5"
        execution = self.kernd("run", "-s", name, "-d", "--", "sh", "-c", script).decode().strip()
        self.assertRegex(self.kernd("ps", "-s", name).decode(), rf"{execution} +run +running +{name}")
        follower = self.start("logs", "-f", execution)
        self.assertEqual(follower.stdout.readline(), b"one\n")
        # Two pipes: what is read of one first says nothing of the other.
        census.wait_until(lambda: self.kernd("logs", execution) == b"one\n"
                          and self.error == b"err\n", harness.seconds(20), "both lines")
        self.kernd("cp", "/dev/null", f"{name}:go")
        self.assertEqual(follower.communicate(timeout=harness.seconds(20)), (b"two\n", b"err\n"))
        self.assertEqual(follower.returncode, 5)
        self.assertEqual(self.kernd("logs", "--stdout", execution), b"one\ntwo\n")
        self.assertEqual(self.kernd("logs", "--stderr", "-f", execution, code=5), b"")
        self.assertEqual(self.error, b"err\n")
        events = [json.loads(line) for line in self.kernd("logs", "--json", execution).splitlines()]
        self.assertEqual((events[0]["type"], events[-1]["type"]), ("queued", "exit"))
        self.assertEqual(self.kernd("ps", "-q", "-s", name), b"")
        self.assertIn(execution.encode(), self.kernd("ps", "-aq", "-s", name))

    def test_kill(self):
        name = self.session()
        execution = self.kernd("run", "-s", name, "-d", "--", "sh", "-c",
                               "echo up; sleep 300").decode().strip()
        # Before its program runs it would be cancelled, which is another end.
        census.wait_until(lambda: self.kernd("logs", execution) == b"up\n", harness.seconds(20),
                          "its first words")
        self.assertIn(execution.encode(), self.kernd("top"))
        self.kernd("kill", execution)
        self.kernd("logs", "-f", execution, code=137)
        follower = self.start("logs", "-f", self.kernd("run", "-s", name, "-d", "--", "sh", "-c",
                                                       "echo 1; sleep 300").decode().strip())
        self.assertEqual(follower.stdout.readline(), b"1\n")
        follower.send_signal(signal.SIGINT)  # ends the looking alone
        self.assertEqual(follower.wait(harness.seconds(20)), 130)
        self.assertEqual(len(self.kernd("ps", "-q", "-s", name).split()), 1)

    def test_snapshots(self):
        name = self.session()
        self.kernd("cp", "-", f"{name}:f", given=b"1")
        self.kernd("snapshot", "create", name, "--name", name + "a", "--label", "k=v")
        archive = self.kernd("snapshot", "export", name + "a")
        self.kernd("snapshot", "import", name + "b", given=archive)
        self.kernd("snapshot", "export", name + "b", "b.tgz")
        self.assertEqual(self.read("b.tgz"), archive)
        self.kernd("cp", "-", f"{name}:f", given=b"2")
        self.kernd("snapshot", "restore", name + "b", name)
        self.assertEqual(self.kernd("run", "-s", name, "cat", "f"), b"1")
        self.assertIn(name + "a", self.kernd("snapshot", "list", "-s", name).decode())
        listed = json.loads(self.kernd("snapshot", "list", "--json"))["items"]
        self.assertLessEqual({name + "a", name + "b"}, {item["name"] for item in listed})
        self.kernd("snapshot", "rm", name + "a", name + "b")
        self.kernd("snapshot", "export", name + "a", code=125)

    def test_api(self):
        self.assertEqual(json.loads(self.kernd("api", "GET", "/healthz")), {"status": "ok"})
        body = self.kernd("api", "POST", "/v1/runCode", "--data", '{"code":"print(1)"}')
        self.assertEqual(json.loads(body)["stdout"], "1\n")
        self.write("body", b'{"code":"2"}')
        stream = self.kernd("api", "POST", "/v1/runCode", "--data", "@body", "--accept",
                            "application/x-ndjson")
        self.assertEqual(json.loads(stream.splitlines()[-1])["type"], "exit")
        self.kernd("api", "DELETE", "/v1/none", code=125)


class Help(commandkit.Case):
    def test_all_of_it(self):
        """Every command explains itself, with all the options that it takes and no others."""
        rows = [line.split("\t") for line in self.kernd("help", "--all").decode().splitlines()]
        commands = [row[1] for row in rows if row[0] == "command"]
        overview = self.kernd("help").decode()
        self.assertEqual(self.kernd("--help").decode(), overview)
        self.assertGreater(len(commands), 20)
        for name in commands:
            self.assertRegex(overview, rf"(?m)^  {name} ")
            text = self.kernd("help", *name.split()).decode()
            self.assertTrue(text.startswith(f"Usage: kernd {name}"), text)
            options = [row[2] for row in rows if row[0] == "option" and row[1] == name]
            self.assertEqual(re.findall(r"(?m)^  (?:-\w, |    )(--[\w-]+)", text), options)
            self.assertEqual(len(options), len(set(options)))
            if options:
                self.assertEqual(self.kernd(*name.split(), "--help").decode(), text)
        letters = [(row[1], row[3]) for row in rows if row[0] == "option" and row[3]]
        self.assertEqual(len(letters), len(set(letters)))

    def test_groups(self):
        self.assertIn(b"kernd session create", self.kernd("help", "session"))
        self.assertNotIn(b" \n", self.kernd("help", "token"))
        self.kernd("session", code=2)
        self.kernd("help", "frob", code=2)
        self.kernd(code=2)

    def test_a_slip_of_the_finger(self):
        for word, told in (("sesion", "did you mean session?"), ("docter", "did you mean doctor?"),
                           ("frobnicate", "see: kernd help")):
            done = subprocess.run([harness.KERND, word], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"unknown command {word}", done.stderr)
            self.assertIn(told, done.stderr)

    def test_version(self):
        version = self.kernd("version")
        self.assertRegex(version, rb"\Akernd \d+\.\d+\.\d+\n\Z")
        self.assertEqual(self.kernd("--version"), version)
        both = json.loads(self.kernd("version", "--json"))
        self.assertEqual(both["version"], both["server"]["version"])
        none = self.kernd("version", "--json", environment={"KERND_SOCKET": "/none"})
        self.assertIsNone(json.loads(none)["server"])


class OnDemand(unittest.TestCase):
    """Nobody serves: the first command starts the user's server, in the user's own places."""

    def test_first_command_starts_it(self):
        home = tempfile.mkdtemp(prefix="kernd-test-")
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        user = {}
        if os.geteuid() == 0:
            shutil.chown(home, harness.USER)
            user = {"user": harness.USER, "group": "nogroup", "extra_groups": []}
        environment = {"PATH": os.environ["PATH"], "HOME": home, "XDG_RUNTIME_DIR": home + "/run",
                       # Without the standard port, which somebody else may have.
                       "KERND_LISTEN": f"unix:{home}/run/kernd/kernd.sock",
                       **{name: value for name, value in os.environ.items()
                          if name.endswith("SAN_OPTIONS")}}
        run = [harness.KERND, "run", "--", "echo", "on demand"]
        both = [subprocess.Popen(run, cwd="/", env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, **user)
                for _ in range(2)]
        try:
            for process in both:
                out, error = process.communicate(timeout=harness.seconds(40))
                self.assertEqual((process.returncode, out), (0, b"on demand\n"), error)
        finally:
            self.end(os.path.join(home, ".local/state/kernd/lock"))

    @staticmethod
    def end(lock):
        with open(lock, encoding="ascii") as file:
            pid = int(file.read())
        os.kill(pid, signal.SIGTERM)
        census.wait_until(lambda: (census.stat(pid) or "Z")[0] == "Z", harness.seconds(20),
                          "the end of the server")


if __name__ == "__main__":
    unittest.main()
