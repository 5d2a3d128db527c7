/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: find or make the session that a tool works in.
 * Owns: nothing.
 * Threads: any but the event one.
 * May include: lib/base, lib/sandbox, json-c.
 */
#include "api/mcp_session.h"

#include <stdio.h>
#include <string.h>

#include "api/resource.h"
#include "lib/base/alloc.h"
#include "lib/base/hash.h"
#include "lib/sandbox/sandbox.h"

#define OWN_DIGITS 24 /* of the hash in the id of a client's own session */

static void own_name(const struct mcp_request *request, char out[static SESSION_ID_SIZE])
{
    struct json_object *info = NULL;
    struct hash *hash = hash_new();
    char digits[HASH_HEX_SIZE];
    const char *name = request->client;

    if (name[0] == '\0' && request->message.meta != NULL &&
        json_object_object_get_ex(request->message.meta, "io.modelcontextprotocol/clientInfo",
                                  &info) &&
        json_object_is_type(info, json_type_object)) {
        name = mcp_message_text(info, "name");
    }
    hash_add(hash, &request->actor.caller, sizeof(request->actor.caller));
    if (name != NULL) {
        hash_add(hash, name, strlen(name));
    }
    if (request->workspace.path != NULL) {
        hash_add(hash, request->workspace.path, strlen(request->workspace.path) + 1);
        hash_add(hash, &request->workspace.readonly, sizeof(request->workspace.readonly));
    }
    hash_end_hex(hash, digits);
    (void)snprintf(out, SESSION_ID_SIZE, "mcp-%.*s", OWN_DIGITS, digits);
}

void mcp_session_name(const struct mcp_request *request, const struct mcp_arguments *arguments,
                      char out[static SESSION_ID_SIZE])
{
    if (arguments->session_id != NULL) {
        (void)snprintf(out, SESSION_ID_SIZE, "%s", arguments->session_id);
    } else {
        own_name(request, out);
    }
}

/* One that is there with other options (the server's defaults were others) does as well. */
static int make_own(const struct mcp_request *request, const char *id, struct err *err)
{
    struct sandbox *sandbox = request->api->sandbox;
    struct session_created created;
    struct err failure = ERR_INIT;
    struct options options;

    options_init(&options, sandbox_defaults(sandbox));
    options.idle_timeout_s = MCP_SESSION_IDLE_S;
    strv_add(&options.labels, "made-by=mcp");
    options.workspace = alloc_text(request->workspace.path);
    options.workspace_readonly = request->workspace.readonly;
    options.track_files = !request->workspace.readonly; /* where nothing changes */
    if (session_create(sandbox, &request->actor,
                       &(struct session_wanted){ .id = id, .options = &options }, &created,
                       &failure) == 0) {
        session_view_done(&created.view);
        return 0;
    }
    if (failure.code == ERR_SESSION_EXISTS) {
        return 0;
    }
    *err = failure;
    return -1;
}

int mcp_session_hold(const struct mcp_request *request, const struct mcp_arguments *arguments,
                     struct session_hold **ret_hold, struct err *err)
{
    struct sandbox *sandbox = request->api->sandbox;
    struct err failure = ERR_INIT;
    char id[SESSION_ID_SIZE];

    mcp_session_name(request, arguments, id);
    if (session_hold(sandbox, &request->actor, id, ret_hold, &failure) == 0) {
        return 0;
    }
    if (arguments->session_id != NULL ||
        (failure.code != ERR_SESSION_NOT_FOUND && failure.code != ERR_SESSION_EXPIRED)) {
        if (failure.code == ERR_SESSION_NOT_FOUND || failure.code == ERR_SESSION_EXPIRED) {
            (void)err_remedy(&failure, "leave session_id out to work in the default session");
        }
        *err = failure;
        return -1;
    }
    return make_own(request, id, err) < 0
               ? -1
               : session_hold(sandbox, &request->actor, id, ret_hold, err);
}
