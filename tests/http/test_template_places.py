# SPDX-License-Identifier: Apache-2.0
"""Forked boxes of calls with packages, an environment, or places of the host."""
import json
import os
import threading
import unittest

import census
import harness
import sessionkit
from templatekit import Templated, WITH_TEMPLATES
from test_templates import PORTRAIT

PROBE = ("import kernd_probe, os, sys\n"
         "print(kernd_probe.value, kernd_probe.__file__, os.environ['PYTHONPATH'])\n")
SETUP = "mkdir .deps; echo value = 43 > .deps/kernd_probe.py"
BUILD = "echo value = 42 > kernd_probe.py"
WRITE = ("try: open({!r}, 'w').close(); print('written')\n"
         "except OSError as error: print(error.strerror)\n")
READ_ONLY = "Read-only file system\n"
# Of a box that was forked: the block of variables that its interpreter was started with.
IS_FORKED = "b'PYTHONPATH' not in open('/proc/self/environ', 'rb').read()"


class Case(Templated, sessionkit.Case):
    daemon_arguments = WITH_TEMPLATES

    def place(self, name, **files):
        """A directory of the host, which the daemon's user may write to."""
        path = os.path.join(self.daemon.home, name)
        os.mkdir(path)
        os.chmod(path, 0o777)
        for file, text in files.items():
            with open(os.path.join(path, file), "w", encoding="ascii") as out:
                out.write(text)
        return path

    def environment(self, setup=BUILD, **options):
        reply = self.daemon.post("/v1/environments", {"setup": setup, **options})
        self.assertIn(reply.status, (200, 201), reply)
        return reply.json["id"]

    def with_setup(self, setup=SETUP, **options):
        session = self.session(**options)
        reply = session.post("setup", {"command": setup})
        self.assertEqual(reply.status, 200, reply)
        return session

    def until_forked(self, call):
        """The first call of a kind has a template started, or the second: the result of one after."""
        return census.wait_until(
            lambda: next((result for result in [call()] if result["usage"]["source"] == "template"),
                         None), harness.seconds(20), "a call that is forked")

    def forked(self, result, stdout):
        self.assert_success(result, stdout)
        self.assertEqual(result["usage"]["source"], "template")


class Packages(Case):
    def test_of_a_session(self):
        for locked in (False, True):
            session = self.with_setup(depsReadonly=locked)
            self.forked(session.run_code(PROBE + WRITE.format(".deps/more")),
                        "43 /workspace/.deps/kernd_probe.py /workspace/.deps\n"
                        + (READ_ONLY if locked else "written\n"))
            self.forked(session.run_code(WRITE.format("beside")), "written\n")
            kernel = session.post("kernels", {}).json["id"]
            cells = f"{session.path}/kernels/{kernel}/cells"
            self.assert_success(self.daemon.result(cells, {"code": PROBE}),
                                "43 /workspace/.deps/kernd_probe.py /workspace/.deps\n")
            self.assert_success(self.daemon.result(cells, {"code": f"print({IS_FORKED})"}), "True\n")

    def test_of_an_environment(self):
        one, other = self.environment(), self.environment("echo value = 41 > kernd_probe.py; mkdir sub")
        look = PROBE + "print(sorted(os.listdir('/run/environment')))\n" \
            + WRITE.format("/run/environment/more")
        for environment, value, names in ((one, 42, ["kernd_probe.py"]),
                                          (other, 41, ["kernd_probe.py", "sub"])):
            self.forked(self.run_code(look, environment=environment),
                        f"{value} /run/environment/kernd_probe.py /run/environment\n{names}\n"
                        + READ_ONLY)
        self.forked(self.run_code("import os; print(os.listdir('/run/environment'))"), "[]\n")

    def test_of_both_and_a_path_of_the_caller(self):
        session = self.with_setup(environment=self.environment(),
                                  env={"PYTHONPATH": "/workspace/own"})
        self.forked(session.run_code(PROBE),
                    "43 /workspace/.deps/kernd_probe.py "
                    "/workspace/.deps:/run/environment:/workspace/own\n")

    def test_it_goes_with_its_sessions(self):
        """A template that saw an environment does not keep it."""
        environment = self.environment("echo value = 40 > kernd_probe.py")
        self.forked(self.run_code("print(1)", environment=environment), "1\n")
        self.assertEqual(self.daemon.request("DELETE", f"/v1/environments/{environment}").status, 204)
        reply = self.daemon.post("/v1/runCode", {"code": "1", "language": "python",
                                                 "environment": environment})
        self.assert_problem(reply, 404, "environment_not_found")
        self.assertEqual(self.daemon.find(environment), [])

    def test_a_link_that_comes_in_between(self):
        """One box of a session swaps its packages for a link out of it, while others are forked."""
        session = self.session(depsReadonly=True)
        outside = self.place("between", canary="the host's")
        swap = (f"import os\nos.symlink({outside!r}, 'link'); os.mkdir('real')\n"
                "while not os.path.exists('go'):\n"
                "    os.rename('real', '.deps'); os.rename('.deps', 'real')\n"
                "    os.rename('link', '.deps'); os.rename('.deps', 'link')\n")
        thread = threading.Thread(target=session.run_code, args=(swap,), kwargs={"trackFiles": False})
        thread.start()
        census.wait_until(lambda: self.daemon.find("real") + self.daemon.find(".deps"),
                          harness.seconds(20), "the other box")
        try:
            for _ in range(20):
                reply = session.post("runCode", {
                    "code": "try: print(open('.deps/canary').read())\nexcept OSError: print('none')",
                    "language": "python", "trackFiles": False})
                if reply.status == 200:
                    self.assertNotIn("the host's", reply.json["stdout"])
        finally:
            session.put("go", b"")
            thread.join()
        self.assertIsNone(self.daemon.get("/v1/capabilities").json["templates"]["problem"])


