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

#define FILES_MAX 16
#define FILE_BYTES_MAX ((size_t)64 << 20)
#define INIT_NAME "kernd-init"

struct staged_file {
    char *name;
    int fd;
};

struct stage {
    struct staged_file files[FILES_MAX];
    size_t count;
};

static bool is_wanted(const char *name)
{
    return text_equal(name, INIT_NAME) || text_ends_with(name, ".py") ||
           text_ends_with(name, ".js");
}

static int add_file(struct stage *stage, int directory, const char *name, struct err *err)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || stage->count == FILES_MAX) {
        fd_close(fd);
        return err_set(err, ERR_IO, errno, "%s: %s", name, err_errno_text(errno));
    }
    stage->files[stage->count++] = (struct staged_file){ .name = alloc_text(name), .fd = fd };
    return 0;
}

struct stage *stage_open(const char *library_dir, struct err *err)
{
    CLEANUP_DIR DIR *directory = opendir(library_dir);
    struct stage *stage;
    const struct dirent *entry;

    if (directory == NULL) {
        (void)err_set(err, ERR_IO, errno, "%s: %s", library_dir, err_errno_text(errno));
        return NULL;
    }
    stage = alloc_zero(1, sizeof(*stage));
    while ((entry = readdir(directory)) != NULL) {
        if (is_wanted(entry->d_name) && add_file(stage, dirfd(directory), entry->d_name, err) < 0) {
            stage_free(stage);
            return NULL;
        }
    }
    return stage;
}

static bool is_usable(const struct stage *stage, const char *library_dir)
{
    for (size_t i = 0; i < stage->count; i++) {
        CLEANUP_FREE char *path = alloc_printf("%s/%s", library_dir, stage->files[i].name);
        int wanted = text_equal(stage->files[i].name, INIT_NAME) ? R_OK | X_OK : R_OK;

        if (access(path, wanted) < 0) {
            return false;
        }
    }
    return true;
}

static int copy_file(const struct staged_file *file, const char *to_dir, struct err *err)
{
    CLEANUP_FREE char *path = alloc_printf("%s/%s", to_dir, file->name);
    CLEANUP_BUF struct buf content = BUF_INIT(FILE_BYTES_MAX);

    if (fd_read_to_end(file->fd, &content, err) < 0) {
        return err_prefix(err, "%s", file->name);
    }
    if (fd_write_file(path, content.data, content.size,
                      text_equal(file->name, INIT_NAME) ? 0555 : 0444) < 0) {
        return err_set(err, ERR_IO, errno, "%s: %s", path, err_errno_text(errno));
    }
    return 0;
}

int stage_finish(struct stage *stage, const char *runtime_dir, char **library_dir, struct err *err)
{
    CLEANUP_FREE char *copies = NULL;

    if (is_usable(stage, *library_dir)) {
        return 0;
    }
    copies = alloc_printf("%s/library", runtime_dir);
    if (mkdir(copies, 0700) < 0 && errno != EEXIST) {
        return err_set(err, ERR_IO, errno, "%s: %s", copies, err_errno_text(errno));
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
        free(stage->files[i].name);
        fd_close(stage->files[i].fd);
    }
    free(stage);
}
