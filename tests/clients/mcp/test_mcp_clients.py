# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote: they connect, list, call, get an image and cancel."""
import json
import unittest

import clientkit
import harness

CODE = "print(6 * 7)"


class Clients(clientkit.Case):
    group_name = "mcp"

    def script(self, *arguments):
        mark = harness.new_mark()
        self.assertIn("cancelled", self.node(*arguments, MARK=mark))
        self.assert_gone(mark, 10)

    def test_sdk_v1(self):
        self.script("sdk_v1.mjs")

    def test_sdk_v1_over_the_bridge(self):
        self.script("sdk_v1.mjs", "stdio")

    def test_sdk_v2_with_a_handshake(self):
        self.script("sdk_v2.mjs", "legacy")

    def test_sdk_v2_that_asks_first(self):
        self.script("sdk_v2.mjs", "auto")

    def test_sdk_v2_without_a_handshake(self):
        self.script("sdk_v2.mjs", "pin")

    def test_mcp_remote(self):
        self.script("remote.mjs", "node", self.group.module("mcp-remote/dist/proxy.js"), self.url,
                    "--transport", "http-only", "--header",
                    f"Authorization:Bearer {self.daemon.token}")

    def mcporter(self, *arguments):
        return self.node(self.group.module("mcporter/dist/cli.js"), *arguments)

    def test_mcporter(self):
        with open(self.group.home + "/mcporter.json", "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"kernd": {
                "url": self.url, "headers": {"Authorization": f"Bearer {self.daemon.token}"}}}},
                file)
        config = ("--config", self.group.home + "/mcporter.json")
        self.assertIn("run_code", self.mcporter(*config, "list", "kernd"))
        self.assertIn("42", self.mcporter(*config, "call", "kernd.run_code", f"code={CODE}"))


class Inspector(clientkit.Case):
    group_name = "mcp"

    def inspect(self, *arguments):
        return self.node(
            self.group.module(".bin/mcp-inspector"), "--cli", "--server-url", self.url, "--header",
            f"Authorization: Bearer {self.daemon.token}", "--format", "json", *arguments)

    def test_schemas_are_portable(self):
        for era in ("legacy", "auto", "modern"):
            with self.subTest(era=era):
                listed = json.loads(self.inspect("--protocol-era", era, "--method", "tools/list",
                                                 "--strict"))
                self.assertEqual(len(listed["result"]["tools"]), 11)

    def test_load(self):
        told = json.loads(self.inspect(
            "--method", "tools/call", "--tool-name", "run_code", "--tool-args-json",
            json.dumps({"code": CODE}), "--load", "--load-requests", "300",
            "--load-concurrency", "8"))
        told = told.get("result", told)
        self.assertEqual((told["ok"], told["errors"], told["toolErrors"]), (300, 0, 0), told)


if __name__ == "__main__":
    unittest.main()
