# SPDX-License-Identifier: Apache-2.0
"""The lint programs see what they are for: each is run over a small tree with one planted fault."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Lint(unittest.TestCase):
    def setUp(self):
        self.tree = tempfile.TemporaryDirectory(prefix="kernd-lint-")
        self.addCleanup(self.tree.cleanup)
        self.write("lib/box/box.h", "")
        self.write("lib/work/work_internal.h", "")
        self.write("lib/base/err.h", "")

    def write(self, path, text):
        full = os.path.join(self.tree.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def lint(self, program, *arguments):
        child = subprocess.run([sys.executable, "-B", os.path.join(HERE, program), *arguments],
                               cwd=self.tree.name, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
        return child.returncode, child.stdout

    def assert_found(self, program, path, text, complaint):
        self.write(path, text)
        code, output = self.lint(program)
        self.assertEqual(code, 1, output)
        self.assertIn(complaint, output)
        self.assertIn("1 found", output)

    def assert_clean(self, program, path, text):
        self.write(path, text)
        code, output = self.lint(program)
        self.assertEqual(code, 0, output)

    def test_an_include_that_goes_up(self):
        self.assert_found("layers.py", "lib/base/a.c", '#include "lib/box/box.h"\n',
                          "lib/base/a.c:1: lib/base may not include lib/box")

    def test_an_include_that_goes_sideways(self):
        self.assert_found("layers.py", "lib/work/a.c", '\n #  include "lib/box/box.h"\n',
                          "lib/work/a.c:2: lib/work may not include lib/box")

    def test_a_private_header_of_another_room(self):
        self.assert_found("layers.py", "lib/sandbox/a.c", '#include "lib/work/work_internal.h"\n',
                          "is for lib/work alone")

    def test_a_missing_header(self):
        self.assert_found("layers.py", "lib/box/a.c", '#include "err.h"\n', "does not exist")

    def test_a_library_outside_its_room(self):
        for header in ("microhttpd.h", "json.h", "json-c/json.h", "json_object.h", "sqlite3.h",
                       "archive.h", "seccomp.h"):
            self.assert_found("layers.py", "lib/cell/a.c", f"#include <{header}>\n", header)

    def test_a_folder_in_no_layer(self):
        self.assert_found("layers.py", "lib/new/a.c", "", "lib/new is in no layer")

    def test_allowed_includes(self):
        self.assert_clean("layers.py", "lib/sandbox/a.c",
                          '#include <stdio.h>\n#include "lib/base/err.h"\n'
                          '#include "lib/box/box.h"\n/* #include "server/x.h" */\n')

    def test_banned_functions(self):
        for call in ("strcpy(a, b)", "sprintf (a, b)", "x = atoi(a)", "(void)system(a)", "sleep(1)",
                     "pipe(ends)", "dup(1)", "strtol(a, 0, 10)", "fork()", "getenv(a)",
                     "MHD_queue_response(a, 200, b)", "MHD_create_post_processor(a, 1, b, c)"):
            self.assert_found("banned.py", "lib/box/a.c", f"\n{call};\n", "lib/box/a.c:2: ")

    def test_descriptors_that_leak(self):
        for call in ("open(a, O_RDONLY)", "openat(d, f(1, 2), O_RDONLY, 0)", "pipe2(ends, 0)",
                     "socket(AF_UNIX, SOCK_STREAM, 0)", 'fopen(a, "r")', "eventfd(0, 0)"):
            self.assert_found("banned.py", "lib/box/a.c", f"{call};\n", "would inherit")

    def test_allowed_calls(self):
        self.assert_clean("banned.py", "lib/box/init.c",
                          "#define FLAGS (O_RDONLY | \\\n O_CLOEXEC)\n/* strcpy(a, b) */\n"
                          's = "strcpy(a)"; ops->open(a); my_open(a); open(a, FLAGS); fork();\n'
                          'open(a,\n  O_CLOEXEC); fopen(a, "re"); snprintf(a, 1, "x");\n')

    def test_a_long_file(self):
        self.assert_found("sizes.py", "lib/base/a.h", "\n" * 401, "401 lines, at most 400")

    def test_a_long_function(self):
        body = "    x();\n" * 58
        self.assert_found("sizes.py", "lib/base/a.c", f"int y;\nvoid f(void)\n{{\n{body}}}\n",
                          "lib/base/a.c:2: f has 61 lines, at most 60")
        self.assert_clean("sizes.py", "lib/base/a.c",
                          f"int y;\nvoid f(void)\n{{\n{body[9:]}}}\n")

    def test_many_parameters(self):
        self.assert_found("sizes.py", "lib/base/a.c",
                          "int f(int a, int (*b)(int, int),\n      int c, int d, int e, int g)\n"
                          "{\n}\n", "f has 6 parameters")
        self.assert_clean("sizes.py", "lib/base/a.c",
                          "int f(int a, int (*b)(int, int, int), int c, int d, int e)\n{\n}\n")

    def test_exports(self):
        self.write("lib/base/room.c", "int room; int room_a; static int x; int other; int roomy;")
        target = os.path.join(self.tree.name, "build/obj/lib/base")
        os.makedirs(target)
        code, output = self.lint("exports.py", "--build", "build")
        self.assertEqual((code, "run make first" in output), (1, True), output)
        subprocess.run(["gcc", "-c", "-o", f"{target}/room.o", "lib/base/room.c"],
                       cwd=self.tree.name, check=True)
        code, output = self.lint("exports.py", "--build", "build")
        self.assertEqual(code, 1)
        self.assertIn("lib/base/room.c: exports other\nlib/base/room.c: exports roomy\n", output)
        self.assertIn("2 found", output)

    def test_routes(self):
        self.write("api/route.c", '    { "GET", "/a/{id}/{path...}", f },\n    { "PUT", "/b", f },\n')
        shutil.copy(os.path.join(HERE, "../../api/openapi_json.py"),
                    os.path.join(self.tree.name, "api"))
        self.write("api/openapi.yaml", "paths:\n  /a/{id}/{path}: {get: {}, parameters: []}\n"
                                       "  /c: {post: {deprecated: true}}\n")
        self.write("api/retirement.c", '    { "POST", "/c", 1, 2, 0 },\n    { "PUT", "/b", 1 },\n')
        code, output = self.lint("routes.py")
        self.assertEqual(code, 1, output)
        self.assertIn("differ on whether PUT /b is deprecated", output)
        self.assertIn("lacks PUT /b", output)
        self.assertIn("lacks POST /c", output)
        self.assertIn("3 found", output)


if __name__ == "__main__":
    unittest.main()
