# SPDX-License-Identifier: Apache-2.0
"""Exchanges of other tests, and what Prism says of them.

A proxy between a test and the daemon would change what tests look at (it buffers streams, adds
headers, refuses what it thinks wrong). So tests talk to the daemon as ever, and what they said is
played again afterwards: a request to Prism, and Prism's request to a server that gives the answer
that was recorded.
"""
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import socket
import subprocess
import threading

import census
import harness

MARK = "X-Recorded"
# Of one connection, not of the message.
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "trailer", "upgrade", "te"}
JUDGES = 4


class Answerer(http.server.BaseHTTPRequestHandler):
    """Gives the recorded answer whose number is asked for."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        _, reply = self.server.answers[int(self.headers[MARK])]
        self.send_response_only(reply.status)
        for name, value in reply.headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header(MARK, "yes")
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *_):
        pass


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Prism:
    """The proxy, and the server behind it."""

    def __init__(self, group, description):
        self.behind = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answerer)
        self.behind.daemon_threads = True
        self.behind.answers = []
        threading.Thread(target=self.behind.serve_forever, daemon=True).start()
        self.group, self.description = group, description
        self._start()

    def _start(self):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["node", self.group.module("@stoplight/prism-cli/dist/index.js"), "proxy",
             self.description, f"http://127.0.0.1:{self.behind.server_address[1]}",
             "--host", "127.0.0.1", "--port", str(self.port)],
            cwd=self.group.place, env=self.group.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        census.wait_until(self._listens, harness.seconds(60), "Prism")

    def _listens(self):
        assert self.process.poll() is None, "Prism has ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.behind.shutdown()
        self.behind.server_close()

    def judge(self, answers):
        """
        Of (operation, answer) the violations. A request like any for that operation stands for the one
        that was made: those of attackers are more than Prism can take.
        """
        self.behind.answers = answers
        with concurrent.futures.ThreadPoolExecutor(JUDGES) as pool:
            return [wrong for found in pool.map(self._violations, range(len(answers))) for wrong in found]

    def _violations(self, number):
        operation, answer = self.behind.answers[number]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.seconds(60))
        with contextlib.closing(connection):
            connection.request(operation.method, operation.target, headers={MARK: str(number)})
            reply = connection.getresponse()
            reply.read()
        assert reply.getheader(MARK) is not None, f"Prism did not pass on {operation.name}: {reply.status}"
        return [(f"{operation.name} {answer.status}", entry["location"], entry["message"], answer.body[:500])
                for entry in json.loads(reply.getheader("sl-violations") or "[]")
                if entry["location"][:1] == ["response"]]
