/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: the walk over a workspace, and its members for tar_out.c.
 * Owns: nothing between calls.
 * Threads: any; the thread's locale is changed for the time of a call; squeeze.c has its own.
 * May include: base, libarchive.
 */
#include "lib/work/pack.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/work/charset.h"
#include "lib/work/fail.h"
#include "lib/work/link.h"
#include "lib/work/path.h"
#include "lib/work/put.h"
#include "lib/work/sparse.h"
#include "lib/work/squeeze.h"
#include "lib/work/tar_out.h"
#include "lib/work/unpack.h"
#include "lib/work/walk.h"

#define PIECE ((size_t)256 * 1024)
#define ZEROS ((size_t)4 * 1024 * 1024)
#define UNREADABLE "unreadable"
#define CHANGED "changed"

struct packing {
    const struct pack_options *options;
    struct tar_out *tar;
    struct archive_entry *entry;
    struct squeeze *squeeze;
    struct walk *walk;
    struct pack_result result;
    char *piece;
    char *zeros; /* never written to, so it costs no memory */
    bool dense;  /* that file has no holes to look for */
};

void pack_result_done(struct pack_result *result)
{
    for (size_t i = 0; i < result->left_count; i++) {
        free(result->left[i].path);
    }
    free(result->left);
    *result = (struct pack_result){ .left = NULL };
}

static void leave_out(struct packing *packing, const char *path, const char *why)
{
    struct pack_result *result = &packing->result;

    if (result->left_count == PACK_LEFT_MAX) {
        result->left_truncated = true;
        return;
    }
    result->left = alloc_resize(result->left, result->left_count + 1, sizeof(*result->left));
    result->left[result->left_count++] = (struct pack_left){ .path = alloc_text(path), .why = why };
}

/* It never fails here: check() asks how it went. */
static void output(void *context, const void *data, size_t size)
{
    struct packing *packing = context;

    squeeze_add(packing->squeeze, data, size);
}

/* After each call of tar_out. 0, or -1 when the archive is no good any more. */
static int check(struct packing *packing, bool worked, struct err *err)
{
    if (cancel_get(packing->options->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "the archive was not finished");
    }
    if (squeeze_check(packing->squeeze, err) < 0) {
        return -1;
    }
    return worked ? 0
                  : err_set(err, ERR_IO, 0, "the archive can't be made: %s",
                            tar_out_error(packing->tar));
}

static void describe(struct archive_entry *entry, const char *name, const struct stat *status)
{
    (void)archive_entry_clear(entry);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, status->st_mode & S_IFMT);
    archive_entry_set_perm(entry, status->st_mode & 0777);
    archive_entry_set_mtime(entry, status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
    archive_entry_set_size(entry, S_ISREG(status->st_mode) ? status->st_size : 0);
}

static int write_head(struct packing *packing, struct err *err)
{
    uint64_t max = packing->options->max_entries;

    max = max > 0 ? max : UNPACK_ENTRIES_MAX;
    if (++packing->result.entries > max) {
        (void)err_set(err, ERR_STORE_FULL, 0, "there are more than %llu files and directories",
                      (unsigned long long)max);
        return err_remedy(err, "delete files, or take an archive of one directory at a time");
    }
    return check(packing, tar_out_head(packing->tar, packing->entry), err);
}

/*
 * The next bytes of a file: data, or zeros in a hole and behind an early end. How many; *ret_bytes
 * is where they are.
 */
static size_t read_piece(struct packing *packing, int fd, off_t at, off_t end,
                         const char **ret_bytes)
{
    size_t want = end - at < (off_t)PIECE ? (size_t)(end - at) : PIECE;
    off_t data = packing->dense ? at : lseek(fd, at, SEEK_DATA);
    ssize_t got = 0;

    if (data < 0 && errno != ENXIO) {
        data = at; /* a file system without the call: all is data */
    }
    if (data == at) {
        got = pread(fd, packing->piece, want, at);
    }
    if (got > 0) {
        packing->result.content += (size_t)got;
        *ret_bytes = packing->piece;
        return (size_t)got;
    }
    if (data <= at || data > end) {
        data = end;
    }
    *ret_bytes = packing->zeros;
    return data - at < (off_t)ZEROS ? (size_t)(data - at) : ZEROS;
}

