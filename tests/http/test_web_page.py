# SPDX-License-Identifier: Apache-2.0
"""A web page in the user's browser, or a stranger on the machine, tries to use the daemon."""
import unittest

import census
import harness
from harness import as_json


class Attack(harness.Case):
    """Every refusal comes before anything runs: the marked program never appears."""

    def setUp(self):
        super().setUp()
        self.mark = harness.new_mark()
        self.body = as_json({"code": "sleep 3", "language": "bash", "env": {"MARK": self.mark}})

    def tearDown(self):
        self.assert_success(self.run_code("print(1)"), "1\n")  # whatever came earlier has begun
        self.assert_gone(self.mark, 0)

    def attack(self, headers, status, code, token=True, media_type="application/json"):
        with self.within(1):
            reply = self.daemon.post("/v1/runCode", self.body, headers=headers, token=token,
                                     media_type=media_type)
        self.assert_problem(reply, status, code)
        return reply

    def test_the_control_the_program_is_seen_when_it_may_run(self):
        seen, reply = harness.parallel(2, lambda i: self.daemon.post("/v1/runCode", self.body) if i
                                       else census.wait_until(
                                           lambda: census.with_environment(self.mark),
                                           harness.seconds(10), "the program"))
        self.assertTrue(seen)
        self.assert_success(reply.json)

    def test_foreign_host(self):
        port = self.daemon.port
        for host in ("attacker.example", f"attacker.example:{port}", f"127.0.0.1.nip.io:{port}",
                     f"localhost.attacker.example:{port}", f"127.0.0.1:{port + 1}", "127.0.0.2",
                     f"[::1%25eth0]:{port}", f"localhost@attacker.example:{port}", "0.0.0.0",
                     f"xlocalhost:{port}", f"localhostx:{port}", f"127.0.0.1:{port}0"):
            for token in (True, False):
                with self.subTest(host=host, token=token):
                    self.attack({"Host": host}, 403, "host_denied", token)

    def test_ill_formed_host(self):
        for host in ("", " ", "local host", "localhost:", "localhost:x", "[::1", "localhost:-1",
                     "localhost:99999999"):
            with self.subTest(host=host):
                reply = self.daemon.post("/v1/runCode", self.body, headers={"Host": host})
                self.assertIn(reply.status, (400, 403), reply)

    def test_no_host(self):
        for version in ("1.1", "1.0"):
            for token in (True, False):
                with self.subTest(version=version, token=token):
                    lines = [f"POST /v1/runCode HTTP/{version}", "Content-Type: application/json",
                             f"Content-Length: {len(self.body)}"]
                    if token:
                        lines.append(f"Authorization: Bearer {self.daemon.token}")
                    with self.daemon.connect() as connection:
                        connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + self.body)
                        self.assertEqual(connection.reply().status, 400)

    def test_foreign_origin(self):
        port = self.daemon.port
        for origin in ("https://attacker.example", "null", f"http://127.0.0.1:{port}.attacker.example",
                       f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}", "file://",
                       f"http://localhost:{port}@attacker.example", "chrome-extension://abc", "",
                       f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port} http://x"):
            for token in (True, False):
                with self.subTest(origin=origin, token=token):
                    self.attack({"Origin": origin}, 403, "origin_denied", token)

    def test_two_origins(self):
        with self.daemon.connect() as connection:
            own = f"http://127.0.0.1:{self.daemon.port}"
            connection.request("POST", "/v1/runCode", [
                ("Authorization", f"Bearer {self.daemon.token}"), ("Origin", own),
                ("Origin", "https://attacker.example"), ("Content-Type", "application/json")],
                self.body)
            self.assertIn(connection.reply().status, (400, 403))

    def test_simple_content_types(self):
        for media_type in ("text/plain", "application/x-www-form-urlencoded", None, "text/json",
                           "multipart/form-data; boundary=x", "text/plain; application/json",
                           "text/plain;charset=application/json"):
            with self.subTest(media_type=media_type):
                self.attack({}, 415, "unsupported_media_type", media_type=media_type)
                self.attack({}, 401, "unauthorized", token=False, media_type=media_type)

    def test_preflight_gives_no_permission(self):
        for target in ("/v1/runCode", "/healthz", "/v1/nothing", "*"):
            with self.subTest(target=target):
                reply = self.daemon.request("OPTIONS", target, token=False, headers={
                    "Origin": "https://attacker.example",
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "authorization,content-type",
                    "Access-Control-Request-Private-Network": "true"})
                self.assertGreaterEqual(reply.status, 400)  # and no CORS header: check.reply

    def test_reading_is_refused_too(self):
        for target in ("/healthz", "/v1/version", "/v1/capabilities", "/openapi.json", "/metrics"):
            with self.subTest(target=target):
                self.assert_problem(self.daemon.get(target, headers={"Host": "attacker.example"}),
                                    403, "host_denied")
                self.assert_problem(self.daemon.get(target, headers={
                    "Origin": "https://attacker.example"}), 403, "origin_denied")

    def test_get_never_runs(self):
        for target in ("/v1/runCode?code=print(1)", "/v1/run?command=true"):
            self.assertEqual(self.daemon.get(target).status, 405)


