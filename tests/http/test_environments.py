# SPDX-License-Identifier: Apache-2.0
"""Environments: built once, found by their content, read-only, and what they preload."""
import http.server
import os
import threading
import unittest

import census
import harness
import sessionkit
from test_session_setup import wheel

ASYNC = {"Prefer": "respond-async"}
WITH_SPARES = ("--spares", "6")
IMPORT = "import kernd_probe; print(kernd_probe.value, kernd_probe.__file__)"
FOUND = "42 /run/environment/kernd_probe.py\n"
MEMBERS = "id name state engine image setup preload madeWith bytes executionId createdAt".split()


class Packages:
    """A package index on the loopback interface, which boxes with the network reach; it counts."""

    def __init__(self):
        self.files = {"/kernd_probe-1.0-py3-none-any.whl": wheel("kernd_probe")}
        self.asked = []
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append(self.path)
                page = "".join(f'<a href="{name}">{name[1:]}</a>' for name in index.files).encode()
                body = index.files.get(self.path, page if self.path == "/" else None)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.send_header("Content-Type", "text/html" if self.path == "/" else "application/zip")
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def install(self):
        return f"pip install --no-index --find-links {self.url} kernd_probe"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Case(sessionkit.Case):
    def build(self, **body):
        return self.daemon.post("/v1/environments", body)

    def built(self, **body):
        """A new one that goes with the test."""
        reply = self.build(**body)
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(list(reply.json), MEMBERS)
        self.assertEqual(reply.json["state"], "ready")
        self.assertEqual(reply.header("Location"), "/v1/environments/" + reply.json["id"])
        self.addCleanup(self.drop, reply.json["id"])
        return reply.json

    def drop(self, name):
        self.assertEqual(self.daemon.request("DELETE", f"/v1/environments/{name}").status, 204)

    def get(self, name):
        return self.daemon.get(f"/v1/environments/{name}")

    def log_of(self, name):
        reply = self.daemon.get(f"/v1/environments/{name}/log")
        self.assertEqual(reply.status, 200, reply)
        return reply.body.decode()

    def files(self):
        path = os.path.join(self.daemon.state, "environments")
        return sorted(name for name in os.listdir(path) if name != ".trash")


