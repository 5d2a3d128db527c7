/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack: libarchive's tar reader over ahead, with every rule checked before anything is made.
 * Owns: nothing between calls.
 * Threads: any; the thread's locale is changed for the time of a call; ahead.c has its own.
 * May include: base, libarchive.
 */
#include "lib/work/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/work/ahead.h"
#include "lib/work/charset.h"
#include "lib/work/link.h"
#include "lib/work/path.h"
#include "lib/work/plant.h"
#include "lib/work/tar_head.h"

#define HEAD_BYTES UINT64_C(4096) /* of the archive, for each member, besides its data */
#define NAME_SHOWN 100

struct unpacking {
    const struct unpack_limits *limits;
    struct archive *archive;
    struct ahead *ahead;
    struct plant plant;
    struct unpack_result result;
    struct tar_head head;
    char last[NAME_SHOWN + 1]; /* of the last member's name the beginning */
    struct err input_failure;
};

/* libarchive's input: what is decompressed; there it is also seen when nobody wants it any more. */
static la_ssize_t input(struct archive *archive, void *context, const void **ret_data)
{
    struct unpacking *unpacking = context;
    ssize_t got;

    tar_head_leave(&unpacking->head);
    got = ahead_next(unpacking->ahead, ret_data, &unpacking->input_failure);
    if (got < 0) {
        archive_set_error(archive, EINVAL, "%s", unpacking->input_failure.msg);
        return -1;
    }
    tar_head_see(&unpacking->head, *ret_data, (size_t)got);
    return got;
}

/* The beginning of a name, with what is not plain text in it as '?'. Returns out. */
static const char *show(const char *name, char out[static NAME_SHOWN + 1])
{
    (void)snprintf(out, NAME_SHOWN + 1, "%s", name);
    for (char *at = out; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            *at = '?';
        }
    }
    return out;
}

/* Always -1. */
static int refuse(struct err *err, const char *name, const char *rule)
{
    char shown[NAME_SHOWN + 1];

    return err_set(err, ERR_BAD_ARCHIVE, 0, "member '%s': %s", show(name, shown), rule);
}

/* name: of the member whose data is read, or NULL between members. */
static int fail_reading(struct unpacking *unpacking, const char *name, struct err *err)
{
    const char *text = archive_error_string(unpacking->archive);
    char shown[NAME_SHOWN + 1];

    text = text != NULL ? text : "no reason was given";
    if (unpacking->input_failure.code != ERR_NONE) {
        if (err != NULL) {
            *err = unpacking->input_failure;
        }
        return -1;
    }
    if (name != NULL) {
        return refuse(err, name, text);
    }
    if (unpacking->result.entries == 0) {
        return err_set(err, ERR_BAD_ARCHIVE, 0, "it is no sound tar archive: %s", text);
    }
    return err_set(err, ERR_BAD_ARCHIVE, 0, "the member behind '%s': %s",
                   show(unpacking->last, shown), text);
}

/* Why making a member failed: its own fault, or ours. */
static int fail_making(struct err *err, const char *name, int sys)
{
    switch (sys) {
    case EEXIST:
        return refuse(err, name, "its name is taken by another member");
    case ELOOP:
        return refuse(err, name, "it is below a symbolic link");
    case ENOTDIR:
        return refuse(err, name, "it is below something that is not a directory");
    case ENOENT:
        return refuse(err, name, "it links to no earlier file");
    case EFBIG:
    case ENAMETOOLONG:
    case EINVAL:
        return refuse(err, name, "the file system can't hold it");
    case ENOSPC:
    case EDQUOT:
        return err_set(err, ERR_WORKSPACE_FULL, sys, "no space is left to unpack into");
    default:
        return err_set(err, ERR_IO, sys, "the archive can't be unpacked: %s", err_errno_text(sys));
    }
}

static struct timespec mtime_of(struct archive_entry *entry)
{
    return (struct timespec){ .tv_sec = archive_entry_mtime_is_set(entry)
                                            ? archive_entry_mtime(entry)
                                            : 0,
                              .tv_nsec = archive_entry_mtime_nsec(entry) };
}

