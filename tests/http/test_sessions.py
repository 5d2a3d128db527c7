# SPDX-License-Identifier: Apache-2.0
"""Sessions: made, found, changed, forked, ended; what calls inherit from them."""
import datetime
import os
import tempfile
import threading
import time
import unittest

import census
import check
import harness
import sessionkit


def when(text):
    return datetime.datetime.fromisoformat(text[:-1])


class Made(sessionkit.Case):
    def test_with_nothing(self):
        for body in (None, b"", b"{}"):
            with self.subTest(body=body):
                reply = self.daemon.request("POST", "/v1/sessions", body)
                self.assertEqual(reply.status, 201, reply)
                made = check.session(reply.json)
                self.assertEqual(reply.header("Location"), f"/v1/sessions/{made['id']}")
                self.assertRegex(made["id"], "^ses_[0-9a-z]{20}$")
                self.assertEqual((made["state"], made["labels"], made["expiresAt"]),
                                 ("ready", {}, None))
                self.assertTrue(made["ownedWorkspace"])
                options = made["options"]
                self.assertEqual((options["timeoutS"], options["memoryMb"], options["pids"]),
                                 (30, 512, 256))
                self.assertEqual(self.daemon.request("DELETE", reply.header("Location")).status, 204)

    def test_with_everything(self):
        wanted = {"id": "Every.thing-1_x", "labels": {"a": "1", "team/x": "é b:c="},
                  "env": {"A": "1", "B": "s3cr3t"}, "timeoutS": 7.5, "memoryMb": 300, "cpus": 1.5,
                  "pids": 50, "diskMb": 100, "maxOutputBytes": 1000, "network": False,
                  "trackFiles": False, "depsReadonly": True, "idleTimeoutS": 3600, "ttlS": 7200,
                  "prewarm": 0, "engine": "auto", "mounts": {}, "profiles": [], "egressAllow": [],
                  "securityProfile": "untrusted", "capDrop": ["ALL"], "enforceLimits": True,
                  "requireLimits": False, "image": None, "apparmor": None, "workspace": None,
                  "setup": None}
        session = self.session(**wanted)
        made = check.session(session.made)
        self.assertEqual(made["id"], wanted["id"])
        self.assertEqual(made["labels"], wanted["labels"])
        self.assertEqual(made["options"]["envNames"], ["A", "B"])
        for name in ("timeoutS", "memoryMb", "cpus", "pids", "diskMb", "maxOutputBytes", "network",
                     "trackFiles", "depsReadonly", "idleTimeoutS", "ttlS", "prewarm", "mounts"):
            self.assertEqual(made["options"][name], wanted[name], name)
        self.assertEqual(when(made["expiresAt"]) - when(made["createdAt"]),
                         datetime.timedelta(seconds=3600))
        self.assertNotIn("s3cr3t", str(made) + str(self.daemon.get(session.path).json))

    def test_twice(self):
        body = {"id": "same", "labels": {"a": "b"}, "env": {"X": "1"}}
        session = self.session(**body)
        again = self.create(**body)
        self.assertEqual((again.status, again.json), (200, session.made))
        for other in ({"id": "same"}, {**body, "env": {"X": "2"}}, {**body, "timeoutS": 5}):
            self.assert_problem(self.create(**other), 409, "session_exists")

    def test_by_many_at_once(self):
        """One is first, the others find it."""
        replies = harness.parallel(8, lambda _: self.create(id="race", labels={"k": "v"}))
        self.assertEqual(sorted(reply.status for reply in replies), [200] * 7 + [201], replies)
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/race").status, 204)

    def test_bad_bodies(self):
        samples = [({"id": bad}, "/id") for bad in ("", "a b", "../x", ".x", "x" * 65, "é", 5, "a/b",
                                                    "a\0b")]
        samples += [({"labels": bad}, "/labels") for bad in ([], "x", {str(n): "" for n in range(65)})]
        samples += [({"labels": {bad: "x"}}, "/labels/" + bad.replace("/", "~1"))
                    for bad in ("", "a=b", "a:b", " a", "-a", "a/", "é", "x" * 65)]
        samples += [({"labels": {"k": bad}}, "/labels/k") for bad in (5, None, "x" * 257, "a\0b")]
        samples += [({name: bad}, "/" + name) for name in ("timeoutS", "idleTimeoutS", "ttlS")
                    for bad in (0, -1, "5", True)]
        samples += [({"env": {"A-B": "x"}}, "/env/A-B"), ({"env": {"A": 1}}, "/env/A"),
                    ({"env": {"KERND_X": "1"}}, "/env/KERND_X"), ({"memoryMb": 1}, "/memoryMb"),
                    ({"prewarm": 17}, "/prewarm"), ({"prewarm": 1.5}, "/prewarm"),
                    ({"setup": ""}, "/setup"), ({"setup": " \n"}, "/setup"), ({"setup": ["x"]}, "/setup"),
                    ({"workspace": 5}, "/workspace"), ({"network": "yes"}, "/network")]
        for body, pointer in samples:
            with self.subTest(body=str(body)[:60]):
                self.assert_problem(self.create(**body), 422, "bad_value", pointer)
        self.assert_problem(self.create(timoutS=1), 422, "unknown_field", "/timoutS")
        self.assert_problem(self.create(command=["true"]), 422, "unknown_field", "/command")
        self.assert_problem(self.create(memoryMb=10**9), 422, "limit_exceeds_maximum", "/memoryMb")
        self.assert_problem(self.daemon.post("/v1/sessions", b"[]"), 400, "bad_json")
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])

    def test_methods(self):
        self.assertEqual(self.daemon.request("PUT", "/v1/sessions").header("Allow"),
                         "POST, GET, HEAD, OPTIONS")
        self.assertEqual(self.daemon.request("POST", "/v1/sessions/x").header("Allow"),
                         "GET, HEAD, PATCH, DELETE, OPTIONS")
        for bad in ("/v1/sessions/a%2fb", "/v1/sessions/..", "/v1/sessions/x%00"):
            self.assertIn(self.daemon.get(bad).status, (404, 422))
        self.assert_problem(self.daemon.get("/v1/sessions/no_such"), 404, "session_not_found")
        self.assert_problem(self.daemon.get("/v1/sessions/a b".replace(" ", "%20")), 404,
                            "session_not_found")


