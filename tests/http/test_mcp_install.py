# SPDX-License-Identifier: Apache-2.0
"""`kernd mcp install`: what it prints, and what it does to the files of clients."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest

import harness

# The file below HOME, that of a project, and the place in it.
CLIENTS = {
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json", "servers"),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "claude": (".claude.json", ".mcp.json", "mcpServers"),
    "codex": (".codex/config.toml", ".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json", "mcpServers"),
    "opencode": (".config/opencode/opencode.json", "opencode.json", "mcp"),
    "zed": (".config/zed/settings.json", ".zed/settings.json", "context_servers"),
    "jetbrains": (".junie/mcp/mcp.json", ".junie/mcp/mcp.json", "mcpServers"),
}
JSON_CLIENTS = sorted(CLIENTS.keys() - {"codex"})
URL = "http://127.0.0.1:5376"
TOKEN = "kernd_" + "0123456789abcdef" * 4


def without_comments(text):
    """JSON of JSON with comments and trailing commas."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|/\*.*?\*/|//[^\n]*', r"\1", text, flags=re.S)
    return re.sub(r",(\s*[}\]])", r"\1", text)


class Case(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="kernd-test-home-")
        self.addCleanup(shutil.rmtree, self.home, True)

    def path(self, client):
        return os.path.join(self.home, CLIENTS[client][0])

    def write(self, client, text):
        os.makedirs(os.path.dirname(self.path(client)), exist_ok=True)
        with open(self.path(client), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def install(self, client, *arguments, code=0, write=True):
        done = subprocess.run(
            [harness.KERND, "mcp", "install", "--client", client, *(["--write"] if write else []),
             *arguments], capture_output=True, text=True, check=False, cwd=self.home,
            env={"PATH": os.environ["PATH"], "HOME": self.home}, timeout=harness.seconds(30))
        self.assertEqual(done.returncode, code, done)
        return done

    def entry(self, client, path=None):
        text = self.read(path or self.path(client))
        tree = tomllib.loads(text) if client == "codex" else json.loads(without_comments(text))
        return tree[CLIENTS[client][2]]["kernd"]

    def check_program(self, client, entry, *more):
        wanted = [harness.KERND, "mcp", *more]
        if client == "opencode":
            self.assertEqual(entry, {"type": "local", "command": wanted, "enabled": True})
            return
        self.assertEqual([entry["command"], *entry["args"]], wanted)
        self.assertEqual(entry.get("type"), "stdio" if client in ("vscode", "claude") else None)


class Writing(Case):
    def test_new_file(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                self.assertIn(self.path(client), self.install(client).stderr)
                self.check_program(client, self.entry(client))
                self.assertEqual(os.stat(self.path(client)).st_mode & 0o777, 0o644)
                before = os.stat(self.path(client))
                self.assertIn("already", self.install(client).stderr)
                after = os.stat(self.path(client))
                self.assertEqual((before.st_ino, before.st_mtime_ns),
                                 (after.st_ino, after.st_mtime_ns))
                self.assertFalse(os.path.exists(self.path(client) + ".kernd-backup"))

    def test_printing_is_what_is_written_and_touches_nothing(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                printed = self.install(client, write=False).stdout
                self.assertEqual(os.listdir(self.home), [])
                self.install(client)
                self.assertEqual(self.read(self.path(client)), printed)
                shutil.rmtree(self.home)
                os.mkdir(self.home)

    def test_project_and_workspace(self):
        project = os.path.join(self.home, "my project")
        os.mkdir(project)
        for client in CLIENTS:
            with self.subTest(client=client):
                self.install(client, "--project", project, "--workspace", "my project:ro",
                             "--log-level", "debug")
                self.check_program(client, self.entry(client, os.path.join(project, CLIENTS[client][1])),
                                   "--log-level", "debug", "--workspace", project + ":ro")

    def test_http(self):
        for client in CLIENTS:
            with self.subTest(client=client):
                self.install(client, "--http", URL, "--token", TOKEN)
                entry = self.entry(client)
                self.assertEqual(entry["httpUrl" if client == "gemini" else "url"], URL + "/mcp")
                headers = entry["http_headers" if client == "codex" else "headers"]
                self.assertEqual(headers, {"Authorization": f"Bearer {TOKEN}"})
                self.assertEqual(os.stat(self.path(client)).st_mode & 0o777, 0o600)
                # The token that is there is used again; then over to the program.
                self.assertIn("already", self.install(client, "--http", URL).stderr)
                self.install(client)
                self.check_program(client, self.entry(client))
                self.assertNotIn("kernd_", self.read(self.path(client)))

    def test_refused_command_lines(self):
        for arguments in (["--token", TOKEN], ["--http", URL, "--workspace", "/"],
                          ["--http", URL, "--token", 'a"b']):
            self.install("cursor", *arguments, code=2)
        self.install("cursor", "--workspace", "nowhere", code=1)
        self.assertIn("knows no client of that name", self.install("notepad", code=2).stderr)
        self.assertEqual(os.listdir(self.home), [])


class Merging(Case):
    def check_kept(self, client, before, after):
        self.write(client, before)
        os.chmod(self.path(client), 0o640)
        self.install(client)
        found = self.read(self.path(client))
        entry = found[found.index('"kernd"'):] if client != "codex" else ""
        self.assertEqual(found, after.replace("ENTRY", entry[:entry.find("}") + 1]))
        self.check_program(client, self.entry(client))
        self.assertEqual(self.read(self.path(client) + ".kernd-backup"), before)
        self.assertEqual(os.stat(self.path(client)).st_mode & 0o777, 0o640)
        self.assertIn("already", self.install(client).stderr)
        self.assertEqual(self.read(self.path(client)), found)

    def test_comments_order_and_blanks_stay(self):
        for client in ("zed", "opencode", "vscode"):  # whose files people write comments into
            section = CLIENTS[client][2]
            for before, after in (
                ("{}", f'{{\n  "{section}": {{\n    ENTRY\n  }}\n}}'),
                ('// mine\n{\n\t"a": [1, 2,], // one\n\t"b": "x//y" /* two */\n}\n',
                 '// mine\n{\n\t"a": [1, 2,], // one\n\t"b": "x//y", /* two */\n'
                 f'  "{section}": {{\n    ENTRY\n  }}\n}}\n'),
                (f'{{"{section}": {{"o": {{}}, // last\n}}, "z": null}}\n',
                 f'{{"{section}": {{"o": {{}}, // last\n    ENTRY\n}}, "z": null}}\n'),
                (f'{{ "{section}": {{ /* none yet */ }} }}',
                 f'{{ "{section}": {{ /* none yet */\n    ENTRY\n  }} }}'),
                (f'{{"{section}": {{"kernd": {{"command": "old"}}, "o": 1}} // end\n}}',
                 f'{{"{section}": {{ENTRY, "o": 1}} // end\n}}'),
                ("// only a comment", f'// only a comment\n{{\n  "{section}": {{\n    ENTRY\n  }}\n}}\n'),
            ):
                with self.subTest(client=client, before=before):
                    self.check_kept(client, before, after)

    def test_toml(self):
        lines = f'command = "{harness.KERND}"\nargs = ["mcp"]\n'
        for before, after in (
            ('model = "x" # mine\n', f'model = "x" # mine\n\n[mcp_servers.kernd]\n{lines}'),
            ('a = """\n[mcp_servers.kernd]\n"""\nb = [\n  1, # ]\n]',
             f'a = """\n[mcp_servers.kernd]\n"""\nb = [\n  1, # ]\n]\n\n[mcp_servers.kernd]\n{lines}'),
            ('[mcp_servers."kernd"] # ours\n# a comment\ncommand = "old"\nargs = [\n  "x",\n]\n'
             'startup_timeout_sec = 5\n\n[mcp_servers.kernd.env]\nA = "1"\n\n[other]\ncommand = "its"\n',
             f'[mcp_servers."kernd"] # ours\n{lines}# a comment\nstartup_timeout_sec = 5\n\n'
             '[mcp_servers.kernd.env]\nA = "1"\n\n[other]\ncommand = "its"\n'),
        ):
            with self.subTest(before=before):
                self.check_kept("codex", before, after)

    def test_broken_files_stay(self):
        broken = {client: ['{"a": 1', '{"a" 1}', "[1]", '{"a": 1} x', "{'a': 1}", '{"a": "x\n"}',
                           '{"a": 1 "b": 2}', "/* no end", '{"%s": 5}' % CLIENTS[client][2],
                           '{"%s": {"kernd": 1, "kernd": 2}}' % CLIENTS[client][2],
                           '{"%s": {' % CLIENTS[client][2], "[" * 200, '{"a": \0}', "{,}",
                           "nul"][:None if client == "zed" else 3]
                  for client in JSON_CLIENTS}
        broken["codex"] = ['a = "x', 'a = """x', "a = [1,", "[a\n", "words\n", "a = {",
                           'mcp_servers = { kernd = { command = "x" } }\n',
                           'mcp_servers.kernd.command = "x"\n', "[mcp_servers]\nkernd = {}\n",
                           "[mcp_servers.kernd]\n[mcp_servers.kernd]\n"]
        for client, texts in broken.items():
            for text in texts:
                with self.subTest(client=client, text=text[:60]):
                    self.write(client, text)
                    done = self.install(client, code=1)
                    self.assertIn("left as it is", done.stderr)
                    self.assertIn("line ", done.stderr)
                    self.assertEqual(self.read(self.path(client)), text)
                    self.assertEqual(os.listdir(os.path.dirname(self.path(client))),
                                     [os.path.basename(self.path(client))])
            shutil.rmtree(self.home)
            os.mkdir(self.home)

    def test_a_link_is_followed(self):
        os.makedirs(os.path.join(self.home, ".cursor"))
        os.makedirs(os.path.join(self.home, "dotfiles"))
        kept = os.path.join(self.home, "dotfiles", "mcp.json")
        with open(kept, "w", encoding="utf-8") as file:
            file.write("{}")
        os.symlink(kept, self.path("cursor"))
        self.install("cursor")
        self.assertTrue(os.path.islink(self.path("cursor")))
        self.check_program("cursor", self.entry("cursor", kept))


class Tokens(harness.Case):
    def test_one_of_scope_run_is_made_and_used_again(self):
        home = self.daemon.path("home")
        os.mkdir(home)
        os.chmod(home, 0o777)
        user = {"user": self.daemon.user, "extra_groups": []} if self.daemon.user else {}
        for _ in range(2):
            done = subprocess.run(
                [harness.KERND, "mcp", "install", "--client", "cursor", "--write", "--http",
                 f"http://127.0.0.1:{self.daemon.port}", "--socket", self.daemon.socket_path],
                capture_output=True, text=True, check=False, cwd="/", **user,
                env={"PATH": os.environ["PATH"], "HOME": home}, timeout=harness.seconds(30))
            self.assertEqual(done.returncode, 0, done)
        with open(os.path.join(home, ".cursor/mcp.json"), encoding="utf-8") as file:
            entry = json.load(file)["mcpServers"]["kernd"]
        tokens = self.daemon.get("/v1/tokens").json["items"]
        self.assertEqual([(token["scope"], token["name"]) for token in tokens], [("run", "mcp")])
        shown = entry["headers"]["Authorization"].removeprefix("Bearer ")
        self.daemon.secrets.append(shown)
        reply = self.daemon.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
                                 headers=entry["headers"], token=False)
        self.assertEqual(reply.status, 200)
        self.assertNotIn(shown, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
