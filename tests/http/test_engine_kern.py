# SPDX-License-Identifier: Apache-2.0
"""The engine kern: with the program KERN_BIN where that is set, else with a stand-in that takes
exactly the arguments kern is to get (kern_stand_in.py)."""
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest

import census
import commandkit
import harness
import imagekit
import kern_stand_in
import streamkit

STAND_IN = os.path.abspath(kern_stand_in.__file__)
KERN = os.environ.get("KERN_BIN") or STAND_IN
REAL = "KERN_BIN" in os.environ
PROFILES = """\
[[vcpu]]
name = "small"
backend = "host"
cpus = 1
"""


class StandIn(unittest.TestCase):
    """What checks kernd is checked by what kernd gives (tests/unit/test_engine_kern.c has the same
    file), and by everything that is one word off."""

    images = ("python:3.12-slim", "node:20-slim", "a/b@sha256:00")
    profiles = ("vcpu:small", "vdisk:data", "vgpio:pins")

    def goldens(self):
        with open(os.path.join(os.path.dirname(STAND_IN), "kern_arguments.txt"), encoding="ascii") as file:
            found = re.findall(r"^\[(.*)\]\n((?:.+\n)+)", file.read(), re.M)
        self.assertGreater(len(found), 15)
        return {name: shlex.split(text)[1:] for name, text in found}

    def take(self, words):
        """bubblewrap's words, or what is said and the exit code."""
        try:
            return kern_stand_in.arguments(words, self.images, self.profiles)
        except kern_stand_in.Refused as refused:
            return refused.words, refused.code

    def test_what_kernd_gives_is_taken(self):
        for name, words in self.goldens().items():
            with self.subTest(golden=name):
                taken = self.take(words)
                if "--apparmor" in words:  # which is nowhere loaded
                    self.assertEqual(taken[1], 125)
                    self.assertIn("--apparmor " + words[words.index("--apparmor") + 1], taken[0])
                    continue
                self.assertEqual(taken[-3:], ["--", "/run/kernd-lib/kernd-init", "in-image"])
                self.assertEqual("--unshare-net" in taken, "host" not in words)
                self.assertEqual([taken[at + 2] for at, word in enumerate(taken)
                                  if word in ("--bind", "--ro-bind")],
                                 [words[at + 1].split(":")[1] for at, word in enumerate(words)
                                  if word == "-v"])

    def test_whatever_is_a_word_off_is_refused(self):
        for name, words in self.goldens().items():
            mounts = [at + 1 for at, word in enumerate(words) if word == "-v"][4:]
            free = [at for at in mounts if not words[at].endswith(":ro")]  # a path has any bytes
            for at, word in enumerate(words):
                left_out = words[:at] + words[at + 1:]
                doubled = words[:at] + [word] + words[at:]
                changed = words[:at] + [word + "\1"] + words[at + 1:]
                swapped = left_out[:at + 1] + [word] + left_out[at + 1:]
                optional = word in self.profiles  # in any number and order
                for wrong, fits in ((left_out, optional), (doubled, optional), (changed, at in free),
                                    (swapped, swapped == words or optional and swapped[at] in self.profiles)):
                    with self.subTest(golden=name, wrong=wrong):
                        self.assertEqual(self.take(wrong)[1] == 1, not fits)

    def test_values_that_do_not_belong_together(self):
        usual = self.goldens()["the usual limits"]
        for at, wrong in (("--memory", "1024t"), ("--memory", "0"), ("--pids-limit", "0"),
                          ("--tmpfs", "/tmp"), ("--pull", "missing"), ("--user", "0"), ("--net", ""),
                          ("--stop-timeout", "1"), ("--image", "--ro"), ("--image", "absent:1")):
            words = list(usual)
            words[words.index(at) + 1] = wrong
            with self.subTest(wrong=f"{at} {wrong}"):
                self.assertEqual(self.take(words)[1], 1)

    def test_variables(self):
        good = {"HOME": "/h", "PATH": "/bin", "XDG_RUNTIME_DIR": "/r/engine", "XDG_CACHE_HOME": "/c",
                "KERN_NO_SCOPE": "1", "KERN_ALLOW_UNCAPPED": "1", "KERN_QUIET": "1", "KERN_STARTED_FD": "3"}
        kern_stand_in.variables(good)
        for name, value in (("KERN_SCOPE", "1"), ("KERN_MANAGED", "1"), ("KERN_BUILD_STEP", "1"),
                            ("KERN_DIRECT_CAPS", "1"), ("KERN_EXIT_KEY", "x"), ("SECRET", "x"),
                            ("KERN_SCOPE_READY_FD", "4"), ("KERN_REQUIRE_LIMITS", "1"),
                            ("KERN_NO_SCOPE", ""), ("KERN_ALLOW_UNCAPPED", "0"), ("KERN_QUIET", ""),
                            ("XDG_RUNTIME_DIR", "/run/user/0")):
            with self.subTest(name=name), self.assertRaises(kern_stand_in.Refused):
                kern_stand_in.variables({**good, name: value})


