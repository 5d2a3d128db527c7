# SPDX-License-Identifier: Apache-2.0
"""Asks a daemon all that its description says, and much that it doesn't; judges every answer."""
import collections
import gzip
import random
import urllib.parse

import check
import speckit
import wire

DOCUMENTED_FAILURES = (503, 507)
TARGET_CHARACTERS = "/:@!$&'()*+,;=~-._"
ACCEPTS = (*12 * (None,), "application/json", "*/*", "application/x-ndjson", "text/event-stream",
           "text/html", "application/json;q=0, */*", "é", "a/b;q=9")
HEADERS = (("Prefer", "respond-async"), ("Prefer", "wait=0"), ("Range", "bytes=0-1"),
           ("Range", "bytes=9-1"), ("Range", "bytes=-0"), ("If-Match", '"x"'), ("If-Match", "x"),
           ("If-None-Match", "*"), ("If-None-Match", 'W/"a", "b"'), ("Idempotency-Key", "k1"),
           ("Idempotency-Key", ""), ("X-Request-Id", "a b"), ("traceparent", "00-0-0-00"),
           ("Accept-Encoding", "gzip"), ("Accept-Encoding", "gzip;q=0, br"),
           ("Last-Event-ID", "-1"), ("Content-Type", "text/plain"), ("Cookie", "x=1"))


class Finding(AssertionError):
    """An answer that must not be."""


def to_header(text):
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


