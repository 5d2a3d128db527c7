/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move: takes something to another directory of the same file system. For lib/work alone.
 */
#ifndef KERND_WORK_MOVE_H
#define KERND_WORK_MOVE_H

/*
 * renameat(2) of `name` under the same name, over a file that is there. A directory that gets
 * another parent must be writable for its owner (rename(2)): its mode is lifted for the moment. 0,
 * or -1 with errno.
 */
int move_entry(int from, int to, const char *name);

#endif