static bool is_zero(const unsigned char *data, size_t size)
{
    return size > 0 && data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

/* *end: of the file so far. */
static int write_block(int fd, const void *data, size_t size, la_int64_t offset, la_int64_t *end)
{
    const char *bytes = data;

    /* Left as a hole: ftruncate comes at the end. */
    if (is_zero(data, size)) {
        return 0;
    }
    while (size > 0) {
        ssize_t wrote = pwrite(fd, bytes, size, offset);

        if (wrote < 0 && errno != EINTR) {
            return -1;
        }
        if (wrote > 0) {
            bytes += wrote;
            offset += wrote;
            size -= (size_t)wrote;
        }
    }
    *end = offset > *end ? offset : *end;
    return 0;
}

static int refuse_size(const struct unpack_limits *limits, const char *name, struct err *err)
{
    (void)refuse(err, name, "the files together are larger than is allowed");
    if (err != NULL && limits->full != ERR_NONE) {
        err->code = limits->full;
    }
    return -1;
}

/* *end: of what was written, which is less than the size where zeros were left out. */
static int write_content(struct unpacking *unpacking, const char *name, int fd, la_int64_t *end,
                         struct err *err)
{
    for (;;) {
        const void *data;
        size_t size;
        la_int64_t offset;
        int code = archive_read_data_block(unpacking->archive, &data, &size, &offset);

        if (code == ARCHIVE_EOF) {
            return 0;
        }
        if (code < ARCHIVE_WARN) {
            return fail_reading(unpacking, name, err);
        }
        if (size > unpacking->limits->max_bytes - unpacking->result.bytes) {
            return refuse_size(unpacking->limits, name, err);
        }
        unpacking->result.bytes += size;
        if (write_block(fd, data, size, offset, end) < 0) {
            return fail_making(err, name, errno);
        }
    }
}

static int add_file(struct unpacking *unpacking, struct archive_entry *entry, const char *name,
                    struct err *err)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(entry) };
    CLEANUP_FD int fd = -1;
    la_int64_t end = 0;

    if (archive_entry_size(entry) < 0) {
        return refuse(err, name, "its size is negative");
    }
    if ((archive_entry_perm(entry) & (S_ISUID | S_ISGID)) != 0) {
        return refuse(err, name, "it is a setuid or setgid file");
    }
    fd = plant_file(&unpacking->plant, name);
    if (fd < 0) {
        return fail_making(err, name, errno);
    }
    if (write_content(unpacking, name, fd, &end, err) < 0) {
        return -1;
    }
    if ((end != archive_entry_size(entry) && ftruncate(fd, archive_entry_size(entry)) < 0) ||
        futimens(fd, times) < 0 || fchmod(fd, archive_entry_perm(entry) & 0777) < 0) {
        return fail_making(err, name, errno);
    }
    return 0;
}

static int add_hard_link(struct unpacking *unpacking, const char *name, const char *target,
                         struct err *err)
{
    CLEANUP_FREE char *clean = NULL;

    if (path_parse(target, strlen(target), &clean, NULL) < 0 || target[0] == '/') {
        return refuse(err, name, "it is a hard link out of the archive");
    }
    if (plant_hard_link(&unpacking->plant, name, clean) < 0) {
        return fail_making(err, name, errno);
    }
    return 0;
}

static int add_symlink(struct unpacking *unpacking, struct archive_entry *entry, const char *name,
                       struct err *err)
{
    const char *target = archive_entry_symlink(entry);
    struct timespec mtime = mtime_of(entry);

    if (target == NULL || !link_stays_inside(name, target)) {
        return refuse(err, name, "it is a symbolic link out of the archive");
    }
    if (plant_symlink(&unpacking->plant, name, target, &mtime) < 0) {
        return fail_making(err, name, errno);
    }
    return 0;
}

static int add_typed(struct unpacking *unpacking, struct archive_entry *entry, const char *name,
                     struct err *err)
{
    struct timespec mtime = mtime_of(entry);

    if (archive_entry_hardlink(entry) != NULL) {
        return add_hard_link(unpacking, name, archive_entry_hardlink(entry), err);
    }
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
        return add_file(unpacking, entry, name, err);
    case AE_IFLNK:
        return add_symlink(unpacking, entry, name, err);
    case AE_IFDIR:
        if (plant_directory(&unpacking->plant, name, archive_entry_perm(entry) & 0777, &mtime) <
            0) {
            return fail_making(err, name, errno);
        }
        return 0;
    default:
        return refuse(err, name, "it is neither a file nor a directory nor a link");
    }
}