class Places(Case):
    def test_mounts(self):
        read, write = self.place("read", file="one"), self.place("write")
        mounts = {read: "/data/read", write: ["/data/write", "rw"]}
        look = ("import os\nprint(open('/data/read/file').read(), sorted(os.listdir('/data')))\n"
                + WRITE.format("/data/read/more")
                + "open('/data/write/told', 'a').write('x')\n")
        results = [self.run_code(look, mounts=mounts)]
        self.assertEqual(results[0]["usage"]["source"], "cold", "one call says nothing of the next")

        def call():
            results.append(self.run_code(look, mounts=mounts))
            return results[-1]
        self.until_forked(call)
        for result in results:
            self.assert_success(result, f"one ['read', 'write']\n{READ_ONLY}")
        with open(os.path.join(write, "told"), encoding="ascii") as file:
            self.assertEqual(file.read(), "x" * len(results))
        # Another directory in its place is another place.
        os.rename(read, read + ".old")
        self.place("read", file="two")
        self.assertTrue(self.run_code(look, mounts=mounts)["stdout"].startswith("two "))
        # And calls that name none see none.
        self.forked(self.run_code("import os; print(os.path.exists('/data'))"), "False\n")

    def test_what_is_mounted_where_a_template_can_not_have_it(self):
        place = self.place("ordinary", file="one")
        for source, target in ((place, "/tmp/data"), (place, "/home/sandbox/data"),
                               (os.path.join(place, "file"), "/data")):
            for _ in range(3):
                result = self.run_code(f"import os; print(os.path.exists({target!r}))",
                                       mounts={source: target})
                self.assert_success(result, "True\n")
                self.assertEqual(result["usage"]["source"], "cold")

    def test_a_workspace_of_the_callers_own(self):
        place = self.place("mine", file="one")
        result = self.until_forked(lambda: self.run_code(
            "import os; print(open('file').read(), os.getcwd()); open('new', 'w').close()",
            workspace=place))
        self.assert_success(result, "one /workspace\n")
        self.assertTrue(os.path.exists(os.path.join(place, "new")))
        session = self.session(workspace=place)
        self.forked(session.run_code("print(open('file').read())"), "one\n")

    def test_like_a_booted_one(self):
        """All of it in one box: mounts, an environment, packages, a workspace of the caller's own."""
        environment, portraits = self.environment(), {}
        for isolation in ("auto", "boot"):
            session = self.with_setup(
                workspace=self.place(f"all-{isolation}"), isolation=isolation, depsReadonly=True,
                environment=environment,
                mounts={self.place(f"data-{isolation}"): ["/data", "rw"],
                        self.place(f"more-{isolation}"): "/more"})
            wanted = {"auto": "template", "boot": "cold"}[isolation]
            result = census.wait_until(
                lambda: next((found for found in [session.run_code(PROBE + PORTRAIT)]
                              if found["usage"]["source"] == wanted), None),
                harness.seconds(20), f"a {wanted} box")
            told, portrait = result["stdout"].split("\n", 1)
            portraits[isolation] = [told, json.loads(portrait)]
        self.assertIn("/workspace/.deps", [mount[0] for mount in portraits["boot"][1]["mounts"]])
        self.assertEqual(portraits["auto"][0], portraits["boot"][0])
        for what, seen in portraits["boot"][1].items():
            self.assertEqual(portraits["auto"][1][what], seen, what)


class Ahead(Case):
    daemon_arguments = (*WITH_TEMPLATES, "--spares", "4")

    def test_packages_are_imported_ahead_of_their_call(self):
        """Not in a template, which reaches more than any box: in the box itself, once it has its walls."""
        session = self.with_setup(preload=["kernd_probe"])
        look = f"import sys; print('kernd_probe' in sys.modules, {IS_FORKED})"
        census.wait_until(lambda: session.run_code(look)["stdout"] == "True True\n",
                          harness.seconds(20), "a spare that was forked and has the package")

    def test_packages_that_end_their_interpreter(self):
        """What they do is their call's affair: others are forked as ever."""
        session = self.with_setup("mkdir .deps; echo 'import os; os._exit(1)' > .deps/kernd_probe.py",
                                  preload=["kernd_probe"])
        for _ in range(4):
            self.assert_success(session.run_code("print(1)"), "1\n")
        self.assertIsNone(self.daemon.get("/v1/capabilities").json["templates"]["problem"])


if __name__ == "__main__":
    unittest.main()
