# SPDX-License-Identifier: Apache-2.0
"""A session of the daemon under test, and the files in it."""
import urllib.parse

import check
import harness

OCTETS = "application/octet-stream"


def quote(path):
    """A path (text or bytes) as it stands in a URL; every component is escaped on its own."""
    if isinstance(path, str):
        path = path.encode("utf-8", "surrogateescape")
    return "/".join(urllib.parse.quote_from_bytes(part, safe="") for part in path.split(b"/"))


class Session:
    def __init__(self, daemon, **options):
        self.daemon = daemon
        reply = daemon.post("/v1/sessions", options)
        assert reply.status in (200, 201), f"no session: {reply}"
        self.made = reply.json
        self.id = self.made["id"]
        self.path = f"/v1/sessions/{self.id}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    # ---- the session ----

    def get(self):
        reply = self.daemon.get(self.path)
        assert reply.status == 200, reply
        return reply.json

    def patch(self, **changes):
        return self.daemon.request("PATCH", self.path, changes)

    def delete(self):
        reply = self.daemon.request("DELETE", self.path)
        assert reply.status == 204, reply

    def post(self, what, body=None, **options):
        return self.daemon.post(f"{self.path}/{what}", body, **options)

    def run(self, command, **options):
        return self.daemon.result(f"{self.path}/run", {"command": command, **options})

    def run_code(self, code, language="python", **options):
        return self.daemon.result(f"{self.path}/runCode",
                                  {"code": code, "language": language, **options})

    def shell(self, line, **options):
        return self.run(["sh", "-c", line], **options)

    # ---- its files; paths may be bytes ----

    def file(self, path):
        return f"{self.path}/files/{quote(path)}"

    def raw(self, method, path, body=None, **options):
        options.setdefault("media_type", OCTETS)
        return self.daemon.request(method, self.file(path), body, **options)

    def put(self, path, data, headers=None):
        return self.raw("PUT", path, data, headers=headers)

    def read(self, path, headers=None):
        return self.daemon.get(self.file(path), headers=headers)

    def content(self, path):
        reply = self.read(path)
        assert reply.status == 200, reply
        return reply.body

    def page(self, **query):
        text = urllib.parse.urlencode({name: str(value).lower() if value in (True, False) else value
                                       for name, value in query.items()})
        return self.daemon.get(f"{self.path}/files?{text}")

    def list(self, **query):
        """All rows, page after page."""
        rows, cursor = [], None
        while True:
            reply = self.page(**query, **({"cursor": cursor} if cursor else {}))
            assert reply.status == 200, reply
            rows += reply.json["items"]
            cursor = reply.json["nextCursor"]
            if cursor is None:
                return rows

    def names(self, **query):
        return [row["path"] for row in self.list(**{"recursive": True, **query})]


class Case(harness.Case):
    def session(self, **options):
        """A session that goes with the test."""
        session = Session(self.daemon, **options)
        self.addCleanup(session.delete)
        return session

    def create(self, **options):
        return self.daemon.post("/v1/sessions", options)

    def assert_session(self, value):
        check.session(value)