class Allowed(harness.Case):
    """What an ordinary client sends works."""

    def test_loopback_names(self):
        port = self.daemon.port
        for host in (f"localhost:{port}", f"[::1]:{port}", f"127.0.0.1:{port}",
                     f"LOCALHOST:{port}"):
            with self.subTest(host=host):
                reply = self.daemon.post("/v1/run", {"command": ["echo", "1"]}, headers={
                    "Host": host, "Content-Type": "application/json; charset=utf-8"},
                    media_type=None)
                self.assert_success(reply.json, "1\n")

    def test_own_origin(self):
        for host in ("127.0.0.1", "localhost"):
            origin = f"http://{host}:{self.daemon.port}"
            reply = self.daemon.post("/v1/run", {"command": ["echo", "1"]}, headers={
                "Origin": origin, "Host": f"{host}:{self.daemon.port}"})
            self.assert_success(reply.json, "1\n")

    def test_health_needs_no_token(self):
        self.assertEqual(self.daemon.get("/healthz", token=False).status, 200)


class Tokens(harness.Case):
    """Who has no token gets nothing, and learns nothing."""

    def refused(self, headers, target="/v1/runCode"):
        reply = self.daemon.post(target, {"code": "1"}, token=False, headers=headers)
        self.assert_problem(reply, 401, "unauthorized")
        self.assertTrue(reply.header("WWW-Authenticate").startswith("Bearer"))
        return reply

    def test_missing_and_wrong(self):
        token = self.daemon.token
        wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
        for value in ("", "Bearer", "Bearer ", f"Bearer {wrong}", f"Bearer {token}x",
                      f"Bearer {token[:-1]}", f"Bearer {token.upper()}x", f"Basic {token}", token,
                      f"Bearer {token} x", "Bearer " + "x" * 5000):
            with self.subTest(value=value[:20]):
                self.refused({"Authorization": value})
        self.refused({})
        self.refused({"X-API-Key": wrong})
        self.refused({"X-API-Key": ""})
        self.refused({"Cookie": f"token={token}"})

    def test_the_answer_does_not_echo(self):
        reply = self.refused({"Authorization": "Bearer wrong-token-value"})
        self.assertNotIn(b"wrong-token-value", reply.body)
        self.assertNotIn("wrong-token-value", self.daemon.log())

    def test_every_route_but_health_asks(self):
        for target in ("/v1/version", "/v1/capabilities", "/v1/stats", "/v1/nothing", "/metrics"):
            with self.subTest(target=target):
                self.assertEqual(self.daemon.get(target, token=False).status, 401)

    def test_in_the_query(self):
        for query in ("token", "access_token", "api_key", "authorization"):
            with self.subTest(query=query):
                reply = self.daemon.post(f"/v1/run?{query}={self.daemon.token}",
                                         {"command": ["true"]}, token=False)
                self.assertEqual(reply.status, 401)
                self.assertNotIn(self.daemon.token.encode(), reply.body)

    def test_in_the_query_beside_a_good_one(self):
        reply = self.daemon.post(f"/v1/run?token={self.daemon.token}", {"command": ["true"]})
        self.assertIn(reply.status, (400, 401), reply)
        self.assertNotIn(self.daemon.token.encode(), reply.body)

    def test_both_spellings_work(self):
        for headers in ({"Authorization": f"Bearer {self.daemon.token}"},
                        {"authorization": f"bearer {self.daemon.token}"},
                        {"X-API-Key": self.daemon.token}):
            reply = self.daemon.post("/v1/run", {"command": ["true"]}, token=False, headers=headers)
            self.assertEqual(reply.status, 200, headers)


if __name__ == "__main__":
    unittest.main()
