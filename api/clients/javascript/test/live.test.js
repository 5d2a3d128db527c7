// SPDX-License-Identifier: Apache-2.0
// What a program that is written for kern-sandbox relies on, against the server that the environment
// names (KERND_URL and KERND_TOKEN_FILE, or KERND_SOCKET), else the user's own.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { after, describe, test } = require("node:test");

const kernd = require("../index.js");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kernd-test-client-"));
after(() => fs.rmSync(folder, { recursive: true }));

// Why an image is refused: only one of the engines has any.
const NO_IMAGE = process.env.KERND_TEST_ENGINE === "kern" ? "image_not_found" : "not_supported_here";
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, at) => at));

// A test with an open sandbox.
function sandboxed(name, options, body) {
  test(name, () => kernd.withSandbox(options, body));
}

describe("execution", () => {
  sandboxed("languages and exit codes", {}, async (sandbox) => {
    for (const [language, code, out] of [
      ["python", "print('py')", "py\n"],
      ["bash", "echo sh", "sh\n"],
      ["node", "console.log([1, 2].map((x) => x * x))", "[ 1, 4 ]\n"],
    ]) {
      const result = await sandbox.runCode(code, { language });
      assert.deepEqual([result.stdout, result.exitCode, result.fault], [out, 0, null]);
    }
    await assert.rejects(sandbox.runCode("1", { language: "ruby" }), { code: "bad_value" });
    const failed = await sandbox.runCode("import sys; sys.exit(3)");
    assert.deepEqual([failed.exitCode, failed.success, failed.fault], [3, false, null]);
    const raised = await sandbox.runCode("def f():\n    raise ValueError('kaboom')\nf()");
    assert.match(raised.stderr, /ValueError: kaboom/);
    assert.equal(raised.fault, null);
    for (const code of [125, 137, 143, 159]) {
      const result = await sandbox.run(["sh", "-c", `echo 'kern: sandbox setup failed' >&2; exit ${code}`]);
      assert.deepEqual([result.exitCode, result.fault], [code, null]);
    }
  });

  test("one shot", async () => {
    const result = await kernd.runCode("print(1); 6 * 7");
    assert.deepEqual([result.stdout, result.results[0].text], ["1\n", "42"]);
    const shell = await kernd.runCode("echo $V", { language: "bash", env: { V: "w" } });
    assert.equal(shell.stdout, "w\n");
    const setUp = await kernd.runCode("print(open('s').read())", { setup: "echo set-up >s" });
    assert.equal(setUp.stdout, "set-up\n\n");
  });

  sandboxed("faults", {}, async (sandbox) => {
    const blocked = await sandbox.runCode("import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)");
    assert.deepEqual([blocked.fault.type, blocked.success], ["escape_blocked", false]);
    for (const result of [
      await sandbox.runCode("print(1, flush=True)\nwhile True: pass", { timeoutS: 1 }),
      await sandbox.run(["sh", "-c", "echo 1; sleep 30"], { timeoutS: 1 }),
    ]) {
      assert.deepEqual([result.fault.type, result.stdout], ["timeout", "1\n"]);
      assert.match(result.fault.message, /1s/);
    }
    for (const timeoutS of [0, -1, "1"]) {
      await assert.rejects(sandbox.run(["true"], { timeoutS }), { code: "bad_value" });
    }
    for (const command of ["echo hi", [], ["a\0b"], [1], undefined]) {
      await assert.rejects(sandbox.run(command), { code: "bad_value" });
    }
  });

  sandboxed("output, live and whole", { maxOutputBytes: 30_000_000 }, async (sandbox) => {
    const heard = [];
    const onStdout = (chunk) => heard.push(chunk);
    const code = "import os\nos.write(1, bytes(range(256))); os.write(2, b'e')\n6 * 7";
    const onStderr = () => {
      throw new Error("a listener's own failure is its own");
    };
    const result = await sandbox.runCode(code, { onStdout, onStderr });
    assert.deepEqual(Buffer.concat(heard), EVERY_BYTE);
    assert.deepEqual([result.stdout, result.stderr], [EVERY_BYTE.toString(), "e"]);
    assert.equal(result.results.at(-1).text, "42");
    // More than the log of events holds.
    const long = await sandbox.run(["head", "-c", "20000000", "/dev/zero"], { onStdout });
    assert.deepEqual([long.stdout.length, Buffer.concat(heard).length], [20_000_000, 20_000_256]);
    assert.equal(long.truncated, false);
  });

  test("callbacks of the sandbox, and cut output", async () => {
    const heard = [];
    const options = { maxOutputBytes: 1024, onStdout: (chunk) => heard.push(chunk) };
    await kernd.withSandbox(options, async (sandbox) => {
      const quiet = await sandbox.run(["head", "-c", "5000", "/dev/zero"], { onStdout: null });
      assert.deepEqual([quiet.stdout.length, quiet.truncated, heard.length], [1024, true, 0]);
      await sandbox.run(["echo", "loud"]);
      assert.equal(Buffer.concat(heard).toString(), "loud\n");
    });
  });

  sandboxed("many at once", { env: { GIVEN: "value" } }, async (sandbox) => {
    const calls = Array.from({ length: 16 }, (_, at) => sandbox.run(["sh", "-c", `echo $GIVEN ${at}`]));
    const out = (await Promise.all(calls)).map((result) => result.stdout);
    assert.deepEqual(out, calls.map((_, at) => `value ${at}\n`));
  });

  sandboxed("isolation", {}, async (sandbox) => {
    const outside = await sandbox.runCode("import socket; socket.create_connection(('192.0.2.1', 9), 2)");
    assert.equal(outside.success, false);
    const evil = await sandbox.runCode("open('/usr/evil', 'w')");
    assert.match(evil.stderr, /Read-only/);
    assert.equal(evil.fault, null);
  });

  test("what the server refuses", async () => {
    await assert.rejects(kernd.runCode("1", { image: "no/such:1" }), { code: NO_IMAGE });
    await assert.rejects(new kernd.Sandbox({ workspace: "/etc" }).open(), kernd.MountRefused);
    await assert.rejects(new kernd.Sandbox({ setup: "exit 4" }).open(), { code: "setup_failed" });
    await assert.rejects(new kernd.Sandbox({ setup: "exit 4", onStdout() {} }).open(), { code: "setup_failed" });
    const nobody = new kernd.Server({ socketPath: "/nonexistent" });
    await assert.rejects(kernd.runCode("1", { server: nobody }), { code: "disconnected" });
  });
});

