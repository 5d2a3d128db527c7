# SPDX-License-Identifier: Apache-2.0
"""The configuration: a file, the environment, options; `kernd config` tells what came from where."""
import os
import re
import subprocess
import tempfile
import unittest

import harness


class Config(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory(prefix="kernd-test-")
        self.addCleanup(self.home.cleanup)

    def write(self, name, text):
        path = os.path.join(self.home.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def kernd(self, *arguments, **environment):
        return subprocess.run([harness.KERND, *arguments], capture_output=True, text=True,
                              timeout=harness.seconds(30), check=False, cwd=self.home.name,
                              env={"PATH": os.environ["PATH"], "HOME": self.home.name,
                                   **environment})

    def shown(self, *options, **environment):
        """{key: (value, origin)}; lists: the last entry."""
        done = self.kernd("config", "show", *options, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [re.fullmatch(r"(?:# )?(\w+) =(?: (.*?))? +; (.*)", line)
                for line in done.stdout.splitlines()]
        self.assertNotIn(None, rows, done.stdout)
        return {row[1]: (row[2] or None, row[3]) for row in rows}

    def test_each_layer_wins_over_the_one_before(self):
        path = self.write(".config/kernd/kernd.conf",
                          "# mine\nlog_level = error\nworkers = 3\nspares = 4\n")
        rows = self.shown("--spares", "6", KERND_WORKERS="5", KERND_SPARES="7")
        self.assertEqual(rows["log_level"], ("error", f"{path}:2"))
        self.assertEqual(rows["workers"], ("5", "KERND_WORKERS"))
        self.assertEqual(rows["spares"], ("6", "--spares"))
        self.assertEqual(rows["engine"], ("auto", "default"))
        self.assertEqual(rows["listen"], (None, "not set"))

    def test_which_file_is_read(self):
        self.write(".config/kernd/kernd.conf", "workers = 1\n")
        other = self.write("other/kernd/kernd.conf", "workers = 2\n")
        named = self.write("named.conf", "workers = 3\n")
        option = self.write("option.conf", "workers = 4\n")
        base = os.path.join(self.home.name, "other")
        self.assertEqual(self.shown()["workers"][0], "1")
        self.assertEqual(self.shown(XDG_CONFIG_HOME=base)["workers"], ("2", f"{other}:1"))
        self.assertEqual(self.shown(XDG_CONFIG_HOME=base, KERND_CONFIG=named)["workers"][0], "3")
        self.assertEqual(self.shown("--config", option, KERND_CONFIG=named)["workers"][0], "4")
        gone = self.kernd("config", "show", KERND_CONFIG="/nonexistent/x.conf")
        self.assertEqual(gone.returncode, 1)
        self.assertIn("/nonexistent/x.conf", gone.stderr)

    def test_what_is_shown_can_be_read_again(self):
        text = self.kernd("config", "show", "--listen", "127.0.0.1:1", "--listen",
                          "unix:/tmp/a b", "--grace-s", "0.25").stdout
        again = self.shown("--config", self.write("again.conf", text))
        self.assertEqual(again["listen"][0], "unix:/tmp/a b")
        self.assertEqual(again["grace_s"][0], "0.25")

    def test_a_wrong_setting_is_told_precisely(self):
        path = self.write("wrong.conf", "workers = 2\n\nlog_levle = debug\n")
        done = self.kernd("config", "check", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"{path}:3: there is no setting called log_levle: is log_level meant?",
                      done.stderr)
        right = self.write("right.conf", "workers = 2\n")
        self.assertEqual(self.kernd("config", "check", right).returncode, 0)
        for arguments, variables, part in (
                (("serve", "--config", path), {}, ":3: "),
                (("serve", "--log-levle", "debug"), {}, "is --log-level meant?"),
                (("serve",), {"KERND_WORKERS": "many"}, "KERND_WORKERS: workers must be a number"),
                (("mcp", "--wrokers", "1"), {}, "is --workers meant?")):
            done = self.kernd(*arguments, **variables)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)

    def test_wrong_usage(self):
        for arguments in ((), ("what",), ("check", "a", "b")):
            self.assertEqual(self.kernd("config", *arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
