# SPDX-License-Identifier: Apache-2.0
"""The setup step: the one with the network, whose packages every later box finds."""
import base64
import functools
import hashlib
import io
import json
import os
import shutil
import subprocess
import threading
import unittest
import zipfile

import census
import check
import harness
import imagekit
import sessionkit


def wheel(name, version="1.0", source="value = 42\n"):
    """A pure wheel of one module, as bytes (PEP 427)."""
    data, records = io.BytesIO(), []
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": source,
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
                              "Tag: py3-none-any\n"}
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            records.append(f"{path},sha256={digest.decode()},{len(text)}")
        archive.writestr(f"{info}/RECORD", "\n".join([*records, f"{info}/RECORD,,"]))
    return data.getvalue()


@functools.cache
def registry_environment():
    """What npm needs to reach its registry from here, as this machine is configured. None: it can't."""
    names = {"npm_config_registry", "npm_config_proxy", "npm_config_https_proxy", "HTTPS_PROXY",
             "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"}
    environment = {name: os.environ[name] for name in names if os.environ.get(name)}
    if os.path.exists(imagekit.AUTHORITIES):
        environment["NODE_EXTRA_CA_CERTS"] = imagekit.AUTHORITIES
    try:
        done = subprocess.run(["npm", "view", "is-number", "version"], capture_output=True, text=True,
                              timeout=harness.seconds(60), check=False, cwd="/",
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired:  # it tries again and again
        return None
    return environment if done.returncode == 0 else None


class Steps(sessionkit.Case):
    def test_at_creation(self):
        reply = self.create(id="made", setup="echo hello > f; echo out; echo err >&2; id -un")
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(check.session(reply.json)["state"], "ready")
        self.assertEqual(reply.json["runningExecutions"], 0)
        self.assertTrue(reply.header("X-Execution-Id").startswith("exe_"))
        session = sessionkit.Session(self.daemon, id="made",
                                     setup="echo hello > f; echo out; echo err >&2; id -un")
        self.addCleanup(session.delete)
        self.assertEqual(session.content("f"), b"hello\n")
        record = self.daemon.get("/v1/executions/" + reply.header("X-Execution-Id"))
        self.assertEqual((record.status, record.json["kind"]), (200, "setup"), record)

    def test_a_failure_leaves_nothing(self):
        path = os.path.join(self.daemon.state, "workspaces")
        before = set(os.listdir(path))
        for setup, parts in (("echo so-far; echo went-wrong >&2; exit 7", ["exit code 7", "went-wrong"]),
                             ("echo only-out; exit 1", ["exit code 1", "only-out"]),
                             ("kill -9 $$", ["137"]), ("exec no-such-program", ["127", "not found"]),
                             ("for i in $(seq 1000); do echo line-$i >&2; done; exit 3",
                              ["exit code 3: line-9", "line-1000"]),
                             # Cut where a line begins, or a word, or a character.
                             ("for i in $(seq 100); do printf 'word%d ' $i; done; exit 4",
                              ["exit code 4: word", "word100"]),
                             ("printf 'é%.0s' $(seq 400); exit 5", ["exit code 5: éé"])):
            with self.subTest(setup=setup):
                reply = self.create(id="bad", setup=setup)
                self.assert_problem(reply, 422, "setup_failed")
                for part in parts:
                    self.assertIn(part, reply.json["detail"])
                self.assert_problem(self.daemon.get("/v1/sessions/bad"), 404, "session_not_found")
                self.assertTrue(reply.header("X-Execution-Id"))
        census.wait_until(lambda: set(os.listdir(path)) <= before, harness.seconds(10), "files gone")
        self.assertEqual(self.create(id="bad").status, 201)
        self.daemon.request("DELETE", "/v1/sessions/bad")

    def test_what_it_was_made_with(self):
        session = self.session(env={"A": "1"}, timeoutS=5, memoryMb=256, pids=60)
        reply = session.post("setup", {"command": "echo $A; ulimit -u; pwd"})
        self.assertEqual(reply.status, 200, reply)
        result = check.result(reply.json)
        self.assertEqual((result["kind"], result["sessionId"]), ("setup", session.id))
        self.assertTrue(result["stdout"].startswith("1\n"))
        self.assertEqual((result["limits"]["timeoutS"], result["limits"]["memoryMb"]), (120, 256))
        self.assertEqual(session.get()["options"]["timeoutS"], 5)

    def test_it_has_the_network_and_calls_have_not(self):
        session = self.session()
        script = "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' ' | sort"
        own = session.shell(script)["stdout"].split()
        self.assertEqual(own, ["lo"])
        host = sorted(name for name in os.listdir("/sys/class/net")
                      if os.path.isdir(f"/sys/class/net/{name}"))
        found = session.post("setup", {"command": script}).json["stdout"].split()
        self.assertEqual(found, host)

    def test_its_box_has_the_same_walls(self):
        script = ("grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status; touch /usr/x /etc/x 2>&1;"
                  "ls /root /home 2>&1; id -u; cat /etc/shadow 2>&1; true")
        session = self.session()
        found = session.post("setup", {"command": script}).json["stdout"]
        self.assertEqual(found, session.shell(script)["stdout"])
        self.assertEqual(found.count("0000000000000000"), 5)
        self.assertIn("Read-only file system", found)

    def test_a_failed_step_of_a_ready_session(self):
        session = self.session()
        session.put("f", b"1")
        reply = session.post("setup", {"command": "echo gone-wrong >&2; exit 2"})
        self.assert_problem(reply, 422, "setup_failed")
        self.assertIn("gone-wrong", reply.json["detail"])
        self.assertEqual(session.content("f"), b"1")
        self.assertEqual(session.get()["state"], "ready")
        for body in ({}, {"command": ""}, {"command": 5}, {"command": ["true"]}):
            self.assert_problem(session.post("setup", body), 422, "bad_value", "/command")

    def test_while_it_runs(self):
        replies = []
        thread = threading.Thread(target=lambda: replies.append(self.create(
            id="slow", setup="touch begun; while [ ! -e go ]; do sleep 0.1; done")))
        thread.start()
        path = "/v1/sessions/slow"
        census.wait_until(lambda: self.daemon.get(path).status == 200, harness.seconds(10), "a row")
        self.assertEqual(self.daemon.get(path).json["state"], "creating")
        for method, target, body in (("POST", "/run", {"command": ["true"]}), ("GET", "/files", None),
                                     ("POST", "/fork", {}), ("PATCH", "", {}),
                                     ("POST", "/setup", {"command": "true"})):
            self.assert_problem(self.daemon.request(method, path + target, body), 409, "session_busy")
        self.assertEqual([row["id"] for row in
                          self.daemon.get("/v1/sessions?state=creating").json["items"]], ["slow"])
        again = self.create(id="slow", setup="touch begun; while [ ! -e go ]; do sleep 0.1; done")
        self.assertEqual((again.status, again.json["state"]), (200, "creating"))
        self.assertEqual(self.daemon.request("DELETE", path).status, 204)
        thread.join()
        self.assertEqual(replies[0].status, 422, replies[0])
        self.assertIn("cancelled", replies[0].json["detail"])
        self.assert_problem(self.daemon.get(path), 404, "session_not_found")

    def test_the_client_leaves(self):
        mark = harness.new_mark()
        connection = self.daemon.connect()
        connection.request("POST", "/v1/sessions", {**self.daemon.authorization(),
                                                    "Content-Type": "application/json"},
                           harness.as_json({"id": "left", "setup": "sleep 60", "env": {"MARK": mark}}))
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        connection.reset()
        self.assert_gone(mark)
        census.wait_until(lambda: self.daemon.get("/v1/sessions/left").status == 404,
                          harness.seconds(10), "the session gone")

    def test_deadline(self):
        """At least 120 s, more where the session has more: seen in the result's limits."""
        self.assertEqual(self.session(timeoutS=300).post(
            "setup", {"command": "true"}).json["limits"]["timeoutS"], 300)


class Python(sessionkit.Case):
    INSTALL = "pip install --no-index --find-links wheels "

    def test_every_box_finds_it(self):
        session = self.session()
        session.put("wheels/kernd_probe-1.0-py3-none-any.whl", wheel("kernd_probe"))
        reply = session.post("setup", {"command": "  " + self.INSTALL + "kernd_probe"})
        self.assertEqual(reply.status, 200, reply)
        code = "import kernd_probe; print(kernd_probe.value, kernd_probe.__file__)"
        wanted = "42 /workspace/.deps/kernd_probe.py\n"
        self.assert_success(session.run_code(code), wanted)
        self.assert_success(session.run(["python3", "-c", code]), wanted)
        self.assert_success(session.run_code(f"python3 -c '{code}'", "bash"), wanted)
        result = session.run_code(code, env={"PYTHONPATH": "/workspace/mine"},
                                  files={"mine/own.py": "", "x.py": ""})
        self.assert_success(result, wanted)
        result = session.run_code("import sys, own; print(sys.path.index('/workspace/.deps') < "
                                  "sys.path.index('/workspace/mine'))",
                                  env={"PYTHONPATH": "/workspace/mine"})
        self.assert_success(result, "True\n")
        self.assertEqual(session.names(glob="*kernd_probe*"), ["wheels/kernd_probe-1.0-py3-none-any.whl"])
        self.assertEqual([row["path"] for row in result["files"] if ".deps" in row["path"]], [])
        self.assertEqual(self.run_code(code)["exitCode"], 1)

    def test_a_second_version(self):
        session = self.session()
        session.put("wheels/kernd_probe-1.0-py3-none-any.whl", wheel("kernd_probe"))
        session.put("wheels/kernd_probe-2.0-py3-none-any.whl",
                    wheel("kernd_probe", "2.0", "value = 43\n"))
        for version, value in (("1.0", 42), ("2.0", 43)):
            reply = session.post("setup", {"command": self.INSTALL + f"kernd_probe=={version}"})
            self.assertEqual(reply.status, 200, reply)
            self.assert_success(session.run_code("import kernd_probe; print(kernd_probe.value)"),
                                f"{value}\n")

    def test_not_there(self):
        session = self.session()
        reply = session.post("setup", {"command": self.INSTALL + "no_such_thing"})
        self.assert_problem(reply, 422, "setup_failed")
        self.assertIn("no_such_thing", reply.json["detail"])

    def test_a_fork_has_it_too(self):
        session = self.session()
        session.put("wheels/kernd_probe-1.0-py3-none-any.whl", wheel("kernd_probe"))
        self.assertEqual(session.post("setup", {"command": self.INSTALL + "kernd_probe"}).status, 200)
        path = session.post("fork", {}).header("Location")
        self.addCleanup(self.daemon.request, "DELETE", path)
        self.assert_success(self.daemon.result(
            path + "/runCode", {"code": "import kernd_probe; print(kernd_probe.value)"}), "42\n")

    def test_read_only(self):
        for locked in (True, False):
            session = self.session(depsReadonly=locked)
            session.put("wheels/kernd_probe-1.0-py3-none-any.whl", wheel("kernd_probe"))
            self.assertEqual(session.post("setup",
                                          {"command": self.INSTALL + "kernd_probe"}).status, 200)
            line = ("echo 'value = 0' > .deps/kernd_probe.py; rm -f .deps/kernd_probe.py; mv .deps x;"
                    "python3 -c 'import kernd_probe; print(kernd_probe.value)'; touch here")
            result = session.shell(line)
            self.assertEqual(result["stdout"], "42\n" if locked else "", result)
            self.assertEqual("Read-only file system" in result["stderr"], locked)
            self.assertEqual(session.post("setup", {"command": "touch .deps/later"}).status,
                             200 if locked else 422)

    def test_a_link_in_place_of_the_packages(self):
        """With read-only packages the launcher mounts .deps: never what a link there leads to."""
        session = self.session(depsReadonly=True)
        outside = os.path.join(self.daemon.home, "outside")
        os.makedirs(outside, exist_ok=True)
        with open(os.path.join(outside, "canary"), "w", encoding="ascii") as file:
            file.write("host")
        self.assert_success(session.shell(f"ln -s {outside} .deps; ls -l .deps"))
        for call in (session.shell("cat .deps/canary /workspace/.deps/canary; ls -a .deps/"),
                     session.run_code("print(open('.deps/canary').read())")):
            self.assertNotIn("host", call["stdout"])

    def test_a_link_that_comes_in_between(self):
        """Two boxes of a session: one swaps .deps for a link while others start."""
        session = self.session(depsReadonly=True)
        outside = os.path.join(self.daemon.home, "between")
        os.makedirs(outside, exist_ok=True)
        with open(os.path.join(outside, "canary"), "w", encoding="ascii") as file:
            file.write("the host's")
        swap = f"""
import os, time
os.symlink({outside!r}, "link"); os.mkdir("real")
end = time.time() + 6
while time.time() < end:
    os.rename("real", ".deps"); time.sleep(0.002); os.rename(".deps", "real")
    os.rename("link", ".deps"); time.sleep(0.002); os.rename(".deps", "link")
"""
        thread = threading.Thread(target=session.run_code, args=(swap,), kwargs={"trackFiles": False})
        thread.start()
        outcomes = set()
        try:
            while thread.is_alive():
                reply = session.post("run", {"command": ["sh", "-c", "cat .deps/canary"],
                                             "trackFiles": False})
                if reply.status == 200:
                    self.assertNotIn("the host's", reply.json["stdout"])
                outcomes.add((reply.status, reply.json.get("exitCode")))
        finally:
            thread.join()
        self.assertIn((200, 1), outcomes)


class Node(sessionkit.Case):
    def setUp(self):
        super().setUp()
        self.environment = registry_environment() if shutil.which("npm") else None
        if self.environment is None:
            self.skipTest("npm can't reach a registry from here")

    def test_npm_install(self):
        reply = self.create(id="npm", setup="npm install is-number", env=self.environment)
        self.assertEqual(reply.status, 201, reply)
        session = sessionkit.Session(self.daemon, id="npm", setup="npm install is-number",
                                     env=self.environment)
        self.addCleanup(session.delete)
        self.assert_success(session.run_code("console.log(require('is-number')('5'))", "node"), "true\n")
        self.assert_success(session.run_code("import n from 'is-number'; console.log(n('x'))", "node"),
                            "false\n")
        self.assert_success(session.run(["node", "-e", "console.log(require('is-number')(1))"]), "true\n")
        result = session.run_code("console.log(require('is-number')(1), require('mine'))", "node",
                                  env={"NODE_PATH": "/workspace/more"},
                                  files={"more/mine.js": "module.exports = 7"})
        self.assert_success(result, "true 7\n")
        self.assertEqual(session.names(), ["more", "more/mine.js"])
        # Not there without the session; Debian's npm may have brought one of its own.
        elsewhere = self.run_code("console.log(require.resolve('is-number'))", "node")
        self.assertTrue(elsewhere["exitCode"] == 1
                        or elsewhere["stdout"].startswith("/usr/share/nodejs/"), elsewhere)

    def test_not_there(self):
        reply = self.create(setup="npm install kernd-no-such-package-anywhere", env=self.environment)
        self.assert_problem(reply, 422, "setup_failed")
        self.assertEqual(json.loads(reply.body)["status"], 422)


if __name__ == "__main__":
    unittest.main()