class KernCase(harness.Case):
    """The server's engine is kern."""

    engine = "kern"
    more = ()

    @classmethod
    def make_daemon(cls):
        user = harness.USER if os.geteuid() == 0 else None
        daemon = harness.Daemon(environment={"KERN_SCOPE": "1", "KERN_STARTED_FD": "9"})
        daemon.environment["KERN_CONFIG"] = daemon.path("kern.toml")
        with open(daemon.path("kern.toml"), "w", encoding="ascii") as file:
            file.write(PROFILES)
        cache = imagekit.cache(KERN, user) if REAL else os.path.join(daemon.state, "cache")
        daemon.arguments = ["--engine", cls.engine, "--kern", KERN, "--image-cache", cache,
                            *cls.more]
        return daemon

    def box(self, *command, **options):
        return self.run_command(list(command), **options)


class Boxes(KernCase):
    more = ("--templates", "1")

    def test_what_is_in_a_box(self):
        self.assert_success(self.box("sh", "-c", "echo $HOME $USER; pwd; id -u; cat /proc/1/comm"),
                            "/home/sandbox sandbox\n/workspace\n0\nkernd-init\n")
        result = self.box("sh", "-c", "touch /tmp/a /home/sandbox/b /workspace/c; touch /d")
        self.assertEqual([row["path"] for row in result["files"]], ["c"])
        self.assertIn("/d", result["stderr"])

    def test_nothing_of_kern_is_in_the_programs_words(self):
        """The stand-in says something before each box."""
        result = self.box("sh", "-c", "echo out; echo err >&2; exit 3")
        self.assertEqual((result["stdout"], result["stderr"], result["exitCode"]),
                         ("out\n", "err\n", 3))

    def test_exit_codes_are_the_programs_own(self):
        for code in (1, 2, 125, 126, 127, 137, 143, 159):
            with self.subTest(code=code):
                result = self.box("sh", "-c", f"echo 'kern: sandbox setup failed' >&2; exit {code}")
                self.assertEqual((result["exitCode"], result["fault"]), (code, None))
        result = self.box("no-such-program")
        self.assertEqual((result["exitCode"], result["fault"]), (127, None))

    def test_languages(self):
        self.assertEqual(self.run_code("print(6 * 7)")["stdout"], "42\n")
        self.assertEqual(self.run_code("40 + 2")["results"][0]["data"]["text/plain"], "42")
        self.assertEqual(self.run_code("echo $((6 * 7))", "bash")["stdout"], "42\n")

    def test_templates_are_bubblewraps(self):
        """What the image has is not kernd's choice: boxes are booted, and that is told."""
        self.assertEqual(self.daemon.get("/v1/capabilities").json["templates"]["languages"], [])
        for _ in range(3):
            self.assertNotEqual(self.run_code("1")["usage"]["source"], "template")
        self.assertEqual(self.daemon.get("/v1/stats").json["templates"], 0)

    def test_environment_is_the_images_and_the_calls(self):
        result = self.box("sh", "-c", "echo $A; env", env={"A": "b", "HOME": "/tmp"})
        found = dict(line.split("=", 1) for line in result["stdout"].splitlines() if "=" in line)
        self.assertEqual((found["A"], found["HOME"]), ("b", "/tmp"))
        self.assertFalse([name for name in found if name.startswith(("KERN", "XDG"))], found)

    def test_the_threads_that_start_boxes_never_end(self):
        """kern dies with the thread that started it, not with the process."""
        def starters():
            return {row for row in census.threads(self.daemon.pid)
                    if row[1].startswith(("run-", "background-", "spare-", "starter-"))}
        before = starters()
        self.assertGreaterEqual({name.split("-")[0] for _, name in before},
                                {"run", "background", "spare", "starter"})
        for result in harness.parallel(8, lambda _: self.box("true")):
            self.assert_success(result)
        self.assertEqual(starters(), before)

    def test_a_deadline_holds_for_one_that_traps_signals(self):
        begun = time.monotonic()
        result = self.box("sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done",
                                  timeoutS=1)
        self.assertEqual(result["fault"]["type"], "timeout")
        self.assertLess(time.monotonic() - begun, harness.seconds(5))

    def test_memory_is_capped(self):
        # It stays: who only looks now and then must have time to see it.
        result = self.run_code("import time; x = b'x' * (300 << 20); time.sleep(20)", memoryMb=64)
        self.assertEqual(result["fault"]["type"], "oom", result)

    def test_whether_the_cap_was_in_force_is_told_by_kern_itself(self):
        """Behind the answer, when kern has ended; of no box without a cap."""
        def told():
            return self.daemon.get("/v1/capabilities").json["engines"][0]["memoryCapBound"]
        self.box("true", memoryMb=64)
        if not REAL:
            census.wait_until(lambda: told() is True, harness.seconds(10), "kern's last word")
        else:
            self.daemon.wait_settled()
            means = self.daemon.get("/v1/capabilities").json["enforcement"]["memory"]
            self.assertIn(told(), (means == "cgroup", None))

    def test_network_is_off(self):
        self.assertNotEqual(self.run_code("import socket; socket.create_connection(('192.0.2.1', 80), 1)")["exitCode"], 0)

    def test_secrets_and_stdin(self):
        result = self.box("sh", "-c", "cat; cat /run/secrets/key", stdin="in ",
                                  secrets={"key": "hidden"})
        self.assertEqual(result["stdout"], "in hidden")


