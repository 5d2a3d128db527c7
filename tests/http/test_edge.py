# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm: what they send must cost little, and must never be read in two ways."""
import os
import re
import socket
import unittest

import census
import check
import harness
import metricskit
import sessionkit

CANARY = "smuggled-request"


class Edge(sessionkit.Case):
    def connections(self):
        text = self.daemon.get("/metrics").body.decode()
        return metricskit.parse(text)["kernd_http_connections"].value()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.pid}/fd"))

    def tearDown(self):
        """Whatever a test did: nothing of it is held for long."""
        census.wait_until(lambda: self.connections() <= 1, harness.seconds(20),
                          "the end of all connections")

    # ---- two readings of one stream of bytes ----

    def smuggled(self):
        """A second request, hidden in what another reader would take for a body."""
        body = harness.as_json({"id": CANARY, "command": ["true"]})
        return (f"POST /v1/run HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n"
                f"Authorization: Bearer {self.daemon.token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body

    def test_smuggling(self):
        hidden = self.smuggled()
        size = str(len(hidden) + 5)
        shapes = (
            ("Content-Length: " + size, "Transfer-Encoding: chunked"),
            ("Transfer-Encoding: chunked", "Content-Length: " + size),
            ("Transfer-Encoding: xchunked", "Content-Length: 5"),
            ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
            ("Transfer-Encoding: identity", "Transfer-Encoding: chunked"),
            ("Transfer-Encoding : chunked", "Content-Length: 5"),
            ("Transfer-Encoding: chunked\t", "Content-Length: 5"),
            ("Transfer-Encoding:\x0bchunked", "Content-Length: 5"),
            ("Transfer-Encoding: chunked;q=1", "Content-Length: 5"),
            ("X: y\r\n Transfer-Encoding: chunked", "Content-Length: 5", "Content-Length: 0"),
            ("Content-Length: 5", "Content-Length: 0"),
            ("Content-Length: 5, 5",),
            ("Content-Length: 005x",),
        )
        for lines in shapes:
            with self.subTest(lines=lines), self.daemon.connect(timeout=20) as connection:
                head = (f"POST /v1/run HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n"
                        f"Authorization: Bearer {self.daemon.token}\r\n"
                        "Content-Type: application/json\r\n" + "\r\n".join(lines) + "\r\n\r\n")
                try:
                    connection.send(head.encode("latin-1") + b"0\r\n\r\n" + hidden)
                    answer = connection.read_to_close()
                except (BrokenPipeError, ConnectionResetError):
                    answer = b""
                self.assertNotIn(b"HTTP/1.1 200", answer)
                # libmicrohttpd 0.9.75 sends the head of its own 400 twice, and closes.
                self.assertEqual(answer.count(b"HTTP/1.1 "), answer.count(b"HTTP/1.1 400 "),
                                 answer[:400])
        self.assertEqual(self.daemon.get(f"/v1/executions/{CANARY}").status, 404)

    def answers_to(self, *lines, body=b"", without=()):
        """
        Statuses of all answers to a POST with these fields and to a request behind it; none where a
        reset was quicker.
        """
        fields = {"Host": f"localhost:{self.daemon.port}", "Content-Type": "application/json",
                  "Authorization": f"Bearer {self.daemon.token}"}
        head = b"".join(f"{name}: {value}\r\n".encode() for name, value in fields.items()
                        if name not in without) + b"".join(line + b"\r\n" for line in lines)
        with self.daemon.connect(timeout=20) as connection:
            try:
                connection.send(b"POST /v1/run HTTP/1.1\r\n" + head + b"\r\n" + body
                                + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close"
                                  b"\r\n\r\n")
                answer = connection.read_to_close()
            except (BrokenPipeError, ConnectionResetError):
                return []
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]

    def test_folded_lines(self):
        """A frame that is folded is none; libmicrohttpd 0.9.75 makes another name of the field."""
        for line in (b"Content-Length: %d\r\n 0", b"Content-Length: 0\r\n\t%d",
                     b"Content-Length:\r\n %d", b"X: y\r\nContent-Length: %d\r\n ;",
                     b"Transfer-Encoding: chun\r\n ked", b"Transfer-Encoding:\r\n chunked"):
            hidden = self.smuggled()
            line = line % len(hidden) if b"%d" in line else line
            with self.subTest(line=line):
                self.assertLessEqual(set(self.answers_to(line, body=hidden)), {400})
        self.assertEqual(self.daemon.get(f"/v1/executions/{CANARY}").status, 404)
        # A name of its own can't be told from a fold: the refusal says what to do about it.
        for name, frame in (("Content-Length-Hint", "Content-Length"),
                            ("transfer-encodings", "Transfer-Encoding")):
            reply = self.daemon.get("/v1/version", headers={name: "5"})
            self.assert_problem(reply, 400, "bad_header")
            self.assertIn(frame, reply.json["remediation"])

    def test_control_bytes_in_fields(self):
        body = harness.as_json({"command": ["true"]})
        length = b"Content-Length: %d" % len(body)
        for byte in (b"\x01", b"\r", b"\x0b", b"\x1b", b"\x7f"):
            for line in (length + byte, b"Host: localhost" + byte, b"Origin: http://localhost" + byte,
                         b"Authorization: Bearer x" + byte, b"Idempotency-Key: a" + byte + b"b",
                         b"X-Request-Id: a" + byte, b"X-Any: a" + byte + b"b", b"X" + byte + b": a"):
                name = line.split(b":")[0].decode("latin-1")
                lines = (line,) if name == "Content-Length" else (length, line)
                with self.subTest(line=line):
                    found = self.answers_to(*lines, body=body, without=(name,))
                    self.assertLessEqual(set(found), {400})

    def test_a_nul_byte_in_a_field(self):
        """
        A value ends there, for libmicrohttpd as for the guard (or the request is refused): nothing
        that is behind it counts, and the connection stays in step.
        """
        body = harness.as_json({"command": ["true"]})
        length, port = b"Content-Length: %d" % len(body), str(self.daemon.port).encode()
        token = self.daemon.token.encode()
        cut = ((length + b"\0",), (length + b"\0" + b"9",), (length, b"X-Any: a\0b"),
               (length, b"Origin: http://localhost:" + port + b"\0.attacker.example"),
               (length, b"Idempotency-Key: nul\0one"), (length, b"X-Request-Id: a\0b"))
        for lines in cut:
            with self.subTest(lines=lines):
                self.assertIn(self.answers_to(*lines, body=body),
                              ([200, 200], [400], [400, 400], []))
        for line, name, refusals in (
                (b"Host: attacker.example\0localhost", "Host", {403}),
                (b"Host: \0localhost", "Host", {403}),
                (b"Origin: https://attacker.example\0http://localhost:" + port, "", {403}),
                (b"Authorization: Bearer x\0Bearer " + token, "Authorization", {401}),
                (b"Authorization: \0Bearer " + token, "Authorization", {401}),
                (b"Content-Type: text/plain\0application/json", "Content-Type", {415})):
            with self.subTest(line=line):
                found = self.answers_to(length, line, body=body, without=(name,))
                self.assertLessEqual(set(found[:1]), refusals | {400})
        found = self.answers_to(b"Content-Length: \0%d" % len(body), body=body)
        self.assertLessEqual(set(found), {400})

    def test_a_chunk_with_a_wrong_size_ends_the_connection(self):
        for chunk in (b"ffffffffffffffff1\r\nx\r\n0\r\n\r\n", b"-1\r\nx\r\n0\r\n\r\n",
                      b"0x1\r\nx\r\n0\r\n\r\n", b"g\r\nx\r\n0\r\n\r\n", b"1\r\nxy0\r\n\r\n"):
            with self.subTest(chunk=chunk), self.daemon.connect(timeout=20) as connection:
                head = (f"POST /v1/run HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n"
                        f"Authorization: Bearer {self.daemon.token}\r\nContent-Type: "
                        "application/json\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
                try:
                    connection.send(head + chunk + self.smuggled())
                    self.assertNotIn(b"HTTP/1.1 200", connection.read_to_close())
                except (BrokenPipeError, ConnectionResetError):
                    pass
        self.assertEqual(self.daemon.get(f"/v1/executions/{CANARY}").status, 404)

    # ---- percent games ----

    def test_paths_that_would_like_to_be_others(self):
        session = self.session()
        session.put("secret", b"secret")
        for path in ("%2e%2e/secret", "..%2fsecret", "a/%2e%2e/secret", "%2e/secret", "secret%00",
                     "%00secret", "secret%2f", "%252e%252e/secret", "%c0%ae%c0%ae/secret",
                     "secret%0d%0aX: y", "%", "%2", "%zz", "//secret", "./secret", "a//b",
                     "%5c..%5csecret", "/etc/passwd", "%2fetc%2fpasswd", "..;/secret"):
            with self.subTest(path=path):
                reply = self.daemon.get(f"{session.path}/files/{path.replace(' ', '%20')}")
                self.assertIn(reply.status, (400, 404, 422), reply)
                self.assertNotIn(b"root:", reply.body)
        for target in ("/v1/sessions/%2e%2e/version", "/v1%2fversion", "/%76ersion/../v1/version",
                       "/v1/./version", "/v1/version/", "//v1/version", "/v1/version%00"):
            with self.subTest(target=target):
                self.assertIn(self.daemon.get(target).status, (400, 404, 422))
        # An escaped letter is that letter (RFC 3986, section 6.2.2.2).
        self.assertEqual(self.daemon.get("/v1/versio%6e").status, 200)

    # ---- too many, too long, too slow ----

    def test_a_thousand_pipelined_requests(self):
        request = f"GET /healthz HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n\r\n".encode()
        with self.daemon.connect() as connection:
            connection.send(request * 1000)
            for _ in range(1000):
                self.assertEqual(check.reply(connection.reply()).status, 200)

    def test_pipelining_without_reading_ends(self):
        """Answers that nobody takes stop the server from reading on; a client that leaves is let go."""
        request = (f"GET /openapi.json HTTP/1.1\r\nHost: localhost:{self.daemon.port}\r\n"
                   f"Authorization: Bearer {self.daemon.token}\r\n\r\n").encode()
        with self.daemon.connect(timeout=3) as connection:
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sent = 0
            try:
                for _ in range(20000):
                    sent += connection.socket.send(request)
            except (TimeoutError, OSError):
                pass
            self.assertGreater(sent, len(request))
            self.assert_success(self.run_command(["true"]))
        census.wait_until(lambda: self.connections() <= 1, harness.seconds(20), "the end of it")

    def test_many_headers(self):
        for count in (127, 2000):
            with self.daemon.connect() as connection:
                connection.request("GET", "/healthz", [(f"X-{n}", "y") for n in range(count - 1)])
                self.assertIn(connection.reply().status, (200,) if count < 128 else (400, 431))

    def test_resets_in_the_middle(self):
        before = self.descriptors()
        body = harness.as_json({"command": ["sleep", "30"]})
        for number in range(60):
            connection = self.daemon.connect()
            if number % 3 == 0:
                connection.send(b"POST /v1/run HTTP/1.1\r\nHost: local")
            else:
                connection.request("POST", "/v1/run", {
                    **self.daemon.authorization(), "Content-Type": "application/json",
                    **({"Content-Length": "9999"} if number % 3 == 1 else {})}, body)
            connection.reset()
        census.wait_until(lambda: self.daemon.get("/v1/stats").json["running"] == 0,
                          harness.seconds(30), "the end of what nobody waits for")
        census.wait_until(lambda: self.descriptors() <= before + 8, harness.seconds(20),
                          "descriptors as before")

    def test_idle_clients_beside_work(self):
        idle = []
        try:
            for _ in range(200):
                idle.append(self.daemon.connect())
            for connection in idle[::4]:
                self.assertEqual(connection.exchange("GET", "/healthz").status, 200)
            with self.within(10):
                for _ in range(5):
                    self.assert_success(self.run_command(["true"]))
        finally:
            for connection in idle:
                connection.close()


class HalfOpen(harness.Case):
    # By itself it would be the 30 s of the default.
    daemon_arguments = ("--request-timeout-s", "1.5")

    def test_half_open(self):
        """
        A client that has closed its side for sending gets no more than it asked for, and goes when
        its request is late.
        """
        starts = (b"", b"GET ", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
                  b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{")

        def answer(number):
            with self.daemon.connect(timeout=60) as connection:
                connection.send(starts[number])
                connection.socket.shutdown(socket.SHUT_WR)
                return connection.read_to_close()
        for start, came in zip(starts, harness.parallel(len(starts), answer)):
            self.assertNotIn(b" 200 ", came, start)


if __name__ == "__main__":
    unittest.main()
