/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_install: `kernd mcp install`: what to write into a client's configuration.
 */
#ifndef KERND_SERVER_MCP_INSTALL_H
#define KERND_SERVER_MCP_INSTALL_H

/*
 * The arguments behind "install". Prints what belongs into the configuration of a client, or with
 * --write changes its file, of which a copy is kept. The exit status.
 */
int mcp_install_main(int count, char *const *arguments);

#endif
