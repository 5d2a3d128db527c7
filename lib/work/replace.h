/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace: puts other contents into a directory that must itself stay where and what it is: a
 * caller's own workspace, which may be a mount and has boxes and descriptors on it.
 *
 *     replace_begin    an empty directory inside it, under a name that lists leave out
 *     (fill that: unpack_into, copy_tree)
 *     replace_commit   everything old out, everything new in: some renames
 *     replace_end      the old is deleted, which may take its time
 *     replace_abort    instead of the last two: the new is thrown away
 *
 * Not one step as workspace_exchange is: who looks meanwhile sees some of both. A failure half way
 * is undone; a crash half way leaves the old things below REPLACE_OLD inside. Any thread; one
 * replacement of a directory at a time.
 */
#ifndef KERND_WORK_REPLACE_H
#define KERND_WORK_REPLACE_H

#include "lib/base/err.h"

/* Names in the workspace while it goes on; for the skip lists of list.h, scan.h and pack.h. */
#define REPLACE_NEW ".kernd-new"
#define REPLACE_OLD ".kernd-old"

/* 0 and a descriptor for the caller to close. What a crash left under the names is removed, but -1
 * CONFLICT if REPLACE_OLD has something in it: it may be all that is left of the old contents. */
int replace_begin(int root, int *ret_new, struct err *err);

/*
 * Instead of replace_begin: the new contents are there already, a directory `name` of the same file
 * system; on success it is inside. 0, or -1 as replace_begin.
 */
int replace_adopt(int root, int parent, const char *name, struct err *err);

/* 0, or -1 and everything as it was; then replace_abort. */
int replace_commit(int root, struct err *err);

void replace_end(int root);

void replace_abort(int root);

#endif
