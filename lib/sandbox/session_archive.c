/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_archive: archives out of sessions and into them.
 * Owns: nothing that lasts.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/session_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/cleanup.h"
#include "lib/base/text.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_work.h"
#include "lib/sandbox/snapshots.h"
#include "lib/sandbox/staging.h"
#include "lib/work/pack.h"
#include "lib/work/path.h"
#include "lib/work/replace.h"

const char *const session_archive_skip[3] = { REPLACE_NEW, REPLACE_OLD, NULL };

/* ---- out ---- */

/* Where archives wait for their readers: on the disk of the workspaces, gone when closed. */
static int open_file(struct sandbox *sandbox, int *ret_file, struct err *err)
{
    *ret_file = openat(sandbox->workspaces, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (*ret_file < 0) {
        return err_set(err, errno == ENOSPC || errno == EDQUOT ? ERR_STORE_FULL : ERR_IO, errno,
                       "an archive cannot be written: %s", err_errno_text(errno));
    }
    return 0;
}

static int make(struct sandbox *sandbox, struct session_entry *entry,
                const struct session_archive_options *options, struct session_archive *ret_archive,
                struct err *err)
{
    CLEANUP_FREE char *directory = NULL;
    CLEANUP_FD int file = -1;
    struct pack_options how = { .skip = session_archive_skip,
                                .gzip = options->gzip,
                                .links = options->links,
                                .cancel = options->cancel };
    struct pack_result packed;

    if (path_parse_directory(options->path, options->path_size, &directory, err) < 0 ||
        open_file(sandbox, &file, err) < 0) {
        return -1;
    }
    how.directory = directory;
    how.max_bytes = staging_room(file);
    if (pack_write(entry->root, &how, file, &packed, err) < 0) {
        return -1;
    }
    *ret_archive = (struct session_archive){ .file = CLEANUP_TAKE_FD(file),
                                             .bytes = packed.bytes,
                                             .entries = packed.entries,
                                             .left_out = packed.left_count };
    memcpy(ret_archive->digest, packed.digest, sizeof(ret_archive->digest));
    pack_result_done(&packed);
    return 0;
}

int session_archive_make(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                         const struct session_archive_options *options,
                         struct session_archive *ret_archive, struct err *err)
{
    struct session_entry *entry = session_table_hold(&sandbox->sessions, actor, id, false, err);
    struct session_work work;
    int result;

    if (entry == NULL) {
        return -1;
    }
    session_work_begin(&work, entry, options->cancel);
    result = session_work_end(&work, make(sandbox, entry, options, ret_archive, err), err);
    session_table_release(entry, false);
    return result;
}

/* ---- in ---- */

/* Unpacks aside and puts it in place. */
static int take(struct sandbox *sandbox, struct session_entry *entry,
                const struct staging_archive *archive, struct session_archive_taken *ret_taken,
                struct err *err)
{
    struct staging_result unpacked;
    struct session_work work;
    struct staging staging;
    int result;

    if (staging_open(sandbox, entry, &staging, err) < 0) {
        return -1;
    }
    session_work_begin(&work, entry, archive->cancel);
    result = session_work_end(&work, staging_unpack(&staging, archive, &unpacked, err), err);
    if (result == 0) {
        result = archive->merge ? staging_merge(&staging, err) : staging_swap(&staging, err);
    }
    staging_close(&staging);
    if (result == 0) {
        *ret_taken =
            (struct session_archive_taken){ .entries = unpacked.entries, .bytes = unpacked.bytes };
    }
    return result;
}

int session_archive_take(struct sandbox *sandbox, const struct session_actor *actor, const char *id,
                         const struct session_archive_source *source,
                         struct session_archive_taken *ret_taken, struct err *err)
{
    CLEANUP_FREE char *directory = NULL;
    struct session_entry *entry;
    int result;

    if (path_parse_directory(source->path, source->path_size, &directory, err) < 0) {
        return -1;
    }
    if (source->replace && !text_equal(directory, PATH_ROOT)) {
        return err_set(err, ERR_BAD_VALUE, 0, "only the whole workspace can be replaced");
    }
    entry = session_table_hold(&sandbox->sessions, actor, id, false, err);
    if (entry == NULL) {
        return -1;
    }
    result = take(sandbox, entry,
                  &(struct staging_archive){ .file = source->file,
                                             .directory = directory,
                                             .merge = !source->replace,
                                             .cancel = source->cancel },
                  ret_taken, err);
    session_table_release(entry, result == 0);
    return result;
}

/* ---- snapshots ---- */

static int take_snapshot(struct sandbox *sandbox, const struct session_actor *actor,
                         struct session_entry *entry,
                         const struct session_archive_snapshot *snapshot,
                         struct session_archive_taken *ret_taken, struct err *err)
{
    CLEANUP_FD int file = -1;
    struct snapshots_view view;

    if (snapshots_read(sandbox, actor, snapshot->id, &file, &view, err) < 0) {
        return -1;
    }
    snapshots_view_done(&view);
    return take(sandbox, entry,
                &(struct staging_archive){
                    .file = file, .directory = PATH_ROOT, .cancel = snapshot->cancel },
                ret_taken, err);
}

int session_archive_restore(struct sandbox *sandbox, const struct session_actor *actor,
                            const char *id, const struct session_archive_snapshot *snapshot,
                            struct session_archive_taken *ret_taken, struct err *err)
{
    struct session_entry *entry = session_table_hold(&sandbox->sessions, actor, id, false, err);
    int result;

    if (entry == NULL) {
        return -1;
    }
    result = take_snapshot(sandbox, actor, entry, snapshot, ret_taken, err);
    session_table_release(entry, result == 0);
    return result;
}

int session_archive_fill(struct sandbox *sandbox, const struct session_actor *actor,
                         struct session_entry *entry,
                         const struct session_archive_snapshot *snapshot, struct err *err)
{
    struct session_archive_taken taken;

    return take_snapshot(sandbox, actor, entry, snapshot, &taken, err);
}
