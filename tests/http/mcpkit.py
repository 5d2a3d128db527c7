# SPDX-License-Identifier: Apache-2.0
"""A client of the Model Context Protocol, and a check of every result against its schema."""
import json
import re

import check
import harness

STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
ANY = "application/json, text/event-stream"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float), "null": type(None)}


def complaints(schema, value, place=""):
    """What is wrong with a value, by the part of JSON Schema that the tools use."""
    if "anyOf" in schema:
        if not any(not list(complaints(option, value)) for option in schema["anyOf"]):
            yield f"{place}: fits none of {schema['anyOf']}"
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind])
                 or (kind in ("integer", "number") and isinstance(value, bool))):
        yield f"{place}: {value!r} is no {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if isinstance(value, dict):
        yield from (f"{place}: lacks {name}" for name in schema.get("required", ())
                    if name not in value)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                yield from complaints(schema["properties"][name], item, f"{place}/{name}")
            elif not schema.get("additionalProperties", True):
                yield f"{place}: has {name}"
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from complaints(schema["items"], item, f"{place}/{number}")


def events(body):
    """The messages of an event stream."""
    found = []
    for block in body.decode().split("\n\n"):
        lines = [line[len("data: "):] for line in block.split("\n") if line.startswith("data: ")]
        if lines:
            found.append(json.loads("\n".join(lines)))
    return found


class Client:
    """One client; version None: what `initialize` gave is not named in a header."""

    def __init__(self, daemon, version=None, *, token=True, via="tcp"):
        self.daemon = daemon
        self.version = version
        self.session = None
        self.token = token
        self.via = via
        self.last = 0
        self.schemas = {}

    def headers(self, method, params):
        found = {"Accept": ANY}
        if self.version:
            found["MCP-Protocol-Version"] = self.version
        if self.session:
            found["Mcp-Session-Id"] = self.session
        if self.version == STATELESS:
            found["Mcp-Method"] = method
            if "name" in params:
                found["Mcp-Name"] = params["name"]
        return found

    def message(self, method, params=None, **more):
        self.last += 1
        params = dict(params or {})
        if self.version == STATELESS:
            params["_meta"] = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {},
                               META + "clientInfo": {"name": "test", "version": "1"},
                               **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params, **more}

    def post(self, body, headers=None):
        """Refusals of the protocol have a status, but are no problem+json."""
        sent = {"Content-Type": "application/json", "Accept": ANY,
                **(self.daemon.authorization() if self.token and self.via == "tcp" else {}),
                **(headers or {})}
        body = body if isinstance(body, bytes) else harness.as_json(body)
        with self.daemon.connect(self.via) as connection:
            reply = connection.exchange("POST", "/mcp", sent, body)
        if reply.media_type == "application/json" and reply.status >= 400:
            assert reply.json["error"]["code"] <= -32000, reply
            return reply
        return check.reply(reply, "POST")

    def send(self, method, params=None, headers=None):
        return self.post(self.message(method, params),
                         {**self.headers(method, params or {}), **(headers or {})})

    def result(self, method, params=None):
        reply = self.send(method, params)
        assert reply.status == 200, reply
        assert reply.json["id"] == self.last and reply.json["jsonrpc"] == "2.0", reply.json
        assert "result" in reply.json, reply.json
        return reply.json["result"]

    def initialize(self, version="2025-11-25"):
        reply = self.send("initialize", {"protocolVersion": version, "capabilities": {},
                                         "clientInfo": {"name": "test", "version": "1"}})
        assert reply.status == 200, reply
        self.session = reply.header("Mcp-Session-Id")
        return reply.json["result"]

    def tools(self):
        return self.result("tools/list")["tools"]

    def check(self, name, result):
        """Every result has content, and fits the schema of its tool."""
        if not self.schemas:
            self.schemas = {tool["name"]: tool.get("outputSchema") for tool in self.tools()}
        schema = self.schemas[name]
        assert result["content"] and isinstance(result["isError"], bool), result
        for part in result["content"]:
            assert part["type"] in ("text", "image"), part
            if part["type"] == "image":
                assert re.fullmatch("[A-Za-z0-9+/]+=*", part["data"]), part["data"][:100]
        if schema:
            wrong = list(complaints(schema, result["structuredContent"]))
            assert not wrong, wrong
            assert result["structuredContent"]["ok"] != result["isError"], result
        return result

    def call(self, name, /, **arguments):
        return self.check(name, self.result("tools/call", {"name": name, "arguments": arguments}))

    def text(self, name, /, **arguments):
        return "\n".join(part["text"] for part in self.call(name, **arguments)["content"]
                         if part["type"] == "text")


class Case(harness.Case):
    """Removes the sessions that the clients of a test class left."""

    @classmethod
    def tearDownClass(cls):
        for session in cls.daemon.get("/v1/sessions?limit=1000").json["items"]:
            cls.daemon.request("DELETE", f"/v1/sessions/{session['id']}")
        super().tearDownClass()

    def client(self, version=None):
        client = Client(self.daemon, version)
        if version != STATELESS:
            client.initialize(version or "2025-11-25")
        return client

    def assert_error(self, reply, status, code):
        self.assertEqual(reply.status, status, reply)
        self.assertEqual(reply.json["error"]["code"], code, reply.json)
        self.assertNotIn("result", reply.json)
