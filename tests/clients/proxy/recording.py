# SPDX-License-Identifier: Apache-2.0
"""Exchanges of other tests, and what Prism says of them.

A proxy between a test and the daemon would change what tests look at (it buffers streams, adds
headers, refuses what it thinks wrong). So tests talk to the daemon as ever, and what they said is
played again afterwards: the request to Prism, and Prism's request to a server that gives the answer
that was recorded.
"""
import collections
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
# judged: Prism passed the request on; wrong: violations of its answer.
Verdict = collections.namedtuple("Verdict", "judged wrong")
NOT_JUDGED = Verdict(False, [])


class Answerer(http.server.BaseHTTPRequestHandler):
    """Gives the recorded answer whose number is asked for."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding"):
            self.close_connection = True
        self.rfile.read(length)
        reply = self.server.exchanges[int(self.headers[MARK])].reply
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
        self.behind.exchanges = []
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

    def judge(self, exchanges):
        """A verdict for each."""
        if self.process.poll() is not None:  # some requests of attackers are too much for Prism
            self._start()
        self.behind.exchanges = exchanges
        with concurrent.futures.ThreadPoolExecutor(JUDGES) as pool:
            return list(pool.map(self._verdict, range(len(exchanges))))

    def _verdict(self, number):
        made = self.behind.exchanges[number]
        # Prism takes lines of JSON for one text; a schema describes one line.
        if made.method == "HEAD" or made.reply.media_type == "application/x-ndjson":
            return NOT_JUDGED
        headers = {name: value for name, value in made.headers.items()
                   if name.lower() not in HOP | {"host", "expect"}}
        # Prism never answers some requests with a body that is no JSON; of others it needs a moment.
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=harness.seconds(10))
        try:
            connection.request(made.method, made.target, made.body, {**headers, MARK: str(number)})
            reply = connection.getresponse()
            reply.read()
        except (ValueError, http.client.HTTPException, OSError):
            return NOT_JUDGED  # a request that no ordinary client or proxy would pass on
        finally:
            connection.close()
        if reply.getheader(MARK) is None:
            return NOT_JUDGED
        found = json.loads(reply.getheader("sl-violations") or "[]")
        return Verdict(True, [
            (f"{made.method} {made.target} {made.reply.status}", entry["location"],
             entry["message"], made.reply.body[:500])
            for entry in found if entry["location"][:1] == ["response"]])
