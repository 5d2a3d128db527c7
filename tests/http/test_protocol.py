# SPDX-License-Identifier: Apache-2.0
"""HTTP itself: routes, methods, content types, request ids, connections."""
import contextlib
import unittest
import urllib.parse

import census
import check
import harness

BODY = b'{"command":["echo","hi"]}'


class Routes(harness.Case):
    def test_unknown_routes(self):
        for target in ("/", "/v1", "/v1/", "/v1/nothing", "/v1/run/", "/v1//run", "/V1/run",
                       "/v1/run/x", "/healthz/", "/v2/run", "/%76%31/rum", "/v1/run.json"):
            with self.subTest(target=target), self.within(1):
                reply = self.daemon.request("POST", target, BODY)
                self.assert_problem(reply, 404, "route_not_found")

    def test_targets_that_are_no_paths(self):
        for target in ("/v1/%00", "/v1/%zz", "/v1/%", "/v1/../v1/run", "/v1/%2e%2e/run",
                       "/v1/%2Frun", "/v1/%c0%ae/run", "/v1/run%0a", "/v1/./run"):
            with self.subTest(target=target), self.within(1):
                reply = self.daemon.request("POST", target, BODY)
                self.assertIn(reply.status, (400, 404, 422), reply)

    def test_what_is_no_http(self):
        """The library's own answers: a status that fits, and the end of the connection."""
        for text, status in (("GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400),
                             ("POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
                             ("POST /v1/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                              "\r\nno size\r\n", 400),
                             (f"GET / HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 70000}\r\n\r\n", 431),
                             (f"GET /{'x' * 70000} HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
                             ("GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505)):
            with self.subTest(text=text[:60]), self.daemon.connect() as connection:
                with contextlib.suppress(ConnectionError):  # it may end before it has taken all
                    connection.send(text.encode())
                # To its end, which shows that it ends: 0.9.75 says the head twice where a length is bad.
                answer = connection.read_to_close()
                self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), answer[:200])

    def test_what_does_not_even_look_like_it(self):
        """The connection ends, and the server serves on. An answer is as good; 0.9.75 has none."""
        for data in (b"word\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"):
            with self.subTest(data=data), self.daemon.connect() as connection:
                connection.send(data)
                answer = connection.read_to_close()
                self.assertTrue(answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer[:200])
        self.assertEqual(self.daemon.get("/healthz").status, 200)

    def test_wrong_method(self):
        for method, target, allowed in (("GET", "/v1/run", {"POST"}),
                                        ("DELETE", "/v1/runCode", {"POST"}),
                                        ("PUT", "/v1/run", {"POST"}),
                                        ("PATCH", "/v1/run", {"POST"}),
                                        ("POST", "/healthz", {"GET", "HEAD"}),
                                        ("DELETE", "/v1/version", {"GET", "HEAD"})):
            with self.subTest(method=method, target=target):
                body = BODY if method in ("POST", "PUT", "PATCH") else None
                reply = self.daemon.request(method, target, body)
                self.assert_problem(reply, 405, "method_not_allowed")
                found = {word.strip() for word in reply.header("Allow").split(",")}
                self.assertLessEqual(allowed, found)
                self.assertNotIn(method, found)

    def test_methods_nobody_knows(self):
        for method in ("TRACE", "CONNECT", "BREW", "get", "POSTT", "PROPFIND"):
            with self.subTest(method=method):
                with self.daemon.connect() as connection:
                    connection.request(method, "/v1/run", self.daemon.authorization())
                    reply = connection.reply()
                self.assertIn(reply.status, (400, 404, 405, 501), reply)

    def test_head_is_get_without_the_body(self):
        for target in ("/healthz", "/v1/version", "/v1/capabilities"):
            with self.subTest(target=target):
                get = self.daemon.get(target)
                head = self.daemon.request("HEAD", target)
                self.assertEqual((head.status, head.media_type), (get.status, get.media_type))
                self.assertEqual(head.body, b"")
                self.assertEqual(head.header("Content-Length"), get.header("Content-Length"))

    def test_head_of_a_stream_has_no_last_chunk(self):
        """The next answer on the connection, if there is one, begins where this one ended."""
        self.daemon.post("/v1/run", {"command": ["true"], "id": "head-of-stream"})
        with self.daemon.connect() as connection:
            reply = connection.exchange("HEAD", "/v1/executions/head-of-stream/events",
                                        self.daemon.authorization())
            self.assertEqual((reply.status, reply.body), (200, b""))
            self.assertEqual(reply.header("Connection").lower(), "close")
            self.assertFalse(connection.more())
            self.assertEqual(connection.buffer, b"")

    def test_head_of_a_run_runs_nothing(self):
        self.assertEqual(self.daemon.request("HEAD", "/v1/run").status, 405)

    def test_options(self):
        reply = self.daemon.request("OPTIONS", "/v1/run")
        self.assertIn(reply.status, (200, 204, 405))
        self.assertIn("POST", reply.header("Allow"))

    def test_query_is_not_part_of_the_path(self):
        reply = self.daemon.get("/healthz?x=1&y")
        self.assertEqual(reply.status, 200)

    def test_content_types(self):
        for media_type in ("text/plain", "application/x-www-form-urlencoded", "text/json", "",
                           "multipart/form-data; boundary=x", "application/jsonx", None,
                           "application/octet-stream", "application/json, text/plain"):
            with self.subTest(media_type=media_type):
                reply = self.daemon.post("/v1/run", BODY, media_type=media_type)
                self.assert_problem(reply, 415, "unsupported_media_type")
        for media_type in ("application/json", "application/json; charset=utf-8",
                           "Application/JSON;charset=UTF-8", "application/json ; charset=\"utf-8\""):
            with self.subTest(media_type=media_type):
                reply = self.daemon.post("/v1/run", BODY, media_type=media_type)
                self.assert_success(reply.json, "hi\n")

    def test_other_charsets_and_codings_are_refused(self):
        reply = self.daemon.post("/v1/run", BODY, media_type="application/json; charset=latin-1")
        self.assertIn(reply.status, (200, 415))
        reply = self.daemon.post("/v1/run", BODY, headers={"Content-Encoding": "gzip"})
        self.assert_problem(reply, 415, "unsupported_media_type")

    def test_accept(self):
        for accept in ("application/json", "*/*", "application/*", "text/html, */*;q=0.1"):
            with self.subTest(accept=accept):
                reply = self.daemon.post("/v1/run", BODY, headers={"Accept": accept})
                self.assertEqual(reply.status, 200)
        reply = self.daemon.post("/v1/run", BODY, headers={"Accept": "image/png"})
        self.assertIn(reply.status, (200, 406))


class RequestIds(harness.Case):
    def test_own_id_comes_back_and_is_logged(self):
        own = "my-id.1_" + harness.new_mark()
        reply = self.daemon.get("/v1/version", headers={"X-Request-Id": own})
        self.assertEqual(reply.header("X-Request-Id"), own)
        census.wait_until(lambda: own in self.daemon.log(), harness.seconds(5), "the log line")

    def test_made_when_missing(self):
        ids = {self.daemon.get("/healthz").header("X-Request-Id") for _ in range(5)}
        self.assertEqual(len(ids), 5)

    def test_ill_formed_ids_are_replaced(self):
        for given in ("", " ", "a b", "x" * 5000, "a\"b", "é", "<script>", "a\tb"):
            with self.subTest(given=given[:20]):
                reply = self.daemon.get("/healthz", headers={"X-Request-Id": given})
                self.assertEqual(reply.status, 200)
                self.assertNotEqual(reply.header("X-Request-Id"), given)
                self.assertTrue(reply.header("X-Request-Id"))

    def test_the_problem_names_it(self):
        reply = self.daemon.get("/v1/nothing", headers={"X-Request-Id": "abc"})
        self.assertEqual(reply.json["requestId"], "abc")


class Connections(harness.Case):
    def test_keep_alive(self):
        with self.daemon.connect() as connection:
            for i in range(20):
                reply = connection.exchange("POST", "/v1/run", {
                    **self.daemon.authorization(), "Content-Type": "application/json"},
                    harness.as_json({"command": ["echo", str(i)]}))
                self.assertFalse(reply.closed)
                self.assert_success(reply.json, f"{i}\n")

    def test_keep_alive_after_refusals(self):
        with self.daemon.connect() as connection:
            headers = {**self.daemon.authorization(), "Content-Type": "application/json"}
            for target, body, status in (("/v1/run", b"{", 400), ("/v1/none", b"{}", 404),
                                         ("/v1/run", b"{}", 422)):
                reply = check.reply(connection.exchange("POST", target, headers, body))
                self.assertEqual(reply.status, status)
                if reply.closed:
                    self.assertTrue(connection.at_end())
                    connection = self.daemon.connect()
            reply = connection.exchange("GET", "/healthz", headers)
            self.assertEqual(reply.status, 200)
            connection.close()

    def test_pipelined_answers_come_in_order(self):
        with self.daemon.connect() as connection:
            headers = {**self.daemon.authorization(), "Content-Type": "application/json"}
            for i in range(20):
                if i % 3 == 2:
                    connection.request("GET", "/healthz", headers)
                else:
                    script = f"sleep 0.{max(0, 6 - i)}; echo {i}"
                    connection.request("POST", "/v1/run", headers, harness.as_json(
                        {"command": ["sh", "-c", script]}))
            for i in range(20):
                reply = check.reply(connection.reply())
                self.assertEqual(reply.status, 200)
                if i % 3 != 2:
                    self.assert_success(reply.json, f"{i}\n")

    def test_a_request_that_waits_keeps_its_words(self):
        """What comes behind it on the connection takes the place where they were read."""
        own = [f"{harness.new_mark()}-{number}" for number in range(4)]
        with self.daemon.connect() as connection:
            for number, name in enumerate(own):
                words = ["sh", "-c", f"sleep 0.{4 - number}; echo {name}"]
                connection.request("POST", "/v1/run", {
                    "X-Request-Id": name, "X-Filler": name * 100, "Idempotency-Key": name,
                    **self.daemon.authorization(), "Content-Type": "application/json"},
                    harness.as_json({"command": words, "id": name}))
            connection.request("GET", f"/v1/sessions/{own[0]}?{own[1]}=x", {
                "X-Request-Id": own[2], **self.daemon.authorization()})
            for name in own:
                reply = check.reply(connection.reply())
                self.assert_success(reply.json, name + "\n")
                self.assertEqual((reply.json["id"], reply.header("X-Request-Id")), (name, name))
            reply = check.reply(connection.reply())
            self.assertEqual((reply.json["instance"], reply.json["requestId"]),
                             (f"/v1/sessions/{own[0]}", own[2]))

    def test_a_request_in_single_bytes(self):
        with self.daemon.connect() as connection:
            head = (f"POST /v1/run HTTP/1.1\r\nHost: {connection.host}\r\nAuthorization: Bearer "
                    f"{self.daemon.token}\r\nContent-Type: application/json\r\nContent-Length: "
                    f"{len(BODY)}\r\n\r\n").encode() + BODY
            for byte in head:
                connection.send(bytes([byte]))
            self.assert_success(check.reply(connection.reply()).json, "hi\n")

    def test_http_1_0(self):
        with self.daemon.connect() as connection:
            connection.send(b"GET /healthz HTTP/1.0\r\nHost: localhost:%d\r\n\r\n" % self.daemon.port)
            reply = connection.reply()
            self.assertEqual(reply.status, 200)
            self.assertEqual(reply.json["status"], "ok")
            self.assertTrue(connection.at_end())

    def test_connection_close(self):
        with self.daemon.connect() as connection:
            reply = connection.exchange("GET", "/healthz", {"Connection": "close"})
            self.assertTrue(reply.closed)
            self.assertTrue(connection.at_end())

    GARBAGE = (b"\r\n" * 50, b"\0" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
               b"GET /healthz\r\n\r\n", b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
               b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
               b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"A" * 100000)

    def answer_to(self, garbage):
        """b"" too where it waits for the rest of the request, which is fine."""
        with self.daemon.connect(timeout=2) as connection:
            try:
                connection.send(garbage)
                return connection.read_to_close()
            except (TimeoutError, BrokenPipeError, ConnectionResetError):
                return b""

    def test_garbage(self):
        answers = harness.parallel(len(self.GARBAGE), lambda i: self.answer_to(self.GARBAGE[i]))
        for garbage, data in zip(self.GARBAGE, answers):
            with self.subTest(garbage=garbage[:30]):
                self.assertTrue(data == b"" or data.startswith(b"HTTP/1."), data[:100])
                self.assertNotIn(b" 200 ", data[:20])
        self.assertEqual(self.daemon.get("/healthz").status, 200)

    def test_idle_and_stuck_peers_hold_nobody_up(self):
        stuck = [self.daemon.connect() for _ in range(60)]
        try:
            for i, connection in enumerate(stuck):
                connection.send((b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9"
                                 b"\r\n\r\n{")[:i % 70])
            with self.within(5):
                self.assert_success(self.run_code("print(1)"), "1\n")
        finally:
            for connection in stuck:
                connection.close()

    def test_a_reader_that_never_reads(self):
        with self.daemon.connect() as connection:
            for _ in range(3):
                connection.request("POST", "/v1/run", {
                    **self.daemon.authorization(), "Content-Type": "application/json"},
                    harness.as_json({"command": ["head", "-c", "20000000", "/dev/zero"]}))
            with self.within(20):
                for _ in range(4):
                    self.assert_success(self.run_command(["echo", "x"]), "x\n")

    def test_header_sizes(self):
        """30 KiB of a request's head are taken (openapi.yaml); the library's pool ends at 32."""
        for target, size, statuses in (("/healthz", 30 << 10, {200}), ("/healthz", 33 << 10, {431}),
                                       ("/healthz", 200000, {431}), ("/healthz?" + "x" * 30000, 0, {200}),
                                       ("/healthz?" + "x" * 200000, 0, {414, 431})):
            with self.subTest(size=size, target=len(target)), self.daemon.connect() as connection:
                connection.request("GET", target, {"X-Filler": "x" * size})
                self.assertIn(connection.reply().status, statuses)
        with self.daemon.connect() as connection:
            connection.request("GET", "/healthz", [(f"X-{number}", "y") for number in range(1000)])
            self.assertEqual(connection.reply().status, 431)

    def test_heads_that_are_large_on_both_sides(self):
        """A request's head and that of its answer share the library's memory."""
        name = "\u20ac" * 85
        self.daemon.post("/v1/sessions", {"id": "heads"})
        self.addCleanup(self.daemon.request, "DELETE", "/v1/sessions/heads")
        target = f"/v1/sessions/heads/files/{urllib.parse.quote(name)}"
        for method, target, body, statuses in (
                ("PUT", target, b"1", (201,)), ("GET", target, None, (200,)),
                ("POST", "/v1/run", harness.as_json({"command": ["true"]}), (200,)),
                ("POST", "/v1/sessions", b'{"id":"heads"}', (200,)), ("GET", "/v1/nothing", None, (404,))):
            sent = {**self.daemon.authorization(), "X-Request-Id": "r" * 120}
            if method == "POST":
                sent["Idempotency-Key"] = target.rjust(200, "k")
            if body is not None:
                sent["Content-Type"] = "application/octet-stream" if method == "PUT" else "application/json"
            rest = (30 << 10) - len(target) - sum(len(k) + len(v) + 4 for k, v in sent.items()) - 100
            with self.subTest(method=method, target=target), self.daemon.connect() as connection:
                reply = check.reply(connection.exchange(
                    method, target, {**sent, "X-Filler": "x" * rest}, body))
                self.assertIn(reply.status, statuses, reply)


if __name__ == "__main__":
    unittest.main()