class Listed(sessionkit.Case):
    def ids(self, query=""):
        reply = self.daemon.get("/v1/sessions" + query)
        self.assertEqual(reply.status, 200, reply)
        return [check.session(row)["id"] for row in reply.json["items"]]

    def test_pages_and_filters(self):
        made = [self.session(id=f"n{number}", labels={"parity": "odd" if number % 2 else "even",
                                                      "all": "x:y"}).id for number in range(7)]
        newest_first = made[::-1]
        self.assertEqual(self.ids(), newest_first)
        self.assertEqual(self.ids("?label=parity:odd"), ["n5", "n3", "n1"])
        self.assertEqual(self.ids("?label=all:x:y&limit=2"), ["n6", "n5"])
        self.assertEqual(self.ids("?label=parity:none"), [])
        self.assertEqual(self.ids("?state=ready"), newest_first)
        self.assertEqual(self.ids("?state=creating"), [])
        found, cursor = [], ""
        while cursor is not None:
            page = self.daemon.get("/v1/sessions?limit=3" + (f"&cursor={cursor}" if cursor else ""))
            found.append([row["id"] for row in page.json["items"]])
            cursor = page.json["nextCursor"]
        self.assertEqual(found, [newest_first[:3], newest_first[3:6], newest_first[6:]])

    def test_a_page_behind_a_deletion(self):
        for number in range(4):
            self.session(id=f"d{number}")
        page = self.daemon.get("/v1/sessions?limit=2").json
        self.daemon.request("DELETE", "/v1/sessions/d2")
        self.assertEqual(self.ids(f"?limit=2&cursor={page['nextCursor']}"), ["d1", "d0"])

    def test_bad_queries(self):
        for query, code, status in (("limit=0", "bad_value", 422), ("limit=1001", "bad_value", 422),
                                    ("limit=x", "bad_value", 422), ("cursor=zzz", "bad_cursor", 400),
                                    ("state=lost", "bad_value", 422), ("label=x", "bad_value", 422),
                                    ("label=:x", "bad_value", 422), ("x=1", "unknown_field", 422),
                                    ("limit=1&limit=2", "bad_value", 422)):
            with self.subTest(query=query):
                self.assert_problem(self.daemon.get(f"/v1/sessions?{query}"), status, code)


