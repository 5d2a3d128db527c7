/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshots_make: making and importing snapshots.
 * Owns: an archive until it is stored.
 * Threads: any but the event one.
 * May include: all of lib.
 */
#include "lib/sandbox/snapshots_make.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/id.h"
#include "lib/base/text.h"
#include "lib/sandbox/janitor.h"
#include "lib/sandbox/lines.h"
#include "lib/sandbox/sandbox_internal.h"
#include "lib/sandbox/session_archive.h"
#include "lib/sandbox/session_work.h"
#include "lib/sandbox/snapshots_internal.h"
#include "lib/sandbox/staging.h"
#include "lib/work/depot.h"
#include "lib/work/pack.h"
#include "lib/work/path.h"
#include "lib/work/unpack.h"
#include "lib/work/workspace.h"

#define PREFIX "snp"
#define SCRATCH "staging"
#define PIECE ((size_t)256 << 10)

static void begin_row(struct rows_snapshot *row, const struct session_actor *actor,
                      const char *name)
{
    char made[ID_SIZE];

    *row = (struct rows_snapshot){ .caller = actor->caller, .created_ms = clock_wall_ms() };
    (void)snprintf(row->id, sizeof(row->id), "%s", id_make(PREFIX, made));
    (void)snprintf(row->name, sizeof(row->name), "%s", name == NULL ? "" : name);
}

/* ---- store ---- */

/* Locked. The archive in `file` and its row, in place of `old` (NULL: of none). */
static int store(struct snapshots *snapshots, int file, const struct rows_snapshot *row,
                 const struct rows_snapshot *old, struct err *err)
{
    struct store *rows = snapshots->sandbox->store;
    bool used = false;
    int result;

    if (rows_snapshot_has_digest(rows, row->digest, &used, err) < 0 ||
        (!used && snapshots_make_room(snapshots, row->bytes, err) < 0) ||
        depot_keep(snapshots->depot, file, row->digest, err) < 0) {
        return -1;
    }
    result = old == NULL ? rows_snapshot_insert(rows, row, err)
                         : rows_snapshot_replace(rows, old->id, row, err);
    if (result < 0 && !used) {
        depot_remove(snapshots->depot, row->digest);
    }
    if (result == 0 && old != NULL &&
        rows_snapshot_has_digest(rows, old->digest, &used, NULL) == 0 && !used) {
        depot_remove(snapshots->depot, old->digest);
    }
    return result;
}

static int name_taken(const char *name, struct err *err)
{
    return err_field(err, ERR_CONFLICT, "/name", "there is a snapshot named %s already", name);
}

/* ---- create ---- */

static char *left_out(const struct pack_result *packed)
{
    CLEANUP_STRV struct strv texts = { 0 };

    for (size_t i = 0; i < packed->left_count; i++) {
        strv_addf(&texts, "%s %s", packed->left[i].why, packed->left[i].path);
    }
    if (packed->left_truncated) {
        strv_add(&texts, "");
    }
    return lines_join(&texts);
}

/* Packs the session into the file; the row is told of it. */
static int pack(struct sandbox *sandbox, const struct session_actor *actor,
                const struct snapshots_make_wanted *wanted, int file, struct rows_snapshot *row,
                struct err *err)
{
    const struct pack_options options = { .directory = PATH_ROOT,
                                          .skip = session_archive_skip,
                                          .gzip = true,
                                          .links = true,
                                          .max_bytes = sandbox->snapshots->max_bytes,
                                          .cancel = wanted->cancel };
    struct session_entry *entry =
        session_table_hold(&sandbox->sessions, actor, wanted->session_id, false, err);
    struct pack_result packed;
    struct session_work work;
    int result;

    if (entry == NULL) {
        return -1;
    }
    session_work_begin(&work, entry, wanted->cancel);
    result = session_work_end(&work, pack_write(entry->root, &options, file, &packed, err), err);
    session_table_release(entry, false);
    if (result < 0) {
        return -1;
    }
    (void)snprintf(row->session_id, sizeof(row->session_id), "%s", wanted->session_id);
    memcpy(row->digest, packed.digest, sizeof(row->digest));
    row->bytes = packed.bytes;
    row->entries = packed.entries;
    row->left_out = left_out(&packed);
    pack_result_done(&packed);
    return 0;
}

static int make(struct sandbox *sandbox, const struct session_actor *actor,
                const struct snapshots_make_wanted *wanted, struct rows_snapshot *row,
                struct err *err)
{
    struct snapshots *snapshots = sandbox->snapshots;
    CLEANUP_FD int file = -1;
    int result;

    if (depot_begin(snapshots->depot, &file, err) < 0 ||
        pack(sandbox, actor, wanted, file, row, err) < 0) {
        return -1;
    }
    (void)pthread_mutex_lock(&snapshots->lock);
    result = store(snapshots, file, row, NULL, err);
    (void)pthread_mutex_unlock(&snapshots->lock);
    return result;
}