class Sessions(KernCase):
    def make(self, **options):
        made = self.daemon.post("/v1/sessions", options)
        self.assertEqual(made.status, 201, made)
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{made.json['id']}")
        return made.json["id"]

    def test_files_and_kernel(self):
        session = self.make()
        path = f"/v1/sessions/{session}"
        self.daemon.result(f"{path}/run", {"command": ["sh", "-c", "echo a > f"]})
        self.assertEqual(self.daemon.result(f"{path}/run", {"command": ["cat", "f"]})["stdout"], "a\n")
        kernel = self.daemon.post(f"{path}/kernels", {"language": "python"})
        self.assertEqual(kernel.status, 201, kernel)
        cells = f"{path}/kernels/{kernel.json['id']}/cells"
        self.daemon.result(cells, {"code": "x = 41"})
        self.assertEqual(self.daemon.result(cells, {"code": "x + 1"})["results"][0]["data"]
                         ["text/plain"], "42")

    def test_options_are_kept(self):
        session = self.make(engine="kern", image="alpine:latest", capDrop=["MKNOD"],
                            securityProfile="untrusted")
        options = self.daemon.get(f"/v1/sessions/{session}").json["options"]
        self.assertEqual({name: options[name] for name in ("engine", "image", "capDrop",
                                                           "securityProfile", "egressAllow")},
                         {"engine": "kern", "image": "alpine:latest", "capDrop": ["MKNOD"],
                          "securityProfile": "untrusted", "egressAllow": []})
        self.assertEqual(self.daemon.result(f"/v1/sessions/{session}/run",
                                            {"command": ["true"]})["exitCode"], 0)

    def test_what_only_kern_can_do(self):
        """Each in a session of its own, since a session is where the SDK has them."""
        for option, value in (("profiles", ["vcpu:small"]), ("egressAllow", ["example.org"]),
                              ("capDrop", []), ("securityProfile", "untrusted"), ("enforceLimits", False),
                              ("network", True), ("mounts", {"/usr/share": ["/data", "ro"]})):
            with self.subTest(option=option):
                session = self.make(**{option: value})
                result = self.daemon.result(f"/v1/sessions/{session}/run", {
                    "command": ["sh", "-c", "[ -d /data ] && echo /data; touch f && echo made"]})
                self.assert_success(result, "/data\nmade\n" if option == "mounts" else "made\n")
                self.assertEqual(result["stderr"], "")

    def test_domains_are_no_network(self):
        session = self.make(egressAllow=["example.org"])
        result = self.daemon.result(f"/v1/sessions/{session}/runCode", {
            "code": "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
            "language": "python"})
        self.assertEqual((result["exitCode"], result["fault"]), (1, None), result)
        self.assert_problem(self.daemon.post("/v1/sessions", {"egressAllow": ["example.org"],
                                                              "network": True}),
                            422, "bad_value", "/egressAllow")

    def test_caps_that_must_hold(self):
        """kernd's own word counts, not kern's, which is told that it need not care."""
        reply = self.daemon.post("/v1/sessions", {"requireLimits": True})
        if self.daemon.get("/v1/capabilities").json["enforcement"]["memory"] == "cgroup":
            self.assertEqual(reply.status, 201, reply)
        else:
            self.assert_problem(reply, 422, "limits_not_enforced", "/memoryMb")


