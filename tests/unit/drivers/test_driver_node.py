# SPDX-License-Identifier: Apache-2.0
"""The node drivers: one-shot code beside `node -e`, and cells of a kernel."""
import os
import re
import socket
import struct
import subprocess
import tempfile
import time
import unittest

from driver_harness import (CELL, ENVIRONMENT, LIBRARY, LIMIT_S, MODE_ONCE, READY, Kernel,
                            read_frame)

NODE = "/usr/bin/node"
LINK = 250  # the descriptor of its connection

SAME_AS_EVAL = (
    "console.log(1+1, os.cpus().length > 0, typeof fs.readFileSync, process.argv.length)",
    "console.log(__filename, __dirname, module.id, module.filename, module.paths[0], module.children)",
    "console.log(require.main === module, this === globalThis, Object.keys(require.cache))",
    "var q = 1; let r = 2; setTimeout(() => console.log('late', q, globalThis.q, globalThis.r), 5)",
    "process.exitCode = 3", "process.exit(4)", "process.kill(process.pid, 'SIGTERM')",
    "import('./a.mjs').then((m) => console.log(m.a)); import('fs').then((m) => console.log(!!m))",
    "import fs from 'fs'; import { a } from './a.mjs'; console.log(typeof fs.readFileSync, a)",
    "import fs from 'fs'; console.log(import.meta.url)", "import x from 'fs'; process.exit()",
    "await 1; console.log('top')", "await new Promise(() => {})", "await 1; process.exitCode = 4",
    "const os = 5; console.log(os)", "os = 6; console.log(os)",
    "new (require('worker_threads').Worker)('console.log(1)', { eval: true })",
    "#!/usr/bin/node\nconsole.log('shebang')", "\ufeffconsole.log('mark')", "", "// nothing",
    "console.log(fs.readFileSync(0, 'utf8'))", "x = 5; console.log(typeof globalThis.x)",
    "process.nextTick(() => console.log('tick')); Promise.resolve().then(() => console.log('then')); "
    "console.log(require('async_hooks').executionAsyncId())",
    "setImmediate(() => console.log('immediate')); Promise.resolve().then(() => console.log('micro'))",
    "process.on('exit', () => console.log('end', process.listenerCount('exit')))",
    "function foo() {} console.log(typeof globalThis.foo)", "42",
    "process.on('exit', (c) => { console.log(1, c); process.exitCode = 5 }); "
    "process.on('exit', (c) => console.log(2, c, process.exitCode))",
    "process.on('exit', () => { throw new Error('late') }); process.on('exit', () => console.log(2))",
    "process.on('exit', () => process.exit(6)); process.on('exit', () => console.log(2))",
    "process.emit('exit', 3); console.log('still here')",
    "for (let i = 0; i < 10; i++) process.on('exit', () => console.log(i)); console.log(process.emit('x'))",
    "process.once('beforeExit', () => { console.log('before'); setTimeout(() => console.log('more'), 5) })",
    "process.stdout.write('x'.repeat(3000000)); process.exitCode = 2",
    "process.stdout.write('x'.repeat(3000000)); process.stderr.write('y'.repeat(1000))",
    "process.on('exit', () => { setTimeout(() => console.log('never'), 1); console.log('end') })",
    "new (require('worker_threads').Worker)('process.exit(3)', { eval: true }).on('exit', console.log)",
    "process.emit = () => console.log('mine'); process.emit('x')",
    "console.log(Object.keys(process).includes('emit'), process.listenerCount('exit'))",
    "new (require('worker_threads').Worker)('setInterval(() => {}, 5)', { eval: true })"
    ".on('online', () => process.exit(0))",
)
FIRST_LINES_AS_EVAL = (
    "throw new Error('x')", "let x = ;", "Promise.reject(new Error('r'))", "undefinedName",
    "import fs from 'fs'; throw new Error('x')", "throw 5",
)


def refuses_modules(outcome):
    """Did an older node (before 20.19) refuse code that is a module? We run it there too."""
    return outcome[0] == 1 and re.search("outside a module|await is only valid", outcome[2])


