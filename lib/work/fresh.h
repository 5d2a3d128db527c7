/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fresh: empty directories for calls that keep nothing, used again while they are as good as new.
 *
 * Most such calls write nothing, and making and deleting directories is dear: ext4 will not give an
 * inode out again for minutes after its deletion, and looks past all of them each time
 * (recently_deleted in fs/ext4/ialloc.c). One that a box wrote to, or changed in any way that
 * shows, is never used again. Any thread.
 */
#ifndef KERND_WORK_FRESH_H
#define KERND_WORK_FRESH_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/id.h"

struct fresh;

/* parent: of workspace_open_parent, borrowed; at most `keep` directories are kept for later. */
struct fresh *fresh_new(int parent, size_t keep);

/* Removes the kept directories. None may be out any more. NULL is fine. */
void fresh_free(struct fresh *fresh);

/*
 * An empty directory, mode 0700, of ours. 0, its name below the parent, and a descriptor that
 * fresh_give takes back; -1 as workspace_create.
 */
int fresh_take(struct fresh *fresh, char ret_name[static ID_SIZE], int *ret_directory,
               struct err *err);

/*
 * Gives it back and closes the descriptor. Nothing may run in it any more. What can't be used again
 * is removed here and now (workspace_remove); what can't be removed waits in the trash.
 */
void fresh_give(struct fresh *fresh, const char *name, int directory);

#endif
