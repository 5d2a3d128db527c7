# SPDX-License-Identifier: Apache-2.0
"""What the server does when there is too much of something, or it comes too slowly."""
import resource
import socket
import time
import unittest

import check
import harness
import wire


class Connections(harness.Case):
    daemon_arguments = ("--connections", "20")

    def connect_served(self):
        """A connection that has its place; one that was just given up may still count."""
        connection = self.daemon.connect()
        if connection.exchange("GET", "/healthz").status == 200:
            return connection
        connection.close()
        return None

    def test_one_too_many_is_told_so(self):
        open_ones = []
        try:
            for _ in range(20):
                open_ones.append(harness.census.wait_until(self.connect_served,
                                                           harness.seconds(10), "a place"))
            # One too many.
            with self.daemon.connect(timeout=10) as connection:
                reply = check.reply(connection.reply())
                self.assertEqual((reply.status, reply.json["code"]), (429, "too_many_requests"))
                self.assertIsNotNone(reply.header("Retry-After"))
                self.assertTrue(reply.closed and connection.at_end())
            # The others are not disturbed, and a free place is taken again.
            self.assertEqual(open_ones[0].exchange("GET", "/healthz").status, 200)
            open_ones.pop().close()
            harness.census.wait_until(self.is_served, harness.seconds(10), "a free place")
        finally:
            for connection in open_ones:
                connection.close()

    def is_served(self):
        try:
            return self.daemon.get("/healthz").status == 200
        except (OSError, wire.WireError):
            return False

    def test_a_flood_of_connections(self):
        """Far more than fit, opened and dropped: the server stays well and forgets them."""
        for _ in range(3):
            flood = []
            for _ in range(300):
                flood.append(socket.create_connection(("127.0.0.1", self.daemon.port)))
            for connection in flood:
                connection.close()
        harness.census.wait_until(self.is_served, harness.seconds(20), "an answer")


class Descriptors(harness.Case):
    """Fewer descriptors than clients: they wait, and are served when others leave."""

    @classmethod
    def make_daemon(cls):
        return harness.Daemon(("--connections", "5000"),
                              wrapper=["bash", "-c", 'ulimit -n 1100 && exec "$@"', "bash"])

    def test_none_left(self):
        own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(own, 2000), most))
        flood = [socket.create_connection(("127.0.0.1", self.daemon.port)) for _ in range(1200)]
        harness.census.wait_until(lambda: "no descriptor is left" in self.daemon.log(),
                                  harness.seconds(10), "the end of the descriptors")
        for connection in flood:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (own, most))
        with self.within(10):
            self.assert_success(self.run_command(["echo", "1"]), "1\n")


class Refusals(harness.Case):
    def head(self, *lines, method="POST", target="/v1/run"):
        return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: localhost:{self.daemon.port}",
                            *lines, "", ""]).encode()

    def test_a_refused_body_that_never_comes(self):
        """The refusal is decided, so that nobody waits for the body for long."""
        for lines, status in ((["Content-Length: 10"], 401),
                              (["Transfer-Encoding: chunked"], 401),
                              (["Content-Length: 10", f"X-API-Key: {self.daemon.token}",
                                "Content-Type: text/plain"], 415)):
            with self.subTest(lines=lines[:1]), self.daemon.connect() as connection:
                with self.within(2):
                    connection.send(self.head(*lines))
                    reply = check.reply(connection.reply())
                self.assertEqual(reply.status, status)
                self.assertTrue(reply.closed and connection.at_end())

    def test_a_refused_body_that_comes(self):
        """It is read and dropped, so that the client hears the answer and keeps its connection."""
        body = b"x" * (8 << 20)
        with self.daemon.connect() as connection:
            for _ in range(3):
                connection.request("POST", "/v1/run", {"Content-Type": "application/json"}, body)
                reply = check.reply(connection.reply())
                self.assertEqual(reply.status, 401)
                self.assertFalse(reply.closed)

    def test_a_late_body_gets_its_answer(self):
        daemon = harness.Daemon(arguments=("--request-timeout-s", "1")).start()
        try:
            with daemon.connect() as connection:
                connection.request("POST", "/v1/run", {**daemon.authorization(),
                                                       "Content-Type": "application/json",
                                                       "Content-Length": "100"})
                reply = check.reply(connection.reply())
                self.assertEqual((reply.status, reply.json["code"]), (408, "request_timeout"))
                self.assertTrue(reply.closed and connection.at_end())
        finally:
            daemon.stop()

    def test_silent_clients_are_closed(self):
        daemon = harness.Daemon(arguments=("--request-timeout-s", "1")).start()
        try:
            silent = daemon.connect(timeout=15)
            kept = daemon.connect(timeout=15)
            self.assertEqual(kept.exchange("GET", "/healthz").status, 200)
            started = time.monotonic()
            self.assertTrue(silent.at_end() and kept.at_end())
            self.assertLess(time.monotonic() - started, harness.seconds(10))
            silent.close()
            kept.close()
        finally:
            daemon.stop()

    def test_a_wrong_token_on_the_unix_socket(self):
        self.assertEqual(self.daemon.get("/readyz", via="unix").status, 200)
        reply = self.daemon.get("/readyz", via="unix", headers={"X-API-Key": "wrong"})
        self.assertEqual((reply.status, reply.json["code"]), (401, "unauthorized"))

    def test_routes_are_not_told_to_strangers(self):
        reply = self.daemon.get("/nothing/here", token=False)
        self.assertEqual(reply.status, 401)
        reply = self.daemon.request("DELETE", "/v1/run", token=False)
        self.assertEqual(reply.status, 401)
        self.assertIsNone(reply.header("Allow"))

    def test_an_own_page(self):
        origin = f"http://127.0.0.1:{self.daemon.port}"
        self.assertEqual(self.daemon.get("/readyz", headers={"Origin": origin}).status, 200)


if __name__ == "__main__":
    unittest.main()