class OneShot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "a.mjs"), "w", encoding="utf-8") as file:
            file.write("export const a = 5;\n")

    def outcome(self, program, prepare=None, talk=lambda: None):
        with subprocess.Popen(program, cwd=self.folder, env=ENVIRONMENT, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=prepare, close_fds=prepare is None) as process:
            self.process = process
            talk()
            out, err = process.communicate(b"in", timeout=LIMIT_S)
        return process.returncode, out.decode(), err.decode()

    def run_eval(self, code):
        return self.outcome([NODE, "-e", code])

    def run_driver(self, path, environment=b"", look=lambda: None):
        """As kernd-init starts it: connected already. look: is called while it waits for its code."""
        ours, theirs = socket.socketpair()

        def talk():
            theirs.close()
            kind, text = read_frame(ours)
            self.assertEqual((kind, text[:7]), (READY, b"\x01node v"))
            look()
            fields = b"".join(struct.pack(">BI", tag, len(data)) + data
                              for tag, data in ((1, path.encode()), (4, environment)))
            payload = struct.pack(">BBII", MODE_ONCE, 0, 1000, 1) + fields
            ours.sendall(struct.pack(">BI", CELL, len(payload)) + payload)
        with ours:
            return self.outcome([NODE, os.path.join(LIBRARY, "driver.js")],
                                lambda: os.dup2(theirs.fileno(), LINK), talk)

    def write_code(self, code):
        path = os.path.join(self.folder, "code")
        with open(path, "w", encoding="utf-8") as file:
            file.write(code)
        return path

    def both(self, code):
        path = self.write_code(code)
        ours = self.run_driver(path)
        os.unlink(path)
        return ours, self.run_eval(code.replace("\ufeff", ""))

    def test_variables_of_the_call_are_there(self):
        path = os.path.join(self.folder, "code")
        with open(path, "w", encoding="utf-8") as file:
            file.write("console.log(process.env.A, process.env.B, "
                       "child_process.execSync('echo $A').toString())")
        ours = self.run_driver(path, "A=é=1\0B=\0".encode())
        self.assertEqual(ours, (0, "é=1  é=1\n\n", ""))

    def test_what_a_library_does_at_the_end_is_done(self):
        source, library = (os.path.join(self.folder, name) for name in ("bye.c", "bye.node"))
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <unistd.h>\n"
                       "void *napi_register_module_v1(void *env, void *exports)\n"
                       "{ (void)env; return exports; }\n"
                       "__attribute__((destructor)) static void bye(void)\n"
                       "{ (void)!write(1, \"bye\\n\", 4); }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        ours, theirs = self.both("require('./bye.node'); console.log('here')")
        self.assertEqual(ours, theirs)
        self.assertEqual(ours, (0, "here\nbye\n", ""))

    def test_what_threads_were_given_is_done(self):
        code = "for (let i = 0; i < 8; i++) fs.open('late' + i, 'w', () => console.log('never')); process.exit(0)"
        for run in (lambda: self.run_driver(self.write_code(code)), lambda: self.run_eval(code)):
            self.assertEqual(run(), (0, "", ""))
            made = sorted(name for name in os.listdir(self.folder) if name.startswith("late"))
            self.assertEqual(made, [f"late{number}" for number in range(8)])
            for name in made:
                os.unlink(os.path.join(self.folder, name))

    def resident(self):
        """KiB of files that a node has mapped which waits for its code."""
        found = []

        def look():
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
                found.append(int(re.search(r"RssFile:\s+(\d+)", file.read())[1]))
        self.assertEqual(self.run_driver(self.write_code("console.log(1)"), look=look), (0, "1\n", ""))
        return found[0]

    def test_what_only_its_start_needed_is_given_back(self):
        self.assertLess(self.resident(), 0.7 * self.resident_of_another_node())

    def resident_of_another_node(self):
        """Where the add-on can't be loaded everything works without it."""
        place = os.path.join(LIBRARY, "kernd-node.so")
        os.rename(place, place + ".away")
        try:
            return self.resident()
        finally:
            os.rename(place + ".away", place)

    def test_what_it_was_told_to_write_at_the_end_is_written(self):
        """By variables that node reads at its start: then it ends as it always does."""
        for name, value, left in (("NODE_OPTIONS", "--trace-event-categories=v8", "node_trace"),
                                  ("NODE_V8_COVERAGE", self.folder, "coverage")):
            ENVIRONMENT[name] = value
            try:
                done = self.run_driver(self.write_code("console.log(1)"))
            finally:
                del ENVIRONMENT[name]
            self.assertEqual(done, (0, "1\n", ""))
            self.assertTrue([entry for entry in os.listdir(self.folder) if left in entry], name)

    def test_nothing_of_the_way_it_was_started_is_left(self):
        code = ("console.log(process._getActiveHandles().filter((h) => h.fd > 2).length, "
                "process._getActiveRequests().length, fs.existsSync('/proc/self/fd/250'), "
                "fs.readFileSync('/proc/self/fdinfo/2', 'utf8').split('\\n')[1])")
        ours, theirs = self.both(code)
        self.assertEqual(ours, theirs)
        self.assertEqual(ours[1].split()[:3], ["0", "0", "false"])

    def test_same_as_eval(self):
        for code in SAME_AS_EVAL:
            with self.subTest(code):
                ours, theirs = self.both(code)
                if not refuses_modules(theirs):
                    # From 22 on node adds a warning where an await never ends.
                    self.assertEqual((*ours[:2], ours[2] or theirs[2].partition("Warning: Det")[0]),
                                     (*theirs[:2], theirs[2].partition("Warning: Det")[0]))

    def test_modules_work_whatever_the_version(self):
        ours, _ = self.both("import { a } from './a.mjs'; console.log(await a)")
        self.assertEqual(ours, (0, "5\n", ""))

    def test_errors_begin_as_in_eval(self):
        for code in FIRST_LINES_AS_EVAL:
            with self.subTest(code):
                ours, theirs = self.both(code)
                if refuses_modules(theirs):
                    continue
                self.assertEqual(ours[:2], theirs[:2])
                expected = theirs[2].split("\n    at ")[0].replace("\nExpression expected", "")
                self.assertEqual(ours[2].split("\n    at ")[0], expected)


