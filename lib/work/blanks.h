/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blanks: empty directories for calls, each used again where nobody has touched it.
 *
 * Making one costs 30 us to 0.4 ms on ext4 without a journal, which looks past every inode that was
 * freed in the last minutes (recently_deleted of fs/ext4/ialloc.c), and removing the last one is
 * what freed it. Most programs write nothing to their workspace; such a directory is as it was.
 *
 * That is told by its change time alone, which nobody can set: whatever is made, renamed or deleted
 * in a directory, and each change of its mode, owner, attributes, access list, flags or project
 * gives it a new one (inode(7)). So one with the change time that it was made with never had
 * anything in it. One that was read is given new times. What is left is its inode number, the time
 * at which it was made, and its name, which says nothing of a call. Only file systems of this
 * kernel are trusted with change times, see blanks.c; elsewhere each directory is used once.
 *
 * Any thread; one blank belongs to one thread at a time.
 */
#ifndef KERND_WORK_BLANKS_H
#define KERND_WORK_BLANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/id.h"
#include "lib/work/remove.h"

struct blanks;

struct blank {
    struct timespec changed; /* nobody but kernd has changed it since */
    struct timespec read;
    int root; /* open (O_RDONLY); -1: none */
    bool watched;
    char name[ID_SIZE]; /* below the parent; "": none */
};

/*
 * parent: of all workspaces (workspace.h), borrowed. prefix: of the names, as id_make wants it;
 * static.
 */
struct blanks *blanks_new(int parent, const char *prefix);

/* Removes what is kept. NULL is fine. */
void blanks_free(struct blanks *blanks);

/* One that is kept, else a new one: empty, mode 0700. 0, or -1 as workspace_create. */
int blanks_open(struct blanks *blanks, struct blank *ret_blank, struct err *err);

/*
 * To be called once nobody but kernd can have written to it, and before anybody can: from here on
 * each change is seen. (Before Linux 6.13 file times come from a clock that ticks every 1 to 10 ms.
 * While that still shows the time at which it was made, changes would not be, and it is used once.)
 */
void blanks_watch(struct blank *blank);

/* Is it as it was made, since before it was watched? */
bool blanks_untouched(const struct blank *blank);

/*
 * Keeps it for another call if it is untouched and `unreachable`: whoever could reach it is gone,
 * so that it stays as it is. Else it is removed: 0, or -1 with what is left in the trash.
 */
int blanks_close(struct blanks *blanks, struct blank *blank, bool unreachable,
                 struct remove_left *ret_left);

/* Removes those that have been kept since before then: nobody wanted so many. */
void blanks_age(struct blanks *blanks, int64_t before_ns);

#endif