class Packaged(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.packages = Packages()

    @classmethod
    def tearDownClass(cls):
        cls.packages.close()
        super().tearDownClass()

    def test_built_once_and_found_everywhere(self):
        packages = Packages()
        body = {"name": "probe", "setup": packages.install()}
        made = self.built(**body)
        packages.close()
        self.assertTrue(made["id"].startswith("env_"))
        self.assertEqual((made["name"], made["setup"]), ("probe", body["setup"]))
        self.assertGreater(made["bytes"], 0)
        self.assertRegex(made["madeWith"]["python"], r"^3\.")
        self.assertIn("Successfully installed kernd_probe", self.log_of("probe"))
        self.assertEqual(self.get("probe").json, made)
        self.assertEqual(self.get(made["id"]).json, made)
        with self.within(2):  # and the index is gone
            again = self.build(**body)
        self.assertEqual((again.status, again.json), (200, made))
        for name in ("probe", made["id"]):
            self.assert_success(self.run_code(IMPORT, environment=name), FOUND)
        self.assert_success(self.run_command(["python3", "-c", IMPORT], environment="probe"), FOUND)
        session = self.session(environment="probe")
        self.assertEqual(session.get()["options"]["environment"], made["id"])
        self.assert_success(session.run_code(IMPORT), FOUND)
        self.assert_success(session.run_code(f"python3 -c '{IMPORT}'", "bash"), FOUND)
        kernel = session.post("kernels", {}).json["id"]
        self.assert_success(self.daemon.result(f"{session.path}/kernels/{kernel}/cells",
                                               {"code": IMPORT}), FOUND)
        self.assertEqual(session.names(), [])
        path = session.post("fork", {}).header("Location")
        self.addCleanup(self.daemon.request, "DELETE", path)
        self.assert_success(self.daemon.result(path + "/runCode", {"code": IMPORT}), FOUND)
        self.assertEqual(self.run_code(IMPORT)["exitCode"], 1)

    def test_a_setup_on_top(self):
        """What a session installs itself comes first, the caller's own path last."""
        self.built(name="below", setup="echo value = 42 > kernd_probe.py")
        session = self.session(environment="below", env={"PYTHONPATH": "/workspace/own"})
        self.assert_success(session.run_code(IMPORT), FOUND)
        reply = session.post("setup", {"command": "mkdir .deps; echo value = 43 > .deps/kernd_probe.py"})
        self.assertEqual(reply.status, 200, reply)
        self.assert_success(session.run_code(IMPORT), "43 /workspace/.deps/kernd_probe.py\n")
        self.assert_success(session.run_code("import os; print(os.environ['PYTHONPATH'])"),
                            "/workspace/.deps:/run/environment:/workspace/own\n")

    def test_those_who_ask_at_once_share_one_build(self):
        self.packages.asked.clear()
        setup = f"sleep 0.5; python3 -c 'import urllib.request as u; u.urlopen(\"{self.packages.url}\")'"
        replies = harness.parallel(5, lambda _: self.build(setup=setup))
        self.assertEqual({reply.status for reply in replies} - {200, 201}, set(), replies)
        self.assertEqual(len({reply.json["id"] for reply in replies}), 1)
        self.assertEqual(self.packages.asked, ["/"])
        self.drop(replies[0].json["id"])

    def test_a_failed_one_is_built_anew(self):
        body = {"setup": "python3 -c 'import urllib.request as u, sys; sys.stdout.write("
                         f"u.urlopen(\"{self.packages.url}late\").read().decode())' > late.py"}
        reply = self.build(**body)
        self.assert_problem(reply, 422, "setup_failed")
        self.assertIn("HTTP Error 404", reply.json["detail"])
        self.packages.files["/late"] = b"value = 42\n"
        made = self.built(**body)
        self.assert_success(self.run_code("import late; print(late.value)",
                                          environment=made["id"]), "42\n")


class Built(Case):
    def test_read_only(self):
        made = self.built(setup="echo 'value = 1' > mine.py; ln -s /etc/passwd link; mkdir -m 0 shut")
        line = ("cd /run/environment && ls; touch x; rm -f mine.py; chmod 777 shut;"
                "echo 'value = 2' > mine.py; mv mine.py y; mount -o remount,rw /run/environment; cat mine.py")
        for _ in range(2):
            result = self.run_command(["sh", "-c", line], environment=made["id"])
            self.assertEqual(result["stdout"], "link\nmine.py\nshut\nvalue = 1\n")
            self.assertIn("Read-only file system", result["stderr"])
        self.assertEqual(self.files(), [made["id"], made["id"] + ".log"])

    def test_its_id_is_its_content(self):
        first = self.built(setup="true", preload=["json"])
        ids = {first["id"]}
        for body in ({"setup": "true "}, {"setup": "true"}, {"setup": "true", "preload": ["json", "re"]},
                     {"preload": ["json"]}):
            ids.add(self.built(**body)["id"])
        self.assertEqual(len(ids), 5)
        self.assertEqual(self.build(setup="true", preload=["json"], timeoutS=300).json["id"], first["id"])

    def test_names(self):
        first = self.built(setup="true")
        self.assertIsNone(first["name"])
        self.assertEqual(self.build(name="late", setup="true").json["name"], "late")
        self.assertEqual(self.get("late").json["id"], first["id"])
        self.assert_problem(self.build(name="other", setup="true"), 409, "conflict", "/name")
        self.assert_problem(self.build(name="late", setup="false"), 409, "conflict")
        self.assertEqual(self.build(setup="true").json["name"], "late")

    def test_a_failure_leaves_its_log(self):
        before = self.files()
        reply = self.build(name="bad", setup="echo first; echo second >&2; touch left; exit 3")
        self.assert_problem(reply, 422, "setup_failed")
        self.assertIn("exit code 3", reply.json["detail"])
        record = self.daemon.get("/v1/executions/" + reply.header("X-Execution-Id")).json
        self.assertEqual((record["kind"], record["sessionId"]), ("setup", None))
        failed = self.get("bad").json
        self.assertEqual((failed["state"], failed["bytes"]), ("failed", 0))
        self.assertEqual(self.log_of("bad"), "first\nsecond\n")
        census.wait_until(lambda: self.files() == sorted([*before, failed["id"] + ".log"]),
                          harness.seconds(10), "only the log")
        for target, body in (("/v1/runCode", {"code": "1"}), ("/v1/sessions", {})):
            reply = self.daemon.post(target, {**body, "environment": "bad"})
            self.assert_problem(reply, 409, "conflict", "/environment")
        self.drop("bad")
        self.assert_problem(self.get("bad"), 404, "environment_not_found")
        self.assertEqual(self.files(), before)

    def test_the_box_of_a_build(self):
        """The walls of any box, the network as a session's setup has it, its own deadline."""
        script = "cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' ' | sort; id -u; pwd; ls -A"
        made = self.built(setup=f"{script}; touch /usr/x; true")
        session = self.session()
        wanted = session.post("setup", {"command": script}).json["stdout"]
        log = self.log_of(made["id"])
        self.assertTrue(log.startswith(wanted), (log, wanted))
        self.assertIn("Read-only file system", log)
        reply = self.build(setup="for i in 1 2 3; do dd if=/dev/zero of=big$i bs=1M count=12; done; sleep 60",
                           diskMb=16)
        self.assert_problem(reply, 422, "setup_failed")
        self.assertIn("disk_full", reply.json["detail"])
        self.drop(self.daemon.get("/v1/environments?limit=1").json["items"][0]["id"])

    def test_while_it_is_built(self):
        mark = harness.new_mark()
        setup = f"echo begun; MARK={mark} sleep 60"
        reply = self.daemon.post("/v1/environments", {"name": "slow", "setup": setup}, headers=ASYNC)
        self.assertEqual(reply.status, 202, reply)
        path = reply.header("Location")
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "its start")
        view = self.get("slow").json
        self.assertEqual((view["state"], "/v1/executions/" + view["executionId"]), ("building", path))
        for reply in (self.daemon.post("/v1/run", {"command": ["true"], "environment": "slow"}),
                      self.daemon.request("DELETE", "/v1/environments/slow"),
                      self.daemon.get("/v1/environments/slow/log")):
            self.assert_problem(reply, 409, "conflict")
        # One who waits for it and leaves does not end it.
        connection = self.daemon.connect()
        connection.request("POST", "/v1/environments",
                           {**self.daemon.authorization(), "Content-Type": "application/json"},
                           harness.as_json({"setup": setup}))
        connection.reset()
        self.assertEqual(self.daemon.request("DELETE", path).status, 204)
        census.wait_until(lambda: self.get("slow").json["state"] == "failed", harness.seconds(10), "its end")
        self.assert_gone(mark)
        self.assertTrue(self.log_of("slow").startswith("begun\n"))
        self.drop("slow")

    def test_not_deleted_under_those_who_use_it(self):
        made = self.built(name="used", setup="echo 'value = 7' > seven.py")
        path = "/v1/environments/used"
        session = sessionkit.Session(self.daemon, environment="used")
        self.assert_problem(self.daemon.request("DELETE", path), 409, "conflict")
        session.delete()
        mark = harness.new_mark()
        run = self.daemon.post("/v1/run", {"command": ["cat"], "interactive": True, "env": {"MARK": mark},
                                           "environment": made["id"]}, headers=ASYNC)
        self.assertEqual(run.status, 202, run)
        self.assert_problem(self.daemon.request("DELETE", path), 409, "conflict")
        self.daemon.request("DELETE", run.header("Location"))
        self.assertEqual(self.daemon.get(run.header("Location") + "?waitS=10").json["state"], "done")
        census.wait_until(lambda: self.daemon.request("DELETE", path).status == 204,
                          harness.seconds(10), "the last use")
        self.assertEqual(self.daemon.request("DELETE", path).status, 204)
        census.wait_until(lambda: not self.daemon.find("seven.py"), harness.seconds(10), "its files gone")
        self.assert_problem(self.daemon.post("/v1/run", {"command": ["true"], "environment": "used"}),
                            404, "environment_not_found", "/environment")
        self.built(name="used", setup="echo 'value = 7' > seven.py")  # for the clean-up

    def test_list(self):
        made = [self.built(setup=f"true {number}")["id"] for number in range(5)]
        found, cursor = [], ""
        while cursor is not None:
            page = self.daemon.get(f"/v1/environments?limit=2{cursor and '&cursor=' + cursor}").json
            self.assertLessEqual(len(page["items"]), 2)
            found += [item["id"] for item in page["items"]]
            cursor = page["nextCursor"]
        self.assertEqual([name for name in found if name in made], made[::-1])
        self.assert_problem(self.daemon.get("/v1/environments?cursor=x"), 400, "bad_cursor")
        self.assert_problem(self.daemon.get("/v1/environments?limit=0"), 422, "bad_value")

    def test_what_is_refused(self):
        for body, code, pointer in (({}, "bad_value", "/setup"), ({"setup": ""}, "bad_value", "/setup"),
                                    ({"setup": "x" * 70000}, "bad_value", "/setup"),
                                    ({"setup": ["true"]}, "bad_value", "/setup"),
                                    ({"setup": "true", "name": "a b"}, "bad_value", "/name"),
                                    ({"preload": "json"}, "bad_value", "/preload"),
                                    ({"preload": ["os;x"]}, "bad_value", "/preload/0"),
                                    ({"preload": ["json", "1x"]}, "bad_value", "/preload/1"),
                                    ({"preload": ["a..b"]}, "bad_value", "/preload/0"),
                                    ({"preload": ["--help"]}, "bad_value", "/preload/0"),
                                    ({"preload": ["m"] * 65}, "bad_value", "/preload"),
                                    ({"setup": "true", "engine": "docker"}, "bad_value", "/engine"),
                                    ({"setup": "true", "engine": harness.OTHER_ENGINE}, "not_supported_here",
                                     "/engine"),
                                    ({"setup": "true", "image": "alpine"}, "not_supported_here", "/image"),
                                    ({"setup": "true", "mounts": {}}, "unknown_field", "/mounts"),
                                    ({"setup": "true", "memoryMb": 1 << 40}, "limit_exceeds_maximum",
                                     "/memoryMb")):
            with self.subTest(body=str(body)[:80]):
                self.assert_problem(self.build(**body), 422, code, pointer)
        for target, body in (("/v1/runCode", {"code": "1"}), ("/v1/sessions", {})):
            for field, value, status, code in (("environment", "none", 404, "environment_not_found"),
                                               ("environment", "a/b", 422, "bad_value"),
                                               ("preload", ["a-b"], 422, "bad_value")):
                self.assert_problem(self.daemon.post(target, {**body, field: value}), status, code)
        for method, path in (("GET", "/none"), ("GET", "/none/log")):
            self.assert_problem(self.daemon.request(method, "/v1/environments" + path), 404,
                                "environment_not_found")