class InAKernel(unittest.TestCase):
    def setUp(self):
        self.kernel = Kernel(program=(NODE, "driver_kernel.js"))
        self.addCleanup(self.kernel.close)

    def good(self, code, **options):
        done = self.kernel.cell(code, **options)
        self.assertEqual((done.code, done.stderr, done.interrupted), (0, "", False), done)
        return done.stdout, [result.text for result in done.results]

    def until(self, text):
        data = b""
        deadline = time.monotonic() + 30
        while text.encode() not in data and time.monotonic() < deadline:
            data += self.kernel.process.stdout.read() or b""
        self.assertIn(text.encode(), data)

    def test_declarations_stay_and_may_be_repeated(self):
        self.good("let x = 1; const y = 2; class A {} function f() { return x + y }")
        self.assertEqual(self.good("f()"), ("", ["3"]))
        self.good("let x = 10; const y = 20; class A {} function f() { return x * y }")
        self.assertEqual(self.good("f()"), ("", ["200"]))

    def test_values(self):
        for code, text in {"1n": "1n", "Symbol('x')": "Symbol(x)", "NaN": "NaN", "-0": "-0",
                           "null": "null", "'a'": "'a'", "({a: [1]})": "{ a: [ 1 ] }",
                           "(async () => 5)()": "5", "await 6": "6", "x = 7;": "7",
                           "new Map([[1, 2]])": "Map(1) { 1 => 2 }"}.items():
            with self.subTest(code):
                self.assertEqual(self.good(code), ("", [text]))
        self.assertEqual(self.good("undefined"), ("", []))
        self.assertEqual(self.good("let z = 1"), ("", []))
        done = self.kernel.cell("({a: 1, b: [null, 'é']})")
        self.assertEqual(done.results[0].data["application/json"], '{"a":1,"b":[null,"é"]}')
        self.assertTrue(done.results[0].is_main)

    def test_display(self):
        done = self.kernel.cell("""
            display(1); display({'text/html': '<b>', 'image/png': new Uint8Array([137, 80])}, {raw: true});
            display({[Symbol.for('Jupyter.display')]() { return {'text/markdown': '*x*'} }}); 2""")
        self.assertEqual([result.data for result in done.results], [
            {"text/plain": "1"}, {"text/html": "<b>", "image/png": "iVA="},
            {"text/markdown": "*x*"}, {"text/plain": "2"}])
        done = self.kernel.cell("'x'.repeat(1000)", text_max=100)
        self.assertTrue(done.results[0].shortened)

    def test_imports(self):
        self.assertEqual(self.good("import fs, { readFileSync as r } from 'fs'\n"
                                   "import * as p from 'path'\nimport 'os'\n"
                                   "[typeof fs.readFileSync, typeof r, typeof p.join].join()"),
                         ("", ["'function,function,function'"]))
        self.assertEqual(self.good("const { join } = await import('path'); join('a', 'b')"),
                         ("", ["'a/b'"]))
        self.assertEqual(self.good("const t = 'import(1)'; /import('x')/; t // import(2)"),
                         ("", ["'import(1)'"]))
        self.assertEqual(self.kernel.cell("await import('nope-nope')").code, 1)

    def test_errors(self):
        self.good("function f() { throw new Error('b') }")
        done = self.kernel.cell("f()")
        self.assertEqual((done.code, done.stderr),
                         (1, "Error: b\n    at f (cell-1:1:22)\n    at cell-2:1:1\n"))
        done = self.kernel.cell("\nlet x = ;")
        self.assertEqual((done.code, done.stderr), (
            1, "cell-3:2\nlet x = ;\n        ^\n\nSyntaxError: Unexpected token ';'\n"))
        self.assertEqual(self.kernel.cell("throw 5").stderr, "Uncaught 5\n")
        self.assertEqual(self.kernel.cell("Promise.reject(new TypeError('no'))").code, 1)
        done = self.kernel.cell("setTimeout(() => { throw new Error('t') }, 1); await new Promise(() => {})")
        self.assertEqual(done.code, 1)
        self.assertIn("Error: t", done.stderr)
        self.assertEqual(self.good("1"), ("", ["1"]))

    def test_exits_keep_the_kernel(self):
        for code, exit_code in {"process.exit(3)": 3, "process.exit()": 0, "process.exitCode = 7": 7,
                                "setTimeout(() => process.exit(4), 1); await new Promise(() => {})": 4,
                                "process.exit(256)": 0}.items():
            self.assertEqual(self.kernel.cell(code).code, exit_code, code)
        self.assertEqual(self.good("1"), ("", ["1"]))

    def test_streams(self):
        self.assertEqual(self.good("console.log('a'); process.stdout.write('b'); undefined"),
                         ("a\nb", []))
        self.assertEqual(self.good("require('child_process').execSync('echo c', {stdio: 'inherit'});"
                                   "undefined"), ("c\n", []))
        self.assertEqual(self.good("fs.closeSync(1)"), ("", []))
        self.assertEqual(self.good("console.log('again')"), ("again\n", []))
        self.assertEqual(self.good("fs.readFileSync(0, 'utf8')", stdin=b"abc"), ("", ["'abc'"]))
        self.assertEqual(self.good("fs.readFileSync(0, 'utf8')"), ("", ["''"]))
        self.assertEqual(self.good("let d = ''; for await (const c of process.stdin) d += c; d",
                                   stdin=b"stream"), ("", ["'stream'"]))
        self.assertEqual(self.good("process.env.A + process.cwd()", environment=b"A=b\0",
                                   directory=b"/"), ("", ["'b/'"]))

    def test_interrupts(self):
        for code in ("while (true);", "await new Promise(() => {})"):
            self.kernel.start("console.log('begun'); " + code)
            self.until("begun")
            self.kernel.interrupt()
            done = self.kernel.finish()
            self.assertEqual((done.code, done.interrupted, done.stderr), (130, True, "Interrupted\n"))
            self.assertEqual(self.good("1"), ("", ["1"]))
        for _ in range(20):
            self.kernel.start("await new Promise(() => {})")
            self.kernel.interrupt()
            self.assertEqual(self.kernel.finish().code, 130)
            self.good("for (let i = 0, a; i < 3e5; i++) a = { i };")  # collects garbage
        self.kernel.interrupt()
        self.assertEqual(self.good("let n = 0; for (let i = 0; i < 3e8; i++) n++; n"),
                         ("", ["300000000"]))

    def test_interrupts_at_any_moment(self):
        self.good("let n = 0")
        for number in range(60):
            self.kernel.start("n++; for (let i = 0, a; i < %d; i++) a = { i }; await 1; n"
                              % (number * number * 3000))
            self.kernel.interrupt()
            done = self.kernel.finish()
            self.assertIn((done.code, done.interrupted), ((0, False), (130, True)), done)
        self.assertEqual(self.good("typeof n"), ("", ["'number'"]))

    def test_an_interrupt_of_a_cell_that_was_not_taken(self):
        """As when the first interrupt stopped the main thread while it took the cell."""
        with open(os.path.join(LIBRARY, "driver_kernel.js"), encoding="utf-8") as file:
            text = file.read()
        taking = "if (message.cell) begin"
        self.assertIn(taking, text)
        with open(os.path.join(LIBRARY, "driver_lossy.js"), "w", encoding="utf-8") as file:
            file.write(text.replace(taking, "if (message.cell?.number === 1) begin"))
        lossy = Kernel(program=(NODE, "driver_lossy.js"))
        self.addCleanup(lossy.close)
        self.assertEqual(lossy.cell("1").code, 0)
        lossy.start("2")
        lossy.interrupt()
        done = lossy.finish()
        self.assertEqual((done.code, done.interrupted, done.stderr), (130, True, "Interrupted\n"))

    def test_the_end_of_the_connection_is_the_end(self):
        self.good("process.on('exit', () => console.log('bye')); undefined")
        self.kernel.connection.close()
        self.assertEqual(self.kernel.process.wait(30), 0)
        self.assertEqual(self.kernel.process.stdout.read(), b"bye\n")


if __name__ == "__main__":
    unittest.main()
