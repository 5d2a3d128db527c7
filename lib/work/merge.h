/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge: moves one tree over another: what only the first has is added, files of the same name are
 * replaced, everything else stays. Both are of one file system, and the first is nobody else's.
 */
#ifndef KERND_WORK_MERGE_H
#define KERND_WORK_MERGE_H

#include "lib/base/err.h"

/*
 * from, to: open for reading. All names are looked at before the first one is moved; each file then
 * changes in one step. A directory that is there keeps its mode. What is left of `from` is the
 * caller's to remove. 0, or -1 FILE_EXISTS (a directory where a file is to go, or the other way
 * round), BAD_PATH (`from` would go through a link), FORBIDDEN, IO. Any thread.
 */
int merge_tree(int from, int to, struct err *err);

#endif
