// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { MCPServerStreamableHttp } from "@openai/agents";
import { endless, figure, headers, holdsPixel, url } from "./scenario.mjs";

const connect = async (more) => {
  const server = new MCPServerStreamableHttp({
    url, name: "kernd", requestInit: { headers }, cacheToolsList: false, ...more,
  });
  await server.connect();
  return server;
};

const server = await connect();
const names = (await server.listTools()).map((tool) => tool.name);
assert.ok(names.includes("run_code"), String(names));
const call = (name, args) => server.callTool(name, args);
assert.match(JSON.stringify(await call("run_code", { code: "print(6 * 7)" })), /42/);
assert.ok(holdsPixel(JSON.stringify(await call("run_code", { code: figure }))));

// It has no signal for a call; its time limit cancels as well.
const hasty = await connect({ timeout: 2000 });
await assert.rejects(hasty.callTool("run_command", { command: endless }));
console.log("cancelled");
await hasty.callTool("session_info", {});
await hasty.close();
await server.close();
process.exit(0);
