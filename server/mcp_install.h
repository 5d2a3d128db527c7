/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_install: `kernd mcp install`: what to write into a client's configuration.
 */
#ifndef KERND_SERVER_MCP_INSTALL_H
#define KERND_SERVER_MCP_INSTALL_H

/* The arguments behind "install": --client NAME. Prints; changes nothing. The exit status. */
int mcp_install_main(int count, char *const *arguments);

#endif
