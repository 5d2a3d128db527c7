# SPDX-License-Identifier: Apache-2.0
"""Streams of events, read as they come, and executions of the daemon under test."""
import base64
import os
import socket
import threading
import time

import census
import check
import harness
import wire

NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
OUTPUT = ("stdout", "stderr")
LAST = ("exit", "error")


def parse_sse(block):
    """One block of an event stream: its data, which must agree with its id and event."""
    fields = [line.split(": ", 1) for line in block.decode("utf-8").split("\n")]
    check.expect(all(len(field) == 2 for field in fields), "a line of an event stream", block)
    names = [name for name, _ in fields]
    event = wire.strict_json(dict(fields)["data"].encode())
    check.expect(names == (["id", "event", "data"] if "seq" in event else ["event", "data"]),
                 "fields of an event stream", block)
    check.expect(dict(fields)["event"] == event["type"], "event and type", block)
    if "seq" in event:
        check.expect(int(dict(fields)["id"]) == event["seq"], "id and seq", block)
    return event


class Stream:
    """One streamed answer on a connection of its own."""

    def __init__(self, daemon, method, target, body=None, accept=NDJSON, headers=None, via="tcp"):
        self.sse = accept == SSE
        self.connection = daemon.connect(via)
        sent = {**daemon.authorization(), "Accept": accept, **(headers or {})}
        if body is not None:
            body = harness.as_json(body)
            sent["Content-Type"] = "application/json"
        self.connection.request(method, target, sent, body)
        # Nothing but the head: the body is read event by event.
        version, self.status, self.headers = self.connection._head()
        self.reply = wire.Reply(version, self.status, self.headers, b"", [], False)
        self.chunked = self.reply.header("Transfer-Encoding") == "chunked"
        self.text = b""
        self.ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def header(self, name):
        return self.reply.header(name)

    def problem(self):
        """The body of an answer that is no stream."""
        length = self.reply.header("Content-Length")
        return wire.strict_json(self.connection._exactly(int(length)))

    def _more(self):
        """Another piece of the body; False at its clean end."""
        if not self.chunked:
            piece = self.connection.buffer or self.connection.socket.recv(1 << 16)
            self.connection.buffer = b""
            self.text += piece
            return bool(piece)
        size = int(self.connection._line().split(";")[0], 16)
        self.text += self.connection._exactly(size)
        check.expect(self.connection._line() == "", "no line end after a chunk")
        return size > 0

    def next(self):
        """The next event, None at the clean end; a broken end raises."""
        mark = b"\n\n" if self.sse else b"\n"
        while mark not in self.text:
            if self.ended or not self._more():
                self.ended = True
                check.expect(self.text == b"", "the stream ends inside an event", self.text)
                return None
        block, self.text = self.text.split(mark, 1)
        return parse_sse(block) if self.sse else wire.strict_json(block)

    def until(self, kind):
        """All events up to the first one of this type."""
        events = []
        while not events or events[-1]["type"] != kind:
            event = self.next()
            check.expect(event is not None, f"the stream ended before {kind}", events)
            events.append(event)
        return events

    def all(self):
        events = []
        while (event := self.next()) is not None:
            events.append(event)
        return events

    def reset(self):
        self.connection.reset()


def without_pings(events):
    return [event for event in events if event["type"] != "ping"]


def complete(events, first=0):
    """Checks a stream up to its last event; returns it without pings."""
    events = without_pings(events)
    check.expect(events, "an empty stream")
    check.expect([event["seq"] for event in events] == list(range(first, first + len(events))),
                 "seq has holes", [event["seq"] for event in events])
    kinds = [event["type"] for event in events]
    check.expect(kinds[-1] in LAST and not set(kinds[:-1]) & set(LAST), "one last event", kinds)
    if first == 0:
        check.expect(kinds[0] == "queued" and kinds.count("queued") == 1, "queued", kinds)
    return events


