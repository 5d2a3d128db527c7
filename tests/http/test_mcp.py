# SPDX-License-Identifier: Apache-2.0
"""The Model Context Protocol: handshakes, headers, eras, errors."""
import base64
import json
import unittest

import mcpkit

SHAKEN = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


class Handshake(mcpkit.Case):
    def test_versions(self):
        for asked in (*SHAKEN, "2099-01-01", "2026-07-28", None):
            params = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            if asked:
                params["protocolVersion"] = asked
            for header in (None, asked):
                with self.subTest(asked=asked, header=header):
                    client = mcpkit.Client(self.daemon)
                    reply = client.send("initialize", params,
                                        {"MCP-Protocol-Version": header} if header else None)
                    self.assertEqual(reply.status, 200, reply)
                    result = reply.json["result"]
                    self.assertEqual(result["protocolVersion"],
                                     asked if asked in SHAKEN else SHAKEN[0])
                    self.assertEqual(result["capabilities"], {"tools": {}})
                    self.assertEqual(result["serverInfo"]["name"], "kernd")
                    self.assertTrue(result["instructions"])
                    self.assertRegex(reply.header("Mcp-Session-Id"), "^[!-~]+$")

    def test_version_header_later(self):
        client = self.client()
        for header, status in ((None, 200), ("1900-01-01", 400), ("not-a-version", 400), ("", 400),
                               *((version, 200) for version in SHAKEN)):
            with self.subTest(header=header):
                headers = {} if header is None else {"MCP-Protocol-Version": header}
                self.assertEqual(client.send("tools/list", None, headers).status, status)

    def test_accept(self):
        client = self.client()
        body = client.message("ping")
        for accept, kind in ((mcpkit.ANY, "application/json"), ("*/*", "application/json"),
                             ("application/json", "application/json"),
                             ("text/event-stream", "text/event-stream")):
            with self.subTest(accept=accept):
                reply = client.post(body, {"Accept": accept})
                self.assertEqual((reply.status, reply.header("Content-Type")), (200, kind), reply)
                message = json.loads(reply.body) if kind == "application/json" else \
                    mcpkit.events(reply.body)[0]
                self.assertEqual(message, {"jsonrpc": "2.0", "id": body["id"], "result": {}})
        reply = self.daemon.post("/mcp", body)
        self.assertEqual((reply.status, reply.json["result"]), (200, {}))
        self.assert_problem(client.post(body, {"Accept": "text/html"}), 406, "not_acceptable")

    def test_notifications_and_responses(self):
        client = self.client()
        for message in ({"method": "notifications/initialized"}, {"method": "anything/else"},
                        {"id": 7, "result": {}}, {"id": 7, "error": {"code": 1, "message": "x"}},
                        {"method": "notifications/cancelled", "params": {"requestId": 99}},
                        {"method": "notifications/cancelled", "params": {}}):
            with self.subTest(message=message):
                reply = client.post({"jsonrpc": "2.0", **message})
                self.assertEqual((reply.status, reply.body), (202, b""))

    def test_other_methods_of_http(self):
        for method in ("GET", "DELETE", "PUT"):
            reply = self.daemon.request(method, "/mcp")
            self.assertEqual(reply.status, 405, reply)
            self.assertIn("POST", reply.header("Allow"))

    def test_who_may(self):
        client = mcpkit.Client(self.daemon, token=False)
        reply = client.send("initialize")
        self.assert_problem(reply, 401, "unauthorized")
        self.assertIn("Bearer", reply.header("WWW-Authenticate"))
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Host": "evil.example"}):
            self.assertEqual(mcpkit.Client(self.daemon).send("ping", None, headers).status, 403)
        reply = mcpkit.Client(self.daemon).send("ping", None, {"Content-Type": "text/plain"})
        self.assertEqual(reply.status, 415)
        self.assertEqual(mcpkit.Client(self.daemon, via="unix").send("ping").status, 200)


