// SPDX-License-Identifier: Apache-2.0
// openapi-fetch with the types that openapi-typescript makes: a life of a session, and what the
// compiler must refuse.
import assert from "node:assert/strict";

import createClient from "openapi-fetch";

import type { components, paths } from "./types.js";

const client = createClient<paths>({
  baseUrl: process.env.KERND_BASE,
  headers: { Authorization: `Bearer ${process.env.KERND_TOKEN}` },
});

// What the answer must have had.
function given<T>(answer: { data?: T; error?: unknown }): T {
  assert.equal(answer.error, undefined, JSON.stringify(answer.error));
  assert.ok(answer.data !== undefined);
  return answer.data;
}

// Who asks neither for a stream nor for an answer at once has a result.
function result(answer: { data?: unknown; error?: unknown }): components["schemas"]["Result"] {
  return given(answer) as components["schemas"]["Result"];
}

const version = given(await client.GET("/v1/version"));
assert.equal(typeof version.version, "string");

const sum = result(await client.POST("/v1/runCode", { body: { code: "6 * 7", language: "python" } }));
assert.equal(sum.results[0]?.data["text/plain"], "42");
assert.equal(sum.fault, null);
const late = result(await client.POST("/v1/run", { body: { command: ["sleep", "30"], timeoutS: 0.3 } }));
assert.equal(late.fault?.type, "timeout");

const labels = { made: "by a client" };
const session = given(await client.POST("/v1/sessions", { body: { labels } })) as components["schemas"]["Session"];
const id = { id: session.id };
const put = await client.PUT("/v1/sessions/{id}/files/{path}", {
  params: { path: { ...id, path: "n.txt" } },
  headers: { "Content-Type": "application/octet-stream" },
  body: "40" as never,
  bodySerializer: (body) => body,
});
assert.equal(put.response.status, 201, JSON.stringify(put.error));
const code = "print(int(open('n.txt').read()) + 2)";
const run = result(await client.POST("/v1/sessions/{id}/runCode", { params: { path: id }, body: { code } }));
assert.equal(run.stdout, "42\n");
const query = { recursive: true, glob: "*.txt" };
const files = given(await client.GET("/v1/sessions/{id}/files", { params: { path: id, query } }));
assert.deepEqual(
  files.items.map((file) => [file.path, file.type, file.size]),
  [["n.txt", "file", 2]],
);
const kernel = given(await client.POST("/v1/sessions/{id}/kernels", { params: { path: id }, body: {} }));
const cell = await client.POST("/v1/sessions/{id}/kernels/{kid}/cells", {
  params: { path: { ...id, kid: kernel.id } },
  body: { code: "x = 41; x + 1", onTimeout: "interrupt" },
});
assert.equal(result(cell).results[0]?.data["text/plain"], "42");
const executions = given(await client.GET("/v1/executions", { params: { query: { sessionId: session.id } } }));
assert.deepEqual(executions.items.map((item) => item.kind), ["cell", "runCode"]);
const gone = await client.DELETE("/v1/sessions/{id}", { params: { path: id } });
assert.equal(gone.response.status, 204);

const refused = await client.GET("/v1/sessions/{id}", { params: { path: id } });
assert.equal(refused.error?.code, "session_not_found");
assert.ok(refused.error.remediation);

// What the compiler must refuse; the server does, too.
// @ts-expect-error there is no such language
const language = await client.POST("/v1/runCode", { body: { code: "1", language: "ruby" } });
assert.equal(language.error?.errors[0]?.pointer, "/language");
const field = await client.POST("/v1/run", { body: { command: ["true"], timeout: 3 } });
assert.equal(field.error?.code, "unknown_field");
// @ts-expect-error a command is a list
const line = await client.POST("/v1/run", { body: { command: "true" } });
assert.equal(line.error?.errors[0]?.pointer, "/command");
// @ts-expect-error there is no such route
await client.POST("/v1/runcode", { body: { code: "1" } });
