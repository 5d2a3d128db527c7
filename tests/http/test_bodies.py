# SPDX-License-Identifier: Apache-2.0
"""The framing of requests and bodies of every odd shape: what is taken, what is cut off."""
import ctypes
import ctypes.util
import select
import time
import unittest

import census
import check
import harness
import wire

BODY = b'{"command":["echo","hi"]}'
JSON_LIMIT = 16 << 20


def library_version():
    """Of libmicrohttpd, as (1, 0, 1)."""
    library = ctypes.CDLL(ctypes.util.find_library("microhttpd"))
    library.MHD_get_version.restype = ctypes.c_char_p
    return tuple(int(part) for part in library.MHD_get_version().split(b"-")[0].split(b"."))


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
        whole = self.head(f"Content-Length: {len(BODY)}") + BODY
        self.refused(whole.replace(b"\r\nHost:", b"\r\nX-Host:"))

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

    def sent_in_chunks(self, data, then=b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        """The answer to a chunked request, behind which the connection is in step, or closed."""
        with self.daemon.connect() as connection:
            connection.request("POST", "/v1/run", self.headers(Transfer_Encoding="chunked"),
                               data + then)
            answer = connection.reply()
            if answer.status == 200:
                self.assertEqual(connection.reply().body, self.daemon.get("/healthz").body)
            else:
                self.assertNotIn(b"HTTP/1.1 200", connection.read_to_close())
            return answer

    def test_chunks_with_extensions(self):
        """They mean nothing here, and are passed over (RFC 9112, section 7.1.1)."""
        # 1.0.0 and 1.0.1 pass over one up to its line feed and take that for the first byte of the
        # chunk, whose end then is not where they look for it (process_request_body in connection.c).
        # They see of it more than a size only behind a size of 0, whose chunk has no bytes; there
        # the same line feed is an empty line to them, and a bare one.
        faulty = library_version()[:2] == (1, 0)
        size, last = b"%x" % len(BODY), b"0"
        for extension in (b"", b";name=value", b";name", b';name="a;b"', b";a=b;c=d"):
            for chunk, end in ((size + extension, last), (size, last + extension)):
                with self.subTest(chunk=chunk, end=end):
                    answer = self.sent_in_chunks(
                        b"%s\r\n%s\r\n%s\r\nX-Trailer: 1\r\n\r\n" % (chunk, BODY, end))
                    if extension and faulty:
                        self.assertEqual(answer.status, 400)
                    else:
                        self.assert_success(check.reply(answer).json, "hi\n")

    def test_line_feeds_alone(self):
        """
        Either all of them end a line as CRLF does (which RFC 9112, section 2.2, lets a server do), or
        none: in no place is one a part of a value, and what is behind it belongs to the same request.
        """
        strict = library_version() >= (1, 0)  # older ones can't be told to be
        length, coding = f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"
        fields = ("Host: localhost", "Content-Type: application/json", "X: y",
                  f"Authorization: Bearer {self.daemon.token}")
        head = "\r\n".join(("POST /v1/run HTTP/1.1", *fields)) + "\r\n"
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
        whole = [(head + length + "\r\n\r\n").encode() + BODY,
                 (head + coding + "\r\n\r\n").encode() + chunks]
        shapes = [data.replace(b"\r\n", b"\n") for data in whole]
        for data in whole:
            ends = [at for at in range(len(data)) if data[at:at + 2] == b"\r\n"]
            shapes += [data[:at] + data[at + 1:] for at in ends]
        for data in shapes:
            with self.subTest(data=data), self.daemon.connect() as connection:
                connection.send(data + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                                b"Connection: close\r\n\r\n")
                answer = connection.reply()
                if strict:
                    self.assertEqual(answer.status, 400)
                    self.assertNotIn(b"HTTP/1.1 200", connection.read_to_close())
                else:
                    self.assert_success(check.reply(answer).json, "hi\n")
                    self.assertEqual(connection.reply().status, 200)
                    self.assertTrue(connection.at_end())

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
            census.wait_until(lambda: connection.buffer or connection.more(),
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
