// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { headers, tryAll, url } from "./scenario.mjs";

// The socket is its owner's alone.
function bridge() {
  const command = [process.env.KERND_PROGRAM, "mcp", "--socket", process.env.KERND_SOCKET];
  const user = process.env.KERND_USER;
  if (user) command.unshift("setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups");
  return new StdioClientTransport({ command: command[0], args: command.slice(1) });
}

function transport(kind) {
  return kind === "stdio"
    ? bridge()
    : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
}

const client = new Client({ name: "sdk-v1", version: "1" });
await client.connect(transport(process.argv[2]));
await client.ping();
await assert.rejects(client.callTool({ name: "nope", arguments: {} }), { code: -32602 });

const told = [];
await client.callTool(
  { name: "run_command", arguments: { command: "echo one; sleep 0.7; echo two; sleep 0.7" } },
  undefined, { onprogress: (progress) => told.push(progress.progress) });
assert.ok(told.length >= 1, "no progress was told");

await tryAll({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
  cancelled: (name, args) => {
    const abort = new AbortController();
    return client.callTool({ name, arguments: args }, undefined, {
      signal: abort.signal,
      onprogress: () => abort.abort(), // its first line came: it runs
    });
  },
});
// What is cancelled ends before the connection does: the caller of this program looks for it.
await client.callTool({ name: "session_info", arguments: {} });
await client.close();
