# SPDX-License-Identifier: Apache-2.0
"""api/openapi.yaml before its judges: what linters say, and whether the server keeps what it promises."""
import os
import re
import shutil
import unittest

import clientkit
import harness

REDOCLY = "@redocly/cli/bin/cli.js"
# What needs the id of something or an engine with images, and whose first example installs from the
# network.
LEFT_OUT = re.compile(r"\{|environments|images|post-v1-sessions")


class Description(clientkit.Case):
    group_name = "description"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for path in (os.path.join(harness.ROOT, "api", "openapi.yaml"),
                     os.path.join(cls.group.source, "session.arazzo.yaml"),
                     os.path.join(cls.group.source, "spectral.yaml")):
            shutil.copy(path, cls.group.place)

    def redocly(self, *arguments, **environment):
        return self.group.node(self.group.module(REDOCLY), *arguments, REDOCLY_TELEMETRY="off",
                               REDOCLY_SUPPRESS_UPDATE_NOTICE="true", **environment)

    def test_redocly_lint(self):
        done = self.redocly("lint", "openapi.yaml")
        said = done.stdout + done.stderr
        self.assertEqual((done.returncode, re.findall(r"You have \d+ warnings?", said)), (0, []),
                         said)

    def test_spectral(self):
        done = self.group.node(self.group.module(".bin/spectral"), "lint", "--fail-severity=warn",
                               "--ruleset", "spectral.yaml", "openapi.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def respect(self, file, *arguments):
        """Requests by that file; every answer's status, type and body must be as described."""
        done = self.redocly("respect", file, "--server",
                            f"openapi=http://127.0.0.1:{self.daemon.port}", *arguments,
                            REDOCLY_CLI_RESPECT_INPUT=f"bearer={self.daemon.token}")
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-6000:])
        return int(re.search(r"Workflows: (\d+) passed", done.stdout + done.stderr).group(1))

    def test_respect_of_each_operation(self):
        done = self.redocly("generate-arazzo", "openapi.yaml", "--output-file", "each.arazzo.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        path = os.path.join(self.group.place, "each.arazzo.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            # It expects the first status that is described; some make something (201).
            file.write(text.replace("$statusCode == 200", "$statusCode < 300"))
        names = [name for name in re.findall(r"- workflowId: (\S+)", text)
                 if not LEFT_OUT.search(name)]
        self.assertGreater(len(names), 15)
        chosen = [word for name in names for word in ("--workflow", name)]
        self.assertEqual(self.respect("each.arazzo.yaml", *chosen), len(names))

    def test_respect_of_a_session(self):
        self.assertEqual(self.respect("session.arazzo.yaml"), 1)


if __name__ == "__main__":
    unittest.main()
