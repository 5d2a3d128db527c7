/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: show a file to a model: lines of text, or an image.
 * Owns: nothing.
 * Threads: handlers on the quick lane.
 * May include: lib/base, lib/sandbox.
 */
#include "api/mcp_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/mcp_result.h"
#include "api/mcp_session.h"
#include "api/resource.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"

#define FILE_MAX ((size_t)16 << 20)
#define IMAGE_MAX ((size_t)3750000) /* bytes: 5 MB as base64, what model APIs take */
#define TEXT_MAX ((size_t)32000)    /* bytes of one answer: clients cut at 50,000 themselves */
#define LINES_DEFAULT 2000
#define SNIFF_SIZE 8192

int mcp_file_load(const struct session_hold *hold, const struct mcp_arguments_text *path,
                  struct buf *out, struct entry *ret_entry, struct err *err)
{
    int fd = -1;
    int result;

    if (session_files_open(hold, path->data, path->size, &fd, ret_entry, err) < 0) {
        return -1;
    }
    if (ret_entry->size > out->max) {
        result = err_set(err, ERR_BODY_TOO_LARGE, 0,
                         "the file has %" PRIu64 " bytes, at most %zu can be looked at here",
                         ret_entry->size, out->max);
        (void)err_remedy(err, "work on it with run_code or run_command");
    } else {
        result = fd_read_to_end(fd, out, err);
    }
    fd_close(fd);
    return result;
}

/* ---- images ---- */

static const char *image_type(const struct buf *bytes)
{
    static const struct {
        const char *start;
        size_t size;
        const char *mime;
    } kinds[] = {
        { "\x89PNG\r\n\x1a\n", 8, "image/png" },
        { "\xff\xd8\xff", 3, "image/jpeg" },
        { "GIF8", 4, "image/gif" },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (bytes->size > kinds[i].size &&
            memcmp(bytes->data, kinds[i].start, kinds[i].size) == 0) {
            return kinds[i].mime;
        }
    }
    return bytes->size > 12 && memcmp(bytes->data, "RIFF", 4) == 0 &&
                   memcmp(bytes->data + 8, "WEBP", 4) == 0
               ? "image/webp"
               : NULL;
}

static void say(struct mcp_result *result, const char *text, const struct entry *entry)
{
    char line[160];
    int size = snprintf(line, sizeof(line), "[%s, %" PRIu64 " bytes]", text, entry->size);

    mcp_result_text(result, line, (size_t)size);
}

static void show_image(struct mcp_result *result, const struct buf *bytes, const char *mime,
                       const struct entry *entry)
{
    CLEANUP_BUF struct buf base64 = BUF_INIT(FILE_MAX * 2);

    if (bytes->size > IMAGE_MAX || text_base64_encode(&base64, bytes->data, bytes->size) < 0) {
        say(result, "an image that is too large to show: make it smaller with run_code", entry);
        return;
    }
    mcp_result_image(result, mime, base64.data, base64.size);
}

/* ---- text ---- */

/* Behind the newline of line number `lines`, or the end. */
static size_t skip_lines(const struct buf *bytes, size_t at, uint64_t lines)
{
    while (lines > 0 && at < bytes->size) {
        const char *newline = memchr(bytes->data + at, '\n', bytes->size - at);

        at = newline == NULL ? bytes->size : (size_t)(newline - bytes->data) + 1;
        lines--;
    }
    return at;
}

static uint64_t count_lines(const struct buf *bytes, size_t from, size_t to)
{
    uint64_t lines = 0;

    for (size_t at = from; at < to; at++) {
        lines += bytes->data[at] == '\n';
    }
    return lines;
}

/* Where to stop: after so many lines, and never above the bound, at the end of a line if possible.
 */
static size_t find_end(const struct buf *bytes, size_t start, uint64_t lines)
{
    const size_t wanted = skip_lines(bytes, start, lines);
    size_t end = start + TEXT_MAX;

    if (wanted <= end) {
        return wanted;
    }
    while (end > start && bytes->data[end - 1] != '\n') {
        end--;
    }
    if (end > start) {
        return end;
    }
    end = start + TEXT_MAX;
    return end - text_utf8_partial_tail(bytes->data + start, end - start);
}

static void show_text(struct mcp_result *result, const struct buf *bytes,
                      const struct mcp_arguments *arguments)
{
    const uint64_t first = arguments->offset > 0 ? arguments->offset : 1;
    const uint64_t lines = arguments->limit > 0 ? arguments->limit : LINES_DEFAULT;
    const size_t start = skip_lines(bytes, 0, first - 1);
    const size_t end = find_end(bytes, start, lines);
    char note[200];
    int size;

    mcp_result_text(result, bytes->data == NULL ? "" : bytes->data + start, end - start);
    if (end == bytes->size) {
        return;
    }
    if (bytes->data[end - 1] == '\n') {
        size = snprintf(note, sizeof(note),
                        "[%zu bytes more: go on with offset %" PRIu64 "; %" PRIu64 " lines in all]",
                        bytes->size - end, first + count_lines(bytes, start, end),
                        count_lines(bytes, 0, bytes->size));
    } else {
        size = snprintf(note, sizeof(note),
                        "[cut within a long line; %zu bytes more: read them with run_code]",
                        bytes->size - end);
    }
    mcp_result_text(result, note, (size_t)size);
}

/* ---- the tool ---- */

static void show(struct mcp_result *result, const struct buf *bytes, const struct entry *entry,
                 const struct mcp_arguments *arguments)
{
    const char *mime = image_type(bytes);
    const size_t sniffed = bytes->size < SNIFF_SIZE ? bytes->size : SNIFF_SIZE;

    if (mime != NULL) {
        show_image(result, bytes, mime, entry);
    } else if (sniffed > 0 && memchr(bytes->data, '\0', sniffed) != NULL) {
        say(result, "a binary file: look at it with run_code", entry);
    } else {
        show_text(result, bytes, arguments);
    }
}

void mcp_file_read(struct mcp_request *request, struct mcp_arguments *arguments)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(FILE_MAX);
    struct session_hold *hold = NULL;
    struct err err = ERR_INIT;
    struct mcp_result result;
    struct entry entry;

    if (mcp_session_hold(request, arguments, &hold, &err) < 0 ||
        mcp_file_load(hold, &arguments->path, &bytes, &entry, &err) < 0) {
        session_release(hold, false);
        mcp_arguments_free(arguments);
        mcp_result_fail(request, &err);
        return;
    }
    session_release(hold, false);
    mcp_result_init(&result, true);
    json_out_key(&result.json, "size");
    json_out_count(&result.json, entry.size);
    show(&result, &bytes, &entry, arguments);
    mcp_arguments_free(arguments);
    mcp_result_send(&result, request);
}
