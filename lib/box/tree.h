/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree: copy and remove small directory trees beneath a directory descriptor. Symbolic links are
 * never followed. Any thread.
 */
#ifndef KERND_BOX_TREE_H
#define KERND_BOX_TREE_H

#include <stddef.h>
#include <stdint.h>

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

/*
 * A number over names, times and sizes of all that tree_copy would look at; it differs when
 * something was changed since (within 64 bits' luck). Continue with the result of an earlier call,
 * or 0.
 */
uint64_t tree_stamp(uint64_t stamp, int dir, const char *name);
/* The same over bytes. */
uint64_t tree_stamp_bytes(uint64_t stamp, const void *data, size_t size);

#endif
