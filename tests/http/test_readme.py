# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md, as they stand there, against a daemon."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import harness

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
# A refusal must end the block; whatever else curl is told is the page's own.
PREAMBLE = 'set -eu -o pipefail\ncurl() { command curl --fail-with-body "$@"; echo; }\n'


def blocks():
    with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
        return BLOCK.findall(file.read())


class Readme(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="kernd-readme-")
        found = blocks()
        cls.setting = next(block for block in found if block.startswith("T="))
        cls.calls = [block for block in found if "$U" in block and block != cls.setting]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def run_block(self, block):
        setting = self.setting.replace("/path/it/printed/token", self.daemon.token_path)
        setting = setting.replace("http://127.0.0.1:5376", f"http://127.0.0.1:{self.daemon.port}")
        done = subprocess.run(["bash", "-c", PREAMBLE + setting + block], cwd=self.folder.name,
                              capture_output=True, text=True, check=False,
                              timeout=harness.seconds(120))
        self.assertEqual(done.returncode, 0, (block, done.stdout, done.stderr))
        return done.stdout

    def block_with(self, words):
        found = [block for block in self.calls if words in block]
        self.assertEqual(len(found), 1, words)
        return found[0]

    def test_every_block_works_in_its_order(self):
        """Later blocks build on what earlier ones made, as a reader's do."""
        self.assertGreaterEqual(len(self.calls), 8)
        plots = os.path.isdir("/usr/lib/python3/dist-packages/matplotlib")
        said = {block: self.run_block(block) for block in self.calls
                if plots or "matplotlib" not in block}
        hello = json.loads(said[self.block_with('print(\\"hello\\")')])
        self.assertEqual((hello["stdout"], hello["results"][0]["data"]["text/plain"]),
                         ("hello\n", "42"))
        command = json.loads(said[self.block_with("uname -s")])
        self.assertEqual(command["stdout"].split(), ["Linux", "5"])
        error = json.loads(said[self.block_with('"1/0"')])
        self.assertEqual((error["exitCode"], error["fault"]), (1, None))
        self.assertIn("ZeroDivisionError", error["stderr"])
        late = json.loads(said[self.block_with('"timeoutS":1')])
        self.assertEqual((late["fault"]["type"], late["stdout"]), ("timeout", "1\n"))
        self.assertIn("done", said[self.block_with("files/out.txt")].splitlines())
        self.assertIn('"text/plain":"42"', said[self.block_with("tools.answer")])
        self.assertIn('"text/plain":"42"', said[self.block_with("x + 1")])
        self.assertIn('"stdout"', said[self.block_with("x-ndjson")])
        if not plots:
            self.skipTest("python3-matplotlib is not installed; all but the figure works")
        self.assertIn("12", said[self.block_with("matplotlib")].split())
        with open(os.path.join(self.folder.name, "figure.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_make_targets_that_it_names_exist(self):
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            named = set(re.findall(r"(?:^|`)make ([a-z-]+)", file.read(), re.M))
        self.assertLessEqual({"run", "check"}, named)
        for target in named:
            done = subprocess.run(["make", "-n", "-o", "deps-missing", target], cwd=harness.ROOT,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, (target, done.stderr))


if __name__ == "__main__":
    unittest.main()
