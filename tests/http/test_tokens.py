# SPDX-License-Identifier: Apache-2.0
"""Tokens that were given away: what they may, what they see, how they end."""
import json
import os
import secrets
import subprocess
import unittest

import census
import harness
import mcpkit
import sessionkit
import speckit

ABSENT = "absent"
OTHERS_FILE = "private.txt"
# What an operation with an id in its path is asked with; the others have no body.
BODIES = {
    ("POST", "/v1/sessions/{id}/fork"): {},
    ("PATCH", "/v1/sessions/{id}"): {"labels": {"a": "b"}},
    ("POST", "/v1/sessions/{id}/setup"): {"command": "true"},
    ("POST", "/v1/sessions/{id}/run"): {"command": ["true"]},
    ("POST", "/v1/sessions/{id}/runCode"): {"code": "1"},
    ("POST", "/v1/sessions/{id}/kernels"): {"language": "python"},
    ("POST", "/v1/sessions/{id}/kernels/{kid}/cells"): {"code": "1"},
    ("POST", "/v1/sessions/{id}/files:move"): {"from": OTHERS_FILE, "to": "b"},
    ("PUT", "/v1/sessions/{id}/files/{path}"): b"overwritten",
    ("PUT", "/v1/sessions/{id}/archive"): b"",
    ("POST", "/v1/sessions/{id}/restore"): {"snapshotId": "theirs"},
    ("POST", "/v1/sessions/{id}/snapshots"): {},
    ("POST", "/v1/executions/{id}/stdin"): b"x",
    ("POST", "/v1/executions/{id}/signal"): {"signal": "KILL"},
}
# For these a token of scope "run" is no token at all.
FULL_ONLY = {("GET", "/metrics"), ("GET", "/v1/tokens"), ("POST", "/v1/tokens"), ("DELETE", "/v1/tokens/{id}"),
             ("POST", "/v1/images/pull"), ("POST", "/v1/images/load"), ("POST", "/v1/environments"),
             ("DELETE", "/v1/environments/{id}"), ("GET", "/v1/environments/{id}/log")}
# What each field of each body is to a token of scope "run": never given, given up to the server's default, or
# its own business, with a value to try.
REFUSED = {
    "network": (True, "network_denied"),
    "egressAllow": (["example.org"], "network_denied"),
    "setup": ("true", "network_denied"),
    "workspace": ("/srv", "mount_refused"),
    "mounts": ({"/srv": "/mnt/x"}, "mount_refused"),
    "engine": ("bubblewrap", "forbidden"),
    "enforceLimits": (False, "forbidden"),
    "capDrop": ([], "forbidden"),
    "apparmor": ("unconfined", "forbidden"),
    "profiles": (["vcpu:x"], "forbidden"),
}
LIMITS = ("timeoutS", "memoryMb", "cpus", "pids", "diskMb", "maxOutputBytes")
FREE = {
    "command": ["true"], "code": "1", "language": "python", "stdin": "x", "env": {"A": "b"}, "cwd": ".",
    "files": {"free.txt": "a"}, "fetchFiles": ["free.txt"], "secrets": {"name": "value"},
    "isolation": "boot", "trackFiles": False, "stdoutEncoding": "base64", "requireLimits": False,
    "queueTimeoutS": 60, "interactive": False, "detach": False, "onDisconnect": "cancel", "onTimeout": "kill",
    "preload": ["json"], "environment": ABSENT, "image": "absent:1", "securityProfile": "untrusted",
    "labels": {"a": "b"}, "idleTimeoutS": 60, "ttlS": 60, "depsReadonly": True, "prewarm": 0,
    "snapshotId": ABSENT, "signal": "TERM", "all": True, "from": "a", "to": "b", "overwrite": True,
    "items": [], "concurrency": 1, "id": None, "name": None,
}
# Importing makes what is not there, so that absent and somebody else's can't look alike.
MAKES = {("PUT", "/v1/snapshots/{id}/content")}