describe("files", () => {
  sandboxed("round trip", {}, async (sandbox) => {
    await sandbox.writeFile("n.txt", "40");
    await sandbox.writeFile("a/b/ü %.bin", EVERY_BYTE);
    assert.equal((await sandbox.runCode("print(int(open('n.txt').read()) + 2)")).stdout, "42\n");
    assert.deepEqual(await sandbox.readFile("a/b/ü %.bin"), EVERY_BYTE);
    assert.equal(String(await sandbox.readFile("/workspace/a/../n.txt")), "40");
    assert.deepEqual(await sandbox.listFiles("a"), [{ path: "a/b/ü %.bin", size: 256, change: "created" }]);
    assert.equal((await sandbox.listFiles()).length, 2);
    assert.equal((await sandbox.readFile("n.txt", { maxBytes: 2 })).length, 2);
    await assert.rejects(sandbox.readFile("n.txt", { maxBytes: 1 }), { code: "too_large" });
    await assert.rejects(sandbox.readFile("none"), { code: "file_not_found" });
  });

  sandboxed("changes are told", {}, async (sandbox) => {
    const created = await sandbox.runCode("open('f', 'w').write('a')\n'done'");
    assert.deepEqual(created.files, [{ path: "f", size: 1, change: "created" }]);
    const modified = await sandbox.runCode("open('f', 'w').write('bb')");
    assert.deepEqual(modified.files, [{ path: "f", size: 2, change: "modified" }]);
    assert.deepEqual((await sandbox.run(["rm", "f"])).deleted, ["f"]);
  });

  sandboxed("nothing is told without trackFiles", { trackFiles: false }, async (sandbox) => {
    const result = await sandbox.runCode("open('f', 'w').write('a'); 6 * 7");
    assert.deepEqual([result.files, result.results[0].text], [[], "42"]);
  });

  sandboxed("nothing outside is reached", {}, async (sandbox) => {
    const outside = fs.mkdtempSync(path.join(folder, "outside-"));
    const planted = await sandbox.runCode(
      "import os; os.symlink('/etc/passwd', 'link'); os.makedirs('d')\n" +
        `os.symlink('/etc', 'd/esc'); os.symlink('${outside}', 'out')`,
    );
    assert.ok(planted.success);
    for (const name of ["link", "../../../etc/passwd", "/etc/passwd", "d/esc/hostname", "", "."]) {
      await assert.rejects(sandbox.readFile(name), kernd.SandboxError, name);
    }
    for (const name of ["out/x", "d/esc/x", "../x"]) {
      await assert.rejects(sandbox.writeFile(name, "x"), kernd.SandboxError, name);
    }
    await assert.rejects(sandbox.listFiles("d/esc"), kernd.SandboxError);
    assert.deepEqual(fs.readdirSync(outside), []);
  });

  sandboxed("snapshots", {}, async (sandbox) => {
    const archive = path.join(folder, "s.tgz");
    await sandbox.writeFile("sub/b.txt", "deep");
    await sandbox.snapshot(archive);
    await kernd.withSandbox(async (other) => {
      await other.writeFile("kept", "1");
      await other.restore(archive);
      assert.equal(String(await other.readFile("sub/b.txt")), "deep");
      assert.equal(String(await other.readFile("kept")), "1");
      fs.writeFileSync(archive, "no archive");
      await assert.rejects(other.restore(archive), kernd.SandboxError);
      await assert.rejects(other.restore(path.join(folder, "none")), kernd.SandboxError);
      await assert.rejects(other.snapshot(path.join(folder, "none", "x")), kernd.SandboxError);
    });
  });

  test("close() waits for an archive, and is final", async () => {
    const archive = path.join(folder, "late.tgz");
    const sandbox = await new kernd.Sandbox().open();
    await sandbox.writeFile("x", "1");
    sandbox.snapshot(archive);
    await sandbox.close();
    assert.ok(fs.statSync(archive).size > 0);
    await assert.rejects(sandbox.readFile("x"), { code: "not_open" });
    await sandbox.close();
  });
});