static int add(struct unpacking *unpacking, struct archive_entry *entry, struct err *err)
{
    unsigned max_depth =
        unpacking->limits->max_depth > 0 ? unpacking->limits->max_depth : UNPACK_DEPTH_MAX;
    const char *raw = archive_entry_pathname(entry);
    CLEANUP_FREE char *name = NULL;
    struct err why = ERR_INIT;
    const char *fault;

    if (raw == NULL || raw[0] == '\0') {
        return refuse(err, "", "it has no readable name");
    }
    (void)snprintf(unpacking->last, sizeof(unpacking->last), "%s", raw);
    if (++unpacking->result.entries > unpacking->limits->max_entries) {
        return refuse(err, raw, "the archive has more members than are allowed");
    }
    fault = tar_head_fault(&unpacking->head, (uint64_t)archive_filter_bytes(unpacking->archive, 0));
    if (fault != NULL) {
        return refuse(err, raw, fault);
    }
    if (raw[0] == '/') {
        return refuse(err, raw, "its name is absolute");
    }
    if (path_parse_directory(raw, strlen(raw), &name, &why) < 0) {
        return refuse(err, raw, why.msg);
    }
    if (strcmp(name, PATH_ROOT) == 0) { /* "./", as GNU tar writes it */
        return archive_entry_filetype(entry) == AE_IFDIR
                   ? 0
                   : refuse(err, raw, "it would replace the workspace itself");
    }
    if (path_depth(name) > max_depth) {
        return refuse(err, raw, "it is too many levels deep");
    }
    return add_typed(unpacking, entry, name, err);
}

/*
 * Behind the end marker come zeros up to a whole record, if anything. The tar reader stops there;
 * the rest is read here, which also has the compressed data's end checked.
 */
static int check_rest(struct unpacking *unpacking, struct err *err)
{
    const struct tar_head *head = &unpacking->head;
    uint64_t used = (uint64_t)archive_filter_bytes(unpacking->archive, 0);
    size_t rest = used <= head->given ? (size_t)(head->given - used) : 0;
    const unsigned char *data = head->block;
    ssize_t size;

    if (rest <= head->size && data != NULL) {
        data += head->size - rest;
        size = (ssize_t)rest;
    } else {
        size = 0;
    }
    do {
        if (size > 0 && !is_zero(data, (size_t)size)) {
            return err_set(err, ERR_BAD_ARCHIVE, 0, "there is something behind the archive's end");
        }
        size = ahead_next(unpacking->ahead, (const void **)&data, err);
    } while (size > 0);
    return size < 0 ? -1 : 0;
}

static int unpack_all(struct unpacking *unpacking, struct err *err)
{
    struct archive_entry *entry;
    int code;

    if (archive_read_support_format_tar(unpacking->archive) < ARCHIVE_WARN ||
        archive_read_open(unpacking->archive, unpacking, NULL, input, NULL) < ARCHIVE_WARN) {
        return fail_reading(unpacking, NULL, err);
    }
    while ((code = archive_read_next_header(unpacking->archive, &entry)) != ARCHIVE_EOF) {
        if (code < ARCHIVE_WARN) {
            return fail_reading(unpacking, NULL, err);
        }
        if (add(unpacking, entry, err) < 0) {
            return -1;
        }
    }
    if (check_rest(unpacking, err) < 0) {
        return -1;
    }
    if (plant_finish(&unpacking->plant, unpacking->limits->cancel) == 0) {
        return 0;
    }
    return errno == ECANCELED
               ? err_set(err, ERR_CANCELLED, 0, "the archive was not unpacked to its end")
               : err_set(err, ERR_IO, errno, "modes can't be set: %s", err_errno_text(errno));
}

int unpack_into(int directory, int in, const struct unpack_limits *limits,
                struct unpack_result *ret_result, struct err *err)
{
    struct unpacking unpacking = { .limits = limits };
    uint64_t most = limits->max_bytes + limits->max_entries * HEAD_BYTES + HEAD_BYTES * 16;
    locale_t old;
    int result;

    /* libarchive gives a name that the archive says is UTF-8 only where the locale can hold it. */
    old = uselocale(charset_utf8());
    plant_init(&unpacking.plant, directory);
    unpacking.archive = archive_read_new();
    result = ahead_open(in, most, limits->cancel, &unpacking.ahead, err);
    if (result == 0) {
        result = unpack_all(&unpacking, err);
    }
    (void)archive_read_free(unpacking.archive);
    ahead_close(unpacking.ahead);
    plant_done(&unpacking.plant);
    (void)uselocale(old);
    if (result == 0) {
        *ret_result = unpacking.result;
    }
    return result;
}
