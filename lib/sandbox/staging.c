/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging: new contents of workspaces.
 * Owns: directories that begin with STAGING_PREFIX below the workspaces.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_entry.h"
#include "lib/sandbox/session_freeze.h"
#include "lib/sandbox/spares.h"
#include "lib/work/merge.h"
#include "lib/work/path.h"
#include "lib/work/replace.h"
#include "lib/work/scan.h"
#include "lib/work/unpack.h"
#include "lib/work/workspace.h"

#define MIB (UINT64_C(1) << 20)
/* Left on the disk for everybody else. */
#define RESERVE (UINT64_C(64) * MIB)
/* Other calls hold a session for as long as they read or write its files. */
#define WAIT_S 5

/* ---- open, close ---- */

/* One at a time in a directory that several sessions may have as their workspace. 0 or -1. */
static int lock(struct staging *staging, struct err *err)
{
    staging->lock = fd_open_beneath(staging->entry->root, ".", O_RDONLY | O_DIRECTORY, 0);
    if (staging->lock < 0) {
        return err_set(err, ERR_IO, errno, "the workspace cannot be opened: %s",
                       err_errno_text(errno));
    }
    if (flock(staging->lock, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_SESSION_BUSY, errno,
                       "another archive is just being unpacked into this workspace");
    }
    return 0;
}

int staging_open(struct sandbox *sandbox, struct session_entry *entry, struct staging *ret_staging,
                 struct err *err)
{
    struct staging staging = { .sandbox = sandbox, .entry = entry, .directory = -1, .lock = -1 };
    int result;

    if (session_entry_writable(entry, err) < 0) {
        return -1;
    }
    if (entry->owned) {
        result = workspace_create(sandbox->workspaces, id_make(STAGING_PREFIX, staging.name),
                                  &staging.directory, err);
    } else {
        staging.inside = true;
        result = lock(&staging, err) < 0 ? -1 : replace_begin(entry->root, &staging.directory, err);
    }
    if (result < 0) {
        fd_close(staging.lock);
        return -1;
    }
    *ret_staging = staging;
    return 0;
}

void staging_close(struct staging *staging)
{
    fd_clear(&staging->directory);
    if (staging->old_left) {
        replace_end(staging->entry->root);
    } else if (staging->inside) {
        replace_abort(staging->entry->root);
    } else {
        (void)workspace_discard(staging->sandbox->workspaces, staging->name, NULL);
        janitor_wake(staging->sandbox->janitor);
    }
    fd_clear(&staging->lock);
}

/* ---- unpack ---- */

uint64_t staging_room(int directory)
{
    struct statvfs space;
    uint64_t bytes;

    if (fstatvfs(directory, &space) < 0) {
        return 0;
    }
    bytes = (uint64_t)space.f_bavail * space.f_frsize;
    return bytes > RESERVE ? bytes - RESERVE : 0;
}

void staging_limits(uint64_t bytes, struct cancel *cancel, struct unpack_limits *ret_limits)
{
    *ret_limits = (struct unpack_limits){ .max_bytes = bytes,
                                          .max_entries = UNPACK_ENTRIES_MAX,
                                          .cancel = cancel };
}

/* What is left of the session's quota and of the disk. 0 or -1. */
static int room(const struct staging *staging, bool merge, uint64_t *ret_bytes, struct err *err)
{
    uint64_t disk = staging_room(staging->directory);
    struct scan *scan = NULL;
    struct options options;
    uint64_t quota;
    uint64_t used = 0;

    session_table_options(staging->entry, &options);
    quota = options.limits.disk_mb * MIB;
    options_done(&options);
    if (merge && quota > 0) {
        if (scan_take(staging->entry->root, NULL, &scan, err) < 0) {
            return -1;
        }
        used = scan_disk(scan);
        scan_free(scan);
    }
    if (quota > 0) {
        quota = quota > used ? quota - used : 0;
        disk = disk < quota ? disk : quota;
    }
    *ret_bytes = disk;
    return 0;
}

