# SPDX-License-Identifier: Apache-2.0
"""Clients that others' generators make from the description, compiled strictly and run."""
import os
import re
import shutil
import subprocess
import unittest

import clientkit
import harness

COMPILE = ("typescript/bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--preserveSymlinks",
           "--module", "nodenext", "--target", "es2022", "--types", "node")
DESCRIPTION = os.path.join(harness.ROOT, "api", "openapi.yaml")
CLIENT = os.path.join(harness.ROOT, "api", "clients", "javascript")


class Typed(clientkit.Case):
    group_name = "typed"

    def must(self, *arguments, **environment):
        base = f"http://127.0.0.1:{self.daemon.port}"
        done = self.group.node(*arguments, KERND_BASE=base, KERND_URL=base,
                               KERND_TOKEN=self.daemon.token,
                               KERND_TOKEN_FILE=self.daemon.token_path, **environment)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[-6000:])

    def compile_and_run(self, name):
        self.must(self.group.module(COMPILE[0]), *COMPILE[1:], "--outDir", f"out-{name}",
                  f"{name}.ts")
        place = os.path.join(self.group.place, f"out-{name}")
        shutil.copy(os.path.join(self.group.place, "package.json"), place)
        self.must("--preserve-symlinks", os.path.join(place, f"{name}.js"))

    def test_openapi_fetch(self):
        self.must(self.group.module(".bin/openapi-typescript"), DESCRIPTION, "--output",
                  "types.ts", "--default-non-nullable", "false")
        self.compile_and_run("fetch")

    def test_hey_api(self):
        # Generators look for their configuration upwards, too: this one lies beside.
        shutil.copy(os.path.join(self.group.source, "openapi-ts.config.mjs"), self.group.place)
        self.must(self.group.module(".bin/openapi-ts"), KERND_DESCRIPTION=DESCRIPTION)
        self.compile_and_run("generated")

    def test_types_of_our_own_client(self):
        link = os.path.join(self.group.modules, "kernd")
        if not os.path.islink(link):
            os.symlink(CLIENT, link)
        self.compile_and_run("client")

    def test_example_of_the_readme(self):
        """Its shell lines and its program, in a folder that has what `npm install` would bring."""
        with open(os.path.join(harness.ROOT, "README.md"), encoding="utf-8") as file:
            text = file.read()
        lines, = re.findall(r"^```bash\n(.*?)^```$", text, re.M | re.S)
        program, = re.findall(r"^```ts\n(.*?)^```$", text, re.M | re.S)
        place = os.path.join(self.group.place, "readme")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "example.mts"), "w", encoding="utf-8") as file:
            file.write(program)
        with open(os.path.join(place, "package.json"), "w", encoding="utf-8") as file:
            file.write("{}")  # as `npm install` makes it where there is none
        base = f"http://127.0.0.1:{self.daemon.port}"
        setting = (f'T="Authorization: Bearer {self.daemon.token}"\nU={base}\n'
                   'npm() { [ "$1" = install ]; }\nset -eu -o pipefail\n')
        done = subprocess.run(
            ["bash", "-c", setting + lines], cwd=place, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=harness.seconds(180),
            env=self.group.environment(npm_config_offline="true"))
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1:]), (0, ["42 null"]),
                         done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
