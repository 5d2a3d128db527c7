# SPDX-License-Identifier: Apache-2.0
"""Completion in the shells, manual pages: what they say is what the program takes."""
import os
import re
import shutil
import subprocess
import unittest

import commandkit
import harness

BASH = r"""
compopt() { :; }
eval "$("$KERND" completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_kernd "$KERND" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
# The function of the script, with the builtins that it calls replaced by ones that tell.
ZSH = r"""
compdef() { :; }
_describe() { print -rl -- "${(@P)2}"; }
_files() { print -r -- "files $*"; }
eval "$("$KERND" completion zsh)"
words=("$KERND" "${@:2}")
CURRENT=$#words
_kernd
"""
FISH = r"""
eval ($KERND completion fish | string collect)
complete -C (string join ' ' -- $argv)
"""


class Table(commandkit.Case):
    def words(self, *words, **environment):
        """What `kernd completion words` offers for the last one."""
        out = self.kernd("completion", "words", "--", *words, environment=environment).decode()
        return [line.split("\t")[0] for line in out.splitlines()]

    def test_commands(self):
        """The words of every command lead to it, one after the other."""
        rows = [line.split("\t") for line in self.kernd("help", "--all").decode().splitlines()]
        for name in (row[1] for row in rows if row[0] == "command"):
            words = name.split()
            for i, word in enumerate(words):
                self.assertEqual(self.words(*words[:i], word[:2]).count(word), 1, name)
            options = self.words(*words, "--")
            expected = [row[2] for row in rows if row[:2] == ["option", name]]
            if ["settings", name] in rows:
                expected += ["--config"] + ["--" + row[1].replace("_", "-")
                                            for row in rows if row[0] == "setting"]
            self.assertEqual(options, expected, name)
        self.assertEqual(self.words("help", "se"), ["session", "serve", "service"])
        self.assertEqual(self.words("help", "config", ""), ["show", "check"])
        offered = self.kernd("completion", "words", "--", "sn").decode()
        self.assertRegex(offered, r"\Asnapshot\tcreate, list(, \w+)+\n\Z")
        self.assertEqual(self.words("frob", ""), [])
        self.assertEqual(self.words(), [])

    def test_values(self):
        for words, expected in (
                (("run", "--engine", ""), ["auto", "kern", "bubblewrap"]),
                (("run", "--engine=b"), ["--engine=bubblewrap"]),
                (("serve", "--log-level", "e"), ["error"]),
                (("serve", "--log-level=e"), ["--log-level=error"]),
                (("code", "-l", ""), ["python", "bash", "node"]),
                (("token", "new", "--scope", ""), ["run", "full"]),
                (("serve", "--state", ""), [":directories"]),
                (("serve", "--config", ""), [":files"]),
                (("run", "--network", "x"), [":files"]),
                (("completion", ""), ["bash", "zsh", "fish"]),
                (("image", ""), ["list", "pull"]),
                (("mcp", "install", "--client", "co"), ["codex"]),
                (("session", "list", "--frob", ""), [])):
            self.assertEqual(self.words(*words), expected, words)
        clients = self.words("mcp", "install", "--client", "")
        self.kernd("mcp", "install", "--client", "none", code=2)
        self.assertEqual(self.error.decode().rpartition("one of ")[2].split(), clients)

    def test_ids(self):
        """Of sessions on a server that runs; where none does, nothing is started and nothing said."""
        self.kernd("session", "create", "--id", "told")
        try:
            self.assertIn("told", self.words("run", "-s", ""))
            self.assertIn("told", self.words("session", "rm", "to"))
            self.assertEqual(self.words("session", "rm", "nothing-like-it"), [])
            self.assertEqual(self.words("cp", "tol"), [":files", "told:"])
        finally:
            self.kernd("session", "rm", "told")
        self.assertEqual(self.words("session", "rm", "", KERND_SOCKET="/none"), [])
        self.assertEqual(self.error, b"")

    def test_refusals(self):
        self.kernd("completion", "ksh", code=2)
        self.assertIn(b"not ksh", self.error)
        self.kernd("completion", code=125)


class Shells(commandkit.Case):
    def complete(self, shell, script, *words):
        options = self.options(KERND=harness.KERND)
        done = subprocess.run([*shell, script, *words], capture_output=True, text=True,
                              check=False, timeout=harness.seconds(60), **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.split("\n")[:-1]

    def test_bash(self):
        def ask(*words):
            return self.complete(["bash", "-c"], BASH, "bash", "kernd", *words)

        self.write("some file", b"")
        self.assertEqual(ask("session", ""), ["create", "list", "show", "rm", "fork"])
        self.assertEqual(ask("run", "--engine", "=", "b"), ["bubblewrap"])
        self.assertEqual(ask("run", "--engine", "="), ["auto", "kern", "bubblewrap"])
        self.assertEqual(ask("cp", "some"), ["some file"])
        self.assertIn("--log-level", ask("serve", "--log"))

    def test_zsh(self):
        if not shutil.which("zsh"):
            return  # a shell that is not here has no one to complete for
        shown = self.complete(["zsh", "-fc"], ZSH, "zsh", "kernd", "session", "")
        self.assertEqual([line.split(":")[0] for line in shown],
                         ["create", "list", "show", "rm", "fork"])
        self.assertEqual(self.complete(["zsh", "-fc"], ZSH, "zsh", "kernd", "serve", "--state", ""),
                         ["files -/"])

    def test_fish(self):
        if not shutil.which("fish"):
            return
        path = os.path.dirname(harness.KERND) + ":" + os.environ["PATH"]
        options = self.options(KERND=harness.KERND, PATH=path)
        done = subprocess.run(["fish", "--no-config", "-c", FISH, "kernd", "session", "c"],
                              capture_output=True, text=True, check=False,
                              timeout=harness.seconds(60), **options)
        self.assertIn("create\t", done.stdout, done.stderr)


class Manual(unittest.TestCase):
    """The pages are made when they are installed; here from the program under test."""

    @classmethod
    def setUpClass(cls):
        build = os.path.dirname(harness.KERND)
        rows = subprocess.run([harness.KERND, "help", "--all"], check=True, capture_output=True,
                              text=True).stdout
        cls.rows = [line.split("\t") for line in rows.splitlines()]
        cls.pages = {}
        folder = os.path.join(harness.ROOT, "docs", "man")
        for name in sorted(os.listdir(folder)):
            if name.endswith(".in"):
                cls.pages[name[:-3]] = subprocess.run(
                    [os.sys.executable, "-B", os.path.join(folder, "generate.py"),
                     os.path.join(folder, name), harness.KERND,
                     os.path.join(build, "made", "openapi.json"), "/usr/libexec/kernd"],
                    check=True, capture_output=True, text=True).stdout.replace("\\-", "-")

    def test_every_command_option_and_setting_is_told(self):
        page = self.pages["kernd.1"]
        for row in self.rows:
            if row[0] == "command":
                self.assertRegex(page, rf'(?m)^\.It Ic "{row[1]}"')
            elif row[0] == "option":
                self.assertRegex(page, rf"(?m)^\.It (Fl \w , )?Fl {row[2][1:]}\b")
            elif row[0] == "setting":
                self.assertRegex(self.pages["kernd.conf.5"], rf"(?m)^\.It Cm {row[1]} ")
                self.assertRegex(self.pages["kernd-serve.1"],
                                 rf"(?m)^\.It Fl -{row[1].replace('_', '-')}\b")
        for call in ("POST /v1/run", "GET /v1/sessions/{id}/files/{path}", "GET /metrics"):
            self.assertIn(f'.It Li "{call}"', self.pages["kernd-api.7"])

    def test_pages_name_no_option_that_there_is_not(self):
        known = {row[2] for row in self.rows if row[0] == "option"} | {"--config"}
        known |= {"--" + row[1].replace("_", "-") for row in self.rows if row[0] == "setting"}
        for name, page in self.pages.items():
            for option in re.findall(r"Fl -([a-z][\w-]+)", page):
                self.assertIn("--" + option, known, name)

    def test_roff_is_in_order(self):
        for name, page in self.pages.items():
            self.assertNotRegex(page, r"@[A-Z]+@", name)
            self.assertEqual(page.count("\n.Bl "), page.count("\n.El"), name)
            self.assertLess(max(map(len, page.splitlines())), 120, name)
            if shutil.which("mandoc"):
                done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=page, check=False,
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