class Preloaded(Case):
    daemon_arguments = WITH_SPARES
    LOOK = "import sys; print('statistics' in sys.modules, 'kernd_probe' in sys.modules)"

    def from_spare(self, call):
        """Repeats the call until it was served from a spare: the first ones make its shelf."""
        results = []

        def served():
            results.append(call())
            return results[-1]["usage"]["source"] == "spare"
        census.wait_until(served, harness.seconds(30), "a spare")
        return results[-1]

    def test_modules_are_there_before_the_cell(self):
        made = self.built(setup="echo value = 42 > kernd_probe.py", preload=["statistics", "kernd_probe"])
        self.assertEqual(made["preload"], ["statistics", "kernd_probe"])
        result = self.run_code(self.LOOK, environment=made["id"])
        self.assertEqual(result["stdout"], "False False\n")
        self.assertIn(result["usage"]["source"], ("cold", "template"))
        call = lambda: self.run_code(self.LOOK, environment=made["id"])  # noqa: E731
        self.assertEqual(self.from_spare(call)["stdout"], "True True\n")
        session = sessionkit.Session(self.daemon, environment=made["id"])
        self.assertEqual(session.get()["options"]["preload"], made["preload"])
        self.assertEqual(self.from_spare(lambda: session.run_code(self.LOOK))["stdout"], "True True\n")
        session.delete()
        self.assertEqual(self.from_spare(lambda: self.run_code(self.LOOK))["stdout"], "False False\n")

    def test_in_a_call_and_a_session(self):
        call = lambda: self.run_code(self.LOOK, preload=["statistics"])  # noqa: E731
        self.assertEqual(self.from_spare(call)["stdout"], "True False\n")
        session = self.session(preload=["statistics", "no_such_module"])
        self.assertEqual(self.from_spare(lambda: session.run_code(self.LOOK))["stdout"], "True False\n")

    def test_the_workspace_is_not_imported_from(self):
        """Its files may change until the cell comes; what modules print is nobody's output."""
        session = self.session(preload=["statistics", "mine", "this"])
        session.put("mine.py", b"value = 1\n")
        code = "import sys; early = 'mine' in sys.modules; import mine; print(early, mine.value, len(sys.argv))"
        result = self.from_spare(lambda: session.run_code(code))
        self.assertEqual((result["stdout"], result["stderr"]), ("False 1 1\n", ""))
        result = self.from_spare(lambda: session.run_code("import sys; print('this' in sys.modules, sys.path[0])"))
        self.assertEqual(result["stdout"], "True /workspace\n")

    def test_a_missing_module_fails_the_environment(self):
        reply = self.build(name="short", preload=["json", "no_such_module"])
        self.assert_problem(reply, 422, "preload_failed")
        wanted = ("no_such_module can not be preloaded: ModuleNotFoundError: "
                  "No module named 'no_such_module'")
        log = self.log_of("short").splitlines()
        self.assertEqual(log[-1], wanted)
        said = reply.json["detail"].removeprefix("the import failed: ").splitlines()
        self.assertEqual(said, log[-len(said):])
        self.assertEqual(self.get("short").json["state"], "failed")
        # A setup that says the same is a setup.
        reply = self.build(setup="echo 'json can not be preloaded: no'; exit 3", preload=["json"])
        self.assert_problem(reply, 422, "setup_failed")
        self.drop("short")

    def test_deleted_with_spares_waiting(self):
        reply = self.build(setup="echo 'value = 1' > gone.py", preload=["gone"])
        name = reply.json["id"]
        call = lambda: self.run_code("import gone; print(gone.value)", environment=name)  # noqa: E731
        self.assertEqual(self.from_spare(call)["stdout"], "1\n")
        census.wait_until(lambda: self.daemon.request("DELETE", f"/v1/environments/{name}").status == 204,
                          harness.seconds(10), "the last use")
        self.assert_problem(self.daemon.post("/v1/runCode", {"code": "1", "environment": name}), 404,
                            "environment_not_found")


