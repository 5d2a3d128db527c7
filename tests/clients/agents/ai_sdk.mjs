// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createMCPClient } from "@ai-sdk/mcp";
import { endless, figure, headers, holdsPixel, url } from "./scenario.mjs";

const client = await createMCPClient({ transport: { type: "http", url, headers } });
const tools = await client.tools();
const call = (name, input, abortSignal) =>
  tools[name].execute(input, { toolCallId: "1", messages: [], abortSignal });

assert.ok(tools.run_code && tools.session_info);
assert.match(JSON.stringify(await call("run_code", { code: "print(6 * 7)" })), /42/);
assert.ok(holdsPixel(JSON.stringify(await call("run_code", { code: figure }))));
assert.equal((await call("run_command", { command: "exit 3" })).isError, true);

const abort = new AbortController();
setTimeout(() => abort.abort(), 2000);
await assert.rejects(call("run_command", { command: endless }, abort.signal));
console.log("cancelled");
await client.close();
process.exit(0);