class Case(sessionkit.Case):
    def make(self, **wanted):
        reply = self.daemon.post("/v1/tokens", {"scope": "run", **wanted})
        self.assertEqual(reply.status, 201, reply)
        self.daemon.secrets.append(reply.json["token"])
        return reply.json

    def ask(self, token, method, target, body=None, **options):
        if isinstance(body, bytes):
            options["media_type"] = sessionkit.OCTETS
        return self.daemon.request(method, target, body, token=False,
                                   headers={"Authorization": f"Bearer {token}"}, **options)


class Life(Case):
    def test_shown_once_and_listed(self):
        made = self.make(name="für den Agenten", expiresInS=3600)
        self.assertRegex(made["token"], r"\Akernd_[0-9a-f]{64}\Z")
        self.assertEqual((made["scope"], made["name"]), ("run", "für den Agenten"))
        reply = self.daemon.get("/v1/tokens")
        row = next(row for row in reply.json["items"] if row["id"] == made["id"])
        self.assertEqual(row, {name: value for name, value in made.items() if name != "token"})
        self.assertNotIn(b"kernd_", reply.body)

    def test_bad_wishes(self):
        for body, code in (({}, "bad_value"), ({"scope": "root"}, "bad_value"),
                           ({"scope": "run", "name": ""}, "bad_value"),
                           ({"scope": "run", "name": "x" * 101}, "bad_value"),
                           ({"scope": "run", "name": "a\nb"}, "bad_value"),
                           ({"scope": "run", "name": "a\0b"}, "bad_value"),
                           ({"scope": "run", "name": 5}, "bad_value"),
                           ({"scope": "run", "expiresInS": 0}, "bad_value"),
                           ({"scope": "run", "expiresInS": "1d"}, "bad_value"),
                           ({"scope": "run", "admin": True}, "unknown_field")):
            with self.subTest(body=body):
                self.assert_problem(self.daemon.post("/v1/tokens", body), 422, code)

    def test_an_idempotency_key_keeps_no_token(self):
        headers = {"Idempotency-Key": "token-1"}
        first, second = (self.daemon.post("/v1/tokens", {"scope": "run"}, headers=headers)
                         for _ in range(2))
        self.assertNotEqual(first.json["token"], second.json["token"])

    def test_revoked_at_the_next_request(self):
        made = self.make()
        headers = {"Authorization": f"Bearer {made['token']}"}
        with self.daemon.connect() as connection:
            self.assertEqual(connection.exchange("GET", "/v1/version", headers).status, 200)
            self.assertEqual(self.daemon.request("DELETE", f"/v1/tokens/{made['id']}").status, 204)
            self.assertEqual(connection.exchange("GET", "/v1/version", headers).status, 401)
        self.assert_problem(self.daemon.request("DELETE", f"/v1/tokens/{made['id']}"), 404,
                            "token_not_found")

    def test_it_expires(self):
        made = self.make(expiresInS=1)
        census.wait_until(lambda: self.ask(made["token"], "GET", "/v1/version").status == 401,
                          harness.seconds(20), "the end of the token")

    def test_spellings_that_are_near(self):
        token = self.make()["token"]
        for near in (token[:-1], token + "0", token.upper(), "kernd_" + "0" * 64, "kernd_"):
            with self.subTest(near=near[-4:]):
                self.assertEqual(self.ask(near, "GET", "/v1/version").status, 401)

    def test_a_full_one_is_the_user(self):
        token = self.make(scope="full")["token"]
        session = self.session()
        self.assertEqual(self.ask(token, "GET", session.path).status, 200)
        made = self.ask(token, "POST", "/v1/tokens", {"scope": "run"})
        self.assertEqual(made.status, 201)
        self.assertEqual(self.ask(token, "DELETE", f"/v1/tokens/{made.json['id']}").status, 204)

    def test_a_restart_keeps_tokens_and_ownership_but_no_text(self):
        daemon = harness.Daemon().start()
        try:
            made = daemon.post("/v1/tokens", {"scope": "run"}).json
            gone = daemon.post("/v1/tokens", {"scope": "run"}).json
            headers = {"Authorization": f"Bearer {made['token']}"}
            session = daemon.post("/v1/sessions", {"id": "mine"}, token=False, headers=headers)
            self.assertEqual(session.status, 201)
            self.assertEqual(daemon.post("/v1/sessions", {"id": "others"}).status, 201)
            self.assertEqual(daemon.request("DELETE", f"/v1/tokens/{gone['id']}").status, 204)
            daemon.kill()
            os.truncate(daemon.path("out"), 0)  # the ready line is looked for there
            daemon.start()
            daemon.secrets += [made["token"], gone["token"]]
            reply = daemon.get("/v1/sessions", token=False, headers=headers)
            self.assertEqual([row["id"] for row in reply.json["items"]], ["mine"])
            reply = daemon.get("/v1/version", token=False,
                               headers={"Authorization": f"Bearer {gone['token']}"})
            self.assertEqual(reply.status, 401)
            for session in ("mine", "others"):
                daemon.request("DELETE", f"/v1/sessions/{session}")
            for parent, _, files in os.walk(daemon.state):
                for name in files:
                    with open(os.path.join(parent, name), "rb") as file:
                        self.assertNotIn(made["token"].encode(), file.read(), name)
        finally:
            daemon.stop()