class Fuzz:
    def __init__(self, daemon, seed):
        self.daemon = daemon
        self.chance = random.Random(seed)
        self.spec = speckit.Spec(daemon.get("/openapi.json").json)
        self.maker = speckit.Maker(self.spec, self.chance)
        self.operations = [row for row in self.spec.operations()]
        self.statuses = collections.Counter()
        self.ids = {}
        self.connection = None
        self.before = None
        self.prepare()

    def prepare(self):
        """Things that ids can name."""
        session = self.daemon.post("/v1/sessions", {"id": "fuzz"})
        execution = self.daemon.post("/v1/run", {"command": ["true"], "id": "fuzzed"})
        snapshot = self.daemon.post("/v1/sessions/fuzz/snapshots", {"name": "fuzz"})
        kernel = self.daemon.post("/v1/sessions/fuzz/kernels", {"id": "fuzz"})
        for reply in (session, execution, snapshot, kernel):
            if reply.status not in (200, 201, 409):
                raise Finding(reply)

    def finish(self):
        """Removes what was made, so that the daemon ends empty."""
        if self.connection:
            self.connection.close()
        for kind in ("sessions", "snapshots", "environments", "tokens"):
            reply = self.daemon.get(f"/v1/{kind}")
            while reply.status == 200 and reply.json["items"]:
                for row in reply.json["items"]:
                    self.daemon.request("DELETE", f"/v1/{kind}/{row['id']}")
                reply = self.daemon.get(f"/v1/{kind}")

    # ---- one request ----

    def path_value(self, path, parameter):
        chance = self.chance
        if chance.random() < 0.25:
            text = chance.choice(speckit.UNICODE + ("..", ".", "a/b", "x" * 65, "-", "%2e%2e"))
            return urllib.parse.quote(text.encode("utf-8", "surrogatepass"),
                                      safe="%" if chance.random() < 0.3 else "")
        if parameter["name"] == "path":
            return chance.choice(("a.txt", "d/b.txt", "d", "no"))
        # A session is not deleted too often: then there is something that other calls can reach.
        return "fuzzed" if "executions" in path else "fuzz"

    def query(self, parameters):
        rows = []
        for parameter in parameters:
            if parameter["in"] == "query" and self.chance.random() < 0.3:
                value = self.maker.value(parameter.get("schema", {}), parameter["name"])
                if self.chance.random() < 0.3:
                    value = self.chance.choice(speckit.NUMBERS + speckit.UNICODE)
                rows.append((parameter["name"], str(value).lower() if isinstance(value, bool)
                             else str(value)))
        if self.chance.random() < 0.03:
            rows.append((self.chance.choice(("unknown", "", "limit", "%")), "1"))
        if any(value in ("true",) and name == "follow" for name, value in rows):
            rows = [row for row in rows if row[0] != "follow"]
        return "&".join(f"{name}={urllib.parse.quote(value.encode('utf-8', 'surrogatepass'))}"
                        for name, value in rows)

    def target(self, path, parameters):
        for parameter in parameters:
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}",
                                    self.path_value(path, parameter), 1)
        query = self.query(parameters)
        if self.chance.random() < 0.02:
            at = self.chance.randrange(1, len(path) + 1)
            path = path[:at] + self.chance.choice(("/", "//", "%", "%zz", ";", "%00", "é")) + path[at:]
            path = urllib.parse.quote(path, safe=TARGET_CHARACTERS + "%")
        return path + ("?" + query if query else "")

    def make(self):
        method, path, operation, parameters = self.chance.choice(self.operations)
        if method == "DELETE" and self.chance.random() < 0.9:
            return self.make()  # what is gone can't be used
        headers, body = [], None
        schema = self.spec.body_schema(operation)
        if schema is not None:
            body = self.maker.body(schema)
            headers.append(("Content-Type", "application/json"))
        elif "requestBody" in operation:
            body = self.chance.randbytes(self.chance.choice((0, 1, 100, 5000)))
            headers.append(("Content-Type", "application/octet-stream"))
        accept = self.chance.choice(ACCEPTS)
        if accept is not None:
            headers.append(("Accept", to_header(accept)))
        if self.chance.random() < 0.2:
            name, value = self.chance.choice(HEADERS)
            headers = [row for row in headers if row[0] != name] + [(name, value)]
        if method == "GET" and self.chance.random() < 0.05:
            method = "HEAD"
        return method, path, self.target(path, parameters), operation, headers, body

    def ask(self, method, target, headers, body):
        headers = [*self.daemon.authorization().items(), *headers]
        for attempt in range(2):
            if self.connection is None:
                self.connection = self.daemon.connect()
                attempt = 1
            try:
                reply = self.connection.exchange(method, target, headers, body)
            except (wire.WireError, OSError):
                # An idle connection may have been closed meanwhile; a fresh one must serve.
                self.connection.close()
                self.connection = None
                if attempt or not self.daemon.alive():
                    raise
                continue
            if reply.closed or (reply.header("Connection") or "").lower() == "close":
                self.connection.close()
                self.connection = None
            return reply
        raise Finding("no answer")

    # ---- judging ----

    def judge(self, method, operation, reply):
        if operation["tags"] == ["mcp"] and reply.media_type == "application/json":
            messages = reply.json if isinstance(reply.json, list) else [reply.json]
            if reply.status >= 500 or any(message["jsonrpc"] != "2.0" for message in messages):
                raise Finding("an answer of another protocol")
            return
        else:
            check.reply(reply, method)
        if reply.status >= 500 and reply.status not in DOCUMENTED_FAILURES:
            raise Finding("a failure of the server's own")
        if method == "HEAD" or reply.media_type == "" or reply.status == 304:
            return
        if reply.header("Content-Encoding") == "gzip":
            reply.body = gzip.decompress(reply.body)
        described = self.spec.response(operation, reply.status)
        if described is None:
            raise Finding(f"the description has no {reply.status}")
        content = described.get("content", {}).get(reply.media_type)
        if reply.media_type == "application/x-ndjson":
            for line in reply.body.splitlines():
                wire.strict_json(line)
            return
        if content is None:
            if reply.status >= 400:
                return  # a problem, which check.reply has judged
            raise Finding(f"the description has no {reply.media_type} for {reply.status}")
        if reply.media_type.endswith("json") and "schema" in content:
            found = list(self.spec.faults(content["schema"], reply.json))
            if found:
                raise Finding(found[:3])

    def step(self):
        method, path, target, operation, headers, body = self.make()
        request = f"{method} {target} {headers} {body if body is None else body[:1500]!r}"
        try:
            reply = self.ask(method, target, headers, body)
        except Exception as error:
            raise Finding(f"{error!r} at {request} after {self.before}") from error
        self.statuses[reply.status] += 1
        try:
            self.judge(method, operation, reply)
        except Exception as error:
            raise Finding(f"{error!r} at {request}: {reply}, after {self.before}") from error
        self.before = request

    def run(self, count, findings=None):
        """findings None: the first one is raised; else they are collected."""
        for number in range(count):
            if number % 500 == 499:
                self.prepare()
            try:
                self.step()
            except Finding as finding:
                if findings is None or not self.daemon.alive():
                    raise
                findings.append(str(finding))
                if self.connection:
                    self.connection.close()
                    self.connection = None
