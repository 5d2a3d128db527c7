// SPDX-License-Identifier: Apache-2.0
// The types of this project's own client for JavaScript.
import assert from "node:assert/strict";

import kernd, { Kernel, Sandbox, SandboxError, runCode, withSandbox } from "kernd";
import type { ExecutionResult, FileInfo, SandboxOptions } from "kernd";

const options: SandboxOptions = { timeoutS: 10, env: { A: "b" }, mounts: { "/usr/share": ["/data", "ro"] } };
const length: number = await withSandbox(options, async (sandbox: Sandbox) => {
  await sandbox.writeFile("n.txt", "40");
  const files: FileInfo[] = await sandbox.listFiles();
  const result: ExecutionResult = await sandbox.runCode("echo $A", { language: "bash", onStdout: null });
  const kernel: Kernel = await sandbox.kernel({ onTimeout: "interrupt" });
  const text: string | undefined = (await kernel.runCode("1 + 1")).results[0]?.text;
  await kernel.close();
  const bytes: Buffer = await sandbox.readFile("n.txt", { maxBytes: 10 });
  assert.deepEqual([files.length, result.stdout, text, bytes.toString()], [1, "b\n", "2", "40"]);
  return bytes.length;
});
assert.equal(length, 2);
const late = await runCode("while True: pass", { timeoutS: 0.5 });
assert.equal(late.fault?.type, "timeout");
assert.equal(typeof kernd.version, "string");

// @ts-expect-error there is no such language
await assert.rejects(runCode("1", { language: "ruby" }), SandboxError);
// @ts-expect-error a command is a list
await assert.rejects(withSandbox((sandbox) => sandbox.run("ls -l")), { code: "bad_value" });
// @ts-expect-error a fault has no such type
assert.ok(late.fault?.type !== "fire");