class Command(Case):
    """`kernd token`, which goes over the Unix socket."""

    def token(self, *arguments, code=0, socket=None):
        become = {"user": self.daemon.user, "extra_groups": []} if self.daemon.user else {}
        done = subprocess.run(
            [harness.KERND, "token", *arguments, "--socket", socket or self.daemon.socket_path],
            capture_output=True, text=True, timeout=harness.seconds(30), check=False, **become)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_new_list_revoke(self):
        made = self.token("new", "--scope", "run", "--name", "my agent", "--expires", "2h")
        token = made.stdout.strip()
        self.daemon.secrets.append(token)
        self.assertRegex(token, r"\Akernd_[0-9a-f]{64}\Z")
        self.assertNotIn(token, made.stderr)
        self.assertEqual(self.ask(token, "GET", "/v1/tokens").status, 403)
        rows = self.token("list").stdout.splitlines()
        row = next(row.split(None, 4) for row in rows if "my agent" in row)
        self.assertEqual((row[1], row[4]), ("run", "my agent"))
        self.assertIn(row[0], made.stderr)
        self.token("revoke", row[0])
        self.assertEqual(self.ask(token, "GET", "/v1/version").status, 401)
        self.assertIn("no token by that id", self.token("revoke", row[0], code=1).stderr)

    def test_wrong_usage(self):
        for arguments in ((), ("make",), ("new",), ("revoke",), ("revoke", "a b"), ("list", "x"),
                          ("new", "--scope", "run", "--expires", "soon"),
                          ("new", "--scope", "run", "--expires", "0")):
            with self.subTest(arguments=arguments):
                self.assertIn("kernd token new", self.token(*arguments, code=2).stderr)
        self.assertIn("scope", self.token("new", "--scope", "root", code=1).stderr)

    def test_no_server_there(self):
        self.assertIn("no-such", self.token("list", code=1, socket="/tmp/no-such.sock").stderr)


