/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: copy files and trees to and from sessions.
 * Owns: nothing.
 * Threads: main.
 * May include: client, api/percent.h, lib/work, lib/base.
 */
#include "client/copy_command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/percent.h"
#include "client/ask.h"
#include "client/folder.h"
#include "client/transfer.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/id.h"
#include "lib/base/text.h"

/* One side of a copy. */
struct place {
    char *session; /* NULL: here */
    const char *path;
};

/* "SESSION:PATH", where SESSION can be one. */
static struct place read_place(const char *text)
{
    const char *colon = strchr(text, ':');
    struct place place = { .path = text };

    if (colon != NULL) {
        place.session = alloc_copy(text, (size_t)(colon - text));
        place.path = colon + 1;
        if (!id_valid(place.session)) {
            free(place.session);
            place = (struct place){ .path = text };
        }
    }
    return place;
}

/* ---- names ---- */

/* "dir/." and "." mean what is in it, not the directory itself. */
static bool means_contents(const char *path)
{
    return path[0] == '\0' || text_equal(path, ".") || text_equal(path, "/") ||
           text_equal(path, "/workspace") || text_ends_with(path, "/.") ||
           text_ends_with(path, "/workspace/");
}

/* The last component, without slashes at its end; to be freed. */
static char *base_of(const char *path)
{
    size_t end = strlen(path);
    size_t start;

    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    start = end;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    return alloc_copy(path + start, end - start);
}

/* Below a directory, whose path may be empty; to be freed. */
static char *join(const char *directory, const char *name)
{
    return directory[0] == '\0' || text_ends_with(directory, "/")
               ? alloc_printf("%s%s", directory, name)
               : alloc_printf("%s/%s", directory, name);
}

/* ---- the other side ---- */

static bool is_remote_directory(const struct ask *ask, const struct place *place)
{
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct remote_request request = { .method = "GET" };

    ask_path(&target, "v1", "sessions", place->session, "files", NULL);
    ask_query(&target, "limit", "1");
    if (place->path[0] != '\0') {
        ask_query(&target, "path", place->path);
    }
    request.target = target.data;
    return ask_aside(ask, &request) == 200;
}

static void file_target(struct buf *target, const char *session, const char *path)
{
    ask_path(target, "v1", "sessions", session, "files", NULL);
    (void)buf_append_text(target, "/");
    (void)percent_path(target, path);
}

static void archive_target(struct buf *target, const char *session, const char *path)
{
    ask_path(target, "v1", "sessions", session, "archive", NULL);
    if (!means_contents(path) || strlen(path) > 2) {
        ask_query(target, "path", path);
    }
}

/* ---- to a session ---- */

static int put_tree(struct ask *ask, const char *from, const char *target)
{
    CLEANUP_FD int spool = transfer_spool(ask);

    return spool < 0 || folder_pack(ask, from, spool) < 0 ? -1
                                                          : transfer_put(ask, target, spool, from);
}

static int put(struct ask *ask, const char *from, const struct place *to)
{
    const bool standard = text_equal(from, "-");
    const bool into = text_ends_with(to->path, "/") || is_remote_directory(ask, to);
    CLEANUP_FREE char *base = base_of(from);
    CLEANUP_FREE char *path =
        into && !means_contents(from) && !standard ? join(to->path, base) : alloc_text(to->path);
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct stat what;

    if (!standard && stat(from, &what) == 0 && S_ISDIR(what.st_mode)) {
        archive_target(&target, to->session, path);
        return put_tree(ask, from, target.data);
    }
    if (standard && (into || path[0] == '\0')) {
        return ask_fail(ask, "name a file", "standard input has no name");
    }
    file_target(&target, to->session, path);
    return transfer_put_file(ask, target.data, from);
}

/* ---- from a session ---- */

static int get_tree(struct ask *ask, const char *target, const char *to)
{
    CLEANUP_FD int spool = -1;

    if (text_equal(to, "-")) {
        return transfer_get(ask, target, STDOUT_FILENO, "standard output");
    }
    spool = transfer_spool(ask);
    if (spool < 0 || transfer_get(ask, target, spool, to) < 0 || lseek(spool, 0, SEEK_SET) < 0) {
        return -1;
    }
    return folder_unpack(ask, spool, to);
}

static int get(struct ask *ask, const struct place *from, const char *to)
{
    CLEANUP_FREE char *base = base_of(from->path);
    CLEANUP_FREE char *path = NULL;
    CLEANUP_BUF struct buf target = BUF_INIT(ASK_TARGET_MAX);
    struct stat there;
    const bool into = stat(to, &there) == 0 && S_ISDIR(there.st_mode);

    path = into && !means_contents(from->path) ? join(to, base) : alloc_text(to);
    if (is_remote_directory(ask, from)) {
        archive_target(&target, from->session, from->path);
        ask_query(&target, "format", "tar");
        return get_tree(ask, target.data, path);
    }
    file_target(&target, from->session, from->path);
    return transfer_get_file(ask, target.data, path);
}

static int copy(struct ask *ask)
{
    struct place from = read_place(flags_operand(ask->options, 0));
    struct place to = read_place(flags_operand(ask->options, 1));
    int result;

    if ((from.session == NULL) == (to.session == NULL)) {
        result = ask_fail(ask, "for example: kernd cp data.csv my-session:",
                          "one side must be SESSION:PATH, and one here");
    } else if (to.session != NULL) {
        result = put(ask, from.path, &to);
    } else {
        result = get(ask, &from, to.path);
    }
    free(from.session);
    free(to.session);
    return result;
}

int copy_command(const struct flags *options)
{
    struct ask ask;
    int result = ask_begin(&ask, options);

    return ask_end(&ask, result < 0 ? -1 : copy(&ask));
}