class Changed(sessionkit.Case):
    def test_members_one_by_one(self):
        session = self.session(env={"A": "1", "B": "2"}, labels={"x": "1"}, timeoutS=9, ttlS=1000)
        reply = session.patch(labels={"y": "2"}, timeoutS=5, pids=77)
        self.assertEqual(reply.status, 200, reply)
        now = check.session(reply.json)
        self.assertEqual((now["labels"], now["options"]["timeoutS"], now["options"]["pids"]),
                         ({"y": "2"}, 5, 77))
        self.assertEqual(now["options"]["envNames"], ["A", "B"])
        self.assertEqual(session.get()["options"], now["options"])
        self.assertGreaterEqual(when(now["updatedAt"]), when(now["createdAt"]))
        now = session.patch(env={"C": "3"}, idleTimeoutS=50).json
        self.assertEqual(now["options"]["envNames"], ["C"])
        self.assertLess((when(now["expiresAt"]) - when(now["lastUsedAt"])).total_seconds(), 51)
        self.assert_success(session.shell("echo ${A-none} $C"), "none 3\n")

    def test_null_is_the_default(self):
        session = self.session(env={"A": "1"}, labels={"x": "1"}, timeoutS=9, cpus=1, ttlS=50,
                               trackFiles=False)
        now = session.patch(env=None, labels=None, timeoutS=None, cpus=None, ttlS=None,
                            trackFiles=None).json
        self.assertEqual((now["labels"], now["expiresAt"], now["options"]["envNames"]), ({}, None, []))
        self.assertEqual([now["options"][name] for name in ("timeoutS", "cpus", "ttlS", "trackFiles")],
                         [30, None, None, True])

    def test_what_can_not_be_changed(self):
        session = self.session()
        for name in ("id", "engine", "workspace", "setup", "mounts", "image", "depsReadonly"):
            self.assert_problem(session.patch(**{name: None}), 422, "unknown_field", "/" + name)
        self.assert_problem(session.patch(memoryMb=10**9), 422, "limit_exceeds_maximum", "/memoryMb")
        self.assert_problem(session.patch(timeoutS=0), 422, "bad_value", "/timeoutS")
        self.assertEqual(session.get()["options"], session.made["options"])
        self.assert_problem(self.daemon.request("PATCH", "/v1/sessions/none", {}), 404,
                            "session_not_found")

    def test_labels_are_found_as_they_are_now(self):
        session = self.session(labels={"v": "old"})
        session.patch(labels={"v": "new"})
        self.assertEqual(self.daemon.get("/v1/sessions?label=v:old").json["items"], [])
        self.assertEqual(self.daemon.get("/v1/sessions?label=v:new").json["items"][0]["id"], session.id)

    def test_keepalive(self):
        session = self.session(idleTimeoutS=100)
        before = session.get()
        time.sleep(0.01)
        reply = session.post("keepalive")
        self.assertEqual(reply.status, 200, reply)
        self.assertGreater(when(reply.json["lastUsedAt"]), when(before["lastUsedAt"]))
        self.assertGreater(when(reply.json["expiresAt"]), when(before["expiresAt"]))
        self.assertEqual(session.get()["lastUsedAt"], reply.json["lastUsedAt"])
        self.assert_problem(self.daemon.post("/v1/sessions/none/keepalive", None), 404,
                            "session_not_found")