def output(events, kind="stdout"):
    """The text of a stream; offsets have to follow each other."""
    at, text = None, []
    for event in events:
        if event["type"] == kind:
            check.expect(at is None or event["offset"] == at, "offset", event["offset"], at)
            if event.get("encoding") == "base64":
                data = base64.b64decode(event["data"], validate=True)
                at = event["offset"] + len(data)
            else:
                data = event["data"]
                # The length of what was written is known only where nothing was repaired.
                at = None if "\ufffd" in data else event["offset"] + len(data.encode())
            text.append(data)
    return (b"" if text and isinstance(text[0], bytes) else "").join(text)


def writer(mebibytes):
    """Code that writes as much, and then a word to standard error."""
    return f"import os\nfor i in range({mebibytes * 16}): os.write(1, b'0123456789abcdef' * 4096)\n" \
           "os.write(2, b'end')"


class SlowReading:
    """What came of a call whose client reads a kilobyte a second."""

    def __init__(self, end, grown_mb):
        self.end, self.wall_s, self.grown_mb = end, end["usage"]["wallMs"] / 1e3, grown_mb


class Case(harness.Case):
    def stream(self, method, target, body=None, **options):
        stream = Stream(self.daemon, method, target, body, **options)
        self.addCleanup(stream.connection.close)
        return stream

    def run_stream(self, command, accept=NDJSON, headers=None, via="tcp", **options):
        return self.stream("POST", "/v1/run", {"command": command, **options}, accept=accept,
                           headers=headers, via=via)

    def code_stream(self, code, accept=NDJSON, language="python", **options):
        return self.stream("POST", "/v1/runCode",
                           {"code": code, "language": language, **options}, accept=accept)

    def events(self, execution, query="", **options):
        return self.stream("GET", f"/v1/executions/{execution}/events{query}", **options)

    def submit(self, command, **options):
        """An execution that goes on behind the answer: its id."""
        reply = self.daemon.post("/v1/run", {"command": command, **options},
                                 headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202, reply)
        return reply.header("Location").rsplit("/", 1)[1]

    def execution(self, name, wait=0):
        target = f"/v1/executions/{name}" + (f"?waitS={wait}" if wait else "")
        reply = self.daemon.get(target)
        self.assertEqual(reply.status, 200, reply)
        return reply.json

    def ended(self, name, limit=30):
        """The execution once it is done."""
        def done():
            value = self.execution(name, wait=5)
            return value if value["state"] == "done" else None
        return census.wait_until(done, harness.seconds(limit), "the end of an execution")

    def cancel(self, name):
        reply = self.daemon.request("DELETE", f"/v1/executions/{name}")
        self.assertEqual(reply.status, 204, reply)

    def idle(self, limit=5):
        """No execution runs or waits."""
        def quiet():
            stats = self.daemon.get("/v1/stats").json
            return (stats["running"], stats["queued"]) == (0, 0)
        census.wait_until(quiet, harness.seconds(limit), "an idle server")

    def beside_a_slow_reader(self, code, limit=60, **options):
        """Streams the code's output to such a client until the program ends."""
        settled = peak = self.resident_mb()
        stream = self.code_stream(code, **options)
        stream.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stop = threading.Event()

        def drip():
            while not stop.wait(1):
                stream.connection.socket.recv(1024)

        def watch():
            nonlocal peak
            while not stop.wait(0.1):
                peak = max(peak, self.resident_mb())

        threads = [threading.Thread(target=target) for target in (drip, watch)]
        for thread in threads:
            thread.start()
        try:
            end = self.ended(stream.header("X-Execution-Id"), limit)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        stream.reset()
        return SlowReading(end, peak - settled)

    def restart(self):
        """SIGKILL, and a new daemon on the same directories and port."""
        self.daemon.kill()
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()

    def assert_grown_less(self, grown_mb, limit_mb):
        """Sanitizers have a memory of their own, in which nothing can be counted."""
        if harness.SLOW == 1:
            self.assertLess(grown_mb, limit_mb)

    def resident_mb(self):
        return int(census.status_field(self.daemon.pid, "VmRSS").split()[0]) / 1024


def measure(function):
    started = time.monotonic()
    value = function()
    return time.monotonic() - started, value
