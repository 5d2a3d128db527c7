/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: the header that names the workspace of a client.
 * Owns: nothing.
 * Threads: any (pure functions).
 * May include: lib/base.
 */
#include "api/mcp_workspace.h"

#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/percent.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"

#define NAME "Kernd-Workspace"
#define READONLY ":ro"

static int refuse(struct err *err)
{
    return err_set(err, ERR_BAD_HEADER, 0,
                   NAME " must be one absolute path, percent-encoded, perhaps with " READONLY
                        " behind it");
}

static const char *find_header(const struct api_call *call, size_t *ret_count)
{
    const char *found = NULL;

    *ret_count = 0;
    for (size_t i = 0; i < call->header_count; i++) {
        if (strcasecmp(call->headers[i].name, NAME) == 0) {
            found = call->headers[i].value;
            (*ret_count)++;
        }
    }
    return found;
}

int mcp_workspace_read(const struct api_call *call, struct mcp_workspace *ret_workspace,
                       struct err *err)
{
    size_t count;
    const char *header = find_header(call, &count);
    CLEANUP_FREE char *raw = NULL;
    struct decode_path path;

    *ret_workspace = (struct mcp_workspace){ .path = NULL };
    if (count == 0) {
        return 0;
    }
    if (call->scope != API_SCOPE_FULL && !call->narrowed) {
        return err_set(err, ERR_FORBIDDEN, 0,
                       "this token may not show a box directories of the host");
    }
    raw = alloc_text(header);
    if (text_ends_with(raw, READONLY)) {
        raw[strlen(raw) - strlen(READONLY)] = '\0';
        ret_workspace->readonly = true;
    }
    if (count > 1 || raw[0] != '/' || decode_path(raw, &path, err) < 0) {
        return refuse(err);
    }
    ret_workspace->path = alloc_printf("/%s", path.text);
    return 0;
}

void mcp_workspace_done(struct mcp_workspace *workspace)
{
    free(workspace->path);
    workspace->path = NULL;
}

void mcp_workspace_write(struct buf *out, const struct mcp_workspace *workspace)
{
    if (workspace->path != NULL) {
        (void)buf_append_text(out, NAME ": ");
        (void)percent_path(out, workspace->path);
        (void)buf_append_text(out, workspace->readonly ? READONLY "\r\n" : "\r\n");
    }
}
