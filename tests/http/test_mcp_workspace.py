# SPDX-License-Identifier: Apache-2.0
"""What a client's configuration may fix, and a model may not: the scope and the workspace."""
import os
import pwd
import shutil
import tempfile
import unittest
import urllib.parse

import census
import harness
import mcpkit
from test_mcp_bridge import Bridge

SCOPE = {"Kernd-Scope": "run"}


class Case(mcpkit.Case):
    def setUp(self):
        super().setUp()
        self.project = tempfile.mkdtemp(prefix="kernd-test-project ü-")
        self.addCleanup(shutil.rmtree, self.project, True)
        with open(self.path("main.py"), "w", encoding="utf-8") as file:
            file.write("answer = 42\n")
        if self.daemon.user:
            account = pwd.getpwnam(self.daemon.user)
            for path in (self.project, self.path("main.py")):
                os.chown(path, account.pw_uid, account.pw_gid)

    def path(self, name):
        return os.path.join(self.project, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def working_in(self, workspace, headers=None):
        client = self.client()
        plain = client.headers
        client.headers = lambda method, params: {
            **plain(method, params), "Kernd-Workspace": workspace, **(headers or SCOPE)}
        return client

    @property
    def quoted(self):
        return urllib.parse.quote(self.project)


class Narrowing(Case):
    def ask(self, target, body, via, headers=None, **more):
        return self.daemon.post(target, {**body, **more}, via=via, headers=headers or SCOPE)

    def test_less_than_everything(self):
        self.assertEqual(self.daemon.post("/v1/sessions", {"id": "mine"}).status, 201)
        for via in ("tcp", "unix"):
            with self.subTest(via=via):
                run = {"command": ["true"]}
                self.assertEqual(self.ask("/v1/run", run, via).status, 200)
                self.assert_problem(self.ask("/v1/run", run, via, network=True), 403,
                                    "network_denied")
                self.assert_problem(self.ask("/v1/run", run, via, workspace=self.project), 403,
                                    "mount_refused")
                for target in ("/v1/tokens", "/metrics"):
                    self.assertEqual(
                        self.daemon.get(target, via=via, headers=SCOPE).status, 403, target)
                self.assert_problem(self.daemon.get("/v1/sessions/mine", via=via, headers=SCOPE),
                                    404, "session_not_found")
                self.assertEqual(self.daemon.get("/v1/sessions/mine", via=via).status, 200)

    def test_what_it_makes_is_there_for_the_next(self):
        self.assertEqual(self.ask("/v1/sessions", {"id": "theirs"}, "tcp").status, 201)
        self.assertEqual(
            self.daemon.get("/v1/sessions/theirs", via="unix", headers=SCOPE).status, 200)

    def test_owners_are_strangers_to_each_other(self):
        one, other = ({**SCOPE, "Kernd-Owner": name} for name in ("one", "other"))
        self.assertEqual(self.ask("/v1/sessions", {"id": "of-one"}, "unix", one).status, 201)
        for via in ("tcp", "unix"):
            for headers, status in ((one, 200), (other, 404), (SCOPE, 404), ({"X-Any": "y"}, 200)):
                reply = self.daemon.get("/v1/sessions/of-one", via=via, headers=headers)
                self.assertEqual(reply.status, status, headers)
        reply = self.ask("/v1/sessions/of-one/run", {"command": ["true"]}, "unix", other)
        self.assert_problem(reply, 404, "session_not_found")

    def test_other_values(self):
        for headers in ({"Kernd-Scope": "full"}, {"Kernd-Scope": ""}, {"Kernd-Owner": "one"},
                        {**SCOPE, "Kernd-Owner": ""}, {**SCOPE, "Kernd-Owner": "a b"}, {**SCOPE, "Kernd-Owner": "x" * 200}):
            self.assert_problem(self.daemon.get("/v1/version", headers=headers), 400, "bad_header")

    def test_no_way_up(self):
        made = self.daemon.post("/v1/tokens", {"scope": "run"}).json
        self.daemon.secrets.append(made["token"])
        headers = {**SCOPE, "Authorization": f"Bearer {made['token']}"}
        self.assertEqual(self.daemon.get("/v1/tokens", headers=headers, token=False).status, 403)
        client = self.working_in(self.quoted, {"Authorization": headers["Authorization"]})
        reply = client.send("tools/list")
        self.assert_problem(reply, 403, "forbidden")


class Workspace(Case):
    def test_read_and_write(self):
        client = self.working_in(self.quoted)
        self.assertIn("own", client.initialize()["instructions"])
        self.assertIn("42", client.text("run_code", code="from main import answer; answer"))
        client.call("write_file", path="new.txt", content="by a tool")
        client.call("run_command", command="echo by a box > box.txt")
        client.call("edit_file", path="main.py", old_text="42", new_text="43")
        self.assertEqual((self.read("new.txt"), self.read("box.txt"), self.read("main.py")),
                         ("by a tool", "by a box\n", "answer = 43\n"))
        self.assertIn("box.txt", client.text("list_files"))

    def test_read_only(self):
        client = self.working_in(self.quoted + ":ro")
        self.assertIn("read-only", client.initialize()["instructions"])
        self.assertIn("42", client.text("run_code", code="from main import answer; answer"))
        self.assertIn("42", client.text("read_file", path="main.py"))
        self.assertIn("main.py", client.text("search_files", text="answer"))
        session = client.call("session_info")["structuredContent"]["session_id"]
        snapshot = client.call("snapshot")["structuredContent"]["snapshot_id"]
        for result in (client.call("run_command", command="touch made"),
                       client.call("run_code", code="open('made', 'w')"),
                       client.call("run_code", code="open('made', 'w')", kernel=False),
                       client.call("write_file", path="made", content="x"),
                       client.call("edit_file", path="main.py", old_text="4", new_text="5"),
                       client.call("restore", snapshot_id=snapshot)):
            self.assertTrue(result["isError"], result)
        for method, body in (("PUT", b"x"), ("DELETE", None)):
            reply = self.daemon.request(method, f"/v1/sessions/{session}/files/main.py", body,
                                        media_type="application/octet-stream")
            self.assert_problem(reply, 403, "forbidden")
        reply = self.daemon.post(f"/v1/sessions/{session}/run",
                                 {"command": ["true"], "files": {"made": "x"}})
        self.assert_problem(reply, 403, "forbidden")
        self.assertEqual(os.listdir(self.project), ["main.py"])
        self.assertEqual(self.read("main.py"), "answer = 42\n")

    def test_a_session_for_each_choice(self):
        sessions = {self.working_in(where).call("session_info")["structuredContent"]["session_id"]
                    for where in (self.quoted, self.quoted + ":ro")}
        sessions.add(self.client().call("session_info")["structuredContent"]["session_id"])
        self.assertEqual(len(sessions), 3)

    def test_what_the_rules_refuse(self):
        for place in ("/", "/etc", "/proc/self", self.daemon.state):
            with self.subTest(place=place):
                result = self.working_in(place).call("run_command", command="true")
                self.assertEqual(result["structuredContent"]["error"]["code"], "mount_refused")

    def test_bad_headers(self):
        for value in ("relative", "", "%2Fetc", "/a%00b", "/a/../etc", ":ro"):
            with self.subTest(value=value):
                reply = self.working_in(value).send("tools/list")
                self.assert_problem(reply, 400, "bad_header")


class OverTheBridge(Case):
    def bridge(self, *arguments):
        return Bridge(self.daemon, "--socket", self.daemon.socket_path, *arguments)

    def test_it_has_the_narrow_scope(self):
        self.assertEqual(self.daemon.post("/v1/sessions", {"id": "private"}).status, 201)
        with self.bridge() as bridge:
            result = bridge.ask("tools/call", {"name": "read_file", "arguments": {
                "session_id": "private", "path": "x"}})["result"]
            self.assertEqual(result["structuredContent"]["error"]["code"], "session_not_found")

    def test_an_owner_for_each_place(self):
        def info(bridge, **arguments):
            result = bridge.ask("tools/call", {"name": "session_info", "arguments": arguments})["result"]
            return result["structuredContent"]

        with self.bridge("--workspace", self.project) as bridge:
            session = info(bridge)["session_id"]
        with self.bridge("--workspace", self.project) as again, self.bridge() as elsewhere:
            self.assertEqual(info(again, session_id=session)["session_id"], session)
            self.assertEqual(info(elsewhere, session_id=session)["error"]["code"],
                             "session_not_found")

    def test_workspace(self):
        call = {"name": "run_command", "arguments": {"command": "cat main.py; echo x > made"}}
        with self.bridge("--workspace", self.project + ":ro") as bridge:
            result = bridge.ask("tools/call", call)["result"]
            self.assertTrue(result["isError"])
            self.assertIn("answer", result["content"][0]["text"])
        with self.bridge(f"--workspace={self.project}") as bridge:
            self.assertFalse(bridge.ask("tools/call", call)["result"]["isError"])
        self.assertEqual(self.read("made"), "x\n")

    def test_no_such_directory(self):
        for place in (self.path("none"), self.path("main.py"), ""):
            with self.bridge("--workspace", place) as bridge:
                out, error, code = bridge.end()
                self.assertEqual((out, code), (b"", 2))
                self.assertIn(b"no directory", error)


class Quota(Case):
    daemon_arguments = ("--spares", "1", "--templates", "0", "--default-disk-mb", "1")

    def test_what_is_only_read_may_be_larger(self):
        """Also in a box that was started before its call."""
        with open(self.path("large"), "wb") as file:
            file.write(bytes(3 << 20))
        client = self.working_in(self.quoted + ":ro")
        for ready in (0, 1):
            census.wait_until(lambda: self.daemon.get("/v1/stats").json["boxes"] >= ready,
                              harness.seconds(20), "a box ahead of its call")
            result = client.call("run_code", code="import time; time.sleep(0.2); 42", kernel=False)
            self.assertFalse(result["isError"], result)


if __name__ == "__main__":
    unittest.main()