class Calls(sessionkit.Case):
    def test_files_persist_and_nothing_else(self):
        session = self.session()
        result = session.run_code("x = 1; open('f', 'w').write('1'); open('/tmp/t', 'w').write('1')")
        self.assert_success(result)
        self.assertEqual(result["sessionId"], session.id)
        self.assertEqual([(row["path"], row["change"]) for row in result["files"]], [("f", "created")])
        result = session.run_code("import os; print(open('f').read(), os.path.exists('/tmp/t'));"
                                  "open('f', 'a').write('2'); print('x' in globals())")
        self.assert_success(result, "1 False\nFalse\n")
        self.assertEqual([(row["path"], row["change"]) for row in result["files"]], [("f", "modified")])
        self.assert_success(session.run(["cat", "f"]), "12")
        self.assertEqual(session.run(["rm", "f"])["files"],
                         [{"path": "f", "size": 2, "change": "deleted"}])
        self.assert_success(session.run_code("console.log(require('fs').readdirSync('.').length)",
                                             "node"), "0\n")
        self.assert_success(session.run_code("echo $PWD", "bash"), "/workspace\n")

    def test_another_session_does_not_see_them(self):
        first, second = self.session(), self.session()
        first.put("secret", b"x")
        self.assertNotIn("secret", second.shell("ls -a; ls ..; find / -name secret")["stdout"])

    def test_absent_inherits_and_null_is_the_default(self):
        session = self.session(env={"A": "session", "B": "session"}, timeoutS=9, memoryMb=300,
                               maxOutputBytes=5, trackFiles=False)
        result = session.shell("echo $A $B; touch f")
        self.assertEqual((result["stdout"], result["files"]), ("sessi", []))
        self.assertEqual([result["limits"][name] for name in ("timeoutS", "memoryMb", "maxOutputBytes")],
                         [9, 300, 5])
        result = session.shell("echo $A $B; touch g", env={"B": "call"}, maxOutputBytes=100,
                               timeoutS=3, trackFiles=True)
        self.assert_success(result, "session call\n")
        self.assertEqual((result["limits"]["timeoutS"], len(result["files"])), (3, 1))
        result = session.shell("echo ${A-none} ${B-none}", env=None, timeoutS=None, memoryMb=None,
                               maxOutputBytes=None, trackFiles=None)
        self.assert_success(result, "none none\n")
        self.assertEqual([result["limits"][name] for name in ("timeoutS", "memoryMb", "maxOutputBytes")],
                         [30, 512, 64 << 20])

    def test_per_call_deadline(self):
        session = self.session(timeoutS=30)
        for call in (lambda: session.shell("sleep 20", timeoutS=1),
                     lambda: session.run_code("import time; time.sleep(20)", timeoutS=1)):
            with self.within(10):
                result = call()
            self.assert_fault(result, "timeout")
            self.assertIn("1", result["fault"]["message"])
        for bad in (0, -1, "2", True):
            self.assert_problem(session.post("run", {"command": ["true"], "timeoutS": bad}), 422,
                                "bad_value", "/timeoutS")
        with self.within(12):
            self.assert_fault(self.session(timeoutS=1).shell("sleep 20"), "timeout")

    def test_stdin_cwd_files_and_fetch(self):
        session = self.session()
        result = session.shell("cat; cat in.txt; pwd; echo out > o", stdin="input\n", cwd="sub",
                               files={"sub/in.txt": "file\n"}, fetchFiles=["sub/o", "none"])
        self.assert_success(result, "input\nfile\n/workspace/sub\n")
        self.assertEqual(result["fetched"], {"sub/o": {"base64": "b3V0Cg=="},
                                             "none": {"error": "not_found"}})
        self.assert_success(session.run(["cat", "sub/in.txt"]), "file\n")

    def test_options_of_a_session_are_none_of_a_call(self):
        session = self.session()
        for name, value in (("mounts", {}), ("workspace", "/x"), ("engine", "auto"), ("setup", "x"),
                            ("ttlS", 5), ("labels", {}), ("image", "x")):
            self.assert_problem(session.post("run", {"command": ["true"], name: value}), 422,
                                "unknown_field", "/" + name)
        self.assert_problem(self.daemon.post("/v1/sessions/none/run", {"command": ["true"]}), 404,
                            "session_not_found")
        self.assert_problem(session.post("run", {"command": "true"}), 422, "bad_value", "/command")
        self.assert_problem(session.post("runCode", {}), 422, "bad_value", "/code")

    def test_many_at_once(self):
        session = self.session()
        results = harness.parallel(24, lambda number: session.shell(f"echo {number} > f{number}"))
        for result in results:
            self.assert_success(result)
        self.assertEqual(sorted(session.names()), sorted(f"f{number}" for number in range(24)))
        self.assertEqual(session.get()["runningExecutions"], 0)

    def test_many_with_variables_leave_nothing_behind(self):
        session = self.session(env={"A": "1"})
        results = harness.parallel(24, lambda number: session.shell("echo $A $B",
                                                                    env={"B": str(number)}))
        self.assertEqual([result["stdout"] for result in results],
                         [f"1 {number}\n" for number in range(24)])
        self.assertEqual(session.names(), [])

    def test_planted_links_are_not_followed(self):
        """Variables, input and code go to boxes by no file that the workspace could hold."""
        session = self.session(env={"A": "1"})
        with tempfile.NamedTemporaryFile(prefix="kernd-mine-") as target:
            target.write(b"mine")
            target.flush()
            os.chmod(target.name, 0o666)
            names = [".cell-1", ".env", ".kern-env", ".kern-env.x", ".kernd-put"]
            self.assert_success(session.shell("; ".join(f"ln -s {target.name} {name}" for name in names)))
            self.assert_success(session.shell("echo $A $B", env={"B": "2"}), "1 2\n")
            self.assert_success(session.run_code("print(input())", stdin="3\n"), "3\n")
            for name in names:
                self.assert_problem(session.put(name, b"theirs"), 422, "bad_path")
                self.assert_problem(session.read(name), 422, "bad_path")
            with open(target.name, "rb") as file:
                self.assertEqual(file.read(), b"mine")
        for name in (".kern-environment", "kern-env", "notes.txt"):
            session.put(name, b"")
        self.assertEqual(session.names(), sorted([*names, ".kern-environment", "kern-env", "notes.txt"]))

    def test_running_calls_are_counted(self):
        session = self.session()
        mark = harness.new_mark()
        thread = threading.Thread(target=session.shell, args=("sleep 5",),
                                  kwargs={"env": {"MARK": mark}})
        thread.start()
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        self.assertEqual(session.get()["runningExecutions"], 1)
        self.assertEqual(session.get()["state"], "ready")
        self.assertTrue(any(row["runningExecutions"] == 1
                            for row in self.daemon.get("/v1/sessions").json["items"]))
        thread.join()
        self.assertEqual(session.get()["runningExecutions"], 0)

    def test_thread_pools_follow_cpus(self):
        session = self.session(cpus=1.5, env={"MKL_NUM_THREADS": "7"})
        result = session.shell("echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS $MKL_NUM_THREADS "
                               "$GOMAXPROCS $PYTHON_CPU_COUNT")
        self.assert_success(result, "2 2 7 2 2\n")
        self.assert_success(session.shell("echo $OMP_NUM_THREADS ${MKL_NUM_THREADS-x}", cpus=1,
                                          env=None), "1 1\n")
        self.assert_success(self.run_command(["sh", "-c", "echo ${OMP_NUM_THREADS-none}"]), "none\n")
        self.assert_success(self.run_command(["sh", "-c", "echo $OMP_NUM_THREADS"], cpus=0.5), "1\n")

    def test_measured(self):
        session = self.session()
        self.assertEqual([session.get()[name] for name in ("workspaceBytes", "workspaceFiles")], [0, 0])
        session.put("a/b", b"x" * 1000)
        session.put("c", b"y" * 24)
        self.assertEqual([session.get()[name] for name in ("workspaceBytes", "workspaceFiles")],
                         [1024, 2])