class Refusals(KernCase):
    def refused(self, status, code, pointer, words, **options):
        reply = self.daemon.post("/v1/run", {"command": ["true"], **options})
        self.assertEqual((reply.status, reply.json["code"]), (status, code), reply)
        if pointer:
            self.assertEqual(reply.json["errors"][0]["pointer"], pointer)
        self.assertIn(words, reply.json["detail"])

    def test_an_image_that_is_not_here(self):
        self.refused(404, "image_not_found", "/image", "no/such:1", image="no/such:1")

    def test_what_kern_refuses_is_told_in_its_words(self):
        self.refused(422, "bad_value", "/profiles", "profile", profiles=["vcpu:none"])
        self.refused(503, "box_start_failed", None, "apparmor", apparmor="no-such-profile")

    def test_mounts(self):
        place = os.path.join(self.daemon.home, "data")
        os.mkdir(place, 0o755)
        with open(os.path.join(place, "f"), "w", encoding="ascii") as file:
            file.write("there\n")
        self.assert_success(self.box("cat", "/data/f", mounts={place: "/data"}), "there\n")


class Both(KernCase):
    """bubblewrap makes the boxes, but for what only kern can do."""

    engine = "auto"

    def uid(self, **options):
        return self.box("id", "-u", **options)["stdout"].strip()

    def test_the_engine_follows_what_is_asked(self):
        self.assertEqual([self.uid(), self.uid(engine="kern"), self.uid(image="alpine:latest"),
                          self.uid(engine="bubblewrap"), self.uid(capDrop=["MKNOD"])],
                         ["1000", "0", "0", "1000", "0"])

    def test_an_engine_that_was_named_is_kept(self):
        reply = self.daemon.post("/v1/run", {"command": ["true"], "engine": "bubblewrap",
                                             "image": "alpine:latest"})
        self.assert_problem(reply, 422, "not_supported_here", "/image")

    def test_a_narrow_token_stays_with_the_servers_own(self):
        """What only the other engine can do would choose it."""
        token = self.daemon.post("/v1/tokens", {"scope": "run"}).json["token"]
        self.daemon.secrets.append(token)
        headers = {"Authorization": f"Bearer {token}"}
        for target, body in (("/v1/run", {"command": ["true"]}), ("/v1/sessions", {})):
            with self.subTest(target=target):
                reply = self.daemon.post(target, {**body, "image": "alpine:latest"}, token=False,
                                         headers=headers)
                self.assert_problem(reply, 403, "forbidden", "/image")

    def test_both_are_told_of(self):
        engines = self.daemon.get("/v1/capabilities").json["engines"]
        self.assertEqual([(row["name"], row["standard"], row["images"], row["ready"], row["why"])
                          for row in engines],
                         [("bubblewrap", True, False, True, None), ("kern", False, True, True, None)])
        self.assertTrue(engines[1]["version"])
        self.assertEqual([row["features"] for row in engines],
                         [["templates"], ["image", "profiles", "egressAllow", "apparmor", "capDrop",
                                          "enforceLimits"]])
        ready = self.daemon.get("/readyz").json
        for row in engines + ready["engines"]:  # a box that ended meanwhile
            self.assertIn(row.pop("memoryCapBound"), (True, False, None))
        self.assertEqual(ready, {"status": "ready", "engines": engines})

    def test_a_session_keeps_its_engine(self):
        for engine, uid in (("kern", "0"), ("bubblewrap", "1000"), ("auto", "1000")):
            with self.subTest(engine=engine):
                made = self.daemon.post("/v1/sessions", {"engine": engine}).json
                path = f"/v1/sessions/{made['id']}"
                self.addCleanup(self.daemon.request, "DELETE", path)
                self.assertEqual(self.daemon.result(f"{path}/run", {"command": ["id", "-u"]})["stdout"],
                                 uid + "\n")
                kernel = self.daemon.post(f"{path}/kernels", {"language": "python"}).json["id"]
                told = self.daemon.result(f"{path}/kernels/{kernel}/cells",
                                          {"code": "import os; os.getuid()"})
                self.assertEqual(told["results"][0]["data"]["text/plain"], uid)
                # A call may not change it.
                self.assert_problem(self.daemon.post(f"{path}/run", {"command": ["true"],
                                                                     "engine": "kern"}),
                                    422, "unknown_field", "/engine")


