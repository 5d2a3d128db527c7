/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace: the directories of sessions and calls below one private parent directory.
 *
 * Deleting one has two halves, so that its caller need not wait and a crash leaves nothing half
 * deleted under a live name: workspace_discard renames it away at once, workspace_purge removes
 * what was renamed, whenever there is time. Any thread; names are single components.
 */
#ifndef KERND_WORK_WORKSPACE_H
#define KERND_WORK_WORKSPACE_H

#include <stddef.h>

#include "lib/base/cancel.h"
#include "lib/base/err.h"
#include "lib/work/remove.h"

#define WORKSPACE_TRASH ".trash" /* below the parent: what was discarded */
#define WORKSPACE_LOST ".lost"   /* below the parent: what was set aside */

/*
 * Opens the parent directory at an absolute path, made with mode 0700 if missing (its own parent
 * must exist), and its trash. 0 and a descriptor for the caller to close, or -1 IO/STORE_FULL.
 */
int workspace_open_parent(const char *path, int *ret_parent, struct err *err);

/*
 * Makes an empty directory, mode 0700. 0 and a descriptor (O_RDONLY) for the caller to close, or -1
 * CONFLICT when the name is taken, STORE_FULL, IO.
 */
int workspace_create(int parent, const char *name, int *ret_directory, struct err *err);

/*
 * Opens an existing one. A box may have set mode 000 on it: then the owner's rights are given back.
 * 0 and a descriptor for the caller to close, or -1 FILE_NOT_FOUND, BAD_PATH (not a directory), IO.
 */
int workspace_open(int parent, const char *name, int *ret_directory, struct err *err);

/* Renames it into the trash in one step. 0 also when it is not there; -1 IO. */
int workspace_discard(int parent, const char *name, struct err *err);

/*
 * The same for something in a workspace, named in the directory open as `directory`. 0, or -1 with
 * FILE_NOT_FOUND, or IO when it can't be renamed: another file system, modes (a directory without
 * write permission can't be moved, rename(2)).
 */
int workspace_discard_part(int parent, int directory, const char *name, struct err *err);

/*
 * For a directory that nobody owns. An empty one is discarded; one with something in it goes to the
 * lost ones, where nothing is ever removed. 1 set aside, 0 discarded or not there, -1 IO or
 * STORE_FULL.
 */
int workspace_set_aside(int parent, const char *name, struct err *err);

/*
 * Removes everything in the trash; what can't be removed stays there for the next time. 0, or -1
 * with *ret_left. Several threads may purge at once. cancel may be NULL.
 */
int workspace_purge(int parent, struct cancel *cancel, struct remove_left *ret_left);

/*
 * workspace_discard and removal at once, for a small one that is used only once. 0, or -1 with
 * *ret_left; what is left is in the trash.
 */
int workspace_remove(int parent, const char *name, struct remove_left *ret_left);

/*
 * Exchanges the directories of two names in one step (renameat2 RENAME_EXCHANGE, Linux 3.15): the
 * unpacked one for the old one. Descriptors stay with their directories, whatever their names. 0,
 * or -1 FILE_NOT_FOUND, NOT_SUPPORTED_HERE (a file system without it), IO.
 */
int workspace_exchange(int parent, const char *name, const char *other, struct err *err);

/*
 * Calls visit for the name of each workspace (not the trash and the lost ones), in no order. visit
 * may discard it. 0 or -1 IO.
 */
int workspace_each(int parent, void (*visit)(void *context, const char *name), void *context,
                   struct err *err);

#endif