class Ended(sessionkit.Case):
    def test_delete_is_repeatable(self):
        session = sessionkit.Session(self.daemon, id="gone")
        for _ in range(3):
            session.delete()
        for method, path, body in (("GET", "", None), ("POST", "/run", {"command": ["true"]}),
                                   ("POST", "/keepalive", None), ("PATCH", "", {}),
                                   ("GET", "/files", None), ("POST", "/fork", {}),
                                   ("POST", "/setup", {"command": "true"})):
            reply = self.daemon.request(method, session.path + path, body)
            self.assert_problem(reply, 404, "session_not_found")
        self.assertEqual(self.create(id="gone").status, 201)
        session.delete()
        self.daemon.check_nothing_left()

    def test_delete_ends_what_runs(self):
        session = sessionkit.Session(self.daemon)
        mark = harness.new_mark()
        replies = []
        thread = threading.Thread(target=lambda: replies.append(session.post(
            "run", {"command": ["sleep", "60"], "env": {"MARK": mark}})))
        thread.start()
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        with self.within(10):
            session.delete()
        thread.join()
        self.assert_gone(mark)
        self.assertEqual(replies[0].status, 200, replies[0])
        self.assert_fault(replies[0].json, "cancelled")
        self.assert_problem(self.daemon.get(session.path), 404, "session_not_found")

    def test_by_many_at_once(self):
        session = sessionkit.Session(self.daemon)
        session.put("f", b"x")
        replies = harness.parallel(6, lambda _: self.daemon.request("DELETE", session.path))
        self.assertEqual({reply.status for reply in replies}, {204})
        self.daemon.check_nothing_left()

    def test_idle_time(self):
        session = sessionkit.Session(self.daemon, id="idle", idleTimeoutS=1.5)
        session.put("f", b"x")
        started = time.monotonic()
        while time.monotonic() < started + 3:  # use renews, again and again
            self.assert_success(session.shell("true"))
            time.sleep(0.3)

        def expired():
            self.daemon.get(f"{session.path}/files")  # reading does not
            return self.daemon.get(session.path).status == 410
        census.wait_until(expired, harness.seconds(15), "expired")
        for method, path, body in (("GET", "", None), ("POST", "/run", {"command": ["true"]}),
                                   ("POST", "/keepalive", None), ("PATCH", "", {}),
                                   ("GET", "/files", None)):
            self.assert_problem(self.daemon.request(method, session.path + path, body), 410,
                                "session_expired")
        self.assertNotIn("idle", [row["id"] for row in
                                  self.daemon.get("/v1/sessions").json["items"]])
        listed = self.daemon.get("/v1/sessions?state=expired").json["items"]
        self.assertIn(("idle", "expired"), [(row["id"], row["state"]) for row in listed])
        self.assertEqual(self.create(id="idle", labels={"new": "1"}).status, 201)
        self.assertEqual(session.names(), [])
        session.delete()
        self.daemon.check_nothing_left()

    def test_a_running_call_is_use(self):
        session = sessionkit.Session(self.daemon, idleTimeoutS=0.5)
        self.assert_success(session.shell("sleep 3; echo done"), "done\n")
        self.assertEqual(self.daemon.get(session.path).status, 200)
        census.wait_until(lambda: self.daemon.get(session.path).status == 410, harness.seconds(15),
                          "expired")

    def test_lifetime_ends_what_runs(self):
        session = sessionkit.Session(self.daemon, ttlS=1)
        with self.within(20):
            result = session.shell("sleep 60")
        self.assert_fault(result, "cancelled")
        census.wait_until(lambda: self.daemon.get(session.path).status == 410, harness.seconds(15),
                          "expired")

    def test_a_timer_can_be_taken_off(self):
        session = self.session(idleTimeoutS=2)
        session.patch(idleTimeoutS=None)
        other = sessionkit.Session(self.daemon, idleTimeoutS=2)
        census.wait_until(lambda: self.daemon.get(other.path).status == 410, harness.seconds(15),
                          "the other one expired")
        self.assertEqual(session.get()["state"], "ready")


