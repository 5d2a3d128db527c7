// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { endless, figure, headers, holdsPixel, url } from "./scenario.mjs";

const client = new MultiServerMCPClient({
  mcpServers: { kernd: { transport: "http", url, headers } },
  useStandardContentBlocks: false,
});
const tools = Object.fromEntries((await client.getTools()).map((tool) => [tool.name, tool]));
assert.match(JSON.stringify(await tools.run_code.invoke({ code: "print(6 * 7)" })), /42/);
assert.ok(holdsPixel(JSON.stringify(await tools.run_code.invoke({ code: figure }))));
await assert.rejects(tools.run_command.invoke({ command: "exit 3" }), /exit code 3/);

const abort = new AbortController();
setTimeout(() => abort.abort(), 2000);
await assert.rejects(tools.run_command.invoke({ command: endless }, { signal: abort.signal }));
console.log("cancelled");
await client.close();
process.exit(0);
