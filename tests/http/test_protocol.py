# SPDX-License-Identifier: Apache-2.0
"""HTTP itself: routes, methods, framing, connections, bodies of every odd shape."""
import select
import time
import unittest

import census
import check
import harness
import wire

BODY = b'{"command":["echo","hi"]}'
JSON_LIMIT = 16 << 20


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

    def test_garbage(self):
        for garbage in (b"\r\n" * 50, b"\0" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
                        b"GET /healthz\r\n\r\n", b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
                        b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"A" * 100000):
            with self.subTest(garbage=garbage[:30]):
                with self.daemon.connect(timeout=2) as connection:
                    try:
                        connection.send(garbage)
                        data = connection.read_to_close()
                    except (TimeoutError, BrokenPipeError, ConnectionResetError):
                        continue  # it waits for the rest of the request; that is fine too
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
        reply = self.daemon.get("/healthz", headers={"X-Filler": "x" * 8000})
        self.assertEqual(reply.status, 200)
        with self.daemon.connect() as connection:
            connection.request("GET", "/healthz", {"X-Filler": "x" * 200000})
            self.assertEqual(connection.reply().status, 431)
        with self.daemon.connect() as connection:
            connection.request("GET", "/healthz?" + "x" * 200000)
            self.assertIn(connection.reply().status, (414, 431))