class Forked(sessionkit.Case):
    def test_files_modes_links_and_options(self):
        session = self.session(env={"A": "1"}, labels={"x": "y"}, timeoutS=9)
        self.assert_success(session.shell(
            "mkdir -p d/e; echo 1 > d/e/f; chmod 750 d/e/f; chmod 700 d; ln -s d/e/f link; mkfifo p;"
            "ln -s /etc/passwd out; ln d/e/f hard; touch -d 2001-02-03 old; mkdir .deps;"
            "echo dep > .deps/x; dd if=/dev/urandom of=big bs=1M count=3 2> /dev/null"))
        listing = "ls -lR --time-style=+%s | grep -v total; sha256sum big; cat .deps/x"
        reply = session.post("fork", {"id": "copy"})
        self.assertEqual((reply.status, reply.header("Location")), (201, "/v1/sessions/copy"), reply)
        check.session(reply.json)
        self.addCleanup(self.daemon.request, "DELETE", "/v1/sessions/copy")
        self.assertEqual(reply.json["labels"], {"x": "y"})
        self.assertEqual(reply.json["options"], {**session.made["options"]})
        there = self.daemon.result("/v1/sessions/copy/run", {"command": ["sh", "-c", listing]})
        here = session.shell(listing)
        self.assertNotIn("prw", there["stdout"])

        def without(text):  # links count, and directories' times are their own
            return [line.split(None, 2)[::2] for line in text.splitlines()
                    if " p" != line[-2:] and not line.startswith("d")]
        self.assertEqual(without(there["stdout"]), without(here["stdout"]))

    def test_they_go_their_own_ways(self):
        session = self.session()
        session.put("f", b"1")
        reply = session.post("fork", None)
        self.assertEqual(reply.status, 201, reply)
        path = reply.header("Location")
        self.addCleanup(self.daemon.request, "DELETE", path)
        session.put("f", b"2")
        self.assertEqual(self.daemon.get(path + "/files/f").body, b"1")
        session.delete()
        self.assertEqual(self.daemon.get(path + "/files/f").body, b"1")

    def test_refusals(self):
        session = self.session(id="one")
        self.assert_problem(session.post("fork", {"id": "one"}), 409, "session_exists")
        self.assert_problem(session.post("fork", {"id": "a b"}), 422, "bad_value", "/id")
        self.assert_problem(session.post("fork", {"x": 1}), 422, "unknown_field", "/x")
        self.assert_problem(self.daemon.post("/v1/sessions/none/fork", {}), 404, "session_not_found")
        self.assertEqual(session.get()["state"], "ready")


if __name__ == "__main__":
    unittest.main()