/* Before the work is done; the store looks again in case somebody is faster. */
static int check_name(struct sandbox *sandbox, const char *name, struct err *err)
{
    struct rows_snapshot row;

    if (name == NULL) {
        return 0;
    }
    if (text_starts_with(name, PREFIX "_")) {
        return err_field(err, ERR_BAD_VALUE, "/name",
                         "a name that begins with \"" PREFIX "_\" looks like an id");
    }
    if (rows_snapshot_get(sandbox->store, name, &row, NULL) == 0) {
        rows_snapshot_done(&row);
        return name_taken(name, err);
    }
    return 0;
}

int snapshots_make(struct sandbox *sandbox, const struct session_actor *actor,
                   const struct snapshots_make_wanted *wanted, struct snapshots_view *ret_view,
                   struct err *err)
{
    struct rows_snapshot row;
    int result;

    if (check_name(sandbox, wanted->name, err) < 0) {
        return -1;
    }
    begin_row(&row, actor, wanted->name);
    row.labels = wanted->labels == NULL ? NULL : lines_join(wanted->labels);
    result = make(sandbox, actor, wanted, &row, err);
    if (result == 0) {
        snapshots_view_from_row(&row, ret_view);
    }
    rows_snapshot_done(&row);
    return result;
}

/* ---- import ---- */

/* Copies the archive to `to`; the row gets size and digest. */
static int copy(const struct snapshots_make_source *source, int to, struct rows_snapshot *row,
                struct err *err)
{
    CLEANUP_FREE char *piece = alloc_zero(1, PIECE);
    struct hash *hash = hash_new();
    off_t at = 0;
    ssize_t got = 0;

    while (cancel_get(source->cancel) == CANCEL_NONE &&
           (got = pread(source->file, piece, PIECE, at)) > 0 &&
           fd_write_full(to, piece, (size_t)got) == 0) {
        hash_add(hash, piece, (size_t)got);
        at += got;
    }
    hash_end_hex(hash, row->digest);
    row->bytes = (uint64_t)at;
    if (cancel_get(source->cancel) != CANCEL_NONE) {
        return err_set(err, ERR_CANCELLED, 0, "the archive was not stored");
    }
    if (got == 0) {
        return 0;
    }
    return err_set(err, errno == ENOSPC || errno == EDQUOT ? ERR_STORE_FULL : ERR_IO, errno,
                   "the archive cannot be stored: %s", err_errno_text(errno));
}

/* Unpacks it into nowhere: then a session can be made of it, too. */
static int prove(struct sandbox *sandbox, int file, struct cancel *cancel,
                 struct rows_snapshot *row, struct err *err)
{
    struct unpack_result unpacked;
    struct unpack_limits limits;
    CLEANUP_FD int scratch = -1;
    char name[ID_SIZE];
    int result;

    if (workspace_create(sandbox->workspaces, id_make(SCRATCH, name), &scratch, err) < 0) {
        return -1;
    }
    staging_limits(staging_room(scratch), cancel, &limits);
    result = unpack_into(scratch, file, &limits, &unpacked, err);
    (void)workspace_discard(sandbox->workspaces, name, NULL);
    janitor_wake(sandbox->janitor);
    if (result == 0) {
        row->entries = unpacked.entries;
    }
    return result;
}

/* Locked: the name's old snapshot, if it has one. 1, 0, or -1 when it is another caller's. */
static int find_old(struct snapshots *snapshots, const struct session_actor *actor,
                    const char *name, struct rows_snapshot *ret_old, struct err *err)
{
    if (rows_snapshot_get(snapshots->sandbox->store, name, ret_old, NULL) < 0) {
        return 0;
    }
    if (!text_equal(ret_old->name, name) || (!actor->all && ret_old->caller != actor->caller)) {
        rows_snapshot_done(ret_old);
        return name_taken(name, err);
    }
    return 1;
}

static int keep(struct snapshots *snapshots, const struct session_actor *actor, int file,
                const struct rows_snapshot *row, bool *ret_created, struct err *err)
{
    struct rows_snapshot old = { .labels = NULL };
    int found;
    int result;

    (void)pthread_mutex_lock(&snapshots->lock);
    found = find_old(snapshots, actor, row->name, &old, err);
    result = found < 0 ? -1 : store(snapshots, file, row, found > 0 ? &old : NULL, err);
    (void)pthread_mutex_unlock(&snapshots->lock);
    rows_snapshot_done(&old);
    *ret_created = found == 0;
    return result;
}

int snapshots_make_import(struct sandbox *sandbox, const struct session_actor *actor,
                          const struct snapshots_make_source *source, bool *ret_created,
                          struct snapshots_view *ret_view, struct err *err)
{
    struct snapshots *snapshots = sandbox->snapshots;
    CLEANUP_FD int file = -1;
    struct rows_snapshot row;
    int result = -1;

    if (text_starts_with(source->name, PREFIX "_")) {
        return err_set(err, ERR_BAD_VALUE, 0,
                       "a name that begins with \"" PREFIX "_\" looks like an id");
    }
    begin_row(&row, actor, source->name);
    if (prove(sandbox, source->file, source->cancel, &row, err) == 0 &&
        depot_begin(snapshots->depot, &file, err) == 0 && copy(source, file, &row, err) == 0) {
        result = keep(snapshots, actor, file, &row, ret_created, err);
    }
    if (result == 0) {
        snapshots_view_from_row(&row, ret_view);
    }
    rows_snapshot_done(&row);
    return result;
}
