/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: write files for a model, whole or by exact replacement.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "api/mcp_file.h"
#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"

#define EDIT_MAX ((size_t)16 << 20)

/* Bytes become a file: nameless first, as session_files_put wants it. */
static int put(const struct session_hold *hold, const struct mcp_arguments_text *path,
               const struct buf *bytes, const char *if_match, struct err *err)
{
    CLEANUP_FD int fd = openat(session_hold_root(hold), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    struct session_files_put wanted = { .path = path->data,
                                        .path_size = path->size,
                                        .file = fd,
                                        .file_size = bytes->size,
                                        .if_match = if_match };
    struct entry entry;
    bool created;

    if (fd < 0 || fd_write_full(fd, bytes->data, bytes->size) < 0) {
        return err_set(err, errno == ENOSPC || errno == EDQUOT ? ERR_STORE_FULL : ERR_IO, errno,
                       "the file cannot be written: %s", err_errno_text(errno));
    }
    return session_files_put(hold, &wanted, &created, &entry, err);
}

static void answer(struct mcp_request *request, struct mcp_arguments *arguments, const char *done,
                   size_t count)
{
    struct mcp_result result;
    char text[256];
    int size = snprintf(text, sizeof(text), "%s %.*s", done,
                        arguments->path.size > 200 ? 200 : (int)arguments->path.size,
                        arguments->path.data);

    mcp_result_init(&result, true);
    json_out_key(&result.json, "path");
    json_out_text(&result.json, arguments->path.data, arguments->path.size);
    json_out_key(&result.json, arguments->old_text.data != NULL ? "replaced" : "bytes");
    json_out_count(&result.json, count);
    mcp_result_text(&result, text, (size_t)size);
    mcp_arguments_free(arguments);
    mcp_result_send(&result, request);
}

static void fail(struct mcp_request *request, struct mcp_arguments *arguments,
                 const struct err *err)
{
    mcp_arguments_free(arguments);
    mcp_result_fail(request, err);
}

void mcp_edit_write(struct mcp_request *request, struct mcp_arguments *arguments)
{
    const struct buf bytes = { .data = arguments->content.data, .size = arguments->content.size };
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;
    int result = -1;

    if (mcp_session_hold(request, arguments, &hold, &err) == 0) {
        result = put(hold, &arguments->path, &bytes, NULL, &err);
        session_release(hold, result == 0);
    }
    if (result < 0) {
        fail(request, arguments, &err);
        return;
    }
    answer(request, arguments, "wrote", bytes.size);
}

/* ---- replacement ---- */

static const char *find(const struct buf *bytes, size_t from, const struct mcp_arguments_text *text)
{
    return from >= bytes->size
               ? NULL
               : memmem(bytes->data + from, bytes->size - from, text->data, text->size);
}

static size_t count_matches(const struct buf *bytes, const struct mcp_arguments_text *text)
{
    size_t count = 0;
    size_t from = 0;
    const char *match;

    while ((match = find(bytes, from, text)) != NULL) {
        count++;
        from = (size_t)(match - bytes->data) + text->size;
    }
    return count;
}

static int check_matches(size_t count, const struct mcp_arguments *arguments, struct err *err)
{
    if (count == 0) {
        (void)err_field(err, ERR_BAD_VALUE, "/old_text", "old_text does not occur in the file");
        return err_remedy(err, "read the file again, and copy the text exactly, with its blanks");
    }
    if (count > 1 && !arguments->replace_all) {
        (void)err_field(err, ERR_BAD_VALUE, "/old_text", "old_text occurs %zu times in the file",
                        count);
        return err_remedy(err, "give more of the text around it, or set replace_all");
    }
    return 0;
}

static int replace(const struct buf *bytes, const struct mcp_arguments *arguments, struct buf *out,
                   struct err *err)
{
    const struct mcp_arguments_text *old_text = &arguments->old_text;
    const struct mcp_arguments_text *new_text = &arguments->new_text;
    size_t from = 0;
    const char *match;
    int failed = 0;

    while ((match = find(bytes, from, old_text)) != NULL && failed == 0) {
        const size_t at = (size_t)(match - bytes->data);

        failed = buf_append(out, bytes->data + from, at - from) |
                 buf_append(out, new_text->data, new_text->size);
        from = at + old_text->size;
    }
    failed |= buf_append(out, bytes->data + from, bytes->size - from);
    return failed == 0 ? 0
                       : err_set(err, ERR_BODY_TOO_LARGE, 0,
                                 "the file would have more than %zu bytes", EDIT_MAX);
}

static int edit(const struct session_hold *hold, const struct mcp_arguments *arguments,
                size_t *ret_count, struct err *err)
{
    CLEANUP_BUF struct buf before = BUF_INIT(EDIT_MAX);
    CLEANUP_BUF struct buf after = BUF_INIT(EDIT_MAX);
    struct entry entry;
    size_t count;

    if (mcp_file_load(hold, &arguments->path, &before, &entry, err) < 0) {
        return -1;
    }
    count = count_matches(&before, &arguments->old_text);
    if (check_matches(count, arguments, err) < 0 || replace(&before, arguments, &after, err) < 0 ||
        put(hold, &arguments->path, &after, entry.etag, err) < 0) {
        return -1;
    }
    *ret_count = count;
    return 0;
}

void mcp_edit_replace(struct mcp_request *request, struct mcp_arguments *arguments)
{
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;
    size_t count = 0;
    int result = -1;

    if (mcp_session_hold(request, arguments, &hold, &err) == 0) {
        result = edit(hold, arguments, &count, &err);
        session_release(hold, result == 0);
    }
    if (result < 0) {
        fail(request, arguments, &err);
        return;
    }
    answer(request, arguments, "edited", count);
}
