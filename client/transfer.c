/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: move file contents.
 * Owns: temporary files, while it moves.
 * Threads: main.
 * May include: client, server/places.h, lib/base.
 */
#include "client/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/progress.h"
#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/text.h"
#include "server/places.h"

#define PIECE_MAX ((size_t)1 << 20)

static int failed(struct ask *ask, const char *path)
{
    return ask_fail(ask, "", "%.250s: %s", path, err_errno_text(errno));
}

static bool is_standard(const char *path)
{
    return path[0] == '\0' || text_equal(path, "-");
}

int transfer_spool(struct ask *ask)
{
    const char *place = places_environment("TMPDIR");
    const char *directory = place == NULL ? "/var/tmp" : place;
    const int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : failed(ask, directory);
}

/* ---- from the server ---- */

static int write_all(struct ask *ask, struct answer *answer, int file, const char *name)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT(PIECE_MAX);
    struct progress progress;
    uint64_t done = 0;
    int more;

    progress_begin(&progress, answer->length == UINT64_MAX ? NULL : name, answer->length);
    do {
        more = answer_take(answer, &bytes, &ask->err);
        if (more >= 0 && bytes.size > 0 && fd_write_full(file, bytes.data, bytes.size) < 0) {
            more = failed(ask, name);
        }
        done += bytes.size;
        progress_moved(&progress, done);
        buf_reset(&bytes);
    } while (more == 1);
    progress_end(&progress);
    return more;
}

int transfer_get(struct ask *ask, const char *target, int file, const char *name)
{
    const struct remote_request request = { .method = "GET", .target = target, .accept = "*/*" };
    struct answer answer;
    int result = ask_open(ask, &request, &answer);

    if (result == 0) {
        result = write_all(ask, &answer, file, name);
    }
    answer_close(&answer);
    return result;
}

/* The mode that open(2) would have given. */
static void set_mode(int file)
{
    const mode_t mask = umask(0);

    (void)umask(mask);
    (void)fchmod(file, 0666 & ~mask);
}

/* What is no regular file (a pipe, a device) is written to as it is. */
static int get_in_place(struct ask *ask, const char *target, const char *path)
{
    CLEANUP_FD int file = open(path, O_WRONLY | O_CLOEXEC);

    return file < 0 ? failed(ask, path) : transfer_get(ask, target, file, path);
}

int transfer_get_file(struct ask *ask, const char *target, const char *path)
{
    CLEANUP_FREE char *temporary = NULL;
    CLEANUP_FD int file = -1;
    struct stat there;

    if (is_standard(path)) {
        return transfer_get(ask, target, STDOUT_FILENO, "standard output");
    }
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        return get_in_place(ask, target, path);
    }
    temporary = alloc_printf("%s.kernd-XXXXXX", path);
    file = mkostemp(temporary, O_CLOEXEC);
    if (file < 0) {
        return failed(ask, path);
    }
    set_mode(file);
    if (transfer_get(ask, target, file, path) < 0 || rename(temporary, path) < 0) {
        if (ask->err.code == ERR_NONE) {
            (void)failed(ask, path);
        }
        (void)unlink(temporary);
        return -1;
    }
    return 0;
}

/* ---- to the server ---- */

int transfer_put(struct ask *ask, const char *target, int file, const char *name)
{
    CLEANUP_BUF struct buf out = BUF_INIT(ASK_BODY_MAX);
    struct remote_request request = { .method = "PUT",
                                      .target = target,
                                      .type = "application/octet-stream",
                                      .file = file,
                                      .progress = name };
    struct stat what;
    const off_t at = lseek(file, 0, SEEK_CUR);

    if (at < 0 || fstat(file, &what) < 0) {
        return failed(ask, name);
    }
    request.size = what.st_size > at ? (uint64_t)(what.st_size - at) : 0;
    if (ask_text(ask, &request, &out) < 0) {
        return -1;
    }
    if (!ask->json) {
        return 0;
    }
    (void)buf_append_text(&out, out.size == 0 ? "{}\n" : "\n");
    return ask_print(ask, out.data, out.size);
}

/* What can't be measured is read first. */
static int put_spooled(struct ask *ask, const char *target, int file, const char *name)
{
    CLEANUP_FREE char *piece = alloc_zero(1, PIECE_MAX);
    CLEANUP_FD int spool = transfer_spool(ask);
    ssize_t got = 1;

    while (spool >= 0 && got != 0) {
        got = read(file, piece, PIECE_MAX);
        if ((got < 0 && errno != EINTR) ||
            (got > 0 && fd_write_full(spool, piece, (size_t)got) < 0)) {
            return failed(ask, name);
        }
    }
    if (spool < 0 || lseek(spool, 0, SEEK_SET) < 0) {
        return -1;
    }
    return transfer_put(ask, target, spool, name);
}

int transfer_put_file(struct ask *ask, const char *target, const char *path)
{
    const bool standard = is_standard(path);
    CLEANUP_FD int opened = -1;
    struct stat what;
    int file = STDIN_FILENO;

    if (!standard) {
        opened = open(path, O_RDONLY | O_CLOEXEC);
        file = opened;
    }
    if (file < 0 || fstat(file, &what) < 0) {
        return failed(ask, path);
    }
    if (S_ISDIR(what.st_mode)) {
        return ask_fail(ask, "name a file", "%.250s is a directory", path);
    }
    return S_ISREG(what.st_mode)
               ? transfer_put(ask, target, file, standard ? "standard input" : path)
               : put_spooled(ask, target, file, standard ? "standard input" : path);
}
