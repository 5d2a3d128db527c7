// SPDX-License-Identifier: Apache-2.0
// A stdio bridge of others (argv: its program and arguments) before the server, by SDK v1.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { tryAll } from "./scenario.mjs";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "bridged", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
await tryAll({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
  cancelled: (name, args) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 2000); // not every bridge passes progress on
    return client.callTool({ name, arguments: args }, undefined, { signal: abort.signal });
  },
});
await client.callTool({ name: "session_info", arguments: {} });
await client.close();