class Replaced(harness.Case):
    """What an engine is ready for is found out again when its program is another one."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon()
        cls.program = os.path.join(daemon.home, "kern")
        cls.put(cls.good(daemon))
        daemon.arguments = ["--engine", "auto", "--kern", cls.program, "--image-cache",
                            os.path.join(daemon.state, "cache")]
        return daemon

    @staticmethod
    def good(daemon):
        """The stand-in, with a note of each box."""
        return f"""[ "$1" = box ] && echo "$2 $4" >>{daemon.runtime}/started\nexec {STAND_IN} "$@\""""

    def started(self):
        with open(os.path.join(self.daemon.runtime, "started"), encoding="ascii") as file:
            return file.read().split("\n")[:-1]

    @classmethod
    def put(cls, words):
        """Another file in its place, as a package's upgrade does it."""
        with open(cls.program + ".new", "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{words}\n")
        os.chmod(cls.program + ".new", 0o755)
        os.rename(cls.program + ".new", cls.program)

    def rows(self):
        """What both places say of kern."""
        rows = [self.daemon.get(target).json["engines"][1] for target in ("/readyz", "/v1/capabilities")]
        self.assertEqual(rows[0], rows[1])
        return rows[0]

    def test_the_program_is_tried_again_when_it_changes(self):
        for _ in range(3):
            row = self.rows()
            self.assertEqual((row["ready"], row["why"], row["version"]),
                             (True, None, "0.0.0-stand-in"))
        self.assertRegex(" ".join(self.started()), r"^box_\w+ scratch$", "one trivial box, asked once")
        self.put('[ "$1" = --version ] && echo "kern 9.9" && exit; echo "error: no more" >&2; exit 1')
        row = self.rows()
        self.assertEqual((row["ready"], row["version"]), (False, "9.9"))
        self.assertIn("no more", row["why"])
        # bubblewrap makes the boxes of calls that name no engine: the server is ready all the same.
        self.assertEqual(self.run_command(["id", "-u"])["stdout"], "1000\n")
        reply = self.daemon.post("/v1/run", {"command": ["true"], "engine": "kern"})
        self.assertEqual(reply.status, 503, reply)
        self.assertIn("no more", reply.json["detail"])
        self.put(self.good(self.daemon))
        row = self.rows()
        self.assertEqual((row["ready"], row["why"], row["version"]),
                         (True, None, "0.0.0-stand-in"))
        self.assertEqual(len(self.started()), 2)
        self.assertEqual(self.run_command(["id", "-u"], engine="kern")["stdout"], "0\n")

    def test_what_ended_it_before_the_box_was_up(self):
        """Its own words, and never a program's exit code."""
        self.addCleanup(self.put, self.good(self.daemon))
        for words, code, wanted in (
                ("error: usage: kern box NAME", 1, (422, "bad_value")),
                ("error: config: no [[vcpu]] profile named 'x'", 1, (422, "bad_value")),
                ("error: sandbox: -v '/a': source /a: No such file", 1, (503, "box_start_failed")),
                ("kern: sandbox setup failed: chdir(workdir) failed", 125, (503, "box_start_failed")),
                ("kern: cannot start '/run/kernd-lib/kernd-init'", 127, (503, "box_start_failed")),
                ("kern: sandbox setup failed: unshare: Operation not permitted", 125,
                 (503, "engine_unavailable")),
                ("something new", 137, (503, "box_start_failed")),
                ("something new", 143, (503, "box_start_failed")),
                ("something new", 159, (503, "box_start_failed"))):
            with self.subTest(words=words, code=code):
                said = shlex.quote(f"kern: warning: before\n{words}\nhint: behind")
                self.put(f"printf '%s\\n' {said} >&2; exit {code}")
                reply = self.daemon.post("/v1/run", {"command": ["true"], "engine": "kern"})
                self.assertEqual((reply.status, reply.json["code"]), wanted, reply)
                self.assertIn(words, reply.json["detail"])
                if words == "something new":  # none of kern's words: a program of the image
                    self.assertIn("entry point", reply.json["remediation"])


