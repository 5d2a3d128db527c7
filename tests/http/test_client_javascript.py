# SPDX-License-Identifier: Apache-2.0
"""The client for JavaScript in api/clients/javascript: its own tests against a daemon."""
import os
import re
import subprocess
import unittest

import harness
import ondemandkit

CLIENT = os.path.join(harness.ROOT, "api", "clients", "javascript")


class Client(harness.Case):
    def node(self, *arguments):
        return subprocess.run(["node", *arguments], cwd=CLIENT, capture_output=True, text=True,
                              check=False, timeout=harness.seconds(120),
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent",
                                   "KERND_TEST_ENGINE": harness.ENGINE,
                                   "KERND_URL": f"http://127.0.0.1:{self.daemon.port}",
                                   "KERND_TOKEN_FILE": self.daemon.token_path})

    def test_example_of_the_readme(self):
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            code = re.search(r"^```js\n(.*?)^```$", file.read(), re.M | re.S).group(1)
        done = self.node("-e", code.replace('"kernd"', '"./index.js"'))
        self.assertEqual((done.stdout, done.stderr), ("42 null\n", ""))

    def test_its_own_tests(self):
        done = self.node("--test", "--test-reporter=tap", "test")
        counts = {name: int(number)
                  for name, number in re.findall(r"^# (\w+) (\d+)$", done.stdout, re.M)}
        self.assertEqual((done.returncode, counts.get("fail"), counts.get("skipped")), (0, 0, 0),
                         done.stdout + done.stderr)
        self.assertGreaterEqual(counts["pass"], 20)
        self.assertEqual(self.daemon.get("/v1/sessions").json["items"], [])


class OnDemand(ondemandkit.Case):
    PROGRAM = ("const kernd = require(process.argv[1]);\n"
               "kernd.withSandbox(async (sandbox) => {\n"
               "  process.stdout.write((await sandbox.run(['echo', 'hello'])).stdout);\n"
               "});\n")
    command = ("node", "-e", PROGRAM, CLIENT)


if __name__ == "__main__":
    unittest.main()