class Restarted(unittest.TestCase):
    def test_ready_ones_last_and_half_built_ones_go(self):
        daemon = harness.Daemon().start()
        self.addCleanup(daemon.remove)
        body = {"name": "kept", "setup": "echo 'value = 5' > five.py"}
        made = daemon.post("/v1/environments", body)
        self.assertEqual(made.status, 201, made)
        session = sessionkit.Session(daemon, environment="kept")
        lost = daemon.post("/v1/environments", {"name": "lost", "setup": "echo 'value = 6' > six.py"})
        mark = harness.new_mark()
        reply = daemon.post("/v1/environments", {"name": "half", "setup": f"touch x; MARK={mark} sleep 60"},
                            headers=ASYNC)
        self.assertEqual(reply.status, 202, reply)
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "its start")
        daemon.kill()
        path = os.path.join(daemon.state, "environments")
        os.rename(os.path.join(path, lost.json["id"]), os.path.join(path, "env_stray"))
        os.truncate(daemon.path("out"), 0)
        daemon.start()
        states = {row["name"]: row["state"] for row in daemon.get("/v1/environments").json["items"]}
        self.assertEqual(states, {"kept": "ready", "lost": "failed", "half": "failed"})
        self.assertEqual(sorted(os.listdir(path)), [".trash"] + sorted(
            [made.json["id"], made.json["id"] + ".log", lost.json["id"] + ".log"]))
        census.wait_gone(lambda: census.with_environment(mark), harness.seconds(5), "the build")
        self.assertEqual(session.run_code("import five; print(five.value)")["stdout"], "5\n")
        again = daemon.post("/v1/environments", body)
        self.assertEqual((again.status, again.json), (200, made.json))
        for name in ("half", "lost"):
            self.assertEqual(daemon.get(f"/v1/environments/{name}").status, 200)
        self.assertEqual(daemon.get("/v1/environments/half/log").status, 404)
        self.assertEqual(daemon.post("/v1/environments", {"setup": "echo 'value = 6' > six.py"}).status, 201)
        self.assertEqual(daemon.get("/v1/environments/lost").json["state"], "ready")
        session.delete()
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