/* One level down, made if it is not there. */
static int step(int *directory, const char *name, struct err *err)
{
    int next = -1;

    if (mkdirat(*directory, name, 0755) == 0 || errno == EEXIST) {
        next = fd_open_beneath(*directory, name, O_RDONLY | O_DIRECTORY, 0);
    }
    if (next < 0) {
        return err_set(err, ERR_IO, errno, "a directory cannot be made: %s", err_errno_text(errno));
    }
    fd_close(*directory);
    *directory = next;
    return 0;
}

/* The directory that members go to, for the caller to close. */
static int open_target(const struct staging *staging, const char *path, int *ret_directory,
                       struct err *err)
{
    CLEANUP_FREE char *names = alloc_text(path);
    CLEANUP_FD int at = fd_open_beneath(staging->directory, ".", O_RDONLY | O_DIRECTORY, 0);
    char *name = names;

    if (at < 0) {
        return err_set(err, ERR_IO, errno, "a directory cannot be opened: %s",
                       err_errno_text(errno));
    }
    while (!text_equal(path, PATH_ROOT) && name != NULL) {
        char *slash = strchr(name, '/');

        if (slash != NULL) {
            *slash = '\0';
        }
        if (step(&at, name, err) < 0) {
            return -1;
        }
        name = slash == NULL ? NULL : slash + 1;
    }
    *ret_directory = CLEANUP_TAKE_FD(at);
    return 0;
}

int staging_unpack(struct staging *staging, const struct staging_archive *archive,
                   struct staging_result *ret_result, struct err *err)
{
    CLEANUP_FD int target = -1;
    struct unpack_limits limits;
    struct unpack_result unpacked;
    uint64_t bytes;

    if (room(staging, archive->merge, &bytes, err) < 0 ||
        open_target(staging, archive->directory, &target, err) < 0) {
        return -1;
    }
    staging_limits(bytes, archive->cancel, &limits);
    limits.full = ERR_WORKSPACE_FULL;
    if (unpack_into(target, archive->file, &limits, &unpacked, err) < 0) {
        return -1;
    }
    *ret_result = (struct staging_result){ .entries = unpacked.entries, .bytes = unpacked.bytes };
    return 0;
}

/* ---- put in place ---- */

/* The workspace becomes another directory. */
static int exchange(struct staging *staging, struct err *err)
{
    struct sandbox *sandbox = staging->sandbox;
    struct session_entry *entry = staging->entry;

    spares_drop_session(sandbox->spares, entry->id);
    if (workspace_exchange(sandbox->workspaces, staging->name, entry->workspace, err) < 0) {
        session_freeze_end(entry, -1);
        return -1;
    }
    session_freeze_end(entry, CLEANUP_TAKE_FD(staging->directory));
    return 0;
}

/* The workspace stays the directory it is, since somebody outside of us has it. */
static int replace_inside(struct staging *staging, struct err *err)
{
    struct session_entry *entry = staging->entry;
    int result = 0;

    if (!staging->inside) {
        result = lock(staging, err) < 0
                     ? -1
                     : replace_adopt(entry->root, staging->sandbox->workspaces, staging->name, err);
        staging->inside = result == 0;
    }
    if (result == 0) {
        result = replace_commit(entry->root, err);
        staging->old_left = result == 0;
    }
    session_freeze_end(entry, -1);
    return result;
}

int staging_swap(struct staging *staging, struct err *err)
{
    struct session_entry *entry = staging->entry;
    struct kernels_table *kernels = &staging->sandbox->kernels;
    bool alone = !staging->inside && kernels_table_count(kernels, entry->id) == 0;

    if (session_freeze_begin(entry, alone, clock_deadline_after_s(WAIT_S), err) < 0) {
        return -1;
    }
    if (alone && kernels_table_count(kernels, entry->id) > 0) {
        session_freeze_end(entry, -1);
        return err_set(err, ERR_SESSION_BUSY, 0, "a kernel is just being opened");
    }
    return alone ? exchange(staging, err) : replace_inside(staging, err);
}

int staging_merge(struct staging *staging, struct err *err)
{
    return merge_tree(staging->directory, staging->entry->root, err);
}
