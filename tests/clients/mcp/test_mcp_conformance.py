# SPDX-License-Identifier: Apache-2.0
"""The protocol's own conformance suite, in both eras, against what is expected of a server that has
tools and nothing else: a scenario that fails, or warns, and is not listed fails here."""
import os
import re
import unittest

import clientkit

SUITE = "@modelcontextprotocol/conformance/dist/index.js"
OUTCOME = re.compile(r"^(✓|✗) ([\w-]+): (\d+) passed, (\d+) failed", re.M)
# Beside the required ones: what a tools-only server must pass in any case.
MUST_PASS = {
    "2025-11-25": {"server-initialize", "ping", "tools-list", "tools-call-simple-text",
                   "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
                   "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress",
                   "server-sse-multiple-streams", "server-session-lifecycle",
                   "json-schema-2020-12", "dns-rebinding-protection"},
    "2026-07-28": {"server-stateless", "tools-list", "tools-call-simple-text", "tools-call-image",
                   "tools-call-audio", "tools-call-embedded-resource", "tools-call-mixed-content",
                   "tools-call-error", "tools-call-with-progress", "server-sse-multiple-streams",
                   "json-schema-2020-12", "dns-rebinding-protection", "http-header-validation",
                   "http-custom-header-server-validation"},
}


class Conformance(clientkit.Case):
    group_name = "mcp"
    daemon_arguments = ("--mcp-test-tools",)

    def suite(self, version, expected):
        return self.group.node(
            "--import", "./authorize.mjs", self.group.module(SUITE), "server", "--url", self.url,
            "--requirements", version, "--expected-failures", expected,
            KERND_TOKEN=self.daemon.token)

    def check(self, version):
        expected = os.path.join(self.group.source, f"expected-{version}.yml")
        done = self.suite(version, expected)
        output = done.stdout + done.stderr
        outcomes = {name: (mark, int(failed))
                    for mark, name, _, failed in OUTCOME.findall(done.stdout)}
        with open(expected, encoding="utf-8") as file:
            listed = set(re.findall(r"^  - (\S+)", file.read(), re.M))
        failing = {name for name, (mark, failed) in outcomes.items() if failed or mark == "✗"}
        self.assertEqual(done.returncode, 0, output[-6000:])
        self.assertLessEqual(failing, listed)
        self.assertLessEqual(MUST_PASS[version], outcomes.keys() - listed)

    def test_2025_11_25(self):
        self.check("2025-11-25")

    def test_2026_07_28(self):
        self.check("2026-07-28")


if __name__ == "__main__":
    unittest.main()