static int write_content(struct packing *packing, int fd, off_t size, struct err *err)
{
    for (off_t at = 0; at < size;) {
        const char *bytes;
        size_t got = read_piece(packing, fd, at, size, &bytes);
        bool worked = tar_out_data(packing->tar, bytes, got);

        at += (off_t)got;
        if (check(packing, worked, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Opens what was listed as a file. The descriptor, or -1: it is left out. */
static int open_file(struct packing *packing, const struct walk_entry *found,
                     struct stat *ret_status)
{
    CLEANUP_FD int fd =
        fd_open_beneath(found->directory, found->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0 && errno == ENOENT) {
        return -1; /* deleted: it is not among the files any more */
    }
    if (fd < 0 && errno != ELOOP && errno != ENXIO) { /* a link, a socket: open(2) */
        leave_out(packing, found->path, UNREADABLE);
        return -1;
    }
    if (fd < 0 || fstat(fd, ret_status) < 0 || !S_ISREG(ret_status->st_mode)) {
        leave_out(packing, found->path, CHANGED);
        return -1;
    }
    return CLEANUP_TAKE_FD(fd);
}

/* Was it written to since its head was? */
static bool has_changed(int fd, const struct stat *before)
{
    struct stat now;

    return fstat(fd, &now) < 0 || now.st_size != before->st_size ||
           now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

static int add_file(struct packing *packing, const struct walk_entry *found, const char *name,
                    struct err *err)
{
    struct stat status;
    CLEANUP_FD int fd = open_file(packing, found, &status);

    if (fd < 0) {
        return 0;
    }
    describe(packing->entry, name, &status);
    packing->dense = sparse_is_dense(&status);
    if (!packing->dense && !sparse_map(packing->entry, fd, &status)) {
        leave_out(packing, found->path, "holes");
        return 0;
    }
    if (write_head(packing, err) < 0 || write_content(packing, fd, status.st_size, err) < 0) {
        return -1;
    }
    if (has_changed(fd, &status)) {
        leave_out(packing, found->path, CHANGED);
    }
    return 0;
}

/* Is it there as what it was listed as? False: it is left out. */
static bool is_still(struct packing *packing, const struct walk_entry *found, mode_t type,
                     struct stat *ret_status)
{
    if (fstatat(found->directory, found->name, ret_status, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT) {
            leave_out(packing, found->path, UNREADABLE);
        }
        return false;
    }
    if ((ret_status->st_mode & S_IFMT) != type) {
        leave_out(packing, found->path, CHANGED);
        return false;
    }
    return true;
}

static int add_link(struct packing *packing, const struct walk_entry *found, const char *name,
                    struct err *err)
{
    char target[PATH_BYTES_MAX + 1];
    ssize_t size = readlinkat(found->directory, found->name, target, sizeof(target) - 1);
    struct stat status;

    if ((size < 0 && errno == ENOENT) || !is_still(packing, found, S_IFLNK, &status)) {
        return 0;
    }
    if (size < 0) { /* something else for a moment */
        leave_out(packing, found->path, CHANGED);
        return 0;
    }
    target[size] = '\0';
    if (!packing->options->links || !link_stays_inside(name, target)) {
        leave_out(packing, found->path, "symlink");
        return 0;
    }
    describe(packing->entry, name, &status);
    archive_entry_set_symlink(packing->entry, target);
    return write_head(packing, err);
}

static int add_directory(struct packing *packing, const struct walk_entry *found, const char *name,
                         struct err *err)
{
    struct stat status;

    if (!is_still(packing, found, S_IFDIR, &status)) {
        return 0;
    }
    if (found->unreadable) {
        leave_out(packing, found->path, UNREADABLE);
        return 0;
    }
    describe(packing->entry, name, &status);
    return write_head(packing, err);
}

static int add(struct packing *packing, const struct walk_entry *found, struct err *err)
{
    const char *name = found->path;

    if (!text_equal(packing->options->directory, PATH_ROOT)) {
        name += strlen(packing->options->directory) + 1;
    }
    if (path_depth(name) > UNPACK_DEPTH_MAX) {
        leave_out(packing, found->path, "deep");
        walk_prune(packing->walk);
        return 0;
    }
    switch (found->type) {
    case DT_REG:
        return put_is_temporary(found->name) ? 0 : add_file(packing, found, name, err);
    case DT_DIR:
        return add_directory(packing, found, name, err);
    case DT_LNK:
        return add_link(packing, found, name, err);
    default:
        leave_out(packing, found->path,
                  found->type == DT_FIFO   ? "fifo"
                  : found->type == DT_SOCK ? "socket"
                                           : "device");
        return 0;
    }
}

static int add_all(struct packing *packing, struct err *err)
{
    struct walk_entry found;

    while (walk_next(packing->walk, &found)) {
        if (check(packing, true, err) < 0 || add(packing, &found, err) < 0) {
            return -1;
        }
    }
    if (walk_incomplete(packing->walk)) {
        leave_out(packing, packing->options->directory, "unlisted");
    }
    return 0;
}

static int write_archive(struct packing *packing, struct err *err)
{
    int result = add_all(packing, err);

    if (result < 0) {
        squeeze_abort(packing->squeeze);
        return -1; /* an end would fill the member up with zeros */
    }
    return check(packing, tar_out_end(packing->tar), err);
}

/* libarchive stores a name as UTF-8 only if the thread's locale says that it is. */
static int write_in_utf8(struct packing *packing, struct err *err)
{
    locale_t old = uselocale(charset_utf8());
    int result;

    packing->tar = tar_out_new(output, packing);
    packing->entry = archive_entry_new();
    packing->piece = alloc_zero(1, PIECE);
    packing->zeros = alloc_zero(1, ZEROS);
    result = packing->tar == NULL ? err_set(err, ERR_IO, 0, "the archive can't be made")
                                  : write_archive(packing, err);
    free(packing->piece);
    free(packing->zeros);
    archive_entry_free(packing->entry);
    tar_out_free(packing->tar);
    (void)uselocale(old);
    return result;
}

/* The end of the file, and what came of it. */
static int finish(struct packing *packing, int result, struct err *err)
{
    struct squeeze_result squeezed;

    if (squeeze_close(packing->squeeze, &squeezed, result == 0 ? err : NULL) < 0 || result < 0) {
        pack_result_done(&packing->result);
        return -1;
    }
    packing->result.bytes = squeezed.bytes;
    memcpy(packing->result.digest, squeezed.digest, sizeof(packing->result.digest));
    return 0;
}

int pack_write(int root, const struct pack_options *options, int out,
               struct pack_result *ret_result, struct err *err)
{
    struct walk_options how = { .start = options->directory,
                                .recursive = true,
                                .skip = options->skip };
    struct squeeze_options squeezing = { .out = out,
                                         .gzip = options->gzip,
                                         .max_bytes = options->max_bytes };
    struct packing packing = { .options = options };
    int result;

    if (walk_open(root, &how, &packing.walk, err) < 0) {
        return -1;
    }
    result = squeeze_open(&squeezing, &packing.squeeze, err);
    if (result == 0) {
        result = finish(&packing, write_in_utf8(&packing, err), err);
    }
    walk_close(packing.walk);
    if (result == 0) {
        *ret_result = packing.result;
    }
    return result;
}