class Messages(mcpkit.Case):
    def test_malformed(self):
        client = self.client()
        for body in (b"{", b"", b"1", b'"x"', b"{'a':1}", b'{"jsonrpc":"2.0","jsonrpc":"2.0"}'):
            with self.subTest(body=body):
                self.assert_error(client.post(body), 400, -32700)
        good = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for change in ({"jsonrpc": "1.0"}, {"jsonrpc": None}, {"method": 5}, {"method": None},
                       {"id": None}, {"id": 1.5}, {"id": {}}, {"params": []}, {"params": 1},
                       {"params": {"_meta": 1}}):
            with self.subTest(change=change):
                self.assert_error(client.post({**good, **change}), 400, -32600)

    def test_ids(self):
        client = self.client()
        for number in (0, -1, 2**53, "", "a", "é\"\\\n"):
            reply = client.post({"jsonrpc": "2.0", "id": number, "method": "ping"})
            self.assertEqual(reply.json, {"jsonrpc": "2.0", "id": number, "result": {}})

    def test_errors_of_the_protocol(self):
        client = self.client()
        self.assert_error(client.send("nope"), 200, -32601)
        self.assert_error(client.send("server/discover"), 200, -32601)
        self.assert_error(client.send("resources/list"), 200, -32601)
        for params in ({"name": "nope"}, {}, {"name": 1}, {"name": "run_code", "arguments": []}):
            self.assert_error(client.send("tools/call", params), 200, -32602)
        self.assert_error(client.send("tools/list", {"cursor": "x"}), 200, -32602)

    def test_batches(self):
        client = self.client()
        batch = [client.message("ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 client.message("tools/call", {"name": "run_code", "arguments": {"code": "6*7"}}),
                 client.message("nope"), 5, client.message("initialize")]
        for headers in ({}, {"MCP-Protocol-Version": "2025-03-26"}):
            reply = client.post(batch, headers)
            self.assertEqual(reply.status, 200, reply)
            ping, call, nope, number, initialize = reply.json
            self.assertEqual((ping["id"], ping["result"]), (batch[0]["id"], {}))
            self.assertIn("42", call["result"]["content"][0]["text"])
            self.assertEqual(nope["error"]["code"], -32601)
            self.assertEqual((number["error"]["code"], number["id"]), (-32600, None))
            self.assertEqual(initialize["error"]["code"], -32600)
        self.assertEqual(client.post(batch[1:2]).status, 202)
        self.assert_error(client.post([]), 400, -32600)
        self.assert_error(client.post(batch[:1] * 65), 400, -32600)
        for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
            self.assert_error(client.post(batch, {"MCP-Protocol-Version": version}), 400, -32600)


class Stateless(mcpkit.Case):
    """The revision without a handshake."""

    def setUp(self):
        super().setUp()
        self.client = mcpkit.Client(self.daemon, mcpkit.STATELESS)

    def test_discover(self):
        result = self.client.result("server/discover")
        self.assertEqual((result["resultType"], result["supportedVersions"], result["capabilities"]),
                         ("complete", [mcpkit.STATELESS], {"tools": {}}))
        self.assertGreaterEqual(result["ttlMs"], 0)
        self.assertIn(result["cacheScope"], ("public", "private"))
        self.assertEqual(result["_meta"][mcpkit.META + "serverInfo"]["name"], "kernd")

    def test_results(self):
        result = self.client.result("tools/list")
        self.assertEqual((result["resultType"], type(result["ttlMs"])), ("complete", int))
        result = self.client.call("run_code", code="print(1)")
        self.assertEqual(result["resultType"], "complete")
        self.assertEqual(self.client.call("run_code")["resultType"], "complete")

    def test_meta(self):
        for remove in ("protocolVersion", "clientCapabilities"):
            body = self.client.message("tools/list")
            del body["params"]["_meta"][mcpkit.META + remove]
            reply = self.client.post(body, self.client.headers("tools/list", {}))
            self.assert_error(reply, 400, -32602)
            self.assertEqual(reply.json["id"], body["id"])
        body = self.client.message("tools/list")
        del body["params"]["_meta"][mcpkit.META + "clientInfo"]
        self.assertEqual(self.client.post(body, self.client.headers("tools/list", {})).status, 200)

    def test_headers(self):
        name = base64.b64encode(b"session_info").decode()
        for headers, status in (({}, 200), ({"MCP-Protocol-Version": None}, 400),
                                ({"MCP-Protocol-Version": "2025-11-25"}, 400),
                                ({"Mcp-Method": None}, 400), ({"Mcp-Method": "tools/list"}, 400),
                                ({"Mcp-Method": "Tools/Call"}, 400), ({"Mcp-Name": None}, 400),
                                ({"Mcp-Name": "run_code"}, 400),
                                ({"Mcp-Name": " session_info\t"}, 200),
                                ({"Mcp-Name": f"=?base64?{name}?="}, 200),
                                ({"Mcp-Name": f"=?base64?{name[:-1]}?="}, 400),
                                ({"Mcp-Name": "=?base64??="}, 400)):
            with self.subTest(headers=headers):
                params = {"name": "session_info"}
                sent = {**self.client.headers("tools/call", params), **headers}
                reply = self.client.post(self.client.message("tools/call", params),
                                         {key: value for key, value in sent.items() if value})
                if status == 200:
                    self.assertIn("result", reply.json)
                else:
                    self.assert_error(reply, 400, -32020)

    def test_versions(self):
        for version in ("2027-01-01", "2025-11-25"):
            body = self.client.message("tools/list")
            body["params"]["_meta"][mcpkit.META + "protocolVersion"] = version
            reply = self.client.post(body, {"MCP-Protocol-Version": version,
                                            "Mcp-Method": "tools/list"})
            self.assert_error(reply, 400, -32022)
            self.assertEqual(reply.json["error"]["data"],
                             {"supported": [mcpkit.STATELESS], "requested": version})

    def test_methods(self):
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "nope"):
            self.assert_error(self.client.send(method), 404, -32601)
        self.assert_error(self.client.send("tools/call", {"name": "nope"}), 400, -32602)


if __name__ == "__main__":
    unittest.main()