class Framing(harness.Case):
    """Requests that two readers could understand differently are refused, and the line is cut."""

    def head(self, *lines):
        return (f"POST /v1/run HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n"
                "Content-Type: application/json\r\n"
                f"Authorization: Bearer {self.daemon.token}\r\n" + "".join(
                    line + "\r\n" for line in lines) + "\r\n").encode("latin-1")

    def refused(self, data, status=400):
        with self.daemon.connect() as connection, self.within(3):
            connection.send(data)
            reply = connection.reply()
            self.assertEqual(reply.status, status, reply)
            rest = connection.read_to_close()
            self.assertNotIn(b" 200 ", rest, "something more was answered on the connection")
            return reply

    def test_bad_lengths(self):
        for length in ("-1", "1e3", "abc", "5 5", "+25", "0x19", "99999999999999999999999999"):
            with self.subTest(length=length):
                status = 413 if length.startswith("999") else 400
                with self.daemon.connect() as connection:
                    connection.send(self.head(f"Content-Length: {length}") + BODY)
                    reply = connection.reply()
                    self.assertIn(reply.status, (400, status), reply)
                    self.assertNotIn(b"200 OK", connection.read_to_close())

    def test_two_lengths(self):
        self.refused(self.head(f"Content-Length: {len(BODY)}", "Content-Length: 3") + BODY)
        self.refused(self.head(f"Content-Length: {len(BODY)}, 3") + BODY)

    def test_length_together_with_chunked(self):
        self.refused(self.head(f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked")
                     + wire.chunked(BODY))

    def test_other_codings(self):
        for coding in ("gzip, chunked", "identity", "chunked, chunked", "xchunked", "gzip"):
            with self.subTest(coding=coding):
                self.refused(self.head(f"Transfer-Encoding: {coding}") + wire.chunked(BODY))

    def test_hosts(self):
        for lines in (["Host: a"], ["Host: localhost"]):
            self.refused(self.head(*lines, f"Content-Length: {len(BODY)}") + BODY)

    def test_ill_formed_headers(self):
        for line in ("X Y: 1", "Content-Length : 25", " folded: 1", "no colon here"):
            with self.subTest(line=line):
                with self.daemon.connect(timeout=5) as connection:
                    connection.send(self.head(f"Content-Length: {len(BODY)}", line) + BODY)
                    reply = connection.reply()
                    self.assertIn(reply.status, (400, 200), reply)

    def test_absolute_and_other_target_forms(self):
        for target in ("http://evil.example/v1/run", "*", "v1/run", "localhost:80"):
            with self.subTest(target=target):
                with self.daemon.connect() as connection:
                    connection.send(self.head(f"Content-Length: {len(BODY)}").replace(
                        b" /v1/run ", f" {target} ".encode()) + BODY)
                    self.assertIn(connection.reply().status, (400, 404))


class Bodies(harness.Case):
    def headers(self, **more):
        return {**self.daemon.authorization(), "Content-Type": "application/json",
                **{key.replace("_", "-"): value for key, value in more.items()}}

    def test_chunked(self):
        text = "x" * (5 << 20)
        body = harness.as_json({"command": ["wc", "-c"], "stdin": text})
        for size in (1 << 16, 977):
            with self.daemon.connect() as connection:
                connection.request("POST", "/v1/run", self.headers(Transfer_Encoding="chunked"),
                                   wire.chunked(body, size))
                self.assert_success(check.reply(connection.reply()).json, f"{len(text)}\n")

    def test_chunked_with_extensions_and_trailers(self):
        with self.daemon.connect() as connection:
            connection.request("POST", "/v1/run", self.headers(Transfer_Encoding="chunked"),
                               b"%x;name=value\r\n%s\r\n0\r\nX-Trailer: 1\r\n\r\n" % (
                                   len(BODY), BODY))
            self.assert_success(check.reply(connection.reply()).json, "hi\n")

    def test_broken_chunks(self):
        for broken in (b"zz\r\n", b"-5\r\nhello\r\n", b"ffffffffffffffffff\r\n",
                       b"5\r\nhelloXX"):
            with self.subTest(broken=broken), self.daemon.connect(timeout=10) as connection:
                connection.request("POST", "/v1/run", self.headers(Transfer_Encoding="chunked"),
                                   broken)
                data = connection.read_to_close()
                self.assertTrue(data == b"" or data.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")),
                                data[:200])

    def test_expect_continue(self):
        with self.daemon.connect() as connection:
            connection.request("POST", "/v1/run", self.headers(
                Expect="100-continue", Content_Length=str(len(BODY))))
            census.wait_until(lambda: connection.buffer or connection._more(),
                              harness.seconds(5), "100 Continue")
            self.assertTrue(connection.buffer.startswith(b"HTTP/1.1 100 "), connection.buffer)
            connection.send(BODY)
            reply = check.reply(connection.reply())
            self.assertEqual(reply.interim, [100])
            self.assert_success(reply.json, "hi\n")

    def test_expect_continue_is_refused_before_the_body(self):
        for headers, status in (({"Host": "attacker.example"}, 403),
                                ({"Authorization": "Bearer wrong"}, 401),
                                ({"Content-Type": "text/plain"}, 415),
                                ({"Content-Length": str(JSON_LIMIT + 1)}, 413)):
            with self.subTest(headers=headers), self.daemon.connect() as connection:
                sent = {**self.headers(Expect="100-continue", Content_Length="1000"), **headers}
                connection.request("POST", "/v1/run", sent)
                reply = check.reply(connection.reply())
                self.assertEqual((reply.status, reply.interim), (status, []))

    def test_length_far_above_the_limit(self):
        with self.daemon.connect() as connection, self.within(2):
            connection.request("POST", "/v1/run", self.headers(Content_Length="99999999999"))
            reply = check.reply(connection.reply())
            self.assert_problem(reply, 413, "body_too_large")
            self.assertTrue(connection.at_end())

    def test_chunked_past_the_limit(self):
        with self.daemon.connect() as connection:
            connection.request("POST", "/v1/run", self.headers(Transfer_Encoding="chunked"))
            piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
            try:
                for _ in range(20):
                    connection.send(piece)
                connection.send(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError):
                pass
            reply = check.reply(connection.reply())
            self.assert_problem(reply, 413, "body_too_large")
            self.assertTrue(connection.at_end())

    def test_exactly_at_and_just_above_the_limit(self):
        body = BODY + b" " * (JSON_LIMIT - len(BODY))
        self.assert_success(self.daemon.post("/v1/run", body).json, "hi\n")
        with self.daemon.connect() as connection:
            try:
                connection.request("POST", "/v1/run", self.headers(), body + b" ")
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assert_problem(check.reply(connection.reply()), 413, "body_too_large")

    def test_empty_body(self):
        self.assert_problem(self.daemon.post("/v1/run", b""), 400, "bad_json")
        with self.daemon.connect() as connection:
            reply = check.reply(connection.exchange("POST", "/v1/run", self.headers()))
            self.assertEqual(reply.status, 400)

    def test_a_body_where_none_belongs(self):
        with self.daemon.connect() as connection:
            reply = check.reply(connection.exchange("GET", "/v1/version", self.headers(), b"{}"))
            self.assertIn(reply.status, (200, 400))
            if not reply.closed:
                reply = connection.exchange("GET", "/healthz")
                self.assertEqual(reply.status, 200)

    def test_a_body_that_never_comes(self):
        with self.daemon.connect() as connection:
            connection.request("POST", "/v1/run", self.headers(Content_Length="100"), b"{")
            with self.within(5):
                self.assert_success(self.run_code("print(1)"), "1\n")

    def test_hanging_up_in_the_middle_of_a_body(self):
        for _ in range(30):
            connection = self.daemon.connect()
            connection.request("POST", "/v1/run", self.headers(Content_Length="100000"), b"{" * 999)
            connection.reset()
        self.assert_success(self.run_code("print(1)"), "1\n")

    def test_the_smallest_deadline_races_the_end(self):
        def race(i):
            limit = (0.001, 0.01, 0.02, 0.03, 0.05)[i % 5]
            return self.run_code("exit 0", "bash", timeoutS=limit)

        for start in range(0, 200, 8):
            for result in harness.parallel(8, lambda i: race(start + i)):
                if result["fault"] is None:
                    self.assertEqual(result["exitCode"], 0)
                else:
                    self.assertEqual(result["fault"]["type"], "timeout")
        self.assert_success(self.run_code("print(1)"), "1\n")


class SlowPeers(harness.Case):
    """A request must have arrived whole within a time, however busily its sender trickles."""

    daemon_arguments = ("--request-timeout-s", "1.5")

    def trickle(self, start, piece):
        with self.daemon.connect() as connection:
            connection.send(start)
            deadline = time.monotonic() + harness.seconds(8)
            while time.monotonic() < deadline:
                try:
                    connection.send(piece)
                except OSError:
                    return b""
                readable, _, _ = select.select([connection.socket], [], [], 0.1)
                if readable:
                    return connection.read_to_close()
        self.fail("still open")

    def test_headers(self):
        answer = self.trickle(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n")
        self.assertNotIn(b" 200 ", answer)

    def test_body(self):
        head = (f"POST /v1/run HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\nContent-Type: "
                f"application/json\r\nAuthorization: Bearer {self.daemon.token}\r\n"
                "Content-Length: 1000000\r\n\r\n").encode()
        answer = self.trickle(head, b" ")
        self.assertTrue(answer == b"" or b" 408 " in answer.split(b"\r\n")[0], answer[:200])

    def test_work_that_takes_longer_is_not_cut(self):
        self.assert_success(self.run_command(["sleep", "3"]), "")


if __name__ == "__main__":
    unittest.main()