class Narrow(Case):
    """A token of scope "run" beside the user's own things, and beside another such token."""

    # Each limit has a default, and a larger one that others may ask for.
    daemon_arguments = ("--default-cpus", "0.5", "--default-disk-mb", "100")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.spec = speckit.Spec(cls.daemon.get("/openapi.json").json)
        cls.token, cls.other = (cls.daemon.post("/v1/tokens", {"scope": "run"}).json["token"]
                                for _ in range(2))

    def mine(self, method, target, body=None, **options):
        return self.ask(self.token, method, target, body, **options)

    def refused(self, reply, status, code, pointer=None):
        self.assert_problem(reply, status, code, pointer)

    # ---- what it sees ----

    def theirs(self):
        """A session of the user's, with all that there can be in it, all of one name."""
        session = self.session(id="theirs-" + secrets.token_hex(4))
        name = session.id
        session.put(OTHERS_FILE, b"private")
        self.assertEqual(session.post("kernels", {"language": "python", "id": "k"}).status, 201)
        self.assertEqual(session.post("snapshots", {"name": name}).status, 201)
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/snapshots/{name}")
        reply = self.daemon.post("/v1/run", {"command": ["sleep", "60"], "id": name,
                                             "interactive": True, "timeoutS": 120},
                                 headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202, reply)
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/executions/{name}")
        return session

    @staticmethod
    def fill(path, thing):
        return path.replace("{id}", thing).replace("{kid}", "k").replace("{path}", OTHERS_FILE)

    def test_what_others_have_is_as_if_it_were_not_there(self):
        session = self.theirs()
        operations = [row[:2] for row in self.spec.operations()]
        walked = [row for row in operations
                  if "{id}" in row[1] and row not in FULL_ONLY | MAKES]
        self.assertGreater(len(walked), 25)
        for method, path in walked:
            with self.subTest(operation=f"{method} {path}"):
                body = BODIES.get((method, path))
                theirs, absent = (self.mine(method, self.fill(path, thing), body)
                                  for thing in (session.id, ABSENT))
                self.assertEqual(theirs.status, absent.status, theirs)
                self.assertIn(theirs.status, (403, 404) if method != "DELETE" else (204, 403, 404))
                if theirs.status >= 400:
                    self.assertEqual(theirs.json["code"], absent.json["code"])
        self.assertEqual(session.content(OTHERS_FILE), b"private")
        self.assertEqual([row["state"] for row in self.daemon.get(f"{session.path}/kernels")
                         .json["items"]], ["idle"])
        self.assertEqual(self.daemon.get(f"/v1/snapshots/{session.id}").status, 200)
        state = self.daemon.get(f"/v1/executions/{session.id}").json["state"]
        self.assertIn(state, ("queued", "running"))
        self.assertEqual(self.mine("PUT", f"/v1/snapshots/{session.id}/content", b"").status // 100, 4)

    def test_every_list_is_of_its_own(self):
        theirs = self.theirs().id
        mine = self.mine("POST", "/v1/sessions", {}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{mine}")
        other = self.ask(self.other, "POST", "/v1/sessions", {}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{other}")
        for target in ("/v1/sessions", "/v1/executions", "/v1/snapshots"):
            for query in ("", "?limit=1000"):
                text = self.mine("GET", target + query).body.decode()
                self.assertNotIn(theirs, text)
                self.assertNotIn(other, text)
        self.assertEqual(self.mine("GET", f"/v1/executions?sessionId={theirs}").json["items"], [])
        self.assertEqual(self.mine("GET", f"/v1/sessions/{other}").status, 404)
        self.assertEqual(self.ask(self.other, "GET", f"/v1/sessions/{mine}").status, 404)
        # The user sees all.
        self.assertEqual(self.daemon.get(f"/v1/sessions/{mine}").status, 200)

    def test_snapshots_of_others_are_no_source(self):
        theirs = self.theirs().id
        self.refused(self.mine("POST", "/v1/sessions", {"snapshotId": theirs}), 404,
                     "snapshot_not_found")
        mine = self.mine("POST", "/v1/sessions", {}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{mine}")
        self.refused(self.mine("POST", f"/v1/sessions/{mine}/restore", {"snapshotId": theirs}),
                     404, "snapshot_not_found")

    def test_ids_of_others_are_taken_but_not_shown(self):
        theirs = self.theirs().id
        for target, body in (("/v1/sessions", {"id": theirs}),
                             ("/v1/run", {"command": ["true"], "id": theirs})):
            reply = self.mine("POST", target, body)
            self.assertEqual(reply.status, 409, reply)

    # ---- what it may not ask for ----

    def test_every_route(self):
        """What is not for it is exactly what the table above says, whatever the body."""
        for method, path, operation, _ in self.spec.operations():
            if operation["tags"] == ["mcp"]:
                continue
            kind = next(iter(self.spec.resolve(operation.get("requestBody", {})).get("content", ())), None)
            body = {None: None, "application/json": {"no": 1}}.get(kind, b"x")
            with self.subTest(operation=f"{method} {path}"):
                reply = self.mine(method, self.fill(path, ABSENT), body)
                if (method, path) in FULL_ONLY:
                    self.refused(reply, 403, "forbidden")
                else:
                    self.assertNotEqual(reply.status, 403)
        self.assertLessEqual(FULL_ONLY, {row[:2] for row in self.spec.operations()})

    def bodies(self):
        """(method, path of its own things, fields of the body, what must be in it)"""
        mine = self.mine("POST", "/v1/sessions", {}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{mine}")
        opened = self.mine("POST", f"/v1/sessions/{mine}/kernels", {"id": "k"})
        self.assertEqual(opened.status, 201, opened)
        for method, path, operation, _ in self.spec.operations():
            schema = self.spec.resolve(self.spec.body_schema(operation) or {})
            if "properties" in schema and (method, path) not in FULL_ONLY and operation["tags"] != ["mcp"]:
                body = {name: FREE[name] for name in schema.get("required", ())}
                yield method, self.fill(path, mine), schema["properties"], body

    def widest(self, name, body):
        """A body with a limit that is the server's default, and one with a wider one."""
        usual = self.daemon.get("/v1/capabilities").json["defaults"][name]
        self.assertIsNotNone(usual, f"{name}: without a default nothing is too much")
        return {**body, name: usual}, {**body, name: usual * 2}

    def check_field(self, method, path, name, body):
        if name in LIMITS:
            usual, wide = self.widest(name, body)
            self.assertNotEqual(self.mine(method, path, usual).status, 403)
            self.refused(self.mine(method, path, wide), 403, "forbidden", f"/{name}")
        elif name in REFUSED:
            value, code = REFUSED[name]
            self.refused(self.mine(method, path, {**body, name: value}), 403, code, f"/{name}")
        else:
            self.assertIn(name, FREE, "what may a narrow token do with this field?")
            reply = self.mine(method, path, {**body, name: FREE[name]})
            self.assertNotEqual(reply.status, 403, reply)
            self.forget(reply)

    def forget(self, reply):
        if reply.status == 201 and "ownedWorkspace" in reply.json:
            self.mine("DELETE", f"/v1/sessions/{reply.json['id']}")

    def test_every_field(self):
        asked = set()
        for method, path, fields, body in self.bodies():
            for name in fields:
                with self.subTest(operation=f"{method} {path}", field=name):
                    self.check_field(method, path, name, body)
                asked.add(name)
        self.assertEqual({*LIMITS, *REFUSED} - asked, set())

    def test_every_field_of_an_item(self):
        fields = self.spec.document["components"]["schemas"]["RunRequest"]["properties"]
        wishes = {name: wish for name, wish in REFUSED.items() if name in fields}
        wishes.update({name: (self.widest(name, {})[1][name], "forbidden") for name in LIMITS})
        reply = self.mine("POST", "/v1/batch", {"items": [{"command": ["true"], name: value}
                                                          for name, (value, _) in wishes.items()]})
        found = [(item["status"], item["problem"]["code"], item["problem"]["errors"][0]["pointer"])
                 for item in reply.json["items"]]
        self.assertEqual(found, [(403, code, f"/items/{index}/{name}")
                                 for index, (name, (_, code)) in enumerate(wishes.items())])

    def test_restricted_fields_elsewhere(self):
        session = self.mine("POST", "/v1/sessions", {"setup": "true"})
        self.refused(session, 403, "network_denied", "/setup")
        mine = self.mine("POST", "/v1/sessions", {}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{mine}")
        path = f"/v1/sessions/{mine}"
        self.refused(self.mine("POST", f"{path}/setup", {"command": "true"}), 403,
                     "network_denied")
        self.refused(self.mine("PATCH", path, {"memoryMb": 1024}), 403, "forbidden", "/memoryMb")
        self.refused(self.mine("POST", f"{path}/kernels", {"language": "python", "timeoutS": 60}),
                     403, "forbidden")
        self.assertEqual(self.mine("POST", f"{path}/kernels", {"id": "k"}).status, 201)
        self.refused(self.mine("POST", f"{path}/kernels/k/cells", {"code": "1", "timeoutS": 60}),
                     403, "forbidden", "/timeoutS")

    def test_tokens_are_not_its_business(self):
        self.refused(self.mine("POST", "/v1/tokens", {"scope": "full"}), 403, "forbidden")

    def test_over_the_unix_socket_it_is_as_narrow(self):
        reply = self.mine("POST", "/v1/run", {"command": ["true"], "network": True}, via="unix")
        self.refused(reply, 403, "network_denied", "/network")
        self.assertEqual(self.daemon.get("/v1/tokens", via="unix").status, 200)

    # ---- what it may ----

    def test_its_own_work(self):
        reply = self.mine("POST", "/v1/runCode", {"code": "6*7", "timeoutS": 10})
        self.assertEqual(reply.json["results"][0]["data"]["text/plain"], "42")
        execution = reply.json["id"]
        self.assertEqual(self.mine("GET", f"/v1/executions/{execution}").status, 200)
        self.assertEqual(self.mine("GET", f"/v1/executions/{execution}/events").status, 200)
        mine = self.mine("POST", "/v1/sessions", {"memoryMb": 256}).json["id"]
        self.addCleanup(self.daemon.request, "DELETE", f"/v1/sessions/{mine}")
        path = f"/v1/sessions/{mine}"
        self.assertEqual(self.mine("PUT", f"{path}/files/a.txt", b"A").status, 201)
        self.assertEqual(self.mine("POST", f"{path}/run", {"command": ["cat", "a.txt"]})
                         .json["stdout"], "A")
        self.assertEqual(self.mine("POST", f"{path}/kernels", {"id": "k"}).status, 201)
        cell = self.mine("POST", f"{path}/kernels/k/cells", {"code": "x = 1; x"})
        self.assertEqual(cell.json["results"][0]["data"]["text/plain"], "1")
        snapshot = self.mine("POST", f"{path}/snapshots", {})
        self.assertEqual(snapshot.status, 201)
        self.assertEqual(self.mine("POST", f"{path}/restore",
                                   {"snapshotId": snapshot.json["id"]}).status, 200)
        self.assertEqual(self.mine("DELETE", f"/v1/snapshots/{snapshot.json['id']}").status, 204)
        self.assertEqual(self.mine("DELETE", path).status, 204)

    def tool(self, name, **arguments):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": name, "arguments": arguments}}
        reply = self.mine("POST", "/mcp", body)
        self.assertEqual(reply.status, 200, reply)
        messages = mcpkit.events(reply.body) or [json.loads(reply.body)]
        return json.dumps(messages[-1])

    def test_the_model_context_protocol(self):
        theirs = self.theirs().id
        self.assertIn("42", self.tool("run_code", code="6*7"))
        for row in self.mine("GET", "/v1/sessions").json["items"]:
            self.addCleanup(self.mine, "DELETE", f"/v1/sessions/{row['id']}")
        self.assertNotIn("private", self.tool("list_files", session=theirs))
        self.assertNotIn("private", self.tool("read_file", session=theirs, path=OTHERS_FILE))


if __name__ == "__main__":
    unittest.main()
