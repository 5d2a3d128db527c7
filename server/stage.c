/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job: keep kernd-init and the drivers reachable across the change of user.
 * Owns: descriptors of the files from open to free.
 * Threads: main, before any other starts.
 * May include: lib/base.
 */
#include "server/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/cleanup.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/text.h"

#define FILES_MAX 64
#define FILE_BYTES_MAX ((size_t)64 << 20)
#define BYTECODE "__pycache__"

struct staged_file {
    char *path; /* below the library directory */
    bool is_program;
    int fd;
};

struct stage {
    struct staged_file files[FILES_MAX];
    size_t count;
};

/* The programs that run inside boxes are called kernd-something; kernd itself is not among them. */
static bool is_program(const char *name)
{
    return text_starts_with(name, "kernd-");
}

static bool is_wanted(const char *name)
{
    return is_program(name) || text_ends_with(name, ".py") || text_ends_with(name, ".pyc") ||
           text_ends_with(name, ".js") || text_ends_with(name, ".mjs");
}

static int add_file(struct stage *stage, int directory, const char *below, const char *name,
                    struct err *err)
{
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || stage->count == FILES_MAX) {
        fd_close(fd);
        return err_set(err, ERR_IO, errno, "%s: %s", name, err_errno_text(errno));
    }
    stage->files[stage->count++] = (struct staged_file){
        .path = alloc_printf("%s%s", below, name),
        .is_program = is_program(name),
        .fd = fd,
    };
    return 0;
}

/* All wanted files of one folder, which need not exist. */
static int add_folder(struct stage *stage, const char *path, const char *below, struct err *err)
{
    CLEANUP_DIR DIR *directory = opendir(path);
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        if (is_wanted(entry->d_name) &&
            add_file(stage, dirfd(directory), below, entry->d_name, err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct stage *stage_open(const char *library_dir, struct err *err)
{
    CLEANUP_FREE char *bytecode = alloc_printf("%s/" BYTECODE, library_dir);
    struct stage *stage;

    if (access(library_dir, R_OK | X_OK) < 0) {
        (void)err_set(err, ERR_IO, errno, "%s: %s", library_dir, err_errno_text(errno));
        return NULL;
    }
    stage = alloc_zero(1, sizeof(*stage));
    if (add_folder(stage, library_dir, "", err) < 0 ||
        add_folder(stage, bytecode, BYTECODE "/", err) < 0) {
        stage_free(stage);
        return NULL;
    }
    return stage;
}

static bool is_usable(const struct stage *stage, const char *library_dir)
{
    for (size_t i = 0; i < stage->count; i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/%s", library_dir, stage->files[i].path);

        if (access(path, stage->files[i].is_program ? R_OK | X_OK : R_OK) < 0) {
            return false;
        }
    }
    return true;
}

static int copy_file(const struct staged_file *file, const char *to_dir, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", to_dir, file->path);
    CLEANUP_BUF struct buf content = BUF_INIT(FILE_BYTES_MAX);

    if (fd_read_to_end(file->fd, &content, err) < 0) {
        return err_prefix(err, "%s", file->path);
    }
    if (fd_write_file(path, content.data, content.size, file->is_program ? 0555 : 0444) < 0) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    return 0;
}

static int make_folder(const char *path, struct err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    return 0;
}

int stage_finish(struct stage *stage, const char *runtime_dir, char **library_dir, struct err *err)
{
    CLEANUP_FREE char *copies = alloc_printf("%s/library", runtime_dir);
    CLEANUP_FREE char *bytecode = alloc_printf("%s/" BYTECODE, copies);

    if (is_usable(stage, *library_dir)) {
        return 0;
    }
    if (make_folder(copies, err) < 0 || make_folder(bytecode, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < stage->count; i++) {
        if (copy_file(&stage->files[i], copies, err) < 0) {
            return -1;
        }
    }
    log_line(LOG_INFO, "copied kernd-init and the drivers", "because", "their directory is closed",
             "from", *library_dir, "to", copies, NULL);
    free(*library_dir);
    *library_dir = CLEANUP_TAKE(copies);
    return 0;
}

void stage_free(struct stage *stage)
{
    if (stage == NULL) {
        return;
    }
    for (size_t i = 0; i < stage->count; i++) {
        free(stage->files[i].path);
        fd_close(stage->files[i].fd);
    }
    free(stage);
}
