/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_client: the clients of the Model Context Protocol that `kernd mcp install` knows: where each
 * keeps its configuration, and how a server looks in it. Pure; any thread.
 */
#ifndef KERND_SERVER_MCP_CLIENT_H
#define KERND_SERVER_MCP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/strv.h"

struct mcp_client;

/* How the client is to reach kernd. */
struct mcp_client_way {
    const struct strv *command; /* the program and its arguments */
    const char *url;            /* NULL: by the command */
    const char *token;          /* for the URL */
};

/* NULL: there is no such client. */
const struct mcp_client *mcp_client_find(const char *name);

/* The name of the client number `index`, NULL behind the last. */
const char *mcp_client_name(size_t index);

/* A line that tells a reader where it belongs. */
const char *mcp_client_where(const struct mcp_client *client);

/* The file: of a project, or the user's when project is NULL. To be freed; NULL: it has none. */
char *mcp_client_file(const struct mcp_client *client, const char *project);

/*
 * Appends the text of its file with kernd in it. text may be empty. 0, or -1 BAD_VALUE: see jsonc.h
 * and toml_table.h.
 */
int mcp_client_merge(const struct mcp_client *client, const struct mcp_client_way *way,
                     const struct buf *text, struct buf *out, struct err *err);

#endif
