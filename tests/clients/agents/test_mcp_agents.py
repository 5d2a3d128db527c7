# SPDX-License-Identifier: Apache-2.0
"""Agent frameworks and a gateway: they connect, list, call, get an image and cancel."""
import unittest

import clientkit
import harness


class Agents(clientkit.Case):
    group_name = "agents"

    def script(self, *arguments):
        mark = harness.new_mark()
        self.assertIn("cancelled", self.node(*arguments, MARK=mark))
        self.assert_gone(mark, 10)

    def test_langchain(self):
        self.script("langchain.mjs")

    def test_vercel_ai_sdk(self):
        self.script("ai_sdk.mjs")

    def test_openai_agents(self):
        self.script("openai_agents.mjs")

    def test_supergateway(self):
        self.script("remote.mjs", "node", self.group.module("supergateway/dist/index.js"),
                    "--streamableHttp", self.url, "--logLevel", "none", "--oauth2Bearer",
                    self.daemon.token)


if __name__ == "__main__":
    unittest.main()
