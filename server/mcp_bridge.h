/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_bridge: `kernd mcp`: the Model Context Protocol on standard input and output, for clients
 * that start their servers themselves.
 */
#ifndef KERND_SERVER_MCP_BRIDGE_H
#define KERND_SERVER_MCP_BRIDGE_H

/*
 * The arguments behind "mcp": "install" and its own, or --workspace DIR[:ro] and either
 * --socket PATH or options of `serve`, with which a server is started where none answers. Carries
 * each line to a POST /mcp on the Unix socket and each message of the reply back; nothing else is
 * ever written to standard output. Ends at the end of input, after the answers that are under way.
 * The process's exit status.
 */
int mcp_bridge_main(int count, char *const *arguments);

#endif
