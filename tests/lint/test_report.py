# SPDX-License-Identifier: Apache-2.0
"""The page of results: made of a run's numbers, refused for a run that was disturbed."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench")
sys.path.insert(0, BENCH)
import found as findings  # noqa: E402  (the path above has to come first)


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.found = findings.Found()
        self.found.times("one caller, 50 ms pauses", "bwrap true", [8.0] * 100, cpu=4.0)
        self.found.times("one caller, 50 ms pauses", "kernd run [\"true\"]", [2.0, 3.0], cpu=9.0)
        self.found.times("saturation", "kernd runCode python, 16 callers", [20.0] * 100, rate=80.0)
        self.found.memory("idle daemon", 9.0)
        self.found.curve("run <b>", "files & more", "ms, p50", [(1, 2.0), (1000, 30.0)])

    def report(self, disturbed, *options):
        path = os.path.join(self.folder, "run.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.found.as_json(launcher="bubblewrap", rounds=2, spares="8", busy=0.5,
                                          seconds=1, disturbed=disturbed))
        return subprocess.run([sys.executable, "-B", os.path.join(BENCH, "report.py"), path,
                               os.path.join(self.folder, "docs"), *options],
                              capture_output=True, text=True, check=False)

    def read(self, name):
        with open(os.path.join(self.folder, "docs", name), encoding="utf-8") as file:
            return file.read()

    def test_a_page_with_plots(self):
        done = self.report([])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = self.read("results.md")
        self.assertIn("| one caller, 50 ms pauses | bwrap true | 8.00 | 8.00 | 8.00 | 4.00 |", page)
        self.assertIn("| kernd run [\"true\"] | 3.00 | 3.00 |  | 9.00 |  | 2 | 0.38 x bwrap true |", page)
        self.assertIn("| run [\"true\"] over the bare launcher, p50 | <= 9.00 | 3.00 | yes |", page)
        self.assertIn("| idle daemon, resident | <= 8.00 | 9.00 | no |", page)
        for name in ("results-latency.svg", "results-files.svg"):
            self.assertIn(f"]({name})", page)
            xml.dom.minidom.parseString(self.read(name))  # well-formed
        self.assertIn("run &lt;b&gt;", self.read("results-files.svg"))

    def test_a_disturbed_run_is_no_result(self):
        done = self.report(["the machine was loaded"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("the machine was loaded", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "docs")))
        self.assertEqual(self.report(["the machine was loaded"], "--draft").returncode, 0)
        self.assertIn("draft", self.read("results.md"))

    def test_budgets_of_rows_that_were_not_measured_are_left_out(self):
        self.assertEqual({what for what, *_ in self.found.budgets()},
                         {"run [\"true\"] over the bare launcher, p50", "idle daemon, resident"})

    def test_all_samples_are_kept(self):
        rows = json.loads(self.found.as_json())["rows"]
        self.assertEqual(rows[1]["times"], [2.0, 3.0])


if __name__ == "__main__":
    unittest.main()
