/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy: a walk over one tree that plants another.
 * Owns: nothing between calls.
 * Threads: any.
 * May include: base.
 */
#include "lib/work/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/work/fail.h"
#include "lib/work/path.h"
#include "lib/work/plant.h"
#include "lib/work/walk.h"

#define PIECE                                                                          \
    ((size_t)1 << 30) /* of one copy_file_range call: it can be interrupted in between \
                       */

struct copying {
    const struct copy_options *options;
    struct plant plant;
    struct copy_result result;
};

static const char cannot_copy[] = "the files cannot be copied";

static int check(const struct copying *copying, struct err *err)
{
    if (cancel_get(copying->options->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "the copy was not finished");
    }
    return 0;
}

/* Between file systems, where copy_file_range refuses (EXDEV, since Linux 5.19). */
static int send_range(int from, int to, off_t at, off_t end)
{
    if (lseek(to, at, SEEK_SET) < 0) {
        return -1;
    }
    while (at < end) {
        size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
        ssize_t got = sendfile(to, from, &at, want);

        if (got < 0 && errno != EINTR) {
            return -1;
        }
        if (got == 0) { /* the file became shorter */
            return 0;
        }
    }
    return 0;
}

/* One run of data, without a way through this process's memory. 0 or -1 with errno. */
static int copy_range(int from, int to, off_t at, off_t end)
{
    off_t to_at = at;

    while (at < end) {
        size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
        ssize_t got = copy_file_range(from, &at, to, &to_at, want, 0);

        if (got < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
            return send_range(from, to, at, end);
        }
        if (got < 0 && errno != EINTR) {
            return -1;
        }
        if (got == 0) {
            return 0;
        }
    }
    return 0;
}

/* Data only; holes are passed over. 0 or -1 with errno. */
static int copy_data(int from, int to, off_t size)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole = data >= 0 ? lseek(from, data, SEEK_HOLE) : -1;

        if (data < 0 && errno == ENXIO) { /* a hole up to the end (lseek(2)) */
            return 0;
        }
        if (hole < 0) { /* the file system can't tell */
            data = at;
            hole = size;
        }
        hole = hole < size ? hole : size;
        if (copy_range(from, to, data, hole) < 0) {
            return -1;
        }
        at = hole;
    }
    return 0;
}

/* With the size that was counted. 0 or -1 with errno. */
static int copy_bytes(int from, int to, off_t size)
{
    struct stat status;

    if (ioctl(to, FICLONE, from) < 0) {
        return copy_data(from, to, size) < 0 || ftruncate(to, size) < 0 ? -1 : 0;
    }
    /* XFS takes the last block apart from the other file's even where the size stays the same. */
    if (fstat(to, &status) < 0 || (status.st_size != size && ftruncate(to, size) < 0)) {
        return -1;
    }
    return 0;
}

static int copy_content(struct copying *copying, int from, int to, const struct stat *status,
                        struct err *err)
{
    uint64_t bytes = (uint64_t)status->st_blocks * 512;
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, status->st_mtim };

    bytes = bytes < (uint64_t)status->st_size ? bytes : (uint64_t)status->st_size;
    copying->result.bytes += bytes;
    if (copying->options->max_bytes > 0 && copying->result.bytes > copying->options->max_bytes) {
        return err_set(err, ERR_WORKSPACE_FULL, EDQUOT, "%s: they are larger than is allowed",
                       cannot_copy);
    }
    if (copy_bytes(from, to, status->st_size) < 0 || futimens(to, times) < 0 ||
        fchmod(to, status->st_mode & 0777) < 0) {
        return fail_errno(err, errno, cannot_copy);
    }
    return 0;
}

static int copy_file(struct copying *copying, const struct walk_entry *found, struct err *err)
{
    CLEANUP_FD int from =
        fd_open_beneath(found->directory, found->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    CLEANUP_FD int to = -1;
    struct stat status;

    if (from < 0 || fstat(from, &status) < 0 || !S_ISREG(status.st_mode)) {
        copying->result.left_out++;
        return 0;
    }
    to = plant_file(&copying->plant, found->path);
    if (to < 0) {
        return fail_errno(err, errno, cannot_copy);
    }
    return copy_content(copying, from, to, &status, err);
}

static int copy_link(struct copying *copying, const struct walk_entry *found,
                     const struct stat *status, struct err *err)
{
    char target[PATH_BYTES_MAX + 1];
    ssize_t size = readlinkat(found->directory, found->name, target, sizeof(target) - 1);

    if (size < 0) {
        copying->result.left_out++;
        return 0;
    }
    target[size] = '\0';
    if (plant_symlink(&copying->plant, found->path, target, &status->st_mtim) < 0) {
        return fail_errno(err, errno, cannot_copy);
    }
    return 0;
}

static int copy_entry(struct copying *copying, const struct walk_entry *found, struct err *err)
{
    struct stat status;

    if (found->type == DT_REG) {
        return copy_file(copying, found, err);
    }
    if ((found->type != DT_DIR && found->type != DT_LNK) || found->unreadable ||
        fstatat(found->directory, found->name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
        copying->result.left_out++;
        return 0;
    }
    if (found->type == DT_LNK) {
        return copy_link(copying, found, &status, err);
    }
    if (plant_directory(&copying->plant, found->path, status.st_mode & 0777, &status.st_mtim) < 0) {
        return fail_errno(err, errno, cannot_copy);
    }
    return 0;
}

int copy_tree(int from, int to, const struct copy_options *options, struct copy_result *ret_result,
              struct err *err)
{
    struct walk_options how = { .start = PATH_ROOT, .recursive = true, .skip = options->skip };
    struct copying copying = { .options = options };
    struct walk_entry found;
    struct walk *walk = NULL;
    int result = 0;

    if (walk_open(from, &how, &walk, err) < 0) {
        return -1;
    }
    plant_init(&copying.plant, to);
    while (result == 0 && walk_next(walk, &found)) {
        copying.result.entries++;
        result = check(&copying, err);
        if (result == 0) {
            result = copy_entry(&copying, &found, err);
        }
    }
    if (result == 0 && plant_finish(&copying.plant, options->cancel) < 0) {
        result = check(&copying, err) < 0 ? -1 : fail_errno(err, errno, cannot_copy);
    }
    plant_done(&copying.plant);
    copying.result.left_out += walk_incomplete(walk) ? 1 : 0;
    walk_close(walk);
    if (result == 0) {
        *ret_result = copying.result;
    }
    return result;
}