class Pulls(commandkit.Case, streamkit.Case):
    """Always of the stand-in: where tests run, registries are out of reach."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon()
        daemon.arguments = ["--engine", "kern", "--kern", STAND_IN, "--image-pull", "--image-cache",
                            os.path.join(daemon.state, "cache")]
        return daemon

    def pull(self, name, **options):
        return self.daemon.post("/v1/images/pull", {"image": name, **options})

    def pull_stream(self, name, accept=streamkit.NDJSON):
        return self.stream("POST", "/v1/images/pull", {"image": name}, accept=accept)

    def names(self):
        return [row["name"] for row in self.daemon.get("/v1/images").json["items"]]

    def test_progress_is_told_and_then_the_image_is_here(self):
        for accept, name in ((streamkit.NDJSON, "hub/one:1"), (streamkit.SSE, "hub/two:1")):
            with self.subTest(accept=accept):
                self.assertNotIn(name, self.names())
                missing = self.daemon.post("/v1/run", {"command": ["true"], "image": name})
                self.assert_problem(missing, 404, "image_not_found", "/image")
                self.assertIn("/v1/images/pull", missing.json["remediation"])
                events = streamkit.complete(self.pull_stream(name, accept).all())
                self.assertEqual(streamkit.output(events, "stderr"),
                                 f"→ image '{name}' not cached - pulling once\n"
                                 f"→ resolving {name}\n→ layer 1/1\n")
                self.assertEqual([events[1]["type"], events[-1]["success"], events[-1]["kind"]],
                                 ["started", True, "pull"])
                self.assertIn(name, self.names())
                self.assert_success(self.daemon.result("/v1/run", {"command": ["echo", "in"],
                                                                   "image": name}), "in\n")

    def test_an_answer_that_is_waited_for(self):
        result = self.pull("hub/three:1", id="my-pull").json
        self.assert_success(result, "")
        self.assertEqual((result["id"], result["kind"], result["limits"]["timeoutS"]),
                         ("my-pull", "pull", 600))
        self.assertIn("resolving hub/three:1", result["stderr"])
        for again in (self.pull("hub/three:1", id="my-pull").json, self.execution("my-pull")):
            self.assertEqual({name: again[name] for name in result}, result)

    def test_what_kern_can_not_get(self):
        reply = self.pull("gone/away:1")
        self.assert_problem(reply, 502, "image_pull_failed")
        self.assertIn("curl failed: exit Some(22): 404", reply.json["detail"])
        last = streamkit.complete(self.pull_stream("gone/away:1").all())[-1]
        self.assertEqual((last["type"], last["code"]), ("error", "image_pull_failed"))

    def test_it_can_be_ended(self):
        stream = self.pull_stream("slow/one:1")
        name = stream.header("X-Execution-Id")
        stream.until("stderr")
        self.assertTrue(census.with_argument("slow/one:1"))
        self.cancel(name)
        last = stream.all()[-1]
        self.assertEqual((last["exitCode"], last["fault"]["type"]), (None, "cancelled"))
        self.assertFalse(census.with_argument("slow/one:1"))
        result = self.pull("slow/two:1", timeoutS=0.5).json
        self.assertEqual(result["fault"]["type"], "timeout")
        self.assertFalse(census.with_argument("slow/two:1"))

    def test_what_is_refused(self):
        for body, code, pointer in (({}, "bad_value", "/image"),
                                    ({"image": "--dest"}, "bad_value", "/image"),
                                    ({"image": "a b"}, "bad_value", "/image"),
                                    ({"image": "a", "timeoutS": 1e8}, "limit_exceeds_maximum",
                                     "/timeoutS"),
                                    ({"image": "a", "dest": "/tmp"}, "unknown_field", "/dest")):
            with self.subTest(body=body):
                self.assert_problem(self.daemon.post("/v1/images/pull", body), 422, code, pointer)
        reply = self.daemon.post("/v1/images/pull", {"image": "a"}, headers={"Kernd-Scope": "run"})
        self.assert_problem(reply, 403, "forbidden")

    def test_the_command(self):
        self.assertEqual(self.kernd("image", "pull", "hub/four:1"), b"")
        self.assertIn("→ resolving hub/four:1".encode(), self.error)
        self.assertRegex(self.kernd("image", "list"), rb"IMAGE +SIZE +AGE\n(.*\n)*hub/four:1 +1000B ")
        self.kernd("image", "pull", "gone/away:2", code=125)
        self.assertIn(b"curl failed", self.error)


class Images(KernCase):
    """A cache of its own, empty at first."""

    @classmethod
    def make_daemon(cls):
        daemon = super().make_daemon()
        daemon.arguments[daemon.arguments.index("--image-cache") + 1] = os.path.join(daemon.state,
                                                                                    "own")
        return daemon

    def names(self):
        reply = self.daemon.get("/v1/images")
        self.assertEqual(reply.status, 200, reply)
        return [row["name"] for row in reply.json["items"]]

    def load(self, data):
        return self.daemon.request("POST", "/v1/images/load", data, media_type="application/x-tar")

    def test_load_list_and_run(self):
        name = "loaded/by-test:1"
        self.assertNotIn(name, self.names())
        missing = self.daemon.post("/v1/run", {"command": ["true"], "image": name})
        self.assert_problem(missing, 404, "image_not_found", "/image")
        reply = self.load(imagekit.tiny(name))
        self.assertEqual((reply.status, reply.json), (200, {"loaded": [name]}))
        self.assertIn(name, self.names())
        if REAL:  # the stand-in has the host's files for every image
            self.assertEqual(self.box("/hello", image=name)["exitCode"], 127)

    def test_images_are_not_fetched_unless_the_server_may(self):
        reply = self.daemon.post("/v1/images/pull", {"image": "alpine:latest"})
        self.assert_problem(reply, 422, "not_supported_here")
        self.assertIn("image_pull = true", reply.json["remediation"])

    def test_what_is_no_archive(self):
        reply = self.load(b"nothing")
        self.assert_problem(reply, 422, "bad_archive")
        self.assertIn("kern refuses", reply.json["detail"])


class WithoutKern(harness.Case):
    daemon_arguments = ("--engine", "bubblewrap")

    def test_no_images(self):
        self.assert_problem(self.daemon.get("/v1/images"), 422, "not_supported_here")
        self.assert_problem(self.daemon.request("POST", "/v1/images/load", b"x",
                                                media_type="application/x-tar"),
                            422, "not_supported_here")


class Crash(KernCase):
    def test_nothing_outlives_a_killed_daemon(self):
        for _ in range(3):
            self.daemon.post("/v1/run", {"command": ["sleep", "1000"]},
                             headers={"Prefer": "respond-async"})
        census.wait_until(lambda: len(self.daemon.box_processes()) >= 3, harness.seconds(20),
                          "boxes")
        self.daemon.kill()
        census.wait_gone(self.daemon.box_processes, harness.seconds(20), "processes of boxes")
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        self.assertEqual(self.box("true")["exitCode"], 0)
        self.daemon.wait_settled()
        kept = os.path.join(self.daemon.runtime, "engine", "kern", "instances")
        self.assertEqual(os.listdir(kept) if os.path.isdir(kept) else [], [])

    def launcher(self, box):
        """A process that looks like a kern with this box, whatever file it was started from."""
        process = subprocess.Popen(["kern", "-c", "import time; time.sleep(600)", "box", "left",
                                    "-v", f"{box}:/run/kernd:ro"], executable=sys.executable,
                                   cwd="/", user=self.daemon.user)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_what_outlived_it_is_removed_by_name(self):
        left = [os.path.join(self.daemon.runtime, *parts) for parts in (
            ("boxes", "box_left"), ("engine", "kern", "instances", "box_left"),
            ("engine", "kern", "scratch", "box_left"))]
        self.daemon.kill()
        census.wait_gone(self.daemon.box_processes, harness.seconds(20), "processes of boxes")
        with harness.as_user(self.daemon.user):
            for path in left:
                os.makedirs(path)
                with open(os.path.join(path, "file"), "w", encoding="ascii"):
                    pass
        ours, other = self.launcher(left[0]), self.launcher("/run/other/boxes/box_left")
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        self.assertEqual(ours.wait(harness.seconds(20)), -signal.SIGKILL)
        self.assertIsNone(other.poll(), "the control: a launcher of another server's")
        self.assertEqual([path for path in left if os.path.exists(path)], [])


if __name__ == "__main__":
    unittest.main()