describe("rich results", () => {
  sandboxed("values of every kind", {}, async (sandbox) => {
    const shown = await sandbox.runCode("display(1); display(2); print('done')");
    assert.deepEqual([shown.results.map((result) => result.text), shown.stdout], [["1", "2"], "done\n"]);
    assert.deepEqual((await sandbox.runCode("print('x')")).results, []);
    const code =
      "class R:\n" +
      "    def _repr_html_(self): return '<b>hi</b>'\n" +
      "    def _repr_json_(self): return {'a': [1]}\n" +
      "    def _repr_png_(self): return b'\\x89PNG'\n" +
      "R()";
    const [rich] = (await sandbox.runCode(code)).results;
    assert.deepEqual([rich.html, rich.json, rich.jpeg], ["<b>hi</b>", '{"a":[1]}', null]);
    assert.deepEqual(rich.png, Buffer.from("\x89PNG", "latin1"));
    assert.ok(rich.text && rich.formats().includes("text/html"));
  });
});

describe("kernels", () => {
  sandboxed("variables stay", { pids: 128 }, async (sandbox) => {
    const kernel = await sandbox.kernel();
    assert.deepEqual((await kernel.runCode("x = 40")).results, []);
    const second = await kernel.runCode("y = x + 2\nprint('y', y)\ny");
    assert.deepEqual([second.stdout, second.results[0].text], ["y 42\n", "42"]);
    const failed = await kernel.runCode("1 / 0");
    assert.deepEqual([failed.exitCode, failed.fault], [1, null]);
    const raw = await kernel.runCode(
      "import os, subprocess; os.write(1, b'raw\\n'); subprocess.run(['printf', 'sub']); print('p')",
    );
    for (const word of ["raw", "sub", "p"]) {
      assert.ok(raw.stdout.includes(word));
    }
    const forked = await kernel.runCode(
      "for _ in range(15):\n    pid = os.fork()\n    if pid == 0: os._exit(0)\n    os.waitpid(pid, 0)\n" +
        "import sys; print(repr(sys.stdin.read()), y)",
    );
    assert.equal(forked.stdout, "'' 42\n");
    // Cells that are sent at once run one after the other.
    const cells = await Promise.all([1, 2, 3].map((n) => kernel.runCode(`x += ${n}; x`)));
    assert.deepEqual(Math.max(...cells.map((cell) => Number(cell.results[0].text))), 46);
    await kernel.close();
    await assert.rejects(kernel.runCode("1"), { code: "not_open" });
  });

  sandboxed("deadlines", {}, async (sandbox) => {
    const killed = await sandbox.kernel({ timeoutS: 1 });
    assert.equal((await killed.runCode("while True: pass")).fault.type, "timeout");
    await assert.rejects(killed.runCode("1"), { code: "kernel_dead" });
    const kept = await sandbox.kernel({ onTimeout: "interrupt" });
    await kept.runCode("x = 1");
    assert.equal((await kept.runCode("while True: pass", { timeoutS: 0.5 })).fault.type, "timeout");
    assert.equal((await kept.runCode("x")).results[0].text, "1");
  });

  sandboxed("much output is cut, and a death is told", { maxOutputBytes: 1 << 20 }, async (sandbox) => {
    const kernel = await sandbox.kernel();
    const result = await kernel.runCode("print('A' * 5_000_000)");
    assert.deepEqual([result.stdout.length, result.truncated], [1 << 20, true]);
    assert.equal((await kernel.runCode("import os; os._exit(5)")).success, false);
    await assert.rejects(kernel.runCode("1"), { code: "kernel_dead" });
  });
});

test("no timer is left that holds the event loop", async () => {
  await kernd.withSandbox(async (sandbox) => {
    await sandbox.run(["true"], { onStdout() {} });
  });
  assert.ok(!process.getActiveResourcesInfo().includes("Timeout"));
});
