// SPDX-License-Identifier: Apache-2.0
// The functions that hey-api makes of the description.
import assert from "node:assert/strict";

import { client } from "./generated/client.gen.js";
import { createSession, deleteSession, getExecution, readFile, runBatch, runCode, runInSession, writeFile } from "./generated/index.js";

import type { Result } from "./generated/index.js";

client.setConfig({ baseUrl: process.env.KERND_BASE, auth: process.env.KERND_TOKEN });

// Who asks neither for a stream nor for an answer at once has a result.
const sum = (await runCode({ body: { code: "6 * 7" }, throwOnError: true })).data as Result;
assert.equal(sum.results[0]?.data["text/plain"], "42");
const record = await getExecution({ path: { id: sum.id }, query: { waitS: 5 }, throwOnError: true });
assert.equal(record.data.state, "done");
const batch = await runBatch({ body: { items: [{ command: ["uname"] }, { code: "print(2)" }] }, throwOnError: true });
assert.deepEqual(batch.data.items.map((item) => item.result?.stdout), ["Linux\n", "2\n"]);

const session = await createSession({ body: {}, throwOnError: true });
const id = session.data.id;
await writeFile({
  path: { id, path: "n.bin" },
  headers: { "Content-Type": "application/octet-stream" },
  body: new Blob([new Uint8Array([0, 255])]),
  bodySerializer: (body: unknown) => body,
  throwOnError: true,
});
const bytes = await readFile({ path: { id, path: "n.bin" }, parseAs: "arrayBuffer", throwOnError: true });
assert.deepEqual([...new Uint8Array(bytes.data as unknown as ArrayBuffer)], [0, 255]);
const run = await runInSession({ path: { id }, body: { command: ["wc", "-c", "n.bin"] }, throwOnError: true });
assert.equal((run.data as Result).stdout, "2 n.bin\n");
await deleteSession({ path: { id }, throwOnError: true });

const refused = await runInSession({ path: { id }, body: { command: ["true"] } });
assert.equal(refused.error?.code, "session_not_found");
// @ts-expect-error a body is needed
await assert.rejects(runCode({ throwOnError: true }));
