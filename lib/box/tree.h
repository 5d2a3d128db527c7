/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: copy and remove small directory trees beneath a directory descriptor. Symbolic links are
 * never followed. Any thread.
 */
#ifndef KERND_BOX_TREE_H
#define KERND_BOX_TREE_H

/*
 * Removes name and all below it; nothing there is fine. Best effort: 0, or -1 with errno when
 * something stayed.
 */
int tree_remove(int dir, const char *name);

/*
 * Copies from_name (a file, link or directory) into to_dir as to_name. Only what everybody may read
 * is taken, files of at most 4 MiB, up to 8 levels; the rest is left out silently. Directories
 * become 0755, files 0444. 0, or -1 with errno when the target can't be written.
 */
int tree_copy(int from_dir, const char *from_name, int to_dir, const char *to_name);

#endif
