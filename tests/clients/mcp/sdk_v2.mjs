// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { headers, tryAll, url } from "./scenario.mjs";

const mode = process.argv[2] === "pin" ? { pin: "2026-07-28" } : process.argv[2];
const client = new Client({ name: "sdk-v2", version: "1" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
await assert.rejects(client.callTool({ name: "nope", arguments: {} }), { code: -32602 });

await tryAll({
  list: async () => (await client.listTools()).tools,
  call: (name, args) => client.callTool({ name, arguments: args }),
  cancelled: (name, args) => {
    const abort = new AbortController();
    return client.callTool({ name, arguments: args }, {
      signal: abort.signal,
      onprogress: () => abort.abort(),
    });
  },
});
await client.callTool({ name: "session_info", arguments: {} });
await client.close();
